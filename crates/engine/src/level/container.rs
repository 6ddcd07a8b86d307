//! [`Container`]: a part of the hash space with what a level holds over it, young to old.
//!
//! A level's containers are the nodes of a trie over hash prefixes, as in LSM-trie (Wu's thesis, §4.2.3), of whatever
//! depth the data need: each is split when what it gets would make too large a table. We differ in that a split
//! rewrites nothing: the halves share the tables from before, each counting in its own part only.

use smallvec::SmallVec;

/// What lies over one container, young to old. As a rule one table: a level that is one run has no more.
pub(crate) type Stack<T> = SmallVec<[T; 1]>;

/// The part `low..=high` of the hash space. At least one thing lies over it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Container<T> {
    pub low: u128,
    pub high: u128,
    pub tables: Stack<T>,
}

impl<T: Clone> Container<T> {
    /// The part of the container that lies in `low..=high`, which it meets.
    pub fn clipped(&self, low: u128, high: u128) -> Self {
        Self { low: self.low.max(low), high: self.high.min(high), tables: self.tables.clone() }
    }
}

/// `containers` with nothing but `new` over `low..=high`; containers that reach out of it keep the rest.
pub(crate) fn replaced<T: Clone>(
    containers: &[Container<T>],
    low: u128,
    high: u128,
    new: Option<T>,
) -> Vec<Container<T>> {
    let mut result = Vec::with_capacity(containers.len() + 2);
    result.extend(below(containers, low));
    result.extend(new.map(|table| Container { low, high, tables: SmallVec::from_iter([table]) }));
    result.extend(above(containers, high));
    result
}

/// `containers` with `new` over all else in `low..=high`. Containers that reach out of it are split; what none covers
/// becomes some.
pub(crate) fn pushed<T: Clone>(
    containers: &[Container<T>],
    low: u128,
    high: u128,
    new: &T,
) -> Vec<Container<T>> {
    let mut result = Vec::with_capacity(containers.len() + 2);
    result.extend(below(containers, low));
    let mut next = Some(low);
    for container in within(containers, low, high) {
        let mut container = container.clipped(low, high);
        if let Some(gap) = next.filter(|&gap| gap < container.low) {
            let tables = SmallVec::from_iter([new.clone()]);
            result.push(Container { low: gap, high: container.low - 1, tables });
        }
        container.tables.insert(0, new.clone());
        next = container.high.checked_add(1);
        result.push(container);
    }
    if let Some(gap) = next.filter(|&gap| gap <= high) {
        result.push(Container { low: gap, high, tables: SmallVec::from_iter([new.clone()]) });
    }
    result.extend(above(containers, high));
    result
}

/// Those that reach into `low..=high`.
pub(crate) fn within<T>(containers: &[Container<T>], low: u128, high: u128) -> &[Container<T>] {
    let start = containers.partition_point(|container| container.high < low);
    let end = containers.partition_point(|container| container.low <= high);
    &containers[start..end.max(start)]
}

/// What of the containers lies below `low`.
fn below<T: Clone>(containers: &[Container<T>], low: u128) -> impl Iterator<Item = Container<T>> {
    let end = containers.partition_point(|container| container.low < low);
    containers[..end].iter().map(move |container| container.clipped(0, low - 1))
}

/// What of the containers lies above `high`.
fn above<T: Clone>(containers: &[Container<T>], high: u128) -> impl Iterator<Item = Container<T>> {
    let start = containers.partition_point(|container| container.high <= high);
    containers[start..].iter().map(move |container| container.clipped(high + 1, u128::MAX))
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

    proptest! {
        /// The reference is a list of what lies over each small hash.
        #[test]
        fn what_lies_over_a_hash_is_what_came_to_it(
            changes in prop::collection::vec((0..=TOP, 0..=TOP, 0u8..4), 0..24),
        ) {
            let mut containers: Vec<Container<usize>> = Vec::new();
            let mut model = vec![Vec::new(); TOP as usize + 1];
            for (number, &(a, b, change)) in changes.iter().enumerate() {
                let (low, high) = (a.min(b), a.max(b));
                let over = &mut model[low as usize..=high as usize];
                let (low, high) = (scaled(low), scaled(high));
                match change {
                    0 => {
                        containers = replaced(&containers, low, high, None);
                        over.fill(Vec::new());
                    }
                    1 => {
                        containers = replaced(&containers, low, high, Some(number));
                        over.fill(vec![number]);
                    }
                    _ => {
                        containers = pushed(&containers, low, high, &number);
                        over.iter_mut().for_each(|stack| stack.insert(0, number));
                    }
                }
                prop_assert!(containers.iter().all(|container| container.low <= container.high));
                prop_assert!(containers.iter().all(|container| !container.tables.is_empty()));
                prop_assert!(containers.windows(2).all(|pair| pair[0].high < pair[1].low));
                for (hash, expected) in model.iter().enumerate() {
                    let hash = scaled(hash as u128);
                    let found = within(&containers, hash, hash).first();
                    let found = found.map_or(&[][..], |container| &container.tables[..]);
                    prop_assert_eq!(found, &expected[..]);
                }
            }
        }
    }
}
