//! What nothing else beats in writes, reads and memory at once.

/// Keeps the entries that no other entry equals or beats in all three of their axes; of equal ones the first.
///
/// Sorted by the first axis; against those before it, an entry needs the other two only, and of these a staircase is
/// kept: O(n log n) for n entries, but for shifts of a short array. Holds some thousand entries beside twice those that
/// nothing beats, however many come.
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

/// Entries that are looked at together, at least.
const ROOM_MIN: usize = if cfg!(test) { 8 } else { 8192 };

/// Leaves those that nothing equals or beats, in the order of their axes; of equal ones the first, so that what was
/// kept before stays.
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
        // Steps that this one undercuts; one of the same second axis stands just before.
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
