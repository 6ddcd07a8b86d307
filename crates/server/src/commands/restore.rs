//! `RESTORE key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]`

use alluvium_protocol::dump::{self, DumpError, Dumped};

use super::expiry::now_ms;
use super::{Command, Context, Failure, transfer};
use crate::changes::Event;
use crate::data;
use crate::store::{Database, Kind, StoreError};

pub(super) const COMMAND: Command = Command {
    name: "restore",
    arity: -4,
    flags: &["write", "denyoom"],
    keys: (1, 1, 1),
    since: "2.6.0",
    complexity: "O(n) in the length of the value",
    summary: "Create a key from what DUMP returned",
    syntax: "key ttl serialized-value [REPLACE] [ABSTTL] [IDLETIME seconds] [FREQ frequency]",
    handler: restore,
    ..Command::DEFAULT
};

#[derive(Default)]
struct Options {
    replaces: bool,
    is_absolute: bool,
}

/// Checks idle times and frequencies, which nothing here depends on.
fn options(context: &Context<'_>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let (mut has_idle_time, mut has_frequency, mut at) = (false, false, 4);
    while at < context.arguments.len() {
        let has_value = at + 1 < context.arguments.len();
        if context.is_word(at, "replace") {
            options.replaces = true;
        } else if context.is_word(at, "absttl") {
            options.is_absolute = true;
        } else if context.is_word(at, "idletime") && has_value && !has_frequency {
            at += 1;
            has_idle_time = true;
            if context.integer(at)? < 0 {
                return Err(Failure::Fixed("ERR Invalid IDLETIME value, must be >= 0"));
            }
        } else if context.is_word(at, "freq") && has_value && !has_idle_time {
            at += 1;
            has_frequency = true;
            if !(0..=255).contains(&context.integer(at)?) {
                return Err(Failure::Fixed("ERR Invalid FREQ value, must be >= 0 and <= 255"));
            }
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    Ok(options)
}

fn restore(context: &mut Context<'_>) -> Result<(), Failure> {
    const BUSY: Failure = Failure::Fixed("BUSYKEY Target key name already exists.");
    let options = options(context)?;
    let key = &context.arguments[1];
    if !options.replaces && context.store().contains(key)? {
        return Err(BUSY);
    }
    let time = context.integer(2)?;
    if time < 0 {
        return Err(Failure::Fixed("ERR Invalid TTL value, must be >= 0"));
    }
    let limits = context.shared.options.limits;
    let dumped = dump::decode(&context.arguments[3], limits).map_err(|error| match error {
        DumpError::Footer => Failure::Fixed("ERR DUMP payload version or checksum are wrong"),
        DumpError::Content | DumpError::Kind => Failure::Fixed("ERR Bad data format"),
    })?;
    let at_ms = if options.is_absolute { time } else { time.saturating_add(now_ms()) };
    let expires_at_ms = if time == 0 { None } else { u64::try_from(at_ms).ok() };
    // It may have expired on the way: nothing is there afterwards.
    let is_gone = time > 0 && at_ms <= now_ms();
    let (mut is_busy, mut existed) = (false, false);
    context.databases.atomically(&mut |inside| {
        let database = inside.database(context.session.database);
        existed = database.contains(key)?;
        is_busy = existed && !options.replaces;
        if is_busy {
            return Ok(());
        }
        transfer::remove(database, key)?;
        if is_gone { Ok(()) } else { create(database, key, &dumped, expires_at_ms) }
    })?;
    match () {
        () if is_busy => return Err(BUSY),
        () if !is_gone => context.changed(1, Event::RESTORE),
        () if existed => context.changed(1, Event::DEL),
        () => {}
    }
    context.reply.ok();
    Ok(())
}

/// Creates an item where there is none. Only within a transaction.
fn create(
    database: &dyn Database,
    key: &[u8],
    dumped: &Dumped,
    expires_at_ms: Option<u64>,
) -> Result<(), StoreError> {
    match dumped {
        Dumped::String(value) => database.insert(key, value, expires_at_ms),
        Dumped::Hash(fields) => {
            let fields = fields.iter().map(|(field, value)| (&field[..], &value[..]));
            data::create(database, key, Kind::Hash, fields, expires_at_ms)
        }
        Dumped::Set(members) => {
            let members = members.iter().map(|member| (&member[..], &b""[..]));
            data::create(database, key, Kind::Set, members, expires_at_ms)
        }
    }
}
