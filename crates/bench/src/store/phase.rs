//! The phases of `bench store` by name.

use std::str::FromStr;

use alluvium_model::Plan;

/// One phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Puts every item once, in random key order, then waits until background work has settled.
    Load,
    /// Ingests every item once, in random key order, in bulk.
    Ingest,
    /// Waits until background work has settled.
    Settle,
    /// Moves everything out of the log, then settles.
    Flush,
    /// Merges everything into the last level, then settles.
    Compact,
    /// Gets of uniformly chosen present items.
    Get,
    /// Gets of uniformly chosen present items by one thread, with as many reads in flight as there are threads.
    Stream,
    /// Gets every item once.
    All,
    /// Gets of absent keys.
    Miss,
    /// Overwrites of uniformly chosen items, as many as there are items, then settles.
    Update,
    /// Gets and overwrites at the same time.
    Mixed,
    /// Iterates over everything; each item must appear exactly once.
    Scan,
    /// Overwrites at 90 % of the highest rate.
    Sustain,
    /// Closes the database and opens it again.
    Reopen,
    /// Lets the second half of the items expire, then settles. Their loading gives them an expiry.
    Expire,
    /// Removes the second half of the items, then settles.
    Delete,
    /// Takes a snapshot, overwrites every item, reads the snapshot, and drops it.
    Snapshot,
    /// Gets and misses while filters and indexes have less and less memory, and once they have enough again.
    Degrade,
    /// Changes to the plan with this name, with gets and overwrites at the same time.
    Replan(&'static str),
}

/// The name before `=` and a plan's name.
const REPLAN: &str = "replan";

const NAMES: [(&str, Phase); 18] = [
    ("load", Phase::Load),
    ("ingest", Phase::Ingest),
    ("settle", Phase::Settle),
    ("flush", Phase::Flush),
    ("compact", Phase::Compact),
    ("get", Phase::Get),
    ("stream", Phase::Stream),
    ("all", Phase::All),
    ("miss", Phase::Miss),
    ("update", Phase::Update),
    ("mixed", Phase::Mixed),
    ("scan", Phase::Scan),
    ("sustain", Phase::Sustain),
    ("reopen", Phase::Reopen),
    ("expire", Phase::Expire),
    ("delete", Phase::Delete),
    ("snapshot", Phase::Snapshot),
    ("degrade", Phase::Degrade),
];

impl Phase {
    /// Its name on the command line and in measurements.
    pub fn name(self) -> &'static str {
        if let Self::Replan(_) = self {
            return REPLAN;
        }
        NAMES.iter().find(|(_, phase)| *phase == self).map_or("", |(name, _)| name)
    }

    /// Whether it puts every item into an empty store.
    pub fn fills(self) -> bool {
        matches!(self, Self::Load | Self::Ingest)
    }

    /// Whether it overwrites items, so that versions must be kept.
    pub fn overwrites(self) -> bool {
        matches!(self, Self::Update | Self::Mixed | Self::Sustain | Self::Snapshot | Self::Replan(_))
    }
}

impl FromStr for Phase {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(plan) = text.strip_prefix(REPLAN).and_then(|rest| rest.strip_prefix('=')) {
            let known = Plan::NAMES.into_iter().find(|name| *name == plan);
            return known
                .map(Self::Replan)
                .ok_or_else(|| format!("no plan is named {plan:?}; known: {}", Plan::NAMES.join(", ")));
        }
        NAMES.iter().find(|(name, _)| *name == text).map(|(_, phase)| *phase).ok_or_else(|| {
            let names: Vec<&str> = NAMES.iter().map(|(name, _)| *name).collect();
            format!("no phase is named {text:?}; known: {}, {REPLAN}=PLAN", names.join(", "))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_to_phases_and_back() {
        for (name, phase) in NAMES {
            assert_eq!(name.parse::<Phase>(), Ok(phase));
            assert_eq!(phase.name(), name);
        }
        assert_eq!("replan=silt".parse(), Ok(Phase::Replan("silt")));
        assert!("replan=castle".parse::<Phase>().unwrap_err().contains("silt-deep"));
        assert!("lode".parse::<Phase>().unwrap_err().contains("load"));
    }
}
