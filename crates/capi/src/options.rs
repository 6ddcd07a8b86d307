//! # Settings of a database
//!
//! Settings are a handle of their own. alluvium_open takes it, and it can be used again or freed afterwards.

use std::ffi::c_char;

use crate::error::{alluvium_error, alluvium_status};
use crate::raw::{self, Given, done};
use crate::settings::Settings;

/// Settings of a database. One thread uses it at a time.
#[derive(Debug, Default)]
pub struct alluvium_options {
    pub(crate) settings: Settings,
}

/// Settings, all with their defaults. The caller frees them.
#[unsafe(no_mangle)]
pub extern "C" fn alluvium_options_create() -> *mut alluvium_options {
    Box::into_raw(Box::default())
}

/// Frees settings. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_options_free(options: *mut alluvium_options) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(options) };
}

/// Sets any setting by its name and a text: a number, "true" or "false", or a word. Names and texts can come from a
/// configuration file; what cannot be used is refused at once with ALLUVIUM_SETTINGS.
///
///     expected_items             number of items that the database will have, for its plan; default 0: unknown
///     plan                       "auto" (default), a name such as "silt", or the JSON of `alluvium plan --json`
///     durability                 when a write returns: "sync" (default), when it is on the device; "process", when the
///                                system has it; "buffered", when it is in memory; or a number, the seconds between
///                                two syncs in the background
///     create                     whether to create the database if there is none; default true
///     read_only                  whether to open for reading only, also what a bulk build committed; default false
///     memory_bytes_max           maximum bytes of memory of the database; default: no limit
///     process_memory_bytes_max   maximum bytes of memory of the process, the database included; default: no limit
///     row_cache_bytes_max        maximum bytes of items that gets leave in memory; default 64 MiB
///     compress_rows              "lz4" or "zstd": keep more of them, compressed; default: as they are
///     disk_bytes_max             maximum bytes of disk; default: no limit
///     drop_oldest                whether the oldest items go when the disk is full, as in a cache; default false
///     index_bytes_per_item       bytes of memory per item that an automatic plan may use; default 0.5
///     inline_bytes_max           maximum bytes of an item that is not stored in a file for large ones; default 2039
///     ingest_sort_bytes_max      memory of a bulk load
///     background_bytes_per_s_max maximum bytes per second of background work; default: no limit
///     open_files_max             maximum number of open files
///     log_retention_bytes        bytes of log that are kept after they are needed; default 0
///     read_wait                  what a thread does while it waits for a read: "adapt" (default), "sleep", "poll"
///     young_levels_dir           a second directory, for tables that are rewritten often
///     young_levels               number of levels whose tables are there; default 1
///     workload.gets              shares of requests, for an automatic plan: also workload.absent_gets, workload.puts,
///                                workload.removals; workload.skew, workload.key_bytes, workload.value_bytes
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_options_set(
    options: *mut alluvium_options,
    name: *const c_char,
    value: *const c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let options = given.handle_mut(options, "options")?;
        let (name, value) = (given.text(name, "name")?, given.text(value, "value")?);
        let mut settings = options.settings.clone();
        settings.set(name, value);
        settings.database(".".into())?;
        options.settings = settings;
        done()
    })
}

/// Sets a setting whose value cannot be wrong.
fn set(options: Option<&mut alluvium_options>, name: &str, value: &str) {
    if let Some(options) = options {
        options.settings.set(name, value);
    }
}

/// Sets expected_items. The settings may be NULL, here and below; then nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_options_set_expected_items(options: *mut alluvium_options, items: u64) {
    // SAFETY: the caller keeps the contract of the header.
    set(unsafe { raw::peek_mut(options) }, "expected_items", &items.to_string());
}

/// Sets create.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_options_set_create(options: *mut alluvium_options, create: bool) {
    // SAFETY: the caller keeps the contract of the header.
    set(unsafe { raw::peek_mut(options) }, "create", &create.to_string());
}

/// Sets read_only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_options_set_read_only(options: *mut alluvium_options, read_only: bool) {
    // SAFETY: the caller keeps the contract of the header.
    set(unsafe { raw::peek_mut(options) }, "read_only", &read_only.to_string());
}

/// Sets memory_bytes_max.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_options_set_memory_bytes_max(options: *mut alluvium_options, bytes: u64) {
    // SAFETY: the caller keeps the contract of the header.
    set(unsafe { raw::peek_mut(options) }, "memory_bytes_max", &bytes.to_string());
}

/// Sets row_cache_bytes_max.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_options_set_row_cache_bytes_max(
    options: *mut alluvium_options,
    bytes: u64,
) {
    // SAFETY: the caller keeps the contract of the header.
    set(unsafe { raw::peek_mut(options) }, "row_cache_bytes_max", &bytes.to_string());
}

/// Sets disk_bytes_max.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_options_set_disk_bytes_max(options: *mut alluvium_options, bytes: u64) {
    // SAFETY: the caller keeps the contract of the header.
    set(unsafe { raw::peek_mut(options) }, "disk_bytes_max", &bytes.to_string());
}

/// Sets durability to an interval in milliseconds; 0 means "buffered".
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_options_set_sync_interval_ms(
    options: *mut alluvium_options,
    milliseconds: u32,
) {
    let value = match milliseconds {
        0 => "buffered".to_owned(),
        _ => (f64::from(milliseconds) / 1000.0).to_string(),
    };
    // SAFETY: the caller keeps the contract of the header.
    set(unsafe { raw::peek_mut(options) }, "durability", &value);
}
