//! Entropy-coded trie.
