//! The parts of a write to a table's rows: defaults, generated columns, checks, foreign keys.

use std::sync::Arc;

use catalog::{
    ColumnDefault, ColumnHistory, ForeignKey, ReferenceAction, Relation, Table, TriggerEvent, never,
};
use errors::{Result, bail};
use plan::{
    Expr, ForeignKeyAction, ForeignKeyCheck, Register, TableWrite, Triggers, WrittenColumn,
    WrittenElements,
};
use types::{DataType, FunctionRole, TypeKind, Value};

use crate::binder::Binder;
use crate::portion::{overlap_checks, period_check};
use crate::reader::StoredProgram;

/// Cascades go no deeper than this.
const CASCADE_DEPTH_MAX: usize = 15;

/// The statement's operation on the table, which decides the foreign keys to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WriteKind {
    Insert,
    Update,
    Delete,
    /// What a foreign key does to the rows of a child.
    Cascade,
    /// REPLACE, ON DUPLICATE KEY UPDATE.
    InsertOrChange,
    /// DELETE HISTORY: no trigger fires, no row of another table depends on the row, and nothing of it is kept.
    Erase,
}

impl Binder<'_> {
    /// Describes `table` for writing; column `i` of the catalog's table has register `base + i`.
    pub(crate) fn table_write(
        &mut self,
        table: &Arc<Table>,
        base: Register,
        kind: WriteKind,
    ) -> Result<TableWrite> {
        let mut write = self.table_write_at(table, base, kind, 0, &mut Vec::new())?;
        self.add_triggers(&mut write, table, base, kind)?;
        Ok(write)
    }

    fn add_triggers(
        &mut self,
        write: &mut TableWrite,
        table: &Arc<Table>,
        base: Register,
        kind: WriteKind,
    ) -> Result<()> {
        write.triggers = self.triggers_of(table, kind);
        if write.triggers.is_some() && write.virtuals.is_empty() {
            write.virtuals = self.virtual_columns(table, base)?;
        }
        Ok(())
    }

    /// # Errors
    /// 3989 for a schema that is READ ONLY.
    pub(crate) fn check_schema_writable(&self, schema: &str) -> Result<()> {
        if self.input.catalog.is_read_only(schema) {
            bail!(SCHEMA_READ_ONLY, schema);
        }
        Ok(())
    }

    /// Whether rows go to a binary log, which wants all columns. A server decides that when it starts.
    fn logs_rows(&self) -> bool {
        self.input.registry.binary_log().is_some_and(|log| log.is_active())
    }

    /// The triggers that a write of this kind can fire.
    fn triggers_of(&mut self, table: &Arc<Table>, kind: WriteKind) -> Option<Box<Triggers>> {
        if table.temporary || kind == WriteKind::Erase {
            return None;
        }
        let is_fired = |event: TriggerEvent| match kind {
            WriteKind::Insert => event == TriggerEvent::Insert,
            WriteKind::Update => event == TriggerEvent::Update,
            WriteKind::Delete => event == TriggerEvent::Delete,
            WriteKind::Cascade => event != TriggerEvent::Insert,
            WriteKind::InsertOrChange => true,
            WriteKind::Erase => false,
        };
        let mut found: Option<Box<Triggers>> = None;
        for trigger in self.input.catalog.triggers(table) {
            if !is_fired(trigger.event) {
                continue;
            }
            let number = self.programs.len() as u32;
            let all = found.get_or_insert_default();
            match (trigger.event, trigger.before) {
                (TriggerEvent::Insert, true) => all.before_insert.push(number),
                (TriggerEvent::Insert, false) => all.after_insert.push(number),
                (TriggerEvent::Update, true) => all.before_update.push(number),
                (TriggerEvent::Update, false) => all.after_update.push(number),
                (TriggerEvent::Delete, true) => all.before_delete.push(number),
                (TriggerEvent::Delete, false) => all.after_delete.push(number),
            }
            self.programs.push(StoredProgram::Trigger(trigger, table.clone()));
        }
        found
    }

    fn virtual_columns(
        &mut self,
        table: &Arc<Table>,
        base: Register,
    ) -> Result<Vec<WrittenColumn>> {
        let mut virtuals = Vec::new();
        for (index, column) in table.columns.iter().enumerate() {
            if column.stored.is_none() && column.generated.is_some() {
                virtuals.push(self.written_column(table, base, index)?);
            }
        }
        Ok(virtuals)
    }

    fn table_write_at(
        &mut self,
        table: &Arc<Table>,
        base: Register,
        kind: WriteKind,
        depth: usize,
        described: &mut Vec<u64>,
    ) -> Result<TableWrite> {
        self.table_index(table);
        if !table.temporary {
            self.check_schema_writable(&table.schema)?;
        }
        if table.is_sequence() && !matches!(kind, WriteKind::Insert) {
            bail!(ILLEGAL_HA, table.name);
        }
        let mut write = self.plain_write(table, base)?;
        let is_logged = self.logs_rows() && !table.temporary;
        if is_logged || matches!(kind, WriteKind::Insert | WriteKind::InsertOrChange) {
            write.virtuals = self.virtual_columns(table, base)?;
        }
        if kind == WriteKind::Erase {
            write.history = None;
            return Ok(write);
        }
        if kind != WriteKind::Delete {
            for key in &table.foreign_keys {
                if let Some(check) = self.parent_check(table, key)? {
                    write.parents.push(check);
                }
            }
        }
        if kind != WriteKind::Insert {
            write.children = self.child_checks(table, depth, described)?;
        }
        Ok(write)
    }

    fn plain_write(&mut self, table: &Arc<Table>, base: Register) -> Result<TableWrite> {
        let mut stored: Vec<(usize, usize)> = table
            .columns
            .iter()
            .enumerate()
            .filter_map(|(index, column)| column.stored.map(|stored| (stored, index)))
            .collect();
        stored.sort_unstable();
        let mut columns = Vec::with_capacity(stored.len());
        for (_, index) in &stored {
            columns.push(self.written_column(table, base, *index)?);
        }
        let mut checks = Vec::new();
        for check in table.checks.iter().filter(|check| check.enforced) {
            let predicate = self.bind_text_over(&check.expression, table, base)?;
            checks.push((check.name.clone(), predicate));
        }
        checks.extend(period_check(table, base));
        let number = stored.iter().zip(&columns);
        let mut number = number.filter(|((_, at), _)| Some(*at) == table.partition_column());
        let number = number.next().and_then(|(_, column)| column.generated.as_ref());
        let overlaps = overlap_checks(table, base, number);
        let position = |column: usize| table.columns[column].stored;
        let indexes = table
            .indexes
            .iter()
            .map(|index| {
                let parts = index.parts.iter().filter_map(|part| position(part.column)).collect();
                let name = Arc::from(format!("{}.{}", table.name, index.name));
                (index.id.0, name, parts)
            })
            .collect();
        let fulltext: Vec<_> =
            table.fulltext.iter().map(|index| crate::fulltext_write(table, index)).collect();
        Ok(TableWrite {
            table: table.id.0,
            engine: table.engine.clone(),
            schema: table.schema.clone(),
            name: table.name.clone(),
            columns,
            checks,
            virtuals: Vec::new(),
            view_checks: Vec::new(),
            selected: None,
            view: None,
            triggers: None,
            key: if fulltext.is_empty() { Vec::new() } else { crate::key_columns(table) },
            fulltext,
            indexes,
            last_unique: table.indexes.iter().rfind(|index| index.unique).map(|index| index.id.0),
            parents: Vec::new(),
            children: Vec::new(),
            history: self.history_write(table),
            partitions: self.system_partitions(table),
            overlaps,
            portion: None,
        })
    }

    fn written_column(
        &mut self,
        table: &Arc<Table>,
        base: Register,
        index: usize,
    ) -> Result<WrittenColumn> {
        let column = &table.columns[index];
        let default = self.column_default(table, base, index)?;
        let stored = column.stored.and_then(|stored| table.definition.columns.get(stored));
        let missing = stored.and_then(|stored| stored.instant_default.clone());
        let missing = missing.unwrap_or(Value::Null);
        let on_update_now = match column.on_update_now {
            Some(digits) => Some(self.now(digits)?),
            None => None,
        };
        let generated = match &column.generated {
            // An update need not look at it.
            Some(_) if column.is_vacant() => None,
            Some(generated) => Some(self.bind_text_over(&generated.expression, table, base)?),
            None => None,
        };
        Ok(WrittenColumn {
            name: column.name.clone(),
            ty: column.ty.clone(),
            register: Register(base.0 + index as u32),
            default,
            missing,
            auto_increment: column.auto_increment,
            on_update_now,
            generated,
            elements: written_elements(table, index),
        })
    }

    /// The value of DEFAULT; `None` for a column without one.
    pub(crate) fn column_default(
        &mut self,
        table: &Arc<Table>,
        base: Register,
        index: usize,
    ) -> Result<Option<Expr>> {
        let column = &table.columns[index];
        match column.history {
            ColumnHistory::RowStart { .. } => return self.now(column.ty.decimals).map(Some),
            ColumnHistory::RowEnd { .. } => {
                return Ok(Some(Expr::literal(never(), column.ty.clone())));
            }
            ColumnHistory::Kept | ColumnHistory::NotKept => {}
        }
        Ok(match &column.default {
            ColumnDefault::None => None,
            ColumnDefault::Constant(value) => {
                let ty = column.ty.clone().with_nullable(value.is_null());
                Some(Expr::literal(value.clone(), ty))
            }
            ColumnDefault::Now(digits) => Some(self.now(*digits)?),
            ColumnDefault::Expression(text) => {
                let before = self.drawn.len();
                let bound = self.bind_text_over(text, table, base)?;
                self.drawn_by_defaults.extend_from_slice(&self.drawn[before..]);
                Some(bound)
            }
        })
    }

    fn now(&mut self, digits: u8) -> Result<Expr> {
        let args =
            if digits == 0 { vec![] } else { vec![crate::literal::integer(u64::from(digits))] };
        self.function(FunctionRole::Now, args)
    }

    // --- foreign keys

    fn parent_check(
        &mut self,
        table: &Arc<Table>,
        key: &ForeignKey,
    ) -> Result<Option<ForeignKeyCheck>> {
        let parent = self.input.catalog.relation(&key.referenced_schema, &key.referenced_table);
        let Some(Relation::Table(parent)) = parent else {
            // Without a parent no row can be valid: an empty check reports it at run time.
            return Ok(Some(self.orphan_check(table, key)));
        };
        crate::partitions::refuse_discarded(&parent, &[])?;
        let base = self.new_registers(parent.columns.len());
        self.table_index(&parent);
        let other = self.plain_write(&parent, base)?;
        let Some((columns, other_columns, index)) = matched(table, &parent, key, Side::Parent)
        else {
            return Ok(None);
        };
        Ok(Some(ForeignKeyCheck {
            name: key.name.clone(),
            text: foreign_key_text(table, key),
            other: Arc::new(other),
            columns,
            other_columns,
            other_index: index,
            only_current: parent.ends_with_time(index, key.columns.len()),
            on_update: action(key.on_update),
            on_delete: action(key.on_delete),
        }))
    }

    /// A check against a table that does not exist: `other.table` is 0.
    fn orphan_check(&self, table: &Arc<Table>, key: &ForeignKey) -> ForeignKeyCheck {
        let columns = key.columns.iter().filter_map(|c| table.columns[*c].stored).collect();
        ForeignKeyCheck {
            name: key.name.clone(),
            text: foreign_key_text(table, key),
            other: Arc::new(TableWrite {
                table: 0,
                engine: table.engine.clone(),
                schema: key.referenced_schema.clone(),
                name: key.referenced_table.clone(),
                columns: Vec::new(),
                checks: Vec::new(),
                virtuals: Vec::new(),
                view_checks: Vec::new(),
                selected: None,
                view: None,
                triggers: None,
                fulltext: Vec::new(),
                key: Vec::new(),
                indexes: Vec::new(),
                last_unique: None,
                parents: Vec::new(),
                children: Vec::new(),
                history: None,
                partitions: None,
                overlaps: Vec::new(),
                portion: None,
            }),
            columns,
            other_columns: Vec::new(),
            other_index: 0,
            only_current: false,
            on_update: action(key.on_update),
            on_delete: action(key.on_delete),
        }
    }

    fn child_checks(
        &mut self,
        table: &Arc<Table>,
        depth: usize,
        described: &mut Vec<u64>,
    ) -> Result<Vec<ForeignKeyCheck>> {
        let mut checks = Vec::new();
        for (child, position) in self.input.catalog.referencing_keys(&table.schema, &table.name) {
            let key = child.foreign_keys[position].clone();
            let Some((other_columns, columns, index)) = matched(&child, table, &key, Side::Child)
            else {
                continue;
            };
            let base = self.new_registers(child.columns.len());
            // Each table is described once with its own foreign keys; where it occurs again exec uses that description, by
            // table id. So a chain that returns to its start has one as well.
            let other = if described.contains(&child.id.0) || depth >= CASCADE_DEPTH_MAX {
                self.table_index(&child);
                let mut write = self.plain_write(&child, base)?;
                if self.logs_rows() {
                    write.virtuals = self.virtual_columns(&child, base)?;
                }
                write
            } else {
                described.push(child.id.0);
                let kind = WriteKind::Cascade;
                let mut write = self.table_write_at(&child, base, kind, depth + 1, described)?;
                if self.input.bind.cascades_fire_triggers {
                    self.add_triggers(&mut write, &child, base, kind)?;
                }
                write
            };
            checks.push(ForeignKeyCheck {
                name: key.name.clone(),
                text: foreign_key_text(&child, &key),
                other: Arc::new(other),
                columns,
                other_columns,
                other_index: index,
                only_current: child.ends_with_time(index, key.columns.len()),
                on_update: action(key.on_update),
                on_delete: action(key.on_delete),
            });
        }
        Ok(checks)
    }
}

/// The side on which the other table's index is searched.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Parent,
    Child,
}

/// Stored positions of the key's columns in child and parent, and the index of the looked-up side that starts with them.
fn matched(
    child: &Table,
    parent: &Table,
    key: &ForeignKey,
    looked_up: Side,
) -> Option<(Vec<usize>, Vec<usize>, u32)> {
    let referenced: Vec<usize> =
        key.referenced_columns.iter().map(|name| parent.column(name)).collect::<Option<_>>()?;
    let (side, wanted): (&Table, &[usize]) = match looked_up {
        Side::Parent => (parent, &referenced),
        Side::Child => (child, &key.columns),
    };
    // The index may have the columns in another order: then all lists follow it.
    let whole_rows = side.indexes.iter().filter(|index| !side.is_multi_valued(index));
    let (index, order) = whole_rows.into_iter().find_map(|index| {
        let parts = index.parts.get(..wanted.len())?;
        let order: Vec<usize> = parts
            .iter()
            .map(|part| wanted.iter().position(|column| *column == part.column))
            .collect::<Option<_>>()?;
        let whole = parts.iter().all(|part| part.prefix_length.is_none());
        whole.then_some((index.id.0, order))
    })?;
    let pick = |table: &Table, columns: &[usize]| -> Option<Vec<usize>> {
        order.iter().map(|at| table.columns[columns[*at]].stored).collect()
    };
    Some((pick(child, &key.columns)?, pick(parent, &referenced)?, index))
}

fn action(action: ReferenceAction) -> ForeignKeyAction {
    match action {
        ReferenceAction::NoAction => ForeignKeyAction::NoAction,
        ReferenceAction::Restrict => ForeignKeyAction::Restrict,
        ReferenceAction::Cascade => ForeignKeyAction::Cascade,
        ReferenceAction::SetNull => ForeignKeyAction::SetNull,
        ReferenceAction::SetDefault => ForeignKeyAction::SetDefault,
    }
}

fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// The constraint as errors 1451 and 1452 show it.
fn foreign_key_text(child: &Table, key: &ForeignKey) -> Arc<str> {
    let own: Vec<String> = key.columns.iter().map(|c| quoted(&child.columns[*c].name)).collect();
    let other: Vec<String> = key.referenced_columns.iter().map(|name| quoted(name)).collect();
    let target = if key.referenced_schema == child.schema {
        quoted(&key.referenced_table)
    } else {
        format!("{}.{}", quoted(&key.referenced_schema), quoted(&key.referenced_table))
    };
    let mut text = format!(
        "{}.{}, CONSTRAINT {} FOREIGN KEY ({}) REFERENCES {target} ({})",
        quoted(&child.schema),
        quoted(&child.name),
        quoted(&key.name),
        own.join(", "),
        other.join(", ")
    );
    for (clause, action) in [("ON DELETE", key.on_delete), ("ON UPDATE", key.on_update)] {
        let words = match action {
            ReferenceAction::NoAction | ReferenceAction::SetDefault => continue,
            ReferenceAction::Restrict => "RESTRICT",
            ReferenceAction::Cascade => "CASCADE",
            ReferenceAction::SetNull => "SET NULL",
        };
        text.push_str(&format!(" {clause} {words}"));
    }
    Arc::from(text)
}

/// What the array of a multi-valued index is made of; `None` for any other column.
fn written_elements(table: &Table, column: usize) -> Option<WrittenElements> {
    let ty = table.columns[column].elements()?;
    let has = |index: &&catalog::Index| index.parts.iter().any(|part| part.column == column);
    let name = table.indexes.iter().find(has).map_or(Arc::from(""), |index| index.name.clone());
    Some(WrittenElements { ty: ty.clone(), index: name, shown_bytes: shown_bytes(ty) })
}

/// The length of the reference's field for such an element, where error 1062 shows no more of the array than that.
fn shown_bytes(ty: &DataType) -> Option<usize> {
    /// The length of its field for an array, which a longer key does not shorten.
    const ARRAY_BYTES: u32 = 12;
    let fraction = u32::from(ty.decimals).div_ceil(2);
    // Four bytes for nine digits.
    let digits = |count: u32| count / 9 * 4 + (count % 9).div_ceil(2);
    let bytes = if ty.kind == TypeKind::Decimal {
        let scale = u32::from(ty.decimals);
        digits(ty.length.saturating_sub(scale)) + digits(scale)
    } else if ty.kind == TypeKind::DateTime {
        5 + fraction
    } else if ty.is_temporal() {
        3 + fraction
    } else if ty.is_string() {
        ty.length * if ty.is_binary() { 1 } else { 4 }
    } else {
        8
    };
    (bytes < ARRAY_BYTES).then_some(bytes as usize)
}
