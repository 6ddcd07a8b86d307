//! Changing the plan of a database or of a keyspace while it is open
//! ([decision 0023](../../../../docs/decisions/0023-a-change-of-plan-moves-no-data.md)).

use std::sync::Arc;

use alluvium_model::Plan;

use super::database::Db;
use super::keyspace::{Keyspace, KeyspaceShared};
use super::order::check_plan;
use super::shared::Shared;
use crate::compact::{is_moving, pressure_of};
use crate::error::Result;
use crate::manifest::{Edit, PlanSource, PlanState};
use crate::options::PlanChoice;

impl Db {
    /// Gives the database another plan, as an opening with [`crate::Builder::plan`] does: keyspaces created from now on
    /// have it, and so have all that have the database's plan or one that was planned for them, as far as it suits
    /// their order; those that were given one of their own keep it ([`Keyspace::change_plan`]).
    ///
    /// The plan counts when this returns, and survives a power cut. Costs a record in the manifest for each keyspace,
    /// after the merge and the conversion that are under way; reads and writes go on. The data follow in the background
    /// like other merges, within [`crate::Builder::background_bytes_per_s_max`]; writers are slowed for what they
    /// write, not for what the change left behind. Tables are read where they lie meanwhile,
    /// [`crate::Stats::plan_changes`] says what is left, and a crash costs the table being written. What lies otherwise
    /// than the plan has it is written once or twice; the disk holds what one merge makes besides. Another change may
    /// come before the end.
    ///
    /// With [`PlanChoice::Auto`] keyspaces keep the plan they have, and it is planned anew as their data grow.
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
    /// [`crate::Error::Plan`] for a plan that the engine does not execute, [`crate::Error::ReadOnly`] and the like
    /// where nothing can be written.
    pub fn change_plan(&self, plan: impl Into<PlanChoice>) -> Result<()> {
        let choice = plan.into();
        choice.check()?;
        let shared = self.shared();
        shared.check_failure()?;
        *shared.plan_choice.lock().expect("no panic while held") = choice.clone();
        if choice == PlanChoice::Auto {
            return shared.plan_as_data_grow();
        }
        shared.adopt_plan_choice()
    }

    /// Whether data are to be moved since a plan changed.
    pub fn is_changing_plan(&self) -> bool {
        is_moving(self.shared())
    }
}

impl Keyspace {
    /// Gives this keyspace a plan of its own, whatever the database's is or becomes. As for [`Db::change_plan`].
    ///
    /// # Errors
    /// As there, and when the plan does not suit the keyspace's order.
    pub fn change_plan(&self, plan: &Plan) -> Result<()> {
        self.database().set_plan(&self.shared, plan, PlanSource::Own, 0)
    }
}

/// A keyspace that was dropped meanwhile needs no plan.
fn unless_dropped(outcome: Result<()>) -> Result<()> {
    match outcome {
        Err(crate::Error::KeyspaceDropped { .. }) => Ok(()),
        outcome => outcome,
    }
}

impl PlanChoice {
    /// Refuses a plan that the engine executes for no order.
    pub(crate) fn check(&self) -> Result<()> {
        match self {
            Self::Fixed(plan) if plan.check_executable_semi_sorted().is_err() => Ok(plan.check_executable()?),
            Self::Fixed(_) | Self::Auto => Ok(()),
        }
    }
}

impl Shared {
    /// Gives the plan chosen for the database to the keyspaces that follow it.
    pub fn adopt_plan_choice(&self) -> Result<()> {
        let choice = self.plan_choice.lock().expect("no panic while held").clone();
        let PlanChoice::Fixed(plan) = choice else { return Ok(()) };
        for keyspace in self.all_keyspaces() {
            let source = keyspace.plan_state().source;
            if source != PlanSource::Own && check_plan(&plan, &keyspace.hasher).is_ok() {
                unless_dropped(self.set_plan(&keyspace, &plan, PlanSource::Database, 0))?;
            }
        }
        Ok(())
    }

    /// Lets keyspaces that follow the database be planned anew as their data grow, with the plans they have.
    fn plan_as_data_grow(&self) -> Result<()> {
        for keyspace in self.all_keyspaces() {
            let PlanState { plan, source, .. } = PlanState::clone(&keyspace.plan_state());
            // What is planned are hashed keyspaces.
            if source == PlanSource::Database && !keyspace.hasher.is_semi_sorted() {
                unless_dropped(self.set_plan(&keyspace, &plan, PlanSource::Auto, 0))?;
            }
        }
        Ok(())
    }

    /// Excuses, after an opening, the backlog of those whose data have not followed their plan yet.
    pub fn excuse_backlogs(&self) {
        for keyspace in self.all_keyspaces().iter().filter(|keyspace| keyspace.plan_state().is_moving()) {
            keyspace.inherited_pressure.set(pressure_of(self, keyspace));
        }
    }

    /// Gives the keyspace this plan, durably. `items_planned` is how many items it was made for, if it was made for
    /// what is there.
    pub fn set_plan(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        plan: &Plan,
        source: PlanSource,
        items_planned: u64,
    ) -> Result<()> {
        self.set_plan_after(keyspace, None, plan, source, items_planned).map(drop)
    }

    /// Like [`Shared::set_plan`], but does nothing and gives `false` where another change was quicker than who decided
    /// on this one `before` it.
    pub fn set_plan_after(
        &self,
        keyspace: &Arc<KeyspaceShared>,
        before: Option<&PlanState>,
        plan: &Plan,
        source: PlanSource,
        items_planned: u64,
    ) -> Result<bool> {
        self.check_failure()?;
        check_plan(plan, &keyspace.hasher)?;
        if keyspace.plan_state().plan != *plan {
            // Tables are placed by the plan that the manifest has when they are opened.
            self.open_tables_of(keyspace)?;
        }
        // Merges and conversions go by one plan from their beginning to their end.
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
        self.append_edits(&[Edit::set_plan(keyspace.id, &next)])?;
        keyspace.update_version(|version| version.with_plan(next.clone()));
        if next.plan != state.plan {
            keyspace.inherited_pressure.set(pressure_of(self, keyspace));
        }
        self.scheduler.wake();
        Ok(true)
    }
}
