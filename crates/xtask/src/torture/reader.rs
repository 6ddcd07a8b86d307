//! A thread that reads beside the writers, and knows what may be present.

use std::collections::HashMap;
use std::io::Read;
use std::sync::Arc;

use alluvium::{Error, Keyspace};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::board::ClosedWindow;
use super::context::{Context, Stop};
use super::key::{
    Catalog, Key, PREFIXES, SHARED, Seen, all_keys, is_semi_sorted, keys_of, prefix_name, spaces,
};

/// See the module.
#[derive(Debug)]
pub struct Reader {
    context: Arc<Context>,
    rng: StdRng,
    catalogs: Arc<Vec<Catalog>>,
}

/// The catalogs of all keyspaces.
pub fn catalogs(writers: u8) -> Arc<Vec<Catalog>> {
    Arc::new((0..spaces(writers)).map(|space| Catalog::of(space, writers)).collect())
}

impl Reader {
    pub fn new(context: Arc<Context>, catalogs: Arc<Vec<Catalog>>, seed: u64) -> Self {
        Self { context, rng: StdRng::seed_from_u64(seed), catalogs }
    }

    pub fn run(mut self) {
        while !self.context.board.is_over() {
            match self.step() {
                // Under a memory limit that was just lowered, iterators wait for each other.
                Ok(()) | Err(Error::KeyspaceDropped { .. } | Error::MemoryBusy { .. }) => {}
                Err(error) => {
                    let Stop = self.context.excuse("reading", &error);
                    return;
                }
            }
        }
    }

    fn step(&mut self) -> alluvium::Result<()> {
        match self.rng.random_range(0..100) {
            0..60 => self.get_one(),
            60..75 => self.get_many(),
            75..80 => self.get_stream(),
            80..84 if self.context.has("iterate") => self.iterate(),
            84..88 if self.context.has("scan") => self.scan(),
            88..96 => self.scan_prefix(),
            96.. => self.list_prefixes(),
            _ => Ok(()),
        }
    }

    fn any_space(&mut self) -> u8 {
        self.rng.random_range(0..spaces(self.context.board.writers))
    }

    fn any_key(&mut self) -> Key {
        let space = self.any_space();
        let number = self.rng.random_range(0..keys_of(space, self.context.board.writers));
        Key { space, number }
    }

    fn get_one(&mut self) -> alluvium::Result<()> {
        let key = self.any_key();
        let (board, bytes) = (&self.context.board, key.bytes(self.context.board.writers));
        let window = board.open([key]);
        let value = match self.rng.random_range(0..4) {
            0 => self.context.space(key.space).get_with_metadata(&bytes)?.map(|(value, _)| value),
            _ => self.context.space(key.space).get(&bytes)?,
        };
        self.context.check_all("getting", &board.close(window), &[value]);
        Ok(())
    }

    fn get_stream(&mut self) -> alluvium::Result<()> {
        let key = self.any_key();
        let (board, bytes) = (&self.context.board, key.bytes(self.context.board.writers));
        let window = board.open([key]);
        let reader = self.context.space(key.space).get_reader(&bytes)?;
        let window = board.close(window);
        // The stream continues, whatever happens to the key.
        let value = reader.map(|mut reader| {
            let mut value = Vec::new();
            let read = reader.read_to_end(&mut value);
            read.map(|_| value).map_err(|source| Error::Io { context: "reading a stream".to_owned(), source })
        });
        self.context.check_all("reading a stream", &window, &[value.transpose()?]);
        Ok(())
    }

    fn get_many(&mut self) -> alluvium::Result<()> {
        let space = self.any_space();
        let writers = self.context.board.writers;
        let all = keys_of(space, writers);
        let keys: Vec<Key> = (0..24).map(|_| Key { space, number: self.rng.random_range(0..all) }).collect();
        let bytes: Vec<Vec<u8>> = keys.iter().map(|key| key.bytes(writers)).collect();
        let board = &self.context.board;
        let window = board.open(keys);
        let values = if self.rng.random() {
            self.context.space(space).multi_get(&bytes)?
        } else {
            let mut found = HashMap::new();
            self.context.space(space).get_each(&bytes, 8, |key, value| {
                found.insert(key, value.map(<[u8]>::to_vec));
            })?;
            bytes.iter().map(|key| found.get(key).cloned().flatten()).collect()
        };
        self.context.check_all("getting many", &board.close(window), &values);
        Ok(())
    }

    fn iterate(&mut self) -> alluvium::Result<()> {
        let space = self.any_space();
        let board = &self.context.board;
        let window = board.open(all_keys(space, board.writers));
        let mut items = Vec::new();
        for item in self.context.space(space).iter() {
            items.push(item?);
        }
        check_items(&self.context, &self.catalogs, space, &board.close(window), items, ("iterating", true));
        Ok(())
    }

    /// Scans from the beginning to the end, or up to a random number of items.
    fn scan(&mut self) -> alluvium::Result<()> {
        let space = self.any_space();
        let count = self.rng.random_range(1..60);
        let patience = self.rng.random_range(0..200);
        let board = &self.context.board;
        let window = board.open(all_keys(space, board.writers));
        let (mut items, mut cursor) = (Vec::new(), 0);
        for _ in 0..patience {
            let (more, next) = self.context.space(space).scan(cursor, count)?;
            items.extend(more);
            cursor = next;
            if cursor == 0 {
                let window = board.close(window);
                check_items(&self.context, &self.catalogs, space, &window, items, ("scanning", false));
                return Ok(());
            }
        }
        Ok(())
    }

    fn semi_sorted_space(&mut self) -> u8 {
        loop {
            let space = self.any_space();
            if is_semi_sorted(space) {
                return space;
            }
        }
    }

    fn scan_prefix(&mut self) -> alluvium::Result<()> {
        let (space, prefix) = (self.semi_sorted_space(), self.rng.random_range(0..PREFIXES));
        let board = &self.context.board;
        let of_prefix = all_keys(space, board.writers).filter(|key| key.prefix(board.writers) == prefix);
        let window = board.open(of_prefix);
        let mut items = Vec::new();
        for item in self.context.space(space).scan_prefix(prefix_name(prefix))? {
            items.push(item?);
        }
        check_items(
            &self.context,
            &self.catalogs,
            space,
            &board.close(window),
            items,
            ("scanning a prefix", true),
        );
        Ok(())
    }

    fn list_prefixes(&mut self) -> alluvium::Result<()> {
        let space = self.semi_sorted_space();
        let prefixes: Vec<Vec<u8>> = self.context.space(space).prefixes()?.collect::<Result<_, _>>()?;
        let known = |prefix: &Vec<u8>| (0..PREFIXES).any(|known| prefix_name(known).as_bytes() == prefix);
        if !prefixes.is_sorted_by(|one, next| one < next) || !prefixes.iter().all(known) {
            self.context.fail(&format!("prefixes: {prefixes:?}"));
        }
        Ok(())
    }
}

/// Checks the items that an iteration over the keys of a window returned: all that were present, nothing else, and each
/// once if `once`.
pub fn check_items(
    context: &Context,
    catalogs: &[Catalog],
    space: u8,
    window: &ClosedWindow,
    items: Vec<alluvium::KeyValue>,
    (what, once): (&str, bool),
) {
    let catalog = &catalogs[usize::from(space)];
    let mut found: HashMap<Key, Seen> = HashMap::new();
    for (bytes, value) in items {
        let Some(key) = catalog.find(&bytes) else {
            if space == SHARED {
                continue;
            }
            context.fail(&format!("{what}: a foreign key {:?}", String::from_utf8_lossy(&bytes)));
        };
        let seen =
            Seen::of(key, Some(&value)).unwrap_or_else(|reason| context.fail(&format!("{what}: {reason}")));
        if found.insert(key, seen).is_some() && once {
            context.fail(&format!("{what}: {key} came twice"));
        }
    }
    for (number, key) in context.board.keys(window).enumerate() {
        let seen = found.remove(&key).unwrap_or(Seen::Absent);
        let fits = context.board.check(window, number, &seen);
        fits.unwrap_or_else(|reason| context.fail(&format!("{what}: {reason}")));
    }
    if let Some((key, seen)) = found.into_iter().next() {
        context.fail(&format!("{what}: {key} with {seen:?} was not asked for"));
    }
}

/// Reads a whole keyspace by iteration.
pub fn iterate_all(keyspace: &Keyspace) -> alluvium::Result<Vec<alluvium::KeyValue>> {
    keyspace.iter().collect()
}
