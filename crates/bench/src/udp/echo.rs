//! [`Echo`]: sends back what it receives, in bursts, and does nothing else.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use alluvium_io::datagrams::{Burst, Datagrams as _, Outgoing, SystemDatagrams};

use super::UdpOptions;
use super::flight::{Flight, fly};
use crate::error::BenchError;
use crate::process::thread_cpu_time;

/// Bytes that fit into the arena of a server's worker.
const ARENA_BYTES: usize = 128 << 10;

/// A thread that sends back what it receives.
pub(super) struct Echo {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<io::Result<Duration>>,
}

impl Echo {
    pub(super) fn start() -> Result<Self, BenchError> {
        let socket =
            SystemDatagrams::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).map_err(BenchError::Io)?;
        let (address, stop) = (socket.local_address(), Arc::new(AtomicBool::new(false)));
        let is_stopped = Arc::clone(&stop);
        let thread = thread::spawn(move || serve(socket, &is_stopped));
        Ok(Self { address, stop, thread })
    }

    /// Ends the thread; returns the processor time that it has used.
    pub(super) fn stop(self) -> Result<Duration, BenchError> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().expect("no panic").map_err(BenchError::Io)
    }
}

fn serve(mut socket: SystemDatagrams, is_stopped: &AtomicBool) -> io::Result<Duration> {
    let (mut burst, mut outgoing) = (Burst::new(32), Outgoing::new(ARENA_BYTES));
    while !is_stopped.load(Ordering::Relaxed) {
        if socket.receive_burst(&mut burst)? == 0 {
            socket.wait(Duration::from_millis(5))?;
            continue;
        }
        for (peer, bytes) in burst.datagrams() {
            if outgoing.room(bytes.len()).is_none() {
                socket.send_burst(&mut outgoing)?;
            }
            if let Some(room) = outgoing.room(bytes.len()) {
                room.copy_from_slice(bytes);
                outgoing.commit(peer, bytes.len());
            }
        }
        socket.send_burst(&mut outgoing)?;
    }
    Ok(thread_cpu_time())
}

/// Datagrams to the echo that are under way.
struct Echoes {
    socket: SystemDatagrams,
    burst: Burst,
    outgoing: Outgoing,
    echo: SocketAddr,
    bytes: usize,
    window: usize,
    missing: usize,
    /// When those that are missing are lost.
    lost_at: Instant,
    has_begun: bool,
    echoed: u64,
}

impl Echoes {
    fn new(options: &UdpOptions, echo: SocketAddr) -> Result<Self, BenchError> {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        Ok(Self {
            socket: SystemDatagrams::bind(any).map_err(BenchError::Io)?,
            burst: Burst::new(32),
            outgoing: Outgoing::new(512 << 10),
            echo,
            bytes: options.datagram_bytes(),
            window: options.window(),
            missing: 0,
            lost_at: Instant::now(),
            has_begun: false,
            echoed: 0,
        })
    }
}

impl Flight for Echoes {
    fn begin(&mut self, due: Instant) {
        self.has_begun = false;
        self.lost_at = due + Duration::from_millis(200);
    }

    fn advance(&mut self) -> Result<bool, BenchError> {
        if !self.has_begun {
            self.has_begun = true;
            for _ in 0..self.window {
                if let Some(room) = self.outgoing.room(self.bytes) {
                    room[0] = room[0].wrapping_add(1);
                    self.outgoing.commit(self.echo, self.bytes);
                }
            }
            self.missing = self.socket.send_burst(&mut self.outgoing).map_err(BenchError::Io)?;
        }
        loop {
            match self.socket.receive_burst(&mut self.burst).map_err(BenchError::Io)? {
                0 => return Ok(self.missing == 0 || Instant::now() >= self.lost_at),
                came => {
                    self.missing = self.missing.saturating_sub(came);
                    self.echoed += came as u64;
                }
            }
        }
    }
}

/// Sends datagrams of the benchmark's size to the echo for a time, as requests are sent to a server; returns how many
/// came back.
pub(super) fn drive(options: &UdpOptions, echo: SocketAddr) -> Result<u64, BenchError> {
    let echoes = (0..options.calls).map(|_| Echoes::new(options, echo));
    let mut echoes: Vec<Echoes> = echoes.collect::<Result<_, BenchError>>()?;
    fly(&mut echoes, options.seconds, None)?;
    Ok(echoes.iter().map(|echoes| echoes.echoed).sum())
}
