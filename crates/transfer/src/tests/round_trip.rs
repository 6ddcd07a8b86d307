//! The reference model of a file is the list of records that were written.

use std::io::Cursor;

use proptest::collection::vec;
use proptest::prelude::*;

use super::read;
use crate::fuzz::written;
use crate::{Format, Record, RecordReader};

/// Bytes that are text, with what CSV and JSON escape, or no text, or none.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let text = proptest::sample::select(vec![
        "plain",
        "",
        ",",
        "\"",
        "\"\"",
        "a,\"b\"\nc",
        "\r\n",
        "\n",
        "\0",
        "\u{feff}",
        " ",
        "ä€😀",
        "\\u0041",
    ]);
    let pieces = vec(text, 0..4).prop_map(|pieces| pieces.concat().into_bytes());
    prop_oneof![pieces, vec(any::<u8>(), 0..40)]
}

fn record() -> impl Strategy<Value = Record> {
    let keyspace = proptest::sample::select(vec!["", "default", "häuser, \"two\""]);
    let numbers = (prop_oneof![Just(0), any::<u32>()], any::<Option<u64>>());
    (keyspace, bytes(), bytes(), numbers).prop_map(|(keyspace, key, value, (flags, expires_at_ms))| Record {
        keyspace: keyspace.to_owned(),
        key,
        value,
        flags,
        expires_at_ms,
    })
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(records in vec(record(), 0..8)) {
        for format in Format::ALL {
            prop_assert_eq!(&read(format, &written(format, &records)).unwrap(), &records, "{}", format);
        }
    }

    #[test]
    fn reading_goes_on_at_every_position(records in vec(record(), 1..8)) {
        for format in Format::ALL {
            let file = written(format, &records);
            let mut reader = RecordReader::new(format, Cursor::new(&file), "items").unwrap();
            for done in 0..=records.len() {
                let position = reader.position();
                prop_assert_eq!(position.records, done as u64);
                let mut other = RecordReader::new(format, Cursor::new(&file), "items").unwrap();
                other.seek(position).unwrap();
                for expected in &records[done..] {
                    let found = other.next_record().unwrap();
                    prop_assert_eq!(found.as_ref(), Some(expected), "{}", format);
                }
                prop_assert_eq!(other.next_record().unwrap(), None);
                let next = reader.next_record().unwrap();
                prop_assert_eq!(next.as_ref(), records.get(done));
            }
        }
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes: Vec<u8>) {
        crate::fuzz::binary(&bytes);
        crate::fuzz::json_lines(&bytes);
        crate::fuzz::csv(&bytes);
    }
}

#[test]
fn text_is_text_and_the_rest_is_base64() {
    let file = crate::fuzz::sample(Format::JsonLines);
    assert_eq!(
        String::from_utf8(file).unwrap(),
        "{\"keyspace\":\"fruit\",\"key\":\"apple\",\"value\":\"red\"}\n\
         {\"keyspace\":\"fruit\",\"key\":\"pear\",\"value_base64\":\"/w==\",\"flags\":5,\
         \"expires_at_ms\":1800000000000}\n"
    );
    let file = crate::fuzz::sample(Format::Csv);
    assert_eq!(
        String::from_utf8(file).unwrap(),
        "keyspace,key,key_base64,value,value_base64,flags,expires_at_ms\n\
         fruit,apple,,red,,,\n\
         fruit,pear,,,/w==,5,1800000000000\n"
    );
}

#[test]
fn files_that_others_wrote_are_read() {
    let plain = |key: &str, value: &str| Record {
        key: key.as_bytes().to_vec(),
        value: value.as_bytes().to_vec(),
        ..Record::default()
    };
    let csv = "\u{feff}value,key\r\nred,apple\r\n\r\n\"gr\r\neen\",pear\r\n";
    assert_eq!(
        read(Format::Csv, csv.as_bytes()).unwrap(),
        [plain("apple", "red"), plain("pear", "gr\r\neen")]
    );
    let json =
        "\n  {\"value\": \"red\", \"key\": \"apple\", \"flags\": null}\r\n\n{\"key\":\"\",\"value\":\"\"}";
    assert_eq!(read(Format::JsonLines, json.as_bytes()).unwrap(), [plain("apple", "red"), plain("", "")]);
}
