//! EXPLAIN ANALYZE: an operator around each operator of the plan.

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

fn now(run: &Run<'_>) -> Duration {
    run.measures.as_ref().map_or(Duration::ZERO, |measures| measures.clock.monotonic())
}

fn note(run: &mut Run<'_>, place: usize, change: impl FnOnce(&mut Measure)) {
    if let Some(measure) = run.measures.as_mut().and_then(|all| all.list.get_mut(place)) {
        change(measure);
    }
}

impl<'r> Operator<'r> for Measured<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        let started = now(run);
        self.has_row = false;
        let opened = self.input.open(run);
        let took = now(run).saturating_sub(started);
        note(run, self.place, |measure| {
            measure.loops += 1;
            measure.first += took;
            measure.last += took;
        });
        opened
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        let started = now(run);
        let found = self.input.next(run)?;
        let took = now(run).saturating_sub(started);
        let first = !std::mem::replace(&mut self.has_row, true);
        note(run, self.place, |measure| {
            measure.rows += u64::from(found);
            measure.first += if first { took } else { Duration::ZERO };
            measure.last += took;
        });
        Ok(found)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.input.close(run);
    }
}
