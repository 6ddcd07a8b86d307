//! Settings of the log for those who read it.

use crate::options::Builder;

impl Builder {
    /// Bytes of converted log that stay on the device, over openings, for readers of the log
    /// ([`crate::Db::log_records`]): at least this much and at most a segment more. Default 0.
    #[must_use]
    pub fn log_retention_bytes(mut self, bytes: u64) -> Self {
        self.settings.log_retention_bytes = bytes;
        self
    }

    /// Maximum bytes of converted log that readers of the log hold on the device beyond
    /// [`Builder::log_retention_bytes`]. Default 1 GiB. A reader that is further behind gets
    /// [`crate::Error::LogPositionGone`].
    #[must_use]
    pub fn log_hold_bytes_max(mut self, bytes: u64) -> Self {
        self.settings.log_hold_bytes_max = bytes;
        self
    }
}
