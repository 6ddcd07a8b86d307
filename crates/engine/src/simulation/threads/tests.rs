//! Short runs of the threaded simulation.

use super::*;

#[test]
fn seeds_find_nothing() {
    for seed in 0..40 {
        if let Err(failure) = run(seed, &Options::default()) {
            panic!("seed {seed}: {failure}");
        }
    }
}

#[test]
fn seeds_that_once_failed() {
    for seed in [2_053_305, 2_068_628, 2_073_520, 2_080_220] {
        if let Err(failure) = run(seed, &Options::default()) {
            panic!("seed {seed}: {failure}");
        }
    }
}

#[test]
fn a_seed_replays_exactly() {
    for seed in 0..4 {
        let first = run(seed, &Options::default());
        assert_eq!(first, run(seed, &Options::default()));
    }
}

#[test]
fn planted_races_are_found() {
    // Bugs that few seeds find; `cargo xtask simulate --planted-bug all` runs the others.
    for bug in [
        "clear-without-epoch",
        "ingest-without-barrier",
        "update-without-witness",
        "reader-without-pin",
        "hold-what-is-gone",
    ] {
        let options = Options { planted_bug: Some(bug.to_owned()) };
        // Multiples of four have a follower of the log.
        let mut seeds = (0..200).chain((200..1_200).step_by(4));
        assert!(seeds.any(|seed| run(seed, &options).is_err()), "{bug} escaped");
    }
}
