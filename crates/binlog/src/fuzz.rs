//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use std::collections::BTreeMap;

use types::{GtidSet, JsonRef, Value};

use crate::event::{self, Events, HEADER_BYTES, MAGIC};
use crate::{
    Event, EventKind, JsonChanges, TableMap, decode, envelope, gtid, json, json_changes, mariadb,
};

/// Most tables of an input.
const TABLES_MAX: usize = 16;
/// Most bytes of a transaction that is not compressed, or of an event.
const BYTES_MAX: usize = 1 << 20;

/// What was read before.
#[derive(Default)]
struct Seen {
    tables: BTreeMap<u64, TableMap>,
    /// How deep the event is in compressed ones.
    depth: u32,
}

/// Decodes a body and all that hangs on it.
fn read(kind: EventKind, body: &[u8], seen: &mut Seen) {
    if seen.depth < 2
        && let Ok(Some((kind, body))) = mariadb::uncompressed(kind, body)
    {
        seen.depth += 1;
        read(kind, &body, seen);
        seen.depth -= 1;
    }
    if kind == EventKind::MARIADB_GTID {
        let _ = mariadb::MariadbStart::read(body, 1);
    }
    let Ok(event) = decode(kind, body) else { return };
    match event {
        Event::TableMap(map) => {
            assert!(map.columns.len() <= body.len() * 8, "columns are in the event");
            if seen.tables.len() < TABLES_MAX {
                seen.tables.insert(map.table_id, *map);
            }
        }
        Event::Rows(rows) => {
            for table in
                seen.tables.get(&rows.table_id).into_iter().chain(seen.tables.values().take(1))
            {
                let count = rows.rows(table).count();
                assert!(count <= rows.bytes() + 1, "each row has bytes");
            }
        }
        Event::TransactionPayload(payload) if seen.depth < 2 => {
            let Ok(events) = payload.events(BYTES_MAX as u64) else { return };
            assert!(events.len() <= BYTES_MAX);
            seen.depth += 1;
            stream(&events, seen);
            seen.depth -= 1;
        }
        other => written_again(kind, &other),
    }
}

/// What is decoded, written and decoded again is the same.
fn written_again(kind: EventKind, event: &Event<'_>) {
    let mut out = Vec::new();
    match event {
        Event::PreviousGtids(set) => {
            gtid::write_tagged_set(set, &mut out);
            assert_eq!(&gtid::read_set(&out).expect("a written set"), set);
        }
        Event::Gtid(start) => {
            if kind == EventKind::GTID_TAGGED {
                start.write_tagged(&mut out);
            } else {
                start.write(&mut out);
            }
            let Ok(Event::Gtid(again)) = decode(kind, &out) else { panic!("{start:?}") };
            assert_eq!(again.gtid, start.gtid);
        }
        Event::Query(query) => {
            query.write(&mut out);
            let Ok(Event::Query(again)) = decode(kind, &out) else { panic!("{query:?}") };
            assert_eq!((again.text, again.schema), (query.text, query.schema));
        }
        Event::XaPrepare(branch) => {
            branch.write(&mut out);
            let Ok(Event::XaPrepare(again)) = decode(kind, &out) else { panic!("{branch:?}") };
            assert_eq!(&again, branch);
        }
        _ => {}
    }
}

fn stream(bytes: &[u8], seen: &mut Seen) {
    for (header, event) in Events::new(bytes) {
        let body = &event[HEADER_BYTES..];
        read(header.kind, body, seen);
        // As in a log file: with a checksum.
        if let Some(end) = body.len().checked_sub(event::CHECKSUM_BYTES) {
            read(header.kind, &body[..end], seen);
        }
        let _ = event::open(event);
    }
}

/// Events of a log file, with their headers.
#[test]
fn events() {
    bolero::check!().with_iterations(2_000).for_each(|bytes: &[u8]| {
        stream(bytes.strip_prefix(&MAGIC).unwrap_or(bytes), &mut Seen::default());
    });
}

/// Bodies, each after its kind and a length in two bytes, which changes of a body's length leave in step more often than headers.
#[test]
fn bodies() {
    bolero::check!().with_iterations(2_000).for_each(|bytes: &[u8]| {
        let (mut rest, mut seen) = (bytes, Seen::default());
        while let Some(([kind, low, high], tail)) = rest.split_first_chunk::<3>() {
            let length = usize::from(u16::from_le_bytes([*low, *high])).min(tail.len());
            let (body, tail) = tail.split_at(length);
            read(EventKind(*kind), body, &mut seen);
            rest = tail;
        }
    });
}

/// Documents of rows, and their changes.
#[test]
fn documents() {
    bolero::check!().with_iterations(2_000).for_each(|bytes: &[u8]| {
        let Some((&length, rest)) = bytes.split_first() else { return };
        let (document, changes) = rest.split_at(usize::from(length).min(rest.len()));
        for bytes in [rest, document] {
            let Ok(document) = json::read(bytes) else { continue };
            let mut out = Vec::new();
            json::put(JsonRef::new(&document), &mut out);
            let again = json::read(&out).expect("a written document");
            assert_eq!(Value::Json(again), Value::Json(document.clone()));
            let _ = json_changes::apply(&document, changes);
            let _ = JsonChanges::new(0, changes).list();
        }
    });
}

/// Requests of replicas, and positions as text.
#[test]
fn requests() {
    bolero::check!().with_iterations(2_000).for_each(|bytes: &[u8]| {
        let _ = envelope::read_dump(bytes);
        if let Ok(request) = envelope::read_dump_gtid(bytes) {
            drop(request);
        }
        if let Ok(set) = gtid::read_set(bytes) {
            assert_eq!(GtidSet::parse(&set.to_string()), Some(set));
        }
        let Ok(text) = std::str::from_utf8(bytes) else { return };
        if let Some(set) = GtidSet::parse(text) {
            assert_eq!(GtidSet::parse(&set.to_string()).as_ref(), Some(&set));
            let _ = gtid::position(text, &set);
        }
        if let Some(position) = mariadb::MariadbPosition::parse(text) {
            let again = mariadb::MariadbPosition::parse(&position.to_string());
            assert_eq!(again, Some(position));
        }
    });
}
