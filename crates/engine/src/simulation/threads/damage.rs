//! [`Damage`]: a bit of a table that was inverted while the database was closed.

use alluvium_io::SimulatedStorage;
use rand::RngExt;
use rand::rngs::StdRng;

/// Bytes at the end of a table that no other has.
const END_BYTES: usize = 64;

/// What reads the bit may fail, and nothing may become of it that is wrong or lost: when it is right again, everything
/// must be.
#[derive(Debug)]
pub(super) struct Damage {
    table: String,
    offset: usize,
    bit: u32,
    /// What the file holds since.
    bytes: Vec<u8>,
}

impl Damage {
    /// Inverts a bit of some table; `None` if there is none.
    pub fn random(storage: &SimulatedStorage, rng: &mut StdRng) -> Option<Self> {
        let contents = storage.contents().into_iter();
        let mut tables: Vec<_> =
            contents.filter(|(name, bytes)| name.starts_with("table-") && !bytes.is_empty()).collect();
        if tables.is_empty() {
            return None;
        }
        let (table, mut bytes) = tables.swap_remove(rng.random_range(0..tables.len()));
        let (offset, bit) = (rng.random_range(0..bytes.len()), rng.random_range(0..8));
        storage.flip_bit(&table, offset as u64, bit).expect("it is within the file");
        bytes[offset] ^= 1 << bit;
        Some(Self { table, offset, bit, bytes })
    }

    /// Inverts the bit again, unless the file is gone. Another one may have its name: numbers of files that no manifest
    /// names are given again after a crash. The same one may have holes by now, but its end is the same.
    pub fn mend(self, storage: &SimulatedStorage) {
        let Self { table, offset, bit, bytes } = self;
        let is_same = storage.contents().get(&table).is_some_and(|found| {
            let end = bytes.len().saturating_sub(END_BYTES);
            found.len() == bytes.len() && found[end..] == bytes[end..] && found[offset] == bytes[offset]
        });
        if is_same {
            storage.flip_bit(&table, offset as u64, bit).expect("it is within the file");
        }
    }
}
