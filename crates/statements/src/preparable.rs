//! Which statements may be prepared, and which of them take parameters.

use syntax::ast::{ShowKind, Statement};

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
