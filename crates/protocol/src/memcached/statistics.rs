//! What `stats` asks for.

/// A part of the statistics. Answered with `STAT` lines and `END`, except where stated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statistics {
    /// `stats`.
    General,
    /// `stats items`.
    Items,
    /// `stats slabs`.
    Slabs,
    /// `stats sizes`.
    Sizes,
    /// `stats sizes_enable`.
    SizesEnable,
    /// `stats sizes_disable`.
    SizesDisable,
    /// `stats settings`.
    Settings,
    /// `stats conns`.
    Connections,
    /// `stats detail on`, `off`: `OK`. `stats detail dump`: `PREFIX` lines and `END`.
    Detail(Detail),
    /// `stats cachedump`: `ITEM` lines and `END`, or
    /// [`Error::CacheDumpDisabled`](super::Error::CacheDumpDisabled).
    CacheDump {
        /// The slab class.
        slab: u32,
        /// Maximum number of items; 0 for all.
        items_max: u32,
    },
    /// `stats reset`: `RESET`.
    Reset,
}

/// What `stats detail` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Detail {
    /// Count by prefix from now on.
    On,
    /// Stop that.
    Off,
    /// The counts.
    Dump,
}
