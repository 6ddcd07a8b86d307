//! Settings from files and the environment, and what service managers do and want to know.

use std::os::unix::net::UnixDatagram;
use std::path::Path;
use std::process::{Command, Output};

use super::Serving;

fn serve(directory: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_alluvium"));
    command.arg("serve").current_dir(directory);
    command
}

fn checked(directory: &Path, file: &str) -> Output {
    std::fs::write(directory.join("settings.toml"), file).unwrap();
    serve(directory).args(["--config", "settings.toml", "--check-config"]).output().unwrap()
}

#[test]
fn settings_are_checked_with_their_line() {
    let directory = tempfile::tempdir().unwrap();
    let good =
        checked(directory.path(), "dir = 'data'\nidle-timeout = '10s'\noutput-max = '64MiB'\nport = 7\n");
    assert!(good.status.success(), "{good:?}");
    assert!(!directory.path().join("data").exists(), "a check makes nothing");
    std::fs::write(directory.path().join("open.acl"), "user default on nopass ~* +@all\n").unwrap();
    std::fs::write(directory.path().join("wrong.acl"), "user default on\nuser other +nothing\n").unwrap();
    for (file, line, reason) in [
        ("dir = 'data'\n\nclients = 7\n", "line 3", "unknown field `clients`"),
        ("dir = 'data'\nidle-timeout = '10 parsecs'\n", "line 2", "unknown time unit"),
        ("dir = 'data'\noutput-max = 'much'\n", "line 2", "does not start with a number"),
        ("dir = 'data'\nport = 70000\n", "line 2", "u16"),
        ("dir = 'data'\ndurability = 'never'\n", "line 2", "expected buffered, process, sync"),
        ("dir = 'data'\naddress = '0.0.0.0:1'\n", "", "there is no password"),
        ("dir = 'data'\nmetrics = '0.0.0.0:1'\n", "", "metrics have no password"),
        ("dir = 'data'\nport = 1\naddress = '127.0.0.1:1'\n", "", "leave `port` out"),
        ("dir = 'data'\nacl-file = 'nowhere'\n", "", "nowhere"),
        ("dir = 'data'\nacl-file = 'wrong.acl'\n", "", "wrong.acl:2"),
        ("dir = 'data'\nacl-file = 'open.acl'\naddress = '0.0.0.0:1'\n", "", "there is no password"),
        ("port = 1\n", "", "give the directory"),
        ("dir =\n", "line 1", ""),
    ] {
        let refused = checked(directory.path(), file);
        let text = String::from_utf8(refused.stderr).unwrap();
        assert!(!refused.status.success() && text.contains(line) && text.contains(reason), "{file}: {text}");
    }
}

#[test]
fn the_example_is_in_order() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging/alluvium.toml");
    let directory = tempfile::tempdir().unwrap();
    let output =
        serve(directory.path()).arg("--config").arg(&example).arg("--check-config").output().unwrap();
    assert!(output.status.success(), "{output:?}");
    // Each option of the service's commands exists.
    let unit = std::fs::read_to_string(example.with_file_name("systemd/alluvium.service")).unwrap();
    let commands: Vec<&str> = unit
        .lines()
        .filter_map(|line| line.split_once("=/usr/bin/alluvium "))
        .map(|(_, words)| words)
        .collect();
    assert_eq!(commands.len(), 2);
    for words in commands {
        let words = words.replace("/etc/alluvium/", "missing/");
        let output = serve(directory.path()).args(words.split(' ').skip(1)).output().unwrap();
        // Only the file is missing.
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
}

#[test]
fn options_come_before_the_environment_and_that_before_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = "dir = 'data'\nport = 0\nclients-max = 3\nworkers = 1\nmetrics = '127.0.0.1:0'\n";
    std::fs::write(directory.path().join("settings.toml"), file).unwrap();
    let mut command = serve(directory.path());
    command.args(["--config", "settings.toml", "--workers", "2"]);
    command
        .env("ALLUVIUM_WORKERS", "3")
        .env("ALLUVIUM_CLIENTS_MAX", "4")
        .env("ALLUVIUM_DURABILITY", "buffered");
    let mut server = Serving::run(command, true);
    let mut client = server.client();
    for (parameter, value) in [("io-threads", "2"), ("maxclients", "4")] {
        client.send(&format!("CONFIG GET {parameter}"));
        let replies = [client.reply(), client.reply(), client.reply()];
        assert_eq!(replies[2], value, "{replies:?}");
    }
    assert!(server.stop().success());
}

/// The manager hears that the server is ready once clients are served, and that it stops. A stop sends what is owed.
#[test]
fn the_service_manager_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("notify");
    let manager = UnixDatagram::bind(&path).unwrap();
    manager.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
    let heard = || {
        let mut bytes = [0; 1024];
        let received = manager.recv(&mut bytes).unwrap();
        String::from_utf8(bytes[..received].to_vec()).unwrap()
    };
    let mut command = serve(directory.path());
    command.args(["--dir", "data", "--port", "0"]).env("NOTIFY_SOCKET", &path);
    let mut server = Serving::run(command, false);
    assert_eq!(heard(), format!("READY=1\nSTATUS=Serving at 127.0.0.1:{}", server.port));
    let mut client = server.client();
    for number in 0..100 {
        client.send(&format!("SET key{number} value"));
    }
    assert_eq!(client.reply(), "+OK");
    assert!(server.stop().success());
    assert!(heard().starts_with("STOPPING=1\n"));
    let mut drained = 1;
    while client.reply_before_close().as_deref() == Some("+OK") {
        drained += 1;
    }
    // What was answered is there.
    let mut again = serve(directory.path());
    again.args(["--dir", "data", "--port", "0"]);
    let mut server = Serving::run(again, false);
    let items: u32 = server.client().ask("DBSIZE")[1..].parse().unwrap();
    assert!((drained..=100).contains(&items), "{drained} answers, {items} items");
    assert!(server.stop().success());
}

/// Sockets are inherited as numbers 3 and 4, which takes a program that opens them; Python is one without unsafe code.
#[test]
fn sockets_of_the_service_manager_are_used() {
    if Command::new("python3").arg("--version").output().is_err() {
        return;
    }
    let script = "
import fcntl, os, socket, sys
opened = [socket.create_server(('127.0.0.1', 0)) for _ in (3, 4)]
copies = [fcntl.fcntl(one.fileno(), fcntl.F_DUPFD, 10) for one in opened]
for number, copy in zip((3, 4), copies):
    os.dup2(copy, number, inheritable=True)
os.environ.update(LISTEN_FDS='2', LISTEN_PID=str(os.getpid()))
os.execv(sys.argv[1], sys.argv[1:])
";
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("python3");
    command.args(["-c", script, env!("CARGO_BIN_EXE_alluvium"), "serve", "--dir", "data", "--port", "1"]);
    command.current_dir(directory.path());
    // Port 1 would be refused or be another one than the sockets'.
    let mut server = Serving::run(command, true);
    assert_ne!(server.port, 1);
    assert_eq!(server.client().ask("PING"), "+PONG");
    let health = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["stat", "--health", "--url", server.metrics.as_deref().unwrap()])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(health.stdout).unwrap(), "{\"status\":\"healthy\"}\n");
    assert!(server.stop().success());
}
