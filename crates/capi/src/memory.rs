//! # Memory of results
//!
//! Values, texts and reports that a call returns by address belong to the caller, who frees them.

use std::ffi::c_void;

use crate::allocation;

/// Frees a value, a text or a report. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn alluvium_free(memory: *mut c_void) {
    // SAFETY: the caller keeps the contract of the header.
    unsafe { allocation::free(memory) };
}
