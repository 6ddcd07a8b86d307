//! [`ClientOptions`].

use std::time::Duration;

/// How a client sends requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientOptions {
    /// How long a call waits for replies. Default one second.
    pub deadline: Duration,
    /// After how long a datagram is sent again; each time after twice as long. Default 10 ms.
    pub resend_after: Duration,
    /// Maximum requests in a datagram. Default 255, the maximum; a datagram has room for fewer.
    pub requests_per_datagram_max: usize,
    /// Maximum datagrams that wait for their replies, at most 256. Default 64: what a socket's buffer of 208 KiB
    /// takes.
    pub datagrams_in_flight_max: usize,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(1),
            resend_after: Duration::from_millis(10),
            requests_per_datagram_max: 255,
            datagrams_in_flight_max: 64,
        }
    }
}
