//! Changes the plan of a database or of a keyspace while it is open ([decision
//! 0023](../../../../docs/decisions/0023-a-change-of-plan-moves-no-data.md)).

use std::sync::Arc;

use alluvium_model::{LevelsPlan, Plan};

use super::database::Db;
use super::keyspace::Keyspace;
use crate::compact::{is_moving, pressure_of};
use crate::core::{KeyspaceShared, Shared, check_plan};
use crate::error::Result;
use crate::level::Version;
use crate::manifest::{Edit, PlanSource, PlanState};
use crate::options::PlanChoice;

impl Db {
    /// Changes the database's plan, as an opening with [`crate::Builder::plan`] does. Keyspaces created from now on get
    /// it. So do existing ones that have the database's plan or one that was planned for their data, if it suits their
    /// order. Keyspaces that were given a plan of their own keep it ([`Keyspace::change_plan`]).
    ///
    /// The plan is in effect when this returns, and survives a power cut. Costs a record in the manifest for each
    /// keyspace, after the merge and the conversion in progress; reads and writes continue. The data follow in the
    /// background like other merges, within [`crate::Builder::background_bytes_per_s_max`]. Writers are slowed for what
    /// they write, not for what the change left to be moved. Meanwhile tables are read where they are, and
    /// [`crate::Stats::plan_changes`] says what is left. A crash costs the table being written. Data that the plan
    /// stores otherwise are rewritten once or twice; the additional space needed is the output of one merge. The plan
    /// may be changed again before all data have followed.
    ///
    /// With [`PlanChoice::Auto`], keyspaces keep their plan until their data grow, and are planned anew then.
    ///
    /// ```
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let directory = tempfile::tempdir()?;
    /// use alluvium::{Db, Plan};
    /// let db = Db::builder(directory.path()).plan(Plan::silt()).open()?;
    /// let items = db.keyspace("items")?;
    /// items.insert("key", "value")?;
    /// db.change_plan(Plan::tiered())?;
    /// assert_eq!(items.plan(), Plan::tiered());
    /// assert_eq!(items.get("key")?.as_deref(), Some(&b"value"[..]));
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`crate::Error::Plan`] for a plan that the engine does not execute, [`crate::Error::ReadOnly`] and the like if
    /// nothing can be written.
    pub fn change_plan(&self, plan: impl Into<PlanChoice>) -> Result<()> {
        let choice = plan.into();
        let shared = self.shared();
        shared.settings.check_choice(&choice)?;
        shared.check_failure()?;
        *shared.plan_choice.lock().expect("no panic while held") = choice.clone();
        if choice == PlanChoice::Auto {
            return shared.plan_as_data_grow();
        }
        shared.adopt_plan_choice()
    }

    /// Whether data are still to be moved because a plan changed.
    pub fn is_changing_plan(&self) -> bool {
        is_moving(self.shared())
    }
}

impl Keyspace {
    /// Gives this keyspace a plan of its own, which later changes of the database's plan do not affect. Effect and cost
    /// are those of [`Db::change_plan`].
    ///
    /// # Errors
    /// As [`Db::change_plan`], and if the plan does not suit the keyspace's order.
    pub fn change_plan(&self, plan: &Plan) -> Result<()> {
        self.database().set_plan(&self.shared, &LevelsPlan::try_from(plan.clone())?, PlanSource::Own, 0)
    }
}

/// A keyspace that was dropped meanwhile needs no plan.
fn unless_dropped(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(crate::Error::KeyspaceDropped { .. }) => Ok(()),
        outcome => outcome,
    }
}

impl Shared {
    /// Gives the plan chosen for the database to the keyspaces that follow it.
    pub fn adopt_plan_choice(&self) -> Result<()> {
        let choice = self.plan_choice.lock().expect("no panic while held").clone();
        let PlanChoice::Fixed(plan) = choice else { return Ok(()) };
        let plan = &LevelsPlan::try_from(plan)?;
        for keyspace in self.all_keyspaces() {
            let source = keyspace.plan_state().source;
            if source != PlanSource::Own && check_plan(plan, &keyspace.hasher).is_ok() {
                unless_dropped(self.set_plan(&keyspace, plan, PlanSource::Database, 0))?;
            }
        }
        Ok(())
    }

    /// Lets keyspaces that have the database's plan be planned anew as their data grow. They keep their plan until
    /// then.
    fn plan_as_data_grow(&self) -> Result<()> {
        for keyspace in self.all_keyspaces() {
            let PlanState { plan, source, .. } = PlanState::clone(&keyspace.plan_state());
            // Only hashed keyspaces are planned.
            if source == PlanSource::Database && !keyspace.hasher.is_semi_sorted() {
                unless_dropped(self.set_plan(&keyspace, &plan, PlanSource::Auto, 0))?;
            }
        }
        Ok(())
    }

    /// After an opening, excuses the backlog of keyspaces whose data have not followed their plan yet.
    pub fn excuse_backlogs(&self) {
        for keyspace in self.all_keyspaces().iter().filter(|keyspace| keyspace.plan_state().is_moving()) {
            keyspace.inherited_pressure.set(pressure_of(self, keyspace));
        }
    }

    /// Gives the keyspace this plan, durably. `items_planned` is the number of items for which the plan was made, if it
    /// was made for the existing data.
    pub fn set_plan(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        plan: &LevelsPlan,
        source: PlanSource,
        items_planned: u64,
    ) -> Result<()> {
        self.set_plan_after(keyspace, None, plan, source, items_planned).map(drop)
    }

    /// Like [`Shared::set_plan`], but does nothing and returns `false` if the keyspace's plan is no longer `before`, on
    /// which the caller's decision was based.
    pub fn set_plan_after(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        before: Option<&PlanState>,
        plan: &LevelsPlan,
        source: PlanSource,
        items_planned: u64,
    ) -> Result<bool> {
        self.check_failure()?;
        check_plan(plan, &keyspace.hasher)?;
        self.settings.check_chained(plan)?;
        let plan = &plan.clone().executed();
        if keyspace.plan_state().plan != *plan {
            // When tables are opened, the plan in the manifest says in which level they are.
            self.open_tables_of(keyspace)?;
        }
        // A merge or a conversion follows one plan from its beginning to its end.
        let _no_conversion = self.convert_lock.lock().expect("no panic while held");
        let _no_merge = self.merge_lock.lock().expect("no panic while held");
        keyspace.check_present()?;
        let state = keyspace.plan_state();
        if before.is_some_and(|before| *before != *state) {
            return Ok(false);
        }
        let next = match state.plan == *plan {
            true => PlanState { source, items_planned, ..PlanState::clone(&state) },
            false => state.followed_by(plan.clone(), source, items_planned),
        };
        if next == *state {
            return Ok(true);
        }
        self.append_edits(&[Edit::SetPlan { keyspace: keyspace.id, plan: next.clone() }])?;
        keyspace.update_version(|version| Version {
            body: version.body.with_plan(next.clone()),
            ..version.clone()
        });
        if next.plan.log.chained != state.plan.log.chained {
            // The next log store has links, or no more.
            self.freeze_now(self.log.active_segment().id)?;
        }
        if next.plan != state.plan {
            keyspace.inherited_pressure.set(pressure_of(self, keyspace));
        }
        self.scheduler.wake();
        Ok(true)
    }
}
