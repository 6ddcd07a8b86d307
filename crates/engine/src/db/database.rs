//! [`Db`]: an open database.

use std::path::Path;
use std::sync::Arc;

use alluvium_io::{FileStorage, IoOptions, ReadOnlyStorage, ReadWait};
use alluvium_model::LevelsPlan;

use super::acknowledgement::Acknowledgement;
use super::batch::Batch;
use super::close::Handle;
use super::flush::{flush, settle_log};
use super::keyspace::Keyspace;
use crate::build::Built;
use crate::chained::Chain;
use crate::compact::start_threads;
use crate::core::{
    KeyspaceShared, Shared, check_plan, complete_hasher, first_version, is_busy, linked_store, new_log_store,
    run_all_undue, run_one,
};
use crate::environment::Environment;
use crate::error::{Error, IoContext, Result};
use crate::failure::lacks_space;
use crate::hash_key::HashKey;
use crate::log::Refusal;
use crate::manifest::{CURRENT, Edit, PlanSource, PlanState};
use crate::options::{Builder, Settings};
use crate::order::KeyspaceOptions;
use crate::recovery;
use crate::reserve::Reserve;
use crate::young_directory::YoungDirectory;

/// An open database. Cheap to clone; all clones are the same database, which closes when the last of them and of its
/// keyspaces is dropped.
///
/// All methods may be called from many threads.
#[derive(Debug, Clone)]
pub struct Db {
    handle: Arc<Handle>,
    acknowledgement: Acknowledgement,
}

impl Builder {
    /// Opens the database.
    ///
    /// Reads the manifest and the log after its last converted position, and checks that all tables exist. The
    /// directory of a table is read when its keyspace is first used; damage in it is found then.
    pub fn open(self) -> Result<Db> {
        Db::open_with(self)
    }
}

impl Db {
    /// Opens the database in the directory `path` with default options, creating it if there is none.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path();
    /// let db = alluvium::Db::open(path)?;
    /// let chunks = db.keyspace("chunks")?;
    /// chunks.insert("key", "value")?;
    /// assert_eq!(chunks.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).open()
    }

    /// Options for a database in the directory `path`.
    pub fn builder(path: impl AsRef<Path>) -> Builder {
        Builder::new(path.as_ref().to_owned())
    }

    /// Opens the database in the directory `path` for reading only: a closed database, or a checkpoint or backup of
    /// one; or a build that was committed by [`crate::commit_build`], with all its shards.
    ///
    /// Changes no file, needs no permission to write, and starts no threads; log that a crash left is replayed in
    /// memory. Any number of readers share a directory. Writes, compaction and checkpoints return [`Error::ReadOnly`].
    ///
    /// # Errors
    /// [`Error::Locked`] while the database is open for writing elsewhere: make a checkpoint there ([`Db::checkpoint`])
    /// and read that. While a reader has the database open, it cannot be opened for writing.
    pub fn open_read_only(path: impl AsRef<Path>) -> Result<Self> {
        Self::builder(path).read_only(true).open()
    }

    pub(crate) fn open_with(builder: Builder) -> Result<Self> {
        let Builder { path, mut settings, environment, young } = builder;
        settings = settings.bounded();
        settings.check_choice(&settings.plan)?;
        if settings.read_only {
            settings.background = false;
            settings.create = false;
        }
        let io = IoOptions { open_files_max: settings.open_files_max, ..IoOptions::default() };
        let mut environment = match environment {
            Some(environment) => environment,
            None if settings.read_only && young.is_none() && Built::is_at(&path) => {
                alluvium_io::raise_descriptor_limit();
                Environment::of_build(&path)?
            }
            None => {
                // If the database exists already, its directory's name was made durable when it was created.
                let storage = match settings.create && !path.join(CURRENT).exists() {
                    true => FileStorage::create(&path, io),
                    false => FileStorage::open(&path, io),
                };
                let storage = storage.context(|| format!("opening directory {}", path.display()))?;
                alluvium_io::raise_descriptor_limit();
                Environment::over(Arc::new(storage))
            }
        };
        let Settings { background, read_only, .. } = settings;
        let young = match young {
            Some(young) => Some(young.open(environment.storage.clone(), &path, settings.create, io)?),
            None => None,
        };
        if let Some(young) = &young {
            environment.storage = young.directories.clone();
        }
        environment.storage.set_read_wait(settings.read_wait);
        if read_only {
            environment.storage = Arc::new(ReadOnlyStorage::new(environment.storage));
        }
        let shared = open_even_when_full(environment, young, settings).map_err(|error| match error {
            Error::Damaged { corruption, .. } => {
                Error::Damaged { corruption, directory: path.display().to_string() }
            }
            error => error,
        })?;
        let shared = Arc::new(shared);
        if read_only {
            shared.log.refuse_writes();
        }
        shared.measure_disk();
        shared.share_with_rows();
        if !read_only {
            // If there is no room for a change of plan now, the next opening makes it.
            if shared.log.refusal().is_none() {
                shared.adopt_plan_choice()?;
            }
            shared.excuse_backlogs();
        }
        if background {
            start_threads(&shared);
        } else if !read_only {
            // Fails on a disk without room; the reserve is taken later.
            let _ = shared.reserve.take();
        }
        Ok(Self { handle: Arc::new(Handle::new(shared)), acknowledgement: Acknowledgement::Each })
    }

    /// Sets what threads do from now on while they read for lookups and scans; see [`Builder::read_wait`]. Polling is
    /// worth its CPU time as long as lookups come at full rate and the processors have nothing else to do.
    pub fn set_read_wait(&self, wait: ReadWait) {
        self.shared().storage.set_read_wait(wait);
    }

    pub(super) fn handle(&self) -> &Arc<Handle> {
        &self.handle
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.handle.shared
    }

    pub(super) fn with_acknowledgement(&self, acknowledgement: Acknowledgement) -> Self {
        Self { handle: self.handle.clone(), acknowledgement }
    }

    /// The keyspace of this name. If there is none, creates it with the database's default plan, a new secret hash key
    /// and the order of hashed keys.
    pub fn keyspace(&self, name: &str) -> Result<Keyspace> {
        self.find_or_create(name, &KeyspaceOptions::default())
    }

    /// The keyspace of this name. If there is none, creates it with these options and a new secret hash key. An
    /// existing keyspace keeps its plan.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use alluvium::{Db, KeyspaceOptions, PrefixRule};
    /// let db = Db::open(directory.path())?;
    /// let slash = PrefixRule::Delimiter { byte: b'/' };
    /// let files = db.keyspace_with("files", &KeyspaceOptions::semi_sorted(slash))?;
    /// files.insert("photos/a.jpg", "1")?;
    /// files.insert("photos/b.jpg", "2")?;
    /// files.insert("music/c.mp3", "3")?;
    /// assert_eq!(files.scan_prefix("photos")?.count(), 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::KeyspaceOrder`] if it exists in another order, [`Error::KeyspaceHashKey`] if it exists with another
    /// hash key than a given one, [`Error::Plan`] if the plan does not suit the order, [`Error::PrefixFunction`] if the
    /// prefix rule is a function that was not given when the database was opened.
    pub fn keyspace_with(&self, name: &str, options: &KeyspaceOptions) -> Result<Keyspace> {
        let keyspace = self.find_or_create(name, options)?;
        match keyspace.order() {
            order if order == options.order => {}
            found => return Err(Error::KeyspaceOrder { name: name.to_owned(), found }),
        }
        if options.hash_key.is_some() && options.hash_key != keyspace.hash_key() {
            return Err(Error::KeyspaceHashKey { name: name.to_owned() });
        }
        Ok(keyspace)
    }

    fn find_or_create(&self, name: &str, options: &KeyspaceOptions) -> Result<Keyspace> {
        let shared = &self.handle.shared;
        shared.check_open()?;
        if name.is_empty() || name.len() > 255 || name.chars().any(char::is_control) {
            return Err(Error::KeyspaceName { name: name.to_owned() });
        }
        let found = |keyspaces: &[Arc<KeyspaceShared>]| {
            keyspaces.iter().find(|keyspace| keyspace.name == name).cloned()
        };
        let existing = found(&shared.keyspaces.read().expect("no panic while held"));
        let keyspace = match existing {
            Some(keyspace) => keyspace,
            None => {
                // No freeze may happen between choosing the active segment and listing the keyspace.
                let _no_freeze = shared.freeze_lock.lock().expect("no panic while held");
                let existing = found(&shared.keyspaces.read().expect("no panic while held"));
                match existing {
                    Some(keyspace) => keyspace,
                    None => self.create_keyspace(name, options)?,
                }
            }
        };
        shared.open_tables_of(&keyspace)?;
        Ok(Keyspace { handle: self.handle.clone(), acknowledgement: self.acknowledgement, shared: keyspace })
    }

    fn create_keyspace(&self, name: &str, options: &KeyspaceOptions) -> Result<Arc<KeyspaceShared>> {
        let shared = &self.handle.shared;
        shared.check_failure()?;
        let given = &shared.settings.prefix_functions;
        let random = || HashKey { key0: shared.next_random(), key1: shared.next_random() };
        let hasher = options.order.hasher(options.hash_key.unwrap_or_else(random), given);
        let hasher = complete_hasher(name, hasher, given)?;
        let id = shared.manifest.lock().expect("no panic while held").state().next_keyspace;
        let plan = match &options.plan {
            Some(plan) => PlanState::first(LevelsPlan::try_from(plan.clone())?, PlanSource::Own),
            None => shared.plan_for_new_keyspace(&hasher)?,
        };
        check_plan(&plan.plan, &hasher)?;
        shared.settings.check_chained(&plan.plan)?;
        let (name_of, source) = (name.to_owned(), plan.source);
        let create =
            Edit::CreateKeyspace { keyspace: id, name: name_of, hasher, plan: plan.plan.clone(), source };
        let mut edits = vec![create];
        if plan.items_planned > 0 {
            edits.push(Edit::SetPlan { keyspace: id, plan: plan.clone() });
        }
        shared.append_edits(&edits)?;
        let entries_max = shared.memory.budget().log_entries_max;
        let (expected_items, active) = (shared.settings.expected_items, shared.log.active_segment());
        let chain = plan.plan.log.chained.map(|spec| Chain::new(id, spec, expected_items));
        let store = match &chain {
            Some((chain, slots)) => linked_store(chain, hasher, active, *slots, entries_max),
            None => {
                let items = plan.plan.items_sharded(0, expected_items);
                new_log_store(&plan.plan, hasher, active, items, 0, (entries_max, true))
            }
        };
        let _files_stay = shared.blobs.hold_files();
        let mut version = first_version(plan, store);
        version.chain = chain.map(|(chain, _)| Arc::new(chain));
        version.blobs = version.blobs.with_files(&shared.blobs.files());
        let keyspace = Arc::new(KeyspaceShared::new(id, name.to_owned(), hasher, version));
        shared.keyspaces.write().expect("no panic while held").push(keyspace.clone());
        shared.count_directories();
        Ok(keyspace)
    }

    /// Names of all keyspaces, in the order of their creation.
    pub fn keyspace_names(&self) -> Vec<String> {
        self.shared().all_keyspaces().iter().map(|keyspace| keyspace.name.clone()).collect()
    }

    /// An empty batch of writes that take effect together.
    pub fn batch(&self) -> Batch {
        Batch::new(self.handle.clone(), self.acknowledgement)
    }

    /// Makes all writes so far survive a power cut, under any [`crate::Durability`] of the database.
    pub fn persist(&self) -> Result<()> {
        let shared = self.shared();
        shared.check_refusal()?;
        shared.log.commit_all().map_err(|error| shared.note_failure(error))
    }

    /// Freezes the log and converts it, so that all items written so far are in tables.
    pub fn flush(&self) -> Result<()> {
        self.shared().check_failure()?;
        flush(self.shared())
    }

    /// Waits until no frozen segment waits for conversion, no merge is due, expired items and tombstones are no large
    /// part of any container, and all tables are stored as their keyspace's plan demands.
    pub fn wait_idle(&self) -> Result<()> {
        let shared = self.shared();
        shared.opened_keyspaces()?;
        loop {
            shared.check_failure()?;
            if !shared.settings.background {
                while self.run_background_job()? {}
                if settle_log(shared)? {
                    continue;
                }
                return shared.log.mark_end();
            }
            if !is_busy(shared) {
                if settle_log(shared)? {
                    continue;
                }
                shared.reclaimer.drain();
                return shared.log.mark_end();
            }
            shared.check_progress()?;
            shared.scheduler.wait_for_progress();
        }
    }

    /// Merges everything, the log included, into the last levels, even where no merge is due; drops expired items, and
    /// completes a change of plan.
    pub fn compact(&self) -> Result<()> {
        self.flush()?;
        let shared = self.shared();
        shared.opened_keyspaces()?;
        run_all_undue(shared).map_err(|error| shared.note_failure(error))
    }

    /// Does one piece of background work, conversion first; returns `false` if there is none. For databases opened with
    /// `background(false)`. Their users must call it again after a failure, and while the disk is full: it checks for
    /// space then.
    pub fn run_background_job(&self) -> Result<bool> {
        let shared = self.shared();
        if let Some(Refusal::Full { .. }) = shared.log.refusal() {
            return shared.try_to_resume().map(|()| true);
        }
        shared.check_failure()?;
        run_one(shared).map_err(|error| shared.note_failure(error))
    }

    /// Changes [`Builder::background_bytes_per_s_max`], also for merges in progress; `None` means no limit, and 0
    /// counts as 1.
    pub fn set_background_bytes_per_s_max(&self, bytes_per_s: Option<u64>) {
        self.shared().merge_rate.set(bytes_per_s.map_or(0, |bytes| bytes.max(1)));
    }

    /// Closes the database: gives up background work, makes all acknowledged writes durable, and releases the
    /// directory, so that it can be opened again at once.
    ///
    /// All remaining handles, iterators, snapshots, ingests and transactions return [`Error::Closed`] from then on. A
    /// limited rate of merges does not delay closing. Dropping the last handle closes, too, but cannot report errors.
    ///
    /// # Errors
    /// If acknowledged writes could not be made durable: after a failed write or sync ([`Error::Failed`]), or on a disk
    /// too full for that ([`Error::DiskFull`]). The directory is released even then.
    pub fn close(self) -> Result<()> {
        self.handle.close()
    }
}

/// Opens a database. On a full disk, uses the space that an earlier opening reserved; the database then accepts reads
/// and removals.
fn open_even_when_full(
    environment: Environment,
    young: Option<YoungDirectory>,
    settings: Settings,
) -> Result<Shared> {
    let (storage, read_only) = (environment.storage.clone(), settings.read_only);
    let error = match recovery::open(environment.clone(), young.clone(), settings.clone()) {
        Err(error) if !read_only && lacks_space(&error) => error,
        outcome => return outcome,
    };
    let lock = recovery::lock(&*storage)?;
    if !Reserve::give_up(&*storage) {
        return Err(error);
    }
    drop(lock);
    let shared = recovery::open(environment, young, settings).map_err(|error| match error {
        // Somebody else has taken what was reserved.
        Error::Io { .. } if lacks_space(&error) => Error::DiskFull { reason: error.to_string() },
        error => error,
    })?;
    shared.log.set_full(&error);
    Ok(shared)
}
