//! Keeps the worked example of binary files in `docs/format.md` true.

use std::fmt::Write as _;

use crate::Format;
use crate::fuzz::sample;

const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/format.md");

fn dump(bytes: &[u8]) -> String {
    let mut text = String::new();
    for (number, line) in bytes.chunks(16).enumerate() {
        let hex = |half: &[u8]| half.iter().map(|byte| format!("{byte:02x} ")).collect::<String>();
        let (left, right) = line.split_at(line.len().min(8));
        let printable = |&byte: &u8| if (0x20..0x7f).contains(&byte) { char::from(byte) } else { '.' };
        let ascii: String = line.iter().map(printable).collect();
        writeln!(text, "{:08x}  {:<24} {:<24} |{ascii}|", number * 16, hex(left), hex(right)).unwrap();
    }
    writeln!(text, "{:08x}", bytes.len()).unwrap();
    text
}

#[test]
fn the_example_is_what_the_writer_writes() {
    let document = std::fs::read_to_string(DOCUMENT).expect("docs/format.md");
    let (_, section) = document.split_once("\n## Binary export\n").expect("the section");
    let (_, example_on) = section.split_once("```hexdump\n").expect("the example");
    let (example_text, _) = example_on.split_once("```").expect("the end of the example");
    let expected = dump(&sample(Format::Binary));
    assert!(example_text == expected, "the example in docs/format.md should read:\n{expected}");
}
