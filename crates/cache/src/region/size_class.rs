//! Classes of free blocks by size (Lim's thesis, §5.3.3): in steps of a word up to a bound, and of a sixteenth beyond.

/// Below this many words every size is a class of its own: 8 KiB. Fewer for the model checker, which treats each as an
/// object.
const EXACT_WORDS: u32 = if cfg!(loom) { 32 } else { 1024 };
const EXACT_BITS: u32 = EXACT_WORDS.trailing_zeros();
/// Binary logarithm of the number of classes per doubling beyond that.
const STEPS_BITS: u32 = 4;

/// Number of classes for blocks of up to 2³² words.
pub(super) const CLASSES: usize = class_of(u32::MAX) + 1;

/// The class of a block of `words` words. Larger blocks have the same class or a later one.
pub(super) const fn class_of(words: u32) -> usize {
    if words < EXACT_WORDS {
        return words as usize;
    }
    let doubling = words.ilog2();
    let step = (words >> (doubling - STEPS_BITS)) - (1 << STEPS_BITS);
    (EXACT_WORDS + ((doubling - EXACT_BITS) << STEPS_BITS) + step) as usize
}

/// Whether every block of a class has the same size.
pub(super) const fn is_exact(class: usize) -> bool {
    class < EXACT_WORDS as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_rise_with_the_size_without_gaps() {
        let mut before = class_of(1);
        for words in (2..200_000).chain((0..400).map(|step| (1 << 31) + step * 4_000_000)) {
            let class = class_of(words);
            assert!(class >= before && class < CLASSES, "{words}");
            assert!(class <= before + 1 || words > 200_000, "{words}");
            before = class;
        }
        assert_eq!(
            (class_of(1023), class_of(1024), class_of(1087), class_of(1088)),
            (1023, 1024, 1024, 1025)
        );
    }
}
