//! Filter and index of a section in memory: read when they are first needed, kept as far as memory allows.

use std::sync::{Arc, PoisonError, TryLockError};

use alluvium_io::AlignedBuffer;
use alluvium_io::sync::atomic::Ordering;

use super::{Section, read_exact};
use crate::directory::BlockHandle;
use crate::error::{Error, Result};
use crate::frame::check_sum;
use crate::index::SectionIndex;
#[cfg(test)]
use crate::index_memory::IndexMemory;
use crate::index_memory::MemoryBytes;
use crate::page::PAGE_BYTES;

/// Maximum bytes between filter and index for which they are read together.
const GAP_BYTES_MAX: u64 = 64 << 10;

impl Section {
    /// The index: from memory, otherwise from flash by one read (two if filter and index are far apart), and then kept
    /// as far as the bound of [`IndexMemory`] allows. It may lack the filter; [`Section::whole_index`] does not. A
    /// failure is not remembered: the next call tries again.
    pub(crate) fn index(&self) -> Result<Arc<SectionIndex>> {
        self.index_with(self.wants_filter())
    }

    /// The index of a table in buckets, and its filter only if it is already in memory.
    pub(crate) fn index_without_filter(&self) -> Result<Arc<SectionIndex>> {
        self.index_with(false)
    }

    fn index_with(&self, with_filter: bool) -> Result<Arc<SectionIndex>> {
        let suffices = |index: &Arc<SectionIndex>| !with_filter || !self.is_worth_loading(index);
        if let Some(index) = self.index.load_full().filter(suffices) {
            return Ok(index);
        }
        let bytes = self.entry.index.len + if self.is_joint() { self.entry.filter.len } else { 0 };
        if self.index.load().is_none() && !self.gets_room(bytes, self.index_worth()) {
            self.memory.count_index_reads(1);
            return self.read_index(with_filter).map(Arc::new);
        }
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(index) = self.index.load_full().filter(suffices) {
            return Ok(index);
        }
        Ok(self.keep(self.read_index(with_filter)?))
    }

    /// Whether the filter should be in memory if there is room.
    pub(super) fn wants_filter(&self) -> bool {
        self.entry.filter.len > 0
            && !self.entry.filter_on_flash
            && !self.is_covered.load(Ordering::Relaxed)
            && !self.is_filter_damaged.load(Ordering::Relaxed)
    }

    /// Records that the filter is damaged, so that it is not read again.
    pub(super) fn set_filter_damaged(&self) {
        self.is_filter_damaged.store(true, Ordering::Relaxed);
    }

    /// Whether reading `index` again would add the filter that it lacks.
    fn is_worth_loading(&self, index: &SectionIndex) -> bool {
        !index.is_whole()
            && self.wants_filter()
            && self.gets_room(self.entry.filter.len + self.entry.index.len, self.filter_worth())
    }

    /// Whether `bytes` have room, if necessary in place of what is worth less. A refusal stands until memory becomes
    /// free, so that lookups that work without do not check each time.
    fn gets_room(&self, bytes: u64, worth: f64) -> bool {
        if self.memory.has_room(bytes) {
            return true;
        }
        let releases = self.memory.releases();
        if self.refused_at.load(Ordering::Relaxed) == releases {
            return false;
        }
        let could = self.memory.could_make_room(bytes, worth);
        if !could {
            self.refused_at.store(releases, Ordering::Relaxed);
        }
        could
    }

    /// Filter and index; what is not in memory is read from flash. Keeps nothing.
    pub(crate) fn whole_index(&self) -> Result<Arc<SectionIndex>> {
        match self.index.load_full().filter(|index| index.is_whole()) {
            Some(index) => Ok(index),
            None => self.read_index(true).map(Arc::new),
        }
    }

    /// Puts `whole` in memory as far as it is allowed. The caller holds the lock.
    fn keep(&self, whole: SectionIndex) -> Arc<SectionIndex> {
        let bytes = whole.memory_bytes();
        let was_kept = self.index.load().is_some();
        let charge = if was_kept {
            // The page index is in memory already; for a moment it is there twice.
            Some(self.memory.charge(MemoryBytes { filter: 0, ..bytes }, self.index_worth()))
        } else if self.is_joint() {
            self.memory.try_charge(bytes, self.index_worth())
        } else {
            self.memory.try_charge(MemoryBytes { filter: 0, ..bytes }, self.index_worth())
        };
        let Some(mut charge) = charge else {
            // What was counted as worth less could not be dropped, for example because lookups use it.
            self.refused_at.store(self.memory.releases(), Ordering::Relaxed);
            self.memory.count_unkept(u64::from(bytes.filter > 0), 1);
            return Arc::new(whole);
        };
        let is_whole = !was_kept && self.is_joint();
        let kept = if is_whole || charge.try_add_filter(bytes.filter, self.filter_worth()) {
            Arc::new(whole.charged(charge))
        } else {
            self.memory.count_unkept(u64::from(!was_kept), 0);
            Arc::new(whole.without_filter(charge))
        };
        self.index.store(Some(Arc::clone(&kept)));
        self.register();
        kept
    }

    /// Registers the section with the memory as one that has something to drop.
    pub(super) fn register(&self) {
        if !self.is_registered.swap(true, Ordering::Relaxed) {
            self.memory.register(self.me.clone());
        }
    }

    /// Drops the filter; readers that use it keep it while they do. Returns `false` if there is none in memory, or if
    /// it is being loaded.
    pub(crate) fn drop_filter(&self) -> bool {
        self.change_index(|index| {
            // What was made from the pages is dropped as a whole.
            if !index.has_filter() || index.made_as.is_some() {
                return None;
            }
            let bytes = MemoryBytes { filter: 0, ..index.memory_bytes() };
            Some(Some(Arc::new(index.without_filter(self.memory.charge(bytes, self.index_worth())))))
        })
    }

    /// Drops filter and index; readers that use them keep them while they do. Returns `false` if there is none in
    /// memory, or if they are being loaded.
    pub fn drop_index(&self) -> bool {
        self.change_index(|_| Some(None))
    }

    fn change_index(&self, change: impl FnOnce(&SectionIndex) -> Option<Option<Arc<SectionIndex>>>) -> bool {
        // Never waits: a loader may be waiting for the caller, which has to make room.
        let _guard = match self.loading.try_lock() {
            Ok(guard) => guard,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return false,
        };
        let Some(changed) = self.index.load_full().and_then(|index| change(&index)) else { return false };
        self.index.store(changed);
        true
    }

    /// The memory in which filter and index are counted.
    #[cfg(test)]
    pub fn index_memory(&self) -> &Arc<IndexMemory> {
        &self.memory
    }

    /// Whether a lookup lacks the filter, and whether it lacks the index.
    pub fn lacks(&self) -> (bool, bool) {
        if self.entry.page_count == 0 {
            return (false, false);
        }
        let index = self.index.load();
        let has_filter = index.as_ref().is_some_and(|index| index.is_whole());
        (self.wants_filter() && !has_filter, index.is_none())
    }

    /// Bytes that filter and index take in memory when all that should be there is loaded: known if it is, otherwise
    /// estimated from above by their stored form. Fences are up to twice as large in memory, tags a sixteenth larger.
    /// A filter that stays on flash, or for which another table's answers, takes none.
    pub fn index_bytes_wanted(&self) -> u64 {
        let wants_filter = self.wants_filter();
        let loaded = self.index.load();
        match loaded.as_ref().filter(|index| index.is_whole() || !wants_filter) {
            Some(index) => {
                let MemoryBytes { filter, index } = index.memory_bytes();
                filter + index
            }
            None => {
                let filter =
                    if wants_filter { self.entry.filter.len + self.entry.filter.len / 16 } else { 0 };
                filter + 2 * self.entry.index.len
            }
        }
    }

    /// Memory of filter and index; zero until they are loaded.
    pub fn memory_bytes(&self) -> MemoryBytes {
        self.index.load().as_ref().map_or(MemoryBytes::default(), |index| index.memory_bytes())
    }

    /// Reads the index, and the filter if `with_filter`, from flash. If they are damaged, returns what can replace
    /// them.
    fn read_index(&self, with_filter: bool) -> Result<SectionIndex> {
        self.unless_damaged(with_filter, self.stored_index(with_filter))
    }

    fn unless_damaged(&self, with_filter: bool, index: Result<SectionIndex>) -> Result<SectionIndex> {
        match index {
            Err(Error::Corruption(corruption)) => self.index_in_spite_of(with_filter, corruption),
            index => index,
        }
    }

    /// Reads the index, and the filter if `with_filter`, as stored on flash.
    pub(crate) fn stored_index(&self, with_filter: bool) -> Result<SectionIndex> {
        let filter = if with_filter { self.entry.filter.len } else { 0 };
        // Room for the stored and the decoded form. A thread that holds it waits for no other.
        let _room = self.memory.reads.hold(2 * (filter + self.entry.index.len + PAGE_BYTES as u64));
        if !with_filter {
            let index = self.read_block(self.entry.index, "index")?;
            return self.decode_index(&[], &index);
        }
        let (start, end) = self.all_blocks().fold((u64::MAX, 0), |(start, end), block| {
            (start.min(block.offset), end.max(block.offset + block.len))
        });
        let start = start - start % PAGE_BYTES as u64;
        let bytes: u64 = self.all_blocks().map(|block| block.len).sum();
        if start < end && end - start <= bytes + GAP_BYTES_MAX {
            let len = (end - start).next_multiple_of(PAGE_BYTES as u64);
            let mut buffer = AlignedBuffer::with_len(len as usize);
            read_exact(&*self.file, &mut buffer, start)?;
            return self.index_from(&buffer, start, true);
        }
        let filter = self.read_block(self.entry.filter, "filter")?;
        let index = self.read_block(self.entry.index, "index")?;
        self.decode_index(&filter, &index)
    }

    /// Positions of filter and index, except empty ones.
    fn all_blocks(&self) -> impl Iterator<Item = BlockHandle> {
        [self.entry.filter, self.entry.index].into_iter().filter(|block| block.len > 0)
    }

    /// Positions of the parts of filter and index that should be in memory.
    pub(crate) fn index_blocks(&self) -> impl Iterator<Item = BlockHandle> {
        let filter = if self.wants_filter() { self.entry.filter } else { BlockHandle::default() };
        [filter, self.entry.index].into_iter().filter(|block| block.len > 0)
    }

    /// Like [`Section::index`], from `bytes` that were read at `start` and contain filter and index.
    pub(crate) fn load_index_from(&self, bytes: &[u8], start: u64) -> Result<()> {
        let _guard = self.loading.lock().unwrap_or_else(PoisonError::into_inner);
        if self.index.load().is_none() {
            let with_filter = self.wants_filter();
            self.keep(self.unless_damaged(with_filter, self.index_from(bytes, start, with_filter))?);
        }
        Ok(())
    }

    fn index_from(&self, bytes: &[u8], start: u64, with_filter: bool) -> Result<SectionIndex> {
        let block = |block: BlockHandle, what| {
            let from = block.offset.saturating_sub(start) as usize;
            let bytes = if block.len == 0 { &[] } else { &bytes[from..from + block.len as usize] };
            self.check_block(bytes, block, what)
        };
        let filter = if with_filter { self.entry.filter } else { BlockHandle::default() };
        self.decode_index(block(filter, "filter")?, block(self.entry.index, "index")?)
    }

    fn decode_index(&self, filter: &[u8], index: &[u8]) -> Result<SectionIndex> {
        SectionIndex::decode(&self.entry, filter, index)
            .map_err(|corruption| corruption.within(self.file.name(), self.entry.index.offset).into())
    }

    fn check_block<'a>(&self, bytes: &'a [u8], block: BlockHandle, what: &str) -> Result<&'a [u8]> {
        if block.len > 0 {
            let seed = self.identity.seed ^ block.offset;
            check_sum(bytes, block.checksum, seed, self.file.name(), block.offset, what)?;
        }
        Ok(bytes)
    }

    /// Reads a block with aligned reads and checks its checksum.
    pub(super) fn read_block(&self, block: BlockHandle, what: &str) -> Result<Vec<u8>> {
        if block.len == 0 {
            return Ok(Vec::new());
        }
        // The directory's reader checked that the block is within the file, so its length is plausible.
        let start = block.offset - block.offset % PAGE_BYTES as u64;
        let skip = (block.offset - start) as usize;
        let len = block.len as usize;
        let mut buffer = AlignedBuffer::with_len((skip + len).next_multiple_of(PAGE_BYTES));
        read_exact(&*self.file, &mut buffer, start)?;
        Ok(self.check_block(&buffer[skip..skip + len], block, what)?.to_vec())
    }
}
