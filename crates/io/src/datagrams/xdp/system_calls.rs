//! The system calls that load a program into an interface: `bpf(2)`, and the one that says how long packets may be. A
//! leaf module with unsafe code: the kernel gets pointers, which lead to locals and arguments of the calling function.

use std::io;
use std::mem::{size_of, size_of_val};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::ptr;

use super::program::Instruction;

const MAP_CREATE: libc::c_int = 0;
const MAP_UPDATE: libc::c_int = 2;
const PROGRAM_LOAD: libc::c_int = 5;
const LINK_CREATE: libc::c_int = 28;

const PROGRAM_TYPE_XDP: u32 = 6;
const ATTACH_TYPE_XDP: u32 = 37;
/// The program needs no function that is only for programs of another licence.
const LICENSE: &[u8] = b"MIT OR Apache-2.0\0";
const NAME: &[u8; 16] = b"alluvium\0\0\0\0\0\0\0\0";

/// What a map has for each queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum MapKind {
    /// A number.
    Numbers = 2,
    /// A socket.
    Sockets = 17,
}

/// Where in the kernel the program runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub(super) enum Place {
    /// Before the network stack has a frame, in the driver.
    Driver = 4,
    /// At the entrance of the network stack: with any driver, and slower.
    Stack = 2,
}

/// The arguments of a call: the beginning of `union bpf_attr`, of which the kernel takes the rest to be 0.
trait Arguments {}

#[repr(C)]
struct CreateMap {
    kind: u32,
    key_bytes: u32,
    value_bytes: u32,
    entries: u32,
    flags: u32,
}

#[repr(C)]
struct UpdateMap {
    map: u32,
    zero: u32,
    key: u64,
    value: u64,
    flags: u64,
}

#[repr(C)]
struct LoadProgram {
    kind: u32,
    instructions_len: u32,
    instructions: u64,
    license: u64,
    log_level: u32,
    log_bytes: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
    name: [u8; 16],
    interface: u32,
    attach_type: u32,
}

#[repr(C)]
struct CreateLink {
    program: u32,
    interface: u32,
    attach_type: u32,
    flags: u32,
}

impl Arguments for CreateMap {}
impl Arguments for UpdateMap {}
impl Arguments for LoadProgram {}
impl Arguments for CreateLink {}

/// Calls `bpf(2)`.
///
/// # Safety
/// The pointers in the arguments must lead to what the command reads and writes, until the call returns.
unsafe fn bpf<A: Arguments>(command: libc::c_int, arguments: &A) -> io::Result<libc::c_long> {
    // SAFETY: the arguments have as many bytes as the call says. None of them is padding, since each field of the types
    // above is aligned without. The caller promises that pointers among them are right.
    let outcome = unsafe { libc::syscall(libc::SYS_bpf, command, ptr::from_ref(arguments), size_of::<A>()) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(outcome) }
}

/// The descriptor that a successful call has returned.
fn descriptor(outcome: libc::c_long) -> OwnedFd {
    // SAFETY: the commands that end here return a new descriptor, which nobody else has.
    unsafe { OwnedFd::from_raw_fd(outcome as RawFd) }
}

/// A map with this many entries, whose keys are their numbers.
pub(super) fn create_map(kind: MapKind, entries: u32) -> io::Result<OwnedFd> {
    let arguments = CreateMap { kind: kind as u32, key_bytes: 4, value_bytes: 4, entries, flags: 0 };
    // SAFETY: the arguments have no pointers.
    unsafe { bpf(MAP_CREATE, &arguments) }.map(descriptor)
}

/// Sets an entry of a map of either kind: a socket is given by its descriptor.
pub(super) fn set_entry(map: BorrowedFd<'_>, key: u32, value: u32) -> io::Result<()> {
    let arguments = UpdateMap {
        map: map.as_raw_fd() as u32,
        zero: 0,
        key: ptr::from_ref(&key) as u64,
        value: ptr::from_ref(&value) as u64,
        flags: 0,
    };
    // SAFETY: keys and values of both kinds of maps have four bytes, as those that the pointers lead to.
    unsafe { bpf(MAP_UPDATE, &arguments) }.map(drop)
}

/// Gives the kernel a program, which the kernel checks.
pub(super) fn load(instructions: &[Instruction]) -> io::Result<OwnedFd> {
    let arguments = LoadProgram {
        kind: PROGRAM_TYPE_XDP,
        instructions_len: instructions.len() as u32,
        instructions: instructions.as_ptr() as u64,
        license: LICENSE.as_ptr() as u64,
        log_level: 0,
        log_bytes: 0,
        log: 0,
        kernel_version: 0,
        flags: 0,
        name: *NAME,
        interface: 0,
        attach_type: ATTACH_TYPE_XDP,
    };
    // SAFETY: the pointers lead to as many instructions as the arguments say, and to bytes that end with 0. The kernel
    // only reads them.
    unsafe { bpf(PROGRAM_LOAD, &arguments) }.map(descriptor)
}

/// Lets a program run in an interface for as long as the descriptor is open.
pub(super) fn attach(program: BorrowedFd<'_>, interface: u32, place: Place) -> io::Result<OwnedFd> {
    let program = program.as_raw_fd() as u32;
    let arguments = CreateLink { program, interface, attach_type: ATTACH_TYPE_XDP, flags: place as u32 };
    // SAFETY: the arguments have no pointers.
    unsafe { bpf(LINK_CREATE, &arguments) }.map(descriptor)
}

/// Runs a program on a frame, without sending anything. Returns what the program returns.
#[cfg(test)]
pub(super) fn run(program: BorrowedFd<'_>, frame: &[u8]) -> io::Result<u32> {
    const PROGRAM_RUN: libc::c_int = 10;

    #[repr(C)]
    struct RunProgram {
        program: u32,
        returned: u32,
        frame_bytes: u32,
        result_bytes: u32,
        frame: u64,
        result: u64,
        repetitions: u32,
        duration_ns: u32,
    }
    impl Arguments for RunProgram {}

    let mut arguments = RunProgram {
        program: program.as_raw_fd() as u32,
        returned: 0,
        frame_bytes: frame.len() as u32,
        result_bytes: 0,
        frame: frame.as_ptr() as u64,
        result: 0,
        repetitions: 1,
        duration_ns: 0,
    };
    let pointer = ptr::from_mut(&mut arguments);
    // SAFETY: the pointer leads to the arguments, which the call reads and writes. The frame has as many bytes as they
    // say and is only read; nothing asks for the frame as the program leaves it.
    let outcome = unsafe { libc::syscall(libc::SYS_bpf, PROGRAM_RUN, pointer, size_of::<RunProgram>()) };
    if outcome < 0 { Err(io::Error::last_os_error()) } else { Ok(arguments.returned) }
}

/// Maximum bytes of a packet in an interface, the header of Ethernet excluded.
pub(super) fn packet_bytes_max(socket: BorrowedFd<'_>, interface: &str) -> io::Result<usize> {
    // SAFETY: zeros are an empty name and the number 0.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte of the name stays 0.
    let room = size_of_val(&request.ifr_name) - 1;
    for (place, byte) in request.ifr_name.iter_mut().zip(interface.bytes().take(room)) {
        *place = libc::c_char::from_ne_bytes([byte]);
    }
    // SAFETY: the call reads the name and writes the number, both in `request`, which has the size that it expects.
    let outcome = unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFMTU, ptr::from_mut(&mut request)) };
    if outcome < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the call has written this member.
    let bytes = unsafe { request.ifr_ifru.ifru_mtu };
    Ok(usize::try_from(bytes).unwrap_or(0))
}
