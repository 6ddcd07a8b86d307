//! The reference: what the database must hold, and what it may hold after a crash.

use std::collections::BTreeMap;

use super::{Failure, fail};

/// Keyspace and key.
pub(super) type Name = (usize, Vec<u8>);

/// One step of a user: its writes happen together or not at all.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Write(Vec<(Name, Option<Vec<u8>>)>),
    Clear(usize),
}

/// A map, and the steps that a crash may still undo, last first.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// The state with all steps done.
    pub now: BTreeMap<Name, Vec<u8>>,
    /// The state that must survive.
    durable: BTreeMap<Name, Vec<u8>>,
    /// Steps from `durable` to `now`.
    pending: Vec<Step>,
}

impl Model {
    pub fn apply(&mut self, step: Step) {
        apply(&mut self.now, &step);
        self.pending.push(step);
    }

    /// All steps so far must survive from here on.
    pub fn set_durable(&mut self) {
        self.pending.clear();
        self.durable = self.now.clone();
    }

    /// After a crash: `found` must be the state after some number of steps since the durable one. It becomes the
    /// state of the model.
    pub fn settle(&mut self, found: BTreeMap<Name, Vec<u8>>) -> Result<(), Failure> {
        let mut state = std::mem::take(&mut self.durable);
        let mut differences = count_differences(&state, &found);
        let mut best = (differences, 0);
        let pending = std::mem::take(&mut self.pending);
        for (index, step) in pending.iter().enumerate() {
            if differences == 0 {
                break;
            }
            differences = apply_counting(&mut state, step, &found, differences);
            best = best.min((differences, index + 1));
        }
        if differences > 0 {
            let (least, after) = best;
            return fail(format!(
                "the state after a crash is that of no moment: at least {least} keys differ, after {after} of {} \
                 steps since the durable state; {}",
                pending.len(),
                describe(&state, &found),
            ));
        }
        self.now = found.clone();
        self.durable = found;
        Ok(())
    }
}

fn apply(state: &mut BTreeMap<Name, Vec<u8>>, step: &Step) {
    match step {
        Step::Write(writes) => {
            for (name, value) in writes {
                match value {
                    Some(value) => state.insert(name.clone(), value.clone()),
                    None => state.remove(name),
                };
            }
        }
        Step::Clear(keyspace) => state.retain(|(owner, _), _| owner != keyspace),
    }
}

/// Applies a step and returns the new number of keys in which `state` and `found` differ.
fn apply_counting(
    state: &mut BTreeMap<Name, Vec<u8>>,
    step: &Step,
    found: &BTreeMap<Name, Vec<u8>>,
    differences: usize,
) -> usize {
    let Step::Write(writes) = step else {
        apply(state, step);
        return count_differences(state, found);
    };
    let differs =
        |state: &BTreeMap<Name, Vec<u8>>, name: &Name| usize::from(state.get(name) != found.get(name));
    let mut differences = differences;
    for write in writes {
        differences -= differs(state, &write.0);
        apply(state, &Step::Write(vec![write.clone()]));
        differences += differs(state, &write.0);
    }
    differences
}

fn count_differences(a: &BTreeMap<Name, Vec<u8>>, b: &BTreeMap<Name, Vec<u8>>) -> usize {
    a.iter().filter(|(name, value)| b.get(*name) != Some(value)).count()
        + b.keys().filter(|name| !a.contains_key(*name)).count()
}

fn describe(expected: &BTreeMap<Name, Vec<u8>>, found: &BTreeMap<Name, Vec<u8>>) -> String {
    let names = expected.keys().chain(found.keys());
    let Some(name) = names.into_iter().find(|name| expected.get(*name) != found.get(*name)) else {
        return "the last state agrees".to_owned();
    };
    let show = |value: Option<&Vec<u8>>| match value {
        None => "nothing".to_owned(),
        Some(value) => format!("{} bytes {:?}", value.len(), &value[..value.len().min(8)]),
    };
    format!(
        "for example key {:?} of keyspace {}: last written {}, found {}",
        String::from_utf8_lossy(&name.1),
        name.0,
        show(expected.get(name)),
        show(found.get(name))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: &str, value: &str) -> Step {
        Step::Write(vec![((0, key.into()), Some(value.into()))])
    }

    #[test]
    fn any_moment_since_the_durable_state_is_accepted_and_no_other() {
        let states = [("a", "1"), ("b", "2"), ("a", "3")];
        for kept in 0..=states.len() {
            let mut model = Model::default();
            model.set_durable();
            states.iter().for_each(|(key, value)| model.apply(write(key, value)));
            let mut found = BTreeMap::new();
            states[..kept].iter().for_each(|(key, value)| apply(&mut found, &write(key, value)));
            model.settle(found.clone()).unwrap();
            assert_eq!(model.now, found);
        }
        let mut model = Model::default();
        states.iter().for_each(|(key, value)| model.apply(write(key, value)));
        let mut found = BTreeMap::new();
        apply(&mut found, &write("b", "2"));
        assert!(model.settle(found).is_err());
    }
}
