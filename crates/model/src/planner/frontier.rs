//! The entries that no other entry beats in writes, reads and memory at once.

/// Keeps the entries that no other entry equals or beats in all three of their axes; among equal entries, the first.
///
/// Entries are sorted by the first axis. Each entry is then compared with those before it in the other two axes only,
/// by a staircase: O(n log n) for n entries, apart from shifts within a short array. Holds some thousand entries
/// besides twice the number of undominated ones, regardless of how many are passed in.
pub(super) fn undominated<T>(entries: impl IntoIterator<Item = T>, axes: impl Fn(&T) -> [f64; 3]) -> Vec<T> {
    let mut placed: Vec<([f64; 3], T)> = Vec::new();
    let mut room = ROOM_MIN;
    for entry in entries {
        if placed.len() >= room {
            keep_undominated(&mut placed);
            room = (2 * placed.len()).max(ROOM_MIN);
        }
        placed.push((axes(&entry), entry));
    }
    keep_undominated(&mut placed);
    placed.into_iter().map(|(_, entry)| entry).collect()
}

/// Minimum number of entries that are compared together.
const ROOM_MIN: usize = if cfg!(test) { 8 } else { 8192 };

/// Keeps the entries that no other entry equals or beats, in the order of their axes; among equal entries the first, so
/// that entries kept before stay.
fn keep_undominated<T>(placed: &mut Vec<([f64; 3], T)>) {
    placed.sort_by(|(left, _), (right, _)| {
        let by = |axis: usize| left[axis].total_cmp(&right[axis]);
        by(0).then_with(|| by(1)).then_with(|| by(2))
    });
    // Rising in the second axis, falling in the third.
    let mut stairs: Vec<(f64, f64)> = Vec::new();
    placed.retain(|([_, second, third], _)| {
        let place = stairs.partition_point(|stair| stair.0 <= *second);
        if place > 0 && stairs[place - 1].1 <= *third {
            return false;
        }
        // Steps that this entry undercuts. A step with the same second axis is just before them.
        let first = if place > 0 && stairs[place - 1].0 == *second { place - 1 } else { place };
        let last = place + stairs[place..].partition_point(|stair| stair.1 >= *third);
        stairs.splice(first..last, [(*second, *third)]);
        true
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn agrees_with_comparing_all_with_all(
            // Few different numbers, so that there are ties.
            points in prop::collection::vec([0u8..6, 0u8..6, 0u8..6], 0..60),
        ) {
            let points: Vec<[f64; 3]> = points.into_iter().map(|point| point.map(f64::from)).collect();
            let kept = undominated(points.clone(), |point| *point);
            let beats = |left: &[f64; 3], right: &[f64; 3]| (0..3).all(|axis| left[axis] <= right[axis]);
            for (number, point) in kept.iter().enumerate() {
                let others = kept.iter().enumerate().filter(|(other, _)| *other != number);
                prop_assert!(others.into_iter().all(|(_, other)| !beats(other, point)));
            }
            prop_assert!(points.iter().all(|point| kept.iter().any(|kept| beats(kept, point))));
            prop_assert!(kept.iter().all(|point| points.contains(point)));
        }
    }
}
