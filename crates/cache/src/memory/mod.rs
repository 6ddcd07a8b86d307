//! Memory of the caches: arrays and rings, with huge pages where they are used, returned to the system page by page.
//!
//! Most `unsafe` code of this crate is here, in leaf modules: [`array`] and [`ring`] map memory and share it as
//! atomics, [`vectors`] and [`wide`] copy between those and plain bytes, `flush` writes lines of
//! the cache back, [`published`] gives out references to values that are not freed while they can be reached. A
//! dependent read costs 262 ns in a 2 MiB page and 435 ns in a 4 KiB page on the machine of the targets, which is why
//! huge pages matter more than anything else in this crate.

mod array;
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod flush;
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod flushed;
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
mod mapped;
mod published;
mod ring;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
mod vectors;
#[cfg(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))]
mod wide;
#[cfg(any(test, not(all(target_os = "linux", target_arch = "x86_64", not(miri), not(loom)))))]
mod words;

pub(crate) use array::{Array, Element};
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub(crate) use flush::{CAN_FLUSH, LineFlush};
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub use flushed::FlushedMemory;
#[cfg(all(target_os = "linux", not(miri), not(loom)))]
pub(crate) use mapped::{Pages, is_persistent};
pub(crate) use published::Published;
pub(crate) use ring::{Ring, UNIT_BYTES};

/// The unit in which memory is mapped and released. Small under the model checker, which treats every word as an
/// object.
pub(crate) const PAGE_BYTES: usize = if cfg!(loom) { 64 } else { 4096 };

/// On other systems the choice of pages has no effect.
#[cfg(any(not(target_os = "linux"), miri, loom))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pages {
    Huge,
    AsUsed,
}

/// Bytes of a block, filled from one end, that are kept in small pages before it asks for huge ones. So huge pages make
/// it at most an eighth larger than what was used.
pub(crate) const SMALL_PAGES_BYTES: usize = 8 * HUGE_PAGE_BYTES;

/// Blocks of at least this size are aligned to huge pages and ask for them.
pub(crate) const HUGE_PAGE_BYTES: usize = 2 << 20;
