//! `authentication_openid_connect`: the client proves who its user is by an ID token of an identity provider.
//!
//! The AS clause of an account is `{"identity_provider": "NAME", "user": "SUBJECT"}`. A client that speaks another protocol may give the token
//! as its password.

mod keys;
mod providers;
#[cfg(test)]
mod tests;
mod token;

use std::sync::Arc;
use std::time::Duration;

use errors::{Error, ErrorCode, Result, err};
use plugin_api::variable::{Definition, Kind, as_text, uint};
use plugin_api::{
    AccountSecret, AuthContext, AuthStep, Authenticator, Exchange, GlobalValue, Plugin, PluginInfo,
    Registrar,
};
use types::Value;

use crate::complaints::Complaints;
use crate::outbound::Reach;
use crate::password::require_secure;
use keys::FetchedKeys;
use providers::{Configuration, KeySource};
use token::Identity;

/// Name of the method.
const NAME: &str = "authentication_openid_connect";
/// Name of the client's side.
const CLIENT_NAME: &str = "authentication_openid_connect_client";
/// A longer token is refused.
const TOKEN_BYTES_MAX: usize = 64 << 10;

static CONFIGURATION: Definition = Definition::global(
    "authentication_openid_connect_configuration",
    Kind::Text,
    "",
    "Identity providers and their keys: JSON://{..} or file://path of a JSON file; empty: none",
);
static USER_CLAIM: Definition = Definition::global(
    "authentication_openid_connect_user_claim",
    Kind::Text,
    "preferred_username",
    "Claim of a bearer token (HTTP) that holds the name of the account",
);
static KEYS_SECONDS: Definition = Definition::global(
    "authentication_openid_connect_keys_seconds",
    uint(10, 86_400),
    "3600",
    "Seconds after which the keys of a provider with a jwks_uri are fetched again",
);
static TIMEOUT: Definition = Definition::global(
    "authentication_openid_connect_timeout",
    uint(1, 60),
    "5",
    "Seconds that fetching the keys of a provider may take",
);
static CA: Definition = Definition::global(
    "authentication_openid_connect_ca",
    Kind::Text,
    "",
    "Path of a PEM file with the authorities that the server of a jwks_uri is trusted by; empty: those of the system",
);

/// The plugin.
#[derive(Debug)]
pub(crate) struct OpenIdConnect;

impl Plugin for OpenIdConnect {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(NAME, "Authenticates users by ID tokens of OpenID Connect providers.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let method = Method::default();
        let shared = &method.0;
        registrar.checked_variable(&CONFIGURATION, &shared.configuration.text, check);
        registrar.variable(&USER_CLAIM, &shared.user_claim);
        registrar.variable(&KEYS_SECONDS, &shared.keys_seconds);
        registrar.variable(&TIMEOUT, &shared.timeout);
        registrar.variable(&CA, &shared.ca_file);
        registrar.authenticator(Arc::new(method));
    }
}

/// # Errors
/// 1231 with the reason.
fn check(value: &Value) -> Result<()> {
    providers::parse(&as_text(value)).map(drop).map_err(|reason| {
        let text = format!("authentication_openid_connect_configuration: {reason}");
        Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, text)
    })
}

#[derive(Default)]
struct Shared {
    configuration: Configuration,
    user_claim: GlobalValue,
    keys_seconds: GlobalValue,
    timeout: GlobalValue,
    ca_file: GlobalValue,
    fetched: FetchedKeys,
    complaints: Complaints,
}

#[derive(Default)]
struct Method(Arc<Shared>);

impl Shared {
    /// # Errors
    /// Why the token does not prove the identity; nothing of the token.
    fn verify(&self, account: &[u8], token: &str) -> std::result::Result<(), String> {
        let identity = Identity::parse(account).ok_or("the account names no identity")?;
        let providers = self.configuration.providers()?;
        let provider = providers.get(&identity.provider);
        let provider =
            provider.ok_or_else(|| format!("no identity provider '{}'", identity.provider))?;
        match &provider.keys {
            KeySource::Fixed(keys) => token::verify(provider, keys, &identity, token),
            KeySource::Url(url) => {
                let lifetime = Duration::from_secs(self.keys_seconds.number().max(1));
                let reach = Reach {
                    timeout: Duration::from_secs(self.timeout.number().max(1)),
                    ca_file: self.ca_file.text(),
                };
                let keys =
                    self.fetched.keys(url, token::key_id(token).as_deref(), lifetime, &reach)?;
                token::verify(provider, &keys, &identity, token)
            }
        }
    }

    fn opens(&self, user: &str, account: &[u8], token: &[u8]) -> bool {
        let token = str::from_utf8(token).map(str::trim).unwrap_or_default();
        if token.is_empty() || token.len() > TOKEN_BYTES_MAX {
            return false;
        }
        match self.verify(account, token) {
            Ok(()) => true,
            Err(reason) => {
                self.complaints.tell(NAME, user, &reason);
                false
            }
        }
    }
}

impl Authenticator for Method {
    fn name(&self) -> &'static str {
        NAME
    }

    fn client_plugin(&self) -> &'static str {
        CLIENT_NAME
    }

    fn start(&self, ctx: AuthContext, secret: AccountSecret) -> Result<Box<dyn Exchange>> {
        require_secure(ctx.channel, NAME)?;
        let account = secret.authentication_string;
        Ok(Box::new(Running { shared: self.0.clone(), user: ctx.user, account }))
    }

    /// `BY` has the same text as `AS`: nothing of it is secret.
    fn hash_password(&self, text: &[u8]) -> Result<Vec<u8>> {
        match self.is_valid_stored(text) {
            true => Ok(text.to_vec()),
            false => Err(err!(PASSWORD_FORMAT)),
        }
    }

    fn is_valid_stored(&self, stored: &[u8]) -> bool {
        Identity::parse(stored).is_some()
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

    fn bearer_user(&self, token: &str) -> Option<String> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        token::claim(token, &self.0.user_claim.text())
    }
}

struct Running {
    shared: Arc<Shared>,
    user: String,
    account: Vec<u8>,
}

impl Exchange for Running {
    fn next(&mut self, packet: &[u8]) -> Result<AuthStep> {
        let token = client_token(packet).unwrap_or_default();
        let is_open = self.shared.opens(&self.user, &self.account, token);
        Ok(if is_open { AuthStep::Accept } else { AuthStep::Refuse })
    }
}

/// The token in the client's packet: a byte of capabilities, then the token after its length.
fn client_token(packet: &[u8]) -> Option<&[u8]> {
    let (first, rest) = packet.get(1..)?.split_first()?;
    let (length, rest) = match first {
        0..=250 => (usize::from(*first), rest),
        252 => (usize::from(u16::from_le_bytes(rest.get(..2)?.try_into().ok()?)), rest.get(2..)?),
        253 => {
            let bytes = [*rest.first()?, *rest.get(1)?, *rest.get(2)?, 0];
            (u32::from_le_bytes(bytes) as usize, rest.get(3..)?)
        }
        251 | 254 | 255 => return None,
    };
    (rest.len() == length).then_some(rest)
}
