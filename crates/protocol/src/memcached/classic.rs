//! Lines of the classic protocol.
//!
//! The words are checked in memcached's order, because the first one found wrong chooses the error line.

use super::line::{Block, Line};
use super::words::{WORDS_MAX, Words};
use super::{
    Detail, Direction, Error, Get, Key, Keys, Refusal, Request, Shutdown, Statistics, Store, StoreMode,
    number,
};

/// Number of slab classes that memcached can have.
const SLABS: u32 = 64;

/// Understands a line whose first word, `command`, is not one of the meta protocol, and whose other words are `words`.
pub(super) fn parse<'a>(command: &[u8], words: Words<'a>) -> Result<Line<'a>, Refusal<'a>> {
    // The most frequent requests are returned at once: a copy of a `Request` costs as much as understanding its words.
    let got = |get| Line::Request(Request::Get(get));
    let request = match command {
        b"get" | b"bget" => return get(words, false, false).map(got),
        b"gets" => return get(words, true, false).map(got),
        b"gat" => return get(words, false, true).map(got),
        b"gats" => return get(words, true, true).map(got),
        b"set" => return store(words, StoreMode::Set),
        b"add" => return store(words, StoreMode::Add),
        b"replace" => return store(words, StoreMode::Replace),
        b"append" => return store(words, StoreMode::Append),
        b"prepend" => return store(words, StoreMode::Prepend),
        b"cas" => return compare_and_store(words),
        b"delete" => delete(words),
        b"incr" => arithmetic(words, Direction::Increment),
        b"decr" => arithmetic(words, Direction::Decrement),
        b"touch" => touch(words),
        b"flush_all" => flush_all(words),
        b"stats" => statistics(words).map_err(Refusal::new),
        b"version" => Ok(Request::Version),
        b"verbosity" => verbosity(words),
        b"quit" => Ok(Request::Quit),
        b"shutdown" => Ok(Request::Shutdown(shutdown(words))),
        _ => Err(Refusal::new(unknown(command, words))),
    };
    request.map(Line::Request)
}

/// memcached closes the connection of a browser only after commands whose first letter starts none of its own.
fn unknown(command: &[u8], words: Words<'_>) -> Error {
    let is_familiar =
        command.len() < 2 || matches!(command[0], b'g' | b's' | b'a' | b'c' | b'i' | b'd' | b't');
    let last = words.take(WORDS_MAX - 1).last().unwrap_or(command);
    if !is_familiar && last.starts_with(b"HTTP/") { Error::Http } else { Error::Unknown }
}

fn get(mut words: Words<'_>, with_cas: bool, touches: bool) -> Result<Get<'_>, Refusal<'_>> {
    let mut touch = None;
    if touches {
        let exptime = words.next().ok_or(Refusal::new(Error::Unknown))?;
        touch = Some(number::signed(exptime).ok_or(Refusal::new(Error::InvalidExpiry))?);
    }
    let keys = Keys::of(words).ok_or(Refusal::new(Error::BadFormat))?;
    if keys.is_empty() && !touches {
        return Err(Refusal::new(Error::Unknown));
    }
    Ok(Get { keys, with_cas, touch })
}

/// Whether the last of `words` is `noreply`. memcached looks before it checks the others, so that a `noreply` in the
/// place of another word hides the error that it is.
fn noreply(words: &[&[u8]]) -> bool {
    words.last() == Some(&&b"noreply"[..])
}

fn store(words: Words<'_>, mode: StoreMode) -> Result<Line<'_>, Refusal<'_>> {
    match words.first::<5>() {
        (words, count @ (4 | 5)) => block(&words[..count], mode, None),
        _ => Err(Refusal::new(Error::Unknown)),
    }
}

fn compare_and_store(words: Words<'_>) -> Result<Line<'_>, Refusal<'_>> {
    match words.first::<6>() {
        (words, count @ (5 | 6)) => block(&words[..count], StoreMode::Set, Some(words[4])),
        _ => Err(Refusal::new(Error::Unknown)),
    }
}

/// The words of a storage command: key, flags, expiry time, length, perhaps CAS, perhaps `noreply`.
fn block<'a>(words: &[&'a [u8]], mode: StoreMode, compare: Option<&[u8]>) -> Result<Line<'a>, Refusal<'a>> {
    let noreply = noreply(words);
    let bad = Refusal::silent_if(Error::BadFormat, noreply);
    if words[0].len() > Key::BYTES_MAX {
        return Err(bad);
    }
    let client_flags = number::unsigned_32(words[1]).ok_or(bad)?;
    let exptime = number::signed(words[2]).ok_or(bad)?;
    let compare = match compare {
        None => None,
        Some(text) => Some(number::unsigned(text).ok_or(bad)?),
    };
    let bytes = number::length(words[3]).ok_or(bad)?;
    // Refused by us alone: the value is skipped, or it would be taken for a request.
    let Some(key) = Key::from_text(words[0]) else {
        return Ok(Line::Skip { refusal: bad, bytes: bytes as u64 + 2 });
    };
    let store = Store { key, client_flags, exptime, mode, compare, value: &[] };
    Ok(Line::Block(Block { request: Request::Store { store, noreply }, bytes }))
}

fn delete(words: Words<'_>) -> Result<Request<'_>, Refusal<'_>> {
    let (words, count) = words.first::<3>();
    if !(1..=3).contains(&count) {
        return Err(Refusal::new(Error::Unknown));
    }
    let mut noreply = false;
    if count > 1 {
        noreply = self::noreply(&words[..count]);
        // Older clients send how long the key stays locked, always 0.
        let has_hold = words[1] == b"0";
        if !(has_hold && noreply || count == 2 && (has_hold || noreply)) {
            return Err(Refusal::silent_if(Error::DeleteUsage, noreply));
        }
    }
    let key = Key::from_text(words[0]).ok_or(Refusal::silent_if(Error::BadFormat, noreply))?;
    Ok(Request::Delete { key, noreply })
}

fn arithmetic(words: Words<'_>, direction: Direction) -> Result<Request<'_>, Refusal<'_>> {
    let (key, text, noreply) = key_and_number(words)?;
    let delta = number::unsigned(text).ok_or(Refusal::silent_if(Error::InvalidDelta, noreply))?;
    Ok(Request::Arithmetic { key, direction, delta, noreply })
}

fn touch(words: Words<'_>) -> Result<Request<'_>, Refusal<'_>> {
    let (key, text, noreply) = key_and_number(words)?;
    let exptime = number::signed(text).ok_or(Refusal::silent_if(Error::InvalidExpiry, noreply))?;
    Ok(Request::Touch { key, exptime, noreply })
}

/// A key, a number, perhaps `noreply`.
fn key_and_number(words: Words<'_>) -> Result<(Key<'_>, &[u8], bool), Refusal<'_>> {
    let (words, count) = words.first::<3>();
    if !(2..=3).contains(&count) {
        return Err(Refusal::new(Error::Unknown));
    }
    let noreply = noreply(&words[..count]);
    let key = Key::from_text(words[0]).ok_or(Refusal::silent_if(Error::BadFormat, noreply))?;
    Ok((key, words[1], noreply))
}

fn flush_all(words: Words<'_>) -> Result<Request<'_>, Refusal<'_>> {
    let (words, count) = words.first::<2>();
    if count > 2 {
        return Err(Refusal::new(Error::Unknown));
    }
    let noreply = noreply(&words[..count]);
    let delay = if count > usize::from(noreply) {
        number::signed(words[0]).ok_or(Refusal::silent_if(Error::InvalidExpiry, noreply))?
    } else {
        0
    };
    Ok(Request::FlushAll { delay, noreply })
}

fn verbosity(words: Words<'_>) -> Result<Request<'_>, Refusal<'_>> {
    let (words, count) = words.first::<2>();
    if !(1..=2).contains(&count) {
        return Err(Refusal::new(Error::Unknown));
    }
    let noreply = noreply(&words[..count]);
    let level = number::unsigned(words[0]).ok_or(Refusal::silent_if(Error::BadFormat, noreply))?;
    Ok(Request::Verbosity { level: level.try_into().unwrap_or(u32::MAX), noreply })
}

fn shutdown(words: Words<'_>) -> Option<Shutdown> {
    match words.first::<1>() {
        (_, 0) => Some(Shutdown::Now),
        ([b"graceful"], 1) => Some(Shutdown::Graceful),
        _ => None,
    }
}

fn statistics(words: Words<'_>) -> Result<Request<'_>, Error> {
    let (words, count) = words.first::<3>();
    let statistics = match words[0] {
        b"" => Statistics::General,
        b"items" => Statistics::Items,
        b"slabs" => Statistics::Slabs,
        b"sizes" => Statistics::Sizes,
        b"sizes_enable" => Statistics::SizesEnable,
        b"sizes_disable" => Statistics::SizesDisable,
        b"settings" => Statistics::Settings,
        b"conns" => Statistics::Connections,
        b"reset" => Statistics::Reset,
        b"detail" => Statistics::Detail(match words[1] {
            b"on" => Detail::On,
            b"off" => Detail::Off,
            b"dump" => Detail::Dump,
            _ => return Err(Error::DetailUsage),
        }),
        b"cachedump" if count < 3 => return Err(Error::BadCommandLine),
        b"cachedump" => {
            let slab = number::unsigned_32(words[1]).ok_or(Error::BadFormat)?;
            let items_max = number::unsigned_32(words[2]).ok_or(Error::BadFormat)?;
            if slab >= SLABS {
                return Err(Error::IllegalSlab);
            }
            Statistics::CacheDump { slab, items_max }
        }
        _ => return Err(Error::Unknown),
    };
    Ok(Request::Statistics(statistics))
}
