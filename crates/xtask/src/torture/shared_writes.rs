//! Writers' operations on keys that all of them change: counters, registers, lists and accounts.

use std::sync::atomic::Ordering;

use rand::RngExt;

use super::context::Stop;
use super::journal::SharedEffect;
use super::key::{Role, SHARED};
use super::ledger::{COUNTERS, REGISTERS};
use super::shared_verdict::entry;
use super::writer::{Done, Planned, Writer};
use super::writes::is_as_known;

/// Number of accounts between which transactions move amounts: their sum is 0.
pub const ACCOUNTS: u8 = 6;
/// Bytes at which the next list starts.
const LIST_BYTES_MAX: usize = 4_000;

pub fn counter_key(number: u8) -> String {
    format!("counter{number}")
}

pub fn register_key(number: u8) -> String {
    format!("register{number}")
}

pub fn list_key(number: u32) -> String {
    format!("list{number}")
}

pub fn account_key(number: u8) -> String {
    format!("account{number}")
}

/// How often a register was swapped.
pub fn register_version(value: Option<&[u8]>) -> Option<u64> {
    match value {
        None => Some(0),
        Some(value) => Some(u64::from_le_bytes(value.get(..8)?.try_into().ok()?)),
    }
}

/// The balance of an account.
pub fn balance(value: Option<&[u8]>) -> Option<i64> {
    match value {
        None => Some(0),
        Some(value) => value.try_into().ok().map(i64::from_le_bytes),
    }
}

impl Writer {
    pub fn increment_shared(&mut self) -> Result<(), Stop> {
        let number = self.rng.random_range(0..COUNTERS);
        let shared = Some(SharedEffect::Increment(number));
        let before = self.counted[usize::from(number)];
        let mut after = before;
        self.perform(Planned { shared, ..Planned::default() }, "incrementing a shared counter", |context| {
            after = context.space(SHARED).increment(counter_key(number), 1)?;
            if after <= before {
                context.fail(&format!("counter {number}: {after} after {before}"));
            }
            Ok(Some(Done::default()))
        })?;
        self.counted[usize::from(number)] = after;
        Ok(())
    }

    pub fn swap_shared(&mut self) -> Result<(), Stop> {
        let number = self.rng.random_range(0..REGISTERS);
        let key = register_key(number);
        let current = self.context.space(SHARED).get(&key);
        let current = current.map_err(|error| self.context.excuse("reading a register", &error))?;
        let Some(before) = register_version(current.as_deref()) else {
            self.context.fail(&format!("register {number}: damaged: {current:?}"));
        };
        let version = before + 1;
        let mut new = version.to_le_bytes().to_vec();
        new.extend_from_slice(&entry(self.id, self.next_op));
        let shared = Some(SharedEffect::Swap(number));
        self.perform(Planned { shared, ..Planned::default() }, "swapping a register", |context| {
            let swapped = context.space(SHARED).compare_and_swap(key, current.as_deref(), Some(&new))?;
            Ok(swapped.then_some(Done { seen: None, version }))
        })
    }

    pub fn append_shared(&mut self) -> Result<(), Stop> {
        let list = self.context.board.list.load(Ordering::SeqCst);
        let entry = entry(self.id, self.next_op);
        let shared = Some(SharedEffect::Append(list as u32));
        let mut len = 0;
        self.perform(Planned { shared, ..Planned::default() }, "appending to a list", |context| {
            len = context.space(SHARED).append(list_key(list as u32), entry)?;
            Ok(Some(Done::default()))
        })?;
        if len > LIST_BYTES_MAX {
            let next = &self.context.board.list;
            let _ = next.compare_exchange(list, list + 1, Ordering::SeqCst, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Moves an amount between two accounts, reads some of the writer's own keys, and writes others and its twins.
    pub fn transact(&mut self) -> Result<(), Stop> {
        let from = self.rng.random_range(0..ACCOUNTS);
        let to = (from + self.rng.random_range(1..ACCOUNTS)) % ACCOUNTS;
        let amount = self.rng.random_range(-50..50_i64);
        let looked = self.own_key(Role::Value);
        let (looked_bytes, known) = (self.bytes_of(looked), self.lived(looked).outcome);
        let mut effects = self.twins();
        let written = self.own_key(Role::Value);
        effects.push((written, self.fresh()));
        let (written_bytes, value) = (self.bytes_of(written), self.fresh_value(written));
        let twin = self.next_op.to_le_bytes();
        let twin_keys = [effects[0].0, effects[1].0].map(|key| (key.space, self.bytes_of(key)));
        self.perform(Planned::of(effects), "a transaction", |context| {
            let shared = context.space(SHARED);
            context.db.transaction(|transaction| {
                let seen = transaction.get(&context.space(looked.space), &looked_bytes)?;
                if !is_as_known(looked, seen.as_deref(), &known) {
                    context.fail(&format!("a transaction: {looked} is not {known:?}"));
                }
                for (account, by) in [(from, -amount), (to, amount)] {
                    let found = transaction.get(&shared, account_key(account))?;
                    let Some(found) = balance(found.as_deref()) else {
                        context.fail(&format!("account {account}: damaged: {found:?}"));
                    };
                    transaction.insert(&shared, account_key(account), (found + by).to_le_bytes());
                }
                transaction.insert(&context.space(written.space), written_bytes.clone(), value.clone());
                for (space, key) in &twin_keys {
                    transaction.insert(&context.space(*space), key.clone(), twin);
                }
                Ok(())
            })?;
            Ok(Some(Done::default()))
        })
    }
}
