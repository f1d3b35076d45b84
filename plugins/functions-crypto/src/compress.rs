//! COMPRESS, UNCOMPRESS, UNCOMPRESSED_LENGTH: four bytes of length, then zlib's format.

use std::io::{Read, Write};

use errors::{Error, ErrorCode, Result};
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use plugin_api::kit::{self, any_nullable, scalar, text_length};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use types::{SqlBytes, Value};

/// Bytes of the length in front.
const HEADER: usize = 4;
/// The two high bits of the length are reserved.
const LENGTH_MASK: u32 = 0x3FFF_FFFF;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "COMPRESS",
        Arity::exactly(1),
        "COMPRESS(string_to_compress)\nA string in compressed form.",
        bind_compress,
    ),
    scalar(
        "UNCOMPRESS",
        Arity::exactly(1),
        "UNCOMPRESS(string_to_uncompress)\nWhat COMPRESS was given.",
        bind_uncompress,
    ),
    scalar(
        "UNCOMPRESSED_LENGTH",
        Arity::exactly(1),
        "UNCOMPRESSED_LENGTH(compressed_string)\nThe length of the string before COMPRESS.",
        bind_length,
    ),
];

fn bind_compress(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let bytes = text_length(&args[0].ty).saturating_mul(if args[0].ty.is_text() { 4 } else { 1 });
    // zlib's own bound, the header, and a last byte.
    let overhead = (bytes >> 12) + (bytes >> 14) + (bytes >> 25) + 13 + HEADER as u64 + 1;
    let ty = kit::binary_type(bytes.saturating_add(overhead));
    Ok(BoundFunction::new(ty, vec![Coercion::Bytes], |ctx, args| {
        let bytes = kit::bytes(&args[0]);
        if bytes.is_empty() {
            return Ok(Value::Bytes(SqlBytes::EMPTY));
        }
        let out = compress(bytes)?;
        Ok(if ctx.fits_packet("compress", out.len() as u64) {
            Value::Bytes(SqlBytes::from(out))
        } else {
            Value::Null
        })
    }))
}

fn compress(bytes: &[u8]) -> Result<Vec<u8>> {
    let mut out = (bytes.len() as u32 & LENGTH_MASK).to_le_bytes().to_vec();
    let mut encoder = ZlibEncoder::new(&mut out, Compression::default());
    let done = encoder.write_all(bytes).and_then(|()| encoder.finish().map(drop));
    done.map_err(|_| Error::with(ErrorCode::ZLIB_Z_MEM_ERROR, &[]))?;
    // A CHAR column would strip a space at the end.
    if out.last() == Some(&b' ') {
        out.push(b'.');
    }
    Ok(out)
}

fn header(bytes: &[u8]) -> Option<u32> {
    let header = bytes.first_chunk::<HEADER>()?;
    Some(u32::from_le_bytes(*header) & LENGTH_MASK)
}

fn corrupted(ctx: &mut FunctionContext<'_>) -> Value {
    ctx.diagnostics.warn(ErrorCode::ZLIB_Z_DATA_ERROR, &[]);
    Value::Null
}

fn bind_uncompress(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(kit::binary_type(1 << 24), vec![Coercion::Text], |ctx, args| {
        let bytes = kit::bytes(&args[0]);
        if bytes.is_empty() {
            return Ok(Value::Bytes(SqlBytes::EMPTY));
        }
        let Some(length) = header(bytes).filter(|_| bytes.len() > HEADER) else {
            return Ok(corrupted(ctx));
        };
        if u64::from(length) > ctx.max_allowed_packet {
            let limit = ctx.max_allowed_packet;
            ctx.diagnostics.warn(ErrorCode::TOO_BIG_FOR_UNCOMPRESS, &[&limit]);
            return Ok(Value::Null);
        }
        let mut out = Vec::new();
        let mut decoder = ZlibDecoder::new(&bytes[HEADER..]).take(u64::from(length) + 1);
        match decoder.read_to_end(&mut out) {
            Ok(_) if out.len() <= length as usize => Ok(Value::Bytes(SqlBytes::from(out))),
            Ok(_) => {
                ctx.diagnostics.warn(ErrorCode::ZLIB_Z_BUF_ERROR, &[]);
                Ok(Value::Null)
            }
            Err(_) => Ok(corrupted(ctx)),
        }
    }))
}

fn bind_length(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(11, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |ctx, args| {
        let bytes = kit::bytes(&args[0]);
        match header(bytes).filter(|_| bytes.len() > HEADER) {
            Some(length) => Ok(Value::Int(length.into())),
            None if bytes.is_empty() => Ok(Value::Int(0)),
            None => {
                corrupted(ctx);
                Ok(Value::Int(0))
            }
        }
    }))
}
