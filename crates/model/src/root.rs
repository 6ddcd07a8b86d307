//! One equation in one unknown above 0.

/// Maximum number of steps; the search ends there wherever it is. Bisection alone would need fewer.
const STEPS_MAX: usize = 200;
/// Maximum step in the logarithm of the unknown while no upper or lower bound is known.
const STEP_MAX: f64 = 8.0;
/// A Newton step this short doubles the correct digits once more and is the last: the remaining error is its square.
const NEWTON_END: f64 = 1e-8;
/// Width to which the bracket shrinks where Newton steps do not converge.
const BISECTION_END: f64 = 1e-15;

/// Finds `x > 0` where `f` crosses zero, for increasing `f`.
///
/// `f` returns its value and its slope with respect to ln x. Newton steps in ln x, kept inside a bracket that shrinks
/// with every evaluation: about 5 to 10 evaluations from a start within a few powers of ten. The slope must be exact.
/// Accurate to about 10⁻¹⁴ where `f` can tell.
pub(crate) fn increasing(start: f64, f: impl Fn(f64) -> (f64, f64)) -> f64 {
    let (mut low, mut high) = (f64::NEG_INFINITY, f64::INFINITY);
    let mut at = start.ln();
    for _ in 0..STEPS_MAX {
        let (value, slope) = f(at.exp());
        if value == 0.0 {
            break;
        }
        if value < 0.0 {
            low = at;
        } else {
            high = at;
        }
        let newton = at - value / slope;
        let is_newton = newton > low && newton < high && (newton - at).abs() <= STEP_MAX;
        let next = if is_newton {
            newton
        } else if low.is_finite() && high.is_finite() {
            low + (high - low) / 2.0
        } else {
            at - STEP_MAX * value.signum()
        };
        let moved = (next - at).abs();
        at = next;
        if moved <= if is_newton { NEWTON_END } else { BISECTION_END * at.abs().max(1.0) } {
            break;
        }
    }
    at.exp()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roots_of_powers_and_of_a_step() {
        for target in [1e-9, 0.3, 1.0, 7e11] {
            let root = increasing(1.0, |x| (2.0 * x.ln() - f64::ln(target), 2.0));
            assert!((root * root / target - 1.0).abs() < 1e-12, "{target}");
        }
        // No slope to follow: bisection finds the root.
        let root = increasing(1.0, |x| (if x < 50.0 { -1.0 } else { 1.0 }, 0.0));
        assert!((root - 50.0).abs() < 1e-9);
    }
}
