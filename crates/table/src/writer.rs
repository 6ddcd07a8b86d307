//! [`TableWriter`]: streams a table file to storage, section by section.

use alluvium_base::{KeyHash, TableId, checksum::checksum64};
use alluvium_index::hash_filter::HashFilter;
use alluvium_io::Storage;

use crate::bucket_group::GroupBuilder;
use crate::directory::{self, BlockHandle, IndexKind, SectionEntry};
use crate::error::{Error, Result};
use crate::expiry::{ExpiryMarks, ExpirySample};
use crate::filter_builder::FilterBuilder;
use crate::frame::{Identity, TRAILER_BYTES, Trailer, encode_header};
use crate::hash_marks::{HashMarks, HashMarksBuilder};
use crate::index_builder::{IndexBuilder, SortedIndex};
use crate::item::EncodedItem;
use crate::name_builder::NameBuilder;
use crate::output::{Output, OutputOptions};
use crate::page::{ITEM_BYTES_MAX, Layout, PAGE_BYTES, page_seed, page_tag};
use crate::page_builder::{Cut, PageBuilder};
use crate::section_spec::SectionSpec;
use crate::segment_span::SegmentSpan;
use crate::totals::Totals;
use crate::unsynced_table::{TableInfo, UnsyncedTable};

/// Writes a table file: sections one after another, each with its items in order, then [`TableWriter::finish`].
///
/// Items are written through a buffer, usually 1 MiB, with aligned writes; indexes of sections stay in memory until the
/// end of the file. A writer that is dropped unfinished leaves a file without a trailer, which no reader accepts and
/// the caller removes. So does a writer that returned an error, which must not be used further.
#[derive(Debug)]
pub struct TableWriter {
    output: Output,
    identity: Identity,
    finished: Vec<FinishedSection>,
    pub(super) section: Option<OpenSection>,
    segments: SegmentSpan,
}

#[derive(Debug)]
pub(super) struct FinishedSection {
    pub(super) entry: SectionEntry,
    pub(super) filter: Vec<u8>,
    pub(super) index: Vec<u8>,
}

#[derive(Debug)]
pub(super) struct OpenSection {
    pub(super) entry: SectionEntry,
    pub(super) filter: FilterBuilder,
    pub(super) index: IndexBuilder,
    page: PageBuilder,
    /// In bucketed layout, the items to be written to buckets.
    pub(super) group: Option<Box<GroupBuilder>>,
    /// The position at which a full page ends: after the last item whose group is complete.
    cut: Cut,
    /// Group of the last item.
    last_group: u128,
    /// Encoded length of the last item.
    last_len: usize,
    pub(super) expiry: ExpirySample,
    marks: HashMarksBuilder,
    /// The names of prefixes, if the keyspace lists them.
    names: Option<NameBuilder>,
}

impl TableWriter {
    /// Creates the file `name`, which must not exist.
    pub fn create(storage: &dyn Storage, name: &str, file_number: TableId) -> Result<Self> {
        Self::create_with(storage, name, file_number, OutputOptions::default())
    }

    /// Like [`TableWriter::create`], with three buffers of `options.write_bytes` instead of 1 MiB.
    pub fn create_with(
        storage: &dyn Storage,
        name: &str,
        file_number: TableId,
        options: OutputOptions,
    ) -> Result<Self> {
        let mut output = Output::create(storage, name, options)?;
        let identity = Identity::new(file_number);
        output.append(&encode_header(identity))?;
        output.pad_page_but(0)?;
        Ok(Self { output, identity, finished: Vec::new(), section: None, segments: SegmentSpan::UNKNOWN })
    }

    /// Sets the log segments from which the items of the following sections come.
    pub fn set_segments(&mut self, segments: SegmentSpan) {
        self.segments = segments;
    }

    /// Begins a section in the order of the slots of `filter`. Every occupied slot gets an item.
    ///
    /// # Panics
    /// When a section is open.
    pub fn begin_hash_section(&mut self, spec: SectionSpec, filter: HashFilter) {
        self.begin(spec, Layout::Hash, IndexBuilder::slots(), FilterBuilder::Made(filter));
    }

    /// Begins a section in the order of (hash, key), indexed by `index`. The number of pages, estimated by
    /// [`crate::pages_expected`], determines the resolution of fences; it need not be exact.
    ///
    /// # Panics
    /// When a section is open.
    pub fn begin_sorted_section(&mut self, spec: SectionSpec, index: SortedIndex, pages_expected: u64) {
        let is_semi_sorted = spec.hasher.is_semi_sorted();
        let index = IndexBuilder::sorted(index, spec.range, pages_expected, is_semi_sorted);
        self.begin(spec, Layout::Sorted, index, FilterBuilder::None);
    }

    pub(super) fn begin(
        &mut self,
        spec: SectionSpec,
        layout: Layout,
        index: IndexBuilder,
        filter: FilterBuilder,
    ) {
        assert!(self.section.is_none(), "the section before was not finished");
        assert!(spec.range.low <= spec.range.high, "an empty range of hashes");
        let entry = SectionEntry {
            keyspace: spec.keyspace,
            layout,
            hasher: spec.hasher,
            range: spec.range,
            first_page: self.output.position() / PAGE_BYTES as u64,
            page_count: 0,
            name_page_count: 0,
            items_go_on: false,
            filter_on_flash: false,
            filter_covers: false,
            filter_knows_prefixes: false,
            filter_is_static: false,
            filter_is_fragments: false,
            level: u8::try_from(spec.level).ok(),
            plan_number: spec.plan_number,
            totals: Totals::default(),
            index_kind: IndexKind::None,
            filter_tag_bits: 0,
            filter: BlockHandle::default(),
            index: BlockHandle::default(),
            segments: self.segments,
            expiry: ExpiryMarks::NONE,
            marks: HashMarks::NONE,
        };
        let page = PageBuilder::default();
        let (cut, expiry, marks) = (Cut::default(), ExpirySample::default(), HashMarksBuilder::default());
        self.section = Some(OpenSection {
            entry,
            filter,
            index,
            page,
            group: None,
            cut,
            last_group: 0,
            last_len: 0,
            expiry,
            marks,
            names: spec.hasher.lists_prefixes().then(NameBuilder::default),
        });
    }

    /// Appends an item to a section of hash layout. Slots ascend; a key is written once.
    ///
    /// # Errors
    /// [`Error::ItemTooLarge`]: the section cannot be finished without the item of an occupied slot.
    ///
    /// # Panics
    /// If no section of hash layout is open. In debug builds also if slots do not ascend or the hash is out of range.
    #[inline]
    pub fn push_slot(&mut self, slot: u32, hash: KeyHash, item: &EncodedItem<'_>) -> Result<()> {
        self.push_in_group(u128::from(slot), Layout::Hash, hash, item)
    }

    /// Appends an item to a section of sorted or bucketed layout. Hashes ascend; with equal hashes keys ascend.
    ///
    /// # Errors
    /// [`Error::ItemTooLarge`]; the section may be continued without the item.
    ///
    /// # Panics
    /// If no section of sorted layout is open. In debug builds also if hashes do not ascend or one is out of range.
    #[inline]
    pub fn push(&mut self, hash: KeyHash, item: &EncodedItem<'_>) -> Result<()> {
        let section = self.section.as_mut().expect("an open section");
        if section.group.is_some() {
            return section.push_bucketed(&mut self.output, self.identity, hash, item);
        }
        let group = section.index.group(hash);
        self.push_in_group(group, Layout::Sorted, hash, item)
    }

    /// A page ends only between two groups, unless one group fills it, so that a lookup has one page to read. The last
    /// item of a page's last group may continue in the next page, which a lookup of the group then reads as well.
    #[inline]
    fn push_in_group(
        &mut self,
        group: u128,
        layout: Layout,
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
        let section = self.section.as_mut().expect("an open section");
        assert_eq!(section.entry.layout, layout, "the layout of the open section");
        debug_assert!(section.entry.range.contains(hash.0));
        debug_assert!(
            section.entry.totals.item_count == 0
                || group > section.last_group
                || (group == section.last_group && layout == Layout::Sorted),
            "items come in the order of their layout"
        );
        if group != section.last_group {
            if section.page.is_overfull() {
                section.cut_behind_all();
                section.end_page(&mut self.output, self.identity)?;
            }
            section.cut_behind_all();
            section.last_group = group;
        }
        while !section.page.fits(encoded_len) && !section.goes_on(encoded_len) {
            if section.cut.items == 0 {
                section.cut_within_group();
            }
            section.end_page(&mut self.output, self.identity)?;
        }
        section.last_len = encoded_len;
        section.filter.push(section.entry.hasher, hash, encoded.item.key)?;
        section.page.push(page_tag(hash), encoded.bytes);
        section.index.push(if layout == Layout::Hash { KeyHash(group << 64) } else { hash });
        if section.entry.hasher.is_semi_sorted() {
            section.marks.push(hash.0);
        }
        if let Some(names) = &mut section.names {
            names.push(&section.entry.hasher, &encoded.item);
        }
        section.entry.totals.add(&encoded.item);
        if let Some(expires_at_ms) = encoded.item.expires_at_ms {
            section.expiry.push(expires_at_ms);
        }
        Ok(())
    }

    /// Ends the open section. A section without items takes no pages.
    ///
    /// # Panics
    /// If no section is open, or if one of hash layout does not have as many items as its filter has occupied slots.
    pub fn finish_section(&mut self) -> Result<()> {
        let mut section = self.section.take().expect("an open section");
        if let (Layout::Hash, FilterBuilder::Made(filter)) = (section.entry.layout, &section.filter) {
            assert_eq!(
                filter.len() as u64,
                section.entry.totals.item_count,
                "an item for every occupied slot"
            );
        }
        while section.page.len() > 0 {
            // No page follows in which an item could continue.
            if !section.page.is_overfull() {
                section.cut_behind_all();
            } else if section.cut.items == 0 {
                section.cut_within_group();
            }
            section.end_page(&mut self.output, self.identity)?;
        }
        section.end_group(KeyHash(section.entry.range.high).high(), &mut self.output, self.identity)?;
        if let Some(names) = section.names {
            let (hasher, seed) = (&section.entry.hasher, self.identity.seed);
            section.entry.name_page_count = names.write(hasher, &mut self.output, seed)?;
        }
        section.entry.expiry = section.expiry.finish();
        section.entry.marks = section.marks.finish();
        let mut finished = FinishedSection { entry: section.entry, filter: Vec::new(), index: Vec::new() };
        if finished.entry.page_count > 0 {
            match (section.group, section.filter) {
                (Some(group), filter) => finished.set_buckets(*group, filter)?,
                (_, FilterBuilder::Covering(filter)) => finished.set_covering(section.index, filter)?,
                (_, filter) => {
                    let (kind, index, filter) = section.index.finish_with(filter);
                    (finished.entry.index_kind, finished.index) = (kind, index);
                    finished.set_own_filter(filter);
                }
            }
        }
        self.finished.push(finished);
        Ok(())
    }

    /// Writes indexes, directory and trailer. The caller syncs the file, then the directory of files.
    ///
    /// # Panics
    /// When a section is open.
    pub fn finish(mut self) -> Result<UnsyncedTable> {
        assert!(self.section.is_none(), "the last section was not finished");
        let finished = std::mem::take(&mut self.finished);
        let mut entries = Vec::with_capacity(finished.len());
        for FinishedSection { mut entry, filter, index } in finished {
            entry.filter = self.append_block(&filter)?;
            entry.index = self.append_block(&index)?;
            entries.push(entry);
        }
        let directory = directory::encode(&entries);
        let trailer = Trailer {
            identity: self.identity,
            directory_offset: self.output.position(),
            directory_len: directory.len() as u64,
            directory_checksum: checksum64(&directory, self.identity.seed),
        };
        self.output.append(&directory)?;
        // The trailer ends a page, so that the whole file is aligned.
        self.output.pad_page_but(TRAILER_BYTES)?;
        self.output.append(&trailer.encode())?;
        let file_bytes = self.output.position();
        let info = TableInfo {
            file_number: self.identity.file_number,
            file_bytes,
            section_count: entries.len(),
            item_count: entries.iter().map(|entry| entry.totals.item_count).sum(),
        };
        Ok(UnsyncedTable { file: self.output.end()?, info })
    }

    fn append_block(&mut self, bytes: &[u8]) -> Result<BlockHandle> {
        if bytes.is_empty() {
            return Ok(BlockHandle::default());
        }
        let offset = self.output.position();
        self.output.append(bytes)?;
        let checksum = checksum64(bytes, self.identity.seed ^ offset);
        Ok(BlockHandle { offset, len: bytes.len() as u64, checksum })
    }
}

impl OpenSection {
    /// Whether an item that does not fit continues in the next page.
    #[inline]
    fn goes_on(&self, encoded_len: usize) -> bool {
        let Cut { items, body_len } = self.cut;
        !self.page.is_overfull() && self.page.takes_head(encoded_len, items, body_len)
    }

    fn cut_behind_all(&mut self) {
        self.cut = Cut { items: self.page.len(), body_len: self.page.body_len() };
    }

    /// Cuts the page that one group fills after the last item that fits completely, at least one.
    ///
    /// Fences identify a page that begins with such a group by the group's cell. A page that begins with the rest of an
    /// item is identified by that item's cell, so then the page ends at once and the group begins on the next one.
    fn cut_within_group(&mut self) {
        if self.page.goes_on() && self.index.kind() == IndexKind::PageFences {
            self.cut = Cut::default();
            return;
        }
        self.cut_behind_all();
        if self.page.is_overfull() {
            self.cut.items -= 1;
            self.cut.body_len -= self.last_len;
        }
    }

    /// Ends the page at the cut and keeps the items after it for the next one.
    fn end_page(&mut self, output: &mut Output, identity: Identity) -> Result<()> {
        let Some(page_count) = self.entry.page_count.checked_add(1) else {
            return Err(Error::SectionTooLarge { pages: self.entry.page_count.into() });
        };
        let Cut { items, body_len } = self.cut;
        let (page, layout) = (&mut self.page, self.entry.layout);
        let used = output.append_page(|number, bytes| {
            page.seal(items, body_len, layout, page_seed(identity.seed, number), bytes)
        })?;
        let goes_on = self.page.goes_on();
        self.index.end_page(items, goes_on);
        self.entry.items_go_on |= goes_on;
        self.entry.totals.used_bytes += used as u64;
        self.entry.page_count = page_count;
        self.cut = Cut::default();
        Ok(())
    }
}
