//! Keys and values on the command line and in JSON: as text if they are text, otherwise in hexadecimal.

use serde_json::{Map, Value};

use crate::failure::Failure;

/// The bytes that an argument stands for: its text, or the value of its hexadecimal digits.
pub fn from_argument(argument: &str, is_hex: bool) -> Result<Vec<u8>, Failure> {
    if !is_hex {
        return Ok(argument.as_bytes().to_vec());
    }
    let refuse = || Failure::Usage(format!("{argument:?} is not an even number of hexadecimal digits"));
    if !argument.len().is_multiple_of(2) || !argument.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(refuse());
    }
    (0..argument.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&argument[at..at + 2], 16).map_err(|_| refuse()))
        .collect()
}

/// Hexadecimal digits.
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Adds `bytes` to a JSON object: as `name` if they are UTF-8, otherwise as `name_hex`.
pub fn add_json(object: &mut Map<String, Value>, name: &str, bytes: &[u8]) {
    match std::str::from_utf8(bytes) {
        Ok(text) => object.insert(name.to_owned(), text.into()),
        Err(_) => object.insert(format!("{name}_hex"), to_hex(bytes).into()),
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_there_and_back() {
        let bytes = from_argument("00fFa5", true).unwrap_or_default();
        assert_eq!(bytes, [0, 0xff, 0xa5]);
        assert_eq!(to_hex(&bytes), "00ffa5");
        for wrong in ["0", "zz", "+1", "é"] {
            assert!(matches!(from_argument(wrong, true), Err(Failure::Usage(_))), "{wrong}");
        }
    }

    #[test]
    fn json_names_say_how_bytes_are_written() {
        let mut object = Map::new();
        add_json(&mut object, "key", "päckchen".as_bytes());
        add_json(&mut object, "value", &[0xff]);
        assert_eq!(Value::from(object).to_string(), r#"{"key":"päckchen","value_hex":"ff"}"#);
    }
}
