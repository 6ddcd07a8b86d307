//! [`Shares`]: how the memory of a serving process is divided.

use alluvium_base::units::format_bytes;
use alluvium_io::ProcessMemory;

use crate::failure::Failure;

/// What the buffers of a worker take: what it has read, the values of a batch of gets, the replies of a round.
const WORKER_BYTES: u64 = 2 << 20;
/// Bounds of what clients may hold together.
const CLIENT_BYTES: (u64, u64) = (4 << 20, 1 << 30);
/// What a cache takes beside its limit: the stacks of threads, freed memory that the allocator keeps.
const CACHE_OVERHEAD_BYTES: u64 = 8 << 20;

/// Shares of a limit in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shares {
    /// For the buffers of all clients.
    pub clients: u64,
    /// For the program and the store.
    pub store: u64,
}

impl Shares {
    /// A quarter is for clients, and some for each worker.
    pub fn of(limit: u64, workers: usize) -> Result<Self, Failure> {
        let clients = (limit / 4).clamp(CLIENT_BYTES.0, CLIENT_BYTES.1);
        let store = limit.checked_sub(clients + WORKER_BYTES * workers as u64);
        let store = store.filter(|bytes| *bytes >= limit / 4).ok_or_else(|| {
            let limit = format_bytes(limit);
            Failure::Usage(format!("--memory {limit} is too little for the clients of {workers} workers"))
        })?;
        Ok(Self { clients, store })
    }

    /// Checks that a cache of this size has room.
    pub fn check_cache(&self, limit: u64, cache: u64) -> Result<(), Failure> {
        let program = ProcessMemory::now().map_or(0, |memory| memory.resident_bytes);
        let room = self.store.saturating_sub(program + CACHE_OVERHEAD_BYTES);
        if cache <= room {
            return Ok(());
        }
        let (limit, cache, room) = (format_bytes(limit), format_bytes(cache), format_bytes(room));
        Err(Failure::Usage(format!(
            "--cache {cache} does not fit in --memory {limit}: {room} are left beside the program and its clients"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_get_a_quarter_and_the_store_the_rest() {
        let shares = Shares::of(256 << 20, 2).unwrap_or_else(|_| panic!("it is enough"));
        assert_eq!(shares, Shares { clients: 64 << 20, store: (256 - 64 - 4) << 20 });
        let shares = Shares::of(64 << 30, 4).unwrap_or_else(|_| panic!("it is enough"));
        assert_eq!(shares.clients, 1 << 30);
        assert!(Shares::of(8 << 20, 64).is_err());
        assert!(shares.check_cache(64 << 30, 1 << 30).is_ok());
        assert!(shares.check_cache(64 << 30, 64 << 30).is_err());
    }
}
