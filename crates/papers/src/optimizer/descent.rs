//! Finds the minimum of a smooth function of a few unknowns, by the method of Broyden, Fletcher, Goldfarb and Shanno
//! with gradients by central differences.

/// Distance between the points of a difference. Unknowns are logarithms; the models are exact to about 10⁻⁹, so a slope
/// is exact to about 10⁻⁵.
const DIFFERENCE: f64 = 1e-4;
/// Maximum number of steps; the search ends there wherever it is. 10 to 30 are usual.
const STEPS_MAX: usize = 200;
/// Maximum number of halvings of a step before the direction is given up.
const HALVINGS_MAX: usize = 40;
/// The search ends when a step gains less than this share of the value.
const GAIN_END: f64 = 1e-11;
/// Minimum share of the descent promised by the slope that a step must achieve (Armijo).
const SUFFICIENT: f64 = 1e-4;

/// Where the search ended.
#[derive(Clone, Debug)]
pub(super) struct Minimum {
    pub point: Vec<f64>,
    pub value: f64,
    pub evaluations: u64,
}

/// Descends from `start`, where `f` is finite. `f` is infinite outside its domain; the search stays inside.
///
/// Each step takes two evaluations per unknown and a few more.
pub(super) fn minimize(mut f: impl FnMut(&[f64]) -> f64, start: Vec<f64>) -> Minimum {
    let unknowns = start.len();
    let mut evaluations = 0;
    let mut f = |point: &[f64]| {
        evaluations += 1;
        f(point)
    };
    let mut value = f(&start);
    let mut point = start;
    let mut gradient = slope(&mut f, &point, value);
    let mut inverse = identity(unknowns);
    let mut is_fresh = true;
    for _ in 0..STEPS_MAX {
        let direction: Vec<f64> = inverse.iter().map(|row| -dot(row, &gradient)).collect();
        let descent = dot(&direction, &gradient);
        let found = if descent < 0.0 { search(&mut f, &point, value, &direction, descent) } else { None };
        let Some((next, lower)) = found else {
            // A bad estimate of the curvature may point in a useless direction: try once more along the gradient.
            if is_fresh {
                break;
            }
            (inverse, is_fresh) = (identity(unknowns), true);
            continue;
        };
        let gain = value - lower;
        let next_gradient = slope(&mut f, &next, lower);
        let step: Vec<f64> = next.iter().zip(&point).map(|(next, point)| next - point).collect();
        let bend: Vec<f64> = next_gradient.iter().zip(&gradient).map(|(next, old)| next - old).collect();
        update(&mut inverse, &step, &bend);
        (point, value, gradient) = (next, lower, next_gradient);
        is_fresh = false;
        if gain <= GAIN_END * value.abs() {
            break;
        }
    }
    Minimum { point, value, evaluations }
}

/// Halves the step until it achieves enough.
fn search(
    f: &mut impl FnMut(&[f64]) -> f64,
    point: &[f64],
    value: f64,
    direction: &[f64],
    descent: f64,
) -> Option<(Vec<f64>, f64)> {
    // Unknowns are logarithms: no step exceeds a factor of e.
    let longest = direction.iter().fold(0.0, |longest: f64, part| longest.max(part.abs()));
    let mut length = 1f64.min(1.0 / longest.max(f64::MIN_POSITIVE));
    for _ in 0..HALVINGS_MAX {
        let next: Vec<f64> =
            point.iter().zip(direction).map(|(point, direction)| point + length * direction).collect();
        let lower = f(&next);
        if lower < value && lower <= value + SUFFICIENT * length * descent {
            return Some((next, lower));
        }
        length /= 2.0;
    }
    None
}

/// The gradient; one-sided at the border of the domain.
fn slope(f: &mut impl FnMut(&[f64]) -> f64, point: &[f64], value: f64) -> Vec<f64> {
    (0..point.len())
        .map(|unknown| {
            let mut moved = |by: f64| {
                let mut moved = point.to_vec();
                moved[unknown] += by;
                f(&moved)
            };
            let (above, below) = (moved(DIFFERENCE), moved(-DIFFERENCE));
            match (above.is_finite(), below.is_finite()) {
                (true, true) => (above - below) / (2.0 * DIFFERENCE),
                (true, false) => (above - value) / DIFFERENCE,
                (false, true) => (value - below) / DIFFERENCE,
                (false, false) => 0.0,
            }
        })
        .collect()
}

/// The estimate of the inverse curvature after a step that changed the gradient by `bend`.
fn update(inverse: &mut [Vec<f64>], step: &[f64], bend: &[f64]) {
    let curvature = dot(step, bend);
    // Without positive curvature along the step, the estimate would no longer point downhill.
    if curvature <= 1e-12 * dot(bend, bend).max(f64::MIN_POSITIVE) {
        return;
    }
    let bent: Vec<f64> = inverse.iter().map(|row| dot(row, bend)).collect();
    let factor = (1.0 + dot(bend, &bent) / curvature) / curvature;
    for (row, values) in inverse.iter_mut().enumerate() {
        for (column, value) in values.iter_mut().enumerate() {
            *value += factor * step[row] * step[column]
                - (bent[row] * step[column] + step[row] * bent[column]) / curvature;
        }
    }
}

fn identity(unknowns: usize) -> Vec<Vec<f64>> {
    (0..unknowns)
        .map(|row| (0..unknowns).map(|column| if row == column { 1.0 } else { 0.0 }).collect())
        .collect()
}

fn dot(left: &[f64], right: &[f64]) -> f64 {
    left.iter().zip(right).map(|(left, right)| left * right).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn rosenbrocks_valley_is_followed_to_its_end() {
        let valley =
            |point: &[f64]| (1.0 - point[0]).powi(2) + 100.0 * (point[1] - point[0] * point[0]).powi(2);
        let minimum = minimize(valley, vec![-1.2, 1.0]);
        assert!(minimum.value < 1e-6, "{minimum:?}");
        assert!((minimum.point[0] - 1.0).abs() < 1e-2 && (minimum.point[1] - 1.0).abs() < 1e-2);
    }

    #[test]
    fn a_border_is_not_crossed() {
        let walled = |point: &[f64]| if point[0] < 2.0 { f64::INFINITY } else { point[0] };
        let minimum = minimize(walled, vec![5.0]);
        assert!(minimum.point[0] >= 2.0 && minimum.value < 2.01, "{minimum:?}");
        let nothing = minimize(|_| 7.0, Vec::new());
        assert_eq!((nothing.value, nothing.point.len()), (7.0, 0));
    }

    proptest! {
        #[test]
        fn bowls_have_one_lowest_point(
            centre in prop::collection::vec(-5.0..5.0f64, 1..6),
            widths in prop::collection::vec(0.1..10.0f64, 6),
        ) {
            let bowl = |point: &[f64]| {
                1.0 + point.iter().zip(&centre).zip(&widths)
                    .map(|((point, centre), width)| width * (point - centre).powi(2)).sum::<f64>()
            };
            let minimum = minimize(bowl, vec![0.0; centre.len()]);
            prop_assert!(minimum.value < 1.0 + 1e-6, "{minimum:?}");
        }
    }
}
