//! What a statement costs: its phases, and the difference of two readings of what its thread has used.

use plugin_api::{CostEvents, StatementCost};
use sys::usage::{self, Usage};

/// A statement's phases.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Everything before its plan is looked for.
    #[default]
    Parse,
    /// Making a plan.
    Plan,
    /// Running, and writing the answer.
    Execute,
    /// Committing.
    Commit,
}

/// Where the time of the running statement goes.
#[derive(Debug, Default)]
pub struct Phases {
    is_measured: bool,
    now: Phase,
    since_nanos: u64,
    nanos: [u64; 4],
}

impl Phases {
    /// Whether the time is of interest.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// The first phase begins.
    pub fn begin(&mut self, now_nanos: u64) {
        *self = Phases { is_measured: true, since_nanos: now_nanos, ..Phases::default() };
    }

    /// The next phase begins.
    pub fn enter(&mut self, phase: Phase, now_nanos: u64) {
        self.nanos[self.now as usize] += now_nanos.saturating_sub(self.since_nanos);
        self.now = phase;
        self.since_nanos = now_nanos;
    }
}

/// What a thread had used when a statement began, and the phases of the statement around it, if there is one.
pub struct Measuring {
    before: Usage,
    outer: Phases,
}

impl Measuring {
    /// Begins to measure a statement, which runs on this thread, in `phases`.
    pub fn begin(phases: &mut Phases, now_nanos: u64) -> Measuring {
        let outer = std::mem::take(phases);
        phases.begin(now_nanos);
        Measuring { before: usage::now(), outer }
    }

    /// The cost of the statement, which waited so long for locks.
    pub fn end(
        self,
        phases: &mut Phases,
        now_nanos: u64,
        (row_lock_nanos, table_lock_nanos): (u64, u64),
    ) -> StatementCost {
        let used = usage::now().since(&self.before);
        phases.enter(Phase::Parse, now_nanos);
        let phases = std::mem::replace(phases, self.outer);
        StatementCost { row_lock_nanos, table_lock_nanos, ..cost_of(&used, &phases) }
    }
}

fn cost_of(used: &Usage, phases: &Phases) -> StatementCost {
    let (times, counts) = (&used.times, &used.counts);
    let [parse_nanos, plan_nanos, execute_nanos, commit_nanos] = phases.nanos;
    StatementCost {
        cpu_nanos: times.cpu_nanos,
        user_micros: times.user_micros,
        system_micros: times.system_micros,
        parse_nanos,
        plan_nanos,
        execute_nanos,
        commit_nanos,
        row_lock_nanos: 0,
        table_lock_nanos: 0,
        minor_faults: times.minor_faults,
        major_faults: times.major_faults,
        voluntary_switches: times.voluntary_switches,
        involuntary_switches: times.involuntary_switches,
        block_reads: times.block_reads,
        block_writes: times.block_writes,
        pages: counts.pages,
        pages_missed: counts.pages_missed,
        log_bytes: counts.log_bytes,
        reads: counts.reads,
        read_bytes: counts.read_bytes,
        read_nanos: counts.read_nanos,
        writes: counts.writes,
        written_bytes: counts.written_bytes,
        write_nanos: counts.write_nanos,
        temporary_files: counts.temporary_files,
        temporary_bytes: counts.temporary_bytes,
        events: CostEvents {
            migrations: used.migrations,
            cycles: used.cycles,
            instructions: used.instructions,
            cache_misses: used.cache_misses,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_belongs_to_the_phase_that_it_passes_in() {
        let mut phases = Phases::default();
        phases.begin(100);
        phases.enter(Phase::Plan, 110);
        phases.enter(Phase::Execute, 115);
        phases.enter(Phase::Commit, 215);
        phases.enter(Phase::Execute, 220);
        phases.enter(Phase::Parse, 221);
        assert_eq!(phases.nanos, [10, 5, 101, 5]);
    }
}
