//! Visits all items.

use alluvium_base::KeyHash;

use crate::access::Access;
use crate::index::bucket::WAYS;
use crate::index::{Index, first_hash};
use crate::item::Metadata;
use crate::region::Region;
use crate::sync::spin_hint;

use super::Partition;
use super::policy::Policy;

/// An item copied out of a bucket.
pub(super) struct Copied {
    pub key: Vec<u8>,
    pub value: Vec<u8>,
    pub metadata: Metadata,
}

impl<P: Policy, A: Access> Partition<P, A> {
    /// Calls `visit` with key, value and metadata of the items, inline or not, whose hashes have low halves from `from`
    /// to the end of that hash's chain. Returns where the next chain starts, if there is one. Hashes stay the same when
    /// the index grows.
    pub fn visit_from(&self, from: u64, visit: &mut impl FnMut(&[u8], &[u8], Metadata)) -> Option<u64> {
        let mut copied: Vec<Copied> = Vec::with_capacity(WAYS);
        let next = loop {
            copied.clear();
            let body = self.body.get();
            let place = body.index.place(KeyHash::from_halves(0, from));
            let version = self.begin_read(body.index.first(place));
            // An item that moves between its cell and the region meanwhile also changes the chain.
            self.copy_inline(body, place.bucket, &mut copied);
            let inline_items = copied.len();
            let mut entries = Vec::with_capacity(WAYS);
            for (_, entry) in body.index.entries(place.bucket) {
                // Beside a writer the header may be garbage; `item` refuses one that is not sound.
                let Some(stored) = body.item(entry) else { continue };
                let mut key = vec![0; stored.header.key_len()];
                stored.copy_key(&mut key);
                // An item that is being moved is in both places.
                if copied[..inline_items].iter().all(|inline| inline.key != key) {
                    copied.push(Copied { key, value: stored.value().to_vec(), metadata: stored.metadata() });
                }
                entries.push(entry);
            }
            let following = first_hash(place.bucket + 1, body.index.len());
            let in_front = copied.len();
            P::visit_behind(self, from, following, &mut |key, value, metadata| {
                // An item that came to the region meanwhile is in both places.
                if copied[..in_front].iter().all(|copied| copied.key != key) {
                    copied.push(Copied { key: key.to_vec(), value: value.to_vec(), metadata });
                }
            });
            let is_valid = version.is_none_or(|version| {
                self.is_at_rest(body, body.index.first(place), version)
                    && entries.iter().all(|&entry| body.region.contains(entry))
            });
            if is_valid {
                break following;
            }
            spin_hint();
        };
        for item in copied.iter().filter(|item| !self.is_expired(item.metadata)) {
            // An earlier call visited the hashes below `from`, in an index with other buckets.
            if self.common.hasher.hash(&item.key).low() >= from {
                visit(&item.key, &item.value, item.metadata);
            }
        }
        next
    }
}
