//! [`State`]: the tasks of an execution, what they wait for, and which one runs.

use std::panic::Location;
use std::sync::Arc;
use std::time::Duration;

use super::policy::{Decision, Policy};
use super::task::Baton;
use crate::random::Random;

/// A task by the order in which tasks were started.
pub(super) type TaskId = usize;

/// What a task waits for. Objects are told apart by their addresses, which decide nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wait {
    /// A lock's release, or the end of a cell's initialization by another task.
    Release { address: usize, holder: Option<TaskId> },
    /// A notification.
    Notification { address: usize },
    /// The end of a task.
    End { task: TaskId },
    /// A moment.
    Time,
}

#[derive(Debug)]
enum Status {
    Ready,
    Waiting { wait: Wait, until: Option<Duration>, at: &'static Location<'static> },
    Ended,
}

#[derive(Debug)]
struct TaskState {
    name: String,
    status: Status,
    priority: u64,
    /// Whether the last wait timed out.
    timed_out: bool,
    baton: Arc<Baton>,
}

/// A task that takes this many steps in a row while others could run gives way, so that a spinning task makes progress.
const STEPS_IN_A_ROW_MAX: u64 = 3_000;

/// The whole state of an execution except its threads.
#[derive(Debug)]
pub(super) struct State {
    tasks: Vec<TaskState>,
    /// Those that have not ended, in the order of their start.
    live: Vec<TaskId>,
    policy: Policy,
    random: Random,
    pub now: Duration,
    pub steps: u64,
    steps_max: u64,
    in_a_row: u64,
    /// A hash of all decisions.
    pub trace: u64,
    /// Panics of tasks.
    pub panics: Vec<String>,
}

impl State {
    pub fn new(seed: u64, steps_max: u64) -> Self {
        let mut random = Random::new(seed);
        let policy = Policy::random(&mut random);
        Self {
            tasks: Vec::new(),
            live: Vec::new(),
            policy,
            random,
            now: Duration::ZERO,
            steps: 0,
            steps_max,
            in_a_row: 0,
            trace: 0,
            panics: Vec::new(),
        }
    }

    /// A number that follows from the seed.
    pub fn next_random(&mut self) -> u64 {
        self.random.next()
    }

    /// A new task, ready to run.
    pub fn add(&mut self, name: String, baton: Arc<Baton>) -> TaskId {
        let priority = self.policy.first_priority(&mut self.random);
        let id = self.tasks.len();
        self.tasks.push(TaskState { name, status: Status::Ready, priority, timed_out: false, baton });
        self.live.push(id);
        id
    }

    pub fn baton(&self, task: TaskId) -> Arc<Baton> {
        Arc::clone(&self.tasks[task].baton)
    }

    pub fn has_ended(&self, task: TaskId) -> bool {
        matches!(self.tasks[task].status, Status::Ended)
    }

    pub fn all_ended(&self) -> bool {
        self.live.is_empty()
    }

    pub fn timed_out(&self, task: TaskId) -> bool {
        self.tasks[task].timed_out
    }

    pub fn name(&self, task: TaskId) -> &str {
        &self.tasks[task].name
    }

    /// Notes that a task waits.
    pub fn wait(
        &mut self,
        task: TaskId,
        wait: Wait,
        until: Option<Duration>,
        at: &'static Location<'static>,
    ) {
        self.tasks[task].status = Status::Waiting { wait, until, at };
    }

    /// Notes that a task has ended, and wakes the tasks that wait for that.
    pub fn end(&mut self, task: TaskId) {
        self.tasks[task].status = Status::Ended;
        self.live.retain(|&live| live != task);
        self.wake(|wait| wait == Wait::End { task });
    }

    /// Wakes the tasks that wait for the release of the lock at this address.
    pub fn release(&mut self, released: usize) {
        self.wake(|wait| matches!(wait, Wait::Release { address, .. } if address == released));
    }

    /// Wakes all tasks that wait for a notification at this address.
    pub fn notify_all(&mut self, notified: usize) {
        self.wake(|wait| wait == Wait::Notification { address: notified });
    }

    /// Wakes one of the tasks that wait for a notification at this address.
    pub fn notify_one(&mut self, address: usize) {
        self.wake_any(|waited| waited == address);
    }

    /// Wakes one of the tasks that wait for a notification at such an address.
    fn wake_any(&mut self, is_meant: impl Fn(usize) -> bool) {
        let waits = |task: &TaskId| match self.tasks[*task].status {
            Status::Waiting { wait: Wait::Notification { address }, .. } => is_meant(address),
            _ => false,
        };
        let waiting: Vec<TaskId> = self.live.iter().copied().filter(waits).collect();
        if !waiting.is_empty() {
            let chosen = waiting[self.random.below(waiting.len() as u64) as usize];
            self.make_ready(chosen, false);
        }
    }

    fn wake(&mut self, ends: impl Fn(Wait) -> bool) {
        for place in 0..self.live.len() {
            let task = self.live[place];
            if matches!(self.tasks[task].status, Status::Waiting { wait, .. } if ends(wait)) {
                self.make_ready(task, false);
            }
        }
    }

    fn make_ready(&mut self, task: TaskId, timed_out: bool) {
        self.tasks[task].status = Status::Ready;
        self.tasks[task].timed_out = timed_out;
    }

    /// The task that continues after a step of `current`, which may wait or have ended.
    ///
    /// # Errors
    /// The reason why the execution can't continue.
    pub fn choose(&mut self, current: TaskId, gives_way: bool) -> Result<TaskId, String> {
        self.steps += 1;
        if self.steps > self.steps_max {
            return Err(format!("no end after {} steps; {}", self.steps_max, self.describe()));
        }
        if self.policy.ends_timer_early(&mut self.random) {
            self.end_timer();
        }
        if self.policy.wakes_spuriously(&mut self.random) {
            self.wake_any(|_| true);
        }
        let gives_way = gives_way || self.in_a_row >= STEPS_IN_A_ROW_MAX;
        let mut others = self.ready_but(current).count();
        let mut can_stay = matches!(self.tasks[current].status, Status::Ready);
        if others == 0 && (gives_way || !can_stay) {
            self.end_timer();
            others = self.ready_but(current).count();
            can_stay = matches!(self.tasks[current].status, Status::Ready);
        }
        if others == 0 && !can_stay {
            return Err(format!("deadlock: {}", self.describe()));
        }
        let next = match self.policy.decide(gives_way, &mut self.random) {
            _ if others == 0 => current,
            Decision::Stay if can_stay => current,
            Decision::Stay | Decision::AnyOther => {
                let chosen = self.random.below(others as u64) as usize;
                self.ready_but(current).nth(chosen).expect("as many are ready")
            }
            Decision::Highest { lowered } => {
                if let Some(lowered) = lowered {
                    self.tasks[current].priority = lowered;
                }
                let priority = |task: &TaskId| self.tasks[*task].priority;
                self.ready_but(current)
                    .chain(can_stay.then_some(current))
                    .max_by_key(priority)
                    .expect("some can run")
            }
        };
        self.in_a_row = if next == current && !gives_way { self.in_a_row + 1 } else { 0 };
        self.trace = (self.trace ^ next as u64).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23);
        Ok(next)
    }

    fn ready_but(&self, current: TaskId) -> impl Iterator<Item = TaskId> {
        let is_ready =
            move |task: &TaskId| *task != current && matches!(self.tasks[*task].status, Status::Ready);
        self.live.iter().copied().filter(is_ready)
    }

    /// Moves time on to the next timer, and wakes all tasks whose timers have expired by then. Does nothing if there is
    /// no timer.
    fn end_timer(&mut self) {
        let until = |task: &TaskId| match self.tasks[*task].status {
            Status::Waiting { until, .. } => until,
            Status::Ready | Status::Ended => None,
        };
        let Some(next) = self.live.iter().filter_map(until).min() else { return };
        self.now = self.now.max(next);
        for place in 0..self.live.len() {
            let task = self.live[place];
            if matches!(self.tasks[task].status, Status::Waiting { until: Some(until), .. } if until <= self.now)
            {
                self.make_ready(task, true);
            }
        }
    }

    /// Which task waits for what.
    fn describe(&self) -> String {
        let describe = |&task: &TaskId| {
            let TaskState { name, status, .. } = &self.tasks[task];
            let doing = match status {
                Status::Ready => "can run".to_owned(),
                Status::Ended => "has ended".to_owned(),
                Status::Waiting { wait, at, .. } => {
                    let for_what = match wait {
                        Wait::Release { holder: Some(holder), .. } => {
                            format!("a lock that task {holder} ({}) holds", self.name(*holder))
                        }
                        Wait::Release { holder: None, .. } => "a lock".to_owned(),
                        Wait::Notification { .. } => "a notification".to_owned(),
                        Wait::End { task } => format!("the end of task {task} ({})", self.name(*task)),
                        Wait::Time => "its time".to_owned(),
                    };
                    format!("waits for {for_what} at {at}")
                }
            };
            format!("task {task} ({name}) {doing}")
        };
        self.live.iter().map(describe).collect::<Vec<_>>().join("; ")
    }
}
