//! [`Rules`]: all that is known about a user.

use super::catalog::Catalog;
use super::denial::Denial;
use super::permissions::Permissions;
use super::request::Request;
use super::rule_error::RuleError;
use crate::Password;
use crate::pubsub::Topic;

/// How a user authenticates, and what it may do.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    pub(crate) is_on: bool,
    /// Any password is right.
    pub(crate) accepts_any_password: bool,
    pub(crate) passwords: Vec<Password>,
    pub(crate) permissions: Permissions,
    /// Further permissions: one of all must allow a request.
    pub(crate) selectors: Vec<Permissions>,
}

impl Rules {
    /// Those of a new user: it is off, and may do nothing.
    pub(super) fn new(catalog: &Catalog, all_channels: bool) -> Self {
        Self {
            is_on: false,
            accepts_any_password: false,
            passwords: Vec::new(),
            permissions: Permissions::none(catalog, all_channels),
            selectors: Vec::new(),
        }
    }

    /// Those of the user that everyone is who has not authenticated.
    pub(super) fn of_default(catalog: &Catalog, password: Option<Password>) -> Self {
        Self {
            is_on: true,
            accepts_any_password: password.is_none(),
            passwords: password.into_iter().collect(),
            permissions: Permissions::all(catalog),
            selectors: Vec::new(),
        }
    }

    /// Changes what `rule` says. `all_channels` is what `reset` gives.
    pub(super) fn apply(
        &mut self,
        catalog: &Catalog,
        rule: &[u8],
        all_channels: bool,
    ) -> Result<(), RuleError> {
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            [] => {}
            _ if is("on") => self.is_on = true,
            _ if is("off") => self.is_on = false,
            // Payloads are always checked.
            _ if is("sanitize-payload") || is("skip-sanitize-payload") => {}
            _ if is("nopass") => self.set_passwords(true),
            _ if is("resetpass") => self.set_passwords(false),
            _ if is("clearselectors") => self.selectors.clear(),
            _ if is("reset") => *self = Self::new(catalog, all_channels),
            [b'>', text @ ..] => self.add_password(Password::of(text)),
            [b'#', digest @ ..] => {
                self.add_password(Password::of_digest(digest).ok_or(RuleError::PasswordHash)?);
            }
            [b'<', text @ ..] => self.remove_password(&Password::of(text))?,
            [b'!', digest @ ..] => {
                self.remove_password(&Password::of_digest(digest).ok_or(RuleError::PasswordHash)?)?;
            }
            [b'(', rules @ .., b')'] => {
                let mut selector = Permissions::none(catalog, false);
                let words = rules.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
                words.into_iter().try_for_each(|word| selector.apply(catalog, word))?;
                self.selectors.push(selector);
            }
            _ => self.permissions.apply(catalog, rule)?,
        }
        Ok(())
    }

    /// The password alone, or none needed.
    pub(super) fn set_password(&mut self, password: Option<Password>) {
        self.set_passwords(password.is_none());
        self.passwords.extend(password);
    }

    fn set_passwords(&mut self, accepts_any: bool) {
        self.accepts_any_password = accepts_any;
        self.passwords.clear();
    }

    fn add_password(&mut self, password: Password) {
        if !self.passwords.contains(&password) {
            self.passwords.push(password);
        }
        self.accepts_any_password = false;
    }

    fn remove_password(&mut self, password: &Password) -> Result<(), RuleError> {
        let position = self.passwords.iter().position(|known| known == password);
        self.passwords.remove(position.ok_or(RuleError::NoSuchPassword)?);
        Ok(())
    }

    /// Whether the user may authenticate with this password.
    pub(super) fn admits(&self, password: &[u8]) -> bool {
        let guess = Password::of(password);
        // All are compared, in the same time.
        let is_right = self.passwords.iter().fold(false, |found, known| found | (*known == guess));
        self.is_on && (self.accepts_any_password || is_right)
    }

    pub(super) fn check(&self, request: &Request<'_>) -> Result<(), Denial> {
        let mut worst = Denial::Command;
        for permissions in std::iter::once(&self.permissions).chain(&self.selectors) {
            match permissions.check(request) {
                Ok(()) => return Ok(()),
                Err(denial) => worst = worst.max(denial),
            }
        }
        Err(worst)
    }

    /// Whether the user may subscribe to this.
    pub(crate) fn allows_channel(&self, topic: Topic, name: &[u8]) -> bool {
        let mut all = std::iter::once(&self.permissions).chain(&self.selectors);
        all.any(|permissions| permissions.allows_channel(topic, name))
    }

    /// The rules that make a new user this one.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut words = vec![if self.is_on { b"on".to_vec() } else { b"off".to_vec() }];
        if self.accepts_any_password {
            words.push(b"nopass".to_vec());
        }
        words.extend(self.passwords.iter().map(|password| format!("#{}", password.digest()).into_bytes()));
        words.push(self.permissions.text());
        words.extend(self.selectors.iter().map(|selector| [b"(", &selector.text()[..], b")"].concat()));
        words.join(&b' ')
    }
}

/// Joins rules in parentheses that are spread over several arguments.
///
/// # Errors
/// The argument with a parenthesis that is not closed.
pub(crate) fn merge_selectors<'a>(rules: impl Iterator<Item = &'a [u8]>) -> Result<Vec<Vec<u8>>, &'a [u8]> {
    let mut merged = Vec::new();
    // The argument with the parenthesis, and all since.
    let mut open: Option<(&[u8], Vec<u8>)> = None;
    for rule in rules {
        let ends = rule.ends_with(b")");
        let (begin, text) = match open.take() {
            Some((begin, text)) => (begin, [&text[..], rule].join(&b' ')),
            None => (rule, rule.to_vec()),
        };
        if text.starts_with(b"(") && !ends {
            open = Some((begin, text));
        } else {
            merged.push(text);
        }
    }
    match open {
        Some((begin, _)) => Err(begin),
        None => Ok(merged),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::catalog;

    fn rules(texts: &[&str]) -> Result<Rules, RuleError> {
        let mut rules = Rules::new(catalog(), false);
        texts.iter().try_for_each(|text| rules.apply(catalog(), text.as_bytes(), false))?;
        Ok(rules)
    }

    #[test]
    fn the_text_makes_the_same_user() {
        for (texts, expected) in [
            (&[][..], "off resetchannels -@all"),
            (&["on", "nopass", "~*", "&*", "+@all"], "on nopass ~* &* +@all"),
            (&["~a*", "%R~b", "%W~b", "%w~c", "&x"], "off ~a* ~b %W~c resetchannels &x -@all"),
            (
                &["(+get ~a)", "on", "(%R~b &c)"],
                "on resetchannels -@all (~a resetchannels -@all +get) (%R~b \
              resetchannels &c -@all)",
            ),
            (&["on", "+get", "reset"], "off resetchannels -@all"),
        ] {
            let made = rules(texts).unwrap();
            assert_eq!(made.text(), expected.as_bytes(), "{texts:?}");
            let words = merge_selectors(expected.split(' ').map(str::as_bytes)).unwrap();
            let words: Vec<&str> = words.iter().map(|word| std::str::from_utf8(word).unwrap()).collect();
            assert_eq!(rules(&words).unwrap().text(), expected.as_bytes(), "{texts:?}");
        }
    }

    #[test]
    fn passwords_are_added_and_removed() {
        let digest = "#2bd806c97f0e00af1a1fc3328fa763a9269723c8db8fac4f93af71db186d6e90";
        let with = rules(&["on", ">alice", digest]).unwrap();
        assert_eq!(with.passwords.len(), 1);
        assert!(with.admits(b"alice") && !with.admits(b"bob"));
        assert!(!rules(&["on", ">alice", "<alice"]).unwrap().admits(b"alice"));
        assert!(!rules(&["off", "nopass"]).unwrap().admits(b"alice"));
        assert_eq!(rules(&["<alice"]).err(), Some(RuleError::NoSuchPassword));
        assert_eq!(rules(&["#abc"]).err(), Some(RuleError::PasswordHash));
        assert_eq!(rules(&[")"]).err(), Some(RuleError::Syntax));
        assert_eq!(rules(&["~*", "~a"]).err(), Some(RuleError::KeysAfterAll));
        assert_eq!(rules(&["&*", "&a"]).err(), Some(RuleError::ChannelsAfterAll));
    }
}
