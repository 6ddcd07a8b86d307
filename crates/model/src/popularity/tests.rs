//! The primitives compared with direct summation over all keys, their laws, and the figures of Lim's thesis.

use proptest::prelude::*;

use super::{KeyDistribution, KeyGroup};

/// Probabilities of all keys, one by one.
fn direct(keys: u64, skew: f64) -> Vec<f64> {
    let mut weights: Vec<f64> = (1..=keys).map(|rank| (rank as f64).powf(-skew)).collect();
    // Small ones first, so that the sum keeps its digits.
    let total: f64 = weights.iter().rev().sum();
    weights.iter_mut().for_each(|weight| *weight /= total);
    weights
}

fn direct_unique(probabilities: &[f64], requests: f64) -> f64 {
    probabilities.iter().rev().map(|&p| -(requests * (-p).ln_1p()).exp_m1()).sum()
}

fn assert_close(actual: f64, expected: f64, tolerance: f64, what: &str) {
    let error = (actual / expected - 1.0).abs();
    assert!(error <= tolerance, "{what}: {actual} instead of {expected}, off by {error:e}");
}

#[test]
fn unique_agrees_with_direct_summation() {
    for keys in [2, 3, 511, 512, 513, 5_000, 300_000] {
        for skew in [0.0, 0.3, 0.99, 1.0, 1.2, 2.0, 5.0, 16.0] {
            let distribution = KeyDistribution::zipf(keys as f64, skew).unwrap();
            let probabilities = direct(keys, skew);
            for power in -2..=16 {
                let requests = 10f64.powi(power);
                let expected = direct_unique(&probabilities, requests);
                let what = format!("{keys} keys, skew {skew}, {requests} requests");
                assert_close(distribution.unique(requests), expected, 1e-6, &what);
                let recent: f64 =
                    probabilities.iter().rev().map(|&p| -p * (requests * (-p).ln_1p()).exp_m1()).sum();
                assert_close(distribution.recent_share(requests), recent, 1e-6, &what);
            }
        }
    }
}

#[test]
fn dinterval_agrees_with_the_summed_density() {
    for (keys, skew) in [(1_000u64, 0.0), (1_000, 0.99), (3_000, 1.0), (2_000, 1.5), (10, 0.0)] {
        let distribution = KeyDistribution::zipf(keys as f64, skew).unwrap();
        let probabilities = direct(keys, skew);
        for interval in [0.5, 20.0, 1e3, 1e5] {
            let summed: f64 = (0..keys)
                .map(|distance| {
                    direct_unique(&probabilities, interval * distance as f64 / keys as f64) / keys as f64
                })
                .sum();
            let what = format!("{keys} keys, skew {skew}, interval {interval}");
            assert_close(distribution.level_size(interval), summed, 1e-6, &what);
            if summed < 0.99 * (keys - 1) as f64 {
                assert_close(distribution.dinterval(summed), interval, 1e-5, &what);
            }
        }
    }
}

#[test]
fn a_histogram_is_the_distribution_it_was_taken_from() {
    let skew = 0.8;
    let groups: Vec<KeyGroup> = direct(50_000, skew)
        .into_iter()
        .map(|probability| KeyGroup { keys: 1.0, probability: probability * 1e7 })
        .collect();
    let measured = KeyDistribution::histogram(&groups).unwrap();
    let exact = KeyDistribution::zipf(50_000.0, skew).unwrap();
    assert!(measured.groups().count() < 4_500);
    for requests in [1.0, 1e3, 1e5, 1e7] {
        assert_close(measured.unique(requests), exact.unique(requests), 1e-6, "unique");
    }
    let doubled = measured.with_keys(100_000.0).unwrap();
    assert_close(doubled.unique(2e3), 2.0 * measured.unique(1e3), 1e-3, "twice of everything");
}

#[test]
fn the_figures_of_the_thesis() {
    let zipf = KeyDistribution::zipf(1e8, 0.99).unwrap();
    assert_close(zipf.merge(1e7, 9e7), 9.03e7, 5e-4, "Merge, section 4.2.4");
    let uniform = KeyDistribution::uniform(1e8).unwrap();
    let size = 10.0 * 1024.0 * 1024.0;
    assert_close(uniform.dinterval(size), 2.26e7, 2e-3, "DInterval, section 4.3.3");
    assert_close(uniform.unique_inverse(size), 1.11e7, 3e-3, "inverse of Unique, section 4.3.3");
}

#[test]
fn many_keys_keep_the_totals() {
    for skew in [0.0, 0.5, 0.99, 1.0, 1.01, 3.0] {
        let distribution = KeyDistribution::zipf(1e12, skew).unwrap();
        let keys: f64 = distribution.groups().map(|group| group.keys).sum();
        let mass: f64 = distribution.groups().map(|group| group.keys * group.probability).sum();
        assert_close(keys, 1e12, 1e-12, "keys");
        assert_close(mass, 1.0, 1e-12, "probability");
        assert_close(distribution.unique(1.0), 1.0, 1e-9, "one request is one key");
    }
    // Few requests on many equal keys name no key twice: 1 − e^−x must not lose its digits.
    let uniform = KeyDistribution::uniform(1e12).unwrap();
    assert_close(uniform.unique(10.0), 10.0, 1e-10, "ten requests");
    assert_close(uniform.level_size(1.0), 0.5, 1e-9, "half a request");
    // The zeta function: the most popular key's share.
    let zeta = KeyDistribution::zipf(1e12, 2.0).unwrap();
    let first = zeta.groups().next().unwrap().probability;
    assert_close(first, 6.0 / std::f64::consts::PI.powi(2), 1e-8, "1/zeta(2)");
}

#[test]
fn one_key_and_bad_parameters() {
    let single = KeyDistribution::uniform(1.0).unwrap();
    assert_eq!(single.unique(0.0), 0.0);
    assert_eq!(single.unique(5.0), 1.0);
    assert_eq!(single.unique_inverse(0.5), 0.0);
    assert_eq!(single.unique_inverse(1.0), f64::INFINITY);
    assert_eq!(single.merge(1.0, 0.3), 1.0);
    assert_eq!(single.recent_share(1.0), 1.0);
    for (keys, skew) in [(0.0, 0.0), (1e17, 0.0), (f64::NAN, 0.0), (10.0, -1.0), (10.0, 17.0)] {
        assert!(KeyDistribution::zipf(keys, skew).is_err(), "{keys} {skew}");
    }
    assert!(KeyDistribution::histogram(&[]).is_err());
    assert!(KeyDistribution::histogram(&[KeyGroup { keys: 3.0, probability: -1.0 }]).is_err());
}

/// Keys over all magnitudes, and skews around the special ones.
fn distributions() -> impl Strategy<Value = (f64, f64)> {
    let skews = prop_oneof![Just(0.0), Just(1.0), 0.0..3.0f64];
    (0.4..12.0f64, skews).prop_map(|(power, skew)| (10f64.powf(power).round(), skew))
}

proptest! {
    #[test]
    fn unique_grows_and_never_outruns_requests_or_keys(
        shape in distributions(), power in -3.0..14.0f64, factor in 1.0..10.0f64,
    ) {
        let distribution = KeyDistribution::zipf(shape.0, shape.1).unwrap();
        let requests = 10f64.powf(power);
        let (fewer, more) = (distribution.unique(requests), distribution.unique(requests * factor));
        prop_assert!(fewer <= more * (1.0 + 1e-12));
        prop_assert!(more <= distribution.keys() * (1.0 + 1e-12));
        prop_assert!(fewer <= requests.max(1.0) * (1.0 + 1e-9));
    }

    #[test]
    fn the_inverse_undoes_unique(shape in distributions(), share in 1e-6..0.999_999f64) {
        let distribution = KeyDistribution::zipf(shape.0, shape.1).unwrap();
        let unique = share * distribution.keys();
        let requests = distribution.unique_inverse(unique);
        prop_assert!((distribution.unique(requests) / unique - 1.0).abs() < 1e-9);
    }

    #[test]
    fn dinterval_undoes_the_level_size_and_is_longer_than_the_inverse(
        shape in distributions(), share in 1e-4..0.999f64,
    ) {
        let distribution = KeyDistribution::zipf(shape.0, shape.1).unwrap();
        let size = share * (distribution.keys() - 1.0);
        let interval = distribution.dinterval(size);
        prop_assert!((distribution.level_size(interval) / size - 1.0).abs() < 1e-8);
        prop_assert!(interval >= distribution.unique_inverse(size) * (1.0 - 1e-9));
        prop_assert!((distribution.mean_unique(interval) / size - 1.0).abs() < 2.0 / share / distribution.keys());
    }

    #[test]
    fn merging_commutes_and_lies_between_the_larger_and_the_sum(
        shape in distributions(), left in 1e-4..1.0f64, right in 1e-4..1.0f64,
    ) {
        let distribution = KeyDistribution::zipf(shape.0, shape.1).unwrap();
        let (left, right) = (left * distribution.keys(), right * distribution.keys());
        let merged = distribution.merge(left, right);
        prop_assert!((merged / distribution.merge(right, left) - 1.0).abs() < 1e-12);
        prop_assert!(merged >= left.max(right) * (1.0 - 1e-9));
        prop_assert!(merged <= (left + right).max(1.0) * (1.0 + 1e-9));
    }

    #[test]
    fn a_cache_hits_at_least_its_share_of_the_keys(shape in distributions(), share in 0.01..0.99f64) {
        let distribution = KeyDistribution::zipf(shape.0, shape.1).unwrap();
        let hits = distribution.cache_hit_share(share * distribution.keys());
        prop_assert!(hits >= share * (1.0 - 1e-6) && hits <= 1.0);
    }
}
