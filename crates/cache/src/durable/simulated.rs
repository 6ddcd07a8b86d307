//! A medium that forgets: each word has all values that were stored since it last survived for certain, and a crash
//! leaves any of them.

use std::collections::{BTreeMap, HashMap};

use crate::memory::UNIT_BYTES;
use crate::sync::{AtomicU64, Mutex, MutexGuard, Ordering};

use super::medium::{LINE_BYTES, Medium, Mistake};

/// What a crash leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Everything: only the process ends.
    Nothing,
    /// What survived for certain.
    Most,
    /// Of each line, what was stored up to some moment.
    Lines,
    /// Of the line that begins at this byte, what was stored up to this moment, and everything of all others.
    Line(usize, u64),
    /// Of each word, one of the values.
    Words,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SimulatedMedium {
    words: Vec<AtomicU64>,
    lasting: Mutex<Lasting>,
    mistake: Option<Mistake>,
}

/// A value that was stored, and when.
type Stored = (u64, u64);

#[derive(Debug, Default)]
struct Lasting {
    /// Values that survive for certain.
    base: Vec<u64>,
    /// By word: values that were stored since.
    stored: BTreeMap<usize, Vec<Stored>>,
    /// By word: how many of them were flushed.
    flushed: HashMap<usize, usize>,
    flushes: u64,
    /// Stores and fences so far.
    steps: u64,
    /// After which of them the crash comes, and what it leaves.
    crash: Option<(u64, Loss, Random)>,
    left: Option<Vec<u64>>,
}

/// Numbers that look random, for a seed.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Those of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Any number (SplitMix64).
    pub fn any(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.any() % end as u64) as usize
    }

    /// One of several.
    pub fn one_of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

impl SimulatedMedium {
    /// A medium of `len` zeros.
    pub fn new(len: usize, mistake: Option<Mistake>) -> Self {
        Self::of(vec![0; len / UNIT_BYTES], mistake)
    }

    /// A medium with these words, all of which survive.
    pub fn of(base: Vec<u64>, mistake: Option<Mistake>) -> Self {
        Self {
            words: base.iter().map(|&word| AtomicU64::new(word)).collect(),
            lasting: Mutex::new(Lasting { base, ..Lasting::default() }),
            mistake,
        }
    }

    fn lasting(&self) -> MutexGuard<'_, Lasting> {
        self.lasting.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Plans a crash after `steps` more stores and fences.
    pub fn crash_after(&self, steps: u64, loss: Loss, random: Random) {
        let mut lasting = self.lasting();
        lasting.crash = Some((lasting.steps + steps, loss, random));
    }

    /// The number of stores and fences so far.
    pub fn moment(&self) -> u64 {
        self.lasting().steps
    }

    /// Whether the crash has come.
    pub fn has_crashed(&self) -> bool {
        self.lasting().left.is_some()
    }

    /// The medium that the crash left; it comes now, if it has not come before.
    pub fn after_crash(&self, loss: Loss, mut random: Random) -> Self {
        let mut lasting = self.lasting();
        let left = lasting.left.take().unwrap_or_else(|| lasting.leave(loss, &mut random));
        Self::of(left, self.mistake)
    }
}

impl Lasting {
    fn step(&mut self) {
        self.steps += 1;
        if let Some((at, loss, mut random)) = self.crash.take_if(|(at, ..)| *at <= self.steps) {
            debug_assert!(at == self.steps);
            self.left = Some(self.leave(loss, &mut random));
        }
    }

    /// The words that a crash leaves now.
    fn leave(&self, loss: Loss, random: &mut Random) -> Vec<u64> {
        let mut left = self.base.clone();
        let (mut line, mut moment) = (usize::MAX, 0);
        for (&word, stored) in &self.stored {
            if word * UNIT_BYTES / LINE_BYTES != line {
                line = word * UNIT_BYTES / LINE_BYTES;
                // Often nothing or all of a line.
                moment = match random.below(4) {
                    _ if let Loss::Line(at, last) = loss => {
                        if at == line * LINE_BYTES {
                            last
                        } else {
                            u64::MAX
                        }
                    }
                    0 => 0,
                    1 => u64::MAX,
                    _ => {
                        let first = self.steps.saturating_sub(40);
                        first + random.any() % (self.steps - first + 1)
                    }
                };
            }
            let count = match loss {
                Loss::Nothing => stored.len(),
                Loss::Most => 0,
                Loss::Lines | Loss::Line(..) => stored.iter().take_while(|(_, at)| *at <= moment).count(),
                Loss::Words => random.below(stored.len() + 1),
            };
            if count > 0 {
                left[word] = stored[count - 1].0;
            }
        }
        left
    }
}

impl Medium for SimulatedMedium {
    fn len(&self) -> usize {
        self.words.len() * UNIT_BYTES
    }

    fn load(&self, at: usize) -> u64 {
        self.words[at / UNIT_BYTES].load(Ordering::Relaxed)
    }

    fn store(&self, at: usize, word: u64) {
        let number = at / UNIT_BYTES;
        self.words[number].store(word, Ordering::Relaxed);
        let mut lasting = self.lasting();
        let moment = lasting.steps + 1;
        lasting.stored.entry(number).or_default().push((word, moment));
        lasting.step();
    }

    fn flush(&self, at: usize) {
        let mut lasting = self.lasting();
        let first = at / LINE_BYTES * (LINE_BYTES / UNIT_BYTES);
        let Lasting { stored, flushed, .. } = &mut *lasting;
        for (&word, stored) in stored.range(first..first + LINE_BYTES / UNIT_BYTES) {
            flushed.insert(word, stored.len());
        }
        lasting.flushes += 1;
        lasting.step();
    }

    fn fence(&self) {
        let mut lasting = self.lasting();
        let Lasting { base, stored, flushed, .. } = &mut *lasting;
        for (word, count) in flushed.drain() {
            let Some(values) = stored.get_mut(&word) else { continue };
            base[word] = values[count - 1].0;
            values.drain(..count);
            if values.is_empty() {
                stored.remove(&word);
            }
        }
        lasting.step();
    }

    fn flushes(&self) -> u64 {
        self.lasting().flushes
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.mistake == Some(mistake)
    }
}
