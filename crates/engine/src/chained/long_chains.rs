//! [`LongChains`]: chains that lookups found long, to be written anew.

use std::collections::VecDeque;

use alluvium_base::KeyHash;
use alluvium_io::sync::Mutex;

/// Maximum number of chains that wait. More are forgotten until a lookup finds them again.
const CHAINS_MAX: usize = 256;

/// A bounded queue of chains, by a key that may be in them.
#[derive(Debug, Default)]
pub(crate) struct LongChains {
    waiting: Mutex<VecDeque<KeyHash>>,
}

impl LongChains {
    /// Notes the chains of a key. Returns whether there were none before.
    pub fn note(&self, hash: KeyHash) -> bool {
        let mut waiting = self.waiting.lock().expect("no panic while held");
        if waiting.len() < CHAINS_MAX {
            waiting.push_back(hash);
        }
        waiting.len() == 1
    }

    /// The chains that wait longest.
    pub fn take(&self) -> Option<KeyHash> {
        self.waiting.lock().expect("no panic while held").pop_front()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.lock().expect("no panic while held").is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bounded_number_waits() {
        let chains = LongChains::default();
        assert!(chains.is_empty());
        for number in 0..2 * CHAINS_MAX as u128 {
            assert_eq!(chains.note(KeyHash(number)), number == 0);
        }
        let taken: Vec<_> = std::iter::from_fn(|| chains.take()).collect();
        assert_eq!(taken.len(), CHAINS_MAX);
        assert_eq!(taken[0], KeyHash(0));
    }
}
