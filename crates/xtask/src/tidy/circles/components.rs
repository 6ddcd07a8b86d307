//! Strongly connected components of a directed graph.

use std::collections::BTreeSet;

/// The nodes of the largest set in which every node reaches every other, in ascending order; empty if there is no set
/// of two. `arrows[node]` holds the nodes to which arrows run.
pub fn largest_component(arrows: &[BTreeSet<usize>]) -> Vec<usize> {
    let reached: Vec<BTreeSet<usize>> = (0..arrows.len()).map(|node| reachable(arrows, node)).collect();
    let component = |node: usize| -> Vec<usize> {
        reached[node].iter().copied().filter(|other| reached[*other].contains(&node)).collect()
    };
    let components = (0..arrows.len()).map(component);
    components.filter(|nodes| nodes.len() > 1).max_by_key(Vec::len).unwrap_or_default()
}

/// The nodes that can be reached from `start` by at least one arrow.
fn reachable(arrows: &[BTreeSet<usize>], start: usize) -> BTreeSet<usize> {
    let mut reached = BTreeSet::new();
    let mut pending: Vec<usize> = arrows[start].iter().copied().collect();
    while let Some(node) = pending.pop() {
        if reached.insert(node) {
            pending.extend(&arrows[node]);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_circle_is_found() {
        let graph = |arrows: &[&[usize]]| {
            let arrows: Vec<_> = arrows.iter().map(|to| to.iter().copied().collect()).collect();
            largest_component(&arrows)
        };
        assert_eq!(graph(&[&[1], &[2], &[]]), [0; 0]);
        assert_eq!(graph(&[&[1], &[0], &[3], &[4], &[2, 0]]), [2, 3, 4]);
        assert_eq!(graph(&[&[0], &[]]), [0; 0]);
    }
}
