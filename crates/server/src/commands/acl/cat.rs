//! `ACL CAT [category]`

use super::{Command, Context, Failure, OPEN};
use crate::acl::Category;
use crate::commands::catalog;

pub(super) const COMMAND: Command = Command {
    name: "cat",
    arity: -2,
    summary: "List all commands that belong to <category>, or all command categories when no category is specified",
    syntax: "[<category>]",
    handler: cat,
    ..OPEN
};

fn cat(context: &mut Context<'_>) -> Result<(), Failure> {
    let names: Vec<&str> = match context.arguments.len() {
        2 => Category::ALL.into_iter().map(Category::name).collect(),
        3 => {
            let name = &context.arguments[2];
            let category = Category::find(name).ok_or_else(|| {
                let name = String::from_utf8_lossy(&name[..name.len().min(128)]);
                Failure::Text(format!("ERR Unknown category '{name}'"))
            })?;
            let entries = catalog().entries.iter();
            entries
                .filter(|entry| entry.categories.contains(&category))
                .map(|entry| &entry.name[..])
                .collect()
        }
        _ => {
            return Err(Failure::Fixed(
                "ERR unknown subcommand or wrong number of arguments for 'CAT'. Try ACL HELP.",
            ));
        }
    };
    context.reply.array(names.len());
    names.iter().for_each(|name| context.reply.bulk(name.as_bytes()));
    Ok(())
}
