//! LevelDB's level sizes that minimize writes (Lim's thesis, §4.6).
//!
//! The log, the tables of level 0, the number of levels and the keys are fixed, so lookups and memory cost the same.
//! The unknowns are the sizes of all levels but the last. The thesis passes a primal and a dual form to a nonlinear
//! solver, which takes some 12,000 evaluations of the model. Here the unknowns are ln ln of the factor by which each
//! level is larger than the one above. Levels then grow for any values of the unknowns, the search has no borders, and
//! a descent from a few starts finds the same sizes with a few hundred evaluations.

use alluvium_model::models::Cost;
use alluvium_model::{KeyDistribution, ModelError, within};

use super::descent::minimize;
use crate::models::LevelDb;

/// Maximum number of levels below level 0, including the last.
const LEVELS_MAX: f64 = 16.0;

/// The sizes found, and what they cost.
#[derive(Clone, Debug)]
pub struct LevelSizes {
    /// The design with the sizes that minimize writes.
    pub design: LevelDb,
    /// What it costs.
    pub cost: Cost,
    /// What the design cost with its original sizes.
    pub before: Cost,
    /// Evaluations of the model.
    pub evaluations: u64,
}

impl LevelSizes {
    /// Share of the writes that the sizes save, 0 to 1.
    pub fn saved_share(&self) -> f64 {
        1.0 - self.cost.write_amplification() / self.before.write_amplification()
    }
}

/// Sizes of `levels` levels that grow by the same factor, from the size of a compaction of level 0 up to all keys. The
/// last level, which holds all keys, is counted but not returned.
///
/// # Errors
/// `levels` outside 1..=16, and any error of the design itself.
pub fn even_sizes(design: &LevelDb, keys: &KeyDistribution, levels: u32) -> Result<Vec<f64>, ModelError> {
    within("levels", f64::from(levels), 1.0, LEVELS_MAX)?;
    let first = keys.unique(design.wal * design.level0_tables).min(keys.keys());
    let growth = (keys.keys() / first).powf(1.0 / f64::from(levels));
    Ok((1..levels as i32).map(|level| first * growth.powi(level)).collect())
}

/// Finds the sizes that minimize the design's writes, with as many levels as it has for these keys.
///
/// The result is never worse than the given sizes. Takes about 300 evaluations of [`LevelDb::cost`]: a hundredth of a
/// second for uniform keys, one or two seconds for a Zipf popularity.
pub fn optimize_level_sizes(design: &LevelDb, keys: &KeyDistribution) -> Result<LevelSizes, ModelError> {
    let before = design.cost(keys)?;
    let given: Vec<f64> = design.sizes.iter().copied().take_while(|&size| size < keys.keys()).collect();
    let levels = given.len() as u32 + 1;
    let even = even_sizes(design, keys, levels)?;
    // Uniform keys need larger low levels than an even growth gives, skewed keys smaller ones.
    let starts = [given.clone(), even.clone(), bent(&even, keys.keys(), 0.5)];
    let mut best: Option<(Vec<f64>, f64)> = None;
    let mut evaluations = 0;
    for start in starts {
        if !price(design, keys, &start).is_finite() {
            continue;
        }
        let all = keys.keys();
        let minimum = minimize(|point| price(design, keys, &from_point(point, all)), to_point(&start, all));
        evaluations += minimum.evaluations;
        if best.as_ref().is_none_or(|(_, value)| minimum.value < *value) {
            best = Some((minimum.point, minimum.value));
        }
    }
    let sizes = match best {
        Some((point, value)) if value < before.write_amplification() => from_point(&point, keys.keys()),
        _ => given,
    };
    let design = LevelDb { sizes, ..design.clone() };
    let cost = design.cost(keys)?;
    Ok(LevelSizes { design, cost, before, evaluations })
}

/// The unknowns of the search: ln ln of each size's factor to the next one, the last to all keys.
fn to_point(sizes: &[f64], keys: f64) -> Vec<f64> {
    let next = sizes.iter().skip(1).chain([&keys]);
    sizes.iter().zip(next).map(|(size, next)| (next / size).ln().ln()).collect()
}

fn from_point(point: &[f64], keys: f64) -> Vec<f64> {
    let mut size = keys;
    let mut sizes: Vec<f64> = point
        .iter()
        .rev()
        .map(|factor| {
            size /= factor.exp().exp();
            size
        })
        .collect();
    sizes.reverse();
    sizes
}

/// Rewrites with these sizes; infinite if the sizes are invalid: levels must grow and stay below the number of keys.
fn price(design: &LevelDb, keys: &KeyDistribution, sizes: &[f64]) -> f64 {
    let grows = sizes.windows(2).all(|pair| pair[0] < pair[1]);
    // A level within rounding of all keys would be the last.
    let ends = sizes.last().is_none_or(|&size| size < keys.keys() * (1.0 - 1e-9));
    if !grows || !ends {
        return f64::INFINITY;
    }
    let design = LevelDb { sizes: sizes.to_vec(), ..design.clone() };
    design.cost(keys).map_or(f64::INFINITY, |cost| cost.write_amplification())
}

/// The sizes moved toward all keys: by `share` for the first, by less for older ones.
fn bent(sizes: &[f64], keys: f64, share: f64) -> Vec<f64> {
    let levels = sizes.len() as f64 + 1.0;
    let bend = |(level, &size): (usize, &f64)| {
        let share = share / levels * (1.0 - (level as f64 + 1.0) / levels);
        size * (keys / size).powf(share)
    };
    sizes.iter().enumerate().map(bend).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    // The solver below is generic over vectors by the features of this crate.
    use argmin::core::{CostFunction, Error, Executor};
    use argmin::solver::neldermead::NelderMead;
    use argmin_math as _;
    use proptest::prelude::*;

    fn assert_within(actual: f64, expected: f64, tolerance: f64) {
        assert!((actual / expected - 1.0).abs() <= tolerance, "{actual} instead of {expected}");
    }

    #[test]
    fn table_4_1_with_optimized_sizes() {
        let keys = KeyDistribution::uniform(1e8).unwrap();
        let found = optimize_level_sizes(&LevelDb::default(), &keys).unwrap();
        assert_within(found.before.write_amplification(), 25.82, 0.001);
        assert_within(found.cost.write_amplification(), 23.67, 0.001);
        for (size, published) in
            found.design.sizes.iter().zip([47_891.0, 321_368.0, 2_158_785.0, 14_603_841.0])
        {
            assert_within(*size, published, 0.01);
        }
        assert!(found.evaluations < 2_000, "{}", found.evaluations);
    }

    #[test]
    fn one_level_has_nothing_to_choose() {
        let keys = KeyDistribution::uniform(1e5).unwrap();
        let design = LevelDb { sizes: Vec::new(), ..LevelDb::default() };
        let found = optimize_level_sizes(&design, &keys).unwrap();
        assert_eq!(found.saved_share(), 0.0);
        assert!(even_sizes(&design, &keys, 0).is_err());
        assert_eq!(even_sizes(&design, &keys, 1).unwrap(), Vec::<f64>::new());
    }

    struct Price<'a>(&'a LevelDb, &'a KeyDistribution);

    impl CostFunction for Price<'_> {
        type Param = Vec<f64>;
        type Output = f64;
        fn cost(&self, point: &Vec<f64>) -> Result<f64, Error> {
            let sizes: Vec<f64> = point.iter().map(|logarithm| logarithm.exp()).collect();
            Ok(price(self.0, self.1, &sizes))
        }
    }

    /// Solves with another solver, which keeps a simplex of points and no slopes.
    fn by_simplex(design: &LevelDb, keys: &KeyDistribution, sizes: &[f64]) -> f64 {
        let start: Vec<f64> = sizes.iter().map(|size| size.ln()).collect();
        let mut simplex = vec![start.clone()];
        for unknown in 0..start.len() {
            let mut corner = start.clone();
            corner[unknown] += 0.1;
            simplex.push(corner);
        }
        let solver = NelderMead::new(simplex).with_sd_tolerance(1e-10).unwrap();
        let executor = Executor::new(Price(design, keys), solver).configure(|state| state.max_iters(2_000));
        executor.run().unwrap().state.best_cost
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(8))]
        #[test]
        fn no_other_solver_and_no_other_sizes_write_less(
            power in 6.0..9.0f64, skew in prop_oneof![Just(0.0), 0.3..1.1f64], levels in 2u32..6,
            factors in prop::collection::vec(0.5..2.0f64, 6),
        ) {
            let keys = KeyDistribution::zipf(10f64.powf(power).round(), skew).unwrap();
            let design = LevelDb::default();
            let sizes = even_sizes(&design, &keys, levels).unwrap();
            let design = LevelDb { sizes, ..design };
            let found = optimize_level_sizes(&design, &keys).unwrap();
            let lowest = found.cost.write_amplification();
            prop_assert!(found.saved_share() >= 0.0);
            let simplex = by_simplex(&design, &keys, &design.sizes);
            prop_assert!(lowest <= simplex * (1.0 + 1e-4), "{lowest} but {simplex} by a simplex");
            let mut sizes: Vec<f64> =
                found.design.sizes.iter().zip(&factors).map(|(size, factor)| size * factor).collect();
            sizes.sort_by(f64::total_cmp);
            prop_assert!(price(&design, &keys, &sizes) >= lowest * (1.0 - 1e-4));
        }
    }
}
