//! Exact bytes of replies, as memcached 1.6.18 writes them.

use super::*;

fn request(line: &str) -> Request<'_> {
    match Parser::new(Limits::default()).parse(line.as_bytes()) {
        Progress::Complete { request, .. } => request,
        other => panic!("{line:?}: {other:?}"),
    }
}

/// What `write` appends.
fn written(write: impl FnOnce(&mut Reply<'_>)) -> String {
    let mut out = Vec::new();
    write(&mut Reply::new(&mut out));
    String::from_utf8(out).expect("text")
}

#[test]
fn classic_replies() {
    let key = Key::from_text(b"key").unwrap();
    assert_eq!(
        written(|reply| {
            reply.value(key, 7, b"value", None);
            reply.value(key, u32::MAX, b"", Some(u64::MAX));
            reply.value_header(key, 0, 1 << 20, Some(1));
            reply.end();
        }),
        "VALUE key 7 5\r\nvalue\r\nVALUE key 4294967295 0 18446744073709551615\r\n\r\nVALUE key 0 1048576 1\r\nEND\r\n"
    );
    let answers = [
        Answer::Stored,
        Answer::NotStored,
        Answer::Exists,
        Answer::NotFound,
        Answer::Deleted,
        Answer::Touched,
        Answer::Ok,
        Answer::Reset,
    ];
    assert_eq!(
        written(|reply| answers.iter().for_each(|answer| reply.answer(*answer))),
        "STORED\r\nNOT_STORED\r\nEXISTS\r\nNOT_FOUND\r\nDELETED\r\nTOUCHED\r\nOK\r\nRESET\r\n"
    );
    assert_eq!(
        written(|reply| {
            reply.number(u64::MAX);
            reply.statistic("pid", "17");
            reply.statistic("note", "two\r\nlines");
            reply.version("1.6.18");
            reply.error(Error::NonNumeric);
            reply.error(Error::ShutdownDisabled);
            reply.error(Error::Http);
            reply.server_error("disk\nfull");
        }),
        "18446744073709551615\r\nSTAT pid 17\r\nSTAT note two  lines\r\nVERSION 1.6.18\r\n\
         CLIENT_ERROR cannot increment or decrement non-numeric value\r\nERROR: shutdown not enabled\r\n\
         SERVER_ERROR disk full\r\n"
    );
}

#[test]
fn a_reply_can_be_taken_back() {
    let text = written(|reply| {
        reply.end();
        let bytes = reply.buffered_bytes();
        reply.version("x");
        reply.rewind(bytes);
    });
    assert_eq!(text, "END\r\n");
}

#[test]
fn hits_return_what_was_asked_for_in_order() {
    let item = ItemFacts {
        cas: 9,
        client_flags: 5,
        value_bytes: 3,
        ttl_s: Some(30),
        new_ttl_s: Some(100),
        was_hit: true,
        idle_s: 4,
        ..ItemFacts::default()
    };
    for (line, text) in [
        ("mg key\n", "HD\r\n"),
        ("mg key v\n", "VA 3\r\nabc\r\n"),
        ("mg key q v\n", "VA 3\r\nabc\r\n"),
        ("mg key s v t f k Ox h l c\n", "VA 3 s3 t30 f5 kkey Ox h1 l4 c9\r\nabc\r\n"),
        ("mg key t T100\n", "HD t30\r\n"),
        ("mg key T100 t\n", "HD t100\r\n"),
        ("mg key N100 t\n", "HD t30\r\n"),
        ("mg key O k\n", "HD O kkey\r\n"),
        ("mg key u q I C1 D1 J1 Ms F1 Px Ly E5 x\n", "HD\r\n"),
        ("mg Zm9vYg== b k\n", "HD kZm9vYg== b\r\n"),
        ("mg Zm-9vYg== k b c\n", "HD kZm9vYg== b c9\r\n"),
    ] {
        let Request::MetaGet(get) = request(line) else { panic!("{line}") };
        assert_eq!(written(|reply| reply.meta_hit(&get, &item, b"abc")), text, "{line}");
    }
    let Request::MetaGet(get) = request("mg key t h s\n") else { panic!() };
    let item = ItemFacts { has_winner: true, is_stale: true, wins: true, ..ItemFacts::default() };
    assert_eq!(written(|reply| reply.meta_hit(&get, &item, b"")), "HD t-1 h0 s0 Z X W\r\n");
    let item = ItemFacts { is_new: true, new_ttl_s: Some(30), wins: true, ..ItemFacts::default() };
    for (line, text) in [("mg key t N30\n", "HD t-1 W\r\n"), ("mg key N30 t\n", "HD t30 W\r\n")] {
        let Request::MetaGet(get) = request(line) else { panic!("{line}") };
        assert_eq!(written(|reply| reply.meta_hit(&get, &item, b"")), text, "{line}");
    }
}

#[test]
fn quiet_requests_hide_the_usual_outcome_only() {
    use Outcome::{Done, Exists, NotFound, NotStored};
    for (line, shown) in [("mg key k O1\n", "EN kkey O1\r\n"), ("mg key k q O1\n", "")] {
        let Request::MetaGet(get) = request(line) else { panic!("{line}") };
        assert_eq!(written(|reply| reply.meta_miss(&get)), shown, "{line}");
    }
    for (outcome, code, is_hidden) in
        [(Done, "HD", true), (NotStored, "NS", false), (Exists, "EX", false), (NotFound, "NF", false)]
    {
        for quiet in ["", " q"] {
            let shown = |text: String| if is_hidden && !quiet.is_empty() { String::new() } else { text };
            let line = format!("ms key 1 k c Oa s{quiet}\r\nx\r\n");
            let Request::MetaStore(set) = request(&line) else { panic!("{line}") };
            let text = written(|reply| reply.meta_stored(&set, outcome, 8, 1));
            assert_eq!(text, shown(format!("{code} kkey c8 Oa s1\r\n")), "{line}");
            let line = format!("md key O k{quiet} T5\n");
            let Request::MetaDelete(delete) = request(&line) else { panic!("{line}") };
            let text = written(|reply| reply.meta_deleted(&delete, outcome));
            assert_eq!(text, shown(format!("{code} O kkey\r\n")), "{line}");
            if outcome != Done {
                let line = format!("ma key k v t c{quiet}\n");
                let Request::MetaArithmetic(count) = request(&line) else { panic!("{line}") };
                let text = written(|reply| reply.meta_not_counted(&count, outcome));
                assert_eq!(text, format!("{code} kkey\r\n"), "{line}");
            }
        }
    }
    for (line, is_new, shown) in [
        ("ma key q\n", false, ""),
        ("ma key q v\n", false, ""),
        ("ma key q N0\n", true, "HD\r\n"),
        ("ma key\n", false, "HD\r\n"),
        ("ma key v\n", false, "VA 2\r\n17\r\n"),
        ("ma key T60 t v c O1 k\n", false, "VA 2 t60 c3 O1 kkey\r\n17\r\n"),
        ("ma key t c N0\n", true, "HD t9 c3\r\n"),
    ] {
        let Request::MetaArithmetic(count) = request(line) else { panic!("{line}") };
        let item = CountFacts { number: 17, cas: 3, ttl_s: Some(9), new_ttl_s: Some(60), is_new };
        assert_eq!(written(|reply| reply.meta_counted(&count, &item)), shown, "{line}");
    }
}

#[test]
fn one_client_wins() {
    let stored = ItemFacts { ttl_s: Some(50), new_ttl_s: Some(50), ..ItemFacts::default() };
    let touched = ItemFacts { new_ttl_s: Some(500), ..stored };
    for (line, item, recache_ttl_s, wins) in [
        ("mg key\n", stored, None, false),
        ("mg key R30\n", stored, Some(30), false),
        ("mg key R50\n", stored, Some(50), false),
        ("mg key R51\n", stored, Some(51), true),
        ("mg key R51\n", ItemFacts { has_winner: true, ..stored }, Some(51), false),
        ("mg key R0\n", stored, None, false),
        ("mg key R51\n", ItemFacts::default(), Some(51), false),
        ("mg key R51 T500\n", touched, Some(51), true),
        ("mg key T500 R51\n", touched, Some(51), false),
        ("mg key\n", ItemFacts { is_stale: true, ..stored }, None, true),
        ("mg key\n", ItemFacts { is_stale: true, has_winner: true, ..stored }, None, false),
        ("mg key N30\n", ItemFacts { is_new: true, ..stored }, None, true),
    ] {
        let Request::MetaGet(get) = request(line) else { panic!("{line}") };
        assert_eq!(get.wins(&item, recache_ttl_s), wins, "{line} {item:?}");
    }
}

#[test]
fn debug_replies() {
    let item = DebugFacts { ttl_s: Some(60), idle_s: 3, cas: 7, was_hit: true, class: 1, bytes: 63 };
    assert_eq!(
        written(|reply| {
            reply.meta_debug(Key::from_text(b"key").unwrap(), &item);
            reply.meta_debug(Key::from_base64(b"Zm9v").unwrap(), &DebugFacts::default());
            reply.meta_debug_miss();
            reply.meta_no_operation();
        }),
        "ME key exp=60 la=3 cas=7 fetch=yes cls=1 size=63\r\n\
         ME Zm9v exp=-1 la=0 cas=0 fetch=no cls=0 size=0\r\nEN\r\nMN\r\n"
    );
}
