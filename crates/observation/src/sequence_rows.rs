//! The rows of sequences in the binary log. A server moves the row of a sequence in a transaction of its own, which no session records.

use std::sync::Arc;

use catalog::{CatalogSnapshot, Table};
use errors::Result;
use plugin_api::{BinaryLog, LogWishes, RowImage, StatementContext};
use types::{CollationId, Value};

use crate::watched_rows::logged_table;

/// The bytes that go with the commit of a transaction that gives a sequence this row: a new row, which takes the place of the replica's. `ids`: the
/// connection, and the time in microseconds since 1970 UTC.
///
/// # Errors
/// The row cannot be logged.
pub fn sequence_row(
    log: &dyn BinaryLog,
    table: &Table,
    snapshot: &CatalogSnapshot,
    row: &[Value],
    (connection_id, started_micros): (u64, i64),
) -> Result<Vec<u8>> {
    let collation = CollationId::UTF8MB4_0900_AI_CI.0;
    let mut recorder = log.recorder();
    recorder.begin_statement(&StatementContext {
        connection_id,
        started_micros,
        schema: None,
        sql_mode: 0,
        client_collation: collation,
        connection_collation: collation,
        server_collation: collation,
        time_zone: "",
        foreign_key_checks: true,
        auto_increment: (1, 1),
        row_image: RowImage::Full,
        partial_json: false,
        gtid: None,
        wishes: LogWishes::default(),
        text: None,
    });
    recorder.row(&Arc::new(logged_table(table, snapshot)), None, Some(row), &[])?;
    recorder.finish();
    let mut bytes = Vec::new();
    recorder.take(&mut bytes);
    Ok(bytes)
}
