//! The exact best SlimDB layouts for every memory budget.

use alluvium_model::ModelError;

use super::{SlimDb, SlimDbCost, SlimDbLayout, SlimDbMix};

/// Layouts of the first levels, with what they cost so far.
#[derive(Clone, Debug)]
struct Partial {
    layouts: Vec<SlimDbLayout>,
    memory_bits: f64,
    operation: f64,
}

impl SlimDb {
    /// All choices of layouts that no other choice beats in both memory and cost per operation, by rising memory.
    ///
    /// The paper searches heuristically. But the cost of an operation is a sum over levels: a level's C_PR times the
    /// share of gets that it answers, its C_NR times the share of gets answered below it or of missing keys, and its
    /// C_W times the share of writes that reach it. So choices that are beaten can be dropped level by level, and the
    /// result is exact.
    pub fn frontier(&self, mix: &SlimDbMix) -> Result<Vec<SlimDbCost>, ModelError> {
        self.validate(mix)?;
        let items = self.level_items();
        let found = self.found_shares()?;
        let all: f64 = items.iter().sum();
        let block_write = self.block_write / self.block_items;
        let mut frontier = vec![Partial { layouts: Vec::new(), memory_bits: 0.0, operation: 0.0 }];
        for (level, &here) in items.iter().enumerate() {
            let reaching = items[level..].iter().sum::<f64>() / all;
            let below: f64 = found[level + 1..].iter().sum();
            let mut longer = Vec::with_capacity(frontier.len() * SlimDbLayout::ALL.len());
            for layout in SlimDbLayout::ALL {
                let operation = mix.positive * found[level] * self.present_reads(layout)
                    + (mix.positive * below + mix.negative) * self.absent_reads(layout)
                    + mix.write * reaching * self.rewrites(layout) * block_write;
                longer.extend(frontier.iter().map(|partial| {
                    let mut layouts = partial.layouts.clone();
                    layouts.push(layout);
                    Partial {
                        layouts,
                        memory_bits: partial.memory_bits + here * layout.memory_bits(),
                        operation: partial.operation + operation,
                    }
                }));
            }
            frontier = undominated(longer);
        }
        frontier.iter().map(|partial| self.cost(&partial.layouts, mix)).collect()
    }

    /// The layouts with the least cost per operation within `memory_bytes`.
    pub fn best(&self, mix: &SlimDbMix, memory_bytes: f64) -> Result<SlimDbCost, ModelError> {
        let frontier = self.frontier(mix)?;
        let within_budget = frontier.into_iter().rfind(|choice| choice.memory_bytes <= memory_bytes);
        within_budget.ok_or(ModelError::OutOfRange {
            name: "memory-bytes",
            value: memory_bytes,
            expected: "it is 0 or more".to_owned(),
        })
    }
}

/// By rising memory and falling cost.
fn undominated(mut partials: Vec<Partial>) -> Vec<Partial> {
    partials
        .sort_by(|a, b| a.memory_bits.total_cmp(&b.memory_bits).then(a.operation.total_cmp(&b.operation)));
    let mut lowest = f64::INFINITY;
    partials.retain(|partial| {
        let is_better = partial.operation < lowest;
        lowest = lowest.min(partial.operation);
        is_better
    });
    partials
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Figure 9's workloads, as far as the text states them: creation is half missing keys, half writes.
    const MIXES: [SlimDbMix; 4] = [
        SlimDbMix { positive: 0.0, negative: 0.5, write: 0.5 },
        SlimDbMix { positive: 0.5, negative: 0.0, write: 0.5 },
        SlimDbMix { positive: 1.0, negative: 0.0, write: 0.0 },
        SlimDbMix { positive: 0.4, negative: 0.3, write: 0.3 },
    ];

    #[test]
    fn the_search_agrees_with_all_32768_layouts() {
        let design = SlimDb::default();
        for mix in &MIXES {
            let all: Vec<SlimDbCost> = (0..8u32.pow(5))
                .map(|number| {
                    let layouts: Vec<_> =
                        (0..5).map(|level| SlimDbLayout::ALL[(number as usize >> (3 * level)) % 8]).collect();
                    design.cost(&layouts, mix).unwrap()
                })
                .collect();
            for mebibytes in [0.0, 1.0, 30.0, 150.0, 256.0, 267.0, 400.0, 900.0, 2_000.0] {
                let memory_bytes = mebibytes * 1_048_576.0;
                let best = design.best(mix, memory_bytes).unwrap();
                let fitting = all.iter().filter(|choice| choice.memory_bytes <= memory_bytes);
                let lowest = fitting.map(|choice| choice.operation).fold(f64::INFINITY, f64::min);
                assert!(best.memory_bytes <= memory_bytes);
                assert!((best.operation / lowest - 1.0).abs() < 1e-9, "{mebibytes} MiB");
            }
        }
    }

    #[test]
    fn ours_is_no_worse_than_the_published_layout_in_its_memory() {
        let design = SlimDb::default();
        for mix in &MIXES {
            let published = design.cost(&SlimDb::published_layouts(), mix).unwrap();
            let ours = design.best(mix, published.memory_bytes).unwrap();
            assert!(ours.operation <= published.operation * (1.0 + 1e-12));
        }
    }

    #[test]
    fn more_memory_never_costs_more() {
        let frontier = SlimDb::default().frontier(&MIXES[3]).unwrap();
        for pair in frontier.windows(2) {
            assert!(pair[0].memory_bytes < pair[1].memory_bytes && pair[0].operation > pair[1].operation);
        }
        assert!(SlimDb::default().best(&MIXES[0], -1.0).is_err());
    }
}
