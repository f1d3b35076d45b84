//! The rows that are there when a stream begins, and the place in the log that they are of.

use engine_api::CancelToken;
use errors::{Error, Result, err};
use plugin_api::{
    Answer, ColumnMeta, LocalFile, OkInfo, ResultSink, RowSource, SessionFactory, SessionHandle,
    SessionState,
};
use types::{DataType, Fixed, GtidSet, TypeKind, Value};

use crate::event::{Keys, Outlet, Post, put_name, put_number, put_text};
use crate::reader::{Shape, one_line};
use crate::scope::Scope;
use crate::text;
use crate::value::{Column, put_key, put_table, write_object};

/// Most names of tables and columns that are held.
const ROWS_HELD_MAX: usize = 100_000;

/// How often a snapshot is tried: transactions that commit while writers are held off are few.
const TRIES: usize = 100;
/// The session of the rows: values mean the same whatever the settings of the server are.
const FOR_ROWS: &str = "SET SESSION time_zone = '+00:00', sql_mode = '', transaction_isolation = 'REPEATABLE-READ', \
     max_execution_time = 0";
const TABLES: &str = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES \
     WHERE TABLE_TYPE = 'BASE TABLE' ORDER BY TABLE_SCHEMA, TABLE_NAME";
const COLUMNS: &str = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE \
     EXTRA NOT LIKE '%VIRTUAL GENERATED%' AND TABLE_SCHEMA = {schema} AND TABLE_NAME = {table} \
     ORDER BY ORDINAL_POSITION";
const KEY: &str = "SELECT COLUMN_NAME FROM information_schema.STATISTICS WHERE \
     INDEX_NAME = 'PRIMARY' AND TABLE_SCHEMA = {schema} AND TABLE_NAME = {table} \
     ORDER BY SEQ_IN_INDEX";

/// Runs statements in the session that reads the rows.
pub trait Runner {
    /// Runs a statement; its error goes to the sink.
    ///
    /// # Errors
    /// The sink refused.
    fn run(&mut self, sql: &str, sink: &mut dyn ResultSink) -> Result<()>;
    /// Stops what runs.
    fn cancel(&self) -> CancelToken;
}

fn values(runner: &mut dyn Runner, sql: &str) -> Result<Answer> {
    let mut answer = Answer::new(ROWS_HELD_MAX);
    runner.run(sql, &mut answer)?;
    answer.finish()
}

/// A text as a literal, in the SQL mode of `FOR_ROWS`.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "''"))
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// A session of the server itself that holds writers off until it is dropped.
struct Holder(Box<dyn SessionHandle>);

impl Holder {
    fn open(sessions: &dyn SessionFactory, cancel: CancelToken) -> Result<Holder> {
        let mut holder = Holder(sessions.open_applier(cancel)?);
        holder.run("SET SESSION lock_wait_timeout = 10")?;
        holder.run("FLUSH TABLES WITH READ LOCK")?;
        Ok(holder)
    }

    fn run(&mut self, sql: &str) -> Result<Answer> {
        let mut answer = Answer::new(ROWS_HELD_MAX);
        self.0.query(sql.as_bytes(), &[], &mut answer)?;
        answer.finish()
    }

    fn executed(&mut self) -> Result<GtidSet> {
        let answer = self.run("SELECT @@GLOBAL.gtid_executed")?;
        let shown = answer.rows.first().and_then(|row| row.first()).and_then(text);
        let set = shown.as_deref().and_then(GtidSet::parse);
        set.ok_or_else(|| Error::internal("gtid_executed is no set"))
    }
}

/// Tables that are read, and the transactions whose changes they have.
struct Begun {
    tables: Vec<(String, String)>,
    position: GtidSet,
}

/// Opens a read view in the caller's session, and all tables in it.
fn begin(sessions: &dyn SessionFactory, runner: &mut dyn Runner, scope: &Scope) -> Result<Begun> {
    values(runner, FOR_ROWS)?;
    let mut holder = Holder::open(sessions, runner.cancel())?;
    let mut position = None;
    for _ in 0..TRIES {
        let before = holder.executed()?;
        values(runner, "START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
        if holder.executed()? == before {
            position = Some(before);
            break;
        }
        values(runner, "ROLLBACK")?;
    }
    let position = position.ok_or_else(|| err!(LOCK_WAIT_TIMEOUT))?;
    let mut tables = Vec::new();
    for row in holder.run(TABLES)?.rows {
        let names: Vec<String> = row.iter().filter_map(text).collect();
        let [schema, table] = &names[..] else { continue };
        if scope.has_table(schema, table) {
            let opens = format!("SELECT 1 FROM {}.{} LIMIT 0", quoted(schema), quoted(table));
            // Also finds out whether the account may read it, and keeps its definition until the snapshot ends.
            values(runner, &opens)?;
            tables.push((schema.clone(), table.clone()));
        }
    }
    holder.run("UNLOCK TABLES")?;
    Ok(Begun { tables, position })
}

/// Writes the rows of all tables. Returns the transactions that they have.
///
/// # Errors
/// The account may not read a table; writers did not end in time; the client is gone.
pub fn write(
    sessions: &dyn SessionFactory,
    runner: &mut dyn Runner,
    outlet: &mut dyn Outlet,
    scope: &Scope,
    shape: Shape,
) -> Result<GtidSet> {
    let Begun { tables, position } = begin(sessions, runner, scope)?;
    let shown = one_line(&position);
    let mut post = Post::new(outlet);
    post.event("snapshot_begin", None, |out| {
        put_text("position", &shown, out);
        put_number("tables", tables.len() as u64, out);
        Ok(())
    })?;
    post.outlet.flush()?;
    let mut rows = 0;
    for (schema, table) in &tables {
        rows += write_table(runner, &mut post, (schema, table), shape)?;
    }
    values(runner, "ROLLBACK")?;
    post.event("snapshot_end", Some(&shown), |out| {
        put_text("position", &shown, out);
        put_number("rows", rows, out);
        Ok(())
    })?;
    post.outlet.flush()?;
    Ok(position)
}

fn names(runner: &mut dyn Runner, sql: &str, schema: &str, table: &str) -> Result<Vec<String>> {
    let (start, rest) = sql.split_once("{schema}").unwrap_or((sql, ""));
    let (middle, end) = rest.split_once("{table}").unwrap_or((rest, ""));
    let sql = format!("{start}{}{middle}{}{end}", literal(schema), literal(table));
    let answer = values(runner, &sql)?;
    Ok(answer.rows.iter().filter_map(|row| row.first().and_then(text)).collect())
}

fn write_table(
    runner: &mut dyn Runner,
    post: &mut Post<'_>,
    (schema, table): (&str, &str),
    shape: Shape,
) -> Result<u64> {
    let columns = names(runner, COLUMNS, schema, table)?;
    let key = names(runner, KEY, schema, table)?;
    let list =
        |names: &[String]| names.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let mut sql = format!("SELECT {} FROM {}.{}", list(&columns), quoted(schema), quoted(table));
    if !key.is_empty() {
        sql.push_str(" ORDER BY ");
        sql.push_str(&list(&key));
    }
    let key = key.iter().filter_map(|name| columns.iter().position(|column| column == name));
    let mut sink = Rows {
        post,
        schema,
        table,
        names: &columns,
        key: key.collect(),
        columns: Vec::new(),
        kinds: Vec::new(),
        has_schema: shape.has_schema,
        count: 0,
        scratch: Vec::new(),
        error: None,
    };
    runner.run(&sql, &mut sink)?;
    match sink.error.take() {
        Some(error) => Err(error),
        None => Ok(sink.count),
    }
}

/// A column's type as the log has it: UUID, INET4 and INET6 are binary strings there.
fn logged(ty: &DataType) -> DataType {
    match ty.as_fixed() {
        Some(kind) => {
            let binary = DataType::new(TypeKind::Binary, kind.bytes() as u32, 0);
            binary.with_nullable(ty.nullable)
        }
        None => ty.clone(),
    }
}

/// Writes the rows of one table.
struct Rows<'a, 'o> {
    post: &'o mut Post<'a>,
    schema: &'o str,
    table: &'o str,
    names: &'o [String],
    key: Vec<usize>,
    columns: Vec<Column>,
    /// Of columns of UUID, INET4 and INET6.
    kinds: Vec<Option<Fixed>>,
    has_schema: bool,
    count: u64,
    scratch: Vec<u8>,
    error: Option<Error>,
}

impl ResultSink for Rows<'_, '_> {
    fn columns(&mut self, columns: &[ColumnMeta]) -> Result<()> {
        let pairs = self.names.iter().zip(columns);
        let pairs = pairs.map(|(name, meta)| Column { name: name.clone(), ty: logged(&meta.ty) });
        self.columns = pairs.collect();
        self.kinds = columns.iter().map(|meta| meta.ty.as_fixed()).collect();
        if !self.has_schema {
            return Ok(());
        }
        self.post.table_event("table", Some((self.schema, self.table)), |out| {
            put_table(self.schema, self.table, &self.columns, &self.key, out);
            Ok(Keys::default())
        })
    }

    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        let mut values: Vec<Value> =
            (0..row.len()).map(|at| row.value(at)).collect::<Result<_>>()?;
        for (value, kind) in values.iter_mut().zip(&self.kinds) {
            if let (Value::Bytes(bytes), Some(kind)) = (&*value, kind) {
                *value = Value::Bytes(kind.native(bytes));
            }
        }
        self.count += 1;
        let (columns, key, scratch) = (&self.columns, &self.key, &mut self.scratch);
        self.post.table_event("read", Some((self.schema, self.table)), |out| {
            put_text("schema", self.schema, out);
            put_text("table", self.table, out);
            let key = put_key("key", columns, key, |at| values.get(at), scratch, out)?;
            put_name("after", out);
            write_object(columns, |at| values.get(at), |_| true, scratch, out)?;
            Ok(Keys { key, new_key: None })
        })
    }

    fn end(&mut self, _: &SessionState) -> Result<()> {
        Ok(())
    }

    fn ok(&mut self, _: &OkInfo) -> Result<()> {
        Ok(())
    }

    fn error(&mut self, error: &Error) -> Result<()> {
        self.error = Some(error.clone());
        Ok(())
    }

    fn local_file(&mut self, _: &str) -> Result<Box<dyn LocalFile + '_>> {
        errors::bail!(CLIENT_LOCAL_FILES_DISABLED)
    }
}
