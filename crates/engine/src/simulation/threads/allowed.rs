//! [`Allowed`]: what a session may find, given the answers in the sessions before it.

use super::super::{Failure, fail};
use super::check::{self, Ends};
use super::history::{History, State};
use super::value::EXPIRING;
use super::world::Shape;

/// The possible values of each key.
#[derive(Debug)]
pub(super) struct Allowed {
    pub ends: Vec<Ends>,
    /// After the death of the process, if it promised to lose nothing by that. The power may fail afterwards.
    pub after_kill: Option<Vec<Ends>>,
    pub has_crashed: bool,
    /// The history of writes that were not synced at once.
    pub persisted: Option<(History, Vec<State>, (u64, &'static str))>,
}

impl Allowed {
    pub fn first(keys: usize) -> Self {
        Self::exactly(vec![None; keys])
    }

    fn exactly(states: Vec<State>) -> Self {
        let only = |state| Ends { present: [state].into(), after_crash: [state].into() };
        Self {
            ends: states.into_iter().map(only).collect(),
            after_kill: None,
            has_crashed: false,
            persisted: None,
        }
    }

    /// Allows that values have expired since they were found, in a session that failed before its clients began.
    pub fn expire(&mut self, shape: &Shape) {
        for all in std::iter::once(&mut self.ends).chain(&mut self.after_kill) {
            for ends in all.iter_mut().skip(EXPIRING).step_by(shape.keys) {
                ends.present.insert(None);
                ends.after_crash.insert(None);
            }
        }
    }

    /// Checks the values found, which are the only ones allowed from then on.
    pub fn settle(&mut self, shape: &Shape, found: Vec<State>) -> Result<(), Failure> {
        for (place, state) in found.iter().enumerate() {
            let (keyspace, number) = (place / shape.keys, place % shape.keys);
            let ends = &self.after_kill.as_ref().unwrap_or(&self.ends)[place];
            let allowed = if self.has_crashed { &ends.after_crash } else { &ends.present };
            if !allowed.contains(state) {
                let after = if self.has_crashed { "a crash" } else { "a clean end" };
                return fail(format!(
                    "after {after} key {number} of keyspace {keyspace} has {state:?}, not one of {allowed:?}"
                ));
            }
            let Some((history, first, (persisted, doing))) =
                self.persisted.as_ref().filter(|_| self.has_crashed)
            else {
                continue;
            };
            if check::is_older_than_persisted(*state, first[place], &history.of(place), *persisted) {
                let shown = check::list(&history.of(place), u64::MAX, None);
                return fail(format!(
                    "after a crash key {number} of keyspace {keyspace} has {state:?}, older than what was \
                     persisted at {persisted} by {doing}{shown}"
                ));
            }
        }
        *self = Self::exactly(found);
        Ok(())
    }
}
