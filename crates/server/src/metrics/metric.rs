//! [`Metric`]: a family of figures, and [`MetricSink`]: where they are written.

/// A family of figures: its name, and what it means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Metric {
    /// Without the prefix `alluvium_` and without the suffix of its kind. Ends with its unit, if it has one.
    pub name: &'static str,
    /// How it changes.
    pub kind: MetricKind,
    /// One sentence for people.
    pub help: &'static str,
}

/// How the figures of a family change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// They only grow until the server ends. Their names get the suffix `_total`.
    Counter,
    /// They grow and fall.
    Gauge,
    /// Always 1: the labels are the information. The name gets the suffix `_info`.
    Info,
}

impl Metric {
    /// A family of figures that only grow.
    pub const fn counter(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Counter, help }
    }

    /// A family of figures that grow and fall.
    pub const fn gauge(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Gauge, help }
    }

    /// A family whose labels are the information.
    pub const fn info(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: MetricKind::Info, help }
    }
}

impl MetricKind {
    /// The end of the names of its figures.
    pub(super) fn suffix(self) -> &'static str {
        match self {
            Self::Counter => "_total",
            Self::Gauge => "",
            Self::Info => "_info",
        }
    }

    /// The name of the kind in OpenMetrics.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Info => "info",
        }
    }
}

/// Where a store writes its figures when it is observed.
pub trait MetricSink {
    /// A figure of a family. The labels distinguish it from the others of the family; labels made from keys or values
    /// would be without bound, and are not allowed. A value that is not finite is omitted.
    fn number(&mut self, metric: Metric, labels: &[(&'static str, &str)], value: f64);

    /// A JSON value for `/stats.json`, under this name. `json` is called only if the value is wanted.
    fn document(&mut self, name: &'static str, json: &mut dyn FnMut() -> String);
}
