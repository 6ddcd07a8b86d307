//! [`Denial`]: what a user may not do.

/// What of a request is not allowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Denial {
    Command,
    /// The key at this position among the arguments.
    Key(usize),
    /// The channel at this position among the arguments.
    Channel(usize),
}

impl Denial {
    /// The reply to a client that sent the command.
    pub(crate) fn text(self, command: &str) -> String {
        match self {
            Self::Command => format!("NOPERM this user has no permissions to run the '{command}' command"),
            Self::Key(_) => {
                "NOPERM this user has no permissions to access one of the keys used as arguments".to_owned()
            }
            Self::Channel(_) => {
                "NOPERM this user has no permissions to access one of the channels used as arguments"
                    .to_owned()
            }
        }
    }

    /// The reply in place of a command that was allowed when it was queued.
    pub(crate) fn text_in_exec(self) -> String {
        let reason = match self {
            Self::Command => "no permission to execute the command or subcommand",
            Self::Key(_) => "no permission to touch the specified keys",
            Self::Channel(_) => "no permission to access one of the channels used as arguments",
        };
        format!(
            "NOPERM ACLs rules changed between the moment the transaction was accumulated and the EXEC call. This \
             command is no longer allowed for the following reason: {reason}"
        )
    }

    /// The error of a script's call.
    pub(crate) fn text_in_script(self) -> String {
        let reason = match self {
            Self::Command => "can't run this command or subcommand",
            Self::Key(_) => "can't access at least one of the keys mentioned in the command arguments",
            Self::Channel(_) => "can't publish to the channel mentioned in the command",
        };
        format!("ERR The user executing the script {reason}")
    }
}
