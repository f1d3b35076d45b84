//! The profile of a statement while it runs: its phases with what its thread waited for in each, and the measured programs that it runs.

use plugin_api::ProfileFrame;
use sys::waits::{self, Totals};

use crate::measuring::Phase;

/// The names of the phases.
const PHASES: [&str; 4] = ["parse", "plan", "execute", "commit"];

/// Collects the profile of one statement.
#[derive(Debug, Default)]
pub struct Profiling {
    now: Phase,
    since_nanos: u64,
    /// The thread's waits until then.
    waits: Totals,
    shares: [Share; 4],
    /// Measured programs that run: each runs within the one before it.
    open: Vec<OpenProgram>,
    /// Those that ran within none.
    ended: Vec<ProfileFrame>,
    ended_waits: Totals,
}

#[derive(Debug, Default)]
struct Share {
    nanos: u64,
    waits: Totals,
}

#[derive(Debug)]
struct OpenProgram {
    started_nanos: u64,
    /// The thread's waits until it began.
    waits: Totals,
    /// Those of programs that ran within it.
    inner_waits: Totals,
    /// Time that plans for those took.
    plan_nanos: u64,
    parts: Vec<ProfileFrame>,
}

/// What a program did.
#[derive(Debug, Default)]
pub struct ProgramProfile {
    /// The name of its frame.
    pub name: String,
    /// Rows that it sent or changed.
    pub rows: u64,
    /// Its operators.
    pub operators: Vec<ProfileFrame>,
    /// The waits that are among its operators.
    pub waits: Totals,
}

impl Profiling {
    /// A statement that was parsed in `parse_nanos` begins.
    pub fn begin(now_nanos: u64, parse_nanos: u64) -> Profiling {
        let mut profiling = Profiling {
            now: Phase::Execute,
            since_nanos: now_nanos,
            waits: waits::mine(),
            ..Profiling::default()
        };
        profiling.shares[Phase::Parse as usize].nanos = parse_nanos;
        profiling
    }

    /// The next phase begins.
    pub fn enter(&mut self, phase: Phase, now_nanos: u64) {
        let nanos = now_nanos.saturating_sub(self.since_nanos);
        let waits = waits::mine();
        // Within a program all is its own time.
        let phase_before = match self.open.last_mut() {
            Some(program) => {
                program.plan_nanos += if self.now == Phase::Plan { nanos } else { 0 };
                Phase::Execute
            }
            None => self.now,
        };
        let share = &mut self.shares[phase_before as usize];
        share.nanos += nanos;
        share.waits.add(&waits.since(&self.waits));
        (self.now, self.since_nanos, self.waits) = (phase, now_nanos, waits);
    }

    /// A program begins.
    pub fn begin_program(&mut self, now_nanos: u64) {
        self.enter(Phase::Execute, now_nanos);
        self.open.push(OpenProgram {
            started_nanos: now_nanos,
            waits: self.waits,
            inner_waits: Totals::default(),
            plan_nanos: 0,
            parts: Vec::new(),
        });
    }

    /// The program that began last ended.
    pub fn end_program(&mut self, now_nanos: u64, profile: ProgramProfile) {
        self.enter(Phase::Execute, now_nanos);
        debug_assert!(!self.open.is_empty(), "a program ends that began");
        let Some(program) = self.open.pop() else { return };
        let waits = self.waits.since(&program.waits);
        let own_waits = waits.since(&profile.waits).since(&program.inner_waits);
        let mut parts = profile.operators;
        parts.extend(program.parts);
        if program.plan_nanos > 0 {
            parts.push(frame(PHASES[Phase::Plan as usize], program.plan_nanos));
        }
        parts.extend(waits_of(&own_waits));
        let done = ProfileFrame {
            name: profile.name,
            nanos: now_nanos.saturating_sub(program.started_nanos),
            rows: Some(profile.rows),
            loops: 1,
            parts,
        };
        match self.open.last_mut() {
            Some(outer) => {
                outer.inner_waits.add(&waits);
                add(&mut outer.parts, done);
            }
            None => {
                self.ended_waits.add(&waits);
                add(&mut self.ended, done);
            }
        }
    }

    /// The profile of the statement, which ended.
    pub fn end(mut self, now_nanos: u64) -> ProfileFrame {
        self.enter(Phase::Execute, now_nanos);
        debug_assert!(self.open.is_empty(), "each program that began has ended");
        let mut parts = Vec::new();
        for (at, share) in self.shares.iter().enumerate().filter(|(_, share)| share.nanos > 0) {
            let mut phase = frame(PHASES[at], share.nanos);
            if at == Phase::Execute as usize {
                phase.parts = std::mem::take(&mut self.ended);
                phase.parts.extend(waits_of(&share.waits.since(&self.ended_waits)));
            } else {
                phase.parts.extend(waits_of(&share.waits));
            }
            parts.push(phase);
        }
        let nanos = parts.iter().map(|part| part.nanos).sum();
        ProfileFrame { nanos, parts, ..frame("statement", 0) }
    }
}

fn frame(name: &str, nanos: u64) -> ProfileFrame {
    ProfileFrame { name: name.to_owned(), nanos, rows: None, loops: 1, parts: Vec::new() }
}

/// A frame for each kind of wait; its loops are the waits.
pub fn waits_of(waits: &Totals) -> Vec<ProfileFrame> {
    let shown = |(wait, total): (waits::Wait, waits::Total)| ProfileFrame {
        loops: total.count,
        ..frame(&format!("wait: {}", wait.name()), total.nanos)
    };
    waits.kinds().map(shown).collect()
}

/// Adds a frame; frames of one name become one.
fn add(frames: &mut Vec<ProfileFrame>, frame: ProfileFrame) {
    let Some(known) = frames.iter_mut().find(|known| known.name == frame.name) else {
        frames.push(frame);
        return;
    };
    known.nanos += frame.nanos;
    known.loops += frame.loops;
    known.rows = known.rows.zip(frame.rows).map(|(rows, more)| rows + more);
    frame.parts.into_iter().for_each(|part| add(&mut known.parts, part));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_trigger_that_ran_twice_is_one_frame_within_the_statement_that_fired_it() {
        let mut profiling = Profiling::begin(1_000, 50);
        profiling.enter(Phase::Plan, 1_010);
        profiling.begin_program(1_030);
        for fired in [1_100, 1_200] {
            profiling.enter(Phase::Plan, fired);
            profiling.begin_program(fired + 7);
            let name = "Insert into log".to_owned();
            profiling
                .end_program(fired + 20, ProgramProfile { name, rows: 1, ..Default::default() });
        }
        let name = "Insert into t".to_owned();
        profiling.end_program(1_330, ProgramProfile { name, rows: 2, ..Default::default() });
        profiling.enter(Phase::Commit, 1_340);
        profiling.enter(Phase::Execute, 1_400);
        let statement = profiling.end(1_405);
        let shares: Vec<(&str, u64)> =
            statement.parts.iter().map(|part| (&*part.name, part.nanos)).collect();
        assert_eq!(shares, [("parse", 50), ("plan", 20), ("execute", 325), ("commit", 60)]);
        assert_eq!(statement.nanos, 455);
        let insert = &statement.parts[2].parts[0];
        assert_eq!((&*insert.name, insert.nanos, insert.rows), ("Insert into t", 300, Some(2)));
        let inner: Vec<(&str, u64, u64)> =
            insert.parts.iter().map(|part| (&*part.name, part.nanos, part.loops)).collect();
        assert_eq!(inner, [("Insert into log", 26, 2), ("plan", 14, 1)]);
        assert_eq!(insert.own_nanos(), 260);
    }
}
