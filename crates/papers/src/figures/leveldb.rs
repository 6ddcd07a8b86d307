//! LevelDB as configured in Lim's thesis, modelled and simulated: items of 1,000 bytes, sizes of 10^l MiB.

use alluvium_model::{KeyDistribution, ModelError, RequestStream};

use super::{Scale, Series};
use crate::models::LevelDb;
use crate::optimizer::{LevelSizes, optimize_level_sizes};
use crate::simulator::LevelDbSimulation;

/// Popularity of keys in the thesis's figures: its name and skew.
pub const POPULARITIES: [(&str, f64); 2] = [("uniform", 0.0), ("zipf 0.99", 0.99)];

/// Numbers of keys in figures 4.10 and 4.12.
pub const KEYS: [f64; 7] = [1e6, 3.3e6, 1e7, 3.3e7, 1e8, 3.3e8, 1e9];

/// Number of items per mebibyte.
const MEBIBYTE_ITEMS: f64 = (1u64 << 20) as f64 / 1_000.0;

/// The default design for this number of keys.
pub fn standard(keys: f64) -> LevelDb {
    let sizes = (1..).map(|level| 10f64.powi(level) * MEBIBYTE_ITEMS).take_while(|&size| size < keys);
    LevelDb { sizes: sizes.collect(), ..LevelDb::default() }
}

/// The default design with the level sizes that write least.
pub fn optimized(keys: &KeyDistribution) -> Result<LevelSizes, ModelError> {
    optimize_level_sizes(&standard(keys.keys()), keys)
}

/// Write amplification of the design by the model.
pub fn modelled(design: &LevelDb, keys: &KeyDistribution) -> Result<f64, ModelError> {
    Ok(design.cost(keys)?.write_amplification())
}

/// Write amplification of the design by simulation: all keys once, then three requests per key (§4.3.5).
pub fn simulated(design: &LevelDb, keys: u64, skew: f64, scale: &Scale) -> Result<f64, ModelError> {
    let rules = LevelDbSimulation {
        wal: design.wal.round() as u64,
        level0_tables: design.level0_tables.round() as usize,
        sizes: design.sizes.iter().map(|size| size.round() as u64).collect(),
        table_items: (2.0 * MEBIBYTE_ITEMS) as usize,
        overlapped_tables: 10,
    };
    let mut requests = RequestStream::new(keys, skew, scale.seed)?;
    Ok(rules.run(&mut requests, 3 * keys)?.write_amplification())
}

/// A model's curve and a simulation's points over numbers of keys; `design` returns the design for each.
pub fn over_keys(
    name: &str,
    skew: f64,
    scale: &Scale,
    design: impl Fn(&KeyDistribution) -> Result<LevelDb, ModelError>,
) -> Result<[Series; 2], ModelError> {
    let (mut model, mut simulation) = (Vec::new(), Vec::new());
    for keys in KEYS {
        let distribution = KeyDistribution::zipf(keys, skew)?;
        let design = design(&distribution)?;
        model.push((keys, modelled(&design, &distribution)?));
        if keys <= scale.simulated_keys_max as f64 {
            simulation.push((keys, simulated(&design, keys as u64, skew, scale)?));
        }
    }
    Ok([Series::model(name, model), Series::simulation(name, simulation)])
}
