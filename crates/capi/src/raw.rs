//! What C passes, as values of safe Rust.
//!
//! [`Given`] stands for the promise of a caller in C that its pointers are as the header says: NULL, or valid for what
//! the length beside them says until the call returns. With that promise, which each exported function takes over in
//! one place, everything else is safe.

use std::ffi::{CStr, OsStr, c_char, c_int, c_void};
use std::marker::PhantomData;
use std::os::unix::ffi::OsStrExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::{ptr, slice};

use crate::error::{alluvium_error, alluvium_status};
use crate::failure::Failure;
use crate::iterator::alluvium_visit;

/// The outcome of the body of an exported function.
pub type Outcome = Result<alluvium_status, Failure>;

/// The outcome of a call that did what it should.
pub fn done() -> Outcome {
    Ok(alluvium_status::ALLUVIUM_OK)
}

/// The arguments of one call; see the module.
#[derive(Debug)]
pub struct Given {
    error: *mut *mut alluvium_error,
}

impl Given {
    /// The arguments of a call that reports failures to `error`.
    ///
    /// # Safety
    /// `error` and all pointers that are passed to the methods come from the caller of an exported function, and are
    /// NULL or valid as the header says until the function returns.
    pub unsafe fn by_caller(error: *mut *mut alluvium_error) -> Self {
        // SAFETY: the caller promises it.
        unsafe { store(error, ptr::null_mut()) };
        Self { error }
    }

    /// Runs the body of an exported function. A panic ends here.
    pub fn run(self, body: impl FnOnce(&Self) -> Outcome) -> alluvium_status {
        let failure = match catch_unwind(AssertUnwindSafe(|| body(&self))) {
            Ok(Ok(status)) => return status,
            Ok(Err(failure)) => failure,
            Err(panic) => Failure::panicked(&*panic),
        };
        let status = failure.status();
        if !self.error.is_null() {
            // SAFETY: `by_caller` was promised that it is valid.
            unsafe { self.error.write(Box::into_raw(failure.into_error())) };
        }
        status
    }

    /// A handle that may be used by many threads.
    pub fn handle<T>(&self, handle: *const T, name: &str) -> Result<&T, Failure> {
        self.handle_or_none(handle).ok_or_else(|| Failure::null(name))
    }

    /// A handle that the caller may not have.
    pub fn handle_or_none<T>(&self, handle: *const T) -> Option<&T> {
        // SAFETY: `by_caller` was promised that it is NULL or valid.
        unsafe { peek(handle) }
    }

    /// A handle that one thread uses at a time.
    #[expect(clippy::mut_from_ref, reason = "the handle is no part of this value")]
    pub fn handle_mut<T>(&self, handle: *mut T, name: &str) -> Result<&mut T, Failure> {
        // SAFETY: `by_caller` was promised that it is NULL or valid, and that no other thread uses it.
        unsafe { handle.as_mut() }.ok_or_else(|| Failure::null(name))
    }

    /// Where a result goes.
    pub fn out<T>(&self, out: *mut T, name: &str) -> Result<Out<'_, T>, Failure> {
        self.out_or_none(out).ok_or_else(|| Failure::null(name))
    }

    /// Where a result goes that the caller may not want.
    pub fn out_or_none<T>(&self, out: *mut T) -> Option<Out<'_, T>> {
        (!out.is_null()).then_some(Out { at: out, given: PhantomData })
    }

    /// Where a pointer goes. Until the call succeeds it is NULL.
    pub fn pointer_out<T>(&self, out: *mut *mut T, name: &str) -> Result<Out<'_, *mut T>, Failure> {
        // SAFETY: `by_caller` was promised that it is NULL or valid.
        unsafe { store(out, ptr::null_mut()) };
        self.out(out, name)
    }

    /// Where a struct goes. Until the call succeeds it is empty.
    pub fn struct_out<T: Default>(&self, out: *mut T, name: &str) -> Result<Out<'_, T>, Failure> {
        // SAFETY: `by_caller` was promised that it is NULL or valid.
        unsafe { store(out, T::default()) };
        self.out(out, name)
    }

    /// A key. Its length is checked before it is looked at.
    pub fn key(&self, key: *const c_void, len: usize) -> Result<&[u8], Failure> {
        if len > alluvium::KEY_BYTES_MAX {
            return Err(alluvium::Error::KeyTooLarge { len, max: alluvium::KEY_BYTES_MAX }.into());
        }
        self.bytes(key, len, "key")
    }

    /// A value. Its length is checked before it is looked at.
    pub fn value(&self, value: *const c_void, len: usize) -> Result<&[u8], Failure> {
        if len > alluvium::VALUE_BYTES_MAX {
            return Err(alluvium::Error::ValueTooLarge { len, max: alluvium::VALUE_BYTES_MAX }.into());
        }
        self.bytes(value, len, "value")
    }

    /// A value, or none for NULL.
    pub fn value_or_none(&self, value: *const c_void, len: usize) -> Result<Option<&[u8]>, Failure> {
        if value.is_null() && len == 0 { Ok(None) } else { self.value(value, len).map(Some) }
    }

    /// Bytes.
    pub fn bytes(&self, bytes: *const c_void, len: usize, name: &str) -> Result<&[u8], Failure> {
        self.slice(bytes.cast(), len, name)
    }

    /// An array.
    pub fn slice<T: Plain>(&self, start: *const T, len: usize, name: &str) -> Result<&[T], Failure> {
        if len == 0 {
            return Ok(&[]);
        }
        if start.is_null() {
            return Err(Failure::null(name));
        }
        if !start.is_aligned() {
            return Err(Failure::argument(&format!("{name} is not aligned")));
        }
        if len > isize::MAX as usize / size_of::<T>() {
            return Err(Failure::argument(&format!("{name} of length {len} cannot be in memory")));
        }
        // SAFETY: `by_caller` was promised that what is not NULL is valid for its length, and no one changes it; any
        // bits are a value of a `Plain` type.
        Ok(unsafe { slice::from_raw_parts(start, len) })
    }

    /// A text that ends with a zero.
    pub fn text(&self, text: *const c_char, name: &str) -> Result<&str, Failure> {
        let text = self.text_bytes(text, name)?;
        str::from_utf8(text).map_err(|_| Failure::argument(&format!("{name} is no UTF-8")))
    }

    /// A path that ends with a zero.
    pub fn path(&self, path: *const c_char, name: &str) -> Result<&Path, Failure> {
        self.text_bytes(path, name).map(|path| Path::new(OsStr::from_bytes(path)))
    }

    fn text_bytes(&self, text: *const c_char, name: &str) -> Result<&[u8], Failure> {
        if text.is_null() {
            return Err(Failure::null(name));
        }
        // SAFETY: `by_caller` was promised that what is not NULL ends with a zero.
        Ok(unsafe { CStr::from_ptr(text) }.to_bytes())
    }

    /// Copies `bytes` into a buffer of the caller if they fit; returns whether they do.
    pub fn fill(&self, buffer: *mut c_void, capacity: usize, bytes: &[u8]) -> Result<bool, Failure> {
        if bytes.len() > capacity {
            return Ok(false);
        }
        if buffer.is_null() && !bytes.is_empty() {
            return Err(Failure::null("buffer"));
        }
        if !bytes.is_empty() {
            // SAFETY: `by_caller` was promised that the buffer has its capacity; `bytes` are the engine's.
            unsafe { buffer.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
        }
        Ok(true)
    }

    /// A function of the caller, which returns whether to continue.
    pub fn visitor(
        &self,
        visit: alluvium_visit,
        context: *mut c_void,
    ) -> Result<impl FnMut(&[u8], &[u8]) -> bool, Failure> {
        let visit = visit.ok_or_else(|| Failure::null("visit"))?;
        Ok(move |key: &[u8], value: &[u8]| {
            let (key_start, value_start) = (key.as_ptr().cast(), value.as_ptr().cast());
            // SAFETY: `by_caller` was promised that it is a function of this type that does not unwind.
            let stop: c_int = unsafe { visit(context, key_start, key.len(), value_start, value.len()) };
            stop == 0
        })
    }
}

/// Types of which any bits are a value.
pub trait Plain {}
impl Plain for u8 {}
impl Plain for u64 {}
impl Plain for usize {}
impl Plain for *const c_void {}

/// Where a result goes.
#[derive(Debug)]
pub struct Out<'g, T> {
    at: *mut T,
    given: PhantomData<&'g Given>,
}

impl<T> Out<'_, T> {
    /// Stores it.
    pub fn set(self, value: T) {
        // SAFETY: `by_caller` was promised that it may be written.
        unsafe { self.at.write(value) };
    }
}

impl<T> Out<'_, *mut T> {
    /// Stores a handle to `value`.
    pub fn set_handle(self, value: T) {
        self.set(Box::into_raw(Box::new(value)));
    }
}

/// What a pointer to a handle refers to, if it is not NULL.
///
/// # Safety
/// The pointer is NULL, or valid as long as the result is used.
pub unsafe fn peek<'a, T>(handle: *const T) -> Option<&'a T> {
    // SAFETY: the caller promises it.
    unsafe { handle.as_ref() }
}

/// What a pointer to a handle refers to, to be changed, if it is not NULL.
///
/// # Safety
/// The pointer is NULL, or valid as long as the result is used, and no one else uses it.
pub unsafe fn peek_mut<'a, T>(handle: *mut T) -> Option<&'a mut T> {
    // SAFETY: the caller promises it.
    unsafe { handle.as_mut() }
}

/// Stores `value` if the pointer is not NULL.
///
/// # Safety
/// The pointer is NULL, or may be written.
pub unsafe fn store<T>(out: *mut T, value: T) {
    if !out.is_null() {
        // SAFETY: the caller promises it.
        unsafe { out.write(value) };
    }
}

/// Drops what [`Out::set_handle`] stored. A panic ends here.
///
/// # Safety
/// The pointer is NULL, or came from `set_handle` and was not freed; nobody else uses it.
pub unsafe fn free<T>(handle: *mut T) {
    if !handle.is_null() {
        // SAFETY: the caller promises it.
        let value = unsafe { Box::from_raw(handle) };
        // The panic was reported, and there is nobody to whom a `void` function could return it.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(value)));
    }
}

/// Lets the C library call `function` in each forked child.
pub fn call_in_forked_children(function: extern "C" fn()) {
    // SAFETY: the function lives as long as the library, whose unloading takes it back. If there is no memory for its
    // registration, forks are not noticed.
    unsafe { libc::pthread_atfork(None, None, Some(function)) };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a body and returns its status, and the status and message of its error object.
    fn run(body: impl FnOnce(&Given) -> Outcome) -> (alluvium_status, Option<(alluvium_status, String)>) {
        let mut error = ptr::dangling_mut();
        // SAFETY: `error` may be written.
        let status = unsafe { Given::by_caller(&raw mut error) }.run(body);
        // SAFETY: what is there is NULL or an error.
        let text = unsafe { peek(error) }.map(|error| (error.status, error.message.to_string_lossy().into()));
        // SAFETY: as above; nobody else uses it.
        unsafe { free(error) };
        (status, text)
    }

    #[test]
    fn panics_become_errors() {
        let (status, error) = run(|_| panic!("a mistake with the number {}", 7));
        assert_eq!(status, alluvium_status::ALLUVIUM_PANIC);
        let (found, message) = error.unwrap();
        assert_eq!(found, status);
        assert!(message.contains("a mistake with the number 7"), "{message}");
        // SAFETY: NULL is allowed.
        let given = unsafe { Given::by_caller(ptr::null_mut()) };
        assert_eq!(given.run(|_| panic!("again")), alluvium_status::ALLUVIUM_PANIC);
        assert_eq!(run(|_| done()), (alluvium_status::ALLUVIUM_OK, None));
    }

    #[test]
    fn what_cannot_be_in_memory_is_refused() {
        let numbers = [1_u64, 2, 3];
        let at = numbers.as_ptr();
        let refused = |start: *const u64, len: usize| {
            let (status, error) = run(|given| given.slice(start, len, "numbers").and_then(|_| done()));
            assert_eq!(status == alluvium_status::ALLUVIUM_ARGUMENT, error.is_some());
            error.is_some()
        };
        assert!(!refused(at, 3) && !refused(ptr::null(), 0) && !refused(at.wrapping_byte_add(1), 0));
        assert!(refused(ptr::null(), 1) && refused(at.wrapping_byte_add(1), 1));
        assert!(refused(at, usize::MAX) && refused(at, isize::MAX as usize / 8 + 1));
    }
}
