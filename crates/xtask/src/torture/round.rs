//! One round: a child process that is killed at a random moment, or ends by itself.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use rand::RngExt;
use rand::rngs::StdRng;

use super::context::{FAILED, FAILURE};
use super::scarcity::{self, Scarcity};

/// How a child is started.
#[derive(Clone, Copy, Debug)]
pub struct Round<'a> {
    pub program: &'a Path,
    pub plan: &'a str,
    pub durability: &'a str,
    pub directory: &'a Path,
    pub writers: u8,
    pub clock_is_off: bool,
    pub scarcity: Option<Scarcity>,
    pub without: &'a [String],
    pub seed: u64,
    /// Whether the child should end by itself, and leave the database compacted.
    pub is_last: bool,
}

/// The totals of all rounds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    pub rounds: u64,
    pub kills: u64,
    /// Verifications that ended before the kill.
    pub verified: u64,
    pub operations: u64,
    /// Acknowledged operations that a kill lost, as their durability allows.
    pub lost: u64,
}

impl Tally {
    pub fn line(&self, elapsed: Duration) -> String {
        let Self { rounds, kills, verified, operations, lost } = self;
        let seconds = elapsed.as_secs_f64();
        let rate = *operations as f64 / seconds.max(0.001);
        format!(
            "{rounds} rounds, {kills} kills, {verified} verifications, {operations} operations, {rate:.0} a second, \
             {lost} lost as they may be, {seconds:.0} s"
        )
    }
}

/// When a child is killed.
#[derive(Clone, Copy, Debug)]
enum Kill {
    /// This long after its start.
    After(Duration),
    /// This long after it announced for the n-th time that it is about to do this.
    During(&'static str, u32, Duration),
    Never,
}

/// Phases for which a kill may wait.
const PHASES: [&str; 11] = [
    "opening",
    "opened",
    "clear",
    "drop",
    "delete-prefix",
    "ingest",
    "flush",
    "compact",
    "checkpoint",
    "change-plan",
    "closing",
];
/// A child that waits for its phase is killed after this time in any case.
const LIFE_MAX: Duration = Duration::from_millis(2_500);
/// A child that prints nothing for this long hangs.
const SILENCE_MAX: Duration = Duration::from_secs(60);

impl Kill {
    fn random(rng: &mut StdRng) -> Self {
        if rng.random() {
            return Self::After(Duration::from_millis(rng.random_range(0..2_000)));
        }
        let name = PHASES[rng.random_range(0..PHASES.len())];
        let is_once = name.starts_with("open");
        let times = if is_once { 1 } else { rng.random_range(1..4) };
        Self::During(name, times, Duration::from_micros(rng.random_range(0..30_000)))
    }
}

impl Round<'_> {
    /// Runs the child to its end.
    ///
    /// # Errors
    /// The child's finding, or that it hung or died.
    pub fn run(&self, rng: &mut StdRng, tally: &mut Tally) -> Result<(), String> {
        let kill = if self.is_last { Kill::Never } else { Kill::random(rng) };
        std::fs::create_dir_all(self.directory)
            .map_err(|error| format!("creating the directory: {error}"))?;
        let mut child = self.start()?;
        let outcome = self.watch(&mut child, kill, tally);
        // In any case, no child keeps running.
        let _ = child.kill();
        let status = child.wait().map_err(|error| format!("waiting for the child: {error}"))?;
        tally.rounds += 1;
        let is_killed = outcome?;
        tally.kills += u64::from(is_killed);
        self.judge(is_killed, status)
    }

    fn start(&self) -> Result<Child, String> {
        let mut command = scarcity::command(self.program, self.scarcity);
        command.arg("torture-child").arg("--directory").arg(self.directory);
        command.args(["--plan", self.plan, "--durability", self.durability]);
        command.args(["--writers", &self.writers.to_string(), "--seed", &self.seed.to_string()]);
        if self.clock_is_off {
            command.arg("--clock-is-off");
        }
        if self.scarcity.is_some() {
            command.arg("--is-scarce");
        }
        if !self.without.is_empty() {
            command.args(["--without", &self.without.join(",")]);
        }
        if self.is_last {
            command.args(["--sessions", "2"]);
        }
        let errors = std::fs::File::create(self.directory.join("stderr"));
        let errors = errors.map_err(|error| format!("creating a file: {error}"))?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(errors);
        command.spawn().map_err(|error| format!("starting {}: {error}", self.program.display()))
    }

    /// Reads the child's output until it ends or it is time to kill it; returns whether it was killed.
    fn watch(&self, child: &mut Child, kill: Kill, tally: &mut Tally) -> Result<bool, String> {
        let lines = listen(child)?;
        let start = Instant::now();
        let mut due = match kill {
            Kill::After(life) => Some(start + life),
            Kill::During(..) => Some(start + LIFE_MAX),
            Kill::Never => None,
        };
        let (mut session_operations, mut times_left) =
            (0, if let Kill::During(_, times, _) = kill { times } else { 0 });
        let mut is_killed = false;
        let mut heard = Instant::now();
        loop {
            let patience = match due {
                Some(due) if !is_killed => due.saturating_duration_since(Instant::now()),
                _ => SILENCE_MAX,
            };
            let line = match lines.recv_timeout(patience.min(SILENCE_MAX)) {
                Ok(line) => line,
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) if heard.elapsed() >= SILENCE_MAX => {
                    return Err(format!("the child hangs: it has printed nothing for {SILENCE_MAX:?}"));
                }
                Err(RecvTimeoutError::Timeout) => {
                    if due.is_some_and(|due| Instant::now() >= due) && !is_killed {
                        // SIGKILL; the handle keeps the process's number from being reused.
                        child.kill().map_err(|error| format!("killing the child: {error}"))?;
                        is_killed = true;
                    }
                    continue;
                }
            };
            let mut words = line.split(' ');
            let number = |word: Option<&str>| word.and_then(|word| word.parse::<u64>().ok()).unwrap_or(0);
            match words.next() {
                Some("operations") => {
                    let operations = number(words.next());
                    if operations > session_operations {
                        heard = Instant::now();
                        tally.operations += operations - session_operations;
                    }
                    session_operations = operations;
                }
                Some("verified") => {
                    heard = Instant::now();
                    tally.verified += 1;
                    tally.lost += number(words.nth(1));
                    session_operations = 0;
                }
                Some("phase") => {
                    let said = words.next().unwrap_or_default();
                    heard = Instant::now();
                    if let Kill::During(name, _, life) = kill
                        && said == name
                        && times_left > 0
                    {
                        times_left -= 1;
                        if times_left == 0 {
                            due = Some(Instant::now() + life);
                        }
                    }
                }
                _ => {}
            }
        }
        Ok(is_killed)
    }

    fn judge(&self, is_killed: bool, status: ExitStatus) -> Result<(), String> {
        let failure = std::fs::read_to_string(self.directory.join(FAILURE));
        if let Ok(failure) = failure
            && !failure.is_empty()
        {
            return Err(failure);
        }
        if status.success() || (is_killed && status.code().is_none()) {
            return Ok(());
        }
        let mut errors = String::new();
        let file = std::fs::File::open(self.directory.join("stderr"));
        let _ = file.map(|mut file| file.read_to_string(&mut errors));
        let what = if status.code() == Some(FAILED) { "found something" } else { "died" };
        Err(format!("the child {what}: {status}: {errors}"))
    }
}

/// The lines that a child prints.
fn listen(child: &mut Child) -> Result<Receiver<String>, String> {
    let output = child.stdout.take().ok_or("the child has no output")?;
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    Ok(lines)
}
