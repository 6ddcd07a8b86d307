//! What settings say about plans.

use alluvium_model::{LevelsPlan, Plan, PlanError};

use super::memory_budget::default_segment_bytes;
use crate::chained::SEGMENT_BYTES_MAX;
use crate::error::{Error, Result};
use crate::options::{PlanChoice, Settings};

impl Settings {
    /// Refuses a plan that the engine does not execute for any order, or whose chains the log is too large for.
    pub fn check_choice(&self, choice: &PlanChoice) -> Result<()> {
        let PlanChoice::Fixed(plan) = choice else { return Ok(()) };
        let plan = LevelsPlan::try_from(plan.clone())?;
        plan.check_executable_semi_sorted().or_else(|_| plan.check_executable())?;
        self.check_chained(&plan)
    }

    /// Refuses a plan with chains if segments of the log are larger than links reach.
    pub fn check_chained(&self, plan: &LevelsPlan) -> Result<()> {
        match plan.log.chained {
            Some(_) if self.segment_bytes_of_plan() > SEGMENT_BYTES_MAX => {
                let reason = format!("segments with chained items have at most {SEGMENT_BYTES_MAX} bytes");
                Err(Error::Plan(PlanError(reason)))
            }
            _ => Ok(()),
        }
    }

    /// Maximum bytes of a log segment by the plan. A memory limit may require smaller ones.
    pub fn segment_bytes_of_plan(&self) -> u64 {
        match &self.plan {
            PlanChoice::Fixed(Plan::Levels(plan)) => plan.log.segment_bytes_max,
            // The planner does not change the default log.
            PlanChoice::Fixed(_) | PlanChoice::Auto => default_segment_bytes(),
        }
    }
}
