//! The partitions of a cache that survives, over any medium.

use std::io;
use std::sync::Arc;

use alluvium_base::KeyHash;

use crate::index::partition_of;

use super::clean::Hands;
use super::geometry::Geometry;
use super::medium::Medium;
use super::part::Part;
use super::shared::Shared;

/// How a medium was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Start {
    /// It was [formatted](format).
    New,
    /// All stores are there, up to one of them.
    Resumed,
    /// Any of the stores that were not flushed may be missing.
    AfterCrash,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Core<M> {
    pub shared: Arc<Shared<M>>,
    pub parts: Box<[Part<M>]>,
}

/// Makes the medium, which is zero, one without items.
pub(crate) fn format(medium: &impl Medium, geometry: &Geometry) {
    for zone in 0..geometry.partitions * geometry.zones {
        let at = geometry.zone_line_at(zone);
        medium.store(at, 1);
        medium.flush(at);
    }
    medium.fence();
}

impl<M: Medium> Core<M> {
    /// The cache on a medium whose lines of partitions and zones were checked.
    ///
    /// # Errors
    /// The system's error if it refuses memory.
    pub fn open(shared: Shared<M>, start: Start) -> io::Result<Self> {
        let shared = Arc::new(shared);
        let dictionaries = shared.packing.as_ref().and_then(|packing| packing.dictionaries.as_ref());
        if let Some(dictionaries) = dictionaries {
            dictionaries.load(&shared.medium, &shared.geometry);
        }
        let part = |number| {
            let active = shared.active(number) as usize % shared.geometry.zones;
            let mut hands = match start {
                Start::New | Start::Resumed => Hands::resumed(&shared, number, active, start == Start::New),
                Start::AfterCrash => Hands::after_crash(&shared, active),
            };
            hands.packs.named = vec![0; shared.geometry.zones];
            if let Some(dictionaries) = dictionaries.filter(|_| start != Start::New) {
                hands.packs.named.iter_mut().for_each(|named| dictionaries.name_all(named));
            }
            let part = Part::new(Arc::clone(&shared), number, hands)?;
            if start == Start::AfterCrash {
                part.recover();
            }
            Ok(part)
        };
        let parts = (0..shared.geometry.partitions).map(part).collect::<io::Result<_>>()?;
        Ok(Self { parts, shared })
    }

    /// The partition of a hash.
    #[inline(always)]
    pub fn part(&self, hash: KeyHash) -> &Part<M> {
        match &*self.parts {
            [only] => only,
            several => &several[partition_of(hash, several.len())],
        }
    }
}
