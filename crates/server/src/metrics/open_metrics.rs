//! The figures as OpenMetrics text, which Prometheus and compatible programs scrape.

use std::fmt::{self, Write};

use super::latency::{FINITE_BUCKETS, Latencies, bound_ns};
use super::samples::{Labels, Samples};

pub(super) const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Before each name.
pub(super) const PREFIX: &str = "alluvium_";

/// The text of all figures.
pub(super) fn text(samples: &Samples) -> String {
    let mut out = String::with_capacity(64 << 10);
    write(samples, &mut out).expect("writing to a string");
    out
}

fn write(samples: &Samples, out: &mut String) -> fmt::Result {
    for family in &samples.families {
        let (name, kind) = (family.metric.name, family.metric.kind);
        writeln!(out, "# TYPE {PREFIX}{name} {}\n# HELP {PREFIX}{name} {}", kind.name(), family.metric.help)?;
        for sample in &family.samples {
            write!(out, "{PREFIX}{name}{}", kind.suffix())?;
            labels(&sample.labels, None, out)?;
            writeln!(out, " {}", sample.value)?;
        }
    }
    for family in &samples.histograms {
        let name = family.name;
        writeln!(out, "# TYPE {PREFIX}{name} histogram\n# HELP {PREFIX}{name} {}", family.help)?;
        for (names, latencies) in &family.samples {
            histogram(name, names, latencies, out)?;
        }
    }
    out.write_str("# EOF\n")
}

/// Every second bound is shown: each series costs its reader memory.
fn histogram(name: &str, names: &Labels, latencies: &Latencies, out: &mut String) -> fmt::Result {
    let mut count = 0;
    for (bucket, more) in latencies.counts.iter().enumerate() {
        count += more;
        let is_last = bucket == FINITE_BUCKETS;
        if bucket % 2 == 0 && !is_last {
            continue;
        }
        let bound = if is_last { "+Inf".to_owned() } else { (bound_ns(bucket) as f64 / 1e9).to_string() };
        write!(out, "{PREFIX}{name}_bucket")?;
        labels(names, Some(&bound), out)?;
        writeln!(out, " {count}")?;
    }
    for (suffix, value) in [("_count", count as f64), ("_sum", latencies.total_ns as f64 / 1e9)] {
        write!(out, "{PREFIX}{name}{suffix}")?;
        labels(names, None, out)?;
        writeln!(out, " {value}")?;
    }
    Ok(())
}

fn labels(labels: &Labels, bound: Option<&str>, out: &mut String) -> fmt::Result {
    let bound = bound.map(|bound| ("le", bound));
    let mut separator = '{';
    for (name, value) in labels.iter().map(|(name, value)| (*name, value.as_str())).chain(bound) {
        write!(out, "{separator}{name}=\"")?;
        for character in value.chars() {
            match character {
                '\\' => out.write_str("\\\\")?,
                '"' => out.write_str("\\\"")?,
                '\n' => out.write_str("\\n")?,
                other => out.write_char(other)?,
            }
        }
        out.write_char('"')?;
        separator = ',';
    }
    if separator == ',' { out.write_char('}') } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::super::latency::LatencyHistogram;
    use super::super::metric::{Metric, MetricSink};
    use super::super::samples::HistogramFamily;
    use super::*;

    #[test]
    fn families_stand_together() {
        let mut samples = Samples::default();
        let puts = Metric::counter("puts", "Items written.");
        let level = |name: &'static str| Metric::gauge(name, "Of a level.");
        samples.number(puts, &[], 3.0);
        samples.number(level("level_items"), &[("level", "log")], 1.5);
        samples.number(level("level_bytes"), &[("level", "log")], 2e18);
        samples.number(level("level_items"), &[("level", "a\"\\\n")], f64::INFINITY);
        samples.number(level("level_items"), &[("level", "a\"\\\n")], 0.0);
        assert_eq!(
            text(&samples),
            "# TYPE alluvium_puts counter\n# HELP alluvium_puts Items written.\nalluvium_puts_total 3\n\
             # TYPE alluvium_level_items gauge\n# HELP alluvium_level_items Of a level.\n\
             alluvium_level_items{level=\"log\"} 1.5\nalluvium_level_items{level=\"a\\\"\\\\\\n\"} 0\n\
             # TYPE alluvium_level_bytes gauge\n# HELP alluvium_level_bytes Of a level.\n\
             alluvium_level_bytes{level=\"log\"} 2000000000000000000\n# EOF\n"
        );
    }

    #[test]
    fn histograms_are_cumulative() {
        let histogram = LatencyHistogram::default();
        for ns in [400, 900, 1_800, 1 << 40] {
            histogram.record(ns, 1);
        }
        let mut latencies = Latencies::default();
        latencies.add(&histogram);
        let samples = vec![(vec![("command", "get".to_owned())], latencies)];
        let samples = Samples {
            histograms: vec![HistogramFamily { name: "duration_seconds", help: "Time.", samples }],
            ..Samples::default()
        };
        let text = text(&samples);
        let start = "# TYPE alluvium_duration_seconds histogram\n# HELP alluvium_duration_seconds Time.\n\
                     alluvium_duration_seconds_bucket{command=\"get\",le=\"0.000001\"} 2\n\
                     alluvium_duration_seconds_bucket{command=\"get\",le=\"0.000002\"} 3\n";
        assert!(text.starts_with(start), "{text}");
        let end = "_bucket{command=\"get\",le=\"8.388608\"} 3\n\
                   alluvium_duration_seconds_bucket{command=\"get\",le=\"+Inf\"} 4\n\
                   alluvium_duration_seconds_count{command=\"get\"} 4\n\
                   alluvium_duration_seconds_sum{command=\"get\"} 1099.511630876\n# EOF\n";
        assert!(text.ends_with(end), "{text}");
    }
}
