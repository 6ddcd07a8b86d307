//! Datagrams in frames past the network stack, between two networks of the test's own with a virtual wire.

use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use alluvium_client::Client;
use serde_json::Value;

/// Says that the process has a network of its own.
const OWN_NETWORK: &str = "ALLUVIUM_TEST_OWN_NETWORK";
const SERVER: &str = "10.78.0.1";

/// Waits for its end of the wire, serves until it reads another line or the test ends, and shows what is left in the
/// interface.
const SCRIPT: &str = "
echo ready
read line
ip link set lo up
ip addr add 10.78.0.1/24 dev server
ip addr add fd78::1/64 dev server nodad
ip link set server up
\"$0\" serve --cache 64MiB --allow-remote --udp 0 --log json \"$@\" &
read line
[ \"$line\" = wait ] || kill -9 $!
wait
ip -o link show server
";

/// Whether this process has a network of its own. Otherwise the test of this name runs again in a process that has one,
/// if the system permits that.
fn has_own_network(test: &str) -> bool {
    if std::env::var_os(OWN_NETWORK).is_some() {
        return true;
    }
    let unshare = |program: &str, arguments: &[&str]| {
        Command::new("unshare").arg("--net").arg(program).args(arguments).env(OWN_NETWORK, "1").output()
    };
    let may = unshare("ip", &["link", "add", "one", "type", "veth", "peer", "name", "two"]);
    if !may.as_ref().is_ok_and(|output| output.status.success()) {
        println!("skipped: no network of its own with a virtual wire: {may:?}");
        return false;
    }
    let program = std::env::current_exe().unwrap();
    let name = format!("{}::{test}", module_path!().split_once("::").unwrap().1);
    let output = unshare(program.to_str().unwrap(), &[&name, "--exact", "--nocapture"]).unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    println!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success() && text.contains("1 passed"));
    false
}

fn ip(arguments: &str) {
    let output = Command::new("ip").args(arguments.split(' ')).output().unwrap();
    assert!(output.status.success(), "ip {arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// A server at the other end of a wire.
struct Remote {
    script: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    /// What it has said before it served.
    said: Value,
    tcp: SocketAddr,
    udp: SocketAddr,
}

impl Remote {
    /// A server with two workers behind a wire with this many queues from here, and packets of this length. `None` if
    /// the system does not permit programs in interfaces.
    fn start(queues: usize, packet_bytes_max: usize, address: &str) -> Option<Self> {
        ip("link set lo up");
        let address = if address.contains(':') { format!("[{address}]:0") } else { format!("{address}:0") };
        let mut script = Command::new("unshare")
            .args(["--net", "sh", "-c", SCRIPT, env!("CARGO_BIN_EXE_alluvium")])
            .args(["--workers", "2", "--net", "xdp:server", "--address", &address])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut output = BufReader::new(script.stdout.take().unwrap());
        output.read_line(&mut String::new()).unwrap();
        let mtu = format!("mtu {packet_bytes_max}");
        ip(&format!(
            "link add client {mtu} numrxqueues 2 numtxqueues {queues} type veth \
             peer name server {mtu} numrxqueues 2 numtxqueues 2 netns {}",
            script.id()
        ));
        ip("addr add 10.78.0.2/24 dev client");
        ip("addr add fd78::2/64 dev client nodad");
        ip("link set client up");
        let mut input = script.stdin.take().unwrap();
        input.write_all(b"go\n").unwrap();
        let mut lines = BufReader::new(script.stderr.take().unwrap()).lines().map(|line| {
            let line = line.unwrap();
            serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
        });
        let said = lines.next().unwrap();
        if said["error"].as_str().is_some_and(|error| error.contains("permitted")) {
            println!("skipped: {said}");
            drop(input);
            script.wait().unwrap();
            return None;
        }
        let serving = lines.next().unwrap();
        assert_eq!(serving["message"], "serving", "{said}");
        std::thread::spawn(move || lines.for_each(drop));
        let address = |name: &str| serving[name].as_str().unwrap().parse().unwrap();
        let server = Self { script, input, output, said, tcp: address("address"), udp: address("udp") };
        // The two ends of the wire need a moment to find each other.
        let end = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect_timeout(&server.tcp, Duration::from_secs(2)).is_err() {
            assert!(Instant::now() < end, "no connection");
        }
        Some(server)
    }

    /// Asks over a connection, which goes over the same wire.
    fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect_timeout(&self.tcp, Duration::from_secs(10)).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
        stream.write_all(format!("{request}\r\nQUIT\r\n").as_bytes()).unwrap();
        let mut reply = String::new();
        stream.read_to_string(&mut reply).unwrap();
        reply
    }

    fn counted(&self, name: &str) -> u64 {
        let text = self.ask("INFO stats");
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        line.unwrap_or_else(|| panic!("{name} in {text}")).trim().parse().unwrap()
    }

    fn wait_for(&self, name: &str, number: u64) {
        let end = Instant::now() + Duration::from_secs(10);
        while self.counted(name) < number {
            assert!(Instant::now() < end, "{name}: {} of {number}", self.counted(name));
        }
    }

    /// Sets and gets items by datagrams and connections.
    fn exercise(&self) {
        let mut client = Client::connect(self.udp).unwrap();
        let keys: Vec<String> = (0..500).map(|number| format!("key-{number}")).collect();
        for key in &keys {
            client.set(key.as_bytes(), format!("of {key}").as_bytes(), 0).unwrap();
        }
        let asked: Vec<&[u8]> = keys.iter().map(String::as_bytes).collect();
        for _ in 0..20 {
            for (key, value) in keys.iter().zip(client.get_many(&asked).unwrap()) {
                assert_eq!(value.as_deref(), Some(format!("of {key}").as_bytes()));
            }
        }
        // The largest that a datagram takes.
        let large = vec![b'x'; 1_400];
        client.set(b"large", &large, 0).unwrap();
        assert_eq!(client.get(b"large").unwrap(), Some(large));
        assert!(self.ask("GET key-7").starts_with("$8\r\nof key-7"));
        assert!(self.ask("DBSIZE").starts_with(":501\r\n"));
        for figure in ["datagrams_malformed", "datagrams_unsent", "datagram_frames_refused"] {
            assert_eq!(self.counted(figure), 0, "{figure}");
        }
    }

    /// What `ip` says about the interface when the server has ended by itself.
    fn left(mut self) -> String {
        self.input.write_all(b"wait\n").unwrap();
        self.left_killed()
    }

    /// What `ip` says about the interface when the server was killed.
    fn left_killed(mut self) -> String {
        drop(self.input);
        let mut left = String::new();
        self.output.read_to_string(&mut left).unwrap();
        assert!(self.script.wait().unwrap().success());
        assert!(left.contains("server@"), "{left}");
        left
    }

    /// What it says while the server runs.
    fn shown(&self) -> String {
        let network = format!("--net=/proc/{}/ns/net", self.script.id());
        let output = Command::new("nsenter").args([&network, "ip", "-o", "link", "show", "server"]).output();
        String::from_utf8(output.unwrap().stdout).unwrap()
    }
}

/// From one queue, all frames come in the queue of the first worker.
#[test]
fn a_worker_takes_the_frames_of_its_queue_and_its_socket_the_rest() {
    if !has_own_network("a_worker_takes_the_frames_of_its_queue_and_its_socket_the_rest") {
        return;
    }
    let Some(server) = Remote::start(1, 1500, SERVER) else { return };
    let said = &server.said;
    assert_eq!(said["message"], "datagrams come in frames of the interface", "{said}");
    assert_eq!((&said["queues"], &said["driver"]), (&2.into(), &true.into()), "{said}");
    server.exercise();
    let (all, frames) = (server.counted("datagrams_received"), server.counted("datagram_frames_received"));
    assert!(frames > 100 && all > frames + 100, "{frames} frames, {all} datagrams");
    assert_eq!(server.counted("datagram_frames_sent"), frames);
    assert!(server.shown().contains("xdp"));

    // Longer than a datagram of the protocol, in a frame; and longer than a packet, in fragments.
    let socket = UdpSocket::bind(("10.78.0.2", 0)).unwrap();
    socket.connect(server.udp).unwrap();
    socket.send(&[0; 1_472]).unwrap();
    socket.send(&[0; 4_000]).unwrap();
    server.wait_for("datagrams_received", all + 2);
    assert_eq!(server.counted("datagram_frames_received"), frames + 1);
    assert_eq!(server.counted("datagrams_foreign"), 2);
    // Another port is the kernel's, which says that nobody is there.
    let other = UdpSocket::bind(("10.78.0.2", 0)).unwrap();
    other.connect((SERVER, 9)).unwrap();
    other.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    other.send(b"anybody?").unwrap();
    assert_eq!(other.recv(&mut [0; 8]).unwrap_err().kind(), ErrorKind::ConnectionRefused);

    server.ask("SHUTDOWN");
    assert!(!server.left().contains("xdp"));
}

#[test]
fn a_killed_server_leaves_no_program_in_the_interface() {
    if !has_own_network("a_killed_server_leaves_no_program_in_the_interface") {
        return;
    }
    let Some(server) = Remote::start(2, 1500, "fd78::1") else { return };
    // Each client has a socket of its own, whose packets go by either queue.
    for _ in 0..6 {
        server.exercise();
    }
    assert!(server.counted("datagram_frames_received") > 0);
    assert!(server.shown().contains("xdp"));
    assert!(!server.left_killed().contains("xdp"));
}

/// Where the program runs at the entrance of the network stack, datagrams that a sender of this machine has left
/// unfinished come by the sockets.
#[test]
fn all_is_served_where_the_driver_takes_no_program() {
    if !has_own_network("all_is_served_where_the_driver_takes_no_program") {
        return;
    }
    let Some(server) = Remote::start(1, 9000, SERVER) else { return };
    assert_eq!(server.said["driver"], false, "{}", server.said);
    server.exercise();
    assert_eq!(server.counted("datagram_frames_received"), 0);
    server.ask("SHUTDOWN");
    assert!(!server.left().contains("xdp"));
}

#[test]
fn without_frames_the_server_says_so_and_serves() {
    let mut server = Command::new(env!("CARGO_BIN_EXE_alluvium"))
        .args(["serve", "--cache", "4MiB", "--port", "0", "--udp", "0", "--net", "xdp:lo", "--log", "json"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(server.stderr.take().unwrap()).lines().map(|line| {
        let line = line.unwrap();
        serde_json::from_str::<Value>(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    });
    let said = lines.next().unwrap();
    assert_eq!((&said["level"], &said["interface"]), (&"WARN".into(), &"lo".into()), "{said}");
    assert!(said["message"].as_str().unwrap().contains("come by sockets"), "{said}");
    let serving = lines.next().unwrap();
    let address = |name: &str| serving[name].as_str().unwrap().parse::<SocketAddr>().unwrap();
    let mut client = Client::connect(address("udp")).unwrap();
    client.set(b"key", b"value", 0).unwrap();
    assert_eq!(client.get(b"key").unwrap().as_deref(), Some(&b"value"[..]));
    TcpStream::connect(address("address")).unwrap().write_all(b"SHUTDOWN\r\n").unwrap();
    lines.for_each(drop);
    assert!(server.wait().unwrap().success());
}
