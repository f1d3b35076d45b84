//! Totals by user, those of sessions that have ended included: `CUMULATIVE_USER_STATS` and `CUMULATIVE_SQL_COMMANDS`.

use std::collections::BTreeMap;

use plugin_api::SessionCounts;
use sys::sync::Mutex;

use crate::sums::Sums;

/// Users that are told apart; further ones count under an empty name.
const USERS_MAX: usize = 1024;

/// Groups of statements, with the beginnings of the counters that they add up.
pub(crate) const COMMANDS: [(&str, &[&str]); 10] = [
    ("COUNT_SELECT", &["Com_select"]),
    ("COUNT_DELETE", &["Com_delete"]),
    ("COUNT_UPDATE", &["Com_update"]),
    ("COUNT_INSERT", &["Com_insert", "Com_replace", "Com_load"]),
    ("COUNT_ROLLBACK", &["Com_rollback"]),
    ("COUNT_COMMIT", &["Com_commit"]),
    ("COUNT_CREATE", &["Com_create_"]),
    ("COUNT_ALTER", &["Com_alter_"]),
    ("COUNT_DROP", &["Com_drop_"]),
    ("COUNT_ADMIN", &["Com_"]),
];

/// What the sessions of a user did.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct UserTotals {
    pub(crate) received: u64,
    pub(crate) sent: u64,
    /// Log-ins that were refused for another reason than a wrong name or password.
    pub(crate) denied: u64,
    /// Log-ins with a wrong name or password.
    pub(crate) access_denied: u64,
    pub(crate) connected_micros: u64,
    /// Microseconds and rows of the statements that were recorded.
    pub(crate) recorded: Option<(u64, u64)>,
    pub(crate) updated: u64,
    pub(crate) deleted: u64,
    pub(crate) inserted: u64,
    /// In the order of `COMMANDS`.
    pub(crate) commands: [u64; COMMANDS.len()],
}

impl UserTotals {
    /// Adds a session.
    pub(crate) fn add(&mut self, counts: &SessionCounts, now_micros: i64, recorded: Option<&Sums>) {
        self.received += counts.received;
        self.sent += counts.sent;
        self.connected_micros += now_micros.saturating_sub(counts.opened_micros).max(0) as u64;
        if let Some(sums) = recorded {
            let (micros, rows) = self.recorded.get_or_insert_default();
            *micros += sums.micros;
            *rows += sums.sent;
        }
        // Most are zero, and there are hundreds.
        for (name, count) in counts.counters.iter().filter(|(_, count)| *count > 0) {
            match *name {
                "Handler_update" => self.updated += count,
                "Handler_delete" => self.deleted += count,
                "Handler_write" => self.inserted += count,
                _ => {}
            }
            let is_of =
                |(_, starts): &(&str, &[&str])| starts.iter().any(|start| name.starts_with(start));
            if let Some(group) = COMMANDS.iter().position(is_of) {
                self.commands[group] += count;
            }
        }
    }
}

/// Totals of users whose sessions have ended, and refused log-ins.
#[derive(Debug, Default)]
pub(crate) struct Users(Mutex<BTreeMap<String, UserTotals>>);

impl Users {
    fn change(&self, user: &str, change: impl FnOnce(&mut UserTotals)) {
        let mut users = self.0.lock();
        let known = users.len() < USERS_MAX || users.contains_key(user);
        change(users.entry(if known { user } else { "" }.to_owned()).or_default());
    }

    /// A session ended.
    pub(crate) fn closed(
        &self,
        user: &str,
        counts: &SessionCounts,
        now_micros: i64,
        recorded: Option<&Sums>,
    ) {
        self.change(user, |totals| totals.add(counts, now_micros, recorded));
    }

    /// A log-in was refused.
    pub(crate) fn refused(&self, user: &str, has_reason: bool) {
        self.change(user, |totals| match has_reason {
            true => totals.denied += 1,
            false => totals.access_denied += 1,
        });
    }

    /// All, by name.
    pub(crate) fn all(&self) -> BTreeMap<String, UserTotals> {
        self.0.lock().clone()
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_counter_counts_in_one_group() {
        let counters = vec![("Com_select", 2), ("Com_create_table", 3), ("Com_kill", 5)];
        let counters = [counters, vec![("Handler_update", 7), ("Queries", 100)]].concat();
        let counts = SessionCounts { received: 11, counters, ..SessionCounts::default() };
        let users = Users::default();
        users.closed("u", &counts, 50, None);
        let mut recorded = Sums::default();
        recorded.micros = 4;
        users.closed("u", &counts, 50, Some(&recorded));
        users.refused("u", false);
        let totals = &users.all()["u"];
        assert_eq!(totals.commands, [4, 0, 0, 0, 0, 0, 6, 0, 0, 10]);
        assert_eq!((totals.received, totals.updated, totals.connected_micros), (22, 14, 100));
        assert_eq!((totals.access_denied, totals.denied, totals.recorded), (1, 0, Some((4, 0))));
    }

    #[test]
    fn there_are_no_more_users_than_the_bound() {
        let users = Users::default();
        (0..2 * USERS_MAX).for_each(|number| users.refused(&number.to_string(), true));
        let all = users.all();
        assert_eq!(all.len(), USERS_MAX + 1);
        assert_eq!(all.values().map(|totals| totals.denied).sum::<u64>(), 2 * USERS_MAX as u64);
    }
}
