//! A server in this process: sessions whose results are texts.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use engine_api::CancelToken;
use engine_memory::MemoryEngine;
use errors::{Error, Result};
use plugin_api::{
    AuthRequest, ColumnMeta, ConnectInfo, ConnectionKind, ExecuteRequest, LocalFile, Next, OkInfo,
    Plugin, PluginInfo, Registrar, Registry, ResultSink, RowSource, SessionFactory, SessionHandle,
    SessionState,
};
use session::{PluginChoice, RootAccount, Server, ServerConfig};
use types::{DataType, Value};

struct MemoryOnly(Arc<MemoryEngine>);

impl Plugin for MemoryOnly {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("memory", "Engine of the tests.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.engine(self.0.clone());
    }
}

/// A server with the memory engine only.
pub struct Harness {
    pub server: Arc<Server>,
    next_id: AtomicU64,
}

impl Harness {
    pub fn new() -> Harness {
        Harness::with(Vec::new())
    }

    /// The same with further plugins.
    pub fn with(further: Vec<Box<dyn Plugin>>) -> Harness {
        Harness::start(Arc::new(MemoryEngine::new()), further, Vec::new(), "")
    }

    /// A start with what `engine` holds; files of plugins are in `plugin_directory`.
    pub fn start(
        engine: Arc<MemoryEngine>,
        further: Vec<Box<dyn Plugin>>,
        choices: Vec<PluginChoice>,
        plugin_directory: &str,
    ) -> Harness {
        let mut plugins: Vec<Box<dyn Plugin>> = vec![
            Box::new(MemoryOnly(engine.clone())),
            Box::new(functions_numeric::NumericFunctions),
            Box::new(functions_string::StringFunctions),
            Box::new(functions_temporal::TemporalFunctions),
            Box::new(functions_misc::MiscFunctions),
            Box::new(aggregates::Aggregates),
            Box::new(information_schema::InformationSchema),
            Box::new(show::ShowStatements),
            authentication::plugin(),
        ];
        plugins.extend(further);
        let registry = Registry::knowing(&plugins);
        let server = Server::open(ServerConfig {
            version: "9.7.0-Squall-test".into(),
            registry,
            plugins: choices,
            plugin_directory: plugin_directory.into(),
            default_engine: engine.clone(),
            temporary_engine: engine,
            clock: Arc::new(sys::clock::RealClock::new()),
            system_zone: Arc::new(types::FixedOffset::utc()),
            shutdown: Box::new(|| {}),
            restart: None,
            defaults: Vec::new(),
            options: vec![("local_infile".into(), "ON".into())],
            root: RootAccount { os_uid: Some(65_534), password: Some("p".into()) },
            insecure_root: false,
            io_times: Arc::default(),
        })
        .expect("a server");
        Harness { server, next_id: AtomicU64::new(1) }
    }

    /// A session of root with schema `t`.
    pub fn root(&self) -> Client {
        let mut client = self.connect("root").expect("root may connect");
        client.run("CREATE DATABASE IF NOT EXISTS t");
        client.run("USE t");
        client
    }

    pub fn connect(&self, user: &str) -> Result<Client> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let cancel = CancelToken::new();
        let kind = ConnectionKind::Local;
        let info = ConnectInfo {
            connection_id: id,
            kind,
            cancel,
            traffic: Default::default(),
            is_administrative: false,
        };
        let request = AuthRequest {
            user: user.into(),
            collation: 255,
            multi_statements: true,
            local_files: true,
            ..AuthRequest::default()
        };
        let session = self.server.open(info, &request)?;
        Ok(Client { id, session, file: Vec::new() })
    }
}

/// A session.
pub struct Client {
    pub id: u64,
    pub session: Box<dyn SessionHandle>,
    /// The file that LOAD DATA LOCAL gets.
    pub file: Vec<u8>,
}

/// Results as text: rows with `|` between cells and `\n` between rows, `ok n` for others, `error n: text`.
#[derive(Default)]
pub struct TextSink {
    pub results: Vec<String>,
    pub columns: Vec<ColumnMeta>,
    rows: Vec<String>,
    pub last_ok: OkInfo,
    /// Whether the session announced a further result last.
    next_is_result: bool,
    file: Vec<u8>,
}

struct Pieces(std::vec::IntoIter<Vec<u8>>);

impl LocalFile for Pieces {
    fn read(&mut self) -> Result<Vec<u8>> {
        Ok(self.0.next().unwrap_or_default())
    }
}

impl ResultSink for TextSink {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        self.columns = columns.to_vec();
        self.rows.clear();
        Ok(())
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        let mut cells = Vec::new();
        for (index, column) in self.columns.iter().enumerate() {
            cells.push(cell(&row.value(index)?, &column.ty));
        }
        self.rows.push(cells.join("|"));
        Ok(())
    }

    fn followed_by(&mut self, next: Next) {
        self.next_is_result = next == Next::Result;
    }

    fn end(&mut self, state: &SessionState) -> Result<()> {
        assert_eq!(self.next_is_result, state.more_results, "said before the columns");
        self.last_ok = state.clone();
        self.results.push(self.rows.join("\n"));
        Ok(())
    }

    fn ok(&mut self, ok: &OkInfo) -> Result<()> {
        self.last_ok = ok.clone();
        self.results.push(format!("ok {}", ok.affected_rows));
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.results.push(format!("error {}: {}", error.code().0, error.message()));
        Ok(())
    }

    fn local_file(&mut self, _: &str) -> Result<Box<dyn LocalFile + '_>> {
        let pieces: Vec<Vec<u8>> = self.file.chunks(7).map(<[u8]>::to_vec).collect();
        Ok(Box::new(Pieces(pieces.into_iter())))
    }
}

fn cell(value: &Value, ty: &DataType) -> String {
    if value.is_null() {
        return "NULL".into();
    }
    let mut text = Vec::new();
    types::to_text(value, ty, &mut text);
    String::from_utf8_lossy(&text).into_owned()
}

impl Client {
    /// All results of a text.
    pub fn sink(&mut self, sql: &str) -> TextSink {
        let mut sink = TextSink { file: self.file.clone(), ..TextSink::default() };
        self.session.query(sql.as_bytes(), &[], &mut sink).expect("the sink never fails");
        sink
    }

    /// The last result of a text.
    pub fn run(&mut self, sql: &str) -> String {
        self.sink(sql).results.pop().unwrap_or_default()
    }

    /// Runs statements, one a line, that must succeed.
    pub fn setup(&mut self, script: &str) {
        for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let result = self.run(line);
            assert!(!result.starts_with("error"), "{line}: {result}");
        }
    }

    /// Number of the error that a statement ends with; 0 when it succeeds.
    pub fn code(&mut self, sql: &str) -> u16 {
        let result = self.run(sql);
        let number = result.strip_prefix("error ").and_then(|rest| rest.split(':').next());
        number.and_then(|number| number.parse().ok()).unwrap_or(0)
    }

    /// Asserts the results of statements.
    #[track_caller]
    pub fn check(&mut self, cases: &[(&str, &str)]) {
        for (sql, expected) in cases {
            assert_eq!(self.run(sql), *expected, "{sql}");
        }
    }

    /// Asserts which errors statements end with.
    #[track_caller]
    pub fn refuse(&mut self, cases: &[(&str, u16)]) {
        for (sql, expected) in cases {
            let result = self.run(sql);
            let start = format!("error {expected}:");
            assert!(result.starts_with(&start), "{sql}: expected {expected}, got {result}");
        }
    }

    pub fn execute(&mut self, id: u32, parameters: &[Value], cursor: bool) -> TextSink {
        let mut sink = TextSink::default();
        let request = ExecuteRequest { statement_id: id, parameters, attributes: &[], cursor };
        self.session.execute(&request, &mut sink).expect("the sink never fails");
        sink
    }

    pub fn fetch(&mut self, id: u32, rows: u32) -> TextSink {
        // Columns of a fetch are those of the execute; one BIGINT in the tests.
        let columns = vec![ColumnMeta::computed("a", DataType::bigint())];
        let mut sink = TextSink { columns, ..TextSink::default() };
        self.session.fetch(id, rows, &mut sink).expect("the sink never fails");
        sink
    }
}
