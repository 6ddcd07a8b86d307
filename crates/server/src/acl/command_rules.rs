//! [`CommandRules`]: which commands may be executed.

use std::collections::BTreeMap;

use super::catalog::Catalog;
use super::category::Category;
use super::rule_error::RuleError;

/// A set of commands and subcommands, with the rules that made it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CommandRules {
    /// By the numbers of the catalog.
    allowed: Box<[bool]>,
    /// First arguments with which a command may be executed that may not be otherwise.
    first_arguments: BTreeMap<usize, Vec<Box<str>>>,
    /// Whether the rules begin with `+@all`.
    begins_with_all: bool,
    /// The rules after the first, as texts. A rule that a later one makes void is not kept, so there are not many.
    rules: Vec<String>,
}

impl CommandRules {
    /// No command, or all.
    pub(super) fn new(catalog: &Catalog, is_allowed: bool) -> Self {
        Self {
            allowed: vec![is_allowed; catalog.entries.len()].into(),
            first_arguments: BTreeMap::new(),
            begins_with_all: is_allowed,
            rules: Vec::new(),
        }
    }

    /// Whether all commands are allowed, those of later versions too.
    pub(super) fn is_all(&self) -> bool {
        self.begins_with_all && self.rules.is_empty()
    }

    /// Whether the command of this number may be executed with this first argument.
    pub(super) fn allows(&self, number: usize, first_argument: Option<&[u8]>) -> bool {
        let matches = |text: &str| first_argument.is_some_and(|argument| same(argument, text));
        self.allowed[number]
            || self.first_arguments.get(&number).is_some_and(|texts| texts.iter().any(|text| matches(text)))
    }

    /// Allows or refuses what `subject` names: `@category`, `command`, `container|subcommand`, or
    /// `command|first-argument`.
    pub(super) fn apply(
        &mut self,
        catalog: &Catalog,
        is_allowed: bool,
        subject: &[u8],
    ) -> Result<(), RuleError> {
        if same(subject, "@all") {
            *self = Self::new(catalog, is_allowed);
            return Ok(());
        }
        if let Some(name) = subject.strip_prefix(b"@") {
            let category = Category::find(name).ok_or(RuleError::UnknownCommand)?;
            for (number, entry) in catalog.entries.iter().enumerate() {
                if entry.categories.contains(&category) {
                    self.set(catalog, number, is_allowed);
                }
            }
            self.note(is_allowed, &format!("@{}", category.name()));
            return Ok(());
        }
        if let Some(number) = catalog.find(subject) {
            if self.set(catalog, number, is_allowed) {
                self.note(is_allowed, &catalog.entries[number].name);
            }
            return Ok(());
        }
        // What is behind the last bar is a first argument.
        let bar = subject.iter().rposition(|byte| *byte == b'|').filter(|_| is_allowed);
        let (name, argument) = subject.split_at(bar.ok_or(RuleError::UnknownCommand)?);
        let number = catalog.find(name).ok_or(RuleError::UnknownCommand)?;
        let entry = &catalog.entries[number];
        if entry.is_subcommand {
            return Err(RuleError::ArgumentOfSubcommand);
        }
        if !entry.subcommands.is_empty() {
            return Err(RuleError::UnknownCommand);
        }
        let argument = std::str::from_utf8(&argument[1..]).map_err(|_| RuleError::Syntax)?;
        if argument.is_empty() {
            return Err(RuleError::Syntax);
        }
        let texts = self.first_arguments.entry(number).or_default();
        if !texts.iter().any(|text| text.eq_ignore_ascii_case(argument)) {
            texts.push(argument.into());
        }
        self.note(true, &format!("{}|{argument}", entry.name));
        Ok(())
    }

    /// Sets a command and its subcommands; returns whether that changes anything.
    fn set(&mut self, catalog: &Catalog, number: usize, is_allowed: bool) -> bool {
        let mut is_changed = self.first_arguments.remove(&number).is_some();
        let subcommands = catalog.entries[number].subcommands.clone();
        for number in std::iter::once(number).chain(subcommands) {
            is_changed |= std::mem::replace(&mut self.allowed[number], is_allowed) != is_allowed;
        }
        is_changed
    }

    /// Adds a rule, and removes those about the same subject or a part of it, which are void now.
    fn note(&mut self, is_allowed: bool, subject: &str) {
        self.rules.retain(|rule| {
            let rest = rule[1..].strip_prefix(subject);
            !rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('|'))
        });
        self.rules.push(format!("{}{subject}", if is_allowed { '+' } else { '-' }));
    }

    /// The rules that give this set.
    pub(super) fn text(&self) -> String {
        let first = if self.begins_with_all { "+@all" } else { "-@all" };
        let rules = self.rules.iter().map(String::as_str);
        std::iter::once(first).chain(rules).collect::<Vec<_>>().join(" ")
    }
}

fn same(argument: &[u8], text: &str) -> bool {
    argument.eq_ignore_ascii_case(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::catalog;

    /// The text of the rules after these.
    fn text(rules: &[&str]) -> String {
        let mut commands = CommandRules::new(catalog(), false);
        for rule in rules {
            let (sign, subject) = rule.split_at(1);
            commands.apply(catalog(), sign == "+", subject.as_bytes()).unwrap();
        }
        // The text is a way to the same set.
        let mut again = CommandRules::new(catalog(), false);
        for rule in commands.text().split(' ') {
            again.apply(catalog(), rule.starts_with('+'), &rule.as_bytes()[1..]).unwrap();
        }
        assert_eq!(again.allowed, commands.allowed, "{rules:?}");
        assert_eq!(again.first_arguments, commands.first_arguments, "{rules:?}");
        commands.text()
    }

    #[test]
    fn rules_are_described_by_those_that_count() {
        for (rules, expected) in [
            (&["+get"][..], "-@all +get"),
            (&["+get", "-get", "+get"], "-@all +get"),
            (&["+@all", "-client", "+client|id"], "+@all -client +client|id"),
            (&["+memory|usage", "+memory"], "-@all +memory"),
            (&["+@string", "-incr", "+@all"], "+@all"),
            (&["+select|0", "+select|1"], "-@all +select|0 +select|1"),
            (&["+select|0", "+select"], "-@all +select"),
            (&["+@read", "-@read"], "-@all -@read"),
            (&["+GET", "+@STRING"], "-@all +get +@string"),
            (&["+@all", "+client|id", "-@blocking"], "+@all -@blocking"),
        ] {
            assert_eq!(text(rules), expected, "{rules:?}");
        }
    }

    #[test]
    fn wrong_rules_are_refused() {
        for (rule, error) in [
            ("+nothing", RuleError::UnknownCommand),
            ("+@nothing", RuleError::UnknownCommand),
            ("+config|nothing", RuleError::UnknownCommand),
            ("-select|0", RuleError::UnknownCommand),
            ("+get|a|b", RuleError::UnknownCommand),
            ("+config|get|save", RuleError::ArgumentOfSubcommand),
            ("+select|", RuleError::Syntax),
        ] {
            let mut commands = CommandRules::new(catalog(), false);
            assert_eq!(
                commands.apply(catalog(), rule.starts_with('+'), &rule.as_bytes()[1..]),
                Err(error),
                "{rule}"
            );
        }
    }
}
