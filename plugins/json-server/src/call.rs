//! One request with its caller.

use std::net::SocketAddr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::{HeaderMap, Method, StatusCode, header};
use serde_json::Value as Json;

use crate::account::{Caller, Refusal};
use crate::gateway::Gateway;
use crate::outlet::{Starter, Waiting};
use crate::reply::Reply;

/// The name of the console's cookie.
pub const COOKIE: &str = "squall_session";

/// A request as it came.
pub struct Incoming {
    /// Method.
    pub method: Method,
    /// Path, percent-encoded.
    pub path: String,
    /// The part after the question mark, decoded.
    pub query: Vec<(String, String)>,
    /// Headers.
    pub headers: HeaderMap,
    /// Body.
    pub body: Vec<u8>,
    /// The peer.
    pub address: SocketAddr,
    /// Begins an answer that goes out in pieces.
    pub starter: Starter,
    /// What runs for the client that waits.
    pub waiting: Waiting,
}

/// A request whose caller is known.
pub struct Call<'a> {
    /// The way to the server.
    pub gateway: &'a Gateway,
    /// The request.
    pub request: &'a Incoming,
    /// Who calls.
    pub caller: Caller,
}

impl Incoming {
    /// A parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a header that is text.
    pub fn header(&self, name: header::HeaderName) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    /// The body as JSON.
    ///
    /// # Errors
    /// Status 400.
    pub fn json(&self) -> Result<Json, Reply> {
        serde_json::from_slice(&self.body).map_err(|error| {
            Reply::failure(StatusCode::BAD_REQUEST, &format!("the body is not JSON: {error}"))
        })
    }

    /// The token in the cookie.
    pub fn cookie(&self) -> Option<&str> {
        let cookies = self.headers.get_all(header::COOKIE).iter();
        let texts = cookies.filter_map(|value| value.to_str().ok());
        let mut pairs = texts.flat_map(|text| text.split(';'));
        pairs.find_map(|pair| pair.trim().strip_prefix(COOKIE)?.strip_prefix('='))
    }

    /// The token of a log-in, in the header or in the cookie.
    pub fn token(&self) -> Option<&str> {
        self.bearer().or_else(|| self.cookie())
    }

    fn bearer(&self) -> Option<&str> {
        self.header(header::AUTHORIZATION)?.strip_prefix("Bearer ")
    }

    /// Name and password of Basic authentication.
    fn basic(&self) -> Option<(String, String)> {
        let encoded = self.header(header::AUTHORIZATION)?.strip_prefix("Basic ")?;
        let text = String::from_utf8(STANDARD.decode(encoded.trim()).ok()?).ok()?;
        let (user, password) = text.split_once(':')?;
        Some((user.to_owned(), password.to_owned()))
    }
}

impl<'a> Call<'a> {
    /// Finds out who calls when that takes no slow hash, and the header `Authorization` says it; `None` otherwise.
    pub fn identify_at_hand(gateway: &'a Gateway, request: &'a Incoming) -> Option<Call<'a>> {
        let address = request.address;
        if let Some((user, password)) = request.basic() {
            let caller = Caller { user, address };
            let is_known = gateway.accounts.is_verified(&caller, &password);
            return is_known.then_some(Call { gateway, request, caller });
        }
        request.headers.get(header::AUTHORIZATION)?;
        Call::identify_by_token(gateway, request)?.ok()
    }

    /// Finds out who calls.
    ///
    /// # Errors
    /// Status 401, 403 or 429.
    pub fn identify(gateway: &'a Gateway, request: &'a Incoming) -> Result<Call<'a>, Reply> {
        let address = request.address;
        if let Some((user, password)) = request.basic() {
            let caller = Caller { user, address };
            gateway.accounts.check(&caller, &password).map_err(refused)?;
            return Ok(Call { gateway, request, caller });
        }
        Call::identify_by_token(gateway, request)
            .unwrap_or_else(|| Call::identify_by_method(gateway, request))
    }

    /// Finds out who calls by a token of a log-in; `None` when the request has none.
    fn identify_by_token(
        gateway: &'a Gateway,
        request: &'a Incoming,
    ) -> Option<Result<Call<'a>, Reply>> {
        let token = request.token()?;
        let (user, secret) = gateway.tokens.user(token)?;
        let caller = Caller { user, address: request.address };
        if gateway.accounts.secret(&caller).ok().as_ref() != Some(&secret) {
            gateway.tokens.remove(token);
            return Some(Err(unknown()));
        }
        let is_change = !request.method.is_safe();
        let by_cookie = request.header(header::AUTHORIZATION).is_none();
        if is_change && by_cookie && !request.headers.contains_key("x-squall") {
            let message = "a request that is authenticated by the cookie needs the header X-Squall";
            return Some(Err(Reply::failure(StatusCode::FORBIDDEN, message)));
        }
        Some(Ok(Call { gateway, request, caller }))
    }

    /// A bearer token that is none of ours may be one that an authentication method checks.
    fn identify_by_method(gateway: &'a Gateway, request: &'a Incoming) -> Result<Call<'a>, Reply> {
        let token = request.bearer().ok_or_else(unknown)?;
        let user = gateway.accounts.bearer_user(token).ok_or_else(unknown)?;
        let caller = Caller { user, address: request.address };
        gateway.accounts.check(&caller, token).map_err(refused)?;
        Ok(Call { gateway, request, caller })
    }
}

/// The answer to a caller that was refused.
pub fn refused(refusal: Refusal) -> Reply {
    match refusal {
        Refusal::Denied(error) => {
            Reply { status: StatusCode::UNAUTHORIZED, ..Reply::sql_error(&error) }
                .with("www-authenticate", "Basic realm=\"Squall\", charset=\"UTF-8\"")
        }
        Refusal::TooMany => {
            Reply::failure(StatusCode::TOO_MANY_REQUESTS, "too many failed log-ins: wait a minute")
                .with("retry-after", "60")
        }
    }
}

fn unknown() -> Reply {
    Reply::failure(StatusCode::UNAUTHORIZED, "log in with Basic or Bearer authentication")
        .with("www-authenticate", "Basic realm=\"Squall\", charset=\"UTF-8\"")
}
