//! The class `ItemIterator`: items, keys, values or prefixes, fetched some hundreds at a time.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use alluvium::{Iter, KeyValue, Prefixes, Result};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};

use crate::failure::OrRaise;
use crate::fork::Living;

/// Number of items that are fetched first, and at most, while other threads may run.
const FETCHED_MIN: usize = 8;
const FETCHED_MAX: usize = 1024;
/// Approximate maximum bytes of items that were fetched.
const FETCHED_BYTES_MAX: usize = 1 << 20;

/// What an iterator returns of each item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Its key.
    Keys,
    /// Its value.
    Values,
    /// Both, as a pair.
    Items,
}

enum Source {
    Items(Box<Iter>),
    Prefixes(Box<Prefixes>),
}

impl Source {
    /// A prefix is an item without a value.
    fn next(&mut self) -> Option<Result<KeyValue>> {
        match self {
            Self::Items(items) => items.next(),
            Self::Prefixes(prefixes) => {
                prefixes.next().map(|prefix| prefix.map(|prefix| (prefix, Vec::new())))
            }
        }
    }
}

struct State {
    /// `None` at the end.
    source: Option<Source>,
    fetched: VecDeque<Result<KeyValue>>,
    fetched_max: usize,
}

impl State {
    fn fetch(&mut self) {
        let Some(source) = &mut self.source else { return };
        let mut bytes = 0;
        while self.fetched.len() < self.fetched_max && bytes < FETCHED_BYTES_MAX {
            let next = source.next();
            bytes += next.iter().flatten().map(|(key, value)| key.len() + value.len()).sum::<usize>();
            let is_last = !matches!(next, Some(Ok(_)));
            self.fetched.extend(next);
            if is_last {
                // Frees what the iterator kept.
                self.source = None;
                return;
            }
        }
        self.fetched_max = (2 * self.fetched_max).min(FETCHED_MAX);
    }
}

/// An iterator over the items of a keyspace. It keeps the tables that it reads until its end, or until it is dropped.
#[pyclass(frozen, module = "alluvium_db")]
pub struct ItemIterator {
    state: Living<Mutex<State>>,
    kind: Kind,
}

impl ItemIterator {
    /// Over items.
    pub fn over(items: Iter, kind: Kind) -> Self {
        Self::of(Source::Items(Box::new(items)), kind)
    }

    /// Over prefixes.
    pub fn over_prefixes(prefixes: Prefixes) -> Self {
        Self::of(Source::Prefixes(Box::new(prefixes)), Kind::Keys)
    }

    fn of(source: Source, kind: Kind) -> Self {
        let state = State { source: Some(source), fetched: VecDeque::new(), fetched_max: FETCHED_MIN };
        Self { state: Living::new(Mutex::new(state)), kind }
    }
}

#[pymethods]
impl ItemIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        let state = self.state.get(py)?;
        // Another thread may hold the lock while it reads: it must not wait for the interpreter's lock meanwhile.
        let ready = state.try_lock().ok().and_then(|mut state| state.fetched.pop_front());
        let next = ready.or_else(|| {
            py.detach(|| {
                let mut state = state.lock().unwrap_or_else(PoisonError::into_inner);
                if state.fetched.is_empty() {
                    state.fetch();
                }
                state.fetched.pop_front()
            })
        });
        let Some(next) = next else { return Ok(None) };
        let (key, value) = next.or_raise(py)?;
        Ok(Some(match self.kind {
            Kind::Keys => PyBytes::new(py, &key).into_any(),
            Kind::Values => PyBytes::new(py, &value).into_any(),
            Kind::Items => PyTuple::new(py, [PyBytes::new(py, &key), PyBytes::new(py, &value)])?.into_any(),
        }))
    }

    fn __reduce_ex__(&self, _protocol: i32) -> PyResult<()> {
        Err(crate::failure::pickled("an iterator"))
    }
}

impl std::fmt::Debug for ItemIterator {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("ItemIterator").field("kind", &self.kind).finish_non_exhaustive()
    }
}
