//! The dictionaries that the zones of a cache share: learned from items that the hot zone evicts, and learned again
//! when items have changed.
//!
//! ```text
//!  place     [ number | dictionary | users ] ×4       one of them is current
//! ```
//!
//! A block names the places whose dictionaries its chunks need, and counts as their user, as does each encoder for the
//! place that it encodes with. A place gets another dictionary only when it has no users. A reader takes a block's
//! dictionaries before it validates the block's version: the block was a user of its places until then, so they are the
//! right ones.

use std::fmt;
use std::sync::Arc;

use crate::sync::{AtomicU32, AtomicU64, Mutex, MutexGuard, Ordering};

use super::chunk::DICTIONARIES;
use super::learned::Learned;

/// Bytes of samples for each byte of a dictionary.
const SAMPLES_PER_BYTE: usize = 64;

/// Bytes of a dictionary, unless the memory is small.
const DICTIONARY_BYTES_MAX: usize = 16 << 10;
const DICTIONARY_BYTES_MIN: usize = 1 << 10;

/// Memory for each byte of a dictionary.
const MEMORY_PER_BYTE: usize = 4096;

/// Bytes of items, in samples, over which the compression is judged.
const WINDOW_SAMPLES: u64 = 16;

/// A dictionary is learned again when items take this share more bytes than at first, in percent.
const WORSE_PERCENT: u64 = 10;

/// Maximum windows between two attempts to learn.
const PAUSE_MAX: u64 = 1 << 10;

/// A dictionary and its number, which no other dictionary of the process has; 0 for none.
pub(super) type Numbered = (u64, Option<Arc<Learned>>);

#[derive(Default)]
struct Place {
    number: AtomicU64,
    dictionary: Mutex<Numbered>,
    /// Blocks that need the dictionary, and encoders that use it.
    users: AtomicU64,
}

/// What is known of the compression, and what the next dictionary is learned from.
#[derive(Debug, Default)]
struct Progress {
    samples: Vec<u8>,
    sample_lens: Vec<usize>,
    /// Bytes before and after compression with the current dictionary, in this window and in the first one.
    window: [u64; 2],
    first: Option<[u64; 2]>,
    learned: u64,
    /// Windows to wait before it is tried to learn again, since items had too little in common, and how many of them
    /// have passed.
    pause: u64,
    paused: u64,
}

/// See the module.
pub(crate) struct Dictionaries {
    places: [Place; DICTIONARIES],
    /// The place of the current dictionary, plus one; 0 for none.
    current: AtomicU32,
    /// 1 if items are wanted to learn from.
    wants_samples: AtomicU32,
    bytes_max: usize,
    progress: Mutex<Progress>,
}

impl fmt::Debug for Dictionaries {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Dictionaries").field("current", &self.current).finish_non_exhaustive()
    }
}

/// The last number that a dictionary got.
static NUMBERS: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Dictionaries {
    /// None yet; they will be of a size that suits a cache of `memory` bytes.
    pub fn new(memory: usize) -> Self {
        Self {
            places: Default::default(),
            current: AtomicU32::new(0),
            wants_samples: AtomicU32::new(1),
            bytes_max: (memory / MEMORY_PER_BYTE).clamp(DICTIONARY_BYTES_MIN, DICTIONARY_BYTES_MAX),
            progress: Mutex::default(),
        }
    }

    /// Bytes that two dictionaries for a cache of `memory` bytes may take: the current one, and one that is replaced.
    pub fn bytes_max(memory: usize) -> usize {
        let each = (memory / MEMORY_PER_BYTE).clamp(DICTIONARY_BYTES_MIN, DICTIONARY_BYTES_MAX);
        2 * Learned::bytes_max(each)
    }

    /// Bytes of the dictionaries that exist, and how many were learned.
    pub fn figures(&self) -> (u64, u64) {
        let bytes = |place: &Place| lock(&place.dictionary).1.as_ref().map_or(0, |learned| learned.bytes());
        (self.places.iter().map(bytes).sum::<usize>() as u64, lock(&self.progress).learned)
    }

    /// The dictionary in a place.
    pub(super) fn take(&self, place: usize, held: &mut Numbered) {
        let place = &self.places[place];
        if place.number.load(Ordering::Acquire) != held.0 {
            *held = lock(&place.dictionary).clone();
        }
    }

    fn current(&self) -> Option<usize> {
        (self.current.load(Ordering::Relaxed) as usize).checked_sub(1)
    }

    /// Whether the current dictionary is not the one in this place.
    pub fn is_replaced(&self, place: Option<usize>) -> bool {
        self.current() != place
    }

    /// Makes an encoder that used the dictionary in `place` a user of the current one.
    pub(super) fn switch(&self, place: &mut Option<usize>, held: &mut Numbered) {
        // A place gets another dictionary behind the same lock.
        let _progress = lock(&self.progress);
        let Some(current) = self.current() else { return };
        self.places[current].users.fetch_add(1, Ordering::Relaxed);
        if let Some(before) = place.replace(current) {
            self.places[before].users.fetch_sub(1, Ordering::Release);
        }
        self.take(current, held);
    }

    /// Blocks that need the dictionaries `after`, one bit each, were written, and blocks that need those of `before`
    /// were dropped.
    pub fn count_users(&self, after: u32, before: u32) {
        for (number, place) in self.places.iter().enumerate() {
            match (after >> number & 1, before >> number & 1) {
                (1, 0) => drop(place.users.fetch_add(1, Ordering::Relaxed)),
                (0, 1) => drop(place.users.fetch_sub(1, Ordering::Release)),
                _ => {}
            }
        }
    }

    /// Blocks were dropped, this many for each place.
    pub fn count_dropped(&self, blocks: [u64; DICTIONARIES]) {
        for (place, blocks) in self.places.iter().zip(blocks) {
            place.users.fetch_sub(blocks, Ordering::Release);
        }
    }

    /// Dictionaries, one bit each, whose blocks a sweep should write again so that a place becomes free.
    pub fn obsolete(&self) -> u32 {
        let used = |place: &Place| place.users.load(Ordering::Relaxed) > 0;
        if !self.places.iter().all(used) {
            return 0;
        }
        let all = (1 << DICTIONARIES) - 1;
        self.current().map_or(0, |current| all & !(1 << current))
    }

    /// Whether items that come should be offered to [`sample`](Self::sample).
    pub fn wants_samples(&self) -> bool {
        self.wants_samples.load(Ordering::Relaxed) == 1
    }

    /// Takes an item to learn from. With enough of them a thread learns a dictionary.
    pub fn sample(self: &Arc<Self>, item: &[u8]) {
        // Another partition's writer gives one at the same time: one of them is enough.
        let Ok(mut progress) = self.progress.try_lock() else { return };
        if !self.wants_samples() {
            return;
        }
        let Progress { samples, sample_lens, .. } = &mut *progress;
        samples.extend_from_slice(item);
        sample_lens.push(item.len());
        if samples.len() < self.bytes_max * SAMPLES_PER_BYTE {
            return;
        }
        self.wants_samples.store(0, Ordering::Relaxed);
        let (samples, sample_lens) = (std::mem::take(samples), std::mem::take(sample_lens));
        drop(progress);
        let dictionaries = self.clone();
        let learn = move || {
            let learned = Learned::from_samples(&samples, &sample_lens, dictionaries.bytes_max);
            drop((samples, sample_lens));
            dictionaries.install(learned.map(Arc::new));
        };
        // Without a thread there is no dictionary: the next window decides whether to try again.
        let _ = std::thread::Builder::new().name("alluvium-dictionary".to_owned()).spawn(learn);
    }

    /// Makes a dictionary the current one, if there is a place for it.
    fn install(&self, learned: Option<Arc<Learned>>) {
        let mut progress = lock(&self.progress);
        (progress.window, progress.first) = ([0; 2], None);
        progress.pause = if learned.is_some() { 0 } else { (2 * progress.pause).clamp(1, PAUSE_MAX) };
        progress.paused = 0;
        let Some(free) = self.places.iter().position(|place| place.users.load(Ordering::Acquire) == 0) else {
            return;
        };
        let Some(learned) = learned else { return };
        let number = NUMBERS.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1;
        let place = &self.places[free];
        *lock(&place.dictionary) = (number, Some(learned));
        place.number.store(number, Ordering::Release);
        self.current.store(free as u32 + 1, Ordering::Relaxed);
        progress.learned += 1;
    }

    /// Notes bytes of items before and after compression. Begins to learn again if there is no dictionary, or the
    /// current one has become worse.
    pub fn note(&self, [raw, coded]: [u64; 2]) {
        let mut progress = lock(&self.progress);
        progress.window[0] += raw;
        progress.window[1] += coded;
        let samples_bytes = (self.bytes_max * SAMPLES_PER_BYTE) as u64;
        if progress.window[0] < WINDOW_SAMPLES * samples_bytes {
            return;
        }
        let window = std::mem::take(&mut progress.window);
        self.drop_unused();
        let has_dictionary = self.current().is_some();
        let Some(first) = progress.first.filter(|_| has_dictionary) else {
            progress.first = Some(window);
            progress.paused += 1;
            if !has_dictionary && progress.paused > progress.pause {
                self.wants_samples.store(1, Ordering::Relaxed);
            }
            return;
        };
        // In bytes after compression for each before it.
        let now = u128::from(window[1]) * u128::from(first[0]) * 100;
        let then = u128::from(first[1]) * u128::from(window[0]) * u128::from(100 + WORSE_PERCENT);
        let has_place = self.places.iter().any(|place| place.users.load(Ordering::Acquire) == 0);
        if now > then && has_place {
            self.wants_samples.store(1, Ordering::Relaxed);
        }
    }

    /// Frees dictionaries that have no users. The caller holds the lock of `progress`.
    fn drop_unused(&self) {
        let current = self.current();
        for (number, place) in self.places.iter().enumerate() {
            if Some(number) != current && place.users.load(Ordering::Acquire) == 0 {
                *lock(&place.dictionary) = (0, None);
                place.number.store(0, Ordering::Release);
            }
        }
    }
}
