//! The system calls for bursts. The only module of datagrams with unsafe code: messages are given to the system as
//! pointers, which all point to locals of the calling function, to the slots of a [`Burst`] or to the bytes of an
//! [`Outgoing`].

use std::io;
use std::mem::{MaybeUninit, size_of, size_of_val};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use super::burst::{Burst, SLOT_BYTES, SLOTS_MAX};
use super::outgoing::{Outgoing, Train};

/// Maximum number of messages sent in one call.
const SENT_MAX: usize = 16;

/// An address of either family, as the system reads and writes it. The larger member is first, so that zeros are all
/// of it.
#[repr(C)]
#[derive(Clone, Copy)]
union Address {
    v6: libc::sockaddr_in6,
    v4: libc::sockaddr_in,
    family: libc::sa_family_t,
}

/// Room for two control messages of four bytes each, aligned as their headers must be.
#[repr(C, align(8))]
#[derive(Clone, Copy)]
struct Control([u8; CONTROL_BYTES]);

const CONTROL_BYTES: usize = 64;

/// Asks for equally long datagrams of a peer to be joined.
pub(super) fn join_received(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_UDP, libc::UDP_GRO)
}

/// Asks for the number of datagrams that had no room in the socket's buffer.
pub(super) fn count_dropped(socket: BorrowedFd<'_>) -> io::Result<()> {
    set_option(socket, libc::SOL_SOCKET, libc::SO_RXQ_OVFL)
}

fn set_option(socket: BorrowedFd<'_>, level: libc::c_int, name: libc::c_int) -> io::Result<()> {
    let one: libc::c_int = 1;
    let (value, len) = (ptr::from_ref(&one).cast(), size_of_val(&one) as libc::socklen_t);
    // SAFETY: `value` points to `len` bytes of `one`, which lives until the call returns; the descriptor is borrowed.
    let outcome = unsafe { libc::setsockopt(socket.as_raw_fd(), level, name, value, len) };
    if outcome == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Receives what has come into the free slots of `burst`. Returns how many datagrams the system has dropped so far, if
/// it says so.
pub(super) fn receive(socket: BorrowedFd<'_>, burst: &mut Burst) -> io::Result<Option<u32>> {
    let slots = burst.slots() - burst.used();
    let mut addresses = [const { MaybeUninit::<Address>::uninit() }; SLOTS_MAX];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; SLOTS_MAX];
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; SLOTS_MAX];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; SLOTS_MAX];
    let chunks = burst.free_bytes().chunks_exact_mut(SLOT_BYTES);
    for (number, slot) in chunks.enumerate().take(slots) {
        vectors[number].write(libc::iovec { iov_base: slot.as_mut_ptr().cast(), iov_len: slot.len() });
        let mut message = empty_message();
        message.msg_name = addresses[number].as_mut_ptr().cast();
        message.msg_namelen = size_of::<Address>() as libc::socklen_t;
        message.msg_iov = vectors[number].as_mut_ptr();
        message.msg_iovlen = 1;
        message.msg_control = controls[number].as_mut_ptr().cast();
        message.msg_controllen = CONTROL_BYTES as _;
        messages[number].write(libc::mmsghdr { msg_hdr: message, msg_len: 0 });
    }
    // SAFETY: the first `slots` messages were written above. Their pointers lead to as many bytes as they say, of the
    // arrays above and of the slots, which nobody else uses: `burst` is borrowed for writing. A wrong number of bytes
    // cannot be received, because each message bounds its own.
    let received = unsafe {
        libc::recvmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr().cast(),
            slots as libc::c_uint,
            libc::MSG_DONTWAIT as _,
            ptr::null_mut(),
        )
    };
    let received = usize::try_from(received).map_err(|_| io::Error::last_os_error())?;
    let mut dropped = None;
    for number in 0..received.min(slots) {
        // SAFETY: the message was written above.
        let message = unsafe { messages[number].assume_init_ref() };
        let len = (message.msg_len as usize).min(SLOT_BYTES);
        let name_len = message.msg_hdr.msg_namelen as usize;
        // SAFETY: the system has written `name_len` bytes of the address, which the function compares with the size of
        // the member that it reads.
        let peer = unsafe { peer_of(addresses[number].as_ptr(), name_len) };
        // SAFETY: the system has written control messages to the message's own room, and how many bytes they have.
        let (segment_bytes, drops) = unsafe { control_of(&message.msg_hdr) };
        dropped = drops.or(dropped);
        burst.push(peer, len, segment_bytes.filter(|bytes| *bytes > 0).unwrap_or(len));
    }
    Ok(dropped)
}

/// Sends the first trains, as many as one call takes, each as one message. Returns the number of messages that the
/// system took.
pub(super) fn send(socket: BorrowedFd<'_>, outgoing: &Outgoing, trains: &[Train]) -> io::Result<usize> {
    let count = trains.len().min(SENT_MAX);
    let mut addresses = [const { MaybeUninit::<Address>::uninit() }; SENT_MAX];
    let mut controls = [const { MaybeUninit::<Control>::uninit() }; SENT_MAX];
    let mut vectors = [const { MaybeUninit::<libc::iovec>::uninit() }; SENT_MAX];
    let mut messages = [const { MaybeUninit::<libc::mmsghdr>::uninit() }; SENT_MAX];
    for (number, train) in trains[..count].iter().enumerate() {
        let bytes = outgoing.bytes_of(train);
        // The system only reads them.
        vectors[number]
            .write(libc::iovec { iov_base: bytes.as_ptr().cast_mut().cast(), iov_len: bytes.len() });
        let (address, address_len) = address_of(train.peer);
        let mut message = empty_message();
        message.msg_name = ptr::from_mut(addresses[number].write(address)).cast();
        message.msg_namelen = address_len;
        message.msg_iov = vectors[number].as_mut_ptr();
        message.msg_iovlen = 1;
        if train.len > train.segment_bytes {
            let control = controls[number].write(Control([0; CONTROL_BYTES]));
            message.msg_control = ptr::from_mut(control).cast();
            message.msg_controllen = write_segment_bytes(control, train.segment_bytes as u16) as _;
        }
        messages[number].write(libc::mmsghdr { msg_hdr: message, msg_len: 0 });
    }
    // SAFETY: the first `count` messages were written above. Their pointers lead to as many bytes as they say, of the
    // arrays above, of which each is written where a message uses it, and of `outgoing`, which the system only reads.
    let sent = unsafe {
        libc::sendmmsg(
            socket.as_raw_fd(),
            messages.as_mut_ptr().cast(),
            count as libc::c_uint,
            libc::MSG_DONTWAIT as _,
        )
    };
    usize::try_from(sent).map_err(|_| io::Error::last_os_error())
}

fn empty_message() -> libc::msghdr {
    // SAFETY: null pointers and zeros are a valid message without anything.
    unsafe { MaybeUninit::zeroed().assume_init() }
}

/// Writes a control message with the length of the datagrams of a train; returns the bytes of all control messages.
fn write_segment_bytes(control: &mut Control, segment_bytes: u16) -> usize {
    // SAFETY: these only compute with numbers.
    let (len, space) = unsafe { (libc::CMSG_LEN(2) as usize, libc::CMSG_SPACE(2) as usize) };
    let header = size_of::<libc::cmsghdr>();
    // As the C library lays it out: the length, level and type, then the data at the next multiple of a word.
    let data = len - 2;
    debug_assert!(header <= data && space <= CONTROL_BYTES);
    let word = size_of::<usize>();
    control.0[..word].copy_from_slice(&len.to_ne_bytes());
    control.0[word..word + 4].copy_from_slice(&libc::SOL_UDP.to_ne_bytes());
    control.0[word + 4..word + 8].copy_from_slice(&libc::UDP_SEGMENT.to_ne_bytes());
    control.0[data..data + 2].copy_from_slice(&segment_bytes.to_ne_bytes());
    space
}

/// What the control messages of a received message say: the length of joined datagrams, and how many were dropped.
///
/// # Safety
/// `message` must have been filled by the system, with room for control messages that is still there.
unsafe fn control_of(message: &libc::msghdr) -> (Option<usize>, Option<u32>) {
    let (mut segment_bytes, mut dropped) = (None, None);
    // SAFETY: the caller promises that the control messages and their length are the system's; so each header is
    // within them, and its data have at least the four bytes that both types have.
    unsafe {
        let mut next = libc::CMSG_FIRSTHDR(message);
        while let Some(header) = next.as_ref() {
            let data = libc::CMSG_DATA(next);
            match (header.cmsg_level, header.cmsg_type) {
                (libc::SOL_UDP, libc::UDP_GRO) => {
                    segment_bytes = usize::try_from(data.cast::<libc::c_int>().read_unaligned()).ok();
                }
                (libc::SOL_SOCKET, libc::SO_RXQ_OVFL) => dropped = Some(data.cast::<u32>().read_unaligned()),
                _ => {}
            }
            next = libc::CMSG_NXTHDR(message, next);
        }
    }
    (segment_bytes, dropped)
}

/// The address that the system wrote.
///
/// # Safety
/// The first `len` bytes of `address`, or all of it if `len` is larger, must be initialized.
unsafe fn peer_of(address: *const Address, len: usize) -> Option<SocketAddr> {
    if len < size_of::<libc::sockaddr_in>() {
        return None;
    }
    // SAFETY: the length covers the family; the member that is read is the one of this family, whose size was compared
    // with the length. All bytes are valid values of its fields.
    unsafe {
        match i32::from((*address).family) {
            libc::AF_INET => {
                let v4 = (*address).v4;
                let ip = Ipv4Addr::from(u32::from_be(v4.sin_addr.s_addr));
                Some(SocketAddr::from((ip, u16::from_be(v4.sin_port))))
            }
            libc::AF_INET6 if len >= size_of::<libc::sockaddr_in6>() => {
                let v6 = (*address).v6;
                let ip = Ipv6Addr::from(v6.sin6_addr.s6_addr);
                let (port, scope) = (u16::from_be(v6.sin6_port), v6.sin6_scope_id);
                Some(SocketAddr::V6(SocketAddrV6::new(ip, port, 0, scope)))
            }
            _ => None,
        }
    }
}

/// An address as the system reads it, and the number of its bytes.
fn address_of(peer: SocketAddr) -> (Address, libc::socklen_t) {
    match peer {
        SocketAddr::V4(peer) => {
            let v4 = libc::sockaddr_in {
                sin_family: libc::AF_INET as libc::sa_family_t,
                sin_port: peer.port().to_be(),
                sin_addr: libc::in_addr { s_addr: u32::from(*peer.ip()).to_be() },
                sin_zero: [0; 8],
            };
            (Address { v4 }, size_of::<libc::sockaddr_in>() as libc::socklen_t)
        }
        SocketAddr::V6(peer) => {
            let v6 = libc::sockaddr_in6 {
                sin6_family: libc::AF_INET6 as libc::sa_family_t,
                sin6_port: peer.port().to_be(),
                sin6_flowinfo: 0,
                sin6_addr: libc::in6_addr { s6_addr: peer.ip().octets() },
                sin6_scope_id: peer.scope_id(),
            };
            (Address { v6 }, size_of::<libc::sockaddr_in6>() as libc::socklen_t)
        }
    }
}
