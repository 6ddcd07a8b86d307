//! `stats`

use std::sync::atomic::Ordering;

use alluvium_protocol::memcached::{Answer, Detail, Error, Key, Statistics};

use super::item::now_s;
use super::{Context, Count, Failure, MEMCACHED_VERSION};

/// Parts that describe slabs are empty: items are not stored in slabs.
pub(super) fn statistics(part: Statistics, context: &mut Context<'_>) -> Result<(), Failure> {
    match part {
        Statistics::General => general(context),
        Statistics::Settings => settings(context),
        Statistics::Slabs => {
            context.reply.statistic("active_slabs", "0");
            context.reply.statistic("total_malloced", "0");
        }
        Statistics::Sizes | Statistics::SizesDisable => context.reply.statistic("sizes_status", "disabled"),
        Statistics::SizesEnable => {
            context.reply.statistic("sizes_status", "error");
            context.reply.statistic("sizes_error", "no_memory");
        }
        Statistics::Items | Statistics::Connections | Statistics::Detail(Detail::Dump) => {}
        Statistics::Detail(Detail::On | Detail::Off) => {
            context.reply.answer(Answer::Ok);
            return Ok(());
        }
        Statistics::CacheDump { .. } => return Err(Failure::Line(Error::CacheDumpDisabled)),
        Statistics::Reset => {
            context.shared.memcached.counts.reset();
            context.reply.answer(Answer::Reset);
            return Ok(());
        }
    }
    context.reply.end();
    Ok(())
}

fn general(context: &mut Context<'_>) {
    let shared = context.shared;
    context.counts.move_to(&shared.memcached.counts);
    let count = |count| shared.memcached.counts.get(count);
    let (hits, misses) = (count(Count::GetHits), count(Count::GetMisses));
    let (touch_hits, touch_misses) = (count(Count::TouchHits), count(Count::TouchMisses));
    let items = context.database().approximate_len();
    let lines = [
        ("pid", u64::from(std::process::id())),
        ("uptime", shared.started.elapsed().as_secs()),
        ("time", now_s()),
        ("pointer_size", u64::from(usize::BITS)),
        ("max_connections", shared.clients_max() as u64),
        ("curr_connections", shared.clients.load(Ordering::Relaxed) as u64),
        ("total_connections", shared.connections_accepted.load(Ordering::Relaxed)),
        ("rejected_connections", shared.connections_refused.load(Ordering::Relaxed)),
        ("cmd_get", hits + misses),
        ("cmd_set", count(Count::Sets)),
        ("cmd_flush", count(Count::Flushes)),
        ("cmd_touch", touch_hits + touch_misses),
        ("get_hits", hits),
        ("get_misses", misses),
        ("delete_misses", count(Count::DeleteMisses)),
        ("delete_hits", count(Count::DeleteHits)),
        ("incr_misses", count(Count::IncrementMisses)),
        ("incr_hits", count(Count::IncrementHits)),
        ("decr_misses", count(Count::DecrementMisses)),
        ("decr_hits", count(Count::DecrementHits)),
        ("cas_misses", count(Count::CasMisses)),
        ("cas_hits", count(Count::CasHits)),
        ("cas_badval", count(Count::CasDiffers)),
        ("touch_hits", touch_hits),
        ("touch_misses", touch_misses),
        ("threads", shared.options.workers.get() as u64),
        ("bytes", shared.store.memory_bytes()),
        ("limit_maxbytes", shared.store.memory_bytes_max()),
        ("curr_items", items),
    ];
    for (position, (name, number)) in lines.into_iter().enumerate() {
        context.reply.statistic(name, number.to_string());
        if position == 2 {
            context.reply.statistic("version", MEMCACHED_VERSION);
        }
    }
}

fn settings(context: &mut Context<'_>) {
    let options = &context.shared.options;
    let user = context.shared.users.default();
    let is_open = user.needs_no_password() && user.is_unrestricted();
    let address = options.memcached_address.unwrap_or(context.shared.address);
    for (name, value) in [
        ("maxbytes", context.shared.store.memory_bytes_max().to_string()),
        ("maxconns", context.shared.clients_max().to_string()),
        ("tcpport", address.port().to_string()),
        ("udpport", "0".to_owned()),
        ("inter", address.ip().to_string()),
        ("verbosity", "0".to_owned()),
        ("cas_enabled", "yes".to_owned()),
        ("auth_enabled_ascii", if is_open { "no" } else { "yes" }.to_owned()),
        ("item_size_max", options.memcached_limits.value_bytes_max.to_string()),
        ("num_threads", options.workers.to_string()),
        ("max_key_bytes", Key::BYTES_MAX.to_string()),
        ("flush_enabled", "yes".to_owned()),
        ("dump_enabled", "no".to_owned()),
        ("binding_protocol", "ascii".to_owned()),
    ] {
        context.reply.statistic(name, value);
    }
}
