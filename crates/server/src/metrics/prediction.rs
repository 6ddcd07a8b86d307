//! [`Predictor`]: what the plan of a keyspace should cost, to be shown beside what it does.

use std::sync::{Mutex, PoisonError};

use alluvium::{Plan, Stats};
use alluvium_model::KeyDistribution;
use alluvium_model::models::Component;
use alluvium_model::plan_model::{ItemSize, PlanCost, PlanModel, Workload};
use serde_json::{Value, json};

use super::metric::{Metric, MetricSink};

/// Fewer items are not worth a prediction: the log has most of them.
const ITEMS_MIN: f64 = 1_000.0;
/// A prediction holds until items or their sizes differ by more than this factor.
const CHANGE: f64 = 1.05;
/// Bytes of a key, where only those of whole items are known. The model uses their sum only, for plans of levels.
const KEY_BYTES: f64 = 16.0;

/// What is predicted.
#[derive(Clone, Debug, PartialEq)]
struct Question {
    plan: Plan,
    items: f64,
    item_bytes: f64,
    /// Bytes that filters and indexes may take; infinite if there is no limit.
    index_bytes_max: f64,
}

impl Question {
    fn new(plan: Plan, stats: &Stats) -> Option<Self> {
        let (items, bytes) =
            stats.levels.iter().fold((0, 0), |sum, level| (sum.0 + level.items, sum.1 + level.bytes));
        let (count, bytes) = match stats.traffic.puts {
            0 => (items, bytes),
            puts => (puts, stats.traffic.bytes_put),
        };
        let items = items as f64;
        let item_bytes = bytes as f64 / count as f64;
        let index_bytes_max = stats.memory_limit.index_bytes_max.map_or(f64::INFINITY, |bytes| bytes as f64);
        (items >= ITEMS_MIN && item_bytes >= 1.0).then_some(Self { plan, items, item_bytes, index_bytes_max })
    }

    fn is_close(&self, other: &Self) -> bool {
        let close = |left: f64, right: f64| left == right || (left < right * CHANGE && right < left * CHANGE);
        self.plan == other.plan
            && close(self.items, other.items)
            && close(self.item_bytes, other.item_bytes)
            && close(self.index_bytes_max, other.index_bytes_max)
    }

    fn answer(&self) -> Option<Answer> {
        let keys = KeyDistribution::uniform(self.items).ok()?;
        let key_bytes = KEY_BYTES.min(self.item_bytes / 2.0);
        let item = ItemSize { key_bytes, value_bytes: self.item_bytes - key_bytes, deviation_bytes: 0.0 };
        let cost = |workload: Workload| {
            let model = PlanModel::new(self.plan.clone(), workload);
            PlanModel { memory_limit_bytes: self.index_bytes_max, ..model }.cost().ok()
        };
        let load = cost(Workload::load(self.items, item).ok()?)?;
        Some(Answer { load, update: cost(Workload::updates(keys, item))? })
    }
}

/// The costs under two kinds of writes; those of any mix are between them.
#[derive(Clone, Debug)]
struct Answer {
    /// All writes are of new keys.
    load: PlanCost,
    /// All writes are of present keys, each equally likely.
    update: PlanCost,
}

/// Predicts, and remembers the last answer: it takes up to milliseconds, and the same is asked at each scrape.
#[derive(Debug, Default)]
pub(crate) struct Predictor(Mutex<Option<(Question, Option<Answer>)>>);

impl Predictor {
    /// Writes what a keyspace of this plan should cost, if it had all the items.
    pub(super) fn observe(&self, plan: Plan, stats: &Stats, sink: &mut dyn MetricSink) {
        let described = plan.to_string();
        let question = Question::new(plan, stats);
        let answer = question.as_ref().and_then(|question| self.answer(question));
        if let Some(Answer { load, update }) = &answer {
            let writes = Metric::gauge(
                "predicted_write_amplification",
                "Bytes that the plan should write for each byte put, if all keys were new or all were overwritten.",
            );
            sink.number(writes, &[("workload", "load")], load.cost.write_amplification());
            sink.number(writes, &[("workload", "update")], update.cost.write_amplification());
            let reads = Metric::gauge(
                "predicted_reads_per_get",
                "Device reads of a get that neither log nor row cache answers.",
            );
            sink.number(reads, &[("key", "present")], update.cost.reads_per_get);
            sink.number(reads, &[("key", "absent")], update.cost.reads_per_miss);
        }
        sink.document("plan", &mut || {
            let predicted = answer.as_ref().map(
                |Answer { load, update }| json!({ "load": explained(load), "update": explained(update) }),
            );
            let asked = question.as_ref();
            json!({
                "plan": described,
                "items": asked.map(|question| question.items),
                "item_bytes": asked.map(|question| question.item_bytes),
                "predicted": predicted,
            })
            .to_string()
        });
    }

    fn answer(&self, question: &Question) -> Option<Answer> {
        let mut last = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*last {
            Some((known, answer)) if known.is_close(question) => answer.clone(),
            _ => {
                let answer = question.answer();
                *last = Some((question.clone(), answer.clone()));
                answer
            }
        }
    }
}

/// A cost by its parts.
fn explained(cost: &PlanCost) -> Value {
    let parts = |components: &[Component]| -> Value {
        let parts = components.iter().filter(|component| component.amount > 0.0);
        parts.map(|component| json!({ "name": component.name, "amount": component.amount })).collect()
    };
    let PlanCost { cost, .. } = cost;
    json!({
        "write_amplification": cost.write_amplification(),
        "writes": parts(&cost.writes),
        "reads_per_get": cost.reads_per_get,
        "reads_per_miss": cost.reads_per_miss,
        "memory_bytes_per_item": cost.bytes_per_item(),
        "memory": parts(&cost.memory),
        "space_amplification": cost.space_amplification(),
    })
}

#[cfg(test)]
mod tests {
    use alluvium::{LevelStats, TrafficStats};

    use super::super::samples::Samples;
    use super::*;

    fn stats(items: u64) -> Stats {
        let level = LevelStats { items, bytes: 120 * items, ..LevelStats::default() };
        Stats { levels: vec![level], ..Stats::default() }
    }

    #[test]
    fn a_plan_is_priced_again_when_data_have_changed() {
        let predictor = Predictor::default();
        let plan = || Plan::named("silt").unwrap();
        let predicted = |items: u64| {
            let mut samples = Samples { with_documents: true, ..Samples::default() };
            predictor.observe(plan(), &stats(items), &mut samples);
            samples.families.first().map(|family| [family.samples[0].value, family.samples[1].value])
        };
        assert_eq!(predicted(10), None);
        let [load, update] = predicted(1_000_000).unwrap();
        assert!(load > 1.0 && update > 1.0);
        assert_eq!(predicted(1_040_000), Some([load, update]));
        assert_ne!(predicted(10_000_000), Some([load, update]));
    }

    #[test]
    fn sizes_are_those_of_puts_if_there_were_any() {
        let traffic = TrafficStats { puts: 10, bytes_put: 500, ..TrafficStats::default() };
        let asked = |stats: Stats| Question::new(Plan::named("silt").unwrap(), &stats).unwrap().item_bytes;
        assert_eq!(asked(stats(2_000)), 120.0);
        assert_eq!(asked(Stats { traffic, ..stats(2_000) }), 50.0);
    }
}
