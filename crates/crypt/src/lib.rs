//! Ciphers of encryption at rest (docs/format/encryption.md): AES-256-XTS for the units of files, and key wrapping for the keys. Pure: no files, no
//! randomness, no log.
#![forbid(unsafe_code)]

mod secret;
mod units;
mod wrap;

pub use secret::Secret;
pub use units::{DATA_KEY_BYTES, UNIT_BYTES, UnitCipher};
/// CRC-32C, which tells damage, not intent.
pub fn checksum(bytes: &[u8]) -> u32 {
    crc_fast::checksum(crc_fast::CrcAlgorithm::Crc32Iscsi, bytes) as u32
}

pub use wrap::{MASTER_KEY_BYTES, WRAPPED_BYTES, unwrap_key, wrap_key};
