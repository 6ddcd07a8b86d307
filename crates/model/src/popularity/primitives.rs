//! Unique, its inverse and Merge (Lim's thesis, §4.2.3 and §4.2.4), and how recent the keys of requests are.

use super::KeyDistribution;
use crate::root;

impl KeyDistribution {
    /// Expected number of different keys among `requests` requests (Theorem 4.1): from 0 to [`keys`](Self::keys).
    /// `requests` may be fractional or infinite; below 0 it counts as 0.
    pub fn unique(&self, requests: f64) -> f64 {
        if requests <= 0.0 {
            return 0.0;
        }
        self.groups.iter().map(|group| -group.keys * (-group.rate * requests).exp_m1()).sum()
    }

    /// Expected number of keys that are not among `requests` requests. Accurate even if [`unique`](Self::unique) is
    /// within rounding of all keys.
    pub fn missing(&self, requests: f64) -> f64 {
        if requests <= 0.0 {
            return self.keys();
        }
        self.groups.iter().map(|group| group.keys * (-group.rate * requests).exp()).sum()
    }

    /// Requests after which `unique` different keys are expected (Lemma 4.2): 0 for 0, infinite for all keys or more.
    ///
    /// A distribution of one key jumps from 0 to 1 at once: anything in between takes 0 requests.
    pub fn unique_inverse(&self, unique: f64) -> f64 {
        if unique <= 0.0 {
            return 0.0;
        }
        if unique >= self.keys() {
            return f64::INFINITY;
        }
        if self.keys() < 2.0 && self.groups.len() == 1 && self.groups[0].rate.is_infinite() {
            return 0.0;
        }
        if unique <= self.keys() / 2.0 {
            return root::increasing(unique, |requests| {
                let (mut value, mut slope) = (0.0, 0.0);
                for group in &self.groups {
                    let exponent = group.rate * requests;
                    let present = -(-exponent).exp_m1();
                    value += group.keys * present;
                    slope += group.keys * exponent * (1.0 - present);
                }
                ((value / unique).ln(), slope / value)
            });
        }
        // Near saturation the missing keys are more precise than the present ones.
        let missing = self.keys() - unique;
        root::increasing(unique, |requests| {
            let (mut value, mut slope) = (0.0, 0.0);
            for group in &self.groups {
                let exponent = group.rate * requests;
                let absent = group.keys * (-exponent).exp();
                value += absent;
                slope += exponent * absent;
            }
            ((missing / value).ln(), slope / value)
        })
    }

    /// Derivative of [`unique`](Self::unique) with respect to the logarithm of the requests.
    pub(crate) fn unique_slope(&self, requests: f64) -> f64 {
        let groups = self.groups.iter();
        let per_request: f64 =
            groups.map(|group| group.keys * group.rate * (-group.rate * requests).exp()).sum();
        requests * per_request
    }

    /// Expected size of the union of two tables of `left` and `right` keys that independent requests built
    /// (Theorem 4.3).
    pub fn merge(&self, left: f64, right: f64) -> f64 {
        self.merge_all(&[left, right])
    }

    /// Expected size of the union of any number of tables: requests add up.
    pub fn merge_all(&self, sizes: &[f64]) -> f64 {
        if sizes.iter().any(|&size| size >= self.keys()) {
            return self.keys();
        }
        self.unique(sizes.iter().map(|&size| self.unique_inverse(size)).sum())
    }

    /// Probability that the key of a request was named by one of the `requests` requests before it. This is the hit
    /// ratio, in a structure that holds the newest `requests` puts, of gets that are as popular as puts.
    pub fn recent_share(&self, requests: f64) -> f64 {
        if requests <= 0.0 {
            return 0.0;
        }
        let groups = self.groups.iter();
        groups
            .map(|group| -group.keys * group.probability * (-group.rate * requests).exp_m1())
            .sum::<f64>()
            .min(1.0)
    }

    /// Probability that the key of a request is in a cache of the `items` most recently used keys: the approximation of
    /// Che, Tung and Wang (2002), whose characteristic time is [`unique_inverse`](Self::unique_inverse).
    pub fn cache_hit_share(&self, items: f64) -> f64 {
        self.recent_share(self.unique_inverse(items))
    }
}
