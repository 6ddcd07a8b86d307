//! [`Scope`]: the section that a scanner is reading.

use std::sync::Arc;

use alluvium_base::{HashRange, LastPrefix};
use alluvium_index::bucketed::BucketDirectory;

use crate::error::Result;
use crate::page::Layout;
use crate::section::Section;

/// The section being scanned.
#[derive(Clone, Debug)]
pub(super) struct Scope {
    /// Its number among the sections to scan.
    pub number: usize,
    pub section: Arc<Section>,
    /// Positions of its groups of buckets, in bucketed layout.
    pub buckets: Option<Arc<BucketDirectory>>,
    /// The hashes wanted.
    pub wanted: HashRange,
    pub last_prefix: LastPrefix,
}

impl Scope {
    pub fn new(number: usize, section: Arc<Section>, wanted: HashRange) -> Result<Self> {
        let buckets = match section.layout() {
            Layout::Bucketed => section.index_without_filter()?.buckets().cloned(),
            Layout::Hash | Layout::Sorted | Layout::Names => None,
        };
        Ok(Self { number, section, buckets, wanted, last_prefix: LastPrefix::default() })
    }
}
