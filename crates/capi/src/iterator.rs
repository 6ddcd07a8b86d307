//! # Iterating
//!
//! An iterator shows all items of a keyspace, in no order that means anything, as they were when it began. It keeps the
//! tables that it reads until its end, or until it is freed.
//!
//! Calls to a function of the caller hold no lock of the library; it may use the keyspace. It must return: neither
//! longjmp nor an exception may leave it.

use std::ffi::{c_int, c_void};

use alluvium::{Iter, KeyValue, Prefixes};

use crate::allocation::{self, Allocation};
use crate::column::push_offsets;
use crate::error::{alluvium_error, alluvium_status};
use crate::failure::Failure;
use crate::item::absent;
use crate::keyspace::{alluvium_keyspace, either};
use crate::living::Living;
use crate::raw::{self, Given, Outcome, done};

/// Approximate maximum bytes of items that one call returns.
const MANY_BYTES_MAX: usize = 4 << 20;

/// A function that gets an item, and what its caller passed as `context`. The item is valid until it returns. It
/// returns 0 to continue and anything else to stop.
pub type alluvium_visit = Option<
    // SAFETY: `raw::Given::visitor` alone calls it.
    unsafe extern "C" fn(
        context: *mut c_void,
        key: *const c_void,
        key_len: usize,
        value: *const c_void,
        value_len: usize,
    ) -> c_int,
>;

/// An iterator. One thread uses it at a time.
#[derive(Debug)]
pub struct alluvium_iterator {
    of: Living<State>,
}

#[derive(Debug)]
struct State {
    source: Walk,
    /// The item that the caller looks at.
    current: KeyValue,
}

enum Walk {
    Items(Box<Iter>),
    Prefixes(Box<Prefixes>),
    End,
}

impl std::fmt::Debug for Walk {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(match self {
            Self::Items(_) => "Items",
            Self::Prefixes(_) => "Prefixes",
            Self::End => "End",
        })
    }
}

impl Walk {
    /// The next item. A prefix is an item without a value. After the end, or an error, there is none.
    fn next(&mut self) -> Option<Result<KeyValue, Failure>> {
        let next = match self {
            Self::Items(items) => items.next(),
            Self::Prefixes(prefixes) => {
                prefixes.next().map(|prefix| prefix.map(|prefix| (prefix, Vec::new())))
            }
            Self::End => None,
        };
        if !matches!(next, Some(Ok(_))) {
            // Frees what the iterator kept.
            *self = Self::End;
        }
        next.map(|item| item.map_err(Failure::from))
    }
}

impl alluvium_iterator {
    fn of(source: Walk) -> Self {
        Self { of: Living::new(State { source, current: KeyValue::default() }) }
    }
}

/// Calls `visit` with all items until it returns something else than 0.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_iterate(
    keyspace: *const alluvium_keyspace,
    visit: alluvium_visit,
    context: *mut c_void,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let source = given.handle(keyspace, "keyspace")?.source()?;
        visit_all(either!(source, keyspace => keyspace.iter()), given.visitor(visit, context)?)
    })
}

/// Calls `visit` with the items of one prefix: what the rule of the keyspace says is the prefix of their keys.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_iterate_prefix(
    keyspace: *const alluvium_keyspace,
    prefix: *const c_void,
    prefix_len: usize,
    visit: alluvium_visit,
    context: *mut c_void,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let source = given.handle(keyspace, "keyspace")?.source()?;
        let prefix = given.key(prefix, prefix_len)?;
        let items = either!(source, keyspace => keyspace.scan_prefix(prefix))?;
        visit_all(items, given.visitor(visit, context)?)
    })
}

fn visit_all(mut items: Iter, mut visit: impl FnMut(&[u8], &[u8]) -> bool) -> Outcome {
    for item in &mut items {
        let (key, value) = item?;
        if !visit(&key, &value) {
            break;
        }
    }
    done()
}

/// An iterator over all items. The caller frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_iterator_create(
    keyspace: *const alluvium_keyspace,
    iterator: *mut *mut alluvium_iterator,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(iterator, "iterator")?;
        let source = given.handle(keyspace, "keyspace")?.source()?;
        let items = either!(source, keyspace => keyspace.iter());
        out.set_handle(alluvium_iterator::of(Walk::Items(Box::new(items))));
        done()
    })
}

/// An iterator over the items of one prefix. The caller frees it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_iterator_over_prefix(
    keyspace: *const alluvium_keyspace,
    prefix: *const c_void,
    prefix_len: usize,
    iterator: *mut *mut alluvium_iterator,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(iterator, "iterator")?;
        let source = given.handle(keyspace, "keyspace")?.source()?;
        let prefix = given.key(prefix, prefix_len)?;
        let items = either!(source, keyspace => keyspace.scan_prefix(prefix))?;
        out.set_handle(alluvium_iterator::of(Walk::Items(Box::new(items))));
        done()
    })
}

/// An iterator over the prefixes that have items, from `start` on, in the order of their bytes. A prefix is shown as a
/// key with an empty value. The keyspace must list its prefixes. The caller frees the iterator.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_iterator_over_prefixes(
    keyspace: *const alluvium_keyspace,
    start: *const c_void,
    start_len: usize,
    iterator: *mut *mut alluvium_iterator,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.pointer_out(iterator, "iterator")?;
        let source = given.handle(keyspace, "keyspace")?.source()?;
        let start = given.key(start, start_len)?;
        let prefixes = either!(source, keyspace => keyspace.prefixes_from(start))?;
        out.set_handle(alluvium_iterator::of(Walk::Prefixes(Box::new(prefixes))));
        done()
    })
}

/// Frees an iterator, also before its end. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_iterator_free(iterator: *mut alluvium_iterator) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { raw::free(iterator) };
}

/// The next item; ALLUVIUM_ABSENT at the end. Key and value are valid until the next call with this iterator; the
/// addresses of what is not wanted may be NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_iterator_next(
    iterator: *mut alluvium_iterator,
    key: *mut *const c_void,
    key_len: *mut usize,
    value: *mut *const c_void,
    value_len: *mut usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let state = given.handle_mut(iterator, "iterator")?.of.get_mut()?;
        let Some(item) = state.source.next().transpose()? else { return absent() };
        state.current = item;
        let (current_key, current_value) = &state.current;
        given.out_or_none(key).into_iter().for_each(|out| out.set(current_key.as_ptr().cast()));
        given.out_or_none(key_len).into_iter().for_each(|out| out.set(current_key.len()));
        given.out_or_none(value).into_iter().for_each(|out| out.set(current_value.as_ptr().cast()));
        given.out_or_none(value_len).into_iter().for_each(|out| out.set(current_value.len()));
        done()
    })
}

/// Some items, flat, in one block of memory that alluvium_items_free frees.
#[repr(C)]
#[derive(Debug)]
pub struct alluvium_items {
    /// Number of items.
    pub count: usize,
    /// `count` + 1 positions in `keys`.
    pub key_offsets: *const u64,
    /// `count` + 1 positions in `values`.
    pub value_offsets: *const u64,
    /// The keys.
    pub keys: *const c_void,
    /// The values.
    pub values: *const c_void,
}

impl Default for alluvium_items {
    fn default() -> Self {
        let (offsets, bytes) = (std::ptr::null(), std::ptr::null());
        Self { count: 0, key_offsets: offsets, value_offsets: offsets, keys: bytes, values: bytes }
    }
}

impl alluvium_items {
    /// Items in one block of memory: offsets, keys, values.
    fn of(items: &[KeyValue]) -> Result<Self, Failure> {
        let count = items.len();
        let bytes: usize = items.iter().map(|(key, value)| key.len() + value.len()).sum();
        let mut memory = Allocation::new(2 * (count + 1) * size_of::<u64>() + bytes)?;
        let key_offsets = push_offsets(&mut memory, items.iter().map(|(key, _)| key.len()));
        let value_offsets = push_offsets(&mut memory, items.iter().map(|(_, value)| value.len()));
        let keys = memory.push(&[]).cast();
        for (key, _) in items {
            memory.push(key);
        }
        let values = memory.push(&[]).cast();
        for (_, value) in items {
            memory.push(value);
        }
        memory.give();
        Ok(Self { count, key_offsets, value_offsets, keys, values })
    }
}

/// Frees the memory of items and empties the struct, so that it may be freed again. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_items_free(items: *mut alluvium_items) {
    // SAFETY: the caller keeps the contract of the header.
    let Some(items) = (unsafe { raw::peek_mut(items) }) else { return };
    // SAFETY: the offsets of keys are at the beginning of the block, which was given to the caller.
    unsafe { allocation::free(items.key_offsets.cast_mut().cast()) };
    *items = alluvium_items::default();
}

/// The next items, at most `count_max` of them, and fewer if they have more than some 4 MiB; ALLUVIUM_ABSENT at the
/// end. `*items` is filled; the caller frees its memory.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_iterator_next_many(
    iterator: *mut alluvium_iterator,
    count_max: usize,
    items: *mut alluvium_items,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let out = given.struct_out(items, "items")?;
        let state = given.handle_mut(iterator, "iterator")?.of.get_mut()?;
        if count_max == 0 {
            return Err(Failure::argument("count_max is 0"));
        }
        let (mut found, mut bytes) = (Vec::new(), 0);
        while found.len() < count_max && bytes < MANY_BYTES_MAX {
            let Some((key, value)) = state.source.next().transpose()? else { break };
            bytes += key.len() + value.len();
            found.push((key, value));
        }
        if found.is_empty() {
            return absent();
        }
        out.set(alluvium_items::of(&found)?);
        done()
    })
}

/// Removes all items of one prefix, atomically.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_remove_prefix(
    keyspace: *const alluvium_keyspace,
    prefix: *const c_void,
    prefix_len: usize,
    error: *mut *mut alluvium_error,
) -> alluvium_status {
    // SAFETY: the caller keeps the contract of the header.
    let given = unsafe { Given::by_caller(error) };
    given.run(|given| {
        let stored = given.handle(keyspace, "keyspace")?.stored()?;
        stored.keyspace.delete_prefix(given.key(prefix, prefix_len)?)?;
        done()
    })
}
