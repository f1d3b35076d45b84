//! ANALYZE TABLE .. UPDATE HISTOGRAM and DROP HISTOGRAM: one grouped query for each column, whose groups become buckets.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{Column, Edit, Histogram, PrivilegeSet, Relation, Table};
use errors::{Result, bail, err};
use exec::RowSink;
use plugin_api::{OkInfo, ResultSink, RowSource};
use syntax::ast::{self, Ident, TableMaintenance};
use types::{TypeKind, Value};

use crate::column_values::{plan_columns, read_columns};
use crate::session::Session;
use definitions::column_values::selected;
use definitions::histograms::{HistogramBuilder, has_order};
use definitions::{is_hidden, is_single_unique};
use describe::{HistogramFault, read_histogram};
use statements::maintenance::outcome_columns;
use statements::sink::send_rows;

/// Default number of buckets.
const BUCKETS_DEFAULT: u64 = 100;
/// The maximum that a statement may request.
const BUCKETS_MAX: u64 = 1024;

/// The options of UPDATE HISTOGRAM.
#[derive(Clone, Copy)]
struct Wanted {
    buckets_max: u32,
    auto_update: bool,
}

/// What a statement does with the histograms of columns.
#[derive(Clone, Copy)]
enum Change<'a> {
    /// Makes them from the rows.
    Make(Wanted),
    /// Takes this document.
    Take(&'a str),
    Drop,
}

const ONE_COLUMN: &str =
    "Only one column can be specified while modifying histogram statistics with JSON data.";

/// Runs the statement: a row for each column.
pub(crate) fn change_histograms(
    session: &mut Session,
    maintenance: &TableMaintenance,
    change: &ast::Histogram,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (columns, change) = match change {
        ast::Histogram::Update { columns, data: Some(document), .. } => {
            (columns, Change::Take(document))
        }
        ast::Histogram::Update { columns, buckets, auto_update, data: None } => {
            let buckets = buckets.unwrap_or(BUCKETS_DEFAULT);
            if !(1..=BUCKETS_MAX).contains(&buckets) {
                bail!(DATA_OUT_OF_RANGE, "Number of buckets", "ANALYZE TABLE");
            }
            let auto_update = auto_update.unwrap_or(false);
            (columns, Change::Make(Wanted { buckets_max: buckets as u32, auto_update }))
        }
        ast::Histogram::Drop { columns } => (columns, Change::Drop),
    };
    for (at, column) in columns.iter().enumerate() {
        if columns[..at].iter().any(|known| catalog::same_name(&known.text, &column.text)) {
            bail!(DUP_FIELDNAME, column.text);
        }
    }
    let (full, outcome) = match maintenance.tables.as_slice() {
        [name] => {
            let (schema, table) = session.qualify(name)?;
            let outcome = if matches!(change, Change::Take(_)) && columns.len() > 1 {
                Err(ONE_COLUMN.to_owned())
            } else {
                change_histograms_of(session, &schema, &table, columns, change)?
            };
            (format!("{schema}.{table}"), outcome)
        }
        _ => {
            let text = "Only one table can be specified while modifying histogram statistics.";
            (String::new(), Err(text.to_owned()))
        }
    };
    let row = |kind: &str, text: &str| [&full, "histogram", kind, text].map(Value::text).to_vec();
    let rows: Vec<_> = match &outcome {
        Ok(said) => said.iter().map(|(kind, text)| row(kind, text)).collect(),
        Err(text) => vec![row("Error", text)],
    };
    let commit = session.finish_transaction_scope()?;
    let state = OkInfo { commit, ..session.state_info() };
    send_rows(sink, &outcome_columns(), &rows, &state)
}

/// Changes histograms; returns the result messages for each column, or for the table.
fn change_histograms_of(
    session: &mut Session,
    schema: &Arc<str>,
    name: &Arc<str>,
    columns: &[Ident],
    change: Change<'_>,
) -> Result<std::result::Result<Vec<(&'static str, String)>, String>> {
    let needed = PrivilegeSet::SELECT | PrivilegeSet::INSERT;
    match catalog::system_schema(schema) {
        None => session.require_on_table(schema, name, needed)?,
        Some(known @ "information_schema") => {
            let host = session.shown_host(&session.account);
            bail!(DBACCESS_DENIED_ERROR, session.account.user, host, known);
        }
        Some("mysql") => {
            return Ok(Err("Histograms are not supported on the MySQL system schema.".into()));
        }
        Some(_) => {
            let host = session.shown_host(&session.account);
            bail!(TABLEACCESS_DENIED_ERROR, "SELECT, INSERT", session.account.user, host, name);
        }
    }
    let table = match session.view().relation(schema, name) {
        None => return Ok(Err(err!(NO_SUCH_TABLE, schema, name).message().to_owned())),
        Some(Relation::View(_)) => {
            return Ok(Err("Cannot create histogram statistics for a view.".into()));
        }
        Some(Relation::Table(table)) if table.temporary => {
            return Ok(Err("Cannot create histogram statistics for a temporary table.".into()));
        }
        Some(Relation::Table(table)) => table,
    };
    session.check_writable()?;
    let mut said = Vec::with_capacity(columns.len());
    let mut changes = Vec::with_capacity(columns.len());
    for written in columns {
        let found = table.column(&written.text).map(|at| (at, &table.columns[at]));
        let Some((at, column)) = found.filter(|(_, column)| !is_hidden(column)) else {
            let text = format!("The column '{}' does not exist.", written.text);
            said.push((written.text.to_string(), "Error", text));
            continue;
        };
        let shown = &column.name;
        let (kind, text) = match change {
            Change::Make(_) | Change::Take(_) if !has_order(&column.ty) => {
                ("Error", format!("The column '{shown}' has an unsupported data type."))
            }
            Change::Make(_) | Change::Take(_) if is_single_unique(&table, at) => {
                let text =
                    format!("The column '{shown}' is covered by a single-part unique index.");
                ("Error", text)
            }
            Change::Make(wanted) => {
                let made = make_histogram(session, &table, column, wanted)?;
                changes.push((shown.clone(), Some(Arc::new(made))));
                ("status", format!("Histogram statistics created for column '{shown}'."))
            }
            Change::Take(document) => {
                let now_micros = session.server.now_micros();
                match read_histogram(document, &column.ty, now_micros) {
                    Ok(read) => {
                        changes.push((shown.clone(), Some(Arc::new(read))));
                        ("status", format!("Histogram statistics created for column '{shown}'."))
                    }
                    Err(fault) => return Ok(Ok(said_of(fault, &table, shown))),
                }
            }
            Change::Drop if column.histogram.is_none() => {
                ("Error", format!("No histogram statistics found for column '{shown}'."))
            }
            Change::Drop => {
                changes.push((shown.clone(), None));
                ("status", format!("Histogram statistics removed for column '{shown}'."))
            }
        };
        said.push((shown.to_string(), kind, text));
    }
    said.sort();
    put_histograms(session, &table, changes)?;
    Ok(Ok(said.into_iter().map(|(_, kind, text)| (kind, text)).collect()))
}

/// What is said of a document that is no histogram of a column.
fn said_of(fault: HistogramFault, table: &Table, column: &str) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    let detail = match fault {
        HistogramFault::Content(text) => text,
        HistogramFault::Text(error) => {
            let (message, position) = (error.message, error.position);
            let error = err!(INVALID_JSON_TEXT_IN_PARAM, 1, "UPDATE HISTOGRAM", message, position);
            said.push(error.message().to_owned());
            "JSON format error.".to_owned()
        }
    };
    let (schema, table) = (&table.schema, &table.name);
    // The quotes are the reference's.
    said.push(format!(
        "Unable to build histogram statistics for column '{column}' in table '{schema}'.'{table}'"
    ));
    said.push(detail);
    said.into_iter().map(|text| ("Error", text)).collect()
}

fn put_histograms(
    session: &mut Session,
    table: &Table,
    columns: Vec<(Arc<str>, Option<Arc<Histogram>>)>,
) -> Result<()> {
    if columns.is_empty() {
        return Ok(());
    }
    let edit = Edit::PutHistograms { table: table.id, columns };
    let cancel = session.shared.cancel.clone();
    session.server.catalog.commit_alone(&[edit], &cancel).map(drop)
}

/// ANALYZE TABLE: rebuilds the histograms with AUTO UPDATE.
pub(crate) fn renew_histograms(session: &mut Session, table: &Table) -> Result<()> {
    let mut changes = Vec::new();
    for column in &table.columns {
        let Some(known) = column.histogram.as_deref().filter(|known| known.auto_update) else {
            continue;
        };
        let wanted = Wanted { buckets_max: known.buckets_max, auto_update: true };
        let made = make_histogram(session, table, column, wanted)?;
        changes.push((column.name.clone(), Some(Arc::new(made))));
    }
    put_histograms(session, table, changes)
}

fn make_histogram(
    session: &mut Session,
    table: &Table,
    column: &Column,
    wanted: Wanted,
) -> Result<Histogram> {
    let value = match selected(column) {
        name if column.ty.is_string()
            && !matches!(column.ty.kind, TypeKind::Enum | TypeKind::Set) =>
        {
            format!("LEFT({name}, {})", Histogram::TEXT_CHARS)
        }
        value => value,
    };
    let mut groups = Groups(HistogramBuilder::new(&column.ty));
    let values = format!("{value}, COUNT(*)");
    let planned = plan_columns(session, table, &values, "GROUP BY 1 ORDER BY 1")?;
    read_columns(session, &planned, &mut groups)?;
    let Wanted { buckets_max, auto_update } = wanted;
    Ok(groups.0.finish(buckets_max, auto_update, session.server.now_micros()))
}

/// The groups of the query, in order.
struct Groups<'t>(HistogramBuilder<'t>);

impl RowSink for Groups<'_> {
    fn row(&mut self, row: &dyn RowSource) -> Result<()> {
        let value = row.value(0)?;
        let count = match row.value(1)? {
            Value::Int(count) => count as u64,
            Value::UInt(count) => count,
            _ => 0,
        };
        self.0.add(value, count);
        Ok(())
    }
}
