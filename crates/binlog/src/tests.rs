//! Golden tests: logs that MySQL 9.7.4 wrote (`tests/types.sql` says from what). What is decoded is encoded again, to the same bytes.

use std::collections::BTreeMap;

use proptest::prelude::*;
use types::geometry::GeometryKind;
use types::{DataType, Fixed, GtidSet, TypeKind, Value};

use crate::event::{self, Events, HEADER_BYTES, MAGIC};
use crate::rows::{RowImage, flags};
use crate::{
    Column, Event, EventKind, Header, Image, Layout, RowMetadata, RowsKind, RowsWriter, TableMap,
    decode, envelope, seal, write_event, write_table_map,
};

const TYPES: &[u8] = include_bytes!("../tests/types.binlog");
const SECOND: &[u8] = include_bytes!("../tests/second.binlog");

fn events(file: &[u8]) -> Vec<(Header, &[u8])> {
    let events: Vec<_> = Events::new(file.strip_prefix(&MAGIC).unwrap()).collect();
    assert!(!events.is_empty());
    events
}

/// What the event's body is when it is written again from its decoded form; `None` for kinds that are only read.
fn encode_again(
    kind: EventKind,
    body: &[u8],
    tables: &mut BTreeMap<u64, TableMap>,
) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match decode(kind, body).unwrap() {
        Event::FormatDescription(format) => {
            let server = std::str::from_utf8(format.server_version).unwrap();
            envelope::write_format_description(server, format.created, true, &mut out);
        }
        Event::Rotate(to) => {
            let name = std::str::from_utf8(to.name).unwrap();
            envelope::write_rotate(to.position, name, &mut out);
        }
        // Early servers of 9.7 wrote the form with tags always.
        Event::PreviousGtids(set) if body[7] == 1 => crate::gtid::write_tagged_set(&set, &mut out),
        Event::PreviousGtids(set) => envelope::write_previous_gtids(&set, &mut out),
        Event::Gtid(gtid) if kind == EventKind::GTID_TAGGED => gtid.write_tagged(&mut out),
        Event::Gtid(gtid) => gtid.write(&mut out),
        Event::Query(query) => query.write(&mut out),
        Event::Xid(xid) => envelope::write_xid(xid, &mut out),
        Event::XaPrepare(xid) => xid.write(&mut out),
        Event::RowsQuery(text) => envelope::write_rows_query(text, &mut out),
        Event::TableMap(map) => {
            write_again(&map, &mut out);
            tables.insert(map.table_id, *map);
        }
        Event::Rows(rows) => {
            let table = tables.get(&rows.table_id).unwrap();
            let rows_read: Vec<_> = rows.rows(table).map(Result::unwrap).collect();
            assert!(!rows_read.is_empty());
            // Partitions are not written, nor are changes of documents. A decimal in a document has the precision of the
            // expression that made it, which we do not keep.
            let has_decimal = body.windows(4).any(|bytes| bytes == [0xf6, 8, 12, 3]);
            if kind == EventKind::PARTIAL_UPDATE_ROWS || &*table.table == "part" || has_decimal {
                return None;
            }
            let is_present = |row: &RowImage| -> Option<Box<[bool]>> {
                (!row.iter().all(Option::is_some))
                    .then(|| row.iter().map(Option::is_some).collect())
            };
            let image = Image {
                before: is_present(&rows_read[0].before),
                after: is_present(&rows_read[0].after),
            };
            let mut events = Vec::new();
            let head = (1, 1);
            let mut writer = RowsWriter::new(
                table.layout(),
                rows.kind,
                &image,
                rows.table_id,
                rows.flags,
                head,
                8192,
            );
            for row in &rows_read {
                writer.push(&values(&row.before), &values(&row.after), &mut events);
            }
            writer.finish(rows.ends_statement(), &mut events);
            let mut written = Events::new(&events);
            let (header, event) = written.next().unwrap();
            assert!(written.next().is_none() && header.kind == kind);
            out = event[HEADER_BYTES..].to_vec();
        }
        Event::TransactionPayload(payload) => {
            let inner = payload.events(1 << 20).unwrap();
            let mut read = Events::new(&inner);
            for (header, event) in read.by_ref() {
                let body = &event[HEADER_BYTES..];
                let again = encode_again(header.kind, body, tables);
                assert!(again.is_none_or(|again| again == body));
            }
            assert!(read.rest().is_empty());
            return None;
        }
        Event::Heartbeat(_) | Event::Stop | Event::Incident(..) | Event::Other(_) => return None,
    }
    Some(out)
}

fn write_again(map: &TableMap, out: &mut Vec<u8>) {
    let columns: Vec<_> = map
        .columns
        .iter()
        .map(|column| Column {
            name: column.name.as_deref().unwrap(),
            ty: &column.ty,
            visible: column.visible,
        })
        .collect();
    let (schema, table) = (&map.schema, &map.table);
    let key = &map.primary_key;
    write_table_map(out, map.table_id, schema, table, &columns, key, RowMetadata::Full);
}

fn values(row: &RowImage) -> Vec<Value> {
    row.iter().map(|value| value.clone().unwrap_or(Value::Null)).collect()
}

/// The NOBLOB image of the reference has no set bits after the last column, though it has all columns.
fn same_rows(ours: &[u8], theirs: &[u8]) -> bool {
    ours.len() == theirs.len()
        && ours
            .iter()
            .zip(theirs)
            .all(|(ours, theirs)| ours == theirs || (*ours, *theirs) == (0xff, 0x7f))
}

#[test]
fn golden_logs_are_read_and_written_alike() {
    let mut kinds = BTreeMap::new();
    for file in [TYPES, SECOND] {
        let mut tables = BTreeMap::new();
        for (header, sealed) in events(file) {
            let (again, body) = event::open(sealed).unwrap();
            assert_eq!(header, again);
            *kinds.entry(header.kind).or_insert(0) += 1;
            let Some(written) = encode_again(header.kind, body, &mut tables) else { continue };
            let alike = written == body
                || header.kind == EventKind::UPDATE_ROWS && same_rows(&written, body);
            assert!(
                alike,
                "{:?} at {}\nwritten {:02x?}\n   read {body:02x?}",
                header.kind, header.position, written
            );
            let (mut event, mut sealed_again) = (Vec::new(), Vec::new());
            write_event(
                &mut event,
                header.kind,
                header.timestamp,
                header.server_id,
                header.flags,
                |out| out.extend_from_slice(body),
            );
            seal(&event, header.position, &mut sealed_again);
            assert_eq!(sealed_again, sealed);
        }
    }
    assert!(kinds.len() >= 14, "{kinds:?}");
}

/// The rows of a table in the golden log, as texts.
fn rows_of(table: &str) -> Vec<String> {
    let mut tables = BTreeMap::new();
    let mut found = Vec::new();
    for (header, sealed) in events(TYPES) {
        let (_, body) = event::open(sealed).unwrap();
        match decode(header.kind, body).unwrap() {
            Event::TableMap(map) => _ = tables.insert(map.table_id, map),
            Event::Rows(rows) if &*tables[&rows.table_id].table == table => {
                let map = &tables[&rows.table_id];
                for row in rows.rows(map).map(Result::unwrap) {
                    found.push(format!("{} -> {}", show(&row.before, map), show(&row.after, map)));
                }
            }
            _ => {}
        }
    }
    found
}

fn show(row: &RowImage, map: &TableMap) -> String {
    let mut text = Vec::new();
    for (value, column) in row.iter().zip(&map.columns) {
        match value {
            None => text.extend_from_slice(b"-"),
            Some(Value::Null) => text.extend_from_slice(b"NULL"),
            Some(Value::Bytes(bytes)) if !column.ty.is_text() => {
                bytes
                    .iter()
                    .for_each(|byte| text.extend_from_slice(format!("{byte:02x}").as_bytes()));
            }
            Some(Value::UInt(bits)) if column.ty.kind == TypeKind::Bit => {
                text.extend_from_slice(bits.to_string().as_bytes());
            }
            Some(value) => types::to_text(value, &column.ty, &mut text),
        }
        text.push(b'|');
    }
    String::from_utf8(text).unwrap()
}

#[test]
fn golden_values() {
    let zeros = |count| "0".repeat(count);
    assert_eq!(
        rows_of("numbers")[..3],
        [
            " -> 1|-128|255|-32768|65535|-8388608|16777215|4294967295|-9223372036854775808|\
             18446744073709551615|1.5|-2.25|-12345678.91|\
             12345678901234567890123456789012345.123456789012345678901234567890|0.12345|\
             -123456789012345678|1|682|18446744073709551615|2024|",
            " -> 2|NULL|0|NULL|1|NULL|0|NULL|NULL|0|NULL|NULL|NULL|\
             -0.000000000000000000000000000001|0.00000|0|0|NULL|0|0000|",
            "2|NULL|0|NULL|1|NULL|0|NULL|NULL|0|NULL|NULL|NULL|\
             -0.000000000000000000000000000001|0.00000|0|0|NULL|0|0000| -> \
             2|5|0|NULL|1|NULL|0|NULL|NULL|0|NULL|NULL|0.05|\
             -0.000000000000000000000000000001|0.00000|0|0|NULL|0|0000|",
        ]
    );
    assert_eq!(
        rows_of("temporal"),
        [
            " -> 2024-02-29|-838:59:59|-00:00:01.1|-12:34:56.789|23:59:59.000001|\
             9999-12-31 23:59:59|2024-01-01 01:02:03.99|1000-01-01 00:00:00.0001|\
             2024-01-01 01:02:03.123456|1970-01-01 00:00:01|2024-01-01 01:02:03.5|\
             2024-01-01 01:02:03.999|2038-01-19 03:14:07.999999|",
            " -> 0000-00-00|838:59:59|00:00:00.0|-00:00:00.001|-838:59:58.999999|\
             0000-00-00 00:00:00|NULL|NULL|NULL|0000-00-00 00:00:00|0000-00-00 00:00:00.0|NULL|NULL|",
            " -> 2024-00-00|00:00:00|-01:00:00.0|NULL|-00:00:00.000001|NULL|NULL|NULL|NULL|NULL|\
             NULL|NULL|NULL|",
        ]
    );
    assert_eq!(
        rows_of("texts")[0],
        format!(
            " -> abc|héllo|é|010200000000|ff{}|日本|x|straße|中文|𝄞|00ff|01|tiny|text|medium|ünï|\
             00|0102|010203|01020304|",
            zeros(254 * 2)
        )
    );
    assert_eq!(rows_of("members"), [" -> ü|y|r,b|1,9|m1,m33|", " -> NULL|NULL|||NULL|"]);
    assert_eq!(
        rows_of("hidden"),
        [" -> 1|hello|2|3|4|", "-|hello|2|-|-| -> 3|-|-|-|-|", "-|hello|2|-|-| -> ",]
    );
    assert_eq!(rows_of("part"), [" -> 1|", " -> 2|", "2| -> 4|"]);
}

#[test]
fn golden_documents() {
    let rows = rows_of("documents");
    let document =
        |row: &str| row.split(" -> ").last().unwrap().split('|').nth(1).unwrap().to_owned();
    assert_eq!(
        document(&rows[0]),
        "{\"\": \"\", \"a\": 1, \"bb\": [1, -1, 40000, -40000, 65536, 3000000000, 5000000000, \
         18446744073709551615, 1.5, 1e100, true, false, null, \"text\", {}], \
         \"nested\": {\"x\": {\"y\": [[]]}}}"
    );
    assert!(
        document(&rows[1])
            .contains("\"d\": 12.340, \"u\": 5, \"dt\": \"2024-01-02 03:04:05.678000\"")
    );
    assert!(
        document(&rows[1]).contains("\"date\": \"2024-01-02\", \"time\": \"-12:34:56.500000\"")
    );
    let last: Vec<_> = rows.iter().rev().take(4).rev().map(|row| document(row)).collect();
    assert_eq!(
        last,
        [
            "[1]",
            "[\"abcdefgh\"]",
            "{\"a\": \"longlonglonglong\", \"b\": [1, 2, 3]}",
            "{\"a\": \"x\", \"b\": [1, 3]}"
        ]
    );
}

/// A document beyond 64 KiB: its bytes in MySQL's log are known by their checksum.
#[test]
fn golden_large_document() {
    let text = format!("[70000, \"{}\", -5, 80000, -2147483648, [70000]]", "x".repeat(70_000));
    let document = types::json::parse(text.as_bytes()).unwrap().to_binary();
    let mut out = Vec::new();
    crate::json::put(types::JsonRef::new(&document), &mut out);
    assert_eq!((out.len(), event::checksum(&out)), (70053, 0x287798f2));
    assert_eq!(crate::json::read(&out).unwrap(), document);
}

#[test]
fn golden_context_and_identifiers() {
    let mut queries = Vec::new();
    let mut sets = Vec::new();
    let mut gtids = Vec::new();
    for (header, sealed) in events(TYPES).into_iter().chain(events(SECOND)) {
        let (_, body) = event::open(sealed).unwrap();
        match decode(header.kind, body).unwrap() {
            Event::Query(query) => queries.push(query),
            Event::PreviousGtids(set) => sets.push(set.to_string()),
            Event::Gtid(event) => gtids.push(event),
            _ => {}
        }
    }
    let user = queries.iter().find(|query| query.text.starts_with(b"CREATE USER")).unwrap();
    assert_eq!(user.context.time_zone, Some(&b"+02:00"[..]));
    assert_eq!(user.context.microseconds, Some(123_456));
    assert_eq!(user.context.auto_increment, Some((2, 1)));
    assert_eq!(user.context.schemas, [b"mysql"]);
    assert_eq!(
        user.context.flags2,
        Some(
            crate::query::flags2::NO_FOREIGN_KEY_CHECKS
                | crate::query::flags2::RELAXED_UNIQUE_CHECKS
        )
    );
    assert_eq!(
        sets,
        [
            "",
            "44884bf9-eaa4-11f1-b23d-02fc00000001:1-51:tag_a:1,\n\
             aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:5:abc:7"
        ]
    );
    assert_eq!(
        gtids[0].gtid.as_ref().unwrap().to_string(),
        "44884bf9-eaa4-11f1-b23d-02fc00000001:1"
    );
    assert!(gtids.iter().any(|event| event.gtid.as_ref().unwrap().to_string()
        == "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa:abc:7"));
    assert!(gtids.iter().all(|event| event.immediate_server_version == 90_704));
}

/// Whatever is changed in the golden logs, decoding ends without a panic.
#[test]
fn damaged_logs_are_read_without_panic() {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let good: Vec<_> =
        events(TYPES).into_iter().map(|(header, event)| (header, event.to_vec())).collect();
    for _ in 0..40 {
        let mut tables = BTreeMap::new();
        for (header, event) in &good {
            let mut body = event[HEADER_BYTES..event.len() - 4].to_vec();
            for _ in 0..random() % 4 {
                let at = random() as usize % body.len();
                body[at] = random() as u8;
            }
            if random().is_multiple_of(5) {
                body.truncate(random() as usize % (body.len() + 1));
            }
            read_all(header.kind, &body, &mut tables);
        }
    }
}

fn read_all(kind: EventKind, body: &[u8], tables: &mut BTreeMap<u64, TableMap>) {
    match decode(kind, body) {
        Ok(Event::TableMap(map)) => _ = tables.insert(map.table_id, *map),
        Ok(Event::Rows(rows)) => {
            for table in tables.get(&rows.table_id).into_iter().chain(tables.values().take(2)) {
                rows.rows(table).for_each(drop);
            }
        }
        Ok(Event::TransactionPayload(payload)) => drop(payload.events(1 << 20)),
        _ => {}
    }
}

fn column_types() -> Vec<DataType> {
    let mut types = Vec::new();
    for kind in [TypeKind::TinyInt, TypeKind::MediumInt, TypeKind::BigInt] {
        types.push(DataType::new(kind, 10, 0));
        types.push(DataType::new(kind, 10, 0).with_unsigned());
    }
    types.push(DataType::decimal(20, 7));
    types.push(DataType::double());
    types.push(DataType::new(TypeKind::Bit, 13, 0));
    types.push(DataType::time(4));
    types.push(DataType::datetime(6));
    types.push(DataType::varchar(300, charset::CollationId::UTF8MB4_0900_AI_CI));
    types.push(DataType::varbinary(20));
    types.push(DataType::json());
    let mut point = DataType::geometry();
    point.spatial.kind = GeometryKind::Point;
    types.push(point);
    types.push(DataType::new(TypeKind::Vector, 3, 0));
    types
}

fn value_of(ty: &DataType, bits: u64, text: &str) -> Value {
    if bits.is_multiple_of(7) {
        return Value::Null;
    }
    match ty.kind {
        TypeKind::TinyInt | TypeKind::MediumInt | TypeKind::BigInt => {
            let (least, greatest) = ty.integer_range().unwrap();
            if ty.unsigned {
                return Value::UInt(bits % greatest);
            }
            Value::Int((bits as i64).clamp(least, greatest as i64))
        }
        TypeKind::Decimal => {
            Value::Decimal(types::Decimal::from_i128(i128::from(bits as i64 / 7), 7))
        }
        TypeKind::Double => Value::Double(bits as i64 as f64 / 3.0),
        TypeKind::Bit => Value::UInt(bits & 0x1fff),
        TypeKind::Time => {
            let micros = (bits as i64 / 100 * 100) % types::Time::MAX.micros();
            Value::Time(types::Time::from_micros(micros / 100 * 100).unwrap())
        }
        TypeKind::DateTime => {
            Value::DateTime(types::DateTime::from_unix_micros(bits as i64 % (1 << 50)).unwrap())
        }
        TypeKind::Json => types::JsonValue::Array(vec![
            types::JsonValue::string(text),
            types::JsonValue::Int(bits as i64),
            types::JsonValue::Int(bits as i64 >> 33),
            types::JsonValue::UInt(bits >> (bits % 64)),
        ])
        .to_value(),
        _ => Value::text(text),
    }
}

/// UUID, INET4 and INET6 are binary strings in the log: their usual bytes, to which a reader adds the zero bytes that are left out.
#[test]
fn uuids_and_addresses_are_binary() {
    let texts = ["123e4567-e89b-12d3-a456-426655440000", "1.2.0.0", "fe80::"];
    let types: Vec<DataType> = Fixed::ALL.map(DataType::fixed).to_vec();
    let columns: Vec<_> = types.iter().map(|ty| Column { name: "c", ty, visible: true }).collect();
    let mut map = Vec::new();
    write_table_map(&mut map, 7, "s", "t", &columns, &[0.into()], RowMetadata::Full);
    let Event::TableMap(map) = decode(EventKind::TABLE_MAP, &map).unwrap() else { panic!() };
    let parsed = Fixed::ALL.iter().zip(texts);
    let row: Vec<Value> =
        parsed.map(|(kind, text)| Value::Bytes(kind.parse(text.as_bytes()).unwrap())).collect();
    let (layout, image) = (Layout::new(&types), Image::default());
    let mut writer = RowsWriter::new(&layout, RowsKind::Update, &image, 7, 0, (1, 1), 500);
    let mut out = Vec::new();
    writer.push(&row, &row, &mut out);
    writer.finish(true, &mut out);
    let (header, event) = Events::new(&out).next().unwrap();
    let Event::Rows(rows) = decode(header.kind, &event[HEADER_BYTES..]).unwrap() else { panic!() };
    let found = rows.rows(&map).next().unwrap().unwrap().after;
    for ((kind, value), (column, found)) in
        Fixed::ALL.iter().zip(&row).zip(map.columns.iter().zip(&found))
    {
        let (Value::Bytes(value), Some(Value::Bytes(found))) = (value, found) else { panic!() };
        assert_eq!((column.ty.kind, column.ty.length as usize), (TypeKind::Binary, kind.bytes()));
        assert_eq!(kind.of_native(found).as_ref(), Some(value));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn rows_survive(rows in prop::collection::vec((any::<u64>(), "\\PC{0,20}"), 1..60)) {
        let types = column_types();
        let columns: Vec<_> =
            types.iter().map(|ty| Column { name: "c", ty, visible: true }).collect();
        let mut map = Vec::new();
        write_table_map(&mut map, 7, "s", "t", &columns, &[0.into()], RowMetadata::Full);
        let Event::TableMap(map) = decode(EventKind::TABLE_MAP, &map).unwrap() else { panic!() };
        let (layout, image) = (Layout::new(&types), Image::default());
        let head = (1, 1);
        let mut writer = RowsWriter::new(&layout, RowsKind::Update, &image, 7, 0, head, 500);
        let (mut out, mut expected) = (Vec::new(), Vec::new());
        for (at, (bits, text)) in rows.iter().enumerate() {
            let row: Vec<_> = types
                .iter()
                .zip(1u64..)
                .map(|(ty, salt)| value_of(ty, bits.wrapping_mul(salt | 1).rotate_left(at as u32), text))
                .collect();
            writer.push(&row, &row, &mut out);
            expected.push(row);
        }
        writer.finish(true, &mut out);
        let mut found = Vec::new();
        let mut ends = 0;
        for (header, event) in Events::new(&out) {
            let Event::Rows(rows) = decode(header.kind, &event[HEADER_BYTES..]).unwrap() else { panic!() };
            ends += rows.flags & flags::STATEMENT_ENDS;
            for row in rows.rows(&map) {
                let row = row.unwrap();
                prop_assert_eq!(&row.before, &row.after);
                found.push(values(&row.after));
            }
        }
        prop_assert_eq!(ends, 1);
        prop_assert_eq!(found, expected);
    }

    #[test]
    fn random_bytes_are_no_panic(kind in 0u8..=44, body in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut tables = BTreeMap::new();
        let types = column_types();
        let columns: Vec<_> =
            types.iter().map(|ty| Column { name: "c", ty, visible: true }).collect();
        let mut map = Vec::new();
        write_table_map(&mut map, 7, "s", "t", &columns, &[], RowMetadata::Minimal);
        read_all(EventKind::TABLE_MAP, &map, &mut tables);
        read_all(EventKind(kind), &body, &mut tables);
        let _ = event::open(&body);
        let _ = envelope::read_dump(&body);
        drop(envelope::read_dump_gtid(&body));
        drop(crate::json::read(&body));
    }

    #[test]
    fn sets_survive(items in prop::collection::vec((0u8..4, "[a-c]{0,2}", 1i64..200, 0i64..5), 0..30)) {
        let mut set = GtidSet::default();
        for (uuid, tag, first, more) in items {
            set.add_range(types::Uuid([uuid; 16]), &tag, first, first + more);
            prop_assert!(set.contains(types::Uuid([uuid; 16]), &tag, first + more));
        }
        let mut out = Vec::new();
        crate::gtid::write_tagged_set(&set, &mut out);
        prop_assert_eq!(&crate::gtid::read_set(&out).unwrap(), &set);
        prop_assert_eq!(GtidSet::parse(&set.to_string()).unwrap(), set);
    }
}
