//! The thread that clears, drops, ingests into and deletes prefixes of whole keyspaces beside their writers.

use std::sync::Arc;
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::context::{Context, Stop};
use super::journal::{Journal, Record, WholeKind};
use super::key::{FLEETING, GROUPS, MIXED, PREFIXES, all_keys, prefix_name, value_bytes};
use super::ledger::NEVER;
use super::phase;
use super::whole::WholeOp;

/// See the module.
#[derive(Debug)]
pub struct Changer {
    context: Arc<Context>,
    journal: Journal,
    rng: StdRng,
    next_op: u64,
}

impl Changer {
    pub fn new(context: Arc<Context>, journal: Journal, next_op: u64, seed: u64) -> Self {
        Self { context, journal, rng: StdRng::seed_from_u64(seed), next_op }
    }

    pub fn run(mut self) {
        while !self.context.board.is_over() {
            std::thread::sleep(Duration::from_millis(self.rng.random_range(0..60)));
            if self.step().is_err() {
                break;
            }
        }
    }

    fn step(&mut self) -> Result<(), Stop> {
        let space = [MIXED, GROUPS, FLEETING][self.rng.random_range(0..3)];
        let ingest = |divisor, rng: &mut StdRng| WholeKind::Ingest {
            divisor,
            remainder: rng.random_range(0..divisor),
        };
        let kind = match self.rng.random_range(0..10) {
            0..3 => WholeKind::Clear,
            3..6 if space == GROUPS => WholeKind::DeletePrefix(self.rng.random_range(0..PREFIXES)),
            3..8 if space == FLEETING => WholeKind::Drop,
            3 | 4 => ingest(1, &mut self.rng),
            5 | 6 => ingest(3, &mut self.rng),
            _ => ingest(25, &mut self.rng),
        };
        if self.context.has(kind.name()) { self.perform(space, kind) } else { Ok(()) }
    }

    fn perform(&mut self, space: u8, kind: WholeKind) -> Result<(), Stop> {
        let context = self.context.clone();
        let board = &context.board;
        let op = self.next_op;
        self.next_op += 1;
        let keyspace = context.space(space);
        let mut ingest = None;
        if let WholeKind::Ingest { divisor, remainder } = kind {
            let excuse = |error| context.excuse("ingesting", &error);
            let mut begun = keyspace.ingest().map_err(excuse)?;
            let taken = all_keys(space, board.writers).filter(|key| key.number % divisor == remainder);
            for key in taken {
                let value = value_bytes(key, board.writers, op);
                begun.insert(key.bytes(board.writers), value).map_err(excuse)?;
            }
            ingest = Some(begun);
        }
        phase(kind.name());
        let mut durable = board.all_ended();
        let lives = &board.lives[usize::from(space)];
        let start = board.stamp();
        self.note(&Record::Whole { op, stamp: start, space, kind });
        lives.begin(WholeOp { op, start, ack: NEVER, space, kind });
        let outcome = match kind {
            WholeKind::Clear => keyspace.clear(),
            WholeKind::Drop => context.db.drop_keyspace(keyspace.name()).map(drop),
            WholeKind::DeletePrefix(prefix) => keyspace.delete_prefix(prefix_name(prefix)),
            WholeKind::Ingest { .. } => ingest.map_or(Ok(()), |ingest| ingest.finish().map(drop)),
        };
        outcome.map_err(|error| context.excuse(kind.name(), &error))?;
        lives.end();
        self.note(&Record::Ack { op, stamp: board.stamp(), lives: Vec::new(), version: 0 });
        board.end(board.writers, op);
        if !matches!(kind, WholeKind::DeletePrefix(_)) {
            durable[usize::from(board.writers)] = op;
            self.note(&Record::Durable { ops: durable });
        }
        if kind == WholeKind::Drop {
            context.reopen(space).map_err(|error| context.excuse("creating a keyspace", &error))?;
        }
        Ok(())
    }

    fn note(&mut self, record: &Record) {
        let noted = self.journal.note(record);
        noted.unwrap_or_else(|error| self.context.fail(&format!("writing a journal: {error}")));
    }
}

impl WholeKind {
    /// The phase name for which a kill can wait.
    fn name(self) -> &'static str {
        match self {
            Self::Clear => "clear",
            Self::Drop => "drop",
            Self::DeletePrefix(_) => "delete-prefix",
            Self::Ingest { .. } => "ingest",
        }
    }
}
