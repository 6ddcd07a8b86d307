//! [`Container`]: a part of the hash space with the stack of tables that a level has there.
//!
//! A level's containers are the nodes of a trie over hash prefixes, as in LSM-trie (Wu's thesis, §4.2.3). The trie is
//! as deep as the data need: a container is split when its next merge would make too large a table. We differ in that a
//! split rewrites nothing: the halves share the existing tables, and each half uses only its own part of them.

use alluvium_base::HashRange;
use smallvec::SmallVec;

/// The tables over one container, young to old. Usually one: a level that is a single run has no more.
pub(crate) type Stack<T> = SmallVec<[T; 1]>;

/// A part of the hash space. Its stack has at least one table.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Container<T> {
    pub range: HashRange,
    pub tables: Stack<T>,
}

impl<T: Clone> Container<T> {
    /// The part of the container in `range`; `None` if they do not overlap.
    fn clipped(&self, range: HashRange) -> Option<Self> {
        Some(Self { range: self.range.clip(range)?, tables: self.tables.clone() })
    }
}

/// `containers` with `new` as the only table over `range`; containers that overlap it in part keep the rest.
pub(crate) fn replaced<T: Clone>(
    containers: &[Container<T>],
    range: HashRange,
    new: Option<T>,
) -> Vec<Container<T>> {
    let [below, above] = HashRange::ALL.without(range);
    let mut result = Vec::with_capacity(containers.len() + 2);
    result.extend(clipped(containers, below));
    result.extend(new.map(|table| Container { range, tables: SmallVec::from_iter([table]) }));
    result.extend(clipped(containers, above));
    result
}

/// `containers` with `new` on top of everything else in `range`. Containers that overlap the range in part are split.
/// Parts that no container covers become containers.
pub(crate) fn pushed<T: Clone>(containers: &[Container<T>], range: HashRange, new: &T) -> Vec<Container<T>> {
    let [below, above] = HashRange::ALL.without(range);
    let mut result = Vec::with_capacity(containers.len() + 2);
    result.extend(clipped(containers, below));
    let mut next = Some(range.low);
    for mut container in clipped(containers, Some(range)) {
        let HashRange { low, high } = container.range;
        if let Some(gap) = next.filter(|&gap| gap < low) {
            let tables = SmallVec::from_iter([new.clone()]);
            result.push(Container { range: HashRange::new(gap, low - 1), tables });
        }
        container.tables.insert(0, new.clone());
        next = high.checked_add(1);
        result.push(container);
    }
    if let Some(gap) = next.filter(|&gap| gap <= range.high) {
        let tables = SmallVec::from_iter([new.clone()]);
        result.push(Container { range: HashRange::new(gap, range.high), tables });
    }
    result.extend(clipped(containers, above));
    result
}

/// The stacks that result when all tables of `young` are put on top of all tables of `old`.
fn overlaid<T: Clone>(young: &[Container<T>], old: &[Container<T>]) -> Vec<Container<T>> {
    let mut result = Vec::with_capacity(young.len() + old.len());
    let mut next = Some(0);
    for &Container { range, ref tables } in young {
        let gap = next.filter(|&from| from < range.low).map(|from| HashRange::new(from, range.low - 1));
        result.extend(clipped(old, gap));
        let below: Vec<_> = clipped(old, Some(range)).collect();
        result.extend(tables.iter().rev().fold(below, |stack, table| pushed(&stack, range, table)));
        next = range.high.checked_add(1);
    }
    result.extend(clipped(old, next.map(|from| HashRange::new(from, u128::MAX))));
    result
}

/// Distributes the tables of these levels, young to old, over `count` levels, at least one, and keeps their order by
/// age: every table stays older than those above it. The last level becomes the last. The others keep their numbers if
/// there are enough levels; the rest are stacked in the level above the last. Moves no data.
pub(crate) fn relevelled<T: Clone>(levels: &[Vec<Container<T>>], count: usize) -> Vec<Vec<Container<T>>> {
    let mut result = vec![Vec::new(); count];
    for (index, level) in levels.iter().enumerate().rev() {
        let is_last = index + 1 == levels.len();
        let to = if is_last { count - 1 } else { index.min(count.saturating_sub(2)) };
        result[to] = if result[to].is_empty() { level.clone() } else { overlaid(level, &result[to]) };
    }
    result
}

/// The containers that overlap `range`.
pub(crate) fn within<T>(containers: &[Container<T>], range: HashRange) -> &[Container<T>] {
    let start = containers.partition_point(|container| container.range.high < range.low);
    let end = containers.partition_point(|container| container.range.low <= range.high);
    &containers[start..end.max(start)]
}

/// The parts of the containers in `range`; nothing if it is `None`.
fn clipped<T: Clone>(
    containers: &[Container<T>],
    range: Option<HashRange>,
) -> impl Iterator<Item = Container<T>> {
    range.into_iter().flat_map(move |range| {
        within(containers, range).iter().filter_map(move |container| container.clipped(range))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The largest hash of the test, which stands for the largest of all.
    const TOP: u128 = 40;

    fn scaled(hash: u128) -> u128 {
        if hash == TOP { u128::MAX } else { hash }
    }

    /// Containers after these changes, and the expected stack of each small hash. The test below makes the changes.
    fn laid(changes: &[(u128, u128)], first: usize) -> (Vec<Container<usize>>, Vec<Vec<usize>>) {
        let mut containers = Vec::new();
        let mut model = vec![Vec::new(); TOP as usize + 1];
        for (number, &(a, b)) in (first..).zip(changes) {
            let (low, high) = (a.min(b), a.max(b));
            containers = pushed(&containers, HashRange::new(scaled(low), scaled(high)), &number);
            model[low as usize..=high as usize].iter_mut().for_each(|stack| stack.insert(0, number));
        }
        (containers, model)
    }

    proptest! {
        /// The reference is the stack of each small hash over all levels, young to old. It must not change.
        #[test]
        fn other_levels_hold_the_same_in_the_same_order(
            levels in prop::collection::vec(prop::collection::vec((0..=TOP, 0..=TOP), 0..6), 1..6),
            count in 1usize..6,
        ) {
            let laid: Vec<_> =
                levels.iter().enumerate().map(|(level, changes)| laid(changes, level * 100)).collect();
            let containers: Vec<_> = laid.iter().map(|(containers, _)| containers.clone()).collect();
            let moved = relevelled(&containers, count);
            prop_assert_eq!(moved.len(), count);
            let over = |levels: &[Vec<Container<usize>>], hash: u128| -> Vec<usize> {
                let of = |level: &Vec<Container<usize>>| within(level, HashRange::new(hash, hash)).first().cloned();
                levels.iter().filter_map(of).flat_map(|container| container.tables.to_vec()).collect()
            };
            for level in &moved {
                prop_assert!(level.iter().all(|one| one.range.low <= one.range.high && !one.tables.is_empty()));
                prop_assert!(level.windows(2).all(|pair| pair[0].range.high < pair[1].range.low));
            }
            for hash in 0..=TOP {
                let expected: Vec<usize> =
                    laid.iter().flat_map(|(_, model)| model[hash as usize].clone()).collect();
                prop_assert_eq!(over(&moved, scaled(hash)), expected);
                let last = over(&moved[count - 1..], scaled(hash));
                let last_before = &laid[laid.len() - 1].1[hash as usize];
                prop_assert!(last.ends_with(last_before));
                prop_assert!(count == 1 || last.len() == last_before.len());
            }
            prop_assert_eq!(&relevelled(&containers, levels.len()), &containers);
        }

        /// The reference is a list of the stack over each small hash.
        #[test]
        fn what_lies_over_a_hash_is_what_came_to_it(
            changes in prop::collection::vec((0..=TOP, 0..=TOP, 0u8..4), 0..24),
        ) {
            let mut containers: Vec<Container<usize>> = Vec::new();
            let mut model = vec![Vec::new(); TOP as usize + 1];
            for (number, &(a, b, change)) in changes.iter().enumerate() {
                let (low, high) = (a.min(b), a.max(b));
                let over = &mut model[low as usize..=high as usize];
                let range = HashRange::new(scaled(low), scaled(high));
                match change {
                    0 => {
                        containers = replaced(&containers, range, None);
                        over.fill(Vec::new());
                    }
                    1 => {
                        containers = replaced(&containers, range, Some(number));
                        over.fill(vec![number]);
                    }
                    _ => {
                        containers = pushed(&containers, range, &number);
                        over.iter_mut().for_each(|stack| stack.insert(0, number));
                    }
                }
                prop_assert!(containers.iter().all(|container| container.range.low <= container.range.high));
                prop_assert!(containers.iter().all(|container| !container.tables.is_empty()));
                prop_assert!(containers.windows(2).all(|pair| pair[0].range.high < pair[1].range.low));
                for (hash, expected) in model.iter().enumerate() {
                    let hash = scaled(hash as u128);
                    let found = within(&containers, HashRange::new(hash, hash)).first();
                    let found = found.map_or(&[][..], |container| &container.tables[..]);
                    prop_assert_eq!(found, &expected[..]);
                }
            }
        }
    }
}
