//! Why a command failed, and its exit code.

use std::io;
use std::process::ExitCode;

use alluvium_bench::BenchError;
use alluvium_model::ModelError;

/// The reason why a command ended early.
#[derive(Debug)]
pub enum Failure {
    /// The requested object does not exist. Prints nothing: the exit code is the answer.
    NotFound,
    /// An error or a failed check, with a message for the user.
    Failed(String),
    /// The command line is wrong; the message explains how to correct it.
    Usage(String),
    /// The reader of our output has closed it: not a failure.
    OutputClosed,
}

impl Failure {
    /// Prints the message, if any, and returns the exit code.
    pub fn report(self) -> ExitCode {
        match self {
            Self::NotFound => ExitCode::from(1),
            Self::Failed(message) => {
                eprintln!("alluvium: {message}");
                ExitCode::from(1)
            }
            Self::Usage(message) => {
                eprintln!("alluvium: {message}");
                ExitCode::from(2)
            }
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }
}

impl From<alluvium::Error> for Failure {
    fn from(error: alluvium::Error) -> Self {
        Self::Failed(error.to_string())
    }
}

/// A model refused its parameters, which came from the command line.
impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::Usage(error.to_string())
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            Self::OutputClosed
        } else {
            Self::Failed(error.to_string())
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        io::Error::from(error).into()
    }
}

impl From<alluvium_transfer::ReadError> for Failure {
    fn from(error: alluvium_transfer::ReadError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<BenchError> for Failure {
    fn from(error: BenchError) -> Self {
        match error {
            BenchError::Usage(message) => Self::Usage(message),
            BenchError::Io(error) => error.into(),
            other => Self::Failed(other.to_string()),
        }
    }
}
