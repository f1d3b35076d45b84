//! State of the running statement alone: its time, its place among the statements of its text, the parts of its reply besides its result.

use plugin_api::{CommandOutcome, StateChange};
use types::temporal::MICROS_PER_SECOND;
use types::{DateTime, ZoneRules};

/// The state of a session's running statement.
pub struct StatementState {
    /// When it began, microseconds since 1970 UTC.
    pub started_micros: i64,
    pub local_clock: LocalClock,
    /// State changes to report with the next reply.
    pub changes: Vec<StateChange>,
    /// Something of the session has changed that a client could have to repeat elsewhere (`session_track_state_change`).
    pub state_changed: bool,
    /// Statement nesting: PREPARE and EXECUTE run statements.
    pub depth: u32,
    /// The fate of the connection after the command.
    pub outcome: CommandOutcome,
    /// More statements of the same text follow.
    pub more_results: bool,
    /// It was prepared: notices about its text were raised then.
    pub runs_prepared: bool,
    /// Rows that the session's statements have examined so far.
    pub rows_examined: u64,
    /// It reads the conditions of the previous statement and keeps them.
    pub keeps_diagnostics: bool,
    /// Its text for the binary log, when it is to be logged; several if it is logged as several statements.
    pub text: Vec<Vec<u8>>,
    /// The text of the statement of a program that is about to run, while there is a binary log.
    pub program_text: Option<Vec<u8>>,
    /// Whether `text` is that of a definition, which is logged itself.
    pub defines: bool,
}

impl StatementState {
    pub fn new(now_micros: i64) -> StatementState {
        StatementState {
            started_micros: now_micros,
            local_clock: LocalClock::default(),
            changes: Vec::new(),
            state_changed: false,
            depth: 0,
            outcome: CommandOutcome::Continue,
            more_results: false,
            runs_prepared: false,
            rows_examined: 0,
            keeps_diagnostics: false,
            text: Vec::new(),
            program_text: None,
            defines: false,
        }
    }

    /// Begins a statement of a client.
    pub fn begin(&mut self) {
        self.more_results = false;
        self.runs_prepared = false;
    }

    /// Ends the statement; returns whether it keeps the conditions of the previous one.
    pub fn end(&mut self) -> bool {
        std::mem::take(&mut self.keeps_diagnostics)
    }
}

/// The last second that was converted to local time: most statements run in the same one.
#[derive(Default)]
pub struct LocalClock {
    second: Option<(i64, DateTime)>,
}

impl LocalClock {
    /// `now_micros` in `zone`, which is always the same until the clock is created again.
    pub fn read(&mut self, now_micros: i64, zone: &dyn ZoneRules) -> DateTime {
        let second = now_micros.div_euclid(MICROS_PER_SECOND);
        let micros = now_micros.rem_euclid(MICROS_PER_SECOND);
        let local = match self.second {
            Some((known, local)) if known == second => local,
            Some(_) | None => {
                let local = zone.utc_to_local(second * MICROS_PER_SECOND);
                self.second = Some((second, local));
                local
            }
        };
        local.with_microsecond(micros as u32)
    }
}

#[cfg(test)]
mod tests {
    use types::FixedOffset;

    use super::*;

    #[test]
    fn the_local_clock_follows_the_second_and_keeps_the_fraction() {
        let zone = FixedOffset::parse("+01:00").expect("an offset");
        let mut clock = LocalClock::default();
        for now in [5, 999_999, 1_000_000, 1_500_000, -1] {
            let local = clock.read(now, &zone);
            assert_eq!(local.to_unix_micros(), Some(now + 3_600 * MICROS_PER_SECOND), "{now}");
        }
    }

    #[test]
    fn a_statement_leaves_the_conditions_of_the_one_before_once() {
        let mut state = StatementState::new(0);
        state.keeps_diagnostics = true;
        state.runs_prepared = true;
        assert!(state.end());
        assert!(!state.end());
        state.begin();
        assert!(!state.runs_prepared && !state.more_results);
    }
}
