//! Alluvium: a key-value store for very many small items on very little memory.
#![forbid(unsafe_code)]

mod item;
