//! [`Migration`]: what a bucket gave away, as stored in the bucket.

use alluvium_base::Corruption;

const NAME: &str = "migrations of a bucket";

/// Bytes of a [`Migration`] in its bucket.
pub const MIGRATION_BYTES: usize = 6;

/// Items of a bucket from a rank on that are stored in another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Migration {
    /// Lowest [`rank`](super::rank) that was moved. The range ends at the mark of the bucket's next migration, if any.
    pub mark: u32,
    /// Number of pages from this bucket forward to the other one, negative if backward; never 0.
    pub distance: i16,
}

/// The [distance](Migration::distance) to an item of that `rank`, or `None` if it was not moved. `migrations` are those
/// of its home, sorted by mark.
#[inline]
pub fn destination_of(migrations: impl Iterator<Item = Migration>, rank: u32) -> Option<i16> {
    migrations.take_while(|migration| migration.mark <= rank).last().map(|migration| migration.distance)
}

/// Appends `migrations`, which ascend by mark: for each, its mark (4 bytes) and its distance (2).
pub fn write_migrations(migrations: &[Migration], out: &mut Vec<u8>) {
    for migration in migrations {
        out.extend_from_slice(&migration.mark.to_le_bytes());
        out.extend_from_slice(&migration.distance.to_le_bytes());
    }
}

/// Reads what [`write_migrations`] wrote, all of `bytes`.
///
/// # Errors
/// When the length is invalid, marks don't ascend or a distance is 0. The offset is relative to `bytes`.
#[inline]
pub fn read_migrations(bytes: &[u8]) -> Result<impl Iterator<Item = Migration> + use<'_>, Corruption> {
    let (records, rest) = bytes.as_chunks::<MIGRATION_BYTES>();
    let read = |record: &[u8; MIGRATION_BYTES]| Migration {
        mark: u32::from_le_bytes([record[0], record[1], record[2], record[3]]),
        distance: i16::from_le_bytes([record[4], record[5]]),
    };
    let all = records.iter().map(read);
    let ascends = all.clone().is_sorted_by(|one, other| one.mark < other.mark);
    if !rest.is_empty() || !ascends || all.clone().any(|migration| migration.distance == 0) {
        let found = format!("bytes {bytes:02x?}");
        return Err(Corruption::new(NAME, 0, "ascending marks, each with a distance", found));
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_is_written_is_read(marks in prop::collection::btree_map(any::<u32>(), 1i16.., 0..9), rank: u32) {
            let written: Vec<_> =
                marks.iter().map(|(&mark, &distance)| Migration { mark, distance }).collect();
            let mut bytes = Vec::new();
            write_migrations(&written, &mut bytes);
            let read: Vec<_> = read_migrations(&bytes).unwrap().collect();
            prop_assert_eq!(&read, &written);
            let expected = marks.range(..=rank).next_back().map(|(_, &distance)| distance);
            prop_assert_eq!(destination_of(read.into_iter(), rank), expected);
        }

        #[test]
        fn arbitrary_bytes_are_refused_or_sound(bytes in prop::collection::vec(any::<u8>(), 0..20)) {
            if let Ok(migrations) = read_migrations(&bytes) {
                prop_assert_eq!(migrations.count() * MIGRATION_BYTES, bytes.len());
            }
        }
    }
}
