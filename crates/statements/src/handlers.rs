//! HANDLER: tables that a session reads row by row, each from a place in one of its indexes.
//!
//! A place is bytes of a key, so it holds whatever happens to the rows around it, and no cursor or lock stays between two statements.

use std::collections::BTreeMap;
use std::sync::Arc;

use catalog::{ColumnDefault, Index, Table};
use engine_api::{IndexDef, IndexId, RowBuf};
use errors::{Diagnostics, Error, Result, bail, err};
use exec::{ConnectionMemory, MemoryBudget};
use plan::{KeyWalk, LogicalPlan};
use syntax::ast::{
    Expr, HandlerKeyOp, HandlerStep, Ident, Limit, ObjectName, Query, SetExpr, TableFactor,
};
use syntax::{ParseOptions, Statement};
use types::key::encode_part;
use types::{CastContext, DataType, StoreMode, Value};

/// Bytes that an open table may hold: its key, of at most 3,072 bytes, the locator after it, and its names.
const HANDLER_BYTES: usize = 4096;

/// The open tables of a session, by their names in lower case.
#[derive(Default)]
pub struct Handlers(BTreeMap<String, OpenTable>);

/// A table that HANDLER opened.
pub struct OpenTable {
    /// The name by which statements read it.
    pub alias: Arc<str>,
    /// Its schema.
    pub schema: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// Its definition, as the place is of it.
    pub table: Arc<Table>,
    place: Option<Place>,
}

/// Where reading stopped.
struct Place {
    /// `None` for the table in its own order, which the reference keeps apart from that of the primary key.
    index: Option<u32>,
    /// A key or a prefix of keys; empty for all keys.
    key: Vec<u8>,
    side: Side,
}

/// Where a place is with respect to its key.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Before,
    At,
    After,
}

/// What one READ reads.
pub struct Reading {
    index: Option<u32>,
    step: Step,
    key: Vec<u8>,
}

#[derive(Clone, Copy)]
enum Step {
    First,
    Next,
    Prev,
    Last,
    Key(HandlerKeyOp),
}

impl Handlers {
    /// Adds a table, under a name that none has.
    ///
    /// # Errors
    /// Those of the connection's memory.
    pub fn open(
        &mut self,
        table: OpenTable,
        memory: &ConnectionMemory,
        all: &MemoryBudget,
    ) -> Result<()> {
        memory.hold(HANDLER_BYTES, all.counted())?;
        let replaced = self.0.insert(table.alias.to_lowercase(), table);
        debug_assert!(replaced.is_none(), "the name was free");
        if replaced.is_some() {
            memory.release(HANDLER_BYTES, all.counted());
        }
        Ok(())
    }

    /// The table that is open under a name.
    ///
    /// # Errors
    /// 1109.
    pub fn find(&mut self, alias: &str) -> Result<&mut OpenTable> {
        let found = self.0.get_mut(&alias.to_lowercase());
        found.ok_or_else(|| err!(UNKNOWN_TABLE, alias, "HANDLER"))
    }

    /// Closes a table.
    ///
    /// # Errors
    /// 1109.
    pub fn close(
        &mut self,
        alias: &str,
        memory: &ConnectionMemory,
        all: &MemoryBudget,
    ) -> Result<()> {
        self.find(alias)?;
        self.retain(memory, all, |table| table.alias.to_lowercase() != alias.to_lowercase());
        Ok(())
    }

    /// Closes those that `keeps` does not keep.
    pub fn retain(
        &mut self,
        memory: &ConnectionMemory,
        all: &MemoryBudget,
        keeps: impl Fn(&OpenTable) -> bool,
    ) {
        if self.0.is_empty() {
            return;
        }
        let before = self.0.len();
        self.0.retain(|_, table| keeps(table));
        debug_assert!(self.0.len() <= before, "tables are only closed here");
        memory.release((before - self.0.len()) * HANDLER_BYTES, all.counted());
    }

    /// All tables start again, as after FLUSH TABLES.
    pub fn forget_places(&mut self) {
        self.0.values_mut().for_each(|table| table.place = None);
    }
}

impl OpenTable {
    /// A table that is opened.
    pub fn new(alias: Arc<str>, table: Arc<Table>) -> OpenTable {
        let (schema, name) = (table.schema.clone(), table.name.clone());
        OpenTable { alias, schema, name, table, place: None }
    }

    /// The table has another definition now: its reading starts again.
    pub fn renew(&mut self, table: Arc<Table>) {
        self.table = table;
        self.place = None;
    }

    /// The index that a READ names.
    ///
    /// # Errors
    /// 1176; 1235 for an index whose entries are not in the order of its columns.
    pub fn index(&self, name: &str) -> Result<&Index> {
        let known = |index: &&Index| index.name.eq_ignore_ascii_case(name);
        let Some(index) = self.table.indexes.iter().find(known) else {
            bail!(KEY_DOES_NOT_EXITS, name, self.alias)
        };
        if self.table.has_leading_part(index) {
            return Err(Error::not_supported(
                "HANDLER over the primary key of a partitioned table",
            ));
        }
        if self.table.key_parts(index).len() != index.parts.len() {
            return Err(Error::not_supported(
                "HANDLER over a unique key of a system-versioned table",
            ));
        }
        match self.definition(index.id.0) {
            Some(definition) if !definition.is_multi_valued() => Ok(index),
            _ => Err(Error::not_supported("HANDLER over this index")),
        }
    }

    fn definition(&self, index: u32) -> Option<&IndexDef> {
        self.table.definition.indexes.iter().find(|known| known.id.0 == index)
    }

    /// What a READ reads; `values` are those of its key.
    ///
    /// # Errors
    /// 1070, 1048, 1210.
    pub fn reading(
        &self,
        index: Option<&str>,
        step: &HandlerStep,
        values: &[(Value, DataType)],
        context: &mut CastContext<'_>,
    ) -> Result<Reading> {
        let index = index.map(|name| self.index(name)).transpose()?;
        let id = index.map(|index| index.id.0);
        let mut key = Vec::new();
        if let Some(definition) = id.and_then(|id| self.definition(id)) {
            if values.len() > definition.parts.len() {
                bail!(TOO_MANY_KEY_PARTS, definition.parts.len());
            }
            for (part, (value, from)) in definition.parts.iter().zip(values) {
                let Some(column) = self.table.definition.columns.get(part.column) else {
                    return Err(Error::internal("a part of an index has no column"));
                };
                let fitted = fit(value, from, &column.ty, context)?;
                if fitted.is_null() && !column.ty.nullable {
                    bail!(BAD_NULL_ERROR, definition.name);
                }
                encode_part(&fitted, &column.ty, part.prefix_length, part.descending, &mut key);
            }
        }
        let step = match step {
            HandlerStep::First => Step::First,
            HandlerStep::Next => Step::Next,
            HandlerStep::Prev => Step::Prev,
            HandlerStep::Last => Step::Last,
            HandlerStep::Key { op, .. } => Step::Key(*op),
        };
        debug_assert!(id.is_some() || key.is_empty(), "a key is one of an index");
        Ok(Reading { index: id, step, key })
    }

    /// The default that stands for DEFAULT in place `at` of a key.
    ///
    /// # Errors
    /// 1235 when it is not a constant; as `index`.
    pub fn default_of(&self, index: &str, at: usize) -> Result<(Value, DataType)> {
        let part = self.index(index)?.parts.get(at);
        let Some(column) = part.and_then(|part| self.table.columns.get(part.column)) else {
            return Ok((Value::Null, DataType::null()));
        };
        match &column.default {
            ColumnDefault::Constant(value) => Ok((value.clone(), column.ty.clone())),
            ColumnDefault::None => Ok((Value::Null, column.ty.clone())),
            ColumnDefault::Now(_) | ColumnDefault::Expression(_) => {
                Err(Error::not_supported("DEFAULT of an expression in HANDLER"))
            }
        }
    }

    /// The part of the index that a reading walks; `None` when nothing can be there.
    pub fn walk(&self, reading: &Reading) -> Option<KeyWalk> {
        let place = self.place.as_ref().filter(|place| place.index == reading.index);
        let (lower, upper, backward) = match (reading.step, place) {
            (Step::First, _) | (Step::Next, None) => (None, None, false),
            (Step::Last, _) | (Step::Prev, None) => (None, None, true),
            (Step::Next, Some(place)) => {
                (Some((place.key.clone(), place.side == Side::Before)), None, false)
            }
            (Step::Prev, Some(place)) => {
                (None, Some((place.key.clone(), place.side == Side::After)), true)
            }
            (Step::Key(op), _) => {
                let end = |included| Some((reading.key.clone(), included));
                match op {
                    HandlerKeyOp::Eq => (end(true), end(true), false),
                    HandlerKeyOp::GtEq => (end(true), None, false),
                    HandlerKeyOp::Gt => (end(false), None, false),
                    HandlerKeyOp::LtEq => (None, end(true), true),
                    HandlerKeyOp::Lt => (None, end(false), true),
                }
            }
        };
        // Every key starts with the empty one.
        let is_nothing =
            |end: &Option<(Vec<u8>, bool)>| matches!(end, Some((key, false)) if key.is_empty());
        let is_empty = is_nothing(&lower) || is_nothing(&upper);
        let whole = |end: Option<(Vec<u8>, bool)>| end.filter(|(key, _)| !key.is_empty());
        let (lower, upper) = (whole(lower), whole(upper));
        debug_assert!(
            lower.is_none() || upper.is_none() || lower == upper,
            "a walk has one open end, or is of one key"
        );
        let index = reading.index.unwrap_or(IndexId::CLUSTERED.0);
        (!is_empty).then_some(KeyWalk { index, lower, upper, backward })
    }

    /// Notes where a reading stopped: at the row that it took last, or behind all rows that it could take.
    ///
    /// # Errors
    /// A damaged record.
    pub fn stopped(&mut self, reading: Reading, last: Option<RowBuf>) -> Result<()> {
        let Reading { index, step, key } = reading;
        let (key, side) = match (last, step) {
            (Some(row), _) => (self.key_of(index, row)?, Side::At),
            (None, Step::Key(HandlerKeyOp::Eq)) => (key, Side::After),
            (None, Step::First | Step::Next | Step::Key(HandlerKeyOp::Gt | HandlerKeyOp::GtEq)) => {
                (Vec::new(), Side::After)
            }
            (None, Step::Last | Step::Prev | Step::Key(HandlerKeyOp::Lt | HandlerKeyOp::LtEq)) => {
                (Vec::new(), Side::Before)
            }
        };
        self.place = Some(Place { index, key, side });
        Ok(())
    }

    /// The key of a row's entry.
    fn key_of(&self, index: Option<u32>, row: RowBuf) -> Result<Vec<u8>> {
        let index = index.filter(|id| *id != IndexId::CLUSTERED.0);
        let Some(definition) = index.and_then(|id| self.definition(id)) else {
            return Ok(row.locator);
        };
        let columns = &self.table.definition.columns;
        let layout = self.table.definition.layout();
        let damaged = || Error::internal("a stored record does not fit its table");
        let mut key = Vec::new();
        for part in &definition.parts {
            let column = columns.get(part.column).ok_or_else(damaged)?;
            let stored = layout.decode_column(&row.record, part.column).map_err(|_| damaged())?;
            let missing = || column.instant_default.clone().unwrap_or(Value::Null);
            let value = stored.unwrap_or_else(missing);
            encode_part(&value, &column.ty, part.prefix_length, part.descending, &mut key);
        }
        debug_assert!(!row.locator.is_empty(), "a row has a locator");
        key.extend_from_slice(&row.locator);
        Ok(key)
    }

    /// The query whose rows a READ returns. Without rows to walk it reads none.
    ///
    /// # Errors
    /// None that a client can cause.
    pub fn query(
        &self,
        filter: Option<&Expr>,
        limit: Option<&Limit>,
        has_rows: bool,
    ) -> Result<Statement> {
        let text = if has_rows { "SELECT * FROM t LIMIT 1" } else { "SELECT * FROM t LIMIT 0" };
        let template = || Error::internal("HANDLER's query is not as expected");
        let parsed = syntax::parse_one(text, &ParseOptions::default());
        let (mut statement, _) = parsed.map_err(|_| template())?;
        let Statement::Query(query) = &mut statement else { return Err(template()) };
        let Query { body: SetExpr::Select(select), limit: own_limit, .. } = &mut **query else {
            return Err(template());
        };
        let Some(TableFactor::Table(table)) = select.from.first_mut() else {
            return Err(template());
        };
        table.name =
            ObjectName { schema: Some(Ident::new(&self.schema)), name: Ident::new(&self.name) };
        table.alias = Some(Ident::new(&self.alias));
        select.filter = filter.cloned();
        if let Some(limit) = limit.filter(|_| has_rows) {
            *own_limit = Some(limit.clone());
        }
        Ok(statement)
    }
}

/// A value of a key as its column stores it. A date that is none is no key.
fn fit(
    value: &Value,
    from: &DataType,
    to: &DataType,
    context: &mut CastContext<'_>,
) -> Result<Value> {
    if value.is_null() {
        return Ok(Value::Null);
    }
    let mut silent = Diagnostics::new(1);
    let mut context = CastContext {
        sql_mode: context.sql_mode,
        diagnostics: &mut silent,
        time_zone: context.time_zone,
        today: context.today,
        column: "",
        row: 1,
    };
    let fitted = types::store(value, from, to, &mut context, StoreMode::Lenient)?;
    if to.is_temporal() && silent.warning_count() > 0 {
        bail!(WRONG_ARGUMENTS, "HANDLER ... READ");
    }
    Ok(fitted)
}

/// Makes the query of a READ walk an index.
///
/// # Errors
/// 1235 for a query of more than the one table.
pub fn walk_only(plan: &mut LogicalPlan, walk: Option<KeyWalk>) -> Result<()> {
    match &mut plan.instances[..] {
        [instance] if plan.subqueries.is_empty() => {
            instance.walk = walk.map(Arc::new);
            Ok(())
        }
        _ => Err(Error::not_supported("subqueries in HANDLER")),
    }
}
