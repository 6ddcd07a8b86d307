//! [`ClusterBuilder`]: makes the filter of a table in buckets, with the filters of the tables below it.

use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash, TableId};
use alluvium_index::bloom_cluster::{ClusterWriter, ColumnBuilder, Packing, RUNS_MAX};
use alluvium_io::AlignedBuffer;

use crate::cluster_filter::ColumnPlace;
use crate::columns::Columns;
use crate::error::Result;
use crate::index::SectionIndex;
use crate::section::Section;

/// Bytes of a filter block that are read at a time while it is copied.
const READ_BYTES: u64 = 256 << 10;
/// Maximum mean bytes of a column on flash. A column is read at once, and its bytes vary, so that with this mean most
/// columns fit in a page.
const COLUMN_BYTES_MAX: u64 = 3 << 10;
/// Minimum columns of all hashes on flash, as a number of bits: columns of small data last until there are some 20 M
/// items.
const COLUMN_BITS_MIN: u32 = 14;
/// Minimum items of a new table in a column that it takes over, as a share of the intended number; in memory, also the
/// inverse of the maximum.
const COLUMN_SHARE_MIN_BITS: u32 = 2;

/// How the filter of a table in buckets is made.
#[derive(Clone, Debug)]
pub struct ClusterSpec {
    /// Bits per item, 1 to 32.
    pub bits_per_key: u8,
    /// Approximate number of items of a column in a table.
    pub column_items: u64,
    /// Whether lookups read the filter column by column from flash. Otherwise it is in memory.
    pub on_flash: bool,
    /// Tables whose filters it takes over, young to old, with the tables that those cover. They are directly below the
    /// new table wherever it will be placed.
    pub below: Vec<Head>,
    /// The youngest table below it whose filter is on flash, if its own filter is in memory until a later table takes
    /// both over: it keeps that table's columns.
    pub like: Option<Arc<Section>>,
}

/// A table whose filter answers for some tables, the table itself included.
#[derive(Clone, Debug)]
pub struct Head {
    /// The table.
    pub section: Arc<Section>,
    /// Number of these tables that are still there; the oldest may be gone.
    pub tables: usize,
}

/// Gathers hashes and makes the filter of a section.
#[derive(Debug)]
pub(super) struct ClusterBuilder {
    spec: ClusterSpec,
    range: (u64, u64),
    hashes: Vec<KeyHash>,
}

/// The result of [`ClusterBuilder::finish`].
#[derive(Debug)]
pub(super) struct MadeCluster {
    /// The second part of the index block.
    pub header: Vec<u8>,
    /// The filter block.
    pub columns: Vec<u8>,
    pub on_flash: bool,
}

impl ClusterSpec {
    /// The columns for `items` items of this range: those of the tables below if they fit, so that their filters can be
    /// taken over, otherwise columns of the intended number of items.
    fn columns(&self, range: (u64, u64), items: u64) -> Result<Columns> {
        let goes_to_flash = self.on_flash || self.like.is_some();
        let mut own = Columns::for_items(range, items, self.column_items);
        if goes_to_flash {
            own = Columns::new(range, own.shift.min(u64::BITS - COLUMN_BITS_MIN));
        }
        let Some(below) = self.like.as_ref().or_else(|| self.below.first().map(|head| &head.section)) else {
            return Ok(own);
        };
        let index = below.index_without_filter()?;
        let Some(filter) = index.cluster() else { return Ok(own) };
        let kept = Columns::new(range, filter.columns().shift);
        let is_dense_enough = kept.shift + COLUMN_SHARE_MIN_BITS >= own.shift;
        let is_small_enough = match goes_to_flash {
            true => {
                // Data grow, and each table is larger than those below it: its part of a column, too.
                let taken_over = self.below.iter().map(|head| &head.section).chain(&self.like);
                let bytes =
                    taken_over.map(|section| section.column_bytes(kept.shift)).sum::<Result<u64>>()?;
                bytes + items * u64::from(self.bits_per_key) / 8 / kept.count <= COLUMN_BYTES_MAX
            }
            false => kept.shift <= own.shift + COLUMN_SHARE_MIN_BITS,
        };
        Ok(if is_dense_enough && is_small_enough { kept } else { own })
    }
}

impl ClusterBuilder {
    pub fn new(spec: ClusterSpec, range: (u64, u64), items_expected: u64) -> Self {
        Self { spec, range, hashes: Vec::with_capacity(items_expected as usize) }
    }

    /// Adds an item. Equal hashes follow each other.
    #[inline]
    pub fn push(&mut self, hash: KeyHash) {
        if self.hashes.last() != Some(&hash) {
            self.hashes.push(hash);
        }
    }

    /// The number stored in the directory of the file.
    pub fn bits_per_key(&self) -> u8 {
        self.spec.bits_per_key
    }

    /// Copies the filters of the tables below and adds those of the items. Reads the filters below that are not in
    /// memory.
    pub fn finish(self) -> Result<MadeCluster> {
        let Self { spec, range, hashes } = self;
        let columns = spec.columns(range, hashes.len() as u64)?;
        let mut readers = Vec::new();
        let mut runs_left = RUNS_MAX - 1;
        for head in &spec.below {
            let reader = ColumnReader::new(head, spec.bits_per_key)?;
            let Some(reader) = reader.filter(|reader| reader.kept() <= runs_left) else { break };
            if reader.columns.shift != columns.shift || !reader.holds(&columns) {
                break;
            }
            runs_left -= reader.kept();
            readers.push(reader);
        }
        let packing = if spec.on_flash { Packing::Pages } else { Packing::Dense };
        let mut writer = ClusterWriter::new(packing);
        let mut builder = ColumnBuilder::new(spec.bits_per_key.into());
        let mut out = Vec::new();
        let mut rest = &hashes[..];
        for number in 0..columns.count {
            builder.clear();
            for reader in readers.iter_mut().rev() {
                reader.copy_to(columns.first + number, &mut builder)?;
            }
            let end = rest.partition_point(|hash| columns.column(*hash) <= number);
            let (here, later) = rest.split_at(end);
            builder.add(here);
            rest = later;
            writer.push(&builder, &mut out);
        }
        let directory = writer.finish();
        let covers: Vec<TableId> = readers.iter().flat_map(|reader| reader.files.iter().copied()).collect();
        let mut header = Vec::new();
        header.extend_from_slice(&u64::from(columns.shift).to_le_bytes());
        header.extend_from_slice(&(covers.len() as u64).to_le_bytes());
        covers.iter().for_each(|file| header.extend_from_slice(&file.0.to_le_bytes()));
        header.extend_from_slice(&directory.to_bytes());
        Ok(MadeCluster { header, columns: out, on_flash: spec.on_flash })
    }
}

/// Reads the columns of a table's filter in order: from memory, or from flash several at a time.
struct ColumnReader<'s> {
    section: &'s Section,
    index: Arc<SectionIndex>,
    columns: Columns,
    runs: u32,
    /// File numbers of the table and of those that its filter covers, as far as they are still there.
    files: Vec<TableId>,
    buffer: AlignedBuffer,
    /// The part of the filter block that is in the buffer.
    buffered: std::ops::Range<u64>,
}

impl<'s> ColumnReader<'s> {
    /// Returns `None` for a table without such a filter, or with a different number of bits.
    fn new(head: &'s Head, bits_per_key: u8) -> Result<Option<Self>> {
        let section = &head.section;
        let index = section.index_without_filter()?;
        let Some(filter) = index.cluster() else { return Ok(None) };
        if section.entry().filter_tag_bits != bits_per_key {
            return Ok(None);
        }
        let mut files = vec![section.file_number()];
        files.extend_from_slice(filter.covers());
        files.truncate(head.tables);
        Ok(Some(Self {
            section,
            columns: filter.columns(),
            runs: filter.runs(),
            files,
            index,
            buffer: AlignedBuffer::new(),
            buffered: 0..0,
        }))
    }

    /// Number of filters that are copied.
    fn kept(&self) -> u32 {
        self.files.len() as u32
    }

    /// Whether the table has every column of `others`.
    fn holds(&self, others: &Columns) -> bool {
        self.columns.first <= others.first
            && others.first + others.count <= self.columns.first + self.columns.count
    }

    /// Adds the filters of the column with this number, counted over all hashes.
    fn copy_to(&mut self, number: u64, builder: &mut ColumnBuilder) -> Result<()> {
        let number = number - self.columns.first;
        let gone = self.runs - self.kept();
        let keeps = |run: u32| run >= gone;
        let Some(filter) = self.index.cluster() else { return Ok(()) };
        if let Some(cluster) = filter.in_memory() {
            if let Some(column) = cluster.column(number) {
                builder.copy(&column, keeps);
            }
            return Ok(());
        }
        let Some(range) = filter.directory().column(number) else { return Ok(()) };
        let end = range.offset + range.length;
        if range.offset < self.buffered.start || end > self.buffered.end {
            let length = range.length.max(READ_BYTES).min(self.section.entry().filter.len - range.offset);
            self.section.read_filter(range.offset, length, &mut self.buffer)?;
            self.buffered = range.offset..range.offset + length;
        }
        let start = (range.offset - self.buffered.start) as usize;
        let start = self.section.filter_skip(self.buffered.start) + start;
        let bytes = &self.buffer[start..start + range.length as usize];
        let column = self.section.open_column(bytes, ColumnPlace { number, range }, self.runs)?;
        if column.probes() == builder.probes() {
            builder.copy(&column, keeps);
            return Ok(());
        }
        let (expected, found) = (format!("{} probes", builder.probes()), column.probes().to_string());
        Err(self.section.within_filter(range.offset, Corruption::new("column", 8, expected, found)).into())
    }
}
