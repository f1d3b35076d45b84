//! MD5, SHA1, SHA2 and RANDOM_BYTES.

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, native_bytes, scalar, text_collation, text_type};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use sha2::Digest;
use types::{SqlBytes, Value};

/// Most random bytes of one call.
const RANDOM_BYTES_MAX: i128 = 1024;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "MD5",
        Arity::exactly(1),
        "MD5(str)\nThe MD5 digest in hexadecimal digits.",
        |ctx, args| Ok(bind_digest(ctx, args, 32, |bytes| hex(&md5::Md5::digest(bytes)))),
    ),
    scalar(
        "SHA1",
        Arity::exactly(1),
        "SHA1(str)\nThe SHA-1 digest in hexadecimal digits.",
        |ctx, args| Ok(bind_digest(ctx, args, 40, |bytes| hex(&sha1::Sha1::digest(bytes)))),
    )
    .aliases(&["SHA"]),
    scalar(
        "SHA2",
        Arity::exactly(2),
        "SHA2(str, hash_length)\nA SHA-2 digest in hexadecimal digits.",
        bind_sha2,
    ),
    scalar(
        "RANDOM_BYTES",
        Arity::exactly(1),
        "RANDOM_BYTES(len)\nRandom bytes.",
        bind_random_bytes,
    )
    .volatile(),
];

/// Bytes of the longest digest.
const DIGEST_MAX: usize = 64;

/// Lower-case digits of a digest.
fn hex(bytes: &[u8]) -> Value {
    Value::Bytes(digits(bytes))
}

/// The same, as bytes.
pub(crate) fn digits(bytes: &[u8]) -> SqlBytes {
    const DIGITS: [u8; 16] = *b"0123456789abcdef";
    let mut digits = [[0; 2]; DIGEST_MAX];
    let digits = &mut digits[..bytes.len()];
    for (pair, byte) in digits.iter_mut().zip(bytes) {
        *pair = [DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]];
    }
    SqlBytes::new(digits.as_flattened())
}

fn bind_digest(
    ctx: &BindContext,
    args: &[ArgInfo],
    length: u64,
    digest: fn(&[u8]) -> Value,
) -> BoundFunction {
    let collation = text_collation(ctx, &args[0]);
    let ty = text_type(length, ctx.collation_connection);
    BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        let bytes = native_bytes(collation, kit::bytes(&args[0]));
        Ok(digest(&bytes))
    })
}

fn bind_sha2(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = text_collation(ctx, &args[0]);
    let length = match args[1].constant.as_ref().map(kit::integer) {
        Some(224) => 56,
        Some(384) => 96,
        Some(512) => 128,
        _ => 64,
    };
    let ty = text_type(length, ctx.collation_connection);
    Ok(BoundFunction::new(ty, vec![Coercion::Text, Coercion::Integer], move |ctx, args| {
        let bytes = native_bytes(collation, kit::bytes(&args[0]));
        Ok(match kit::integer(&args[1]) {
            224 => hex(&sha2::Sha224::digest(&bytes)),
            0 | 256 => hex(&sha2::Sha256::digest(&bytes)),
            384 => hex(&sha2::Sha384::digest(&bytes)),
            512 => hex(&sha2::Sha512::digest(&bytes)),
            _ => wrong_length(ctx),
        })
    }))
}

fn wrong_length(ctx: &mut FunctionContext<'_>) -> Value {
    ctx.diagnostics.warn(ErrorCode::WRONG_PARAMETERS_TO_NATIVE_FCT, &[&"sha2"]);
    Value::Null
}

/// Fills with random bytes of the system.
///
/// # Errors
/// 1815 when the system's random source fails.
pub(crate) fn fill_random(out: &mut [u8]) -> Result<()> {
    aws_lc_rs::rand::fill(out).map_err(|_| Error::internal("no random bytes"))
}

fn bind_random_bytes(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(kit::binary_type(1024), vec![Coercion::Integer], |_, args| {
        let length = kit::integer(&args[0]);
        if !(1..=RANDOM_BYTES_MAX).contains(&length) {
            return Err(Error::with(ErrorCode::DATA_OUT_OF_RANGE, &[&"length", &"random_bytes"]));
        }
        let mut bytes = vec![0; length as usize];
        fill_random(&mut bytes)?;
        Ok(Value::Bytes(SqlBytes::from(bytes)))
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The library takes the processor's instructions where it has them: what it gives is what FIPS 180-4's examples say, whichever it took.
    #[test]
    fn this_processor_computes_what_the_standard_says() {
        let million = vec![b'a'; 1_000_000];
        let texts = |digest: fn(&[u8]) -> SqlBytes| {
            [&b"abc"[..], &million].map(|text| String::from_utf8_lossy(&digest(text)).into_owned())
        };
        let sha1 = texts(|text| digits(&sha1::Sha1::digest(text)));
        assert_eq!(
            sha1,
            [
                "a9993e364706816aba3e25717850c26c9cd0d89d",
                "34aa973cd4c4daa4f61eeb2bdbad27316534016f"
            ]
        );
        let sha256 = texts(|text| digits(&sha2::Sha256::digest(text)));
        assert_eq!(
            sha256,
            [
                "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
                "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"
            ]
        );
        let sha512 = texts(|text| digits(&sha2::Sha512::digest(text)));
        assert_eq!(
            sha512,
            [
                "ddaf35a193617abacc417349ae20413112e6fa4e89a97ea20a9eeee64b55d39a\
                 2192992a274fc1a836ba3c23a3feebbd454d4423643ce80e2a9ac94fa54ca49f",
                "e718483d0ce769644e2e42c7bc15b4638e1f98b13b2044285632a803afa973eb\
                 de0ff244877ea60a4cb0432ce577c31beb009c5c2c49aa2e4eadb217ad8cc09b"
            ]
        );
    }
}
