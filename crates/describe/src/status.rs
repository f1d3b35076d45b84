//! Variables, status counters, conditions, and the line of COM_STATISTICS.

use catalog::CatalogSnapshot;
use plugin_api::{ConditionView, StatusInformation, StatusScope, VariableChange, VariableView};
use types::Value;
use variables::{Changed, Definition, Scope, Source, display_text};

use crate::facts::{ConnectionFacts, ServerFacts};
use crate::file_status::{ABSENT, file_status, row_status, waiting_status};
use crate::information::Information;

impl StatusInformation for Information<'_> {
    fn variables(&self) -> Vec<VariableView> {
        let globals = self.server.globals();
        let catalog = self.snapshot();
        let view = |name: &str, id, definition: &'static Definition| {
            let global = globals.get(id);
            let shown = match (definition.scope, definition.source) {
                (Scope::Global, _) => global.clone(),
                (Scope::Session | Scope::Both, Source::Stored) => self.values.get(id).clone(),
                (Scope::Session | Scope::Both, Source::Computed) => self.computed(definition.name),
            };
            let (provenance, effect) = (globals.provenance(id), variables::effect(definition));
            let kept = catalog.persisted().get(definition.name);
            VariableView {
                name: name.to_owned(),
                session: display_text(definition, &shown),
                global: (definition.scope != Scope::Session)
                    .then(|| display_text(definition, &global)),
                dynamic: definition.dynamic,
                source: provenance.origin.as_str(),
                changed: provenance.changed.as_deref().map(change),
                persisted: kept.map(|kept| persisted_text(definition, &kept.value)),
                unit: variables::unit(definition),
                range: variables::range(definition),
                effect: effect.as_str(),
                needs_restart: effect.needs_restart(),
                description: definition.description,
                scope: match definition.scope {
                    Scope::Global => "GLOBAL",
                    Scope::Session => "SESSION_ONLY",
                    Scope::Both => "SESSION",
                },
                data_type: variables::data_type(definition),
            }
        };
        let known = &globals.definitions;
        let old = known.old_names().map(|(name, id)| view(name, id, known.get(id)));
        let mut views: Vec<VariableView> = known
            .iter()
            // These old names can be read by @@ only, as the reference's list no longer has them.
            .filter(|(_, definition)| !definition.name.starts_with("tx_"))
            .map(|(id, definition)| view(definition.name, id, definition))
            .chain(old)
            .collect();
        views.sort_by(|one, other| one.name.cmp(&other.name));
        views
    }

    fn status(&self, scope: StatusScope) -> Vec<(String, String)> {
        match scope {
            StatusScope::Global => global_status(self.server),
            StatusScope::Session => {
                let connection = self.connection;
                let tls = self.tls.cloned();
                status_rows(
                    self.server,
                    connection.counters(),
                    tls,
                    counted_in(self.server, connection),
                )
            }
        }
    }

    fn conditions(&self) -> Vec<ConditionView> {
        let conditions = self.diagnostics.conditions().iter();
        let view = |condition: &errors::Condition| ConditionView {
            level: condition.level.as_str(),
            code: condition.code.0,
            message: condition.message.clone(),
        };
        conditions.map(view).collect()
    }
}

fn change(changed: &Changed) -> VariableChange {
    let Changed { micros, user, host } = changed;
    VariableChange { micros: *micros, user: user.to_string(), host: host.to_string() }
}

/// A value that is kept for later starts, as SHOW VARIABLES prints it.
fn persisted_text(definition: &Definition, kept: &str) -> String {
    let value = variables::from_option(definition, kept);
    value.map_or_else(|_| kept.to_owned(), |value| display_text(definition, &value))
}

impl Information<'_> {
    /// Variables that are facts of the session.
    fn computed(&self, name: &str) -> Value {
        match name {
            "warning_count" => Value::UInt(u64::from(self.diagnostics.warning_count())),
            "error_count" => Value::UInt(u64::from(self.diagnostics.error_count())),
            "pseudo_thread_id" => Value::UInt(self.connection.id()),
            "timestamp" => Value::Double(self.server.now_micros() as f64 / 1e6),
            _ => Value::UInt(0),
        }
    }
}

/// Status variables of the server as a whole, in order of name.
pub fn global_status(server: &dyn ServerFacts) -> Vec<(String, String)> {
    status_rows(server, server.session_counters(), None, counted_globally(server))
}

/// The rows of SHOW STATUS: sessions' counters, values that are not counters, those of plugins, and `counted`, which win.
fn status_rows(
    server: &dyn ServerFacts,
    of_sessions: Vec<(&'static str, u64)>,
    tls: Option<(String, String)>,
    counted: Vec<(&'static str, u64)>,
) -> Vec<(String, String)> {
    let text = |(name, value): &(&'static str, u64)| ((*name).to_owned(), value.to_string());
    let mut rows: Vec<(String, String)> = of_sessions.iter().map(text).collect();
    rows.extend(fixed_status(server, tls));
    rows.extend(file_status(server));
    rows.extend(row_status(&of_sessions));
    rows.extend(waiting_status());
    rows.extend(ABSENT.iter().map(|name| ((*name).to_owned(), "0".to_owned())));
    for status in server.registry().status_variables() {
        rows.push((status.name.to_owned(), (status.read)()));
    }
    for engine in server.registry().engines() {
        rows.extend(engine.status().into_iter().map(|(name, value)| (name.to_owned(), value)));
    }
    for (name, value) in counted {
        match rows.iter_mut().find(|(known, _)| known == name) {
            Some((_, shown)) => *shown = value.to_string(),
            None => rows.push((name.to_owned(), value.to_string())),
        }
    }
    rows.sort();
    rows
}

/// Status values that are not counters; `tls` is the version and the cipher of an encrypted session.
fn fixed_status(server: &dyn ServerFacts, tls: Option<(String, String)>) -> Vec<(String, String)> {
    let uptime = uptime_seconds(server).to_string();
    let connections = server.connections();
    let threads = connections.open.to_string();
    let (version, cipher) = tls.unwrap_or_default();
    let (free, total) = server.data_space();
    let open_tables = server.catalog().with(CatalogSnapshot::read_tables).to_string();
    [
        ("Aborted_clients", "0".to_owned()),
        ("Aborted_connects", "0".to_owned()),
        ("Connection_errors_max_connections", "0".to_owned()),
        ("Datadir_free_bytes", free.to_string()),
        ("Datadir_total_bytes", total.to_string()),
        ("Max_used_connections", connections.most.to_string()),
        ("Open_tables", open_tables.clone()),
        ("Prepared_stmt_count", server.prepared_statements().to_string()),
        ("Ssl_cipher", cipher),
        ("Ssl_cipher_list", String::new()),
        ("Ssl_version", version),
        ("Ssl_session_cache_mode", "SERVER".to_owned()),
        ("Threads_cached", "0".to_owned()),
        ("Threads_connected", threads.clone()),
        ("Threads_created", threads),
        ("Threads_running", connections.running.to_string()),
        ("Uptime", uptime.clone()),
        ("Uptime_since_flush_status", uptime),
        ("Open_table_definitions", open_tables),
        ("Resource_group_supported", "ON".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// Counters of the server as a whole, with the bytes of all connections.
fn counted_globally(server: &dyn ServerFacts) -> Vec<(&'static str, u64)> {
    let mut counters = server.server_counters();
    for (name, bytes) in of_traffic(server.traffic()) {
        match counters.iter_mut().find(|(known, _)| *known == name) {
            // Of connections that have ended.
            Some((_, count)) => *count += bytes,
            None => counters.push((name, bytes)),
        }
    }
    counters
}

/// The same with the bytes of one connection.
fn counted_in(
    server: &dyn ServerFacts,
    connection: &dyn ConnectionFacts,
) -> Vec<(&'static str, u64)> {
    let mut counters = server.server_counters();
    for (name, bytes) in of_traffic(connection.traffic()) {
        match counters.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count = bytes,
            None => counters.push((name, bytes)),
        }
    }
    counters
}

fn of_traffic((received, sent): (u64, u64)) -> [(&'static str, u64); 2] {
    [("Bytes_received", received), ("Bytes_sent", sent)]
}

/// The line of COM_STATISTICS.
pub fn statistics_line(server: &dyn ServerFacts) -> String {
    let sums = server.session_counters();
    let of = |name: &str| sums.iter().find(|(known, _)| *known == name).map_or(0, |(_, sum)| *sum);
    let uptime = uptime_seconds(server);
    let questions = of("Questions");
    format!(
        "Uptime: {uptime}  Threads: {}  Questions: {questions}  Slow queries: {}  Opens: 0  Flush tables: 0  Open tables: {}  Queries per second avg: {:.3}",
        server.connections().open,
        of("Slow_queries"),
        server.catalog().with(CatalogSnapshot::read_tables),
        questions as f64 / uptime.max(1) as f64,
    )
}

fn uptime_seconds(server: &dyn ServerFacts) -> u64 {
    server.now_micros().saturating_sub(server.started_micros()).max(0) as u64 / 1_000_000
}
