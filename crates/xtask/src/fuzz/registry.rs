//! The list of everything that parses bytes it cannot trust.

use alluvium_base::varint;

/// A parser under test.
pub struct Target {
    /// Its name, for `--target`.
    pub name: &'static str,
    /// Parses the input. Any outcome is right but a panic.
    pub run: fn(&[u8]),
    /// Valid inputs to start from.
    pub samples: fn() -> Vec<Vec<u8>>,
}

/// All parsers.
pub fn targets() -> Vec<Target> {
    vec![Target { name: "varint", run: read_varint, samples: varints }]
}

/// A target that must fail: shows that the driver finds what there is to find.
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
