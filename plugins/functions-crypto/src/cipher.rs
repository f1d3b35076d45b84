//! AES_ENCRYPT and AES_DECRYPT in the modes of `block_encryption_mode`, with keys that are folded or derived.
//! ECB and CBC pad by PKCS #7; the others are stream modes, whose result is as long as the text.

use std::num::NonZeroU32;

use aws_lc_rs::cipher::{
    AES_128, AES_192, AES_256, Algorithm, DecryptingKey, DecryptionContext, EncryptingKey,
    EncryptionContext, PaddedBlockDecryptingKey, PaddedBlockEncryptingKey, UnboundCipherKey,
};
use aws_lc_rs::error::Unspecified;
use aws_lc_rs::iv::FixedLength;
use aws_lc_rs::{hkdf, pbkdf2};
use errors::{Condition, Error, ErrorCode, Level, Result, bail};
use plugin_api::kit::{self, scalar, text_length};
use plugin_api::{ArgInfo, Arity, BoundFunction, Coercion, FunctionContext, ScalarFunction};
use types::{SqlBytes, Value};

/// Bytes of a block and of an initialization vector.
const BLOCK: usize = 16;
/// What the name of a derivation, its salt and its info must be shorter than, in bytes.
const OPTION_LIMIT: usize = 256;
/// What the number of iterations must be shorter than, in digits.
const ITERATIONS_LIMIT: usize = 6;
/// Iterations of PBKDF2 when the call names none, which are also the fewest.
const ITERATIONS_MIN: u32 = 1000;
const ITERATIONS_MAX: u32 = 65_535;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar("AES_ENCRYPT", Arity::between(2, 6), "AES_ENCRYPT(str, key_str[, init_vector[, kdf_name[, salt[, info | iterations]]]])\nstr encrypted with AES.", |_, args| {
        bind("aes_encrypt", encrypted_length(byte_length(&args[0])), encrypt)
    })
    .stable()
    .in_definitions(),
    scalar("AES_DECRYPT", Arity::between(2, 6), "AES_DECRYPT(crypt_str, key_str[, init_vector[, kdf_name[, salt[, info | iterations]]]])\ncrypt_str decrypted with AES; NULL when it cannot be.", |_, args| {
        bind("aes_decrypt", text_length(&args[0].ty), decrypt)
    })
    .stable()
    .in_definitions(),
];

fn byte_length(arg: &ArgInfo) -> u64 {
    text_length(&arg.ty).saturating_mul(if arg.ty.is_text() { 4 } else { 1 })
}

/// Padding always adds at least a byte.
fn encrypted_length(length: u64) -> u64 {
    (length / BLOCK as u64 + 1).saturating_mul(BLOCK as u64)
}

/// How blocks depend on each other.
#[derive(Clone, Copy, PartialEq)]
enum Chaining {
    Ecb,
    Cbc,
    Cfb1,
    Cfb8,
    Cfb128,
    Ofb,
}

/// Key size and chaining of `@@block_encryption_mode`.
#[derive(Clone, Copy)]
struct Mode {
    algorithm: &'static Algorithm,
    key_length: usize,
    chaining: Chaining,
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
    let chaining = match parts.next() {
        Some("ecb") => Chaining::Ecb,
        Some("cbc") => Chaining::Cbc,
        Some("cfb1") => Chaining::Cfb1,
        Some("cfb8") => Chaining::Cfb8,
        Some("cfb128") => Chaining::Cfb128,
        Some("ofb") => Chaining::Ofb,
        _ => return Err(Error::not_supported(format!("block_encryption_mode '{name}'"))),
    };
    Ok(Mode { algorithm, key_length, chaining })
}

type Crypt = fn(Mode, &[u8], &[u8], [u8; BLOCK]) -> std::result::Result<Vec<u8>, Unspecified>;

fn bind(name: &'static str, length: u64, crypt: Crypt) -> Result<BoundFunction> {
    let ty = kit::binary_type(length);
    let bound = BoundFunction::new(ty, vec![Coercion::Bytes, Coercion::Text], move |ctx, args| {
        if args[0].is_null() || args[1].is_null() {
            return Ok(Value::Null);
        }
        let mode = mode(ctx)?;
        let vector = vector(ctx, mode, args, name)?;
        let given = kit::bytes(&args[1]);
        let key = match args.get(3..).filter(|options| !options.is_empty()) {
            Some(options) => derived_key(given, options, mode.key_length)?,
            None => {
                warn_of_key(ctx, given.len(), mode.key_length);
                folded_key(given, mode.key_length)
            }
        };
        if !ctx.fits_packet(name, encrypted_length(kit::bytes(&args[0]).len() as u64)) {
            return Ok(Value::Null);
        }
        let out = crypt(mode, &key, kit::bytes(&args[0]), vector);
        Ok(out.map_or(Value::Null, |out| Value::Bytes(SqlBytes::from(out))))
    });
    Ok(bound.with_nulls())
}

/// The vector that all modes but ECB need. ECB ignores one, with a warning when it is the last argument.
fn vector(
    ctx: &mut FunctionContext<'_>,
    mode: Mode,
    args: &[Value],
    name: &str,
) -> Result<[u8; BLOCK]> {
    if mode.chaining == Chaining::Ecb {
        if args.len() == 3 {
            ctx.diagnostics.warn(ErrorCode::OPTION_IGNORED, &[&"IV"]);
        }
        return Ok([0; BLOCK]);
    }
    let Some(given) = args.get(2) else {
        bail!(WRONG_PARAMCOUNT_TO_NATIVE_FCT, name);
    };
    match kit::bytes(given).first_chunk::<BLOCK>() {
        Some(vector) => Ok(*vector),
        None => Err(Error::with(ErrorCode::AES_INVALID_IV, &[&name, &BLOCK])),
    }
}

/// An option of a key derivation.
///
/// # Errors
/// 3238 for NULL, and for one that is not shorter than `limit` bytes.
fn option(value: &Value, limit: usize) -> Result<&[u8]> {
    let bytes = kit::bytes(value);
    if value.is_null() || bytes.len() >= limit {
        return Err(Error::with(ErrorCode::AES_INVALID_KDF_OPTION_SIZE, &[&limit]));
    }
    Ok(bytes)
}

/// A key of `length` bytes from a password: `options` are the name of the method, and of its salt and info (HKDF) or iterations (PBKDF2) those that are given. Both methods use SHA-512.
///
/// # Errors
/// 3235 to 3238 for wrong options.
fn derived_key(password: &[u8], options: &[Value], length: usize) -> Result<Vec<u8>> {
    let name = option(&options[0], OPTION_LIMIT)?;
    let salt = match options.get(1) {
        Some(salt) if matches!(name, b"hkdf" | b"pbkdf2_hmac") => option(salt, OPTION_LIMIT)?,
        _ => &[],
    };
    let mut key = vec![0; length];
    match name {
        b"hkdf" => {
            let info = options.get(2).map_or(Ok(&[][..]), |info| option(info, OPTION_LIMIT))?;
            hkdf::Salt::new(hkdf::HKDF_SHA512, salt)
                .extract(password)
                .expand(&[info], KeyLength(length))
                .and_then(|okm| okm.fill(&mut key))
                .map_err(|_| Error::internal("a key derivation failed"))?;
        }
        b"pbkdf2_hmac" => {
            let iterations = options.get(2).map_or(Ok(ITERATIONS_MIN), iterations)?;
            let iterations = NonZeroU32::new(iterations).unwrap_or(NonZeroU32::MIN);
            pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA512, iterations, salt, password, &mut key);
        }
        _ => bail!(AES_INVALID_KDF_NAME),
    }
    Ok(key)
}

/// The bytes that HKDF makes.
struct KeyLength(usize);

impl hkdf::KeyType for KeyLength {
    fn len(&self) -> usize {
        self.0
    }
}

/// The number at the start of a text, after spaces.
///
/// # Errors
/// 3236 outside 1000 to 65535, 3238 for NULL and long texts.
fn iterations(value: &Value) -> Result<u32> {
    let text = option(value, ITERATIONS_LIMIT)?.trim_ascii_start();
    let digits = text.iter().take_while(|byte| byte.is_ascii_digit());
    let number = digits.fold(0, |number, digit| number * 10 + u32::from(digit - b'0'));
    if !(ITERATIONS_MIN..=ITERATIONS_MAX).contains(&number) {
        bail!(AES_INVALID_KDF_ITERATIONS);
    }
    Ok(number)
}

/// The key folded into the cipher's key length: bytes beyond it are combined with those from the start.
fn folded_key(key: &[u8], length: usize) -> Vec<u8> {
    let mut folded = vec![0; length];
    for (index, byte) in key.iter().enumerate() {
        folded[index % length] ^= byte;
    }
    folded
}

fn encrypt(
    mode: Mode,
    key: &[u8],
    text: &[u8],
    vector: [u8; BLOCK],
) -> std::result::Result<Vec<u8>, Unspecified> {
    let key = UnboundCipherKey::new(mode.algorithm, key)?;
    let context = EncryptionContext::Iv128(FixedLength::from(vector));
    let mut out = text.to_vec();
    let stream = match mode.chaining {
        Chaining::Ecb => {
            PaddedBlockEncryptingKey::ecb_pkcs7(key)?.encrypt(&mut out)?;
            return Ok(out);
        }
        Chaining::Cbc => {
            let key = PaddedBlockEncryptingKey::cbc_pkcs7(key)?;
            key.less_safe_encrypt(&mut out, context)?;
            return Ok(out);
        }
        Chaining::Cfb1 => EncryptingKey::cfb1(key)?,
        Chaining::Cfb8 => EncryptingKey::cfb8(key)?,
        Chaining::Cfb128 => EncryptingKey::cfb128(key)?,
        Chaining::Ofb => EncryptingKey::ofb(key)?,
    };
    if !out.is_empty() {
        stream.less_safe_encrypt(&mut out, context)?;
    }
    Ok(out)
}

fn decrypt(
    mode: Mode,
    key: &[u8],
    secret: &[u8],
    vector: [u8; BLOCK],
) -> std::result::Result<Vec<u8>, Unspecified> {
    let key = UnboundCipherKey::new(mode.algorithm, key)?;
    let context = DecryptionContext::Iv128(FixedLength::from(vector));
    let is_padded = matches!(mode.chaining, Chaining::Ecb | Chaining::Cbc);
    if is_padded && (secret.is_empty() || !secret.len().is_multiple_of(BLOCK)) {
        return Err(Unspecified);
    }
    let mut buffer = secret.to_vec();
    let stream = match mode.chaining {
        Chaining::Ecb => {
            let key = PaddedBlockDecryptingKey::ecb_pkcs7(key)?;
            return Ok(key.decrypt(&mut buffer, DecryptionContext::None)?.to_vec());
        }
        Chaining::Cbc => {
            let key = PaddedBlockDecryptingKey::cbc_pkcs7(key)?;
            return Ok(key.decrypt(&mut buffer, context)?.to_vec());
        }
        Chaining::Cfb1 => DecryptingKey::cfb1(key)?,
        Chaining::Cfb8 => DecryptingKey::cfb8(key)?,
        Chaining::Cfb128 => DecryptingKey::cfb128(key)?,
        Chaining::Ofb => DecryptingKey::ofb(key)?,
    };
    if !buffer.is_empty() {
        stream.decrypt(&mut buffer, context)?;
    }
    Ok(buffer)
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
    ctx.diagnostics.push(Condition::new(Level::Warning, ErrorCode(3237), *b"HY000", message));
}
