//! EXPLAIN ANALYZE and PROFILE: an operator around each operator of the plan.

use std::time::Duration;

use errors::Result;
use sys::clock::Clock;

use crate::measure::Measure;
use crate::operator::Operator;
use crate::run::Run;

/// Passes rows through and counts them.
pub(crate) struct Measured<'r> {
    place: usize,
    input: Box<dyn Operator<'r> + 'r>,
    has_row: bool,
}

impl<'r> Measured<'r> {
    pub(crate) fn new(place: usize, input: Box<dyn Operator<'r> + 'r>) -> Measured<'r> {
        Measured { place, input, has_row: false }
    }
}

/// The operator that called, and the time.
struct Entered {
    caller: Option<usize>,
    started: Duration,
}

fn enter(run: &mut Run<'_>, place: usize) -> Entered {
    let Some(measures) = &mut run.measures else {
        return Entered { caller: None, started: Duration::ZERO };
    };
    let caller = measures.enter(Some(place));
    Entered { caller, started: measures.clock.monotonic() }
}

/// Back to the caller; `note` gets the time since.
fn leave(
    run: &mut Run<'_>,
    place: usize,
    entered: Entered,
    note: impl FnOnce(&mut Measure, Duration),
) {
    let Some(measures) = &mut run.measures else { return };
    let took = measures.clock.monotonic().saturating_sub(entered.started);
    measures.enter(entered.caller);
    if let Some(measure) = measures.list.get_mut(place) {
        measure.caller = measure.caller.or(entered.caller);
        note(measure, took);
    }
}

impl<'r> Operator<'r> for Measured<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        let entered = enter(run, self.place);
        self.has_row = false;
        let opened = self.input.open(run);
        leave(run, self.place, entered, |measure, took| {
            measure.loops += 1;
            measure.first += took;
            measure.last += took;
        });
        opened
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let entered = enter(run, self.place);
        let found = self.input.next(run);
        let first = !std::mem::replace(&mut self.has_row, true);
        leave(run, self.place, entered, |measure, took| {
            measure.rows += u64::from(matches!(found, Ok(true)));
            measure.first += if first { took } else { Duration::ZERO };
            measure.last += took;
        });
        found
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.input.close(run);
    }
}
