//! A request to Vault and its answer.

use std::path::Path;
use std::sync::Arc;

use plugin_api::Secret;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::http::{Method, Request, StatusCode};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};
use ureq::{Agent, SendBody};

use crate::options::VaultOptions;

/// No answer of use is longer: a list of thousands of names.
const ANSWER_BYTES_MAX: u64 = 1 << 20;
/// No token is longer.
const TOKEN_BYTES_MAX: u64 = 16 << 10;

/// What Vault said.
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    /// May hold a key.
    pub(crate) body: Secret,
}

/// Sends a request. `body`: JSON, which may hold a key.
///
/// # Errors
/// The token or the certificates cannot be read; no connection, an untrusted certificate, no answer in time. In words without secrets.
pub(crate) fn send(
    options: &VaultOptions,
    method: Method,
    path: &str,
    body: Option<&Secret>,
) -> Result<Answer, String> {
    let token = token(&options.token_file)?;
    let url = format!("{}{path}", options.server_url);
    let mut request = Request::builder().method(method).uri(&url);
    // What the library shows of requests leaves out this header's value only when it is marked.
    let mut value = ureq::http::HeaderValue::from_bytes(token.bytes())
        .map_err(|_| "the token has characters that none has".to_owned())?;
    value.set_sensitive(true);
    request = request.header("x-vault-token", value).header("x-vault-request", "true");
    if let Some(body) = body {
        request = request
            .header("content-type", "application/json")
            .header("content-length", body.bytes().len());
    }
    let body = match body {
        Some(body) => SendBody::from_owned_reader(std::io::Cursor::new(body.bytes().to_vec())),
        None => SendBody::none(),
    };
    let request = request.body(body).map_err(|error| error.to_string())?;
    let agent = agent(options)?;
    let failed = |error: ureq::Error| match error {
        ureq::Error::Timeout(_) => {
            format!("no answer within keyring_hashicorp_timeout ({} s)", options.timeout.as_secs())
        }
        error => error.to_string(),
    };
    let mut answer = agent.run(request).map_err(failed)?;
    let body = answer.body_mut().with_config().limit(ANSWER_BYTES_MAX).read_to_vec();
    Ok(Answer { status: answer.status(), body: Secret::new(body.map_err(failed)?) })
}

/// The token, read anew each time: it may have been renewed.
fn token(path: &Path) -> Result<Secret, String> {
    let text = sys::private_file::read(path, TOKEN_BYTES_MAX);
    let (_, text) = text.map_err(|error| format!("token file {}: {error}", path.display()))?;
    let text = Secret::new(text.into_bytes());
    let token = text.bytes().trim_ascii();
    match token.is_empty() {
        true => Err(format!("token file {}: it is empty", path.display())),
        false => Ok(Secret::new(token.to_vec())),
    }
}

/// One for each request: certificates are read anew, and no connection stays open between rotations that are months apart.
fn agent(options: &VaultOptions) -> Result<Agent, String> {
    let mut tls =
        TlsConfig::builder().provider(TlsProvider::Rustls).unversioned_rustls_crypto_provider(
            Arc::new(rustls::crypto::aws_lc_rs::default_provider()),
        );
    if options.server_url.starts_with("https:") {
        let roots = roots(options.ca_file.as_deref())?;
        let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned());
        tls = tls.root_certs(RootCerts::from(roots));
    }
    let config = Agent::config_builder()
        .tls_config(tls.build())
        // The proxy of the server's environment would see the token.
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .max_idle_connections(0)
        .user_agent("Squall")
        .timeout_global(Some(options.timeout))
        .build();
    Ok(Agent::from(config))
}

/// The authorities that a certificate is trusted by.
fn roots(ca_file: Option<&Path>) -> Result<Vec<CertificateDer<'static>>, String> {
    let Some(path) = ca_file else {
        let found = rustls_native_certs::load_native_certs().certs;
        return match found.is_empty() {
            true => Err("the system has no certificates of authorities".into()),
            false => Ok(found),
        };
    };
    let shown = path.display();
    let text = sys::files::read(path).map_err(|error| format!("{shown}: {error}"))?;
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match parsed {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) | Err(_) => Err(format!("{shown} holds no certificates in PEM")),
    }
}
