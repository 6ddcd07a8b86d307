//! The figures of a store as a report, under their names in `/metrics`.

use super::open_metrics::PREFIX;
use super::samples::Samples;
use crate::Store;
use crate::store::{Report, ReportValue};

/// All figures of the store.
pub(crate) fn store_figures(store: &dyn Store) -> Report {
    let mut samples = Samples::default();
    store.observe(&mut samples);
    let mut report = Report::new();
    for family in &samples.families {
        let name = format!("{PREFIX}{}{}", family.metric.name, family.metric.kind.suffix());
        for sample in &family.samples {
            let labels: Vec<String> =
                sample.labels.iter().map(|(label, text)| format!("{label}=\"{text}\"")).collect();
            let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
            let is_whole = sample.value.fract() == 0.0 && (0.0..9e15).contains(&sample.value);
            let value = match is_whole {
                true => ReportValue::Integer(sample.value as u64),
                false => ReportValue::Number(sample.value),
            };
            report.push((format!("{name}{labels}"), value));
        }
    }
    report
}
