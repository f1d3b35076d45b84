//! What information tables see of the server, filtered by what the session's account may see.

mod partitions;
mod views;

use std::sync::Arc;

use catalog::{
    AccountName, CatalogSnapshot, CatalogView, Column, ColumnDefault, EffectivePrivileges, Index,
    IndexPart, PrivilegeSet, Relation, RelationKind, Table, same_name,
};
use engine_api::{DeadlockView, Engine, IndexId, LockReport};
use errors::{Diagnostics, Result, err};
use plugin_api::{
    AccountView, ColumnView, ConstraintKind, ConstraintView, EventView, IndexView,
    InformationContext, InformationTable, IoBucket, PartitionView, PluginInfo, ProcessView,
    RoutineView, TableDetail, TableView, TriggerView, VariableView,
};
use types::{DataType, ZoneRules};

use crate::process::SessionShared;
use crate::server::Server;
use crate::session::TemporaryTables;
use crate::show_create;
use crate::status;
use definitions::{is_hidden, quote, type_text};
use programs::{Sight, sight};
use variables::{Scope, SessionValues, Source, display_text};

const BASE_TABLE: &str = "BASE TABLE";
const VIEW: &str = "VIEW";

/// COM_STATISTICS.
pub(crate) fn statistics_line(server: &Server) -> String {
    let sums = server.sessions.sums();
    let of = |counter: status::Counter| sums.get(counter.0).copied().unwrap_or(0);
    let uptime = uptime_seconds(server);
    let questions = of(status::Counter::QUESTIONS);
    format!(
        "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {}  Opens: 0  Flush tables: 0  Open tables: {}  Queries per second avg: {:.3}",
        server.sessions.len(),
        of(status::Counter::SLOW_QUERIES),
        server.catalog.with(CatalogSnapshot::read_tables),
        questions as f64 / uptime.max(1) as f64,
    )
}

fn uptime_seconds(server: &Server) -> u64 {
    server.now_micros().saturating_sub(server.started_micros).max(0) as u64 / 1_000_000
}

/// A session as information tables see it. Made for every statement, so it only borrows.
pub(crate) struct Information<'a> {
    pub(crate) server: &'a Server,
    pub(crate) shared: &'a SessionShared,
    pub(crate) values: Arc<SessionValues>,
    pub(crate) privileges: &'a EffectivePrivileges,
    /// Of the statement before.
    pub(crate) diagnostics: &'a Diagnostics,
    pub(crate) database: Option<Arc<str>>,
    pub(crate) account: &'a AccountName,
    pub(crate) temporary: &'a TemporaryTables,
    pub(crate) tls: Option<&'a (String, String)>,
    pub(crate) active_roles: &'a [AccountName],
}

impl Information<'_> {
    fn zone(&self) -> Arc<dyn ZoneRules> {
        let definitions = &self.server.globals.definitions;
        let name = definitions.find("time_zone").map(|id| self.values.get(id).clone());
        let name = name.map_or_else(String::new, |value| variables::as_text(&value));
        self.server.zone(&name).unwrap_or_else(|| Arc::new(types::FixedOffset::utc()))
    }

    /// How the session wants to see definitions.
    fn style(&self) -> show_create::Style {
        let value = |name: &str| {
            let id = self.server.globals.definitions.find(name)?;
            Some(self.values.get(id).clone())
        };
        let mode = value("sql_mode").map_or_else(String::new, |v| variables::as_text(&v));
        let mode = |wanted: &str| mode.split(',').any(|name| name == wanted);
        let spare = matches!(
            value("sql_quote_show_create"),
            Some(types::Value::Int(0) | types::Value::UInt(0))
        );
        show_create::Style {
            ansi_quotes: mode("ANSI_QUOTES"),
            spare_quotes: spare,
            portable: mode("ANSI"),
        }
    }

    fn catalog_view(&self) -> CatalogView {
        CatalogView { snapshot: self.server.catalog.snapshot(), temporary: self.temporary.clone() }
    }

    fn may_see_all(&self) -> bool {
        self.privileges.global().contains(PrivilegeSet::PROCESS)
    }

    /// What only the engine knows, and what shows it.
    fn add_statistics(&self, view: &mut TableView, table: &Table) {
        let engine = self.server.registry.engine(&table.engine);
        let stats = engine.and_then(|engine| engine.table_stats(table.id).ok()).unwrap_or_default();
        let has_counter = table.columns.iter().any(|column| column.auto_increment);
        let next = engine
            .filter(|_| has_counter)
            .and_then(|engine| engine.auto_increment_next(table.id).ok());
        view.auto_increment = next;
        view.rows = stats.rows;
        partitions::share_rows(&mut view.partitions, stats.rows);
        view.data_bytes = stats.data_bytes;
        let entries = table.fulltext.iter().filter_map(|index| {
            let stats = engine?.table_stats(index.entries).ok()?;
            Some(stats.data_bytes + stats.index_bytes)
        });
        view.index_bytes = stats.index_bytes + entries.sum::<u64>();
        view.indexes = index_views(table, &stats.distinct, stats.rows);
        view.create_statement =
            show_create::create_table(table, next, self.zone().as_ref(), self.style());
    }

    fn table_view(&self, table: &Table, detail: TableDetail) -> TableView {
        let zone = self.zone();
        let collation = charset::collation_or_binary(table.collation).name;
        let options: Vec<String> = table
            .options
            .iter()
            .map(|(name, value)| format!("{}={value}", name.to_lowercase()))
            .collect();
        let partitions = partitions::views(table);
        let row_format = table.options.iter().find(|(name, _)| name == "ROW_FORMAT");
        let mut view = TableView {
            schema: table.schema.to_string(),
            name: table.name.to_string(),
            table_type: BASE_TABLE,
            engine: Some(definitions::SHOWN_ENGINE.to_owned()),
            collation: collation.to_owned(),
            comment: table.comment.clone(),
            create_options: with_partitioned(options, &partitions).join(" "),
            row_format: row_format.map_or_else(|| "Dynamic".to_owned(), |(_, word)| capital(word)),
            created_micros: table.created_micros,
            columns: table
                .columns
                .iter()
                .enumerate()
                .filter(|(_, column)| !is_hidden(column))
                .map(|(position, column)| column_view(table, position, column, zone.as_ref()))
                .collect(),
            indexes: index_views(table, &[], 0),
            constraints: constraint_views(table, &self.catalog_view()),
            temporary: table.temporary,
            partitions,
            ..TableView::default()
        };
        if detail == TableDetail::Statistics {
            self.add_statistics(&mut view, table);
        }
        view
    }

    fn information_view(&self, table: &Arc<dyn InformationTable>) -> TableView {
        let is_view = matches!(table.schema(), "information_schema" | "data_dictionary");
        TableView {
            schema: table.schema().to_owned(),
            name: table.name().to_owned(),
            table_type: if is_view { "SYSTEM VIEW" } else { BASE_TABLE },
            engine: (!is_view).then(|| "PERFORMANCE_SCHEMA".to_owned()),
            collation: "utf8mb4_0900_ai_ci".to_owned(),
            row_format: if is_view { String::new() } else { "Dynamic".to_owned() },
            columns: table
                .columns()
                .iter()
                .map(|column| plain_column(column.name.to_owned(), column.ty.clone()))
                .collect(),
            create_statement: information_create(table),
            ..TableView::default()
        }
    }

    /// Tables of facts in order of name.
    fn system_tables(&self, schema: &str, name: Option<&str>) -> Vec<TableView> {
        let known = self.server.registry.information_tables().iter();
        let mut tables: Vec<TableView> = known
            .filter(|table| table.schema() == schema)
            // Dumps copy what these list as if it were rows of tables: their facts are found by name only.
            .filter(|_| name.is_some() || !matches!(schema, "mysql" | "sys"))
            .filter(|table| name.is_none_or(|name| table.name().eq_ignore_ascii_case(name)))
            .map(|table| self.information_view(table))
            .collect();
        tables.sort_by(|one, other| one.name.cmp(&other.name));
        tables
    }

    fn sees(&self, schema: &str, name: &str) -> bool {
        self.privileges.sees_table(schema, name)
    }

    fn relation_view(&self, relation: &Relation, detail: TableDetail) -> TableView {
        match relation {
            Relation::Table(table) => self.table_view(table, detail),
            Relation::View(view) => self.view_view(view),
        }
    }

    /// The table or view `name`, temporary tables first.
    fn user_table(&self, schema: &str, name: &str, detail: TableDetail) -> Option<TableView> {
        let catalog = self.catalog_view();
        if let Some(table) = catalog.temporary_table(schema, name) {
            return Some(self.table_view(table, detail));
        }
        catalog.snapshot.kind(schema, name).filter(|_| self.sees(schema, name))?;
        catalog.snapshot.look(schema, name).map(|found| self.relation_view(&found, detail))
    }

    /// All tables and views of a schema but temporary ones, which are in no list.
    fn user_tables(
        &self,
        schema: &str,
        detail: TableDetail,
        visit: &mut dyn FnMut(&TableView) -> Result<()>,
    ) -> Result<()> {
        let snapshot = self.server.catalog.snapshot();
        for (name, kind) in snapshot.names(schema).filter(|(name, _)| self.sees(schema, name)) {
            self.shared.cancel.check()?;
            let view = match detail {
                TableDetail::Name => Some(TableView {
                    schema: schema.to_owned(),
                    name: name.to_string(),
                    table_type: match kind {
                        RelationKind::Table => BASE_TABLE,
                        RelationKind::View => VIEW,
                    },
                    ..TableView::default()
                }),
                TableDetail::Definition | TableDetail::Statistics => {
                    let found = snapshot.look(schema, name);
                    found.map(|found| self.relation_view(&found, detail))
                }
            };
            view.iter().try_for_each(&mut *visit)?;
        }
        Ok(())
    }
}

/// The options, and whether the table is partitioned: the reference looks at the text of the expression, which KEY () has not.
fn with_partitioned(mut options: Vec<String>, partitions: &[PartitionView]) -> Vec<String> {
    if partitions.first().is_some_and(|first| first.expression.is_some()) {
        options.push("partitioned".into());
    }
    options
}

fn capital(word: &str) -> String {
    let lower = word.to_lowercase();
    let mut chars = lower.chars();
    chars
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().collect::<String>() + chars.as_str())
}

fn information_create(table: &Arc<dyn InformationTable>) -> String {
    let is_view = table.schema() == "information_schema";
    let (words, end) = match table.schema() {
        "information_schema" => ("TEMPORARY TABLE", "ENGINE=MEMORY DEFAULT CHARSET=utf8mb3"),
        "performance_schema" => (
            "TABLE",
            "ENGINE=PERFORMANCE_SCHEMA DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci",
        ),
        _ => ("TABLE", "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci"),
    };
    let columns: Vec<String> = table
        .columns()
        .iter()
        .map(|column| {
            let null = match (column.ty.nullable, column.ty.kind) {
                (true, types::TypeKind::LongText | types::TypeKind::MediumText) => "",
                (true, _) => " DEFAULT NULL",
                (false, types::TypeKind::VarChar) if is_view => " NOT NULL DEFAULT ''",
                (false, _) => " NOT NULL",
            };
            format!("  {} {}{null}", quote(column.name), type_text(&column.ty))
        })
        .collect();
    let name = quote(table.name());
    format!("CREATE {words} {name} (\n{}\n) {end}", columns.join(",\n"))
}

/// PRI, UNI, MUL or nothing.
pub(crate) fn key_of(table: &Table, position: usize) -> &'static str {
    let in_primary =
        table.primary().is_some_and(|index| index.parts.iter().any(|part| part.column == position));
    if in_primary {
        return "PRI";
    }
    let nullable = |part: &IndexPart| table.columns[part.column].ty.nullable;
    let whole = |index: &Index| {
        index.unique
            && index.parts.iter().all(|part| part.prefix_length.is_none() && !nullable(part))
    };
    // Without a primary key the first unique NOT NULL index is shown as one.
    let stand_in = if table.primary().is_some() {
        None
    } else {
        table.indexes.iter().find(|index| whole(index))
    };
    if stand_in.is_some_and(|index| index.parts.iter().any(|part| part.column == position)) {
        return "PRI";
    }
    let mut key = "";
    for index in &table.indexes {
        if index.parts.first().is_some_and(|part| part.column == position) {
            if index.unique && index.parts.len() == 1 {
                return "UNI";
            }
            key = "MUL";
        }
    }
    if table.fulltext.iter().any(|index| index.columns.first() == Some(&position)) {
        key = "MUL";
    }
    key
}

fn column_view(
    table: &Table,
    position: usize,
    column: &Column,
    zone: &dyn ZoneRules,
) -> ColumnView {
    let now = |digits: u8| match digits {
        0 => "CURRENT_TIMESTAMP".to_owned(),
        digits => format!("CURRENT_TIMESTAMP({digits})"),
    };
    let (default, default_is_expression) = match &column.default {
        ColumnDefault::None | ColumnDefault::Constant(types::Value::Null) => (None, false),
        ColumnDefault::Constant(types::Value::UInt(bits))
            if column.ty.kind == types::TypeKind::Bit =>
        {
            (Some(format!("b'{bits:b}'")), false)
        }
        ColumnDefault::Constant(types::Value::Bytes(bytes))
            if matches!(column.ty.kind, types::TypeKind::Binary | types::TypeKind::VarBinary) =>
        {
            let bytes = bytes.as_slice();
            let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            let hex: String = bytes[..used].iter().map(|byte| format!("{byte:02X}")).collect();
            (Some(format!("0x{hex}")), false)
        }
        ColumnDefault::Constant(value) => {
            (Some(show_create::constant_text(column, value, zone)), false)
        }
        ColumnDefault::Now(digits) => (Some(now(*digits)), true),
        ColumnDefault::Expression(text) => (Some(text.to_string()), true),
    };
    ColumnView {
        name: column.name.to_string(),
        ty: column.ty.clone(),
        column_type: type_text(&column.ty),
        default,
        default_is_expression,
        auto_increment: column.auto_increment,
        on_update: column.on_update_now.map(now),
        generated: column
            .generated
            .as_ref()
            .map(|generated| (generated.expression.to_string(), generated.stored)),
        comment: column.comment.clone(),
        invisible: column.invisible,
        key: key_of(table, position),
        histogram: column
            .histogram
            .as_ref()
            .map(|histogram| crate::histogram::shown_histogram(histogram, &column.ty)),
    }
}

/// A column that is nothing but a name and a type: of a view, of an information table.
fn plain_column(name: String, ty: DataType) -> ColumnView {
    ColumnView {
        name,
        column_type: type_text(&ty),
        ty,
        default: None,
        default_is_expression: false,
        auto_increment: false,
        on_update: None,
        generated: None,
        comment: String::new(),
        invisible: false,
        key: "",
        histogram: None,
    }
}

fn index_views(table: &Table, distinct: &[Vec<u64>], rows: u64) -> Vec<IndexView> {
    let view = |index: &catalog::Index| {
        let place = table.definition.indexes.iter().position(|known| known.id == index.id);
        let counts = place.and_then(|place| distinct.get(place));
        let hidden = table.key_parts(index).len() - index.parts.len();
        let part = |(position, part): (usize, &catalog::IndexPart)| {
            let column = &table.columns[part.column];
            let count =
                counts.and_then(|counts| counts.get(position + hidden)).copied().unwrap_or(0);
            let (name, expression) = match &column.generated {
                Some(generated) if generated.hidden => {
                    (None, Some(generated.expression.to_string()))
                }
                _ => (Some(column.name.to_string()), None),
            };
            (name, expression, part.prefix_length, part.descending, count)
        };
        IndexView {
            name: index.name.to_string(),
            unique: index.unique,
            kind: "BTREE",
            parts: index.parts.iter().enumerate().map(part).collect(),
            comment: index.comment.clone(),
            visible: index.visible,
        }
    };
    // An index over words has no order of rows: as many as there are rows.
    let fulltext = table.fulltext.iter().map(|index| {
        let part = |column: &usize| {
            (Some(table.columns[*column].name.to_string()), None, None, false, rows)
        };
        IndexView {
            name: index.name.to_string(),
            unique: false,
            kind: "FULLTEXT",
            parts: index.columns.iter().map(part).collect(),
            comment: index.comment.clone(),
            visible: index.visible,
        }
    });
    table.indexes.iter().map(view).chain(fulltext).collect()
}

fn constraint_views(table: &Table, catalog: &CatalogView) -> Vec<ConstraintView> {
    let mut views = Vec::new();
    for index in table.indexes.iter().filter(|index| index.unique) {
        let columns = index.parts.iter().map(|part| &table.columns[part.column]);
        let kind = if index.id == IndexId::CLUSTERED {
            ConstraintKind::Primary(columns.map(|column| column.name.to_string()).collect())
        } else {
            let named = |column: &Column| (!is_hidden(column)).then(|| column.name.to_string());
            ConstraintKind::Unique(columns.map(named).collect())
        };
        views.push(ConstraintView { name: index.name.to_string(), kind });
    }
    for key in &table.foreign_keys {
        let parent = catalog.table(&key.referenced_schema, &key.referenced_table);
        let unique_name = parent.and_then(|parent| {
            let index = parent.indexes.iter().find(|index| {
                index.unique
                    && index.parts.len() == key.referenced_columns.len()
                    && index
                        .parts
                        .iter()
                        .zip(&key.referenced_columns)
                        .all(|(part, name)| same_name(&parent.columns[part.column].name, name))
            });
            index.map(|index| index.name.to_string())
        });
        let columns =
            key.columns.iter().map(|column| table.columns[*column].name.to_string()).collect();
        let referenced = key.referenced_columns.iter().map(|column| column.to_string()).collect();
        views.push(ConstraintView {
            name: key.name.to_string(),
            kind: ConstraintKind::Foreign {
                columns,
                referenced: (
                    key.referenced_schema.to_string(),
                    key.referenced_table.to_string(),
                    referenced,
                ),
                unique_name: unique_name.unwrap_or_default(),
                on_update: action_name(key.on_update),
                on_delete: action_name(key.on_delete),
            },
        });
    }
    for check in &table.checks {
        let kind = ConstraintKind::Check(check.expression.to_string(), check.enforced);
        views.push(ConstraintView { name: check.name.to_string(), kind });
    }
    views
}

fn action_name(action: catalog::ReferenceAction) -> &'static str {
    match action {
        catalog::ReferenceAction::NoAction => "NO ACTION",
        catalog::ReferenceAction::Restrict => "RESTRICT",
        catalog::ReferenceAction::Cascade => "CASCADE",
        catalog::ReferenceAction::SetNull => "SET NULL",
        catalog::ReferenceAction::SetDefault => "SET DEFAULT",
    }
}

impl InformationContext for Information<'_> {
    fn routines(&self, schema: &str) -> Vec<RoutineView> {
        let snapshot = self.server.catalog.snapshot();
        let view = |routine: &Arc<catalog::Routine>| {
            let is_full = match sight(routine, self.privileges, self.account) {
                Sight::Nothing => return None,
                Sight::Name => false,
                Sight::Text => true,
            };
            Some(programs::routine_view(routine, is_full))
        };
        snapshot.routines(schema).filter_map(view).collect()
    }

    fn triggers(&self, schema: &str) -> Vec<TriggerView> {
        let snapshot = self.server.catalog.snapshot();
        let is_seen = |trigger: &&Arc<catalog::Trigger>| {
            self.privileges.allows_table(schema, &trigger.table, PrivilegeSet::TRIGGER)
        };
        let mut seen: Vec<&Arc<catalog::Trigger>> =
            snapshot.triggers(schema).filter(is_seen).collect();
        seen.sort_by_key(|trigger| (&trigger.table, trigger.event, !trigger.before, trigger.order));
        seen.into_iter().map(|trigger| programs::trigger_view(trigger)).collect()
    }

    fn events(&self, schema: &str) -> Vec<EventView> {
        if !self.privileges.on_schema(schema).contains(PrivilegeSet::EVENT) {
            return Vec::new();
        }
        let snapshot = self.server.catalog.snapshot();
        let view = |event: &Arc<catalog::Event>| {
            programs::event_view(event, &*programs::EventHost::event_zone(self.server, event))
        };
        snapshot.events(schema).map(view).collect()
    }

    fn is_updatable(&self, schema: &str, view: &str) -> bool {
        match self.server.catalog.snapshot().look(schema, view) {
            Some(Relation::View(found)) => Information::is_updatable(self, &found),
            _ => false,
        }
    }

    fn schemas(&self) -> Vec<(String, String)> {
        let snapshot = self.server.catalog.snapshot();
        let mut schemas: Vec<(String, String)> = snapshot
            .schemas()
            .filter(|schema| self.privileges.sees_schema(&schema.name))
            .map(|schema| {
                let collation = charset::collation_or_binary(schema.default_collation);
                (schema.name.to_string(), collation.name.to_owned())
            })
            .collect();
        for name in catalog::SYSTEM_SCHEMAS {
            let used = self
                .server
                .registry
                .information_tables()
                .iter()
                .any(|table| table.schema() == *name);
            let visible = !matches!(*name, "mysql" | "sys") || self.privileges.sees_schema(name);
            if visible && (used || *name == "information_schema") {
                let collation = match *name {
                    "information_schema" => "utf8mb3_general_ci",
                    _ => "utf8mb4_0900_ai_ci",
                };
                schemas.push(((*name).to_owned(), collation.to_owned()));
            }
        }
        schemas.sort();
        schemas
    }

    fn tables(
        &self,
        schema: &str,
        name: Option<&str>,
        detail: TableDetail,
        visit: &mut dyn FnMut(&TableView) -> Result<()>,
    ) -> Result<()> {
        self.shared.cancel.check()?;
        match (catalog::system_schema(schema), name) {
            (Some(system), name) => self.system_tables(system, name).iter().try_for_each(visit),
            (None, Some(name)) => self.user_table(schema, name, detail).iter().try_for_each(visit),
            (None, None) => self.user_tables(schema, detail, visit),
        }
    }

    fn schema_create_statement(&self, schema: &str) -> Option<String> {
        let snapshot = self.server.catalog.snapshot();
        if let Some(schema) = snapshot.schema(schema) {
            return Some(show_create::create_schema(schema, self.style()));
        }
        let name = catalog::system_schema(schema)?;
        let charset = if name == "information_schema" { "utf8mb3" } else { "utf8mb4" };
        Some(format!(
            "CREATE DATABASE `{name}` /*!40100 DEFAULT CHARACTER SET {charset} */ /*!80016 DEFAULT ENCRYPTION='N' */"
        ))
    }

    fn variables(&self) -> Vec<VariableView> {
        let globals = &self.server.globals;
        let view = |(id, definition): (_, &'static variables::Definition)| {
            let global = globals.get(id);
            let shown = match (definition.scope, definition.source) {
                (Scope::Global, _) => global.clone(),
                (Scope::Session | Scope::Both, Source::Stored) => self.values.get(id).clone(),
                (Scope::Session | Scope::Both, Source::Computed) => self.computed(definition.name),
            };
            VariableView {
                name: definition.name.to_owned(),
                session: display_text(definition, &shown),
                global: (definition.scope != Scope::Session)
                    .then(|| display_text(definition, &global)),
                dynamic: definition.dynamic,
                source: globals.origin(id).as_str(),
                description: definition.description,
            }
        };
        globals
            .definitions
            .iter()
            // The old names are answered by @@ only, as they are gone from the reference's list.
            .filter(|(_, definition)| !definition.name.starts_with("tx_"))
            .map(view)
            .collect()
    }

    fn status(&self, global: bool) -> Vec<(String, String)> {
        let sums = self.server.sessions.sums();
        let own = |position: usize| self.shared.counters.get(status::Counter(position));
        let mut rows: Vec<(String, String)> = status::NAMES
            .iter()
            .enumerate()
            .map(|(position, name)| {
                let value = if global { sums[position] } else { own(position) };
                ((*name).to_owned(), value.to_string())
            })
            .collect();
        let server = self.server;
        let uptime = uptime_seconds(server).to_string();
        let threads = server.sessions.len().to_string();
        let (cipher, version) = match self.tls {
            Some((version, cipher)) if !global => (cipher.clone(), version.clone()),
            _ => (String::new(), String::new()),
        };
        let fixed = [
            ("Aborted_clients", "0".to_owned()),
            ("Aborted_connects", "0".to_owned()),
            ("Connections", server.sessions.most().to_string()),
            ("Max_used_connections", server.sessions.most().to_string()),
            ("Open_tables", server.catalog.with(CatalogSnapshot::read_tables).to_string()),
            (
                "Prepared_stmt_count",
                server.prepared_count.load(std::sync::atomic::Ordering::Relaxed).to_string(),
            ),
            ("Ssl_cipher", cipher),
            ("Ssl_cipher_list", String::new()),
            ("Ssl_version", version),
            ("Ssl_session_cache_mode", "SERVER".to_owned()),
            ("Threads_cached", "0".to_owned()),
            ("Threads_connected", threads.clone()),
            ("Threads_created", threads),
            ("Threads_running", server.sessions.running().to_string()),
            ("Uptime", uptime.clone()),
            ("Uptime_since_flush_status", uptime),
            ("Innodb_page_size", "16384".to_owned()),
        ];
        for (name, value) in fixed {
            rows.push((name.to_owned(), value));
        }
        let mut counters = server.counters.all();
        let traffic = match global {
            true => server.sessions.traffic(),
            false => self.shared.traffic.counts(),
        };
        for (name, bytes) in [("Bytes_received", traffic.0), ("Bytes_sent", traffic.1)] {
            match counters.iter_mut().find(|(known, _)| *known == name) {
                // Of connections that are gone.
                Some((_, count)) if global => *count += bytes,
                Some((_, count)) => *count = bytes,
                None => counters.push((name, bytes)),
            }
        }
        for (name, value) in counters {
            match rows.iter_mut().find(|(known, _)| known == name) {
                Some((_, shown)) => *shown = value.to_string(),
                None => rows.push((name.to_owned(), value.to_string())),
            }
        }
        rows.sort();
        rows
    }

    fn processes(&self) -> Vec<ProcessView> {
        let own = self.account.to_string();
        let all = self.may_see_all();
        let views = self.server.sessions.views(self.server.now_micros());
        views.into_iter().filter(|view| all || view.account == own).collect()
    }

    fn conditions(&self) -> Vec<(&'static str, u16, String)> {
        self.diagnostics
            .conditions()
            .iter()
            .map(|condition| {
                (condition.level.as_str(), condition.code.0, condition.message.clone())
            })
            .collect()
    }

    fn engines(&self) -> Vec<(String, &'static str, String, bool, bool, bool)> {
        let default = self.server.default_engine.name();
        let mut engines: Vec<_> = self
            .server
            .registry
            .engines()
            .iter()
            .map(|engine| {
                let is_default = engine.name() == default;
                let name = self.server.shown_name(&**engine);
                let support = if is_default { "DEFAULT" } else { "YES" };
                (name.to_owned(), support, engine.comment().to_owned(), true, false, true)
            })
            .collect();
        // Programs look for the reference's name before they rely on transactions.
        let comment = format!("Another name of {}", definitions::SHOWN_ENGINE);
        engines.push(("InnoDB".to_owned(), "YES", comment, true, false, true));
        engines.sort();
        engines
    }

    fn catalog_bytes(&self) -> u64 {
        self.server.catalog.with(CatalogSnapshot::memory_bytes) as u64
    }

    fn resident_bytes(&self) -> u64 {
        sys::process::resident_bytes()
    }

    fn engine_stats(&self) -> Vec<(String, String, String, String)> {
        let mut rows = Vec::new();
        for engine in self.server.registry.engines() {
            for stat in engine.stats() {
                rows.push((engine.name().to_owned(), stat.group.to_owned(), stat.name, stat.value));
            }
        }
        rows
    }

    fn engine_locks(&self) -> Vec<(String, LockReport)> {
        /// Of each engine.
        const LOCKS_MAX: usize = 1 << 16;
        let (all, own) = (self.may_see_all(), self.account.to_string());
        let is_shown = |id: u64| {
            all || self.server.sessions.get(id).is_some_and(|it| it.activity.lock().account == own)
        };
        let report = |engine: &Arc<dyn Engine>| {
            let mut report = engine.locks(LOCKS_MAX);
            report.retain(is_shown);
            (self.server.shown_name(&**engine).to_uppercase(), report)
        };
        self.server.registry.engines().iter().map(report).collect()
    }

    fn latest_deadlocks(&self) -> Vec<(String, DeadlockView)> {
        let engines = self.server.registry.engines().iter();
        let latest = engines
            .filter_map(|engine| Some((engine.name().to_owned(), engine.latest_deadlock()?)));
        latest.collect()
    }

    fn io_times(&self) -> Vec<IoBucket> {
        use sys::io_times::IoBucket as Counted;
        let view = |Counted { call, below_micros, count, total_micros }| IoBucket {
            call,
            below_micros,
            count,
            total_micros,
        };
        self.server.io_times.buckets().into_iter().map(view).collect()
    }

    fn plugins(&self) -> Vec<(PluginInfo, Vec<(&'static str, String)>)> {
        self.server.registry.plugins().to_vec()
    }

    fn functions(&self) -> Vec<(&'static str, &'static str)> {
        self.server.registry.functions().collect()
    }

    fn plan_cache(&self) -> Vec<(String, String, u64, u64, u64)> {
        self.server.plan_cache.view()
    }

    fn accounts(&self) -> Vec<AccountView> {
        let snapshot = self.server.catalog.snapshot();
        let may_read = self.privileges.on_schema("mysql").contains(PrivilegeSet::SELECT)
            || self.privileges.global().contains(PrivilegeSet::CREATE_USER);
        snapshot
            .accounts()
            .iter()
            .filter(|account| may_read || account.name == *self.account)
            .map(|account| crate::accounts::texts::account_view(account, may_read))
            .collect()
    }

    fn role_accounts(&self) -> Vec<AccountView> {
        let snapshot = self.server.catalog.snapshot();
        let mut names = vec![self.account.clone()];
        let mut views = Vec::new();
        let mut next = 0;
        while let Some(name) = names.get(next).cloned() {
            next += 1;
            let Some(account) = snapshot.accounts().get(&name) else { continue };
            views.push(crate::accounts::texts::account_view(account, false));
            for grant in &account.roles {
                if !names.contains(&grant.role) {
                    names.push(grant.role.clone());
                }
            }
        }
        views
    }

    fn active_roles(&self) -> Vec<(String, String)> {
        let name = |role: &AccountName| (role.user.to_string(), role.host.to_string());
        self.active_roles.iter().map(name).collect()
    }

    fn grants(&self, account: Option<&str>) -> Result<Vec<String>> {
        let snapshot = self.server.catalog.snapshot();
        let name = match account {
            None => self.account.clone(),
            Some(text) => ::accounts::parse_account(text),
        };
        let may_read = name == *self.account
            || self.privileges.on_schema("mysql").contains(PrivilegeSet::SELECT);
        if !may_read {
            return Err(err!(DBACCESS_DENIED_ERROR, self.account.user, self.account.host, "mysql"));
        }
        let accounts = snapshot.accounts();
        match accounts.get(&name) {
            Some(found) if account.is_none() => {
                let merged = crate::accounts::texts::with_roles(accounts, found, self.active_roles);
                Ok(crate::accounts::texts::grant_statements(&merged))
            }
            Some(found) => Ok(crate::accounts::texts::grant_statements(found)),
            None if name == *self.account => Ok(vec![format!(
                "GRANT ALL PRIVILEGES ON *.* TO `{}`@`{}` WITH GRANT OPTION",
                name.user, name.host
            )]),
            None => Err(err!(NONEXISTING_GRANT, name.user, name.host)),
        }
    }

    fn database(&self) -> Option<String> {
        self.database.as_ref().map(|name| name.to_string())
    }

    fn current_user(&self) -> String {
        self.account.to_string()
    }

    fn now_micros(&self) -> i64 {
        self.server.now_micros()
    }

    fn started_micros(&self) -> i64 {
        self.server.started_micros
    }

    fn check_cancelled(&self) -> Result<()> {
        self.shared.cancel.check()
    }
}

impl Information<'_> {
    /// Variables that are facts of the session.
    fn computed(&self, name: &str) -> types::Value {
        match name {
            "warning_count" => types::Value::UInt(u64::from(self.diagnostics.warning_count())),
            "error_count" => types::Value::UInt(u64::from(self.diagnostics.error_count())),
            "pseudo_thread_id" => types::Value::UInt(self.shared.id),
            "timestamp" => types::Value::Double(self.server.now_micros() as f64 / 1e6),
            _ => types::Value::UInt(0),
        }
    }
}
