//! `COMMAND LIST [FILTERBY MODULE name|ACLCAT category|PATTERN pattern]`

use crate::acl::{Category, Entry};
use crate::commands::{Context, Failure, catalog};
use crate::glob;

/// Whether a command is listed.
type Filter<'a> = Box<dyn Fn(&Entry) -> bool + 'a>;

/// Subcommands are listed with their containers' names.
pub(super) fn list(context: &mut Context<'_>) -> Result<(), Failure> {
    let wanted = context.arguments.get(4).unwrap_or_default();
    let matches: Filter<'_> = match context.arguments.len() {
        2 => Box::new(|_| true),
        5 if !context.is_word(2, "filterby") => return Err(Failure::SYNTAX),
        5 if context.is_word(3, "module") => Box::new(|_| false),
        5 if context.is_word(3, "aclcat") => {
            let category = Category::find(wanted);
            Box::new(move |entry| category.is_some_and(|category| entry.categories.contains(&category)))
        }
        5 if context.is_word(3, "pattern") => {
            Box::new(|entry| glob::matches(wanted, entry.name.as_bytes(), true))
        }
        _ => return Err(Failure::SYNTAX),
    };
    let names: Vec<&str> =
        catalog().entries.iter().filter(|entry| matches(entry)).map(|entry| &entry.name[..]).collect();
    context.reply.array(names.len());
    names.iter().for_each(|name| context.reply.bulk(name.as_bytes()));
    Ok(())
}
