//! [`PullMerge`]: ascending sequences of tables merged into one, item by item, for readers that return for more.

use alluvium_base::KeyHash;

use super::merged::{Ascending, Tied, keep_first_key, step};
use crate::error::Result;
use crate::item::EncodedItem;

/// The newest item of every key among the items of several scanners, the youngest scanner first, tombstones included.
#[derive(Debug)]
pub(crate) struct PullMerge<S> {
    scanners: Vec<S>,
    heads: Vec<Option<KeyHash>>,
    /// Scanners whose current item has the current key, the youngest first; empty after the last item.
    tied: Tied,
}

impl<S: Ascending> PullMerge<S> {
    /// Starts at the first item.
    pub fn new(mut scanners: Vec<S>) -> Result<Self> {
        let heads = scanners.iter_mut().map(step).collect::<Result<_>>()?;
        let mut merge = Self { scanners, heads, tied: Tied::new() };
        merge.settle();
        Ok(merge)
    }

    /// The current item, or `None` after the last.
    pub fn current(&self) -> Option<(KeyHash, EncodedItem<'_>)> {
        self.scanners[*self.tied.first()?].current_encoded()
    }

    /// Moves to the next key. After an error there is no current item.
    pub fn advance(&mut self) -> Result<()> {
        for number in std::mem::take(&mut self.tied) {
            self.heads[number] = step(&mut self.scanners[number]).inspect_err(|_| self.heads.fill(None))?;
        }
        self.settle();
        Ok(())
    }

    fn settle(&mut self) {
        self.tied.clear();
        let Some(first) = self.heads.iter().flatten().min().copied() else { return };
        let heads = &self.heads;
        self.tied.extend((0..heads.len()).filter(|&number| heads[number] == Some(first)));
        if self.tied.len() > 1 {
            keep_first_key(&self.scanners, &mut self.tied);
        }
    }
}
