//! What tells that an answer is wrong without knowing the right one.

use client::Connection;

use crate::answer::{Difference, Reply, ask, difference};
use crate::query::{Parted, Query};

/// A statement, the way it was checked, and the two answers that should be the same.
pub(crate) struct Finding {
    /// How they differ.
    pub(crate) difference: Difference,
    /// What was compared.
    pub(crate) oracle: String,
    /// The two answers.
    pub(crate) answers: [Reply; 2],
}

/// Connections to the servers that are compared.
pub(crate) struct Servers {
    /// The server under test: tables with indexes.
    pub(crate) subject: Connection,
    /// The same server: the same rows without indexes.
    pub(crate) plain: Connection,
    /// MySQL.
    pub(crate) peer: Option<Connection>,
    /// Statements that the server under test answered with an error.
    pub(crate) refused: u64,
}

/// Switches that choose other plans; the answers must not change.
const SWITCHES: &[&str] = &[
    "hash_join=off",
    "block_nested_loop=off",
    "materialization=off",
    "semijoin=off",
    "derived_merge=off",
    "index_merge=off",
    "derived_condition_pushdown=off",
    "index_condition_pushdown=off",
    "subquery_to_derived=on",
    "skip_scan=off",
    "prefer_ordering_index=off",
    "hash_set_operations=off",
];

impl Servers {
    /// Compares the answers to a statement: with MySQL, with other plans and tables, and when it is prepared. `choice`: which switch.
    pub(crate) fn check(&mut self, sql: &str, query: &Query, choice: u64) -> Option<Finding> {
        let expected = ask(&mut self.subject, sql);
        self.refused += u64::from(matches!(expected, Reply::Refused(..)));
        let compare = |oracle: String, other: Reply, own: bool| {
            let found = difference(&expected, &other, query.ordered, query.folds)?;
            // Which row is looked at first decides whether an expression fails.
            let fails = own && matches!(found, Difference::Errors);
            let answers = [expected.clone(), other];
            (!fails).then_some(Finding { difference: found, oracle, answers })
        };
        if let Some(peer) = &mut self.peer {
            let finding = compare("MySQL".into(), ask(peer, sql), false);
            if finding.is_some() {
                return finding;
            }
        }
        let finding = compare("without indexes".into(), ask(&mut self.plain, sql), true);
        if finding.is_some() {
            return finding;
        }
        let switch = SWITCHES[(choice % SWITCHES.len() as u64) as usize];
        ask(&mut self.subject, &format!("SET optimizer_switch = '{switch}'"));
        let other = ask(&mut self.subject, sql);
        ask(&mut self.subject, "SET optimizer_switch = DEFAULT");
        let finding = compare(switch.into(), other, true);
        if finding.is_some() {
            return finding;
        }
        let quoted = sql.replace('\\', "\\\\").replace('\'', "''");
        ask(&mut self.subject, &format!("PREPARE s FROM '{quoted}'"));
        ask(&mut self.subject, "EXECUTE s");
        let again = ask(&mut self.subject, "EXECUTE s");
        ask(&mut self.subject, "DEALLOCATE PREPARE s");
        compare("prepared, run twice".into(), again, true)
    }

    /// Ternary logic: the rows for which a condition is true, false and unknown are all rows (Rigger and Su, TLP, 2020); and as many
    /// rows pass it as it is true for (NoREC, 2020).
    pub(crate) fn check_parts(&mut self, parted: &Parted) -> Option<Finding> {
        let (items, from) = (parted.items.sql(), parted.from.sql());
        let condition = parted.condition.sql();
        let all = ask(&mut self.subject, &format!("SELECT {items} FROM {from}"));
        let mut parts = Vec::new();
        for test in ["IS TRUE", "IS FALSE", "IS UNKNOWN"] {
            // The plain condition where it can be: that is what the optimizer takes apart.
            let condition = match test {
                "IS TRUE" => condition.clone(),
                "IS FALSE" => format!("NOT ({condition})"),
                _ => format!("({condition}) {test}"),
            };
            let sql = format!("SELECT {items} FROM {from} WHERE {condition}");
            match ask(&mut self.subject, &sql) {
                Reply::Rows(_, rows) => parts.extend(rows),
                Reply::Lost(why) => return Some(lost(why)),
                Reply::Refused(..) => return None,
            }
        }
        let Reply::Rows(types, _) = &all else { return None };
        let together = Reply::Rows(types.clone(), parts);
        if let Some(found) = difference(&all, &together, false, false) {
            let oracle = "three parts".into();
            return Some(Finding { difference: found, oracle, answers: [all, together] });
        }
        let passed = format!("SELECT COUNT(*) FROM {from} WHERE {condition}");
        let counted = format!("SELECT COUNT(IF({condition}, 1, NULL)) FROM {from}");
        let answers = [ask(&mut self.subject, &passed), ask(&mut self.subject, &counted)];
        let found = difference(&answers[0], &answers[1], false, false)?;
        let oracle = "count".into();
        (found != Difference::Errors).then_some(Finding { difference: found, oracle, answers })
    }
}

fn lost(why: String) -> Finding {
    let answers = [Reply::Lost(why.clone()), Reply::Lost(why)];
    Finding { difference: Difference::Lost, oracle: "alive".into(), answers }
}
