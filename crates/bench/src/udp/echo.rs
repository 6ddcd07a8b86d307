//! [`Echo`]: sends back what it receives, in bursts, and does nothing else.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use alluvium_io::datagrams::{Burst, Datagrams as _, Outgoing, SystemDatagrams};
use alluvium_protocol::datagram::{DATAGRAM_BYTES_MAX, HEADER_BYTES, Padding, REQUEST_HEAD_BYTES};

use super::UdpOptions;
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

/// Bytes of a datagram with the requests of the benchmark, nearly all of them gets.
fn datagram_bytes(options: &UdpOptions) -> usize {
    Padding::Train.end(HEADER_BYTES + options.batch * (REQUEST_HEAD_BYTES + 8)).min(DATAGRAM_BYTES_MAX)
}

/// Sends datagrams of the benchmark's size to the echo for a time, a window at a time; returns how many came back.
pub(super) fn drive(options: &UdpOptions, echo: SocketAddr) -> Result<u64, BenchError> {
    let run = || -> io::Result<u64> {
        let mut socket = SystemDatagrams::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let (mut burst, mut outgoing) = (Burst::new(32), Outgoing::new(512 << 10));
        let bytes = datagram_bytes(options);
        let mut echoed = 0;
        let end = Instant::now() + Duration::from_secs_f64(options.seconds);
        while Instant::now() < end {
            for _ in 0..options.window {
                if let Some(room) = outgoing.room(bytes) {
                    room[0] = room[0].wrapping_add(1);
                    outgoing.commit(echo, bytes);
                }
            }
            let mut missing = socket.send_burst(&mut outgoing)?;
            let lost = Instant::now() + Duration::from_millis(200);
            while missing > 0 && Instant::now() < lost {
                match socket.receive_burst(&mut burst)? {
                    0 => socket.wait(Duration::from_millis(1))?,
                    came => {
                        missing = missing.saturating_sub(came);
                        echoed += came as u64;
                    }
                }
            }
        }
        Ok(echoed)
    };
    run().map_err(BenchError::Io)
}
