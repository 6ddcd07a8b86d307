//! Breaks each rule on which the tests rely: some test must fail, otherwise it would not notice a violation.

use std::panic;

use alluvium_cache::{Canary, break_rule};

use super::evictions::{
    dangling_entry, item_across_the_end, item_appended_again, item_that_leaves_probation, removed_entry,
};
use super::inline::{inline_update, item_that_comes_inline};
use super::reads::{copy_of_older_data, update_in_place};
use super::stores::{items_moved_together, space_used_again};
use super::surviving::{cooled_item, overwritten_item, renewed_zone, replaced_descriptor};
use super::zone::{item_moved_to_zone, item_removed_beside_promotion, item_replaced_beside_promotion};
use super::{PREEMPTIONS, model};

/// Runs a test with a rule broken; what the reader finds must reveal this.
fn is_noticed(canary: Canary, story: fn()) {
    break_rule(Some(canary));
    let outcome = panic::catch_unwind(|| model(PREEMPTIONS, story));
    break_rule(None);
    let reason = outcome.expect_err("the broken rule was not noticed");
    let reason = reason.downcast_ref::<String>().map(String::as_str).or(reason.downcast_ref().copied());
    let reason = reason.unwrap_or("no words");
    assert!(
        ENDINGS.iter().any(|ending| reason.contains(ending)),
        "{canary:?} made the story end with {reason}"
    );
}

/// Messages with which the tests fail.
const ENDINGS: [&str; 4] =
    ["half of another", "it was there throughout", "a copy of older data", "a promotion brought it back"];

#[test]
fn loom_canary_space_is_used_again_before_its_eviction_is_seen() {
    is_noticed(Canary::ReserveUnfenced, dangling_entry);
}

#[test]
fn loom_canary_readers_do_not_look_at_the_head() {
    is_noticed(Canary::HeadUnchecked, dangling_entry);
    is_noticed(Canary::HeadUnchecked, item_across_the_end);
}

#[test]
fn loom_canary_a_change_is_seen_before_the_odd_version() {
    is_noticed(Canary::ChangeUnfenced, update_in_place);
    is_noticed(Canary::ChangeUnfenced, inline_update);
}

#[test]
fn loom_canary_the_version_is_loaded_too_early() {
    is_noticed(Canary::ValidationUnfenced, update_in_place);
}

#[test]
fn loom_canary_entries_leave_without_a_new_version() {
    is_noticed(Canary::ChangeUncounted, removed_entry);
}

#[test]
fn loom_canary_items_move_without_a_new_version() {
    is_noticed(Canary::ChangeUncounted, item_appended_again);
    is_noticed(Canary::ChangeUncounted, item_that_leaves_probation);
}

#[test]
fn loom_canary_an_era_begins_without_waiting_for_writers() {
    is_noticed(Canary::EraUnawaited, copy_of_older_data);
}

#[test]
fn loom_canary_readers_do_not_look_inline_again() {
    is_noticed(Canary::AbsenceUnchecked, item_that_comes_inline);
}

#[test]
fn loom_canary_a_store_uses_space_again_before_its_removal_is_seen() {
    is_noticed(Canary::AllocationUnfenced, space_used_again);
}

#[test]
fn loom_canary_a_store_moves_items_without_a_new_version() {
    is_noticed(Canary::ChangeUncounted, items_moved_together);
}

#[test]
fn loom_canary_an_item_leaves_the_logs_before_the_zone_has_it() {
    is_noticed(Canary::DemotedTooLate, item_moved_to_zone);
}

#[test]
fn loom_canary_an_item_of_the_zone_is_promoted_without_another_look() {
    is_noticed(Canary::PromotedUnchecked, item_removed_beside_promotion);
    is_noticed(Canary::PromotedUnchecked, item_replaced_beside_promotion);
}

#[test]
fn loom_canary_a_surviving_item_is_overwritten_before_the_odd_version() {
    is_noticed(Canary::ChangeUnfenced, overwritten_item);
    is_noticed(Canary::ValidationUnfenced, overwritten_item);
}

#[test]
fn loom_canary_descriptors_are_replaced_without_a_new_version() {
    is_noticed(Canary::ChangeUncounted, replaced_descriptor);
}

#[test]
fn loom_canary_a_zone_is_written_again_before_its_version_is_seen() {
    is_noticed(Canary::ZoneUnfenced, renewed_zone);
}

#[test]
fn loom_canary_an_item_leaves_the_write_cache_too_early() {
    is_noticed(Canary::CooledTooEarly, cooled_item);
}
