//! Requests in memcached's protocols.

use crate::memcached::{Error, Limits, Parser, Progress};

/// Limits small enough that short inputs reach them.
const LIMITS: Limits = Limits { value_bytes_max: 24, line_bytes_max: 110, keys_line_bytes_max: 140 };

/// What a parser made of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// A request, written again.
    Request(Vec<u8>),
    /// A refusal: its error, whether it is silent, and the key to discard.
    Refusal(Error, bool, Option<Vec<u8>>),
}

/// Parses `bytes` as requests, whole and in pieces.
///
/// # Panics
/// When the pieces give other requests than the whole, when more bytes are needed in one piece than promised, or when a
/// request written again is read differently. Never otherwise, whatever the bytes.
pub fn memcached(bytes: &[u8]) {
    let whole = events_in_pieces(bytes, bytes.len().max(1));
    let step = bytes.first().map_or(1, |byte| usize::from(*byte) % 7 + 1);
    assert_eq!(events_in_pieces(bytes, step), whole, "pieces of {step} bytes");
}

/// All events of `bytes` when they come `step` at a time, as a connection would keep them.
pub(crate) fn events_in_pieces(bytes: &[u8], step: usize) -> Vec<Event> {
    let mut parser = Parser::new(LIMITS);
    let mut events = Vec::new();
    let mut buffer: Vec<u8> = Vec::new();
    for piece in bytes.chunks(step) {
        buffer.extend_from_slice(piece);
        loop {
            let consumed = match parser.parse(&buffer) {
                Progress::Complete { consumed, request } => {
                    assert!(consumed <= parser.request_bytes_max());
                    let mut again = Vec::new();
                    request.encode(&mut again);
                    let whole = Progress::Complete { consumed: again.len(), request };
                    assert_eq!(Parser::new(Limits::default()).parse(&again), whole);
                    events.push(Event::Request(again));
                    consumed
                }
                Progress::Refused { consumed, refusal } => {
                    let discard = refusal.discard.map(|key| key.text().to_vec());
                    events.push(Event::Refusal(refusal.error, refusal.is_silent, discard));
                    if refusal.error.closes() {
                        return events;
                    }
                    consumed
                }
                Progress::Skipped { consumed } => consumed,
                Progress::Incomplete { missing_bytes_min } => {
                    assert!(missing_bytes_min > 0);
                    assert!(buffer.len() + missing_bytes_min <= parser.request_bytes_max());
                    break;
                }
            };
            assert!(consumed > 0);
            buffer.drain(..consumed);
        }
    }
    events
}
