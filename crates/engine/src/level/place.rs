//! [`Place`]: a part of a level that is merged together.

use alluvium_base::HashRange;

use super::run::MergeUnit;

/// A unit or container: a part of a level that is merged together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Place {
    /// A unit of the youngest level.
    Unit(MergeUnit),
    /// The container over this range in the level of this number.
    Container { level: usize, range: HashRange },
}
