//! Random operations on a simulated medium, with crashes, beside a map of what a get may say.

mod scarcity;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use alluvium_base::KeyHasher;
use alluvium_io::{Clock as _, SimulatedClock};

use crate::item::Metadata;
use crate::partition::{Change, Write};
use crate::sync::{AtomicU64, Ordering};
use crate::zone::Codec;

#[cfg(feature = "zstd")]
use super::compressed_seed::dictionaries;
use super::compressed_seed::{alike, codec_of, simple};
use super::core::{Core, Start, format};
use super::dictionaries::SLOTS;
use super::geometry::Geometry;
use super::medium::Mistake;
use super::packing::Packing;
use super::part::Part;
use super::shared::Shared;
use super::simulated::{Loss, Random, SimulatedMedium};
pub use super::summary::Summary;
use super::write_cache::Shape;

/// Operations before a crash, at most.
const OPERATIONS_MAX: usize = 60;

/// A value as it was set: its bytes and its expiry.
type Value = (Vec<u8>, u64);

/// By key: what a get may find; it may also find nothing.
type Reference = BTreeMap<Vec<u8>, Vec<Value>>;

/// One seed.
struct Run {
    core: Core<SimulatedMedium>,
    write_cache: Option<Shape>,
    codec: Option<Codec>,
    /// See [`scarcity`].
    is_scarce: bool,
    promoted: Vec<scarcity::Promoted>,
    time: SimulatedClock,
    random: Random,
    reference: Reference,
    /// The keys that are used.
    keys: Vec<Vec<u8>>,
    /// Values are distinct, or few.
    has_few_values: bool,
    values: u64,
    /// What the next crash leaves.
    loss: Loss,
    /// The operation that is in progress: its key, and what it sets.
    pending: Option<(Vec<u8>, Option<Value>)>,
    summary: Summary,
}

/// Runs `crashes` crashes of a seed.
///
/// # Errors
/// What a get said that it must not.
pub fn run(seed: u64, crashes: u64, mistake: Option<Mistake>) -> Result<Summary, String> {
    let (mut run, geometry) = prepared(seed, mistake)?;
    for _ in 0..crashes {
        let operations = run.operations_max();
        let steps = run.random.any() % (operations as u64 * 8);
        run.until_crash(steps, operations)?;
        run.reopen(geometry)?;
    }
    Ok(run.summary)
}

/// Runs the first operations of a seed again and again, with a crash after each store and fence of them.
///
/// # Errors
/// What a get said that it must not.
pub fn run_each_step(seed: u64) -> Result<Summary, String> {
    let mut all = Summary::default();
    for steps in 0.. {
        let (mut run, geometry) = prepared(seed, None)?;
        run.until_crash(steps, OPERATIONS_MAX)?;
        let has_crashed = run.core.shared.medium.has_crashed();
        run.reopen(geometry)?;
        all.operations += run.summary.operations;
        all.crashes += 1;
        all.survived += run.summary.survived;
        all.lost += run.summary.lost;
        if !has_crashed {
            break;
        }
    }
    Ok(all)
}

/// The beginning of a seed.
fn prepared(seed: u64, mistake: Option<Mistake>) -> Result<(Run, Geometry), String> {
    let mut random = Random::new(seed);
    // Three eighths of the seeds compress, one of them with too little room.
    let codec = [3, 4, 6].contains(&(seed % 8)).then(|| codec_of(seed));
    let is_scarce = seed % 8 == 6;
    let zone_bytes =
        random.one_of(if codec.is_some() { &[1024, 1024, 2048] } else { &[256, 512, 1024, 4096] });
    let mut geometry = Geometry {
        partitions: random.one_of(&[1, 1, 2]),
        zones: random.one_of(&[4, 5, 8]),
        zone_bytes,
        // Items that are compressed are neither replaced nor displaced for a while.
        buckets: random.one_of(if codec.is_some() { &[8, 20, 40] } else { &[1, 2, 5] }),
        dictionaries: if codec.is_some_and(Codec::learns) { SLOTS } else { 0 },
        version_bits: random.one_of(&[2, 2, 3, 23]),
    };
    if is_scarce {
        scarcity::shape(&mut geometry, &mut random);
    }
    let time = SimulatedClock::new(Duration::from_millis(1000));
    let medium = SimulatedMedium::new(geometry.file_bytes(), mistake);
    format(&medium, &geometry);
    // A few slots, so that items come and go. Most items fit.
    let write_cache =
        (seed % 2 == 1).then_some(Shape { sets: 1, slot_units: 3.min(geometry.item_units_max()) });
    let shared = shared(medium, geometry, &time, write_cache, codec);
    let core = Core::open(shared, Start::New).map_err(|error| error.to_string())?;
    let keys = random.one_of(if codec.is_some() { &[30, 60, 100, 200] } else { &[3, 8, 20, 60] });
    let keys = if codec.is_some() && !is_scarce && seed % 16 < 8 { alike(&core, keys) } else { simple(keys) };
    let run = Run {
        core,
        write_cache,
        codec,
        is_scarce,
        promoted: Vec::new(),
        time,
        keys,
        has_few_values: random.below(2) == 0,
        random,
        reference: Reference::new(),
        values: 0,
        loss: Loss::Nothing,
        pending: None,
        summary: Summary::default(),
    };
    Ok((run, geometry))
}

fn shared(
    medium: SimulatedMedium,
    geometry: Geometry,
    time: &SimulatedClock,
    write_cache: Option<Shape>,
    codec: Option<Codec>,
) -> Shared<SimulatedMedium> {
    Shared {
        medium,
        geometry,
        hasher: KeyHasher::Xxh3 { seed: 1 },
        clock: Arc::new(time.clone()),
        latest_ms: crate::sync::AtomicU64::new(0),
        packing: codec.map(|codec| Packing::new(codec, 0)),
        write_cache,
        number: u64::MAX,
    }
}

impl Run {
    /// Operations before a crash, at most. It takes more of them until items are compressed.
    fn operations_max(&self) -> usize {
        if self.codec.is_some() { 16 * OPERATIONS_MAX } else { OPERATIONS_MAX }
    }

    /// Gives the file another dictionary, if there is a slot for it.
    #[cfg(feature = "zstd")]
    fn install_dictionary(&mut self) {
        let all = dictionaries();
        let bytes = &all[self.random.below(all.len())];
        let shared = &self.core.shared;
        if let Some(dictionaries) = shared.packing.as_ref().and_then(|packing| packing.dictionaries.as_ref())
        {
            dictionaries.install(bytes, &shared.medium, &shared.geometry);
        }
    }

    /// Files of LZ4 have none.
    #[cfg(not(feature = "zstd"))]
    fn install_dictionary(&mut self) {}

    fn key(&mut self) -> Vec<u8> {
        self.keys[self.random.below(self.keys.len())].clone()
    }

    fn value(&mut self) -> Value {
        self.values += 1;
        let number = if self.has_few_values { self.random.below(2) as u64 } else { self.values };
        let len = if self.has_few_values { 6 } else { self.random.one_of(&[0, 6, 30, 47]) };
        let mut bytes = number.to_string().into_bytes();
        while bytes.len() < len {
            bytes.push(if self.is_scarce { self.noise() } else { b'.' });
        }
        let expires_at_ms =
            if self.random.below(8) == 0 { self.now_ms() + self.random.any() % 40 } else { 0 };
        (bytes, expires_at_ms)
    }

    fn now_ms(&self) -> u64 {
        self.time.unix().as_millis() as u64
    }

    /// Operations up to a crash after a number of stores and fences, or after the last operation.
    fn until_crash(&mut self, steps: u64, operations_max: usize) -> Result<(), String> {
        let losses = [Loss::Nothing, Loss::Most, Loss::Lines, Loss::Words, Loss::Words];
        let loss = self.random.one_of(if self.is_scarce { &scarcity::LOSSES } else { &losses });
        self.loss = loss;
        let count = self.random.below(operations_max) + 1;
        let random = Random::new(self.random.any());
        self.core.shared.medium.crash_after(steps + 1, loss, random);
        for _ in 0..count {
            self.pending = None;
            self.summary.operations += 1;
            if self.is_scarce {
                self.scarce_operation()?;
            } else {
                self.operation()?;
            }
            if self.core.shared.medium.has_crashed() {
                return Ok(());
            }
            if self.is_scarce && self.comes_to_crash()? {
                break;
            }
        }
        self.pending = None;
        Ok(())
    }

    fn operation(&mut self) -> Result<(), String> {
        let key = self.key();
        match self.random.below(20) {
            0..8 => self.set(&key),
            8..11 => self.remove(&key),
            11..13 => self.replace_present(&key)?,
            13 => self.time.advance(Duration::from_millis(self.random.any() % 20)),
            14 if self.random.below(10) == 0 => {
                let before = self.reference.clone();
                self.core.parts.iter().for_each(Part::clear);
                // In the middle of it, some are gone.
                if !self.core.shared.medium.has_crashed() {
                    before.keys().for_each(|key| self.acknowledge(key, None));
                }
            }
            14 if self.codec.is_some() && self.random.below(6) == 0 => self.install_dictionary(),
            14 if self.random.below(6) == 0 => self.core.parts.iter().for_each(Part::cool_all),
            14 => self.batch(),
            _ => {
                // The second get of a compressed item promotes it.
                let times = if self.codec.is_some() { 1 + self.random.below(3) } else { 1 };
                for _ in 0..times {
                    self.look(&key)?;
                }
            }
        }
        Ok(())
    }

    fn set(&mut self, key: &[u8]) {
        let (value, hash) = (self.value(), self.core.shared.hash(key));
        self.pending = Some((key.to_vec(), Some(value.clone())));
        let part = self.core.part(hash);
        let metadata = Metadata { expires_at_ms: value.1, flags: 0 };
        match part.set(part.sought(hash, key), &value.0, metadata) {
            Ok(()) => self.acknowledge(key, Some(value)),
            Err(_) => self.pending = None,
        }
    }

    fn remove(&mut self, key: &[u8]) {
        let hash = self.core.shared.hash(key);
        self.pending = Some((key.to_vec(), None));
        let part = self.core.part(hash);
        part.remove(part.sought(hash, key));
        self.acknowledge(key, None);
    }

    /// An update that depends on the item.
    fn replace_present(&mut self, key: &[u8]) -> Result<(), String> {
        let (value, hash) = (self.value(), self.core.shared.hash(key));
        self.pending = Some((key.to_vec(), Some(value.clone())));
        let part = self.core.part(hash);
        let mut found = None;
        let outcome = part.update(part.sought(hash, key), |item| {
            found = item.map(|(item, _)| item.value.to_vec());
            match item {
                None => Change::Keep,
                Some(_) => Change::Put(Write {
                    value: value.0.clone().into(),
                    metadata: Metadata { expires_at_ms: value.1, flags: 0 },
                }),
            }
        });
        let is_there = found.is_some();
        self.check(key, found)?;
        if is_there && outcome.is_ok() {
            self.acknowledge(key, Some(value));
        }
        Ok(())
    }

    /// Several removals with one fence.
    fn batch(&mut self) {
        let keys: Vec<Vec<u8>> = (0..3).map(|_| self.key()).collect();
        for part in &self.core.parts {
            let hashed = keys.iter().map(|key| (self.core.shared.hash(key), &key[..]));
            let own = hashed.filter(|(hash, _)| self.core.part(*hash).number == part.number);
            part.remove_each(own);
        }
        if !self.core.shared.medium.has_crashed() {
            keys.iter().for_each(|key| self.acknowledge(key, None));
        }
    }

    /// Notes that an operation has returned, unless the crash came before.
    fn acknowledge(&mut self, key: &[u8], value: Option<Value>) {
        if !self.core.shared.medium.has_crashed() {
            self.reference.insert(key.to_vec(), value.into_iter().collect());
            self.pending = None;
        }
    }

    /// A get, which finds what it may.
    fn look(&mut self, key: &[u8]) -> Result<bool, String> {
        let hash = self.core.shared.hash(key);
        let part = self.core.part(hash);
        let found = part.get_with(part.sought(hash, key), |value, _| value.to_vec());
        let is_there = found.is_some();
        self.check(key, found)?;
        Ok(is_there)
    }

    fn check(&mut self, key: &[u8], found: Option<Vec<u8>>) -> Result<(), String> {
        let now_ms = self.now_ms();
        let may = self.reference.entry(key.to_vec()).or_default();
        may.retain(|(value, expires_at_ms)| {
            found.as_ref() == Some(value) && (*expires_at_ms == 0 || *expires_at_ms > now_ms)
        });
        match found {
            Some(found) if may.is_empty() => Err(format!(
                "crash {}: {} has {:?}, which is an older item or a removed one",
                self.summary.crashes,
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(&found),
            )),
            _ => Ok(()),
        }
    }

    /// The process ends, and another opens what is left.
    fn reopen(&mut self, geometry: Geometry) -> Result<(), String> {
        if let Some((key, Some(value))) = self.pending.take() {
            self.reference.entry(key).or_default().push(value);
        }
        for part in &self.core.parts {
            let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
            self.summary.packed += load(&part.counters.packed);
            self.summary.promoted += load(&part.counters.promoted);
            self.summary.copied += load(&part.counters.blocks_copied);
        }
        let medium = self.core.shared.medium.after_crash(self.loss, Random::new(self.random.any()));
        // If only the process ended, the next one may go on.
        let start = match self.loss {
            Loss::Nothing if self.random.below(3) > 0 => Start::Resumed,
            _ => Start::AfterCrash,
        };
        self.core = Core::open(shared(medium, geometry, &self.time, self.write_cache, self.codec), start)
            .map_err(|error| error.to_string())?;
        self.summary.crashes += 1;
        self.promoted.clear();
        if self.random.below(3) == 0 {
            // Writes meet what was not verified.
            return Ok(());
        }
        for key in self.keys.clone() {
            let had = self.reference.get(&key).is_some_and(|may| !may.is_empty());
            let is_there = self.look(&key)?;
            self.summary.survived += u64::from(is_there);
            self.summary.lost += u64::from(had && !is_there);
        }
        Ok(())
    }
}
