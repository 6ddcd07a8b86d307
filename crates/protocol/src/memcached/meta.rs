//! Lines of the meta protocol.
//!
//! The words are checked in memcached's order, because the first one found wrong chooses the error line.

use super::flags::Flags;
use super::line::{Block, Line};
use super::words::Words;
use super::{Direction, Echo, Error, Key, Refusal, Request, Store, StoreMode, number};

/// Maximum number of words of a line, the command included.
const META_WORDS_MAX: usize = 19;

/// `mg`: one item, with what is wanted of it. Answered with [`Reply::meta_hit`](super::Reply::meta_hit) or
/// [`Reply::meta_miss`](super::Reply::meta_miss).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaGet<'a> {
    /// The item's key.
    pub key: Key<'a>,
    /// Whether the value is wanted (`v`).
    pub with_value: bool,
    /// Whether the item's use is not recorded (`u`).
    pub no_bump: bool,
    /// The new expiry time of an item that exists (`T`).
    pub touch: Option<i64>,
    /// The expiry time of an empty item that is made where there is none (`N`, or `T` if that comes later); the client
    /// wins the right to fill it.
    pub vivify: Option<i64>,
    /// The client wins the right to replace an item that expires before this time (`R`), if it expires at all and no
    /// other client has won; see [`MetaGet::wins`].
    pub recache: Option<i64>,
    /// The CAS identifier of an item made by `vivify` (`E`).
    pub new_cas: Option<u64>,
    /// What to return.
    pub echo: Echo<'a>,
}

/// `ms`. Answered with [`Reply::meta_stored`](super::Reply::meta_stored).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaStore<'a> {
    /// What to store.
    pub store: Store<'a>,
    /// Whether an item whose CAS identifier is above the one to compare with is replaced all the same, keeps its expiry
    /// time and becomes stale (`I`). Never set without [`Store::compare`].
    pub stale_if_newer: bool,
    /// The expiry time of an item that is made from the value where there is none to append or prepend to (`N`).
    pub vivify: Option<i64>,
    /// The item's new CAS identifier (`E`).
    pub new_cas: Option<u64>,
    /// What to return.
    pub echo: Echo<'a>,
}

/// `md`. Answered with [`Reply::meta_deleted`](super::Reply::meta_deleted).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaDelete<'a> {
    /// The item's key.
    pub key: Key<'a>,
    /// The CAS identifier that the item must have (`C`).
    pub compare: Option<u64>,
    /// Whether the item is not deleted but becomes stale with a new CAS identifier, and no client has won it (`I`).
    pub invalidate: bool,
    /// The expiry time of an item that is kept (`T`): it replaces the old one with `invalidate`, and is that of the
    /// empty item with `remove_value`.
    pub exptime: Option<i64>,
    /// Whether the item's value is emptied and its client flags become `client_flags`, instead of a deletion (`x`).
    pub remove_value: bool,
    /// The client flags of the emptied item (`F`).
    pub client_flags: u32,
    /// The new CAS identifier of an item that is kept (`E`).
    pub new_cas: Option<u64>,
    /// What to return.
    pub echo: Echo<'a>,
}

/// `ma`. Answered with [`Reply::meta_counted`](super::Reply::meta_counted),
/// [`Reply::meta_not_counted`](super::Reply::meta_not_counted) or
/// [`Error::NonNumeric`](super::Error::NonNumeric).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetaArithmetic<'a> {
    /// The item's key.
    pub key: Key<'a>,
    /// Up or down.
    pub direction: Direction,
    /// How far.
    pub delta: u64,
    /// The expiry time of an item that is made where there is none (`N`, or `T` if that comes later).
    pub vivify: Option<i64>,
    /// The number of an item made by `vivify`, to which nothing is added (`J`).
    pub initial: u64,
    /// The new expiry time of an item that exists (`T`).
    pub touch: Option<i64>,
    /// The CAS identifier that the item must have (`C`); never 0, which memcached takes for none.
    pub compare: Option<u64>,
    /// The item's new CAS identifier (`E`).
    pub new_cas: Option<u64>,
    /// Whether the number is wanted (`v`).
    pub with_value: bool,
    /// What to return.
    pub echo: Echo<'a>,
}

/// Understands a line whose first word is `m` and `letter`, and whose other words are `words`.
pub(super) fn parse(letter: u8, words: Words<'_>) -> Result<Line<'_>, Refusal<'_>> {
    let request = match letter {
        b'g' => return get(words).map(|get| Line::Request(Request::MetaGet(get))).map_err(Refusal::new),
        b's' => return store(words),
        b'd' => delete(words),
        b'a' => arithmetic(words),
        b'e' => debug(words),
        b'n' => Ok(Request::MetaNoOperation),
        _ => Err(Error::Unknown),
    };
    request.map(Line::Request).map_err(Refusal::new)
}

/// Takes the key; a line without one is no request.
fn key<'a>(words: &mut Words<'a>) -> Result<Key<'a>, Error> {
    Key::from_text(words.next().ok_or(Error::Unknown)?).ok_or(Error::BadFormat)
}

/// Reads the flags that `words` are; `words_before` counts those in front of them.
fn flags<'a>(
    key: &mut Key<'a>,
    words: Words<'a>,
    words_before: usize,
    too_many: Error,
) -> Result<Flags, Error> {
    check_count(words, words_before, too_many)?;
    parse_flags(key, words)
}

fn check_count(words: Words<'_>, words_before: usize, too_many: Error) -> Result<(), Error> {
    let most = META_WORDS_MAX - words_before;
    if words.take(most + 1).count() > most { Err(too_many) } else { Ok(()) }
}

fn parse_flags<'a>(key: &mut Key<'a>, words: Words<'a>) -> Result<Flags, Error> {
    Flags::parse(words, || match key.decoded() {
        Some(decoded) => {
            *key = decoded;
            true
        }
        None => false,
    })
}

fn get(mut words: Words<'_>) -> Result<MetaGet<'_>, Error> {
    let mut key = key(&mut words)?;
    let flags = flags(&mut key, words, 2, Error::GetFlagsTooLong)?;
    flags.check_opaque()?;
    Ok(MetaGet {
        key,
        with_value: flags.with_value,
        no_bump: flags.no_bump,
        touch: flags.exptime,
        vivify: flags.new_exptime,
        recache: flags.recache,
        new_cas: flags.new_cas,
        echo: Echo::new(words, flags.is_quiet),
    })
}

fn store(mut words: Words<'_>) -> Result<Line<'_>, Refusal<'_>> {
    let refuse = Refusal::new;
    let text = words.next().ok_or(refuse(Error::Unknown))?;
    let length = words.next();
    let (Some(length), true) = (length, text.len() <= Key::BYTES_MAX) else {
        return Err(refuse(Error::BadFormat));
    };
    check_count(words, 3, Error::FlagsTooLong).map_err(refuse)?;
    let bytes = number::length(length).ok_or(refuse(Error::BadFormat))?;
    // From here on the length is known, and the value of a refused request is skipped.
    match store_request(text, words) {
        Ok(request) => Ok(Line::Block(Block { request: Request::MetaStore(request), bytes })),
        Err(error) => Ok(Line::Skip { refusal: refuse(error), bytes: bytes as u64 + 2 }),
    }
}

fn store_request<'a>(text: &'a [u8], words: Words<'a>) -> Result<MetaStore<'a>, Error> {
    let mut key = Key::from_text(text).ok_or(Error::BadFormat)?;
    let flags = parse_flags(&mut key, words)?;
    let mut mode = match flags.mode {
        None | Some(b'S') => StoreMode::Set,
        Some(b'E') => StoreMode::Add,
        Some(b'A') => StoreMode::Append,
        Some(b'P') => StoreMode::Prepend,
        Some(b'R') => StoreMode::Replace,
        Some(_) => return Err(Error::StoreMode),
    };
    flags.check_opaque()?;
    let mut compare = flags.compare;
    let is_addition = matches!(mode, StoreMode::Append | StoreMode::Prepend);
    match mode {
        StoreMode::Replace if compare.is_some() => mode = StoreMode::Set,
        StoreMode::Append | StoreMode::Prepend => compare = compare.filter(|cas| *cas != 0),
        StoreMode::Add => compare = None,
        StoreMode::Set | StoreMode::Replace => {}
    }
    Ok(MetaStore {
        store: Store {
            key,
            client_flags: flags.client_flags,
            exptime: flags.exptime.unwrap_or(0),
            mode,
            compare,
            value: &[],
        },
        stale_if_newer: flags.invalidate && mode == StoreMode::Set && compare.is_some(),
        vivify: flags.vivify.filter(|_| is_addition),
        new_cas: flags.new_cas,
        echo: Echo::new(words, flags.is_quiet),
    })
}

fn delete(mut words: Words<'_>) -> Result<Request<'_>, Error> {
    let mut key = key(&mut words)?;
    let flags = unspecific(flags(&mut key, words, 2, Error::FlagsTooLong))?;
    flags.check_opaque()?;
    Ok(Request::MetaDelete(MetaDelete {
        key,
        compare: flags.compare,
        invalidate: flags.invalidate,
        exptime: flags.exptime,
        remove_value: flags.remove_value,
        client_flags: flags.client_flags,
        new_cas: flags.new_cas,
        echo: Echo::new(words, flags.is_quiet),
    }))
}

fn arithmetic(mut words: Words<'_>) -> Result<Request<'_>, Error> {
    let mut key = key(&mut words)?;
    let flags = unspecific(flags(&mut key, words, 2, Error::FlagsTooLong))?;
    let direction = match flags.mode {
        None | Some(b'I' | b'+') => Direction::Increment,
        Some(b'D' | b'-') => Direction::Decrement,
        Some(_) => return Err(Error::ArithmeticMode),
    };
    flags.check_opaque()?;
    Ok(Request::MetaArithmetic(MetaArithmetic {
        key,
        direction,
        delta: flags.delta,
        vivify: flags.new_exptime,
        initial: flags.initial,
        touch: flags.exptime,
        compare: flags.compare.filter(|cas| *cas != 0),
        new_cas: flags.new_cas,
        with_value: flags.with_value,
        echo: Echo::new(words, flags.is_quiet),
    }))
}

/// `md` and `ma` have one line for all that can be wrong with a flag.
fn unspecific(flags: Result<Flags, Error>) -> Result<Flags, Error> {
    flags.map_err(|error| match error {
        Error::FlagsTooLong => error,
        _ => Error::InvalidOrDuplicateFlag,
    })
}

fn debug(mut words: Words<'_>) -> Result<Request<'_>, Error> {
    let mut key = words.next().and_then(Key::from_text).ok_or(Error::BadFormat)?;
    if words.next() == Some(b"b") {
        key = key.decoded().ok_or(Error::BadFormat)?;
    }
    Ok(Request::MetaDebug { key })
}
