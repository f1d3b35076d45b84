//! LOAD DATA and LOAD XML: each record becomes a row of an INSERT whose values are parameters.

use ::accounts::PrivilegeChecks;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use catalog::{PrivilegeSet, Table};
use engine_api::Progress;
use errors::{Condition, Error, ErrorCode, Level, Result, bail, err};
use exec::TransactionSource as _;
use hashbrown::HashMap;
use plugin_api::{OkInfo, ResultSink, SessionServices};
use syntax::ast::{LoadColumn, LoadData, LoadDuplicates, Statement};
use types::{CollationId, SqlMode, Value};

use crate::planned::Planned;
use crate::session::Session;
use programs::{Origin, Running};
use variables::allowed_path;

pub(crate) use statements::file_records::Format;
use statements::file_records::{Record, Records};
use statements::load_options::{at_row, column_name, field_type, field_value, insert_of};
pub(crate) use statements::outfile::file_error;

/// Bytes read from a file at once.
const PIECE_BYTES: usize = 256 * 1024;
/// Name of the savepoint that a failed LOAD DATA returns to; no statement can name it.
const SAVEPOINT: &str = "\0load data";
/// Maximum number of records in one INSERT, and of their values.
const RECORDS_AT_ONCE: usize = 64;
const VALUES_AT_ONCE: usize = 2048;

/// Counts of a LOAD DATA.
#[derive(Default)]
struct Counts {
    records: u64,
    deleted: u64,
    skipped: u64,
}

/// State of one LOAD DATA.
struct Load<'a> {
    statement: &'a LoadData,
    targets: Vec<LoadColumn>,
    /// Plans by the number of fields of the list in a record, and the number of records in one INSERT.
    plans: HashMap<(usize, usize), Arc<Planned>>,
    /// Number of complete records in one INSERT; 1 when each must be stored alone.
    at_once: usize,
    /// Values of records that wait for others.
    waiting: Vec<Value>,
    /// The number of records that wait.
    records_waiting: usize,
    ignore: bool,
    charset: &'static charset::Charset,
    counts: Counts,
    /// Triggers run for each record: they may read the earlier ones.
    has_programs: bool,
}

/// LOAD DATA.
pub(crate) fn run_load_data(
    session: &mut Session,
    load: &LoadData,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    statements::load_options::refuse_unbuilt(load)?;
    let (schema, name) = session.qualify(&load.table)?;
    if crate::duality_changes::duality_view(session, &schema, &name).is_some() {
        bail!(JDV_IN_VIEW, name, "LOAD");
    }
    let table = session.find_table(&schema, &name)?;
    let mut work = prepare_load(session, load, &table)?;
    if load.local {
        require_local_files(session)?;
    } else {
        session.require_global(PrivilegeSet::FILE)?;
    }
    // Planned before the client is asked for its file, so that most errors are found without it.
    let first = load_plan(session, &mut work, running, usize::MAX, 1)?;
    work.has_programs = !first.programs.is_empty();
    session.transactions.savepoint(SAVEPOINT);
    // Progress is in bytes read. The size of a client's file is not known.
    let cancel = session.shared.cancel.clone();
    let long = cancel.long(1);
    let mut bytes = 0;
    let mut count = |piece: &Vec<u8>, size: u64| {
        bytes += piece.len() as u64;
        long.set_done(bytes, size.max(bytes));
    };
    let result = if load.local {
        let mut file = sink.local_file(&load.file)?;
        let mut read = || file.read().inspect(|piece| count(piece, 0));
        load_together(session, &mut work, running, &table, &mut read)
    } else {
        let mut file = open_file(&data_path(session, &load.file)?)?;
        let size = file.size_bytes().map_err(Error::internal)?;
        let mut read = || read_piece(&mut file).inspect(|piece| count(piece, size));
        load_together(session, &mut work, running, &table, &mut read)
    };
    if let Some(Progress { work_done, work_expected }) = cancel.progress() {
        session.phases.count_work(work_done, work_expected);
    }
    drop(long);
    if let Err(error) = result {
        // The error that stopped the load is the one to report.
        let _ = session.transactions.rollback_to(SAVEPOINT);
        let _ = session.transactions.release(SAVEPOINT);
        return Err(error);
    }
    let _ = session.transactions.release(SAVEPOINT);
    finish_load(session, &work.counts, sink)
}

fn finish_load(session: &mut Session, counts: &Counts, sink: &mut dyn ResultSink) -> Result<()> {
    let stored = counts.records - counts.skipped;
    let affected_rows = stored + counts.deleted;
    session.services.row_count = affected_rows as i64;
    let info = format!(
        "Records: {}  Deleted: {}  Skipped: {}  Warnings: {}",
        counts.records,
        counts.deleted,
        counts.skipped,
        session.working.warning_count(),
    );
    let commit = session.finish_transaction_scope()?;
    session.send_ok(sink, OkInfo { affected_rows, info, commit, ..OkInfo::default() })
}

fn prepare_load<'a>(session: &Session, load: &'a LoadData, table: &Table) -> Result<Load<'a>> {
    let targets = if load.columns.is_empty() {
        let visible =
            table.columns.iter().filter(|column| !column.is_computed() && !column.invisible);
        visible.map(|column| LoadColumn::Column(column_name(&column.name))).collect()
    } else {
        load.columns.clone()
    };
    for assignment in &load.set {
        let twice = targets.iter().any(|target| {
            matches!(target, LoadColumn::Column(column)
                if catalog::same_name(&column.name.text, &assignment.column.name.text))
        });
        if twice {
            return Err(Error::not_supported("LOAD DATA that sets a column of its own list"));
        }
    }
    let charset = match &load.charset {
        None => file_charset(session),
        Some(name) => charset::charset_by_name(&name.text)
            .ok_or_else(|| err!(UNKNOWN_CHARACTER_SET, name.text))?,
    };
    let ignore = match load.duplicates {
        LoadDuplicates::Ignore => true,
        LoadDuplicates::Error => load.local,
        LoadDuplicates::Replace => false,
    };
    let only_columns =
        load.set.is_empty() && targets.iter().all(|target| matches!(target, LoadColumn::Column(_)));
    // Otherwise an INSERT of several rows would accept NULL where one of a single row does not.
    let same_rules = ignore || is_strict(session);
    let at_once = match only_columns && same_rules {
        true => (VALUES_AT_ONCE / targets.len().max(1)).clamp(1, RECORDS_AT_ONCE),
        false => 1,
    };
    Ok(Load {
        statement: load,
        at_once,
        waiting: Vec::new(),
        records_waiting: 0,
        targets,
        plans: HashMap::new(),
        ignore,
        charset,
        counts: Counts::default(),
        has_programs: false,
    })
}

/// `character_set_database`.
fn file_charset(session: &Session) -> &'static charset::Charset {
    let name = variables::as_text(&session.value("character_set_database"));
    charset::charset_by_name(&name)
        .unwrap_or_else(|| charset::collation_or_binary(CollationId::UTF8MB4_0900_AI_CI).charset)
}

fn require_local_files(session: &Session) -> Result<()> {
    if session.server.globals.integer("local_infile") == 0 || !session.client.local_files {
        bail!(CLIENT_LOCAL_FILES_DISABLED);
    }
    Ok(())
}

/// Path of a server file that statements may name.
///
/// # Errors
/// 1290.
pub(crate) fn data_path(session: &Session, name: &str) -> Result<PathBuf> {
    allowed_path(&session.server.globals, name)
        .ok_or_else(|| err!(OPTION_PREVENTS_STATEMENT, "--secure-file-priv"))
}

/// Loads all records; the engine may buffer them and store them at the end.
fn load_together(
    session: &mut Session,
    work: &mut Load<'_>,
    running: &Running<'_>,
    table: &Table,
    source: &mut dyn FnMut() -> Result<Vec<u8>>,
) -> Result<()> {
    if work.has_programs {
        return load_records(session, work, running, source);
    }
    let id = table.id;
    let cancel = session.shared.cancel.clone();
    let word = |error: engine_api::EngineError| error.into_error(&cancel);
    let txn = session.transactions.transaction(&table.engine)?;
    txn.expect_changes().and_then(|()| txn.expect_rows(id)).map_err(word)?;
    load_records(session, work, running, source)?;
    let txn = session.transactions.transaction(&table.engine)?;
    txn.rows_are_over().and_then(|()| txn.changes_are_over()).map_err(word)
}

fn load_records(
    session: &mut Session,
    work: &mut Load<'_>,
    running: &Running<'_>,
    source: &mut dyn FnMut() -> Result<Vec<u8>>,
) -> Result<()> {
    let name = |target: &LoadColumn| match target {
        LoadColumn::Column(column) => column.name.text.as_bytes().to_vec(),
        LoadColumn::UserVar(name) => name.text.as_bytes().to_vec(),
    };
    let names = work.targets.iter().map(name).collect();
    let mut reader = Records::of(work.statement, names, source);
    for _ in 0..work.statement.ignore_lines {
        if !reader.skip()? {
            return Ok(());
        }
    }
    let mut record = Record::default();
    while reader.record(&mut record)? {
        session.shared.cancel.check()?;
        if work.at_once > 1 && record.len() == work.targets.len() {
            let values = record.fields().map(|field| field_value(work.charset, field));
            work.waiting.extend(values);
            work.records_waiting += 1;
            if work.records_waiting == work.at_once {
                load_waiting(session, work, running)?;
            }
            continue;
        }
        // The waiting records are stored first.
        load_waiting(session, work, running)?;
        work.counts.records += 1;
        load_record(session, work, running, &record)?;
    }
    load_waiting(session, work, running)
}

/// Stores the records that wait: as one INSERT when they fill it, else one by one.
fn load_waiting(session: &mut Session, work: &mut Load<'_>, running: &Running<'_>) -> Result<()> {
    let values = std::mem::take(&mut work.waiting);
    let records = std::mem::take(&mut work.records_waiting);
    let fields = work.targets.len();
    if records == work.at_once {
        let planned = load_plan(session, work, running, fields, records)?;
        store_records(session, work, &planned, &values, records)?;
    } else if records > 0 {
        let planned = load_plan(session, work, running, fields, 1)?;
        for record in values.chunks_exact(fields.max(1)) {
            store_records(session, work, &planned, record, 1)?;
        }
    }
    work.waiting = values;
    work.waiting.clear();
    Ok(())
}

/// Stores one record, whose number is counted already.
fn load_record(
    session: &mut Session,
    work: &mut Load<'_>,
    running: &Running<'_>,
    record: &Record,
) -> Result<()> {
    check_field_count(session, work, record)?;
    let planned = load_plan(session, work, running, record.len(), 1)?;
    let mut values = Vec::with_capacity(work.targets.len());
    for (target, field) in work.targets.iter().zip(record.fields()) {
        let value = field_value(work.charset, field);
        match target {
            LoadColumn::Column(_) => values.push(value),
            LoadColumn::UserVar(name) => {
                session.services.set_user_variable(&name.text, value, field_type());
            }
        }
    }
    work.counts.records -= 1;
    store_records(session, work, &planned, &values, 1)
}

/// Runs the INSERT of some records and counts them. Corrects the row numbers in its conditions.
fn store_records(
    session: &mut Session,
    work: &mut Load<'_>,
    planned: &Planned,
    values: &[Value],
    records: usize,
) -> Result<()> {
    let first = work.counts.records;
    work.counts.records += records as u64;
    let before = std::mem::take(&mut session.working);
    session.working = errors::Diagnostics::new(session.settings.max_error_count);
    let result = session.run_program(planned, values, &mut statements::sink::NoRows);
    let raised = std::mem::replace(&mut session.working, before);
    for condition in raised.conditions() {
        let message = at_row(&condition.message, first);
        session.working.push(Condition { message, ..condition.clone() });
    }
    let outcome = result.map_err(|error| {
        Error::with_sqlstate(error.code(), error.sqlstate(), at_row(error.message(), first))
    })?;
    let records = records as u64;
    work.counts.skipped += records.saturating_sub(outcome.affected);
    work.counts.deleted += outcome.affected.saturating_sub(records);
    if let Some(generated) = outcome.generated_id
        && first == 0
    {
        session.services.last_insert_id = generated;
    }
    Ok(())
}

fn is_strict(session: &Session) -> bool {
    session.settings.sql_mode.contains(SqlMode::STRICT_TRANS_TABLES)
        || session.settings.sql_mode.contains(SqlMode::STRICT_ALL_TABLES)
}

/// 1261, 1262: an error in strict mode, else a warning.
fn check_field_count(session: &mut Session, work: &Load<'_>, record: &Record) -> Result<()> {
    let (row, given) = (work.counts.records, record.len());
    let code = match given.cmp(&work.targets.len()) {
        std::cmp::Ordering::Equal => return Ok(()),
        std::cmp::Ordering::Greater if record.ends_after(work.targets.len()) => return Ok(()),
        std::cmp::Ordering::Less => ErrorCode::WARN_TOO_FEW_RECORDS,
        std::cmp::Ordering::Greater => ErrorCode::WARN_TOO_MANY_RECORDS,
    };
    if is_strict(session) && !work.ignore {
        return Err(Error::with(code, &[&row]));
    }
    // One for each column that is missing, or one for the rest of the line.
    for _ in 0..work.targets.len().saturating_sub(given).max(1) {
        session.working.raise(Level::Warning, code, &[&row]);
    }
    Ok(())
}

/// The INSERT for `records` records with `fields` fields.
fn load_plan(
    session: &mut Session,
    work: &mut Load<'_>,
    running: &Running<'_>,
    fields: usize,
    records: usize,
) -> Result<Arc<Planned>> {
    let count = fields.min(work.targets.len());
    if let Some(planned) = work.plans.get(&(count, records)) {
        return Ok(planned.clone());
    }
    let statement = Statement::Insert(Box::new(insert_of(
        work.statement,
        &work.targets[..count],
        work.ignore,
        records,
    )));
    let columns = work.targets[..count]
        .iter()
        .filter(|target| matches!(target, LoadColumn::Column(_)))
        .count();
    let parameters = vec![Value::text(""); columns * records];
    let inner = Running {
        source: running.source,
        parameters: &parameters,
        origin: Origin::Prepared,
        kept: None,
    };
    let planned = session.plan_and_lock(&statement, &inner)?;
    work.plans.insert((count, records), planned.clone());
    Ok(planned)
}

fn open_file(path: &Path) -> Result<sys::files::File> {
    sys::files::File::open(path).map_err(|error| file_error(13, "Can't get stat of", path, &error))
}

fn read_piece(file: &mut sys::files::File) -> Result<Vec<u8>> {
    let mut piece = vec![0; PIECE_BYTES];
    let read = file.read(&mut piece).map_err(Error::internal)?;
    piece.truncate(read);
    Ok(piece)
}
