//! Generates inputs: noise, small damage to valid samples, and shortening of failing inputs.

use rand::rngs::StdRng;
use rand::{Rng, RngExt};

/// Lengths that parsers often get wrong: near zero, near powers of two, and the extremes of common widths.
const INTERESTING: [u64; 12] = [
    0,
    1,
    0x7f,
    0x80,
    0xff,
    0xffff,
    0x1_0000,
    0x7fff_ffff,
    0xffff_ffff,
    0x1_0000_0000,
    0x7fff_ffff_ffff_ffff,
    u64::MAX,
];

/// Up to some hundred random bytes; short inputs are the most frequent.
pub fn random_bytes(random: &mut StdRng) -> Vec<u8> {
    let len_max = 1 << random.random_range(0..10);
    let mut bytes = vec![0; random.random_range(0..=len_max)];
    random.fill_bytes(&mut bytes);
    bytes
}

/// `sample` with damage in one to four places.
pub fn mutated(sample: &[u8], samples: &[Vec<u8>], random: &mut StdRng) -> Vec<u8> {
    let mut bytes = sample.to_vec();
    for _ in 0..random.random_range(1..=4) {
        damage(&mut bytes, samples, random);
    }
    bytes
}

fn damage(bytes: &mut Vec<u8>, samples: &[Vec<u8>], random: &mut StdRng) {
    let position = if bytes.is_empty() { 0 } else { random.random_range(0..bytes.len()) };
    match random.random_range(0..7) {
        0 if !bytes.is_empty() => bytes[position] ^= 1 << random.random_range(0..8),
        1 if !bytes.is_empty() => bytes[position] = random.random(),
        2 => bytes.truncate(position),
        3 => {
            let noise = random_bytes(random);
            bytes.splice(position..position, noise);
        }
        4 => {
            let len = random.random_range(0..=bytes.len() - position);
            bytes.drain(position..position + len);
        }
        5 => {
            let value = INTERESTING[random.random_range(0..INTERESTING.len())].to_le_bytes();
            let width = [1, 2, 4, 8][random.random_range(0..4)];
            for (byte, new) in bytes[position..].iter_mut().zip(&value[..width]) {
                *byte = *new;
            }
        }
        _ => {
            let other = &samples[random.random_range(0..samples.len())];
            let from = random.random_range(0..=other.len());
            bytes.truncate(position);
            bytes.extend_from_slice(&other[from..]);
        }
    }
}

/// A shorter input that still fails, found by cutting out halves, quarters and so on down to single bytes.
pub fn shortened(mut input: Vec<u8>, fails: impl Fn(&[u8]) -> bool) -> Vec<u8> {
    let mut step = input.len() / 2;
    while step > 0 {
        let mut position = 0;
        while position + step <= input.len() {
            let mut candidate = input.clone();
            candidate.drain(position..position + step);
            if fails(&candidate) {
                input = candidate;
            } else {
                position += step;
            }
        }
        step /= 2;
    }
    input
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn shortening_keeps_what_fails() {
        let input = (0..200).collect();
        assert_eq!(shortened(input, |bytes| bytes.contains(&77)), [77]);
    }

    #[test]
    fn mutation_takes_any_sample() {
        let mut random = StdRng::seed_from_u64(5);
        let samples = vec![Vec::new(), vec![1], vec![2; 100]];
        for round in 0..10_000 {
            let bytes = mutated(&samples[round % 3], &samples, &mut random);
            assert!(bytes.len() < 10_000);
        }
    }
}
