//! SHOW, DESCRIBE and HELP as the SELECT that a plugin rewrites them to.

use std::sync::Arc;

use describe::Information;
use errors::{Error, Result};
use plugin_api::RewriteContext;
use programs::parse_error;
use syntax::Statement;
use types::DataType;

use crate::planned::Planned;
use crate::session::Session;

/// The plan of the SELECT that a SHOW is rewritten to. Its parameters are the statement's, in the same order: WHERE precedes LIMIT in both.
pub(crate) fn plan_rewritten(
    session: &mut Session,
    statement: &Statement,
    source: &[u8],
    types: Option<&[DataType]>,
) -> Result<Arc<Planned>> {
    let sql = rewrite(session, source)?.ok_or_else(|| Error::not_supported(shown(statement)))?;
    let parsed = syntax::parse_one(&sql, &session.reading().options())
        .map_err(|error| parse_error(&error))?
        .0;
    let mut planned = session.planner().plan_statement(&parsed, sql.as_bytes(), types)?;
    if let Some(planned) = Arc::get_mut(&mut planned) {
        planned.counter = None;
    }
    Ok(planned)
}

fn rewrite(session: &mut Session, source: &[u8]) -> Result<Option<String>> {
    let context = RewriteContext {
        database: session.services.database.as_ref().map(|name| name.to_string()),
        sql_mode: session.settings.sql_mode,
        current_user: session.account.to_string(),
    };
    let text = String::from_utf8_lossy(source);
    // The text may contain further statements: a rewriter reads the first.
    let information = information(session);
    for rewriter in session.server.registry().rewriters() {
        if let Some(sql) = rewriter.rewrite(&text, &context, &information)? {
            return Ok(Some(sql));
        }
    }
    Ok(None)
}

/// The session as information tables see it.
pub(crate) fn information(session: &Session) -> Information<'_> {
    Information {
        server: &*session.server,
        definitions: session.transactions.definitions.clone(),
        connection: &*session.shared,
        values: session.services.values.clone(),
        privileges: &session.privileges,
        diagnostics: &session.diagnostics,
        database: session.services.database.clone(),
        account: &session.account,
        temporary: &session.temporary,
        tls: session.client.tls.as_ref(),
        active_roles: &session.active_roles,
    }
}

fn shown(statement: &Statement) -> &'static str {
    match statement {
        Statement::Show(_) => "this SHOW",
        Statement::Describe(_) => "DESCRIBE",
        _ => "HELP",
    }
}
