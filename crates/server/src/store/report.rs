//! [`Report`]: what a store says about itself.

use std::error::Error;
use std::fmt;

/// Names and values, in an order for people.
pub type Report = Vec<(String, ReportValue)>;

/// A value of a [`Report`].
#[derive(Clone, Debug, PartialEq)]
pub enum ReportValue {
    /// A whole number.
    Integer(u64),
    /// Any number.
    Number(f64),
    /// One line.
    Text(String),
    /// Lines.
    List(Vec<String>),
    /// There is none.
    Nothing,
}

impl From<u64> for ReportValue {
    fn from(number: u64) -> Self {
        Self::Integer(number)
    }
}

impl From<usize> for ReportValue {
    fn from(number: usize) -> Self {
        Self::Integer(number as u64)
    }
}

impl From<f64> for ReportValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<String> for ReportValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for ReportValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<Vec<String>> for ReportValue {
    fn from(lines: Vec<String>) -> Self {
        Self::List(lines)
    }
}

impl<Value: Into<Self>> From<Option<Value>> for ReportValue {
    fn from(value: Option<Value>) -> Self {
        value.map_or(Self::Nothing, Into::into)
    }
}

/// The store keeps nothing on a device, so it can neither be saved nor verified, and has no plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NothingStored;

impl fmt::Display for NothingStored {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("this server is a cache: it keeps nothing on disk")
    }
}

impl Error for NothingStored {}
