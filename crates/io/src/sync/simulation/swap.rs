//! Cells whose content is replaced as a whole: those of `arc_swap`, with yield points.

use std::sync::Arc;

use arc_swap::Guard;

use super::task::yield_point;

/// See [`arc_swap::ArcSwap`].
#[derive(Debug, Default)]
pub struct ArcSwap<T>(arc_swap::ArcSwap<T>);

/// See [`arc_swap::ArcSwapOption`].
#[derive(Debug, Default)]
pub struct ArcSwapOption<T>(arc_swap::ArcSwapOption<T>);

impl<T> ArcSwap<T> {
    /// A cell that holds `value`.
    pub fn new(value: Arc<T>) -> Self {
        Self(arc_swap::ArcSwap::new(value))
    }

    /// A cell that holds `value`.
    pub fn from_pointee(value: T) -> Self {
        Self(arc_swap::ArcSwap::from_pointee(value))
    }

    /// The content, borrowed.
    pub fn load(&self) -> Guard<Arc<T>> {
        yield_point();
        self.0.load()
    }

    /// The content.
    pub fn load_full(&self) -> Arc<T> {
        yield_point();
        self.0.load_full()
    }

    /// Replaces the content.
    pub fn store(&self, value: Arc<T>) {
        yield_point();
        self.0.store(value);
    }

    /// Replaces the content and returns the old one.
    pub fn swap(&self, value: Arc<T>) -> Arc<T> {
        yield_point();
        self.0.swap(value)
    }
}

impl<T> ArcSwapOption<T> {
    /// A cell that holds `value`.
    pub fn new(value: Option<Arc<T>>) -> Self {
        Self(arc_swap::ArcSwapOption::new(value))
    }

    /// A cell that holds nothing.
    pub fn empty() -> Self {
        Self(arc_swap::ArcSwapOption::empty())
    }

    /// The content, borrowed.
    pub fn load(&self) -> Guard<Option<Arc<T>>> {
        yield_point();
        self.0.load()
    }

    /// The content.
    pub fn load_full(&self) -> Option<Arc<T>> {
        yield_point();
        self.0.load_full()
    }

    /// Replaces the content.
    pub fn store(&self, value: Option<Arc<T>>) {
        yield_point();
        self.0.store(value);
    }

    /// Replaces the content and returns the old one.
    pub fn swap(&self, value: Option<Arc<T>>) -> Option<Arc<T>> {
        yield_point();
        self.0.swap(value)
    }
}
