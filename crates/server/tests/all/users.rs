//! Users and what they may do: on their own commands, within transactions and scripts, and with memcached.

use crate::common::{Client, Running, bulk, error, ok};
use alluvium_protocol::Value;
use alluvium_server::{Password, ServerOptions};

/// A client of `default`, after these calls of `ACL SETUSER`.
fn admin(server: &Running, users: &[&str]) -> Client {
    let mut client = server.client();
    for user in users {
        let words: Vec<&str> = ["ACL", "SETUSER"].into_iter().chain(user.split(' ')).collect();
        assert_eq!(client.ask(&words), ok(), "{user}");
    }
    client
}

fn client_of(server: &Running, user: &str, password: &str) -> Client {
    let mut client = server.client();
    assert_eq!(client.ask(&["AUTH", user, password]), ok());
    client
}

fn refused(command: &str) -> Value {
    error(&format!("NOPERM this user has no permissions to run the '{command}' command"))
}

fn keys_refused() -> Value {
    error("NOPERM this user has no permissions to access one of the keys used as arguments")
}

fn channels_refused() -> Value {
    error("NOPERM this user has no permissions to access one of the channels used as arguments")
}

#[test]
fn users_do_what_their_rules_allow() {
    let server = Running::start(Default::default());
    let _admin = admin(&server, &["reader on >secret +@read +config|get %R~a:* ~b:* -bitcount"]);
    let mut reader = client_of(&server, "reader", "secret");
    assert_eq!(reader.ask(&["GET", "a:1"]), Value::Null);
    assert_eq!(reader.ask(&["MGET", "a:1", "b:1"]), Value::Array(vec![Value::Null, Value::Null]));
    assert_eq!(reader.ask(&["MGET", "a:1", "c:1"]), keys_refused());
    assert_eq!(reader.ask(&["GET", "c:1"]), keys_refused());
    assert_eq!(reader.ask(&["SET", "b:1", "v"]), refused("set"));
    assert_eq!(reader.ask(&["BITCOUNT", "b:1"]), refused("bitcount"));
    assert_eq!(reader.ask(&["ACL", "WHOAMI"]), refused("acl|whoami"));
    assert!(matches!(reader.ask(&["CONFIG", "GET", "port"]), Value::Array(_)));
    assert_eq!(reader.ask(&["CONFIG", "SET", "port", "1"]), refused("config|set"));
    assert_eq!(reader.ask(&["CONFIG", "HELP"]), refused("config|help"));
    // A pipeline of gets looks none of them up.
    reader.send(b"*2\r\n$3\r\nGET\r\n$3\r\nb:1\r\n*2\r\n$3\r\nGET\r\n$3\r\nc:1\r\n");
    assert_eq!((reader.reply(), reader.reply()), (Some(Value::Null), Some(keys_refused())));
}

#[test]
fn a_change_applies_to_the_next_commands() {
    let server = Running::start(Default::default());
    let mut admin = admin(&server, &["u on nopass +get +set ~*"]);
    let mut client = client_of(&server, "u", "any");
    assert_eq!(client.ask(&["SET", "k", "v"]), ok());
    assert_eq!(admin.ask(&["ACL", "SETUSER", "u", "-set"]), ok());
    assert_eq!(client.ask(&["SET", "k", "w"]), refused("set"));
    assert_eq!(client.ask(&["GET", "k"]), bulk("v"));
    assert_eq!(admin.ask(&["ACL", "SETUSER", "default", "-get"]), ok());
    assert_eq!(admin.ask(&["GET", "k"]), refused("get"));
    // One wrong rule, and nothing changes.
    let wrong = admin.ask(&["ACL", "SETUSER", "u", "+set", "+nothing"]);
    assert_eq!(
        wrong,
        error("ERR Error in ACL SETUSER modifier '+nothing': Unknown command or category name in ACL")
    );
    assert_eq!(client.ask(&["SET", "k", "w"]), refused("set"));
}

#[test]
fn transactions_and_scripts_are_checked() {
    let server = Running::start(Default::default());
    let mut admin = admin(&server, &["u on nopass +@transaction +eval +incr ~n*"]);
    let mut client = client_of(&server, "u", "");
    client.ask(&["MULTI"]);
    assert_eq!(client.ask(&["GET", "n"]), refused("get"));
    assert_eq!(client.ask(&["EXEC"]), error("EXECABORT Transaction discarded because of previous errors."));
    client.ask(&["MULTI"]);
    client.ask(&["INCR", "n"]);
    client.ask(&["INCR", "n"]);
    assert_eq!(admin.ask(&["ACL", "SETUSER", "u", "-incr"]), ok());
    let changed = error(
        "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This command \
         is no longer allowed for the following reason: no permission to execute the command or subcommand",
    );
    assert_eq!(client.ask(&["EXEC"]), Value::Array(vec![changed.clone(), changed]));
    assert_eq!(admin.ask(&["EXISTS", "n"]), Value::Integer(0));
    let script = "return redis.pcall('incr', KEYS[1])['err']";
    assert_eq!(
        client.ask(&["EVAL", script, "1", "n"]),
        bulk("ERR The user executing the script can't run this command or subcommand")
    );
    assert_eq!(client.ask(&["EVAL", "return 1", "1", "other"]), keys_refused());
    let log = format!("{:?}", admin.ask(&["ACL", "LOG"]));
    for part in ["lua", "multi", "toplevel"] {
        let quoted = format!("{:?}", part.as_bytes().to_vec());
        assert!(log.contains(&quoted[1..quoted.len() - 1]), "{part}: {log}");
    }
}

#[test]
fn channels_are_checked_and_lost_ones_end_the_connection() {
    let server = Running::start(Default::default());
    let mut admin = admin(&server, &["u on nopass +@pubsub &news:* &all*"]);
    let mut client = client_of(&server, "u", "");
    assert_eq!(client.ask(&["PUBLISH", "other", "m"]), channels_refused());
    assert_eq!(client.ask(&["PUBLISH", "news:1", "m"]), Value::Integer(0));
    assert_eq!(client.ask(&["PSUBSCRIBE", "news:1*"]), channels_refused());
    assert!(matches!(client.ask(&["PSUBSCRIBE", "all*"]), Value::Array(_)));
    assert_eq!(admin.ask(&["ACL", "SETUSER", "u", "&more"]), ok());
    assert!(matches!(client.ask(&["SUBSCRIBE", "more"]), Value::Array(_)));
    assert_eq!(admin.ask(&["ACL", "SETUSER", "u", "resetchannels", "&news:*"]), ok());
    assert_eq!(client.reply(), None);
}

#[test]
fn clients_of_a_removed_user_are_disconnected() {
    let server = Running::start(Default::default());
    let mut admin = admin(&server, &["u on nopass +@all ~*"]);
    let mut client = client_of(&server, "u", "");
    let list = client.ask(&["CLIENT", "LIST"]);
    let Value::Bulk(list) = list else { panic!("no list: {list:?}") };
    assert!(String::from_utf8_lossy(&list).contains(" user=u "));
    assert_eq!(admin.ask(&["ACL", "DELUSER", "u", "nobody"]), Value::Integer(1));
    assert_eq!(client.reply(), None);
    assert_eq!(admin.ask(&["ACL", "USERS"]), Value::Array(vec![bulk("default")]));
    assert_eq!(
        admin.ask(&["AUTH", "u", ""]),
        error("WRONGPASS invalid username-password pair or user is disabled.")
    );
    assert_eq!(admin.ask(&["ACL", "DELUSER", "default"]), error("ERR The 'default' user cannot be removed"));
}

#[test]
fn the_file_is_read_at_the_start_and_written() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("users.acl");
    std::fs::write(&file, "user default on >first ~* &* +@all\nuser u on nopass +get ~*\n").unwrap();
    let server = Running::start(ServerOptions { acl_file: Some(file.clone()), ..Default::default() });
    let mut admin = server.client();
    assert_eq!(admin.ask(&["PING"]), error("NOAUTH Authentication required."));
    assert_eq!(admin.ask(&["AUTH", "first"]), ok());
    let mut client = client_of(&server, "u", "");
    assert_eq!(admin.ask(&["ACL", "SETUSER", "u", "+ping"]), ok());
    assert_eq!(admin.ask(&["ACL", "SAVE"]), ok());
    assert!(
        std::fs::read_to_string(&file)
            .unwrap()
            .contains("user u on nopass ~* resetchannels -@all +get +ping\n")
    );
    assert_eq!(client.ask(&["PING"]), Value::Simple(b"PONG".to_vec()));
    assert_eq!(admin.ask(&["ACL", "LOAD"]), ok());
    assert_eq!(client.reply(), None);
    std::fs::write(&file, "user v on +nothing\n").unwrap();
    assert!(matches!(admin.ask(&["ACL", "LOAD"]), Value::Error(_)));
    client_of(&server, "u", "");
}

#[test]
fn memcached_clients_need_a_user_that_may_do_everything() {
    let password = Password::new("secret");
    let server = Running::start(ServerOptions { password, ..Default::default() });
    let mut admin = client_of(&server, "default", "secret");
    for user in ["all on >all +@all ~* &*", "some on >some +@all ~a*"] {
        let words: Vec<&str> = ["ACL", "SETUSER"].into_iter().chain(user.split(' ')).collect();
        assert_eq!(admin.ask(&words), ok());
    }
    for (credentials, reply) in [
        ("all all", "STORED\r\n"),
        ("some some", "CLIENT_ERROR authentication failure\r\n"),
        ("anyone secret", "STORED\r\n"),
        ("all secret", "CLIENT_ERROR authentication failure\r\n"),
    ] {
        let mut client = server.client();
        client.send(format!("set auth 0 0 {}\r\n{credentials}\r\n", credentials.len()).as_bytes());
        assert_eq!(client.raw(reply.len()), reply.as_bytes(), "{credentials}");
    }
    // Permissions that are taken away later count.
    let mut client = server.client();
    client.send(b"set auth 0 0 7\r\nall all\r\nget k\r\n");
    assert_eq!(client.raw(13), b"STORED\r\nEND\r\n");
    assert_eq!(admin.ask(&["ACL", "SETUSER", "all", "-get"]), ok());
    client.send(b"get k\r\n");
    assert_eq!(client.raw(12), b"CLIENT_ERROR");
}

#[test]
fn dry_runs_and_generated_passwords() {
    let server = Running::start(Default::default());
    let mut admin = admin(&server, &["u on nopass +@read +copy ~a* %R~r*"]);
    let mut dry_run = |words: &[&str]| admin.ask(&[&["ACL", "DRYRUN", "u"], words].concat());
    assert_eq!(dry_run(&["GET", "r1"]), ok());
    assert_eq!(dry_run(&["COPY", "r1", "a1"]), ok());
    assert_eq!(dry_run(&["COPY", "a1", "r1"]), bulk("This user has no permissions to access the 'r1' key"));
    assert_eq!(dry_run(&["SET", "a", "b"]), bulk("This user has no permissions to run the 'set' command"));
    assert_eq!(dry_run(&["NOTHING"]), error("ERR Command 'NOTHING' not found"));
    assert_eq!(dry_run(&["GET"]), error("ERR wrong number of arguments for 'get' command"));
    for (bits, digits) in [("5", 2), ("256", 64), ("4096", 1024)] {
        let Value::Bulk(password) = admin.ask(&["ACL", "GENPASS", bits]) else { panic!("no password") };
        assert_eq!(password.len(), digits);
    }
    assert!(matches!(admin.ask(&["ACL", "GENPASS", "0"]), Value::Error(_)));
}

#[test]
fn clients_send_little_before_they_authenticate() {
    let password = Password::new("secret");
    let server = Running::start(ServerOptions { password, ..Default::default() });
    for (bytes, text) in [
        (&b"*11\r\n"[..], "ERR Protocol error: unauthenticated multibulk length"),
        (b"*1\r\n$16385\r\n", "ERR Protocol error: unauthenticated bulk length"),
    ] {
        let mut client = server.client();
        client.send(bytes);
        assert_eq!(client.reply(), Some(error(text)));
        assert_eq!(client.reply(), None);
    }
    let mut client = client_of(&server, "default", "secret");
    assert_eq!(client.ask(&["SET", "key", &"v".repeat(20_000)]), ok());
}
