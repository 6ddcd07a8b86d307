//! `alluvium bench store` as a newcomer runs it: what it prints when it is piped, and what it leaves.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::{alluvium, command};
use serde_json::Value;

/// Names in a directory.
fn names(directory: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn it_shows_progress_and_ends_in_a_verdict() {
    let directory = tempfile::tempdir().unwrap();
    let line = "bench store --items 20000 --raw-seconds 0 --dir work --sustain-seconds 3 \
                --phases load,get,miss,update,mixed,scan,sustain";
    let output = alluvium(directory.path(), line);
    let (told, shown) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(0), "{shown}");
    let last = told.lines().last().unwrap();
    assert!(last.starts_with("good: all ") || last.starts_with("NOT as predicted: "), "{told}");
    assert!(last.contains(" answers were right"), "{told}");
    let verdict: Vec<&str> = told.lines().skip_while(|line| !line.starts_with("verdict ")).collect();
    for (phase, figure) in
        [("load", "bytes of memory per item"), ("miss", "reads per get"), ("scan", "answers verified")]
    {
        let in_phase = verdict.iter().position(|line| line.trim_start().starts_with(phase)).unwrap();
        assert!(verdict[in_phase..].iter().any(|line| line.contains(figure)), "{phase}: {told}");
    }
    // A line for each phase, and lines while a phase lasts.
    assert!(shown.contains("load: done after ") && shown.contains("/s\n"), "{shown}");
    let meanwhile = |line: &str| line.starts_with("sustain: ") && line.contains(" s of 3 s, ");
    assert!(shown.lines().any(meanwhile), "{shown}");
    assert!(shown.lines().count() < 100, "{shown}");
    assert!(names(directory.path()).is_empty(), "it leaves what it made: {:?}", names(directory.path()));
}

#[test]
fn json_has_no_verdict_in_words() {
    let directory = tempfile::tempdir().unwrap();
    let output = alluvium(
        directory.path(),
        "bench store --json --items 3000 --raw-seconds 0 --dir . --phases load,get",
    );
    let told = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<Value> = told.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 2);
    // Gets that sleep, and gets that poll.
    assert!(lines[1]["metrics"]["answers_verified"].as_u64() >= Some(6000));
}

#[test]
fn interrupted_it_removes_what_it_made_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let run = |line: &str| {
        std::fs::create_dir_all(directory.path().join("mine")).unwrap();
        std::fs::write(directory.path().join("mine/file"), "bytes").unwrap();
        let mut bench =
            command(directory.path(), line).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(bench.stderr.take().unwrap());
        let mut line = String::new();
        while !line.starts_with("sustain: ") {
            line.clear();
            assert!(lines.read_line(&mut line).unwrap() > 0, "it ended before it was interrupted");
        }
        assert!(directory.path().join("mine/alluvium-bench-store").exists());
        let kill = Command::new("kill").args(["-INT", &bench.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let mut rest = String::new();
        lines.read_to_string(&mut rest).unwrap();
        (bench.wait().unwrap().code(), rest)
    };
    let line = "bench store --items 3000 --raw-seconds 0 --dir mine --sustain-seconds 600 --phases";
    let (code, rest) = run(&format!("{line} load,sustain"));
    assert_eq!(code, Some(1), "{rest}");
    assert!(rest.contains("interrupted; removed mine/alluvium-bench-store"), "{rest}");
    assert_eq!(rest.matches("alluvium: ").count(), 1, "{rest}");
    assert_eq!(names(&directory.path().join("mine")), ["file"]);

    // What an earlier run has kept was not made by the one that is interrupted.
    let kept = "bench store --items 3000 --dir mine --phases load --keep";
    assert!(alluvium(directory.path(), kept).status.success());
    let (code, rest) = run(&format!("{line} sustain"));
    assert_eq!(code, Some(1), "{rest}");
    assert!(rest.contains("alluvium: interrupted") && !rest.contains("removed"), "{rest}");
    assert_eq!(names(&directory.path().join("mine")), ["alluvium-bench-store", "file"]);
}

#[test]
fn it_works_below_target_or_the_temporary_directory() {
    let directory = tempfile::tempdir().unwrap();
    let help = |temporary: &Path| {
        let output =
            command(directory.path(), "bench store --help").env("TMPDIR", temporary).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    };
    let temporary = directory.path().join("temporary");
    let line = format!("[default: {}]", temporary.display());
    assert!(help(&temporary).contains(&line), "{}", help(&temporary));
    std::fs::create_dir(directory.path().join("target")).unwrap();
    assert!(help(&temporary).contains(&line), "another program's target is not Cargo's");
    std::fs::write(directory.path().join("target/CACHEDIR.TAG"), "").unwrap();
    assert!(help(&temporary).contains("[default: target]"));
}
