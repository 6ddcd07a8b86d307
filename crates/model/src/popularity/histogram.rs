//! Measured popularity: merges groups that hardly differ.

use super::KeyGroup;

/// Keys whose probabilities differ by less than this factor share a group. With r requests the error of a group is
/// below (1/512)² / 24 of it, at the worst r: 2 · 10⁻⁷.
const WIDTH: f64 = 1.0 + 1.0 / 512.0;

/// Groups by falling probability, with neighbours within [`WIDTH`] merged into one group of their mean probability: the
/// paper's compression (Lim's thesis, §4.6.2).
pub(super) fn compress(groups: &[KeyGroup]) -> Vec<KeyGroup> {
    let is_used = |group: &&KeyGroup| group.keys > 0.0 && group.probability > 0.0;
    let mut sorted: Vec<KeyGroup> = groups.iter().filter(is_used).copied().collect();
    sorted.sort_by(|a, b| b.probability.total_cmp(&a.probability));
    let mut compressed: Vec<KeyGroup> = Vec::new();
    let mut highest = f64::INFINITY;
    for group in sorted {
        match compressed.last_mut() {
            Some(last) if group.probability * WIDTH >= highest => {
                let keys = last.keys + group.keys;
                last.probability += (group.probability - last.probability) * group.keys / keys;
                last.keys = keys;
            }
            _ => {
                highest = group.probability;
                compressed.push(group);
            }
        }
    }
    compressed
}
