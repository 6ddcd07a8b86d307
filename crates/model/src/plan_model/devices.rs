//! How many bytes each device takes if young levels are stored on a device of their own.

use crate::models::Component;

/// The part of `writes`, as a plan's cost or its phases name them, that goes to the tables of the first `levels`
/// levels. If these levels have a device of their own, it takes this part, and the remaining writes wear the other
/// device more evenly (Wu's thesis, §4.3).
pub fn young_writes(writes: &[Component], levels: usize) -> f64 {
    let is_young = |component: &&Component| {
        let number = component.name.strip_prefix("level ").and_then(|number| number.parse::<usize>().ok());
        number.is_some_and(|number| number < levels)
    };
    writes.iter().filter(is_young).map(|component| component.amount).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_is_on_one_device() {
        let component = |name: &str, amount| Component { name: name.to_owned(), amount };
        let writes = [component("log", 1.0), component("level 0", 2.0), component("level 1", 4.0)];
        let found: Vec<f64> = (0..4).map(|levels| young_writes(&writes, levels)).collect();
        assert_eq!(found, [0.0, 2.0, 6.0, 6.0]);
    }
}
