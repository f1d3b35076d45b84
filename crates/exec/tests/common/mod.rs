//! A database on the memory engine, and short ways to write plans by hand.
#![allow(dead_code)]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use engine_api::{
    CancelToken, ColumnDef, Engine, EngineIndex, IndexDef, IndexId, IsolationLevel, KeyPart,
    TableDef, TableId, Transaction, TxnOptions,
};
use engine_memory::MemoryEngine;
use errors::{Diagnostics, Error, Result};
use exec::{
    Environment, ExecContext, ExecScratch, ExecSettings, Host, Outcome, RowSink, TransactionSource,
    compile,
};
use plan::{
    Access, Assignment, BinaryOp, Expr, OutputColumn, Physical, Plan, QueryPlan, Register,
    RowLocking, SortKey, Subquery, TableAccess, TableWrite, WrittenColumn,
};
use plugin_api::test_support::FakeSession;
use plugin_api::{
    AccountInformation, AccountView, BindContext, ConditionView, EngineInformation, EngineStatView,
    EngineView, FunctionContext, FunctionView, PlanCacheView, Plugin, PluginInfo, PluginView,
    ProcessView, ProgramInformation, Registrar, Registry, RowSource, SchemaInformation, SchemaView,
    ServerInformation, StatusInformation, StatusScope, TableDetail, TableView, VariableView,
};
use sys::threads::HelperLimit;
use types::{CollationId, DataType, DateTime, SqlMode, Value};

pub struct Database {
    pub engine: Arc<dyn Engine>,
    pub registry: Registry,
    pub settings: ExecSettings,
    pub sql_mode: SqlMode,
    pub diagnostics: Diagnostics,
    pub session: FakeSession,
    pub source: Source,
    pub scratch: ExecScratch,
}

/// Gives the engine that all plans here name a place. `Source` has the one that is used.
struct NamedEngine;

impl Plugin for NamedEngine {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("engine", "The engine of the tests' plans.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.engine(Arc::new(MemoryEngine::new()));
    }
}

pub struct Source {
    engine: Arc<dyn Engine>,
    pub txn: Box<dyn Transaction>,
}

impl Host for Source {}

impl TransactionSource for Source {
    fn transaction(&mut self, _engine: &str) -> Result<&mut dyn Transaction> {
        self.transaction_at(EngineIndex(0))
    }

    fn transaction_at(&mut self, _engine: EngineIndex) -> Result<&mut dyn Transaction> {
        if !self.txn.is_started() {
            let options = TxnOptions {
                isolation: IsolationLevel::RepeatableRead,
                read_only: false,
                may_be_prepared: false,
                lock_wait_timeout: Duration::from_millis(50),
                cancel: CancelToken::new(),
            };
            let _ = self.txn.start(&options);
        }
        Ok(&mut *self.txn)
    }

    fn engine_at(&self, _engine: EngineIndex) -> Result<&Arc<dyn Engine>> {
        Ok(&self.engine)
    }

    fn engine(&self, _engine: &str) -> Result<Arc<dyn Engine>> {
        Ok(self.engine.clone())
    }
}

/// Knows nothing.
struct NoInformation;

impl SchemaInformation for NoInformation {
    fn schemas(&self) -> Vec<SchemaView> {
        Vec::new()
    }
    fn tables(
        &self,
        _: &str,
        _: Option<&str>,
        _: TableDetail,
        _: &mut dyn FnMut(&TableView) -> Result<()>,
    ) -> Result<()> {
        Ok(())
    }
    fn schema_create_statement(&self, _: &str) -> Option<String> {
        None
    }
}

impl ProgramInformation for NoInformation {}

impl StatusInformation for NoInformation {
    fn variables(&self) -> Vec<VariableView> {
        Vec::new()
    }
    fn status(&self, _: StatusScope) -> Vec<(String, String)> {
        Vec::new()
    }
    fn conditions(&self) -> Vec<ConditionView> {
        Vec::new()
    }
}

impl EngineInformation for NoInformation {
    fn engines(&self) -> Vec<EngineView> {
        Vec::new()
    }
    fn engine_stats(&self) -> Vec<EngineStatView> {
        Vec::new()
    }
}

impl AccountInformation for NoInformation {
    fn accounts(&self) -> Vec<AccountView> {
        Vec::new()
    }
    fn stored_accounts(&self) -> Vec<AccountView> {
        Vec::new()
    }
    fn grants(&self, _: Option<&str>) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
    fn current_user(&self) -> String {
        String::new()
    }
}

impl ServerInformation for NoInformation {
    fn processes(&self) -> Vec<ProcessView> {
        Vec::new()
    }
    fn resident_bytes(&self) -> u64 {
        0
    }
    fn plugins(&self) -> Vec<PluginView> {
        Vec::new()
    }
    fn functions(&self) -> Vec<FunctionView> {
        Vec::new()
    }
    fn plan_cache(&self) -> Vec<PlanCacheView> {
        Vec::new()
    }
    fn database(&self) -> Option<String> {
        None
    }
    fn started_micros(&self) -> i64 {
        0
    }
    fn now_micros(&self) -> i64 {
        0
    }
    fn check_cancelled(&self) -> Result<()> {
        Ok(())
    }
}

/// Keeps rows as text, cells by `|`.
struct Lines<'a> {
    types: Vec<DataType>,
    lines: &'a mut Vec<String>,
}

impl RowSink for Lines<'_> {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        let mut cells = Vec::new();
        for (index, ty) in self.types.iter().enumerate() {
            let mut text = Vec::new();
            cells.push(match row.cell(index)?.write_text(ty, &mut text)? {
                true => String::from_utf8_lossy(&text).into_owned(),
                false => "NULL".to_owned(),
            });
        }
        self.lines.push(cells.join("|"));
        Ok(())
    }
}

pub struct Answer {
    pub rows: Vec<String>,
    pub outcome: Outcome,
}

impl Database {
    pub fn new() -> Database {
        Database::with_plugins(vec![Box::new(aggregates::Aggregates)])
    }

    pub fn with_plugins(plugins: Vec<Box<dyn Plugin>>) -> Database {
        Database::on(Arc::new(MemoryEngine::new()), plugins)
    }

    pub fn on(engine: Arc<dyn Engine>, mut plugins: Vec<Box<dyn Plugin>>) -> Database {
        plugins.push(Box::new(NamedEngine));
        let source = Source { txn: engine.new_transaction(), engine: engine.clone() };
        Database {
            engine,
            registry: Registry::build(&plugins),
            settings: ExecSettings::default(),
            sql_mode: SqlMode::DEFAULT,
            diagnostics: Diagnostics::default(),
            session: FakeSession::default(),
            source,
            scratch: ExecScratch::default(),
        }
    }

    pub fn create(&mut self, table: &Table) {
        let txn = self.source.transaction("MEMORY").expect("transaction");
        txn.create_table(&table.def).expect("create table");
        self.commit();
    }

    pub fn commit(&mut self) {
        self.source.txn.commit().expect("commit").wait().expect("durable");
    }

    pub fn run(&mut self, plan: &Plan) -> Result<Answer> {
        self.run_with(plan, &[])
    }

    pub fn run_with(&mut self, plan: &Plan, parameters: &[Value]) -> Result<Answer> {
        let bind = BindContext {
            sql_mode: self.sql_mode,
            collation_connection: CollationId::UTF8MB4_0900_AI_CI,
            div_precision_increment: 4,
            group_concat_max_len: 1024,
            max_allowed_packet: 1 << 26,
            history: plugin_api::HistorySettings::default(),
            cascades_fire_triggers: false,
        };
        let program = compile(plan, &self.registry, &bind)?;
        let zone = types::FixedOffset::utc();
        let cancel = CancelToken::new();
        self.diagnostics.clear();
        let mut rows = Vec::new();
        let types = program.columns().iter().map(|column| column.ty.clone()).collect();
        let mut sink = Lines { types, lines: &mut rows };
        let mut ctx = ExecContext {
            host: &mut self.source,
            env: Environment {
                registry: &self.registry,
                information: &NoInformation,
                parameters,
                settings: &self.settings,
                cancel: &cancel,
                helpers: &HelperLimit::new(8),
                memory: &exec::MemoryBudget::default(),
                connection: &exec::ConnectionMemory::default(),
            },
            function: FunctionContext {
                sql_mode: self.sql_mode,
                time_zone: &zone,
                now_micros: 0,
                now: DateTime::from_unix_micros(0).expect("1970"),
                div_precision_increment: 4,
                max_allowed_packet: 1 << 26,
                diagnostics: &mut self.diagnostics,
                session: &mut self.session,
            },
            scratch: &mut self.scratch,
        };
        let outcome = program.run(&mut ctx, &mut sink)?;
        Ok(Answer { rows, outcome })
    }

    pub fn rows(&mut self, plan: &Plan) -> Vec<String> {
        self.run(plan).expect("the statement runs").rows
    }

    #[track_caller]
    pub fn fails(&mut self, plan: &Plan) -> Error {
        match self.run(plan) {
            Ok(answer) => panic!("it ran: {:?} {:?}", answer.outcome, answer.rows),
            Err(error) => error,
        }
    }

    pub fn warnings(&self) -> Vec<(u16, String)> {
        let conditions = self.diagnostics.conditions().iter();
        conditions.map(|condition| (condition.code.0, condition.message.clone())).collect()
    }

    /// Inserts rows as they are, without a plan.
    pub fn fill(&mut self, table: &Table, rows: &[Vec<Value>]) {
        let layout = types::RecordLayout::new(&table.types());
        for row in rows {
            let mut record = Vec::new();
            layout.encode(row, &mut record).expect("values of the column types");
            let txn = self.source.transaction("MEMORY").expect("transaction");
            txn.insert(table.def.id, &record).expect("insert");
        }
        self.commit();
    }
}

/// A table; its columns have registers from `base` on, the locator comes after them.
pub struct Table {
    pub def: TableDef,
    pub base: u32,
}

pub fn text() -> DataType {
    DataType::varchar(40, CollationId::UTF8MB4_0900_AI_CI)
}

pub fn int() -> DataType {
    DataType::bigint()
}

pub fn not_null(ty: DataType) -> DataType {
    ty.with_nullable(false)
}

impl Table {
    /// The first column is the primary key.
    pub fn new(id: u64, name: &str, base: u32, columns: &[(&str, DataType)]) -> Table {
        let column = |(name, ty): &(&str, DataType)| ColumnDef {
            name: (*name).into(),
            ty: ty.clone(),
            instant_default: None,
        };
        let def = TableDef {
            id: TableId(id),
            name: format!("test.{name}"),
            columns: columns.iter().map(column).collect(),
            indexes: vec![index(0, "PRIMARY", true, &[0])],
        };
        Table { def, base }
    }

    pub fn with_index(mut self, id: u32, name: &str, unique: bool, columns: &[usize]) -> Table {
        self.def.indexes.push(index(id, name, unique, columns));
        self
    }

    pub fn types(&self) -> Vec<DataType> {
        self.def.columns.iter().map(|column| column.ty.clone()).collect()
    }

    pub fn register(&self, column: usize) -> Register {
        Register(self.base + column as u32)
    }

    pub fn locator(&self) -> Register {
        self.register(self.def.columns.len())
    }

    pub fn column(&self, column: usize) -> Expr {
        Expr::column(self.register(column), self.def.columns[column].ty.clone())
    }

    pub fn access(&self) -> TableAccess {
        let columns = 0..self.def.columns.len();
        TableAccess {
            table: self.def.id.0,
            engine: Arc::from("MEMORY"),
            alias: Arc::from("t"),
            layout: self.types().into(),
            names: Arc::from([]),
            missing: Arc::from([]),
            columns: columns.map(|column| (column, self.register(column))).collect(),
            locator: None,
            locking: RowLocking::None,
            instance: 0,
            entries: None,
            estimated_rows: 0,
            firsts: None,
        }
    }

    pub fn scan(&self, filter: Option<Expr>) -> Physical {
        let access = Access::Full { index: 0, backward: false };
        Physical::Scan { table: self.access(), access, filter }
    }

    pub fn locked_scan(&self, filter: Option<Expr>) -> Physical {
        let mut table = self.access();
        table.locator = Some(self.locator());
        table.locking = RowLocking::Exclusive;
        Physical::Scan { table, access: Access::Full { index: 0, backward: false }, filter }
    }

    pub fn write(&self) -> TableWrite {
        let short = self.def.name.trim_start_matches("test.").to_owned();
        let column = |(at, column): (usize, &ColumnDef)| WrittenColumn {
            name: Arc::from(column.name.as_str()),
            ty: column.ty.clone(),
            register: self.register(at),
            default: column.ty.nullable.then(|| literal(Value::Null, DataType::null())),
            missing: Value::Null,
            auto_increment: false,
            on_update_now: None,
            generated: None,
            elements: None,
        };
        let index = |index: &IndexDef| {
            let name = Arc::from(format!("{short}.{}", index.name));
            (index.id.0, name, index.parts.iter().map(|part| part.column).collect())
        };
        TableWrite {
            table: self.def.id.0,
            engine: Arc::from("MEMORY"),
            schema: Arc::from("test"),
            name: Arc::from(short.as_str()),
            columns: self.def.columns.iter().enumerate().map(column).collect(),
            checks: Vec::new(),
            virtuals: Vec::new(),
            view_checks: Vec::new(),
            selected: None,
            view: None,
            triggers: None,
            fulltext: Vec::new(),
            key: Vec::new(),
            indexes: self.def.indexes.iter().map(index).collect(),
            last_unique: self
                .def
                .indexes
                .iter()
                .rfind(|index| index.unique)
                .map(|index| index.id.0),
            parents: Vec::new(),
            children: Vec::new(),
            history: None,
            partitions: None,
            overlaps: Vec::new(),
            portion: None,
        }
    }

    /// `SELECT *` in primary key order.
    pub fn all(&self) -> Plan {
        let outputs = (0..self.def.columns.len()).map(|column| self.column(column)).collect();
        query(self.scan(None), outputs)
    }
}

pub fn index(id: u32, name: &str, unique: bool, columns: &[usize]) -> IndexDef {
    let part = |column: &usize| KeyPart {
        column: *column,
        prefix_length: None,
        descending: false,
        elements: None,
    };
    IndexDef {
        id: IndexId(id),
        name: name.into(),
        unique,
        parts: columns.iter().map(part).collect(),
    }
}

pub fn literal(value: Value, ty: DataType) -> Expr {
    Expr::literal(value, ty)
}

pub fn number(number: i64) -> Expr {
    literal(Value::Int(number), not_null(int()))
}

pub fn string(value: &str) -> Expr {
    literal(Value::text(value), not_null(text()))
}

pub fn null() -> Expr {
    literal(Value::Null, DataType::null())
}

pub fn binary(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    use BinaryOp::*;
    let ty = match op {
        Add | Subtract | Multiply | IntegerDivide | Modulo => int(),
        Divide => DataType::decimal(25, 4),
        BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => DataType::bigint_unsigned(),
        _ => DataType::boolean(),
    };
    let collation = CollationId::UTF8MB4_0900_AI_CI;
    Expr::Binary { op, left: Box::new(left), right: Box::new(right), collation, ty }
}

pub fn eq(left: Expr, right: Expr) -> Expr {
    binary(BinaryOp::Equal, left, right)
}

pub fn ascending(expr: Expr) -> SortKey {
    SortKey { expr, descending: false }
}

pub fn descending(expr: Expr) -> SortKey {
    SortKey { expr, descending: true }
}

pub fn output(expr: Expr) -> OutputColumn {
    OutputColumn { name: Arc::from("x"), expr, source: None, making: plan::Making::default() }
}

pub fn query(root: Physical, outputs: Vec<Expr>) -> Plan {
    query_with(root, outputs, Vec::new())
}

pub fn query_with(root: Physical, outputs: Vec<Expr>, subqueries: Vec<Subquery>) -> Plan {
    Plan::Query(QueryPlan {
        root,
        outputs: outputs.into_iter().map(output).collect(),
        subqueries,
        ctes: Vec::new(),
        registers: 100,
    })
}

pub fn set(column: usize, value: Expr) -> Assignment {
    Assignment { column, value: Some(value) }
}

pub fn by_name(rows: &[String]) -> HashMap<&str, usize> {
    rows.iter().enumerate().map(|(at, row)| (row.as_str(), at)).collect()
}
