//! Variables, status counters, conditions, and the line of COM_STATISTICS.

use catalog::CatalogSnapshot;
use plugin_api::{ConditionView, StatusInformation, StatusScope, VariableView};
use types::Value;
use variables::{Definition, Scope, Source, display_text};

use crate::facts::ServerFacts;
use crate::information::Information;

impl StatusInformation for Information<'_> {
    fn variables(&self) -> Vec<VariableView> {
        let globals = self.server.globals();
        let view = |(id, definition): (_, &'static Definition)| {
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
            // The old names can be read by @@ only, as the reference's list no longer has them.
            .filter(|(_, definition)| !definition.name.starts_with("tx_"))
            .map(view)
            .collect()
    }

    fn status(&self, scope: StatusScope) -> Vec<(String, String)> {
        let server = self.server;
        let counters = match scope {
            StatusScope::Global => server.session_counters(),
            StatusScope::Session => self.connection.counters(),
        };
        let mut rows: Vec<(String, String)> =
            counters.iter().map(|(name, value)| ((*name).to_owned(), value.to_string())).collect();
        rows.extend(self.fixed_status(scope));
        for status in server.registry().status_variables() {
            rows.push((status.name.to_owned(), (status.read)()));
        }
        for (name, value) in self.counted_status(scope) {
            match rows.iter_mut().find(|(known, _)| known == name) {
                Some((_, shown)) => *shown = value.to_string(),
                None => rows.push((name.to_owned(), value.to_string())),
            }
        }
        rows.sort();
        rows
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

impl Information<'_> {
    /// Status values that are not counters.
    fn fixed_status(&self, scope: StatusScope) -> Vec<(String, String)> {
        let server = self.server;
        let uptime = uptime_seconds(server).to_string();
        let connections = server.connections();
        let threads = connections.open.to_string();
        let (cipher, version) = match (self.tls, scope) {
            (Some((version, cipher)), StatusScope::Session) => (cipher.clone(), version.clone()),
            (Some(_) | None, _) => (String::new(), String::new()),
        };
        let open_tables = server.catalog().with(CatalogSnapshot::read_tables).to_string();
        [
            ("Aborted_clients", "0".to_owned()),
            ("Aborted_connects", "0".to_owned()),
            ("Max_used_connections", connections.most.to_string()),
            ("Open_tables", open_tables),
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
            ("Innodb_page_size", "16384".to_owned()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into()
    }

    /// Counters of the server as a whole, and bytes received and sent.
    fn counted_status(&self, scope: StatusScope) -> Vec<(&'static str, u64)> {
        let mut counters = self.server.server_counters();
        let traffic = match scope {
            StatusScope::Global => self.server.traffic(),
            StatusScope::Session => self.connection.traffic(),
        };
        for (name, bytes) in [("Bytes_received", traffic.0), ("Bytes_sent", traffic.1)] {
            match counters.iter_mut().find(|(known, _)| *known == name) {
                // Of connections that have ended.
                Some((_, count)) if scope == StatusScope::Global => *count += bytes,
                Some((_, count)) => *count = bytes,
                None => counters.push((name, bytes)),
            }
        }
        counters
    }

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
