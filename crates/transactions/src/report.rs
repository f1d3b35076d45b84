//! What replies tell of a session's transaction (`session_track_transaction_info`): proxies that share connections read it to know when
//! one is free, and how to begin the same transaction elsewhere.
//!
//! The texts are those of the reference: eight places for the state, statements that repeat the characteristics.

use std::fmt::Write;

use engine_api::IsolationLevel;
use plugin_api::StateChange;
use variables::TransactionTracking;

use statements::planned::Planned;

/// What the statements of a transaction have done so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Uses {
    reads: bool,
    writes: bool,
    /// A statement whose effect its text does not decide.
    chance: bool,
    /// A result set went to the client.
    result: bool,
}

/// Characteristics that statements named.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Named {
    isolation: Option<IsolationLevel>,
    read_only: Option<bool>,
}

/// How the open transaction was begun.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Begun {
    named: Named,
    with_snapshot: bool,
    /// The identifier of the XA branch that it is.
    branch: Option<String>,
}

/// What of a session matters for the report, when a reply is made.
#[derive(Clone, Copy, Debug)]
pub struct Situation {
    /// A statement began the transaction.
    pub explicit: bool,
    /// It is open without one, because statements do not commit by themselves.
    pub implicit: bool,
    /// SET TRANSACTION named characteristics of the next transaction, or the open one was begun without a statement and has them.
    pub has_next: bool,
    /// LOCK TABLES is in force.
    pub locks_tables: bool,
}

/// What a session's transaction did, and what replies have told.
#[derive(Debug, Default)]
pub struct TransactionReport {
    uses: Uses,
    next: Named,
    begun: Begun,
    told_state: Option<String>,
    told_characteristics: String,
    /// The next reply repeats the characteristics.
    repeats: bool,
}

/// Nothing is open.
const IDLE: &str = "________";

impl TransactionReport {
    /// A statement is about to run in the transaction.
    pub fn note(&mut self, planned: &Planned) {
        let writes = !planned.targets.is_empty() || planned.locks_to_write;
        self.uses.writes |= writes && !planned.tables.is_empty();
        let targets = planned.targets.len();
        self.uses.reads |= !planned.locks_to_write && planned.tables.len() > targets;
        self.uses.chance |= planned.has_chance;
    }

    /// A result set goes to the client.
    pub fn note_result(&mut self) {
        self.uses.result = true;
    }

    /// SET TRANSACTION without a scope, or its form as a variable. `follows`: others came before it.
    pub fn name_next(
        &mut self,
        isolation: Option<IsolationLevel>,
        read_only: Option<bool>,
        follows: bool,
    ) {
        if !follows {
            self.next = Named::default();
        }
        self.next.isolation = isolation.or(self.next.isolation);
        self.next.read_only = read_only.or(self.next.read_only);
    }

    /// A statement begins a transaction. `has_next`: SET TRANSACTION was for it.
    #[inline]
    pub fn begin(&mut self, read_only: Option<bool>, has_next: bool) {
        let mut named = if has_next { self.next.clone() } else { Named::default() };
        named.read_only = read_only.or(named.read_only);
        self.begun = Begun { named, ..Begun::default() };
        self.uses = Uses::default();
    }

    /// The transaction that has begun has a snapshot.
    pub fn take_snapshot(&mut self) {
        self.begun.with_snapshot = true;
        self.uses.reads = true;
    }

    /// The transaction that has begun is an XA branch.
    pub fn set_branch(&mut self, identifier: String) {
        self.begun.branch = Some(identifier);
    }

    /// The transaction has ended.
    #[inline]
    pub fn end(&mut self) {
        self.uses = Uses::default();
    }

    /// AND CHAIN: another one like it has begun.
    pub fn chain(&mut self) {
        self.begun.with_snapshot = false;
        self.repeats = true;
    }

    /// What a reply has to tell.
    pub fn changes(
        &mut self,
        tracking: TransactionTracking,
        situation: Situation,
    ) -> Vec<StateChange> {
        let mut changes = Vec::new();
        if tracking == TransactionTracking::Off {
            return changes;
        }
        let state = self.state(situation);
        if state != self.told_state.as_deref().unwrap_or(IDLE) {
            changes.push(StateChange::TransactionState(state.clone()));
            self.told_state = Some(state);
        }
        let text = self.characteristics(situation);
        if tracking == TransactionTracking::Characteristics
            && (std::mem::take(&mut self.repeats) || text != self.told_characteristics)
        {
            changes.push(StateChange::TransactionCharacteristics(text.clone()));
            self.told_characteristics = text;
        }
        changes
    }

    /// `session_track_transaction_info` was set: from now on what is told begins anew.
    pub fn restart(&mut self) {
        // Nobody noted how an open transaction was begun.
        self.begun = Begun::default();
        self.uses = Uses::default();
        self.repeats = true;
    }

    fn state(&self, situation: Situation) -> String {
        let is_open = situation.explicit || situation.implicit;
        let uses = if is_open { self.uses } else { Uses::default() };
        let places = [
            (situation.implicit && !situation.explicit, 'I'),
            // Rows of engines that do not take part in transactions: there are none.
            (false, 'r'),
            (uses.reads, 'R'),
            (false, 'w'),
            (uses.writes, 'W'),
            (uses.chance, 's'),
            (uses.result, 'S'),
            (situation.locks_tables, 'L'),
        ];
        let mut text: String =
            places.iter().map(|(set, letter)| if *set { *letter } else { '_' }).collect();
        if situation.explicit {
            text.replace_range(..1, "T");
        }
        text
    }

    fn characteristics(&self, situation: Situation) -> String {
        if !situation.explicit {
            return match situation.has_next {
                true => set_statements(&self.next).join(" "),
                false => String::new(),
            };
        }
        let Begun { named, with_snapshot, branch } = &self.begun;
        let isolation = Named { isolation: named.isolation, read_only: None };
        let mut statements = set_statements(&isolation);
        if let Some(identifier) = branch {
            statements.push(format!("XA START {identifier};"));
            return statements.join(" ");
        }
        let mut start = "START TRANSACTION".to_owned();
        if *with_snapshot {
            start.push_str(" WITH CONSISTENT SNAPSHOT");
        }
        if let Some(read_only) = named.read_only {
            let comma = if *with_snapshot { "," } else { "" };
            let _ = write!(start, "{comma} {}", access(read_only));
        }
        start.push(';');
        statements.push(start);
        statements.join(" ")
    }
}

fn set_statements(named: &Named) -> Vec<String> {
    let isolation = named
        .isolation
        .map(|level| format!("SET TRANSACTION ISOLATION LEVEL {};", level_words(level)));
    let access = named.read_only.map(|value| format!("SET TRANSACTION {};", access(value)));
    isolation.into_iter().chain(access).collect()
}

fn access(read_only: bool) -> &'static str {
    if read_only { "READ ONLY" } else { "READ WRITE" }
}

fn level_words(level: IsolationLevel) -> &'static str {
    match level {
        IsolationLevel::ReadUncommitted => "READ UNCOMMITTED",
        IsolationLevel::ReadCommitted => "READ COMMITTED",
        IsolationLevel::RepeatableRead => "REPEATABLE READ",
        IsolationLevel::Serializable => "SERIALIZABLE",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDLE_SESSION: Situation =
        Situation { explicit: false, implicit: false, has_next: false, locks_tables: false };
    const OPEN: Situation = Situation { explicit: true, ..IDLE_SESSION };

    fn told(report: &mut TransactionReport, situation: Situation) -> Vec<String> {
        let changes = report.changes(TransactionTracking::Characteristics, situation);
        changes
            .into_iter()
            .map(|change| match change {
                StateChange::TransactionState(text)
                | StateChange::TransactionCharacteristics(text) => text,
                other => panic!("{other:?}"),
            })
            .collect()
    }

    #[test]
    fn a_reply_tells_what_has_changed_since_the_last_one() {
        let mut report = TransactionReport::default();
        assert!(told(&mut report, IDLE_SESSION).is_empty());
        report.begin(None, false);
        assert_eq!(told(&mut report, OPEN), ["T_______", "START TRANSACTION;"]);
        report.note_result();
        assert_eq!(told(&mut report, OPEN), ["T_____S_"]);
        assert!(told(&mut report, OPEN).is_empty());
        report.end();
        assert_eq!(told(&mut report, IDLE_SESSION), ["________", ""]);
    }

    #[test]
    fn characteristics_are_statements_that_repeat_them() {
        let mut report = TransactionReport::default();
        report.name_next(Some(IsolationLevel::Serializable), None, false);
        report.name_next(None, Some(true), true);
        let next = Situation { has_next: true, ..IDLE_SESSION };
        let level = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;";
        assert_eq!(told(&mut report, next), [format!("{level} SET TRANSACTION READ ONLY;")]);
        report.begin(Some(false), true);
        report.take_snapshot();
        let begun = format!("{level} START TRANSACTION WITH CONSISTENT SNAPSHOT, READ WRITE;");
        assert_eq!(told(&mut report, OPEN), ["T_R_____".to_owned(), begun]);
        report.end();
        report.chain();
        let chained = format!("{level} START TRANSACTION READ WRITE;");
        assert_eq!(told(&mut report, OPEN), ["T_______".to_owned(), chained.clone()]);
        report.chain();
        assert_eq!(told(&mut report, OPEN), [chained], "told again");
    }

    #[test]
    fn nothing_is_told_when_nobody_asks() {
        let mut report = TransactionReport::default();
        report.begin(None, false);
        assert!(report.changes(TransactionTracking::Off, OPEN).is_empty());
        let state = report.changes(TransactionTracking::State, OPEN);
        assert_eq!(state, [StateChange::TransactionState("T_______".into())]);
    }
}
