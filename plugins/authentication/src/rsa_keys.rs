//! The key pair with which clients without TLS encrypt their password. Generated on first use, kept in memory.

use std::sync::OnceLock;

use aws_lc_rs::encoding::{AsDer, PublicKeyX509Der};
use aws_lc_rs::rsa::{KeySize, OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, PrivateDecryptingKey};
use errors::{Error, Result};

/// A lazily generated key pair.
#[derive(Default)]
pub(crate) struct RsaKeys(OnceLock<Option<Pair>>);

struct Pair {
    private: OaepPrivateDecryptingKey,
    public_pem: Vec<u8>,
}

impl RsaKeys {
    fn pair(&self) -> Result<&Pair> {
        let pair = self.0.get_or_init(make_pair);
        pair.as_ref().ok_or_else(|| Error::internal("no RSA key could be made"))
    }

    /// The public key in the format for clients.
    pub(crate) fn public_pem(&self) -> Result<&[u8]> {
        self.pair().map(|pair| &pair.public_pem[..])
    }

    /// The plain text of `cipher`, or `None` if it was not encrypted with our key.
    pub(crate) fn decrypt(&self, cipher: &[u8]) -> Result<Option<Vec<u8>>> {
        let private = &self.pair()?.private;
        let mut plain = vec![0; private.min_output_size()];
        let decrypted = private.decrypt(&OAEP_SHA1_MGF1SHA1, cipher, &mut plain, None);
        Ok(decrypted.ok().map(|text| text.to_vec()))
    }
}

fn make_pair() -> Option<Pair> {
    let private = PrivateDecryptingKey::generate(KeySize::Rsa2048).ok()?;
    let der: PublicKeyX509Der<'_> = private.public_key().as_der().ok()?;
    let public_pem = pem(der.as_ref());
    Some(Pair { private: OaepPrivateDecryptingKey::new(private).ok()?, public_pem })
}

fn pem(der: &[u8]) -> Vec<u8> {
    let mut text = b"-----BEGIN PUBLIC KEY-----\n".to_vec();
    for line in base64(der).chunks(64) {
        text.extend_from_slice(line);
        text.push(b'\n');
    }
    text.extend_from_slice(b"-----END PUBLIC KEY-----\n");
    text
}

fn base64(bytes: &[u8]) -> Vec<u8> {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = Vec::with_capacity(bytes.len().div_ceil(3) * 4);
    for chunk in bytes.chunks(3) {
        let mut padded = [0; 3];
        padded[..chunk.len()].copy_from_slice(chunk);
        let bits = u32::from_be_bytes([0, padded[0], padded[1], padded[2]]);
        for position in 0..4 {
            let character = ALPHABET[(bits >> (18 - 6 * position) & 63) as usize];
            text.push(if position <= chunk.len() { character } else { b'=' });
        }
    }
    text
}
