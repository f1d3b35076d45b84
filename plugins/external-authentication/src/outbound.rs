//! Requests to servers that the administrator named: the certificates that they are trusted by, and GET over HTTP.

use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use ureq::Agent;
use ureq::http::header::AUTHORIZATION;
use ureq::http::{StatusCode, Uri};
use ureq::tls::{Certificate, RootCerts, TlsConfig, TlsProvider};

/// How to reach a server.
#[derive(Clone, Debug)]
pub(crate) struct Reach {
    /// For everything together.
    pub(crate) timeout: Duration,
    /// A PEM file of authorities; empty for the system's.
    pub(crate) ca_file: String,
}

/// The certificates that servers are trusted by.
///
/// # Errors
/// The file cannot be read or has none; the system has none.
pub(crate) fn roots(ca_file: &str) -> Result<Vec<CertificateDer<'static>>, String> {
    if ca_file.is_empty() {
        let found = rustls_native_certs::load_native_certs();
        return match found.certs.is_empty() {
            true => Err("the system has no certificates of authorities".into()),
            false => Ok(found.certs),
        };
    }
    let text = sys::files::read(Path::new(ca_file));
    let text = text.map_err(|error| format!("'{ca_file}': {error}"))?;
    let parsed: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
    match parsed {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) | Err(_) => Err(format!("'{ca_file}' holds no certificates in PEM")),
    }
}

/// Whether a host of a URL is this machine.
pub(crate) fn is_loopback(host: &str) -> bool {
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost")
        || bare.parse::<IpAddr>().is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Checks a URL that gets secrets: https, or http to this machine, without a name and password in it.
///
/// # Errors
/// What is wrong with it.
pub(crate) fn check_url(url: &str) -> Result<(), String> {
    let parsed: Uri = url.parse().map_err(|_| format!("'{url}' is no URL"))?;
    let (Some(scheme), Some(authority)) = (parsed.scheme_str(), parsed.authority()) else {
        return Err(format!("'{url}' is no URL with scheme and host"));
    };
    if authority.as_str().contains('@') {
        return Err("a URL with a name or password in it".into());
    }
    match scheme {
        "https" => Ok(()),
        "http" if is_loopback(authority.host()) => Ok(()),
        _ => Err(format!("'{url}' is neither https nor a server on this machine")),
    }
}

/// GET with an Authorization header, if one is given. Redirects are not followed.
///
/// # Errors
/// No connection, an untrusted certificate, too slow, a body above `bytes_max`.
pub(crate) fn get(
    url: &str,
    authorization: Option<&str>,
    reach: &Reach,
    bytes_max: u64,
) -> Result<(StatusCode, Vec<u8>), String> {
    let mut tls =
        TlsConfig::builder().provider(TlsProvider::Rustls).unversioned_rustls_crypto_provider(
            Arc::new(rustls::crypto::aws_lc_rs::default_provider()),
        );
    if url.starts_with("https:") {
        let roots = roots(&reach.ca_file)?;
        let roots = roots.iter().map(|root| Certificate::from_der(root).to_owned());
        tls = tls.root_certs(RootCerts::from(roots));
    }
    let config = Agent::config_builder()
        .tls_config(tls.build())
        // The proxy of the server's environment would see the passwords.
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .max_idle_connections(0)
        .user_agent("Squall")
        .timeout_global(Some(reach.timeout))
        .build();
    let mut request = Agent::from(config).get(url);
    if let Some(value) = authorization {
        request = request.header(AUTHORIZATION, value);
    }
    let mut answer = request.call().map_err(|error| format!("'{url}': {error}"))?;
    let body = answer.body_mut().with_config().limit(bytes_max).read_to_vec();
    let body = body.map_err(|error| format!("'{url}': {error}"))?;
    Ok((answer.status(), body))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_go_over_tls_or_stay_on_this_machine() {
        for url in ["https://login.example.com/check", "http://127.0.0.1:81/", "http://[::1]/x"] {
            assert_eq!(check_url(url), Ok(()), "{url}");
        }
        for url in [
            "http://login.example.com/",
            "http://127.0.0.1.example.com/",
            "https://me:pw@example.com/",
            "ftp://localhost/",
            "/check",
        ] {
            assert!(check_url(url).is_err(), "{url}");
        }
    }
}
