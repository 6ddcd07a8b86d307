//! Writing lines of the processor's cache back to memory that keeps them without power: an unsafe leaf.
//!
//! On x86-64 CLWB where there is one, which leaves the line in the cache, otherwise CLFLUSHOPT or CLFLUSH; then SFENCE.
//! On aarch64 `DC CVAC`, then `DSB`. Other processors cannot do it from a program.

use std::arch::asm;

use crate::sync::AtomicU64;

/// Whether the processor has instructions for it.
pub(crate) const CAN_FLUSH: bool = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));

/// How this processor writes a line back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineFlush {
    /// CLWB.
    #[cfg(target_arch = "x86_64")]
    WriteBack,
    /// CLFLUSHOPT.
    #[cfg(target_arch = "x86_64")]
    Evict,
    /// CLFLUSH, which every x86-64 has; `DC CVAC`.
    Plain,
}

impl LineFlush {
    /// The best way that this processor has.
    pub fn detect() -> Self {
        #[cfg(target_arch = "x86_64")]
        {
            const CLFLUSHOPT: u32 = 1 << 23;
            const CLWB: u32 = 1 << 24;
            if std::arch::x86_64::__get_cpuid_max(0).0 >= 7 {
                let features = std::arch::x86_64::__cpuid_count(7, 0).ebx;
                if features & CLWB != 0 {
                    return Self::WriteBack;
                }
                if features & CLFLUSHOPT != 0 {
                    return Self::Evict;
                }
            }
        }
        Self::Plain
    }

    /// Begins to write back the line that contains `word`.
    #[inline(always)]
    pub fn flush(self, word: &AtomicU64) {
        let address = std::ptr::from_ref(word);
        #[cfg(target_arch = "x86_64")]
        // SAFETY: the address is that of a word that is borrowed. These instructions change no memory; `detect` found
        // that the processor has the first two.
        unsafe {
            match self {
                Self::WriteBack => asm!("clwb [{}]", in(reg) address, options(nostack, preserves_flags)),
                Self::Evict => asm!("clflushopt [{}]", in(reg) address, options(nostack, preserves_flags)),
                Self::Plain => asm!("clflush [{}]", in(reg) address, options(nostack, preserves_flags)),
            }
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above; Linux lets programs use this instruction.
        unsafe {
            asm!("dc cvac, {}", in(reg) address, options(nostack, preserves_flags));
        }
        #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
        let _ = address;
    }

    /// Waits until the lines are written that were flushed before. Also orders all stores before it before those after
    /// it.
    #[inline(always)]
    pub fn fence(self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a fence accesses no memory.
        unsafe {
            asm!("sfence", options(nostack, preserves_flags));
        }
        #[cfg(target_arch = "aarch64")]
        // SAFETY: as above.
        unsafe {
            asm!("dsb sy", options(nostack, preserves_flags));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Ordering;

    #[test]
    fn words_keep_their_values() {
        let word = AtomicU64::new(7);
        let flush = LineFlush::detect();
        flush.flush(&word);
        flush.fence();
        LineFlush::Plain.flush(&word);
        LineFlush::Plain.fence();
        assert_eq!(word.load(Ordering::Relaxed), 7);
    }
}
