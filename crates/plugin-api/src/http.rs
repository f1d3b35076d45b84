//! The slot for calls over HTTP and for pages of the web console. The plugin that serves HTTP mounts both: it reads the request within its
//! limits, finds out who calls, and checks the privilege before it asks the plugin.

use std::net::SocketAddr;

use errors::Result;
use types::Value;

use crate::session::SessionFactory;
use crate::statements::StatementResult;

/// A call: its method and its path, in which `{name}` stands for a part that varies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HttpRoute {
    /// `GET`, `POST`, ...; a GET also answers HEAD.
    pub method: &'static str,
    /// `/metrics`, `/1.0/alerts/{id}`. The server's own calls come first.
    pub path: &'static str,
}

/// Who may make a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpAccess {
    /// Nobody: the path does not exist.
    Nobody,
    /// Anybody who reaches the port, without a log-in. Only for what an administrator opened by a setting.
    Anybody,
    /// An account that has logged in; its statements are limited by its privileges.
    Account,
    /// An account with this global or dynamic privilege, in capitals.
    Privileged(&'static str),
}

/// A request, complete and within the limits.
#[derive(Clone, Copy, Debug)]
pub struct HttpRequest<'a> {
    /// Its method.
    pub method: &'a str,
    /// The parts of the path that vary, decoded, in order.
    pub names: &'a [String],
    /// The pairs after the question mark, decoded.
    pub query: &'a [(String, String)],
    /// Headers that are text; names are in lower case.
    pub headers: &'a [(String, String)],
    /// The body.
    pub body: &'a [u8],
    /// The peer.
    pub address: SocketAddr,
}

impl HttpRequest<'_> {
    /// A parameter of the query.
    pub fn parameter(&self, name: &str) -> Option<&str> {
        self.query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A header by its name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The answer to a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpReply {
    /// The status.
    pub status: u16,
    /// `Content-Type`.
    pub content_type: &'static str,
    /// Further headers; names are in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl HttpReply {
    /// Status 200.
    pub fn new(content_type: &'static str, body: impl Into<Vec<u8>>) -> HttpReply {
        HttpReply { status: 200, content_type, headers: Vec::new(), body: body.into() }
    }
}

/// The server as a call sees it.
pub trait HttpServer {
    /// The user who has logged in; none for a call that anybody may make.
    fn user(&self) -> Option<&str>;

    /// Runs one statement as the account that has logged in, in a session that the calls of this request share; `?` in `sql` are the
    /// parameters.
    ///
    /// # Errors
    /// The statement's; 1045 without an account; 1153 for more rows than a call may hold.
    fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<StatementResult>;

    /// Facts of the server: information tables, status, variables.
    fn server(&self) -> &dyn SessionFactory;
}

/// Calls over HTTP.
pub trait HttpRoutes: Send + Sync {
    /// Its name.
    fn name(&self) -> &'static str;
    /// The calls.
    fn routes(&self) -> &'static [HttpRoute];
    /// Who may make a call, as settings are now. Asked for each request.
    fn access(&self, route: &HttpRoute) -> HttpAccess;
    /// Answers a request that its caller may make, on a thread that may block.
    ///
    /// # Errors
    /// Answered with the HTTP status that says the same.
    fn answer(
        &self,
        route: &HttpRoute,
        request: &HttpRequest<'_>,
        server: &mut dyn HttpServer,
    ) -> Result<HttpReply>;
}

/// A page of the web console: a JavaScript module that exports `mount(element, api)`, and the files that it needs, served at
/// `/pages/NAME/`. docs/json-server.md describes the module's side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConsolePage {
    /// Its name in addresses: small letters, digits and `-`.
    pub name: &'static str,
    /// Its title in the menu.
    pub title: &'static str,
    /// The global or dynamic privilege, in capitals, without which the page is not shown. What it reads is checked in any case.
    pub privilege: Option<&'static str>,
    /// The name of the module's file.
    pub module: &'static str,
    /// The name of its style sheet's file.
    pub style: Option<&'static str>,
    /// Its files by name. Anybody who reaches the port can read them: they hold no secret.
    pub files: &'static [(&'static str, &'static [u8])],
}
