//! What a statement costs: its phases, and the difference of two readings of what its thread has used.

use plugin_api::{CostEvents, StatementCost, StatementStep};
use sys::usage::{self, Times, Usage};

/// Steps of a statement that are kept; a procedure's loop can have any number of them, and what comes later belongs to the last one.
const STEPS_MAX: usize = 200;

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

impl Phase {
    /// The name of a step in this phase: the stage of the reference that does the same.
    fn step_name(self) -> &'static str {
        match self {
            Phase::Parse => "starting",
            Phase::Plan => "optimizing",
            Phase::Execute => "executing",
            Phase::Commit => "waiting for handler commit",
        }
    }
}

/// The steps of a statement, one for each change of its phase.
#[derive(Debug, Default)]
struct Steps {
    list: Vec<StatementStep>,
    times: Times,
    /// The name of long work, which stands for that of its phase.
    stage: Option<&'static str>,
    /// Work done since the step began, and the work that is expected of it.
    work: (u64, u64),
}

impl Steps {
    fn end(&mut self, phase: Phase, nanos: u64) {
        let times = usage::times();
        let used = times.since(&self.times);
        let work = std::mem::take(&mut self.work);
        self.times = times;
        let step = StatementStep {
            name: self.stage.unwrap_or(phase.step_name()),
            nanos,
            user_micros: used.user_micros,
            system_micros: used.system_micros,
            voluntary_switches: used.voluntary_switches,
            involuntary_switches: used.involuntary_switches,
            block_reads: used.block_reads,
            block_writes: used.block_writes,
            major_faults: used.major_faults,
            minor_faults: used.minor_faults,
            work_done: work.0,
            work_expected: work.1,
        };
        let is_full = self.list.len() == STEPS_MAX;
        match self.list.last_mut() {
            Some(last) if is_full || last.name == step.name => last.add(&step),
            Some(_) | None => self.list.push(step),
        }
    }
}

/// Where the time of the running statement goes.
#[derive(Debug, Default)]
pub struct Phases {
    is_measured: bool,
    now: Phase,
    since_nanos: u64,
    nanos: [u64; 4],
    /// Its steps, when they are of interest too.
    steps: Option<Box<Steps>>,
}

impl Phases {
    /// Whether the time is of interest.
    #[inline]
    pub fn is_measured(&self) -> bool {
        self.is_measured
    }

    /// The first phase begins.
    pub fn begin(&mut self, now_nanos: u64, keeps_steps: bool) {
        let steps =
            keeps_steps.then(|| Box::new(Steps { times: usage::times(), ..Steps::default() }));
        *self = Phases { is_measured: true, since_nanos: now_nanos, steps, ..Phases::default() };
    }

    /// The next phase begins.
    pub fn enter(&mut self, phase: Phase, now_nanos: u64) {
        let nanos = now_nanos.saturating_sub(self.since_nanos);
        self.nanos[self.now as usize] += nanos;
        if let Some(steps) = &mut self.steps {
            steps.end(self.now, nanos);
        }
        self.now = phase;
        self.since_nanos = now_nanos;
    }

    /// Long work of this name begins within the phase, or, for `None`, ends.
    pub fn enter_stage(&mut self, stage: Option<&'static str>, now_nanos: u64) {
        self.enter(self.now, now_nanos);
        if let Some(steps) = &mut self.steps {
            steps.stage = stage;
        }
    }

    /// The present step has done so much of the work that was expected of it.
    pub fn count_work(&mut self, done: u64, expected: u64) {
        if let Some(steps) = &mut self.steps {
            steps.work = (done, expected);
        }
    }
}

/// What a thread had used when a statement began, and the phases of the statement around it, if there is one.
pub struct Measuring {
    before: Usage,
    outer: Phases,
}

impl Measuring {
    /// Begins to measure a statement, which runs on this thread, in `phases`; `keeps_steps`: step by step.
    pub fn begin(phases: &mut Phases, now_nanos: u64, keeps_steps: bool) -> Measuring {
        let outer = std::mem::take(phases);
        phases.begin(now_nanos, keeps_steps);
        Measuring { before: usage::now(), outer }
    }

    /// The cost of the statement, which waited so long for locks, and its steps.
    pub fn end(
        self,
        phases: &mut Phases,
        now_nanos: u64,
        (row_lock_nanos, table_lock_nanos): (u64, u64),
    ) -> (StatementCost, Vec<StatementStep>) {
        let used = usage::now().since(&self.before);
        phases.enter(Phase::Parse, now_nanos);
        let mut phases = std::mem::replace(phases, self.outer);
        let steps = phases.steps.take().map(|steps| steps.list).unwrap_or_default();
        (StatementCost { row_lock_nanos, table_lock_nanos, ..cost_of(&used, &phases) }, steps)
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
        phases.begin(100, true);
        phases.enter(Phase::Plan, 110);
        phases.enter(Phase::Execute, 115);
        phases.enter(Phase::Commit, 215);
        phases.enter(Phase::Execute, 220);
        phases.enter(Phase::Parse, 221);
        assert_eq!(phases.nanos, [10, 5, 101, 5]);
        let steps = phases.steps.map(|steps| steps.list).unwrap_or_default();
        let steps: Vec<_> = steps.iter().map(|step| (step.name, step.nanos)).collect();
        assert_eq!(
            steps,
            [
                ("starting", 10),
                ("optimizing", 5),
                ("executing", 100),
                ("waiting for handler commit", 5),
                ("executing", 1)
            ]
        );
    }

    #[test]
    fn long_work_names_its_step_and_counts() {
        let mut phases = Phases::default();
        phases.begin(0, true);
        phases.enter(Phase::Execute, 1);
        phases.enter_stage(Some("copy to tmp table"), 3);
        phases.enter(Phase::Execute, 5);
        phases.count_work(7, 10);
        phases.enter_stage(None, 9);
        phases.enter(Phase::Parse, 10);
        let steps = phases.steps.map(|steps| steps.list).unwrap_or_default();
        let steps: Vec<_> = steps
            .iter()
            .map(|step| (step.name, step.nanos, step.work_done, step.work_expected))
            .collect();
        let copy = ("copy to tmp table", 6, 7, 10);
        assert_eq!(
            steps,
            [("starting", 1, 0, 0), ("executing", 2, 0, 0), copy, ("executing", 1, 0, 0)]
        );
        assert_eq!(phases.nanos, [1, 0, 9, 0]);
    }

    #[test]
    fn the_last_step_takes_what_comes_after_the_bound() {
        let mut phases = Phases::default();
        phases.begin(0, true);
        for at in 1..=1000 {
            phases.enter(if at % 2 == 0 { Phase::Parse } else { Phase::Execute }, at);
        }
        let steps = phases.steps.map(|steps| steps.list).unwrap_or_default();
        let total: u64 = steps.iter().map(|step| step.nanos).sum();
        assert_eq!((steps.len(), total), (STEPS_MAX, 1000));
    }
}
