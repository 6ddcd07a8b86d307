//! [`Extras`]: what is stored with a value, as Python gives it.

use std::time::{SystemTime, UNIX_EPOCH};

use alluvium::Metadata;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure;
use crate::settings::duration;

/// A value, its flags, and its expiry or the time that is left, in seconds.
pub type WithMetadata<'py> = (Bound<'py, PyBytes>, u32, Option<f64>);

/// The arguments `ttl`, `expires_at` and `flags`.
#[derive(Debug, Clone, Copy)]
pub struct Extras {
    /// Seconds from now on.
    pub ttl: Option<f64>,
    /// Seconds since 1970.
    pub expires_at: Option<f64>,
    /// Opaque to the store.
    pub flags: u32,
}

impl Extras {
    /// What the engine stores.
    pub fn metadata(self, py: Python<'_>) -> PyResult<Metadata> {
        let seconds = match (self.ttl, self.expires_at) {
            (Some(_), Some(_)) => return Err(failure::settings(py, "give ttl or expires_at, not both")),
            (Some(ttl), None) => {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                Some(now.saturating_add(duration(py, ttl)?))
            }
            (None, Some(at)) => Some(duration(py, at)?),
            (None, None) => None,
        };
        let expires_at_ms = seconds.map(|at| u64::try_from(at.as_millis()).unwrap_or(u64::MAX));
        Ok(Metadata { flags: self.flags, expires_at_ms })
    }
}

/// The expiry of an item in seconds since 1970.
pub fn expires_at(metadata: Metadata) -> Option<f64> {
    metadata.expires_at_ms.map(|milliseconds| milliseconds as f64 / 1000.0)
}
