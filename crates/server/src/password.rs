//! [`Password`]: what clients must give before anything else.

use std::fmt;

use sha2::{Digest, Sha256};

/// A password, kept as its SHA-256. Neither printed nor compared in a time that depends on where a guess is wrong.
#[derive(Clone)]
pub struct Password([u8; 32]);

impl Password {
    /// The password `text`; `None` if it is empty.
    pub fn new(text: impl AsRef<[u8]>) -> Option<Self> {
        let text = text.as_ref();
        (!text.is_empty()).then(|| Self::of(text))
    }

    /// The password `text`, which may be empty.
    pub(crate) fn of(text: &[u8]) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// The password whose digest this is, as 64 hexadecimal digits in lower case.
    pub(crate) fn of_digest(digest: &[u8]) -> Option<Self> {
        let value = |digit: u8| match digit {
            b'0'..=b'9' => Some(digit - b'0'),
            b'a'..=b'f' => Some(digit - b'a' + 10),
            _ => None,
        };
        let mut bytes = [0; 32];
        if digest.len() != 64 {
            return None;
        }
        for (byte, digits) in bytes.iter_mut().zip(digest.chunks_exact(2)) {
            *byte = value(digits[0])? << 4 | value(digits[1])?;
        }
        Some(Self(bytes))
    }

    /// Its digest, as [`Password::of_digest`] reads it.
    pub(crate) fn digest(&self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

/// Takes the same time for all.
impl PartialEq for Password {
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |difference, (left, right)| difference | (left ^ right)) == 0
    }
}

impl Eq for Password {}

impl fmt::Debug for Password {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Password(..)")
    }
}

#[cfg(test)]
mod tests {
    use super::Password;

    #[test]
    fn only_the_password_is_accepted() {
        let password = Password::new("open sesame").unwrap();
        assert!(password == Password::of(b"open sesame"));
        for guess in ["", "o", "open sesam", "open sesame ", "Open sesame", "open sesameopen sesame"] {
            assert!(password != Password::of(guess.as_bytes()), "{guess}");
        }
        assert!(Password::new("").is_none());
        assert_eq!(format!("{password:?}"), "Password(..)");
    }

    #[test]
    fn digests_are_read_back() {
        let password = Password::of(b"alice");
        assert!(password.digest().starts_with("2bd806c97f0e"));
        assert!(Password::of_digest(password.digest().as_bytes()) == Some(password));
        for wrong in ["", "2b", &"g".repeat(64), &"A".repeat(64)] {
            assert!(Password::of_digest(wrong.as_bytes()).is_none(), "{wrong}");
        }
    }
}
