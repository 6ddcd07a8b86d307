//! Encrypted connections.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium_server::{ServerOptions, TlsFiles, TlsOptions};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned, crypto};
use tempfile::TempDir;

use super::converse;
use crate::common::Running;

/// An authority, and what it has certified, in files.
struct Certified {
    directory: TempDir,
    authority: String,
}

impl Certified {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = issue(directory.path(), &["server", "client"]);
        fs::write(directory.path().join("authority"), &authority).unwrap();
        Self { directory, authority }
    }

    fn files(&self, are_clients_known: bool) -> TlsFiles {
        let path = |name: &str| self.directory.path().join(name);
        TlsFiles {
            certificate: path("server.certificate"),
            key: path("server.key"),
            client_authorities: are_clients_known.then(|| path("authority")),
        }
    }

    fn serve(&self, are_clients_known: bool) -> (Running, SocketAddr) {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        let tls = TlsOptions { address, files: self.files(are_clients_known) };
        let server = Running::start(ServerOptions { tls: Some(tls), ..Default::default() });
        let address = server.tls_address.unwrap();
        (server, address)
    }
}

/// Certificates and keys of `names` by a new authority, whose certificate is returned.
fn issue(directory: &Path, names: &[&str]) -> String {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = params.self_signed(&key).unwrap();
    let issuer = Issuer::new(params, key);
    for name in names {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        let signed = params.signed_by(&key, &issuer).unwrap();
        fs::write(directory.join(format!("{name}.certificate")), signed.pem()).unwrap();
        fs::write(directory.join(format!("{name}.key")), key.serialize_pem()).unwrap();
    }
    certificate.pem()
}

/// Connects as a client that trusts `authority`, with its own certificate if there is one in `own`.
fn connect(
    address: SocketAddr,
    authority: &str,
    own: Option<&Path>,
) -> StreamOwned<ClientConnection, TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
    let builder = ClientConfig::builder_with_provider(Arc::new(crypto::ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some(directory) => {
            let certificate = CertificateDer::from_pem_file(directory.join("client.certificate")).unwrap();
            let key = PrivateKeyDer::from_pem_file(directory.join("client.key")).unwrap();
            builder.with_client_auth_cert(vec![certificate], key).unwrap()
        }
    };
    let socket = TcpStream::connect(address).unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    StreamOwned::new(ClientConnection::new(Arc::new(config), name).unwrap(), socket)
}

#[test]
fn values_larger_than_all_buffers_arrive() {
    let certified = Certified::new();
    let (_server, address) = certified.serve(false);
    let value = "0123456789abcdef".repeat(1 << 18);
    let mut client = connect(address, &certified.authority, None);
    write!(client, "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${}\r\n{value}\r\n", value.len()).unwrap();
    let mut stored = [0; 5];
    client.read_exact(&mut stored).unwrap();
    assert_eq!(&stored, b"+OK\r\n");
    // Much is on its way before the client reads.
    let replies =
        converse(client, &"GET k\r\n".repeat(3).chars().chain("QUIT\r\n".chars()).collect::<String>());
    let expected = format!("${}\r\n{value}\r\n", value.len()).repeat(3) + "+OK\r\n";
    assert!(replies == expected, "{} bytes", replies.len());
}

#[test]
fn clients_without_a_certificate_are_refused_where_one_is_needed() {
    let certified = Certified::new();
    let (_server, address) = certified.serve(true);
    let directory = certified.directory.path();
    let replies = converse(connect(address, &certified.authority, Some(directory)), "PING\r\nQUIT\r\n");
    assert_eq!(replies, "+PONG\r\n+OK\r\n");
    let mut unknown = connect(address, &certified.authority, None);
    let asked = unknown.write_all(b"PING\r\n").and_then(|()| unknown.read(&mut [0; 16]));
    assert!(!matches!(asked, Ok(1..)), "{asked:?}");
}

#[test]
fn other_bytes_end_the_connection_alone() {
    let certified = Certified::new();
    let (_server, address) = certified.serve(false);
    let mut half = connect(address, &certified.authority, None);
    let mut plain = TcpStream::connect(address).unwrap();
    plain.write_all(b"*1\r\n$4\r\nPING\r\n").unwrap();
    let mut rest = Vec::new();
    // An alert, or nothing, but no reply.
    let _ = plain.read_to_end(&mut rest);
    assert!(!rest.windows(4).any(|bytes| bytes == b"PONG"), "{rest:?}");
    half.write_all(b"PI").unwrap();
    half.sock.write_all(&[0x17, 3, 3, 0, 40, 1, 2, 3]).unwrap();
    assert_eq!(
        converse(connect(address, &certified.authority, None), "PING\r\nQUIT\r\n"),
        "+PONG\r\n+OK\r\n"
    );
    drop(half);
}

#[test]
fn a_replaced_certificate_is_used_without_a_restart() {
    let certified = Certified::new();
    let (_server, address) = certified.serve(false);
    let later = issue(certified.directory.path(), &["server"]);
    let began = Instant::now();
    loop {
        let mut client = connect(address, &later, None);
        let asked: io::Result<usize> = client.write_all(b"PING\r\n").and_then(|()| client.read(&mut [0; 16]));
        if asked.is_ok() {
            break;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{asked:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    // One that cannot be read is not used.
    fs::write(certified.files(false).certificate, "nonsense").unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    assert_eq!(converse(connect(address, &later, None), "PING\r\nQUIT\r\n"), "+PONG\r\n+OK\r\n");
}
