//! Values that are incremented: numbers.
//!
//! An increment is a read-modify-write under the lock that updates of a key share, not a record that a merge adds up
//! later: a get stays one read, and the sum is known at once.

use super::keyspace::Keyspace;
use super::update::Update;
use crate::error::{Error, Result};
use crate::metadata::Metadata;

impl Keyspace {
    /// Atomically adds `by` to the number under `key` and returns the sum. An absent key counts as 0.
    ///
    /// A number is a value of 8 bytes, encoded as by `i64::to_le_bytes`. Flags and expiry stay unchanged. Costs a get
    /// and a put; increments of one key take turns.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// # let db = alluvium::Db::open(directory.path())?;
    /// let views = db.keyspace("views")?;
    /// assert_eq!(views.increment("page", 1)?, 1);
    /// assert_eq!(views.increment("page", 41)?, 42);
    /// assert_eq!(views.get("page")?.as_deref(), Some(&42_i64.to_le_bytes()[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`Error::NotANumber`] if the value has another length, [`Error::NumberOverflow`] if the sum exceeds the range of
    /// `i64`. The value stays unchanged.
    pub fn increment(&self, key: impl AsRef<[u8]>, by: i64) -> Result<i64> {
        let mut sum = 0;
        self.modify(key.as_ref(), |before| {
            let (value, metadata) = match before {
                None => (0, Metadata::default()),
                Some((bytes, metadata)) => {
                    let bytes = bytes.try_into().map_err(|_| Error::NotANumber { len: bytes.len() })?;
                    (i64::from_le_bytes(bytes), metadata)
                }
            };
            sum = value.checked_add(by).ok_or(Error::NumberOverflow { value, by })?;
            Ok(Update::InsertWith(sum.to_le_bytes().to_vec(), metadata))
        })?;
        Ok(sum)
    }
}
