//! [`Settings`]: settings by name and text, as they come from C and from configuration files.

use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use alluvium::{Builder, Codec, Db, Durability, Plan, PlanChoice, ReadWait, Workload};
use alluvium_cache::{Cache, Compressed, Concurrent, Survive, SurvivingCache};

use crate::failure::Failure;

/// Partitions of a cache, so that threads rarely wait for each other's writes.
const PARTITIONS: usize = 16;

/// Settings in the order in which they were set. A later one of the same name replaces an earlier one.
#[derive(Debug, Clone, Default)]
pub struct Settings(Vec<(String, String)>);

impl Settings {
    /// Sets `name`.
    pub fn set(&mut self, name: &str, value: &str) {
        self.0.retain(|(other, _)| other != name);
        self.0.push((name.to_owned(), value.to_owned()));
    }

    fn find(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
    }

    /// A builder of the database in `path` with them.
    pub fn database(&self, path: PathBuf) -> Result<Builder, Failure> {
        let mut builder = Db::builder(path);
        let mut workload = None;
        for (name, value) in &self.0 {
            match name.strip_prefix("workload.") {
                Some(field) => {
                    *share(workload.get_or_insert_with(Workload::default), field)? = parsed(name, value)?;
                }
                None => builder = self.with(builder, name, value)?,
            }
        }
        Ok(match workload {
            Some(workload) => builder.workload(workload),
            None => builder,
        })
    }

    fn with(&self, builder: Builder, name: &str, value: &str) -> Result<Builder, Failure> {
        Ok(match name {
            "expected_items" => builder.expected_items(parsed(name, value)?),
            "plan" => builder.plan(plan_choice(value)?),
            "durability" => builder.durability(durability(value)?),
            "create" => builder.create(parsed(name, value)?),
            "read_only" => builder.read_only(parsed(name, value)?),
            "memory_bytes_max" => builder.memory_bytes_max(parsed(name, value)?),
            "process_memory_bytes_max" => builder.process_memory_bytes_max(parsed(name, value)?),
            "row_cache_bytes_max" => builder.row_cache_bytes_max(parsed(name, value)?),
            "compress_rows" => builder.compress_rows(codec(value)?),
            "disk_bytes_max" => builder.disk_bytes_max(parsed(name, value)?),
            "drop_oldest" => builder.drop_oldest(parsed(name, value)?),
            "index_bytes_per_item" => builder.index_bytes_per_item(parsed(name, value)?),
            "inline_bytes_max" => builder.inline_bytes_max(parsed(name, value)?),
            "ingest_sort_bytes_max" => builder.ingest_sort_bytes_max(parsed(name, value)?),
            "background_bytes_per_s_max" => builder.background_bytes_per_s_max(parsed(name, value)?),
            "open_files_max" => builder.open_files_max(parsed(name, value)?),
            "log_retention_bytes" => builder.log_retention_bytes(parsed(name, value)?),
            "read_wait" => builder.read_wait(read_wait(value)?),
            "young_levels_dir" => {
                let levels =
                    self.find("young_levels").map_or(Ok(1), |value| parsed("young_levels", value))?;
                builder.young_levels_dir(value, levels)
            }
            "young_levels" => {
                let _: usize = parsed(name, value)?;
                builder
            }
            _ => return Err(Failure::settings(&format!("a database has no setting {name:?}"))),
        })
    }

    /// A cache with them.
    pub fn cache(&self) -> Result<Caching, Failure> {
        self.check_cache()?;
        let number = |name: &str| self.find(name).map(|value| parsed::<usize>(name, value)).transpose();
        let memory_bytes = number("memory_bytes")?.unwrap_or(64 << 20);
        let partitions = number("partitions")?.unwrap_or((memory_bytes >> 22).clamp(1, PARTITIONS));
        let mut builder = Cache::builder().memory_limit(memory_bytes).partitions(partitions);
        builder = match number("item_bytes")? {
            Some(bytes) => builder.payload_bytes_mean(bytes),
            None => builder,
        };
        if let Some(bytes) = number("item_bytes_max")? {
            builder = builder.item_bytes_max(bytes);
        }
        let codec = self.find("compress").map(codec).transpose()?;
        let Some(path) = self.find("survive") else {
            if let Some(codec) = codec {
                builder = builder.compressed(Compressed { codec, ..Compressed::default() });
            }
            return Ok(Caching::Memory(Box::new(builder.build()?)));
        };
        let survive = self.find("survive_loss").map_or(Ok(Survive::Process), survive)?;
        let mut builder = builder.survive(path, survive);
        if let Some(reset) = self.find("reset") {
            builder = builder.reset(parsed("reset", reset)?);
        }
        if let Some(codec) = codec {
            builder = builder.compressed(codec);
        }
        Ok(Caching::File(Box::new(builder.open()?)))
    }

    /// Checks names and values of settings of a cache.
    pub fn check_cache(&self) -> Result<(), Failure> {
        for (name, value) in &self.0 {
            match &**name {
                "memory_bytes" | "item_bytes" | "item_bytes_max" | "partitions" => {
                    parsed::<usize>(name, value).map(drop)?;
                }
                "compress" => codec(value).map(drop)?,
                "survive" => {}
                "survive_loss" => survive(value).map(drop)?,
                "reset" => parsed::<bool>(name, value).map(drop)?,
                _ => return Err(Failure::settings(&format!("a cache has no setting {name:?}"))),
            }
        }
        Ok(())
    }
}

/// A cache in memory, or in a file.
#[derive(Debug)]
pub enum Caching {
    /// In memory.
    Memory(Box<Cache<Concurrent>>),
    /// In a file, which survives.
    File(Box<SurvivingCache>),
}

/// A plan by its name, or as `alluvium plan --json` prints it.
pub fn plan(text: &str) -> Result<Plan, Failure> {
    let plan = if text.trim_start().starts_with('{') { Plan::from_json(text) } else { Plan::named(text) };
    Ok(plan.map_err(alluvium::Error::from)?)
}

fn parsed<T: FromStr>(name: &str, value: &str) -> Result<T, Failure> {
    value.parse().map_err(|_| Failure::settings(&format!("{name} cannot be {value:?}")))
}

/// One of several words, or a refusal that names all.
fn word<T: Copy>(name: &str, value: &str, words: &[(&str, T)]) -> Result<T, Failure> {
    let found = words.iter().find(|(word, _)| *word == value).map(|&(_, meaning)| meaning);
    found.ok_or_else(|| {
        let words: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        Failure::settings(&format!("{name} cannot be {value:?}: give one of {}", words.join(", ")))
    })
}

fn plan_choice(value: &str) -> Result<PlanChoice, Failure> {
    if value == "auto" { Ok(PlanChoice::Auto) } else { plan(value).map(PlanChoice::Fixed) }
}

fn durability(value: &str) -> Result<Durability, Failure> {
    if let Ok(seconds) = value.parse::<f64>() {
        let interval = Duration::try_from_secs_f64(seconds);
        let interval = interval.map_err(|_| Failure::settings(&format!("{value} is no time in seconds")))?;
        return Ok(Durability::Interval(interval));
    }
    let words =
        [("sync", Durability::Sync), ("process", Durability::Process), ("buffered", Durability::Buffered)];
    word("durability", value, &words)
}

fn read_wait(value: &str) -> Result<ReadWait, Failure> {
    let words = [("adapt", ReadWait::Adapt), ("sleep", ReadWait::Sleep), ("poll", ReadWait::Poll)];
    word("read_wait", value, &words)
}

fn survive(value: &str) -> Result<Survive, Failure> {
    let words = [("process", Survive::Process), ("power", Survive::Power), ("pmem", Survive::Pmem)];
    word("survive_loss", value, &words)
}

fn codec(value: &str) -> Result<Codec, Failure> {
    let words = [
        ("lz4", Codec::Lz4),
        #[cfg(feature = "zstd")]
        ("zstd", Codec::Zstd),
    ];
    word("the codec", value, &words)
}

fn share<'a>(workload: &'a mut Workload, field: &str) -> Result<&'a mut f64, Failure> {
    Ok(match field {
        "gets" => &mut workload.gets,
        "absent_gets" => &mut workload.absent_gets,
        "puts" => &mut workload.puts,
        "removals" => &mut workload.removals,
        "skew" => &mut workload.skew,
        "key_bytes" => &mut workload.key_bytes,
        "value_bytes" => &mut workload.value_bytes,
        _ => return Err(Failure::settings(&format!("a workload has no field {field:?}"))),
    })
}
