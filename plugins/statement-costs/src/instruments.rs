//! What can be recorded: `performance_schema.setup_instruments`. All instruments but one cost nothing until a consumer is on, and cannot
//! be switched; the rows of tables are counted while theirs is on.

use errors::{Error, ErrorCode, Result};
use plugin_api::{InfoFilter, InformationContext, Stage};
use sys::lock_stats::{self, Kind};
use types::Value;

use crate::event_name::STATEMENTS;
use crate::memory;
use crate::recorder::Recorder;
use crate::row::Emit;
use crate::table_io::INSTRUMENT;

/// Places of the columns ENABLED and TIMED.
const ENABLED: usize = 1;
const TIMED: usize = 2;

/// Waits that are no lock class and no file.
const WAITS: [&str; 7] = [
    "idle",
    "wait/io/socket/sql/client_connection",
    "wait/lock/metadata/sql/mdl",
    "wait/lock/row/squall/row_lock",
    "wait/synch/cond/squall/sleep",
    "wait/synch/mutex/squall/mutex",
    "wait/synch/sxlock/squall/page_latch",
];

fn row(name: &str, is_on: bool, is_timed: bool, properties: &str) -> Vec<Value> {
    vec![
        Value::text(name),
        Value::text(if is_on { "YES" } else { "NO" }),
        if is_timed { Value::text("YES") } else { Value::Null },
        Value::text(properties),
        Value::Null,
        Value::Int(0),
        Value::Null,
    ]
}

/// The events of locks that have a class of their own.
fn lock_classes() -> impl Iterator<Item = String> {
    lock_stats::all().into_iter().filter_map(|class| match class.kind {
        Kind::Mutex => Some(format!("wait/synch/mutex/squall/{}", class.name)),
        Kind::RwLock => Some(format!("wait/synch/rwlock/squall/{}", class.name)),
        Kind::Latch | Kind::RowLock | Kind::MetadataLock => None,
    })
}

/// `setup_instruments`.
pub(crate) fn instruments(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let mut files: Vec<String> = ctx
        .file_operations()
        .iter()
        .map(|one| format!("wait/io/file/squall/{}", one.class.replace(' ', "_")))
        .collect();
    files.dedup();
    emit(&row(INSTRUMENT, recorder.table_io.is_on(), false, ""))?;
    let waits = WAITS.iter().map(|name| (*name).to_owned());
    for name in waits.chain(files).chain(lock_classes()) {
        emit(&row(&name, true, true, ""))?;
    }
    for stage in Stage::ALL {
        let properties = if stage.has_progress { "progress" } else { "" };
        emit(&row(stage.event, true, true, properties))?;
    }
    for name in STATEMENTS {
        emit(&row(name, true, true, ""))?;
    }
    for (name, _) in memory::events(ctx) {
        let is_global = name != memory::QUERY;
        emit(&row(&name, true, false, if is_global { "global_statistics" } else { "" }))?;
    }
    Ok(())
}

/// Changes a row. As in the reference, what cannot be timed stays so without an error.
pub(crate) fn update(
    recorder: &Recorder,
    row: &[Value],
    assigned: &[(usize, Value)],
    number: u64,
) -> Result<bool> {
    let name = row.first().map(plugin_api::kit::text).unwrap_or_default();
    let mut is_changed = false;
    for (at, value) in assigned {
        let (column, before) = match *at {
            ENABLED => ("ENABLED", &row[ENABLED]),
            TIMED if row[TIMED].is_null() => continue,
            TIMED => ("TIMED", &row[TIMED]),
            _ => return Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[])),
        };
        let word = plugin_api::kit::text(value).to_ascii_uppercase();
        if word != "YES" && word != "NO" {
            return Err(Error::with(ErrorCode::DATA_TRUNCATED, &[&column, &number]));
        }
        if name == INSTRUMENT {
            is_changed |= recorder.table_io.switch(word == "YES");
        } else if plugin_api::kit::text(before) != word.as_str() {
            return Err(Error::not_supported(format!(
                "{column} = '{word}' of the instrument {name}"
            )));
        }
    }
    Ok(is_changed)
}
