//! `auth_ldap`: a simple bind at an LDAP directory, over TLS; optionally the user must be found in a group.

use std::sync::Arc;
use std::time::Duration;

use errors::{Error, ErrorCode, Result};
use ldap3::{LdapConnAsync, LdapConnSettings, Scope, dn_escape, ldap_escape};
use plugin_api::variable::{Definition, Kind, as_text, uint};
use plugin_api::{GlobalValue, Plugin, PluginInfo, Registrar};
use rustls::{ClientConfig, RootCertStore};
use types::Value;
use ureq::http::Uri;

use crate::outbound::{is_loopback, roots};
use crate::password::{Attempt, Backend, PasswordMethod};

/// LDAP's result code for a wrong password.
const INVALID_CREDENTIALS: u32 = 49;

static URI: Definition = Definition::global(
    "auth_ldap_uri",
    Kind::Text,
    "",
    "ldaps://host[:port], or ldap://host[:port] with StartTLS; empty: nobody",
);
static STARTTLS: Definition = Definition::global(
    "auth_ldap_starttls",
    Kind::Bool,
    "ON",
    "Whether ldap:// turns TLS on before it sends a password; OFF only for a server on this machine",
);
static DN_TEMPLATE: Definition = Definition::global(
    "auth_ldap_dn_template",
    Kind::Text,
    "",
    "Name in the directory of accounts without an AS clause, like uid={user},ou=people,dc=example,dc=org",
);
static GROUP_BASE: Definition = Definition::global(
    "auth_ldap_group_base",
    Kind::Text,
    "",
    "Where in the directory auth_ldap_group_filter is searched",
);
static GROUP_FILTER: Definition = Definition::global(
    "auth_ldap_group_filter",
    Kind::Text,
    "",
    "A filter with {dn} or {user} that must find an entry, like (&(cn=squall)(member={dn})); empty: no group is asked for",
);
static CA: Definition = Definition::global(
    "auth_ldap_ca",
    Kind::Text,
    "",
    "Path of a PEM file with the authorities that auth_ldap trusts; empty: those of the system",
);
static TIMEOUT: Definition = Definition::global(
    "auth_ldap_timeout",
    uint(1, 60),
    "5",
    "Seconds that a check in the directory may take",
);

/// The plugin.
#[derive(Debug)]
pub(crate) struct AuthLdap;

impl Plugin for AuthLdap {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("auth_ldap", "Authenticates users by a bind at an LDAP directory.")
            .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let directory = Directory::default();
        registrar.checked_variable(&URI, &directory.uri, check_uri);
        registrar.variable(&STARTTLS, &directory.starttls);
        registrar.variable(&DN_TEMPLATE, &directory.dn_template);
        registrar.variable(&GROUP_BASE, &directory.group_base);
        registrar.variable(&GROUP_FILTER, &directory.group_filter);
        registrar.variable(&CA, &directory.ca_file);
        registrar.variable(&TIMEOUT, &directory.timeout);
        registrar.authenticator(Arc::new(PasswordMethod::new(directory)));
    }
}

/// # Errors
/// 1231.
fn check_uri(value: &Value) -> Result<()> {
    let uri = as_text(value);
    match uri.is_empty() || host_of(&uri).is_some() {
        true => Ok(()),
        false => {
            let text = "auth_ldap_uri: neither ldaps://host[:port] nor ldap://host[:port]";
            Err(Error::new(ErrorCode::WRONG_VALUE_FOR_VAR, text))
        }
    }
}

/// Whether the scheme is `ldaps`, and the host.
fn host_of(uri: &str) -> Option<(bool, String)> {
    let parsed: Uri = uri.parse().ok()?;
    let is_tls = match parsed.scheme_str()? {
        "ldaps" => true,
        "ldap" => false,
        _ => return None,
    };
    let authority = parsed.authority()?;
    (!authority.as_str().contains('@')).then(|| (is_tls, authority.host().to_owned()))
}

#[derive(Default)]
struct Directory {
    uri: GlobalValue,
    starttls: GlobalValue,
    dn_template: GlobalValue,
    group_base: GlobalValue,
    group_filter: GlobalValue,
    ca_file: GlobalValue,
    timeout: GlobalValue,
}

/// A bind, and the group that the user must be in: base and filter.
struct Question {
    uri: String,
    settings: LdapConnSettings,
    dn: String,
    password: String,
    group: Option<(String, String)>,
}

impl Directory {
    fn settings(&self, uri: &str) -> std::result::Result<LdapConnSettings, String> {
        let (is_tls, host) = host_of(uri).ok_or("auth_ldap_uri is no URI of a directory")?;
        let settings = LdapConnSettings::new();
        if !is_tls && !self.starttls.is_on() {
            return match is_loopback(&host) {
                true => Ok(settings),
                false => Err("without TLS a password is sent to this machine only".into()),
            };
        }
        let mut trusted = RootCertStore::empty();
        trusted.add_parsable_certificates(roots(&self.ca_file.text())?);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(trusted)
            .with_no_client_auth();
        Ok(settings.set_config(Arc::new(config)).set_starttls(!is_tls))
    }

    fn question(&self, attempt: Attempt<'_>) -> std::result::Result<Question, String> {
        let uri = self.uri.text();
        if uri.is_empty() {
            return Err("auth_ldap_uri is empty".into());
        }
        let template = match attempt.account {
            "" => self.dn_template.text(),
            account => account.to_owned(),
        };
        if template.is_empty() {
            return Err("neither an AS clause nor auth_ldap_dn_template names the entry".into());
        }
        let dn = template.replace("{user}", &dn_escape(attempt.user));
        let filter = self.group_filter.text();
        let group = (!filter.is_empty()).then(|| {
            // In one pass: a name that reads like a placeholder stays a name.
            let mut filled = String::new();
            let mut rest = filter.as_str();
            while let Some(at) = rest.find('{') {
                filled.push_str(&rest[..at]);
                rest = &rest[at..];
                let (value, length) = if rest.starts_with("{dn}") {
                    (ldap_escape(dn.as_str()), 4)
                } else if rest.starts_with("{user}") {
                    (ldap_escape(attempt.user), 6)
                } else {
                    ("{".into(), 1)
                };
                filled.push_str(&value);
                rest = &rest[length..];
            }
            filled.push_str(rest);
            (self.group_base.text(), filled)
        });
        let settings = self.settings(&uri)?;
        Ok(Question { uri, settings, dn, password: attempt.password.to_owned(), group })
    }
}

/// # Errors
/// The directory cannot be reached, or answers with anything but yes and a wrong password.
async fn ask(question: Question) -> std::result::Result<bool, String> {
    let Question { uri, settings, dn, password, group } = question;
    let told = |error: ldap3::LdapError| format!("'{uri}': {error}");
    let (connection, mut ldap) =
        LdapConnAsync::with_settings(settings, &uri).await.map_err(told)?;
    let driving = tokio::spawn(connection.drive());
    let bound = ldap.simple_bind(&dn, &password).await.map_err(told)?;
    let is_right = match bound.rc {
        0 => true,
        INVALID_CREDENTIALS => false,
        code => return Err(format!("'{uri}' answered the bind with result {code}")),
    };
    let is_member = match group {
        Some((base, filter)) if is_right => {
            let found = ldap.search(&base, Scope::Subtree, &filter, vec!["1.1"]).await;
            let found = found.and_then(ldap3::SearchResult::success);
            !found.map_err(told)?.0.is_empty()
        }
        Some(_) | None => true,
    };
    // The answer is known; a connection that does not end well is none of the user's business.
    let _ = ldap.unbind().await;
    driving.abort();
    Ok(is_right && is_member)
}

impl Backend for Directory {
    fn name(&self) -> &'static str {
        "auth_ldap"
    }

    /// The entry's name, in which `{user}` stands for the user's name.
    fn is_valid_account(&self, account: &str) -> bool {
        account.contains('=') && !account.chars().any(char::is_control)
    }

    fn verify(&self, attempt: Attempt<'_>) -> std::result::Result<bool, String> {
        let question = self.question(attempt)?;
        let seconds = self.timeout.number().max(1);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| error.to_string())?;
        let answer = runtime.block_on(async {
            tokio::time::timeout(Duration::from_secs(seconds), ask(question)).await
        });
        // A look-up of the host that hangs is not waited for.
        runtime.shutdown_background();
        answer.unwrap_or_else(|_| Err(format!("the directory did not answer within {seconds} s")))
    }
}

#[cfg(test)]
#[path = "ldap_tests.rs"]
mod tests;
