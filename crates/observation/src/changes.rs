//! The changes of a transaction that change sinks want, in bounded memory, until it commits.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use exec::RowMark;
use plugin_api::{
    ChangeSink, CommittedTransaction, LoggedTable, Observer, RowChange, RowColumn, SessionFacts,
};
use types::Value;

use crate::change_order::ChangeOrder;

/// Bytes of changes that a transaction may keep; further ones are counted only.
const BYTES_MAX: usize = 32 << 20;

/// Facts of a session that outlive its statement.
#[derive(Clone, Debug, Default)]
pub struct OwnedFacts {
    connection_id: u64,
    user: String,
    host: String,
    account: String,
    schema: Option<String>,
}

impl OwnedFacts {
    /// A copy of a session's facts.
    pub fn of(facts: &SessionFacts<'_>) -> OwnedFacts {
        OwnedFacts {
            connection_id: facts.connection_id,
            user: facts.user.to_owned(),
            host: facts.host.to_owned(),
            account: facts.account.to_owned(),
            schema: facts.schema.map(str::to_owned),
        }
    }

    /// The facts as events have them.
    pub fn facts(&self) -> SessionFacts<'_> {
        SessionFacts {
            connection_id: self.connection_id,
            user: &self.user,
            host: &self.host,
            account: &self.account,
            schema: self.schema.as_deref(),
        }
    }
}

/// A table whose rows somebody wants.
pub struct WatchedTable {
    /// Its schema.
    pub schema: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// The columns that are shown.
    pub columns: Vec<RowColumn>,
    /// Where the columns are in the record.
    pub places: Vec<usize>,
    /// Who wants each row at once.
    pub observers: Vec<Arc<dyn Observer>>,
    /// Who wants them after the commit.
    pub sinks: Vec<Arc<dyn ChangeSink>>,
    /// What the binary log says of it.
    pub logged: Option<Arc<LoggedTable>>,
}

impl WatchedTable {
    /// A change of one of its rows, which `row` made.
    pub fn change<'a>(
        &'a self,
        old: Option<&'a [Value]>,
        new: Option<&'a [Value]>,
    ) -> RowChange<'a> {
        RowChange { schema: &self.schema, table: &self.name, columns: &self.columns, old, new }
    }

    /// The values of a row in the order of the columns.
    pub fn row(&self, record: &[Value]) -> Vec<Value> {
        let value = |place: &usize| record.get(*place).cloned().unwrap_or(Value::Null);
        self.places.iter().map(value).collect()
    }
}

/// A change that is kept.
struct Change {
    table: Arc<WatchedTable>,
    old: Option<Vec<Value>>,
    new: Option<Vec<Value>>,
    bytes: usize,
}

/// The changes of a transaction.
pub struct Changes {
    /// Whose they are.
    pub session: OwnedFacts,
    order: Arc<ChangeOrder>,
    list: Vec<Change>,
    /// The sinks that want some of them.
    sinks: Vec<Arc<dyn ChangeSink>>,
    bytes: usize,
    lost: u64,
}

impl std::fmt::Debug for Changes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Changes({}, {} lost)", self.list.len(), self.lost)
    }
}

impl Drop for Changes {
    fn drop(&mut self) {
        self.order.free(self.bytes);
    }
}

impl Changes {
    /// None yet.
    pub fn new(session: OwnedFacts, order: Arc<ChangeOrder>) -> Changes {
        Changes { session, order, list: Vec::new(), sinks: Vec::new(), bytes: 0, lost: 0 }
    }

    /// Adds the change of a row; it is only counted when there is no room.
    pub fn push(
        &mut self,
        table: &Arc<WatchedTable>,
        old: Option<Vec<Value>>,
        new: Option<Vec<Value>>,
    ) {
        let row = |row: &Vec<Value>| -> usize {
            row.iter().map(|value| size_of::<Value>() + value.heap_bytes()).sum()
        };
        let rows = [&old, &new].into_iter().flatten().map(row);
        let bytes = size_of::<Change>() + rows.sum::<usize>();
        for sink in &table.sinks {
            if !self.sinks.iter().any(|known| is_same(known, sink)) {
                self.sinks.push(sink.clone());
            }
        }
        // After a gap nothing is kept: what a sink gets is the beginning of the transaction.
        if self.lost > 0 || self.bytes + bytes > BYTES_MAX || !self.order.reserve(bytes) {
            self.lost += 1;
            return;
        }
        self.bytes += bytes;
        self.list.push(Change { table: table.clone(), old, new, bytes });
    }

    /// Forgets the changes after a mark.
    pub fn undo_to(&mut self, mark: RowMark) {
        let gone: usize =
            self.list.drain(mark.kept.min(self.list.len())..).map(|it| it.bytes).sum();
        self.bytes -= gone;
        self.order.free(gone);
        self.lost = mark.lost;
    }

    /// Where the list is now.
    pub fn mark(&self) -> RowMark {
        RowMark { kept: self.list.len(), lost: self.lost, logged: 0 }
    }

    /// The changes that a sink wants.
    fn of(&self, sink: &Arc<dyn ChangeSink>) -> Vec<RowChange<'_>> {
        let wants = |change: &&Change| change.table.sinks.iter().any(|own| is_same(own, sink));
        let wanted = self.list.iter().filter(wants);
        wanted.map(|it| it.table.change(it.old.as_deref(), it.new.as_deref())).collect()
    }

    /// Gives each sink the changes of its tables.
    pub fn tell(&self, number: u64) {
        let at_micros = i64::try_from(sys::clock::wall().as_micros()).unwrap_or(i64::MAX);
        for sink in &self.sinks {
            let own = self.of(sink);
            if own.is_empty() && self.lost == 0 {
                continue;
            }
            let transaction = CommittedTransaction {
                number,
                session: self.session.facts(),
                at_micros,
                changes: &own,
                lost: self.lost,
            };
            let told = catch_unwind(AssertUnwindSafe(|| sink.committed(&transaction)));
            if told.is_err() {
                tracing::error!("the change sink {} failed on transaction {number}", sink.name());
            }
        }
    }

    /// Takes the changes, if there are any; none are left.
    pub fn take(&mut self) -> Option<Changes> {
        if self.list.is_empty() && self.lost == 0 {
            return None;
        }
        let empty = Changes::new(self.session.clone(), self.order.clone());
        Some(std::mem::replace(self, empty))
    }
}

/// Whether two sinks are one.
fn is_same(one: &Arc<dyn ChangeSink>, other: &Arc<dyn ChangeSink>) -> bool {
    Arc::ptr_eq(one, other)
}
