//! Alluvium: a key-value store for very many small items on very little memory.
#![forbid(unsafe_code)]

mod item;
#[allow(dead_code, unused_imports)]
mod table;
