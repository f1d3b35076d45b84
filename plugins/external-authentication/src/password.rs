//! Methods that check a password in clear: the exchange of `mysql_clear_password`, and what a back end has to do.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result, err};
use plugin_api::{AccountSecret, AuthChannel, AuthContext, AuthStep, Authenticator, Exchange};

use crate::complaints::Complaints;

/// The client's method that sends the password as it is.
const CLEAR_PASSWORD: &str = "mysql_clear_password";
/// Longer passwords are refused before a back end sees them.
const PASSWORD_BYTES_MAX: usize = 4096;

/// A log-in to check. Neither text is empty or has control characters.
#[derive(Clone, Copy)]
pub(crate) struct Attempt<'a> {
    /// The user's name.
    pub(crate) user: &'a str,
    /// The text of the AS clause; empty without one.
    pub(crate) account: &'a str,
    /// The password.
    pub(crate) password: &'a str,
}

/// What checks passwords.
pub(crate) trait Backend: Send + Sync + 'static {
    /// Name of the method.
    fn name(&self) -> &'static str;
    /// Whether an AS clause may say this.
    fn is_valid_account(&self, account: &str) -> bool;
    /// Whether the password is right. May wait as long as the method's timeout.
    ///
    /// # Errors
    /// Why nobody knows; without the password.
    fn verify(&self, attempt: Attempt<'_>) -> std::result::Result<bool, String>;
}

/// An authentication method over a back end.
pub(crate) struct PasswordMethod<B>(Arc<Shared<B>>);

struct Shared<B> {
    backend: B,
    complaints: Complaints,
}

impl<B: Backend> PasswordMethod<B> {
    pub(crate) fn new(backend: B) -> PasswordMethod<B> {
        PasswordMethod(Arc::new(Shared { backend, complaints: Complaints::default() }))
    }
}

impl<B: Backend> Shared<B> {
    fn opens(&self, user: &str, account: &[u8], password: &[u8]) -> bool {
        let has_control = |text: &str| text.chars().any(char::is_control);
        let (Ok(account), Ok(password)) = (str::from_utf8(account), str::from_utf8(password))
        else {
            return false;
        };
        let is_odd = user.is_empty() || has_control(user) || has_control(password);
        // Some directories take an empty password for no log-in at all, and accept it.
        if is_odd || password.is_empty() || password.len() > PASSWORD_BYTES_MAX {
            return false;
        }
        let verified = self.backend.verify(Attempt { user, account, password });
        verified.unwrap_or_else(|reason| {
            self.complaints.tell(self.backend.name(), user, &reason);
            false
        })
    }
}

/// Refuses to have a secret sent in the clear.
///
/// # Errors
/// 3159 over TCP without TLS.
pub(crate) fn require_secure(channel: AuthChannel, method: &str) -> Result<()> {
    match channel {
        AuthChannel::Encrypted | AuthChannel::Local => Ok(()),
        AuthChannel::Plain => {
            let text = format!("Authentication by '{method}' needs TLS or the UNIX socket.");
            Err(Error::new(ErrorCode::SECURE_TRANSPORT_REQUIRED, text))
        }
    }
}

impl<B: Backend> Authenticator for PasswordMethod<B> {
    fn name(&self) -> &'static str {
        self.0.backend.name()
    }

    fn client_plugin(&self) -> &'static str {
        CLEAR_PASSWORD
    }

    fn start(&self, ctx: AuthContext, secret: AccountSecret) -> Result<Box<dyn Exchange>> {
        require_secure(ctx.channel, self.name())?;
        let account = secret.authentication_string;
        Ok(Box::new(Running { shared: self.0.clone(), user: ctx.user, account }))
    }

    fn hash_password(&self, _password: &[u8]) -> Result<Vec<u8>> {
        Err(err!(SET_PASSWORD_AUTH_PLUGIN))
    }

    fn is_valid_stored(&self, stored: &[u8]) -> bool {
        str::from_utf8(stored).is_ok_and(|account| self.0.backend.is_valid_account(account))
    }

    fn is_password(&self, _stored: &[u8], _password: &[u8]) -> bool {
        false
    }

    fn verifies(&self, ctx: &AuthContext, secret: &AccountSecret, password: &[u8]) -> Result<bool> {
        Ok(self.0.opens(&ctx.user, &secret.authentication_string, password))
    }

    fn is_decided_by_secret(&self) -> bool {
        false
    }
}

struct Running<B> {
    shared: Arc<Shared<B>>,
    user: String,
    account: Vec<u8>,
}

impl<B: Backend> Exchange for Running<B> {
    fn next(&mut self, packet: &[u8]) -> Result<AuthStep> {
        let password = packet.strip_suffix(&[0]).unwrap_or(packet);
        let is_open = self.shared.opens(&self.user, &self.account, password);
        Ok(if is_open { AuthStep::Accept } else { AuthStep::Refuse })
    }
}
