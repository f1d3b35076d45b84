//! SHOW and DESCRIBE as views: each is rewritten to a SELECT over information tables.
//!
//! Invariant: no rows are produced here, so privileges, LIKE, WHERE and metadata come from the same place as for every other SELECT.

mod objects;
mod select;
mod server;

use std::sync::Arc;

use errors::{Result, err};
use plugin_api::{
    InformationContext, Plugin, PluginInfo, Registrar, RewriteContext, StatementRewriter,
    TableDetail, VariableView,
};
use syntax::ParseOptions;
use syntax::ast::{Show, ShowKind, Statement};
use types::SqlMode;

use select::Select;

/// The plugin.
pub struct ShowStatements;

impl Plugin for ShowStatements {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("show", "SHOW and DESCRIBE statements")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.rewriter("SHOW", Arc::new(ShowRewriter));
    }
}

struct ShowRewriter;

impl StatementRewriter for ShowRewriter {
    fn rewrite(
        &self,
        sql: &str,
        ctx: &RewriteContext,
        facts: &dyn InformationContext,
    ) -> Result<Option<String>> {
        let Ok((statement, _)) = syntax::parse_one(sql, &parse_options(ctx.sql_mode)) else {
            return Ok(None);
        };
        let scope = Scope { ctx, facts };
        let select = match &statement {
            Statement::Show(show) => show_select(show, &scope)?,
            Statement::Describe(describe) => Some(objects::describe(describe, &scope)?),
            _ => None,
        };
        Ok(select.map(|select| select.text(sql)))
    }
}

/// The facts that a rewrite may read.
struct Scope<'a> {
    ctx: &'a RewriteContext,
    facts: &'a dyn InformationContext,
}

/// Whether the server writes a binary log.
fn logs_changes(scope: &Scope<'_>) -> bool {
    let is_on = |variable: &VariableView| variable.name == "log_bin" && variable.session == "ON";
    scope.facts.variables().iter().any(is_on)
}

impl Scope<'_> {
    /// The schema named, or the current one.
    fn schema(&self, named: Option<&str>) -> Result<String> {
        match named.or(self.ctx.database.as_deref()) {
            None => Err(err!(NO_DB_ERROR)),
            Some(name) => {
                let known = self.facts.schemas().into_iter();
                let mut matching = known
                    .map(|schema| schema.name)
                    .filter(|schema| schema == name || is_system(name, schema));
                matching.next().ok_or_else(|| err!(BAD_DB_ERROR, name))
            }
        }
    }

    /// Schema and name of a sequence, and the engine and comment that follow its options.
    fn sequence(&self, schema: Option<&str>, name: &str) -> Result<(String, String, String)> {
        let (schema, name, kind) = self.table(schema, name)?;
        if kind != "SEQUENCE" {
            return Err(errors::SequenceError::NotASequence.about(format!("{schema}.{name}")));
        }
        let mut rest = String::new();
        self.facts.tables(&schema, Some(&name), TableDetail::Definition, &mut |table| {
            rest = format!(" ENGINE={}", table.engine.as_deref().unwrap_or_default());
            if !table.comment.is_empty() {
                rest += &format!(" COMMENT='{}'", table.comment.replace('\'', "''"));
            }
            Ok(())
        })?;
        Ok((schema, name, rest))
    }

    /// Schema and name of an existing table or view whose columns are known.
    ///
    /// # Errors
    /// 1356 for a view that refers to what is gone.
    fn whole_table(&self, schema: Option<&str>, name: &str) -> Result<(String, String)> {
        let (schema, name, kind) = self.table(schema, name)?;
        let mut is_broken = false;
        if kind == "VIEW" {
            self.facts.tables(&schema, Some(&name), TableDetail::Definition, &mut |table| {
                is_broken = table.columns.is_empty();
                Ok(())
            })?;
        }
        if is_broken {
            return Err(err!(VIEW_INVALID, schema, name));
        }
        Ok((schema, name))
    }

    /// Schema and name of an existing table or view.
    fn table(&self, schema: Option<&str>, name: &str) -> Result<(String, String, &'static str)> {
        let schema = self.schema(schema)?;
        let mut found = None;
        self.facts.tables(&schema, Some(name), TableDetail::Name, &mut |table| {
            found = Some((table.name.clone(), table.table_type));
            Ok(())
        })?;
        let (name, kind) = found.ok_or_else(|| err!(NO_SUCH_TABLE, schema, name))?;
        Ok((schema, name, kind))
    }
}

/// The schemas of information tables are found case-insensitively.
fn is_system(name: &str, schema: &str) -> bool {
    const SYSTEM: [&str; 2] = ["information_schema", "performance_schema"];
    SYSTEM.contains(&schema) && name.eq_ignore_ascii_case(schema)
}

fn parse_options(mode: SqlMode) -> ParseOptions<'static> {
    ParseOptions {
        ansi_quotes: mode.contains(SqlMode::ANSI_QUOTES),
        pipes_as_concat: mode.contains(SqlMode::PIPES_AS_CONCAT),
        no_backslash_escapes: mode.contains(SqlMode::NO_BACKSLASH_ESCAPES),
        ignore_space: mode.contains(SqlMode::IGNORE_SPACE),
        high_not_precedence: mode.contains(SqlMode::HIGH_NOT_PRECEDENCE),
        real_as_float: mode.contains(SqlMode::REAL_AS_FLOAT),
        ..ParseOptions::default()
    }
}

/// The SELECT that a SHOW is rewritten to; `None` for a SHOW that is not a view on tables.
fn show_select(show: &Show, scope: &Scope<'_>) -> Result<Option<Select>> {
    let select = match &show.kind {
        ShowKind::Databases => objects::databases(show.filter.as_ref()),
        ShowKind::Tables { full, schema, .. } => {
            let schema = scope.schema(schema.as_ref().map(|name| &*name.text))?;
            objects::tables(&schema, *full, show.filter.as_ref())
        }
        ShowKind::TableStatus(schema) => {
            objects::table_status(&scope.schema(schema.as_ref().map(|name| &*name.text))?)
        }
        ShowKind::OpenTables(_) => objects::open_tables(),
        ShowKind::Columns { full, table, .. } => objects::columns(table, *full, scope)?,
        ShowKind::Index { table, .. } => objects::indexes(table, scope)?,
        ShowKind::CreateTable(name) => objects::create_table(name, scope)?,
        ShowKind::CreateSequence(name) => objects::create_sequence(name, scope)?,
        ShowKind::CreateView(name) => objects::create_view(name, scope)?,
        ShowKind::CreateDatabase { name, if_not_exists } => {
            objects::create_database(&scope.schema(Some(&name.text))?, *if_not_exists)
        }
        ShowKind::Triggers { schema, .. } => {
            objects::triggers(&scope.schema(schema.as_ref().map(|name| &*name.text))?)
        }
        ShowKind::Events(schema) => {
            objects::events(&scope.schema(schema.as_ref().map(|name| &*name.text))?)
        }
        ShowKind::ProcedureStatus => objects::routines("PROCEDURE"),
        ShowKind::FunctionStatus => objects::routines("FUNCTION"),
        ShowKind::LibraryStatus => objects::libraries(),
        ShowKind::CharacterSet => server::character_sets(),
        ShowKind::ClusterStatus => {
            let mut is_known = false;
            let (schema, table) = ("data_dictionary", Some("NDB_NODES"));
            scope.facts.tables(schema, table, TableDetail::Name, &mut |_| {
                is_known = true;
                Ok(())
            })?;
            if !is_known {
                return Err(errors::Error::not_supported(
                    "SHOW CLUSTER STATUS without the plugin ndb",
                ));
            }
            server::cluster_status()
        }
        ShowKind::Collation => server::collations(),
        ShowKind::Engines => server::engines(),
        ShowKind::Engine { name, .. } => {
            server::engine_status(name.as_ref().map(|name| &*name.text))
        }
        ShowKind::Plugins => server::plugins(),
        ShowKind::Privileges => server::privileges(),
        ShowKind::Processlist { full } => server::processlist(*full),
        ShowKind::Status(range) => server::status(range),
        ShowKind::Variables(range) => server::variables(range),
        ShowKind::Warnings(limit) => server::conditions(false, limit.as_ref()),
        ShowKind::Errors(limit) => server::conditions(true, limit.as_ref()),
        ShowKind::WarningCount => server::condition_count("warning_count"),
        ShowKind::ErrorCount => server::condition_count("error_count"),
        ShowKind::Grants { user: None, .. } => server::own_grants(&scope.ctx.current_user),
        ShowKind::Profiles => server::profiles(),
        ShowKind::Profile { types, query, limit } => server::profile(types, *query, limit.as_ref()),
        ShowKind::BinaryLogStatus => server::binary_log_status(),
        ShowKind::BinaryLogs if !logs_changes(scope) => return Err(err!(NO_BINARY_LOGGING)),
        ShowKind::BinaryLogs => server::binary_logs(),
        ShowKind::Replicas => server::replicas(),
        ShowKind::ChangeStreams | ShowKind::CreateChangeStream(_) if !logs_changes(scope) => {
            return Err(err!(NO_BINARY_LOGGING));
        }
        ShowKind::ChangeStreams => server::change_streams(),
        ShowKind::CreateChangeStream(name) => server::create_change_stream(&name.text),
        ShowKind::ReplicaStatus { channel } => {
            let mut is_known = false;
            let (schema, table) = ("data_dictionary", Some("REPLICA_STATUS"));
            scope.facts.tables(schema, table, TableDetail::Name, &mut |_| {
                is_known = true;
                Ok(())
            })?;
            server::replica_status(channel.as_deref(), is_known)
        }
        ShowKind::BinlogEvents { log, from, limit, .. } => {
            server::binlog_events(log.as_deref(), *from, limit.as_ref())
        }
        // These need more than a SELECT, or show objects that do not exist yet: the session answers.
        ShowKind::CreateFunction(_)
        | ShowKind::CreateLibrary(_)
        | ShowKind::CreateProcedure(_)
        | ShowKind::CreateTrigger(_)
        | ShowKind::CreateEvent(_)
        | ShowKind::CreateUser(_)
        | ShowKind::FunctionCode(_)
        | ShowKind::ProcedureCode(_)
        | ShowKind::Grants { user: Some(_), .. }
        | ShowKind::ParseTree(_) => return Ok(None),
    };
    Ok(Some(select.filtered(show.filter.as_ref())))
}

#[cfg(test)]
mod tests;
