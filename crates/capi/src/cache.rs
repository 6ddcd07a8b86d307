//! # Caches
//!
//! A cache has items in memory, or in a file that survives, and forgets items when it is full. Its calls take a
//! fraction of a microsecond. `ttl_ms` is the time in milliseconds after which an item is absent, or 0 for none.

use std::ffi::{c_char, c_void};
use std::time::Duration;

use ::alluvium_cache::{SetOptions, TooLarge};
use serde_json::json;

use crate::allocation;
use crate::cache_options::alluvium_cache_options;
use crate::error::{alluvium_error, alluvium_status};
use crate::failure::Failure;
use crate::item::absent;
use crate::living::Living;
use crate::many::alluvium_values;
use crate::raw::{self, Given, done};
use crate::settings::{Caching, Settings};

/// A cache. Many threads may use it.
#[derive(Debug)]
pub struct alluvium_cache {
    of: Living<Caching>,
}

/// Calls the same method of either form.
macro_rules! either_form {
    ($cache:expr, $form:ident => $call:expr) => {
        match $cache {
            $crate::settings::Caching::Memory($form) => $call,
            $crate::settings::Caching::File($form) => $call,
        }
    };
}
pub(crate) use either_form;

impl Given {
    /// A cache.
    pub(crate) fn cache(&self, cache: *const alluvium_cache) -> Result<&Caching, Failure> {
        self.handle(cache, "cache")?.of.get()
    }
}

/// What is stored with a value, as C gives it.
pub(crate) fn extras(ttl_ms: u64, flags: u32) -> SetOptions {
    SetOptions { time_to_live: (ttl_ms != 0).then(|| Duration::from_millis(ttl_ms)), flags }
}

/// A cache. `options` may be NULL for defaults. The caller frees it.
///
/// Errors: ALLUVIUM_SETTINGS; for a file also ALLUVIUM_LOCKED, ALLUVIUM_CORRUPTION, ALLUVIUM_IO.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_create(
    options: *const alluvium_cache_options,
    cache: *mut *mut alluvium_cache,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(cache, "cache")?;
        let defaults = Settings::default();
        let settings = given.handle_or_none(options).map_or(&defaults, |options| &options.settings);
        out.set_handle(alluvium_cache { of: Living::new(settings.cache()?) });
        done()
    })
}

/// Frees a cache. What is in a file stays there. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_free(cache: *mut alluvium_cache) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(cache) };
}

/// The value of a key, in memory that the caller frees by alluvium_free; ALLUVIUM_ABSENT and NULL if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_get(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    value: *mut *mut c_void,
    value_len: *mut usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (out, out_len) = (given.pointer_out(value, "value")?, given.out(value_len, "value_len")?);
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        let copied = either_form!(cache, cache => cache.get_with(key, |item| {
            allocation::copied(item.value).map(|copy| (copy, item.value.len()))
        }));
        let Some((value, len)) = copied.transpose()? else { return absent() };
        out.set(value);
        out_len.set(len);
        done()
    })
}

/// Copies the value of a key into a buffer, as alluvium_get_into does. Its flags and the time that is left in
/// milliseconds (0 for no limit) are stored at addresses that may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_get_into(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    buffer: *mut c_void,
    capacity: usize,
    value_len: *mut usize,
    flags: *mut u32,
    ttl_ms: *mut u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out_len = given.out(value_len, "value_len")?;
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        let found = either_form!(cache, cache => cache.get_with(key, |item| {
            let fits = given.fill(buffer, capacity, item.value)?;
            Ok::<_, Failure>((fits, item.value.len(), item.flags, item.time_to_live))
        }));
        let Some((fits, len, item_flags, left)) = found.transpose()? else { return absent() };
        // An item that has less than a millisecond left has a limit, too.
        let left = left.map_or(0, |left| u64::try_from(left.as_millis()).unwrap_or(u64::MAX).max(1));
        out_len.set(len);
        given.out_or_none(flags).into_iter().for_each(|out| out.set(item_flags));
        given.out_or_none(ttl_ms).into_iter().for_each(|out| out.set(left));
        if fits { done() } else { Ok(alluvium_status::ALLUVIUM_SMALL) }
    })
}

/// The values of `count` keys, given flat as in alluvium_get_many_flat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_get_many_flat(
    cache: *const alluvium_cache,
    count: usize,
    keys: *const c_void,
    key_offsets: *const u64,
    values: *mut alluvium_values,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.struct_out(values, "values")?;
        let (cache, keys) = (given.cache(cache)?, given.flat(count, keys, key_offsets, "keys")?);
        out.set(alluvium_values::of(&either_form!(cache, cache => cache.get_many(&keys)))?);
        done()
    })
}

/// Stores an item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_set(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    value: *const c_void,
    value_len: usize,
    flags: u32,
    ttl_ms: u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        let value = given.value(value, value_len)?;
        either_form!(cache, cache => cache.set_with(key, value, extras(ttl_ms, flags)))?;
        done()
    })
}

/// Stores `count` items, given flat as in alluvium_put_many_flat.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_set_many_flat(
    cache: *const alluvium_cache,
    count: usize,
    keys: *const c_void,
    key_offsets: *const u64,
    values: *const c_void,
    value_offsets: *const u64,
    flags: u32,
    ttl_ms: u64,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let cache = given.cache(cache)?;
        let keys = given.flat(count, keys, key_offsets, "keys")?;
        let values = given.flat(count, values, value_offsets, "values")?;
        let items: Vec<(&[u8], &[u8])> = keys.into_iter().zip(values).collect();
        let extras = extras(ttl_ms, flags);
        let set: Result<(), TooLarge> = if extras == SetOptions::default() {
            either_form!(cache, cache => cache.set_many(&items))
        } else {
            items
                .iter()
                .try_for_each(|(key, value)| either_form!(cache, cache => cache.set_with(key, value, extras)))
        };
        set?;
        done()
    })
}

/// Removes an item; ALLUVIUM_ABSENT if there was none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_remove(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        if either_form!(cache, cache => cache.remove(key)) { done() } else { absent() }
    })
}

/// ALLUVIUM_OK if there is an item of this key, ALLUVIUM_ABSENT if there is none. Counts as a use of the item.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_contains(
    cache: *const alluvium_cache,
    key: *const c_void,
    key_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let (cache, key) = (given.cache(cache)?, given.key(key, key_len)?);
        if either_form!(cache, cache => cache.contains(key)) { done() } else { absent() }
    })
}

/// Removes all items of a cache.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_clear(
    cache: *const alluvium_cache,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        either_form!(given.cache(cache)?, cache => cache.clear());
        done()
    })
}

/// Waits until all that was stored in a file is on the device; does nothing for a cache in memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_sync(
    cache: *const alluvium_cache,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        if let Caching::File(cache) = given.cache(cache)? {
            cache.sync()?;
        }
        done()
    })
}

/// Figures of a cache as JSON: items (of a file, an estimate), hits, misses, evictions, bytes. The caller frees the
/// text by alluvium_free.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_cache_stats(
    cache: *const alluvium_cache,
    report: *mut *mut c_char,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(report, "report")?;
        let figures = match given.cache(cache)? {
            Caching::Memory(cache) => {
                let total = cache.stats().total();
                json!({
                    "items": total.items, "hits": total.hits, "misses": total.misses,
                    "inserted": total.inserted, "replaced": total.replaced, "removed": total.removed,
                    "evicted": total.evicted, "expired": total.expired, "too_large": total.too_large,
                    "memory_bytes": total.memory_bytes, "compressed_items": total.zone.items,
                })
            }
            Caching::File(cache) => {
                let stats = cache.stats();
                json!({
                    "opened": format!("{:?}", cache.opened()).to_lowercase(),
                    "items": cache.len_estimate(), "hits": stats.hits, "misses": stats.misses,
                    "inserted": stats.inserted, "replaced": stats.replaced, "removed": stats.removed,
                    "evicted": stats.evicted, "expired": stats.expired, "too_large": stats.too_large,
                    "file_bytes": stats.file_bytes,
                })
            }
        };
        out.set(allocation::text(&figures.to_string())?);
        done()
    })
}
