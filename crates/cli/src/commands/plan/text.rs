//! A result for a terminal.

use alluvium_base::units::format_bytes;
use alluvium_model::models::Component;
use alluvium_model::planner::Candidate;

use super::report::Report;

/// Note on a plan that cannot keep all its filters and indexes in memory.
const DEGRADED: &str = " (with a part of its filters and indexes on flash)";

/// The plan, its costs by source, the reasons, and the alternatives.
pub fn text(report: &Report<'_>, explain: bool) -> String {
    let figures = &report.recommended.figures;
    let cost = &report.cost.cost;
    let memory = format_bytes((figures.bytes_per_item * report.items()) as u64);
    let mut lines = vec![
        format!(
            "plan  {}{}",
            report.recommended.plan,
            if report.recommended.is_degraded() { DEGRADED } else { "" }
        ),
        String::new(),
        format!("bytes written per byte put   {:>9.3}  {}", figures.write_amplification, parts(&cost.writes)),
        format!("device reads per present key {:>9.4}", figures.reads_per_get),
        format!("device reads per absent key  {:>9.4}", figures.reads_per_miss),
        format!(
            "memory bytes per item        {:>9.3}  {}; {memory} in all",
            figures.bytes_per_item,
            parts(&cost.memory)
        ),
        format!("device bytes per live byte   {:>9.3}  {}", figures.space_amplification, parts(&cost.space)),
        format!("log held in memory besides   {:>9}", format_bytes(report.cost.write_buffer_bytes as u64)),
        format!("device lifetime, years       {:>9.2}", report.lifetime_years),
        String::new(),
    ];
    let is_wanted =
        |sentence: &&String| explain || sentence.contains("binds") || sentence.contains("No plan");
    lines.extend(report.planned.explanation.iter().filter(is_wanted).cloned());
    lines.push(String::new());
    lines.push("   writes    reads   memory  us/op".to_owned());
    let beside = |name: &str, candidate: &Candidate, note: &str| {
        let figures = &candidate.figures;
        format!(
            "{:>9.3} {:>8.4} {:>8.3} {:>6.3}  {name}{note}",
            figures.write_amplification,
            figures.reads_per_lookup,
            figures.bytes_per_item,
            figures.score_us(report.demand)
        )
    };
    lines.push(beside("this plan", report.recommended, ""));
    let executed = |candidate: &Candidate| if candidate.is_executable { "" } else { " (not executed yet)" };
    for named in &report.planned.named {
        let over = if named.keeps_limits { "" } else { " (over the limits)" };
        lines.push(beside(named.name, &named.candidate, &format!("{over}{}", executed(&named.candidate))));
    }
    lines.push("next best:".to_owned());
    let others = report.planned.best.iter().chain(&report.planned.runners_up);
    for candidate in others.filter(|candidate| candidate.plan != report.recommended.plan) {
        lines.push(beside(&candidate.plan.to_string(), candidate, executed(candidate)));
    }
    lines.join("\n") + "\n"
}

fn parts(parts: &[Component]) -> String {
    let shown: Vec<String> = parts.iter().map(|part| format!("{} {:.3}", part.name, part.amount)).collect();
    shown.join(", ")
}
