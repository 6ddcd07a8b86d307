//! `alluvium import`.

use std::collections::HashMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::num::NonZeroU64;
use std::path::{Path, PathBuf};
use std::time::Instant;

use alluvium::{Db, Durability, Error, Ingest, Keyspace, Metadata};
use alluvium_transfer::{Entry, Format, KeyspaceHead, Position, ReadError, Record, RecordReader};
use indicatif::ProgressBar;
use serde_json::json;

use crate::database::{self, Database, OrderOptions};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keyspace_head;
use crate::output::{self, JsonOption};
use crate::progress;
use crate::resume::{Import, Progress};
use crate::transfer_format::FormatOption;

const BUFFER_BYTES: usize = 1 << 20;
/// Number of records between two updates of the progress bar.
const PROGRESS_RECORDS: u64 = 1024;
const DEFAULT_KEYSPACE: &str = "default";
const STANDARD_INPUT: &str = "standard input";

/// Options of `import`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    database: Database,
    /// Store all records in this keyspace; by default, each in the keyspace that it names, or in "default"
    #[arg(long, short, value_name = "NAME")]
    keyspace: Option<String>,
    #[command(flatten)]
    order: OrderOptions,
    #[command(flatten)]
    format: FormatOption,
    /// File to read; standard input by default
    #[arg(long, short, value_name = "FILE")]
    input: Option<PathBuf>,
    /// Record in this file how far the import is durable, and continue from there if the file exists
    #[arg(long, value_name = "FILE", requires = "input")]
    resume: Option<PathBuf>,
    /// Make records durable after this many; in bulk, at least after as many as are already stored
    #[arg(long, value_name = "RECORDS", default_value = "100000")]
    persist_every: NonZeroU64,
    /// Load in bulk, directly into tables: keyspaces that were empty, all, or none
    #[arg(long, value_enum, default_value = "auto")]
    bulk: Bulk,
    #[command(flatten)]
    output: JsonOption,
}

/// When records are written directly into tables.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Bulk {
    /// Into keyspaces that are empty before the import
    Auto,
    /// Always, except that few records compared with those already stored are written in the ordinary way
    Always,
    /// Never
    Never,
}

/// Stores the records of a file. Creates the database and keyspaces as needed; keyspaces are created as the file
/// describes them unless options override that. All records before an error in the input are stored.
pub fn run(options: &Options) -> Result<(), Failure> {
    let start = Instant::now();
    let format = options.format.of(options.input.as_deref());
    let (first, last) = match &options.input {
        Some(path) => from_file(options, format, path)?,
        None => {
            let input = BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock());
            let reader = RecordReader::new(format, input, STANDARD_INPUT)?;
            let bar = progress::spinner("storing records");
            let db = options.database.open(true, Durability::Buffered)?;
            (0, Importer::new(options, &db, STANDARD_INPUT, None)?.run(reader, &bar)?)
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let object = json!({"records": last - first, "records_before": first, "seconds": seconds});
    options.output.print(&object, || {
        let before = if first > 0 { format!(", {first} before") } else { String::new() };
        format!("{} records stored in {seconds:.1} s{before}\n", last - first)
    })
}

/// Imports a file; returns how many records were stored before, and how many are stored now.
fn from_file(options: &Options, format: Format, path: &Path) -> Result<(u64, u64), Failure> {
    let name = path.display().to_string();
    let file = File::open(path).map_err(|source| ReadError::Io { file: name.clone(), source })?;
    let bar = progress::bytes(file.metadata()?.len());
    let input = BufReader::with_capacity(BUFFER_BYTES, file);
    let mut reader = RecordReader::new(format, input, &name)?;
    let saved = options.resume.as_deref().map(Progress::read).transpose()?.flatten();
    // If records were stored before, the database must exist.
    let db = options.database.open(saved.is_none(), Durability::Buffered)?;
    let mut target = None;
    let mut first = 0;
    let is_resumed = saved.is_some();
    if let Some(resume) = &options.resume {
        let (database, input) = (options.database.canonical()?, database::canonical(path)?);
        if let Some(saved) = &saved {
            saved.check(resume, &database, &input, format, options.keyspace.as_deref())?;
            reader.seek(saved.position)?;
            first = saved.position.records;
        }
        let import = match saved {
            Some(saved) => saved.import,
            None => Import::new(database, input, format, options.keyspace.clone(), None)?,
        };
        target = Some((resume.as_path(), import));
    }
    let mut importer = Importer::new(options, &db, &name, target)?;
    importer.is_resumed = is_resumed;
    Ok((first, importer.run(reader, &bar)?))
}

/// Writes records into the database.
struct Importer<'a> {
    options: &'a Options,
    db: &'a Db,
    /// The input's name in errors.
    name: &'a str,
    /// The position file, and the import that it describes.
    resume: Option<(&'a Path, Import)>,
    /// Whether an earlier run of this import stored the records before this point.
    is_resumed: bool,
    keyspaces: HashMap<String, Target>,
    /// Whether records were lost, so that no further position may be recorded.
    is_broken: bool,
    interrupt: Interrupt,
}

/// The destination of a keyspace's records.
enum Target {
    Writes(Keyspace),
    /// The ingest exists while it holds records.
    Bulk(Keyspace, Option<Box<Ingest>>),
}

/// Maximum keyspaces that are loaded in bulk at a time: each takes up to 34 MiB of memory.
const BULK_KEYSPACES_MAX: usize = 4;

impl<'a> Importer<'a> {
    fn new(
        options: &'a Options,
        db: &'a Db,
        name: &'a str,
        resume: Option<(&'a Path, Import)>,
    ) -> Result<Self, Failure> {
        let interrupt = Interrupt::on_signals()?;
        let (is_resumed, is_broken) = (false, false);
        Ok(Self { options, db, name, resume, is_resumed, keyspaces: HashMap::new(), is_broken, interrupt })
    }

    /// Stores all records and closes the database; returns the number of records at the final position.
    fn run<R: BufRead>(mut self, mut reader: RecordReader<R>, bar: &ProgressBar) -> Result<u64, Failure> {
        let outcome = self.store_all(&mut reader, bar);
        bar.finish_and_clear();
        // Also after an error: the records before it are stored and need not be read again.
        let (position, outcome) = match outcome {
            Ok(position) => (position, Ok(position.records)),
            Err((position, failure)) => (position, Err(failure)),
        };
        let persisted = self.persist(position);
        self.keyspaces.clear();
        let closed = self.db.clone().close();
        let records = outcome?;
        persisted?;
        closed?;
        Ok(records)
    }

    fn store_all<R: BufRead>(
        &mut self,
        reader: &mut RecordReader<R>,
        bar: &ProgressBar,
    ) -> Result<Position, (Position, Failure)> {
        let mut position = reader.position();
        let mut unpersisted = 0;
        loop {
            let entry = match reader.next_entry() {
                Ok(Some(entry)) => entry,
                Ok(None) => return Ok(position),
                Err(error) => return Err((position, error.into())),
            };
            let (name, place) = (self.name, reader.place());
            let at_place = |reason: String| (position, Failure::Failed(format!("{name}, {place}: {reason}")));
            let record = match entry {
                Entry::Record(record) => record,
                Entry::Keyspace(head) => {
                    self.create(&head).map_err(|error| at_place(error.to_string()))?;
                    position = reader.position();
                    continue;
                }
            };
            self.store(record).map_err(|error| at_place(error.to_string()))?;
            position = reader.position();
            unpersisted += 1;
            if unpersisted >= self.records_between(position) {
                self.persist(position).map_err(|failure| (position, failure))?;
                unpersisted = 0;
            }
            if self.interrupt.is_set() {
                let again = if self.resume.is_some() { "; the same command continues there" } else { "" };
                let records = position.records;
                return Err((
                    position,
                    Failure::Failed(format!("interrupted after {records} records{again}")),
                ));
            }
            if position.records.is_multiple_of(PROGRESS_RECORDS) {
                bar.set_position(position.offset);
            }
        }
    }

    /// Number of records after which all records so far are made durable.
    fn records_between(&self, position: Position) -> u64 {
        let every = self.options.persist_every.get();
        if !self.keyspaces.values().any(|target| matches!(target, Target::Bulk(..))) {
            return every;
        }
        // Each step merges with what is already stored, so steps grow with it. Without a position file one step is
        // enough.
        match self.resume {
            Some(_) => every.max(position.records / 2),
            None => u64::MAX,
        }
    }

    /// Creates the keyspace that `head` describes, unless it exists.
    fn create(&mut self, head: &KeyspaceHead) -> Result<(), Box<dyn std::error::Error>> {
        let name = self.options.keyspace.as_ref().unwrap_or(&head.name);
        let is_there = self.db.keyspace_names().contains(name);
        let is_ordered = self.options.order.is_given();
        let keyspace = match is_there || is_ordered {
            true => self.options.order.keyspace(self.db, name)?,
            false => self.db.keyspace_with(name, &keyspace_head::options(head)?)?,
        };
        if !is_ordered && keyspace.order() != keyspace_head::order(head) {
            output::warn(&format!(
                "keyspace {name:?} is there with another order than keyspace {:?} of {}: items are stored in its order",
                head.name, self.name
            ));
        }
        if head.plan.is_some() && keyspace_head::of(&keyspace)?.plan != head.plan {
            output::warn(&format!(
                "keyspace {name:?} has another plan than keyspace {:?} of {}: `alluvium plan apply` can give it that",
                head.name, self.name
            ));
        }
        if !self.keyspaces.contains_key(name) {
            let target = self.target(keyspace);
            self.keyspaces.insert(name.to_owned(), target);
        }
        Ok(())
    }

    fn store(&mut self, record: Record) -> alluvium::Result<()> {
        let name = match &self.options.keyspace {
            Some(name) => name,
            None if record.keyspace.is_empty() => DEFAULT_KEYSPACE,
            None => &record.keyspace,
        };
        if !self.keyspaces.contains_key(name) {
            let target = self.target(self.options.order.keyspace(self.db, name)?);
            self.keyspaces.insert(name.to_owned(), target);
        }
        let metadata = Metadata { flags: record.flags, expires_at_ms: record.expires_at_ms };
        let stored = match self.keyspaces.get_mut(name).expect("inserted above") {
            Target::Writes(keyspace) => keyspace.insert_with(&record.key, &record.value, metadata),
            Target::Bulk(keyspace, ingest) => {
                let ingest = match ingest {
                    Some(ingest) => ingest,
                    None => ingest.insert(Box::new(keyspace.ingest()?)),
                };
                ingest.insert_with(&record.key, &record.value, metadata)
            }
        };
        let is_refused = matches!(
            stored,
            Err(Error::KeyTooLarge { .. } | Error::ValueTooLarge { .. } | Error::KeyWithoutPrefix { .. })
        );
        // If a write of an ingest failed, more than this record may be lost.
        self.is_broken |= stored.is_err() && !is_refused;
        stored
    }

    fn target(&self, keyspace: Keyspace) -> Target {
        let in_bulk = self.keyspaces.values().filter(|target| matches!(target, Target::Bulk(..))).count();
        let pays = match self.options.bulk {
            // An import that was started in bulk continues in bulk.
            Bulk::Auto => keyspace.approximate_len() == 0 || self.is_resumed,
            Bulk::Always => true,
            Bulk::Never => false,
        };
        if pays && in_bulk < BULK_KEYSPACES_MAX {
            Target::Bulk(keyspace, None)
        } else {
            Target::Writes(keyspace)
        }
    }

    /// Makes the records up to `position` durable, and then records this in the position file.
    fn persist(&mut self, position: Position) -> Result<(), Failure> {
        if self.is_broken {
            return Ok(());
        }
        for target in self.keyspaces.values_mut() {
            if let Target::Bulk(_, ingest) = target
                && let Some(ingest) = ingest.take()
            {
                ingest.finish().inspect_err(|_| self.is_broken = true)?;
            }
        }
        self.db.persist()?;
        match &self.resume {
            Some((path, import)) => Progress::write(path, import, position),
            None => Ok(()),
        }
    }
}
