//! [`Identity`]: who the server is to encrypted clients, and whom it trusts.

use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, crypto};

/// How often the files are looked at, at most.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Files in PEM. A file that is replaced is used for the connections that come more than a second later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsFiles {
    /// The server's certificate, followed by those of its issuers.
    pub certificate: PathBuf,
    /// The private key of the certificate.
    pub key: PathBuf,
    /// Certificates of the authorities that clients' certificates must come from. `None` if clients need none.
    pub client_authorities: Option<PathBuf>,
}

impl TlsFiles {
    fn paths(&self) -> impl Iterator<Item = &Path> {
        [&self.certificate, &self.key].into_iter().chain(&self.client_authorities).map(PathBuf::as_path)
    }

    /// When each file was modified; `None` for those that are missing.
    fn times(&self) -> Vec<Option<SystemTime>> {
        self.paths().map(|path| fs::metadata(path).and_then(|file| file.modified()).ok()).collect()
    }

    fn load(&self) -> io::Result<Arc<ServerConfig>> {
        let provider = Arc::new(crypto::ring::default_provider());
        let verifier = match &self.client_authorities {
            None => WebPkiClientVerifier::no_client_auth(),
            Some(path) => {
                let mut roots = RootCertStore::empty();
                for certificate in certificates(path)? {
                    roots.add(certificate).map_err(|error| failed(path, error))?;
                }
                let builder =
                    WebPkiClientVerifier::builder_with_provider(roots.into(), Arc::clone(&provider));
                builder.build().map_err(|error| failed(path, error))?
            }
        };
        let chain = certificates(&self.certificate)?;
        let key = PrivateKeyDer::from_pem_file(&self.key).map_err(|error| failed(&self.key, error))?;
        let config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(&self.certificate, error))?
            .with_client_cert_verifier(verifier)
            .with_single_cert(chain, key)
            .map_err(|error| failed(&self.certificate, error))?;
        Ok(Arc::new(config))
    }
}

fn certificates(path: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let read = || CertificateDer::pem_file_iter(path)?.collect::<Result<Vec<_>, _>>();
    match read() {
        Ok(certificates) if certificates.is_empty() => Err(failed(path, "there is no certificate")),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(failed(path, error)),
    }
}

fn failed(path: &Path, reason: impl fmt::Display) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("{}: {reason}", path.display()))
}

/// What the files said when they were last read without an error.
#[derive(Debug)]
pub(in crate::socket) struct Identity {
    files: TlsFiles,
    loaded: Mutex<Loaded>,
}

#[derive(Debug)]
struct Loaded {
    config: Arc<ServerConfig>,
    times: Vec<Option<SystemTime>>,
    looked: Instant,
}

impl Identity {
    /// # Errors
    /// When a file cannot be read, or is not what it should be; the error names it.
    pub(in crate::socket) fn load(files: TlsFiles) -> io::Result<Self> {
        // Before the files are read, so that a change meanwhile is seen later.
        let times = files.times();
        let config = files.load()?;
        let loaded = Mutex::new(Loaded { config, times, looked: Instant::now() });
        Ok(Self { files, loaded })
    }

    /// For the next connection. Files that have changed are read again; if they are wrong, the former content is used.
    pub(in crate::socket) fn config(&self) -> Arc<ServerConfig> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if loaded.looked.elapsed() >= LOOK_INTERVAL {
            loaded.looked = Instant::now();
            let times = self.files.times();
            if times != loaded.times {
                match self.files.load() {
                    Ok(config) => {
                        tracing::info!("the certificates have changed");
                        loaded.config = config;
                        loaded.times = times;
                    }
                    // Perhaps they are being written: they are tried again.
                    Err(error) => tracing::warn!(%error, "the former certificates are used"),
                }
            }
        }
        Arc::clone(&loaded.config)
    }
}
