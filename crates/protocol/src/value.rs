//! Replies as a client reads them.

use crate::integer;

/// A decoded reply, for clients and tests. Owns its bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// `+…`
    Simple(Vec<u8>),
    /// `-…`
    Error(Vec<u8>),
    /// `:…`
    Integer(i64),
    /// `$…`
    Bulk(Vec<u8>),
    /// `=…`, without the kind of text in front
    Verbatim(Vec<u8>),
    /// `$-1`, `*-1` and `_`
    Null,
    /// `*…`
    Array(Vec<Value>),
    /// `~…`
    Set(Vec<Value>),
    /// `>…`: a message that is no reply
    Push(Vec<Value>),
    /// `%…`
    Map(Vec<(Value, Value)>),
}

/// Maximum depth of nested aggregates that [`Value::decode`] follows; deeper ones are refused, which bounds its
/// recursion.
const DEPTH_MAX: usize = 32;

impl Value {
    /// Decodes the reply at the front of `bytes`. Returns the value and its length in bytes, or `None` if it is
    /// incomplete.
    ///
    /// # Errors
    /// A description of the first part that is not a reply, or that is nested deeper than 32 levels.
    pub fn decode(bytes: &[u8]) -> Result<Option<(Value, usize)>, String> {
        let mut reader = Reader { bytes, position: 0 };
        Ok(reader.value(0)?.map(|value| (value, reader.position)))
    }
}

struct Reader<'a> {
    bytes: &'a [u8],
    position: usize,
}

impl<'a> Reader<'a> {
    fn value(&mut self, depth: usize) -> Result<Option<Value>, String> {
        if depth > DEPTH_MAX {
            return Err(format!("reply nested deeper than {DEPTH_MAX} levels"));
        }
        let Some((kind, text)) = self.line()? else { return Ok(None) };
        Ok(match kind {
            b'+' => Some(Value::Simple(text.to_vec())),
            b'-' => Some(Value::Error(text.to_vec())),
            b':' => Some(Value::Integer(number(text)?)),
            b'_' if text.is_empty() => Some(Value::Null),
            b'$' | b'*' if text == b"-1" => Some(Value::Null),
            b'$' => self.data(length(text)?)?.map(|data| Value::Bulk(data.to_vec())),
            b'=' => match self.data(length(text)?)? {
                None => None,
                Some([_, _, _, b':', data @ ..]) => Some(Value::Verbatim(data.to_vec())),
                Some(_) => return Err("verbatim text without its kind".to_owned()),
            },
            b'*' => self.values(length(text)?, depth)?.map(Value::Array),
            b'>' => self.values(length(text)?, depth)?.map(Value::Push),
            b'~' => self.values(length(text)?, depth)?.map(Value::Set),
            b'%' => self.pairs(length(text)?, depth)?.map(Value::Map),
            other => return Err(format!("unknown kind of reply '{}'", other.escape_ascii())),
        })
    }

    fn values(&mut self, count: usize, depth: usize) -> Result<Option<Vec<Value>>, String> {
        let mut values = Vec::new();
        for _ in 0..count {
            let Some(value) = self.value(depth + 1)? else { return Ok(None) };
            values.push(value);
        }
        Ok(Some(values))
    }

    fn pairs(&mut self, count: usize, depth: usize) -> Result<Option<Vec<(Value, Value)>>, String> {
        let mut pairs = Vec::new();
        for _ in 0..count {
            let Some(key) = self.value(depth + 1)? else { return Ok(None) };
            let Some(value) = self.value(depth + 1)? else { return Ok(None) };
            pairs.push((key, value));
        }
        Ok(Some(pairs))
    }

    /// The kind and the text of a line.
    fn line(&mut self) -> Result<Option<(u8, &'a [u8])>, String> {
        let rest = &self.bytes[self.position..];
        let Some(end) = rest.windows(2).position(|pair| pair == b"\r\n") else { return Ok(None) };
        let Some((kind, text)) = rest[..end].split_first() else {
            return Err("a blank line where a reply starts".to_owned());
        };
        self.position += end + 2;
        Ok(Some((*kind, text)))
    }

    fn data(&mut self, bytes: usize) -> Result<Option<&'a [u8]>, String> {
        let rest = &self.bytes[self.position..];
        if rest.len() < bytes.saturating_add(2) {
            return Ok(None);
        }
        if &rest[bytes..bytes + 2] != b"\r\n" {
            return Err("a bulk string without its line end".to_owned());
        }
        self.position += bytes + 2;
        Ok(Some(&rest[..bytes]))
    }
}

fn number(text: &[u8]) -> Result<i64, String> {
    integer::parse(text).ok_or_else(|| format!("'{}' is not a number", text.escape_ascii()))
}

fn length(text: &[u8]) -> Result<usize, String> {
    usize::try_from(number(text)?).map_err(|_| format!("'{}' is not a length", text.escape_ascii()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Reply, Version};
    use proptest::prelude::*;

    fn write(value: &Value, reply: &mut Reply<'_>) {
        match value {
            Value::Simple(text) => reply.simple(std::str::from_utf8(text).unwrap()),
            Value::Error(text) => reply.error(text),
            Value::Integer(number) => reply.integer(*number),
            Value::Bulk(bytes) => reply.bulk(bytes),
            Value::Verbatim(text) => reply.verbatim_text(std::str::from_utf8(text).unwrap()),
            Value::Null => reply.null(),
            Value::Array(values) => {
                reply.array(values.len());
                values.iter().for_each(|value| write(value, reply));
            }
            Value::Set(values) => {
                reply.set(values.len());
                values.iter().for_each(|value| write(value, reply));
            }
            Value::Push(values) => {
                reply.push(values.len());
                values.iter().for_each(|value| write(value, reply));
            }
            Value::Map(pairs) => {
                reply.map(pairs.len());
                for (key, value) in pairs {
                    write(key, reply);
                    write(value, reply);
                }
            }
        }
    }

    /// The value as a RESP2 client reads it where RESP2 cannot express the value.
    fn in_resp2(value: Value) -> Value {
        match value {
            Value::Verbatim(text) => Value::Bulk(text),
            Value::Array(values) | Value::Set(values) | Value::Push(values) => {
                Value::Array(values.into_iter().map(in_resp2).collect())
            }
            Value::Map(pairs) => Value::Array(
                pairs.into_iter().flat_map(|(key, value)| [in_resp2(key), in_resp2(value)]).collect(),
            ),
            other => other,
        }
    }

    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            "[ -~]{0,12}".prop_map(|text| Value::Simple(text.into_bytes())),
            "[ -~]{0,12}".prop_map(|text| Value::Error(text.into_bytes())),
            any::<i64>().prop_map(Value::Integer),
            any::<Vec<u8>>().prop_map(Value::Bulk),
            "[ -~\r\n]{0,12}".prop_map(|text| Value::Verbatim(text.into_bytes())),
            Just(Value::Null),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Array),
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::Set),
                prop::collection::vec((inner.clone(), inner), 0..4).prop_map(Value::Map),
            ]
        })
    }

    proptest! {
        #[test]
        fn replies_are_read_back_in_both_versions(value in values()) {
            for (version, expected) in [(Version::Resp3, value.clone()), (Version::Resp2, in_resp2(value.clone()))] {
                let mut bytes = Vec::new();
                write(&value, &mut Reply::new(&mut bytes, version));
                prop_assert_eq!(Value::decode(&bytes), Ok(Some((expected, bytes.len()))));
                for cut in 0..bytes.len() {
                    prop_assert_eq!(Value::decode(&bytes[..cut]), Ok(None));
                }
            }
        }
    }

    #[test]
    fn exact_bytes() {
        let mut bytes = Vec::new();
        let mut reply = Reply::new(&mut bytes, Version::Resp2);
        reply.ok();
        reply.error("ERR two\r\nlines");
        reply.null();
        reply.null_array();
        reply.map(1);
        reply.bulk(b"key");
        reply.bulk_unsigned(u64::MAX);
        reply.set_version(Version::Resp3);
        reply.null();
        reply.null_array();
        reply.set(0);
        assert_eq!(
            bytes.escape_ascii().to_string(),
            b"+OK\r\n-ERR two  lines\r\n$-1\r\n*-1\r\n*2\r\n$3\r\nkey\r\n\
              $20\r\n18446744073709551615\r\n_\r\n_\r\n~0\r\n"
                .escape_ascii()
                .to_string()
        );
    }

    #[test]
    fn nesting_is_bounded() {
        assert!(Value::decode(&b"*1\r\n".repeat(1_000_000)).is_err());
    }
}
