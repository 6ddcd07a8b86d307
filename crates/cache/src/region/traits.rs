//! What partitions ask of the memory in which items are stored.

use std::fmt;

use crate::index::Entry;
use crate::item::{Site, Stored};

/// Memory for items. How items get room there, and which are evicted for it, is up to the policy
/// ([`Policy`](crate::partition::Policy)), which chooses the region.
pub(crate) trait Region: fmt::Debug + Send + Sync + 'static {
    /// Where the item of an entry is. Beside a writer the entry may be of any age.
    fn site(&self, entry: Entry) -> Site<'_>;

    /// Whether the item of an entry has not been evicted. A reader beside the writer calls it after an acquire fence
    /// that follows its last load from the region.
    fn contains(&self, entry: Entry) -> bool;

    /// Writer: takes back the room of an item to which no entry refers any more.
    fn free(&self, entry: Entry);

    /// Writer: the item of an entry, unless it was evicted.
    #[inline(always)]
    fn item(&self, entry: Entry) -> Option<Stored<'_>> {
        self.contains(entry).then(|| self.site(entry).item())
    }
}
