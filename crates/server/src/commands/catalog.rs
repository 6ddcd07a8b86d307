//! The catalog of all commands and subcommands that rules of users may name.

use std::collections::HashMap;
use std::sync::LazyLock;

use super::Command;
use super::categories::categories;
use super::table::{COMMANDS, number_of, subcommands};
use crate::acl::{Catalog, Entry};

/// Numbers by container and command: the container is the command itself if there is none.
type Numbers = HashMap<(usize, usize), usize>;

static CATALOG: LazyLock<(Catalog, Numbers)> = LazyLock::new(build);

/// All commands of [`COMMANDS`], each before its subcommands.
pub(crate) fn catalog() -> &'static Catalog {
    &CATALOG.0
}

/// The number in the catalog of a command, or of a subcommand of `container`.
pub(super) fn number(container: &'static Command, command: &'static Command) -> usize {
    CATALOG.1[&(number_of(container), number_of(command))]
}

fn build() -> (Catalog, Numbers) {
    let (mut entries, mut numbers) = (Vec::new(), Numbers::new());
    for container in COMMANDS {
        let number = entries.len();
        let subcommands = subcommands(container);
        numbers.insert((number_of(container), number_of(container)), number);
        entries.push(Entry {
            name: container.name.to_owned(),
            categories: categories(None, container),
            subcommands: number + 1..number + 1 + subcommands.len(),
            is_subcommand: false,
        });
        for command in subcommands {
            numbers.insert((number_of(container), number_of(command)), entries.len());
            entries.push(Entry {
                name: format!("{}|{}", container.name, command.name),
                categories: categories(Some(container), command),
                subcommands: 0..0,
                is_subcommand: true,
            });
        }
    }
    (Catalog { entries }, numbers)
}
