//! [`Password`]: what clients must give before anything else.

use std::fmt;

/// A password. Neither printed nor compared in a time that depends on where a guess is wrong.
#[derive(Clone)]
pub struct Password(Box<[u8]>);

impl Password {
    /// The password `text`; `None` if it is empty.
    pub fn new(text: impl AsRef<[u8]>) -> Option<Self> {
        let text = text.as_ref();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    pub(crate) fn is(&self, guess: &[u8]) -> bool {
        let difference = self.0.iter().zip(guess.iter().cycle().chain(std::iter::repeat(&0)));
        let same = difference.fold(0, |same, (left, right)| same | (left ^ right));
        same == 0 && self.0.len() == guess.len()
    }
}

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
        assert!(password.is(b"open sesame"));
        for guess in ["", "o", "open sesam", "open sesame ", "Open sesame", "open sesameopen sesame"] {
            assert!(!password.is(guess.as_bytes()), "{guess}");
        }
        assert!(Password::new("").is_none());
        assert_eq!(format!("{password:?}"), "Password(..)");
    }
}
