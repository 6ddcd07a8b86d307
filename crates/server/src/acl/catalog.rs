//! [`Catalog`]: all commands and subcommands, numbered for sets of them.

use std::ops::Range;

use super::category::Category;

/// A command or subcommand.
pub(crate) struct Entry {
    /// `command` or `container|subcommand`.
    pub(crate) name: String,
    pub(crate) categories: Vec<Category>,
    /// The numbers of its subcommands.
    pub(crate) subcommands: Range<usize>,
    pub(crate) is_subcommand: bool,
}

/// What rules may name. A command's number is its position here.
pub(crate) struct Catalog {
    pub(crate) entries: Vec<Entry>,
}

impl Catalog {
    /// The number of the command or subcommand of this whole name, in any case.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name.as_bytes().eq_ignore_ascii_case(name))
    }
}
