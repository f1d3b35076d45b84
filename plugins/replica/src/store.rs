//! The channels in a table of this server, each with its settings and how far it is. Who applies a transaction changes the row in the same
//! transaction.

use binlog::mariadb::MariadbPosition;
use errors::Result;
use types::Value;

use crate::local::{Local, text_of};
use crate::settings::Settings;

const CREATE: [&str; 2] = [
    "CREATE DATABASE IF NOT EXISTS squall_replication",
    "CREATE TABLE IF NOT EXISTS squall_replication.channels (channel VARCHAR(64) NOT NULL PRIMARY KEY, \
     settings LONGTEXT NOT NULL, log_file VARCHAR(512) NOT NULL, log_position BIGINT UNSIGNED NOT NULL, \
     gtids LONGTEXT NOT NULL, started VARCHAR(128) NOT NULL DEFAULT '', \
     gtid_slave_pos VARCHAR(8192) NOT NULL DEFAULT '') DEFAULT CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci",
];
const EXISTS: &str = "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = \
     'squall_replication' AND TABLE_NAME = 'channels'";
/// Tables of Squall 0.1 have no position of MariaDB.
const UPGRADE: &str = "ALTER TABLE squall_replication.channels ADD COLUMN gtid_slave_pos VARCHAR(8192) NOT NULL DEFAULT ''";
const LOAD: &str = "SELECT channel, settings, log_file, CAST(log_position AS CHAR), gtids, started, gtid_slave_pos FROM \
     squall_replication.channels ORDER BY channel";
const PUT: &str = "REPLACE INTO squall_replication.channels (channel, settings, log_file, log_position, \
     gtids, gtid_slave_pos) VALUES (?, ?, ?, ?, ?, ?)";
const START: &str = "UPDATE squall_replication.channels SET started = ? WHERE channel = ?";
const ADVANCE: &str = "UPDATE squall_replication.channels SET log_file = ?, log_position = ?, \
     gtids = ?, gtid_slave_pos = ? WHERE channel = ?";
const REMOVE: &str = "DELETE FROM squall_replication.channels WHERE channel = ?";

/// How far a channel is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Position {
    /// The source's file; empty for its first one.
    pub(crate) file: String,
    /// The position in it.
    pub(crate) offset: u64,
    /// Transactions that were applied.
    pub(crate) gtids: String,
    /// The transaction that was begun last whose statement commits by itself: if the server ended then, it may have been done. Empty
    /// for none.
    pub(crate) started: String,
    /// The last transactions of MariaDB.
    pub(crate) gtid_slave_pos: MariadbPosition,
}

/// A channel as it is stored.
pub(crate) struct Stored {
    pub(crate) channel: String,
    pub(crate) settings: Settings,
    pub(crate) position: Position,
}

/// All channels; none when the table was never made.
pub(crate) fn load(local: &mut Local) -> Result<Vec<Stored>> {
    if !upgrade(local)? {
        return Ok(Vec::new());
    }
    let rows = local.run(LOAD.as_bytes())?.rows;
    rows.iter()
        .map(|row| {
            Ok(Stored {
                channel: text_of(row.first()),
                settings: Settings::read(&text_of(row.get(1)))?,
                position: Position {
                    file: text_of(row.get(2)),
                    offset: text_of(row.get(3)).parse().unwrap_or(0),
                    gtids: text_of(row.get(4)),
                    started: text_of(row.get(5)),
                    gtid_slave_pos: MariadbPosition::parse(&text_of(row.get(6)))
                        .unwrap_or_default(),
                },
            })
        })
        .collect()
}

/// Adds what the table of an older version does not have; whether there is a table.
fn upgrade(local: &mut Local) -> Result<bool> {
    let columns = local.run(EXISTS.as_bytes())?.rows;
    let is_new = columns.iter().any(|row| text_of(row.first()) == "gtid_slave_pos");
    if !columns.is_empty() && !is_new {
        // It is nothing to other servers.
        local.run(b"SET SESSION sql_log_bin = 0")?;
        local.run(UPGRADE.as_bytes())?.durable()?;
        local.run(b"SET SESSION sql_log_bin = 1")?;
    }
    Ok(!columns.is_empty())
}

/// Stores a channel, in place of what was there.
pub(crate) fn put(local: &mut Local, stored: &Stored) -> Result<()> {
    // It is nothing to other servers.
    local.run(b"SET SESSION sql_log_bin = 0")?;
    for statement in CREATE {
        local.run(statement.as_bytes())?.durable()?;
    }
    upgrade(local)?;
    local.run(b"SET SESSION sql_log_bin = 0")?;
    let position = &stored.position;
    let values = [
        Value::text(&stored.channel),
        Value::text(&stored.settings.written()),
        Value::text(&position.file),
        Value::UInt(position.offset),
        Value::text(&position.gtids),
        Value::text(&position.gtid_slave_pos.to_string()),
    ];
    local.execute(PUT, &values)?.durable()
}

/// Stores how far a channel is, in the open transaction.
pub(crate) fn advance(local: &mut Local, channel: &str, position: &Position) -> Result<()> {
    let values = [
        Value::text(&position.file),
        Value::UInt(position.offset),
        Value::text(&position.gtids),
        Value::text(&position.gtid_slave_pos.to_string()),
        Value::text(channel),
    ];
    local.execute(ADVANCE, &values).map(drop)
}

/// Stores that a statement begins that commits by itself, or with an empty name that it failed.
pub(crate) fn start(local: &mut Local, channel: &str, name: &str) -> Result<()> {
    local.execute(START, &[Value::text(name), Value::text(channel)])?.durable()
}

/// Removes a channel.
pub(crate) fn remove(local: &mut Local, channel: &str) -> Result<()> {
    local.execute(REMOVE, &[Value::text(channel)])?.durable()
}
