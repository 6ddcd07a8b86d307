//! [`Residency`]: which filters and indexes are in memory when memory is short.

use crate::error::ModelError;
use crate::models::Component;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    LogIndex,
    Filter,
    Index,
}

/// A structure used to find items.
#[derive(Clone, Copy, Debug)]
pub(super) struct Structure {
    kind: Kind,
    level: usize,
    bytes: f64,
    resident: f64,
}

impl Structure {
    pub fn log_index(bytes: f64) -> Self {
        Self { kind: Kind::LogIndex, level: 0, bytes, resident: 1.0 }
    }

    pub fn filter(level: usize, bytes: f64) -> Self {
        Self { kind: Kind::Filter, level, bytes, resident: 1.0 }
    }

    pub fn index(level: usize, bytes: f64) -> Self {
        Self { kind: Kind::Index, level, bytes, resident: 1.0 }
    }
}

/// The share of each structure that is in memory.
#[derive(Clone, Debug)]
pub(super) struct Residency {
    structures: Vec<Structure>,
}

impl Residency {
    /// Drops filters, then indexes, old levels before young ones, until the rest fits (SILT §4).
    pub fn within(mut structures: Vec<Structure>, limit_bytes: f64) -> Result<Self, ModelError> {
        let mut over = structures.iter().map(|structure| structure.bytes).sum::<f64>() - limit_bytes;
        for kind in [Kind::Filter, Kind::Index] {
            for structure in structures.iter_mut().rev().filter(|structure| structure.kind == kind) {
                if over > 0.0 && structure.bytes > 0.0 {
                    let dropped = over.min(structure.bytes);
                    structure.resident = 1.0 - dropped / structure.bytes;
                    over -= dropped;
                }
            }
        }
        if over > 0.0 {
            return Err(ModelError::OutOfRange {
                name: "memory-limit",
                value: limit_bytes,
                expected: format!("the log index alone takes {:.0} bytes", limit_bytes + over),
            });
        }
        Ok(Self { structures })
    }

    /// Share of a level's filters in memory.
    pub fn filter_share(&self, level: usize) -> f64 {
        self.share(Kind::Filter, level)
    }

    /// Share of a level's index in memory.
    pub fn index_share(&self, level: usize) -> f64 {
        self.share(Kind::Index, level)
    }

    fn share(&self, kind: Kind, level: usize) -> f64 {
        let found =
            self.structures.iter().find(|structure| structure.kind == kind && structure.level == level);
        found.map_or(1.0, |structure| structure.resident)
    }

    /// Bytes per item by kind.
    pub fn memory(&self, items: f64) -> Vec<Component> {
        [(Kind::LogIndex, "log index"), (Kind::Filter, "filter"), (Kind::Index, "index")]
            .map(|(kind, name)| {
                let of_kind = self.structures.iter().filter(|structure| structure.kind == kind);
                let bytes: f64 = of_kind.map(|structure| structure.bytes * structure.resident).sum();
                Component::new(name, bytes / items)
            })
            .to_vec()
    }
}
