//! A session factory without SQL: canned results for a handful of texts. For tests and the floor server.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]
#![allow(dead_code)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use engine_api::{CommitHandle, CommitWait, EngineResult};
use errors::{Error, Result, err};
use plugin_api::{
    AccountSecret, AuthRequest, Authenticator, ColumnMeta, CommandOutcome, ConnectInfo,
    ConnectionKind, ExecuteRequest, Next, OkInfo, PreparedInfo, QueryAttribute, ResultSink,
    SessionFactory, SessionHandle, StateChange, ValueRow,
};
use sys::disk::{Disk as _, File, OpenMode, RealDisk, SyncPolicy};
use sys::mem::AlignedBytes;
use types::{CollationId, DataType, TypeKind, Value};

/// Settings, and the calls that the sessions saw.
pub struct Canned {
    pub accounts: HashMap<String, (Arc<dyn Authenticator>, Vec<u8>)>,
    pub default_method: String,
    pub globals: HashMap<&'static str, u64>,
    pub session_variables: HashMap<&'static str, u64>,
    pub killed: Mutex<Vec<u64>>,
    pub open: AtomicU64,
    pub commits: Arc<Commits>,
    /// Gets a block for each change that is committed.
    pub log: Option<Arc<BlockLog>>,
    pub attributes: Mutex<Vec<(String, String)>>,
}

impl Canned {
    pub fn new(accounts: HashMap<String, (Arc<dyn Authenticator>, Vec<u8>)>) -> Canned {
        Canned {
            accounts,
            default_method: "caching_sha2_password".into(),
            globals: HashMap::from([("max_connections", 200), ("connect_timeout", 10)]),
            session_variables: HashMap::from([
                ("max_allowed_packet", 64 << 20),
                ("wait_timeout", 28_800),
                ("net_read_timeout", 30),
                ("net_write_timeout", 60),
            ]),
            killed: Mutex::new(Vec::new()),
            open: AtomicU64::new(0),
            commits: Arc::new(Commits::default()),
            log: None,
            attributes: Mutex::new(Vec::new()),
        }
    }
}

type Wake = Box<dyn FnOnce() + Send>;

/// Prepared SELECTs are numbered from here, others from 1; parameters are added.
const FIRST_SELECT: u32 = 1000;
/// Prepared changes are numbered from here when the server has a log; parameters are added.
const FIRST_CHANGE: u32 = 2000;
const BEGIN: u32 = 3000;
const COMMIT: u32 = 3001;

/// A file that is written a block at a time, round and round, past the page cache and durably, as a log is.
pub struct BlockLog {
    file: Arc<dyn File>,
    next: AtomicU64,
}

impl BlockLog {
    const BLOCK_BYTES: usize = 4096;
    const BLOCKS: u64 = 16_384;

    /// Creates the file again; its blocks are written once, so that none is allocated later.
    ///
    /// # Errors
    /// I/O.
    pub fn create(directory: &std::path::Path) -> std::io::Result<BlockLog> {
        let disk = RealDisk::open(directory, SyncPolicy::Device, Arc::default())?;
        let file = disk.open_log("floor.log", OpenMode::OrCreate)?;
        let zeros = AlignedBytes::new(Self::BLOCK_BYTES * 256);
        for at in (0..Self::BLOCKS).step_by(256) {
            file.write_at(&zeros, at * Self::BLOCK_BYTES as u64)?;
        }
        file.sync()?;
        Ok(BlockLog { file, next: AtomicU64::new(0) })
    }

    fn write_block(&self) -> Result<()> {
        let block = AlignedBytes::new(Self::BLOCK_BYTES);
        let at = self.next.fetch_add(1, Ordering::Relaxed) % Self::BLOCKS;
        let written = self.file.write_at(&block, at * Self::BLOCK_BYTES as u64);
        written.map_err(|error| err!(UNKNOWN_ERROR, error.to_string()))
    }
}

/// A log whose progress the test controls.
#[derive(Default)]
pub struct Commits {
    state: Mutex<(bool, Vec<Wake>)>,
    durable: Condvar,
}

impl Commits {
    pub fn make_durable(&self) {
        let mut state = self.state.lock().expect("no panic inside");
        state.0 = true;
        let wakes = std::mem::take(&mut state.1);
        drop(state);
        self.durable.notify_all();
        wakes.into_iter().for_each(|wake| wake());
    }
}

impl CommitWait for Commits {
    fn is_durable(&self) -> bool {
        self.state.lock().expect("no panic inside").0
    }

    fn wait(&self) -> EngineResult<()> {
        let mut state = self.state.lock().expect("no panic inside");
        while !state.0 {
            state = self.durable.wait(state).expect("no panic inside");
        }
        Ok(())
    }

    fn notify(&self, wake: Box<dyn FnOnce() + Send>) {
        let mut state = self.state.lock().expect("no panic inside");
        if state.0 {
            drop(state);
            wake();
        } else {
            state.1.push(wake);
        }
    }
}

/// The factory.
#[derive(Clone)]
pub struct Factory(pub Arc<Canned>);

impl SessionFactory for Factory {
    fn server_version(&self) -> String {
        "9.7.0-canned".into()
    }

    fn server_collation(&self) -> u16 {
        255
    }

    fn default_authentication(&self) -> String {
        self.0.default_method.clone()
    }

    fn find_account(
        &self,
        request: &AuthRequest,
        _kind: &ConnectionKind,
    ) -> Result<(Arc<dyn Authenticator>, AccountSecret)> {
        let (method, stored) = self
            .0
            .accounts
            .get(&request.user)
            .ok_or_else(|| err!(ACCESS_DENIED_NO_PASSWORD_ERROR, request.user, "localhost"))?;
        Ok((
            method.clone(),
            AccountSecret { authentication_string: stored.clone(), ..AccountSecret::default() },
        ))
    }

    fn open(&self, info: ConnectInfo, request: &AuthRequest) -> Result<Box<dyn SessionHandle>> {
        if request.database.as_deref() == Some("missing") {
            return Err(err!(BAD_DB_ERROR, "missing"));
        }
        *self.0.attributes.lock().expect("no panic inside") = request.attributes.clone();
        self.0.open.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Session::new(self.0.clone(), info, request)))
    }

    fn kill(&self, connection_id: u64) {
        self.0.killed.lock().expect("no panic inside").push(connection_id);
    }

    fn global_integer(&self, variable: &str) -> u64 {
        self.0.globals.get(variable).copied().unwrap_or(0)
    }

    fn global_text(&self, variable: &str) -> String {
        self.0.globals.get(variable).map_or_else(String::new, u64::to_string)
    }

    fn status(&self) -> Vec<(String, String)> {
        Vec::new()
    }

    fn count_status(&self, _name: &'static str, _amount: u64) {}
}

struct Session {
    canned: Arc<Canned>,
    info: ConnectInfo,
    user: String,
    database: Option<String>,
    point: Arc<[ColumnMeta]>,
    point_row: [Value; 1],
    cursor_at: u64,
    in_transaction: bool,
}

impl Session {
    fn new(canned: Arc<Canned>, info: ConnectInfo, request: &AuthRequest) -> Session {
        let text = DataType::varchar(120, CollationId::UTF8MB4_0900_AI_CI);
        let point = vec![ColumnMeta::computed("c", text)].into();
        let point_row = [Value::text("68487932199-96439406143-93774651418-41631865787")];
        let (user, database) = (request.user.clone(), request.database.clone());
        Session {
            canned,
            info,
            user,
            database,
            point,
            point_row,
            cursor_at: 0,
            in_transaction: false,
        }
    }

    /// The result of a query by a key.
    fn point(&self, sink: &mut dyn ResultSink) -> Result<CommandOutcome> {
        sink.shared_columns(&self.point)?;
        sink.row(&ValueRow(&self.point_row))?;
        sink.end(&self.state())?;
        Ok(CommandOutcome::Continue)
    }

    /// The number of a prepared statement that matters to the log.
    fn logged_statement(&self, sql: &[u8]) -> Option<u32> {
        self.canned.log.as_ref()?;
        let word = sql.split(|byte| !byte.is_ascii_alphabetic()).next();
        match word {
            Some(b"INSERT" | b"UPDATE" | b"DELETE") => Some(FIRST_CHANGE),
            Some(b"BEGIN") => Some(BEGIN),
            Some(b"COMMIT") => Some(COMMIT),
            _ => None,
        }
    }

    /// Says OK to a statement of these, durably where it commits.
    fn run_logged(&mut self, statement: u32, sink: &mut dyn ResultSink) -> Result<CommandOutcome> {
        let commits = match statement {
            BEGIN => {
                self.in_transaction = true;
                false
            }
            COMMIT => std::mem::take(&mut self.in_transaction),
            _ => !self.in_transaction,
        };
        if commits && let Some(log) = &self.canned.log {
            log.write_block()?;
        }
        sink.ok(&self.state_with(|ok| ok.affected_rows = 1))?;
        Ok(CommandOutcome::Continue)
    }

    fn state_with(&self, change: impl FnOnce(&mut OkInfo)) -> OkInfo {
        let mut ok = OkInfo { autocommit: true, ..OkInfo::default() };
        change(&mut ok);
        ok
    }

    fn one_value(&self, name: &str, value: Value, sink: &mut dyn ResultSink) -> Result<()> {
        let ty = match value {
            Value::Int(_) => DataType::bigint(),
            _ => DataType::varchar(1000, CollationId::UTF8MB4_0900_AI_CI),
        };
        sink.columns(&[ColumnMeta::computed(name, ty)])?;
        sink.row(&ValueRow(&[value]))?;
        sink.end(&self.state())
    }

    fn numbers(&self, count: u64, sink: &mut dyn ResultSink) -> Result<()> {
        let text = DataType::varchar(100, CollationId::UTF8MB4_0900_AI_CI);
        sink.columns(&[
            ColumnMeta::computed("n", DataType::bigint()),
            ColumnMeta::computed("t", text),
        ])?;
        for number in 0..count {
            if self.info.cancel.is_cancelled() {
                return sink.error(&err!(QUERY_INTERRUPTED));
            }
            let filler = Value::text(&"x".repeat(100));
            let filler = if number % 7 == 3 { Value::Null } else { filler };
            sink.row(&ValueRow(&[Value::Int(number as i64), filler]))?;
        }
        sink.end(&self.state())
    }

    fn load(&self, sink: &mut dyn ResultSink) -> Result<()> {
        let mut total = 0;
        let read = match sink.local_file("data.csv") {
            Ok(mut file) => loop {
                match file.read() {
                    Ok(piece) if piece.is_empty() => break Ok(()),
                    Ok(piece) => total += piece.len() as u64,
                    Err(error) => break Err(error),
                }
            },
            Err(error) => Err(error),
        };
        match read {
            Ok(()) => sink.ok(&self.state_with(|ok| ok.affected_rows = total)),
            Err(error) => sink.error(&error),
        }
    }

    fn wait(&self, sink: &mut dyn ResultSink) -> Result<()> {
        sys::blocking::blocking(|| {
            while !self.info.cancel.is_cancelled() {
                std::thread::sleep(Duration::from_millis(1));
            }
        });
        sink.error(&err!(QUERY_INTERRUPTED))
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.canned.open.fetch_sub(1, Ordering::SeqCst);
    }
}

impl SessionHandle for Session {
    fn query(
        &mut self,
        sql: &[u8],
        attributes: &[QueryAttribute],
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome> {
        if let Some(statement) = self.logged_statement(sql) {
            return self.run_logged(statement, sink);
        }
        let text = String::from_utf8_lossy(sql);
        let (word, rest) = text.split_once(' ').unwrap_or((&text, ""));
        match word {
            "SELECT" => {
                return self.point(sink);
            }
            "user" => self.one_value("user", Value::text(&self.user.clone()), sink)?,
            "db" => {
                let database = self.database.clone().unwrap_or_default();
                self.one_value("db", Value::text(&database), sink)?;
            }
            "echo" => self.one_value("echo", Value::text(rest), sink)?,
            "length" => self.one_value("length", Value::Int(sql.len() as i64), sink)?,
            "attributes" => {
                let names: Vec<&str> = attributes.iter().map(|a| a.name.as_str()).collect();
                self.one_value("attributes", Value::text(&names.join(",")), sink)?;
            }
            "numbers" => self.numbers(rest.parse().unwrap_or(10), sink)?,
            "fail" => sink.error(&err!(DUP_ENTRY, 1, "t1.PRIMARY"))?,
            "half" => {
                sink.columns(&[ColumnMeta::computed("n", DataType::bigint())])?;
                sink.row(&ValueRow(&[Value::Int(1)]))?;
                sink.error(&err!(QUERY_INTERRUPTED))?;
            }
            "load" => self.load(sink)?,
            "wait" => self.wait(sink)?,
            "spin" => {
                let end = std::time::Instant::now() + Duration::from_millis(200);
                while std::time::Instant::now() < end {
                    std::hint::spin_loop();
                }
                sink.ok(&self.state())?;
            }
            "commit" => {
                let commit = CommitHandle::Pending(self.canned.commits.clone());
                sink.ok(&self.state_with(|ok| ok.commit = Some(commit)))?;
            }
            "multi" => {
                sink.ok(&self.state_with(|ok| ok.more_results = true))?;
                sink.followed_by(Next::Result);
                sink.columns(&[ColumnMeta::computed("second", DataType::bigint())])?;
                sink.row(&ValueRow(&[Value::Int(2)]))?;
                sink.end(&self.state_with(|ok| ok.more_results = true))?;
                sink.followed_by(Next::End);
                self.one_value("third", Value::Int(3), sink)?;
            }
            "use" => {
                let changes = vec![StateChange::Schema(rest.to_owned())];
                sink.ok(&self.state_with(|ok| ok.changes = changes))?;
            }
            "panic" => panic!("on purpose"),
            "quit" => {
                sink.ok(&self.state())?;
                return Ok(CommandOutcome::Close);
            }
            _ => sink.ok(&self.state_with(|ok| {
                ok.affected_rows = 1;
                ok.info = "Rows matched: 1".into();
            }))?,
        }
        Ok(CommandOutcome::Continue)
    }

    fn prepare(&mut self, sql: &[u8]) -> Result<PreparedInfo> {
        if sql.starts_with(b"bad") {
            return Err(err!(PARSE_ERROR, "bad", 1));
        }
        let parameters = sql.iter().filter(|byte| **byte == b'?').count();
        let parameter = ColumnMeta::computed("?", DataType::new(TypeKind::VarChar, 0, 0));
        let is_select = sql.starts_with(b"SELECT");
        let logged = self.logged_statement(sql);
        let first = logged.unwrap_or(if is_select { FIRST_SELECT } else { 1 });
        let number = ColumnMeta::computed("n", DataType::bigint());
        let columns = match logged {
            Some(_) => Vec::new(),
            None if is_select => self.point.to_vec(),
            None => vec![number],
        };
        Ok(PreparedInfo {
            statement_id: parameters as u32 + first,
            parameters: vec![parameter; parameters],
            columns,
            warnings: 0,
        })
    }

    fn parameter_count(&self, statement_id: u32) -> Result<usize> {
        match statement_id {
            1..=100 => Ok(statement_id as usize - 1),
            FIRST_SELECT..=1100 => Ok((statement_id - FIRST_SELECT) as usize),
            FIRST_CHANGE..=2100 => Ok((statement_id - FIRST_CHANGE) as usize),
            BEGIN | COMMIT => Ok(0),
            _ => Err(err!(UNKNOWN_STMT_HANDLER, statement_id, "mysqld_stmt_execute")),
        }
    }

    /// One row for a SELECT; otherwise echoes the parameters, or opens a cursor over ten numbers.
    fn execute(
        &mut self,
        request: &ExecuteRequest<'_>,
        sink: &mut dyn ResultSink,
    ) -> Result<CommandOutcome> {
        if request.statement_id >= FIRST_CHANGE {
            return self.run_logged(request.statement_id, sink);
        }
        if request.statement_id >= FIRST_SELECT {
            return self.point(sink);
        }
        if request.cursor {
            sink.columns(&[ColumnMeta::computed("n", DataType::bigint())])?;
            self.cursor_at = 0;
            sink.end(&self.state_with(|ok| ok.cursor_open = true))?;
            return Ok(CommandOutcome::Continue);
        }
        let columns: Vec<ColumnMeta> = request
            .parameters
            .iter()
            .map(|value| {
                let ty = match value {
                    Value::Int(_) => DataType::bigint(),
                    Value::UInt(_) => DataType::bigint_unsigned(),
                    Value::Double(_) => DataType::double(),
                    Value::DateTime(_) => DataType::new(TypeKind::DateTime, 26, 6),
                    Value::Date(_) => DataType::new(TypeKind::Date, 10, 0),
                    Value::Time(_) => DataType::new(TypeKind::Time, 17, 6),
                    _ => DataType::varchar(100, CollationId::UTF8MB4_0900_AI_CI),
                };
                ColumnMeta::computed("p", ty)
            })
            .collect();
        if columns.is_empty() {
            sink.ok(&self.state())?;
            return Ok(CommandOutcome::Continue);
        }
        sink.columns(&columns)?;
        sink.row(&ValueRow(request.parameters))?;
        sink.end(&self.state())?;
        Ok(CommandOutcome::Continue)
    }

    fn fetch(&mut self, _statement: u32, rows: u32, sink: &mut dyn ResultSink) -> Result<()> {
        for _ in 0..rows {
            if self.cursor_at == 10 {
                return sink.end(&self.state_with(|ok| ok.last_row_sent = true));
            }
            sink.row(&ValueRow(&[Value::Int(self.cursor_at as i64)]))?;
            self.cursor_at += 1;
        }
        sink.end(&self.state_with(|ok| ok.cursor_open = true))
    }

    fn reset_statement(&mut self, statement_id: u32) -> Result<OkInfo> {
        self.parameter_count(statement_id).map(|_| self.state())
    }

    fn close_statement(&mut self, _statement_id: u32) {}

    fn init_db(&mut self, schema: &str) -> Result<OkInfo> {
        if schema == "missing" {
            return Err(err!(BAD_DB_ERROR, schema));
        }
        self.database = Some(schema.to_owned());
        Ok(self.state())
    }

    fn field_list(&mut self, table: &str, _wildcard: &str) -> Result<Vec<ColumnMeta>> {
        if table == "missing" {
            return Err(err!(NO_SUCH_TABLE, "test", table));
        }
        Ok(vec![ColumnMeta::computed("a", DataType::bigint())])
    }

    fn count(&mut self, _: plugin_api::CountedCommand) {}

    fn statistics(&mut self) -> String {
        "Uptime: 1  Threads: 1".into()
    }

    fn kill(&mut self, connection_id: u64) -> Result<OkInfo> {
        if connection_id == 999_999 {
            return Err(err!(NO_SUCH_THREAD, connection_id));
        }
        self.canned.killed.lock().expect("no panic inside").push(connection_id);
        Ok(self.state())
    }

    fn reset_connection(&mut self) -> Result<OkInfo> {
        Ok(self.state())
    }

    fn change_user(&mut self, request: &AuthRequest) -> Result<OkInfo> {
        self.user = request.user.clone();
        self.database = request.database.clone();
        Ok(self.state())
    }

    fn set_multi_statements(&mut self, _on: bool) {}

    fn idle_transaction_limit(&self) -> Option<(&'static str, std::time::Duration)> {
        None
    }

    fn integer_variable(&self, name: &str) -> u64 {
        self.canned.session_variables.get(name).copied().unwrap_or(0)
    }

    fn result_collation(&self) -> u16 {
        255
    }

    fn state(&self) -> OkInfo {
        self.state_with(|_| ())
    }
}

/// Keeps the imports of every user of this file in use.
pub fn refused(user: &str) -> Error {
    err!(ACCESS_DENIED_ERROR, user, "localhost", "NO")
}
