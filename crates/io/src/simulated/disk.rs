//! The simulated machine's storage: files, names, locks, and the rules by which they fail.

use std::collections::BTreeMap;
use std::io::{Error, ErrorKind, Result};

use super::fault::{FaultPlan, PlantedBug, SimulatedFault};
use super::inode::{Change, Inode, Mood};
use super::names::{InodeNumber, Names};
use crate::random::Random;

/// What an operation is, for counting and failing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Read,
    Write,
    Sync,
}

/// How often each kind of fault could have struck since the plan was set.
#[derive(Debug, Default)]
struct Counts {
    operations: u64,
    reads: u64,
    writes: u64,
    syncs: u64,
    opens: u64,
}

/// Who holds a lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Holders {
    /// A writer.
    Writer,
    /// This many readers.
    Readers(usize),
}

/// All state, behind one mutex. A generation is the time between two crashes: handles of an older one fail.
#[derive(Debug)]
pub(super) struct Disk {
    pub(super) random: Random,
    pub(super) names: Names,
    pub(super) inodes: BTreeMap<InodeNumber, Inode>,
    next_inode: InodeNumber,
    pub(super) locks: BTreeMap<String, Holders>,
    pub(super) generation: u64,
    /// True between a crash and the next reopening.
    pub(super) is_down: bool,
    /// Whether that was only the death of the process, which takes nothing from the page cache.
    pub(super) is_killed: bool,
    faults: FaultPlan,
    counts: Counts,
    pub(super) operation_count: u64,
    pub(super) read_count: u64,
    pub(super) planted: Vec<PlantedBug>,
}

impl Disk {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            names: Names::default(),
            inodes: BTreeMap::new(),
            next_inode: 0,
            locks: BTreeMap::new(),
            generation: 0,
            is_down: false,
            is_killed: false,
            faults: FaultPlan::default(),
            counts: Counts::default(),
            operation_count: 0,
            read_count: 0,
            planted: Vec::new(),
        }
    }

    pub(super) fn set_faults(&mut self, faults: FaultPlan) {
        self.faults = faults;
        self.counts = Counts::default();
    }

    /// Refuses handles of earlier generations, and all handles while the machine is down.
    pub(super) fn check(&self, generation: u64) -> Result<()> {
        if self.is_down || generation != self.generation {
            return Err(SimulatedFault::Crash.into());
        }
        Ok(())
    }

    /// Makes the device larger or smaller, in addition to the other planned faults.
    pub(super) fn set_quota(&mut self, quota_bytes: Option<u64>) {
        self.faults.quota_bytes = quota_bytes;
    }

    /// Counts an opening that is about to happen, and fails it where the plan says so.
    pub(super) fn begin_open(&mut self, generation: u64) -> Result<()> {
        /// The process has too many open files.
        const EMFILE: i32 = 24;
        self.check(generation)?;
        let count = self.counts.opens;
        self.counts.opens += 1;
        match &self.faults.fail_opens {
            Some(failing) if failing.contains(&count) => Err(Error::from_raw_os_error(EMFILE)),
            _ => Ok(()),
        }
    }

    /// Counts an operation that is about to happen, and crashes the machine where the plan says so. `Ok(true)` when
    /// the operation must fail with a device error.
    pub(super) fn begin(&mut self, generation: u64, kind: Kind) -> Result<bool> {
        self.check(generation)?;
        let (count, planned) = match kind {
            Kind::Read => (&mut self.counts.reads, self.faults.fail_read),
            Kind::Write => (&mut self.counts.writes, self.faults.fail_write),
            Kind::Sync => (&mut self.counts.syncs, self.faults.fail_sync),
        };
        let fails = planned == Some(*count);
        *count += 1;
        if kind == Kind::Read {
            self.read_count += 1;
        } else {
            if self.faults.crash_before_operation == Some(self.counts.operations) {
                self.crash();
                return Err(SimulatedFault::Crash.into());
            }
            if self.faults.kill_before_operation == Some(self.counts.operations) {
                self.kill();
                return Err(SimulatedFault::Crash.into());
            }
            self.counts.operations += 1;
            self.operation_count += 1;
        }
        Ok(fails)
    }

    /// The power fails.
    pub(super) fn crash(&mut self) {
        let mood = Mood::draw(&mut self.random);
        self.names.crash(&mut self.random, mood);
        for inode in self.inodes.values_mut() {
            inode.crash(&mut self.random, mood);
        }
        self.is_down = true;
        self.locks.clear();
        self.collect();
    }

    /// The process ends, and the machine keeps running: nothing is lost but handles and locks.
    pub(super) fn kill(&mut self) {
        (self.is_down, self.is_killed) = (true, true);
        self.locks.clear();
        for inode in self.inodes.values_mut() {
            inode.handles = 0;
        }
        self.collect();
    }

    /// Starts the next generation.
    pub(super) fn reopen(&mut self) -> u64 {
        if !self.is_down {
            self.kill();
        }
        self.generation += 1;
        (self.is_down, self.is_killed) = (false, false);
        self.set_faults(FaultPlan::default());
        self.generation
    }

    pub(super) fn add_inode(&mut self, inode: Inode) -> InodeNumber {
        self.next_inode += 1;
        self.inodes.insert(self.next_inode, inode);
        self.next_inode
    }

    /// The file of a handle, which keeps it alive.
    pub(super) fn inode(&mut self, number: InodeNumber) -> Result<&mut Inode> {
        self.inodes.get_mut(&number).ok_or_else(|| SimulatedFault::Crash.into())
    }

    pub(super) fn lookup(&self, name: &str) -> Result<InodeNumber> {
        self.names.live.get(name).copied().ok_or_else(|| ErrorKind::NotFound.into())
    }

    /// Frees files that no name and no handle can reach.
    pub(super) fn collect(&mut self) {
        let reachable = self.names.reachable();
        self.inodes.retain(|number, inode| inode.handles > 0 || reachable.contains(number));
    }

    /// Frees a file that no handle reaches, if no name does either.
    pub(super) fn collect_one(&mut self, number: InodeNumber) {
        if !self.names.reaches(number) {
            self.inodes.remove(&number);
        }
    }

    /// Changes a file's content, unless it fails or does not fit.
    pub(super) fn change(&mut self, number: InodeNumber, change: Change, fails: bool) -> Result<()> {
        let fault = if fails {
            Some(Error::from(SimulatedFault::Device))
        } else if self.has_room(number, &change) {
            None
        } else {
            Some(ErrorKind::StorageFull.into())
        };
        let Some(fault) = fault else {
            self.inode(number)?.change(change);
            return Ok(());
        };
        // A failed write may have written any of its first bytes, as far as there is room.
        if let Change::Write { offset, mut bytes } = change {
            bytes.truncate(self.random.below(bytes.len() as u64 + 1) as usize);
            let prefix = Change::Write { offset, bytes };
            if self.has_room(number, &prefix) {
                self.inode(number)?.change(prefix);
            }
        }
        Err(fault)
    }

    fn has_room(&self, number: InodeNumber, change: &Change) -> bool {
        let (Some(quota), Change::Write { offset, bytes }) = (self.faults.quota_bytes, change) else {
            return true;
        };
        let more = self.inodes.get(&number).map_or(0, |inode| inode.live.missing_bytes(*offset, bytes.len()));
        more == 0 || self.used_bytes() + more <= quota
    }

    /// Bytes that all files occupy.
    pub(super) fn used_bytes(&self) -> u64 {
        self.inodes.values().map(|inode| inode.live.allocated_bytes()).sum()
    }

    /// Bytes that files may occupy besides; `None` without a quota.
    pub(super) fn available_bytes(&self) -> Option<u64> {
        self.faults.quota_bytes.map(|quota| quota.saturating_sub(self.used_bytes()))
    }

    pub(super) fn sync(&mut self, number: InodeNumber, name: &str, fails: bool) -> Result<()> {
        let skipped = self.planted.iter().any(
            |bug| matches!(bug, PlantedBug::SkipFileSync { name_prefix } if name.starts_with(name_prefix.as_str())),
        );
        let Self { random, inodes, .. } = self;
        let inode = inodes.get_mut(&number).ok_or(SimulatedFault::Crash)?;
        if fails {
            inode.fail_sync(random);
            return Err(SimulatedFault::Device.into());
        }
        if !skipped {
            inode.sync();
        }
        Ok(())
    }

    pub(super) fn sync_names(&mut self, fails: bool) -> Result<()> {
        if fails {
            self.names.fail_sync(&mut self.random);
            return Err(SimulatedFault::Device.into());
        }
        if !self.planted.contains(&PlantedBug::SkipDirectorySync) {
            self.names.sync();
            self.collect();
        }
        Ok(())
    }
}
