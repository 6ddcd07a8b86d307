//! Converts between keyspaces and their descriptions in files.

use alluvium::{Keyspace, KeyspaceOptions, Order, Plan, PrefixRule};
use alluvium_model::PlanError;
use alluvium_transfer::{Format, KeyspaceHead, KeyspaceOrder};

/// The description of a keyspace in a file.
pub fn of(keyspace: &Keyspace) -> serde_json::Result<KeyspaceHead> {
    let order = match keyspace.order() {
        Order::Hashed => KeyspaceOrder::Hashed,
        Order::SemiSorted { prefix, lists_prefixes } => KeyspaceOrder::SemiSorted { prefix, lists_prefixes },
    };
    let plan = keyspace.own_plan().map(|plan| serde_json::to_string(&plan)).transpose()?;
    Ok(KeyspaceHead { name: keyspace.name().to_owned(), order, plan })
}

/// The options that create a keyspace as the file describes it.
pub fn options(head: &KeyspaceHead) -> Result<KeyspaceOptions, PlanError> {
    let plan = head.plan.as_deref().map(Plan::from_json).transpose()?;
    Ok(KeyspaceOptions { order: order(head), plan, ..KeyspaceOptions::default() })
}

/// The order in the file's description.
pub fn order(head: &KeyspaceHead) -> Order {
    match head.order {
        KeyspaceOrder::Hashed => Order::Hashed,
        KeyspaceOrder::SemiSorted { prefix, lists_prefixes } => Order::SemiSorted { prefix, lists_prefixes },
    }
}

/// Whether an import of the items alone recreates the keyspace as it is.
pub fn is_plain(head: &KeyspaceHead) -> bool {
    head.order == KeyspaceOrder::Hashed && head.plan.is_none()
}

/// What is lost because `format` cannot describe a keyspace, each with a way to keep it.
pub fn losses(head: &KeyspaceHead, is_empty: bool, format: Format) -> Vec<String> {
    let (format, name) = (format.name(), &head.name);
    let mut losses = Vec::new();
    if let KeyspaceOrder::SemiSorted { prefix, lists_prefixes } = head.order {
        let list = if lists_prefixes { " --list-prefixes" } else { "" };
        let import = match prefix {
            PrefixRule::Length { bytes } => format!("import with --prefix-bytes {bytes}{list}"),
            PrefixRule::Delimiter { byte } if byte.is_ascii_graphic() => {
                format!("import with --prefix-until '{}'{list}", char::from(byte))
            }
            _ => "export as jsonl or binary".to_owned(),
        };
        losses.push(format!("{format} cannot describe the order of keyspace {name:?}: {import}"));
    }
    if head.plan.is_some() {
        losses.push(format!(
            "{format} cannot describe the plan of keyspace {name:?}: export as jsonl or binary, or give it again by \
             `alluvium plan apply`"
        ));
    }
    if is_empty {
        losses.push(format!(
            "{format} cannot describe keyspace {name:?}, which has no items: export as jsonl or binary"
        ));
    }
    losses
}
