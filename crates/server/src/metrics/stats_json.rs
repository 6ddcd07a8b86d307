//! The figures as one JSON object, for the built-in page and for programs.
//!
//! `metrics` has the figures of `/metrics` under their names there, each a list of objects of labels and `value`;
//! histograms have `count`, `sum` and `buckets` instead, the counts of each bucket alone. `documents` has what is not
//! a number.

use std::time::{SystemTime, UNIX_EPOCH};

use serde_json::{Map, Value, json, value::RawValue};

use super::latency::{FINITE_BUCKETS, bound_ns};
use super::open_metrics::PREFIX;
use super::samples::{Labels, Samples};

pub(super) const CONTENT_TYPE: &str = "application/json";

/// The object. Figures of a family are in the order in which they were observed.
pub(super) fn text(samples: &Samples, health: &Value) -> String {
    let mut metrics = Map::new();
    for family in &samples.families {
        let name = format!("{PREFIX}{}{}", family.metric.name, family.metric.kind.suffix());
        let figures = family.samples.iter().map(|sample| {
            let mut figure = labelled(&sample.labels);
            figure.insert("value".to_owned(), number(sample.value));
            Value::Object(figure)
        });
        metrics.insert(name, figures.collect());
    }
    for family in &samples.histograms {
        let figures = family.samples.iter().map(|(labels, latencies)| {
            let mut figure = labelled(labels);
            figure.insert("count".to_owned(), latencies.count().into());
            figure.insert("sum".to_owned(), (latencies.total_ns as f64 / 1e9).into());
            figure.insert("buckets".to_owned(), latencies.counts.as_slice().into());
            Value::Object(figure)
        });
        metrics.insert(format!("{PREFIX}{}", family.name), figures.collect());
    }
    let bounds: Vec<f64> = (0..FINITE_BUCKETS).map(|bucket| bound_ns(bucket) as f64 / 1e9).collect();
    let at_ms = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let head = json!({
        "at_ms": u64::try_from(at_ms).unwrap_or(u64::MAX),
        "health": health,
        "bucket_bounds_seconds": bounds,
        "metrics": metrics,
    });
    let mut text = head.to_string();
    text.pop();
    text.push_str(",\"documents\":{");
    for (position, (name, document)) in samples.documents.iter().enumerate() {
        // A store that writes something else than JSON spoils only its own document.
        let document = if serde_json::from_str::<&RawValue>(document).is_ok() { document } else { "null" };
        let separator = if position == 0 { "" } else { "," };
        text.push_str(&format!("{separator}{}:{document}", Value::from(*name)));
    }
    text.push_str("}}");
    text
}

fn labelled(labels: &Labels) -> Map<String, Value> {
    labels.iter().map(|(name, value)| ((*name).to_owned(), Value::from(value.as_str()))).collect()
}

/// Whole numbers stay whole.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { (value as i64).into() } else { value.into() }
}

#[cfg(test)]
mod tests {
    use super::super::metric::{Metric, MetricSink};
    use super::*;

    #[test]
    fn it_is_json_whatever_a_store_writes() {
        let mut samples = Samples { with_documents: true, ..Samples::default() };
        samples.number(Metric::counter("puts", ""), &[("by", "a\"b")], 3.0);
        samples.number(Metric::gauge("share", ""), &[], 0.5);
        samples.document("good", &mut || "{\"a\":[1]}".to_owned());
        samples.document("bad", &mut || "1}".to_owned());
        let text = text(&samples, &json!({ "status": "healthy" }));
        let value: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(value["metrics"]["alluvium_puts_total"], json!([{ "by": "a\"b", "value": 3 }]));
        assert_eq!(value["metrics"]["alluvium_share"], json!([{ "value": 0.5 }]));
        assert_eq!(value["documents"], json!({ "good": { "a": [1] }, "bad": null }));
        assert_eq!(value["health"]["status"], "healthy");
        assert_eq!(value["bucket_bounds_seconds"][0], 5e-7);
    }
}
