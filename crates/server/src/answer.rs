//! [`Answer`]: what a client waits for that a thread beside the workers finds out.

use std::sync::Arc;
use std::thread;
use std::time::Duration;

use alluvium_protocol::Reply;

use crate::chores::Chore;
use crate::inbox::Inbox;
use crate::store::{Report, ReportValue};

/// What must be requested for a client before it is answered.
#[derive(Debug)]
pub(crate) enum Wanted {
    /// The number of items of its database.
    Count,
    Chore(Chore),
    /// Time to pass.
    Sleep(Duration),
}

/// A client that waits.
pub(crate) struct Asker {
    pub(crate) inbox: Arc<Inbox>,
    /// Number of the connection at its worker, and of its session: by the time of the answer another connection may
    /// have the first.
    pub(crate) connection: usize,
    pub(crate) session: u64,
}

/// An answer for a client that asked.
pub(crate) struct Answer {
    pub(crate) connection: usize,
    pub(crate) session: u64,
    /// What was found, or an error text with its code.
    pub(crate) outcome: Result<Finding, String>,
}

/// What was found.
#[derive(Clone, Debug)]
pub(crate) enum Finding {
    Count(u64),
    Done,
    Report(Report),
}

impl Asker {
    /// Answers when the time has passed. For debugging only: each such client takes a thread.
    pub(crate) fn answer_after(self, duration: Duration) {
        thread::spawn(move || {
            thread::sleep(duration);
            self.answer(Ok(Finding::Done));
        });
    }

    pub(crate) fn answer(self, outcome: Result<Finding, String>) {
        let Self { inbox, connection, session } = self;
        inbox.answer(Answer { connection, session, outcome });
    }
}

impl Finding {
    pub(crate) fn write(&self, reply: &mut Reply<'_>) {
        match self {
            Self::Count(items) => reply.count(usize::try_from(*items).unwrap_or(usize::MAX)),
            Self::Done => reply.ok(),
            Self::Report(report) => write_report(report, reply),
        }
    }
}

/// Writes a report as a map. Numbers that are not whole are texts, as in Redis' replies of that kind.
pub(crate) fn write_report(report: &Report, reply: &mut Reply<'_>) {
    reply.map(report.len());
    for (name, value) in report {
        reply.bulk(name.as_bytes());
        match value {
            ReportValue::Integer(number) => reply.count(usize::try_from(*number).unwrap_or(usize::MAX)),
            ReportValue::Number(number) => reply.bulk(number.to_string().as_bytes()),
            ReportValue::Text(text) => reply.bulk(text.as_bytes()),
            ReportValue::List(lines) => {
                reply.array(lines.len());
                lines.iter().for_each(|line| reply.bulk(line.as_bytes()));
            }
            ReportValue::Nothing => reply.null(),
        }
    }
}
