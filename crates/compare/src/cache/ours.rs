//! Our cache, with the same contract as the others: any thread may do everything.

use alluvium_bench::BenchError;
use alluvium_bench::cache::options::Case;
use alluvium_cache::{Cache, Concurrent};

use super::subject::Subject;

/// Our cache.
pub struct Alluvium(pub Cache<Concurrent>);

impl Alluvium {
    /// # Errors
    /// [`BenchError::Usage`] if the system has too little memory.
    pub fn new(case: &Case, threads: usize) -> Result<Self, BenchError> {
        Cache::builder()
            .payload_bytes_fixed(case.key_bytes + case.value_bytes)
            .for_threads(threads)
            .room_for(case.items as usize)
            .build_as()
            .map(Self)
            .map_err(|error| BenchError::Usage(error.to_string()))
    }
}

impl Subject for Alluvium {
    fn name(&self) -> &'static str {
        "alluvium"
    }

    #[inline]
    fn set(&self, key: &[u8], value: &[u8]) {
        // Every item fits.
        let _ = self.0.set(key, value);
    }

    #[inline]
    fn get(&self, key: &[u8], look: impl Fn(&[u8]) -> bool) -> Option<bool> {
        self.0.get_with(key, |item| look(item.value))
    }
}
