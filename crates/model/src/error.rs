//! [`ModelError`]: why a model refuses its parameters.

use std::fmt;

use crate::PlanError;

/// Why a model has no answer.
#[derive(Clone, Debug, PartialEq)]
pub enum ModelError {
    /// A parameter is outside the range in which the model is valid.
    OutOfRange {
        /// The parameter, as the command line writes it.
        name: &'static str,
        /// Its value.
        value: f64,
        /// The range it must be in.
        expected: String,
    },
    /// The plan itself is not legal.
    IllegalPlan(PlanError),
}

impl fmt::Display for ModelError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::OutOfRange { name, value, expected } => write!(out, "{name} is {value}: {expected}"),
            Self::IllegalPlan(error) => error.fmt(out),
        }
    }
}

impl std::error::Error for ModelError {}

impl From<PlanError> for ModelError {
    fn from(error: PlanError) -> Self {
        Self::IllegalPlan(error)
    }
}

/// Refuses a value outside `low..=high`, and NaN.
pub fn within(name: &'static str, value: f64, low: f64, high: f64) -> Result<f64, ModelError> {
    if value >= low && value <= high {
        return Ok(value);
    }
    Err(ModelError::OutOfRange { name, value, expected: format!("it lies between {low} and {high}") })
}

/// Refuses a value that is not a finite number above 0.
pub fn positive(name: &'static str, value: f64) -> Result<f64, ModelError> {
    if value > 0.0 && value.is_finite() {
        return Ok(value);
    }
    Err(ModelError::OutOfRange { name, value, expected: "it is a finite number above 0".to_owned() })
}
