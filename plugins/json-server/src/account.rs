//! Who calls: passwords against the server's accounts, with failures slowed down.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use aws_lc_rs::digest::{SHA256, digest};
use errors::{Error, Result, err};
use plugin_api::{
    AccountSecret, AuthChannel, AuthContext, AuthRequest, Authenticator, ConnectionKind,
    SessionFactory,
};
use sys::sync::Mutex;

use crate::failures::Failures;

/// Passwords that were verified lately and need no slow hash again.
const VERIFIED_MAX: usize = 1024;
/// A person or program whose password was right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The name that was given.
    pub user: String,
    /// Where from.
    pub address: SocketAddr,
}

impl Caller {
    /// The origin, for the session.
    pub fn kind(&self) -> ConnectionKind {
        ConnectionKind::Tcp(self.address)
    }

    /// The log-in of a session for this caller.
    pub fn request(&self, schema: Option<&str>) -> AuthRequest {
        AuthRequest {
            user: self.user.clone(),
            database: schema.map(str::to_owned),
            collation: types::CollationId::UTF8MB4_0900_AI_CI.0,
            multi_statements: true,
            attributes: vec![("program_name".into(), "json_server".into())],
            ..AuthRequest::default()
        }
    }
}

/// Why a caller is not let in.
#[derive(Debug)]
pub enum Refusal {
    /// Wrong name or password, or an account that cannot log in.
    Denied(Error),
    /// Too many failures from the address.
    TooMany,
}

/// Checks passwords.
pub struct Accounts {
    sessions: Arc<dyn SessionFactory>,
    /// Random, so that the keys of `verified` say nothing.
    salt: [u8; 32],
    /// Hash of name, address and password to the secret that they matched.
    verified: Mutex<HashMap<[u8; 32], AccountSecret>>,
    failures: Failures,
}

impl Accounts {
    /// No log-in yet.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(sessions: Arc<dyn SessionFactory>) -> std::io::Result<Accounts> {
        let mut salt = [0; 32];
        sys::entropy::fill(&mut salt)?;
        Ok(Accounts { sessions, salt, verified: Mutex::default(), failures: Failures::default() })
    }

    /// Checks a password in clear. Slow for a password that was not seen lately.
    ///
    /// # Errors
    /// The caller is refused.
    pub fn check(&self, caller: &Caller, password: &str) -> std::result::Result<(), Refusal> {
        let (ip, user) = (caller.address.ip(), caller.user.as_str());
        let now = sys::clock::monotonic();
        let found = self.find(caller);
        let key = self.key(caller, password);
        // A password that is known needs no guess: the failures of others at its address do not count.
        if let Ok((method, secret)) = &found
            && method.is_decided_by_secret()
            && self.verified.lock().get(&key) == Some(secret)
        {
            return Ok(());
        }
        if self.failures.are_many(ip, user, now) {
            return Err(Refusal::TooMany);
        }
        let (method, secret) = found.map_err(Refusal::Denied)?;
        let verified = method.verifies(&context(caller), &secret, password.as_bytes());
        if verified.map_err(Refusal::Denied)? {
            if method.is_decided_by_secret() {
                self.remember(key, secret);
            }
            return Ok(());
        }
        self.failures.count(ip, user, now);
        let told = self.sessions.refused(&caller.request(None), &caller.kind());
        Err(Refusal::Denied(told.unwrap_or_else(|| denied(caller, password))))
    }

    /// Whether the password was verified lately and is still the account's.
    pub fn is_verified(&self, caller: &Caller, password: &str) -> bool {
        let Ok((method, secret)) = self.find(caller) else { return false };
        method.is_decided_by_secret()
            && self.verified.lock().get(&self.key(caller, password)) == Some(&secret)
    }

    /// The secret of the caller's account now.
    ///
    /// # Errors
    /// The account cannot log in.
    pub fn secret(&self, caller: &Caller) -> Result<AccountSecret> {
        Ok(self.find(caller)?.1)
    }

    /// The user that a bearer token of an authentication method names; the token is his password.
    pub fn bearer_user(&self, token: &str) -> Option<String> {
        self.sessions.bearer_user(token)
    }

    fn find(&self, caller: &Caller) -> Result<(Arc<dyn Authenticator>, AccountSecret)> {
        self.sessions.find_account(&caller.request(None), &caller.kind())
    }

    fn key(&self, caller: &Caller, password: &str) -> [u8; 32] {
        let address = caller.address.ip().to_string();
        let lengths = [caller.user.len(), address.len()].map(usize::to_le_bytes).concat();
        let parts = [
            &self.salt[..],
            &lengths,
            caller.user.as_bytes(),
            address.as_bytes(),
            password.as_bytes(),
        ];
        let mut key = [0; 32];
        key.copy_from_slice(digest(&SHA256, &parts.concat()).as_ref());
        key
    }

    fn remember(&self, key: [u8; 32], secret: AccountSecret) {
        let mut verified = self.verified.lock();
        if verified.len() >= VERIFIED_MAX {
            verified.clear();
        }
        verified.insert(key, secret);
    }
}

/// What a method may know of a caller. The password is here already, so that the channel no longer matters.
fn context(caller: &Caller) -> AuthContext {
    AuthContext {
        user: caller.user.clone(),
        nonce: [0; 20],
        channel: AuthChannel::Plain,
        peer_uid: None,
        peer_user: None,
    }
}

fn denied(caller: &Caller, password: &str) -> Error {
    let ip = caller.address.ip();
    let host =
        if ip.is_loopback() { "localhost".to_owned() } else { ip.to_canonical().to_string() };
    let given = if password.is_empty() { "NO" } else { "YES" };
    err!(ACCESS_DENIED_ERROR, caller.user, host, given)
}
