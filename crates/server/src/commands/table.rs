//! The list of commands, and finding one by its name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::*;

/// All commands, sorted by name.
pub(crate) static COMMANDS: &[Command] = &[
    acl::COMMAND,
    alluvium::backup::COMMAND,
    alluvium::plan::COMMAND,
    alluvium::stats::COMMAND,
    alluvium::verify::COMMAND,
    alluvium::version::COMMAND,
    append::COMMAND,
    auth::COMMAND,
    bgsave::COMMAND,
    bitcount::COMMAND,
    bitfield::COMMAND,
    bitfield_ro::COMMAND,
    bitop::COMMAND,
    bitpos::COMMAND,
    client::COMMAND,
    command::COMMAND,
    config::COMMAND,
    copy::COMMAND,
    dbsize::COMMAND,
    debug::COMMAND,
    decr::COMMAND,
    decrby::COMMAND,
    del::COMMAND,
    discard::COMMAND,
    dump::COMMAND,
    echo::COMMAND,
    #[cfg(feature = "scripting")]
    eval::COMMAND,
    #[cfg(feature = "scripting")]
    eval_ro::COMMAND,
    #[cfg(feature = "scripting")]
    evalsha::COMMAND,
    #[cfg(feature = "scripting")]
    evalsha_ro::COMMAND,
    exec::COMMAND,
    exists::COMMAND,
    expire::COMMAND,
    expireat::COMMAND,
    expiretime::COMMAND,
    #[cfg(feature = "scripting")]
    fcall::COMMAND,
    #[cfg(feature = "scripting")]
    fcall_ro::COMMAND,
    flushall::COMMAND,
    flushdb::COMMAND,
    #[cfg(feature = "scripting")]
    function::COMMAND,
    get::COMMAND,
    getbit::COMMAND,
    getdel::COMMAND,
    getex::COMMAND,
    getrange::COMMAND,
    getset::COMMAND,
    hdel::COMMAND,
    hello::COMMAND,
    hexists::COMMAND,
    hget::COMMAND,
    hgetall::COMMAND,
    hincrby::COMMAND,
    hincrbyfloat::COMMAND,
    hkeys::COMMAND,
    hlen::COMMAND,
    hmget::COMMAND,
    hmset::COMMAND,
    hrandfield::COMMAND,
    hscan::COMMAND,
    hset::COMMAND,
    hsetnx::COMMAND,
    hstrlen::COMMAND,
    hvals::COMMAND,
    incr::COMMAND,
    incrby::COMMAND,
    incrbyfloat::COMMAND,
    info::COMMAND,
    keys::COMMAND,
    lastsave::COMMAND,
    latency::COMMAND,
    lcs::COMMAND,
    memory::COMMAND,
    mget::COMMAND,
    monitor::COMMAND,
    move_::COMMAND,
    mset::COMMAND,
    msetnx::COMMAND,
    multi::COMMAND,
    object::COMMAND,
    persist::COMMAND,
    pexpire::COMMAND,
    pexpireat::COMMAND,
    pexpiretime::COMMAND,
    ping::COMMAND,
    psetex::COMMAND,
    psubscribe::COMMAND,
    pttl::COMMAND,
    publish::COMMAND,
    pubsub::COMMAND,
    punsubscribe::COMMAND,
    quit::COMMAND,
    randomkey::COMMAND,
    rename::COMMAND,
    renamenx::COMMAND,
    reset::COMMAND,
    restore::COMMAND,
    sadd::COMMAND,
    save::COMMAND,
    scan::COMMAND,
    scard::COMMAND,
    #[cfg(feature = "scripting")]
    script::COMMAND,
    sdiff::COMMAND,
    sdiffstore::COMMAND,
    select::COMMAND,
    set::COMMAND,
    setbit::COMMAND,
    setex::COMMAND,
    setnx::COMMAND,
    setrange::COMMAND,
    shutdown::COMMAND,
    sinter::COMMAND,
    sintercard::COMMAND,
    sinterstore::COMMAND,
    sismember::COMMAND,
    slowlog::COMMAND,
    smembers::COMMAND,
    smismember::COMMAND,
    smove::COMMAND,
    spop::COMMAND,
    srandmember::COMMAND,
    srem::COMMAND,
    sscan::COMMAND,
    strlen::COMMAND,
    subscribe::COMMAND,
    substr::COMMAND,
    sunion::COMMAND,
    sunionstore::COMMAND,
    swapdb::COMMAND,
    time::COMMAND,
    touch::COMMAND,
    ttl::COMMAND,
    type_::COMMAND,
    unlink::COMMAND,
    unsubscribe::COMMAND,
    unwatch::COMMAND,
    watch::COMMAND,
];

/// Maximum length of a command's name: it must fit in a `u128`.
const NAME_BYTES_MAX: usize = 16;

/// The names as numbers, in the same order: comparing them takes two instructions.
static NAMES: [u128; COMMANDS_LEN] = {
    let mut names = [0; COMMANDS_LEN];
    let mut position = 0;
    while position < COMMANDS_LEN {
        names[position] = pack(COMMANDS[position].name.as_bytes());
        position += 1;
    }
    names
};

const COMMANDS_LEN: usize = COMMANDS.len();

/// The command called `name`, in any case.
#[inline]
pub(crate) fn find(name: &[u8]) -> Option<&'static Command> {
    position(name).map(|position| &COMMANDS[position])
}

/// The subcommands of a command, `HELP` among them.
pub(crate) fn subcommands(command: &'static Command) -> Vec<&'static Command> {
    let help = (!command.subcommands.is_empty()).then_some(&help::COMMAND);
    command.subcommands.iter().chain(help).collect()
}

/// The position of the command called `name`, in any case, among [`COMMANDS`].
#[inline]
pub(crate) fn position(name: &[u8]) -> Option<usize> {
    if name.len() > NAME_BYTES_MAX {
        return None;
    }
    NAMES.binary_search(&pack(name)).ok()
}

/// Identifies a command or subcommand of the table, for those who want its whole name later.
#[inline]
pub(crate) fn number_of(command: &'static Command) -> usize {
    std::ptr::from_ref(command).addr()
}

/// Like [`number_of`], of a command by its name; 0 if there is no such command.
pub(crate) fn number(name: &[u8]) -> usize {
    find(name).map_or(0, number_of)
}

/// The name of a command, or `container|subcommand`; `NULL` for another number.
pub(crate) fn full_name(number: usize) -> &'static str {
    static NAMES: LazyLock<HashMap<usize, String>> = LazyLock::new(|| {
        let mut names = HashMap::new();
        for command in COMMANDS {
            names.insert(number_of(command), command.name.to_owned());
            for subcommand in command.subcommands {
                names.insert(number_of(subcommand), format!("{}|{}", command.name, subcommand.name));
            }
        }
        names
    });
    NAMES.get(&number).map_or("NULL", String::as_str)
}

/// `name` in lower case as a number that sorts like its text. A name with a NUL at the end would equal the same name
/// without it, so NUL becomes a byte that no name has.
#[inline]
const fn pack(name: &[u8]) -> u128 {
    assert!(name.len() <= NAME_BYTES_MAX);
    let mut bytes = [0; NAME_BYTES_MAX];
    let mut position = 0;
    while position < name.len() {
        bytes[position] = if name[position] == 0 { 0xff } else { name[position].to_ascii_lowercase() };
        position += 1;
    }
    u128::from_be_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_is_found_by_its_name_in_any_case() {
        assert!(COMMANDS.is_sorted_by_key(|command| command.name));
        for command in COMMANDS {
            for name in [command.name.to_owned(), command.name.to_uppercase()] {
                assert_eq!(find(name.as_bytes()).map(|found| found.name), Some(command.name));
            }
        }
        for name in [&b""[..], b"ge", b"gett", b"get\0", b"\0", b"a name longer than any command"] {
            assert!(find(name).is_none());
        }
    }

    #[test]
    fn every_command_documents_itself() {
        for command in COMMANDS.iter().flat_map(|command| std::iter::once(command).chain(command.subcommands))
        {
            assert_ne!(command.arity, 0, "{}", command.name);
            assert!(!command.summary.is_empty(), "{}", command.name);
            assert!(!command.summary.ends_with('.'), "{}", command.name);
            assert_eq!(command.name, command.name.to_lowercase());
        }
    }
}
