//! The items, which are derived from their numbers, and what a scan returned of a group.

use alluvium_bench::BenchError;
use alluvium_bench::random::{Random, mix};

/// Bytes of a group's number, scrambled: the prefix.
const PREFIX_BYTES: usize = 8;
/// Bytes of a key: the prefix, and the scrambled number of the item in its group.
pub const KEY_BYTES: usize = 2 * PREFIX_BYTES;

/// A number of items in groups; the last groups may have one less.
pub struct Items {
    items: u64,
    groups: u64,
    value_bytes: usize,
}

impl Items {
    pub fn new(items: u64, group_size: u64, value_bytes: usize) -> Self {
        Self { items, groups: items.div_ceil(group_size), value_bytes }
    }

    pub fn groups(&self) -> u64 {
        self.groups
    }

    /// Items of a group.
    pub fn group_size(&self, group: u64) -> u64 {
        self.items / self.groups + u64::from(group < self.items % self.groups)
    }

    pub fn prefix(&self, group: u64) -> [u8; PREFIX_BYTES] {
        mix(group).to_be_bytes()
    }

    /// All items; each group gets one before any group gets the next.
    pub fn for_each(
        &self,
        mut put: impl FnMut(&[u8], &[u8]) -> Result<(), BenchError>,
    ) -> Result<(), BenchError> {
        let mut key = [0; KEY_BYTES];
        let mut value = vec![0; self.value_bytes];
        for number in 0..self.items {
            let (group, member) = (number % self.groups, number / self.groups);
            key[..PREFIX_BYTES].copy_from_slice(&self.prefix(group));
            key[PREFIX_BYTES..].copy_from_slice(&suffix(group, member).to_be_bytes());
            fill(&mut value, group, member);
            put(&key, &value)?;
        }
        Ok(())
    }
}

fn suffix(group: u64, member: u64) -> u64 {
    mix(mix(group).wrapping_add(member))
}

/// The value identifies the member, so that it can be checked.
fn fill(value: &mut [u8], group: u64, member: u64) {
    Random::new(group, member).fill(value);
    let told = value.len().min(PREFIX_BYTES);
    value[..told].copy_from_slice(&member.to_le_bytes()[..told]);
}

/// The items that a scan of a group has returned.
pub struct Seen<'a> {
    items: &'a Items,
    group: u64,
    prefix: [u8; PREFIX_BYTES],
    members: Vec<u64>,
    expected: Vec<u8>,
    wrong: Option<String>,
}

impl<'a> Seen<'a> {
    pub fn new(items: &'a Items, group: u64) -> Self {
        let members = vec![0; items.group_size(group).div_ceil(64) as usize];
        let (prefix, expected) = (items.prefix(group), vec![0; items.value_bytes]);
        Self { items, group, prefix, members, expected, wrong: None }
    }

    pub fn see(&mut self, key: &[u8], value: &[u8]) {
        if let Err(what) = self.check(key, value) {
            self.wrong.get_or_insert(what);
        }
    }

    fn check(&mut self, key: &[u8], value: &[u8]) -> Result<(), String> {
        let told = value.get(..PREFIX_BYTES).and_then(|bytes| bytes.try_into().ok()).map(u64::from_le_bytes);
        let member = told.ok_or_else(|| format!("a value of {} bytes", value.len()))?;
        if key.get(..PREFIX_BYTES) != Some(&self.prefix)
            || key[PREFIX_BYTES..] != suffix(self.group, member).to_be_bytes()
        {
            return Err(format!("item {member} under the key {key:02x?}"));
        }
        fill(&mut self.expected, self.group, member);
        if member >= self.items.group_size(self.group) || value != self.expected {
            return Err(format!("value {value:02x?} of item {member}"));
        }
        let bits = &mut self.members[(member / 64) as usize];
        if *bits >> (member % 64) & 1 == 1 {
            return Err(format!("item {member} twice"));
        }
        *bits |= 1 << (member % 64);
        Ok(())
    }

    /// Checks that all were returned, each once.
    pub fn end(self) -> Result<(), BenchError> {
        let seen: u64 = self.members.iter().map(|bits| u64::from(bits.count_ones())).sum();
        let short = || format!("{seen} of {} items", self.items.group_size(self.group));
        let wrong = self.wrong.or_else(|| (seen != self.items.group_size(self.group)).then(short));
        wrong.map_or(Ok(()), |what| {
            Err(BenchError::WrongAnswer(format!("scan of group {}: {what}", self.group)))
        })
    }
}
