//! The form of a statement: its text without its values, as digests have it.

use plugin_api::variable::as_text;
use plugin_api::{SessionServices, StatementEvent};
use syntax::ast::PrepareSource;
use syntax::{ParseOptions, Statement};

/// How the session's SQL mode reads texts.
fn options(session: &dyn SessionServices) -> ParseOptions<'static> {
    let mode = session.system_variable("sql_mode").map(|mode| as_text(&mode)).unwrap_or_default();
    let has = |name: &str| mode.split(',').any(|word| word.eq_ignore_ascii_case(name));
    ParseOptions {
        ansi_quotes: has("ANSI_QUOTES"),
        no_backslash_escapes: has("NO_BACKSLASH_ESCAPES"),
        ..ParseOptions::default()
    }
}

/// The form of any text.
pub(crate) fn of_text(session: &dyn SessionServices, text: &[u8]) -> String {
    syntax::digest_text(text, &options(session))
}

/// The form that rules are compared with. PREPARE and EXECUTE of a text have the form of that text, because their own says nothing of what
/// runs. None where the text is not known before it runs, or has several statements: no rule allows that.
pub(crate) fn of_statement(event: &StatementEvent<'_>) -> Option<String> {
    let is_dynamic = |verb: &str| matches!(verb, "PREPARE" | "EXECUTE");
    if !is_dynamic(&event.verb()) {
        return Some((event.digest_text)());
    }
    let options = options(event.services);
    // EXECUTE of what was prepared has its own form, and what cannot be parsed does not run.
    let Ok((Statement::Prepare { source, .. } | Statement::ExecuteText { source, .. }, _)) =
        syntax::parse_bytes(event.text, &options)
    else {
        return Some((event.digest_text)());
    };
    let text = match source {
        PrepareSource::Text(text) => text.into_vec(),
        PrepareSource::UserVar(name) => {
            as_text(&event.services.user_variable(&name.text)?.0).into_bytes()
        }
        PrepareSource::Expr(_) => return None,
    };
    let is_end = |byte: &u8| byte.is_ascii_whitespace() || *byte == b';';
    match syntax::parse_bytes(&text, &options) {
        Ok((Statement::ExecuteText { .. } | Statement::Prepare { .. }, _)) => None,
        Ok((_, consumed)) if text.get(consumed..).is_some_and(|rest| !rest.iter().all(is_end)) => {
            None
        }
        Ok(_) | Err(_) => Some(syntax::digest_text(&text, &options)),
    }
}
