//! How writers are slowed while merges are behind. The engine applies this rule, and the model uses it to determine how
//! far behind merges get.

/// Pressure above which writers are slowed.
const PRESSURE_MIN: f64 = 1.15;

/// Delay of each put in nanoseconds while some level holds `pressure` times its maximum: zero up to 1.15, then small,
/// and from 1.65 on steeply increasing. Continuous, so that delays never jump.
pub fn merge_delay_ns(pressure: f64) -> f64 {
    let over = (pressure - PRESSURE_MIN).max(0.0);
    8_000.0 * over + 200_000.0 * (over - 0.5).max(0.0)
}
