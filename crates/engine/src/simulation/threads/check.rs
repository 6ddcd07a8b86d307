//! Checks whether some order of operations explains the answers to the clients of a key, and its value after a crash.
//!
//! Linearizability as defined by Wing and Gong ("Testing and verifying concurrent objects", 1993), decided step by step
//! in the order of events (Lowe, "Testing for linearizability", 2017, §4): a *configuration* is a state and the set of
//! operations in progress that have taken effect. At each return only those configurations remain in which the
//! operation has taken effect, with the answer that was given. An operation that never returned may take effect at any
//! later moment, or never.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use super::history::{Answer, Effect, NEVER, Operation, State};

/// Maximum number of operations of one key in progress at once.
const OPEN_MAX: usize = 64;
/// Maximum number of configurations of one key at once. More means that the clients leave too much open, a fault of the
/// simulation.
const CONFIGURATIONS_MAX: usize = 1_000_000;
/// Number of operations shown in a report.
const SHOWN: usize = 24;

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Configuration {
    state: State,
    /// Positions of operations in progress that have taken effect.
    done: u64,
    /// States from the last one that must survive a crash, that one included, to the present one, which is not
    /// included, in their order. Empty if the order tells nothing.
    past: Vec<State>,
}

/// Configurations, each with the earlier states that a crash may restore if their order tells nothing. These do not
/// influence later steps, so configurations that differ only in them are merged.
type Configurations = BTreeMap<Configuration, BTreeSet<State>>;

/// The possible states at the end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Ends {
    /// If nothing was lost.
    pub present: BTreeSet<State>,
    /// After a crash.
    pub after_crash: BTreeSet<State>,
}

/// Why a history could not be decided.
#[derive(Debug, PartialEq, Eq)]
enum Trouble {
    /// No order explains the answers; with a description.
    Wrong(String),
    /// More than [`CONFIGURATIONS_MAX`] configurations.
    TooMany,
}

/// The states in which the operations may end, starting from `first`.
///
/// With `keeps_order`, durable operations tell which earlier states cannot be restored by a crash; otherwise all states
/// may be. All states may also be restored if too many orders are possible for that. Answers are then checked as
/// strictly as otherwise, and states after a crash less strictly.
///
/// # Errors
/// A description if no order explains the answers.
pub(super) fn check(first: State, operations: &[Operation], keeps_order: bool) -> Result<Ends, String> {
    let checked = match check_within(first, operations, keeps_order, CONFIGURATIONS_MAX) {
        Err(Trouble::TooMany) if keeps_order => check_within(first, operations, false, CONFIGURATIONS_MAX),
        checked => checked,
    };
    checked.map_err(|trouble| match trouble {
        Trouble::Wrong(description) => description,
        Trouble::TooMany => format!("more than {CONFIGURATIONS_MAX} orders are possible"),
    })
}

fn check_within(
    first: State,
    operations: &[Operation],
    keeps_order: bool,
    configurations_max: usize,
) -> Result<Ends, Trouble> {
    let mut events: Vec<(u64, bool, usize)> = Vec::new();
    for (number, operation) in operations.iter().enumerate() {
        events.push((operation.call, false, number));
        if operation.ret != NEVER {
            events.push((operation.ret, true, number));
        }
    }
    events.sort_unstable();
    let mut open: [Option<usize>; OPEN_MAX] = [None; OPEN_MAX];
    let start = Configuration { state: first, done: 0, past: Vec::new() };
    let mut configurations = Configurations::from([(start, BTreeSet::new())]);
    for (time, is_return, number) in events {
        if !is_return {
            let place = open.iter().position(Option::is_none).ok_or(Trouble::TooMany)?;
            open[place] = Some(number);
            continue;
        }
        let expanded = expand(configurations, &open, operations, keeps_order, configurations_max)?;
        let place = open.iter().position(|&held| held == Some(number)).expect("it was called");
        open[place] = None;
        let operation = &operations[number];
        let bit = 1 << place;
        let explains = |configuration: &Configuration| {
            configuration.done & bit != 0 || operation.answer == Answer::Unknown
        };
        configurations = Configurations::new();
        for (configuration, earlier) in expanded {
            if explains(&configuration) {
                let settled = settle(configuration, bit, operation, keeps_order);
                configurations.entry(settled).or_default().extend(earlier);
            }
        }
        if configurations.is_empty() {
            return Err(Trouble::Wrong(describe(first, operations, number, time)));
        }
    }
    let last = expand(configurations, &open, operations, keeps_order, configurations_max)?;
    let present: BTreeSet<State> = last.keys().map(|configuration| configuration.state).collect();
    let past = last.iter().flat_map(|(configuration, earlier)| configuration.past.iter().chain(earlier));
    let after_crash = present.iter().chain(past).copied().collect();
    Ok(Ends { present, after_crash })
}

/// All configurations to which operations in progress lead.
fn expand(
    configurations: Configurations,
    open: &[Option<usize>; OPEN_MAX],
    operations: &[Operation],
    keeps_order: bool,
    configurations_max: usize,
) -> Result<Configurations, Trouble> {
    let mut waiting: Vec<Configuration> = configurations.keys().cloned().collect();
    let mut all = configurations;
    while let Some(configuration) = waiting.pop() {
        for (place, number) in open.iter().enumerate().filter_map(|(place, number)| Some((place, (*number)?)))
        {
            if configuration.done & (1 << place) != 0 {
                continue;
            }
            let operation = &operations[number];
            let Some(state) = apply(operation, configuration.state) else { continue };
            if operation.answer == Answer::Unknown && state == configuration.state {
                // As if it had not happened.
                continue;
            }
            let (mut next, mut earlier) = (configuration.clone(), all[&configuration].clone());
            next.done |= 1 << place;
            if state != next.state {
                if keeps_order {
                    next.past.push(next.state);
                } else {
                    earlier.insert(next.state);
                }
                next.state = state;
            }
            match all.entry(next.clone()) {
                Entry::Vacant(vacant) => {
                    vacant.insert(earlier);
                    waiting.push(next);
                }
                Entry::Occupied(known) if !known.get().is_superset(&earlier) => {
                    known.into_mut().extend(earlier);
                    waiting.push(next);
                }
                Entry::Occupied(_) => {}
            }
        }
        if all.len() > configurations_max {
            return Err(Trouble::TooMany);
        }
    }
    Ok(all)
}

/// The state after an operation, if its answer agrees with the state before.
fn apply(operation: &Operation, before: State) -> Option<State> {
    let after = match operation.effect {
        Effect::Read => before,
        Effect::Set(state) => state,
        Effect::Add(by) => Some(before.unwrap_or(0) + by),
        Effect::Swap { expected, new } => {
            if before == expected {
                new
            } else {
                before
            }
        }
    };
    let agrees = match (operation.answer, operation.effect) {
        (Answer::Unknown | Answer::Done, _) => true,
        (Answer::Saw(state), _) => state == before,
        (Answer::Missed(state), _) => state != before,
        (Answer::Present(present), _) => present == before.is_some(),
        (Answer::Sum(sum), _) => after == Some(sum),
        (Answer::Swapped(swapped), Effect::Swap { expected, .. }) => swapped == (before == expected),
        (Answer::Swapped(_) | Answer::Refused, _) => false,
    };
    agrees.then_some(after)
}

/// Processes a return: if the answer promises it, earlier states cannot be restored.
fn settle(
    mut configuration: Configuration,
    bit: u64,
    operation: &Operation,
    keeps_order: bool,
) -> Configuration {
    let has_happened = configuration.done & bit != 0;
    configuration.done &= !bit;
    // Reads do not wait until what they see is durable.
    let promises = operation.durable && operation.effect != Effect::Read;
    if !keeps_order || !promises || !has_happened || operation.answer == Answer::Unknown {
        return configuration;
    }
    // The answer tells the state after the operation, which others may have followed by now.
    let told = match (operation.effect, operation.answer) {
        (Effect::Set(state), _) => state,
        (_, Answer::Sum(sum)) => Some(sum),
        (Effect::Swap { new, .. }, Answer::Swapped(true)) => new,
        (_, Answer::Saw(state)) => state,
        _ => return configuration,
    };
    if configuration.state == told {
        configuration.past.clear();
    } else if let Some(place) = configuration.past.iter().rposition(|&state| state == told) {
        configuration.past.drain(..place);
    }
    configuration
}

/// Whether `found` is impossible after a crash, given that everything before `persisted` is durable: a later write had
/// returned by then that had begun after the write of `found` returned.
pub(super) fn is_older_than_persisted(
    found: State,
    first: State,
    operations: &[Operation],
    persisted: u64,
) -> bool {
    let wrote = |operation: &&Operation| match operation.effect {
        Effect::Set(state) => state == found,
        Effect::Swap { new, .. } => new == found,
        // A sum may be equal to a number that was set.
        Effect::Add(_) => matches!(operation.answer, Answer::Sum(sum) if Some(sum) == found),
        Effect::Read => false,
    };
    let mut writers = operations.iter().filter(wrote).peekable();
    let written = match (writers.peek().is_some(), found == first) {
        (true, false) => writers.map(|operation| operation.ret).max(),
        (false, true) => Some(0),
        // Absent several times, or the sum of a counter.
        _ => None,
    };
    let Some(written) = written.filter(|&ret| ret != NEVER) else { return false };
    // The sum of an addition that did not answer may be any number, even the first one again.
    let is_unknown = |operation: &Operation| {
        matches!(operation.effect, Effect::Add(_)) && operation.answer == Answer::Unknown
    };
    if operations.iter().any(is_unknown) {
        return false;
    }
    let replaces = |operation: &Operation| {
        matches!(operation.effect, Effect::Set(_)) && operation.answer != Answer::Unknown
    };
    operations.iter().any(|later| replaces(later) && later.call >= written && later.ret < persisted)
}

fn describe(first: State, operations: &[Operation], failed: usize, time: u64) -> String {
    let what = operations[failed].what;
    let shown = list(operations, time, Some(failed));
    format!("no order explains the answer to {what} (from {first:?}){shown}")
}

/// The last operations that began by `time`, in the order in which they ended, one per line.
pub(super) fn list(operations: &[Operation], time: u64, marked: Option<usize>) -> String {
    let mut shown: Vec<(usize, &Operation)> =
        operations.iter().enumerate().filter(|(_, operation)| operation.call <= time).collect();
    shown.sort_by_key(|(_, operation)| operation.ret.min(time.saturating_add(1)));
    let from = shown.len().saturating_sub(SHOWN);
    let mut text = String::new();
    for (number, operation) in &shown[from..] {
        let Operation { call, ret, effect, answer, client, what, .. } = operation;
        let mark = if Some(*number) == marked { "-> " } else { "" };
        let ret = if *ret == NEVER { "never".to_owned() } else { ret.to_string() };
        let _ = write!(text, "\n  {mark}{call}..{ret} client {client} {what}: {effect:?} {answer:?}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(call: u64, ret: u64, effect: Effect, answer: Answer) -> Operation {
        let durable = effect != Effect::Read;
        Operation { call, ret, effect, answer, durable, client: 0, what: "test" }
    }

    fn set(call: u64, ret: u64, state: i64) -> Operation {
        operation(call, ret, Effect::Set(Some(state)), Answer::Done)
    }

    fn saw(call: u64, ret: u64, state: State) -> Operation {
        operation(call, ret, Effect::Read, Answer::Saw(state))
    }

    #[test]
    fn reads_see_the_last_write_or_one_under_way() {
        let overlapping = [set(0, 9, 1), set(1, 8, 2), saw(2, 3, Some(1)), saw(4, 5, Some(2))];
        assert_eq!(check(None, &overlapping, true).unwrap().present, BTreeSet::from([Some(2)]));
        let back = [set(0, 9, 1), saw(2, 3, Some(1)), saw(4, 5, None)];
        assert!(check(None, &back, true).is_err());
        assert!(check(None, &[set(0, 1, 1), saw(2, 3, None)], true).is_err());
        assert!(check(None, &[set(0, 1, 1), set(2, 3, 2), saw(4, 5, Some(1))], true).is_err());
    }

    #[test]
    fn answers_of_updates_tell_their_order() {
        let add = |call, ret, sum| operation(call, ret, Effect::Add(1), Answer::Sum(sum));
        assert!(check(None, &[add(0, 5, 2), add(1, 4, 1)], true).is_ok());
        assert!(check(None, &[add(0, 5, 1), add(1, 4, 1)], true).is_err());
        let swap = |call, ret, swapped| {
            let effect = Effect::Swap { expected: Some(1), new: Some(2) };
            operation(call, ret, effect, Answer::Swapped(swapped))
        };
        assert!(check(Some(1), &[swap(0, 5, true), swap(1, 4, false)], true).is_ok());
        assert!(check(Some(1), &[swap(0, 5, true), swap(1, 4, true)], true).is_err());
        let cleared = [operation(0, 3, Effect::Set(None), Answer::Done), add(1, 2, 6), saw(4, 5, Some(6))];
        assert!(check(Some(5), &cleared, true).is_err());
    }

    #[test]
    fn where_the_order_of_many_lost_writes_is_not_kept_few_configurations_remain() {
        let lost = |number| operation(number as u64, NEVER, Effect::Set(Some(number)), Answer::Unknown);
        let operations: Vec<_> = (0..8).map(lost).collect();
        assert_eq!(check_within(None, &operations, true, 10_000), Err(Trouble::TooMany));
        let ends = check_within(None, &operations, false, 10_000).unwrap();
        let all: BTreeSet<State> = (0..8).map(Some).chain([None]).collect();
        assert_eq!((ends.present, ends.after_crash), (all.clone(), all));
    }

    #[test]
    fn what_never_returned_may_have_happened_or_not() {
        let lost = operation(0, NEVER, Effect::Set(Some(1)), Answer::Unknown);
        let ends = check(None, &[lost], true).unwrap();
        assert_eq!(ends.present, BTreeSet::from([None, Some(1)]));
        assert!(check(None, &[lost, saw(1, 2, Some(1)), saw(3, 4, Some(1))], true).is_ok());
        assert!(check(None, &[lost, saw(1, 2, Some(1)), saw(3, 4, None)], true).is_err());
        // An operation that ended without an answer does not happen later.
        let refused = operation(0, 1, Effect::Set(Some(1)), Answer::Unknown);
        assert!(check(None, &[refused, saw(2, 3, None), saw(4, 5, Some(1))], true).is_err());
    }

    #[test]
    fn a_crash_takes_nothing_that_was_acknowledged_as_durable() {
        let pending = operation(4, NEVER, Effect::Set(Some(3)), Answer::Unknown);
        let operations = [set(0, 1, 1), set(2, 3, 2), pending, saw(5, 6, Some(3))];
        let ends = check(None, &operations, true).unwrap();
        assert_eq!(ends.after_crash, BTreeSet::from([Some(2), Some(3)]));
        let ends = check(None, &operations, false).unwrap();
        assert_eq!(ends.after_crash, BTreeSet::from([None, Some(1), Some(2), Some(3)]));
        assert!(is_older_than_persisted(Some(1), None, &operations, 4));
        assert!(is_older_than_persisted(None, None, &operations, 4));
        assert!(!is_older_than_persisted(Some(2), None, &operations, 4));
        assert!(!is_older_than_persisted(Some(1), None, &operations, 2));
        let sum = operation(7, 8, Effect::Add(1), Answer::Sum(1));
        assert!(!is_older_than_persisted(Some(1), None, &[&operations[..], &[sum]].concat(), 4));
        // 2 and an unknown number make the first one again.
        let unknown = operation(7, NEVER, Effect::Add(-2), Answer::Unknown);
        assert!(!is_older_than_persisted(None, None, &[&operations[..], &[unknown]].concat(), 4));
    }
}
