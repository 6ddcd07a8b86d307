//! One thread's event loop: sockets in, commands done, replies out.
//!
//! A round: wait for ready sockets; read each once and take its whole frames; gets gather in a batch over all clients,
//! other commands run at once; look the batch up; commit all writes; send every client its replies with one write. One
//! read a round keeps clients fair. While a commit waits for the device, the worker begins further rounds, whose
//! replies wait for the next commit. Buffers belong to the worker and are lent to connections only while these have
//! bytes under way, so idle connections cost no buffers.

mod closing;
mod control;
mod datagrams;
mod mail;
mod memcached;
mod memory;
mod reads_ahead;
mod round_end;

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alluvium_protocol::Progress;

use crate::answer::{Asker, Wanted};
use crate::commands::{self, Context, Executed};
use crate::connection::Connection;
use crate::connections::Connections;
use crate::get_batch::GetBatch;
use crate::inbox::Inbox;
use crate::mail::Outbox;
use crate::metrics::Meter;
use crate::protocol::Protocol;
use crate::readiness::{Event, Interest, Poller};
use crate::reply_room::ReplyRoom;
use crate::round_writes::RoundWrites;
use crate::shared::Shared;
use crate::udp::WorkerSocket;
use datagrams::WorkerDatagrams;
use reads_ahead::ReadsAhead;

/// Maximum number of bytes read from one client in one round.
const READ_BYTES_MAX: usize = 64 << 10;
/// Larger reply buffers are returned to the allocator, not kept for the next client.
const POOLED_BYTES_MAX: usize = 64 << 10;
const POOLED_BUFFERS_MAX: usize = 64;
/// After a frame with more arguments, the parser frees its memory.
const SHRINK_ARGUMENTS_MIN: usize = 1024;
const WAKE_TOKEN: u64 = u64::MAX;
const DATAGRAMS_TOKEN: u64 = u64::MAX - 1;
/// How often idle connections are looked for.
const IDLE_SWEEP: Duration = Duration::from_secs(1);

pub(crate) struct Worker {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    poller: Poller,
    connections: Connections,
    batch: GetBatch,
    writes: RoundWrites,
    /// What this round has to tell other clients.
    outbox: Outbox,
    scratch: Vec<u8>,
    /// Empty reply buffers with some capacity.
    pool: Vec<Vec<u8>>,
    /// Connections that something happened to in this round.
    touched: Vec<usize>,
    /// Connections with whole frames left in their input and room for replies again.
    resumable: Vec<usize>,
    commands_in_round: u64,
    /// Number of connections that wait for the end of a pause.
    held: usize,
    /// Connections that wait for memory.
    waiting: Vec<usize>,
    /// Whether clients may be reading long values.
    has_streams: bool,
    swept: Instant,
    /// Of `GET`, which is not dispatched.
    get_command: usize,
    meter: Meter,
    /// Whether clients sent requests while the worker waited for its last commit.
    is_busy: bool,
    /// Whether they did so since the worker began to wait for a commit of another thread.
    has_overlapped: bool,
    peeked: Vec<Event>,
    reads_ahead: ReadsAhead,
    datagrams: Option<WorkerDatagrams>,
}

impl Worker {
    /// The worker of this number, with its socket for datagrams if any are served, and the inboxes of all workers.
    pub(crate) fn new(
        shared: Arc<Shared>,
        inboxes: Arc<[Arc<Inbox>]>,
        datagrams: Option<WorkerSocket>,
        number: usize,
    ) -> io::Result<Self> {
        let inbox = Arc::clone(&inboxes[number]);
        let mut poller = Poller::new()?;
        poller.add(inbox.waker().source(), WAKE_TOKEN, Interest::READ)?;
        let datagrams = WorkerDatagrams::new(datagrams, &shared, inboxes, number);
        if let Some(datagrams) = &datagrams {
            poller.add(datagrams.socket(), DATAGRAMS_TOKEN, Interest::READ)?;
        }
        let reads_ahead = ReadsAhead::new(shared.store.prefetches());
        let meter = Meter::new(Arc::clone(&shared.worker_metrics[number]));
        Ok(Self {
            shared,
            inbox,
            poller,
            connections: Connections::default(),
            batch: GetBatch::default(),
            writes: RoundWrites::default(),
            outbox: Outbox::default(),
            scratch: vec![0; READ_BYTES_MAX],
            pool: Vec::new(),
            touched: Vec::new(),
            resumable: Vec::new(),
            commands_in_round: 0,
            held: 0,
            waiting: Vec::new(),
            has_streams: false,
            swept: Instant::now(),
            get_command: commands::number(b"get"),
            meter,
            is_busy: false,
            has_overlapped: false,
            peeked: Vec::new(),
            reads_ahead,
            datagrams,
        })
    }

    /// Serves until the server is asked to stop and the last replies are sent.
    ///
    /// # Errors
    /// When the poller fails; the errors of a client's socket only close that client.
    pub(crate) fn run(mut self) -> io::Result<()> {
        let mut events: Vec<Event> = Vec::new();
        let mut deadline: Option<Instant> = None;
        loop {
            self.poller.wait(&mut events, self.timeout(deadline))?;
            let now = Instant::now();
            // Before what it announces is taken: a wake-up that comes later must not be discarded.
            if events.iter().any(|event| event.token == WAKE_TOKEN) {
                self.inbox.waker().drain();
            }
            self.take_commits();
            self.take_messages();
            self.serve_datagrams(&events)?;
            for event in events.iter().filter(|event| event.token < DATAGRAMS_TOKEN) {
                self.has_overlapped = true;
                self.on_event(*event, now);
            }
            self.process_received();
            self.take_answers();
            self.release_held();
            if !self.waiting.is_empty() {
                self.retry_waiting();
            }
            for number in std::mem::take(&mut self.resumable) {
                self.resume(number);
            }
            self.finish_round();
            self.take_kills();
            if deadline.is_none() {
                self.take_arrivals();
            }
            if now.duration_since(self.swept) >= IDLE_SWEEP {
                self.swept = now;
                self.sweep(now);
            }
            if self.shared.shutdown.is_asked() && deadline.is_none() {
                deadline = Some(now + self.shared.options.shutdown_grace);
                self.stop_reading();
            }
            let has_work = self.connections.numbers().next().is_some() || self.writes.are_held();
            if deadline.is_some_and(|deadline| !has_work || now >= deadline) {
                return Ok(());
            }
        }
    }

    fn on_event(&mut self, event: Event, now: Instant) {
        let number = event.token as usize;
        if !self.connections.contains(number) {
            return;
        }
        self.touch(number);
        let connection = &mut self.connections[number];
        connection.active = now;
        if event.writable {
            self.meter.sent(connection.flush());
        }
        if event.readable {
            if connection.interest.read {
                self.read(number);
            } else if !event.writable || !connection.interest.write {
                // Nothing was asked for, so this is a hang-up: only an error could follow.
                connection.broken = true;
            }
        }
    }

    /// Reads once and executes the whole frames, unless the round reads ahead.
    fn read(&mut self, number: usize) {
        let bytes_max = self.readable_bytes(number);
        if bytes_max == 0 {
            self.connections[number].wait_for(READ_BYTES_MAX);
            return;
        }
        let mut scratch = std::mem::take(&mut self.scratch);
        let connection = &mut self.connections[number];
        let received = connection.stream.read(&mut scratch[..bytes_max]);
        if let Ok(received) = received {
            self.sample(number, &scratch[..received]);
        }
        let connection = &mut self.connections[number];
        match received {
            Ok(0) => connection.ended = true,
            Ok(received) if connection.input.is_empty() && !self.reads_ahead.is_due() => {
                self.meter.received(received);
                let consumed = self.process(number, &scratch[..received]);
                self.connections[number].keep_input(&scratch[consumed..received]);
            }
            Ok(received) => {
                self.meter.received(received);
                connection.keep_input(&scratch[..received]);
                if self.reads_ahead.is_due() {
                    self.reads_ahead.add(number);
                } else {
                    self.process_input(number);
                }
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(_) => connection.broken = true,
        }
        let connection = &mut self.connections[number];
        connection.ended |= connection.stream.has_ended();
        self.scratch = scratch;
    }

    fn resume(&mut self, number: usize) {
        if self.connections.contains(number) {
            self.touch(number);
            self.resume_gets(number);
            self.process_input(number);
        }
    }

    fn process_input(&mut self, number: usize) {
        let mut input = std::mem::take(&mut self.connections[number].input);
        let consumed = self.process(number, &input);
        if consumed == input.len() {
            input = Vec::new();
        } else {
            input.drain(..consumed);
            input.shrink_to(READ_BYTES_MAX);
        }
        self.connections[number].input = input;
    }

    /// Executes the whole frames at the front of `input`, as long as the client reads its replies. Returns the number
    /// of their bytes.
    fn process(&mut self, number: usize, input: &[u8]) -> usize {
        if self.connections[number].session.protocol != Protocol::Redis && !self.is_of_redis(number, input) {
            return self.process_memcached(number, input);
        }
        let pause_bytes = self.pause_bytes();
        self.meter.begin_pipeline();
        let mut consumed = 0;
        loop {
            let connection = &mut self.connections[number];
            let paused = connection.is_parked() || connection.pending_bytes() > pause_bytes;
            connection.unprocessed = paused && consumed < input.len();
            if paused || connection.session.closing || connection.broken || consumed == input.len() {
                return consumed;
            }
            let frame = &input[consumed..];
            connection.parser.set_trusted(connection.session.is_authenticated);
            match connection.parser.parse(frame) {
                Ok(Progress::Incomplete { .. }) => return consumed,
                Ok(Progress::Complete { consumed: bytes }) => {
                    let arguments = connection.parser.arguments(frame);
                    if arguments.is_empty() {
                        consumed += bytes;
                        continue;
                    }
                    if let Some(paused) = self.shared.pause.paused()
                        && commands::waits(paused, arguments, &connection.session)
                    {
                        self.hold(number);
                        return consumed;
                    }
                    self.commands_in_round += 1;
                    let is_get = arguments.len() == 2 && arguments[0].eq_ignore_ascii_case(b"get");
                    if is_get && connection.session.executes(self.shared.observers.get()) {
                        connection.session.last_command = self.get_command;
                        self.push_get(number, frame);
                    } else if !self.execute(number, frame) {
                        self.commands_in_round -= 1;
                        self.connections[number].unprocessed = true;
                        return consumed;
                    }
                    consumed += bytes;
                }
                Err(error) => {
                    self.look_up();
                    let connection = &mut self.connections[number];
                    connection.reply().error(format!("ERR {error}"));
                    connection.session.closing = true;
                    return input.len();
                }
            }
        }
    }

    /// Executes the command that the parser has just completed, after the gets that came before it. Returns `false` if
    /// it must wait.
    fn execute(&mut self, number: usize, frame: &[u8]) -> bool {
        if self.connections[number].gets_queued > 0 {
            self.look_up();
        }
        if self.connections[number].is_parked() || self.connections[number].broken {
            return false;
        }
        let Connection { parser, session, output, awaits_answer, dropped, charged, .. } =
            &mut self.connections[number];
        let arguments = parser.arguments(frame);
        let position = commands::position(&arguments[0]);
        let was_queueing = session.transaction.is_some();
        let is_write = commands::may_write(arguments, session);
        if is_write {
            self.writes.begin(&self.shared.commits);
        }
        let start = output.len();
        let begun = self.meter.begin();
        let room = ReplyRoom::new(&self.shared.memory, start, self.shared.options.output_bytes_max);
        let mut context = Context::new(arguments, output, session, &self.shared, &mut self.outbox, &room);
        let executed = commands::execute(&mut context);
        *charged += room.charged();
        if executed == Executed::Waits {
            let needed = room.needed();
            self.connections[number].wait_for(needed);
            return false;
        }
        let succeeded = executed == Executed::Succeeded;
        if was_queueing && session.transaction.is_some() {
            self.meter.begin_pipeline();
        } else {
            self.meter.executed(position, begun, is_write, succeeded);
        }
        // Nothing to replace if the client gets no replies.
        if is_write && output.len() > start {
            let (start, end) = (*dropped + start as u64, *dropped + output.len() as u64);
            self.writes.add(number, session.id, start..end);
        }
        if arguments.len() > SHRINK_ARGUMENTS_MIN {
            parser.shrink();
        }
        if let Some(wanted) = session.wants.take() {
            *awaits_answer = true;
            let asker = Asker { inbox: Arc::clone(&self.inbox), connection: number, session: session.id };
            match wanted {
                Wanted::Count => self.shared.counter.ask(session.database, asker),
                Wanted::Chore(chore) => self.shared.chores.add(chore, Some(asker)),
                Wanted::Sleep(duration) => asker.answer_after(duration),
            }
        }
        true
    }

    /// Looks up the gets that wait.
    fn look_up(&mut self) {
        if !self.batch.is_empty() {
            let begun = Instant::now();
            let bytes_max = self.shared.options.output_bytes_max;
            let outcome = self.batch.execute(
                &mut self.connections,
                &*self.shared.store,
                &self.shared.memory,
                bytes_max,
            );
            self.meter.looked_up(begun, outcome);
        }
    }

    /// Marks a connection as part of this round and lends it a reply buffer.
    fn touch(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        if !connection.touched {
            connection.touched = true;
            self.touched.push(number);
        }
        if connection.output.capacity() == 0
            && let Some(buffer) = self.pool.pop()
        {
            connection.output = buffer;
        }
    }
}
