//! [`Catalog`]: all commands and subcommands, numbered for sets of them.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::LazyLock;

use super::category::Category;
use crate::commands::{self, Command};

/// A command or subcommand.
pub(crate) struct Entry {
    /// `command` or `container|subcommand`.
    pub(crate) name: String,
    pub(crate) command: &'static Command,
    pub(crate) categories: Vec<Category>,
    /// The numbers of its subcommands.
    pub(super) subcommands: Range<usize>,
    pub(super) is_subcommand: bool,
}

pub(crate) struct Catalog {
    pub(crate) entries: Vec<Entry>,
    /// By the addresses of container and command: the container's is that of the command itself if there is none.
    numbers: HashMap<(usize, usize), usize>,
}

static CATALOG: LazyLock<Catalog> = LazyLock::new(Catalog::new);

impl Catalog {
    pub(crate) fn get() -> &'static Self {
        &CATALOG
    }

    fn new() -> Self {
        let (mut entries, mut numbers) = (Vec::new(), HashMap::new());
        for container in commands::COMMANDS {
            let number = entries.len();
            let subcommands = commands::subcommands(container);
            numbers.insert((address(container), address(container)), number);
            entries.push(Entry {
                name: container.name.to_owned(),
                command: container,
                categories: Category::of(None, container),
                subcommands: number + 1..number + 1 + subcommands.len(),
                is_subcommand: false,
            });
            for command in subcommands {
                numbers.insert((address(container), address(command)), entries.len());
                entries.push(Entry {
                    name: format!("{}|{}", container.name, command.name),
                    command,
                    categories: Category::of(Some(container), command),
                    subcommands: 0..0,
                    is_subcommand: true,
                });
            }
        }
        Self { entries, numbers }
    }

    /// The number of a command, or of a subcommand of `container`.
    pub(crate) fn number(&self, container: &'static Command, command: &'static Command) -> usize {
        self.numbers[&(address(container), address(command))]
    }

    /// The number of the command or subcommand of this whole name, in any case.
    pub(super) fn find(&self, name: &[u8]) -> Option<usize> {
        self.entries.iter().position(|entry| entry.name.as_bytes().eq_ignore_ascii_case(name))
    }
}

fn address(command: &'static Command) -> usize {
    std::ptr::from_ref(command).addr()
}
