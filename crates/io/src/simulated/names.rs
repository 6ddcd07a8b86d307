//! The names of a simulated directory: what its users see, what a power cut leaves, and the unsynced changes between
//! them.

use std::collections::{BTreeMap, BTreeSet};

use super::inode::Mood;
use crate::random::Random;

/// Number of a file, whatever its name.
pub(super) type InodeNumber = u64;

/// A change of the directory that may not be on the device yet.
#[derive(Clone, Debug)]
enum NameChange {
    Create { name: String, inode: InodeNumber },
    Remove { name: String },
    Rename { from: String, to: String, inode: InodeNumber },
}

impl NameChange {
    fn apply(&self, names: &mut BTreeMap<String, InodeNumber>) {
        match self {
            Self::Create { name, inode } => {
                names.insert(name.clone(), *inode);
            }
            Self::Remove { name } => {
                names.remove(name);
            }
            Self::Rename { from, to, inode } => {
                names.remove(from);
                names.insert(to.clone(), *inode);
            }
        }
    }

    fn touches(&self) -> [&str; 2] {
        match self {
            Self::Create { name, .. } | Self::Remove { name } => [name, name],
            Self::Rename { from, to, .. } => [from, to],
        }
    }
}

/// The directory. Invariant: `live` is `durable` with all of `unsynced` applied in order, unless a sync has failed.
#[derive(Debug, Default)]
pub(super) struct Names {
    pub(super) live: BTreeMap<String, InodeNumber>,
    durable: BTreeMap<String, InodeNumber>,
    unsynced: Vec<NameChange>,
}

impl Names {
    pub(super) fn add_durable(&mut self, name: String, inode: InodeNumber) {
        self.durable.insert(name.clone(), inode);
        self.live.insert(name, inode);
    }

    pub(super) fn create(&mut self, name: &str, inode: InodeNumber) {
        self.change(NameChange::Create { name: name.to_owned(), inode });
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.change(NameChange::Remove { name: name.to_owned() });
    }

    pub(super) fn rename(&mut self, from: &str, to: &str, inode: InodeNumber) {
        self.change(NameChange::Rename { from: from.to_owned(), to: to.to_owned(), inode });
    }

    fn change(&mut self, change: NameChange) {
        change.apply(&mut self.live);
        self.unsynced.push(change);
    }

    pub(super) fn sync(&mut self) {
        self.unsynced.clear();
        self.durable = self.live.clone();
    }

    /// Like a failed sync of a file: some changes arrive, the others are forgotten, and all users still see them.
    pub(super) fn fail_sync(&mut self, random: &mut Random) {
        let mood = Mood::draw(random);
        self.settle(random, mood);
    }

    pub(super) fn crash(&mut self, random: &mut Random, mood: Mood) {
        self.settle(random, mood);
        self.live = self.durable.clone();
    }

    /// Every change is lost or kept, in any combination in which changes of one name keep their order: a name
    /// cannot be taken before it is vacated, nor a file renamed that was never created.
    fn settle(&mut self, random: &mut Random, mood: Mood) {
        let mut lost: BTreeSet<String> = BTreeSet::new();
        for change in std::mem::take(&mut self.unsynced) {
            let possible = change.touches().iter().all(|name| !lost.contains(*name));
            if possible && mood.keeps(random) {
                change.apply(&mut self.durable);
            } else {
                lost.extend(change.touches().map(str::to_owned));
            }
        }
    }

    /// Every file that has a name, had one that may come back, or may yet get one.
    pub(super) fn reachable(&self) -> BTreeSet<InodeNumber> {
        self.named().collect()
    }

    /// Whether [`Names::reachable`] contains this file.
    pub(super) fn reaches(&self, number: InodeNumber) -> bool {
        self.named().any(|named| named == number)
    }

    fn named(&self) -> impl Iterator<Item = InodeNumber> {
        let pending = self.unsynced.iter().filter_map(|change| match change {
            NameChange::Create { inode, .. } | NameChange::Rename { inode, .. } => Some(*inode),
            NameChange::Remove { .. } => None,
        });
        self.live.values().chain(self.durable.values()).copied().chain(pending)
    }
}
