//! [`Rings`]: memory with frames, and the four rings by which a socket and the kernel hand frames to each other.
//!
//! A leaf module with unsafe code. **Invariant:** each frame has one owner. A frame for receiving is the kernel's from
//! when it enters the fill ring until the receive ring has it, and ours until it enters the fill ring again. A frame
//! for sending is ours while it is in `free`, and the kernel's from when it enters the send ring until the completion
//! ring has it. A slice of a frame is only made while the frame is ours, and ends before it is handed over.

use std::io;
use std::marker::PhantomData;
use std::mem::size_of;
use std::os::fd::BorrowedFd;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap, mmap_anonymous, munmap};
use rustix::net::sockopt;
use rustix::net::xdp::{
    XDP_PGOFF_RX_RING, XDP_PGOFF_TX_RING, XDP_UMEM_PGOFF_COMPLETION_RING, XDP_UMEM_PGOFF_FILL_RING,
    XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};

use super::{RECEIVED_MAX, SENT_MAX};

/// Bytes of a frame's room: half a page, the least that the kernel takes.
const ROOM_BYTES: usize = 2048;
/// Bytes of all frames: first those for receiving, then those for sending.
const MEMORY_BYTES: usize = (RECEIVED_MAX + SENT_MAX) as usize * ROOM_BYTES;

/// Memory of the system, given back at the end.
#[derive(Debug)]
struct Mapping {
    start: NonNull<u8>,
    len: usize,
}

// SAFETY: it is memory that this value alone has; which thread uses or returns it does not matter.
unsafe impl Send for Mapping {}

impl Mapping {
    /// The first `len` bytes of a ring of a socket; with no socket, memory of zeros.
    fn new(len: usize, ring: Option<(BorrowedFd<'_>, u64)>) -> io::Result<Self> {
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the system chooses a place where nothing is.
        let start = unsafe {
            match ring {
                Some((socket, offset)) => {
                    let flags = MapFlags::SHARED | MapFlags::POPULATE;
                    mmap(ptr::null_mut(), len, protection, flags, socket, offset)?
                }
                None => mmap_anonymous(ptr::null_mut(), len, protection, MapFlags::PRIVATE)?,
            }
        };
        let start = NonNull::new(start.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(Self { start, len })
    }

    /// Where something of type `T` is, `count` times.
    ///
    /// # Errors
    /// When it would be outside, or is not aligned.
    fn place<T>(&self, offset: u64, count: usize) -> io::Result<NonNull<T>> {
        let wrong = || io::Error::other("the kernel's layout of a ring is impossible");
        let offset = usize::try_from(offset).map_err(|_| wrong())?;
        let end = count.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(offset));
        if end.is_none_or(|end| end > self.len) {
            return Err(wrong());
        }
        // SAFETY: the offset was compared with the length.
        let place = unsafe { self.start.add(offset) }.cast::<T>();
        if place.is_aligned() { Ok(place) } else { Err(wrong()) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: it was mapped with this length, and nobody has a reference into it. If the kernel still uses it, it
        // holds the pages itself.
        let _ = unsafe { munmap(self.start.as_ptr().cast(), self.len) };
    }
}

/// What the rings for received and sent frames have.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
struct Descriptor {
    address: u64,
    len: u32,
    options: u32,
}

/// A ring of a power of two of entries, with the kernel at the other end.
#[derive(Debug)]
struct Ring<T> {
    /// How many entries were written since the beginning.
    producer: NonNull<AtomicU32>,
    /// How many entries were read.
    consumer: NonNull<AtomicU32>,
    entries: NonNull<T>,
    len: u32,
    /// Our number of the two, which only we change.
    own: u32,
    _mapping: Mapping,
    _entries: PhantomData<T>,
}

// SAFETY: the pointers lead into the mapping, which goes along; entries are numbers.
unsafe impl<T: Send> Send for Ring<T> {}

impl<T: Copy> Ring<T> {
    fn new(socket: BorrowedFd<'_>, page: u64, offsets: &XdpRingOffset, len: u32) -> io::Result<Self> {
        let bytes = offsets.desc as usize + len as usize * size_of::<T>();
        let mapping = Mapping::new(bytes, Some((socket, page)))?;
        Ok(Self {
            producer: mapping.place(offsets.producer, 1)?,
            consumer: mapping.place(offsets.consumer, 1)?,
            entries: mapping.place(offsets.desc, len as usize)?,
            len,
            own: 0,
            _mapping: mapping,
            _entries: PhantomData,
        })
    }

    fn producer(&self) -> &AtomicU32 {
        // SAFETY: the place is in the mapping and aligned, as `Mapping::place` has found. The kernel accesses it
        // atomically, too.
        unsafe { self.producer.as_ref() }
    }

    fn consumer(&self) -> &AtomicU32 {
        // SAFETY: as in `producer`.
        unsafe { self.consumer.as_ref() }
    }

    fn entry(&self, number: u32) -> *mut T {
        // SAFETY: the number is less than the length, with which `Mapping::place` has found the entries to be inside.
        unsafe { self.entries.add((number & (self.len - 1)) as usize) }.as_ptr()
    }

    /// Number of entries that were written and not read, where we are the reader.
    fn waiting(&self) -> u32 {
        self.producer().load(Ordering::Acquire).wrapping_sub(self.own).min(self.len)
    }

    /// The first entry that waits; there must be one.
    fn first(&self) -> T {
        // SAFETY: the kernel has written the entry before it has raised the number that `waiting` has loaded, and does
        // not write it again before `release` has raised ours. Any bytes are numbers.
        unsafe { self.entry(self.own).read() }
    }

    /// Takes the first entry out. [`Self::release`] gives its place to the kernel.
    fn skip(&mut self) {
        self.own = self.own.wrapping_add(1);
    }

    fn release(&mut self) {
        self.consumer().store(self.own, Ordering::Release);
    }

    /// Number of entries that were written and not read, where we are the writer.
    fn unread(&self) -> u32 {
        self.own.wrapping_sub(self.consumer().load(Ordering::Acquire)).min(self.len)
    }

    /// Writes an entry; there must be room. [`Self::publish`] shows it to the kernel.
    fn write(&mut self, entry: T) {
        // SAFETY: the kernel has read the entry before it has raised the number that `unread` has loaded, and does not
        // read it again before `publish` has raised ours.
        unsafe { self.entry(self.own).write(entry) };
        self.own = self.own.wrapping_add(1);
    }

    fn publish(&mut self) {
        self.producer().store(self.own, Ordering::Release);
    }
}

/// The memory and the rings of a socket. All memory is allocated at the start.
#[derive(Debug)]
pub(super) struct Rings {
    memory: Mapping,
    fill: Ring<u64>,
    receive: Ring<Descriptor>,
    send: Ring<Descriptor>,
    completion: Ring<u64>,
    /// Frames for sending that are ours.
    free: Vec<u64>,
}

impl Rings {
    /// Gives a socket its memory, which is not bound yet. All frames for receiving are the kernel's from now on.
    pub(super) fn new(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let memory = Mapping::new(MEMORY_BYTES, None)?;
        let registered = XdpUmemReg {
            addr: memory.start.as_ptr() as u64,
            len: MEMORY_BYTES as u64,
            chunk_size: ROOM_BYTES as u32,
            headroom: 0,
            flags: XdpUmemRegFlags::empty(),
            tx_metadata_len: 0,
        };
        sockopt::set_xdp_umem_reg(socket, registered)?;
        sockopt::set_xdp_umem_fill_ring_size(socket, RECEIVED_MAX)?;
        sockopt::set_xdp_umem_completion_ring_size(socket, SENT_MAX)?;
        sockopt::set_xdp_rx_ring_size(socket, RECEIVED_MAX)?;
        sockopt::set_xdp_tx_ring_size(socket, SENT_MAX)?;
        let offsets = sockopt::xdp_mmap_offsets(socket)?;
        let mut rings = Self {
            fill: Ring::new(socket, XDP_UMEM_PGOFF_FILL_RING, &offsets.fr, RECEIVED_MAX)?,
            receive: Ring::new(socket, XDP_PGOFF_RX_RING, &offsets.rx, RECEIVED_MAX)?,
            send: Ring::new(socket, XDP_PGOFF_TX_RING, &offsets.tx, SENT_MAX)?,
            completion: Ring::new(socket, XDP_UMEM_PGOFF_COMPLETION_RING, &offsets.cr, SENT_MAX)?,
            free: (0..SENT_MAX).map(|frame| u64::from(RECEIVED_MAX + frame) * ROOM_BYTES as u64).collect(),
            memory,
        };
        (0..RECEIVED_MAX).for_each(|frame| rings.fill.write(u64::from(frame) * ROOM_BYTES as u64));
        rings.fill.publish();
        Ok(rings)
    }

    /// Gives the frames that have come to `take`, in their order, until it returns false for one, which then waits for
    /// the next call. Returns the number of those that were taken.
    pub(super) fn receive(&mut self, mut take: impl FnMut(&[u8]) -> bool) -> u32 {
        let mut taken = 0;
        for _ in 0..self.receive.waiting() {
            let Descriptor { address, len, .. } = self.receive.first();
            let room = address - address % ROOM_BYTES as u64;
            let is_ours = room < u64::from(RECEIVED_MAX) * ROOM_BYTES as u64;
            let is_inside = address % ROOM_BYTES as u64 + u64::from(len) <= ROOM_BYTES as u64;
            if is_ours && is_inside {
                // SAFETY: the bytes are inside a frame for receiving, which is ours: the receive ring has it. Nothing
                // writes it until it is in the fill ring, below, when the slice is gone.
                let frame = unsafe {
                    slice::from_raw_parts(self.memory.start.as_ptr().add(address as usize), len as usize)
                };
                if !take(frame) {
                    break;
                }
                // The fill ring has room for all frames for receiving.
                self.fill.write(room);
            }
            // Now, so that a panic in `take` leaves each frame in one ring.
            self.receive.skip();
            taken += 1;
        }
        if taken > 0 {
            self.fill.publish();
            self.receive.release();
        }
        taken
    }

    /// Lets `write` write a frame, which it returns the length of, to be sent with the next [`Self::publish`]. Returns
    /// whether it did; without a free frame, it is not called.
    pub(super) fn send(&mut self, write: impl FnOnce(&mut [u8]) -> Option<usize>) -> bool {
        let Some(address) = self.free.pop() else { return false };
        // SAFETY: addresses in `free` are those of frames for sending, which are inside the memory and ours. This one
        // is in it only once, and was taken out of it.
        let room = unsafe {
            slice::from_raw_parts_mut(self.memory.start.as_ptr().add(address as usize), ROOM_BYTES)
        };
        match write(room) {
            Some(len) if len <= ROOM_BYTES => {
                // The send ring has room for all frames for sending.
                self.send.write(Descriptor { address, len: len as u32, options: 0 });
                true
            }
            _ => {
                self.free.push(address);
                false
            }
        }
    }

    /// Shows the kernel what was written.
    pub(super) fn publish(&mut self) {
        self.send.publish();
    }

    /// Number of frames that the kernel has not begun to send.
    pub(super) fn unsent(&self) -> u32 {
        self.send.unread()
    }

    /// Takes back the frames that were sent.
    pub(super) fn reclaim(&mut self) {
        let waiting = self.completion.waiting();
        for _ in 0..waiting {
            let address = self.completion.first();
            self.completion.skip();
            let address = address - address % ROOM_BYTES as u64;
            let is_for_sending =
                (u64::from(RECEIVED_MAX) * ROOM_BYTES as u64..MEMORY_BYTES as u64).contains(&address);
            if is_for_sending && self.free.len() < SENT_MAX as usize {
                self.free.push(address);
            }
        }
        if waiting > 0 {
            self.completion.release();
        }
    }
}
