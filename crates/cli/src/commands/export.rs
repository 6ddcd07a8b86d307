//! `alluvium export`.

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::PathBuf;
use std::time::Instant;

use alluvium::{Db, Keyspace};
use alluvium_transfer::{Format, Record, RecordWriter};
use indicatif::ProgressBar;
use serde_json::json;

use crate::database::Database;
use crate::durable_file::DurableFile;
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::keyspace_head;
use crate::output::{self, JsonOption};
use crate::progress;
use crate::transfer_format::FormatOption;

const BUFFER_BYTES: usize = 1 << 20;
/// Number of items between two updates of the progress bar.
const PROGRESS_ITEMS: u64 = 1024;

/// Options of `export`.
#[derive(Clone, Debug, clap::Args)]
pub struct Options {
    #[command(flatten)]
    database: Database,
    /// Export only this keyspace; can be given several times
    #[arg(long, short, value_name = "NAME")]
    keyspace: Vec<String>,
    #[command(flatten)]
    format: FormatOption,
    /// File to write, replaced once everything is written; standard output by default
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    summary: JsonOption,
}

/// Writes all items, keyspace by keyspace, in the order of their hashes, and before them the description of their
/// keyspace.
pub fn run(options: &Options) -> Result<(), Failure> {
    let format = options.format.of(options.output.as_deref());
    if options.output.is_none() {
        if options.summary.json {
            return Err(Failure::Usage("--json needs --output: the items go to standard output".to_owned()));
        }
        if format == Format::Binary && io::stdout().is_terminal() {
            return Err(Failure::Usage("a binary export is not for terminals: use --output".to_owned()));
        }
    }
    let db = options.database.open_to_read()?;
    let keyspaces = keyspaces(&db, &options.keyspace)?;
    let interrupt = Interrupt::on_signals()?;
    let start = Instant::now();
    let Some(path) = &options.output else {
        let out = BufWriter::with_capacity(BUFFER_BYTES, io::stdout().lock());
        write(&db, &keyspaces, format, out, &interrupt)?;
        db.close()?;
        return Ok(());
    };
    let out = BufWriter::with_capacity(BUFFER_BYTES, DurableFile::create(path)?);
    let (out, records) = write(&db, &keyspaces, format, out, &interrupt)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.complete()?;
    db.close()?;
    let seconds = start.elapsed().as_secs_f64();
    let object = json!({"records": records, "keyspaces": keyspaces.len(), "format": format.name(), "seconds": seconds});
    options.summary.print(&object, || {
        let count = keyspaces.len();
        format!("{records} records of {count} keyspaces written to {} in {seconds:.1} s\n", path.display())
    })
}

/// The requested keyspaces; all if none is named.
fn keyspaces(db: &Db, asked: &[String]) -> Result<Vec<String>, Failure> {
    let present = db.keyspace_names();
    if let Some(absent) = asked.iter().find(|name| !present.contains(name)) {
        return Err(Failure::Failed(format!(
            "there is no keyspace {absent:?}; there are: {}",
            present.join(", ")
        )));
    }
    Ok(present.into_iter().filter(|name| asked.is_empty() || asked.contains(name)).collect())
}

fn write<W: Write>(
    db: &Db,
    keyspaces: &[String],
    format: Format,
    out: W,
    interrupt: &Interrupt,
) -> Result<(W, u64), Failure> {
    let mut writer = RecordWriter::new(format, out)?;
    let mut items = 0;
    for name in keyspaces {
        items += db.keyspace(name)?.approximate_len();
    }
    let bar = progress::items(items);
    let outcome = write_items(db, keyspaces, format, &mut writer, interrupt, &bar);
    bar.finish_and_clear();
    let records = outcome?;
    Ok((writer.finish()?, records))
}

fn write_items<W: Write>(
    db: &Db,
    keyspaces: &[String],
    format: Format,
    writer: &mut RecordWriter<W>,
    interrupt: &Interrupt,
    bar: &ProgressBar,
) -> Result<u64, Failure> {
    let mut records = 0_u64;
    for name in keyspaces {
        let mut record = Record { keyspace: name.clone(), ..Record::default() };
        let keyspace = db.keyspace(name)?;
        let mut items = keyspace.iter();
        let mut next = items.next_with_metadata();
        write_head(&keyspace, next.is_none(), format, writer)?;
        while let Some(item) = next {
            let ((key, value), metadata) = item?;
            record = Record {
                key,
                value,
                flags: metadata.flags,
                expires_at_ms: metadata.expires_at_ms,
                keyspace: record.keyspace,
            };
            writer.write(&record)?;
            records += 1;
            if interrupt.is_set() {
                return Err(Failure::Failed(format!("interrupted after {records} records")));
            }
            if records.is_multiple_of(PROGRESS_ITEMS) {
                bar.set_position(records);
            }
            next = items.next_with_metadata();
        }
    }
    Ok(records)
}

/// Writes the description of a keyspace, or warns about what is lost if the format cannot express it. Other programs
/// read JSON lines, so there is no line for a keyspace that its items' lines recreate as it is.
fn write_head<W: Write>(
    keyspace: &Keyspace,
    is_empty: bool,
    format: Format,
    writer: &mut RecordWriter<W>,
) -> Result<(), Failure> {
    let head = keyspace_head::of(keyspace)?;
    let is_implied = keyspace_head::is_plain(&head) && !is_empty;
    match format {
        Format::JsonLines if is_implied => {}
        _ if format.carries_keyspaces() => writer.write_keyspace(&head)?,
        _ => keyspace_head::losses(&head, is_empty, format).iter().for_each(|loss| output::warn(loss)),
    }
    Ok(())
}
