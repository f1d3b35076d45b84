//! The slot for authentication methods.

use errors::Result;

/// How the bytes of an exchange travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthChannel {
    /// TCP in the clear: no secret may be sent as it is.
    Plain,
    /// TLS.
    Encrypted,
    /// A UNIX socket.
    Local,
}

/// The facts that an exchange may read.
#[derive(Clone, Debug)]
pub struct AuthContext {
    /// User name as the client gave it.
    pub user: String,
    /// The 20-byte nonce that the greeting carried (without its NUL).
    pub nonce: [u8; 20],
    /// The channel.
    pub channel: AuthChannel,
    /// User id of the peer process, UNIX sockets only.
    pub peer_uid: Option<u32>,
    /// Name of the peer's OS user, UNIX sockets only.
    pub peer_user: Option<String>,
}

/// The secret that the account stores for its method (`mysql.user.authentication_string`).
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct AccountSecret {
    /// As stored; empty for "no password".
    pub authentication_string: Vec<u8>,
    /// A second password that opens it too, as stored; empty for none.
    pub second: Vec<u8>,
}

/// The next step of an exchange.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthStep {
    /// Send this to the client (AuthMoreData) and give its answer to `next`.
    Send(Vec<u8>),
    /// Send this, then treat the exchange as accepted.
    SendAndAccept(Vec<u8>),
    /// Read another packet.
    Read,
    /// Accepted.
    Accept,
    /// Refused: error 1045.
    Refuse,
}

/// One running exchange.
pub trait Exchange: Send {
    /// Takes the client's next packet.
    ///
    /// # Errors
    /// The peer broke the method's protocol, or the method itself failed.
    fn next(&mut self, packet: &[u8]) -> Result<AuthStep>;
}

/// An authentication method.
pub trait Authenticator: Send + Sync {
    /// Name on the wire and in `IDENTIFIED WITH`.
    fn name(&self) -> &'static str;
    /// Client-side method on the wire, when it differs (auth_socket asks for none).
    fn client_plugin(&self) -> &'static str {
        self.name()
    }
    /// Begins an exchange.
    ///
    /// # Errors
    /// The method cannot work on this channel.
    fn start(&self, ctx: AuthContext, secret: AccountSecret) -> Result<Box<dyn Exchange>>;
    /// Turns a password into the secret to store (`IDENTIFIED BY`).
    ///
    /// # Errors
    /// The method stores no passwords.
    fn hash_password(&self, password: &[u8]) -> Result<Vec<u8>>;
    /// Whether `stored` can be this method's string (`IDENTIFIED WITH x AS '...'`; 1827 otherwise).
    fn is_valid_stored(&self, stored: &[u8]) -> bool;
    /// Whether `stored` was made of `password`.
    fn is_password(&self, stored: &[u8], password: &[u8]) -> bool;
    /// Whether a password that a protocol took in clear (HTTP Basic) opens the account, by its first or its second secret. May wait.
    ///
    /// # Errors
    /// The method itself failed.
    fn verifies(
        &self,
        _ctx: &AuthContext,
        secret: &AccountSecret,
        password: &[u8],
    ) -> Result<bool> {
        Ok(self.is_password(&secret.authentication_string, password)
            || (!secret.second.is_empty() && self.is_password(&secret.second, password)))
    }
    /// Whether the account's secret alone decides, so that a password that was right stays right until the secret changes.
    fn is_decided_by_secret(&self) -> bool {
        true
    }
    /// The user that a bearer token (HTTP) names, for a method whose passwords are such tokens. Nothing is verified yet.
    fn bearer_user(&self, _token: &str) -> Option<String> {
        None
    }
}

/// A password that an account is to get.
#[derive(Clone, Copy, Debug)]
pub struct NewPassword<'a> {
    /// The password; empty for an account without one.
    pub password: &'a str,
    /// The one that it replaces, if the statement gives it.
    pub current: Option<&'a str>,
    /// The user of the session that sets it.
    pub user: &'a str,
}

/// Refuses weak passwords.
pub trait PasswordCheck: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// Checks a password that a statement gives in clear; generated ones and stored forms are not asked about.
    ///
    /// # Errors
    /// Why it is refused.
    fn check(&self, new: &NewPassword<'_>) -> Result<()>;
}
