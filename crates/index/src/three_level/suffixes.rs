//! [`Suffixes`]: the third level in one of its forms.

use alluvium_base::Corruption;

use super::config::SuffixCode;
use super::groups::Groups;
use super::partial::PartialSuffixes;
use super::suffix_trie::SuffixTries;
use crate::elias_fano::wire::{WireReader, WireWriter};

/// Separates the suffixes of adjacent pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Suffixes {
    Partial(PartialSuffixes),
    Trie(SuffixTries),
}

impl Suffixes {
    /// The form.
    pub(super) fn code(&self) -> SuffixCode {
        match self {
            Self::Partial(_) => SuffixCode::Partial,
            Self::Trie(_) => SuffixCode::Trie,
        }
    }

    /// The page of `suffix` in the group `cell`, which begins in page `first` and ends in page `last`.
    #[inline(always)]
    pub(super) fn page(&self, groups: &Groups, cell: u64, (first, last): (u64, u64), suffix: u64) -> u64 {
        let passed = match self {
            Self::Partial(suffixes) => suffixes.count_at_most(first, last, suffix),
            Self::Trie(tries) => tries.count_at_most(groups, cell, suffix),
        };
        (first + passed).min(last)
    }

    /// Bytes of memory that the level owns.
    pub(super) fn memory_bytes(&self) -> u64 {
        match self {
            Self::Partial(suffixes) => suffixes.memory_bytes(),
            Self::Trie(tries) => tries.memory_bytes(),
        }
    }

    /// Appends the form, 0 or 1, and its fields.
    pub(super) fn write(&self, writer: &mut WireWriter) {
        match self {
            Self::Partial(suffixes) => {
                writer.word(0);
                suffixes.write(writer);
            }
            Self::Trie(tries) => {
                writer.word(1);
                tries.write(writer);
            }
        }
    }

    /// Reads the third level for `groups`.
    pub(super) fn read(groups: &Groups, reader: &mut WireReader<'_>) -> Result<Self, Corruption> {
        Ok(match reader.word_up_to(1, "a form of the third level")? {
            0 => Self::Partial(PartialSuffixes::read(groups.pages().saturating_sub(1), reader)?),
            _ => Self::Trie(SuffixTries::read(groups, reader)?),
        })
    }
}
