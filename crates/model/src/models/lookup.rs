//! Reads of a lookup that visits stages from young to old.

/// Runs of one age class, as a lookup sees them at a random moment.
#[derive(Clone, Copy, Debug)]
pub struct Stage {
    /// Share of the gets of present keys that are answered here or in a younger stage.
    pub found: f64,
    /// Average number of runs over a key.
    pub runs: f64,
    /// Runs of the stage that are younger than the one that holds a key, averaged over the keys found here.
    pub younger: f64,
    /// Reads that a run costs when it does not hold the key: 1 without a filter, else its false positive rate.
    pub reads_absent: f64,
    /// Reads of the run that holds the key.
    pub reads_present: f64,
    /// Reads for the stage as a whole before any run, such as the read of a filter on the device.
    pub reads_before: f64,
}

impl Stage {
    /// A stage that answers from memory, without reads.
    pub fn in_memory(found: f64) -> Self {
        Self { found, runs: 0.0, younger: 0.0, reads_absent: 0.0, reads_present: 0.0, reads_before: 0.0 }
    }

    /// One run, which exists for a share `runs` of the time.
    pub fn single(found: f64, runs: f64, reads_absent: f64) -> Self {
        Self { found, runs, younger: 0.0, reads_absent, reads_present: 1.0, reads_before: 0.0 }
    }

    /// Runs that collect one by one and are merged together, `runs` on average.
    ///
    /// Their number is uniform between 0 and twice the mean, and a key is more often found when there are many. With
    /// n + 1 = 2 · mean + 1 numbers, the number of runs younger than the one that holds the key is (2 · mean − 1) / 3
    /// on average.
    pub fn collecting(found: f64, runs: f64, reads_absent: f64) -> Self {
        let younger = ((2.0 * runs - 1.0) / 3.0).max(0.0);
        Self { younger, ..Self::single(found, runs, reads_absent) }
    }

    /// What the stage adds to the reads for a present key, when younger stages answer a share `found` of the gets.
    pub fn reads_per_get(&self, found: f64) -> f64 {
        let here = (self.found - found).max(0.0);
        let older = (1.0 - self.found.max(found)).max(0.0);
        here * (self.reads_before + self.younger * self.reads_absent + self.reads_present)
            + older * (self.reads_before + self.runs * self.reads_absent)
    }

    /// What the stage adds to the reads for an absent key.
    pub fn reads_per_miss(&self) -> f64 {
        self.reads_before + self.runs * self.reads_absent
    }
}

/// Share of absent keys that one Bloom filter passes, with `bits` bits a key and the best number of hash functions:
/// 2^(−bits · ln 2).
pub fn bloom_false_positive_rate(bits: f64) -> f64 {
    (-bits * std::f64::consts::LN_2 * std::f64::consts::LN_2).exp()
}

/// Stages from young to old.
#[derive(Clone, Debug, Default)]
pub struct Lookup {
    /// The stages, the youngest first.
    pub stages: Vec<Stage>,
}

impl Lookup {
    /// Reads for a present key.
    pub fn reads_per_get(&self) -> f64 {
        let (mut reads, mut found) = (0.0, 0.0);
        for stage in &self.stages {
            reads += stage.reads_per_get(found);
            found = stage.found.max(found);
        }
        reads
    }

    /// Reads for an absent key.
    pub fn reads_per_miss(&self) -> f64 {
        self.stages.iter().map(Stage::reads_per_miss).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filterless_stack_reads_every_younger_run() {
        let stages = vec![Stage::collecting(0.5, 1.0, 1.0), Stage::single(1.0, 1.0, 1.0)];
        let lookup = Lookup { stages };
        // Half of the keys are behind a third of a younger run, half behind the whole first stage.
        assert!((lookup.reads_per_get() - (0.5 * (4.0 / 3.0) + 0.5 * 2.0)).abs() < 1e-12);
        assert_eq!(lookup.reads_per_miss(), 2.0);
        let lookup = Lookup { stages: vec![Stage::in_memory(1.0)] };
        assert_eq!((lookup.reads_per_get(), lookup.reads_per_miss()), (0.0, 0.0));
    }
}
