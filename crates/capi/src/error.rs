//! # Errors
//!
//! A function that can fail returns a status, and takes the address of a pointer to an error as its last argument. If
//! it fails, it stores a new error there, which the caller frees; else it stores NULL. The address may be NULL if the
//! status is enough.

use std::ffi::{CString, c_char, c_int, c_void};

use crate::raw;

/// The outcome of a call. ALLUVIUM_OK, ALLUVIUM_ABSENT and ALLUVIUM_SMALL come without an error object. Later versions
/// may add statuses.
#[repr(C)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum alluvium_status {
    /// The call did what it should.
    ALLUVIUM_OK = 0,
    /// There is no such item, or the iterator is at its end.
    ALLUVIUM_ABSENT = 1,
    /// The buffer is too small. Nothing was copied, and the length that is needed was stored.
    ALLUVIUM_SMALL = 2,

    /// An argument is wrong: a pointer is NULL, a length is impossible, a text is no UTF-8, or two handles belong to
    /// different databases.
    ALLUVIUM_ARGUMENT = 10,
    /// A setting does not exist or cannot be used.
    ALLUVIUM_SETTINGS = 11,
    /// The database, or the ingest, was closed.
    ALLUVIUM_CLOSED = 12,
    /// The process was forked after the handle was made. Open in one process only, after the fork.
    ALLUVIUM_FORKED = 13,
    /// The system gave no memory for the result.
    ALLUVIUM_MEMORY = 14,
    /// The library has a mistake, which was stopped here. Close the database and report the message.
    ALLUVIUM_PANIC = 15,

    /// The system refused an operation on a file: alluvium_error_system returns its number.
    ALLUVIUM_IO = 20,
    /// Stored bytes fail their check. Restore the file from a backup.
    ALLUVIUM_CORRUPTION = 21,
    /// The database is damaged and was not opened; nothing was changed. alluvium_repair keeps what is sound.
    ALLUVIUM_DAMAGED = 22,
    /// A file of the database is missing.
    ALLUVIUM_MISSING_FILE = 23,
    /// A file has a format of another version.
    ALLUVIUM_FORMAT = 24,
    /// The directory has files, but no database.
    ALLUVIUM_NOT_A_DATABASE = 25,
    /// Another process, or another handle in this one, has the database or the cache open.
    ALLUVIUM_LOCKED = 26,

    /// Writes are refused since an earlier failure. Reads work. Fix the cause and reopen.
    ALLUVIUM_FAILED = 30,
    /// The disk is full. Reads and removals work.
    ALLUVIUM_DISK_FULL = 31,
    /// The write would exceed disk_bytes_max. Removals work.
    ALLUVIUM_DISK_QUOTA = 32,
    /// The log is full, and the background work that makes room in it fails. It is tried again, so write again later.
    ALLUVIUM_STALLED = 33,
    /// The database was opened for reading only, or the keyspace is of a snapshot.
    ALLUVIUM_READ_ONLY = 34,
    /// Open iterators take all memory that they may take. Free some.
    ALLUVIUM_MEMORY_BUSY = 35,

    /// A key, a value, an item or a batch is too large.
    ALLUVIUM_TOO_LARGE = 40,
    /// The keyspace does not fit the request: another order, no prefixes, or it was dropped.
    ALLUVIUM_KEYSPACE = 41,
    /// The keyspace stores items by prefixes, and the key has none.
    ALLUVIUM_KEY_WITHOUT_PREFIX = 42,
    /// A condition of a batch does not hold; nothing was written. alluvium_error_condition returns its number.
    ALLUVIUM_CONDITION = 43,
    /// The value to be incremented is no number.
    ALLUVIUM_NOT_A_NUMBER = 44,
    /// The sum does not fit in 64 bits.
    ALLUVIUM_NUMBER_OVERFLOW = 45,
    /// The directory of backups does not fit the request.
    ALLUVIUM_BACKUP = 46,

    /// Another failure: read its message.
    ALLUVIUM_OTHER = 99,
}

/// Why a call failed. It does not change, and may be read by many threads. Its texts are valid until it is freed.
#[derive(Debug)]
pub struct alluvium_error {
    pub(crate) status: alluvium_status,
    pub(crate) message: CString,
    pub(crate) file: Option<CString>,
    pub(crate) offset: u64,
    pub(crate) expected: Option<CString>,
    pub(crate) found: Option<CString>,
    pub(crate) system: i32,
    pub(crate) condition: Option<usize>,
    pub(crate) key: Option<Vec<u8>>,
}

fn pointer(text: Option<&CString>) -> *const c_char {
    text.map_or(std::ptr::null(), |text| text.as_ptr())
}

/// The status that the failed call returned; ALLUVIUM_OK for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_status(error: *const alluvium_error) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::peek(error) }.map_or(alluvium_status::ALLUVIUM_OK, |error| error.status)
}

/// What failed, why, and what to do, in English; an empty text for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_message(error: *const alluvium_error) -> *const c_char {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::peek(error) }.map_or(c"".as_ptr(), |error| error.message.as_ptr())
}

/// The file that is damaged, missing or of another format; NULL if the error names none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_file(error: *const alluvium_error) -> *const c_char {
    // SAFETY: the caller keeps the contract of the header.
    pointer(unsafe { raw::peek(error) }.and_then(|error| error.file.as_ref()))
}

/// The position of the damage in its file, in bytes; 0 if the error names none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_offset(error: *const alluvium_error) -> u64 {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::peek(error) }.map_or(0, |error| error.offset)
}

/// What sound bytes would have there; NULL if the error does not say it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_expected(error: *const alluvium_error) -> *const c_char {
    // SAFETY: the caller keeps the contract of the header.
    pointer(unsafe { raw::peek(error) }.and_then(|error| error.expected.as_ref()))
}

/// What was found instead; NULL if the error does not say it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_found(error: *const alluvium_error) -> *const c_char {
    // SAFETY: the caller keeps the contract of the header.
    pointer(unsafe { raw::peek(error) }.and_then(|error| error.found.as_ref()))
}

/// The system's number of the failure, as in errno; 0 if it was none of the system.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_system(error: *const alluvium_error) -> c_int {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::peek(error) }.map_or(0, |error| error.system)
}

/// The number of the condition that failed, counted from 0 in the order of the batch; -1 if none did.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_condition(error: *const alluvium_error) -> i64 {
    // SAFETY: the caller keeps the contract of the header.
    let condition = unsafe { raw::peek(error) }.and_then(|error| error.condition);
    condition.map_or(-1, |number| i64::try_from(number).unwrap_or(i64::MAX))
}

/// The key whose condition failed, and its length; NULL and 0 if none did.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_key(
    error: *const alluvium_error,
    key_len: *mut usize,
) -> *const c_void {
    // SAFETY: the caller keeps the contract of the header.
    let key = unsafe { raw::peek(error) }.and_then(|error| error.key.as_deref());
    // SAFETY: as above.
    unsafe { raw::store(key_len, key.map_or(0, <[u8]>::len)) };
    key.map_or(std::ptr::null(), |key| key.as_ptr().cast())
}

/// Frees an error. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_error_free(error: *mut alluvium_error) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(error) };
}
