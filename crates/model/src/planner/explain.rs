//! Explains in words why a plan was chosen.

use super::choice::{Planned, best};
use super::demand::{Demand, Limits};
use super::figures::{Candidate, Figures};
use crate::Plan;

/// Factor by which a limit is relaxed to see what it costs.
const LOOSER: f64 = 1.25;
/// Share of the chosen plan's memory that the next cheaper plan may take.
const CHEAPER: f64 = 0.8;

/// Sentences that say what was compared, what was chosen, which limits bind and what they cost, what the next cheaper
/// plan would cost, and what the engine does not execute yet.
pub(super) fn explain(demand: &Demand, planned: &Planned) -> Vec<String> {
    let mut sentences = vec![format!(
        "{:.3e} legal plans were compared; {} of them are beaten by no other in writes, reads and memory at once.",
        planned.plans,
        planned.frontier.len()
    )];
    let Some(chosen) = planned.recommended() else {
        sentences.push(format!("No plan keeps all limits. {}", least(planned)));
        return sentences;
    };
    if chosen.is_degraded() {
        let (plans, why) = match planned.executable {
            Some(_) => ("plan of levels", ", which takes less time than to follow long chains"),
            None => ("plan", ""),
        };
        sentences.push(format!(
            "No {plans} keeps all limits with its filters and indexes in memory; this one reads a part of them from \
             flash{why}. {}",
            least(planned)
        ));
    } else if planned.executable.is_none() {
        sentences
            .push("No plan that the engine executes keeps the limits; the best of all is shown.".to_owned());
    }
    sentences.push(format!("Chosen: {}. It costs {}.", chosen.plan, figures(&chosen.figures, demand)));
    sentences.push(what_counts(demand, &chosen.figures));
    let pool = if planned.executable.is_some() { &planned.executable_frontier } else { &planned.frontier };
    if chosen.is_degraded() {
        return sentences;
    }
    sentences.extend(chains(demand, chosen, pool));
    sentences.extend(limits(demand, chosen, pool));
    sentences.push(cheaper(demand, chosen, pool));
    if let Some(best) = planned.best.as_ref().filter(|best| !best.is_executable && chosen.is_executable) {
        let gain = 1.0 - best.figures.score_us(demand) / chosen.figures.score_us(demand);
        let reason = best.plan.check_executable().err().map_or(String::new(), |error| error.0);
        sentences.push(format!(
            "A plan that is not executed yet ({reason}) would take {:.1} % less time of the device: {}. It would cost \
             {}.",
            gain * 100.0,
            best.plan,
            figures(&best.figures, demand)
        ));
    }
    sentences
}

/// Why a chained plan was chosen, in spite of its reads.
fn chains(demand: &Demand, chosen: &Candidate, pool: &[Candidate]) -> Vec<String> {
    let Plan::Chained(spec) = &chosen.plan else { return Vec::new() };
    let mut sentences = vec![format!(
        "It was chosen for its few rewrites: the log is the store, and an item is written again only when {:.0} % of \
         the log are garbage. A get pays for it, with {:.1} reads for a present and {:.2} for an absent key: {} items \
         share a chain.",
        spec.garbage_share_max * 100.0,
        chosen.figures.reads_per_get,
        chosen.figures.reads_per_miss,
        spec.chain_length_mean
    )];
    let levels = pool.iter().filter(|candidate| !candidate.is_chained());
    if let Some(levels) = best(levels, demand, &demand.limits) {
        sentences.push(format!(
            "The best plan of levels would take {:.1} % more time of the device: {}, at {}.",
            100.0 * (levels.figures.score_us(demand) / chosen.figures.score_us(demand) - 1.0),
            levels.plan,
            figures(&levels.figures, demand)
        ));
    }
    sentences
}

/// The figures in words.
fn figures(figures: &Figures, demand: &Demand) -> String {
    format!(
        "{:.2} bytes written per byte put, {:.4} reads per lookup and {:.3} bytes of memory per item ({:.1} MiB)",
        figures.write_amplification,
        figures.reads_per_lookup,
        figures.bytes_per_item,
        figures.bytes_per_item * demand.workload.live_keys() / 1_048_576.0
    )
}

fn what_counts(demand: &Demand, figures: &Figures) -> String {
    let all = figures.score_us(demand);
    let lookups = demand.mix.lookup_share() * demand.weights.read * figures.reads_per_lookup * 1e6
        / demand.device.reads_per_s_max();
    format!(
        "An operation takes {all:.3} us of the device on average, {:.0} % of it for reading; the plan of least time \
         within the limits is taken.",
        100.0 * lookups / all.max(f64::MIN_POSITIVE)
    )
}

/// A sentence for each limit that is set: whether it binds, and what relaxing it by a quarter would save.
fn limits(demand: &Demand, chosen: &Candidate, pool: &[Candidate]) -> Vec<String> {
    let set = demand.limits;
    let looser = [
        (
            format!("memory, {:.1} MiB,", set.memory_bytes / 1_048_576.0),
            set.memory_bytes,
            Limits { memory_bytes: set.memory_bytes * LOOSER, ..set },
        ),
        (
            format!("write amplification, {},", set.write_amplification),
            set.write_amplification,
            Limits { write_amplification: set.write_amplification * LOOSER, ..set },
        ),
        (
            format!("reads per lookup, {},", set.reads_per_lookup),
            set.reads_per_lookup,
            Limits { reads_per_lookup: set.reads_per_lookup * LOOSER, ..set },
        ),
    ];
    let sentence = |(name, _, looser): (String, f64, Limits)| {
        let score = chosen.figures.score_us(demand);
        let other = best(pool, demand, &looser).filter(|other| other.figures.score_us(demand) < score);
        match other {
            None => format!("The limit on {name} does not bind."),
            Some(other) => format!(
                "The limit on {name} binds: with a quarter more of it the best plan would be {}, at {}, \
                 {:.2} % less time of the device.",
                other.plan,
                figures(&other.figures, demand),
                100.0 * (1.0 - other.figures.score_us(demand) / score)
            ),
        }
    };
    looser.into_iter().filter(|(_, limit, _)| limit.is_finite()).map(sentence).collect()
}

/// What the best plan with a fifth less memory would cost.
fn cheaper(demand: &Demand, chosen: &Candidate, pool: &[Candidate]) -> String {
    let memory_bytes = CHEAPER * chosen.figures.bytes_per_item * demand.workload.live_keys();
    match best(pool, demand, &Limits { memory_bytes, ..demand.limits }) {
        None => "No plan within the limits takes a fifth less memory.".to_owned(),
        Some(other) => format!(
            "With a fifth less memory the best plan would be {}, at {}.",
            other.plan,
            figures(&other.figures, demand)
        ),
    }
}

/// The minimum of each figure alone.
fn least(planned: &Planned) -> String {
    let least = |axis: usize| {
        let values = planned.frontier.iter().map(|candidate| candidate.figures.axes()[axis]);
        values.fold(f64::INFINITY, f64::min)
    };
    format!(
        "Alone, memory can be brought down to {:.3} bytes per item, writes to {:.2} per byte put, reads to {:.4} per \
         lookup.",
        least(0),
        least(1),
        least(2)
    )
}
