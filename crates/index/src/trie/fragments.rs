//! [`Fragments`]: bits of each key's hash in trie order, as a filter beside a dense trie (SILT §3.3).

use alluvium_base::{Corruption, KeyHash};

use super::builder::fragment;
use crate::elias_fano::PackedInts;
use crate::elias_fano::wire::{WireReader, WireWriter};

const NAME: &str = "key fragments";
const KIND: u64 = 0x3154_4d47_4152_464b;

/// Maximum bits of a fragment.
const BITS_MAX: u32 = 64;

/// Some bits of each key's hash, by rank. The trie says which key is the only one that a key may be; if its fragment
/// differs, the key is absent. Apart from a [`Trie`](super::Trie) with fragments of its own, so that either can leave
/// memory without the other.
///
/// Cost: the bits, for each key, and one comparison a lookup. A fraction of 2^-bits of absent keys passes.
///
/// # Bytes
///
/// Little-endian 64-bit words: kind (`0x3154_4d47_4152_464b`), bits of a fragment, number of fragments, the fragments
/// without gaps from the lowest bit up, XXH3-64 of everything before, seeded with the kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fragments {
    fragments: PackedInts,
}

impl Fragments {
    /// No fragments, of `bits` bits each.
    ///
    /// # Panics
    /// If `bits` is not between 1 and 64.
    pub fn new(bits: u32) -> Self {
        assert!((1..=BITS_MAX).contains(&bits), "fragments of {bits} bits: a fragment has 1 to {BITS_MAX}");
        Self { fragments: PackedInts::new(bits) }
    }

    /// Adds the fragment of the next key in ascending order of hashes.
    #[inline]
    pub fn push(&mut self, hash: KeyHash) {
        self.fragments.push(fragment(hash, self.bits()));
    }

    /// Frees unused capacity.
    pub fn shrink_to_fit(&mut self) {
        self.fragments.shrink_to_fit();
    }

    /// Number of keys.
    pub fn len(&self) -> u64 {
        self.fragments.len()
    }

    /// Whether there are no keys.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bits of a fragment.
    pub fn bits(&self) -> u32 {
        self.fragments.width()
    }

    /// Whether the key of rank `rank` may have this hash. Beyond the last rank, some hashes may.
    #[inline]
    pub fn may_be(&self, rank: u64, hash: KeyHash) -> bool {
        self.fragments.get(rank) == fragment(hash, self.bits())
    }

    /// Bytes of memory, this value included.
    pub fn memory_bytes(&self) -> u64 {
        size_of::<Self>() as u64 + self.fragments.memory_bytes()
    }

    /// The fragments as bytes, in the layout above.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut writer = WireWriter::new(KIND, 3 + self.fragments.words().len());
        writer.word(u64::from(self.bits()));
        writer.word(self.len());
        writer.words(self.fragments.words());
        writer.finish()
    }

    /// The fragments that [`to_bytes`](Self::to_bytes) wrote.
    ///
    /// # Errors
    /// When checksum, bits or length are wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, Corruption> {
        let mut reader = WireReader::new(NAME, KIND, bytes)?;
        let bits = reader.word_up_to(u64::from(BITS_MAX), "bits of a fragment")? as u32;
        if bits == 0 {
            return Err(reader.corruption("fragments of 1 bit and more", "0 bits"));
        }
        let count = reader.word()?;
        let words = PackedInts::word_count(bits, count).unwrap_or(usize::MAX);
        let fragments = PackedInts::from_words(reader.words(words)?, bits, count)
            .ok_or_else(|| reader.corruption("zeros after the last fragment", "other bits"))?;
        reader.finish()?;
        Ok(Self { fragments })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trie::{Granularity, TrieBuilder, TrieConfig};
    use proptest::prelude::*;

    fn of(bits: u32, hashes: &[KeyHash]) -> Fragments {
        let mut fragments = Fragments::new(bits);
        hashes.iter().for_each(|&hash| fragments.push(hash));
        fragments
    }

    proptest! {
        #[test]
        fn beside_a_trie_they_answer_as_those_within_it(
            mut hashes in prop::collection::vec(any::<u128>().prop_map(KeyHash), 1..400),
            absent in prop::collection::vec(any::<u128>().prop_map(KeyHash), 40),
            bits in 1u32..=64,
        ) {
            hashes.sort_unstable();
            let trie = |fragment_bits| {
                let config = TrieConfig { fragment_bits, ..TrieConfig::new(Granularity::Key) };
                let mut builder = TrieBuilder::new(hashes.len() as u64, config);
                hashes.iter().for_each(|&hash| builder.push(hash));
                builder.finish()
            };
            let (with, without) = (trie(bits), trie(0));
            let fragments = of(bits, &hashes);
            prop_assert_eq!(fragments.len(), hashes.len() as u64);
            for &hash in hashes.iter().chain(&absent) {
                let beside = without.lookup(hash).filter(|&rank| fragments.may_be(rank, hash));
                prop_assert_eq!(beside, with.lookup(hash));
            }
            prop_assert_eq!(Fragments::from_bytes(&fragments.to_bytes()), Ok(fragments));
        }
    }

    #[test]
    fn damaged_bytes_are_refused() {
        let bytes = of(7, &[KeyHash(1), KeyHash(2 << 70)]).to_bytes();
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 0x10;
            assert!(Fragments::from_bytes(&damaged).is_err(), "byte {at}");
            assert!(Fragments::from_bytes(&bytes[..at]).is_err(), "{at} bytes");
        }
    }
}
