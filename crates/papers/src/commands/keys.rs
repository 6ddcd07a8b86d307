//! The keys of a model, as options.

use std::fs;
use std::path::{Path, PathBuf};

use alluvium_bench::{BenchError, Measurement};
use alluvium_model::{KeyDistribution, KeyGroup};

use super::unreadable;

/// Number and popularity of keys.
#[derive(Clone, Debug, clap::Args)]
pub struct KeyOptions {
    /// Number of keys, 1 to 2^53 [default: 1e8]
    #[arg(long)]
    pub keys: Option<f64>,
    /// Zipf skew of their popularity, 0 to 16; 0 is uniform
    #[arg(long, default_value_t = 0.0, conflicts_with = "histogram")]
    pub skew: f64,
    /// Measured popularity instead: a file of lines "REQUESTS KEYS", meaning that KEYS keys got REQUESTS requests each.
    /// With --keys it is scaled to that number
    #[arg(long)]
    pub histogram: Option<PathBuf>,
}

impl KeyOptions {
    /// The number of keys, for models that need no distribution.
    pub fn keys_or(&self, default: f64) -> f64 {
        self.keys.unwrap_or(default)
    }

    /// The distribution that the options describe.
    pub fn distribution(&self) -> Result<KeyDistribution, BenchError> {
        let Some(path) = &self.histogram else {
            return Ok(KeyDistribution::zipf(self.keys_or(1e8), self.skew)?);
        };
        let measured = KeyDistribution::histogram(&read_histogram(path)?)?;
        Ok(match self.keys {
            Some(keys) => measured.with_keys(keys)?,
            None => measured,
        })
    }

    /// Adds the options to a measurement's parameters.
    pub fn configure(&self, measurement: Measurement, keys: f64) -> Measurement {
        let measurement = measurement.config("keys", keys);
        match &self.histogram {
            Some(path) => measurement.config("histogram", path.display().to_string()),
            None => measurement.config("skew", self.skew),
        }
    }
}

fn read_histogram(path: &Path) -> Result<Vec<KeyGroup>, BenchError> {
    let text = fs::read_to_string(path).map_err(|error| unreadable(path, &error))?;
    let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
    lines
        .map(|(number, line)| {
            parse_group(line).ok_or_else(|| {
                let place = format!("{}, line {}", path.display(), number + 1);
                BenchError::Usage(format!("{place}: {line:?} is not \"REQUESTS KEYS\""))
            })
        })
        .collect()
}

fn parse_group(line: &str) -> Option<KeyGroup> {
    let mut numbers = line.split([' ', '\t', ',']).filter(|word| !word.is_empty());
    let probability = numbers.next()?.parse().ok()?;
    let keys = numbers.next()?.parse().ok()?;
    numbers.next().is_none().then_some(KeyGroup { keys, probability })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_requests_and_keys() {
        let group = Some(KeyGroup { keys: 1000.0, probability: 3.0 });
        assert_eq!(parse_group("3 1000"), group);
        assert_eq!(parse_group(" 3,\t1e3 "), group);
        for wrong in ["3", "3 x", "3 4 5", ""] {
            assert_eq!(parse_group(wrong), None, "{wrong}");
        }
    }
}
