//! Facebook's traces by what Wu's thesis states of them: the mix of Table 5.1, and how popular keys are by Figure 3.1.

use super::popularity::skew_of;
use super::replay::Mix;
use super::zexpander::YCSB_SKEW;

/// What is known of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Trace {
    pub name: &'static str,
    pub mix: Mix,
    /// The share of the keys that get four fifths of the requests, if it is stated.
    pub popular_share: Option<f64>,
    /// Keys of the trace, by those of others: SYS "has a very small data set".
    pub keys_share: f64,
    /// Gigabytes of its items: the base cache by its share.
    pub data_gb: f64,
    pub value_bytes: usize,
}

/// Their names.
pub const NAMES: [&str; 5] = ["APP", "ETC", "SYS", "USR", "VAR"];

const VALUE_BYTES: usize = 100;

impl Trace {
    /// The trace of one of the [`NAMES`].
    pub fn named(name: &'static str) -> Self {
        let (gets, sets, popular_share, base_gb) = match name {
            "APP" => (84.05, 4.64, Some(0.069), 12.3),
            "ETC" => (74.14, 2.03, Some(0.036), 9.5),
            "SYS" => (46.88, 53.09, None, 0.0),
            "USR" => (99.72, 0.17, Some(0.17), 9.2),
            _ => (1.78, 98.22, None, 0.0),
        };
        Self {
            name,
            mix: Mix { gets, sets },
            popular_share,
            keys_share: if name == "SYS" { 0.1 } else { 1.0 },
            data_gb: popular_share.map_or(4.0, |share| base_gb / share),
            value_bytes: if name == "USR" { 2 } else { VALUE_BYTES },
        }
    }

    /// The exponent of its popularity.
    pub fn skew(&self, keys: u32) -> f64 {
        self.popular_share.map_or(YCSB_SKEW, |share| skew_of(keys, share))
    }

    /// Its mix without removals.
    pub fn mix_without_removals(&self) -> Mix {
        Mix::of_gets(100.0 * self.mix.gets / (self.mix.gets + self.mix.sets))
    }
}
