//! Sorted sets of keys.

/// The union of sorted sets, without duplicates.
pub(super) fn union(sets: &[&[u32]]) -> Vec<u32> {
    match sets {
        [] => Vec::new(),
        [one] => one.to_vec(),
        [left, right] => union_of_two(left, right),
        _ => {
            let (left, right) = sets.split_at(sets.len() / 2);
            union_of_two(&union(left), &union(right))
        }
    }
}

fn union_of_two(left: &[u32], right: &[u32]) -> Vec<u32> {
    let mut merged = Vec::with_capacity(left.len() + right.len());
    let (mut i, mut j) = (0, 0);
    while i < left.len() && j < right.len() {
        let (a, b) = (left[i], right[j]);
        merged.push(a.min(b));
        i += usize::from(a <= b);
        j += usize::from(b <= a);
    }
    merged.extend_from_slice(&left[i..]);
    merged.extend_from_slice(&right[j..]);
    merged
}

/// Sorts keys and drops duplicates.
pub(super) fn sorted(mut keys: Vec<u32>) -> Vec<u32> {
    keys.sort_unstable();
    keys.dedup();
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn unions_are_unions(sets in prop::collection::vec(prop::collection::vec(0u32..50, 0..30), 0..6)) {
            let expected: BTreeSet<u32> = sets.iter().flatten().copied().collect();
            let sets: Vec<Vec<u32>> = sets.into_iter().map(sorted).collect();
            let slices: Vec<&[u32]> = sets.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(union(&slices), expected.into_iter().collect::<Vec<_>>());
        }
    }
}
