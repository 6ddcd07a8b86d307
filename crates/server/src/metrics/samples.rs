//! [`Samples`]: the figures of one moment, grouped by family.

use super::latency::Latencies;
use super::metric::{Metric, MetricSink};

/// All that is reported at one moment.
#[derive(Debug, Default)]
pub(super) struct Samples {
    pub families: Vec<Family>,
    pub histograms: Vec<HistogramFamily>,
    /// JSON values with their names.
    pub documents: Vec<(&'static str, String)>,
    /// Whether documents are wanted.
    pub with_documents: bool,
}

/// The figures of one family, which OpenMetrics wants together.
#[derive(Debug)]
pub(super) struct Family {
    pub metric: Metric,
    pub samples: Vec<Sample>,
}

#[derive(Debug)]
pub(super) struct Sample {
    pub labels: Labels,
    pub value: f64,
}

/// Histograms of one family.
#[derive(Debug)]
pub(super) struct HistogramFamily {
    pub name: &'static str,
    pub help: &'static str,
    pub samples: Vec<(Labels, Latencies)>,
}

/// Names and values.
pub(super) type Labels = Vec<(&'static str, String)>;

impl MetricSink for Samples {
    fn number(&mut self, metric: Metric, labels: &[(&'static str, &str)], value: f64) {
        if !value.is_finite() {
            return;
        }
        let labels = labels.iter().map(|&(name, text)| (name, text.to_owned())).collect();
        let sample = Sample { labels, value };
        // Most figures follow one of their family.
        match self.families.iter_mut().rev().find(|family| family.metric.name == metric.name) {
            Some(family) => family.samples.push(sample),
            None => self.families.push(Family { metric, samples: vec![sample] }),
        }
    }

    fn document(&mut self, name: &'static str, json: &mut dyn FnMut() -> String) {
        if self.with_documents {
            self.documents.push((name, json()));
        }
    }
}
