//! [`ClusterFilter`]: the Bloom filter of a table in buckets and of the tables below it (LSM-trie's BloomCluster, Wu's
//! thesis, §4.2.4.3).
//!
//! The filter is divided into *columns* by leading hash bits, the same for all tables that share it. A column contains,
//! from the filter of each table, the part for its hashes, so one read shows which of the tables may hold a key. A new
//! table above others copies their columns into its own filter and records their file numbers: the tables below a table
//! in its level never change while the table counts there. Filters that are read together are therefore one block of
//! the youngest of their tables, in memory or on flash, and need no file of their own.
//!
//! ```text
//! index block of a table in buckets:
//! 0  8  length of the bucket directory
//! 8     the bucket directory (see `alluvium_index::bucketed`)
//!    8  hash bits after those that determine the column
//!    8  number of tables covered other than this one
//!    8  for each, young to old: number of its file
//!       the directory of the columns (see `alluvium_index::bloom_cluster`), which are the filter block
//! ```

use std::sync::Arc;

use alluvium_base::{Corruption, KeyHash};
use alluvium_index::bloom_cluster::{
    BloomCluster, ClusterDirectory, ClusterWriter, ColumnBuilder, ColumnRange, Packing, RUNS_MAX, RunSet,
};
use alluvium_io::AlignedBuffer;

use crate::error::Result;
use crate::frame::u64_at;
use crate::index::SectionIndex;
use crate::section::Section;

/// Bytes of a filter block that are read at a time while it is copied.
const READ_BYTES: u64 = 256 << 10;

/// How the filter of a table in buckets is made.
#[derive(Clone, Debug)]
pub struct ClusterSpec {
    /// Bits per item, 1 to 32.
    pub bits_per_key: u8,
    /// Approximate number of items of a column in a table.
    pub column_items: u64,
    /// Whether lookups read the filter column by column from flash. Otherwise it is in memory.
    pub on_flash: bool,
    /// Tables whose filters it takes over, young to old, with all tables that those cover. They are directly below the
    /// new table wherever it will be placed.
    pub below: Vec<Arc<Section>>,
}

/// The division of a range of hashes into columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Columns {
    /// Number of the first column, counted over all hashes.
    first: u64,
    count: u64,
    /// Number of hash bits after those that determine the column, less than 64.
    shift: u32,
}

impl Columns {
    fn new((low, high): (u64, u64), shift: u32) -> Self {
        Self { first: low >> shift, count: ((high >> shift) - (low >> shift)).saturating_add(1), shift }
    }

    /// Columns of approximately `column_items` items each, for `items` items in all.
    fn for_items((low, high): (u64, u64), items: u64, column_items: u64) -> Self {
        let columns = items.div_ceil(column_items).max(1);
        let width = ((high - low) / columns).max(1);
        // The nearest power of two: 0.7 to 1.4 times as many items.
        let shift = (width as f64).log2().round() as u32;
        Self::new((low, high), shift.min(63))
    }

    /// The column of a hash of the range.
    #[inline]
    fn column(&self, hash: KeyHash) -> u64 {
        (hash.high() >> self.shift).wrapping_sub(self.first)
    }
}

/// The filter of a table and of those it covers, or where on flash it is.
#[derive(Clone, Debug)]
pub(super) struct ClusterFilter {
    columns: Columns,
    /// File numbers of the covered tables other than this one, young to old.
    covers: Vec<u64>,
    place: Place,
}

#[derive(Clone, Debug)]
enum Place {
    Memory(BloomCluster),
    Flash(ClusterDirectory),
}

/// The position of a column to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ColumnPlace {
    pub number: u64,
    pub range: ColumnRange,
}

impl ClusterFilter {
    /// Decodes the second part of the index block and the filter block, which is empty if the filter is on flash.
    pub fn decode(bytes: &[u8], range: (u64, u64), filter: &[u8]) -> std::result::Result<Self, Corruption> {
        let bad = |expected: &str, found: String| Err(Corruption::new("index", 0, expected, found));
        if bytes.len() < 16 {
            return bad("columns of a filter", format!("{} bytes", bytes.len()));
        }
        let (shift, covered) = (u64_at(bytes, 0), u64_at(bytes, 8));
        if shift > 63 || covered >= u64::from(RUNS_MAX) {
            return bad("a cut of hashes into columns", format!("{shift} bits, {covered} tables"));
        }
        let Some((files, directory)) = bytes[16..].split_at_checked(8 * covered as usize) else {
            return bad("files covered", format!("{} bytes", bytes.len() - 16));
        };
        let covers: Vec<u64> = files.chunks_exact(8).map(|file| u64_at(file, 0)).collect();
        let columns = Columns::new(range, shift as u32);
        let at = (16 + files.len()) as u64;
        let directory = ClusterDirectory::from_bytes(directory).map_err(|error| error.within("index", at))?;
        if directory.buckets() != columns.count || u64::from(directory.runs()) != covered + 1 {
            let expected = format!("{} columns of {} filters", columns.count, covered + 1);
            return bad(&expected, format!("{} of {}", directory.buckets(), directory.runs()));
        }
        let place = match filter {
            [] => Place::Flash(directory),
            bytes => Place::Memory(BloomCluster::from_parts(directory, bytes.to_vec())?),
        };
        Ok(Self { columns, covers, place })
    }

    /// The same filter without what can be read from flash.
    pub fn away(&self) -> Self {
        Self { place: Place::Flash(self.directory().clone()), covers: self.covers.clone(), ..*self }
    }

    #[inline]
    pub fn is_in_memory(&self) -> bool {
        matches!(self.place, Place::Memory(_))
    }

    /// File numbers of the covered tables other than this one, young to old.
    #[inline]
    pub fn covers(&self) -> &[u64] {
        &self.covers
    }

    /// Number of tables covered, this one included.
    #[inline]
    pub fn runs(&self) -> u32 {
        self.directory().runs()
    }

    fn directory(&self) -> &ClusterDirectory {
        match &self.place {
            Place::Memory(cluster) => cluster.directory(),
            Place::Flash(directory) => directory,
        }
    }

    /// The tables that may hold a key: the oldest covered table is number 0, this one the last. Returns `None` if the
    /// filter is not in memory.
    #[inline]
    pub fn runs_of(&self, hash: KeyHash) -> Option<RunSet> {
        match &self.place {
            Place::Memory(cluster) => Some(cluster.runs_of(self.columns.column(hash), hash)),
            Place::Flash(_) => None,
        }
    }

    /// The position in the filter block of the hash's column, or `None` if it has no column.
    pub fn column_place(&self, hash: KeyHash) -> Option<ColumnPlace> {
        let number = self.columns.column(hash);
        Some(ColumnPlace { number, range: self.directory().column(number)? })
    }

    /// Starts loading the column of the hash.
    #[inline]
    pub fn prefetch(&self, hash: KeyHash) {
        if let Place::Memory(cluster) = &self.place {
            cluster.prefetch(self.columns.column(hash));
        }
    }

    /// Bytes of memory of the filter, and of what says where the filter is stored.
    pub fn memory_bytes(&self) -> (u64, u64) {
        let known = (size_of::<Self>() + self.covers.capacity() * 8) as u64;
        match &self.place {
            Place::Memory(cluster) => (cluster.memory_bytes(), known),
            Place::Flash(directory) => (0, known + directory.memory_bytes()),
        }
    }
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
        let mut columns = Columns::for_items(range, hashes.len() as u64, spec.column_items);
        let mut readers = Vec::new();
        let mut runs_left = RUNS_MAX - 1;
        for section in &spec.below {
            let reader = ColumnReader::new(section, spec.bits_per_key)?;
            let Some(reader) = reader.filter(|reader| reader.runs <= runs_left) else { break };
            // Columns of a quarter to four times the intended number of items are kept; otherwise filters are begun
            // anew.
            if readers.is_empty() && reader.columns.shift.abs_diff(columns.shift) <= 2 {
                columns = Columns::new(range, reader.columns.shift);
            }
            if reader.columns.shift != columns.shift || !reader.holds(&columns) {
                break;
            }
            runs_left -= reader.runs;
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
        let covers: Vec<u64> = readers.iter().flat_map(|reader| reader.files.iter().copied()).collect();
        let mut header = Vec::new();
        header.extend_from_slice(&u64::from(columns.shift).to_le_bytes());
        header.extend_from_slice(&(covers.len() as u64).to_le_bytes());
        covers.iter().for_each(|file| header.extend_from_slice(&file.to_le_bytes()));
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
    /// File numbers of the table and of those that its filter covers.
    files: Vec<u64>,
    buffer: AlignedBuffer,
    /// The part of the filter block that is in the buffer.
    buffered: std::ops::Range<u64>,
}

impl<'s> ColumnReader<'s> {
    /// Returns `None` for a table without such a filter, or with a different number of bits.
    fn new(section: &'s Section, bits_per_key: u8) -> Result<Option<Self>> {
        let index = section.index_without_filter()?;
        let Some(filter) = index.cluster() else { return Ok(None) };
        if section.entry().filter_tag_bits != bits_per_key {
            return Ok(None);
        }
        let mut files = vec![section.file_number()];
        files.extend_from_slice(filter.covers());
        Ok(Some(Self {
            section,
            columns: filter.columns,
            runs: filter.runs(),
            files,
            index,
            buffer: AlignedBuffer::new(),
            buffered: 0..0,
        }))
    }

    /// Whether the table has every column of `others`.
    fn holds(&self, others: &Columns) -> bool {
        self.columns.first <= others.first
            && others.first + others.count <= self.columns.first + self.columns.count
    }

    /// Adds the filters of the column with this number, counted over all hashes.
    fn copy_to(&mut self, number: u64, builder: &mut ColumnBuilder) -> Result<()> {
        let number = number - self.columns.first;
        let Some(filter) = self.index.cluster() else { return Ok(()) };
        if let Place::Memory(cluster) = &filter.place {
            if let Some(column) = cluster.column(number) {
                builder.copy(&column, |_| true);
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
            builder.copy(&column, |_| true);
            return Ok(());
        }
        let (expected, found) = (format!("{} probes", builder.probes()), column.probes().to_string());
        Err(self.section.within_filter(range.offset, Corruption::new("column", 8, expected, found)).into())
    }
}
