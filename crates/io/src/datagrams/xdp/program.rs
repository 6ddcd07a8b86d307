//! The program that chooses frames: in an interface, it gives the datagrams for a worker's port to the worker, where
//! they came in the worker's queue. Everything else is left to the kernel.
//!
//! The kernel checks the program when it loads it. It has no loops, and reads no further than the headers, whose
//! presence it checks first. Instructions are those of RFC 9669.

use std::net::{IpAddr, SocketAddr};

use super::super::frame::{ETHERNET_BYTES, ETHERTYPES, IPV4_BYTES, IPV6_BYTES, UDP_BYTES};
use super::FRAME_BYTES_MAX;

/// An instruction as the kernel reads it.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Instruction {
    code: u8,
    /// The destination in the lower four bits, the source in the others.
    registers: u8,
    offset: i16,
    immediate: i32,
}

/// What the program is for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Purpose {
    /// The address of all workers; its port says nothing.
    pub(super) address: SocketAddr,
    /// Whether datagrams with an unfinished checksum go to the kernel: it may have joined several to one.
    pub(super) leaves_unfinished: bool,
    /// Descriptor of the map from a queue to the port of its worker, as the frame has it.
    pub(super) ports: i32,
    /// Descriptor of the map from a queue to the socket of its worker.
    pub(super) sockets: i32,
}

// Registers. Those up to 5 are lost in a call.
const RESULT: u8 = 0;
const FIRST: u8 = 1;
const SECOND: u8 = 2;
const THIRD: u8 = 3;
const FOURTH: u8 = 4;
const FIFTH: u8 = 5;
const CONTEXT: u8 = 6;
const FRAME: u8 = 7;
const FRAME_END: u8 = 8;
const PORT: u8 = 9;
const STACK: u8 = 10;

// Places in `struct xdp_md`.
const DATA: i16 = 0;
const DATA_END: i16 = 4;
const QUEUE: i16 = 16;

// Functions of the kernel.
const MAP_LOOKUP: i32 = 1;
const CHECKSUM_DIFFERENCE: i32 = 28;
const REDIRECT_MAP: i32 = 51;

/// What the program returns for frames that it passes on.
const PASS: i32 = 2;
/// The number of UDP among the protocols of IP.
const UDP: i32 = 17;

// Classes and parts of operation codes.
const LOAD_BYTE: u8 = 0x71;
const LOAD_HALF: u8 = 0x69;
const LOAD_WORD: u8 = 0x61;
const STORE_WORD: u8 = 0x63;
const LOAD_MAP: u8 = 0x18;
const ADD: u8 = 0x07;
const ADD_REGISTER: u8 = 0x0f;
const AND: u8 = 0x57;
const SHIFT_RIGHT: u8 = 0x77;
const MOVE: u8 = 0xb7;
const MOVE_REGISTER: u8 = 0xbf;
/// Moves 32 bits; the others become 0.
const MOVE_WORD: u8 = 0xbc;
const IF_ABOVE_REGISTER: u8 = 0x2d;
const IF_EQUAL: u8 = 0x15;
const IF_EQUAL_REGISTER: u8 = 0x1d;
const IF_OTHER_REGISTER: u8 = 0x5d;
/// Compares 32 bits.
const IF_OTHER_WORD: u8 = 0x56;
const CALL: u8 = 0x85;
const EXIT: u8 = 0x95;

/// A program under construction.
#[derive(Default)]
struct Assembly {
    instructions: Vec<Instruction>,
    /// Jumps to the end, where frames are passed on.
    passes: Vec<usize>,
}

impl Assembly {
    fn push(&mut self, code: u8, to: u8, from: u8, offset: i16, immediate: i32) {
        let registers = registers(to, from);
        self.instructions.push(Instruction { code, registers, offset, immediate });
    }

    fn load(&mut self, code: u8, to: u8, from: u8, offset: usize) {
        self.push(code, to, from, offset as i16, 0);
    }

    fn with_constant(&mut self, code: u8, to: u8, immediate: i32) {
        self.push(code, to, 0, 0, immediate);
    }

    fn with_register(&mut self, code: u8, to: u8, from: u8) {
        self.push(code, to, from, 0, 0);
    }

    fn map(&mut self, to: u8, descriptor: i32) {
        // The source says that it is the descriptor of a map.
        self.push(LOAD_MAP, to, 1, 0, descriptor);
        self.push(0, 0, 0, 0, 0);
    }

    /// Passes the frame on if the comparison holds.
    fn pass_if(&mut self, code: u8, left: u8, right: u8, immediate: i32) {
        self.passes.push(self.instructions.len());
        self.push(code, left, right, 0, immediate);
    }

    /// Passes the frame on unless its bytes from `offset` on, after `mask`, are these, as they are in memory.
    fn pass_unless(&mut self, load: u8, offset: usize, mask: Option<i32>, expected: i32) {
        self.load(load, SECOND, FRAME, offset);
        if let Some(mask) = mask {
            self.with_constant(AND, SECOND, mask);
        }
        self.pass_if(IF_OTHER_WORD, SECOND, 0, expected);
    }

    /// Ends the program where frames are passed on, and makes the jumps lead there.
    fn finish(mut self) -> Vec<Instruction> {
        let end = self.instructions.len();
        for jump in self.passes {
            self.instructions[jump].offset = (end - jump - 1) as i16;
        }
        let last = [(MOVE, PASS), (EXIT, 0)];
        let last = last.map(|(code, immediate)| Instruction { code, registers: 0, offset: 0, immediate });
        self.instructions.extend(last);
        self.instructions
    }
}

/// The byte with both registers, as this machine orders its two halves.
fn registers(to: u8, from: u8) -> u8 {
    if cfg!(target_endian = "little") { from << 4 | to } else { to << 4 | from }
}

/// A number of a header as it is when it is loaded.
fn half(number: u16) -> i32 {
    i32::from(u16::from_ne_bytes(number.to_be_bytes()))
}

/// Bytes of the headers before the datagram, for addresses of this kind.
pub(super) fn header_bytes(ip: IpAddr) -> usize {
    ETHERNET_BYTES + if ip.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES } + UDP_BYTES
}

/// The program for this purpose.
pub(super) fn program(purpose: Purpose) -> Vec<Instruction> {
    let mut assembly = Assembly::default();
    let ip = purpose.address.ip();
    let (header, udp) = (header_bytes(ip), header_bytes(ip) - UDP_BYTES);
    assembly.with_register(MOVE_REGISTER, CONTEXT, FIRST);
    assembly.push(LOAD_WORD, FRAME, CONTEXT, DATA, 0);
    assembly.push(LOAD_WORD, FRAME_END, CONTEXT, DATA_END, 0);
    // All headers are there, and the frame has room in the socket's memory.
    assembly.with_register(MOVE_REGISTER, SECOND, FRAME);
    assembly.with_constant(ADD, SECOND, header as i32);
    assembly.pass_if(IF_ABOVE_REGISTER, SECOND, FRAME_END, 0);
    assembly.with_register(MOVE_REGISTER, SECOND, FRAME);
    assembly.with_constant(ADD, SECOND, FRAME_BYTES_MAX as i32);
    assembly.pass_if(IF_ABOVE_REGISTER, FRAME_END, SECOND, 0);
    // It is for one host.
    assembly.pass_unless(LOAD_BYTE, 0, Some(1), 0);
    let addresses = match ip {
        IpAddr::V4(ip) => {
            assembly.pass_unless(LOAD_HALF, 12, None, half(ETHERTYPES.0));
            // Without options, no fragment, UDP, to our address.
            assembly.pass_unless(LOAD_BYTE, ETHERNET_BYTES, None, 0x45);
            assembly.pass_unless(LOAD_HALF, ETHERNET_BYTES + 6, Some(half(0x3fff)), 0);
            assembly.pass_unless(LOAD_BYTE, ETHERNET_BYTES + 9, None, UDP);
            assembly.pass_unless(LOAD_WORD, ETHERNET_BYTES + 16, None, i32::from_ne_bytes(ip.octets()));
            (ETHERNET_BYTES + 12, 8)
        }
        IpAddr::V6(ip) => {
            assembly.pass_unless(LOAD_HALF, 12, None, half(ETHERTYPES.1));
            assembly.pass_unless(LOAD_BYTE, ETHERNET_BYTES, Some(0xf0), 0x60);
            assembly.pass_unless(LOAD_BYTE, ETHERNET_BYTES + 6, None, UDP);
            for (number, word) in ip.octets().as_chunks::<4>().0.iter().enumerate() {
                let offset = ETHERNET_BYTES + 24 + number * 4;
                assembly.pass_unless(LOAD_WORD, offset, None, i32::from_ne_bytes(*word));
            }
            (ETHERNET_BYTES + 8, 32)
        }
    };
    // The port is that of the queue's worker.
    assembly.load(LOAD_HALF, PORT, FRAME, udp + 2);
    assembly.push(LOAD_WORD, SECOND, CONTEXT, QUEUE, 0);
    assembly.push(STORE_WORD, STACK, SECOND, -4, 0);
    assembly.map(FIRST, purpose.ports);
    assembly.with_register(MOVE_REGISTER, SECOND, STACK);
    assembly.with_constant(ADD, SECOND, -4);
    assembly.with_constant(CALL, 0, MAP_LOOKUP);
    assembly.pass_if(IF_EQUAL, RESULT, 0, 0);
    assembly.load(LOAD_WORD, SECOND, RESULT, 0);
    assembly.pass_if(IF_OTHER_REGISTER, SECOND, PORT, 0);
    if purpose.leaves_unfinished {
        pass_unfinished(&mut assembly, addresses, udp);
    }
    // Without a socket for this queue, the frame passes, too.
    assembly.map(FIRST, purpose.sockets);
    assembly.push(LOAD_WORD, SECOND, CONTEXT, QUEUE, 0);
    assembly.with_constant(MOVE, THIRD, PASS);
    assembly.with_constant(CALL, 0, REDIRECT_MAP);
    assembly.with_constant(EXIT, 0, 0);
    assembly.finish()
}

/// Passes a frame whose checksum is the sum of the addresses, the protocol and the length: see
/// [`Unfinished`](super::super::frame::Unfinished).
fn pass_unfinished(assembly: &mut Assembly, (start, len): (usize, i32), udp: usize) {
    assembly.with_constant(MOVE, FIRST, 0);
    assembly.with_constant(MOVE, SECOND, 0);
    assembly.with_register(MOVE_REGISTER, THIRD, FRAME);
    assembly.with_constant(ADD, THIRD, start as i32);
    assembly.with_constant(MOVE, FOURTH, len);
    assembly.load(LOAD_HALF, FIFTH, FRAME, udp + 4);
    assembly.with_constant(ADD, FIFTH, half(UDP as u16));
    assembly.with_constant(CALL, 0, CHECKSUM_DIFFERENCE);
    // Adds the carries, twice, which is enough for 32 bits.
    assembly.with_register(MOVE_WORD, FIRST, RESULT);
    for _ in 0..2 {
        assembly.with_register(MOVE_REGISTER, SECOND, FIRST);
        assembly.with_constant(SHIFT_RIGHT, SECOND, 16);
        assembly.with_constant(AND, FIRST, 0xffff);
        assembly.with_register(ADD_REGISTER, FIRST, SECOND);
    }
    assembly.load(LOAD_HALF, SECOND, FRAME, udp + 6);
    assembly.pass_if(IF_EQUAL_REGISTER, FIRST, SECOND, 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jumps_lead_to_the_end() {
        for address in ["10.0.0.1:1", "[fd00::1]:1"] {
            let address = address.parse().unwrap();
            let purpose = Purpose { address, leaves_unfinished: true, ports: 3, sockets: 4 };
            let program = program(purpose);
            let pass = program.len() - 2;
            assert_eq!((program[pass].code, program[pass].immediate), (MOVE, PASS));
            let jumps = program.iter().enumerate().filter(|(_, instruction)| {
                matches!(instruction.code & 7, 5 | 6) && !matches!(instruction.code, CALL | EXIT)
            });
            let mut count = 0;
            for (place, jump) in jumps {
                assert_eq!(place + 1 + jump.offset as usize, pass);
                count += 1;
            }
            assert!(count > 9 && program.len() < 100, "{} instructions", program.len());
        }
    }
}
