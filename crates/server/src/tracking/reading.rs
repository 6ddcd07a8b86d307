//! [`Reading`]: how one client is told about the keys that it has read.

/// Which keys a client is told about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mode {
    /// Those that it has read.
    All,
    /// Those that it reads by the command after `CLIENT CACHING YES`.
    OptIn,
    /// Those that it reads, but not by the command after `CLIENT CACHING NO`.
    OptOut,
    /// Those with one of its prefixes, read or not.
    Broadcast,
}

/// What a client has asked for by `CLIENT TRACKING`.
#[derive(Clone, Debug)]
pub(crate) struct Reading {
    pub(crate) mode: Mode,
    /// The number of the client that is told instead.
    pub(crate) redirection: Option<u64>,
    /// Whether it is not told about keys that it changes itself.
    pub(crate) is_no_loop: bool,
    pub(crate) prefixes: Vec<Box<[u8]>>,
    /// Whether the command before was `CLIENT CACHING`.
    pub(crate) is_caching_given: bool,
}

impl Reading {
    /// Whether the keys that the next command reads are registered.
    pub(crate) fn registers(&self) -> bool {
        match self.mode {
            Mode::All => true,
            Mode::OptIn => self.is_caching_given,
            Mode::OptOut => !self.is_caching_given,
            Mode::Broadcast => false,
        }
    }
}
