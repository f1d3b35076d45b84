//! Round trips of every encoder, and random bytes against every decoder.

use std::sync::Arc;

use proptest::prelude::*;
use types::{CollationId, DataType, Date, DateTime, Members, ResultCell, Time, TypeKind, Value};

use crate::*;

const ALL: Capabilities = Capabilities(0x3fff_ffff & !Capabilities::SSL.0);

fn greeting() -> Greeting {
    Greeting {
        server_version: b"9.7.0-squall".to_vec(),
        connection_id: 77,
        nonce: *b"abcdefghijklmnopqrst",
        capabilities: ALL,
        collation: 255,
        status: StatusFlags::AUTOCOMMIT,
        auth_plugin: b"caching_sha2_password".to_vec(),
    }
}

#[test]
fn greeting_round_trip() {
    let mut out = Vec::new();
    greeting().encode(&mut out);
    assert_eq!(Greeting::decode(&out), Ok(greeting()));
    assert_eq!(out[0], 10);
}

#[test]
fn handshake_response_round_trip_in_all_forms() {
    for caps in [
        ALL.without(Capabilities::ZSTD_COMPRESSION),
        ALL,
        Capabilities::PROTOCOL_41 | Capabilities::SECURE_CONNECTION,
    ] {
        let has = |flag| caps.contains(flag);
        let response = HandshakeResponse {
            capabilities: caps,
            packet_bytes_max: 1 << 24,
            collation: 45,
            user: b"root",
            auth_response: b"0123456789012345678901234567890a",
            database: has(Capabilities::CONNECT_WITH_DB).then_some(&b"test"[..]),
            auth_plugin: has(Capabilities::PLUGIN_AUTH).then_some(&b"caching_sha2_password"[..]),
            attributes: if has(Capabilities::CONNECT_ATTRS) {
                vec![(b"_os", b"Linux"), (b"_pid", b"1")]
            } else {
                vec![]
            },
            zstd_level: has(Capabilities::ZSTD_COMPRESSION).then_some(5),
        };
        let mut out = Vec::new();
        response.encode(&mut out);
        assert_eq!(decode_first_reply(&out, ALL), Ok(FirstReply::Response(response)));
    }
    let ssl =
        SslRequest { capabilities: ALL | Capabilities::SSL, packet_bytes_max: 1, collation: 8 };
    let mut out = Vec::new();
    ssl.encode(&mut out);
    assert_eq!(out.len(), 32);
    assert_eq!(decode_first_reply(&out, ALL | Capabilities::SSL), Ok(FirstReply::Ssl(ssl)));
}

#[test]
fn replies_round_trip() {
    let ok = OkPacket {
        affected_rows: 300,
        last_insert_id: 1 << 40,
        status: StatusFlags::AUTOCOMMIT | StatusFlags::SESSION_STATE_CHANGED,
        warnings: 2,
        info: b"Records: 1",
        changes: vec![Change::Schema(b"test"), Change::State, Change::SystemVariable(b"a", b"b")],
    };
    let mut out = Vec::new();
    ok.encode(&mut out, ALL);
    assert_eq!(OkPacket::decode(&out, ALL), Ok(ok));
    let plain = OkPacket { info: b"x", ..OkPacket::default() };
    out.clear();
    plain.encode(&mut out, Capabilities::PROTOCOL_41);
    assert_eq!(out, b"\0\0\0\0\0\0\0\x01x");
    assert_eq!(OkPacket::decode(&out, Capabilities::PROTOCOL_41), Ok(plain));
    out.clear();
    let error = errors::err!(DUP_ENTRY, 1, "t1.PRIMARY");
    ErrPacket::of(&error).encode(&mut out, ALL);
    assert_eq!(ErrPacket::decode(&out).map(|packet| packet.to_error()), Ok(error));
    out.clear();
    let prepared = PrepareOk {
        statement_id: 3,
        columns: 1,
        parameters: 2,
        warnings: 0,
        metadata_follows: Some(true),
    };
    prepared.encode(&mut out);
    assert_eq!(PrepareOk::decode(&out), Ok(prepared));
}

#[test]
fn packets_split_at_the_limit_and_join_again() {
    for len in [0, 1, FRAME_PAYLOAD_MAX - 1, FRAME_PAYLOAD_MAX, 2 * FRAME_PAYLOAD_MAX + 7] {
        let payload: Vec<u8> = (0..len).map(|index| (index * 31 % 251) as u8).collect();
        let mut out = Vec::new();
        let mut sequence = 254;
        let start = begin_packet(&mut out);
        out.extend_from_slice(&payload);
        finish_packet(&mut out, start, &mut sequence);
        let packet = scan_packet(&out, 254, usize::MAX).expect("complete");
        assert_eq!(packet.frame_bytes, out.len());
        assert_eq!(sequence, packet.last_sequence.wrapping_add(1));
        assert_eq!(join_parts(&mut out, packet), &payload[..]);
    }
}

#[test]
fn scan_refuses_before_the_bytes_arrive() {
    assert_eq!(scan_packet(&[5, 0, 0], 0, 10), Err(ScanError::Incomplete { needed: 4 }));
    assert_eq!(scan_packet(&[5, 0, 0, 0], 0, 10), Err(ScanError::Incomplete { needed: 9 }));
    let too_large = |last_sequence| Err(ScanError::TooLarge { last_sequence });
    assert_eq!(scan_packet(&[11, 0, 0, 0], 0, 10), too_large(0));
    let mut split = vec![0; FRAME_HEADER_BYTES + FRAME_PAYLOAD_MAX];
    split[..3].fill(0xff);
    split.extend([9, 0, 0, 1]);
    assert_eq!(scan_packet(&split, 0, FRAME_PAYLOAD_MAX + 8), too_large(1));
    assert_eq!(scan_packet(&[5, 0, 0, 3], 0, 10), Err(ScanError::OutOfOrder));
}

#[test]
fn binary_rows_round_trip() {
    let date = Date::new(2024, 2, 29).expect("a date");
    let cells = [
        (DataType::bigint(), Value::Int(-5)),
        (DataType::bigint_unsigned(), Value::UInt(u64::MAX)),
        (DataType::new(TypeKind::TinyInt, 4, 0), Value::Int(-1)),
        (DataType::new(TypeKind::Int, 11, 0), Value::Null),
        (DataType::double(), Value::Double(1.5)),
        (DataType::new(TypeKind::Date, 10, 0), Value::Date(date)),
        (
            DataType::new(TypeKind::DateTime, 26, 6),
            Value::DateTime(DateTime::new(date, 1, 2, 3, 4).expect("a time")),
        ),
        (
            DataType::new(TypeKind::Time, 10, 0),
            Value::Time(Time::new(true, 800, 2, 3, 0).expect("a time")),
        ),
        (DataType::varchar(10, CollationId::UTF8MB4_0900_AI_CI), Value::text("é")),
        (DataType::varchar(10, CollationId::UTF8MB4_0900_AI_CI), Value::Null),
    ];
    let mut out = Vec::new();
    let row = BinaryRowWriter::begin(&mut out, cells.len());
    let mut columns = Vec::new();
    for (index, (ty, value)) in cells.iter().enumerate() {
        columns.push(TypeOnWire::of(ty, ColumnOrigin::Table, 255, 4));
        row.put_cell(&mut out, index, ty, value.into()).expect("a value");
    }
    let mut decoded = Vec::new();
    decode_binary_row(&out, &columns, &mut decoded).expect("a row");
    let expected: Vec<Value> = cells.iter().map(|(_, value)| value.clone()).collect();
    assert_eq!(decoded, expected);
}

#[test]
fn execute_round_trip_with_types_sent_once_and_long_data() {
    let parameters =
        [Value::Int(1), Value::text("abc"), Value::Null, Value::UInt(9), Value::Double(0.5)];
    for caps in [ALL, ALL.without(Capabilities::QUERY_ATTRIBUTES)] {
        let mut out = Vec::new();
        put_execute(&mut out, 4, CursorFlags::READ_ONLY, &parameters, caps);
        let Ok(Command::StmtExecute(body)) = Command::decode(&out, caps) else {
            panic!("not an execute")
        };
        let mut reader = Reader::new(body);
        let head = decode_execute_header(&mut reader).expect("head");
        assert_eq!(head.statement_id, 4);
        let (mut types, mut values) = (Vec::new(), Vec::new());
        let none = |_| None;
        decode_parameters(
            &mut reader,
            caps,
            head.flags,
            parameters.len(),
            &mut types,
            &none,
            &mut values,
        )
        .expect("parameters");
        assert_eq!(values, parameters);
        // A second execution without types: one NULL-free integer and long data for the text.
        let mut again = Vec::new();
        if caps.contains(Capabilities::QUERY_ATTRIBUTES) {
            again.push(2);
        }
        again.extend_from_slice(&[0, 0]);
        again.extend_from_slice(&7i64.to_le_bytes());
        types.truncate(2);
        let long = |index| (index == 1).then_some(&b"long"[..]);
        decode_parameters(
            &mut Reader::new(&again),
            caps,
            head.flags,
            2,
            &mut types,
            &long,
            &mut values,
        )
        .expect("parameters");
        assert_eq!(values, [Value::Int(7), Value::text("long")]);
    }
}

#[test]
fn query_attributes_round_trip() {
    let attributes = vec![
        Parameter { name: b"traceparent"[..].into(), value: Value::text("00-1") },
        Parameter { name: b"n"[..].into(), value: Value::Null },
    ];
    let mut out = Vec::new();
    put_query_with_attributes(&mut out, b"SELECT 1", &attributes, ALL);
    let expected = Command::Query(QueryText { attributes, sql: b"SELECT 1" });
    assert_eq!(Command::decode(&out, ALL), Ok(expected));
}

#[test]
fn column_definitions_match_the_reference() {
    let int = DataType::new(TypeKind::Int, 11, 0).with_nullable(false);
    let wire = TypeOnWire::of(&int, ColumnOrigin::Table, 255, 4);
    assert_eq!((wire.ty, wire.collation, wire.length), (ColumnType::Long, 63, 11));
    assert_eq!(wire.flags, ColumnFlags::NOT_NULL);
    let text = DataType::varchar(20, CollationId::UTF8MB4_0900_AI_CI);
    let wire = TypeOnWire::of(&text, ColumnOrigin::Expression, 255, 4);
    assert_eq!((wire.ty, wire.length, wire.decimals), (ColumnType::VarString, 80, 31));
    let decimal = DataType::decimal(10, 2);
    assert_eq!(TypeOnWire::of(&decimal, ColumnOrigin::Table, 255, 4).length, 12);
    let definition = ColumnDefinition {
        schema: b"test",
        table: b"t1",
        org_table: b"t1",
        name: b"a",
        org_name: b"a",
        ty: wire,
    };
    let mut out = Vec::new();
    definition.encode(&mut out);
    assert_eq!(ColumnDefinition::decode(&out), Ok(definition));
}

#[test]
fn compression_round_trip() {
    for kind in [CompressionKind::Zlib, CompressionKind::Zstd(3)] {
        let mut sender = Compression::new(kind);
        let mut receiver = Compression::new(kind);
        for len in [0usize, 10, 1000, 3 << 20] {
            let plain: Vec<u8> = (0..len).map(|index| (index / 7) as u8).collect();
            let mut framed = Vec::new();
            sender.encode(&plain, &mut framed);
            let (mut got, mut rest) = (Vec::new(), &framed[..]);
            while let Some(frame_len) = compressed_frame_len(rest) {
                let (frame, tail) = rest.split_at(frame_len);
                receiver.decode_frame(frame, 1 << 24, &mut got).expect("a frame");
                rest = tail;
            }
            assert_eq!(got, plain);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn decoders_are_total(bytes in proptest::collection::vec(any::<u8>(), 0..200), caps: u32, count in 0usize..20) {
        let caps = Capabilities(caps);
        let _ = Greeting::decode(&bytes);
        let _ = decode_first_reply(&bytes, caps);
        let _ = ChangeUser::decode(&bytes, caps);
        let _ = AuthSwitchRequest::decode(&bytes);
        let _ = Command::decode(&bytes, caps);
        let _ = classify_reply(&bytes, caps);
        let _ = OkPacket::decode(&bytes, caps);
        let _ = Eof::decode(&bytes);
        let _ = PrepareOk::decode(&bytes);
        let _ = ColumnDefinition::decode(&bytes);
        let _ = decode_text_row(&bytes, count, &mut Vec::new());
        let wire = TypeOnWire::of(&DataType::bigint(), ColumnOrigin::Table, 255, 4);
        let _ = decode_binary_row(&bytes, &vec![wire; count], &mut Vec::new());
        for kind in [CompressionKind::Zlib, CompressionKind::Zstd(3)] {
            if let Some(len) = compressed_frame_len(&bytes) && len <= bytes.len() {
                let _ = Compression::new(kind).decode_frame(&bytes[..len], 1 << 20, &mut Vec::new());
            }
        }
        let mut reader = Reader::new(&bytes);
        if let Ok(head) = decode_execute_header(&mut reader) {
            let (mut types, mut values) = (Vec::new(), Vec::new());
            let _ = decode_parameters(&mut reader, caps, head.flags, count, &mut types, &|_| None, &mut values);
        }
        if let Ok(packet) = scan_packet(&bytes, bytes.get(3).copied().unwrap_or(0), 1 << 24) {
            join_parts(&mut bytes.clone(), packet);
        }
    }

    #[test]
    fn lenenc_integers_round_trip(number: u64) {
        let mut out = Vec::new();
        put_lenenc_int(&mut out, number);
        prop_assert_eq!(out.len(), lenenc_int_len(number));
        prop_assert_eq!(Reader::new(&out).lenenc_int(), Ok(number));
    }
}

#[test]
fn packets_have_their_golden_bytes() {
    let mut out = Vec::new();
    greeting().encode(&mut out);
    golden::check("greeting.hex", &out, include_str!("../tests/golden/greeting.hex"));
    out.clear();
    let ok = OkPacket {
        affected_rows: 300,
        last_insert_id: 1 << 40,
        status: StatusFlags::AUTOCOMMIT | StatusFlags::SESSION_STATE_CHANGED,
        warnings: 2,
        info: b"Records: 1",
        changes: vec![Change::Schema(b"test"), Change::SystemVariable(b"a", b"b")],
    };
    ok.encode(&mut out, ALL);
    golden::check("ok.hex", &out, include_str!("../tests/golden/ok.hex"));
    out.clear();
    ErrPacket::of(&errors::err!(DUP_ENTRY, 1, "t1.PRIMARY")).encode(&mut out, ALL);
    golden::check("err.hex", &out, include_str!("../tests/golden/err.hex"));
    out.clear();
    let text = DataType::varchar(20, CollationId::UTF8MB4_0900_AI_CI);
    let definition = ColumnDefinition {
        schema: b"test",
        table: b"t1",
        org_table: b"t1",
        name: b"a",
        org_name: b"a",
        ty: TypeOnWire::of(&text, ColumnOrigin::Table, 255, 4),
    };
    definition.encode(&mut out);
    golden::check("column.hex", &out, include_str!("../tests/golden/column.hex"));
    out.clear();
    let row = BinaryRowWriter::begin(&mut out, 2);
    row.put_cell(&mut out, 0, &DataType::bigint(), Value::Int(-5).into()).expect("a value");
    row.put_cell(&mut out, 1, &DataType::double(), ResultCell::Null).expect("a value");
    golden::check("binary-row.hex", &out, include_str!("../tests/golden/binary-row.hex"));
    out.clear();
    let parameters = [Value::Int(1), Value::text("abc"), Value::Null];
    put_execute(&mut out, 4, CursorFlags::READ_ONLY, &parameters, ALL);
    golden::check("execute.hex", &out, include_str!("../tests/golden/execute.hex"));
}

/// Cells as a record holds them, values and computed values are the same bytes, whatever the width of their length.
#[test]
fn text_cells_come_after_their_length() {
    for length in [0, 1, 250, 251, 65_535, 65_536, 1 << 24] {
        let text = vec![b'x'; length];
        let mut expected = Vec::new();
        put_lenenc_bytes(&mut expected, &text);
        let varchar = DataType::varchar(20, CollationId::UTF8MB4_0900_AI_CI);
        let mut chosen = DataType::new(TypeKind::Enum, 1, 0);
        chosen.members = Some(Arc::new(Members::new([&text])));
        let value = Value::Bytes(text.as_slice().into());
        let cells = [
            (&varchar, ResultCell::Stored { bytes: &text, ty: &varchar }),
            (&varchar, ResultCell::Value(&value)),
            (&varchar, ResultCell::Computed(value.clone())),
            (&chosen, ResultCell::Stored { bytes: &[1], ty: &chosen }),
            (&chosen, ResultCell::Computed(Value::UInt(1))),
        ];
        for (ty, cell) in cells {
            let mut out = b"before".to_vec();
            put_text_cell(&mut out, ty, cell).expect("a cell");
            assert!(out[6..] == expected, "{length} bytes of {:?}", ty.kind);
        }
    }
    let mut out = Vec::new();
    put_text_cell(&mut out, &DataType::bigint(), ResultCell::from(&Value::Null)).expect("NULL");
    assert_eq!(out, [0xfb]);
}
