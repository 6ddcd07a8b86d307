//! The flags of a meta request.

use super::words::Words;
use super::{Error, number};

/// Maximum length of flag `O` with its token, in bytes.
const OPAQUE_BYTES_MAX: usize = 32;

/// What the flags of a line say, whatever its command makes of them.
#[derive(Debug)]
pub(super) struct Flags {
    /// `b`.
    pub(super) is_base64: bool,
    /// `q`.
    pub(super) is_quiet: bool,
    /// `v`.
    pub(super) with_value: bool,
    /// `u`.
    pub(super) no_bump: bool,
    /// `I`.
    pub(super) invalidate: bool,
    /// `x`.
    pub(super) remove_value: bool,
    /// `T`.
    pub(super) exptime: Option<i64>,
    /// `N`.
    pub(super) vivify: Option<i64>,
    /// The last of `N` and `T`, if there is an `N`: memcached applies them in order to an item that it makes.
    pub(super) new_exptime: Option<i64>,
    /// `R`.
    pub(super) recache: Option<i64>,
    /// `F`.
    pub(super) client_flags: u32,
    /// `C`.
    pub(super) compare: Option<u64>,
    /// `E`.
    pub(super) new_cas: Option<u64>,
    /// `M`.
    pub(super) mode: Option<u8>,
    /// `J`.
    pub(super) initial: u64,
    /// `D`.
    pub(super) delta: u64,
    /// Whether `O` is longer than allowed, which is reported after other errors.
    is_opaque_too_long: bool,
}

impl Flags {
    /// Reads the flags that `words` are. As in memcached, an unknown or repeated flag wins over a bad token, and the
    /// last bad token over earlier ones, except that flag `F` only reports [`Error::BadFormat`] where no other does.
    pub(super) fn parse(words: Words<'_>, is_key_base64: impl FnOnce() -> bool) -> Result<Self, Error> {
        let mut flags = Self {
            is_base64: false,
            is_quiet: false,
            with_value: false,
            no_bump: false,
            invalidate: false,
            remove_value: false,
            exptime: None,
            vivify: None,
            new_exptime: None,
            recache: None,
            client_flags: 0,
            compare: None,
            new_cas: None,
            mode: None,
            initial: 0,
            delta: 1,
            is_opaque_too_long: false,
        };
        let mut is_key_base64 = Some(is_key_base64);
        let mut seen = 0u128;
        let mut error = None;
        for word in words {
            let (flag, token) = (word[0], &word[1..]);
            if flag >= 127 || seen >> flag & 1 != 0 {
                return Err(Error::DuplicateFlag);
            }
            seen |= 1 << flag;
            let wrong = match flag {
                b'b' => {
                    flags.is_base64 = true;
                    (!is_key_base64.take().is_some_and(|decodes| decodes())).then_some(Error::KeyEncoding)
                }
                b'N' => {
                    let wrong = signed(token, &mut flags.vivify);
                    flags.new_exptime = flags.vivify;
                    wrong
                }
                b'T' => {
                    let wrong = signed(token, &mut flags.exptime);
                    flags.new_exptime = flags.vivify.and(flags.exptime);
                    wrong
                }
                b'R' => signed(token, &mut flags.recache),
                b'C' => unsigned(token, &mut flags.compare),
                b'E' => unsigned(token, &mut flags.new_cas),
                b'F' => match number::unsigned_32(token) {
                    Some(client_flags) => {
                        flags.client_flags = client_flags;
                        None
                    }
                    None => error.or(Some(Error::BadFormat)),
                },
                b'M' => {
                    flags.mode = token.first().copied();
                    (token.len() != 1).then_some(Error::ModeLength)
                }
                b'J' => amount(token, &mut flags.initial).then_some(Error::InvalidInitial),
                b'D' => amount(token, &mut flags.delta).then_some(Error::InvalidMetaDelta),
                b'O' => {
                    flags.is_opaque_too_long = word.len() > OPAQUE_BYTES_MAX;
                    None
                }
                b'v' => set(&mut flags.with_value),
                b'u' => set(&mut flags.no_bump),
                b'q' => set(&mut flags.is_quiet),
                b'I' => set(&mut flags.invalidate),
                b'x' => set(&mut flags.remove_value),
                b'P' | b'L' | b'k' | b's' | b't' | b'c' | b'f' | b'l' | b'h' => None,
                _ => return Err(Error::InvalidFlag),
            };
            error = wrong.or(error);
        }
        error.map_or(Ok(flags), Err)
    }

    /// Checks what memcached finds while it writes the reply.
    pub(super) fn check_opaque(&self) -> Result<(), Error> {
        if self.is_opaque_too_long { Err(Error::OpaqueTooLong) } else { Ok(()) }
    }
}

fn set(flag: &mut bool) -> Option<Error> {
    *flag = true;
    None
}

fn signed(token: &[u8], number: &mut Option<i64>) -> Option<Error> {
    *number = number::signed(token);
    number.is_none().then_some(Error::BadToken)
}

fn unsigned(token: &[u8], number: &mut Option<u64>) -> Option<Error> {
    *number = number::unsigned(token);
    number.is_none().then_some(Error::BadToken)
}

/// Reads an amount; returns whether it is none.
fn amount(token: &[u8], number: &mut u64) -> bool {
    match number::unsigned(token) {
        Some(found) => {
            *number = found;
            false
        }
        None => true,
    }
}
