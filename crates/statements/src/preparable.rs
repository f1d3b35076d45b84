//! Which statements may be prepared, and which of them take parameters, of which types.

use syntax::ast::{ShowKind, Statement};
use types::{CollationId, DataType, TypeKind, Value};

/// Whether a statement can be prepared (1295 when not).
pub fn is_preparable(statement: &Statement) -> bool {
    let reads_conditions = |kind: &ShowKind| {
        matches!(
            kind,
            ShowKind::Warnings(_)
                | ShowKind::WarningCount
                | ShowKind::Errors(_)
                | ShowKind::ErrorCount
        )
    };
    !matches!(statement, Statement::Show(show) if reads_conditions(&show.kind))
        && !matches!(
            statement,
            Statement::Prepare { .. }
                | Statement::Execute { .. }
                | Statement::ExecuteText { .. }
                | Statement::Deallocate(_)
                | Statement::LoadData(_)
                | Statement::LockTables(_)
                | Statement::UnlockTables
                | Statement::Handler(_)
                | Statement::Help(_)
                | Statement::Use(_)
                | Statement::Empty
                | Statement::Program(_)
                | Statement::Xa(_)
                | Statement::CreateTrigger(_)
                | Statement::CreateRoutine(_)
                | Statement::CreateEvent(_)
                | Statement::GetDiagnostics(_)
                | Statement::Signal(_)
                | Statement::LockInstance
                | Statement::UnlockInstance
                | Statement::ImportTable(_)
                | Statement::Server(_)
                | Statement::DropServer { .. }
                | Statement::ResourceGroup(_)
                | Statement::CreateSpatialReferenceSystem(_)
                | Statement::DropSpatialReferenceSystem { .. }
                | Statement::Tablespace(_)
                | Statement::AlterRoutine(_)
                | Statement::DropRoutine(_)
                | Statement::DropTrigger(_)
        )
}

/// Whether a statement shows an account or a program, which is no view of a table.
pub fn is_shown_directly(statement: &Statement) -> bool {
    let Statement::Show(show) = statement else { return false };
    matches!(
        show.kind,
        ShowKind::Grants { .. }
            | ShowKind::CreateProcedure(_)
            | ShowKind::CreateFunction(_)
            | ShowKind::CreateTrigger(_)
            | ShowKind::CreateEvent(_)
            | ShowKind::CreateLibrary(_)
            | ShowKind::CreateUser(_)
    )
}

/// Whether values may be given to a statement: not to a definition, which would keep the `?` (6413 when not).
pub fn takes_parameters(statement: &Statement) -> bool {
    match statement {
        Statement::CreateTable(create) => create.query.is_some(),
        statement => matches!(
            statement,
            Statement::Query(_)
                | Statement::Insert(_)
                | Statement::Update(_)
                | Statement::Delete(_)
                | Statement::Do(_)
                | Statement::Call(_)
                | Statement::Set(_)
                | Statement::Explain(_)
                | Statement::Profile(_)
                | Statement::Show(_)
        ),
    }
}

/// The type that a parameter's value has by itself.
pub fn type_of_value(value: &Value, collation: CollationId) -> DataType {
    match value {
        // A NULL has no type; as text it fits everywhere.
        Value::Null => DataType::null(),
        Value::Int(_) => DataType::bigint(),
        Value::UInt(_) => DataType::bigint_unsigned(),
        Value::Double(_) => DataType::double(),
        Value::Decimal(number) => {
            DataType::decimal(number.precision().clamp(1, 65), number.scale().min(30))
        }
        Value::Bytes(bytes) => {
            // Rounded up, so that texts of about one size share a plan.
            let chars = (bytes.len().max(1) as u32).next_power_of_two().max(64);
            match chars {
                0..=16_383 => DataType::varchar(chars, collation),
                _ => DataType { collation, ..DataType::new(TypeKind::LongText, u32::MAX, 0) },
            }
        }
        Value::Date(_) => DataType::new(TypeKind::Date, 10, 0),
        Value::Time(_) => DataType::new(TypeKind::Time, 17, 6),
        Value::DateTime(_) => DataType::new(TypeKind::DateTime, 26, 6),
        Value::Json(_) => DataType::new(TypeKind::Json, u32::MAX, 0),
    }
}

/// The value that a variable of EXECUTE .. USING gets from an OUT parameter: a number, or the bytes of its text.
pub fn given_back(value: Value, ty: DataType) -> (Value, DataType) {
    if ty.is_numeric() || ty.kind == TypeKind::Bit {
        return (value, ty);
    }
    let bytes = DataType {
        collation: CollationId::BINARY,
        ..DataType::new(TypeKind::LongBlob, u32::MAX, 0)
    };
    if matches!(value, Value::Null | Value::Bytes(_)) {
        return (value, bytes);
    }
    let mut text = Vec::new();
    types::to_text(&value, &ty, &mut text);
    (Value::Bytes(text.as_slice().into()), bytes)
}
