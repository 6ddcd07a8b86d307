//! # Versions and limits
//!
//! A program that was compiled with this header runs with every library of the same major version that is not older.
//! The library's symbols have the version ALLUVIUM_0.

use std::ffi::c_char;

/// Major version of this header.
pub const ALLUVIUM_VERSION_MAJOR: u32 = 0;
/// Minor version of this header.
pub const ALLUVIUM_VERSION_MINOR: u32 = 1;
/// Patch version of this header.
pub const ALLUVIUM_VERSION_PATCH: u32 = 0;

/// Maximum bytes of a key. The empty key is a key.
pub const ALLUVIUM_KEY_BYTES_MAX: usize = 65536;
/// Maximum bytes of a value.
pub const ALLUVIUM_VALUE_BYTES_MAX: usize = 67108864;

const _: () = assert!(ALLUVIUM_KEY_BYTES_MAX == alluvium::KEY_BYTES_MAX);
const _: () = assert!(ALLUVIUM_VALUE_BYTES_MAX == alluvium::VALUE_BYTES_MAX);

const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\0");

/// The version of the library, as "0.1.0". It is valid as long as the library is loaded.
#[unsafe(no_mangle)]
pub extern "C" fn alluvium_version() -> *const c_char {
    VERSION.as_ptr().cast()
}
