//! `CONFIG SET directive value [directive value ...]`

use alluvium_protocol::integer;

use super::parameters::{Change, PARAMETERS, Parameter};
use crate::commands::{Context, Failure};
use crate::shared::Shared;

/// All parameters are changed, or none.
pub(super) fn set(context: &mut Context<'_>) -> Result<(), Failure> {
    let arguments = context.arguments.from(2);
    if !arguments.len().is_multiple_of(2) {
        return Err(Failure::arity("config|set"));
    }
    let mut changes: Vec<(&Parameter, &[u8])> = Vec::new();
    for (name, value) in arguments.iter().step_by(2).zip(arguments.from(1).iter().step_by(2)) {
        let parameter =
            PARAMETERS.iter().find(|parameter| parameter.name.as_bytes().eq_ignore_ascii_case(name));
        let Some(parameter) = parameter else {
            let name = String::from_utf8_lossy(name);
            return Err(Failure::Text(format!(
                "ERR Unknown option or number of arguments for CONFIG SET - '{name}'"
            )));
        };
        if changes.iter().any(|(other, _)| other.name == parameter.name) {
            return Err(refused(parameter, "duplicate parameter"));
        }
        changes.push((parameter, value));
    }
    // A secret cannot be set back, so it is set when nothing can fail any more.
    changes.sort_by_key(|(parameter, _)| matches!(parameter.change, Change::Secret(_)));
    let shared = context.shared;
    let mut before: Vec<(&Parameter, String)> = Vec::new();
    for (parameter, value) in changes {
        let old = (parameter.get)(shared);
        if let Err(reason) = change(parameter, value, shared) {
            for (parameter, old) in before.iter().rev() {
                // It was possible before.
                let _ = change(parameter, old.as_bytes(), shared);
            }
            return Err(refused(parameter, reason));
        }
        let (name, value) = (parameter.name, (parameter.get)(shared));
        tracing::info!(
            client = context.session.client.peer(),
            name,
            old,
            value,
            "a client changes a setting"
        );
        before.push((parameter, old));
    }
    context.reply.ok();
    Ok(())
}

fn change(parameter: &Parameter, value: &[u8], shared: &Shared) -> Result<(), &'static str> {
    if !matches!(parameter.change, Change::Secret(_)) && (parameter.get)(shared).as_bytes() == value {
        return Ok(());
    }
    match parameter.change {
        Change::Never => Err("can't set immutable config"),
        Change::AtStart(reason) => Err(reason),
        Change::Number(set) => {
            let number = integer::parse(value).ok_or("argument couldn't be parsed into an integer")?;
            if set(shared, number) { Ok(()) } else { Err("argument must be between its limits inclusive") }
        }
        Change::Text(set) => set(shared, value),
        Change::Secret(set) => {
            set(shared, value);
            Ok(())
        }
        Change::Remembered => {
            let number = integer::parse(value).ok_or("argument couldn't be parsed into an integer")?;
            shared.remember(parameter.name, number);
            Ok(())
        }
    }
}

fn refused(parameter: &Parameter, reason: &str) -> Failure {
    let name = parameter.name;
    Failure::Text(format!("ERR CONFIG SET failed (possibly related to argument '{name}') - {reason}"))
}
