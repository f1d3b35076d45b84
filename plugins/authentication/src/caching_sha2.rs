//! `caching_sha2_password`: a salted slow hash is stored, a fast one is cached after the first log-in.
//!
//! The client first proves knowledge of the password against the cached digest. Without one, it has to send
//! the password: in clear over TLS or a UNIX socket, else encrypted with the server's RSA key.

use std::collections::HashMap;
use std::sync::Arc;

use errors::{Error, Result, err};
use plugin_api::{AccountSecret, AuthChannel, AuthContext, AuthStep, Authenticator, Exchange};
use sha2::{Digest, Sha256};
use sys::sync::Mutex;

use crate::equal_in_constant_time;
use crate::rsa_keys::RsaKeys;
use crate::sha256_crypt::{self, ENCODED_BYTES};

const SCRAMBLE_BYTES: usize = 32;
const SALT_BYTES: usize = 20;
/// `$A$`, three digits of rounds in thousands, `$`.
const PREFIX_BYTES: usize = 7;
const STORED_BYTES: usize = PREFIX_BYTES + SALT_BYTES + ENCODED_BYTES;
const ROUNDS_DEFAULT: u32 = 5000;
/// The hash works per byte of password: longer ones are refused before they cost time.
const PASSWORD_BYTES_MAX: usize = 256;
/// Cached digests; the cache is cleared when it is full.
const CACHE_ENTRIES_MAX: usize = 10_000;

/// Server to client: the cached digest matched.
const FAST_AUTH_SUCCESS: u8 = 3;
/// Server to client: send the password.
const FULL_AUTH: u8 = 4;
/// Client to server: send the public key.
const REQUEST_PUBLIC_KEY: u8 = 2;

type Sha256Digest = [u8; 32];

/// State shared by all exchanges.
#[derive(Default)]
struct Shared {
    /// SHA256(SHA256(password)) by stored string; the salt makes the string unique to its account.
    cache: Mutex<HashMap<Vec<u8>, Sha256Digest>>,
    keys: RsaKeys,
}

/// The method.
#[derive(Default)]
pub struct CachingSha2Password {
    shared: Arc<Shared>,
}

impl CachingSha2Password {
    /// The method with an empty cache.
    pub fn new() -> CachingSha2Password {
        CachingSha2Password::default()
    }
}

impl Authenticator for CachingSha2Password {
    fn name(&self) -> &'static str {
        "caching_sha2_password"
    }

    fn start(&self, ctx: AuthContext, secret: AccountSecret) -> Result<Box<dyn Exchange>> {
        let shared = self.shared.clone();
        Ok(Box::new(Running { shared, ctx, secret, state: State::Scramble }))
    }

    fn hash_password(&self, password: &[u8]) -> Result<Vec<u8>> {
        if password.is_empty() {
            return Ok(Vec::new());
        }
        if password.len() > PASSWORD_BYTES_MAX {
            return Err(err!(NOT_VALID_PASSWORD));
        }
        let mut salt = [0; SALT_BYTES];
        sys::entropy::fill(&mut salt).map_err(Error::internal)?;
        // Printable characters other than `$`: the string is shown by SHOW CREATE USER.
        for byte in &mut salt {
            *byte = b'0' + (*byte % 75);
        }
        let mut stored = format!("$A${:03X}$", ROUNDS_DEFAULT / 1000).into_bytes();
        stored.extend_from_slice(&salt);
        stored.extend_from_slice(&sha256_crypt::hash(password, &salt, ROUNDS_DEFAULT));
        Ok(stored)
    }

    fn is_valid_stored(&self, stored: &[u8]) -> bool {
        stored.is_empty() || Stored::parse(stored).is_some()
    }

    fn is_password(&self, stored: &[u8], password: &[u8]) -> bool {
        if password.is_empty() || stored.is_empty() {
            return password.is_empty() && stored.is_empty();
        }
        password.len() <= PASSWORD_BYTES_MAX
            && Stored::parse(stored).is_some_and(|stored| stored.matches(password))
    }
}

/// The parts of a stored string.
struct Stored<'a> {
    rounds: u32,
    salt: &'a [u8],
    hash: &'a [u8],
}

impl<'a> Stored<'a> {
    fn parse(stored: &'a [u8]) -> Option<Stored<'a>> {
        if stored.len() != STORED_BYTES {
            return None;
        }
        let digits = stored.strip_prefix(b"$A$")?.get(..3)?;
        let rounds = u32::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()? * 1000;
        let rest = stored[PREFIX_BYTES - 1..].strip_prefix(b"$")?;
        let (salt, hash) = rest.split_at(SALT_BYTES);
        (rounds > 0).then_some(Stored { rounds, salt, hash })
    }

    fn matches(&self, password: &[u8]) -> bool {
        let hash = sha256_crypt::hash(password, self.salt, self.rounds);
        equal_in_constant_time(&hash, self.hash)
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// The scramble is expected.
    Scramble,
    /// The password, or the request for the key, is expected.
    Password,
    /// The encrypted password is expected.
    Encrypted,
}

struct Running {
    shared: Arc<Shared>,
    ctx: AuthContext,
    secret: AccountSecret,
    state: State,
}

impl Exchange for Running {
    fn next(&mut self, packet: &[u8]) -> Result<AuthStep> {
        match self.state {
            State::Scramble => Ok(self.check_scramble(packet)),
            State::Password if self.ctx.channel == AuthChannel::Plain => {
                if packet == [REQUEST_PUBLIC_KEY] {
                    self.state = State::Encrypted;
                    return self.shared.keys.public_pem().map(|pem| AuthStep::Send(pem.to_vec()));
                }
                self.check_encrypted(packet)
            }
            State::Password => Ok(self.check_password(packet)),
            State::Encrypted => self.check_encrypted(packet),
        }
    }
}

impl Running {
    /// The passwords that are valid for the account.
    fn stored(&self) -> [&[u8]; 2] {
        [&self.secret.authentication_string, &self.secret.second]
    }

    fn check_scramble(&mut self, packet: &[u8]) -> AuthStep {
        if packet.is_empty() || packet == [0] {
            let accepted = self.secret.authentication_string.is_empty();
            return if accepted { AuthStep::Accept } else { AuthStep::Refuse };
        }
        if packet.len() != SCRAMBLE_BYTES || self.secret.authentication_string.is_empty() {
            return AuthStep::Refuse;
        }
        let cached = {
            let cache = self.shared.cache.lock();
            self.stored().map(|stored| cache.get(stored).copied())
        };
        let mut digests = cached.into_iter().flatten();
        if digests.any(|digest| scramble_matches(packet, &digest, &self.ctx.nonce)) {
            return AuthStep::SendAndAccept(vec![FAST_AUTH_SUCCESS]);
        }
        self.state = State::Password;
        AuthStep::Send(vec![FULL_AUTH])
    }

    fn check_encrypted(&self, packet: &[u8]) -> Result<AuthStep> {
        let Some(mut masked) = self.shared.keys.decrypt(packet)? else {
            return Ok(AuthStep::Refuse);
        };
        for (byte, mask) in masked.iter_mut().zip(self.ctx.nonce.iter().cycle()) {
            *byte ^= mask;
        }
        Ok(self.check_password(&masked))
    }

    fn check_password(&self, packet: &[u8]) -> AuthStep {
        let password = packet.strip_suffix(&[0]).unwrap_or(packet);
        if password.len() > PASSWORD_BYTES_MAX {
            return AuthStep::Refuse;
        }
        let opens = |stored: &&[u8]| Stored::parse(stored).is_some_and(|it| it.matches(password));
        let Some(stored) = self.stored().into_iter().find(opens) else { return AuthStep::Refuse };
        let digest = sha256(&[&sha256(&[password])]);
        let mut cache = self.shared.cache.lock();
        if cache.len() >= CACHE_ENTRIES_MAX {
            cache.clear();
        }
        cache.insert(stored.to_vec(), digest);
        AuthStep::Accept
    }
}

fn sha256(parts: &[&[u8]]) -> Sha256Digest {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize().into()
}

/// The client's first answer: SHA256(password) XOR SHA256(SHA256(SHA256(password)), nonce).
pub fn scramble(password: &[u8], nonce: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = sha256(&[password]);
    let mask = sha256(&[&sha256(&[&once]), nonce]);
    once.iter().zip(mask).map(|(a, b)| a ^ b).collect()
}

fn scramble_matches(scramble: &[u8], digest: &Sha256Digest, nonce: &[u8]) -> bool {
    let mask = sha256(&[digest, nonce]);
    let once: Vec<u8> = scramble.iter().zip(mask).map(|(a, b)| a ^ b).collect();
    equal_in_constant_time(&sha256(&[&once]), digest)
}
