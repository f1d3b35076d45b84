//! Stored routines, their parameters and libraries, triggers and events.

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, ParameterView, RoutineView, SchemaView};
use types::{DataType, DateTime, TypeKind, Value};

use crate::columns::{has_character_set, lengths, numeric_size};
use crate::row::{Emit, catalog, optional, optional_number, time, yes_no};

fn visit(
    ctx: &dyn InformationContext,
    visit: &mut dyn FnMut(&RoutineView) -> Result<()>,
) -> Result<()> {
    for SchemaView { name: schema, .. } in ctx.schemas() {
        ctx.check_cancelled()?;
        ctx.routines(&schema).iter().try_for_each(&mut *visit)?;
    }
    Ok(())
}

/// `ROUTINES`.
pub fn routines(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    visit(ctx, &mut |routine| {
        let mut row = vec![
            Value::text(&routine.name),
            catalog(),
            Value::text(&routine.schema),
            Value::text(&routine.name),
            Value::text(routine.kind),
        ];
        match &routine.returns {
            Some(returns) => {
                row.extend(described(&returns.ty, &returns.type_text));
                row.push(Value::text(&returns.type_text));
            }
            // Procedures return nothing.
            None => {
                row.push(Value::text(""));
                row.resize(row.len() + 8, Value::Null);
            }
        }
        row.extend([
            Value::text(if routine.language == "SQL" { "SQL" } else { "EXTERNAL" }),
            optional(routine.body.as_deref()),
            Value::Null,
            Value::text(&routine.language),
            Value::text("SQL"),
            yes_no(routine.deterministic),
            Value::text(&routine.data_access),
            Value::Null,
            Value::text(routine.security),
            time(routine.created_micros),
            time(routine.altered_micros),
            Value::text(&routine.sql_mode),
            Value::text(&routine.comment),
            Value::text(&routine.definer),
            Value::text(&routine.session_charset),
            Value::text(&routine.session_collation),
            Value::text(&routine.database_collation),
        ]);
        emit(&row)
    })
}

/// `LIBRARIES`.
pub fn libraries(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for SchemaView { name: schema, .. } in ctx.schemas() {
        ctx.check_cancelled()?;
        for library in ctx.libraries(&schema) {
            emit(&[
                catalog(),
                Value::text(&library.schema),
                Value::text(&library.name),
                optional(library.body.as_deref()),
                Value::text(&library.language),
                time(library.created_micros),
                time(library.altered_micros),
                Value::text(&library.sql_mode),
                Value::text(&library.comment),
                Value::text(&library.definer),
            ])?;
        }
    }
    Ok(())
}

/// `ROUTINE_LIBRARIES`.
pub fn routine_libraries(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    visit(ctx, &mut |routine| {
        routine.libraries.iter().try_for_each(|(schema, name)| {
            emit(&[
                catalog(),
                Value::text(&routine.schema),
                Value::text(&routine.name),
                Value::text(routine.kind),
                catalog(),
                Value::text(schema),
                Value::text(name),
                Value::Null,
            ])
        })
    })
}

/// `TRIGGERS`.
pub fn triggers(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for SchemaView { name: schema, .. } in ctx.schemas() {
        ctx.check_cancelled()?;
        for trigger in ctx.triggers(&schema) {
            emit(&[
                catalog(),
                Value::text(&trigger.schema),
                Value::text(&trigger.name),
                Value::text(trigger.event),
                catalog(),
                Value::text(&trigger.schema),
                Value::text(&trigger.table),
                Value::UInt(trigger.order),
                Value::Null,
                Value::text(&trigger.body),
                Value::text("ROW"),
                Value::text(trigger.timing),
                Value::Null,
                Value::Null,
                Value::text("OLD"),
                Value::text("NEW"),
                time(trigger.created_micros - trigger.created_micros.rem_euclid(10_000)),
                Value::text(&trigger.sql_mode),
                Value::text(&trigger.definer),
                Value::text(&trigger.session_charset),
                Value::text(&trigger.session_collation),
                Value::text(&trigger.database_collation),
            ])?;
        }
    }
    Ok(())
}

/// `EVENTS`.
pub fn events(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    let datetime = |at: Option<DateTime>| at.map_or(Value::Null, Value::DateTime);
    for SchemaView { name: schema, .. } in ctx.schemas() {
        ctx.check_cancelled()?;
        for event in ctx.events(&schema) {
            let (value, unit) = match &event.interval {
                Some(interval) => (Value::text(&interval.value), Value::text(&interval.unit)),
                None => (Value::Null, Value::Null),
            };
            emit(&[
                catalog(),
                Value::text(&event.schema),
                Value::text(&event.name),
                Value::text(&event.definer),
                Value::text(&event.time_zone),
                Value::text("SQL"),
                Value::text(&event.body),
                Value::text(if event.interval.is_some() { "RECURRING" } else { "ONE TIME" }),
                datetime(event.execute_at),
                value,
                unit,
                Value::text(&event.sql_mode),
                datetime(event.starts),
                datetime(event.ends),
                Value::text(event.status),
                Value::text(if event.preserve { "PRESERVE" } else { "NOT PRESERVE" }),
                time(event.created_micros),
                time(event.altered_micros),
                datetime(event.executed),
                Value::text(&event.comment),
                Value::UInt(1),
                Value::text(&event.session_charset),
                Value::text(&event.session_collation),
                Value::text(&event.database_collation),
            ])?;
        }
    }
    Ok(())
}

/// `PARAMETERS`.
pub fn parameters(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    visit(ctx, &mut |routine| {
        if let Some(returns) = &routine.returns {
            emit(&parameter_row(routine, 0, returns))?;
        }
        for (position, parameter) in routine.parameters.iter().enumerate() {
            emit(&parameter_row(routine, position as u64 + 1, parameter))?;
        }
        Ok(())
    })
}

/// A parameter, or at position 0 a function's return value, which has no name.
fn parameter_row(routine: &RoutineView, position: u64, parameter: &ParameterView) -> Vec<Value> {
    let named = |text: &str| if position == 0 { Value::Null } else { Value::text(text) };
    let mut row = vec![
        catalog(),
        Value::text(&routine.schema),
        Value::text(&routine.name),
        Value::UInt(position),
        named(&parameter.mode),
        named(&parameter.name),
    ];
    row.extend(described(&parameter.ty, &parameter.type_text));
    row.extend([Value::text(&parameter.type_text), Value::text(routine.kind)]);
    row
}

/// DATA_TYPE to COLLATION_NAME.
fn described(ty: &DataType, text: &str) -> [Value; 8] {
    let collation = charset::collation(ty.collation).filter(|_| has_character_set(ty));
    let (characters, octets) = lengths(ty);
    let (precision, scale) = numeric_size(ty);
    let fraction = match ty.kind {
        TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp => Some(u64::from(ty.decimals)),
        _ => None,
    };
    [
        Value::text(text.split(['(', ' ']).next().unwrap_or_default()),
        characters.map_or(Value::Null, |length| Value::Int(length as i64)),
        octets.map_or(Value::Null, |length| Value::Int(length as i64)),
        optional_number(precision),
        scale.map_or(Value::Null, |scale| Value::Int(scale as i64)),
        optional_number(fraction),
        optional(collation.map(|collation| collation.charset.name)),
        optional(collation.map(|collation| collation.name)),
    ]
}
