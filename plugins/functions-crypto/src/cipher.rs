//! AES_ENCRYPT and AES_DECRYPT in the modes ECB and CBC with PKCS #7 padding.

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptionContext, EncryptionContext,
    PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::iv::FixedLength;
use errors::{Condition, Error, ErrorCode, Level, Result};
use plugin_api::kit::{self, scalar, text_length};
use plugin_api::{ArgInfo, Arity, BoundFunction, Coercion, FunctionContext, ScalarFunction};
use types::{SqlBytes, Value};

/// Bytes of a block and of an initialization vector.
const BLOCK: usize = 16;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("AES_ENCRYPT", Arity::between(2, 6), "AES_ENCRYPT(str, key_str[, init_vector])\nstr encrypted with AES.", |_, args| {
        bind(args, "aes_encrypt", encrypted_length(byte_length(&args[0])), encrypt)
    })
    .stable(),
    scalar("AES_DECRYPT", Arity::between(2, 6), "AES_DECRYPT(crypt_str, key_str[, init_vector])\nstr decrypted with AES; NULL when it cannot be.", |_, args| {
        bind(args, "aes_decrypt", text_length(&args[0].ty), decrypt)
    })
    .stable(),
];

fn byte_length(arg: &ArgInfo) -> u64 {
    text_length(&arg.ty).saturating_mul(if arg.ty.is_text() { 4 } else { 1 })
}

/// Padding always adds at least a byte.
fn encrypted_length(length: u64) -> u64 {
    (length / BLOCK as u64 + 1).saturating_mul(BLOCK as u64)
}

/// Key size and mode of `@@block_encryption_mode`.
#[derive(Clone, Copy)]
struct Mode {
    algorithm: &'static Algorithm,
    key_length: usize,
    chained: bool,
}

fn mode(ctx: &FunctionContext<'_>) -> Result<Mode> {
    let setting = ctx.session.system_variable("block_encryption_mode");
    let name = setting.as_ref().map(kit::text).unwrap_or_default().to_ascii_lowercase();
    let name = if name.is_empty() { "aes-128-ecb".to_owned() } else { name };
    let mut parts = name.split('-').skip(1);
    let (algorithm, key_length) = match parts.next() {
        Some("192") => (&AES_192, 24),
        Some("256") => (&AES_256, 32),
        _ => (&AES_128, 16),
    };
    match parts.next() {
        Some("ecb") => Ok(Mode { algorithm, key_length, chained: false }),
        Some("cbc") => Ok(Mode { algorithm, key_length, chained: true }),
        _ => Err(Error::not_supported(format!("block_encryption_mode '{name}'"))),
    }
}

type Crypt = fn(Mode, &[u8], &[u8], Option<[u8; BLOCK]>) -> Option<Vec<u8>>;

fn bind(args: &[ArgInfo], name: &'static str, length: u64, crypt: Crypt) -> Result<BoundFunction> {
    if args.len() > 3 {
        return Err(Error::not_supported(format!("key derivation in {name}")));
    }
    let ty = kit::binary_type(length);
    let bound = BoundFunction::new(ty, vec![Coercion::Bytes, Coercion::Text], move |ctx, args| {
        if args[0].is_null() || args[1].is_null() {
            return Ok(Value::Null);
        }
        let mode = mode(ctx)?;
        let vector = vector(ctx, mode, args.get(2), name)?;
        if !ctx.fits_packet(name, encrypted_length(kit::bytes(&args[0]).len() as u64)) {
            return Ok(Value::Null);
        }
        warn_of_key(ctx, kit::bytes(&args[1]).len(), mode.key_length);
        let key = folded_key(kit::bytes(&args[1]), mode.key_length);
        let out = crypt(mode, &key, kit::bytes(&args[0]), vector);
        Ok(out.map_or(Value::Null, |out| Value::Bytes(SqlBytes::from(out))))
    });
    Ok(bound.with_nulls())
}

/// The vector that CBC needs; ECB ignores one with a warning.
fn vector(
    ctx: &mut FunctionContext<'_>,
    mode: Mode,
    given: Option<&Value>,
    name: &str,
) -> Result<Option<[u8; BLOCK]>> {
    match (mode.chained, given) {
        (false, None) => Ok(None),
        (false, Some(_)) => {
            ctx.diagnostics.warn(ErrorCode::OPTION_IGNORED, &[&"IV"]);
            Ok(None)
        }
        (true, None) => Err(Error::with(ErrorCode::WRONG_PARAMCOUNT_TO_NATIVE_FCT, &[&name])),
        (true, Some(vector)) => match kit::bytes(vector).first_chunk::<BLOCK>() {
            Some(vector) => Ok(Some(*vector)),
            None => Err(Error::with(ErrorCode::AES_INVALID_IV, &[&name, &BLOCK])),
        },
    }
}

/// The key folded into the cipher's key length: bytes beyond it are combined with those from the start.
fn folded_key(key: &[u8], length: usize) -> Vec<u8> {
    let mut folded = vec![0; length];
    for (index, byte) in key.iter().enumerate() {
        folded[index % length] ^= byte;
    }
    folded
}

fn encrypt(mode: Mode, key: &[u8], text: &[u8], vector: Option<[u8; BLOCK]>) -> Option<Vec<u8>> {
    let key = UnboundCipherKey::new(mode.algorithm, key).ok()?;
    let mut out = text.to_vec();
    match vector {
        None => {
            PaddedBlockEncryptingKey::ecb_pkcs7(key).ok()?.encrypt(&mut out).ok()?;
        }
        Some(vector) => {
            let context = EncryptionContext::Iv128(FixedLength::from(vector));
            PaddedBlockEncryptingKey::cbc_pkcs7(key)
                .ok()?
                .less_safe_encrypt(&mut out, context)
                .ok()?;
        }
    }
    Some(out)
}

fn decrypt(mode: Mode, key: &[u8], secret: &[u8], vector: Option<[u8; BLOCK]>) -> Option<Vec<u8>> {
    if secret.is_empty() || !secret.len().is_multiple_of(BLOCK) {
        return None;
    }
    let key = UnboundCipherKey::new(mode.algorithm, key).ok()?;
    let (key, context) = match vector {
        None => (PaddedBlockDecryptingKey::ecb_pkcs7(key).ok()?, DecryptionContext::None),
        Some(vector) => {
            let context = DecryptionContext::Iv128(FixedLength::from(vector));
            (PaddedBlockDecryptingKey::cbc_pkcs7(key).ok()?, context)
        }
    };
    let mut buffer = secret.to_vec();
    Some(key.decrypt(&mut buffer, context).ok()?.to_vec())
}

/// Warning 3237: a key longer than the cipher's is folded, which weakens it.
fn warn_of_key(ctx: &mut FunctionContext<'_>, given: usize, wanted: usize) {
    if given <= wanted {
        return;
    }
    let message = format!(
        "AES key size should be {wanted} bytes length or secure KDF methods hkdf or pbkdf2_hmac should be used, \
         please provide exact AES key size or use KDF methods for better security."
    );
    ctx.diagnostics.push(Condition {
        level: Level::Warning,
        code: ErrorCode(3237),
        sqlstate: *b"HY000",
        message,
    });
}
