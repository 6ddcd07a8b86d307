//! What a source file names: imports, re-exports, paths in its code, and what it defines.

use std::collections::{BTreeMap, BTreeSet};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, ItemUse, UseTree, Visibility};

/// Segments of a path, such as `crate`, `log`, `Segment`.
pub type Path = Vec<String>;

/// Names of one file.
#[derive(Debug, Default)]
pub struct Names {
    /// What private `use` declarations import, by the local name.
    pub imports: BTreeMap<String, Path>,
    /// What other `use` declarations hand on, by the name.
    pub re_exports: BTreeMap<String, Path>,
    /// Modules of which everything is handed on, or imported.
    pub globs: Vec<Path>,
    /// Paths of two or more segments in the code.
    pub paths: BTreeSet<Path>,
    /// The items that the file defines.
    pub items: BTreeSet<String>,
}

impl Names {
    /// Reads a file.
    ///
    /// # Errors
    /// If it is no Rust.
    pub fn parse(text: &str) -> Result<Self, String> {
        let file = syn::parse_file(text).map_err(|error| error.to_string())?;
        let mut names = Self::default();
        names.visit_file(&file);
        Ok(names)
    }

    fn add_use(&mut self, tree: &UseTree, prefix: &Path, is_handed_on: bool) {
        let joined = |name: &syn::Ident| prefix.iter().cloned().chain([name.to_string()]).collect::<Path>();
        match tree {
            UseTree::Path(path) => self.add_use(&path.tree, &joined(&path.ident), is_handed_on),
            UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.add_use(tree, prefix, is_handed_on));
            }
            UseTree::Glob(_) => self.globs.push(prefix.clone()),
            UseTree::Name(name) => self.add_name(&name.ident, joined(&name.ident), is_handed_on),
            UseTree::Rename(rename) => self.add_name(&rename.rename, joined(&rename.ident), is_handed_on),
        }
    }

    fn add_name(&mut self, local: &syn::Ident, mut path: Path, is_handed_on: bool) {
        let mut local = local.to_string();
        if local == "self" {
            path.pop();
            local = path.last().cloned().unwrap_or_default();
        }
        let to = if is_handed_on { &mut self.re_exports } else { &mut self.imports };
        to.insert(local, path);
    }
}

impl<'ast> Visit<'ast> for Names {
    fn visit_item(&mut self, item: &'ast Item) {
        if attributes(item).iter().any(is_of_tests) {
            return;
        }
        if let Some(name) = defined(item) {
            self.items.insert(name.to_string());
        }
        visit::visit_item(self, item);
    }

    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.add_use(&item.tree, &Vec::new(), !matches!(item.vis, Visibility::Inherited));
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 && path.leading_colon.is_none() {
            self.paths.insert(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Mod(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        _ => &[],
    }
}

/// Whether the attribute is `#[cfg(test)]` or `#[cfg(all(test, ...))]`.
fn is_of_tests(attribute: &Attribute) -> bool {
    let condition = attribute.path().is_ident("cfg").then(|| attribute.meta.require_list().ok()).flatten();
    condition.is_some_and(|list| {
        let text = list.tokens.to_string();
        text == "test" || text.starts_with("all (test") || text.starts_with("all(test")
    })
}

fn defined(item: &Item) -> Option<&syn::Ident> {
    match item {
        Item::Const(item) => Some(&item.ident),
        Item::Enum(item) => Some(&item.ident),
        Item::Fn(item) => Some(&item.sig.ident),
        Item::Macro(item) => item.ident.as_ref(),
        Item::Static(item) => Some(&item.ident),
        Item::Struct(item) => Some(&item.ident),
        Item::Trait(item) => Some(&item.ident),
        Item::Type(item) => Some(&item.ident),
        _ => None,
    }
}
