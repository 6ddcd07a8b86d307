//! Plans as JSON, from files that people write and programs print.

use serde_json::Value;

use super::{Plan, PlanError};

impl Plan {
    /// Parses `text`: either a plan, or an object that contains one as `alluvium plan --json` prints its
    /// recommendation.
    ///
    /// # Errors
    /// [`PlanError`] with the place and the reason if there is no plan, or it isn't legal.
    pub fn from_json(text: &str) -> Result<Self, PlanError> {
        let bad = |error: serde_json::Error| PlanError(format!("not the JSON of a plan: {error}"));
        let value: Value = serde_json::from_str(text).map_err(bad)?;
        let plan = value.pointer("/recommended/plan").unwrap_or(&value).clone();
        let plan: Self = serde_json::from_value(plan).map_err(bad)?;
        plan.validate()?;
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_come_back_alone_and_within_what_the_planner_prints() {
        let plan = Plan::lsm_trie();
        let json = serde_json::to_string(&plan).unwrap();
        assert_eq!(Plan::from_json(&json), Ok(plan.clone()));
        assert_eq!(Plan::from_json(&format!(r#"{{"recommended":{{"plan":{json}}}}}"#)), Ok(plan));
    }

    #[test]
    fn what_is_no_plan_is_refused_with_a_reason() {
        for text in ["", "{", "7", r#"{"levels":{}}"#] {
            assert!(Plan::from_json(text).unwrap_err().to_string().contains("JSON of a plan"), "{text}");
        }
        let json = serde_json::to_string(&Plan::lsm_trie()).unwrap().replace(r#""bits":13"#, r#""bits":99"#);
        let reason = Plan::from_json(&json).unwrap_err().to_string();
        assert!(reason.contains("99 bits"), "{reason}");
    }
}
