//! Events put together to transactions, and which of them are chosen.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::sync::Arc;

use binlog::envelope::XaPrepare;
use binlog::event::flags;
use binlog::gtid::GtidEvent;
use binlog::query::QueryEvent;
use binlog::{Event, EventKind, Gtid, GtidSet, Header, RowsEvent, TableMap, decode};
use clap::Args;

use super::read::Place;
use super::time;

/// Which transactions, and what of them
#[derive(Clone, Debug, Default, Args)]
pub(super) struct Selection {
    /// Only changes in this database; may be given several times
    #[arg(short, long = "database", value_name = "NAME")]
    databases: Vec<String>,
    /// Only changes of rows of this table (database.table); may be given several times
    #[arg(short, long = "table", value_name = "DATABASE.TABLE")]
    tables: Vec<String>,
    /// Only transactions of this set
    #[arg(long, value_name = "SET")]
    include_gtids: Option<String>,
    /// No transaction of this set
    #[arg(long, value_name = "SET")]
    exclude_gtids: Option<String>,
    /// Only transactions that committed at this time (UTC, 'YYYY-MM-DD hh:mm:ss[.ffffff]') or later
    #[arg(long, value_name = "TIME")]
    start_time: Option<String>,
    /// End before the first transaction that committed later than this time (UTC)
    #[arg(long, value_name = "TIME")]
    stop_time: Option<String>,
    /// Only transactions that begin at this position of the first file or later
    #[arg(long, value_name = "BYTES")]
    start_position: Option<u64>,
    /// End at this position of the last file
    #[arg(long, value_name = "BYTES")]
    stop_position: Option<u64>,
    /// Only transactions that began on the server with this id
    #[arg(long, value_name = "ID")]
    server_id: Option<u32>,
    /// Only transactions of the connection with this number
    #[arg(long, value_name = "ID")]
    thread_id: Option<u32>,
}

/// A selection that was read.
#[derive(Clone, Debug, Default)]
pub(super) struct Chosen {
    selection: Selection,
    include: Option<GtidSet>,
    pub(super) exclude: GtidSet,
    start_micros: Option<u64>,
    stop_micros: Option<u64>,
    /// The walk ends after this transaction.
    pub(super) last: Option<Gtid>,
}

impl Selection {
    /// Reads sets and times.
    ///
    /// # Errors
    /// A set, time or table is malformed.
    pub(super) fn read(self) -> Result<Chosen, String> {
        let set = |text: &Option<String>| match text {
            Some(text) => GtidSet::parse(text).map(Some).ok_or(format!("'{text}' is no GTID set")),
            None => Ok(None),
        };
        let (include, exclude) = (set(&self.include_gtids)?, set(&self.exclude_gtids)?);
        let micros = |text: &Option<String>| text.as_deref().map(time::parse).transpose();
        let (start_micros, stop_micros) = (micros(&self.start_time)?, micros(&self.stop_time)?);
        if let Some(table) = self.tables.iter().find(|table| !table.contains('.')) {
            return Err(format!("--table {table}: expected database.table"));
        }
        let exclude = exclude.unwrap_or_default();
        Ok(Chosen { selection: self, include, exclude, start_micros, stop_micros, last: None })
    }
}

impl Chosen {
    /// All transactions but those of a set, up to a time or a transaction.
    pub(super) fn since(exclude: GtidSet, stop_micros: Option<u64>, last: Option<Gtid>) -> Chosen {
        Chosen { exclude, stop_micros, last, ..Chosen::default() }
    }

    fn takes_database(&self, database: &str) -> bool {
        let databases = &self.selection.databases;
        databases.is_empty() || databases.iter().any(|name| name == database)
    }

    fn takes_table(&self, map: &TableMap) -> bool {
        let tables = &self.selection.tables;
        let path = format!("{}.{}", map.schema, map.table);
        self.takes_database(&map.schema) && (tables.is_empty() || tables.contains(&path))
    }

    fn takes_transaction(&self, transaction: &Transaction, is_first_file: bool) -> bool {
        let gtid = transaction.event.gtid.as_ref();
        let is_in = |set: &GtidSet| {
            gtid.is_some_and(|gtid| set.contains(gtid.uuid, &gtid.tag, gtid.number))
        };
        let from = self.selection.start_position.filter(|_| is_first_file);
        self.include.as_ref().is_none_or(is_in)
            && !is_in(&self.exclude)
            && self.start_micros.is_none_or(|start| transaction.micros() >= start)
            && from.is_none_or(|from| transaction.place.start >= from)
            && self.selection.server_id.is_none_or(|id| id == transaction.server_id)
    }
}

/// A transaction, or a statement that is one.
#[derive(Clone, Debug)]
pub(super) struct Transaction {
    /// Where its first event is.
    pub(super) place: Place,
    pub(super) event: GtidEvent,
    /// Seconds since 1970 of its first event.
    pub(super) timestamp: u32,
    pub(super) server_id: u32,
    /// The connection; known from its first statement.
    pub(super) thread_id: u32,
}

impl Transaction {
    /// Microseconds since 1970 of its commit; of its first statement when the log does not say.
    pub(super) fn micros(&self) -> u64 {
        match self.event.immediate_commit_timestamp {
            0 => u64::from(self.timestamp) * 1_000_000,
            micros => micros,
        }
    }

    /// Its identifier, or ANONYMOUS.
    pub(super) fn name(&self) -> String {
        self.event.gtid.as_ref().map_or_else(|| "ANONYMOUS".to_owned(), ToString::to_string)
    }
}

/// Takes transactions. Each error says why; the place is added.
pub(super) trait Sink {
    /// Any event, chosen or not, before what it stands for.
    fn event(&mut self, _: &Place, _: &Header, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
    /// A transaction begins. `is_bundle`: changes follow and then its end; else it is one statement.
    fn begin(&mut self, transaction: &Transaction, is_bundle: bool) -> Result<(), String>;
    /// BEGIN, after `begin`.
    fn open(&mut self) -> Result<(), String> {
        Ok(())
    }
    /// A statement: the whole of the transaction, or a part (SAVEPOINT, XA START).
    fn statement(&mut self, header: &Header, query: &QueryEvent<'_>) -> Result<(), String>;
    /// The text of the statement that changed the following rows.
    fn rows_query(&mut self, _: &[u8]) -> Result<(), String> {
        Ok(())
    }
    /// Rows of one table.
    fn rows(&mut self, map: &Arc<TableMap>, rows: &RowsEvent<'_>) -> Result<(), String>;
    /// An XA branch is prepared.
    fn prepare(&mut self, xid: &XaPrepare<'_>) -> Result<(), String>;
    /// The transaction ends.
    fn commit(&mut self) -> Result<(), String>;
    /// Whether statements are taken although tables were named.
    fn wants_statements_of_tables(&self) -> bool {
        false
    }
}

/// Where the walk is.
enum Stage {
    Between,
    /// Its identifier was read.
    Announced(Box<Transaction>),
    Open(Box<Transaction>),
    /// Not chosen.
    PassedOver,
}

/// Makes transactions of events.
pub(super) struct Walk<'s> {
    chosen: &'s Chosen,
    sink: &'s mut dyn Sink,
    stage: Stage,
    tables: HashMap<u64, Arc<TableMap>>,
    pub(super) is_first_file: bool,
    pub(super) is_last_file: bool,
    /// The last transaction wanted has begun.
    pub(super) has_last: bool,
}

impl<'s> Walk<'s> {
    pub(super) fn new(chosen: &'s Chosen, sink: &'s mut dyn Sink) -> Walk<'s> {
        Walk {
            chosen,
            sink,
            stage: Stage::Between,
            tables: HashMap::new(),
            is_first_file: true,
            is_last_file: true,
            has_last: false,
        }
    }

    /// A transaction whose end has not come.
    pub(super) fn unfinished(&self) -> Option<&Transaction> {
        match &self.stage {
            Stage::Open(transaction) | Stage::Announced(transaction) => Some(transaction),
            Stage::Between | Stage::PassedOver => None,
        }
    }

    /// Takes the next event.
    ///
    /// # Errors
    /// The event is malformed or of a kind that is not read; those of the sink, with the place.
    pub(super) fn take(
        &mut self,
        place: &Place,
        header: &Header,
        body: &[u8],
    ) -> Result<ControlFlow<()>, String> {
        self.step(place, header, body).map_err(|error| {
            let name = self.unfinished().map(|of| format!(", transaction {}", of.name()));
            format!("{place}{}: {error}", name.unwrap_or_default())
        })
    }

    fn step(
        &mut self,
        place: &Place,
        header: &Header,
        body: &[u8],
    ) -> Result<ControlFlow<()>, String> {
        let stop = self.chosen.selection.stop_position.filter(|_| self.is_last_file);
        let is_between = matches!(self.stage, Stage::Between | Stage::PassedOver);
        if matches!(self.stage, Stage::Between) && self.has_last {
            return Ok(ControlFlow::Break(()));
        }
        if is_between && stop.is_some_and(|stop| place.start >= stop) {
            return Ok(ControlFlow::Break(()));
        }
        self.sink.event(place, header, body)?;
        let event = decode(header.kind, body).map_err(|error| error.to_string())?;
        match event {
            Event::Gtid(event) => return self.announce(place, header, event),
            Event::Query(query) => self.query(place, header, &query)?,
            Event::TableMap(map) => _ = self.tables.insert(map.table_id, Arc::from(map)),
            Event::Rows(rows) => self.rows(&rows)?,
            Event::RowsQuery(text) if self.is_open() => self.sink.rows_query(text)?,
            Event::Xid(_) => self.end()?,
            Event::XaPrepare(xid) => {
                if self.is_open() {
                    self.sink.prepare(&xid)?;
                }
                self.end()?;
            }
            Event::Incident(_, message) if !matches!(self.stage, Stage::PassedOver) => {
                let message = String::from_utf8_lossy(message);
                return Err(format!(
                    "the server notes that changes may be missing here: {message}"
                ));
            }
            Event::Other(kind) if self.is_needed(kind) => {
                return Err(format!(
                    "an event {} of statement-based logging, which is not read",
                    kind.name()
                ));
            }
            Event::FormatDescription(_)
            | Event::Rotate(_)
            | Event::PreviousGtids(_)
            | Event::RowsQuery(_)
            | Event::TransactionPayload(_)
            | Event::Heartbeat(_)
            | Event::Incident(..)
            | Event::Stop
            | Event::Other(_) => {}
        }
        Ok(ControlFlow::Continue(()))
    }

    fn is_open(&self) -> bool {
        matches!(self.stage, Stage::Open(_))
    }

    /// Whether a change cannot be understood without an event of this kind.
    fn is_needed(&self, kind: EventKind) -> bool {
        let kinds = [
            EventKind::INTVAR,
            EventKind::RAND,
            EventKind::USER_VAR,
            EventKind::APPEND_BLOCK,
            EventKind::DELETE_FILE,
            EventKind::BEGIN_LOAD_QUERY,
            EventKind::EXECUTE_LOAD_QUERY,
        ];
        self.unfinished().is_some() && kinds.contains(&kind)
    }

    fn announce(
        &mut self,
        place: &Place,
        header: &Header,
        event: GtidEvent,
    ) -> Result<ControlFlow<()>, String> {
        if let Some(open) = self.unfinished() {
            return Err(format!("transaction {} has no end", open.name()));
        }
        let transaction = Transaction {
            place: place.clone(),
            event,
            timestamp: header.timestamp,
            server_id: header.server_id,
            thread_id: 0,
        };
        self.tables.clear();
        if self.has_last {
            return Ok(ControlFlow::Break(()));
        }
        self.has_last = self.chosen.last.is_some() && transaction.event.gtid == self.chosen.last;
        if self.chosen.stop_micros.is_some_and(|stop| transaction.micros() > stop) {
            return Ok(ControlFlow::Break(()));
        }
        self.stage = match self.chosen.takes_transaction(&transaction, self.is_first_file) {
            true => Stage::Announced(Box::new(transaction)),
            false => Stage::PassedOver,
        };
        Ok(ControlFlow::Continue(()))
    }

    fn query(
        &mut self,
        place: &Place,
        header: &Header,
        query: &QueryEvent<'_>,
    ) -> Result<(), String> {
        match std::mem::replace(&mut self.stage, Stage::PassedOver) {
            Stage::PassedOver => Ok(()),
            // Of a server without identifiers, before 5.6.
            Stage::Between => Err(format!("{place}: a statement without a GTID event before it")),
            Stage::Announced(mut transaction) => {
                transaction.thread_id = query.thread_id;
                let thread = self.chosen.selection.thread_id;
                if thread.is_some_and(|thread| thread != query.thread_id) {
                    return Ok(());
                }
                self.open(transaction, header, query)
            }
            Stage::Open(transaction) => {
                self.stage = Stage::Open(transaction);
                match query.text {
                    b"COMMIT" => self.end(),
                    _ => self.sink.statement(header, query),
                }
            }
        }
    }

    /// The first statement of a transaction.
    fn open(
        &mut self,
        transaction: Box<Transaction>,
        header: &Header,
        query: &QueryEvent<'_>,
    ) -> Result<(), String> {
        let is_begin = query.text == b"BEGIN";
        let is_bundle = is_begin
            || query.text.starts_with(b"XA START ")
            || query.text.ends_with(b" START TRANSACTION");
        let takes_statements =
            self.chosen.selection.tables.is_empty() || self.sink.wants_statements_of_tables();
        let takes =
            takes_statements && self.chosen.takes_database(&String::from_utf8_lossy(query.schema));
        // The end of a branch is of any table that the branch changed.
        let takes = takes || query.text.starts_with(b"XA ");
        if !is_bundle && !takes {
            return Ok(());
        }
        self.sink.begin(&transaction, is_bundle)?;
        self.stage = Stage::Open(transaction);
        match is_begin {
            true => self.sink.open()?,
            false => self.sink.statement(header, query)?,
        }
        if !is_bundle {
            self.end()?;
        }
        Ok(())
    }

    fn rows(&mut self, rows: &RowsEvent<'_>) -> Result<(), String> {
        if self.is_open() {
            let map = self.tables.get(&rows.table_id);
            let map = map.ok_or("rows of a table that was not described")?;
            if self.chosen.takes_table(map) {
                self.sink.rows(map, rows)?;
            }
        }
        if rows.ends_statement() {
            self.tables.clear();
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), String> {
        if let Stage::Open(_) = std::mem::replace(&mut self.stage, Stage::Between) {
            self.sink.commit()?;
        }
        Ok(())
    }
}

/// Whether the statement needs `USE` of its schema.
pub(super) fn uses_schema(header: &Header, query: &QueryEvent<'_>) -> bool {
    header.flags & flags::SUPPRESS_USE == 0 && !query.schema.is_empty()
}
