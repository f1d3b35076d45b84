//! BIT_COUNT and CRC32.

use errors::Result;
use plugin_api::kit::{self, any_nullable, scalar};
use plugin_api::{ArgInfo, Arity, BindContext, BoundFunction, Coercion, ScalarFunction};
use types::Value;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "BIT_COUNT",
        Arity::exactly(1),
        "BIT_COUNT(N)\nThe number of bits that are set in N.",
        bind_bit_count,
    ),
    scalar(
        "CRC32",
        Arity::exactly(1),
        "CRC32(expr)\nThe cyclic redundancy check value of a string.",
        bind_crc32,
    ),
];

fn bind_bit_count(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = kit::integer_type(21, any_nullable(args));
    if args[0].ty.is_binary() {
        return Ok(BoundFunction::new(ty, vec![Coercion::AsIs], |_, args| {
            let ones: u64 =
                kit::bytes(&args[0]).iter().map(|byte| u64::from(byte.count_ones())).sum();
            Ok(Value::Int(ones as i64))
        }));
    }
    Ok(BoundFunction::new(ty, vec![Coercion::Integer], |_, args| {
        Ok(Value::Int(i64::from((kit::integer(&args[0]) as u64).count_ones())))
    }))
}

fn bind_crc32(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let mut ty = kit::integer_type(10, any_nullable(args));
    ty.unsigned = true;
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, args| {
        Ok(Value::UInt(crc32(kit::bytes(&args[0])).into()))
    }))
}

/// Remainders of every byte modulo the reflected polynomial of Ethernet.
const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder =
                if remainder & 1 == 1 { remainder >> 1 ^ 0xEDB8_8320 } else { remainder >> 1 };
            bit += 1;
        }
        table[byte] = remainder;
        byte += 1;
    }
    table
};

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| crc >> 8 ^ TABLE[(crc as u8 ^ byte) as usize])
}
