//! Making a row: conversion to column types, defaults, NOT NULL, generated columns, CHECK, the record.

use errors::{Error, ErrorCode, Level, Result};
use rows::convert::{self, Target, implicit_default};
use types::{DataType, StoreMode, TypeKind, Value, to_text};

use super::elements::array;
use super::table::{StoreCode, WriteColumn, WriteTable};
use crate::run::Run;

/// How strictly a statement writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Strictness {
    pub(crate) mode: StoreMode,
    /// NULL for a NOT NULL column is an error even when `mode` is lenient (INSERT of a single row).
    pub(crate) null_is_error: bool,
}

impl Strictness {
    pub(crate) fn of(run: &Run<'_>, ignore: bool) -> Strictness {
        let strict = run.function.sql_mode.is_strict() && !ignore;
        Strictness {
            mode: if strict { StoreMode::Strict } else { StoreMode::Lenient },
            null_is_error: strict,
        }
    }
}

/// A value of type `from` in the form of the column.
pub(crate) fn store(
    value: &Value,
    from: &DataType,
    is_utc: bool,
    column: &WriteColumn,
    row: u64,
    mode: StoreMode,
    run: &mut Run<'_>,
) -> Result<Value> {
    let target = Target { name: &column.target, ty: &column.ty, row, mode };
    if is_utc {
        let zone = std::mem::replace(&mut run.function.time_zone, &types::temporal::Utc);
        let stored = convert::store(value, from, &target, &mut run.function);
        run.function.time_zone = zone;
        return stored;
    }
    convert::store(value, from, &target, &mut run.function)
}

/// Evaluates an expression and converts it for a column.
pub(crate) fn evaluate(
    code: &StoreCode,
    column: &WriteColumn,
    row: u64,
    mode: StoreMode,
    run: &mut Run<'_>,
) -> Result<Value> {
    if let Some(value) = code.code.leaf(run) {
        // A plain integer for a wide column needs neither a copy nor a conversion.
        if let (Value::Int(number), TypeKind::BigInt, false) =
            (value, column.ty.kind, column.ty.unsigned)
        {
            return Ok(Value::Int(*number));
        }
    }
    let value = code.code.eval(run)?;
    store(&value, &code.from, code.is_utc, column, row, mode, run)
}

/// The value of a generated column.
pub(crate) fn computed(
    generated: &StoreCode,
    column: &WriteColumn,
    row: u64,
    mode: StoreMode,
    run: &mut Run<'_>,
) -> Result<Value> {
    match &column.elements {
        Some(elements) => array(generated, elements, row, mode, run),
        None => evaluate(generated, column, row, mode, run),
    }
}

/// DEFAULT of a column; 1364 without a default.
pub(crate) fn default_value(
    column: &WriteColumn,
    row: u64,
    strictness: Strictness,
    run: &mut Run<'_>,
) -> Result<Value> {
    if let Some(default) = &column.default {
        return evaluate(default, column, row, strictness.mode, run);
    }
    if column.ty.kind == TypeKind::Enum {
        // An ENUM always has a first value.
        return Ok(if column.ty.nullable { Value::Null } else { implicit_default(&column.ty) });
    }
    let error = match &column.view {
        Some((schema, view)) => Error::with(ErrorCode::NO_DEFAULT_FOR_VIEW_FIELD, &[schema, view]),
        None => Error::with(ErrorCode::NO_DEFAULT_FOR_FIELD, &[&column.name]),
    };
    match strictness.mode {
        StoreMode::Strict => Err(error),
        // A geometry has no implicit default.
        StoreMode::Lenient if column.ty.kind == TypeKind::Geometry => Err(error),
        StoreMode::Lenient => {
            run.function.diagnostics.push_error(Level::Warning, &error);
            Ok(implicit_default(&column.ty))
        }
    }
}

/// NOT NULL: the value itself, an error, or the implicit default.
pub(crate) fn not_null(
    value: Value,
    column: &WriteColumn,
    strictness: Strictness,
    run: &mut Run<'_>,
) -> Result<Value> {
    if !value.is_null() || column.ty.nullable {
        return Ok(value);
    }
    if column.ty.kind == TypeKind::Geometry {
        // A geometry has no implicit default.
        return Err(Error::with(ErrorCode::BAD_NULL_ERROR_NOT_IGNORED, &[&column.name]));
    }
    let is_timestamp = column.ty.kind == TypeKind::Timestamp && column.generated.is_none();
    if is_timestamp && run.env.settings.null_timestamp_is_now {
        return Ok(Value::DateTime(run.function.now.truncate_fsp(column.ty.decimals)));
    }
    let error = Error::with(ErrorCode::BAD_NULL_ERROR, &[&column.name]);
    if strictness.null_is_error {
        return Err(error);
    }
    run.function.diagnostics.push_error(Level::Warning, &error);
    Ok(implicit_default(&column.ty))
}

impl WriteTable {
    /// Whether an index begins with the AUTO_INCREMENT column.
    pub(super) fn is_numbered_by(&self, index: engine_api::IndexId) -> bool {
        let first =
            |(id, _, columns): &(_, _, Vec<_>)| (*id == index).then(|| columns.first().copied());
        self.indexes.iter().find_map(first) == Some(self.auto_increment)
    }

    /// Computes the generated columns, in order.
    pub(crate) fn generate(
        &self,
        row: u64,
        strictness: Strictness,
        run: &mut Run<'_>,
    ) -> Result<()> {
        for column in &self.virtuals {
            if let Some(generated) = &column.generated {
                let value = evaluate(generated, column, row, strictness.mode, run)?;
                not_null(value, column, strictness, run)?;
            }
        }
        if !self.has_generated {
            return Ok(());
        }
        for column in &self.columns {
            if let Some(generated) = &column.generated {
                let value = computed(generated, column, row, strictness.mode, run)?;
                run.regs[column.register] = not_null(value, column, strictness, run)?;
            }
        }
        if let Some(of) = &self.partitions {
            let [end, at] = [of.end, of.number].map(|place| self.columns[place].register);
            let known = (run.regs[end].clone(), run.regs[at].clone());
            run.regs[at] =
                super::system_partitions::number((of, self.engine), (&known.0, &known.1), run)?;
        }
        Ok(())
    }

    /// CHECK constraints: violated when false, not when NULL. Views show a row only when their condition is true.
    pub(crate) fn check(&self, run: &mut Run<'_>) -> Result<()> {
        for (name, predicate) in &self.checks {
            if predicate.eval(run)? == Some(false) {
                return Err(Error::with(ErrorCode::CHECK_CONSTRAINT_VIOLATED, &[name]));
            }
        }
        if let Some(selected) = &self.selected
            && selected.eval(run)? != Some(true)
        {
            return Err(Error::with(ErrorCode::ROW_DOES_NOT_MATCH_GIVEN_PARTITION_SET, &[]));
        }
        for (schema, view, predicate) in &self.view_checks {
            if predicate.eval(run)? != Some(true) {
                return Err(Error::with(ErrorCode::VIEW_CHECK_FAILED, &[schema, view]));
            }
        }
        Ok(())
    }

    /// Whether foreign keys, history or a portion read the values of a written row.
    pub(crate) fn needs_values(&self) -> bool {
        self.needs_values
    }

    /// The values of the row in the registers, where foreign keys and history read them.
    pub(crate) fn values_for_keys(&self, values: &mut Vec<Value>, run: &Run<'_>) {
        values.clear();
        if self.needs_values() {
            values.extend(self.columns.iter().map(|column| run.regs[column.register].clone()));
        }
    }

    /// The row in the registers as a record; its values too, for foreign keys and history.
    pub(crate) fn encode(
        &self,
        values: &mut Vec<Value>,
        record: &mut Vec<u8>,
        run: &Run<'_>,
    ) -> Result<()> {
        self.values_for_keys(values, run);
        record.clear();
        let value_of = |at: usize| &run.regs[self.columns[at].register];
        self.layout.encode_from(self.columns.len(), value_of, record)
    }

    /// Loads a record into the registers.
    pub(crate) fn load(&self, record: &[u8], run: &mut Run<'_>) -> Result<()> {
        for (at, column) in self.columns.iter().enumerate() {
            run.regs[column.register] = self.layout.decode(record, at)?;
        }
        Ok(())
    }

    /// Error 1062 for the row in the registers.
    #[cold]
    pub(crate) fn duplicate(&self, index: engine_api::IndexId, run: &Run<'_>) -> Error {
        let found = self.indexes.iter().find(|(id, _, _)| *id == index);
        let Some((_, name, columns)) = found else {
            return Error::with(ErrorCode::DUP_KEY, &[&""]);
        };
        let mut text = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            if at > 0 {
                text.push(b'-');
            }
            let Some(column) = self.columns.get(*column) else { continue };
            match &run.regs[column.register] {
                Value::Null => text.extend_from_slice(b"NULL"),
                Value::DateTime(timestamp) if column.ty.kind == TypeKind::Timestamp => {
                    let local = convert::to_local(*timestamp, run.function.time_zone);
                    to_text(&Value::DateTime(local), &column.ty, &mut text);
                }
                value => {
                    let start = text.len();
                    to_text(value, &column.ty, &mut text);
                    let shown = column.elements.as_ref().and_then(|own| own.shown_bytes);
                    text.truncate(start + shown.unwrap_or(text.len()));
                }
            }
        }
        let text = String::from_utf8_lossy(&text);
        Error::with(ErrorCode::DUP_ENTRY, &[&text, name])
    }
}
