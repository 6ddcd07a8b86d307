//! The options of `open` and `repair`, under the names that the engine's builders have.

use std::path::PathBuf;
use std::time::Duration;

use alluvium::{
    Builder, Codec, Db, Durability, Order, Plan, PlanChoice, PrefixRule, ReadWait, RepairOptions, Workload,
};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};

use crate::bytes_like::BytesLike;
use crate::failure::{self, OrRaise};

/// A builder for the database in `path` with all `options`.
pub fn builder(path: PathBuf, options: Option<&Bound<'_, PyDict>>) -> PyResult<Builder> {
    let mut builder = Db::builder(path);
    let Some(options) = options else { return Ok(builder) };
    let mut young_levels = 1;
    if let Some(levels) = options.get_item("young_levels")?.filter(|levels| !levels.is_none()) {
        young_levels = levels.extract()?;
    }
    for (name, value) in options {
        let name: String = name.extract()?;
        // None is the default of each option.
        if !value.is_none() {
            builder = with_option(builder, &name, &value, young_levels)?;
        }
    }
    Ok(builder)
}

fn with_option(
    builder: Builder,
    name: &str,
    value: &Bound<'_, PyAny>,
    young_levels: usize,
) -> PyResult<Builder> {
    Ok(match name {
        "expected_items" => builder.expected_items(value.extract()?),
        "plan" => builder.plan(plan_choice(value)?),
        "durability" => builder.durability(durability(value)?),
        "workload" => builder.workload(workload(value.cast()?)?),
        "index_bytes_per_item" => builder.index_bytes_per_item(value.extract()?),
        "create" => builder.create(value.extract()?),
        "read_only" => builder.read_only(value.extract()?),
        "inline_bytes_max" => builder.inline_bytes_max(value.extract()?),
        "memory_bytes_max" => builder.memory_bytes_max(value.extract()?),
        "process_memory_bytes_max" => builder.process_memory_bytes_max(value.extract()?),
        "row_cache_bytes_max" => builder.row_cache_bytes_max(value.extract()?),
        "compress_rows" => builder.compress_rows(codec(value)?),
        "disk_bytes_max" => builder.disk_bytes_max(value.extract()?),
        "drop_oldest" => builder.drop_oldest(value.extract()?),
        "background_bytes_per_s_max" => builder.background_bytes_per_s_max(value.extract()?),
        "ingest_sort_bytes_max" => builder.ingest_sort_bytes_max(value.extract()?),
        "open_files_max" => builder.open_files_max(value.extract()?),
        "log_retention_bytes" => builder.log_retention_bytes(value.extract()?),
        "read_wait" => builder.read_wait(read_wait(value)?),
        "young_levels_dir" => builder.young_levels_dir(value.extract::<PathBuf>()?, young_levels),
        "young_levels" => builder,
        _ => return Err(PyTypeError::new_err(format!("open() has no option {name:?}"))),
    })
}

/// Options of a repair.
pub fn repair(options: Option<&Bound<'_, PyDict>>) -> PyResult<RepairOptions> {
    let mut repair = RepairOptions::default();
    for (name, value) in options.into_iter().flatten() {
        let name: String = name.extract()?;
        match &*name {
            "dry_run" => repair.dry_run = value.extract()?,
            "discard" => repair.discard = value.extract()?,
            "plan" => repair.plan = plan(&value)?,
            "young_levels_dir" => repair.young_levels_dir = value.extract()?,
            "without_young_levels" => repair.without_young_levels = value.extract()?,
            _ => return Err(PyTypeError::new_err(format!("repair() has no option {name:?}"))),
        }
    }
    Ok(repair)
}

/// A plan by its name, or a dict as `alluvium plan --json` prints it.
pub fn plan(value: &Bound<'_, PyAny>) -> PyResult<Plan> {
    let py = value.py();
    let plan = match value.cast::<PyString>() {
        Ok(name) => Plan::named(name.to_str()?),
        Err(_) => Plan::from_json(&py.import("json")?.call_method1("dumps", (value,))?.extract::<String>()?),
    };
    plan.map_err(alluvium::Error::from).or_raise(py)
}

/// The order of the items in a keyspace, if one is chosen.
pub fn order(
    py: Python<'_>,
    delimiter: Option<&BytesLike<'_>>,
    prefix_bytes: Option<u16>,
    lists_prefixes: bool,
) -> PyResult<Option<Order>> {
    let prefix = match (delimiter.map(BytesLike::as_slice), prefix_bytes) {
        (Some(&[byte]), None) => PrefixRule::Delimiter { byte },
        (None, Some(bytes)) => PrefixRule::Length { bytes },
        (None, None) if lists_prefixes => {
            return Err(failure::settings(py, "listed_prefixes needs delimiter or prefix_bytes"));
        }
        (None, None) => return Ok(None),
        (Some(_), None) => return Err(failure::settings(py, "a delimiter is one byte")),
        (Some(_), Some(_)) => return Err(failure::settings(py, "give delimiter or prefix_bytes, not both")),
    };
    Ok(Some(Order::SemiSorted { prefix, lists_prefixes }))
}

fn plan_choice(value: &Bound<'_, PyAny>) -> PyResult<PlanChoice> {
    let is_auto = value.cast::<PyString>().is_ok_and(|name| name == "auto");
    if is_auto { Ok(PlanChoice::Auto) } else { plan(value).map(PlanChoice::Fixed) }
}

fn durability(value: &Bound<'_, PyAny>) -> PyResult<Durability> {
    if let Ok(seconds) = value.extract::<f64>() {
        return duration(value.py(), seconds).map(Durability::Interval);
    }
    Ok(match &*value.extract::<String>()? {
        "sync" => Durability::Sync,
        "process" => Durability::Process,
        "buffered" => Durability::Buffered,
        other => {
            let message = format!(
                "durability {other:?}: give \"sync\", \"process\", \"buffered\", or an interval in seconds"
            );
            return Err(failure::settings(value.py(), &message));
        }
    })
}

fn workload(fields: &Bound<'_, PyDict>) -> PyResult<Workload> {
    let mut workload = Workload::default();
    for (name, value) in fields {
        let field = match &*name.extract::<String>()? {
            "gets" => &mut workload.gets,
            "absent_gets" => &mut workload.absent_gets,
            "puts" => &mut workload.puts,
            "removals" => &mut workload.removals,
            "skew" => &mut workload.skew,
            "key_bytes" => &mut workload.key_bytes,
            "value_bytes" => &mut workload.value_bytes,
            other => return Err(PyTypeError::new_err(format!("a workload has no field {other:?}"))),
        };
        *field = value.extract()?;
    }
    Ok(workload)
}

/// A codec by its name.
pub fn codec(value: &Bound<'_, PyAny>) -> PyResult<Codec> {
    match &*value.extract::<String>()? {
        "lz4" => Ok(Codec::Lz4),
        #[cfg(feature = "zstd")]
        "zstd" => Ok(Codec::Zstd),
        other => Err(failure::settings(
            value.py(),
            &format!("no codec is named {other:?}: give \"lz4\" or \"zstd\""),
        )),
    }
}

fn read_wait(value: &Bound<'_, PyAny>) -> PyResult<ReadWait> {
    Ok(match &*value.extract::<String>()? {
        "adapt" => ReadWait::Adapt,
        "sleep" => ReadWait::Sleep,
        "poll" => ReadWait::Poll,
        other => {
            let message = format!("read_wait {other:?}: give \"adapt\", \"sleep\" or \"poll\"");
            return Err(failure::settings(value.py(), &message));
        }
    })
}

/// A time in seconds as a duration; refused if it is negative or no number.
pub fn duration(py: Python<'_>, seconds: f64) -> PyResult<Duration> {
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| failure::settings(py, &format!("{seconds} is no time in seconds")))
}
