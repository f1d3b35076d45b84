//! The tables: their shapes, who produces their rows, and which of them statements may change.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::{
    InfoColumn, InfoFilter, InformationContext, InformationTable, SessionServices, SessionTable,
    TableDefinition, TableEditor, table_definitions,
};
use types::Value;

use crate::recorder::Recorder;
use crate::row::Emit;
use crate::{
    accounts, dictionary, instruments, memory, sockets, stages, statements, table_io, threads,
    waits,
};

/// Produces the rows of a table.
type Producer = fn(&Recorder, &dyn InformationContext, &InfoFilter, &mut Emit<'_>) -> Result<()>;

/// Empties a table.
type Eraser = fn(&Recorder);

const DEFINITIONS: &str = include_str!("definitions.txt");

const SUMS: Option<Eraser> = Some(Recorder::clear_sums);
const DIGESTS: Option<Eraser> = Some(|recorder| recorder.digests.clear());
const ALL: Option<Eraser> = Some(|recorder| {
    recorder.clear_sums();
    recorder.digests.clear();
});
const USERS: Option<Eraser> = Some(|recorder| recorder.users.clear());

const STAGES: Option<Eraser> = Some(|recorder| recorder.stages.clear_sums());

/// Highest and lowest amounts are the present ones: there is nothing to reset.
const MEMORY: Option<Eraser> = Some(|_| ());

const TABLE_IO: Option<Eraser> = Some(|recorder| recorder.table_io.clear());

const THREADS: &str = "threads";
const ACTORS: &str = "setup_actors";

const CONNECTIONS: Option<Eraser> = Some(|recorder| recorder.ended.clear());

/// The tables with their producers, and how they are emptied.
#[rustfmt::skip]
const TABLES: &[(&str, Producer, Option<Eraser>)] = &[
    ("events_statements_current", statements::current, None),
    ("events_statements_history", statements::history, Some(Recorder::clear_history)),
    ("events_statements_history_long", statements::history_long, Some(Recorder::clear_history_long)),
    ("events_statements_histogram_by_digest", statements::histogram_by_digest, DIGESTS),
    ("events_statements_histogram_global", statements::histogram_global, DIGESTS),
    ("events_statements_summary_by_digest", statements::by_digest, DIGESTS),
    ("events_statements_summary_by_account_by_event_name", statements::by_account, SUMS),
    ("events_statements_summary_by_host_by_event_name", statements::by_host, SUMS),
    ("events_statements_summary_by_user_by_event_name", statements::by_user, SUMS),
    ("events_statements_summary_by_thread_by_event_name", statements::by_thread, SUMS),
    ("events_statements_summary_global_by_event_name", statements::by_event_name, SUMS),
    ("events_stages_current", stages::current, None),
    ("events_stages_history", stages::history, Some(|recorder| recorder.stages.clear_history())),
    ("events_stages_history_long", stages::history_long, Some(|recorder| recorder.stages.clear_history_long())),
    ("events_stages_summary_by_account_by_event_name", stages::by_account, STAGES),
    ("events_stages_summary_by_host_by_event_name", stages::by_host, STAGES),
    ("events_stages_summary_by_thread_by_event_name", stages::by_thread, STAGES),
    ("events_stages_summary_by_user_by_event_name", stages::by_user, STAGES),
    ("events_stages_summary_global_by_event_name", stages::global, STAGES),
    ("accounts", accounts::accounts, CONNECTIONS),
    ("users", accounts::users, CONNECTIONS),
    ("hosts", accounts::hosts, CONNECTIONS),
    ("memory_summary_by_account_by_event_name", memory::by_account, MEMORY),
    ("memory_summary_by_host_by_event_name", memory::by_host, MEMORY),
    ("memory_summary_by_thread_by_event_name", memory::by_thread, MEMORY),
    ("memory_summary_by_user_by_event_name", memory::by_user, MEMORY),
    ("memory_summary_global_by_event_name", memory::global, MEMORY),
    ("table_io_waits_summary_by_index_usage", table_io::by_index, TABLE_IO),
    ("table_io_waits_summary_by_table", table_io::by_table, TABLE_IO),
    ("events_waits_current", waits::current, None),
    ("events_waits_summary_by_thread_by_event_name", waits::by_thread, None),
    ("events_waits_summary_global_by_event_name", waits::global, None),
    ("file_summary_by_event_name", waits::files, None),
    ("file_summary_by_instance", waits::file_summary, None),
    ("file_instances", waits::file_instances, None),
    ("table_lock_waits_summary_by_table", waits::table_locks, None),
    ("metadata_locks", waits::metadata_locks, None),
    (THREADS, threads::threads, None),
    ("socket_instances", sockets::instances, None),
    ("socket_summary_by_instance", sockets::by_instance, None),
    ("socket_summary_by_event_name", sockets::by_event, None),
    (ACTORS, actors, Some(|recorder| recorder.actors.clear())),
    ("setup_instruments", instruments::instruments, None),
    ("setup_consumers", statements::consumers, None),
    ("SESSION_USAGE", dictionary::session_usage, None),
    ("STATEMENT_COSTS", dictionary::statement_costs, ALL),
    ("PERF_SAMPLES", dictionary::perf_samples, Some(|recorder| recorder.samples.clear())),
    ("CUMULATIVE_USER_STATS", dictionary::user_stats, USERS),
    ("CUMULATIVE_SQL_COMMANDS", dictionary::sql_commands, USERS),
    ("PROTOCOL_COUNTERS", dictionary::protocol_counters, None),
    ("USER_DEFINED_LOCKS", dictionary::user_locks, None),
];

/// All tables.
pub(crate) fn all(recorder: &Arc<Recorder>) -> Vec<Arc<dyn InformationTable>> {
    let table = |mut definition: TableDefinition| -> Arc<dyn InformationTable> {
        definition.columns.extend(dictionary::further_columns(definition.name));
        if definition.name == "USER_DEFINED_VARIABLES" {
            return Arc::new(SessionTable::new(definition, user_variables));
        }
        let known = TABLES.iter().find(|(name, ..)| *name == definition.name);
        let (produce, erase) =
            known.map_or((None, None), |(_, produce, erase)| (Some(*produce), *erase));
        Arc::new(RecordTable { definition, produce, erase, recorder: recorder.clone() })
    };
    table_definitions(DEFINITIONS).into_iter().map(table).collect()
}

/// A table of what the recorder knows.
struct RecordTable {
    definition: TableDefinition,
    /// `None`: there are no such objects.
    produce: Option<Producer>,
    erase: Option<Eraser>,
    recorder: Arc<Recorder>,
}

impl RecordTable {
    fn is_setup(&self) -> bool {
        self.definition.name.starts_with("setup_") || self.definition.name == THREADS
    }
}

impl InformationTable for RecordTable {
    fn schema(&self) -> &'static str {
        self.definition.schema
    }

    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.definition.columns
    }

    fn rows(
        &self,
        ctx: &dyn InformationContext,
        filter: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let Some(produce) = self.produce else { return Ok(()) };
        let width = self.definition.columns.len();
        produce(&self.recorder, ctx, filter, &mut |row| {
            debug_assert_eq!(row.len(), width, "{}", self.definition.name);
            emit(row)
        })
    }

    fn editor(&self) -> Option<&dyn TableEditor> {
        (self.is_setup() || self.erase.is_some()).then_some(self as &dyn TableEditor)
    }
}

impl TableEditor for RecordTable {
    fn update(&self, row: &[Value], assigned: &[(usize, Value)], number: u64) -> Result<bool> {
        match self.definition.name {
            "setup_consumers" => self.recorder.consumers.update(row, assigned, number),
            THREADS => self.recorder.threads.update(row, assigned, number),
            ACTORS => self.recorder.actors.update(row, assigned, number),
            "setup_instruments" => instruments::update(&self.recorder, row, assigned, number),
            _ => Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[])),
        }
    }

    fn takes_rows(&self) -> bool {
        self.definition.name == ACTORS
    }

    fn insert(&self, row: &[Option<Value>], number: u64) -> Result<()> {
        match self.definition.name {
            ACTORS => self.recorder.actors.insert(row, number),
            _ => Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[])),
        }
    }

    fn delete(&self, row: &[Value]) -> Result<bool> {
        match self.definition.name {
            ACTORS => Ok(self.recorder.actors.delete(row)),
            _ => Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[])),
        }
    }

    fn truncate(&self) -> Result<()> {
        match self.erase {
            Some(erase) => {
                erase(&self.recorder);
                Ok(())
            }
            None => Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[])),
        }
    }
}

/// `setup_actors`.
fn actors(
    recorder: &Recorder,
    _: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    recorder.actors.rows().iter().try_for_each(|row| emit(row))
}

/// `USER_DEFINED_VARIABLES`: those of the session that reads it.
fn user_variables(session: &dyn SessionServices) -> Vec<Vec<Value>> {
    let row = |(name, value, ty): (String, Value, types::DataType)| {
        let shown = match value {
            Value::Null => Value::Null,
            value => {
                let mut text = Vec::new();
                types::to_text(&value, &ty, &mut text);
                Value::Bytes(text.as_slice().into())
            }
        };
        vec![Value::text(&name), shown]
    };
    session.user_variables().into_iter().map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_table_with_rows_has_a_shape() {
        let tables = all(&Arc::new(Recorder::new(Default::default())));
        assert!(tables.iter().all(|table| !table.columns().is_empty()));
        for (name, ..) in TABLES {
            assert_eq!(tables.iter().filter(|table| table.name() == *name).count(), 1, "{name}");
        }
    }
}
