//! Lookups in the filter of a table in buckets, which also answers for the tables below it.

use alluvium_base::{Corruption, KeyHash, TableId};
use alluvium_index::bloom_cluster::Column;
use alluvium_io::AlignedBuffer;
use alluvium_io::sync::atomic::Ordering;

use super::asked::{Asked, ColumnRead, Verdict};
use super::{Section, read_exact};
use crate::cluster_filter::ColumnPlace;
use crate::error::Result;
use crate::page::{Layout, PAGE_BYTES};
use crate::page_list::{PageList, PageRead};

impl Section {
    /// Whether the section has a key of this hash, as far as that is known without reading pages.
    #[inline]
    pub fn ask(&self, hash: KeyHash) -> Result<Asked> {
        if self.entry.filter_covers {
            let index = match self.index.load_full() {
                Some(index) if index.is_whole() => index,
                _ => self.index()?,
            };
            return match index.runs_of(hash) {
                Some(runs) => Ok(Asked::Runs(Verdict { index, runs })),
                None => self.locate(hash).map(Asked::Pages),
            };
        }
        if !self.may_cover() || self.entry.page_count == 0 {
            return self.locate(hash).map(Asked::Pages);
        }
        let index = match self.index.load_full() {
            Some(index) if index.is_whole() => index,
            _ if self.entry.filter_on_flash => self.index_without_filter()?,
            _ => self.index()?,
        };
        let Some(cluster) = index.cluster() else { return self.locate(hash).map(Asked::Pages) };
        if let Some(runs) = cluster.runs_of(hash) {
            return Ok(Asked::Runs(Verdict { index, runs }));
        }
        if cluster.runs() == 1 {
            // The column of one table costs as much as its page.
            return self.locate_covered(hash).map(Asked::Pages);
        }
        // The directory was checked against the division into columns, and the hash is in the section's range.
        let Some(place) = cluster.column_place(hash) else { return Ok(Asked::Pages(PageList::EMPTY)) };
        let offset = self.entry.filter.offset + place.range.offset;
        let (first, end) =
            (offset / PAGE_BYTES as u64, (offset + place.range.length).div_ceil(PAGE_BYTES as u64));
        let page = u32::try_from(first - self.entry.first_page);
        let Ok(page) = page else { return self.locate_covered(hash).map(Asked::Pages) };
        let read = PageRead { page, count: (end - first).max(1) as u32 };
        let skip = (offset % PAGE_BYTES as u64) as usize;
        Ok(Asked::Column(ColumnRead { index, place, read, skip }))
    }

    /// Evaluates the column that was read into `bytes`.
    pub fn judge(&self, column: ColumnRead, bytes: &[u8], hash: KeyHash) -> Result<Verdict> {
        let ColumnRead { index, place, skip, .. } = column;
        let bytes = bytes.get(skip..).unwrap_or_default();
        let bytes = &bytes[..bytes.len().min(place.range.length as usize)];
        let runs = index.cluster().map_or(0, |cluster| cluster.runs());
        let runs = self.open_column(bytes, place, runs)?.runs_of(hash);
        Ok(Verdict { index, runs })
    }

    /// The pages that may hold a key of hash `hash`, if a filter says that the section may hold it.
    #[inline]
    pub fn locate_covered(&self, hash: KeyHash) -> Result<PageList> {
        if self.entry.page_count == 0 {
            return Ok(PageList::EMPTY);
        }
        let pages = match &*self.index.load() {
            Some(index) => index.locate_unfiltered(hash),
            None => self.index_without_filter()?.locate_unfiltered(hash),
        };
        self.within_pages(pages)
    }

    /// Whether the filter is of a kind that may also answer for tables below.
    #[inline]
    fn may_cover(&self) -> bool {
        let is_cluster = self.entry.layout == Layout::Bucketed && !self.entry.filter_is_static;
        is_cluster || self.entry.filter_covers
    }

    /// Declares that the filter of a table above this one answers for it: its own filter leaves memory.
    pub fn set_covered(&self) {
        self.is_covered.store(true, Ordering::Relaxed);
        self.drop_filter();
    }

    /// The file numbers of the tables for which the filter answers, this one first, and whether the filter stays on
    /// flash. `None` if the filter is not of the kind that may answer for several tables.
    pub fn clustered(&self) -> Result<Option<(Vec<TableId>, bool)>> {
        if !self.may_cover() || self.entry.page_count == 0 {
            return Ok(None);
        }
        let index = self.index_without_filter()?;
        Ok(index.covers().map(|covers| {
            let mut files = vec![self.file_number()];
            files.extend_from_slice(covers);
            (files, self.entry.filter_on_flash)
        }))
    }

    /// Mean bytes of a column of the filter; 0 if columns leave other than `shift` hash bits open.
    pub(crate) fn column_bytes(&self, shift: u32) -> Result<u64> {
        let index = self.index_without_filter()?;
        let columns = index.cluster().map(|filter| filter.columns()).filter(|columns| columns.shift == shift);
        Ok(columns.map_or(0, |columns| self.entry.filter.len / columns.count))
    }

    /// The file numbers of the tables for which the filter answers by naming one of them, this one first. `None`
    /// without such a filter.
    pub fn names_tables(&self) -> Result<Option<Vec<TableId>>> {
        if !self.entry.filter_covers {
            return Ok(None);
        }
        Ok(self.clustered()?.map(|(files, _)| files))
    }

    /// Reads `length` bytes from `offset` of the filter block; they begin at [`Section::filter_skip`] in the buffer.
    pub(crate) fn read_filter(&self, offset: u64, length: u64, buffer: &mut AlignedBuffer) -> Result<()> {
        let start = self.entry.filter.offset + offset - self.filter_skip(offset) as u64;
        let end = (self.entry.filter.offset + offset + length).next_multiple_of(PAGE_BYTES as u64);
        buffer.resize_unspecified((end - start) as usize);
        read_exact(&*self.file, buffer, start)
    }

    /// Position in its page of the byte at `offset` of the filter block.
    pub(crate) fn filter_skip(&self, offset: u64) -> usize {
        ((self.entry.filter.offset + offset) % PAGE_BYTES as u64) as usize
    }

    /// Opens the column at `place` from its bytes; it has this number of filters.
    pub(crate) fn open_column<'a>(
        &self,
        bytes: &'a [u8],
        place: ColumnPlace,
        runs: u32,
    ) -> Result<Column<'a>> {
        let column = Column::open(bytes, place.number)
            .map_err(|corruption| self.within_filter(place.range.offset, corruption))?;
        if column.runs() != runs {
            let (expected, found) = (format!("{runs} filters"), column.runs().to_string());
            let corruption = Corruption::new("column", 9, expected, found);
            return Err(self.within_filter(place.range.offset, corruption).into());
        }
        Ok(column)
    }

    /// Converts the offsets of `corruption` from those within a column at `offset` of the filter block to those in the
    /// file.
    #[cold]
    pub(crate) fn within_filter(&self, offset: u64, corruption: Corruption) -> Corruption {
        corruption.within(self.file.name(), self.entry.filter.offset + offset)
    }
}
