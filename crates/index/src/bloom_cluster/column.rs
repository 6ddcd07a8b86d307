//! [`Column`]: the filters of a bucket in all runs. [`ColumnBuilder`] makes one.

use alluvium_base::checksum::checksum64;
use alluvium_base::{Corruption, KeyHash, varint};

use super::probes::{PROBES_MAX, Probes};
use super::run_set::RunSet;

const NAME: &str = "filter column";

/// Maximum number of runs of a cluster.
pub const RUNS_MAX: u32 = 255;

const CHECKSUM_LEN: usize = 8;
const HEADER_LEN: usize = CHECKSUM_LEN + 4;

const LENGTHS_LEN_AT: usize = CHECKSUM_LEN + 2;

/// Maximum number of bytes of a filter: a filter has less than 2^32 bits.
const FILTER_LEN_MAX: u64 = 1 << 28;

/// The filters of a bucket in all runs, as checked bytes. See the module for the layout.
#[derive(Clone, Copy, Debug)]
pub struct Column<'bytes> {
    probes: u32,
    runs: u32,
    /// Offset at which the filter lengths begin.
    lengths: usize,
    /// Offset at which the filters begin.
    filters: usize,
    bytes: &'bytes [u8],
}

impl<'bytes> Column<'bytes> {
    /// The column of `bucket` at the beginning of `bytes`.
    ///
    /// # Errors
    /// When checksum, numbers or lengths are wrong. The offset is relative to `bytes`.
    pub fn open(bytes: &'bytes [u8], bucket: u64) -> Result<Self, Corruption> {
        let column = Self::trusted(bytes)?;
        let lengths = column.lengths;
        let (mut filters, mut filters_len) = (lengths, 0);
        for _ in 0..column.runs {
            let length = bytes.get(filters..column.filters).and_then(varint::read);
            let Some((length, taken)) = length.filter(|(length, _)| *length <= FILTER_LEN_MAX) else {
                return Err(wrong(filters, "the length of a filter", format!("{length:?}")));
            };
            filters += taken;
            filters_len += length;
        }
        if filters != column.filters {
            let expected = format!("{} bytes of lengths", filters - lengths);
            return Err(wrong(LENGTHS_LEN_AT, expected, (column.filters - lengths).to_string()));
        }
        let end = usize::try_from(filters_len).ok().and_then(|len| filters.checked_add(len));
        let Some((end, body)) = end.and_then(|end| Some((end, bytes.get(CHECKSUM_LEN..end)?))) else {
            let found = format!("{} bytes", bytes.len());
            return Err(wrong(filters, format!("{filters_len} bytes of filters"), found));
        };
        let (stored, computed) = (&bytes[..CHECKSUM_LEN], checksum64(body, bucket));
        if stored != computed.to_le_bytes() {
            return Err(wrong(0, format!("checksum {computed:#018x}"), format!("bytes {stored:02x?}")));
        }
        Ok(Self { bytes: &bytes[..end], ..column })
    }

    /// Like [`open`](Self::open) without checking checksum and lengths: for bytes that it accepted before.
    #[inline(always)]
    pub(super) fn trusted(bytes: &'bytes [u8]) -> Result<Self, Corruption> {
        let Some(header) = bytes.first_chunk::<HEADER_LEN>() else {
            return Err(wrong(0, format!("at least {HEADER_LEN} bytes"), format!("{} bytes", bytes.len())));
        };
        let (probes, runs) = (u32::from(header[CHECKSUM_LEN]), u32::from(header[CHECKSUM_LEN + 1]));
        if !(1..=PROBES_MAX).contains(&probes) {
            return Err(wrong(CHECKSUM_LEN, format!("1 to {PROBES_MAX} probes"), probes.to_string()));
        }
        let lengths_len = u16::from_le_bytes([header[LENGTHS_LEN_AT], header[LENGTHS_LEN_AT + 1]]);
        let lengths = HEADER_LEN + (runs as usize).div_ceil(8);
        Ok(Self { probes, runs, lengths, filters: lengths + usize::from(lengths_len), bytes })
    }

    #[inline(always)]
    fn lengths(&self) -> impl Iterator<Item = u64> + use<'bytes> {
        let mut rest = self.bytes.get(self.lengths..self.filters).unwrap_or_default();
        std::iter::from_fn(move || {
            let (length, taken) = varint::read(rest)?;
            rest = &rest[taken..];
            Some(length)
        })
    }

    /// Each run's filter, old to young, and whether it uses the second set of probes.
    #[inline(always)]
    fn filters(&self) -> impl Iterator<Item = (&'bytes [u8], bool)> + use<'bytes> {
        let mut rest = self.bytes.get(self.filters..).unwrap_or_default();
        let sets = self.bytes.get(HEADER_LEN..self.lengths).unwrap_or_default();
        (0..).zip(self.lengths()).map(move |(run, length): (usize, u64)| {
            let (filter, after) = rest.split_at((length as usize).min(rest.len()));
            rest = after;
            (filter, sets.get(run / 8).is_some_and(|sets| sets >> (run % 8) & 1 == 1))
        })
    }

    /// Number of runs.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Number of probes for each key.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Bytes of the column.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.runs == 0
    }

    /// The runs that may hold the key with `hash`, which belongs to the column's bucket. A run that holds it is always
    /// among them.
    ///
    /// Cost: about 12 to 20 ns for each run.
    #[inline]
    pub fn runs_of(&self, hash: KeyHash) -> RunSet {
        let probes = Probes::new(hash, self.probes);
        let mut found = RunSet::default();
        for (run, (filter, uses_second)) in (0..).zip(self.filters()) {
            if probes.pass(filter, uses_second) {
                found.insert(run);
            }
        }
        found
    }
}

fn wrong(offset: usize, expected: impl Into<String>, found: impl Into<String>) -> Corruption {
    Corruption::new(NAME, offset as u64, expected, found)
}

/// Collects the filters of a bucket, old to young: those copied from a column that is rewritten, and new ones. Reused
/// for each column.
#[derive(Clone, Debug)]
pub struct ColumnBuilder {
    bits_per_key: f64,
    probes: u32,
    /// A bit for each run: whether its filter uses the second set of probes.
    sets: Vec<u8>,
    lengths: Vec<u8>,
    filters: Vec<u8>,
    /// Buffer for a filter built with the second set of probes.
    second: Vec<u8>,
    runs: u32,
}

impl ColumnBuilder {
    /// A builder without runs. Its new filters have `bits_per_key` bits for each key.
    ///
    /// # Panics
    /// When `bits_per_key` is not above 0 and at most 64.
    pub fn new(bits_per_key: f64) -> Self {
        assert!(bits_per_key > 0.0 && bits_per_key <= 64.0, "{bits_per_key} bits a key are none or too many");
        Self {
            bits_per_key,
            probes: Probes::best_count(bits_per_key),
            sets: Vec::new(),
            lengths: Vec::new(),
            filters: Vec::new(),
            second: Vec::new(),
            runs: 0,
        }
    }

    /// A builder that only copies filters.
    pub(super) fn with_probes(probes: u32) -> Self {
        Self { probes, ..Self::new(1.0) }
    }

    /// Number of probes for each key.
    pub fn probes(&self) -> u32 {
        self.probes
    }

    /// Number of runs so far.
    pub fn runs(&self) -> u32 {
        self.runs
    }

    /// Removes all runs.
    pub fn clear(&mut self) {
        self.sets.clear();
        self.lengths.clear();
        self.filters.clear();
        self.runs = 0;
    }

    /// Adds the filters of those runs of `column` for which `keeps` returns true.
    ///
    /// # Panics
    /// When there are more than 255 runs, or `column` has another number of probes.
    pub fn copy(&mut self, column: &Column<'_>, keeps: impl Fn(u32) -> bool) {
        assert_eq!(column.probes, self.probes, "a column has one number of probes");
        for (run, (filter, uses_second)) in (0..).zip(column.filters()) {
            if keeps(run) {
                self.start_run(filter.len() as u64, uses_second);
                self.filters.extend_from_slice(filter);
            }
        }
    }

    /// Adds a run whose keys in this bucket have `hashes`; there may be none.
    ///
    /// # Panics
    /// If there are more than 255 runs, or the filter has more than 2^28 bytes.
    pub fn add(&mut self, hashes: &[KeyHash]) {
        let least = u64::from(!hashes.is_empty());
        let len = ((hashes.len() as f64 * self.bits_per_key / 8.0).round() as u64).max(least);
        let start = self.filters.len();
        self.filters.resize(start + len as usize, 0);
        self.second.clear();
        self.second.resize(len as usize, 0);
        let first = &mut self.filters[start..];
        for hash in hashes {
            let probes = Probes::new(*hash, self.probes);
            probes.set(first, false);
            probes.set(&mut self.second, true);
        }
        let uses_second = ones(&self.second) < ones(first);
        if uses_second {
            first.copy_from_slice(&self.second);
        }
        self.start_run(len, uses_second);
    }

    fn start_run(&mut self, filter_len: u64, uses_second: bool) {
        assert!(self.runs < RUNS_MAX, "a column has at most {RUNS_MAX} runs");
        assert!(filter_len <= FILTER_LEN_MAX, "a filter of {filter_len} bytes is too long");
        if self.runs.is_multiple_of(8) {
            self.sets.push(0);
        }
        if let Some(sets) = self.sets.last_mut() {
            *sets |= u8::from(uses_second) << (self.runs % 8);
        }
        self.runs += 1;
        varint::write(filter_len, &mut self.lengths);
    }

    /// Bytes of the column.
    pub fn len(&self) -> usize {
        HEADER_LEN + self.sets.len() + self.lengths.len() + self.filters.len()
    }

    /// Whether there are no runs.
    pub fn is_empty(&self) -> bool {
        self.runs == 0
    }

    /// Appends the column of `bucket` to `out`.
    pub(super) fn write(&self, bucket: u64, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&[0; CHECKSUM_LEN]);
        out.extend_from_slice(&[self.probes as u8, self.runs as u8]);
        out.extend_from_slice(&(self.lengths.len() as u16).to_le_bytes());
        out.extend_from_slice(&self.sets);
        out.extend_from_slice(&self.lengths);
        out.extend_from_slice(&self.filters);
        let (checksum, body) = out[start..].split_at_mut(CHECKSUM_LEN);
        checksum.copy_from_slice(&checksum64(body, bucket).to_le_bytes());
    }
}

/// Number of bits that are set.
fn ones(filter: &[u8]) -> u32 {
    filter.iter().map(|byte| byte.count_ones()).sum()
}
