//! Who calls: passwords against the server's accounts, with failures slowed down.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use errors::{Error, Result, err};
use plugin_api::{AccountSecret, AuthRequest, Authenticator, ConnectionKind, SessionFactory};
use sys::sync::Mutex;

/// Passwords that were verified lately and need no slow hash again.
const VERIFIED_MAX: usize = 1024;
/// Failed log-ins of an address within `FAILURE_WINDOW` before it has to wait.
const FAILURES_MAX: u32 = 20;
/// The same of an account from any address: more, so that a stranger cannot easily keep its owner out.
const ACCOUNT_FAILURES_MAX: u32 = 100;
const FAILURE_WINDOW: Duration = Duration::from_secs(60);
/// Addresses that failures are remembered of.
const ADDRESSES_MAX: usize = 4096;

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

/// What failures are counted for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Origin {
    Address(IpAddr),
    Account(String),
}

impl Origin {
    fn failures_max(&self) -> u32 {
        match self {
            Origin::Address(_) => FAILURES_MAX,
            Origin::Account(_) => ACCOUNT_FAILURES_MAX,
        }
    }

    fn both(caller: &Caller) -> [Origin; 2] {
        [Origin::Address(caller.address.ip()), Origin::Account(caller.user.clone())]
    }
}

/// Checks passwords.
pub struct Accounts {
    sessions: Arc<dyn SessionFactory>,
    /// Random, so that the keys of `verified` say nothing.
    salt: [u8; 32],
    /// Hash of name, address and password to the secret that they matched.
    verified: Mutex<HashMap<[u8; 32], AccountSecret>>,
    failures: Mutex<HashMap<Origin, (Duration, u32)>>,
}

impl Accounts {
    /// No log-in yet.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(sessions: Arc<dyn SessionFactory>) -> std::io::Result<Accounts> {
        let mut salt = [0; 32];
        sys::entropy::fill(&mut salt)?;
        Ok(Accounts { sessions, salt, verified: Mutex::default(), failures: Mutex::default() })
    }

    /// Checks a password in clear. Slow for a password that was not seen lately.
    ///
    /// # Errors
    /// The caller is refused.
    pub fn check(&self, caller: &Caller, password: &str) -> std::result::Result<(), Refusal> {
        if Origin::both(caller).iter().any(|origin| self.fails_often(origin)) {
            return Err(Refusal::TooMany);
        }
        let found = self.find(caller);
        let (method, secret) = found.map_err(Refusal::Denied)?;
        let key = self.key(caller, password);
        if self.verified.lock().get(&key) == Some(&secret) {
            return Ok(());
        }
        if opens(method.as_ref(), &secret, password.as_bytes()) {
            self.remember(key, secret);
            return Ok(());
        }
        Origin::both(caller).into_iter().for_each(|origin| self.count_failure(origin));
        let told = self.sessions.refused(&caller.request(None), &caller.kind());
        Err(Refusal::Denied(told.unwrap_or_else(|| denied(caller, password))))
    }

    /// The secret of the caller's account now.
    ///
    /// # Errors
    /// The account cannot log in.
    pub fn secret(&self, caller: &Caller) -> Result<AccountSecret> {
        Ok(self.find(caller)?.1)
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

    fn fails_often(&self, origin: &Origin) -> bool {
        let now = sys::clock::monotonic();
        let failures = self.failures.lock();
        failures.get(origin).is_some_and(|(since, count)| {
            *count >= origin.failures_max() && now.saturating_sub(*since) < FAILURE_WINDOW
        })
    }

    fn count_failure(&self, origin: Origin) {
        let now = sys::clock::monotonic();
        let mut failures = self.failures.lock();
        if failures.len() >= ADDRESSES_MAX {
            failures.retain(|_, (since, _)| now.saturating_sub(*since) < FAILURE_WINDOW);
        }
        if failures.len() >= ADDRESSES_MAX {
            return;
        }
        let entry = failures.entry(origin).or_insert((now, 0));
        if now.saturating_sub(entry.0) >= FAILURE_WINDOW {
            *entry = (now, 0);
        }
        entry.1 += 1;
    }
}

/// Whether a password opens an account, by its first or its second secret.
fn opens(method: &dyn Authenticator, secret: &AccountSecret, password: &[u8]) -> bool {
    method.is_password(&secret.authentication_string, password)
        || (!secret.second.is_empty() && method.is_password(&secret.second, password))
}

fn denied(caller: &Caller, password: &str) -> Error {
    let ip = caller.address.ip();
    let host =
        if ip.is_loopback() { "localhost".to_owned() } else { ip.to_canonical().to_string() };
    let given = if password.is_empty() { "NO" } else { "YES" };
    err!(ACCESS_DENIED_ERROR, caller.user, host, given)
}
