//! Lua scripts and functions: `EVAL`, `FCALL` and what belongs to them.
//!
//! A script or a function is executed within a transaction: its writes take effect at one moment, and one that fails
//! on the store's side, takes too long or is killed has written nothing. If a key that it has read was written
//! meanwhile, it runs again, so it must not depend on what it did outside of the store. Each worker has an
//! interpreter of its own, with the libraries `string`, `table`, `math`, `cjson`, `cmsgpack`, `struct` and `bit`; it
//! has no access to files, time or the system.
//!
//! All workers share the sources of scripts and libraries. An interpreter compiles a script, and loads a library, when
//! it first executes it.

mod api;
mod bits;
mod call;
mod convert;
mod execution;
mod flags;
mod interpreter;
mod json;
mod libraries;
mod library;
mod loading;
mod msgpack;
mod program;
mod running;
mod scripts;
mod shebang;
mod structs;
mod thrown;

pub(crate) use execution::{Outcome, Request, TIME_MAX, run};
pub(crate) use interpreter::compile_error;
pub(crate) use libraries::{Libraries, LibrarySet, Refusal};
pub(crate) use library::Library;
pub(crate) use loading::{LOAD_TIME_MAX, library_name, load, load_stored};
pub(crate) use program::Program;
pub(crate) use running::{Kind, Running};
pub(crate) use scripts::Scripts;
