//! `COMMAND LIST [FILTERBY MODULE name|ACLCAT category|PATTERN pattern]`

use super::{all_names, categories};
use crate::commands::{Command, Context, Failure};
use crate::glob;

/// Whether the command of this name is listed.
type Filter<'a> = Box<dyn Fn(&str, &Command) -> bool + 'a>;

/// Subcommands are listed with their containers' names.
pub(super) fn list(context: &mut Context<'_>) -> Result<(), Failure> {
    let wanted = context.arguments.get(4).unwrap_or_default();
    let matches: Filter<'_> = match context.arguments.len() {
        2 => Box::new(|_, _| true),
        5 if !context.is_word(2, "filterby") => return Err(Failure::SYNTAX),
        5 if context.is_word(3, "module") => Box::new(|_, _| false),
        5 if context.is_word(3, "aclcat") => Box::new(|_, command| {
            categories(command).iter().any(|category| category.as_bytes()[1..].eq_ignore_ascii_case(wanted))
        }),
        5 if context.is_word(3, "pattern") => {
            Box::new(|name, _| glob::matches(wanted, name.as_bytes(), true))
        }
        _ => return Err(Failure::SYNTAX),
    };
    let names: Vec<String> =
        all_names().filter(|(name, command)| matches(name, command)).map(|(name, _)| name).collect();
    context.reply.array(names.len());
    names.iter().for_each(|name| context.reply.bulk(name.as_bytes()));
    Ok(())
}
