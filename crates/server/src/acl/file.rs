//! The file of users: a line for each, `user NAME RULE …`.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use super::catalog::Catalog;
use super::rule_error::RuleError;
use super::rules::{Rules, merge_selectors};

/// A name, and the rules of its user.
type Named = (Box<[u8]>, Rules);

/// The users of the file, in its order.
///
/// # Errors
/// All that is wrong with it, in one line.
pub(super) fn read(catalog: &Catalog, path: &Path, all_channels: bool) -> Result<Vec<Named>, String> {
    let shown = path.display();
    let text =
        fs::read(path).map_err(|error| format!("Error loading ACLs, opening file '{shown}': {error}"))?;
    let (mut users, mut errors) = (Vec::<Named>::new(), String::new());
    for (number, line) in text.split(|byte| *byte == b'\n').enumerate() {
        let number = number + 1;
        let mut words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
        let name = match (words.next(), words.next()) {
            (None, _) => continue,
            (Some(b"user"), Some(name)) => name,
            _ => {
                errors.push_str(&format!(
                    "{shown}:{number} should start with user keyword followed by the username. "
                ));
                continue;
            }
        };
        if users.iter().any(|(known, _)| **known == *name) {
            let name = String::from_utf8_lossy(name);
            errors.push_str(&format!("WARNING: Duplicate user '{name}' found on line {number}. "));
            continue;
        }
        let Ok(changes) = merge_selectors(words) else {
            errors.push_str(&format!("{shown}:{number}: Unmatched parenthesis in selector definition."));
            continue;
        };
        let mut rules = Rules::new(catalog, all_channels);
        for change in changes {
            match rules.apply(catalog, &change, all_channels) {
                Ok(()) => {}
                // It is no secret.
                Err(error @ RuleError::UnknownCommand) => {
                    let change = String::from_utf8_lossy(&change);
                    errors.push_str(&format!(
                        "{shown}:{number}: Error in applying operation '{change}': {error}. "
                    ));
                }
                Err(error) => errors.push_str(&format!("{shown}:{number}: {error}. ")),
            }
        }
        users.push((name.into(), rules));
    }
    if errors.is_empty() {
        return Ok(users);
    }
    Err(errors + "WARNING: ACL errors detected, no change to the previously active ACL rules was performed")
}

/// Replaces the file. After a crash, it is there as before or as after. Only its owner can read it.
pub(super) fn write(path: &Path, text: &[u8]) -> io::Result<()> {
    let mut temporary = path.as_os_str().to_owned();
    temporary.push(".new");
    let temporary = Path::new(&temporary);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(temporary)?;
    file.write_all(text)?;
    file.sync_all()?;
    fs::rename(temporary, path)?;
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    File::open(directory.unwrap_or(Path::new(".")))?.sync_all()
}
