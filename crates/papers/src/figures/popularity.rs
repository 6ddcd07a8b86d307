//! Zipf's law and the share of the keys that get four fifths of the requests, by which Wu's thesis describes traces.

/// The exponent of Zipf's law with which the most popular `share` of the keys get four fifths of the requests.
pub fn skew_of(keys: u32, share: f64) -> f64 {
    let keys = f64::from(keys);
    bisect(3.0, |skew| weight(keys * share, skew) < 0.8 * weight(keys, skew))
}

/// The share of the keys that get four fifths of the requests by Zipf's law.
pub fn share_of(keys: u32, skew: f64) -> f64 {
    let keys = f64::from(keys);
    bisect(1.0, |share| weight(keys * share, skew) < 0.8 * weight(keys, skew))
}

/// The number between 0 and `high` from which on something is not too low.
fn bisect(mut high: f64, is_low: impl Fn(f64) -> bool) -> f64 {
    let mut low = 0.0;
    for _ in 0..40 {
        let middle = (low + high) / 2.0;
        if is_low(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    high
}

/// The sum of rank^-skew over the ranks up to `keys`: the first ones one by one, the others as an integral.
fn weight(keys: f64, skew: f64) -> f64 {
    const EXACT: f64 = 1000.0;
    let exact = (1..=keys.min(EXACT) as u32).map(|rank| f64::from(rank).powf(-skew)).sum::<f64>();
    if keys <= EXACT {
        return exact;
    }
    let (from, to, power) = (EXACT + 0.5, keys + 0.5, 1.0 - skew);
    let rest =
        if power.abs() < 1e-9 { (to / from).ln() } else { (to.powf(power) - from.powf(power)) / power };
    exact + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figures::replay::{Mix, draw_requests};

    #[test]
    fn popularity_is_fitted_to_the_share_of_the_requests() {
        let keys = 300_000;
        for share in [0.036, 0.069, 0.17] {
            let skew = skew_of(keys, share);
            assert!((share_of(keys, skew) - share).abs() < 1e-3);
            let requests = draw_requests(keys, skew, Mix::of_gets(100.0), 200_000, 3).unwrap();
            let popular = requests.iter().filter(|request| f64::from(request.number) < share * 3e5).count();
            assert!((popular as f64 / 2e5 - 0.8).abs() < 0.01, "{popular} of {share}");
        }
    }
}
