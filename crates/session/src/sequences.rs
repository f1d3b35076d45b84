//! Sequences that the session's statements draw from.

use std::sync::Arc;

use catalog::Table;
use engine_api::{Engine, TableId};
use errors::Result;
use observation::sequence_row;
use plugin_api::variable::as_u64;
use plugin_api::{SequenceCall, SequenceName};
use statements::sequences::{SequenceHost, SequenceWriter, Sequences};
use types::Value;

use crate::server::Server;
use crate::services::Services;

impl SequenceHost for Server {
    fn sequences(&self) -> &Sequences {
        &self.sequences
    }

    fn sequence_table(&self, table: TableId) -> Option<(Arc<Table>, Arc<dyn Engine>)> {
        let table = self.catalog.snapshot().table_by_id(table)?;
        let engine = self.engines.engine(&table.engine)?.clone();
        Some((table, engine))
    }
}

/// Draws from a sequence or moves it.
pub(crate) fn use_sequence(
    services: &mut Services,
    name: &SequenceName<'_>,
    call: SequenceCall,
) -> Result<Option<i64>> {
    if call == SequenceCall::Next
        && let Some(value) = services.sequences.draw(TableId(name.table))
    {
        return Ok(Some(value));
    }
    let mut used = std::mem::take(&mut services.sequences);
    let (server, cancel) = (services.server.clone(), services.shared.cancel.clone());
    let record = &mut |table: &Table, row: &[Value]| recorded(services, table, row);
    let writer = &mut SequenceWriter { cancel: &cancel, record };
    let result = used.call(name, call, &*server, writer);
    services.sequences = used;
    result
}

/// What the binary log has of a new row: a replica gives it to its sequence.
fn recorded(services: &Services, table: &Table, row: &[Value]) -> Result<Option<Vec<u8>>> {
    let server = &services.server;
    let wants = services.variable("sql_log_bin", false).is_none_or(|value| as_u64(&value) == 1);
    if !wants || !server.hooks.logs_commits() {
        return Ok(None);
    }
    let registry = server.registry();
    let log = registry.binary_log().filter(|log| log.is_active());
    let ids = (services.shared.id, server.now_micros());
    log.map(|log| sequence_row(&**log, table, &server.catalog.snapshot(), row, ids)).transpose()
}
