//! The reference: what the database must contain, and what it may contain after a crash.

use std::collections::BTreeMap;

use super::{Failure, fail};

/// Keyspace and key.
pub(super) type Name = (usize, Vec<u8>);

/// A value and when it expires, in milliseconds since 1970. Values with different expiries have different bytes, so
/// that a state found in the database tells which expiries count.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Value {
    pub bytes: Vec<u8>,
    pub expires_at_ms: Option<u64>,
}

impl Value {
    fn has_expired(&self, now_ms: u64) -> bool {
        self.expires_at_ms.is_some_and(|expiry| expiry <= now_ms)
    }
}

/// The content visible to users.
pub(super) type Contents = BTreeMap<Name, Vec<u8>>;

/// One step of a user: all of its writes take effect, or none.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Write(Vec<(Name, Option<Value>)>),
    Clear(usize),
}

type State = BTreeMap<Name, Value>;

/// A map, and the steps that a crash may still undo, the last one first.
#[derive(Debug, Default)]
pub(super) struct Model {
    /// The state with all steps done.
    now: State,
    /// The state that must survive.
    durable: State,
    /// Steps from `durable` to `now`.
    pending: Vec<Step>,
    /// The number of these that survive the death of the process.
    kept: usize,
}

impl Model {
    pub fn apply(&mut self, step: Step) {
        apply(&mut self.now, &step);
        self.pending.push(step);
    }

    /// The value of a key.
    pub fn get(&self, name: &Name) -> Option<&Vec<u8>> {
        self.now.get(name).map(|value| &value.bytes)
    }

    /// The value of a key with its expiry.
    pub fn item(&self, name: &Name) -> Option<&Value> {
        self.now.get(name)
    }

    /// Keys and values of a keyspace whose keys begin with these bytes.
    pub fn beginning_with(&self, keyspace: usize, start: &[u8]) -> impl Iterator<Item = (&Name, &Value)> {
        let from = (keyspace, start.to_vec());
        let begins = move |name: &Name| name.0 == from.0 && name.1.starts_with(&from.1);
        self.now.range((keyspace, start.to_vec())..).take_while(move |(name, _)| begins(name))
    }

    /// All keys and values.
    pub fn contents(&self) -> Contents {
        self.now.iter().map(|(name, value)| (name.clone(), value.bytes.clone())).collect()
    }

    /// Removes what has expired as time has passed, as if it had never been written, whatever a crash undoes.
    pub fn expire(&mut self, now_ms: u64) {
        self.now.retain(|_, value| !value.has_expired(now_ms));
        self.durable.retain(|_, value| !value.has_expired(now_ms));
        for step in &mut self.pending {
            if let Step::Write(writes) = step {
                for (_, value) in writes {
                    value.take_if(|value| value.has_expired(now_ms));
                }
            }
        }
    }

    /// All steps so far must survive the death of the process.
    pub fn keep(&mut self) {
        self.kept = self.pending.len();
    }

    /// The power fails: only durable steps must survive.
    pub fn cut_power(&mut self) {
        self.kept = 0;
    }

    /// All steps so far must survive from here on.
    pub fn set_durable(&mut self) {
        self.pending.clear();
        self.kept = 0;
        self.durable = self.now.clone();
    }

    /// After a crash: `found` must be the state after some number of steps since the one that survives. It becomes the
    /// state of the model.
    pub fn settle(&mut self, found: &Contents) -> Result<(), Failure> {
        let mut state = std::mem::take(&mut self.durable);
        let mut pending = std::mem::take(&mut self.pending);
        pending.drain(..std::mem::take(&mut self.kept)).for_each(|step| apply(&mut state, &step));
        let mut differences = count_differences(&state, found);
        let mut best = (differences, 0);
        for (index, step) in pending.iter().enumerate() {
            if differences == 0 {
                break;
            }
            differences = apply_counting(&mut state, step, found, differences);
            best = best.min((differences, index + 1));
        }
        if differences > 0 {
            let (least, after) = best;
            return fail(format!(
                "the state after a crash is that of no moment: at least {least} keys differ, after {after} of {} \
                 steps since the durable state; {}",
                pending.len(),
                describe(&state, found),
            ));
        }
        self.now = state.clone();
        self.durable = state;
        Ok(())
    }
}

fn apply(state: &mut State, step: &Step) {
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

fn differs(state: &State, found: &Contents, name: &Name) -> bool {
    state.get(name).map(|value| &value.bytes) != found.get(name)
}

/// Applies a step and returns the new number of keys in which `state` and `found` differ.
fn apply_counting(state: &mut State, step: &Step, found: &Contents, differences: usize) -> usize {
    let Step::Write(writes) = step else {
        apply(state, step);
        return count_differences(state, found);
    };
    let mut differences = differences;
    for write in writes {
        differences -= usize::from(differs(state, found, &write.0));
        apply(state, &Step::Write(vec![write.clone()]));
        differences += usize::from(differs(state, found, &write.0));
    }
    differences
}

fn count_differences(state: &State, found: &Contents) -> usize {
    state.keys().filter(|name| differs(state, found, name)).count()
        + found.keys().filter(|name| !state.contains_key(*name)).count()
}

fn describe(expected: &State, found: &Contents) -> String {
    let names = expected.keys().chain(found.keys());
    let Some(name) = names.into_iter().find(|name| differs(expected, found, name)) else {
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
        show(expected.get(name).map(|value| &value.bytes)),
        show(found.get(name))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(key: &str, value: &str) -> Step {
        let value = Value { bytes: value.into(), expires_at_ms: None };
        Step::Write(vec![((0, key.into()), Some(value))])
    }

    #[test]
    fn any_moment_since_the_durable_state_is_accepted_and_no_other() {
        let states = [("a", "1"), ("b", "2"), ("a", "3")];
        for kept in 0..=states.len() {
            let mut model = Model::default();
            model.set_durable();
            states.iter().for_each(|(key, value)| model.apply(write(key, value)));
            let mut found = State::new();
            states[..kept].iter().for_each(|(key, value)| apply(&mut found, &write(key, value)));
            let found: Contents = found.into_iter().map(|(name, value)| (name, value.bytes)).collect();
            model.settle(&found).unwrap();
            assert_eq!(model.contents(), found);
        }
        let mut model = Model::default();
        states.iter().for_each(|(key, value)| model.apply(write(key, value)));
        let found = Contents::from([((0, b"b".to_vec()), b"2".to_vec())]);
        assert!(model.settle(&found).is_err());
    }

    #[test]
    fn only_a_power_cut_takes_what_is_kept() {
        let contents = |steps: &[(&str, &str)]| {
            let name = |key: &str| (0, key.as_bytes().to_vec());
            steps.iter().map(|(key, value)| (name(key), value.as_bytes().to_vec())).collect::<Contents>()
        };
        let prepare = || {
            let mut model = Model::default();
            model.apply(write("a", "1"));
            model.keep();
            model.apply(write("b", "2"));
            model
        };
        assert!(prepare().settle(&contents(&[])).is_err());
        prepare().settle(&contents(&[("a", "1")])).unwrap();
        prepare().settle(&contents(&[("a", "1"), ("b", "2")])).unwrap();
        let mut cut = prepare();
        cut.cut_power();
        cut.settle(&contents(&[])).unwrap();
    }

    #[test]
    fn what_expires_is_gone_before_and_after_a_crash() {
        let expiring = |key: &str, expiry: u64| {
            let value = Value { bytes: expiry.to_le_bytes().to_vec(), expires_at_ms: Some(expiry) };
            Step::Write(vec![((0, key.into()), Some(value))])
        };
        let mut model = Model::default();
        model.apply(expiring("a", 5));
        model.set_durable();
        model.apply(expiring("b", 7));
        model.apply(expiring("c", 9));
        model.expire(7);
        assert_eq!(model.contents().len(), 1);
        let mut crashed =
            Model { durable: model.durable.clone(), pending: model.pending.clone(), ..Model::default() };
        crashed.settle(&Contents::new()).unwrap();
        let with_c = model.contents();
        model.settle(&with_c).unwrap();
        assert_eq!(model.contents().len(), 1);
    }
}
