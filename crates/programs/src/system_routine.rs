//! Procedures that come with plugins: a text of CREATE PROCEDURE each, read when it is first called in a session.

use std::sync::Arc;

use catalog::{Routine, RoutineKind};
use errors::{Error, Result, err};
use plugin_api::SystemProcedure;
use syntax::Statement;
use syntax::ast::{self, BodyKind};
use types::{CollationId, SqlMode};

use crate::host::ProgramHost;
use crate::load::{parse_program, routine_parameters};
use crate::routine::find_routine;

/// The account that the reference shows for what comes with the server.
const DEFINER: &str = "mysql.sys@localhost";
const COLLATION: CollationId = CollationId::UTF8MB4_0900_AI_CI;

/// A procedure: a stored one, or one of a plugin.
///
/// # Errors
/// 1305.
pub(crate) fn find_procedure<H: ProgramHost + ?Sized>(
    host: &mut H,
    schema: &str,
    name: &str,
) -> Result<Arc<Routine>> {
    let Some(procedure) = host.system_procedure(schema, name) else {
        return find_routine(&host.snapshot(), schema, RoutineKind::Procedure, name);
    };
    if let Some(known) = host.state().known_system(&procedure) {
        return Ok(known);
    }
    let routine = Arc::new(routine_of(&procedure)?);
    host.state_mut().keep_system(procedure, routine.clone());
    Ok(routine)
}

/// The procedure as the catalog would have it. It runs with the rights of its caller.
///
/// # Errors
/// Its text is no CREATE PROCEDURE.
pub(crate) fn routine_of(procedure: &SystemProcedure) -> Result<Routine> {
    let source = procedure.text.as_bytes();
    let mode = SqlMode::DEFAULT;
    let Statement::CreateRoutine(create) = parse_program(source, mode)? else {
        return Err(err!(SP_LOAD_FAILED, procedure.name));
    };
    let BodyKind::Sql(_) = &create.body.kind else {
        return Err(Error::internal("a body in another language"));
    };
    let text =
        |span: ast::Span| Arc::<str>::from(String::from_utf8_lossy(span.of(source)).trim_end());
    Ok(Routine {
        schema: procedure.schema.into(),
        name: procedure.name.into(),
        kind: RoutineKind::Procedure,
        parameter_text: text(create.params_span),
        parameters: routine_parameters(mode, &create, COLLATION)?,
        returns: None,
        body: text(create.body.span),
        external: None,
        definer: DEFINER.into(),
        invoker: true,
        deterministic: false,
        data_access: "CONTAINS SQL".into(),
        comment: create.options.comment.as_deref().unwrap_or("").into(),
        sql_mode: mode.0,
        created_micros: 0,
        altered_micros: 0,
        charset_client: "utf8mb4".into(),
        collation_connection: "utf8mb4_0900_ai_ci".into(),
        database_collation: COLLATION,
    })
}
