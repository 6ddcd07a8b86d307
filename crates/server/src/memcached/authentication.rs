//! Passwords in the classic protocol: the value of the first `set`, `user password`.

use alluvium_protocol::memcached::{Answer, Error, Request, StoreMode};

use super::Context;

/// Takes the password from a `set` and refuses everything else. There is one password, for any user name.
pub(super) fn authenticate(request: &Request<'_>, context: &mut Context<'_>) {
    let value = match request {
        Request::Store { store, .. } if store.mode == StoreMode::Set && store.compare.is_none() => {
            store.value
        }
        _ => return context.reply.error(Error::Unauthenticated),
    };
    let guess = value.iter().position(|byte| *byte == b' ').map(|space| &value[space + 1..]);
    let password = context.shared.options.password.as_ref();
    if guess.zip(password).is_some_and(|(guess, password)| password.is(guess)) {
        context.session.is_authenticated = true;
        context.reply.answer(Answer::Stored);
    } else {
        context.reply.error(Error::AuthenticationFailure);
    }
}
