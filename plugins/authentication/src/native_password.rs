//! `mysql_native_password`: the 4.1 method, for old accounts and clients.

use errors::Result;
use plugin_api::{AccountSecret, AuthContext, AuthStep, Authenticator, Exchange};
use sha1::{Digest, Sha1};

use crate::equal_in_constant_time;

const DIGEST_BYTES: usize = 20;

/// The method.
pub struct NativePassword;

impl Authenticator for NativePassword {
    fn name(&self) -> &'static str {
        "mysql_native_password"
    }

    fn start(&self, ctx: AuthContext, secret: AccountSecret) -> Result<Box<dyn Exchange>> {
        Ok(Box::new(Running { nonce: ctx.nonce, secret }))
    }

    fn hash_password(&self, password: &[u8]) -> Result<Vec<u8>> {
        if password.is_empty() {
            return Ok(Vec::new());
        }
        let twice = sha1(&[&sha1(&[password])]);
        let hex: String = twice.iter().map(|byte| format!("{byte:02X}")).collect();
        Ok(format!("*{hex}").into_bytes())
    }

    fn is_valid_stored(&self, stored: &[u8]) -> bool {
        stored.is_empty() || parse_stored(stored).is_some()
    }

    fn is_password(&self, stored: &[u8], password: &[u8]) -> bool {
        if password.is_empty() || stored.is_empty() {
            return password.is_empty() && stored.is_empty();
        }
        let twice = sha1(&[&sha1(&[password])]);
        parse_stored(stored).is_some_and(|known| equal_in_constant_time(&known, &twice))
    }
}

struct Running {
    nonce: [u8; 20],
    secret: AccountSecret,
}

impl Exchange for Running {
    fn next(&mut self, packet: &[u8]) -> Result<AuthStep> {
        let AccountSecret { authentication_string, second } = &self.secret;
        if packet.is_empty() || authentication_string.is_empty() {
            let accepted = packet.is_empty() && authentication_string.is_empty();
            return Ok(if accepted { AuthStep::Accept } else { AuthStep::Refuse });
        }
        let opens = |stored: &[u8]| {
            parse_stored(stored).is_some_and(|twice| {
                packet.len() == DIGEST_BYTES && scramble_matches(packet, &twice, &self.nonce)
            })
        };
        let matches = opens(authentication_string) || opens(second);
        Ok(if matches { AuthStep::Accept } else { AuthStep::Refuse })
    }
}

fn parse_stored(stored: &[u8]) -> Option<[u8; DIGEST_BYTES]> {
    let hex = stored.strip_prefix(b"*").filter(|hex| hex.len() == 2 * DIGEST_BYTES)?;
    let mut digest = [0; DIGEST_BYTES];
    for (byte, pair) in digest.iter_mut().zip(hex.chunks_exact(2)) {
        let high = char::from(pair[0]).to_digit(16)?;
        let low = char::from(pair[1]).to_digit(16)?;
        *byte = (high << 4 | low) as u8;
    }
    Some(digest)
}

fn sha1(parts: &[&[u8]]) -> [u8; DIGEST_BYTES] {
    let mut hasher = Sha1::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// The client's answer: SHA1(password) XOR SHA1(nonce, SHA1(SHA1(password))).
pub fn scramble(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = sha1(&[password]);
    let mask = sha1(&[nonce, &sha1(&[&once])]);
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

fn scramble_matches(scramble: &[u8], twice: &[u8; DIGEST_BYTES], nonce: &[u8]) -> bool {
    let mask = sha1(&[nonce, twice]);
    let once: Vec<u8> = scramble.iter().zip(mask).map(|(a, b)| a ^ b).collect();
    equal_in_constant_time(&sha1(&[&once]), twice)
}
