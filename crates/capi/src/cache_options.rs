//! # Settings of a cache

use std::ffi::c_char;

use crate::error::{alluvium_error, alluvium_status};
use crate::raw::{self, Given, done};
use crate::settings::Settings;

/// Settings of a cache. One thread uses it at a time.
#[derive(Debug, Default)]
pub struct alluvium_cache_options {
    pub(crate) settings: Settings,
}

/// Settings of a cache, all with their defaults: 64 MiB of memory. The caller frees them.
#[unsafe(no_mangle)]
pub extern "C" fn alluvium_cache_options_create() -> *mut alluvium_cache_options {
    Box::into_raw(Box::default())
}

/// Frees settings of a cache. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_options_free(options: *mut alluvium_cache_options) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(options) };
}

/// Sets any setting of a cache by its name and a text; what cannot be used is refused at once with ALLUVIUM_SETTINGS.
///
///     memory_bytes    bytes of memory, or of the file; default 64 MiB
///     item_bytes      mean bytes of key and value, by which memory is divided; default 200
///     item_bytes_max  maximum bytes of an item; default 1 MiB
///     partitions      parts with a lock of their own; default one for 4 MiB, at most 16
///     compress        "lz4" or "zstd": items that would be forgotten stay in compressed blocks
///     survive         path of a file in which the cache is, and where the next process finds its content again
///     survive_loss    what it survives: "process" (default), the end of the process; "power", also that of the system;
///                     "pmem", the same in persistent memory
///     reset           whether to empty a file that has other settings; default false
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_options_set(
    options: *mut alluvium_cache_options,
    name: *const c_char,
    value: *const c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let options = given.handle_mut(options, "options")?;
        let mut settings = options.settings.clone();
        settings.set(given.text(name, "name")?, given.text(value, "value")?);
        settings.check_cache()?;
        options.settings = settings;
        done()
    })
}

/// Sets memory_bytes. The settings may be NULL; then nothing happens.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_options_set_memory_bytes(
    options: *mut alluvium_cache_options,
    bytes: u64,
) {
    // SAFETY: the caller keeps the contract of the header.
    if let Some(options) = unsafe { raw::peek_mut(options) } {
        options.settings.set("memory_bytes", &bytes.to_string());
    }
}
