//! Checks tables, and writes what damaged ones still contain to new tables.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use alluvium_base::{HashRange, KeyspaceId, TableId};

use super::Repair;
use super::rewrite::RunItems;
use crate::error::Result;
use crate::file_names::table_file_name;
use crate::item::EncodedItem;
use crate::level::Container;
use crate::manifest::{DatabaseState, KeyspaceState, LevelsState, PlacedTableState, RunState};
use crate::merge::YoungItems;
use crate::table::{
    Error as TableError, SalvagedItem, SalvagedPages, Section, SectionSpec, SegmentSpan, Table,
    is_of_other_version, salvage_file,
};

/// The part of a table that counts for a keyspace, and what was salvaged of it.
pub(super) struct Claim {
    keyspace: KeyspaceId,
    place: Place,
    segments: SegmentSpan,
    items: YoungItems,
}

enum Place {
    Run(RunState),
    /// A table over a container of the level of this number.
    Sorted {
        level: usize,
        range: HashRange,
    },
}

impl Claim {
    fn new(keyspace: KeyspaceId, place: Place) -> Self {
        Self { keyspace, place, segments: SegmentSpan::EMPTY, items: YoungItems::default() }
    }

    /// Whether some of the table's items do not count any more.
    fn is_part(&self) -> bool {
        matches!(&self.place, Place::Run(run) if !run.dropped.is_empty())
    }

    /// Whether the item counts here.
    pub fn wants(&self, item: &SalvagedItem<'_>) -> bool {
        item.keyspace == self.keyspace
            && match &self.place {
                Place::Run(run) => {
                    let shard = item.hash.prefix(run.shard_bits) as u32;
                    !run.dropped.contains(&shard)
                }
                Place::Sorted { range, .. } => item.layout.is_ordered() && range.contains(item.hash.0),
            }
    }

    /// Whether at least some of the section's items count.
    fn has(&self, section: &Section) -> bool {
        section.keyspace() == self.keyspace
            && match &self.place {
                Place::Run(run) => {
                    let low = section.range().low;
                    let shard = if run.shard_bits == 0 { 0 } else { low >> (128 - run.shard_bits) };
                    !run.dropped.contains(&(shard as u32))
                }
                Place::Sorted { range, .. } => {
                    section.layout().is_ordered() && range.overlaps(section.range())
                }
            }
    }
}

impl Repair {
    /// Checks all tables that `state` names, and replaces the damaged ones by new tables.
    pub fn check_tables(&mut self, state: &mut DatabaseState) -> Result<()> {
        let names = self.storage.list().unwrap_or_default();
        for number in state.files() {
            self.report.tables += 1;
            let name = table_file_name(number);
            let mut claims = claims_of(state, number);
            if !names.contains(&name) {
                self.report.problem(format!("{name} is missing"));
                self.report.tables_lost += 1;
                let known = state.table_items.get(&number).copied();
                self.report.lost_of(known.filter(|_| !claims.iter().any(Claim::is_part)));
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

    /// Reads a whole table and reports what is wrong.
    fn is_sound(&mut self, name: &str, claims: &[Claim]) -> Result<bool> {
        let table = match Table::open(&*self.storage, name, &self.prefix_functions) {
            Ok(table) => table,
            Err(error @ (TableError::NewerFormat { .. } | TableError::OlderFormat { .. }))
                if is_of_other_version(&*self.storage, name) =>
            {
                return Err(error.into());
            }
            Err(error @ TableError::PrefixFunction { .. }) => return Err(error.into()),
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
                let is_sound = outcome.corruptions.is_empty() && missing == 0;
                Ok(is_sound && self.has_its_records(name, &table, claims)?)
            }
            Err(error) => {
                self.report.problem(error);
                Ok(false)
            }
        }
    }

    /// Whether all records to which the table's items refer are where they say.
    fn has_its_records(&mut self, name: &str, table: &Table, claims: &[Claim]) -> Result<bool> {
        let mut references: Vec<(KeyspaceId, Vec<u8>)> = Vec::new();
        for section in table.sections().iter().filter(|section| claims.iter().any(|claim| claim.has(section)))
        {
            section.salvage(|item| {
                if item.item.item.is_reference() && claims.iter().any(|claim| claim.wants(&item)) {
                    references.push((item.keyspace, item.item.bytes.to_vec()));
                }
            });
        }
        let mut unsettled = 0;
        for (keyspace, bytes) in references {
            let item = EncodedItem::decode(&bytes).map(|encoded| encoded.item);
            let Some(item) = item else { continue };
            unsettled += u64::from(!self.is_settled(keyspace, &item)?);
        }
        if unsettled > 0 {
            self.report.problem(format!("{name}: {unsettled} large items are lost or have to move"));
        }
        Ok(unsettled == 0)
    }

    /// Gathers the items of sound pages that count.
    fn salvage_into(&mut self, claims: &mut [Claim], state: &DatabaseState, number: TableId) -> Result<()> {
        let name = table_file_name(number);
        let mut pages = SalvagedPages::default();
        // Without a directory the manifest may know the number, unless parts of the table were merged away.
        let is_part = claims.iter().any(Claim::is_part);
        let known = state.table_items.get(&number).copied().filter(|_| !is_part);
        let mut items_expected = None;
        match Table::open(&*self.storage, &name, &self.prefix_functions) {
            Ok(table) => {
                for section in table.sections() {
                    let mut live: Vec<_> = claims.iter_mut().filter(|claim| claim.has(section)).collect();
                    if live.is_empty() {
                        continue;
                    }
                    live.iter_mut().for_each(|claim| {
                        claim.segments = claim.segments.join(section.segments());
                    });
                    let found = section.salvage(|item| {
                        take(live.iter_mut().map(|claim| &mut **claim), &item);
                    });
                    *items_expected.get_or_insert(0) += section.item_count();
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
        for claim in claims.iter_mut() {
            claim.items.finish();
            // Tables below it in its own level count, too: only a last level of one run hides nothing.
            let last = state.keyspaces.get(&claim.keyspace).map_or(0, |keyspace| keyspace.body.levels.len());
            let hides = !matches!(claim.place, Place::Sorted { level, .. } if level == last)
                || state.keyspaces.get(&claim.keyspace).is_some_and(is_piled);
            claim.items = self.settle_all(claim.keyspace, std::mem::take(&mut claim.items), hides)?;
        }
        self.report.pages_lost += pages.lost;
        match items_expected.max(known) {
            Some(expected) => self.report.items_lost += expected.saturating_sub(pages.items),
            None => self.report.lost_of(None),
        }
        self.report.items_kept += claims.iter().map(|claim| claim.items.len() as u64).sum::<u64>();
        if pages.sound == 0 {
            self.report.tables_lost += 1;
        } else {
            self.report.tables_rewritten += 1;
        }
        Ok(())
    }

    /// Writes the claims' items to new tables, which replace table `number`.
    fn replace(&mut self, state: &mut DatabaseState, number: TableId, claims: Vec<Claim>) -> Result<()> {
        let mut runs = Vec::new();
        let mut run_places = Vec::new();
        let mut sorted_places = Vec::new();
        let plans: BTreeMap<KeyspaceId, _> = state
            .keyspaces
            .iter()
            .map(|(&id, keyspace)| (id, (keyspace.body.plan.clone(), keyspace.hasher)))
            .collect();
        for claim in claims.into_iter().filter(|claim| claim.items.len() > 0) {
            let Claim { keyspace, place, segments, items } = claim;
            let Some((plan, hasher)) = plans.get(&keyspace) else { continue };
            match place {
                Place::Run(run) => {
                    let shard_bits = run.shard_bits;
                    run_places.push((keyspace, run));
                    runs.push(RunItems { keyspace, hasher: *hasher, plan, shard_bits, segments, items });
                }
                Place::Sorted { level, range } => {
                    let (hasher, plan_number) = (*hasher, plan.number);
                    let spec = SectionSpec { keyspace, hasher, range, level, plan_number };
                    let file = self.write_sorted(spec, &plan.plan, level, segments, &items)?;
                    sorted_places.push((keyspace, level, range.low, file));
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
            let runs = std::mem::take(&mut keyspace.body.runs);
            let replacement =
                |run: RunState| if run.file == number { placed.get(&id).cloned() } else { Some(run) };
            keyspace.body.runs = runs.into_iter().filter_map(replacement).collect();
            let placed = |level: usize, low: u128| {
                let place =
                    sorted_places.iter().find(|place| (place.0, place.1, place.2) == (id, level, low));
                place.map(|place| place.3)
            };
            replace_tables(&mut keyspace.body, number, placed);
        }
        Ok(())
    }
}

/// Replaces file `number` by the table file that `new` names for the number of the level and the start of the
/// container, or removes it if there is none.
fn replace_tables(body: &mut LevelsState, number: TableId, new: impl Fn(usize, u128) -> Option<TableId>) {
    for (level, containers) in (1..).zip(&mut body.levels) {
        for container in containers.iter_mut() {
            let low = container.range.low;
            container.tables.retain(|table| {
                if table.file == number {
                    match new(level, low) {
                        Some(file) => table.file = file,
                        None => return false,
                    }
                }
                true
            });
        }
        containers.retain(|container| !container.tables.is_empty());
    }
}

/// Whether several tables of the last level are above each other.
fn is_piled(keyspace: &KeyspaceState) -> bool {
    keyspace.body.levels.last().is_some_and(|level| level.iter().any(|container| container.tables.len() > 1))
}

/// Adds the item to the claim that it belongs to.
fn take<'a>(mut claims: impl Iterator<Item = &'a mut Claim>, item: &SalvagedItem<'_>) {
    if let Some(claim) = claims.find(|claim| claim.wants(item)) {
        claim.items.push(item.hash, 0, item.item.bytes);
    }
}

/// The items of a table file that count in a state.
pub(crate) struct LiveItems(Vec<Claim>);

/// The items of table file `number` that count in `state`.
pub(crate) fn live_items(state: &DatabaseState, number: TableId) -> LiveItems {
    LiveItems(claims_of(state, number))
}

impl LiveItems {
    /// Whether some of the section's items count.
    pub fn has(&self, section: &Section) -> bool {
        self.0.iter().any(|claim| claim.has(section))
    }

    /// Whether the item counts.
    pub fn wants(&self, item: &SalvagedItem<'_>) -> bool {
        self.0.iter().any(|claim| claim.wants(item))
    }
}

pub(super) fn claims_of(state: &DatabaseState, number: TableId) -> Vec<Claim> {
    let mut claims = Vec::new();
    for (&id, keyspace) in &state.keyspaces {
        let runs = keyspace.body.runs.iter().filter(|run| run.file == number);
        claims.extend(runs.map(|run| Claim::new(id, Place::Run(run.clone()))));
        for (level, containers) in (1..).zip(&keyspace.body.levels) {
            let has_it = |container: &&Container<PlacedTableState>| {
                container.tables.iter().any(|table| table.file == number)
            };
            claims.extend(
                containers
                    .iter()
                    .filter(has_it)
                    .map(|container| Claim::new(id, Place::Sorted { level, range: container.range })),
            );
        }
    }
    claims
}

fn remove_claims(state: &mut DatabaseState, number: TableId) {
    for keyspace in state.keyspaces.values_mut() {
        keyspace.body.runs.retain(|run| run.file != number);
        replace_tables(&mut keyspace.body, number, |_, _| None);
    }
}

/// Number of sections that should exist and that the directory does not name.
fn missing_sections(table: &Table, claims: &[Claim]) -> usize {
    let missing = claims.iter().map(|claim| {
        let found = table.sections().iter().filter(|section| claim.has(section));
        let expected = match &claim.place {
            Place::Run(run) => (1usize << run.shard_bits) - run.dropped.len(),
            Place::Sorted { .. } => 1,
        };
        expected.saturating_sub(found.map(|section| section.range()).collect::<BTreeSet<_>>().len())
    });
    missing.sum()
}
