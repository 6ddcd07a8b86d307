//! `BITFIELD key [GET type offset] [SET type offset value] [INCRBY type offset increment] [OVERFLOW WRAP|SAT|FAIL] ...`

use alluvium_protocol::{Reply, integer};

use super::bits;
use super::{Command, Context, Failure};
use crate::changes::Event;
use crate::store::{Change, Keep};

pub(super) const COMMAND: Command = Command {
    name: "bitfield",
    arity: -2,
    flags: &["write", "denyoom"],
    keys: (1, 1, 1),
    group: "bitmap",
    since: "3.2.0",
    complexity: "O(1) for each operation, and O(n) in the length of the value if one writes",
    summary: "Get, set and increment integers of any width inside the value of a key",
    syntax: "key [GET type offset|[OVERFLOW WRAP|SAT|FAIL] SET type offset value|INCRBY type offset increment ...]",
    handler: bitfield,
    ..Command::DEFAULT
};

/// An integer inside a value.
#[derive(Clone, Copy)]
struct Field {
    is_signed: bool,
    bits: u32,
    offset: u64,
}

#[derive(Clone, Copy)]
enum Overflow {
    Wrap,
    Saturate,
    Fail,
}

#[derive(Clone, Copy)]
enum Operation {
    Get(Field),
    Set(Field, i64, Overflow),
    Increment(Field, i64, Overflow),
}

impl Field {
    /// The field whose type and offset are the arguments from `at` on.
    fn parse(context: &Context<'_>, at: usize) -> Result<Self, Failure> {
        const INVALID: Failure = Failure::Fixed(
            "ERR Invalid bitfield type. Use something like i16 u8. Note that u64 is not supported but i64 is.",
        );
        let (is_signed, bits) = match &context.arguments[at] {
            [b'i', bits @ ..] => (true, bits),
            [b'u', bits @ ..] => (false, bits),
            _ => return Err(INVALID),
        };
        let bits_max = if is_signed { 64 } else { 63 };
        let bits = integer::parse(bits).filter(|bits| (1..=bits_max).contains(bits)).ok_or(INVALID)? as u32;
        Ok(Self { is_signed, bits, offset: bits::offset(context, at + 1, bits)? })
    }

    fn last_bit(self) -> u64 {
        self.offset + u64::from(self.bits) - 1
    }

    fn get(self, value: &[u8]) -> i64 {
        let number = (self.offset..=self.last_bit())
            .fold(0, |number, offset| number << 1 | u64::from(bits::bit(value, offset)));
        self.extend_sign(number)
    }

    /// The value must have all bits of the field.
    fn set(self, value: &mut [u8], number: i64) {
        for (shift, offset) in (0..self.bits).rev().zip(self.offset..) {
            bits::set_bit(value, offset, number >> shift & 1 == 1);
        }
    }

    fn extend_sign(self, number: u64) -> i64 {
        let unused = 64 - self.bits;
        let shifted = number << unused;
        if self.is_signed { shifted as i64 >> unused } else { (shifted >> unused) as i64 }
    }

    /// The number that is stored for `number`; `None` if none is.
    fn fit(self, number: i128, overflow: Overflow) -> Option<i64> {
        let (low, high) = match self.is_signed {
            true => (-(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1),
            false => (0, (1i128 << self.bits) - 1),
        };
        if (low..=high).contains(&number) {
            return Some(number as i64);
        }
        match overflow {
            Overflow::Wrap => Some(self.extend_sign(number as u64)),
            Overflow::Saturate => Some(number.clamp(low, high) as i64),
            Overflow::Fail => None,
        }
    }
}

fn operations(context: &Context<'_>) -> Result<Vec<Operation>, Failure> {
    let (mut operations, mut overflow, mut at) = (Vec::new(), Overflow::Wrap, 2);
    while at < context.arguments.len() {
        let after = context.arguments.len() - at - 1;
        if context.is_word(at, "get") && after >= 2 {
            operations.push(Operation::Get(Field::parse(context, at + 1)?));
            at += 3;
        } else if context.is_word(at, "set") && after >= 3 {
            let field = Field::parse(context, at + 1)?;
            operations.push(Operation::Set(field, context.integer(at + 3)?, overflow));
            at += 4;
        } else if context.is_word(at, "incrby") && after >= 3 {
            let field = Field::parse(context, at + 1)?;
            operations.push(Operation::Increment(field, context.integer(at + 3)?, overflow));
            at += 4;
        } else if context.is_word(at, "overflow") && after >= 1 {
            let words = [("wrap", Overflow::Wrap), ("sat", Overflow::Saturate), ("fail", Overflow::Fail)];
            let found = words.into_iter().find(|(word, _)| context.is_word(at + 1, word));
            overflow = found.ok_or(Failure::Fixed("ERR Invalid OVERFLOW type specified"))?.1;
            at += 2;
        } else {
            return Err(Failure::SYNTAX);
        }
    }
    Ok(operations)
}

fn bitfield(context: &mut Context<'_>) -> Result<(), Failure> {
    let operations = operations(context)?;
    let last_written = operations.iter().filter_map(|operation| match operation {
        Operation::Get(_) => None,
        Operation::Set(field, ..) | Operation::Increment(field, ..) => Some(field.last_bit()),
    });
    let Some(last_written) = last_written.max() else {
        return get(context, &operations);
    };
    let (mut outcomes, mut is_changed) = (Vec::new(), false);
    context.store().update(&context.arguments[1], &mut |found| {
        let current = found.map_or(&[][..], |found| found.value);
        let mut value = bits::extended(current, last_written);
        outcomes = operations.iter().map(|operation| execute(*operation, &mut value)).collect();
        is_changed = found.is_none() || value != current;
        if is_changed { Change::Insert(value, Keep::Everything) } else { Change::Keep }
    })?;
    if is_changed {
        context.changed(1, Event::SETBIT);
    }
    reply(&outcomes, &mut context.reply);
    Ok(())
}

/// Executes operations that read only.
fn get(context: &mut Context<'_>, operations: &[Operation]) -> Result<(), Failure> {
    let read = |value: &[u8]| -> Vec<Option<i64>> {
        let fields = operations.iter().filter_map(|operation| match operation {
            Operation::Get(field) => Some(Some(field.get(value))),
            Operation::Set(..) | Operation::Increment(..) => None,
        });
        fields.collect()
    };
    let mut outcomes = read(&[]);
    context.store().get(&context.arguments[1], &mut |found| outcomes = read(found.value))?;
    reply(&outcomes, &mut context.reply);
    Ok(())
}

/// `BITFIELD_RO`: the same commands, of which only `GET` is allowed.
pub(super) fn bitfield_ro(context: &mut Context<'_>) -> Result<(), Failure> {
    let operations = operations(context)?;
    if operations.iter().any(|operation| !matches!(operation, Operation::Get(_))) {
        return Err(Failure::Fixed("ERR BITFIELD_RO only supports the GET subcommand"));
    }
    get(context, &operations)
}

/// What the client gets to see; `None` if an overflow made the operation fail.
fn execute(operation: Operation, value: &mut [u8]) -> Option<i64> {
    match operation {
        Operation::Get(field) => Some(field.get(value)),
        Operation::Set(field, number, overflow) => {
            let before = field.get(value);
            // Unsigned fields take the number's bits, so that a negative one is a large one.
            let number = if field.is_signed { number.into() } else { i128::from(number as u64) };
            field.set(value, field.fit(number, overflow)?);
            Some(before)
        }
        Operation::Increment(field, increment, overflow) => {
            let sum = field.fit(i128::from(field.get(value)) + i128::from(increment), overflow)?;
            field.set(value, sum);
            Some(sum)
        }
    }
}

fn reply(outcomes: &[Option<i64>], reply: &mut Reply<'_>) {
    reply.array(outcomes.len());
    for outcome in outcomes {
        match outcome {
            Some(number) => reply.integer(*number),
            None => reply.null(),
        }
    }
}
