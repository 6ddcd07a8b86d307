//! The dictionaries of a file: learned from items that cleaning packs, and learned again when items have changed.
//!
//! ```text
//!  slot      [ number | length | checksum | 0 … ] bytes of the dictionary        16 KiB, four of them
//! ```
//!
//! The number is a hash of the bytes, so a block that names it is decompressed with these bytes or not at all. A
//! dictionary is flushed before the first block names it.
//!
//! A thread of its own learns a dictionary, from copies and without the file. The next writer that cleans a zone puts
//! it into a slot.
//!
//! Architecture invariant: a slot is written again only while no zone may have a block that names what it has. Zones
//! that were written before the file was opened may name all of them, until they are cleaned.

use std::sync::Arc;

use alluvium_base::checksum::checksum64;

use crate::memory::UNIT_BYTES;
use crate::sync::{AtomicU32, Mutex, MutexGuard, Ordering};
use crate::zone::Learned;

use super::geometry::Geometry;
use super::medium::{LINE_BYTES, Medium, word_at};
use super::packing::Numbered;

/// Slots of a file whose codec has dictionaries.
pub(crate) const SLOTS: usize = 4;
/// Bytes of a slot.
pub(crate) const SLOT_BYTES: usize = 16 << 10;

const DICTIONARY_BYTES_MAX: usize = SLOT_BYTES - LINE_BYTES;
const DICTIONARY_BYTES_MIN: usize = 1 << 10;
/// Bytes of the cache for each byte of a dictionary.
const BYTES_PER_BYTE: usize = 4096;
/// Bytes of samples for each byte of a dictionary.
const SAMPLES_PER_BYTE: usize = 64;
/// Bytes of items, in samples, over which the compression is judged.
const WINDOW_SAMPLES: u64 = 16;
/// A dictionary is learned again when items take this share more bytes than at first, in percent.
const WORSE_PERCENT: u128 = 10;
/// Maximum windows between two attempts to learn.
const PAUSE_MAX: u64 = 1 << 10;

const LENGTH: usize = 1;
const CHECKSUM: usize = 2;

#[derive(Debug, Default)]
struct Slots {
    dictionaries: [Option<Numbered>; SLOTS],
    /// Zones that may have blocks which name it.
    users: [usize; SLOTS],
    current: Option<usize>,
}

/// What the next dictionary is learned from, and how the current one does.
#[derive(Debug, Default)]
struct Progress {
    samples: Vec<u8>,
    sample_lens: Vec<usize>,
    /// What the thread has learned: `Some(None)` if the items had too little in common.
    learned: Option<Option<Vec<u8>>>,
    is_learning: bool,
    /// Bytes before and after compression, in this window and in the first one.
    window: [u64; 2],
    first: Option<[u64; 2]>,
    pause: u64,
    paused: u64,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Dictionaries {
    slots: Mutex<Slots>,
    progress: Arc<Mutex<Progress>>,
    /// 1 if there is a current dictionary.
    has_current: AtomicU32,
    /// 1 if items are wanted to learn from, 2 if something was learned.
    wants: AtomicU32,
    bytes_max: usize,
}

const SAMPLES: u32 = 1;
const NOTHING: u32 = 0;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

impl Dictionaries {
    /// None yet; they will be of a size that suits a cache of `bytes` bytes.
    pub fn new(bytes: usize) -> Self {
        Self {
            slots: Mutex::default(),
            progress: Arc::default(),
            has_current: AtomicU32::new(0),
            wants: AtomicU32::new(SAMPLES),
            bytes_max: (bytes / BYTES_PER_BYTE).clamp(DICTIONARY_BYTES_MIN, DICTIONARY_BYTES_MAX),
        }
    }

    /// Loads those of a file; the zones of `partitions` partitions with items may name each of them. What is damaged is
    /// left out.
    pub fn load(&self, medium: &impl Medium, geometry: &Geometry) {
        let mut slots = lock(&self.slots);
        for slot in 0..geometry.dictionaries.min(SLOTS) {
            let at = geometry.dictionary_at(slot);
            let [number, len, sum] = [0, LENGTH, CHECKSUM].map(|word| medium.load(word_at(at, word)));
            let Some(len) = usize::try_from(len).ok().filter(|len| (1..=DICTIONARY_BYTES_MAX).contains(len))
            else {
                continue;
            };
            let mut bytes = vec![0; len.next_multiple_of(UNIT_BYTES)];
            medium.copy_out(at + LINE_BYTES, &mut bytes);
            bytes.truncate(len);
            if number_of(&bytes) != number || checksum64(&bytes, number) != sum {
                continue;
            }
            if let Some(learned) = Learned::of(&bytes) {
                slots.dictionaries[slot] = Some((number, Arc::new(learned)));
                // Which of them was used last is not known; the compression decides whether another is learned.
                slots.current = Some(slot);
            }
        }
        if slots.current.is_some() {
            self.has_current.store(1, Ordering::Relaxed);
            self.wants.store(NOTHING, Ordering::Relaxed);
        }
    }

    /// Whether there is a current dictionary.
    pub fn has_current(&self) -> bool {
        self.has_current.load(Ordering::Relaxed) == 1
    }

    /// How many dictionaries there are, and their bytes in memory.
    pub fn figures(&self) -> (u64, u64) {
        let slots = lock(&self.slots);
        let all = slots.dictionaries.iter().flatten();
        all.fold((0, 0), |(count, bytes), (_, learned)| (count + 1, bytes + learned.bytes() as u64))
    }

    /// Bytes of memory for `SLOTS` dictionaries and samples, at most, in a cache of `bytes` bytes.
    pub fn bytes_max(bytes: usize) -> usize {
        let each = (bytes / BYTES_PER_BYTE).clamp(DICTIONARY_BYTES_MIN, DICTIONARY_BYTES_MAX);
        2 * Learned::bytes_max(each)
    }

    /// The dictionary with this number.
    pub fn find(&self, number: u64) -> Option<Arc<Learned>> {
        let slots = lock(&self.slots);
        let mut all = slots.dictionaries.iter().flatten();
        all.find(|(own, _)| *own == number).map(|(_, learned)| Arc::clone(learned))
    }

    /// The current dictionary, which a zone will name; `named` has a bit for each slot that it names.
    pub fn use_current(&self, named: &mut u8) -> Option<Numbered> {
        let mut slots = lock(&self.slots);
        let current = slots.current?;
        slots.name(current, named);
        slots.dictionaries[current].clone()
    }

    /// Notes that a zone will have a block which names this dictionary; returns whether it is the current one. A block
    /// with an older one is better made anew, so that its slot becomes free.
    pub fn use_again(&self, number: u64, named: &mut u8) -> bool {
        let mut slots = lock(&self.slots);
        let Some(current) = slots.current else { return false };
        let is_it = slots.dictionaries[current].as_ref().is_some_and(|(own, _)| *own == number);
        if is_it {
            slots.name(current, named);
        }
        is_it
    }

    /// A zone of which nothing is known may name all of them.
    pub fn name_all(&self, named: &mut u8) {
        let mut slots = lock(&self.slots);
        for slot in 0..SLOTS {
            if slots.dictionaries[slot].is_some() {
                slots.name(slot, named);
            }
        }
    }

    /// A zone names none any more.
    pub fn forget(&self, named: &mut u8) {
        if *named != 0 {
            let mut slots = lock(&self.slots);
            for slot in 0..SLOTS {
                if *named >> slot & 1 == 1 {
                    slots.users[slot] = slots.users[slot].saturating_sub(1);
                }
            }
            *named = 0;
        }
    }

    /// Takes an item that is packed, to learn from. With enough of them a thread learns a dictionary.
    pub fn sample(&self, item: &[u8]) {
        if self.wants.load(Ordering::Relaxed) != SAMPLES {
            return;
        }
        // Another partition's writer gives one at the same time: one of them is enough.
        let Ok(mut progress) = self.progress.try_lock() else { return };
        if progress.is_learning {
            return;
        }
        progress.samples.extend_from_slice(item);
        progress.sample_lens.push(item.len());
        if progress.samples.len() < self.bytes_max * SAMPLES_PER_BYTE {
            return;
        }
        progress.is_learning = true;
        let samples = std::mem::take(&mut progress.samples);
        let lens = std::mem::take(&mut progress.sample_lens);
        drop(progress);
        let (results, bytes_max) = (Arc::clone(&self.progress), self.bytes_max);
        let learn = move || {
            let learned = Learned::train(&samples, &lens, bytes_max);
            lock(&results).learned = Some(learned);
        };
        // Without a thread there is no dictionary: blocks are made without.
        if std::thread::Builder::new().name("alluvium-dictionary".to_owned()).spawn(learn).is_err() {
            lock(&self.progress).learned = Some(None);
        }
    }

    /// Puts what was learned into a slot, if something was and there is one. Any writer, with the lock of its
    /// partition.
    pub fn install_learned(&self, medium: &impl Medium, geometry: &Geometry) {
        if self.wants.load(Ordering::Relaxed) != SAMPLES {
            return;
        }
        let Ok(mut progress) = self.progress.try_lock() else { return };
        let Some(learned) = progress.learned.take() else { return };
        progress.is_learning = false;
        self.wants.store(NOTHING, Ordering::Relaxed);
        (progress.window, progress.first, progress.paused) = ([0; 2], None, 0);
        let is_installed = learned.is_some_and(|bytes| self.install(&bytes, medium, geometry));
        progress.pause = if is_installed { 0 } else { (2 * progress.pause).clamp(1, PAUSE_MAX) };
    }

    /// Writes a dictionary to a free slot and makes it the current one; returns whether it did.
    pub fn install(&self, bytes: &[u8], medium: &impl Medium, geometry: &Geometry) -> bool {
        let mut slots = lock(&self.slots);
        let number = number_of(bytes);
        let is_free = |slot: &usize| slots.users[*slot] == 0 && slots.current != Some(*slot);
        let Some(slot) = (0..geometry.dictionaries.min(SLOTS)).find(is_free) else { return false };
        if bytes.is_empty() || bytes.len() > DICTIONARY_BYTES_MAX {
            return false;
        }
        let Some(learned) = Learned::of(bytes) else { return false };
        let at = geometry.dictionary_at(slot);
        medium.copy_in(at + LINE_BYTES, bytes);
        medium.store(at, number);
        medium.store(word_at(at, LENGTH), bytes.len() as u64);
        medium.store(word_at(at, CHECKSUM), checksum64(bytes, number));
        (0..(LINE_BYTES + bytes.len()).div_ceil(LINE_BYTES))
            .for_each(|line| medium.flush(at + line * LINE_BYTES));
        medium.fence();
        slots.dictionaries[slot] = Some((number, Arc::new(learned)));
        slots.current = Some(slot);
        self.has_current.store(1, Ordering::Relaxed);
        true
    }

    /// Notes bytes of items before and after compression. Begins to learn again if there is no dictionary, or the
    /// current one has become worse.
    pub fn note(&self, [raw, coded]: [u64; 2]) {
        let Ok(mut progress) = self.progress.try_lock() else { return };
        progress.window[0] += raw;
        progress.window[1] += coded;
        if progress.window[0] < WINDOW_SAMPLES * (self.bytes_max * SAMPLES_PER_BYTE) as u64 {
            return;
        }
        let window = std::mem::take(&mut progress.window);
        progress.paused += 1;
        let is_worse = match progress.first {
            Some(first) if self.has_current() => {
                let [now, then] = [(window, first), (first, window)]
                    .map(|(coded, raw)| u128::from(coded[1]) * u128::from(raw[0]));
                now * 100 > then * (100 + WORSE_PERCENT)
            }
            _ => {
                progress.first = Some(window);
                !self.has_current()
            }
        };
        if is_worse && progress.paused > progress.pause && !progress.is_learning {
            self.wants.store(SAMPLES, Ordering::Relaxed);
        }
    }
}

impl Slots {
    fn name(&mut self, slot: usize, named: &mut u8) {
        if *named >> slot & 1 == 0 {
            *named |= 1 << slot;
            self.users[slot] += 1;
        }
    }
}

/// The number of a dictionary of these bytes; never 0.
fn number_of(bytes: &[u8]) -> u64 {
    checksum64(bytes, 0x6469_6374).max(1)
}
