//! `performance_schema.threads`, and what is recorded of each thread.

use std::collections::HashMap;

use errors::{Error, ErrorCode, Result};
use plugin_api::{InfoFilter, InformationContext};
use sys::sync::Mutex;
use sys::sync::atomic::{AtomicBool, Ordering};
use types::Value;

use crate::recorder::{Recorder, optional};
use crate::row::Emit;
use crate::switches::{Switches, switch};
use crate::waits::{connections, number};

/// Places of the columns INSTRUMENTED and HISTORY.
const INSTRUMENTED: usize = 13;
const HISTORY: usize = 14;

/// The switches of all threads.
#[derive(Debug, Default)]
pub(crate) struct Threads {
    /// Whether any was switched: otherwise a statement does not look.
    is_any: AtomicBool,
    /// By number: those that are not as they were at first.
    switched: Mutex<HashMap<u64, Switches>>,
}

impl Threads {
    /// The switches of a thread.
    pub(crate) fn of(&self, thread: u64) -> Switches {
        if !self.is_any.load(Ordering::Relaxed) {
            return Switches::default();
        }
        self.switched.lock().get(&thread).copied().unwrap_or_default()
    }

    /// The thread's connection ended.
    pub(crate) fn close(&self, thread: u64) {
        if self.is_any.load(Ordering::Relaxed) {
            self.set(thread, Switches::default());
        }
    }

    pub(crate) fn set(&self, thread: u64, switches: Switches) {
        let mut switched = self.switched.lock();
        if switches == Switches::default() {
            switched.remove(&thread);
        } else {
            switched.insert(thread, switches);
        }
        self.is_any.store(!switched.is_empty(), Ordering::Relaxed);
    }

    /// Changes a row of `threads`.
    ///
    /// # Errors
    /// 1683 for other columns, 1265 for words other than YES and NO.
    pub(crate) fn update(
        &self,
        row: &[Value],
        assigned: &[(usize, Value)],
        number: u64,
    ) -> Result<bool> {
        let Some(Value::UInt(thread)) = row.first() else { return Ok(false) };
        let before = self.of(*thread);
        let mut switches = before;
        for (at, value) in assigned {
            let (column, place) = match *at {
                INSTRUMENTED => ("INSTRUMENTED", &mut switches.is_instrumented),
                HISTORY => ("HISTORY", &mut switches.has_history),
                _ => return Err(Error::with(ErrorCode::WRONG_PERFSCHEMA_USAGE, &[])),
            };
            *place = switch(value, column, number)?;
        }
        self.set(*thread, switches);
        Ok(switches != before)
    }
}

/// The resource groups of sessions, and of threads of the server.
const USER_DEFAULT: &str = "USR_default";
const SYSTEM_DEFAULT: &str = "SYS_default";

/// `performance_schema.threads`: one for each connection, and the threads that run no statement.
pub(crate) fn threads(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    background_threads(recorder, ctx, emit)?;
    for process in ctx.processes() {
        let host = process.host.split(':').next().unwrap_or_default();
        let mut row = vec![
            Value::UInt(process.id),
            Value::text("thread/sql/one_connection"),
            Value::text("FOREGROUND"),
            Value::UInt(process.id),
            Value::text(&process.user),
            Value::text(host),
            optional(process.database.as_deref()),
            Value::text(process.command),
            Value::Int(process.seconds as i64),
            Value::text(process.state),
            optional(process.info.as_deref()),
        ];
        // Parent, role.
        row.extend([Value::Null, Value::Null]);
        row.extend(recorder.threads.of(process.id).columns());
        row.push(Value::text("TCP/IP"));
        let system = process.thread.and_then(sys::waits::thread);
        row.push(system.map_or(Value::Null, |thread| Value::UInt(thread.thread_id.into())));
        let group = process.resource_group.as_deref().unwrap_or(USER_DEFAULT);
        row.extend([Value::text(group), Value::text("PRIMARY")]);
        row.extend(std::iter::repeat_n(Value::UInt(0), 4));
        row.push(Value::text("NO"));
        emit(&row)?;
    }
    Ok(())
}

fn background_threads(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    emit: &mut Emit<'_>,
) -> Result<()> {
    if !ctx.sees_all_processes() {
        return Ok(());
    }
    let connections = connections(ctx);
    let threads = sys::waits::threads().into_iter();
    for thread in threads.filter(|thread| !connections.contains_key(&thread.slot)) {
        let number = number(&thread, &connections);
        let mut row = vec![
            Value::UInt(number),
            Value::text(&format!("thread/squall/{}", thread.name)),
            Value::text("BACKGROUND"),
        ];
        // The connection, the parent, and the role.
        row.extend(std::iter::repeat_n(Value::Null, 10));
        row.extend(recorder.threads.of(number).columns());
        row.push(Value::Null);
        let group = Value::text(SYSTEM_DEFAULT);
        row.extend([Value::UInt(thread.thread_id.into()), group, Value::text("PRIMARY")]);
        row.extend(std::iter::repeat_n(Value::UInt(0), 4));
        row.push(Value::text("NO"));
        emit(&row)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_is_recorded_until_it_is_switched_off() {
        let threads = Threads::default();
        let mut row = vec![Value::Null; 16];
        row[0] = Value::UInt(7);
        let set = |at, word| threads.update(&row, &[(at, Value::text(word))], 1);
        assert_eq!(set(INSTRUMENTED, "no").ok(), Some(true));
        assert_eq!(set(INSTRUMENTED, "NO").ok(), Some(false));
        assert_eq!(set(HISTORY, "NO").ok(), Some(true));
        let code = |result: Result<bool>| result.err().map(|error| error.code());
        assert_eq!(code(set(HISTORY, "maybe")), Some(ErrorCode::DATA_TRUNCATED));
        assert_eq!(code(set(1, "YES")), Some(ErrorCode::WRONG_PERFSCHEMA_USAGE));
        let off = Switches { is_instrumented: false, has_history: false };
        assert_eq!((threads.of(7), threads.of(8)), (off, Switches::default()));
        threads.close(7);
        assert_eq!(threads.of(7), Switches::default());
        assert!(!threads.is_any.load(Ordering::Relaxed));
    }
}
