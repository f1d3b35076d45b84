//! `socket_instances` and the summaries of sockets: the connections of clients that are open.

use std::collections::HashSet;

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, SocketView, TimedCounts};
use types::Value;

use crate::recorder::Recorder;
use crate::row::Emit;
use crate::waits::{SOCKET, timed, together};

/// The sockets of the connections that the account may see, with the connections' numbers.
fn sockets(ctx: &dyn InformationContext) -> Vec<(u64, SocketView)> {
    let counts = ctx.session_counts().into_iter();
    counts.filter_map(|session| Some((session.id, session.socket?))).collect()
}

/// `socket_instances`.
pub(crate) fn instances(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let idle = ctx.processes().into_iter().filter(|process| process.command == "Sleep");
    let idle: HashSet<u64> = idle.map(|process| process.id).collect();
    for (id, socket) in sockets(ctx) {
        let ip = socket.peer.map_or(String::new(), |peer| peer.ip().to_canonical().to_string());
        emit(&[
            Value::text(SOCKET),
            Value::UInt(id),
            Value::UInt(id),
            Value::Int(socket.descriptor.into()),
            Value::text(&ip),
            Value::Int(socket.peer.map_or(0, |peer| peer.port().into())),
            Value::text(if idle.contains(&id) { "IDLE" } else { "ACTIVE" }),
        ])?;
    }
    Ok(())
}

/// All calls, reads with their bytes, writes with theirs, and other calls, which are not counted.
fn figures(read: &TimedCounts, write: &TimedCounts) -> Vec<Value> {
    let mut row = timed(&together([read, write])).to_vec();
    for counts in [read, write] {
        row.extend(timed(counts));
        row.push(Value::UInt(counts.bytes));
    }
    row.extend(timed(&TimedCounts::default()));
    row
}

/// `socket_summary_by_instance`.
pub(crate) fn by_instance(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for (id, socket) in sockets(ctx) {
        let mut row = vec![Value::text(SOCKET), Value::UInt(id)];
        row.extend(figures(&socket.read, &socket.write));
        emit(&row)?;
    }
    Ok(())
}

/// `socket_summary_by_event_name`: of the connections that are open.
pub(crate) fn by_event(
    _: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let sockets = sockets(ctx);
    let read = together(sockets.iter().map(|(_, socket)| &socket.read));
    let write = together(sockets.iter().map(|(_, socket)| &socket.write));
    let mut row = vec![Value::text(SOCKET)];
    row.extend(figures(&read, &write));
    emit(&row)
}
