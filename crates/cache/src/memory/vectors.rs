//! Copies between plain bytes and words to which others may store at the same time, sixteen bytes at a time: an unsafe
//! leaf.
//!
//! In the language's terms, words to which others store at the same time may only be accessed atomically, and the
//! compiler does not join atomic accesses into wider ones. Copying a value of a kilobyte word by word takes some six
//! hundred instructions, more than a processor looks ahead, so the accesses are written in assembly. What is copied
//! beside a writer may be torn; readers validate it.

use std::arch::asm;
use std::arch::x86_64::__m128i;
use std::mem::transmute;

use super::wide;

const VECTOR: usize = size_of::<__m128i>();
const GROUP: usize = 4 * VECTOR;

/// Copies `len` bytes from `from` to `to`.
///
/// # Safety
/// The bytes at `from` are mapped, and accessed only atomically or by functions of this module while any thread may
/// write them. Those at `to` are the caller's own.
#[inline(always)]
pub(super) unsafe fn copy_out(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: all loads and stores are within the caller's bytes: whole groups and vectors as long as they are within
    // `len`, and finally a last access that ends there and does not start before the first byte.
    unsafe {
        if len < VECTOR {
            return copy_few_out(from, to, len);
        }
        let mut at = if wide::is_worthwhile(len) { wide::copy(from, to, len) } else { 0 };
        while at + GROUP <= len {
            to.add(at).cast::<[__m128i; GROUP / VECTOR]>().write_unaligned(load_group(from.add(at)));
            at += GROUP;
        }
        while at + VECTOR <= len {
            to.add(at).cast::<__m128i>().write_unaligned(load(from.add(at)));
            at += VECTOR;
        }
        if at < len {
            to.add(len - VECTOR).cast::<__m128i>().write_unaligned(load(from.add(len - VECTOR)));
        }
    }
}

/// Copies `bytes` to `to`.
///
/// # Safety
/// As for [`copy_out`]; and the caller is the only writer of these bytes.
#[inline(always)]
pub(super) unsafe fn copy_in(mut to: *mut u8, mut bytes: &[u8]) {
    if bytes.len() < VECTOR {
        // SAFETY: the caller's guarantee, passed on.
        return unsafe { copy_few_in(to, bytes) };
    }
    if wide::is_worthwhile(bytes.len()) {
        // SAFETY: the caller's guarantee, passed on; what follows the copied bytes is the caller's too.
        unsafe {
            let copied = wide::copy(bytes.as_ptr(), to, bytes.len());
            (to, bytes) = (to.add(copied), &bytes[copied..]);
        }
    }
    let (groups, rest) = bytes.as_chunks::<GROUP>();
    for (number, group) in groups.iter().enumerate() {
        // SAFETY: the group is within the caller's bytes.
        unsafe { store_group(to.add(number * GROUP), group) };
    }
    let (vectors, rest) = rest.as_chunks::<VECTOR>();
    for (number, &vector) in vectors.iter().enumerate() {
        // SAFETY: the vector is within the caller's bytes.
        unsafe { store(to.add(groups.len() * GROUP + number * VECTOR), from_bytes(vector)) };
    }
    match (rest, bytes.last_chunk::<VECTOR>()) {
        ([], _) => {}
        // SAFETY: the last sixteen bytes, some of which were copied before.
        (_, Some(&last)) => unsafe { store(to.add(bytes.len() - VECTOR), from_bytes(last)) },
        // SAFETY: what a wide copy left over is the caller's too.
        (few, None) => unsafe { copy_few_in(to, few) },
    }
}

/// Whether the bytes at `from` equal `bytes`.
///
/// # Safety
/// As for [`copy_out`].
#[inline(always)]
pub(super) unsafe fn is_equal(from: *const u8, bytes: &[u8]) -> bool {
    let Some(&last) = bytes.last_chunk::<VECTOR>() else {
        // SAFETY: the caller's guarantee, passed on.
        return unsafe { are_few_equal(from, bytes) };
    };
    // All ones as long as all bytes so far were equal.
    let mut equal = from_bytes([0xff; VECTOR]);
    for (number, &vector) in bytes[..bytes.len() - 1].as_chunks::<VECTOR>().0.iter().enumerate() {
        // SAFETY: the vector is within the caller's bytes.
        equal = unsafe { and_same(equal, from.add(number * VECTOR), from_bytes(vector)) };
    }
    // SAFETY: the last sixteen of the caller's bytes.
    equal = unsafe { and_same(equal, from.add(bytes.len() - VECTOR), from_bytes(last)) };
    to_bytes(equal) == [0xff; VECTOR]
}

#[inline(always)]
fn to_bytes(vector: __m128i) -> [u8; VECTOR] {
    // SAFETY: every bit pattern of either is a value of the other.
    unsafe { transmute(vector) }
}

#[inline(always)]
fn from_bytes(bytes: [u8; VECTOR]) -> __m128i {
    // SAFETY: every bit pattern of either is a value of the other.
    unsafe { transmute(bytes) }
}

/// [`copy_out`] of fewer than sixteen bytes.
///
/// # Safety
/// As for [`copy_out`].
#[inline(always)]
unsafe fn copy_few_out(from: *const u8, to: *mut u8, len: usize) {
    // SAFETY: the first and the last eight of the caller's bytes, which may overlap, or each by itself.
    unsafe {
        if len >= 8 {
            let (first, last) = (load_word(from), load_word(from.add(len - 8)));
            to.cast::<u64>().write_unaligned(first);
            to.add(len - 8).cast::<u64>().write_unaligned(last);
            return;
        }
        for at in 0..len {
            to.add(at).write(load_byte(from.add(at)));
        }
    }
}

/// [`is_equal`] of fewer than sixteen bytes.
///
/// # Safety
/// As for [`copy_out`].
#[inline(always)]
unsafe fn are_few_equal(from: *const u8, bytes: &[u8]) -> bool {
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(&first), Some(&last)) => {
            // SAFETY: the first and the last eight of the caller's bytes, which may overlap.
            let (first_here, last_here) = unsafe { (load_word(from), load_word(from.add(bytes.len() - 8))) };
            (first_here ^ u64::from_ne_bytes(first)) | (last_here ^ u64::from_ne_bytes(last)) == 0
        }
        // SAFETY: each is one of the caller's bytes.
        _ => bytes.iter().enumerate().all(|(at, &byte)| byte == unsafe { load_byte(from.add(at)) }),
    }
}

/// [`copy_in`] of fewer than sixteen bytes.
///
/// # Safety
/// As for [`copy_in`].
#[inline(always)]
unsafe fn copy_few_in(to: *mut u8, bytes: &[u8]) {
    match (bytes.first_chunk::<8>(), bytes.last_chunk::<8>()) {
        (Some(&first), Some(&last)) => {
            // SAFETY: the first and the last eight of the caller's bytes, which may overlap.
            unsafe {
                store_word(to, u64::from_ne_bytes(first));
                store_word(to.add(bytes.len() - 8), u64::from_ne_bytes(last));
            }
        }
        _ => {
            for (at, &byte) in bytes.iter().enumerate() {
                // SAFETY: one of the caller's bytes.
                unsafe { store_byte(to.add(at), byte) };
            }
        }
    }
}

/// # Safety
/// 64 bytes as for [`copy_out`].
#[inline(always)]
unsafe fn load_group(from: *const u8) -> [__m128i; GROUP / VECTOR] {
    let (a, b, c, d): (__m128i, __m128i, __m128i, __m128i);
    // SAFETY: reads the caller's bytes and nothing else, and writes only registers that it names.
    unsafe {
        asm!(
            "movups {a}, [{from}]",
            "movups {b}, [{from} + 16]",
            "movups {c}, [{from} + 32]",
            "movups {d}, [{from} + 48]",
            from = in(reg) from,
            a = out(xmm_reg) a,
            b = out(xmm_reg) b,
            c = out(xmm_reg) c,
            d = out(xmm_reg) d,
            options(nostack, readonly, preserves_flags),
        );
    }
    [a, b, c, d]
}

/// # Safety
/// Sixteen bytes as for [`copy_out`].
#[inline(always)]
unsafe fn load(from: *const u8) -> __m128i {
    let vector;
    // SAFETY: reads the caller's bytes and nothing else, and writes only the register that it names.
    unsafe {
        asm!("movups {vector}, [{from}]", from = in(reg) from, vector = out(xmm_reg) vector,
            options(nostack, readonly, preserves_flags));
    }
    vector
}

/// Clears the bytes of `equal` in which the sixteen at `from` differ from `other`.
///
/// # Safety
/// Sixteen bytes as for [`copy_out`].
#[inline(always)]
unsafe fn and_same(mut equal: __m128i, from: *const u8, other: __m128i) -> __m128i {
    // SAFETY: reads the caller's bytes and nothing else, and writes only registers that it names.
    unsafe {
        asm!(
            "movups {loaded}, [{from}]",
            "pcmpeqb {loaded}, {other}",
            "pand {equal}, {loaded}",
            from = in(reg) from,
            other = in(xmm_reg) other,
            equal = inout(xmm_reg) equal,
            loaded = out(xmm_reg) _,
            options(nostack, readonly, preserves_flags),
        );
    }
    equal
}

/// # Safety
/// Sixteen bytes as for [`copy_in`].
#[inline(always)]
unsafe fn store(to: *mut u8, vector: __m128i) {
    // SAFETY: writes the caller's bytes and nothing else.
    unsafe {
        asm!("movups [{to}], {vector}", to = in(reg) to, vector = in(xmm_reg) vector,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// 64 bytes as for [`copy_in`].
#[inline(always)]
unsafe fn store_group(to: *mut u8, group: &[u8; GROUP]) {
    // SAFETY: reads the group, writes only the caller's bytes and registers that it names.
    unsafe {
        asm!(
            "movups {a}, [{group}]",
            "movups {b}, [{group} + 16]",
            "movups {c}, [{group} + 32]",
            "movups {d}, [{group} + 48]",
            "movups [{to}], {a}",
            "movups [{to} + 16], {b}",
            "movups [{to} + 32], {c}",
            "movups [{to} + 48], {d}",
            group = in(reg) group.as_ptr(),
            to = in(reg) to,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack, preserves_flags),
        );
    }
}

/// # Safety
/// Eight bytes as for [`copy_out`].
#[inline(always)]
unsafe fn load_word(from: *const u8) -> u64 {
    let word;
    // SAFETY: reads the caller's bytes and nothing else, and writes only the register that it names.
    unsafe {
        asm!("mov {word}, [{from}]", from = in(reg) from, word = out(reg) word,
            options(nostack, readonly, preserves_flags));
    }
    word
}

/// # Safety
/// Eight bytes as for [`copy_in`].
#[inline(always)]
unsafe fn store_word(to: *mut u8, word: u64) {
    // SAFETY: writes the caller's bytes and nothing else.
    unsafe {
        asm!("mov [{to}], {word}", to = in(reg) to, word = in(reg) word, options(nostack, preserves_flags));
    }
}

/// # Safety
/// Two bytes as for [`copy_out`].
#[inline(always)]
pub(super) unsafe fn load_pair(from: *const u8) -> [u8; 2] {
    let pair: u32;
    // SAFETY: reads the caller's bytes and nothing else, and writes only the register that it names.
    unsafe {
        asm!("movzx {pair:e}, word ptr [{from}]", from = in(reg) from, pair = out(reg) pair,
            options(nostack, readonly, preserves_flags));
    }
    (pair as u16).to_ne_bytes()
}

/// # Safety
/// Two bytes as for [`copy_in`].
#[inline(always)]
pub(super) unsafe fn store_pair(to: *mut u8, pair: [u8; 2]) {
    // SAFETY: writes the caller's bytes and nothing else.
    unsafe {
        asm!("mov word ptr [{to}], {pair:x}", to = in(reg) to, pair = in(reg) u16::from_ne_bytes(pair),
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// One byte as for [`copy_out`].
#[inline(always)]
unsafe fn load_byte(from: *const u8) -> u8 {
    let byte;
    // SAFETY: reads the caller's byte and nothing else, and writes only the register that it names.
    unsafe {
        asm!("mov {byte}, [{from}]", from = in(reg) from, byte = out(reg_byte) byte,
            options(nostack, readonly, preserves_flags));
    }
    byte
}

/// # Safety
/// One byte as for [`copy_in`].
#[inline(always)]
unsafe fn store_byte(to: *mut u8, byte: u8) {
    // SAFETY: writes the caller's byte and nothing else.
    unsafe {
        asm!("mov [{to}], {byte}", to = in(reg) to, byte = in(reg_byte) byte, options(nostack, preserves_flags));
    }
}
