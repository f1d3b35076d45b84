//! Decoders on any bytes: `cargo xtask fuzz` lets coverage guide them. `__fuzz__` keeps what they start from.

use types::Value;

use crate::*;

/// Most bytes of a frame that is not compressed.
const PLAIN_MAX: usize = 1 << 20;

/// Capabilities, a number and the rest of an input.
fn head(bytes: &[u8]) -> Option<(Capabilities, usize, &[u8])> {
    let (caps, rest) = bytes.split_first_chunk::<4>()?;
    let (&count, rest) = rest.split_first()?;
    Some((Capabilities(u32::from_le_bytes(*caps)), usize::from(count), rest))
}

/// What a client sends before it is logged in.
#[test]
fn handshakes() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Some((caps, _, bytes)) = head(bytes) else { return };
        let _ = ChangeUser::decode(bytes, caps);
        let _ = AuthSwitchRequest::decode(bytes);
        let first = decode_first_reply(bytes, caps);
        if let Ok(FirstReply::Response(response)) = &first {
            let mut out = Vec::new();
            response.encode(&mut out);
            let _ = decode_first_reply(&out, caps);
        }
        if let Ok(greeting) = Greeting::decode(bytes) {
            let mut out = Vec::new();
            greeting.encode(&mut out);
            let _ = Greeting::decode(&out);
        }
    });
}

/// Commands, and what follows the head of an execution.
#[test]
fn commands() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Some((caps, count, bytes)) = head(bytes) else { return };
        let _ = Command::decode(bytes, caps);
        let mut reader = Reader::new(bytes);
        if let Ok(attributes) = decode_query_attributes(&mut reader) {
            assert!(attributes.len() <= bytes.len());
        }
        let mut reader = Reader::new(bytes);
        let Ok(head) = decode_execute_header(&mut reader) else { return };
        let (mut types, mut values) = (Vec::new(), Vec::new());
        let long = |at| (at == 1).then_some(&b"long"[..]);
        // Twice: the second time with the types of the first.
        for _ in 0..2 {
            let mut again = reader;
            let read = decode_parameters(
                &mut again,
                caps,
                head.flags,
                count,
                &mut types,
                &long,
                &mut values,
            );
            assert!(read.is_err() || values.len() <= bytes.len() * 8 + count);
        }
    });
}

/// What a server answers.
#[test]
fn replies() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        let Some((caps, count, bytes)) = head(bytes) else { return };
        let _ = classify_reply(bytes, caps);
        let _ = OkPacket::decode(bytes, caps);
        let _ = Eof::decode(bytes);
        let _ = PrepareOk::decode(bytes);
        let _ = ColumnDefinition::decode(bytes);
        let _ = decode_text_row(bytes, count, &mut Vec::new());
        // The first bytes are the types of columns.
        let (kinds, row) = bytes.split_at((count % 32).min(bytes.len()));
        let columns: Vec<_> = kinds
            .iter()
            .filter_map(|&kind| {
                Some(TypeOnWire {
                    ty: ColumnType::from_u8(kind)?,
                    collation: 255,
                    length: 4,
                    flags: if kind & 0x80 == 0 { ColumnFlags(0) } else { ColumnFlags::UNSIGNED },
                    decimals: 0,
                })
            })
            .collect();
        let mut cells: Vec<Value> = Vec::new();
        if decode_binary_row(row, &columns, &mut cells).is_ok() {
            assert_eq!(cells.len(), columns.len());
        }
    });
}

/// Frames, plain and compressed.
#[test]
fn frames() {
    bolero::check!().with_iterations(1_000).for_each(|bytes: &[u8]| {
        if let Some(len) = compressed_frame_len(bytes)
            && len <= bytes.len()
        {
            for kind in [CompressionKind::Zlib, CompressionKind::Zstd(3)] {
                let mut plain = Vec::new();
                let read =
                    Compression::new(kind).decode_frame(&bytes[..len], PLAIN_MAX, &mut plain);
                assert!(plain.len() <= PLAIN_MAX + 1);
                if read.is_err() {
                    continue;
                }
                let mut packed = Vec::new();
                Compression::new(kind).encode(&plain, &mut packed);
                let (mut again, mut rest) = (Vec::new(), &packed[..]);
                let mut frames = Compression::new(kind);
                while let Some(len) = compressed_frame_len(rest) {
                    let frame = &rest[..len];
                    frames.decode_frame(frame, PLAIN_MAX, &mut again).expect("a written frame");
                    rest = &rest[len..];
                }
                assert_eq!(again, plain);
            }
        }
        let first = bytes.get(3).copied().unwrap_or(0);
        if let Ok(packet) = scan_packet(bytes, first, 1 << 24) {
            join_parts(&mut bytes.to_vec(), packet);
        }
    });
}
