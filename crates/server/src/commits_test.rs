//! Who waits for which commit.

use std::sync::Arc;

use super::{Commits, Joined};
use crate::get_batch::tests::Echo;
use crate::inbox::Inbox;

const SOUND: Echo = Echo { fails: false };

fn inbox() -> Arc<Inbox> {
    Arc::new(Inbox::new(1 << 30).unwrap())
}

#[test]
fn a_round_of_reads_waits_only_beside_writes() {
    let (commits, inbox) = (Commits::default(), inbox());
    assert_eq!(commits.join(false, true, &inbox), Joined::Durable);
    // Another worker has begun to write: the read may have seen that.
    commits.begin();
    assert_eq!(commits.join(false, true, &inbox), Joined::Leads);
    commits.lead(&SOUND).unwrap();
    // It still writes.
    assert_eq!(commits.join(false, false, &inbox), Joined::Waits(2));
    assert_eq!(commits.join(true, true, &inbox), Joined::Leads);
    commits.lead(&SOUND).unwrap();
    assert_eq!(inbox.take_commits().iter().map(|(ticket, _)| *ticket).collect::<Vec<_>>(), [2]);
    assert_eq!(commits.join(false, true, &inbox), Joined::Durable);
}

#[test]
fn what_is_written_during_a_commit_waits_for_the_next() {
    let (commits, writer, reader) = (Commits::default(), inbox(), inbox());
    commits.begin();
    assert_eq!(commits.join(true, true, &writer), Joined::Leads);
    // Commit 1 is under way, and all that was written is in it.
    assert_eq!(commits.join(false, true, &reader), Joined::Waits(1));
    commits.begin();
    assert_eq!(commits.join(true, true, &writer), Joined::Waits(2));
    assert_eq!(commits.join(false, true, &reader), Joined::Waits(2));
    commits.lead(&SOUND).unwrap();
    assert_eq!(reader.take_commits().len(), 1);
    assert!(writer.take_commits().is_empty());
    // The committing thread takes over what is left, before it stops.
    commits.stop();
    commits.run(&SOUND);
    assert_eq!([writer.take_commits(), reader.take_commits()].map(|ended| ended[0].0), [2, 2]);
    assert_eq!(commits.join(false, true, &reader), Joined::Durable);
}

#[test]
fn a_failed_commit_is_that_of_those_who_waited_for_it() {
    let (commits, inbox) = (Commits::default(), inbox());
    commits.begin();
    assert_eq!(commits.join(true, false, &inbox), Joined::Waits(1));
    commits.begin();
    commits.stop();
    commits.run(&Echo { fails: true });
    assert_eq!(commits.join(true, false, &inbox), Joined::Waits(2));
    commits.run(&SOUND);
    let outcomes = inbox.take_commits();
    assert_eq!(outcomes[0], (1, Err("no commit".into())));
    assert_eq!(outcomes[1], (2, Ok(())));
}

#[test]
fn a_store_that_does_not_wait_commits_each_round_with_writes() {
    let commits = Commits::default();
    assert_eq!(commits.commit_at_once(false, &SOUND), None);
    commits.begin();
    assert_eq!(commits.commit_at_once(false, &SOUND), Some(Ok(())));
    assert_eq!(commits.commit_at_once(true, &Echo { fails: true }), Some(Err("no commit".into())));
    assert_eq!(commits.commit_at_once(false, &SOUND), None);
}
