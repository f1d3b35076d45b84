//! Log-ins: the account that a client matches, the secret that it must know, and refusals before a session exists.

use std::sync::Arc;

use catalog::{Account, AccountName, Accounts, TlsRequirement};
use errors::{Error, ErrorCode, Result, bail, err};
use plugin_api::{AccountSecret, AuthRequest, Authenticator, ConnectionKind, Registry};

use crate::failed_logins::FailedLogins;
use crate::owner::OwnerOrPassword;
use crate::statement::AccountChange;
use crate::usage::Usages;

/// The method of accounts without an explicit one.
pub const DEFAULT_METHOD: &str = "caching_sha2_password";
/// The method that trusts the operating system's user; only over the UNIX socket.
pub const SOCKET_METHOD: &str = "auth_socket";

/// The server's state about log-ins besides the accounts themselves.
#[derive(Debug)]
pub struct Logins {
    /// Secret that no password matches, for logins of unknown users.
    decoy: Vec<u8>,
    /// Every login over loopback as root succeeds without a password.
    insecure_root: bool,
    /// OS user that is root@localhost through the UNIX socket without a password.
    owner: Option<u32>,
    /// The use of accounts with hourly limits.
    pub usages: Usages,
    /// Failed log-ins of accounts with a limit.
    pub failed: FailedLogins,
}

impl Logins {
    /// State before any log-in. `owner`: the user of the operating system that is root@localhost over the UNIX socket.
    pub fn new(registry: &Registry, insecure_root: RootLogin, owner: Option<u32>) -> Logins {
        Logins {
            decoy: decoy_secret(registry),
            insecure_root: insecure_root == RootLogin::WithoutPassword,
            owner,
            usages: Usages::default(),
            failed: FailedLogins::default(),
        }
    }

    /// The method and the secret that authenticate a client. An unknown user gets a secret that no password matches.
    ///
    /// # Errors
    /// 1524.
    pub fn find(
        &self,
        accounts: &Accounts,
        registry: &Registry,
        request: &AuthRequest,
        kind: &ConnectionKind,
    ) -> Result<(Arc<dyn Authenticator>, AccountSecret)> {
        let method = |name: &str| {
            registry.authenticator(name).cloned().ok_or_else(|| err!(PLUGIN_IS_NOT_LOADED, name))
        };
        if self.is_insecure_root(&request.user, kind) {
            return Ok((method(DEFAULT_METHOD)?, AccountSecret::default()));
        }
        let known = match_account(accounts, &request.user, kind);
        let may_try = |account: &&Arc<Account>| has_required_tls(account, request, kind);
        let Some(account) = known.as_ref().filter(may_try) else {
            let authentication_string = self.decoy.clone();
            let secret = AccountSecret { authentication_string, ..AccountSecret::default() };
            return Ok((method(DEFAULT_METHOD)?, secret));
        };
        let authentication_string = account.authentication_string.clone();
        let mut chosen = method(&account.plugin)?;
        let administrates = *account.name.user == *"root" && *account.name.host == *"localhost";
        if let Some(owner) = self.owner.filter(|_| administrates) {
            chosen = Arc::new(OwnerOrPassword::new(owner, chosen));
        }
        let second = account.second_secret.clone();
        Ok((chosen, AccountSecret { authentication_string, second }))
    }

    /// Counts a refused log-in; returns the error that the client gets instead of 1045.
    pub fn refused(
        &self,
        accounts: &Accounts,
        request: &AuthRequest,
        kind: &ConnectionKind,
        now_micros: i64,
    ) -> Option<Error> {
        let account = match_account(accounts, &request.user, kind)?;
        self.failed.count(&account, &shown_host(kind), now_micros)
    }

    /// The account of a session that is opened.
    ///
    /// # Errors
    /// 1045 when the account was dropped in the meantime, 3118 and 3955 when it is locked.
    pub fn account(
        &self,
        accounts: &Accounts,
        request: &AuthRequest,
        kind: &ConnectionKind,
        now_micros: i64,
    ) -> Result<Arc<Account>> {
        let host = shown_host(kind);
        if self.is_insecure_root(&request.user, kind) {
            let name = AccountName::new("root", "localhost");
            let known = accounts.get(&name).cloned();
            return Ok(known.unwrap_or_else(|| {
                Arc::new(Account { name, ..Account::default() }.with_all_privileges())
            }));
        }
        let account = match_account(accounts, &request.user, kind)
            .ok_or_else(|| err!(ACCESS_DENIED_ERROR, request.user, host, "YES"))?;
        self.failed.pass(&account, &host, now_micros)?;
        if account.locked {
            let code = ErrorCode::ACCOUNT_HAS_BEEN_LOCKED;
            return Err(Error::with(code, &[&account.name.user, &host]));
        }
        Ok(account)
    }

    /// Updates the state after a committed statement about accounts.
    pub fn follow(&self, change: &AccountChange) {
        change.forgotten.iter().for_each(|name| self.failed.forget(name));
        change.renamed.iter().for_each(|(from, to)| self.failed.rename(from, to));
    }

    fn is_insecure_root(&self, user: &str, kind: &ConnectionKind) -> bool {
        let loopback = match kind {
            ConnectionKind::Tcp(address) => address.ip().is_loopback(),
            ConnectionKind::Local => true,
        };
        self.insecure_root && user == "root" && loopback
    }
}

/// How root logs in over loopback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootLogin {
    /// With its password, as all accounts.
    WithPassword,
    /// `--insecure-root`.
    WithoutPassword,
}

/// Whether the client's password could be read on the network.
pub fn is_insecure(request: &AuthRequest, kind: &ConnectionKind) -> bool {
    matches!(kind, ConnectionKind::Tcp(_)) && request.tls.is_none()
}

/// Whether the connection is what the account requires.
fn has_required_tls(account: &Account, request: &AuthRequest, kind: &ConnectionKind) -> bool {
    match &account.tls {
        TlsRequirement::None => true,
        TlsRequirement::Ssl => !is_insecure(request, kind),
        TlsRequirement::X509 => request.certificate.is_some(),
        TlsRequirement::Specified { subject, issuer, cipher } => {
            let certificate = request.certificate.as_ref();
            let is = |wanted: &str, found: Option<&str>| {
                wanted.is_empty() || found.is_some_and(|found| found == wanted)
            };
            !is_insecure(request, kind)
                && is(cipher, request.tls.as_ref().map(|(_, used)| used.as_str()))
                && is(subject, certificate.map(|known| known.subject.as_str()))
                && is(issuer, certificate.map(|known| known.issuer.as_str()))
        }
    }
}

/// The account that a login matches.
fn match_account(accounts: &Accounts, user: &str, kind: &ConnectionKind) -> Option<Arc<Account>> {
    let (hosts, is_local) = hosts_of(kind);
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    // An account for users of the operating system cannot be used over TCP.
    accounts
        .find_login(user, &hosts, |account| is_local || *account.plugin != *SOCKET_METHOD)
        .cloned()
}

/// The account that a login means, as `'user'@'host'`.
pub fn matched_name(
    accounts: &Accounts,
    request: &AuthRequest,
    kind: &ConnectionKind,
) -> Option<String> {
    let account = match_account(accounts, &request.user, kind)?;
    Some(format!("'{}'@'{}'", account.name.user, account.name.host))
}

/// Names and addresses of the peer that account patterns are compared with, and whether it is on this machine by the socket.
pub fn hosts_of(kind: &ConnectionKind) -> (Vec<String>, bool) {
    match kind {
        ConnectionKind::Local => (vec!["localhost".into()], true),
        ConnectionKind::Tcp(address) => {
            let ip = address.ip().to_canonical();
            let mut hosts = vec![ip.to_string()];
            if ip.is_loopback() {
                hosts.push("localhost".into());
            }
            (hosts, false)
        }
    }
}

/// The host that errors name.
fn shown_host(kind: &ConnectionKind) -> String {
    hosts_of(kind).0.into_iter().next_back().unwrap_or_default()
}

/// The stored form of a password; empty for an empty one.
///
/// # Errors
/// 1524; errors of the method.
pub fn hash_password(registry: &Registry, method: &str, password: &str) -> Result<Vec<u8>> {
    let Some(method) = registry.authenticator(method) else {
        bail!(PLUGIN_IS_NOT_LOADED, method);
    };
    if password.is_empty() {
        return Ok(Vec::new());
    }
    method.hash_password(password.as_bytes())
}

/// A stored secret made of random bytes: as slow to check as a real one, and its password is unknown.
fn decoy_secret(registry: &Registry) -> Vec<u8> {
    let mut noise = [0; 16];
    // Without entropy the decoy is a fixed one; that is harmless because no account has it.
    let _ = sys::entropy::fill(&mut noise);
    let hash = |method: &Arc<dyn Authenticator>| method.hash_password(&noise).ok();
    registry.authenticator(DEFAULT_METHOD).and_then(hash).unwrap_or_default()
}
