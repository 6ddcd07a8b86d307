//! Lua scripts: `EVAL` and what belongs to it.
//!
//! A script is executed within a transaction: its writes take effect at one moment, and a script that fails on the
//! store's side, takes too long or is killed has written nothing. If a key that it has read was written meanwhile it
//! runs again, so it must not depend on what it did outside of the store. Each worker has an interpreter of its own,
//! with the libraries `string`, `table`, `math`, `cjson` and `bit`; it has no access to files, time or the system.

mod bits;
mod call;
mod convert;
mod interpreter;
mod json;
mod scripts;

pub(crate) use interpreter::{Outcome, Request, compile_error, run};
pub(crate) use scripts::{Digest, Scripts};
