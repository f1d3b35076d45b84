//! One moment of the source, seen by several connections, and its place in the binary log.

use super::address::Address;
use super::server::{Flavour, Server};

/// The moment.
pub(super) struct Snapshot {
    /// Holds the lock against changes of definitions.
    pub(super) guard: Server,
    /// Transactions of the moment, one for each thread.
    pub(super) readers: Vec<Server>,
    /// Where the binary log was; `None` when there is none or nobody looked.
    pub(super) position: Option<Position>,
}

/// A place in the binary log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) file: String,
    pub(super) offset: String,
    /// Transactions before it; empty without identifiers.
    pub(super) gtids: String,
}

/// Statements of every reader: no conversion of texts, times as they are kept, no end while others are busy.
const READER: [&str; 6] = [
    "SET SESSION wait_timeout = 2073600, net_write_timeout = 86400, net_read_timeout = 86400",
    "SET time_zone = '+00:00', sql_mode = ''",
    "SET character_set_results = NULL",
    "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ",
    "SET autocommit = 1",
    "START TRANSACTION WITH CONSISTENT SNAPSHOT",
];

impl Snapshot {
    /// Begins it. With a `lock`, changes wait while `threads` connections begin; without, one connection reads and the place is not known.
    ///
    /// # Errors
    /// The source refuses: the account's privileges do not suffice, or it has no such statement.
    pub(super) fn begin(source: &Address, threads: usize, lock: bool) -> Result<Snapshot, String> {
        let mut guard = Server::new(source.connect()?)?;
        guard.run("SET SESSION wait_timeout = 2073600")?;
        if guard.flavour == Flavour::MySql {
            guard.run("SET SESSION information_schema_stats_expiry = 0")?;
        }
        let count = if lock { threads.max(1) } else { 1 };
        let mut readers = Vec::with_capacity(count);
        for _ in 0..count {
            let mut reader = Server::new(source.connect()?)?;
            let (last, first) = READER.split_last().expect("statements");
            first.iter().try_for_each(|sql| reader.run(sql).map(drop))?;
            readers.push((reader, *last));
        }
        let mut position = None;
        if lock {
            let help = "\nThe account needs RELOAD, BACKUP_ADMIN and REPLICATION CLIENT; --without-lock reads with one connection instead";
            let with_help = |error: String| error + help;
            if guard.flavour == Flavour::MySql {
                guard.run("LOCK INSTANCE FOR BACKUP").map_err(with_help)?;
            }
            guard.run("FLUSH TABLES WITH READ LOCK").map_err(with_help)?;
            position = guard_position(&mut guard).map_err(with_help)?;
        }
        let begun =
            readers.into_iter().map(|(mut reader, begin)| reader.run(begin).map(|_| reader));
        let readers = begun.collect::<Result<_, _>>()?;
        let mut snapshot = Snapshot { guard, readers, position };
        if snapshot.guard.flavour == Flavour::MySql {
            snapshot.release()?;
        }
        Ok(snapshot)
    }

    /// Changes of rows may go on. MariaDB has no lock that keeps definitions alone: there they are read before.
    ///
    /// # Errors
    /// The connection is lost.
    pub(super) fn release(&mut self) -> Result<(), String> {
        self.guard.run("UNLOCK TABLES").map(drop)
    }
}

fn guard_position(guard: &mut Server) -> Result<Option<Position>, String> {
    let status = match guard.flavour {
        Flavour::MariaDb => guard.table("SHOW MASTER STATUS")?,
        // Before 8.2 it had the old name.
        Flavour::MySql => match guard.table("SHOW BINARY LOG STATUS") {
            Ok(status) => status,
            Err(error) if error.contains("ERROR 1064") => guard.table("SHOW MASTER STATUS")?,
            Err(error) => return Err(error),
        },
    };
    let Some(row) = status.rows.first() else { return Ok(None) };
    let text = |name| status.text(row, name).to_owned();
    let gtids = match guard.flavour {
        Flavour::MySql => text("Executed_Gtid_Set").replace('\n', ""),
        Flavour::MariaDb => guard.cell("SELECT @@gtid_binlog_pos")?,
    };
    Ok(Some(Position { file: text("File"), offset: text("Position"), gtids }))
}
