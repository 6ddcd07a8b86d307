//! [`balance`]: decides which items of a group of buckets move where, so that no bucket holds more than a page.

use std::fmt;

use alluvium_base::KeyHash;

use super::migration::{MIGRATION_BYTES, Migration};
use super::rank;

/// The bits of a mark that are kept in memory.
pub(super) const MARK_HIGH_BITS: u32 = 0xffff_0000;

/// The range of hashes whose items a group takes, by their high halves, both included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupRange {
    /// Lowest [`KeyHash::high`].
    pub low: u64,
    /// Highest [`KeyHash::high`].
    pub high: u64,
}

/// An item to be placed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SizedItem {
    /// Hash of its key.
    pub hash: KeyHash,
    /// Number of bytes that it takes in a bucket.
    pub bytes: u32,
}

/// The capacity of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BucketRules {
    /// Bytes of items, and of migrations at 6 bytes each.
    pub capacity_bytes: u32,
    /// Page of the group's first bucket in its table.
    pub first_page: u32,
}

/// Where the items of a group are placed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The bucket of each item, in the order in which the items were passed. Homes come first, then spares.
    pub buckets: Vec<u32>,
    /// Number of buckets that hashes lead to.
    pub homes: u32,
    /// Number of buckets behind them that only take items from others.
    pub spares: u32,
    /// The moved ranges, sorted by giving bucket, then by mark.
    pub migrations: Vec<(u32, Migration)>,
    /// Bytes of the items whose home each bucket is, migrations not counted. Above the capacity, some were moved.
    pub home_bytes: Vec<u32>,
    /// Bytes stored in each bucket, migrations included, spares behind homes.
    pub bytes: Vec<u32>,
}

/// Why a group can't be balanced with any number of buckets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unbalanced {
    /// Items of one bucket with equal rank, which no mark separates, take more bytes than a bucket has.
    Tied {
        /// Their bytes.
        bytes: u32,
    },
    /// A bucket would have to give to more buckets than its migrations leave room for, or to one that is too far away.
    Crowded {
        /// The bucket, in the group.
        bucket: u32,
    },
}

impl fmt::Display for Unbalanced {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tied { bytes } => write!(out, "{bytes} bytes of items have one bucket and one rank"),
            Self::Crowded { bucket } => write!(out, "bucket {bucket} has more items than it can give away"),
        }
    }
}

impl std::error::Error for Unbalanced {}

/// The home, in `0..homes`, of an item with leading hash bits `high`.
///
/// # Panics
/// In debug builds when `high` is not in `range`.
#[inline]
pub fn bucket_of(high: u64, range: GroupRange, homes: u32) -> u32 {
    debug_assert!((range.low..=range.high).contains(&high));
    let span = u128::from(range.high - range.low) + 1;
    (u128::from(high - range.low) * u128::from(homes) / span) as u32
}

/// Balances `items` over `homes` buckets, at least one, and as many spares as needed. Deterministic: the order of
/// `items` does not change which ones are moved.
///
/// Buckets are paired as in §4.2.4.2: the most overloaded bucket with the most under-loaded one, then the next. A
/// bucket whose excess fits in no single bucket gives to several; if none takes any of it, to a spare.
///
/// Costs a sort of each overloaded bucket, and for each of them a pass over all buckets.
///
/// # Errors
/// When too many items have hashes that are too similar: see [`Unbalanced`].
pub fn balance(
    items: &[SizedItem],
    range: GroupRange,
    homes: u32,
    rules: BucketRules,
) -> Result<Balance, Unbalanced> {
    let mut buckets: Vec<u32> = items.iter().map(|item| bucket_of(item.hash.high(), range, homes)).collect();
    let mut home_bytes = vec![0u32; homes as usize];
    for (item, &bucket) in items.iter().zip(&buckets) {
        home_bytes[bucket as usize] += item.bytes;
    }
    let capacity = rules.capacity_bytes;
    let mut sources: Vec<u32> = (0..homes).filter(|&bucket| home_bytes[bucket as usize] > capacity).collect();
    sources.sort_by_key(|&bucket| (std::cmp::Reverse(home_bytes[bucket as usize]), bucket));
    let mut by_source = Members::of(&sources, &buckets, homes);
    let mut bytes = home_bytes.clone();
    let mut rooms: Vec<u32> = home_bytes.iter().map(|&load| capacity.saturating_sub(load)).collect();
    let mut migrations = Vec::new();
    for &source in &sources {
        let members = by_source.take(source);
        let ranked = Ranked::new(items, members, rules.first_page + source);
        let parts = ranked.give(source, capacity, &mut rooms)?;
        bytes.resize(rooms.len(), 0);
        let kept: u32 = ranked.bytes[..parts.first().map_or(0, |part| part.from)].iter().sum();
        bytes[source as usize] = kept + parts.len() as u32 * MIGRATION_BYTES as u32;
        for part in &parts {
            for &item in &ranked.members[part.from..part.to] {
                buckets[item as usize] = part.bucket;
                bytes[part.bucket as usize] += items[item as usize].bytes;
            }
            let distance = i64::from(part.bucket) - i64::from(source);
            let distance = i16::try_from(distance).map_err(|_| Unbalanced::Crowded { bucket: source })?;
            migrations.push((source, Migration { mark: ranked.mark_before(part.from), distance }));
        }
    }
    migrations.sort_unstable();
    let spares = rooms.len() as u32 - homes;
    Ok(Balance { buckets, homes, spares, migrations, home_bytes, bytes })
}

/// The items of the overloaded buckets.
struct Members {
    /// For each bucket, its index in `lists`.
    places: Vec<u32>,
    lists: Vec<Vec<u32>>,
}

impl Members {
    fn of(sources: &[u32], buckets: &[u32], homes: u32) -> Self {
        let mut places = vec![u32::MAX; homes as usize];
        for (place, &source) in (0..).zip(sources) {
            places[source as usize] = place;
        }
        let mut lists = vec![Vec::new(); sources.len()];
        for (item, &bucket) in (0u32..).zip(buckets) {
            if let Some(list) = lists.get_mut(places[bucket as usize] as usize) {
                list.push(item);
            }
        }
        Self { places, lists }
    }

    fn take(&mut self, source: u32) -> Vec<u32> {
        std::mem::take(&mut self.lists[self.places[source as usize] as usize])
    }
}

/// The items of a bucket by rank.
struct Ranked {
    members: Vec<u32>,
    ranks: Vec<u32>,
    bytes: Vec<u32>,
}

/// Items `from..to` of a bucket, by rank, and the bucket that takes them.
struct Part {
    from: usize,
    to: usize,
    bucket: u32,
}

impl Ranked {
    fn new(items: &[SizedItem], mut members: Vec<u32>, page: u32) -> Self {
        // Items of equal rank move together, so their order has no effect.
        members.sort_unstable_by_key(|&item| (rank(items[item as usize].hash, page), item));
        let ranks = members.iter().map(|&item| rank(items[item as usize].hash, page)).collect();
        let bytes = members.iter().map(|&item| items[item as usize].bytes).collect();
        Self { members, ranks, bytes }
    }

    /// Gives away the excess to the buckets with the most room, and reduces `rooms` accordingly; spares are appended.
    fn give(&self, source: u32, capacity: u32, rooms: &mut Vec<u32>) -> Result<Vec<Part>, Unbalanced> {
        for count in 1..=capacity as usize / MIGRATION_BYTES / 2 {
            let kept_max = capacity - (count * MIGRATION_BYTES) as u32;
            let kept = self.end_of_what_fits(0, kept_max);
            let rooms_before = rooms.clone();
            let parts = self.parts_from(kept, capacity, rooms)?;
            if parts.len() <= count {
                return Ok(parts);
            }
            rooms.clone_from(&rooms_before);
        }
        Err(Unbalanced::Crowded { bucket: source })
    }

    fn parts_from(&self, kept: usize, capacity: u32, rooms: &mut Vec<u32>) -> Result<Vec<Part>, Unbalanced> {
        let mut parts = Vec::new();
        let mut from = kept;
        while from < self.members.len() {
            let (bucket, room) = most_room(rooms);
            let mut part = Part { from, to: self.end_of_what_fits(from, room), bucket };
            if part.to == from {
                part = Part { from, to: self.end_of_what_fits(from, capacity), bucket: rooms.len() as u32 };
                rooms.push(capacity);
            }
            if part.to == from {
                let tied = self.ranks[from..].iter().take_while(|&&rank| rank == self.ranks[from]).count();
                return Err(Unbalanced::Tied { bytes: self.bytes[from..from + tied].iter().sum() });
            }
            rooms[part.bucket as usize] -= self.bytes[from..part.to].iter().sum::<u32>();
            from = part.to;
            parts.push(part);
        }
        Ok(parts)
    }

    /// A mark between the item at `place` and the one before. Prefers a mark without low bits if there is one, since
    /// its high half is then enough to remember it.
    fn mark_before(&self, place: usize) -> u32 {
        let (mark, before) = (self.ranks[place], place.checked_sub(1).map(|place| self.ranks[place]));
        let round = mark & MARK_HIGH_BITS;
        if before.is_none_or(|before| before < round) { round } else { mark }
    }

    /// The end of the longest range of items from `from` on that fits in `room` and does not end between equal ranks.
    fn end_of_what_fits(&self, from: usize, room: u32) -> usize {
        let (mut end, mut sum) = (from, 0);
        for place in from..self.members.len() {
            if place > from && self.ranks[place] != self.ranks[place - 1] {
                end = place;
            }
            sum += self.bytes[place];
            if sum > room {
                return end;
            }
        }
        self.members.len()
    }
}

/// The first of the buckets with the most room, and that room.
fn most_room(rooms: &[u32]) -> (u32, u32) {
    (0..).zip(rooms).fold((0, 0), |most, (bucket, &room)| if room > most.1 { (bucket, room) } else { most })
}
