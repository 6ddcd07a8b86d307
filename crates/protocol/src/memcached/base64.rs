//! Binary keys as text.

const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const NONE: u8 = 0x80;

const VALUES: [u8; 256] = {
    let mut values = [NONE; 256];
    let mut value = 0;
    while value < 64 {
        values[ALPHABET[value as usize] as usize] = value;
        value += 1;
    }
    values[b'=' as usize] = 0;
    values
};

/// Decodes `text` to the front of `out` and returns the number of bytes, as memcached does: bytes outside the alphabet
/// are skipped, and what follows the group of the first padding is ignored. Returns `None` if the rest is not a
/// positive number of whole groups, if a group has more than two bytes of padding, or if `out` is too short.
pub(super) fn decode(text: &[u8], out: &mut [u8]) -> Option<usize> {
    let count = text.iter().filter(|byte| VALUES[usize::from(**byte)] != NONE).count();
    if count == 0 || count % 4 != 0 || count / 4 * 3 > out.len() {
        return None;
    }
    let (mut group, mut symbols, mut padding, mut bytes) = (0u32, 0, 0, 0);
    for byte in text {
        let value = VALUES[usize::from(*byte)];
        if value == NONE {
            continue;
        }
        padding += usize::from(*byte == b'=');
        group = group << 6 | u32::from(value);
        symbols += 1;
        if symbols % 4 == 0 {
            out[bytes..bytes + 3].copy_from_slice(&group.to_be_bytes()[1..]);
            bytes += 3;
            group = 0;
            match padding {
                0 => {}
                1 | 2 => return Some(bytes - padding),
                _ => return None,
            }
        }
    }
    Some(bytes)
}

/// Appends `bytes` to `out` in base64 with padding.
pub(super) fn encode(bytes: &[u8], out: &mut Vec<u8>) {
    for chunk in bytes.chunks(3) {
        let mut group = [0; 4];
        group[1..=chunk.len()].copy_from_slice(chunk);
        let group = u32::from_be_bytes(group);
        for symbol in 0..4 {
            out.push(if symbol <= chunk.len() {
                ALPHABET[(group >> (18 - 6 * symbol)) as usize & 63]
            } else {
                b'='
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn decoded(text: &str) -> Option<Vec<u8>> {
        let mut out = [0; 64];
        decode(text.as_bytes(), &mut out).map(|bytes| out[..bytes].to_vec())
    }

    #[test]
    fn texts_are_read_as_memcached_reads_them() {
        assert_eq!(decoded("Zm9v"), Some(b"foo".to_vec()));
        assert_eq!(decoded("Zm9vYg=="), Some(b"foob".to_vec()));
        assert_eq!(decoded("Zm9vYmE="), Some(b"fooba".to_vec()));
        assert_eq!(decoded("Zm-9v"), Some(b"foo".to_vec()), "foreign bytes are skipped");
        assert_eq!(decoded("Zg==Zm9v"), Some(b"f".to_vec()), "what follows padding is ignored");
        for text in ["", "-", "Zm9", "Zm9vY", "Z===", "===="] {
            assert_eq!(decoded(text), None, "{text:?}");
        }
        assert_eq!(decode(b"Zm9vZm9v", &mut [0; 5]), None, "no room");
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(bytes in prop::collection::vec(any::<u8>(), 1..48)) {
            let mut text = Vec::new();
            encode(&bytes, &mut text);
            prop_assert_eq!(decoded(std::str::from_utf8(&text).unwrap()), Some(bytes));
        }

        #[test]
        fn any_text_is_read_or_refused(text: Vec<u8>) {
            let mut out = vec![0; text.len()];
            if let Some(bytes) = decode(&text, &mut out) {
                prop_assert!(bytes > 0 && bytes <= text.len() / 4 * 3);
            }
        }
    }
}
