//! What files say about keyspaces, and how files of other programs begin and end.

use alluvium_base::checksum::checksum64;
use alluvium_base::varint;

use super::{plain, read};
use crate::fuzz::{sample, written};
use crate::{Entry, Format, KeyspaceHead, KeyspaceOrder, RecordWriter};

#[test]
fn files_of_version_1_are_read() {
    // As the first version wrote it: no frame of a keyspace, and the numbers of frames are those of records.
    let mut file = sample(Format::Binary)[..24].to_vec();
    file[8] = 1;
    let checksum = checksum64(&file[..16], 0);
    file[16..24].copy_from_slice(&checksum.to_le_bytes());
    let payloads: [&[u8]; 3] = [b"\x01\0\0\x01\x01ab", b"\x01\0\0\x01\x01cd", b"\0"];
    for (payload, number) in payloads.into_iter().zip(0..) {
        varint::write(payload.len() as u64, &mut file);
        file.extend_from_slice(&checksum64(payload, number).to_le_bytes());
        file.extend_from_slice(payload);
    }
    assert_eq!(read(Format::Binary, &file).unwrap(), [plain("a", "b"), plain("c", "d")]);
}

#[test]
fn heads_have_limits() {
    let head = |name: &str, plan: &str| KeyspaceHead {
        name: name.to_owned(),
        order: KeyspaceOrder::Hashed,
        plan: Some(plan.to_owned()),
    };
    // Escapes take six bytes each.
    let longest = head(&"n".repeat(255), &"\u{1}".repeat(32 << 10));
    for format in [Format::JsonLines, Format::Binary] {
        let entries = [Entry::Keyspace(longest.clone())];
        assert_eq!(read(format, &written(format, &entries)).unwrap(), entries);
        for longer in [head(&"n".repeat(256), ""), head("n", &"p".repeat((32 << 10) + 1))] {
            let mut writer = RecordWriter::new(format, Vec::new()).unwrap();
            assert!(writer.write_keyspace(&longer).is_err());
        }
    }
    let longer = format!("{{\"keyspace\":\"{}\",\"order\":\"hashed\"}}\n", "n".repeat(256));
    let error = read(Format::JsonLines, longer.as_bytes()).unwrap_err().to_string();
    assert!(error.contains("line 1: expected a keyspace's name of at most 255 bytes"), "{error}");
    assert!(RecordWriter::new(Format::Csv, Vec::new()).unwrap().write_keyspace(&longest).is_err());
}

#[test]
fn a_byte_order_mark_is_passed() {
    let json = "{\"key\":\"a\",\"value\":\"b\"}\n";
    for (format, text) in [(Format::JsonLines, json), (Format::Csv, "key,value\na,b\n")] {
        let marked = format!("\u{feff}{text}");
        assert_eq!(read(format, marked.as_bytes()).unwrap(), [plain("a", "b")], "{format}");
        // However few bytes are read at a time.
        let one_by_one = std::io::BufReader::with_capacity(1, marked.as_bytes());
        let mut reader = crate::RecordReader::new(format, one_by_one, "items").unwrap();
        assert_eq!(reader.next_entry().unwrap(), Some(plain("a", "b")), "{format}");
        assert_eq!(reader.next_entry().unwrap(), None);
        assert_eq!(reader.position().offset, marked.len() as u64, "{format}");
        let half = [&marked.as_bytes()[..2], text.as_bytes()].concat();
        let error = read(format, &half).unwrap_err().to_string();
        assert!(error.contains("line 1: expected text in UTF-8"), "{error}");
    }
    assert_eq!(read(Format::JsonLines, "\u{feff}".as_bytes()).unwrap(), []);
    let twice = format!("{json}\u{feff}{json}");
    assert!(read(Format::JsonLines, twice.as_bytes()).is_err());
}

#[test]
fn the_last_row_is_read_as_the_others_are() {
    for (row, value) in [
        ("5\" pipe,b", "b"),
        ("5\" pipe,b\"", "b\""),
        ("5\" pipe,\"b\"", "b"),
        ("5\" pipe,\"b\"\"\"", "b\""),
        ("5\" pipe,\"b\" c\"", "b c\""),
        ("5\" pipe,", ""),
    ] {
        for end in ["", "\n", "\r\n", "\r", "\n\n"] {
            let file = format!("key,value\n{row}{end}");
            assert_eq!(read(Format::Csv, file.as_bytes()).unwrap(), [plain("5\" pipe", value)], "{file:?}");
        }
    }
}
