//! What writers record outside the database, before and after each operation: in files that survive a kill, because the
//! kernel has received what was written to them.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use super::key::{Key, Outcome};

/// A key and its content after an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    pub key: Key,
    pub outcome: Outcome,
    /// Number of operations on the whole keyspace that had ended before.
    pub born: u32,
}

/// The effect of an operation on keys that all writers change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedEffect {
    Increment(u8),
    Swap(u8),
    Append(u32),
}

/// An operation on a whole keyspace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WholeKind {
    Clear,
    Drop,
    DeletePrefix(u32),
    /// Ingests the keys whose number has this remainder modulo this divisor.
    Ingest {
        divisor: u32,
        remainder: u32,
    },
}

/// One journal entry. Numbers of operations increase over the whole life of a database, for each writer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// An operation starts. If `parted`, it may take effect in parts.
    Start { op: u64, stamp: u64, parted: bool, effects: Vec<Effect>, shared: Option<SharedEffect> },
    /// It was acknowledged; each effect happened between these operations on its whole keyspace.
    Ack { op: u64, stamp: u64, lives: Vec<(u32, u32)>, version: u64 },
    /// It had no effect.
    Nothing { op: u64 },
    /// An operation on a whole keyspace starts.
    Whole { op: u64, stamp: u64, space: u8, kind: WholeKind },
    /// Each writer's operations up to these are durable.
    Durable { ops: Vec<u64> },
}

/// The file of one writer's records.
#[derive(Debug)]
pub struct Journal {
    file: File,
    pending: Vec<u8>,
}

/// The path of the file of a session's writer.
pub fn path(directory: &Path, session: u64, writer: u8) -> PathBuf {
    directory.join(format!("journal-{session}-{writer}"))
}

impl Journal {
    pub fn create(directory: &Path, session: u64, writer: u8) -> io::Result<Self> {
        Ok(Self { file: File::create(path(directory, session, writer))?, pending: Vec::new() })
    }

    /// Queues a record, to be written with the next.
    pub fn defer(&mut self, record: &Record) {
        let start = self.pending.len();
        self.pending.extend_from_slice(&[0; 4]);
        record.encode(&mut self.pending);
        let len = (self.pending.len() - start - 4) as u32;
        self.pending[start..start + 4].copy_from_slice(&len.to_le_bytes());
    }

    /// Writes a record: it survives a kill when this returns.
    pub fn note(&mut self, record: &Record) -> io::Result<()> {
        self.defer(record);
        self.flush()
    }

    /// Writes the queued records.
    pub fn flush(&mut self) -> io::Result<()> {
        self.file.write_all(&self.pending)?;
        self.pending.clear();
        Ok(())
    }
}

/// The records of a journal, without one that a kill truncated.
pub fn read(path: &Path) -> Result<Vec<Record>, String> {
    let mut bytes = Vec::new();
    match File::open(path) {
        Ok(mut file) => file.read_to_end(&mut bytes).map_err(|error| error.to_string())?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(format!("{}: {error}", path.display())),
    };
    let mut reader = Reader(&bytes);
    let mut records = Vec::new();
    while let Some(len) = reader.u32()
        && let Some(record) = reader.bytes(len as usize)
    {
        let record = Record::decode(&mut Reader(record));
        records.push(record.ok_or_else(|| format!("{}: a damaged record", path.display()))?);
    }
    Ok(records)
}

fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put32(out: &mut Vec<u8>, number: u32) {
    out.extend_from_slice(&number.to_le_bytes());
}

/// Appends an outcome.
pub fn encode_outcome(outcome: &Outcome, out: &mut Vec<u8>) {
    match outcome {
        Outcome::Absent => out.push(0),
        Outcome::Value { writer, op, expires_at_ms } => {
            out.extend_from_slice(&[1, *writer]);
            put(out, *op);
            put(out, *expires_at_ms);
        }
        Outcome::Raw(bytes) => {
            out.push(2);
            put32(out, bytes.len() as u32);
            out.extend_from_slice(bytes);
        }
    }
}

impl Record {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Start { op, stamp, parted, effects, shared } => {
                out.extend_from_slice(&[0, u8::from(*parted)]);
                put(out, *op);
                put(out, *stamp);
                match shared {
                    None => out.push(0),
                    Some(SharedEffect::Increment(number)) => out.extend_from_slice(&[1, *number]),
                    Some(SharedEffect::Swap(number)) => out.extend_from_slice(&[2, *number]),
                    Some(SharedEffect::Append(number)) => {
                        out.push(3);
                        put32(out, *number);
                    }
                }
                put32(out, effects.len() as u32);
                for Effect { key, outcome, born } in effects {
                    out.push(key.space);
                    put32(out, key.number);
                    put32(out, *born);
                    encode_outcome(outcome, out);
                }
            }
            Self::Ack { op, stamp, lives, version } => {
                out.push(1);
                [*op, *stamp, *version].into_iter().for_each(|number| put(out, number));
                put32(out, lives.len() as u32);
                lives.iter().for_each(|(low, high)| [*low, *high].into_iter().for_each(|n| put32(out, n)));
            }
            Self::Nothing { op } => {
                out.push(2);
                put(out, *op);
            }
            Self::Whole { op, stamp, space, kind } => {
                out.push(3);
                put(out, *op);
                put(out, *stamp);
                let (tag, one, two) = match *kind {
                    WholeKind::Clear => (0, 0, 0),
                    WholeKind::Drop => (1, 0, 0),
                    WholeKind::DeletePrefix(prefix) => (2, prefix, 0),
                    WholeKind::Ingest { divisor, remainder } => (3, divisor, remainder),
                };
                out.extend_from_slice(&[*space, tag]);
                put32(out, one);
                put32(out, two);
            }
            Self::Durable { ops } => {
                out.extend_from_slice(&[4, ops.len() as u8]);
                ops.iter().for_each(|op| put(out, *op));
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Option<Self> {
        Some(match reader.u8()? {
            0 => {
                let (parted, op, stamp) = (reader.u8()? == 1, reader.u64()?, reader.u64()?);
                let shared = match reader.u8()? {
                    0 => None,
                    1 => Some(SharedEffect::Increment(reader.u8()?)),
                    2 => Some(SharedEffect::Swap(reader.u8()?)),
                    _ => Some(SharedEffect::Append(reader.u32()?)),
                };
                let effects = (0..reader.u32()?).map(|_| {
                    let key = Key { space: reader.u8()?, number: reader.u32()? };
                    Some(Effect { key, born: reader.u32()?, outcome: reader.outcome()? })
                });
                Self::Start { op, stamp, parted, effects: effects.collect::<Option<_>>()?, shared }
            }
            1 => {
                let (op, stamp, version) = (reader.u64()?, reader.u64()?, reader.u64()?);
                let lives = (0..reader.u32()?).map(|_| Some((reader.u32()?, reader.u32()?)));
                Self::Ack { op, stamp, lives: lives.collect::<Option<_>>()?, version }
            }
            2 => Self::Nothing { op: reader.u64()? },
            3 => {
                let (op, stamp, space, tag) = (reader.u64()?, reader.u64()?, reader.u8()?, reader.u8()?);
                let (one, two) = (reader.u32()?, reader.u32()?);
                let kind = match tag {
                    0 => WholeKind::Clear,
                    1 => WholeKind::Drop,
                    2 => WholeKind::DeletePrefix(one),
                    _ => WholeKind::Ingest { divisor: one, remainder: two },
                };
                Self::Whole { op, stamp, space, kind }
            }
            _ => {
                let ops = (0..reader.u8()?).map(|_| reader.u64());
                Self::Durable { ops: ops.collect::<Option<_>>()? }
            }
        })
    }
}

/// Reads numbers from the front of bytes; `None` at their end.
#[derive(Debug)]
pub struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (front, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(front)
    }

    pub fn u8(&mut self) -> Option<u8> {
        Some(self.bytes(1)?[0])
    }

    pub fn u32(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.bytes(4)?.try_into().ok()?))
    }

    pub fn u64(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.bytes(8)?.try_into().ok()?))
    }

    pub fn outcome(&mut self) -> Option<Outcome> {
        Some(match self.u8()? {
            0 => Outcome::Absent,
            1 => Outcome::Value { writer: self.u8()?, op: self.u64()?, expires_at_ms: self.u64()? },
            _ => {
                let len = self.u32()?;
                Outcome::Raw(self.bytes(len as usize)?.to_vec())
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_read_back_and_a_cut_one_is_left_out() {
        let key = Key { space: 1, number: 70_000 };
        let effect = |outcome| Effect { key, outcome, born: 3 };
        let effects = vec![
            effect(Outcome::Absent),
            effect(Outcome::Value { writer: 2, op: 9, expires_at_ms: 5 }),
            effect(Outcome::Raw(vec![1, 2])),
        ];
        let shared = Some(SharedEffect::Append(7));
        let records = [
            Record::Start { op: 1, stamp: 2, parted: true, effects, shared },
            Record::Ack { op: 1, stamp: 3, lives: vec![(3, 4)], version: 8 },
            Record::Nothing { op: 2 },
            Record::Whole { op: 1, stamp: 4, space: 2, kind: WholeKind::Ingest { divisor: 5, remainder: 1 } },
            Record::Durable { ops: vec![1, 2, 3] },
        ];
        let directory = std::env::temp_dir().join(format!("alluvium-journal-{}", std::process::id()));
        std::fs::create_dir_all(&directory).unwrap();
        let mut journal = Journal::create(&directory, 1, 0).unwrap();
        for record in &records {
            journal.note(record).unwrap();
        }
        journal.pending = vec![200, 0, 0, 0, 1];
        journal.flush().unwrap();
        assert_eq!(read(&path(&directory, 1, 0)).unwrap(), records);
        std::fs::remove_dir_all(directory).unwrap();
    }
}
