//! [`Program`]: what is executed, a script or a function of a library.

use super::library::LibraryFunction;
use super::running::Kind;
use super::scripts::Digest;

#[derive(Clone, Copy)]
pub(crate) enum Program<'a> {
    Script { digest: Digest, source: &'a [u8] },
    Function(&'a LibraryFunction),
}

impl Program<'_> {
    pub(super) fn kind(&self) -> Kind {
        match self {
            Self::Script { .. } => Kind::Script,
            Self::Function(_) => Kind::Function,
        }
    }

    /// How errors call it.
    pub(super) fn name(&self) -> String {
        match self {
            Self::Script { digest, .. } => String::from_utf8_lossy(digest).into_owned(),
            Self::Function(function) => function.name.to_string(),
        }
    }
}

/// How Lua calls the sources of scripts and of libraries.
pub(super) const SCRIPT_CHUNK: &str = "user_script";
pub(super) const LIBRARY_CHUNK: &str = "user_function";
