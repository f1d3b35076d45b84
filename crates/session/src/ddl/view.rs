//! CREATE, ALTER and DROP VIEW.

use ::accounts::PrivilegeChecks;
use std::sync::Arc;

use catalog::{Edit, PrivilegeSet, Relation, RelationKind, View};
use definitions::check_table_name;
use definitions::view_columns::rename_duplicates;
use errors::{ErrorCode, Result, bail};
use plugin_api::{OkInfo, ResultSink};
use syntax::Statement;
use syntax::ast::{self, CheckOption, CreateView, DropObjects, SqlSecurity, ViewAlgorithm};

use types::SqlMode;
use variables::Settings;

use crate::session::Session;
use programs::Running;

/// CREATE VIEW and ALTER VIEW.
pub(crate) fn create_view(
    session: &mut Session,
    create: &CreateView,
    alter: bool,
    running: &Running<'_>,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    let (schema, name) = session.qualify(&create.name)?;
    check_table_name(&name)?;
    if !alter && may_skip(session, &schema, &name, PrivilegeSet::CREATE_VIEW) {
        session.working.warn(ErrorCode::TABLE_EXISTS_ERROR, &[&name]);
        return session.send_ok(sink, OkInfo::default());
    }
    session.require_on_table(&schema, &name, PrivilegeSet::CREATE_VIEW)?;
    crate::ddl::check_writable_in(session, &schema)?;
    let present = session.view().relation(&schema, &name);
    definitions::check_duality(create)?;
    // What is wrong with the query is told before what has the name.
    let view = build_view(session, create, &schema, &name, running)?;
    let replaces = alter || create.flags.or_replace;
    let edit = match present {
        None if alter => bail!(NO_SUCH_TABLE, schema, name),
        None => Edit::CreateView(Arc::new(view)),
        Some(old) if replaces && definitions::is_other_kind(&old, create) => {
            let kind = if create.is_duality { "SQL" } else { "JSON_DUALITY" };
            bail!(JDV_OTHER_KIND, schema, name, kind)
        }
        Some(Relation::View(_)) if replaces => {
            Edit::ReplaceView { schema, name, new: Arc::new(view) }
        }
        Some(Relation::Table(_)) if replaces => bail!(WRONG_OBJECT, schema, name, "VIEW"),
        Some(_) if create.flags.if_not_exists => {
            session.working.note(ErrorCode::TABLE_EXISTS_ERROR, &[&name]);
            return session.send_ok(sink, OkInfo::default());
        }
        Some(_) => bail!(TABLE_EXISTS_ERROR, name),
    };
    let commit = session.commit_definitions(&[edit])?;
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo { commit: Some(commit), ..OkInfo::default() })
}

/// Whether a view comes with the server, and an account that may change views anywhere wants to drop and create it: dumps of all schemas do. They are told
/// that it is there, and go on.
fn may_skip(session: &Session, schema: &str, name: &str, wanted: PrivilegeSet) -> bool {
    session.privileges.everywhere().contains(wanted)
        && session.server.registry().system_view(schema, name).is_some()
}

fn build_view(
    session: &mut Session,
    create: &CreateView,
    schema: &Arc<str>,
    name: &Arc<str>,
    running: &Running<'_>,
) -> Result<View> {
    let statement = Statement::Query(Box::new(create.query.clone()));
    let settings = view_settings(session);
    let planned =
        session.planner().under(&settings).plan_statement(&statement, running.source, None)?;
    if planned.tables.iter().any(|table| table.temporary) {
        let table = planned.tables.iter().find(|table| table.temporary);
        bail!(VIEW_SELECT_TMPTABLE, table.map_or("", |table| &table.name));
    }
    if let Some(view) = planned.views.iter().find(|view| view.is_duality) {
        match create.is_duality {
            true => bail!(JDV_BASE_TABLE, view.schema, view.name),
            false => bail!(JDV_IN_VIEW, view.name, "a normal SQL view"),
        }
    }
    if !planned.parameters.is_empty() || planned.names_variable {
        bail!(VIEW_SELECT_VARIABLE);
    }
    // A replaced view must not read itself, not through others either.
    let reads_itself = planned.privileges.iter().any(|needed| {
        catalog::same_name(&needed.schema, schema) && catalog::same_name(&needed.table, name)
    });
    // One of a JSON duality view was found above.
    if reads_itself && !create.is_duality {
        bail!(NO_SUCH_TABLE, schema, name);
    }
    session.lock_plan(&planned)?;
    planned.raise_notices(&mut session.working);
    let count = planned.program.columns().len();
    let mut renamed = Vec::new();
    let columns: Vec<Arc<str>> = if create.columns.is_empty() {
        let mut columns: Vec<Arc<str>> =
            planned.program.columns().iter().map(|meta| meta.name.clone()).collect();
        renamed = rename_duplicates(&create.query, &mut columns);
        if create.is_duality { vec![Arc::from("data")] } else { columns }
    } else {
        create.columns.iter().map(|name| Arc::from(&*name.text)).collect()
    };
    if columns.len() != count {
        bail!(VIEW_WRONG_LIST);
    }
    for (position, column) in columns.iter().enumerate() {
        if columns[..position].iter().any(|other| catalog::same_name(other, column)) {
            bail!(DUP_FIELDNAME, column);
        }
    }
    let definer = match &create.definer {
        Some(user) if !user.current => {
            accounts::check_lengths(user)?;
            format!("{}@{}", user.user, user.host.as_deref().unwrap_or("%"))
        }
        _ => session.account.to_string(),
    };
    if definer != session.account.to_string() {
        session.require_dynamic("SET_ANY_DEFINER")?;
    }
    let span = match create.query_span.of(running.source) {
        [] => create.query.span,
        _ => create.query_span,
    };
    let definition = understood_query(session, &create.query, span, running.source, &renamed)?;
    if create.is_duality {
        let catalog = session.view();
        definitions::duality_of(&definition, &|schema, name| catalog.relation(schema, name))?;
    }
    let is_named = create.is_duality || !create.columns.is_empty();
    let mut view = View {
        schema: schema.clone(),
        name: name.clone(),
        definition: definition.into(),
        columns: if is_named { columns } else { Vec::new() },
        definer: definer.into(),
        invoker: create.security == Some(SqlSecurity::Invoker),
        algorithm: create.algorithm.name().into(),
        check_option: create.check_option.map_or("NONE", CheckOption::name).into(),
        charset_client: session.services.text("character_set_client").into(),
        collation_connection: session.settings.collation_connection.name.into(),
        is_duality: create.is_duality,
    };
    if create.check_option.is_some() && !is_updatable(session, &view) {
        bail!(VIEW_NONUPD_CHECK, view.schema, view.name);
    }
    if create.algorithm == ViewAlgorithm::Merge && !is_mergeable(session, &view) {
        view.algorithm = ViewAlgorithm::Undefined.name().into();
        session.working.warn(ErrorCode::WARN_VIEW_MERGE, &[]);
    }
    Ok(view)
}

/// ONLY_FULL_GROUP_BY counts when a view is read.
fn view_settings(session: &Session) -> Settings {
    let mut settings = session.settings.clone();
    settings.sql_mode = settings.sql_mode.without(SqlMode::ONLY_FULL_GROUP_BY);
    settings
}

fn is_updatable(session: &Session, view: &View) -> bool {
    let view = Arc::new(view.clone());
    session.planner().with_binder(Some(&view.schema), |binder| binder.is_updatable(&view))
}

fn is_mergeable(session: &Session, view: &View) -> bool {
    session.planner().with_binder(Some(&view.schema), |binder| binder.is_mergeable(view))
}

/// A query in the reference's spelling, with its tables and columns qualified and its `*` written out. `span`: its place
/// in the statement.
pub(crate) fn understood_query(
    session: &Session,
    query: &ast::Query,
    span: ast::Span,
    source: &[u8],
    renamed: &[(usize, Arc<str>)],
) -> Result<String> {
    let statement = Statement::Query(Box::new(query.clone()));
    let settings = view_settings(session);
    let changes = session.planner().under(&settings).spelled_names(&statement, source)?;
    let text = apply(&changes, span, source);
    let parsed = syntax::parse_one(&text, &session.reading().options())
        .map_err(|error| programs::parse_error(&error))?;
    let Statement::Query(mut query) = parsed.0 else {
        return Err(errors::Error::internal("the body of a view is not a query"));
    };
    let charset = session.settings.collation_connection.charset.name;
    Ok(definitions::view_columns::view_text(&mut query, renamed, charset))
}

/// DROP VIEW.
pub(crate) fn drop_views(
    session: &mut Session,
    drop: &DropObjects,
    sink: &mut dyn ResultSink,
) -> Result<()> {
    session.check_writable()?;
    let mut edits = Vec::new();
    let mut missing = Vec::new();
    for name in &drop.names {
        let (schema, name) = session.qualify(name)?;
        if drop.if_exists && may_skip(session, &schema, &name, PrivilegeSet::DROP) {
            missing.push(format!("{schema}.{name}"));
            continue;
        }
        session.require_on_table(&schema, &name, PrivilegeSet::DROP)?;
        crate::ddl::check_schema_writable(session, &schema)?;
        let relation = session.snapshot().kind(&schema, &name);
        match relation {
            Some(RelationKind::View) => edits.push(Edit::DropView { schema, name }),
            Some(RelationKind::Table | RelationKind::Sequence | RelationKind::SystemVersioned)
                if drop.if_exists =>
            {
                session.working.note(ErrorCode::WRONG_OBJECT, &[&schema, &name, &"VIEW"]);
            }
            Some(RelationKind::Table | RelationKind::Sequence | RelationKind::SystemVersioned) => {
                bail!(WRONG_OBJECT, schema, name, "VIEW")
            }
            None => missing.push(format!("{schema}.{name}")),
        }
    }
    if !missing.is_empty() {
        if !drop.if_exists {
            bail!(BAD_TABLE_ERROR, missing.join(","));
        }
        missing.iter().for_each(|name| {
            session.working.note(ErrorCode::BAD_TABLE_ERROR, &[name]);
        });
    }
    let commit = if edits.is_empty() { None } else { Some(session.commit_definitions(&edits)?) };
    session.services.row_count = 0;
    session.send_ok(sink, OkInfo { commit, ..OkInfo::default() })
}

/// The text at `span` with the changes that lie in it.
fn apply(changes: &[binder::Change], span: ast::Span, source: &[u8]) -> String {
    let mut text = span.of(source).to_vec();
    for change in changes.iter().rev() {
        let start = change.start.saturating_sub(span.start) as usize;
        let end = change.end.saturating_sub(span.start) as usize;
        if change.start >= span.start && start <= end && end <= text.len() {
            text.splice(start..end, change.text.bytes());
        }
    }
    String::from_utf8_lossy(&text).trim().trim_end_matches(';').to_owned()
}
