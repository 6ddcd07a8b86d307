//! The list of all parsers of untrusted bytes.

use alluvium_base::varint;
use alluvium_transfer::Format;

use super::{bucketed, index};

/// A parser under test.
pub struct Target {
    /// Its name, for `--target`.
    pub name: &'static str,
    /// Parses the input. Any outcome except a panic is right.
    pub run: fn(&[u8]),
    /// Valid inputs to start from.
    pub samples: fn() -> Vec<Vec<u8>>,
}

/// All parsers.
pub fn targets() -> Vec<Target> {
    let mut targets = vec![
        Target { name: "varint", run: read_varint, samples: varints },
        Target { name: "resp", run: alluvium_protocol::fuzz::resp, samples: requests_and_replies },
        Target { name: "memcached", run: alluvium_protocol::fuzz::memcached, samples: memcached_requests },
        Target {
            name: "datagram",
            run: alluvium_protocol::fuzz::datagram,
            samples: alluvium_protocol::fuzz::datagram_samples,
        },
        Target {
            name: "frame",
            run: alluvium_io::datagrams::fuzz_frame,
            samples: alluvium_io::datagrams::fuzz_frame_samples,
        },
        Target {
            name: "dump",
            run: alluvium_protocol::fuzz::dump,
            samples: alluvium_protocol::fuzz::dump_samples,
        },
        Target {
            name: "transfer-binary",
            run: alluvium_transfer::fuzz::binary,
            samples: alluvium_transfer::fuzz::binary_samples,
        },
        Target {
            name: "transfer-jsonl",
            run: alluvium_transfer::fuzz::json_lines,
            samples: || vec![alluvium_transfer::fuzz::sample(Format::JsonLines)],
        },
        Target {
            name: "transfer-csv",
            run: alluvium_transfer::fuzz::csv,
            samples: || vec![alluvium_transfer::fuzz::sample(Format::Csv)],
        },
        Target {
            name: "item",
            run: alluvium::fuzz::item,
            samples: || vec![b"\x00\x03\x05keyvalue".to_vec()],
        },
        Target {
            name: "log-record",
            run: alluvium::fuzz::log_record,
            samples: || vec![alluvium::fuzz::log_record_sample()],
        },
        Target {
            name: "log-salvage",
            run: alluvium::fuzz::log_salvage,
            samples: || {
                vec![alluvium::fuzz::log_record_sample().repeat(3), alluvium::fuzz::log_salvage_sample()]
            },
        },
        Target { name: "log-header", run: alluvium::fuzz::log_header, samples: Vec::new },
        Target {
            name: "manifest",
            run: alluvium::fuzz::manifest,
            samples: || vec![alluvium::fuzz::manifest_sample()],
        },
        Target { name: "blob", run: alluvium::fuzz::blob, samples: alluvium::fuzz::blob_samples },
        Target {
            name: "device",
            run: alluvium::fuzz::device,
            samples: || vec![alluvium::fuzz::device_sample()],
        },
        Target { name: "build", run: alluvium::fuzz::build, samples: alluvium::fuzz::build_samples },
        Target {
            name: "young-directory",
            run: alluvium::fuzz::young_directory,
            samples: || vec![alluvium::fuzz::young_directory_sample()],
        },
        Target {
            name: "chain-directory",
            run: alluvium::fuzz::chain_directory,
            samples: alluvium::fuzz::chain_directory_samples,
        },
        Target {
            name: "cache-header",
            run: alluvium_cache::fuzz::header,
            samples: || vec![alluvium_cache::fuzz::header_sample()],
        },
        Target { name: "cache-item", run: alluvium_cache::fuzz::item, samples: Vec::new },
        Target {
            name: "cache-block",
            run: alluvium_cache::fuzz::block,
            samples: || vec![alluvium_cache::fuzz::block_sample()],
        },
        Target {
            name: "cache-content",
            run: alluvium_cache::fuzz::content,
            samples: || vec![alluvium_cache::fuzz::content_sample()],
        },
        Target { name: "page", run: alluvium::fuzz::page, samples: Vec::new },
        Target { name: "table-header", run: alluvium::fuzz::table_header, samples: Vec::new },
        Target { name: "table-trailer", run: alluvium::fuzz::trailer, samples: Vec::new },
        Target { name: "table-directory", run: alluvium::fuzz::directory, samples: Vec::new },
        Target { name: "table-index", run: alluvium::fuzz::index, samples: Vec::new },
    ];
    targets.extend(index::targets());
    targets.extend(bucketed::targets());
    targets
}

/// A target that must fail: shows that the driver finds failures.
pub fn canary() -> Target {
    Target {
        name: "canary",
        run: panic_on_two_letters,
        samples: || vec![b"a canary sings in a mine".to_vec()],
    }
}

fn panic_on_two_letters(bytes: &[u8]) {
    assert!(!(bytes.first() == Some(&b'a') && bytes.last().is_some_and(|&byte| byte > b'x')), "canary");
}

fn read_varint(bytes: &[u8]) {
    if let Some((value, len)) = varint::read(bytes) {
        assert!(len <= bytes.len().min(varint::LEN_MAX));
        assert!(varint::encoded_len(value) <= len);
    }
}

fn varints() -> Vec<Vec<u8>> {
    [0, 127, 128, 1 << 20, u64::MAX]
        .into_iter()
        .map(|value| {
            let mut bytes = Vec::new();
            varint::write(value, &mut bytes);
            bytes
        })
        .collect()
}

fn requests_and_replies() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 8] = [
        b"*1\r\n$4\r\nPING\r\n",
        b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$2\r\nvv\r\n*2\r\n$3\r\nGET\r\n$1\r\nk\r\n",
        b"SET key \"a \\x00 value\"\r\n",
        b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n",
        b"+OK\r\n-ERR no\r\n:17\r\n$-1\r\n_\r\n",
        b"%1\r\n$1\r\na\r\n:1\r\n",
        b"*2\r\n*1\r\n:1\r\n$3\r\nabc\r\n",
        b",1.5\r\n#t\r\n(123456789012345678901234567890\r\n",
    ];
    texts.iter().map(|text| text.to_vec()).collect()
}

fn memcached_requests() -> Vec<Vec<u8>> {
    let texts: [&[u8]; 10] = [
        b"get a b c\r\ngats 100 a\r\n",
        b"set key 5 60 5\r\nvalue\r\nappend key 0 0 1 noreply\r\nx\r\n",
        b"cas key 0 -1 2 17 noreply\r\nvv\r\ndelete key 0 noreply\r\n",
        b"set key 0 0 25\r\n0123456789012345678901234\r\nmn\r\n",
        b"incr n 18446744073709551615\r\ntouch key 30\r\nflush_all 10 noreply\r\n",
        b"stats items\r\nstats cachedump 1 10\r\nstats detail dump\r\nverbosity 1\r\nquit\r\n",
        b"mg Zm9v b k q v t s c f h l u Oopaque N30 T60 R10 E5\r\nmn\r\n",
        b"ms key 4 MA C7 F5 T30 I c k O1 s N9\r\na\r\nb\r\n",
        b"md key q I T30 C9 x E8\r\nma key N0 J5 D2 M- v t\r\nme key b\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n",
    ];
    texts.iter().map(|text| text.to_vec()).collect()
}
