//! `LCS key1 key2 [LEN] [IDX] [MINMATCHLEN length] [WITHMATCHLEN]`

use super::{Command, Context, Failure};
use crate::store::Found;

pub(super) const COMMAND: Command = Command {
    name: "lcs",
    arity: -3,
    flags: &["readonly"],
    keys: (1, 2, 1),
    group: "string",
    since: "7.0.0",
    complexity: "O(n × m) in the lengths of the two values",
    summary: "Find the longest common subsequence of two values",
    syntax: "key1 key2 [LEN] [IDX] [MINMATCHLEN len] [WITHMATCHLEN]",
    handler: lcs,
    ..Command::DEFAULT
};

#[derive(Default)]
struct Options {
    length_only: bool,
    positions: bool,
    match_min: usize,
    with_lengths: bool,
}

fn options(context: &Context<'_>) -> Result<Options, Failure> {
    let mut options = Options::default();
    let mut at = 3;
    while at < context.arguments.len() {
        if context.is_word(at, "idx") {
            options.positions = true;
        } else if context.is_word(at, "len") {
            options.length_only = true;
        } else if context.is_word(at, "withmatchlen") {
            options.with_lengths = true;
        } else if context.is_word(at, "minmatchlen") && at + 1 < context.arguments.len() {
            at += 1;
            options.match_min = usize::try_from(context.integer(at)?).unwrap_or(0);
        } else {
            return Err(Failure::SYNTAX);
        }
        at += 1;
    }
    if options.length_only && options.positions {
        let text = "ERR If you want both the length and indexes, please just use IDX.";
        return Err(Failure::Fixed(text));
    }
    Ok(options)
}

fn lcs(context: &mut Context<'_>) -> Result<(), Failure> {
    let mut values = [Vec::new(), Vec::new()];
    let mut are_strings = true;
    let (keys, number) = ([&context.arguments[1], &context.arguments[2]], context.session.database);
    context.databases.at_one_moment(&mut |inside| {
        (values, are_strings) = ([Vec::new(), Vec::new()], true);
        inside.database(number).get_many(&keys, &mut |position, found| match found.map(Found::string) {
            None => {}
            Some(Some(value)) => values[position] = value.to_vec(),
            Some(None) => are_strings = false,
        })
    })?;
    if !are_strings {
        return Err(Failure::Fixed("ERR The specified keys must contain string values"));
    }
    let options = options(context)?;
    let [a, b] = &values;
    let table_bytes = (a.len() + 1).saturating_mul(b.len() + 1).saturating_mul(size_of::<u32>());
    if table_bytes > context.shared.options.limits.bulk_bytes_max {
        return Err(Failure::Fixed(
            "ERR Insufficient memory, transient memory for LCS exceeds proto-max-bulk-len",
        ));
    }
    let table = Table::new(a, b);
    let length = table.length(a.len(), b.len());
    let reply = &mut context.reply;
    if options.length_only {
        reply.integer(length.into());
        return Ok(());
    }
    let matches = table.matches(a, b);
    if !options.positions {
        let mut common = Vec::with_capacity(length as usize);
        matches.iter().rev().for_each(|found| common.extend_from_slice(&a[found.a..found.a + found.bytes]));
        reply.bulk(&common);
        return Ok(());
    }
    let shown = matches.iter().filter(|found| found.bytes >= options.match_min);
    reply.map(2);
    reply.bulk(b"matches");
    reply.array(shown.clone().count());
    for found in shown {
        reply.array(2 + usize::from(options.with_lengths));
        for start in [found.a, found.b] {
            reply.array(2);
            reply.count(start);
            reply.count(start + found.bytes - 1);
        }
        if options.with_lengths {
            reply.count(found.bytes);
        }
    }
    reply.bulk(b"len");
    reply.integer(length.into());
    Ok(())
}

/// A part that the values have in common: where it starts in either.
struct Match {
    a: usize,
    b: usize,
    bytes: usize,
}

/// The lengths of the longest common subsequences of all beginnings of two values.
struct Table {
    lengths: Vec<u32>,
    width: usize,
}

impl Table {
    fn new(a: &[u8], b: &[u8]) -> Self {
        let width = b.len() + 1;
        let mut lengths = vec![0; (a.len() + 1) * width];
        for (row, byte) in a.iter().enumerate() {
            let (above, below) = lengths[row * width..].split_at_mut(width);
            for (column, other) in b.iter().enumerate() {
                below[column + 1] =
                    if byte == other { above[column] + 1 } else { above[column + 1].max(below[column]) };
            }
        }
        Self { lengths, width }
    }

    fn length(&self, a: usize, b: usize) -> u32 {
        self.lengths[a * self.width + b]
    }

    /// The parts of one longest common subsequence, the last one first. Which one, and how it is cut, is as in Redis.
    fn matches(&self, a: &[u8], b: &[u8]) -> Vec<Match> {
        let mut matches: Vec<Match> = Vec::new();
        let (mut row, mut column) = (a.len(), b.len());
        let mut is_open = false;
        while row > 0 && column > 0 {
            if a[row - 1] == b[column - 1] {
                (row, column) = (row - 1, column - 1);
                match matches.last_mut() {
                    Some(last) if is_open => {
                        *last = Match { a: row, b: column, bytes: last.bytes + 1 };
                    }
                    _ => matches.push(Match { a: row, b: column, bytes: 1 }),
                }
                is_open = true;
            } else {
                if self.length(row - 1, column) > self.length(row, column - 1) {
                    row -= 1;
                } else {
                    column -= 1;
                }
                is_open = false;
            }
        }
        matches
    }
}
