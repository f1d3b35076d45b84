//! Routines in SHOW and the information tables.

use catalog::{AccountName, EffectivePrivileges, PrivilegeSet, Routine, RoutineKind};
use definitions::{literal, quote, type_text};
use errors::{Result, bail};
use plugin_api::{ColumnMeta, ParameterView, ResultSink, RoutineView, ValueRow};
use syntax::ast::ObjectName;
use types::{CollationId, DataType, SqlMode, TypeKind, Value};

use crate::host::ProgramHost;

/// How much of a routine an account may see.
pub enum RoutineVisibility {
    /// Not even that it exists.
    Hidden,
    /// That it exists, but not its text.
    NameOnly,
    /// Its text too.
    Full,
}

/// Returns how much of a routine an account may see.
pub fn visibility_of(
    routine: &Routine,
    privileges: &EffectivePrivileges,
    account: &AccountName,
) -> RoutineVisibility {
    let held = privileges.on_routine(&routine.schema, routine.kind, &routine.name);
    let listed = PrivilegeSet::ALL_ROUTINE | PrivilegeSet::CREATE_ROUTINE;
    if *routine.definer == *account.to_string()
        || privileges.has_dynamic("SHOW_ROUTINE")
        || privileges.global().contains(PrivilegeSet::SELECT)
    {
        RoutineVisibility::Full
    } else if held.intersects(listed) {
        RoutineVisibility::NameOnly
    } else {
        RoutineVisibility::Hidden
    }
}

/// RETURNS with the character set of a text.
fn returns_text(ty: &DataType) -> String {
    let charset = charset::collation(ty.collation).filter(|_| ty.is_text());
    match charset {
        Some(collation) => format!(" RETURNS {} CHARSET {}", type_text(ty), collation.charset.name),
        None => format!(" RETURNS {}", type_text(ty)),
    }
}

/// The text of SHOW CREATE PROCEDURE.
fn create_text(routine: &Routine) -> String {
    let definer = accounts::parse_account(&routine.definer);
    let mut text = format!(
        "CREATE DEFINER={}@{} {} {}({}){}\n",
        quote(&definer.user),
        quote(&definer.host),
        routine.kind.as_str(),
        quote(&routine.name),
        routine.parameter_text,
        routine.returns.as_ref().map_or_else(String::new, |(_, ty)| returns_text(ty))
    );
    if &*routine.data_access != "CONTAINS SQL" {
        text.push_str(&format!("    {}\n", routine.data_access));
    }
    if routine.deterministic {
        text.push_str("    DETERMINISTIC\n");
    }
    if routine.invoker {
        text.push_str("    SQL SECURITY INVOKER\n");
    }
    if !routine.comment.is_empty() {
        text.push_str(&format!("    COMMENT {}\n", literal(&routine.comment)));
    }
    text.push_str(&routine.body);
    text
}

/// A routine as information tables see it; `full`: its text may be seen.
pub fn routine_view(routine: &Routine, full: bool) -> RoutineView {
    let parameter = |parameter: &catalog::RoutineParameter| ParameterView {
        name: parameter.name.to_string(),
        mode: parameter.mode.to_string(),
        type_text: type_text(&parameter.ty),
        ty: parameter.ty.clone(),
    };
    RoutineView {
        schema: routine.schema.to_string(),
        name: routine.name.to_string(),
        kind: routine.kind.as_str(),
        parameters: routine.parameters.iter().map(parameter).collect(),
        returns: routine.returns.as_ref().map(|(_, ty)| ParameterView {
            name: String::new(),
            mode: String::new(),
            type_text: type_text(ty),
            ty: ty.clone(),
        }),
        body: full.then(|| routine.body.to_string()),
        definer: routine.definer.to_string(),
        security: if routine.invoker { "INVOKER" } else { "DEFINER" },
        deterministic: routine.deterministic,
        data_access: routine.data_access.to_string(),
        comment: routine.comment.to_string(),
        sql_mode: SqlMode(routine.sql_mode).to_text(),
        created_micros: routine.created_micros,
        altered_micros: routine.altered_micros,
        session_charset: routine.charset_client.to_string(),
        session_collation: routine.collation_connection.to_string(),
        database_collation: charset::collation_or_binary(routine.database_collation)
            .name
            .to_owned(),
    }
}

/// The columns of SHOW CREATE for a program: its name under `title`, its text under `create`, and the settings of its creation.
pub(crate) fn create_columns(title: &str, create: &str) -> [ColumnMeta; 6] {
    let text = |length| DataType::varchar(length, CollationId::UTF8MB4_0900_AI_CI);
    let column =
        |name: &str, length: u32| ColumnMeta::computed(name, text(length).with_nullable(false));
    let long = DataType {
        collation: CollationId::UTF8MB4_0900_AI_CI,
        ..DataType::new(TypeKind::LongText, u32::MAX, 0)
    };
    [
        column(title, 64),
        column("sql_mode", 256),
        ColumnMeta::computed(create, long),
        column("character_set_client", 32),
        column("collation_connection", 32),
        column("Database Collation", 32),
    ]
}

/// SHOW CREATE PROCEDURE and SHOW CREATE FUNCTION.
///
/// # Errors
/// 1305.
pub fn show_create_routine<H: ProgramHost + ?Sized>(
    host: &mut H,
    name: &ObjectName,
    kind: RoutineKind,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = host.qualify(name)?;
    let snapshot = host.snapshot();
    let known = snapshot.routine(&schema, kind, &name);
    let visible = known.map(|routine| visibility_of(routine, host.privileges(), host.account()));
    let (Some(routine), Some(RoutineVisibility::NameOnly | RoutineVisibility::Full)) =
        (known, &visible)
    else {
        bail!(SP_DOES_NOT_EXIST, kind.as_str(), name);
    };
    let (title, create) = match kind {
        RoutineKind::Procedure => ("Procedure", "Create Procedure"),
        RoutineKind::Function => ("Function", "Create Function"),
    };
    let columns = create_columns(title, create);
    let view = routine_view(routine, true);
    let row = vec![
        Value::text(&routine.name),
        Value::text(&view.sql_mode),
        match visible {
            Some(RoutineVisibility::Full) => Value::text(&create_text(routine)),
            _ => Value::Null,
        },
        Value::text(&view.session_charset),
        Value::text(&view.session_collation),
        Value::text(&view.database_collation),
    ];
    send_row(host, sink, &columns, &row)
}

/// Sends a result set of one row.
pub(crate) fn send_row<H: ProgramHost + ?Sized>(
    host: &mut H,
    sink: &mut dyn ResultSink,
    columns: &[ColumnMeta],
    row: &[Value],
) -> Result<()> {
    let state = host.state_info();
    sink.columns(columns)?;
    sink.row(&ValueRow(row))?;
    sink.end(&state)
}
