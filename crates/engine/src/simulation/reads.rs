//! Reads of many items at once.

use std::collections::BTreeMap;

use super::model::Contents;
use crate::{Error, Keyspace};

/// Number of lookups of a stream that are in flight at once.
const IN_FLIGHT: usize = 4;

/// All items of all keyspaces.
pub(super) fn read_all(keyspaces: &[Keyspace]) -> Result<Contents, Error> {
    let mut found = Contents::new();
    for (number, keyspace) in keyspaces.iter().enumerate() {
        for item in keyspace.iter() {
            let (key, value) = item?;
            found.insert((number, key), value);
        }
    }
    Ok(found)
}

/// The values of some keys, looked up as a stream.
pub(super) fn get_each(keyspace: &Keyspace, keys: &[&[u8]]) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let mut found = BTreeMap::new();
    keyspace.get_each(keys.iter().copied(), IN_FLIGHT, |key, value| {
        found.insert(key, value.map(<[u8]>::to_vec));
    })?;
    Ok(keys.iter().map(|key| found[key].clone()).collect())
}
