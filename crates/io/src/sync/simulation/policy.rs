//! [`Policy`]: which of the tasks that can run continues.

use crate::random::Random;

/// Chances are given in parts of this.
const WHOLE: u64 = 1 << 16;

/// How an execution is scheduled; drawn once from its seed.
#[derive(Debug)]
pub(super) struct Policy {
    kind: Kind,
    /// The chance that a timer ends early at a step, in parts of [`WHOLE`].
    early_timer: u64,
    /// The chance that a task which waits for a notification wakes without one at a step, in parts of [`WHOLE`].
    spurious: u64,
}

#[derive(Debug)]
enum Kind {
    /// At each step another task continues with this chance, in parts of [`WHOLE`]; all others are equally likely.
    Walk { switch: u64 },
    /// The task of the highest priority continues. With this chance the running task gets the lowest priority of all.
    Priorities { change: u64, lowest: u64 },
}

/// The priorities that tasks start with are above those that they are lowered to.
const FIRST_PRIORITIES: u64 = 1 << 32;

impl Policy {
    pub fn random(random: &mut Random) -> Self {
        let one_in = |steps: u64| WHOLE / steps;
        let kind = match random.below(8) {
            0 => Kind::Walk { switch: one_in(2) },
            1 => Kind::Walk { switch: one_in(8) },
            2 | 3 => Kind::Walk { switch: one_in(40) },
            4 => Kind::Priorities { change: one_in(30), lowest: FIRST_PRIORITIES },
            5 | 6 => Kind::Priorities { change: one_in(150), lowest: FIRST_PRIORITIES },
            _ => Kind::Priorities { change: one_in(1000), lowest: FIRST_PRIORITIES },
        };
        let early_timer = [0, one_in(1000), one_in(150)][random.below(3) as usize];
        let spurious = [0, 0, one_in(1000)][random.below(3) as usize];
        Self { kind, early_timer, spurious }
    }

    /// The priority of a new task.
    pub fn first_priority(&self, random: &mut Random) -> u64 {
        FIRST_PRIORITIES + random.below(FIRST_PRIORITIES)
    }

    /// Whether the next timer ends now though others can run.
    pub fn ends_timer_early(&self, random: &mut Random) -> bool {
        self.early_timer > 0 && random.below(WHOLE) < self.early_timer
    }

    /// Whether a task that waits for a notification wakes without one.
    pub fn wakes_spuriously(&self, random: &mut Random) -> bool {
        self.spurious > 0 && random.below(WHOLE) < self.spurious
    }

    /// What to do at a step of a task that could continue, unless it gives way or waits.
    pub fn decide(&mut self, gives_way: bool, random: &mut Random) -> Decision {
        match &mut self.kind {
            Kind::Walk { switch } if gives_way || random.below(WHOLE) < *switch => Decision::AnyOther,
            Kind::Walk { .. } => Decision::Stay,
            Kind::Priorities { change, lowest } => {
                let lowers = gives_way || random.below(WHOLE) < *change;
                *lowest -= u64::from(lowers);
                Decision::Highest { lowered: lowers.then_some(*lowest) }
            }
        }
    }
}

/// Which task continues.
#[derive(Debug, Clone, Copy)]
pub(super) enum Decision {
    /// The same task if it can, else any.
    Stay,
    /// Another one if there is one, all equally likely.
    AnyOther,
    /// The one of the highest priority, once that of the present one is `lowered`.
    Highest { lowered: Option<u64> },
}
