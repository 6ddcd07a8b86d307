//! [`Library`]: functions that are loaded together.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::flags::Flags;

/// A library as it was loaded. A later one of the same name has another version.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    pub(crate) name: Box<str>,
    pub(crate) source: Arc<[u8]>,
    pub(crate) functions: BTreeMap<Box<str>, Description>,
    /// Why it could not be loaded when the server started, if it could not. It has no functions then.
    pub(crate) failure: Option<String>,
    /// Never used again by this process.
    pub(super) version: u64,
}

/// What a library has said about one of its functions.
#[derive(Clone, Debug, Default)]
pub(crate) struct Description {
    pub(crate) text: Option<Box<[u8]>>,
    pub(crate) flags: Flags,
}

/// Bytes that a function counts beside its name and description.
const FUNCTION_BYTES: usize = 128;

impl Description {
    /// Bytes that a function with this description counts.
    pub(super) fn bytes(&self, name: &str) -> usize {
        FUNCTION_BYTES + name.len() + self.text.as_ref().map_or(0, |text| text.len())
    }
}

impl Library {
    /// Bytes that it counts: those of its source, and of what it says about its functions.
    pub(super) fn bytes(&self) -> usize {
        let functions = self.functions.iter().map(|(name, description)| description.bytes(name));
        self.name.len() + self.source.len() + functions.sum::<usize>()
    }
}

/// A function of a library.
#[derive(Clone)]
pub(crate) struct LibraryFunction {
    pub(crate) library: Arc<Library>,
    pub(crate) name: Box<str>,
    pub(crate) flags: Flags,
}
