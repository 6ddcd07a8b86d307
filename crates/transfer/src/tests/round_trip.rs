//! The reference model of a file is the list of records that were written.

use std::io::Cursor;

use alluvium_base::PrefixRule;
use proptest::collection::vec;
use proptest::prelude::*;

use super::{plain, read};
use crate::fuzz::written;
use crate::{Entry, Format, KeyspaceHead, KeyspaceOrder, Record, RecordReader};

/// Bytes that are text, with characters that CSV and JSON escape, or not text, or empty.
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

fn order() -> impl Strategy<Value = KeyspaceOrder> {
    let rule = prop_oneof![
        any::<u16>().prop_map(|bytes| PrefixRule::Length { bytes }),
        any::<u8>().prop_map(|byte| PrefixRule::Delimiter { byte }),
    ];
    let semi_sorted = |(prefix, lists_prefixes)| KeyspaceOrder::SemiSorted { prefix, lists_prefixes };
    prop_oneof![Just(KeyspaceOrder::Hashed), (rule, any::<bool>()).prop_map(semi_sorted)]
}

fn head() -> impl Strategy<Value = KeyspaceHead> {
    let name = proptest::sample::select(vec!["default", "häuser, \"two\""]);
    let plan = proptest::sample::select(vec![None, Some("{\"levels\":[1.5]}"), Some("")]);
    (name, order(), plan).prop_map(|(name, order, plan)| KeyspaceHead {
        name: name.to_owned(),
        order,
        plan: plan.map(str::to_owned),
    })
}

fn entry() -> impl Strategy<Value = Entry> {
    prop_oneof![3 => record().prop_map(Entry::Record), 1 => head().prop_map(Entry::Keyspace)]
}

/// The entries that the format can hold.
fn carried(format: Format, entries: &[Entry]) -> Vec<Entry> {
    entries.iter().filter(|entry| format.carries_keyspaces() || entry.is_record()).cloned().collect()
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(entries in vec(entry(), 0..8)) {
        for format in Format::ALL {
            let entries = carried(format, &entries);
            prop_assert_eq!(&read(format, &written(format, &entries)).unwrap(), &entries, "{}", format);
        }
    }

    #[test]
    fn reading_goes_on_at_every_position(entries in vec(entry(), 1..8)) {
        for format in Format::ALL {
            let entries = carried(format, &entries);
            let file = written(format, &entries);
            let mut reader = RecordReader::new(format, Cursor::new(&file), "items").unwrap();
            for done in 0..=entries.len() {
                let position = reader.position();
                let records = entries[..done].iter().filter(|entry| entry.is_record()).count();
                prop_assert_eq!(position.records, records as u64);
                let mut other = RecordReader::new(format, Cursor::new(&file), "items").unwrap();
                other.seek(position).unwrap();
                for expected in &entries[done..] {
                    let found = other.next_entry().unwrap();
                    prop_assert_eq!(found.as_ref(), Some(expected), "{}", format);
                }
                prop_assert_eq!(other.next_entry().unwrap(), None);
                let next = reader.next_entry().unwrap();
                prop_assert_eq!(next.as_ref(), entries.get(done));
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
        "{\"keyspace\":\"fruit\",\"order\":\"semi_sorted\",\"prefix\":{\"rule\":\"length\",\"bytes\":1},\
         \"lists_prefixes\":true}\n\
         {\"keyspace\":\"fruit\",\"key\":\"apple\",\"value\":\"red\"}\n\
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
    let csv = "\u{feff}value,key\r\nred,apple\r\n\r\n\"gr\r\neen\",pear\r\n";
    assert_eq!(
        read(Format::Csv, csv.as_bytes()).unwrap(),
        [plain("apple", "red"), plain("pear", "gr\r\neen")]
    );
    let json =
        "\n  {\"value\": \"red\", \"key\": \"apple\", \"flags\": null}\r\n\n{\"key\":\"\",\"value\":\"\"}";
    assert_eq!(read(Format::JsonLines, json.as_bytes()).unwrap(), [plain("apple", "red"), plain("", "")]);
}
