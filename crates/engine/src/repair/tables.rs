//! Checking tables, and writing what damaged ones still hold to new ones.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::Repair;
use super::rewrite::RunItems;
use crate::compact::YoungItems;
use crate::error::Result;
use crate::level::table_file_name;
use crate::manifest::{DatabaseState, RunState, SortedTableState};
use crate::table::{
    Layout, SalvagedItem, SalvagedPages, Section, SectionSpec, Table, is_newer, salvage_file,
};

/// What a keyspace has in a table, and what was salvaged of it.
pub(super) struct Claim {
    keyspace: u32,
    place: Place,
    newest_segment: u64,
    items: YoungItems,
}

enum Place {
    Run(RunState),
    Sorted(SortedTableState),
}

impl Claim {
    fn new(keyspace: u32, place: Place) -> Self {
        Self { keyspace, place, newest_segment: 0, items: YoungItems::default() }
    }

    /// Whether an item of this hash counts here.
    pub fn wants(&self, item: &SalvagedItem<'_>) -> bool {
        item.keyspace == self.keyspace
            && match &self.place {
                Place::Run(run) => {
                    let shard = item.hash.prefix(run.shard_bits) as u32;
                    item.layout == Layout::Hash && !run.dropped.contains(&shard)
                }
                Place::Sorted(table) => {
                    item.layout == Layout::Sorted && (table.low..=table.high).contains(&item.hash.high())
                }
            }
    }

    /// Whether the section's items count, some at least.
    fn has(&self, section: &Section) -> bool {
        let (low, high) = section.range();
        section.keyspace() == self.keyspace
            && match &self.place {
                Place::Run(run) => {
                    let shard = if run.shard_bits == 0 { 0 } else { low >> (64 - run.shard_bits) };
                    section.layout() == Layout::Hash && !run.dropped.contains(&(shard as u32))
                }
                Place::Sorted(table) => {
                    section.layout() == Layout::Sorted && table.low <= high && table.high >= low
                }
            }
    }
}

impl Repair {
    /// Checks all tables that `state` names, and puts new ones in the places of those that are damaged.
    pub fn check_tables(&mut self, state: &mut DatabaseState) -> Result<()> {
        let names = self.storage.list().unwrap_or_default();
        for number in state.files() {
            self.report.tables += 1;
            let name = table_file_name(number);
            let mut claims = claims_of(state, number);
            if !names.contains(&name) {
                self.report.problem(format!("{name} is missing"));
                self.report.tables_lost += 1;
                remove_claims(state, number);
                continue;
            }
            if self.is_sound(&name, &claims)? {
                continue;
            }
            self.salvage_into(&mut claims, state, number)?;
            self.replace(state, number, claims)?;
            self.replaced.push(name);
        }
        Ok(())
    }

    /// Reads all of a table and notes what is wrong.
    fn is_sound(&mut self, name: &str, claims: &[Claim]) -> Result<bool> {
        let table = match Table::open(&*self.storage, name) {
            Ok(table) => table,
            Err(error @ crate::table::Error::NewerFormat { .. }) if is_newer(&*self.storage, name) => {
                return Err(error.into());
            }
            Err(error) => {
                self.report.problem(error);
                return Ok(false);
            }
        };
        let live = |section: &Arc<Section>| claims.iter().any(|claim| claim.has(section));
        for section in table.sections().iter().filter(|section| live(section)) {
            *self.items.entry(section.keyspace()).or_default() += section.item_count();
        }
        let missing = missing_sections(&table, claims);
        if missing > 0 {
            self.report.problem(format!("{name} lacks {missing} sections"));
        }
        match table.verify(live) {
            Ok(outcome) => {
                outcome.corruptions.iter().for_each(|corruption| self.report.problem(corruption));
                Ok(outcome.corruptions.is_empty() && missing == 0)
            }
            Err(error) => {
                self.report.problem(error);
                Ok(false)
            }
        }
    }

    /// Gathers the items of sound pages that count.
    fn salvage_into(&mut self, claims: &mut [Claim], state: &DatabaseState, number: u64) -> Result<()> {
        let name = table_file_name(number);
        let mut pages = SalvagedPages::default();
        let mut items_expected = 0;
        match Table::open(&*self.storage, &name) {
            Ok(table) => {
                for section in table.sections() {
                    let mut live: Vec<_> = claims.iter_mut().filter(|claim| claim.has(section)).collect();
                    if live.is_empty() {
                        continue;
                    }
                    live.iter_mut().for_each(|claim| {
                        claim.newest_segment = claim.newest_segment.max(section.newest_segment());
                    });
                    let found = section.salvage(|item| {
                        take(live.iter_mut().map(|claim| &mut **claim), &item);
                    });
                    items_expected += section.item_count();
                    pages.sound += found.sound;
                    pages.lost += found.lost;
                    pages.items += found.items;
                }
            }
            Err(_) => {
                let keyspaces: BTreeMap<_, _> = claims
                    .iter()
                    .filter_map(|claim| Some((claim.keyspace, state.keyspaces.get(&claim.keyspace)?.hasher)))
                    .collect();
                let keyspaces: Vec<_> = keyspaces.into_iter().collect();
                pages = salvage_file(&*self.storage, &name, number, &keyspaces, |item| {
                    take(claims.iter_mut(), &item);
                })?;
            }
        }
        claims.iter_mut().for_each(|claim| claim.items.finish());
        self.report.pages_lost += pages.lost;
        self.report.items_lost += u64::saturating_sub(items_expected, pages.items);
        self.report.items_kept += claims.iter().map(|claim| claim.items.len() as u64).sum::<u64>();
        if pages.sound == 0 {
            self.report.tables_lost += 1;
        } else {
            self.report.tables_rewritten += 1;
        }
        Ok(())
    }

    /// Writes the claims' items to new tables and puts these in the places of table `number`.
    fn replace(&mut self, state: &mut DatabaseState, number: u64, claims: Vec<Claim>) -> Result<()> {
        let mut runs = Vec::new();
        let mut run_places = Vec::new();
        let mut sorted_places = Vec::new();
        let plans: BTreeMap<u32, _> = state
            .keyspaces
            .iter()
            .map(|(&id, keyspace)| (id, (keyspace.plan.clone(), keyspace.hasher)))
            .collect();
        for claim in claims.into_iter().filter(|claim| claim.items.len() > 0) {
            let Claim { keyspace, place, newest_segment, items } = claim;
            let Some((plan, hasher)) = plans.get(&keyspace) else { continue };
            match place {
                Place::Run(run) => {
                    let shard_bits = run.shard_bits;
                    run_places.push((keyspace, run));
                    runs.push(RunItems {
                        keyspace,
                        hasher: *hasher,
                        plan,
                        shard_bits,
                        newest_segment,
                        items,
                    });
                }
                Place::Sorted(table) => {
                    let SortedTableState { low, high, .. } = table;
                    let spec = SectionSpec { keyspace, hasher: *hasher, range_low: low, range_high: high };
                    let file = self.write_sorted(spec, plan, newest_segment, &items)?;
                    sorted_places.push((keyspace, SortedTableState { file, low, high }));
                }
            }
        }
        let mut placed = BTreeMap::new();
        if !runs.is_empty() {
            let (file, empty) = self.write_runs(&runs)?;
            for ((keyspace, run), empty) in run_places.into_iter().zip(empty) {
                placed.insert(keyspace, RunState { file, dropped: empty, ..run });
            }
        }
        for (&id, keyspace) in &mut state.keyspaces {
            let runs = std::mem::take(&mut keyspace.runs);
            let replacement =
                |run: RunState| if run.file == number { placed.get(&id).cloned() } else { Some(run) };
            keyspace.runs = runs.into_iter().filter_map(replacement).collect();
            keyspace.sorted.retain(|table| table.file != number);
            keyspace.sorted.extend(sorted_places.iter().filter(|place| place.0 == id).map(|place| place.1));
            keyspace.sorted.sort_unstable_by_key(|table| table.low);
        }
        Ok(())
    }
}

/// Adds the item to the claim that it belongs to.
fn take<'a>(mut claims: impl Iterator<Item = &'a mut Claim>, item: &SalvagedItem<'_>) {
    if let Some(claim) = claims.find(|claim| claim.wants(item)) {
        claim.items.push(item.hash, 0, item.item.bytes);
    }
}

pub(super) fn claims_of(state: &DatabaseState, number: u64) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (&id, keyspace) in &state.keyspaces {
        let runs = keyspace.runs.iter().filter(|run| run.file == number);
        claims.extend(runs.map(|run| Claim::new(id, Place::Run(run.clone()))));
        let sorted = keyspace.sorted.iter().filter(|table| table.file == number);
        claims.extend(sorted.map(|table| Claim::new(id, Place::Sorted(*table))));
    }
    claims
}

fn remove_claims(state: &mut DatabaseState, number: u64) {
    for keyspace in state.keyspaces.values_mut() {
        keyspace.runs.retain(|run| run.file != number);
        keyspace.sorted.retain(|table| table.file != number);
    }
}

/// How many sections that should be there the directory does not name.
fn missing_sections(table: &Table, claims: &[Claim]) -> usize {
    let missing = claims.iter().map(|claim| {
        let found = table.sections().iter().filter(|section| claim.has(section));
        let expected = match &claim.place {
            Place::Run(run) => (1usize << run.shard_bits) - run.dropped.len(),
            Place::Sorted(_) => 1,
        };
        expected.saturating_sub(found.map(|section| section.range()).collect::<BTreeSet<_>>().len())
    });
    missing.sum()
}
