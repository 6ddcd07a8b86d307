//! Passwords in the classic protocol: the value of the first `set`, `user password`.

use alluvium_protocol::memcached::{Answer, Error, Request, StoreMode};

use super::Context;
use crate::acl::DEFAULT;

/// Takes the password from a `set` and refuses everything else. Requests of memcached name no permissions, so the user
/// must be one that may do everything. Another name than that of a user stands for `default`.
pub(super) fn authenticate(request: &Request<'_>, context: &mut Context<'_>) {
    let value = match request {
        Request::Store { store, .. } if store.mode == StoreMode::Set && store.compare.is_none() => {
            store.value
        }
        _ => return context.reply.error(Error::Unauthenticated),
    };
    let users = &context.shared.users;
    let space = value.iter().position(|byte| *byte == b' ');
    let user = space.map(|space| (&value[..space], &value[space + 1..])).and_then(|(name, password)| {
        let name = if users.get(name).is_some() { name } else { DEFAULT };
        users.authenticate(name, password)
    });
    match user.filter(|user| user.is_unrestricted()) {
        Some(user) => {
            context.session.authenticate(user);
            context.reply.answer(Answer::Stored);
        }
        None => context.reply.error(Error::AuthenticationFailure),
    }
}
