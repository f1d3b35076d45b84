//! UUIDs and short numbers that are unique.

use std::sync::atomic::{AtomicU64, Ordering};

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, scalar, text_type};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::{CollationId, DataType, SqlBytes, Value};

use crate::digest::{digits, fill_random};

/// Characters of a UUID with its dashes.
const UUID_LENGTH: u64 = 36;
/// 100-nanosecond steps from 1582-10-15 to 1970-01-01.
const GREGORIAN_STEPS: u64 = 0x01B2_1DD2_1381_4000;
/// Nanoseconds from 1970 to 2020, from where short numbers count.
const SHORT_EPOCH_NANOS: u64 = 1_577_836_800_000_000_000;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("UUID", Arity::exactly(0), "UUID()\nA UUID of the time (version 1).", bind_uuid)
        .volatile(),
    scalar("UUID_V4", Arity::exactly(0), "UUID_V4()\nA random UUID.", |_, _| {
        Ok(bind_random_uuid(Version::V4))
    })
    .volatile(),
    scalar("UUID_V7", Arity::exactly(0), "UUID_V7()\nA UUID that sorts by time.", |_, _| {
        Ok(bind_random_uuid(Version::V7))
    })
    .volatile(),
    scalar(
        "UUID_SHORT",
        Arity::exactly(0),
        "UUID_SHORT()\nA number that is unique in this server.",
        bind_uuid_short,
    )
    .volatile(),
    scalar(
        "UUID_TO_BIN",
        Arity::between(1, 2),
        "UUID_TO_BIN(string_uuid[, swap_flag])\nThe 16 bytes of a UUID.",
        bind_uuid_to_bin,
    ),
    scalar(
        "BIN_TO_UUID",
        Arity::between(1, 2),
        "BIN_TO_UUID(binary_uuid[, swap_flag])\nThe text of a UUID of 16 bytes.",
        bind_bin_to_uuid,
    ),
    scalar(
        "IS_UUID",
        Arity::exactly(1),
        "IS_UUID(string_uuid)\nWhether a text is a UUID.",
        |_, _| {
            let ty = kit::integer_type(1, true);
            Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
                Ok(Value::bool(parse(kit::bytes(&args[0])).is_some()))
            }))
        },
    ),
];

fn uuid_type() -> DataType {
    text_type(UUID_LENGTH, CollationId::UTF8MB3_GENERAL_CI)
}

fn nanos_now() -> u64 {
    u64::try_from(sys::clock::wall().as_nanos()).unwrap_or(u64::MAX)
}

fn text(bytes: [u8; 16]) -> String {
    let digits = digits(&bytes);
    let digits = String::from_utf8_lossy(&digits);
    [&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]].join("-")
}

/// 32 digits, with dashes or without, also in braces.
fn parse(text: &[u8]) -> Option<[u8; 16]> {
    let inner = match text {
        [b'{', inner @ .., b'}'] if inner.len() == 36 => inner,
        other => other,
    };
    let digits: Vec<u8> = match inner.len() {
        32 => inner.to_vec(),
        36 if [8, 13, 18, 23].iter().all(|at| inner[*at] == b'-') => {
            inner.iter().copied().filter(|byte| *byte != b'-').collect()
        }
        _ => return None,
    };
    if digits.len() != 32 {
        return None;
    }
    let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
    let mut out = [0; 16];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(out)
}

/// The larger of `wanted` and one more than the last, which it becomes. Relaxed: only the value itself matters.
fn next_unique(last: &AtomicU64, wanted: u64) -> u64 {
    let step = |last: u64| Some(wanted.max(last.wrapping_add(1)));
    match last.fetch_update(Ordering::Relaxed, Ordering::Relaxed, step) {
        Ok(before) | Err(before) => wanted.max(before.wrapping_add(1)),
    }
}

/// The node is random for each call site, so that call sites need not coordinate.
fn bind_uuid(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let mut node = [0; 8];
    fill_random(&mut node)?;
    // The multicast bit marks a node that is not a network card's address.
    node[2] |= 1;
    node[0] = node[0] & 0x3F | 0x80;
    let last = AtomicU64::new(0);
    Ok(BoundFunction::new(uuid_type(), vec![], move |_, _| {
        let steps = next_unique(&last, nanos_now() / 100 + GREGORIAN_STEPS);
        let mut bytes = [0; 16];
        bytes[..4].copy_from_slice(&(steps as u32).to_be_bytes());
        bytes[4..6].copy_from_slice(&((steps >> 32) as u16).to_be_bytes());
        bytes[6..8].copy_from_slice(&((steps >> 48) as u16 & 0x0FFF | 0x1000).to_be_bytes());
        bytes[8..].copy_from_slice(&node);
        Ok(Value::from(text(bytes).as_str()))
    }))
}

#[derive(Clone, Copy, PartialEq)]
enum Version {
    V4,
    V7,
}

fn bind_random_uuid(version: Version) -> BoundFunction {
    let last = AtomicU64::new(0);
    BoundFunction::new(uuid_type(), vec![], move |_, _| {
        let mut bytes = [0; 16];
        fill_random(&mut bytes)?;
        if version == Version::V7 {
            // Milliseconds, then 12 bits of the fraction of one; later calls are later.
            let ticks = next_unique(
                &last,
                u64::try_from(u128::from(nanos_now()) * 4096 / 1_000_000).unwrap_or(u64::MAX),
            );
            let (millis, fraction) = (ticks >> 12, ticks & 0xFFF);
            bytes[..6].copy_from_slice(&millis.to_be_bytes()[2..]);
            bytes[6..8].copy_from_slice(&(fraction as u16).to_be_bytes());
        }
        let number = if version == Version::V4 { 0x40 } else { 0x70 };
        bytes[6] = bytes[6] & 0x0F | number;
        bytes[8] = bytes[8] & 0x3F | 0x80;
        Ok(Value::from(text(bytes).as_str()))
    })
}

/// The server's number in the high byte, then the time in steps of 16 nanoseconds.
fn bind_uuid_short(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = DataType::bigint_unsigned().with_nullable(false);
    let last = AtomicU64::new(0);
    Ok(BoundFunction::new(ty, vec![], move |ctx, _| {
        let server = ctx.session.system_variable("server_id");
        let server = server.map_or(1, |value| match &value {
            Value::Bytes(_) => kit::text(&value).parse().unwrap_or(1),
            number => kit::integer(number) as u64,
        });
        let steps = next_unique(&last, nanos_now().saturating_sub(SHORT_EPOCH_NANOS) / 16);
        Ok(Value::UInt((server & 255) << 56 | steps & 0x00FF_FFFF_FFFF_FFFF))
    }))
}

fn wrong_value(value: &Value, name: &str) -> Error {
    Error::with(ErrorCode::WRONG_VALUE_FOR_TYPE, &[&"string", &kit::text(value), &name])
}

/// Puts the parts of the time in the order of their weight, so that UUIDs of one node sort by time.
fn swapped(bytes: [u8; 16]) -> [u8; 16] {
    let mut out = bytes;
    out[..2].copy_from_slice(&bytes[6..8]);
    out[2..4].copy_from_slice(&bytes[4..6]);
    out[4..8].copy_from_slice(&bytes[..4]);
    out
}

fn unswapped(bytes: [u8; 16]) -> [u8; 16] {
    let mut out = bytes;
    out[..4].copy_from_slice(&bytes[4..8]);
    out[4..6].copy_from_slice(&bytes[2..4]);
    out[6..8].copy_from_slice(&bytes[..2]);
    out
}

fn swap_wanted(args: &[Value]) -> bool {
    args.get(1).is_some_and(|flag| kit::integer(flag) != 0)
}

fn bind_uuid_to_bin(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let coercions = vec![Coercion::Text, Coercion::Integer];
    let bound = BoundFunction::new(DataType::varbinary(16), coercions, |_, args| {
        if args[0].is_null() {
            return Ok(Value::Null);
        }
        let bytes =
            parse(kit::bytes(&args[0])).ok_or_else(|| wrong_value(&args[0], "uuid_to_bin"))?;
        Ok(Value::Bytes(SqlBytes::new(&if swap_wanted(args) { swapped(bytes) } else { bytes })))
    });
    Ok(bound.with_nulls())
}

fn bind_bin_to_uuid(ctx: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = text_type(UUID_LENGTH, ctx.collation_connection);
    let bound = BoundFunction::new(ty, vec![Coercion::Text, Coercion::Integer], |_, args| {
        if args[0].is_null() {
            return Ok(Value::Null);
        }
        let bytes = <[u8; 16]>::try_from(kit::bytes(&args[0]))
            .map_err(|_| wrong_value(&args[0], "bin_to_uuid"))?;
        Ok(Value::from(text(if swap_wanted(args) { unswapped(bytes) } else { bytes }).as_str()))
    });
    Ok(bound.with_nulls())
}
