//! A result as one page that needs no network: costs, frontier, levels, reasons, and everything that is drawn as a
//! table, too.

use alluvium_model::models::Component;
use alluvium_model::planner::Candidate;

use super::picture;
use super::report::Report;

const STYLE: &str = concat!(include_str!("picture.css"), include_str!("page.css"));
const SCRIPT: &str = include_str!("page.js");

/// The page.
pub fn page(report: &Report<'_>) -> String {
    let items = report.subject();
    let executed = if report.recommended.is_executable {
        "The engine executes it."
    } else {
        "The engine does not execute it yet."
    };
    let cards: String = report
        .headline()
        .iter()
        .map(|(figure, name)| format!("<div class=\"card\"><b>{figure}</b><span>{name}</span></div>"))
        .collect();
    let reasons: String =
        report.planned.explanation.iter().map(|sentence| format!("<p>{}</p>\n", escaped(sentence))).collect();
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <title>Alluvium: plan for {items}</title>\n<style>\n{STYLE}</style>\n<main>\n\
         <h1>Plan for {items}</h1>\n<p><code>{plan}</code></p>\n<p class=\"soft\">{executed}</p>\n\
         <div class=\"cards\">{cards}</div>\n\
         <h2>The plan as levels</h2>\n<figure>{levels}</figure>\n{sources}\n\
         <h2>What no other plan beats</h2>\n<figure>{frontier}{legend}</figure>\n\
         <h2>Why this plan</h2>\n{reasons}\
         <h2>Beside it</h2>\n{beside}\n\
         <details><summary>All points as a table</summary>{points}</details>\n\
         </main>\n<div id=\"tip\" role=\"presentation\"></div>\n<script>\n{SCRIPT}</script>\n</html>\n",
        plan = escaped(&report.recommended.plan.to_string()),
        levels = picture::levels_figure(report),
        sources = sources(report),
        frontier = picture::frontier_figure(report),
        legend = picture::legend(),
        beside = beside(report),
        points = table(report, report.points().into_iter().map(|point| (None, point))),
    )
}

/// The parts of each cost.
fn sources(report: &Report<'_>) -> String {
    let cost = &report.cost.cost;
    let row = |name: &str, parts: &[Component]| {
        let shown: Vec<String> =
            parts.iter().map(|part| format!("{} {:.3}", escaped(&part.name), part.amount)).collect();
        format!("<p><span class=\"soft\">{name}:</span> {}</p>", shown.join(", "))
    };
    row("Bytes written per byte put", &cost.writes)
        + &row("Bytes of memory per item", &cost.memory)
        + &row("Device bytes per live byte", &cost.space)
}

fn beside(report: &Report<'_>) -> String {
    let named = report.planned.named.iter().map(|named| (Some(named.name), &named.candidate));
    let best = report.planned.best.iter().chain(&report.planned.runners_up);
    let others = best.filter(|candidate| candidate.plan != report.recommended.plan);
    let rows = [(None, report.recommended)].into_iter().chain(named).chain(others.map(|other| (None, other)));
    table(report, rows)
}

fn table<'a>(
    report: &Report<'_>,
    rows: impl Iterator<Item = (Option<&'static str>, &'a Candidate)>,
) -> String {
    let rows: String = rows
        .map(|(name, candidate)| {
            let figures = &candidate.figures;
            let class = if candidate.plan == report.recommended.plan { " class=\"chosen-row\"" } else { "" };
            let name = name.map_or(String::new(), |name| format!("<b>{name}</b>: "));
            format!(
                "<tr{class}><td>{:.3}</td><td>{:.4}</td><td>{:.3}</td><td>{:.3}</td><td>{}</td>\
                 <td>{name}{}</td></tr>\n",
                figures.write_amplification,
                figures.reads_per_lookup,
                figures.bytes_per_item,
                figures.score_us(report.demand),
                if candidate.is_executable { "yes" } else { "no" },
                escaped(&candidate.plan.to_string())
            )
        })
        .collect();
    format!(
        "<div class=\"wide\"><table><thead><tr><th scope=\"col\">writes</th><th scope=\"col\">reads</th>\
         <th scope=\"col\">memory, B/item</th><th scope=\"col\">device, us/op</th><th scope=\"col\">executed</th>\
         <th scope=\"col\">plan</th></tr></thead><tbody>\n{rows}</tbody></table></div>"
    )
}

/// Text as HTML.
pub fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
