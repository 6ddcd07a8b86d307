//! Parameters that make a design cheapest: [`optimize_level_sizes`], over a descent that needs no derivatives.

mod descent;
mod level_sizes;

pub use level_sizes::{LevelSizes, even_sizes, optimize_level_sizes};
