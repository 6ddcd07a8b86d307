//! Parameters that minimize a design's cost: [`optimize_level_sizes`], by a descent that needs no derivatives.

mod descent;
mod level_sizes;

pub use level_sizes::{LevelSizes, even_sizes, optimize_level_sizes};
