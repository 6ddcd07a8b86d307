//! Writes sections in buckets.

use alluvium_base::KeyHash;

use crate::bucket_group::GroupBuilder;
use crate::cluster_builder::{ClusterBuilder, ClusterSpec, MadeCluster};
use crate::directory::IndexKind;
use crate::error::{Error, Result};
use crate::filter_builder::{FilterBuilder, FilterKind};
use crate::frame::Identity;
use crate::index_builder::IndexBuilder;
use crate::item::EncodedItem;
use crate::output::Output;
use crate::page::{ITEM_BYTES_MAX, Layout};
use crate::section_spec::SectionSpec;
use crate::writer::{FinishedSection, OpenSection, TableWriter};

/// The filter of a section in buckets.
#[derive(Clone, Debug)]
pub enum BucketFilter {
    /// Bloom filters, stored together with those of tables below.
    Clustered(ClusterSpec),
    /// A static filter of this number of bits per item, for this section alone.
    Static {
        /// Bits per item.
        bits: u32,
    },
}

impl TableWriter {
    /// Begins a section of buckets with this filter, for approximately `items_expected` items. Items are in the order
    /// of (hash, key) except those that move between buckets. Holds 16 bytes per item and a group of buckets until it
    /// ends.
    ///
    /// # Panics
    /// When a section is open.
    pub fn begin_bucketed_section(&mut self, spec: SectionSpec, filter: BucketFilter, items_expected: u64) {
        let range = spec.range.high_halves();
        let filter = match filter {
            BucketFilter::Clustered(cluster) => {
                FilterBuilder::Clustered(ClusterBuilder::new(cluster, range, items_expected))
            }
            BucketFilter::Static { bits } => FilterBuilder::gathered(
                FilterKind::Static(bits),
                u8::try_from(spec.level).ok(),
                items_expected,
            ),
        };
        self.begin(spec, Layout::Bucketed, IndexBuilder::slots(), filter);
        let section = self.section.as_mut().expect("it was just begun");
        section.group = Some(Box::new(GroupBuilder::new(range.0)));
    }
}

impl FinishedSection {
    /// Stores the index and filter of a section of buckets.
    pub(super) fn set_buckets(&mut self, group: GroupBuilder, filter: FilterBuilder) -> Result<()> {
        let directory = group.finish(KeyHash(self.entry.range.high).high()).to_bytes();
        self.entry.index_kind = IndexKind::Buckets;
        self.index = (directory.len() as u64).to_le_bytes().to_vec();
        self.index.extend_from_slice(&directory);
        let FilterBuilder::Clustered(filter) = filter else {
            self.set_own_filter(filter);
            return Ok(());
        };
        self.entry.filter_tag_bits = filter.bits_per_key();
        let MadeCluster { header, columns, on_flash } = filter.finish()?;
        self.index.extend_from_slice(&header);
        self.filter = columns;
        self.entry.filter_on_flash = on_flash;
        Ok(())
    }
}

impl OpenSection {
    /// Appends an item to the group of buckets, or to the next one.
    pub(super) fn push_bucketed(
        &mut self,
        output: &mut Output,
        identity: Identity,
        hash: KeyHash,
        encoded: &EncodedItem<'_>,
    ) -> Result<()> {
        let encoded_len = encoded.bytes.len();
        if encoded_len > ITEM_BYTES_MAX {
            return Err(Error::ItemTooLarge {
                encoded_bytes: encoded_len,
                encoded_bytes_max: ITEM_BYTES_MAX,
            });
        }
        debug_assert!(self.entry.range.contains(hash.0));
        let group = self.group.as_mut().expect("a section of buckets");
        if let Some(high) = group.ends_before(hash) {
            self.end_group(high, output, identity)?;
        }
        let group = self.group.as_mut().expect("a section of buckets");
        group.push(hash, encoded.bytes);
        self.filter.push(self.entry.hasher, hash, encoded.item.key)?;
        self.entry.totals.add(&encoded.item);
        if let Some(expires_at_ms) = encoded.item.expires_at_ms {
            self.expiry.push(expires_at_ms);
        }
        Ok(())
    }

    /// Writes the group of buckets, in bucketed layout, whose hashes end with `high`.
    pub(super) fn end_group(&mut self, high: u64, output: &mut Output, identity: Identity) -> Result<()> {
        if let Some(group) = &mut self.group {
            let written = group.write(high, output, identity.seed)?;
            self.entry.page_count += written.pages;
            self.entry.totals.used_bytes += written.used_bytes;
        }
        Ok(())
    }
}
