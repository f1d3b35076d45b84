//! One request with its redirects, on the thread that may wait for it.

use std::sync::Arc;
use std::time::Duration;

use ureq::Agent;
use ureq::http::header::{CONTENT_TYPE, LOCATION};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Method, Request as HttpRequest, StatusCode};
use ureq::tls::{RootCerts, TlsConfig, TlsProvider};
use ureq::unversioned::resolver::Resolver;
use ureq::unversioned::transport::DefaultConnector;

use crate::allow::AllowList;
use crate::failure::Failure;
use crate::resolver::CheckedResolver;
use crate::url::Url;

/// What a request may take.
#[derive(Clone, Debug)]
pub(crate) struct Limits {
    pub(crate) allowed: Arc<AllowList>,
    pub(crate) timeout: Duration,
    pub(crate) bytes_max: u64,
    pub(crate) redirects_max: u64,
}

/// A request that a function makes.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
}

/// The answer, of any status.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// Headers that belong to the connection and not to the caller.
const OWN_HEADERS: &[&str] = &[
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "accept-encoding",
];

/// A header of a request.
///
/// # Errors
/// It is none, or one that only the connection sets.
pub(crate) fn header(name: &str, value: &str) -> Result<(HeaderName, HeaderValue), Failure> {
    let invalid = |_| Failure::new(format!("'{name}' is no header, or has an invalid value"));
    let key = HeaderName::from_bytes(name.as_bytes()).map_err(|_| invalid(()))?;
    if OWN_HEADERS.contains(&key.as_str()) || key.as_str().starts_with("proxy-") {
        return Err(Failure::new(format!("the header '{name}' cannot be set")));
    }
    Ok((key, HeaderValue::from_str(value).map_err(|_| invalid(()))?))
}

/// Makes requests within the limits; `resolver` looks up hosts, of which the limits allow some.
pub(crate) fn agent(limits: &Limits, resolver: Arc<dyn Resolver>) -> Agent {
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let tls = TlsConfig::builder()
        .provider(TlsProvider::Rustls)
        .root_certs(RootCerts::WebPki)
        .unversioned_rustls_crypto_provider(provider)
        .build();
    let config = Agent::config_builder()
        .tls_config(tls)
        // The proxy of the server's environment would connect where it likes.
        .proxy(None)
        .max_redirects(0)
        .http_status_as_error(false)
        .max_idle_connections(0)
        .user_agent("Squall")
        .accept_encoding("identity")
        .timeout_global(Some(limits.timeout))
        .build();
    let resolver = CheckedResolver { allowed: limits.allowed.clone(), inner: resolver };
    Agent::with_parts(config, DefaultConnector::default(), resolver)
}

/// Makes a request and follows its redirects. All together take no longer than the limit.
///
/// # Errors
/// Refused, failed, too slow, too large, too many redirects.
pub(crate) fn perform(
    agent: &Agent,
    limits: &Limits,
    mut request: Request,
) -> Result<Answer, Failure> {
    let begun = sys::clock::monotonic();
    let mut redirects = 0;
    loop {
        let spent = sys::clock::monotonic().saturating_sub(begun);
        let left = limits.timeout.saturating_sub(spent).max(Duration::from_millis(1));
        let mut answer = send(agent, &request, left)?;
        let location = answer.headers().get(LOCATION).filter(|_| is_redirect(answer.status()));
        let Some(location) = location else {
            let body = answer.body_mut().with_config().limit(limits.bytes_max).read_to_vec()?;
            let (parts, _) = answer.into_parts();
            return Ok(Answer { status: parts.status, headers: parts.headers, body });
        };
        if redirects == limits.redirects_max {
            return Err(Failure::new(format!("more than {redirects} redirects")));
        }
        redirects += 1;
        let location = location.to_str();
        let location = location.map_err(|_| Failure::new("a redirect to an invalid URL"))?;
        let next = request.url.redirected(location)?;
        if !next.has_origin_of(&request.url) {
            // They were meant for the other host.
            request.headers.retain_only(&[CONTENT_TYPE]);
        }
        if changes_to_get(answer.status(), &request.method) {
            request.method = Method::GET;
            request.body = None;
            request.headers.remove(CONTENT_TYPE);
        }
        request.url = next;
    }
}

fn send(
    agent: &Agent,
    request: &Request,
    timeout: Duration,
) -> Result<ureq::http::Response<ureq::Body>, Failure> {
    let mut builder =
        HttpRequest::builder().method(request.method.clone()).uri(request.url.uri.clone());
    if let Some(headers) = builder.headers_mut() {
        headers.clone_from(&request.headers);
    }
    let invalid = |error: ureq::http::Error| Failure::new(error.to_string());
    let answer = match &request.body {
        Some(body) => {
            let built = builder.body(&**body).map_err(invalid)?;
            let built = agent.configure_request(built).timeout_global(Some(timeout)).build();
            agent.run(built)
        }
        None => {
            let built = builder.body(()).map_err(invalid)?;
            let built = agent.configure_request(built).timeout_global(Some(timeout)).build();
            agent.run(built)
        }
    };
    Ok(answer?)
}

fn is_redirect(status: StatusCode) -> bool {
    matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308)
}

/// Whether the redirected request is a GET, as browsers and RFC 9110 have it.
fn changes_to_get(status: StatusCode, method: &Method) -> bool {
    match status.as_u16() {
        303 => true,
        301 | 302 => *method == Method::POST,
        _ => false,
    }
}

trait RetainOnly {
    fn retain_only(&mut self, kept: &[HeaderName]);
}

impl RetainOnly for HeaderMap {
    fn retain_only(&mut self, kept: &[HeaderName]) {
        let values = kept.iter().filter_map(|name| Some((name.clone(), self.get(name)?.clone())));
        let values: Vec<_> = values.collect();
        self.clear();
        self.extend(values.into_iter().map(|(name, value)| (Some(name), value)));
    }
}
