//! `SET_VAR` hints: variables that have another value while one statement runs.

use std::sync::Arc;

use errors::{Diagnostics, ErrorCode, Result};
use statements::hints::{self, hints_of, sets_variables};
use syntax::ast::{self, Statement};
use syntax::{Hint, parse_hints};
use types::Value;

use crate::services::Services;
use crate::session::Session;
use variables::Scope;

impl Session {
    /// Runs `body` under the variables that the statement's hints set; restores them afterwards.
    pub(crate) fn under_hints<T>(
        &mut self,
        statement: &Statement,
        body: impl FnOnce(&mut Session) -> Result<T>,
    ) -> Result<T> {
        if !sets_variables(statement) {
            return body(self);
        }
        let saved = self.services.values.clone();
        let hints = parse_hints(hints_of(statement).unwrap_or(""));
        let mut set: Vec<&str> = Vec::new();
        for hint in &hints.list {
            let Hint::SetVar { name, value } = hint else { continue };
            if set.contains(&&**name) {
                let shown = format!("SET_VAR({name}={value})");
                self.working.warn(ErrorCode::WARN_CONFLICTING_HINT, &[&shown]);
                continue;
            }
            set.push(name);
            set_hinted(&mut self.services, &mut self.working, name, value);
        }
        self.refresh_settings();
        let result = body(self);
        self.services.values = saved;
        self.refresh_settings();
        result
    }
}

/// Sets one variable; a variable that cannot be set causes a warning.
fn set_hinted(services: &mut Services, conditions: &mut Diagnostics, name: &str, value: &str) {
    let server = services.server.clone();
    let definitions = &server.globals.definitions;
    let Some(id) = definitions.find(name) else {
        let shown = format!("'{name}'");
        conditions.warn(ErrorCode::UNRESOLVED_HINT_NAME, &[&shown, &"SET_VAR"]);
        return;
    };
    let definition = definitions.get(id);
    if definition.scope == Scope::Global || !hints::HINTABLE.contains(&definition.name) {
        let shown = format!("'{name}'");
        conditions.warn(ErrorCode::NOT_HINT_UPDATABLE_VARIABLE, &[&shown]);
        return;
    }
    let current = services.values.get(id).clone();
    match variables::convert(definition, &literal(value), &current) {
        Ok(converted) => Arc::make_mut(&mut services.values).set(id, converted.value),
        Err(error) => conditions.push_error(errors::Level::Warning, &error),
    }
}

/// The value of a literal in a hint: a number, perhaps with a unit, a word, or a quoted text.
fn literal(text: &str) -> Value {
    let parsed = syntax::parse_one(&format!("DO {text}"), &syntax::ParseOptions::default());
    if let Ok((Statement::Do(items), _)) = &parsed
        && let [ast::SelectItem { kind: ast::SelectItemKind::Expr { expr, .. }, .. }] = &items[..]
        && let ast::ExprKind::Literal(ast::Literal::String(text)) = &expr.kind
    {
        return Value::Bytes((*text.value).into());
    }
    if let Some(size) = variables::parse_size(text) {
        return Value::UInt(size);
    }
    Value::text(text)
}
