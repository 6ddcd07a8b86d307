//! The tests that measure or exhaust what belongs to the whole process: they run one after the other.
#![cfg(all(target_os = "linux", not(loom)))]

mod limits;
mod resident;
mod settings;
mod zone;

use std::sync::{Mutex, MutexGuard, PoisonError};

use alluvium_io::ProcessMemory;

static ALONE: Mutex<()> = Mutex::new(());

/// Keeps the other tests of this program waiting.
fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn resident_bytes() -> u64 {
    ProcessMemory::now().expect("Linux tells").resident_bytes
}
