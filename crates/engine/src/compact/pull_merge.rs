//! [`PullMerge`]: ascending sequences of tables as one, item by item, for readers that come back for more.

use alluvium_base::KeyHash;

use super::merged::{Ascending, Tied, keep_first_key, step};
use crate::error::Result;
use crate::item::EncodedItem;

/// The newest item of every key among what several scanners give, the first the youngest, tombstones included.
#[derive(Debug)]
pub(crate) struct PullMerge<S> {
    scanners: Vec<S>,
    heads: Vec<Option<KeyHash>>,
    /// Scanners that stand on the current item's key, the youngest first; none behind the last item.
    tied: Tied,
}

impl<S: Ascending> PullMerge<S> {
    /// Stands on the first item.
    pub fn new(mut scanners: Vec<S>) -> Result<Self> {
        let heads = scanners.iter_mut().map(step).collect::<Result<_>>()?;
        let mut merge = Self { scanners, heads, tied: Tied::new() };
        merge.settle();
        Ok(merge)
    }

    /// The item that it stands on; `None` behind the last.
    pub fn current(&self) -> Option<(KeyHash, EncodedItem<'_>)> {
        self.scanners[*self.tied.first()?].current_encoded()
    }

    /// Moves to the next key. After an error there is none.
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
