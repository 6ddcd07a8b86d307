//! [`Libraries`]: what `FUNCTION LOAD` keeps.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use super::library::{Library, LibraryFunction};
use crate::store::{LibraryChange, Store, StoreError};

/// Maximum number of libraries, of functions of all of them, and of bytes of their sources and of what they say about
/// functions.
const LIBRARIES_MAX: usize = 1_000;
pub(super) const FUNCTIONS_MAX: usize = 10_000;
pub(super) const BYTES_MAX: usize = 64 << 20;

/// The libraries of all workers. A reader takes the set as it is at one moment.
#[derive(Default)]
pub(crate) struct Libraries {
    current: RwLock<Arc<LibrarySet>>,
    /// Held while the set is changed, here and in the store, so that both have the same last change.
    changing: Mutex<()>,
    versions: AtomicU64,
}

/// Libraries, of which no two have a function of the same name.
#[derive(Clone, Default)]
pub(crate) struct LibrarySet {
    libraries: BTreeMap<Box<str>, Arc<Library>>,
    /// By their names in lower case: calls do not distinguish cases, as in Redis.
    functions: BTreeMap<Box<str>, LibraryFunction>,
    bytes: usize,
    /// How often the libraries were changed: interpreters forget old ones then.
    pub(super) generation: u64,
}

/// Why libraries were not changed.
pub(crate) enum Refusal {
    /// A whole error text, with its code.
    Text(String),
    Store(StoreError),
}

impl From<String> for Refusal {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl Libraries {
    pub(crate) fn current(&self) -> Arc<LibrarySet> {
        Arc::clone(&self.current.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// A number for a library that was loaded.
    pub(super) fn next_version(&self) -> u64 {
        self.versions.fetch_add(1, Ordering::Relaxed)
    }

    /// Lets `change` change a copy of the set, and keeps that here and in the store. If it or the store refuses,
    /// nothing has changed.
    pub(crate) fn change<T>(
        &self,
        store: &dyn Store,
        change: impl FnOnce(&mut LibrarySet) -> Result<T, String>,
    ) -> Result<T, Refusal> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let before = self.current();
        let mut after = LibrarySet::clone(&before);
        let result = change(&mut after)?;
        let changes = after.since(&before);
        if !changes.is_empty() {
            store.change_libraries(&changes).map_err(Refusal::Store)?;
            after.generation += 1;
            *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(after);
        }
        Ok(result)
    }

    /// Begins with libraries that the store has, which are kept whatever their number.
    pub(super) fn begin_with(&self, libraries: Vec<Library>) {
        let mut set = LibrarySet::default();
        libraries.into_iter().for_each(|library| set.link(Arc::new(library)));
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(set);
    }
}

impl LibrarySet {
    pub(crate) fn all(&self) -> impl ExactSizeIterator<Item = &Arc<Library>> {
        self.libraries.values()
    }

    pub(crate) fn get(&self, name: &[u8]) -> Option<&Arc<Library>> {
        self.libraries.get(std::str::from_utf8(name).ok()?)
    }

    /// The function of this name, in any case.
    pub(crate) fn function(&self, name: &[u8]) -> Option<&LibraryFunction> {
        let name = std::str::from_utf8(name).ok()?.to_ascii_lowercase();
        self.functions.get(&name[..])
    }

    /// Number of functions.
    pub(crate) fn functions_len(&self) -> usize {
        self.functions.len()
    }

    /// Bytes of the sources, and of what the libraries say about their functions.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The library that was not loaded when the server started, if there is one.
    pub(crate) fn failed(&self) -> Option<&Arc<Library>> {
        self.all().find(|library| library.failure.is_some())
    }

    /// Adds a library, in place of the one that has its name if `replaces`.
    pub(crate) fn insert(&mut self, library: Library, replaces: bool) -> Result<(), String> {
        if !replaces && self.libraries.contains_key(&library.name) {
            return Err(format!("ERR Library '{}' already exists", library.name));
        }
        self.remove(library.name.as_bytes());
        if let Some(name) = library.functions.keys().find(|name| self.function(name.as_bytes()).is_some()) {
            return Err(format!("ERR Function {name} already exists"));
        }
        let functions = self.functions.len() + library.functions.len();
        let bytes = self.bytes + library.bytes();
        if self.libraries.len() >= LIBRARIES_MAX || functions > FUNCTIONS_MAX || bytes > BYTES_MAX {
            return Err(format!(
                "ERR a server has at most {LIBRARIES_MAX} libraries, {FUNCTIONS_MAX} functions and {BYTES_MAX} bytes \
                 of libraries"
            ));
        }
        self.link(Arc::new(library));
        Ok(())
    }

    /// Adds a library whose name no other has. Of functions of the same name, the one that is there stays.
    fn link(&mut self, library: Arc<Library>) {
        self.bytes += library.bytes();
        for (name, description) in &library.functions {
            let (library, flags) = (Arc::clone(&library), description.flags);
            let function = LibraryFunction { library, name: name.clone(), flags };
            self.functions.entry(name.to_ascii_lowercase().into()).or_insert(function);
        }
        self.libraries.insert(library.name.clone(), library);
    }

    /// Removes a library; returns whether there was one of this name.
    pub(crate) fn remove(&mut self, name: &[u8]) -> bool {
        let Some(library) = self.get(name).cloned() else { return false };
        self.libraries.remove(&library.name);
        self.functions.retain(|_, function| !Arc::ptr_eq(&function.library, &library));
        self.bytes -= library.bytes();
        true
    }

    pub(crate) fn clear(&mut self) {
        *self = Self { generation: self.generation, ..Self::default() };
    }

    /// What has changed.
    fn since<'a>(&'a self, before: &'a Self) -> Vec<LibraryChange<'a>> {
        let removed = before.libraries.keys().filter(|name| !self.libraries.contains_key(*name));
        let removed = removed.map(|name| LibraryChange { name: name.as_bytes(), source: None });
        let inserted = self.libraries.values().filter(|library| {
            before.libraries.get(&library.name).is_none_or(|earlier| earlier.version != library.version)
        });
        let inserted = inserted
            .map(|library| LibraryChange { name: library.name.as_bytes(), source: Some(&library.source) });
        removed.chain(inserted).collect()
    }

    pub(super) fn has_version(&self, library: &str, version: u64) -> bool {
        self.libraries.get(library).is_some_and(|library| library.version == version)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scripting::library::Description;

    fn library(libraries: &Libraries, name: &str, functions: &[&str], bytes: usize) -> Library {
        Library {
            name: name.into(),
            source: vec![b' '; bytes].into(),
            functions: functions.iter().map(|name| ((*name).into(), Description::default())).collect(),
            failure: None,
            version: libraries.next_version(),
        }
    }

    fn text<T>(result: Result<T, Refusal>) -> String {
        match result {
            Ok(_) => "OK".to_owned(),
            Err(Refusal::Text(text)) => text,
            Err(Refusal::Store(error)) => error.to_string(),
        }
    }

    #[test]
    fn names_are_unique() {
        let store = crate::CacheStore::new(crate::CacheSettings::new(64 << 20), 1).unwrap();
        let libraries = Libraries::default();
        let add = |name: &str, functions: &[&str], replaces: bool| {
            let library = library(&libraries, name, functions, 1);
            text(libraries.change(&store, |set| set.insert(library, replaces)))
        };
        assert_eq!(add("a", &["f", "g"], false), "OK");
        assert_eq!(add("a", &["h"], false), "ERR Library 'a' already exists");
        assert_eq!(add("b", &["h", "G"], false), "ERR Function G already exists");
        assert_eq!(add("A", &["h"], false), "OK");
        let generation = libraries.current().generation;
        assert_eq!(add("a", &["f", "h"], true), "ERR Function h already exists");
        assert_eq!(libraries.current().generation, generation);
        let set = libraries.current();
        assert_eq!((set.all().len(), set.functions_len()), (2, 3));
        assert_eq!(&*set.function(b"F").unwrap().name, "f");
        assert_eq!(add("a", &["f"], true), "OK");
        assert!(libraries.current().function(b"g").is_none());
        assert_eq!(text(libraries.change(&store, |set| Ok(set.remove(b"a")))), "OK");
        assert!(libraries.current().function(b"f").is_none());
        assert!(libraries.current().get(b"A").is_some());
        let _ = libraries.change(&store, |set| {
            set.clear();
            Ok(())
        });
        let set = libraries.current();
        assert_eq!((set.all().len(), set.functions_len(), set.bytes()), (0, 0, 0));
    }

    #[test]
    fn libraries_are_bounded() {
        let store = crate::CacheStore::new(crate::CacheSettings::new(64 << 20), 1).unwrap();
        let libraries = Libraries::default();
        let add = |name: &str, functions: &[&str], bytes: usize| {
            let library = library(&libraries, name, functions, bytes);
            text(libraries.change(&store, |set| set.insert(library, true)))
        };
        assert!(add("a", &["f"], BYTES_MAX).starts_with("ERR a server has at most"));
        let many: Vec<String> = (0..=FUNCTIONS_MAX).map(|number| format!("f{number}")).collect();
        let many: Vec<&str> = many.iter().map(String::as_str).collect();
        assert!(add("a", &many, 1).starts_with("ERR a server has at most"));
        assert_eq!(add("a", &many[1..], 1), "OK");
        assert!(add("b", &["one_more"], 1).starts_with("ERR a server has at most"));
        assert_eq!(add("a", &["f"], 1), "OK");
        for number in 1..LIBRARIES_MAX {
            assert_eq!(add(&format!("a{number}"), &[], 1), "OK");
        }
        assert!(add("one_more", &[], 1).starts_with("ERR a server has at most"));
        assert_eq!(add("a5", &[], 2), "OK");
    }
}
