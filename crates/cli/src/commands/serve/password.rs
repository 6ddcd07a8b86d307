//! The password that clients must give.

use std::path::Path;

use alluvium_server::Password;

use crate::failure::Failure;

/// The password of the file, or of the environment. A password on the command line would be in the list of processes.
pub fn read(file: Option<&Path>) -> Result<Option<Password>, Failure> {
    let text = match file {
        Some(file) => {
            let text = std::fs::read_to_string(file)
                .map_err(|error| Failure::Failed(format!("cannot read {}: {error}", file.display())))?;
            text.lines().next().unwrap_or_default().to_owned()
        }
        None => match std::env::var("ALLUVIUM_PASSWORD") {
            Ok(text) => text,
            Err(_) => return Ok(None),
        },
    };
    match Password::new(text) {
        Some(password) => Ok(Some(password)),
        None => Err(Failure::Failed("the password is empty".to_owned())),
    }
}
