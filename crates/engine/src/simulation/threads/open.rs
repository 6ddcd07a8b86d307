//! Opening the simulated database.

use std::sync::Arc;

use alluvium_io::{SimulatedClock, SimulatedStorage};

use super::super::rows::with_rows;
use super::world::Shape;
use crate::environment::PlantedBugs;
use crate::{Db, Environment, Error};

/// Opens the database in the storage, with or without background threads.
pub(super) fn open(
    shape: &Shape,
    storage: &SimulatedStorage,
    clock: &SimulatedClock,
    random_seed: u64,
    planted_bugs: PlantedBugs,
    background: bool,
) -> Result<Db, Error> {
    let environment = Environment {
        storage: Arc::new(storage.clone()),
        clock: Arc::new(clock.clone()),
        random_seed,
        planted_bugs,
    };
    let builder = Db::builder("simulated")
        .plan(shape.plans[0].clone())
        .durability(shape.durability)
        .background(background)
        .inline_bytes_max(shape.inline_bytes_max)
        .blob_sizes(shape.blob_file_bytes, 1_000, 0)
        .garbage_bytes_min(0)
        .log_retention_bytes(shape.log_retention_bytes)
        .ingest_sort_bytes_max(2 << 10)
        .table_sizes(shape.table_sizes.0, shape.table_sizes.1)
        .environment(environment);
    let db = with_rows(builder, shape.keys as u32).open()?;
    db.shared().log.set_segment_bytes(shape.segment_bytes);
    Ok(db)
}
