//! SlimDB's cost table: for given layouts, for the best ones under a memory limit, or for all that are best under some
//! limit.

use alluvium_bench::{BenchError, Measurement};
use alluvium_papers::models::{SlimDb, SlimDbCost, SlimDbLayout, SlimDbMix};

use super::output::{WearOptions, add_cost, measurement};

/// Options of `slimdb`. Without layouts, limit or frontier, evaluates the layouts that the paper names.
#[derive(Clone, Debug, clap::Args)]
pub struct SlimDbOptions {
    /// Keys in total; sets the size of level 0
    #[arg(long, conflicts_with = "level0_items")]
    keys: Option<f64>,
    /// Zipf skew of gets and puts, 0 to 16; 0 is uniform
    #[arg(long, default_value_t = 0.0)]
    skew: f64,
    /// Number of levels, including level 0
    #[arg(long, default_value_t = SlimDb::default().levels)]
    levels: u32,
    /// Growth factor
    #[arg(long, default_value_t = SlimDb::default().growth)]
    growth: f64,
    /// Entries of level 0
    #[arg(long, default_value_t = SlimDb::default().level0_items)]
    level0_items: f64,
    /// Entries of a block
    #[arg(long, default_value_t = SlimDb::default().block_items)]
    block_items: f64,
    /// Time to write a block in sequence, in random reads
    #[arg(long, default_value_t = SlimDb::default().block_write)]
    block_write: f64,
    /// False positive rate of a filter
    #[arg(long, default_value_t = SlimDb::default().false_positive_rate)]
    false_positive_rate: f64,
    /// Share of operations that get a present key
    #[arg(long, default_value_t = 0.5)]
    positive: f64,
    /// Share of operations that get a missing key
    #[arg(long, default_value_t = 0.0)]
    negative: f64,
    /// Share of operations that put
    #[arg(long, default_value_t = 0.5)]
    write: f64,
    /// Rows of the paper's Table 1 (0 to 7) for each level, young to old
    #[arg(long, value_delimiter = ',', conflicts_with_all = ["memory_bytes", "frontier"])]
    layouts: Option<Vec<u32>>,
    /// Find the layouts of least cost in this much memory
    #[arg(long, conflicts_with = "frontier")]
    memory_bytes: Option<f64>,
    /// Print all layouts that are best for some amount of memory
    #[arg(long)]
    frontier: bool,
    /// Bytes of an item, for the device's lifetime
    #[arg(long, default_value_t = 272.0)]
    item_bytes: f64,
    #[command(flatten)]
    wear: WearOptions,
}

impl SlimDbOptions {
    pub fn run(&self) -> Result<Vec<Measurement>, BenchError> {
        self.wear.wear(self.item_bytes).validate()?;
        let design = SlimDb {
            levels: self.levels,
            growth: self.growth,
            level0_items: self.level0_items(),
            block_items: self.block_items,
            block_write: self.block_write,
            false_positive_rate: self.false_positive_rate,
            skew: self.skew,
        };
        let mix = SlimDbMix { positive: self.positive, negative: self.negative, write: self.write };
        let choices = if self.frontier {
            design.frontier(&mix)?
        } else if let Some(memory_bytes) = self.memory_bytes {
            vec![design.best(&mix, memory_bytes)?]
        } else {
            vec![design.cost(&self.chosen_layouts()?, &mix)?]
        };
        Ok(choices.iter().map(|choice| self.report(&design, choice)).collect())
    }

    fn level0_items(&self) -> f64 {
        let levels: f64 = (0..self.levels).map(|level| self.growth.powi(level as i32)).sum();
        self.keys.map_or(self.level0_items, |keys| keys / levels)
    }

    fn chosen_layouts(&self) -> Result<Vec<SlimDbLayout>, BenchError> {
        match &self.layouts {
            Some(layouts) => {
                Ok(layouts.iter().map(|&number| SlimDbLayout::new(number)).collect::<Result<_, _>>()?)
            }
            None if self.levels == 5 => Ok(SlimDb::published_layouts().to_vec()),
            None => {
                let hint =
                    "the paper names layouts for five levels: give --layouts, --memory-bytes or --frontier";
                Err(BenchError::Usage(hint.to_owned()))
            }
        }
    }

    fn report(&self, design: &SlimDb, choice: &SlimDbCost) -> Measurement {
        let items: f64 = design.level_items().iter().sum();
        let numbers: Vec<u32> = choice.layouts.iter().map(|layout| layout.number()).collect();
        let names: Vec<&str> = choice.layouts.iter().map(|layout| layout.name()).collect();
        let measurement = measurement("slimdb")
            .config("keys", items)
            .config("skew", self.skew)
            .config("levels", self.levels)
            .config("growth", self.growth)
            .config("level0_items", design.level0_items)
            .config("positive", self.positive)
            .config("negative", self.negative)
            .config("write", self.write)
            .metric("layouts", numbers)
            .metric("layout_names", names.join(" / "))
            .metric("reads_per_operation", choice.operation);
        add_cost(measurement, &choice.cost, items, &self.wear.wear(self.item_bytes))
    }
}
