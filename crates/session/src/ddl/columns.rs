//! Column definitions: from syntax to the catalog's columns, with defaults converted and expressions checked.

use std::sync::Arc;

use binder::{BindInput, Binder, BoundTableExpression, Disallowed};
use catalog::{CatalogView, Check, Column, ColumnDefault, ForeignKey, Generated, ReferenceAction};
use errors::{Diagnostics, Error, ErrorCode, Level, Result, bail, err};
use syntax::ast::{self, ColumnAttribute, ExprKind};
use types::convert::{CastContext, StoreMode, store};
use types::{DataType, TypeKind, Value, geometry};

use super::column_type::{TypeContext, column_type};
use super::draft::{
    Draft, DraftColumn, DraftForeignKey, DraftIndex, DraftPart, is_hidden, is_too_long,
};
use crate::query::Reader;
use crate::session::Session;
use crate::statement::Running;

/// What a column definition says besides the column itself.
pub(crate) struct BuiltColumn {
    pub(crate) column: DraftColumn,
    pub(crate) primary: bool,
    pub(crate) unique: bool,
    pub(crate) checks: Vec<ast::CheckDef>,
    pub(crate) references: Option<ast::References>,
}

/// What is said of FLOAT(m, d) and DOUBLE(m, d).
const FIXED_FLOAT: &str = "Specifying number of digits for floating point data types is deprecated \
                           and will be removed in a future release.";

impl Session {
    /// The warning of a FLOAT or DOUBLE that a query gave fixed decimals.
    pub(crate) fn note_fixed_float(&mut self, ty: &DataType) {
        let is_float = matches!(ty.kind, TypeKind::Float | TypeKind::Double);
        if is_float && ty.decimals < types::NOT_FIXED_DECIMALS {
            let code = ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT;
            self.working.push_error(Level::Warning, &Error::new(code, FIXED_FLOAT));
        }
    }

    /// Warnings about what is on its way out of column types.
    fn warn_of_type(&mut self, written: &ast::DataType) {
        use ast::TypeName::*;
        let is_integer = matches!(written.name, TinyInt | SmallInt | MediumInt | Int | BigInt);
        let is_float = matches!(written.name, Float | Double);
        let mut warn = |text: &str| {
            let error = Error::new(ErrorCode::WARN_DEPRECATED_SYNTAX_NO_REPLACEMENT, text);
            self.working.push_error(Level::Warning, &error);
        };
        if is_float && written.length.is_some() {
            warn(FIXED_FLOAT);
        }
        if written.zerofill {
            warn(
                "The ZEROFILL attribute is deprecated and will be removed in a future release. \
                 Use the LPAD function to zero-pad numbers, or store the formatted numbers in a \
                 CHAR column.",
            );
        }
        if written.unsigned && (is_float || written.name == Decimal) {
            warn(
                "UNSIGNED for decimal and floating point data types is deprecated and support \
                 for it will be removed in a future release.",
            );
        }
        if is_integer && written.length.is_some() {
            warn("Integer display width is deprecated and will be removed in a future release.");
        }
        if written.binary {
            let names: [&dyn std::fmt::Display; 2] =
                [&"BINARY as attribute of a type", &"a CHARACTER SET clause with _bin collation"];
            self.working.warn(ErrorCode::WARN_DEPRECATED_SYNTAX, &names);
        }
        if written.name == Year && written.length.is_some() {
            let names: [&dyn std::fmt::Display; 2] = [&"YEAR(4)", &"YEAR"];
            self.working.warn(ErrorCode::WARN_DEPRECATED_SYNTAX, &names);
        }
    }

    /// Tells that a VARCHAR or VARBINARY is too long to be one.
    fn note_conversion(&mut self, column: &str, written: &ast::DataType, ty: &DataType) {
        let is_var = matches!(written.name, ast::TypeName::Varchar | ast::TypeName::Varbinary);
        if is_var && ty.is_blob() {
            let words = if ty.is_text() { ["VARCHAR", "TEXT"] } else { ["VARBINARY", "BLOB"] };
            self.working.note(ErrorCode::AUTO_CONVERT, &[&column, &words[0], &words[1]]);
        }
    }

    /// One column definition.
    pub(crate) fn build_column(
        &mut self,
        draft: &Draft,
        definition: &ast::ColumnDef,
        running: &Running<'_>,
    ) -> Result<BuiltColumn> {
        let name = &*definition.name.text;
        check_column_name(name)?;
        let collate = definition.attributes.iter().find_map(|attribute| match attribute {
            ColumnAttribute::Collation(name) => Some(&*name.text),
            _ => None,
        });
        let ctx = TypeContext {
            table_collation: draft.declared_collation,
            collate,
            sql_mode: self.settings.sql_mode,
            enum_members_max: variables::as_u64(&self.value("enum_max_values")) as usize,
            column: name,
        };
        let mut ty = column_type(&definition.data_type, &ctx)?;
        self.note_conversion(name, &definition.data_type, &ty);
        self.note_type_charset(&definition.data_type, collate);
        self.warn_of_type(&definition.data_type);
        ty.nullable = true;
        let column = Column {
            name: name.into(),
            ty,
            stored: None,
            default: ColumnDefault::None,
            on_update_now: None,
            auto_increment: false,
            generated: None,
            invisible: false,
            comment: String::new(),
            collation_written: is_collation_written(&definition.data_type, collate),
            histogram: None,
        };
        let mut built = BuiltColumn {
            column: DraftColumn { column, origin: None, null_written: None },
            primary: false,
            unique: false,
            checks: Vec::new(),
            references: None,
        };
        if definition.data_type.name == ast::TypeName::Serial {
            built.column.null_written = Some(false);
            built.column.column.auto_increment = true;
            built.unique = true;
        }
        let mut default = None;
        for attribute in &definition.attributes {
            if let ColumnAttribute::Default { value, parenthesised } = attribute {
                default = Some((value, *parenthesised));
            } else {
                self.apply_attribute(&mut built, attribute)?;
            }
        }
        self.finish_column(&mut built, default, running)?;
        Ok(built)
    }

    fn apply_attribute(
        &mut self,
        built: &mut BuiltColumn,
        attribute: &ColumnAttribute,
    ) -> Result<()> {
        let column = &mut built.column.column;
        match attribute {
            ColumnAttribute::Null(nullable) => built.column.null_written = Some(*nullable),
            ColumnAttribute::Default { .. } | ColumnAttribute::Collation(_) => {}
            ColumnAttribute::OnUpdateNow(digits) => {
                let digits = digits.unwrap_or(0);
                let fits = matches!(column.ty.kind, TypeKind::DateTime | TypeKind::Timestamp)
                    && u32::from(column.ty.decimals) == digits;
                if !fits {
                    bail!(INVALID_ON_UPDATE, column.name);
                }
                column.on_update_now = Some(column.ty.decimals);
            }
            ColumnAttribute::AutoIncrement => {
                if !column.ty.is_integer() {
                    bail!(WRONG_FIELD_SPEC, column.name);
                }
                column.auto_increment = true;
            }
            ColumnAttribute::PrimaryKey => built.primary = true,
            ColumnAttribute::Unique => built.unique = true,
            ColumnAttribute::Comment(text) => column.comment = text.to_string(),
            ColumnAttribute::Visible(visible) => column.invisible = !visible,
            ColumnAttribute::Generated { expr, stored } => {
                column.generated = Some(Generated {
                    expression: expression_text(expr),
                    stored: *stored,
                    hidden: false,
                });
            }
            ColumnAttribute::Check(check) => built.checks.push(check.clone()),
            ColumnAttribute::References(references) => {
                built.references = Some(references.clone());
            }
            ColumnAttribute::RowPeriod(_) | ColumnAttribute::SystemVersioning(_) => {
                return Err(Error::not_supported("system-versioned tables"));
            }
            ColumnAttribute::Srid(srid) => {
                if column.ty.kind != TypeKind::Geometry {
                    bail!(WRONG_USAGE, "SRID", "non-geometry column");
                }
                let number =
                    u32::try_from(*srid).map_err(|_| err!(DATA_OUT_OF_RANGE, "SRID", "SRID"))?;
                if geometry::reference_system(number).is_none() {
                    bail!(SRS_NOT_FOUND, number);
                }
                column.ty.spatial.srid = Some(number);
            }
            ColumnAttribute::ColumnFormat(_)
            | ColumnAttribute::Storage(_)
            | ColumnAttribute::EngineAttribute(_)
            | ColumnAttribute::SecondaryEngineAttribute(_)
            | ColumnAttribute::NotSecondary
            | ColumnAttribute::Compressed => {
                let name = column.name.clone();
                self.working.note(
                    errors::ErrorCode::OPTION_IGNORED,
                    &[&format!("storage attribute of column {name}")],
                );
            }
        }
        Ok(())
    }

    /// Nullability and default, once all attributes are known.
    fn finish_column(
        &mut self,
        built: &mut BuiltColumn,
        default: Option<(&ast::Expr, bool)>,
        running: &Running<'_>,
    ) -> Result<()> {
        let not_null = built.column.null_written == Some(false)
            || built.column.column.auto_increment
            || (built.primary && built.column.null_written.is_none());
        let column = &mut built.column.column;
        column.ty.nullable = !not_null;
        if column.generated.is_some() {
            if default.is_some() {
                bail!(WRONG_USAGE, "DEFAULT", "generated column");
            }
            if column.auto_increment {
                bail!(WRONG_USAGE, "AUTO_INCREMENT", "generated column");
            }
            return Ok(());
        }
        let Some((expr, parenthesised)) = default else {
            column.default = if column.ty.nullable {
                ColumnDefault::Constant(Value::Null)
            } else {
                ColumnDefault::None
            };
            return Ok(());
        };
        if !parenthesised && matches!(expr.kind, ExprKind::Literal(ast::Literal::Null)) {
            // As if NULL were written.
            built.column.null_written.get_or_insert(true);
        }
        let name = column.name.clone();
        if column.auto_increment {
            bail!(INVALID_DEFAULT, name);
        }
        let ty = column.ty.clone();
        column.default = self.column_default(&name, &ty, expr, parenthesised, running)?;
        Ok(())
    }

    /// DEFAULT of a column of type `ty`.
    pub(crate) fn column_default(
        &mut self,
        name: &str,
        ty: &DataType,
        expr: &ast::Expr,
        parenthesised: bool,
        running: &Running<'_>,
    ) -> Result<ColumnDefault> {
        if let Some(digits) = current_timestamp(expr) {
            let temporal = matches!(ty.kind, TypeKind::DateTime | TypeKind::Timestamp);
            if temporal && u64::from(ty.decimals) == digits {
                return Ok(ColumnDefault::Now(ty.decimals));
            }
            if !parenthesised {
                bail!(INVALID_DEFAULT, name);
            }
        }
        if parenthesised {
            return Ok(ColumnDefault::Expression(expression_text(expr)));
        }
        let (value, from) = self.evaluate(expr, running)?;
        if value.is_null() {
            if !ty.nullable {
                bail!(INVALID_DEFAULT, name);
            }
            return Ok(ColumnDefault::Constant(Value::Null));
        }
        if ty.is_blob() {
            let is_empty = matches!(&value, Value::Bytes(bytes) if bytes.is_empty());
            if self.settings.sql_mode.is_strict() || !is_empty {
                bail!(BLOB_CANT_HAVE_DEFAULT, name);
            }
            self.working.warn(errors::ErrorCode::BLOB_CANT_HAVE_DEFAULT, &[&name]);
            return Ok(ColumnDefault::None);
        }
        let value = self.convert_default(name, ty, &value, &from)?;
        Ok(ColumnDefault::Constant(value))
    }

    /// A constant as the column holds it; 1067 when it does not fit.
    fn convert_default(
        &self,
        name: &str,
        ty: &DataType,
        value: &Value,
        from: &DataType,
    ) -> Result<Value> {
        let mut conditions = Diagnostics::default();
        let mode = self.settings.sql_mode;
        let mut ctx = CastContext::new(mode, &mut conditions);
        ctx.column = name;
        ctx.time_zone = &*self.settings.time_zone;
        let converted = store(value, from, ty, &mut ctx, StoreMode::Strict)
            .map_err(|_| err!(INVALID_DEFAULT, name))?;
        if conditions.count(Level::Warning) + conditions.count(Level::Error) > 0 {
            bail!(INVALID_DEFAULT, name);
        }
        Ok(converted)
    }

    /// Adds a built column and what it brings to a draft.
    pub(crate) fn add_built_column(
        &mut self,
        draft: &mut Draft,
        built: BuiltColumn,
        position: usize,
    ) -> Result<()> {
        let name = built.column.column.name.clone();
        draft.columns.insert(position, built.column);
        self.add_column_extras(
            draft,
            &name,
            built.primary,
            built.unique,
            &built.checks,
            built.references.as_ref(),
        )
    }

    /// Keys, checks and references that a column definition brings.
    pub(crate) fn add_column_extras(
        &mut self,
        draft: &mut Draft,
        name: &Arc<str>,
        primary: bool,
        unique: bool,
        checks: &[ast::CheckDef],
        references: Option<&ast::References>,
    ) -> Result<()> {
        let part = DraftPart { column: name.clone(), prefix_length: None, descending: false };
        for (wanted, primary) in [(primary, true), (unique, false)] {
            if wanted {
                draft.indexes.push(DraftIndex {
                    name: None,
                    primary,
                    unique: true,
                    parts: vec![part.clone()],
                    visible: true,
                    comment: String::new(),
                    origin: None,
                    for_foreign_key: false,
                    using_btree: false,
                    fulltext: false,
                    entries: None,
                });
            }
        }
        for check in checks {
            self.add_check(draft, check, Some(name))?;
        }
        if let Some(references) = references {
            let key = foreign_key(None, std::slice::from_ref(name), references, draft)?;
            draft.add_foreign_key(key, None)?;
        }
        Ok(())
    }

    /// CHECK; its expression is bound when the table is complete. That of a `column` may read this column only.
    pub(crate) fn add_check(
        &mut self,
        draft: &mut Draft,
        check: &ast::CheckDef,
        column: Option<&str>,
    ) -> Result<()> {
        let name: Option<Arc<str>> = check.name.as_ref().map(|name| Arc::from(&*name.text));
        if let Some(name) = &name
            && is_too_long(name)
        {
            bail!(TOO_LONG_IDENT, name);
        }
        let expression = expression_text(&check.expr);
        let enforced = check.enforced.unwrap_or(true);
        let own = column.and_then(|name| draft.column(name)).map(|at| &draft.columns[at]);
        let reads_others = own.is_some_and(|own| {
            let bound = self.bind_over_columns(std::slice::from_ref(own), &expression);
            bound.is_err_and(|error| error.code() == ErrorCode::BAD_FIELD_ERROR)
        });
        draft.checks.push((name, Check { name: Arc::from(""), expression, enforced }));
        let shown = |draft: &Draft| -> Result<Arc<str>> {
            let mut named = draft.clone();
            named.name_constraints(None)?;
            Ok(named.checks.pop().and_then(|(name, _)| name).unwrap_or_default())
        };
        if reads_others {
            bail!(COLUMN_CHECK_CONSTRAINT_REFERENCES_OTHER_COLUMN, shown(draft)?);
        }
        if !syntax::is_predicate(&check.expr) {
            bail!(NON_BOOLEAN_EXPR_FOR_CHECK_CONSTRAINT, shown(draft)?);
        }
        Ok(())
    }

    /// Types an expression of a table definition.
    pub(crate) fn bind_over_columns(
        &self,
        columns: &[DraftColumn],
        text: &str,
    ) -> Result<BoundTableExpression> {
        self.bind_definition(None, columns, text)
    }

    /// Types an expression whose columns may be qualified with the name of the table, as it is written.
    pub(crate) fn bind_qualified(
        &self,
        draft: &Draft,
        expr: &ast::Expr,
    ) -> Result<BoundTableExpression> {
        let options = syntax::PrintOptions { unqualified: false, ..stored_text() };
        let text = syntax::print_expr(expr, &options);
        self.bind_definition(Some((&draft.schema, &draft.name)), &draft.columns, &text)
    }

    fn bind_definition(
        &self,
        table: Option<(&Arc<str>, &Arc<str>)>,
        columns: &[DraftColumn],
        text: &str,
    ) -> Result<BoundTableExpression> {
        let sql = format!("DO {text}");
        let parsed = syntax::parse_one(&sql, &syntax::ParseOptions::default())
            .map_err(|error| crate::statement::parse_error(&error))?;
        let expr = match parsed.0 {
            syntax::Statement::Do(items) => items.into_iter().next().map(|item| item.kind),
            _ => None,
        };
        let Some(ast::SelectItemKind::Expr { expr, .. }) = expr else {
            return Err(Error::internal("an expression of a table was not read back"));
        };
        let columns: Vec<(Arc<str>, DataType)> = columns
            .iter()
            .map(|column| (column.column.name.clone(), column.column.ty.clone()))
            .collect();
        let view = CatalogView::default();
        let bind = self.bind_context();
        let input = BindInput {
            catalog: &Reader { view: &view, database: None },
            registry: &self.server.registry,
            bind: &bind,
            variables: &self.services,
            parameter_types: None,
        };
        Binder::new(input).bind_table_expression(table, &columns, &expr, sql.as_bytes())
    }

    /// Binds every expression of a draft: generated columns, defaults and checks.
    pub(crate) fn check_expressions(&self, draft: &Draft) -> Result<()> {
        for (position, column) in draft.columns.iter().enumerate() {
            let column = &column.column;
            if let Some(generated) = &column.generated {
                let bound = self.bind_over_columns(&draft.columns, &generated.expression);
                let is_of_index = is_hidden(column);
                let place =
                    if is_of_index { "functional index" } else { "generated column function" };
                let bound = bound.map_err(|error| in_place(&error, place))?;
                if let Some(disallowed) = &bound.disallowed {
                    return Err(not_allowed(disallowed, &column.name, &OF_GENERATED));
                }
                for read in bound.columns {
                    let other = &draft.columns[read].column;
                    if other.auto_increment {
                        bail!(GENERATED_COLUMN_REF_AUTO_INC, column.name);
                    }
                    if other.generated.is_some() && read >= position {
                        bail!(GENERATED_COLUMN_NON_PRIOR);
                    }
                }
            }
            if let ColumnDefault::Expression(text) = &column.default {
                let bound = self.bind_over_columns(&draft.columns, text);
                let bound = bound.map_err(|error| in_place(&error, "default value expression"))?;
                if let Some(disallowed @ (Disallowed::Variable | Disallowed::Other)) =
                    &bound.disallowed
                {
                    return Err(not_allowed(disallowed, &column.name, &OF_DEFAULT));
                }
                for read in bound.columns {
                    let other = &draft.columns[read].column;
                    if other.auto_increment {
                        bail!(DEFAULT_VAL_GENERATED_REF_AUTO_INC, column.name);
                    }
                    let is_computed = other.generated.is_some()
                        || matches!(other.default, ColumnDefault::Expression(_));
                    if is_computed && read >= position {
                        bail!(DEFAULT_VAL_GENERATED_NON_PRIOR, column.name);
                    }
                }
            }
        }
        for (name, check) in &draft.checks {
            let shown = name.clone().unwrap_or_else(|| check.name.clone());
            let bound =
                self.bind_over_columns(&draft.columns, &check.expression).map_err(|error| {
                    if error.code() == ErrorCode::BAD_FIELD_ERROR {
                        let column = error.message().split('\'').nth(1).unwrap_or("").to_owned();
                        return err!(CHECK_CONSTRAINT_REFERS_UNKNOWN_COLUMN, shown, column);
                    }
                    error
                })?;
            if let Some(disallowed) = &bound.disallowed {
                return Err(not_allowed(disallowed, &shown, &OF_CHECK));
            }
            if bound.columns.iter().any(|read| draft.columns[*read].column.auto_increment) {
                bail!(CHECK_CONSTRAINT_REFERS_AUTO_INCREMENT_COLUMN, shown);
            }
        }
        Ok(())
    }
}

/// Errors of an expression that contains what it may not: for a function with a name, for a variable, for all else.
type NotAllowed = (ErrorCode, ErrorCode, ErrorCode);

const OF_GENERATED: NotAllowed = (
    ErrorCode::GENERATED_COLUMN_NAMED_FUNCTION_IS_NOT_ALLOWED,
    ErrorCode::DEFAULT_VAL_GENERATED_VARIABLES,
    ErrorCode::GENERATED_COLUMN_FUNCTION_IS_NOT_ALLOWED,
);
const OF_DEFAULT: NotAllowed = (
    ErrorCode::DEFAULT_VAL_GENERATED_NAMED_FUNCTION_IS_NOT_ALLOWED,
    ErrorCode::DEFAULT_VAL_GENERATED_VARIABLES,
    ErrorCode::DEFAULT_VAL_GENERATED_FUNCTION_IS_NOT_ALLOWED,
);
const OF_CHECK: NotAllowed = (
    ErrorCode::CHECK_CONSTRAINT_NAMED_FUNCTION_IS_NOT_ALLOWED,
    ErrorCode::CHECK_CONSTRAINT_VARIABLES,
    ErrorCode::CHECK_CONSTRAINT_FUNCTION_IS_NOT_ALLOWED,
);

fn not_allowed(disallowed: &Disallowed, shown: &str, errors: &NotAllowed) -> Error {
    match disallowed {
        Disallowed::Function(name) => Error::with(errors.0, &[&shown, name]),
        Disallowed::Variable => Error::with(errors.1, &[&shown]),
        Disallowed::Other => Error::with(errors.2, &[&shown]),
    }
}

/// Whether a definition names a character set or a collation.
fn is_collation_written(written: &ast::DataType, collate: Option<&str>) -> bool {
    written.charset.is_some() || written.binary || collate.is_some()
}

/// 1166, 1059.
pub(crate) fn check_column_name(name: &str) -> Result<()> {
    if name.is_empty() || name.ends_with(' ') {
        bail!(WRONG_COLUMN_NAME, name);
    }
    if is_too_long(name) {
        bail!(TOO_LONG_IDENT, name);
    }
    Ok(())
}

/// The digits of `CURRENT_TIMESTAMP[(n)]` and its synonyms.
fn current_timestamp(expr: &ast::Expr) -> Option<u64> {
    let ExprKind::Function(call) = &expr.kind else { return None };
    let known = ["CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP"];
    if !known.iter().any(|name| call.name.is(name)) {
        return None;
    }
    match call.args.as_slice() {
        [] => Some(0),
        [ast::Expr { kind: ExprKind::Literal(ast::Literal::Integer(digits)), .. }] => Some(*digits),
        _ => None,
    }
}

/// The stored text of an expression: the reference's spelling, independent of the session's modes. Whatever table its columns
/// are qualified with, they are those of the table that is defined.
pub(crate) fn expression_text(expr: &ast::Expr) -> Arc<str> {
    syntax::print_expr(expr, &stored_text()).into()
}

fn stored_text() -> syntax::PrintOptions<'static> {
    syntax::PrintOptions {
        canonical: true,
        introducer: Some("utf8mb4"),
        cast_charset: Some("utf8mb4"),
        no_backslash_escapes: false,
        unqualified: true,
    }
}

/// 1054 names the place where the column was looked for.
pub(crate) fn in_place(error: &Error, place: &str) -> Error {
    let mut message = error.message().to_owned();
    if error.code() == ErrorCode::BAD_FIELD_ERROR {
        for general in ["where clause", "field list"] {
            message = message.replace(general, place);
        }
    }
    Error::with_sqlstate(error.code(), error.sqlstate(), message)
}

/// A foreign key as a statement writes it.
pub(crate) fn foreign_key(
    name: Option<&ast::Ident>,
    columns: &[Arc<str>],
    references: &ast::References,
    draft: &Draft,
) -> Result<DraftForeignKey> {
    if !references.columns.is_empty() && references.columns.len() != columns.len() {
        let shown = name.map_or("foreign key without name", |name| &*name.text);
        bail!(WRONG_FK_DEF, shown, "Key reference and table reference don't match");
    }
    if references.match_kind.is_some_and(|kind| kind != ast::MatchKind::Simple) {
        return Err(Error::not_supported("MATCH FULL and MATCH PARTIAL"));
    }
    let action = |action: Option<ast::ReferenceAction>| match action {
        None | Some(ast::ReferenceAction::NoAction) => ReferenceAction::NoAction,
        Some(ast::ReferenceAction::Restrict) => ReferenceAction::Restrict,
        Some(ast::ReferenceAction::Cascade) => ReferenceAction::Cascade,
        Some(ast::ReferenceAction::SetNull) => ReferenceAction::SetNull,
        // Kept and shown; it acts as NO ACTION.
        Some(ast::ReferenceAction::SetDefault) => ReferenceAction::SetDefault,
    };
    let schema = references.table.schema.as_ref().map_or(&*draft.schema, |schema| &*schema.text);
    let key = ForeignKey {
        name: Arc::from(""),
        columns: Vec::new(),
        referenced_schema: schema.into(),
        referenced_table: Arc::from(&*references.table.name.text),
        referenced_columns: references.columns.iter().map(|name| Arc::from(&*name.text)).collect(),
        on_update: action(references.on_update),
        on_delete: action(references.on_delete),
    };
    Ok(DraftForeignKey {
        name: name.map(|name| Arc::from(&*name.text)),
        columns: columns.to_vec(),
        key,
        existing: false,
    })
}
