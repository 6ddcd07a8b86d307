//! [`Counters`]: what a worker has done with datagrams.

use std::sync::atomic::{AtomicU64, Ordering};

use alluvium_io::datagrams::FrameCounts;

use crate::metrics::Metric;

/// What is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Figure {
    Bursts,
    Received,
    Requests,
    Replies,
    Short,
    Foreign,
    Malformed,
    Moved,
    Misdirected,
    HandedOver,
    NoRing,
    WithoutCookie,
    Paused,
    Unsent,
    Dropped,
    FramesReceived,
    FramesSent,
    FramesRefused,
}

const LEN: usize = 18;

/// In the order of [`Figure`].
const METRICS: [Metric; LEN] = [
    Metric::counter("datagram_bursts", "Bursts of datagrams that were received together."),
    Metric::counter("datagrams_received", "Datagrams received."),
    Metric::counter("datagram_requests", "Requests in datagrams that were executed."),
    Metric::counter("datagrams_sent", "Datagrams sent, all of them replies."),
    Metric::counter("datagrams_short", "Datagrams dropped because bytes were missing."),
    Metric::counter("datagrams_foreign", "Datagrams dropped because they are of another protocol."),
    Metric::counter(
        "datagrams_malformed",
        "Datagrams dropped because a length or a number in them is wrong.",
    ),
    Metric::counter("datagrams_moved", "Datagrams not executed because the client has another directory."),
    Metric::counter(
        "datagrams_misdirected",
        "Datagrams not executed because another worker owns one of their keys.",
    ),
    Metric::counter(
        "datagram_requests_handed_over",
        "Requests that a worker handed to the owner of the key.",
    ),
    Metric::counter(
        "datagrams_not_handed_over",
        "Datagrams dropped because there was no room to hand their requests over.",
    ),
    Metric::counter(
        "datagrams_without_cookie",
        "Datagrams not executed because their cookie is wrong or too old.",
    ),
    Metric::counter("datagrams_paused", "Datagrams dropped during a pause (CLIENT PAUSE)."),
    Metric::counter("datagrams_unsent", "Replies that the system did not take."),
    Metric::counter("datagrams_dropped", "Datagrams that the system dropped because too many waited."),
    Metric::counter("datagram_frames_received", "Datagrams received in frames, past the network stack."),
    Metric::counter("datagram_frames_sent", "Datagrams sent in frames, past the network stack."),
    Metric::counter("datagram_frames_refused", "Frames dropped because they had no whole datagram."),
];

/// Counters of one worker. Only it writes them. None orders other memory.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Counters([AtomicU64; LEN]);

impl Counters {
    #[inline]
    pub(super) fn add(&self, figure: Figure, number: u64) {
        let counter = &self.0[figure as usize];
        counter.store(counter.load(Ordering::Relaxed).wrapping_add(number), Ordering::Relaxed);
    }

    pub(super) fn set(&self, figure: Figure, number: u64) {
        self.0[figure as usize].store(number, Ordering::Relaxed);
    }

    /// Sets the figures about frames.
    pub(super) fn set_frames(&self, counts: FrameCounts) {
        self.set(Figure::FramesReceived, counts.received);
        self.set(Figure::FramesSent, counts.sent);
        self.set(Figure::FramesRefused, counts.refused);
    }

    #[cfg(test)]
    pub(super) fn get(&self, figure: Figure) -> u64 {
        self.0[figure as usize].load(Ordering::Relaxed)
    }
}

/// The sums over all workers, each with its description.
pub(crate) fn figures<'a>(counters: impl Iterator<Item = &'a Counters> + Clone) -> Vec<(Metric, u64)> {
    let sum = |position: usize| {
        counters
            .clone()
            .map(|counters| counters.0[position].load(Ordering::Relaxed))
            .fold(0, u64::wrapping_add)
    };
    METRICS.iter().enumerate().map(|(position, metric)| (*metric, sum(position))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_figure_has_its_description() {
        let all = [
            (Figure::Bursts, "datagram_bursts"),
            (Figure::Received, "datagrams_received"),
            (Figure::Requests, "datagram_requests"),
            (Figure::Replies, "datagrams_sent"),
            (Figure::Short, "datagrams_short"),
            (Figure::Foreign, "datagrams_foreign"),
            (Figure::Malformed, "datagrams_malformed"),
            (Figure::Moved, "datagrams_moved"),
            (Figure::Misdirected, "datagrams_misdirected"),
            (Figure::HandedOver, "datagram_requests_handed_over"),
            (Figure::NoRing, "datagrams_not_handed_over"),
            (Figure::WithoutCookie, "datagrams_without_cookie"),
            (Figure::Paused, "datagrams_paused"),
            (Figure::Unsent, "datagrams_unsent"),
            (Figure::Dropped, "datagrams_dropped"),
            (Figure::FramesReceived, "datagram_frames_received"),
            (Figure::FramesSent, "datagram_frames_sent"),
            (Figure::FramesRefused, "datagram_frames_refused"),
        ];
        assert_eq!(all.len(), LEN);
        for (figure, name) in all {
            let counters = [Counters::default(), Counters::default()];
            counters[0].add(figure, 2);
            counters[1].add(figure, 3);
            let counted: Vec<&str> = figures(counters.iter())
                .iter()
                .filter(|(_, sum)| *sum == 5)
                .map(|(metric, _)| metric.name)
                .collect();
            assert_eq!(counted, [name]);
        }
    }
}
