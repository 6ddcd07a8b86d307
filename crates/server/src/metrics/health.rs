//! The health of the store, for programs that watch the server.

use serde_json::{Value, json};

use crate::store::StoreHealth;

/// All names of [`state`].
pub(super) const STATES: [&str; 4] = ["healthy", "retrying", "read_only", "failed"];

/// The name of a state.
pub(super) fn state(health: &StoreHealth) -> &'static str {
    match health {
        StoreHealth::Healthy => STATES[0],
        StoreHealth::Retrying { .. } => STATES[1],
        StoreHealth::ReadOnly => STATES[2],
        StoreHealth::Failed { .. } => STATES[3],
    }
}

/// The state, its reason if there is one, and whether the server may leave it by itself.
pub(super) fn describe(health: &StoreHealth) -> Value {
    let mut object = json!({ "status": state(health) });
    match health {
        StoreHealth::Healthy | StoreHealth::ReadOnly => {}
        StoreHealth::Retrying { reason } => object["reason"] = reason.as_str().into(),
        StoreHealth::Failed { reason, resumable } => {
            object["reason"] = reason.as_str().into();
            object["resumable"] = (*resumable).into();
        }
    }
    object
}
