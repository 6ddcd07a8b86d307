//! What each device takes of the writes where young levels lie on one of their own.

use crate::models::Component;

/// Of data written, as a plan's cost or its phases name them, those of the tables of the first `levels` levels: what
/// goes to their device where they have one of their own, of which wears more evenly what is left (Wu's thesis, §4.3).
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
