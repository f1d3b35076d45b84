//! Connections by user and host: `accounts`, `users` and `hosts`.

use std::collections::BTreeMap;

use errors::Result;
use plugin_api::{InfoFilter, InformationContext};
use sys::sync::Mutex;
use types::Value;

use crate::recorder::Recorder;
use crate::row::Emit;

/// Accounts that are told apart; the connections of further ones count under empty names.
const ACCOUNTS_MAX: usize = 1024;

/// User and host.
type Account = (String, String);

/// Connections that have ended, by account.
#[derive(Debug, Default)]
pub(crate) struct EndedConnections(Mutex<BTreeMap<Account, u64>>);

impl EndedConnections {
    /// A connection ended.
    pub(crate) fn count(&self, user: &str, host: &str) {
        let mut accounts = self.0.lock();
        let account = (user.to_owned(), host.to_owned());
        let known = accounts.len() < ACCOUNTS_MAX || accounts.contains_key(&account);
        *accounts.entry(if known { account } else { Account::default() }).or_default() += 1;
    }

    /// Forgets all.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

/// Current connections and all.
#[derive(Clone, Copy, Debug, Default)]
struct Connections {
    current: u64,
    total: u64,
}

/// The connections that the account may see, those that have ended only if it may see everything, in groups that `names` gives.
fn connections(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    emit: &mut Emit<'_>,
    names: impl Fn(Account) -> Vec<String>,
) -> Result<()> {
    let mut groups: BTreeMap<Vec<String>, Connections> = BTreeMap::new();
    if ctx.sees_all_processes() {
        for (account, count) in &*recorder.ended.0.lock() {
            groups.entry(names(account.clone())).or_default().total += count;
        }
    }
    for process in ctx.processes() {
        let host =
            process.host.rsplit_once(':').map_or(&*process.host, |(host, _)| host).to_owned();
        let group = groups.entry(names((process.user, host))).or_default();
        group.current += 1;
        group.total += 1;
    }
    groups.iter().try_for_each(|(names, connections)| {
        let mut cells: Vec<Value> = names.iter().map(|name| Value::text(name)).collect();
        cells.extend([connections.current, connections.total].map(Value::UInt));
        // The memory of a session is not counted.
        cells.extend([Value::UInt(0), Value::UInt(0)]);
        emit(&cells)
    })
}

/// `accounts`.
pub(crate) fn accounts(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    connections(recorder, ctx, emit, |(user, host)| vec![user, host])
}

/// `users`.
pub(crate) fn users(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    connections(recorder, ctx, emit, |(user, _)| vec![user])
}

/// `hosts`.
pub(crate) fn hosts(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    connections(recorder, ctx, emit, |(_, host)| vec![host])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_are_no_more_accounts_than_the_bound() {
        let ended = EndedConnections::default();
        (0..2 * ACCOUNTS_MAX).for_each(|number| ended.count(&number.to_string(), "localhost"));
        let accounts = ended.0.lock();
        assert_eq!(accounts.len(), ACCOUNTS_MAX + 1);
        assert_eq!(accounts.values().sum::<u64>(), 2 * ACCOUNTS_MAX as u64);
    }
}
