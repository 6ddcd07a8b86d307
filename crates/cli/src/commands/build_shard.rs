//! `alluvium build-shard`.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;

use alluvium::{
    BuildJob, Error, HashKey, Metadata, Order, ShardOptions, ShardWriter, WrittenShard, shard_directory,
};
use alluvium_base::units::format_bytes;
use alluvium_transfer::{Entry, ReadError, RecordReader};
use serde_json::json;

use crate::bytes;
use crate::database::OrderOptions;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::output::JsonOption;
use crate::progress;
use crate::transfer_format::FormatOption;

const BUFFER_BYTES: usize = 1 << 20;
/// Number of records between two looks at the progress.
const PROGRESS_RECORDS: u64 = 4096;

/// Options of `build-shard`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    /// Directory of the build, in which the shard gets one of its own
    #[arg(value_name = "BUILD")]
    root: PathBuf,
    /// Number of the shard, from 0
    #[arg(long, value_name = "I")]
    shard: u32,
    /// Number of shards of the build
    #[arg(long, value_name = "N")]
    shards: u32,
    /// Secret key of the hash function, 32 hexadecimal digits: that of all shards, and of programs that route keys
    #[arg(long, value_name = "HEX", required_unless_present = "hash_key_file")]
    hash_key: Option<String>,
    /// File whose first line is that key
    #[arg(long, value_name = "FILE", conflicts_with = "hash_key")]
    hash_key_file: Option<PathBuf>,
    /// Identifier of the job: shards of others are refused when the build is committed
    #[arg(long, value_name = "ID", default_value = "build")]
    job: String,
    /// Name of the directory of this attempt, by default that of the shard; then `commit-build --directory` chooses
    #[arg(long, value_name = "NAME")]
    attempt: Option<String>,
    /// Keyspace that is built; a server serves "default"
    #[arg(long, short, value_name = "NAME", default_value = "default")]
    keyspace: String,
    #[command(flatten)]
    order: OrderOptions,
    /// Leave out records of other shards instead of refusing them
    #[arg(long)]
    skip_others: bool,
    /// Write the shard anew if it is finished; by default nothing is done then
    #[arg(long)]
    replace: bool,
    #[command(flatten)]
    format: FormatOption,
    /// File to read; standard input by default
    #[arg(long, short, value_name = "FILE")]
    input: Option<PathBuf>,
    #[command(flatten)]
    output: JsonOption,
}

/// Writes one shard of a bulk build from records in any order. Nothing counts before it has ended with success.
pub fn run(options: &Options) -> Result<(), Failure> {
    let start = Instant::now();
    let job = BuildJob {
        keyspace: options.keyspace.clone(),
        order: options.order.order().unwrap_or(Order::Hashed),
        ..BuildJob::new(options.job.clone(), hash_key(options)?, options.shards)
    };
    let directory = match &options.attempt {
        Some(name) => options.root.join(name),
        None => shard_directory(&options.root, options.shard),
    };
    let shard_options = ShardOptions { replace: options.replace, ..ShardOptions::default() };
    if !options.replace && directory.join("SHARD").exists() {
        eprintln!("alluvium: {} is finished; --replace writes it anew", directory.display());
        return Ok(());
    }
    let writer = ShardWriter::create(&directory, &job, options.shard, &shard_options)?;
    let format = options.format.of(options.input.as_deref());
    let (written, skipped) = match &options.input {
        Some(path) => {
            let name = path.display().to_string();
            let file = File::open(path).map_err(|source| ReadError::Io { file: name.clone(), source })?;
            let input = BufReader::with_capacity(BUFFER_BYTES, file);
            fill(options, &job, writer, RecordReader::new(format, input, &name)?, &name)?
        }
        None => {
            let name = "standard input";
            let input = BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock());
            fill(options, &job, writer, RecordReader::new(format, input, name)?, name)?
        }
    };
    let seconds = start.elapsed().as_secs_f64();
    let object = json!({
        "shard": options.shard,
        "directory": directory,
        "records": written.items,
        "records_skipped": skipped,
        "files": written.files,
        "file_bytes": written.file_bytes,
        "seconds": seconds,
    });
    options.output.print(&object, || {
        let (items, bytes, path) = (written.items, format_bytes(written.file_bytes), directory.display());
        format!("{path}: {items} records, {bytes}, in {seconds:.1} s\n")
    })
}

fn fill<R: BufRead>(
    options: &Options,
    job: &BuildJob,
    mut writer: ShardWriter,
    mut reader: RecordReader<R>,
    name: &str,
) -> Result<(WrittenShard, u64), Failure> {
    let interrupt = Interrupt::on_signals()?;
    let bar = progress::spinner("writing the shard");
    let (mut records, mut skipped) = (0_u64, 0);
    while let Some(entry) = reader.next_entry()? {
        let place = reader.place();
        let Entry::Record(record) = entry else { continue };
        records += 1;
        if options.skip_others && job.shard_of(&record.key) != options.shard {
            skipped += 1;
        } else {
            let metadata = Metadata { flags: record.flags, expires_at_ms: record.expires_at_ms };
            writer.insert_with(&record.key, &record.value, metadata).map_err(|error| {
                let hint = match error {
                    Error::Build(_) => "; --skip-others leaves such records out",
                    _ => "",
                };
                Failure::Failed(format!("{name}, {place}: {error}{hint}"))
            })?;
        }
        if records.is_multiple_of(PROGRESS_RECORDS) {
            bar.set_position(records);
            if interrupt.is_set() {
                return Err(Failure::Failed(format!("interrupted after {records} records; nothing is left")));
            }
        }
    }
    bar.finish_and_clear();
    Ok((writer.finish()?, skipped))
}

fn hash_key(options: &Options) -> Result<HashKey, Failure> {
    let text = match (&options.hash_key, &options.hash_key_file) {
        (Some(text), _) => text.clone(),
        (None, Some(path)) => first_line(path)?,
        (None, None) => return Err(Failure::Usage("give --hash-key or --hash-key-file".to_owned())),
    };
    // The key is secret, so it is in no error.
    let refused = || Failure::Usage("the hash key must be 32 hexadecimal digits".to_owned());
    let key = bytes::from_argument(text.trim(), true).map_err(|_| refused())?;
    Ok(HashKey::from_bytes(key.try_into().map_err(|_| refused())?))
}

fn first_line(path: &Path) -> Result<String, Failure> {
    let text = fs::read_to_string(path)
        .map_err(|error| Failure::Failed(format!("reading {}: {error}", path.display())))?;
    Ok(text.lines().next().unwrap_or_default().to_owned())
}
