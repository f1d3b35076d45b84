//! A schema `test` with binder and optimizer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use binder::{BindInput, Binder, Bound, CatalogReader, VariableTypes};
use catalog::{CatalogSnapshot, ColumnDefault, Edit, IndexPart, Relation, Table};
use definitions::alter::{self, Algorithm, Facts};
use engine_api::{IndexId, TableId};
use errors::{Diagnostics, Result};
use optimizer::{OptimizeInput, StatisticsSource};
use plan::{ExplainFormat, Expr, LogicalStatement, OutputColumn, Plan};
use plugin_api::{BindContext, Plugin, Registry};
use syntax::ast::{AlterTable, CreateTable, CreateView, VarScope};
use syntax::{ParseOptions, Statement};
use types::{CollationId, DataType, SqlMode, Value};
use variables::{Globals, SessionValues, Settings};

use crate::definer::Definer;

pub(crate) const SCHEMA: &str = "test";
const COLLATION: CollationId = CollationId::UTF8MB4_0900_AI_CI;
/// Rows of a table whose size is not given.
const ROWS: u64 = 1000;
/// The engine's name: no engine runs here.
pub(crate) const ENGINE: &str = "Squall";

/// The part of a statement's planning to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The binder's result.
    Bound,
    /// The plan, as EXPLAIN shows it, without estimates.
    Plan,
    /// The definition made by CREATE TABLE, and the method of ALTER TABLE.
    Definition,
}

/// Tables, their sizes, and all functions.
pub struct Fixture {
    pub(crate) snapshot: Arc<CatalogSnapshot>,
    pub(crate) registry: Registry,
    pub(crate) globals: Globals,
    pub(crate) settings: Settings,
    pub(crate) conditions: Diagnostics,
    sizes: Sizes,
    sql_mode: SqlMode,
}

/// Rows by table, and distinct keys of an index's first parts.
#[derive(Default)]
struct Sizes {
    rows: BTreeMap<u64, u64>,
    distinct: BTreeMap<(u64, u32), Vec<u64>>,
}

impl StatisticsSource for Sizes {
    fn rows(&self, table: u64) -> u64 {
        self.rows.get(&table).copied().unwrap_or(ROWS)
    }

    fn distinct(&self, table: u64, index: u32, parts: usize) -> Option<u64> {
        self.distinct.get(&(table, index))?.get(parts.checked_sub(1)?).copied()
    }
}

impl Default for Fixture {
    fn default() -> Self {
        let plugins: Vec<Box<dyn Plugin>> = vec![
            Box::new(functions_numeric::NumericFunctions),
            Box::new(functions_string::StringFunctions),
            Box::new(functions_temporal::TemporalFunctions),
            Box::new(functions_json::JsonFunctions),
            Box::new(functions_crypto::CryptoFunctions),
            Box::new(functions_misc::MiscFunctions),
            Box::new(aggregates::Aggregates),
        ];
        let globals = Globals::new();
        let values = SessionValues::new(&globals);
        let settings = Settings::decode(&globals, &values, &|_| None, &Default::default());
        let mut snapshot = CatalogSnapshot::default();
        let schema = Edit::CreateSchema {
            name: SCHEMA.into(),
            options: catalog::SchemaOptions::of_collation(COLLATION),
        };
        snapshot.apply(&schema).expect("the first schema");
        Fixture {
            snapshot: Arc::new(snapshot),
            registry: Registry::build(&plugins),
            globals,
            settings,
            conditions: Diagnostics::default(),
            sizes: Sizes::default(),
            sql_mode: SqlMode::DEFAULT,
        }
    }
}

impl Fixture {
    /// The result of `sql`: empty for a definition, else the view of the statement, or its error.
    pub fn answer(&mut self, sql: &str, view: View) -> String {
        match self.run(sql, view) {
            Ok(text) => text.trim_end().to_owned(),
            Err(error) => format!("error {}: {}", error.code().0, error.message()),
        }
    }

    fn run(&mut self, sql: &str, view: View) -> Result<String> {
        let (statement, _) = match syntax::parse_one(sql, &ParseOptions::default()) {
            Ok(parsed) => parsed,
            Err(error) => return Ok(format!("does not parse: {error}")),
        };
        match &statement {
            Statement::CreateTable(create) => {
                let table = self.create_table(create, sql)?;
                Ok(if view == View::Definition { definition(&table) } else { String::new() })
            }
            Statement::AlterTable(alter) => self.alter_table(alter, sql),
            Statement::CreateView(create) => self.create_view(create, sql).map(|()| String::new()),
            _ => self.shown(&statement, sql, view),
        }
    }

    fn create_table(&mut self, create: &CreateTable, sql: &str) -> Result<Arc<Table>> {
        let (schema, name): (Arc<str>, Arc<str>) =
            (SCHEMA.into(), (&*create.name.name.text).into());
        let mut definer = Definer { fixture: self, source: sql };
        let draft = definitions::create::write_draft(&mut definer, create, &schema, &name)?;
        let (mut table, _) = definitions::create::complete(&mut definer, create, draft)?;
        table.id = TableId(1024 + self.snapshot.names(SCHEMA).count() as u64);
        table.definition.id = table.id;
        let table = Arc::new(table);
        self.edit(&Edit::CreateTable(table.clone()))?;
        Ok(table)
    }

    /// The new definition, after a line with the method of moving the rows.
    fn alter_table(&mut self, alter: &AlterTable, sql: &str) -> Result<String> {
        let name = &*alter.name.name.text;
        let unknown = || errors::err!(NO_SUCH_TABLE, SCHEMA, name);
        let old = self.snapshot.table(SCHEMA, name).ok_or_else(unknown)?;
        let mut definer = Definer { fixture: self, source: sql };
        let (draft, request) = alter::edit(&mut definer, &old, alter)?;
        let mut altered = alter::complete(&mut definer, &old, draft, request.rename.as_ref())?;
        let facts =
            Facts { most_rows_go: false, checks_foreign_keys: true, engine_notes_rows: false };
        let choice = alter::choose(&old, &mut altered, &request, facts)?;
        let how = match choice.algorithm {
            Algorithm::Copy => "copy".to_owned(),
            Algorithm::InPlace(changes) => {
                let names = |table: &Table, ids: &[IndexId]| {
                    let known = table.indexes.iter().filter(|index| ids.contains(&index.id));
                    known.map(|index| index.name.to_string()).collect::<Vec<_>>().join(" ")
                };
                let added = names(&altered.table, &changes.added);
                let dropped = names(&old, &changes.dropped);
                format!("in place, adds [{added}], drops [{dropped}]")
            }
        };
        let new = Arc::new(altered.table);
        self.edit(&Edit::ReplaceTable { old: old.id, new: new.clone() })?;
        Ok(format!("{how}\n{}", definition(&new)))
    }

    /// A view's query must qualify tables with the schema: this harness does not add it.
    fn create_view(&mut self, create: &CreateView, sql: &str) -> Result<()> {
        let span = create.query_span;
        let text = &sql[span.start as usize..span.end as usize];
        self.edit(&Edit::CreateView(Arc::new(catalog::View {
            schema: SCHEMA.into(),
            name: (&*create.name.name.text).into(),
            definition: text.into(),
            columns: create.columns.iter().map(|column| (&*column.text).into()).collect(),
            definer: "root@localhost".into(),
            invoker: false,
            algorithm: "UNDEFINED".into(),
            check_option: "NONE".into(),
            charset_client: "utf8mb4".into(),
            collation_connection: "utf8mb4_0900_ai_ci".into(),
            is_duality: false,
        })))
    }

    fn edit(&mut self, edit: &Edit) -> Result<()> {
        Arc::make_mut(&mut self.snapshot).apply(edit)
    }

    /// `rows TABLE n`, `distinct TABLE INDEX n n..` or `sql_mode MODE`.
    ///
    /// # Errors
    /// The table, index or mode does not exist.
    pub fn set(&mut self, words: &[&str]) -> std::result::Result<(), String> {
        let number =
            |word: &&str| word.parse::<u64>().map_err(|_| format!("{word} is not a number"));
        match words {
            ["rows", table, rows] => {
                let id = self.table(table)?.id.0;
                self.sizes.rows.insert(id, number(rows)?);
            }
            ["distinct", table, index, counts @ ..] => {
                let table = self.table(table)?;
                let known = table.index(index).ok_or_else(|| format!("no index {index}"))?;
                let counts = counts.iter().map(number).collect::<std::result::Result<_, _>>()?;
                self.sizes.distinct.insert((table.id.0, known.id.0), counts);
            }
            ["sql_mode", mode] => {
                self.sql_mode = SqlMode::parse(mode).map_err(|_| format!("no mode {mode}"))?;
            }
            _ => return Err(format!("unknown line: {}", words.join(" "))),
        }
        Ok(())
    }

    fn table(&self, name: &str) -> std::result::Result<Arc<Table>, String> {
        self.snapshot.table(SCHEMA, name).ok_or_else(|| format!("no table {name}"))
    }

    pub(crate) fn bind_context(&self) -> BindContext {
        BindContext {
            sql_mode: self.sql_mode,
            collation_connection: COLLATION,
            div_precision_increment: 4,
            group_concat_max_len: 1024,
            max_allowed_packet: 64 << 20,
            history: plugin_api::HistorySettings::default(),
            cascades_fire_triggers: false,
        }
    }

    fn bound(&self, statement: &Statement, sql: &str) -> Result<Bound> {
        let bind = self.bind_context();
        let input = BindInput {
            catalog: &Reader(&self.snapshot),
            registry: &self.registry,
            bind: &bind,
            variables: &NoVariables,
            parameter_types: None,
        };
        Binder::new(input).bind(statement, sql.as_bytes())
    }

    fn shown(&self, statement: &Statement, sql: &str, view: View) -> Result<String> {
        let bound = self.bound(statement, sql)?;
        if view == View::Bound {
            return Ok(plan::print::logical_plan(&bound.plan) + &collations(&bound.plan.statement));
        }
        let input = OptimizeInput {
            tables: &bound.tables,
            statistics: &self.sizes,
            collation: COLLATION,
            trace: None,
        };
        let (plan, _, explainer) = optimizer::optimize_for_analysis(bound.plan, &input)?;
        if let Plan::Rows { columns, rows } = &plan {
            return Ok(table(columns, rows));
        }
        let text = explainer.analysis(&plan, ExplainFormat::Tree, &input, None, None);
        let operator = |line: &str| format!("{}\n", line.split("  (cost=").next().unwrap_or(line));
        Ok(text.lines().map(operator).collect())
    }
}

/// A table: a line for each column, index, check and foreign key.
fn definition(table: &Table) -> String {
    let mut text = String::new();
    let name = |column: usize| table.columns[column].name.to_string();
    for column in &table.columns {
        text += &format!("{} {}", column.name, plan::print::ty(&column.ty));
        match &column.default {
            ColumnDefault::Constant(value) => text += &format!(" = {}", plan::print::value(value)),
            ColumnDefault::None => {}
            other => text += &format!(" = {other:?}"),
        }
        if let Some(generated) = &column.generated {
            text += &format!(" as {}", generated.expression);
        }
        if column.auto_increment {
            text += " auto_increment";
        }
        text.push('\n');
    }
    for index in &table.indexes {
        let part = |part: &IndexPart| {
            let prefix = part.prefix_length.map_or(String::new(), |length| format!("({length})"));
            format!("{}{prefix}{}", name(part.column), if part.descending { " desc" } else { "" })
        };
        let parts: Vec<String> = index.parts.iter().map(part).collect();
        let unique = if index.unique { "unique " } else { "" };
        text += &format!("{unique}key {} ({})\n", index.name, parts.join(", "));
    }
    for check in &table.checks {
        text += &format!("check {} {}\n", check.name, check.expression);
    }
    for key in &table.foreign_keys {
        let columns: Vec<String> = key.columns.iter().map(|column| name(*column)).collect();
        let target = key.referenced_columns.join(", ");
        let columns = columns.join(", ");
        text += &format!(
            "foreign key {} ({columns}) to {} ({target})\n",
            key.name, key.referenced_table
        );
    }
    if let Some(partitioning) = &table.partitioning {
        let text_of = definitions::partitioning_text(partitioning, &types::Utc);
        text += &text_of.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    text
}

/// The collations by which a query compares texts and which its texts have, where they are not all the default; by their numbers.
fn collations(statement: &LogicalStatement) -> String {
    let LogicalStatement::Query(query) = statement else { return String::new() };
    let mut found = BTreeSet::new();
    let mut note = |expr: &Expr| {
        let textual = |operand: &Expr| operand.ty().is_text();
        match expr {
            Expr::Binary { left, right, collation, .. } if textual(left) && textual(right) => {
                found.insert(*collation);
            }
            Expr::InList { operand, collation, .. } | Expr::Like { operand, collation, .. }
                if textual(operand) =>
            {
                found.insert(*collation);
            }
            _ => {}
        }
    };
    query.root.visit_exprs(&mut note);
    query.outputs.iter().for_each(|output| output.expr.visit(&mut note));
    let outputs = query.outputs.iter().map(|output| output.expr.ty());
    found.extend(outputs.filter(|ty| ty.is_text()).map(|ty| ty.collation));
    if found.iter().all(|collation| *collation == COLLATION) {
        return String::new();
    }
    let numbers: Vec<String> = found.iter().map(|collation| collation.0.to_string()).collect();
    format!("collations {}\n", numbers.join(" "))
}

/// The rows of the answer in EXPLAIN's traditional form: captions, then a line each.
fn table(columns: &[OutputColumn], rows: &[Vec<Value>]) -> String {
    let captions: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    let mut text = captions.join(" | ") + "\n";
    for row in rows {
        let cells: Vec<String> = row.iter().map(plan::print::value).collect();
        text += &(cells.join(" | ") + "\n");
    }
    text
}

pub(crate) struct Reader<'a>(pub(crate) &'a CatalogSnapshot);

impl CatalogReader for Reader<'_> {
    fn current_database(&self) -> Option<&str> {
        Some(SCHEMA)
    }

    fn schema_exists(&self, schema: &str) -> bool {
        self.0.schema(schema).is_some()
    }

    fn relation(&self, schema: &str, name: &str) -> Option<Relation> {
        self.0.relation(schema, name)
    }

    fn referencing_keys(&self, schema: &str, name: &str) -> Vec<(Arc<Table>, usize)> {
        let mut keys = Vec::new();
        for child in self.0.children_of(schema, name) {
            for (position, key) in child.foreign_keys.iter().enumerate() {
                if *key.referenced_schema == *schema && *key.referenced_table == *name {
                    keys.push((child.clone(), position));
                }
            }
        }
        keys
    }
}

/// No variable is set, and no server variable exists.
pub(crate) struct NoVariables;

impl VariableTypes for NoVariables {
    fn user_variable(&self, _: &str) -> Option<DataType> {
        None
    }

    fn system_variable(&self, _: &str, _: Option<VarScope>) -> Result<Option<DataType>> {
        Ok(None)
    }
}
