//! [`Damage`]: a bit of a table that was inverted while the database was closed.

use alluvium_io::SimulatedStorage;
use rand::RngExt;
use rand::rngs::StdRng;

/// Bytes at the end of a table that are unique to it.
const END_BYTES: usize = 64;

/// Operations that read the bit may fail, but must not return or lose anything wrongly. Once the bit is correct again,
/// all data must be.
#[derive(Debug)]
pub(super) struct Damage {
    table: String,
    offset: usize,
    bit: u32,
    /// The content of the file since then.
    bytes: Vec<u8>,
}

impl Damage {
    /// Inverts a bit of some table. Returns `None` if there is none.
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

    /// Inverts the bit again, unless the file no longer exists. Another file may have its name: after a crash numbers
    /// of files that no manifest names are used again. The same file may have holes by now, but its end is unchanged.
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
