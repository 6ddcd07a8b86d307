//! Operations of a batch in stages, so that their misses of the processor's caches overlap with each other and with the
//! other operations' work (Lim's thesis, §5.3.3, "multi-stage prefetching").
//!
//! ```text
//!  step n:  operation n       hash the key, start loading its bucket (the inline one, if there are cells)
//!           operation n - 8   compare tags, start loading the item, or the index's bucket if it is not inline
//!           operation n - 16  in that case: compare tags, start loading the item
//!           operation n - 24  compare the key, take the value
//! ```
//!
//! MICA divides a batch and runs a stage of one part, then of another. Here each step runs each stage for one
//! operation, so that as many loads as a core has buffers for are in flight all the time, not only between two stages,
//! while the work of all stages continues: 1.6 times the rate of a loop over the whole batch for each stage.

/// Longer batches than this are hardly faster.
pub const BATCH_LEN: usize = 32;

/// Number of operations between two stages of one operation: about the work that a core does during one memory access.
const AHEAD: usize = 8;

/// Steps from the first stage of an operation to its last.
const TO_LAST: usize = 3 * AHEAD;

/// Room for the states of all operations in flight.
const RING: usize = (TO_LAST + 1).next_power_of_two();

/// Takes operations `0..count` through four stages. Each later stage gets the state that the earlier ones left; the
/// last stages run in order.
#[inline(always)]
pub(crate) fn run<S: Copy + Default>(
    count: usize,
    mut first: impl FnMut(usize) -> S,
    mut second: impl FnMut(&mut S),
    mut third: impl FnMut(&mut S),
    mut last: impl FnMut(usize, S),
) {
    let mut states = [S::default(); RING];
    for step in 0..count + TO_LAST {
        if step < count {
            states[step % RING] = first(step);
        }
        let operation = step.wrapping_sub(AHEAD);
        if operation < count {
            second(&mut states[operation % RING]);
        }
        let operation = step.wrapping_sub(2 * AHEAD);
        if operation < count {
            third(&mut states[operation % RING]);
        }
        let operation = step.wrapping_sub(TO_LAST);
        if operation < count {
            last(operation, states[operation % RING]);
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn every_operation_goes_through_every_stage_in_order() {
        for count in [0, 1, 2, AHEAD, 3 * AHEAD, RING, 100] {
            let mut ended = Vec::new();
            run(
                count,
                |operation| (operation, 0),
                |(_, stages)| *stages += 1,
                |(_, stages)| *stages *= 10,
                |operation, state| {
                    assert_eq!(state, (operation, 10));
                    ended.push(operation);
                },
            );
            assert!(ended.iter().copied().eq(0..count));
        }
    }
}
