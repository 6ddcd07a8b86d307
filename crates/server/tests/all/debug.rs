//! `DEBUG SLEEP`, where it is allowed.

use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use crate::common::{Running, ok};
use alluvium_protocol::Value;
use alluvium_server::ServerOptions;

#[test]
fn a_client_sleeps_and_the_others_of_its_worker_are_served() {
    let workers = NonZeroUsize::MIN;
    let server = Running::start(ServerOptions { debug_commands: true, workers, ..Default::default() });
    let (mut sleeper, mut other) = (server.client(), server.client());
    let begun = Instant::now();
    sleeper.send_request(&["DEBUG", "SLEEP", "0.5"]);
    sleeper.send_request(&["PING"]);
    assert_eq!(other.ask(&["SET", "key", "value"]), ok());
    assert!(begun.elapsed() < Duration::from_millis(500));
    assert_eq!(sleeper.reply(), Some(ok()));
    assert!(begun.elapsed() >= Duration::from_millis(500));
    assert_eq!(sleeper.reply(), Some(Value::Simple(b"PONG".to_vec())));
    for words in [&["DEBUG", "SLEEP", "long"][..], &["DEBUG", "SEGFAULT"]] {
        assert!(matches!(other.ask(words), Value::Error(_)), "{words:?}");
    }
}
