//! Prefixes of semi-sorted keyspaces in the simulation: scans, also of snapshots, and removals.

use std::collections::{BTreeMap, BTreeSet};

use rand::RngExt;

use super::Failure;
use super::faults::Stop;
use super::model::{Name, Step};
use super::session::Session;
use super::shape::prefix;
use crate::{Error, Iter, KeyValue, Keyspace, Prefixes};

impl Session<'_> {
    /// A semi-sorted keyspace and one of its prefixes, or `None` if all keyspaces are hashed.
    fn prefix(&mut self) -> Option<(usize, String)> {
        let semi_sorted: Vec<usize> =
            (0..self.shape.keyspaces).filter(|&number| self.shape.prefix_rules[number].is_some()).collect();
        if semi_sorted.is_empty() {
            return None;
        }
        let keyspace = semi_sorted[self.rng.random_range(0..semi_sorted.len())];
        Some((keyspace, prefix(self.rng.random_range(0..self.shape.keys))))
    }

    /// Scans a prefix or lists all prefixes from it on, half the time in a snapshot if there is one.
    pub(super) fn check_prefix(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let Some((number, prefix)) = self.prefix() else { return Ok(()) };
        if self.shape.lists_prefixes && self.rng.random() {
            return self.check_listing(keyspaces, number, &prefix);
        }
        let start = format!("{prefix}/").into_bytes();
        let snapshot = match self.snapshots.len() {
            count if count > 0 && self.rng.random() => Some(self.rng.random_range(0..count)),
            _ => None,
        };
        let (found, expected): (_, BTreeMap<Vec<u8>, Vec<u8>>) = match snapshot {
            Some(chosen) => {
                let (snapshot, contents) = &self.snapshots[chosen];
                let keyspace = snapshot.keyspace(&format!("keyspace-{number}"));
                let found = keyspace.map_or(Ok(Vec::new()), |keyspace| items(keyspace.scan_prefix(&prefix)));
                let is_of = |name: &Name| name.0 == number && name.1.starts_with(&start);
                let expected = contents.iter().filter(|(name, _)| is_of(name));
                (found, expected.map(|((_, key), value)| (key.clone(), value.clone())).collect())
            }
            None => {
                let found = items(keyspaces[number].scan_prefix(&prefix));
                let expected = self.model.beginning_with(number, &start);
                (found, expected.map(|((_, key), value)| (key.clone(), value.bytes.clone())).collect())
            }
        };
        let found = found.map_err(|error| self.stop(&error, "scanning a prefix"))?;
        let count = found.len();
        let found: BTreeMap<_, _> = found.into_iter().collect();
        if found != expected || found.len() != count {
            let reason = format!(
                "a scan of prefix {prefix} of keyspace {number} (snapshot: {snapshot:?}) found {count} items, not {}",
                expected.len()
            );
            return Err(Failure { reason }.into());
        }
        Ok(())
    }

    /// Lists the prefixes from `start` on.
    fn check_listing(&mut self, keyspaces: &[Keyspace], number: usize, start: &str) -> Result<(), Stop> {
        let snapshot = match self.snapshots.len() {
            count if count > 0 && self.rng.random() => Some(self.rng.random_range(0..count)),
            _ => None,
        };
        let prefixes_of = |keys: &mut dyn Iterator<Item = &Name>| -> BTreeSet<Vec<u8>> {
            let own = keys
                .filter(|name| name.0 == number)
                .filter_map(|(_, key)| key.split(|&byte| byte == b'/').next());
            own.filter(|prefix| *prefix >= start.as_bytes()).map(<[u8]>::to_vec).collect()
        };
        let (found, expected) = match snapshot {
            Some(chosen) => {
                let (snapshot, contents) = &self.snapshots[chosen];
                let keyspace = snapshot.keyspace(&format!("keyspace-{number}"));
                let found = keyspace.map_or(Ok(Vec::new()), |keyspace| names(keyspace.prefixes_from(start)));
                (found, prefixes_of(&mut contents.keys()))
            }
            None => {
                let found = names(keyspaces[number].prefixes_from(start));
                let all = self.model.contents();
                (found, prefixes_of(&mut all.keys()))
            }
        };
        let found = found.map_err(|error| self.stop(&error, "listing prefixes"))?;
        if !found.iter().eq(&expected) {
            let reason = format!(
                "listing keyspace {number} from {start} on (snapshot: {snapshot:?}) found {found:?}, not {expected:?}"
            );
            return Err(Failure { reason }.into());
        }
        Ok(())
    }

    /// Removes all items of a prefix.
    pub(super) fn delete_prefix(&mut self, keyspaces: &[Keyspace]) -> Result<(), Stop> {
        let Some((number, prefix)) = self.prefix() else { return Ok(()) };
        let start = format!("{prefix}/").into_bytes();
        let writes: Vec<_> =
            self.model.beginning_with(number, &start).map(|(name, _)| (name.clone(), None)).collect();
        self.write(Step::Write(writes), "deleting a prefix", || keyspaces[number].delete_prefix(&prefix))
    }
}

fn names(listing: Result<Prefixes, Error>) -> Result<Vec<Vec<u8>>, Error> {
    listing?.collect()
}

fn items(scan: Result<Iter, Error>) -> Result<Vec<KeyValue>, Error> {
    scan?.collect()
}
