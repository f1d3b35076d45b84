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
    Ok(BoundFunction::new(ty, vec![Coercion::Bytes], |_, args| {
        Ok(Value::UInt(crc32(kit::bytes(&args[0])).into()))
    }))
}

/// Bytes per step of CRC32.
const STEP: usize = 16;

/// Remainders modulo the reflected polynomial of Ethernet: `TABLES[n][byte]` is that of a byte followed by `n` zero bytes.
static TABLES: [[u32; 256]; STEP] = {
    let mut tables = [[0; 256]; STEP];
    let mut byte = 0;
    while byte < 256 {
        let mut remainder = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            remainder =
                if remainder & 1 == 1 { remainder >> 1 ^ 0xEDB8_8320 } else { remainder >> 1 };
            bit += 1;
        }
        tables[0][byte] = remainder;
        byte += 1;
    }
    let mut zeros = 1;
    while zeros < STEP {
        let mut byte = 0;
        while byte < 256 {
            let before: u32 = tables[zeros - 1][byte];
            tables[zeros][byte] = before >> 8 ^ tables[0][(before & 0xFF) as usize];
            byte += 1;
        }
        zeros += 1;
    }
    tables
};

fn crc32(bytes: &[u8]) -> u32 {
    let mut crc = u32::MAX;
    let mut steps = bytes.chunks_exact(STEP);
    for step in &mut steps {
        let head = crc.to_le_bytes();
        crc = step.iter().enumerate().fold(0, |sum, (at, byte)| {
            let byte = byte ^ head.get(at).copied().unwrap_or(0);
            sum ^ TABLES[STEP - 1 - at][usize::from(byte)]
        });
    }
    let rest = steps.remainder().iter();
    !rest.fold(crc, |crc, byte| crc >> 8 ^ TABLES[0][usize::from(crc as u8 ^ byte)])
}

#[cfg(test)]
mod tests {
    use super::crc32;

    /// Bit by bit, as in the definition.
    fn plain(bytes: &[u8]) -> u32 {
        !bytes.iter().fold(u32::MAX, |crc, byte| {
            (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
                if crc & 1 == 1 { crc >> 1 ^ 0xEDB8_8320 } else { crc >> 1 }
            })
        })
    }

    #[test]
    fn crc32_of_every_short_length() {
        let bytes: Vec<u8> = (0..100u32).map(|n| (n * 37 + 11) as u8).collect();
        assert_eq!(crc32(b"123456789"), 0xCBF4_3926);
        for len in 0..bytes.len() {
            assert_eq!(crc32(&bytes[..len]), plain(&bytes[..len]), "{len}");
        }
    }
}
