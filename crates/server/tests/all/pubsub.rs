//! Channels, patterns, and the clients that listen to them.

use std::thread;

use crate::common::{Client, Running, bulk, error, ok};
use alluvium_protocol::Value;
use alluvium_server::ServerOptions;

fn array(parts: &[&str], count: i64) -> Value {
    let mut members: Vec<Value> = parts.iter().map(|part| bulk(part)).collect();
    members.push(Value::Integer(count));
    Value::Array(members)
}

fn message(parts: &[&str]) -> Value {
    Value::Array(parts.iter().map(|part| bulk(part)).collect())
}

fn server() -> Running {
    Running::start(ServerOptions { workers: 3.try_into().unwrap(), ..Default::default() })
}

fn next(client: &mut Client) -> Value {
    client.reply().expect("a message")
}

#[test]
fn messages_reach_the_subscribers_of_channels_and_patterns() {
    let server = server();
    let (mut one, mut two, mut publisher) = (server.client(), server.client(), server.client());
    assert_eq!(publisher.ask(&["PUBLISH", "news", "nobody"]), Value::Integer(0));
    assert_eq!(one.ask(&["SUBSCRIBE", "news", "weather"]), array(&["subscribe", "news"], 1));
    assert_eq!(next(&mut one), array(&["subscribe", "weather"], 2));
    assert_eq!(one.ask(&["SUBSCRIBE", "news"]), array(&["subscribe", "news"], 2));
    assert_eq!(two.ask(&["PSUBSCRIBE", "n*"]), array(&["psubscribe", "n*"], 1));
    assert_eq!(two.ask(&["SUBSCRIBE", "news"]), array(&["subscribe", "news"], 2));
    assert_eq!(publisher.ask(&["PUBLISH", "news", "hello"]), Value::Integer(3));
    assert_eq!(next(&mut one), message(&["message", "news", "hello"]));
    assert_eq!(next(&mut two), message(&["message", "news", "hello"]));
    assert_eq!(next(&mut two), message(&["pmessage", "n*", "news", "hello"]));
    assert_eq!(publisher.ask(&["PUBSUB", "CHANNELS"]), message(&["news", "weather"]));
    assert_eq!(publisher.ask(&["PUBSUB", "CHANNELS", "w*"]), message(&["weather"]));
    assert_eq!(publisher.ask(&["PUBSUB", "NUMPAT"]), Value::Integer(1));
    let counts = Value::Array(vec![bulk("news"), Value::Integer(2), bulk("none"), Value::Integer(0)]);
    assert_eq!(publisher.ask(&["PUBSUB", "NUMSUB", "news", "none"]), counts);
    // What left gets nothing more.
    assert_eq!(two.ask(&["UNSUBSCRIBE"]), array(&["unsubscribe", "news"], 1));
    drop(one);
    while publisher.ask(&["PUBSUB", "CHANNELS"]) != Value::Array(vec![]) {
        thread::yield_now();
    }
    assert_eq!(publisher.ask(&["PUBLISH", "news", "again"]), Value::Integer(1));
    assert_eq!(next(&mut two), message(&["pmessage", "n*", "news", "again"]));
    assert_eq!(two.ask(&["PUNSUBSCRIBE", "n*"]), array(&["punsubscribe", "n*"], 0));
    let nothing = Value::Array(vec![bulk("unsubscribe"), Value::Null, Value::Integer(0)]);
    assert_eq!(two.ask(&["UNSUBSCRIBE"]), nothing);
    assert_eq!(two.ask(&["GET", "a"]), Value::Null);
}

#[test]
fn resp2_subscribers_send_nothing_else() {
    let server = server();
    let mut client = server.client();
    client.ask(&["SUBSCRIBE", "c"]);
    let refusal = "ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed \
                   in this context";
    assert_eq!(client.ask(&["GET", "a"]), error(refusal));
    assert_eq!(client.ask(&["PING"]), message(&["pong", ""]));
    assert_eq!(client.ask(&["PING", "x"]), message(&["pong", "x"]));
    assert_eq!(client.ask(&["RESET"]), Value::Simple(b"RESET".to_vec()));
    assert_eq!(client.ask(&["GET", "a"]), Value::Null);
    assert_eq!(server.client().ask(&["PUBLISH", "c", "x"]), Value::Integer(0));
}

#[test]
fn resp3_subscribers_get_pushes_between_replies() {
    let server = server();
    let mut client = server.client();
    client.ask(&["HELLO", "3"]);
    let subscribed = Value::Push(vec![bulk("subscribe"), bulk("c"), Value::Integer(1)]);
    assert_eq!(client.ask(&["SUBSCRIBE", "c"]), subscribed);
    assert_eq!(client.ask(&["SET", "a", "1"]), ok());
    assert_eq!(client.ask(&["PUBLISH", "c", "self"]), Value::Integer(1));
    assert_eq!(next(&mut client), Value::Push(vec![bulk("message"), bulk("c"), bulk("self")]));
    // A client without replies gets messages, and among these that it has subscribed.
    client.send_request(&["CLIENT", "REPLY", "OFF"]);
    let subscribed = Value::Push(vec![bulk("subscribe"), bulk("d"), Value::Integer(2)]);
    assert_eq!(client.ask(&["SUBSCRIBE", "d"]), subscribed);
    client.send_request(&["PUBLISH", "d", "silent"]);
    assert_eq!(next(&mut client), Value::Push(vec![bulk("message"), bulk("d"), bulk("silent")]));
    assert_eq!(client.ask(&["CLIENT", "REPLY", "ON"]), ok());
    // Within a transaction the message follows the reply of EXEC.
    for words in [&["MULTI"][..], &["PUBLISH", "c", "inside"], &["GET", "a"]] {
        client.ask(words);
    }
    assert_eq!(client.ask(&["EXEC"]), Value::Array(vec![Value::Integer(1), bulk("1")]));
    assert_eq!(next(&mut client), Value::Push(vec![bulk("message"), bulk("c"), bulk("inside")]));
}

#[test]
fn each_subscriber_gets_each_message_once_and_in_order() {
    const MESSAGES: usize = 2_000;
    let server = server();
    let mut subscribers: Vec<Client> = (0..6).map(|_| server.client()).collect();
    for subscriber in &mut subscribers {
        subscriber.ask(&["SUBSCRIBE", "numbers"]);
    }
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut publisher = server.client();
            for number in 0..MESSAGES {
                publisher.send_request(&["PUBLISH", "numbers", &number.to_string()]);
            }
            for _ in 0..MESSAGES {
                assert_eq!(publisher.reply(), Some(Value::Integer(6)));
            }
        });
        for subscriber in &mut subscribers {
            scope.spawn(move || {
                for number in 0..MESSAGES {
                    let expected = message(&["message", "numbers", &number.to_string()]);
                    assert_eq!(subscriber.reply(), Some(expected));
                }
            });
        }
    });
}

/// Two messages for one worker at the same time: the wake-up for the second one must not be discarded with the first.
#[test]
fn no_message_waits_for_a_later_one() {
    const ROUNDS: usize = 2000;
    let server = server();
    let mut listener = server.client();
    listener.ask(&["SUBSCRIBE", "news"]);
    let round = std::sync::Barrier::new(3);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut publisher = server.client();
                for _ in 0..ROUNDS {
                    round.wait();
                    publisher.ask(&["PUBLISH", "news", "hello"]);
                }
            });
        }
        for _ in 0..ROUNDS {
            round.wait();
            assert_eq!(next(&mut listener), message(&["message", "news", "hello"]));
            assert_eq!(next(&mut listener), message(&["message", "news", "hello"]));
        }
    });
}
