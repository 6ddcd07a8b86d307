//! Code in the form that this processor runs fastest.
//!
//! A leaf module of `unsafe` code: a function compiled for more instructions than every processor has may only be
//! called on one that has them, which is checked here.

use crate::broadword;

/// Operations that a processor may have an instruction for.
pub(crate) trait Processor: Copy {
    /// Position of set bit number `rank` of `word`; unspecified if it has at most `rank` set bits.
    fn select_in_word(self, word: u64, rank: u32) -> u32;
}

/// Any processor.
#[derive(Clone, Copy)]
pub(crate) struct Portable;

impl Processor for Portable {
    #[inline(always)]
    fn select_in_word(self, word: u64, rank: u32) -> u32 {
        broadword::select_in_word(word, rank)
    }
}

/// A piece of work that benefits from the instructions of newer processors.
pub(crate) trait Work {
    /// The type of the result.
    type Output;

    /// Does the work. An implementation is marked `#[inline(always)]`, and so is everything that it calls often,
    /// because only code that is inlined into the specialized function is compiled for it.
    fn run(self, processor: impl Processor) -> Self::Output;
}

/// Runs `work`, compiled for bit manipulation instructions where the processor has them (x86-64 since 2013: BMI1, BMI2,
/// LZCNT and POPCNT, without which shifts by variable amounts and counts of bits take three to ten times as many
/// instructions). AMD's before Zen 3 have them too, but are slow at the one that selects bits.
///
/// The check costs about a nanosecond: `work` should be a whole lookup, not a step of one.
#[inline(always)]
pub(crate) fn specialized<W: Work>(work: W) -> W::Output {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    if let Some(processor) = x86::BitManipulation::detect() {
        return processor.run(work);
    }
    work.run(Portable)
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86 {
    use std::arch::x86_64::_pdep_u64;
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::{Processor, Work};

    const UNKNOWN: u8 = 0;
    const ABSENT: u8 = 1;
    const PRESENT: u8 = 2;

    /// One flag for all four extensions; the standard library would check them one after the other at every call.
    /// Relaxed: every thread that finds `UNKNOWN` computes the same.
    static BIT_MANIPULATION: AtomicU8 = AtomicU8::new(UNKNOWN);

    /// A processor with BMI1, BMI2, LZCNT and POPCNT. Invariant: only `detect` makes one.
    #[derive(Clone, Copy)]
    pub(super) struct BitManipulation(());

    impl BitManipulation {
        #[inline(always)]
        pub(super) fn detect() -> Option<Self> {
            let present = match BIT_MANIPULATION.load(Ordering::Relaxed) {
                UNKNOWN => ask(),
                known => known == PRESENT,
            };
            present.then_some(Self(()))
        }

        #[inline(always)]
        pub(super) fn run<W: Work>(self, work: W) -> W::Output {
            // SAFETY: the processor has the extensions that the function is compiled for, or there were no `self`.
            unsafe { run_specialized(work, self) }
        }
    }

    impl Processor for BitManipulation {
        #[inline(always)]
        fn select_in_word(self, word: u64, rank: u32) -> u32 {
            // SAFETY: the processor has BMI2, or there were no `self`.
            unsafe { _pdep_u64(1 << (rank & 63), word) }.trailing_zeros()
        }
    }

    #[target_feature(enable = "bmi1,bmi2,lzcnt,popcnt")]
    #[inline]
    fn run_specialized<W: Work>(work: W, processor: BitManipulation) -> W::Output {
        work.run(processor)
    }

    #[cold]
    #[inline(never)]
    fn ask() -> bool {
        let present = is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2")
            && is_x86_feature_detected!("lzcnt")
            && is_x86_feature_detected!("popcnt");
        BIT_MANIPULATION.store(if present { PRESENT } else { ABSENT }, Ordering::Relaxed);
        present
    }
}
