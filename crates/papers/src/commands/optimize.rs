//! LevelDB's level sizes that write least.

use alluvium_bench::{BenchError, Measurement};
use alluvium_papers::models::LevelDb;
use alluvium_papers::optimizer::{even_sizes, optimize_level_sizes};

use super::designs::LevelDbShape;
use super::keys::KeyOptions;
use super::output::{add_components, measurement};

/// Options of `optimize-levels`. Defaults are LevelDB's for items of 1,000 bytes.
#[derive(Clone, Debug, clap::Args)]
pub struct OptimizeLevelsOptions {
    #[command(flatten)]
    keys: KeyOptions,
    #[command(flatten)]
    shape: LevelDbShape,
    /// Number of levels from level 1 to the last, instead of sizes; the result is compared with sizes that grow by a
    /// constant factor
    #[arg(long, conflicts_with = "sizes")]
    levels: Option<u32>,
}

impl OptimizeLevelsOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        let keys = self.keys.distribution()?;
        let mut design = LevelDb {
            wal: self.shape.wal,
            level0_tables: self.shape.level0_tables,
            sizes: self.shape.sizes.clone(),
            ..LevelDb::default()
        };
        if let Some(levels) = self.levels {
            design.sizes = even_sizes(&design, &keys, levels)?;
        }
        let found = optimize_level_sizes(&design, &keys)?;
        let configured = self
            .keys
            .configure(measurement("optimize-levels"), keys.keys())
            .config("wal", self.shape.wal)
            .config("level0_tables", self.shape.level0_tables)
            .config("sizes", design.sizes);
        let measured = configured
            .metric("write_amplification", found.cost.write_amplification())
            .metric("write_amplification_before", found.before.write_amplification())
            .metric("saved_share", found.saved_share())
            .metric("evaluations", found.evaluations);
        let measured = add_components(measured, "write_amplification", &found.cost.writes);
        let sizes = found.design.sizes.iter().enumerate();
        Ok(vec![sizes.fold(measured, |measured, (level, &size)| {
            measured.metric(&format!("level_{}_size", level + 1), size)
        })])
    }
}
