//! What must hold when all clients have done their work: of the server that they used, and of one that was made from a backup.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use histories::{End, Op, Reading, Transaction};

use crate::clients::{Session, Stop};
use crate::model::{Look, Rows};
use crate::world::{Backup, Bell, World};
use crate::{Client, DATA, Server};

/// All tables that clients change.
const TABLES: [&str; 6] = ["versions", "items", "notes", "parts", "lists", "accounts"];
const ATTEMPT: Duration = Duration::from_millis(5);

/// Looks at everything, and shuts the server down.
pub(crate) fn at_end_of_life(world: &Arc<World>, bell: &Bell) -> Result<(), Stop> {
    let mut session = Session::new("verifier", world, bell, 0);
    let looked = look(&mut session);
    if let Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) = looked {
        let rule = "when all clients have gone, everything can be read and changed";
        return Err(session.violate(rule, "see the last statement"));
    }
    looked
}

fn look(session: &mut Session) -> Result<(), Stop> {
    session.log_in()?;
    check_tables(session)?;
    session.sum("SELECT SUM(balance), COUNT(*) FROM accounts")?;
    read_lists(session)?;
    let has_branches = !session.world.know().branches.is_empty();
    if !has_branches {
        change_definitions(session)?;
    }
    session.shut_down()
}

fn check_tables(session: &mut Session) -> Result<(), Stop> {
    let check = format!("CHECK TABLE {}", TABLES.join(", "));
    let rows = session.rows(&check)?;
    session.expect_sound(&check, &rows)?;
    for (table, index) in
        [("items", "u"), ("items", "s"), ("items", "o"), ("parts", "s"), ("lists", "k")]
    {
        let count = |index: &str| format!("SELECT COUNT(*) FROM {table} FORCE INDEX ({index})");
        let (own, other) = (session.rows(&count("PRIMARY"))?, session.rows(&count(index))?);
        if own != other {
            let detail = format!("{table} has {own:?} rows, {other:?} through {index}");
            return Err(session.violate("tables and their indexes agree", detail));
        }
    }
    Ok(())
}

/// The last transaction of the history of lists: appends that got lost are missing here.
fn read_lists(session: &mut Session) -> Result<(), Stop> {
    let began = sys::clock::monotonic().as_nanos() as u64;
    let rows = session.rows("SELECT id, list FROM lists")?;
    let ended = sys::clock::monotonic().as_nanos() as u64;
    let mut known = session.world.know();
    let keys: std::collections::BTreeSet<u32> = known
        .history
        .iter()
        .flat_map(|transaction| &transaction.ops)
        .map(|op| match op {
            Op::Append { key, .. } | Op::Read { key, .. } => *key,
        })
        .collect();
    let ops = keys.into_iter().map(|key| {
        let is_it =
            |row: &&Vec<Option<String>>| row[0].as_deref() == Some(key.to_string().as_str());
        let list = rows.iter().find(is_it).and_then(|row| row[1].clone()).unwrap_or_default();
        let parts = list.split(',').filter(|part| !part.is_empty());
        let elements = parts.map(|part| part.parse().unwrap_or(0)).collect();
        Op::Read { key, elements, reading: Reading::Plain }
    });
    let ops = ops.collect();
    known.history.push(Transaction { ops, end: End::Committed, began, ended });
    Ok(())
}

/// Nobody uses the tables any more, so that nobody has to be waited for.
fn change_definitions(session: &mut Session) -> Result<(), Stop> {
    session.must("SET SESSION lock_wait_timeout = 20")?;
    for table in TABLES {
        let sql = format!("ALTER TABLE {table} COMMENT = 'seen'");
        if !matches!(session.send(&sql)?, crate::clients::Reply::Done(..)) {
            let rule = "what nobody uses can be changed";
            return Err(session.violate(rule, format!("{sql} has to wait")));
        }
    }
    // And rows can be written.
    session.must("CREATE TABLE probe (id INT PRIMARY KEY, v VARCHAR(10000))")?;
    session.must("INSERT INTO probe VALUES (1, REPEAT('p', 9000)), (2, REPEAT('q', 9000))")?;
    session.must("DROP TABLE probe").map(drop)
}

/// Restores a backup into a directory of its own, and compares what is there with what was committed when it was taken.
pub(crate) fn restore(world: &Arc<World>, backup: &Backup) {
    let directory = format!("/restored{}", backup.path);
    let datadir = format!("--datadir={directory}");
    let restore = vec![datadir.clone(), format!("--restore-from={}", backup.path)];
    if !Server::begin(restore).join() {
        return world.violate("a backup can be restored", format!("{} cannot", backup.path));
    }
    let server = Server::begin(vec![datadir, "--innodb-buffer-pool-size=8M".to_owned()]);
    let mut client = loop {
        match Client::try_over_socket_with("restored", Path::new(&directory), Path::new(DATA)) {
            Ok(client) => break client,
            Err(_) if server.ended().is_none() => sys::threads::sleep(ATTEMPT),
            Err(failure) => {
                let detail = format!("{}: {failure}", backup.path);
                return world.violate("a restored server starts", detail);
            }
        }
    };
    if let Err(detail) = compare_restored(world, backup, &mut client) {
        let rule = "a backup has what one moment committed, and everything before it began";
        return world.violate(rule, format!("{}: {detail}", backup.path));
    }
    if !server.stop(&mut client) {
        world.violate("a shutdown succeeds", "the restored server's exit code says that it failed");
    }
}

fn query(client: &mut Client, sql: &str) -> Result<Rows, String> {
    let (_, mut rows) = client.query(sql).map_err(|failure| format!("{sql}: {failure}"))?;
    rows.sort();
    Ok(rows)
}

fn compare_restored(world: &World, backup: &Backup, client: &mut Client) -> Result<(), String> {
    query(client, "USE d")?;
    // A backup has prepared branches too, which keep their tables from being checked.
    for row in query(client, "XA RECOVER")? {
        let xid = row.last().cloned().flatten().unwrap_or_default();
        query(client, &format!("XA ROLLBACK '{xid}'"))?;
    }
    let checked = query(client, &format!("CHECK TABLE {}", TABLES.join(", ")))?;
    if !checked.iter().all(|row| row.last().is_some_and(|text| text.as_deref() == Some("OK"))) {
        return Err(format!("{checked:?}"));
    }
    let sum = query(client, "SELECT SUM(balance), COUNT(*) FROM accounts")?;
    let wanted = crate::clients::transfers::total();
    if sum != [wanted.clone()] {
        return Err(format!("the accounts have {sum:?}, expected {wanted:?}"));
    }
    for (owner, floor) in backup.floors.iter().enumerate() {
        let number = owner as u32;
        let mut seen = Vec::new();
        for look in Look::WHOLE {
            seen.push((look, query(client, &look.sql(number, ""))?));
        }
        let known = world.know();
        let timeline = &known.timelines[owner];
        let shows_all =
            |at: usize| seen.iter().all(|(look, rows)| timeline.shows(at, number, *look, rows));
        if !timeline.numbers().skip(*floor).any(shows_all) {
            return Err(format!(
                "client {owner} has {seen:?}, and was at {} when it began",
                timeline.words(*floor)
            ));
        }
    }
    Ok(())
}
