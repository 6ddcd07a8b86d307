//! What is answered at which path.

use super::describe::describe;
use super::http_request::Status;
use super::http_response::Response;
use super::{health, open_metrics, stats_json};
use crate::shared::Shared;
use crate::store::StoreHealth;

/// The answer to a request for `path`.
pub(super) fn answer(path: &str, shared: &Shared) -> Response {
    match path {
        "/" => Response {
            status: Status::Ok,
            content_type: "text/html; charset=utf-8",
            body: include_str!("page.html").to_owned(),
        },
        "/metrics" => Response {
            status: Status::Ok,
            content_type: open_metrics::CONTENT_TYPE,
            body: open_metrics::text(&describe(shared, false)),
        },
        "/stats.json" => Response {
            status: Status::Ok,
            content_type: stats_json::CONTENT_TYPE,
            body: stats_json::text(&describe(shared, true), &health::describe(&shared.store.health())),
        },
        "/health" => {
            let health = shared.store.health();
            let status = match health {
                StoreHealth::Failed { .. } => Status::Unavailable,
                _ => Status::Ok,
            };
            let body = format!("{}\n", health::describe(&health));
            Response { status, content_type: stats_json::CONTENT_TYPE, body }
        }
        _ => Response::of_status(Status::NotFound),
    }
}
