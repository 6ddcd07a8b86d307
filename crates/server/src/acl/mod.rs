//! Users, and what each may do: access control lists.
//!
//! A user has passwords and permissions: commands, with patterns of the keys and channels that they may name. Clients
//! share their user, so a change applies to their next commands. The user `default`, who everyone is before `AUTH`, may
//! do everything unless told otherwise, and then nothing is checked.

mod catalog;
mod category;
mod channel_patterns;
mod command_rules;
mod denial;
mod file;
mod key_patterns;
mod log;
mod permissions;
mod request;
mod rule_error;
mod rules;
mod user;
mod users;

pub(crate) use catalog::{Catalog, Entry};
pub(crate) use category::Category;
pub(crate) use denial::Denial;
pub(crate) use key_patterns::KeyAccess;
pub(crate) use log::{Log, Place, Reason};
pub(crate) use permissions::Permissions;
pub(crate) use request::Request;
pub(crate) use user::User;
pub(crate) use users::{Change, DEFAULT, Users, line};

/// Whether a text cannot be a word of a rule or a name of a user.
fn has_spaces(text: &[u8]) -> bool {
    text.iter().any(|byte| byte.is_ascii_whitespace() || matches!(byte, 0 | 0x0b))
}
