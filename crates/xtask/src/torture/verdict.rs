//! Checks that a database contains what it must after a kill.
//!
//! A writer's operations are in the log in their order, so what is found must be the state after some number of them:
//! all that were acknowledged if writes are synced, otherwise at least those that were acknowledged before something
//! made the log durable. One number must explain all keys of a writer at once, and the numbers of all writers must be
//! consistent: if an operation was acknowledged before another started and the latter is present, so is the former.

use std::collections::{BTreeMap, HashMap};

use super::key::{Key, Outcome, Seen, Times, all_keys, space_name, spaces};
use super::ledger::{Base, History, NEVER, Notes, Operation};
use super::shared_verdict;
use super::whole::{Lived, WholeOp, explain};

/// Everything that was read.
#[derive(Debug)]
pub struct Observation {
    /// The content of owned keys, without absent ones.
    pub seen: HashMap<Key, Seen>,
    pub counters: Vec<u64>,
    pub registers: Vec<u64>,
    pub lists: BTreeMap<u32, Vec<u8>>,
    pub times: Times,
}

/// The minimum and maximum number of a writer's operations that are present.
#[derive(Clone, Copy, Debug)]
pub struct Included {
    pub low: usize,
    pub high: usize,
}

/// Returns the state of the database, if `base` and `notes` allow it, and how many acknowledged operations it has
/// legitimately lost.
///
/// # Errors
/// A description of what is wrong.
pub fn judge(base: &Base, notes: &Notes, observation: &Observation) -> Result<(Base, u64), String> {
    let mut best: Option<(usize, String)> = None;
    for whole in (notes.whole_durable..=notes.whole.len()).rev() {
        let trial = Trial { base, notes, observation, whole, writers: notes.writers.len() as u8 };
        match trial.judge() {
            Ok(verdict) => return Ok(verdict),
            Err((count, reason)) if best.as_ref().is_none_or(|(least, _)| count < *least) => {
                best = Some((count, reason));
            }
            Err(_) => {}
        }
    }
    Err(best.map_or_else(|| "nothing fits".to_owned(), |(_, reason)| reason))
}

/// A judgement that assumes that this many operations on whole keyspaces have happened.
struct Trial<'a> {
    base: &'a Base,
    notes: &'a Notes,
    observation: &'a Observation,
    whole: usize,
    writers: u8,
}

/// The content that a writer gave a key with the operation `from`, counted from 1; 0 is the base.
struct Left {
    from: usize,
    lived: Lived,
}

/// A key whose content is not explained by any state within a range of numbers of operations.
struct Mismatch {
    from: usize,
    to: usize,
    key: Key,
    expected: String,
}

impl Trial<'_> {
    fn judge(&self) -> Result<(Base, u64), (usize, String)> {
        let mut included = Vec::new();
        for (writer, history) in self.notes.writers.iter().enumerate() {
            included.push(self.explain_writer(writer as u8, history)?);
        }
        let fits = self.check_order(&included);
        let fits =
            fits.and_then(|()| shared_verdict::check(self.notes, self.base, self.observation, &included));
        fits.map_err(|reason| (1, reason))?;
        let lost = self.notes.writers.iter().zip(&included).map(|(history, included)| {
            let lost = history.operations[included.high..].iter();
            lost.filter(|operation| operation.ack != NEVER).count() as u64
        });
        let lost = lost.sum();
        Ok((self.next_base(&included), lost))
    }

    /// The operations on a keyspace that are assumed to have happened.
    fn whole_of(&self, space: u8) -> (Vec<WholeOp>, bool) {
        let happened = &self.notes.whole[..self.whole];
        let ops: Vec<_> = happened.iter().filter(|op| op.space == space).copied().collect();
        let parted = happened.last().is_some_and(|op| op.space == space && op.ack == NEVER && op.is_parted());
        (ops, parted)
    }

    /// The successive contents that a writer gave its keys.
    fn lefts(&self, history: &History) -> HashMap<Key, Vec<Left>> {
        let mut lefts: HashMap<Key, Vec<Left>> = HashMap::new();
        for (number, Operation { effects, lives, .. }) in history.operations.iter().enumerate() {
            for (effect, &(low, high)) in effects.iter().zip(lives) {
                let lived = Lived { outcome: effect.outcome.clone(), low, high };
                lefts.entry(effect.key).or_default().push(Left { from: number + 1, lived });
            }
        }
        lefts
    }

    fn base_of(&self, key: Key) -> Left {
        let outcome = self.base.outcomes.get(&key).cloned().unwrap_or(Outcome::Absent);
        Left { from: 0, lived: Lived { outcome, low: 0, high: 0 } }
    }

    /// The content of `key` if `left` is what its owner stored there last; `None` if something else was seen.
    fn found(&self, key: Key, left: &Left, (ops, parted): &(Vec<WholeOp>, bool)) -> Option<Outcome> {
        let life = ops.len() as u32;
        let low = life.saturating_sub(u32::from(*parted));
        let seen = self.observation.seen.get(&key).unwrap_or(&Seen::Absent);
        let times = self.observation.times;
        let found = explain(ops, (key, self.writers), &left.lived, seen, (low, life), times);
        found.into_iter().next_back().map(|(_, outcome)| outcome)
    }

    /// How many of a writer's operations are present.
    fn explain_writer(&self, writer: u8, history: &History) -> Result<Included, (usize, String)> {
        let count = history.operations.len();
        let lefts = self.lefts(history);
        let is_parted = history.operations.last().is_some_and(|last| last.parted && last.ack == NEVER);
        let mut mismatches = Vec::new();
        for space in 0..spaces(self.writers) {
            let whole = self.whole_of(space);
            for key in all_keys(space, self.writers).filter(|key| key.owner(self.writers) == writer) {
                let first = self.base_of(key);
                let of_key: Vec<&Left> =
                    std::iter::once(&first).chain(lefts.get(&key).into_iter().flatten()).collect();
                for (number, left) in of_key.iter().enumerate() {
                    let to = of_key.get(number + 1).map_or(count, |next| next.from - 1);
                    let from = left.from.max(history.durable);
                    let fits = |left| self.found(key, left, &whole).is_some();
                    let is_part = is_parted && left.from == count && number > 0;
                    if from > to || fits(left) || (is_part && fits(of_key[number - 1])) {
                        continue;
                    }
                    let expected = format!("{:?}", left.lived);
                    mismatches.push(Mismatch { from, to, key, expected });
                }
            }
        }
        let mut wrong = vec![0_usize; count + 1];
        for mismatch in &mismatches {
            wrong[mismatch.from..=mismatch.to].iter_mut().for_each(|wrong| *wrong += 1);
        }
        let mut fitting = (history.durable..=count).filter(|&number| wrong[number] == 0);
        if let Some(low) = fitting.next() {
            let high = fitting.next_back().unwrap_or(low);
            return Ok(Included { low, high });
        }
        let nearest = (history.durable..=count).rev().min_by_key(|&number| wrong[number]).unwrap_or(count);
        Err((wrong[nearest], self.describe(writer, history, nearest, &mismatches)))
    }

    fn describe(&self, writer: u8, history: &History, nearest: usize, mismatches: &[Mismatch]) -> String {
        let (count, durable) = (history.operations.len(), history.durable);
        let op = |number: usize| number.checked_sub(1).map_or(0, |at| history.operations[at].op);
        let mut lines = vec![format!(
            "writer {writer}: no number of its operations from {durable} (operation {}, durable) to {count} (operation \
             {}) explains its keys; nearest is {nearest} (operation {}), with {} operations on whole keyspaces",
            op(durable),
            op(count),
            op(nearest),
            self.whole
        )];
        let wrong = mismatches.iter().filter(|mismatch| (mismatch.from..=mismatch.to).contains(&nearest));
        for Mismatch { key, expected, .. } in wrong.take(8) {
            let seen = self.observation.seen.get(key).unwrap_or(&Seen::Absent);
            lines.push(format!("{key}: expected {expected}, found {seen:?}"));
            let touches = history.operations.iter().enumerate().filter_map(|(number, operation)| {
                let at = operation.effects.iter().position(|effect| effect.key == *key)?;
                let ack = if operation.ack == NEVER { "never".to_owned() } else { operation.ack.to_string() };
                let (start, op, lives) = (operation.start, operation.op, operation.lives[at]);
                let outcome = &operation.effects[at].outcome;
                Some(format!("  {}: op {op} at {start}..{ack} lives {lives:?}: {outcome:?}", number + 1))
            });
            let touches: Vec<String> = touches.collect();
            lines.extend(touches.into_iter().rev().take(4).rev());
            let whole = self.notes.whole.iter().enumerate().filter(|(_, op)| op.affects(*key, self.writers));
            for (number, WholeOp { op, start, ack, kind, .. }) in whole.rev_take(4) {
                let ack = if *ack == NEVER { "never".to_owned() } else { ack.to_string() };
                let space = space_name(key.space);
                lines.push(format!("  whole {}: op {op} at {start}..{ack}: {kind:?} of {space}", number + 1));
            }
        }
        lines.join("\n")
    }

    /// Checks that the present operations of one writer came before the lost ones of another.
    fn check_order(&self, included: &[Included]) -> Result<(), String> {
        let whole =
            (self.whole > 0).then(|| (self.notes.whole[self.whole - 1].start, "whole keyspaces".into()));
        let there = self.notes.writers.iter().zip(included).enumerate().filter_map(
            |(writer, (history, included))| {
                let last = &history.operations[included.low.checked_sub(1)?];
                Some((last.start, format!("writer {writer}, operation {}", last.op)))
            },
        );
        let Some((start, there)) = there.chain(whole).max() else { return Ok(()) };
        let whole = self
            .notes
            .whole
            .get(self.whole)
            .map(|op| (op.ack, format!("whole keyspaces, operation {}", op.op)));
        let lost = self.notes.writers.iter().zip(included).enumerate().filter_map(
            |(writer, (history, included))| {
                let first = history.operations.get(included.high)?;
                Some((first.ack, format!("writer {writer}, operation {}", first.op)))
            },
        );
        match lost.chain(whole).min() {
            Some((ack, lost)) if ack < start => Err(format!(
                "lost, {lost}, was acknowledged at {ack}, before {there}, at {start}, which is there"
            )),
            _ => Ok(()),
        }
    }

    fn next_base(&self, included: &[Included]) -> Base {
        let mut next = self.base.clone();
        next.session += 1;
        next.outcomes.clear();
        for (writer, (history, included)) in self.notes.writers.iter().zip(included).enumerate() {
            next.next_op[writer] = next.next_op[writer].max(history.last_op + 1);
            let lefts = self.lefts(history);
            for space in 0..spaces(self.writers) {
                let whole = self.whole_of(space);
                for key in all_keys(space, self.writers).filter(|key| key.owner(self.writers) == writer as u8)
                {
                    let first = self.base_of(key);
                    let of_key = std::iter::once(&first).chain(lefts.get(&key).into_iter().flatten());
                    let before = of_key.filter(|left| left.from <= included.high);
                    let mut found = before.rev_take(2).map(|left| self.found(key, left, &whole));
                    let outcome = found.find_map(|found| found).unwrap_or(Outcome::Absent);
                    if outcome != Outcome::Absent {
                        next.outcomes.insert(key, outcome);
                    }
                }
            }
        }
        if let (Some(last), Some(op)) = (self.notes.whole.last(), next.next_op.last_mut()) {
            *op = last.op + 1;
        }
        let Observation { counters, registers, lists, .. } = self.observation;
        next.shared.counters.clone_from(counters);
        next.shared.registers.clone_from(registers);
        next.shared.lists.clone_from(lists);
        next
    }
}

/// The last items of an iteration.
trait RevTake: Iterator + Sized {
    /// Up to `count` items, the last first.
    fn rev_take(self, count: usize) -> std::iter::Take<std::iter::Rev<std::vec::IntoIter<Self::Item>>> {
        self.collect::<Vec<_>>().into_iter().rev().take(count)
    }
}

impl<I: Iterator> RevTake for I {}

#[cfg(test)]
mod tests {
    use super::super::journal::{Effect, WholeKind};
    use super::super::key::{MIXED, OWN};
    use super::*;

    const OWNED: Key = Key { space: OWN, number: 2 };
    const MIXED_KEY: Key = Key { space: MIXED, number: 0 };

    /// An operation of writer 0 that stores a value under `key`, or removes it.
    fn operation(op: u64, key: Key, stores: bool, (start, ack): (u64, u64)) -> Operation {
        let outcome = if stores { Outcome::value(0, op) } else { Outcome::Absent };
        let effects = vec![Effect { key, outcome, born: 0 }];
        let (lives, shared, parted, version) = (vec![(0, u32::MAX)], None, false, 0);
        Operation { op, start, ack, parted, effects, lives, shared, version }
    }

    /// Three operations of writer 0 and one of writer 1, which started when the second had ended.
    fn notes(durable: usize) -> Notes {
        let first = History {
            operations: vec![
                operation(1, OWNED, true, (1, 2)),
                operation(2, OWNED, false, (3, 4)),
                operation(3, OWNED, true, (7, NEVER)),
            ],
            durable,
            last_op: 3,
        };
        let key = Key { space: OWN + 1, number: 2 };
        let second = History { operations: vec![operation(1, key, true, (5, 6))], durable: 0, last_op: 1 };
        Notes { writers: vec![first, second], whole: Vec::new(), whole_durable: 0 }
    }

    fn judge_seen(notes: &Notes, seen: &[(Key, u64)]) -> Result<(Base, u64), String> {
        let seen = seen.iter().map(|&(key, op)| (key, Seen::Value { writer: 0, op })).collect();
        let (times, base) = (Times { earliest: 0, latest: 0 }, Base::new(2));
        let (counters, registers) = (base.shared.counters.clone(), base.shared.registers.clone());
        let observation = Observation { seen, counters, registers, lists: BTreeMap::new(), times };
        judge(&base, notes, &observation)
    }

    #[test]
    fn what_is_durable_is_not_lost_and_the_rest_ends_at_one_place() {
        assert_eq!(judge_seen(&notes(0), &[]).unwrap().1, 1);
        assert_eq!(judge_seen(&notes(1), &[(OWNED, 1)]).unwrap().1, 2);
        assert!(judge_seen(&notes(2), &[]).is_ok());
        // The third started after the other writer's had ended, so either both are present or neither is.
        let other = Key { space: OWN + 1, number: 2 };
        assert!(judge_seen(&notes(2), &[(OWNED, 3), (other, 1)]).is_ok());
        assert!(judge_seen(&notes(2), &[(OWNED, 3)]).is_err());
        let lost = judge_seen(&notes(2), &[(OWNED, 1)]).unwrap_err();
        assert!(
            lost.contains("key 2 of own-0") && lost.contains("found Value { writer: 0, op: 1 }"),
            "{lost}"
        );
    }

    #[test]
    fn what_came_before_something_that_is_there_is_not_lost() {
        let mut notes = notes(0);
        let key = Key { space: OWN + 1, number: 2 };
        notes.writers[1].operations[0].effects[0].outcome = Outcome::value(0, 1);
        assert!(judge_seen(&notes, &[(OWNED, 3), (key, 1)]).is_ok());
        let lost = judge_seen(&notes, &[(OWNED, 1), (key, 1)]).unwrap_err();
        assert!(lost.starts_with("lost, writer 0, operation 2"), "{lost}");
    }

    #[test]
    fn a_clear_under_way_has_happened_to_all_keys_or_to_none() {
        let other = Key { number: 2, ..MIXED_KEY };
        let operations = vec![operation(1, MIXED_KEY, true, (1, 2)), operation(2, other, true, (3, 4))];
        let mut history = History { operations, durable: 2, last_op: 2 };
        history.operations.iter_mut().for_each(|operation| operation.lives = vec![(0, 0)]);
        let (op, space) = (1, MIXED);
        let clear = WholeOp { op, start: 5, ack: NEVER, space, kind: WholeKind::Clear };
        let mut notes =
            Notes { writers: vec![history, History::default()], whole: vec![clear], whole_durable: 0 };
        assert!(judge_seen(&notes, &[]).is_ok());
        assert!(judge_seen(&notes, &[(MIXED_KEY, 1), (other, 2)]).is_ok());
        assert!(judge_seen(&notes, &[(other, 2)]).is_err());
        notes.whole_durable = 1;
        assert!(judge_seen(&notes, &[(MIXED_KEY, 1), (other, 2)]).is_err());
    }
}
