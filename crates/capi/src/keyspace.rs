//! # Keyspaces
//!
//! A keyspace is a named set of items. Its items are in the order of hashes of their keys, so there are no scans of
//! ranges of keys. With a rule by which keys have prefixes, items of one prefix are stored together, and can be listed
//! and removed together.

use std::ffi::{CString, c_char};
use std::sync::OnceLock;

use alluvium::{Keyspace, KeyspaceOptions, KeyspaceSnapshot, Plan, PrefixRule};

use crate::database::{OpenDb, alluvium_db};
use crate::error::{alluvium_error, alluvium_status};
use crate::failure::{Failure, c_text};
use crate::living::Living;
use crate::raw::{self, Given, done};
use crate::settings;

/// A keyspace of a database, or of a snapshot. Many threads may use it.
#[derive(Debug)]
pub struct alluvium_keyspace {
    of: Living<Source>,
    name: CString,
}

/// What a keyspace reads.
#[derive(Debug)]
pub(crate) enum Source {
    /// Items as they are now.
    Database(Stored),
    /// Items as they were.
    Snapshot(KeyspaceSnapshot),
}

/// A keyspace of a database.
#[derive(Debug)]
pub(crate) struct Stored {
    /// The database.
    pub of: OpenDb,
    /// The keyspace. Its writes wait until they are durable.
    pub keyspace: Keyspace,
    deferred: OnceLock<Keyspace>,
}

impl Stored {
    /// The same keyspace, whose writes wait at the next commit of the database.
    pub fn deferred(&self) -> alluvium::Result<&Keyspace> {
        match self.deferred.get() {
            Some(keyspace) => Ok(keyspace),
            None => {
                let keyspace = self.of.db.deferred().keyspace(self.keyspace.name())?;
                Ok(self.deferred.get_or_init(|| keyspace))
            }
        }
    }
}

/// Calls the same method of either source.
macro_rules! either {
    ($source:expr, $keyspace:ident => $call:expr) => {
        match $source {
            $crate::keyspace::Source::Database($crate::keyspace::Stored { keyspace: $keyspace, .. }) => $call,
            $crate::keyspace::Source::Snapshot($keyspace) => $call,
        }
    };
}
pub(crate) use either;

impl alluvium_keyspace {
    /// A keyspace of a snapshot.
    pub(crate) fn of_snapshot(keyspace: KeyspaceSnapshot, name: &str) -> Self {
        Self { of: Living::new(Source::Snapshot(keyspace)), name: c_text(name) }
    }

    fn of_database(of: OpenDb, keyspace: Keyspace) -> Self {
        let name = c_text(keyspace.name());
        Self { of: Living::new(Source::Database(Stored { of, keyspace, deferred: OnceLock::new() })), name }
    }

    /// What it reads.
    #[inline]
    pub(crate) fn source(&self) -> Result<&Source, Failure> {
        self.of.get()
    }

    /// The keyspace of the database, to be changed.
    #[inline]
    pub(crate) fn stored(&self) -> Result<&Stored, Failure> {
        match self.of.get()? {
            Source::Database(stored) => Ok(stored),
            Source::Snapshot(_) => Err(Failure::of_snapshot()),
        }
    }
}

/// Settings of a new keyspace. One thread uses it at a time.
#[derive(Debug, Default)]
pub struct alluvium_keyspace_options {
    prefix: Option<PrefixRule>,
    is_listed: bool,
    plan: Option<Plan>,
}

impl alluvium_keyspace_options {
    fn options(&self) -> Result<KeyspaceOptions, Failure> {
        let mut options = self.prefix.map(KeyspaceOptions::semi_sorted).unwrap_or_default();
        if self.is_listed {
            if self.prefix.is_none() {
                return Err(Failure::settings("listed prefixes need a delimiter or a length of prefixes"));
            }
            options = options.with_listed_prefixes();
        }
        Ok(match &self.plan {
            Some(plan) => options.with_plan(plan.clone()),
            None => options,
        })
    }
}

/// Settings of a keyspace, all with their defaults: no prefixes, and the plan of the database. The caller frees them.
#[unsafe(no_mangle)]
pub extern "C" fn alluvium_keyspace_options_create() -> *mut alluvium_keyspace_options {
    Box::into_raw(Box::default())
}

/// Frees settings of a keyspace. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_keyspace_options_free(options: *mut alluvium_keyspace_options) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(options) };
}

/// The prefix of a key ends before the first byte `delimiter`. The settings may be NULL, here and below; then nothing
/// happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_keyspace_options_set_delimiter(
    options: *mut alluvium_keyspace_options,
    delimiter: u8,
) {
    // SAFETY: the caller keeps the contract of the header.
    if let Some(options) = unsafe { raw::peek_mut(options) } {
        options.prefix = Some(PrefixRule::Delimiter { byte: delimiter });
    }
}

/// The prefix of a key is its first `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_keyspace_options_set_prefix_bytes(
    options: *mut alluvium_keyspace_options,
    bytes: u16,
) {
    // SAFETY: the caller keeps the contract of the header.
    if let Some(options) = unsafe { raw::peek_mut(options) } {
        options.prefix = Some(PrefixRule::Length { bytes });
    }
}

/// Whether alluvium_iterator_over_prefixes can list the prefixes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_keyspace_options_set_listed_prefixes(
    options: *mut alluvium_keyspace_options,
    listed: bool,
) {
    // SAFETY: the caller keeps the contract of the header.
    if let Some(options) = unsafe { raw::peek_mut(options) } {
        options.is_listed = listed;
    }
}

/// Sets the plan: a name such as "silt", or a plan as `alluvium plan --json` prints it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_keyspace_options_set_plan(
    options: *mut alluvium_keyspace_options,
    plan: *const c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let options = given.handle_mut(options, "options")?;
        options.plan = Some(settings::plan(given.text(plan, "plan")?)?);
        done()
    })
}

/// The keyspace of this name, which is created if there is none. With `options` NULL, an existing one is opened as it
/// is; else its order must be that of the options. The caller frees `*keyspace`. "default" is the keyspace of the
/// command `alluvium` and of Python's mappings.
///
/// Errors: ALLUVIUM_KEYSPACE if it exists with another order, ALLUVIUM_SETTINGS for a name that is empty, longer than
/// 255 bytes or has control characters.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_keyspace_open(
    db: *const alluvium_db,
    name: *const c_char,
    options: *const alluvium_keyspace_options,
    keyspace: *mut *mut alluvium_keyspace,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(keyspace, "keyspace")?;
        let of = given.handle(db, "db")?.open()?.clone();
        let name = given.text(name, "name")?;
        let keyspace = match given.handle_or_none(options) {
            Some(options) => of.db.keyspace_with(name, &options.options()?)?,
            None => of.db.keyspace(name)?,
        };
        out.set_handle(alluvium_keyspace::of_database(of, keyspace));
        done()
    })
}

/// Frees the handle of a keyspace; the keyspace stays. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_keyspace_free(keyspace: *mut alluvium_keyspace) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(keyspace) };
}

/// The name of a keyspace, valid until its handle is freed; an empty text for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_keyspace_name(keyspace: *const alluvium_keyspace) -> *const c_char {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::peek(keyspace) }.map_or(c"".as_ptr(), |keyspace| keyspace.name.as_ptr())
}

/// The number of items, estimated from above. Costs nothing. Not for keyspaces of snapshots.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_approximate_count(
    keyspace: *const alluvium_keyspace,
    count: *mut u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.out(count, "count")?;
        out.set(given.handle(keyspace, "keyspace")?.stored()?.keyspace.approximate_len());
        done()
    })
}

/// The exact number of items. Reads all of them.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_count(
    keyspace: *const alluvium_keyspace,
    count: *mut u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.out(count, "count")?;
        out.set(match given.handle(keyspace, "keyspace")?.source()? {
            Source::Database(stored) => stored.keyspace.count()?,
            Source::Snapshot(keyspace) => {
                keyspace.iter().try_fold(0, |count: u64, item| item.map(|_| count + 1))?
            }
        });
        done()
    })
}

/// Removes all items of a keyspace, and frees their space at once.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_clear(
    keyspace: *const alluvium_keyspace,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        given.handle(keyspace, "keyspace")?.stored()?.keyspace.clear()?;
        done()
    })
}
