//! The encoding in a table's directory of the rule by which prefixes are found.

use alluvium_base::prefix_rule::PREFIX_NAME_BYTES_MAX;
use alluvium_base::{PrefixFunction, PrefixName, PrefixRule};

use crate::frame::u32_at;

/// Bytes of a rule: its kind, the length of the function's name or the delimiter, the length of prefixes, the number of
/// pages with names of prefixes plus one, the function's name.
pub(super) const RULE_BYTES: usize = 8 + PREFIX_NAME_BYTES_MAX;

const RULE_LENGTH: u8 = 1;
const RULE_DELIMITER: u8 = 2;
const RULE_FUNCTION: u8 = 3;

/// Encodes a rule of prefixes: all zero without one. `name_pages` is `None` if names are not listed.
pub(super) fn encode_rule(rule: Option<PrefixRule>, name_pages: Option<u32>, out: &mut Vec<u8>) {
    let mut bytes = [0; RULE_BYTES];
    bytes[4..8].copy_from_slice(&name_pages.map_or(0, |pages| pages.saturating_add(1)).to_le_bytes());
    match rule {
        None => {}
        Some(PrefixRule::Length { bytes: length }) => {
            bytes[0] = RULE_LENGTH;
            bytes[2..4].copy_from_slice(&length.to_le_bytes());
        }
        Some(PrefixRule::Delimiter { byte }) => bytes[..2].copy_from_slice(&[RULE_DELIMITER, byte]),
        Some(PrefixRule::Function(function)) => {
            let name = function.name();
            let name = name.as_str().as_bytes();
            bytes[..2].copy_from_slice(&[RULE_FUNCTION, name.len() as u8]);
            bytes[8..8 + name.len()].copy_from_slice(name);
        }
    }
    out.extend_from_slice(&bytes);
}

/// Decodes a rule from [`RULE_BYTES`] bytes, and the number of pages with names of prefixes if these are listed.
/// Returns `None` if the bytes are not a rule.
pub(super) fn decode_rule(bytes: &[u8]) -> Option<(PrefixRule, Option<u32>)> {
    let rule = match bytes[0] {
        RULE_LENGTH => PrefixRule::Length { bytes: u16::from_le_bytes([bytes[2], bytes[3]]) },
        RULE_DELIMITER => PrefixRule::Delimiter { byte: bytes[1] },
        RULE_FUNCTION => {
            let name = std::str::from_utf8(bytes.get(8..8 + usize::from(bytes[1]))?).ok()?;
            PrefixRule::Function(PrefixFunction::named(PrefixName::new(name)?))
        }
        _ => return None,
    };
    Some((rule, u32_at(bytes, 4).checked_sub(1)))
}
