//! `auth_http`: an HTTP server says whether a name and a password are right, by its answer to a GET with Basic authentication.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::digest::{SHA256, digest};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, as_text, uint};
use plugin_api::{GlobalValue, Plugin, PluginInfo, Registrar};
use sys::sync::Mutex;
use types::Value;

use crate::outbound::{Reach, check_url, get};
use crate::password::{Attempt, Backend, PasswordMethod};

/// Log-ins that `auth_http_cache_seconds` keeps.
const CACHED_MAX: usize = 1024;
/// The body says nothing; a server that sends more is cut off.
const BODY_BYTES_MAX: u64 = 64 << 10;

static URL: Definition = Definition::global(
    "auth_http_url",
    Kind::Text,
    "",
    "URL that answers 2xx to the right name and password and 401 or 403 to others; https, or http to this machine; empty: nobody",
);
static TIMEOUT: Definition = Definition::global(
    "auth_http_timeout",
    uint(1, 60),
    "5",
    "Seconds that a request of auth_http may take",
);
static CA: Definition = Definition::global(
    "auth_http_ca",
    Kind::Text,
    "",
    "Path of a PEM file with the authorities that auth_http trusts; empty: those of the system",
);
static CACHE_SECONDS: Definition = Definition::global(
    "auth_http_cache_seconds",
    uint(0, 3600),
    "0",
    "Seconds for which auth_http accepts a password again without asking; 0: it always asks",
);

/// The plugin.
#[derive(Debug)]
pub(crate) struct AuthHttp;

impl Plugin for AuthHttp {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("auth_http", "Authenticates users by Basic authentication at a URL.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let server = HttpServer::default();
        registrar.checked_variable(&URL, &server.url, check);
        registrar.variable(&TIMEOUT, &server.timeout);
        registrar.variable(&CA, &server.ca_file);
        registrar.variable(&CACHE_SECONDS, &server.cache_seconds);
        registrar.authenticator(Arc::new(PasswordMethod::new(server)));
    }
}

/// # Errors
/// 1231.
fn check(value: &Value) -> Result<()> {
    let url = as_text(value);
    if url.is_empty() {
        return Ok(());
    }
    check_url(&url).map_err(|reason| {
        Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, format!("auth_http_url: {reason}"))
    })
}

#[derive(Default)]
struct HttpServer {
    url: GlobalValue,
    timeout: GlobalValue,
    ca_file: GlobalValue,
    cache_seconds: GlobalValue,
    cached: Mutex<Cached>,
}

/// Right passwords, as hashes, with the time until which they count.
#[derive(Default)]
struct Cached {
    salt: Option<[u8; 32]>,
    until: HashMap<[u8; 32], Duration>,
}

impl Cached {
    fn key(&mut self, url: &str, credentials: &str) -> Option<[u8; 32]> {
        let mut salt = self.salt.unwrap_or_default();
        if self.salt.is_none() {
            sys::entropy::fill(&mut salt).ok()?;
            self.salt = Some(salt);
        }
        let parts = [&salt[..], url.as_bytes(), &[0], credentials.as_bytes()];
        digest(&SHA256, &parts.concat()).as_ref().try_into().ok()
    }

    fn keep(&mut self, key: [u8; 32], until: Duration, now: Duration) {
        if self.until.len() >= CACHED_MAX {
            self.until.retain(|_, until| *until > now);
        }
        if self.until.len() < CACHED_MAX {
            self.until.insert(key, until);
        }
    }
}

impl HttpServer {
    fn ask(&self, url: &str, credentials: &str) -> std::result::Result<bool, String> {
        let reach = Reach {
            timeout: Duration::from_secs(self.timeout.number().max(1)),
            ca_file: self.ca_file.text(),
        };
        let (status, _) = get(url, Some(&format!("Basic {credentials}")), &reach, BODY_BYTES_MAX)?;
        match status.as_u16() {
            200..=299 => Ok(true),
            401 | 403 => Ok(false),
            status => Err(format!("'{url}' answered with status {status}")),
        }
    }
}

impl Backend for HttpServer {
    fn name(&self) -> &'static str {
        "auth_http"
    }

    /// A URL for each account would let those who create users send requests anywhere.
    fn is_valid_account(&self, account: &str) -> bool {
        account.is_empty()
    }

    fn verify(&self, attempt: Attempt<'_>) -> std::result::Result<bool, String> {
        let url = self.url.text();
        if url.is_empty() {
            return Err("auth_http_url is empty".into());
        }
        if attempt.user.contains(':') {
            return Ok(false);
        }
        let credentials = STANDARD.encode(format!("{}:{}", attempt.user, attempt.password));
        let lifetime = Duration::from_secs(self.cache_seconds.number());
        if lifetime.is_zero() {
            return self.ask(&url, &credentials);
        }
        let now = sys::clock::monotonic();
        let key = self.cached.lock().key(&url, &credentials);
        let key = key.ok_or("the system gives no random bytes")?;
        if self.cached.lock().until.get(&key).is_some_and(|until| *until > now) {
            return Ok(true);
        }
        let is_right = self.ask(&url, &credentials)?;
        if is_right {
            self.cached.lock().keep(key, now + lifetime, now);
        }
        Ok(is_right)
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
