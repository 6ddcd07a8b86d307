//! [`MultiLevelFilterBuilder`]: the filter while keys are added.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use alluvium_base::KeyHash;

use super::filter::{FINGERPRINT_BITS_MAX, FINGERPRINT_BITS_MIN, MultiLevelFilter, RUN_BITS, RUNS_MAX};
use super::secondary::Secondary;
use crate::cuckoo::Full;
use crate::cuckoo::path::{self, Lanes};
use crate::cuckoo::placement::{BUCKETS_MAX, Placement, WAYS, alternative};
use crate::cuckoo::tag_word::{empties, first_way, matches, tag_at, with_tag};
use crate::packed_tags::PackedTags;

/// Fraction of the keys that blind puts may add to the secondary table: half a bit of memory per key.
pub const SECONDARY_SHARE_MAX: f64 = 1.0 / 256.0;

/// Minimum limit on secondary entries, for the smallest filters.
const SECONDARY_LEN_MIN: usize = 8;

/// Expected occupancy for [`MultiLevelFilterBuilder::new`], in percent of the slots.
const OCCUPANCY_PERCENT: u64 = 95;

/// Whether an inserted key is already in the filter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// It is not.
    Absent,
    /// It is, in an older run.
    Present,
    /// Not checked.
    Unknown,
}

/// A filter to which keys are added, older runs before younger ones.
#[derive(Debug)]
pub struct MultiLevelFilterBuilder {
    primary: Primary,
    secondary: HashMap<KeyHash, u8, BuildHasherDefault<PassedHash>>,
    secondary_len_max: usize,
    len: u32,
    is_ambiguous: bool,
}

/// The lanes, in words of four: room for fingerprints of any width.
#[derive(Debug)]
struct Primary {
    words: Vec<u64>,
    fingerprint_bits: u32,
}

impl Primary {
    fn buckets(&self) -> u32 {
        self.words.len() as u32
    }

    /// Bucket and way of the one lane with the fingerprint of `placement`.
    #[inline(always)]
    fn find(&self, placement: Placement) -> Option<(u32, u32)> {
        placement.buckets.into_iter().find_map(|bucket| {
            let fingerprints = self.words[bucket as usize] >> RUN_BITS & FINGERPRINT_LANES;
            let lanes = matches(fingerprints, placement.tag);
            (lanes != 0).then(|| (bucket, first_way(lanes)))
        })
    }

    #[inline(always)]
    fn set(&mut self, bucket: u32, way: u32, lane: u16) {
        let word = &mut self.words[bucket as usize];
        *word = with_tag(*word, way, lane);
    }

    /// Returns an empty slot in the emptier of the two buckets, or makes one by moving other entries.
    #[inline(always)]
    fn make_room(&mut self, [primary, other]: [u32; 2]) -> Result<(u32, u32), Full> {
        let free = [primary, other].map(|bucket| empties(self.words[bucket as usize]));
        let (bucket, lanes) =
            if free[1].count_ones() > free[0].count_ones() { (other, free[1]) } else { (primary, free[0]) };
        if lanes != 0 { Ok((bucket, first_way(lanes))) } else { self.displace([primary, other]) }
    }

    #[cold]
    #[inline(never)]
    fn displace(&mut self, roots: [u32; 2]) -> Result<(u32, u32), Full> {
        let path = path::find(self, roots).ok_or(Full)?;
        for (from, to) in path.moves() {
            let lane = tag_at(self.words[from.bucket as usize], from.way);
            self.set(to.bucket, to.way, lane);
            self.set(from.bucket, from.way, 0);
        }
        Ok((path.head().bucket, path.head().way))
    }
}

/// The bits that belong to each lane after a shift by the run's bits.
const FINGERPRINT_LANES: u64 = 0x1fff_1fff_1fff_1fff;

impl Lanes for Primary {
    #[inline(always)]
    fn lanes(&self, bucket: u32) -> u64 {
        self.words[bucket as usize]
    }

    #[inline(always)]
    fn alternative(&self, bucket: u32, lane: u16) -> u32 {
        alternative(bucket, lane >> RUN_BITS, self.buckets())
    }
}

impl MultiLevelFilterBuilder {
    /// An empty filter in which `keys` different keys take 95 % of the slots.
    ///
    /// # Panics
    /// When `fingerprint_bits` is outside [`FINGERPRINT_BITS_MIN`]`..=`[`FINGERPRINT_BITS_MAX`], or `keys` exceeds
    /// 4.08 × 10^9.
    pub fn new(keys: usize, fingerprint_bits: u32) -> Self {
        assert!(
            (FINGERPRINT_BITS_MIN..=FINGERPRINT_BITS_MAX).contains(&fingerprint_bits),
            "a fingerprint has {FINGERPRINT_BITS_MIN} to {FINGERPRINT_BITS_MAX} bits, not {fingerprint_bits}"
        );
        let slots = (keys as u64 * 100).div_ceil(OCCUPANCY_PERCENT);
        let buckets = slots.div_ceil(u64::from(WAYS)).max(1);
        assert!(buckets <= u64::from(BUCKETS_MAX), "{keys} keys exceed 32-bit slot numbers");
        let words = vec![0; buckets as usize];
        let secondary_len_max = ((keys as f64 * SECONDARY_SHARE_MAX) as usize).max(SECONDARY_LEN_MIN);
        Self {
            primary: Primary { words, fingerprint_bits },
            secondary: HashMap::default(),
            secondary_len_max,
            len: 0,
            is_ambiguous: false,
        }
    }

    /// Reopens a finished filter to add more runs.
    pub fn reopen(filter: &MultiLevelFilter) -> Self {
        let lanes = filter.lanes();
        let word = |bucket| (0..WAYS).fold(0, |word, way| with_tag(word, way, lanes.tag(bucket, way)));
        let words: Vec<u64> = (0..lanes.buckets()).map(word).collect();
        let keys = words.len() as f64 * f64::from(WAYS) * OCCUPANCY_PERCENT as f64 / 100.0;
        Self {
            primary: Primary { words, fingerprint_bits: filter.fingerprint_bits() },
            secondary: filter.secondary().entries().collect(),
            secondary_len_max: ((keys * SECONDARY_SHARE_MAX) as usize).max(SECONDARY_LEN_MIN),
            len: filter.len() as u32,
            is_ambiguous: filter.is_ambiguous(),
        }
    }

    /// Records that the newest item of the key with `hash` is in `run`, which is no older than any run before.
    ///
    /// 100 ns on average while filling to 95 %, most of it one or two waits for memory.
    ///
    /// # Errors
    /// [`Full`]; the filter is unchanged.
    ///
    /// # Panics
    /// When `run` is not below [`RUNS_MAX`].
    #[inline]
    pub fn insert(&mut self, hash: KeyHash, run: u8, known: Known) -> Result<(), Full> {
        assert!(u32::from(run) < RUNS_MAX, "a filter stands for {RUNS_MAX} runs, not for run {run}");
        let placement = Placement::with_tag_bits(hash, self.primary.buckets(), self.primary.fingerprint_bits);
        let lane = placement.tag << RUN_BITS | u16::from(run);
        match self.primary.find(placement) {
            None => {
                let (bucket, way) = self.primary.make_room(placement.buckets)?;
                self.primary.set(bucket, way, lane);
                self.len += 1;
            }
            Some((bucket, way)) => self.insert_again(hash, run, known, (bucket, way, lane)),
        }
        Ok(())
    }

    /// Inserts where the key, or another one with its fingerprint, is present.
    #[cold]
    #[inline(never)]
    fn insert_again(&mut self, hash: KeyHash, run: u8, known: Known, (bucket, way, lane): (u32, u32, u16)) {
        if let Some(known_run) = self.secondary.get_mut(&hash) {
            *known_run = run;
            return;
        }
        let is_new = match known {
            Known::Present => false,
            Known::Absent => true,
            Known::Unknown => self.secondary.len() < self.secondary_len_max,
        };
        if is_new {
            self.secondary.insert(hash, run);
            self.len += 1;
            return;
        }
        self.primary.set(bucket, way, lane);
        self.is_ambiguous |= known == Known::Unknown;
    }

    /// Number of keys so far; a key that was put blindly may be counted twice.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The filter of all keys so far.
    pub fn finish(self) -> MultiLevelFilter {
        let width = self.primary.fingerprint_bits + RUN_BITS;
        let pack = |word: &u64| {
            (0..WAYS).fold(0, |packed, way| packed | u64::from(tag_at(*word, way)) << (way * width))
        };
        let lanes = PackedTags::pack(self.primary.words.iter().map(pack), width);
        let secondary = Secondary::new(self.secondary.into_iter().collect());
        MultiLevelFilter::from_parts(lanes, secondary, self.len, self.is_ambiguous)
    }
}

/// Hashes a key hash to its high half.
#[derive(Clone, Copy, Debug, Default)]
struct PassedHash(u64);

impl Hasher for PassedHash {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, half: u64) {
        self.0 = self.0.rotate_left(32) ^ half;
    }

    fn write_u128(&mut self, hash: u128) {
        self.write_u64((hash >> 64) as u64);
        self.write_u64(hash as u64);
    }
}
