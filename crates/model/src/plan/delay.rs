//! How writers are slowed while merges are behind: one law, for the engine that does it and for the model that asks how
//! far behind merges get.

/// Pressure from which on writers are slowed.
const PRESSURE_MIN: f64 = 1.15;

/// Delay of each put in nanoseconds while some level holds `pressure` times what it may: none up to 1.15, then a
/// little, and from 1.65 on steeply more. Continuous, so that no writer meets a cliff.
pub fn merge_delay_ns(pressure: f64) -> f64 {
    let over = (pressure - PRESSURE_MIN).max(0.0);
    8_000.0 * over + 200_000.0 * (over - 0.5).max(0.0)
}
