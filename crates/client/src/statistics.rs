//! [`ClientStatistics`].

/// What a client has sent and received.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClientStatistics {
    /// Datagrams sent, those that were sent again included.
    pub sent: u64,
    /// Datagrams that were sent again.
    pub resent: u64,
    /// Replies received that nothing waited for: they came twice or too late.
    pub unexpected: u64,
    /// How often a directory was received.
    pub directories: u64,
    /// Requests without an answer at their deadline.
    pub unanswered: u64,
}
