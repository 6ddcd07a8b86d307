//! Describes plans in one line, for people.

use std::fmt;

use super::{Filter, Growth, Index, LevelSpec, LevelsPlan, Plan, TableLayout};

impl fmt::Display for Plan {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Levels(plan) => plan.fmt(out),
            Self::Chained(spec) => spec.fmt(out),
        }
    }
}

impl fmt::Display for LevelsPlan {
    /// The log, then each level, young to old; equal neighbours are counted.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("log")?;
        let mut seen = 0;
        for group in self.levels.chunk_by(|left, right| left == right) {
            seen += group.len();
            match group.len() {
                1 => {
                    out.write_str(" > ")?;
                    group[0].describe(out, seen == self.levels.len())?;
                }
                count => write!(out, " > {count} x ({})", group[0])?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for LevelSpec {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.describe(out, false)
    }
}

impl LevelSpec {
    /// The ratio of the last level has no effect.
    fn describe(&self, out: &mut fmt::Formatter<'_>, is_last: bool) -> fmt::Result {
        match self.growth {
            Growth::Leveling { .. } if is_last => out.write_str("one run, ")?,
            Growth::Tiering { runs_max, share } if share < 0.9 => {
                write!(out, "tiering to {runs_max} runs or {:.1} % of the items, ", share * 100.0)?;
            }
            Growth::Tiering { runs_max, .. } => write!(out, "tiering to {runs_max} runs, ")?,
            Growth::Leveling { ratio } => write!(out, "one run, ratio {ratio}, ")?,
        }
        out.write_str(match self.table {
            TableLayout::Hash => "hash",
            TableLayout::Bucketed => "bucketed",
            TableLayout::Sorted => "sorted",
        })?;
        match self.filter {
            Filter::None => {}
            Filter::Cuckoo { tag_bits } => write!(out, ", cuckoo {tag_bits}")?,
            Filter::MultiLevelCuckoo { tag_bits } => write!(out, ", multi-level cuckoo {tag_bits}")?,
            Filter::Static { bits } => write!(out, ", static {bits}")?,
            Filter::Fragments { bits } => write!(out, ", fragments {bits}")?,
            Filter::BloomCluster { on_flash: false } => out.write_str(", bloom")?,
            Filter::BloomCluster { on_flash: true } => out.write_str(", bloom on flash")?,
        }
        out.write_str(match self.index {
            Index::Implicit => "",
            Index::Trie => ", trie",
            Index::TrieDense => ", dense trie",
            Index::Fences => ", fences",
            Index::ThreeLevel => ", three-level",
            Index::Offsets => ", offsets",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_plans_read_well() {
        assert_eq!(
            Plan::silt().to_string(),
            "log > tiering to 128 runs or 9.5 % of the items, hash, cuckoo 15 > one run, sorted, fences"
        );
        assert_eq!(
            Plan::slimdb_tiering().to_string(),
            "log > 4 x (tiering to 8 runs, sorted, multi-level cuckoo 12, three-level)"
        );
        assert!(Plan::skimpystash().to_string().contains("10 keys a chain"));
    }
}
