//! Calls and console pages of other plugins. A call reaches its plugin when the caller may make it; a page's files are served like the
//! console's own.

use std::sync::Arc;

use errors::{Result, err};
use hyper::StatusCode;
use plugin_api::{
    ConsolePage, HttpAccess, HttpReply, HttpRequest, HttpRoute, HttpRoutes, HttpServer,
    SessionFactory, StatementResult,
};
use types::Value;

use crate::account::Caller;
use crate::assets;
use crate::call::{Call, Incoming};
use crate::gateway::{Gateway, Lease};
use crate::reply::Reply;
use crate::route::Names;

/// A call of a plugin that fits a request.
pub struct Found {
    owner: Arc<dyn HttpRoutes>,
    route: HttpRoute,
    access: HttpAccess,
    names: Names,
}

/// The calls of plugins whose path fits the request's, by whether their method does, too.
pub fn find(
    gateway: &Gateway,
    request: &Incoming,
    matches: impl Fn(&str, &str) -> Option<Names>,
    is_method: impl Fn(&str) -> bool,
) -> std::result::Result<Found, Vec<&'static str>> {
    let mut others = Vec::new();
    for owner in gateway.sessions.http_routes() {
        for route in owner.routes() {
            let Some(names) = matches(route.path, &request.path) else { continue };
            let access = owner.access(route);
            match access {
                HttpAccess::Nobody => {}
                _ if !is_method(route.method) => others.push(route.method),
                HttpAccess::Anybody | HttpAccess::Account | HttpAccess::Privileged(_) => {
                    return Ok(Found { owner, route: *route, access, names });
                }
            }
        }
    }
    Err(others)
}

/// Answers a request by the plugin's code, if its caller may make it.
pub fn answer(gateway: &Gateway, request: &Incoming, found: &Found) -> Reply {
    let mut server = Server { gateway, request, caller: None, lease: None };
    if found.access != HttpAccess::Anybody {
        match Call::identify(gateway, request) {
            Ok(call) => server.caller = Some(call.caller),
            Err(refusal) => return refusal,
        }
    }
    if let HttpAccess::Privileged(privilege) = found.access {
        match server.has_privilege(privilege) {
            Ok(true) => {}
            Ok(false) => {
                let needed = err!(SPECIFIC_ACCESS_DENIED_ERROR, privilege);
                return Reply::sql_error(&needed);
            }
            Err(error) => return Reply::sql_error(&error),
        }
    }
    let headers: Vec<(String, String)> = request
        .headers
        .iter()
        // What logs the caller in is not for plugins.
        .filter(|(name, _)| !matches!(name.as_str(), "authorization" | "cookie"))
        .filter_map(|(name, value)| {
            Some((name.as_str().to_owned(), value.to_str().ok()?.to_owned()))
        })
        .collect();
    let plain = HttpRequest {
        method: request.method.as_str(),
        names: &found.names,
        query: &request.query,
        headers: &headers,
        body: &request.body,
        address: request.address,
    };
    match found.owner.answer(&found.route, &plain, &mut server) {
        Ok(reply) => {
            server.give_back();
            whole(reply)
        }
        // After a failure the session may have state left over: it ends.
        Err(error) => Reply::sql_error(&error),
    }
}

fn whole(reply: HttpReply) -> Reply {
    let HttpReply { status, content_type, headers, body } = reply;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    Reply { status, content_type, headers, body }
}

/// The server for one request of a plugin's call.
struct Server<'a> {
    gateway: &'a Gateway,
    request: &'a Incoming,
    caller: Option<Caller>,
    lease: Option<Lease<'a>>,
}

impl<'a> Server<'a> {
    fn lease(&mut self) -> Result<&mut Lease<'a>> {
        let lease = match self.lease.take() {
            Some(lease) => lease,
            None => {
                let caller = self.caller.as_ref();
                let caller = caller.ok_or_else(|| err!(ACCESS_DENIED_ERROR, "", "", "NO"))?;
                self.gateway.session(caller, None)?
            }
        };
        Ok(self.lease.insert(lease))
    }

    fn has_privilege(&mut self, name: &str) -> Result<bool> {
        Ok(self.lease()?.session()?.has_privilege(name))
    }

    fn give_back(self) {
        if let Some(lease) = self.lease {
            lease.give_back();
        }
    }
}

impl HttpServer for Server<'_> {
    fn user(&self) -> Option<&str> {
        self.caller.as_ref().map(|caller| caller.user.as_str())
    }

    fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<StatementResult> {
        let cancel = self.lease()?.cancel();
        let request = self.request;
        // A client that goes away ends what runs.
        let runs = request.waiting.runs(cancel);
        let answer = self.lease()?.values(sql, parameters);
        drop(runs);
        let answer = answer?;
        Ok(StatementResult {
            columns: answer.columns,
            rows: answer.rows,
            affected_rows: answer.affected_rows,
            last_insert_id: answer.last_insert_id,
            ..StatementResult::default()
        })
    }

    fn server(&self) -> &dyn SessionFactory {
        self.gateway.sessions.as_ref()
    }
}

/// The pages that the caller of a request may see.
///
/// # Errors
/// The answer to a session that cannot be opened.
pub fn pages(call: &Call<'_>) -> std::result::Result<Vec<ConsolePage>, Reply> {
    let mut pages = call.gateway.sessions.console_pages();
    let mut server = Server {
        gateway: call.gateway,
        request: call.request,
        caller: Some(call.caller.clone()),
        lease: None,
    };
    let mut failure = None;
    pages.retain(|page| {
        let Some(privilege) = page.privilege else { return true };
        server.has_privilege(privilege).unwrap_or_else(|error| {
            failure = Some(error);
            false
        })
    });
    server.give_back();
    match failure {
        Some(error) => Err(Reply::sql_error(&error)),
        None => Ok(pages),
    }
}

/// A file of a page, at `/pages/NAME/FILE`.
pub fn file(gateway: &Gateway, request: &Incoming) -> Option<Reply> {
    let (name, file) = request.path.strip_prefix("/pages/")?.split_once('/')?;
    let pages = gateway.sessions.console_pages();
    let page = pages.iter().find(|page| page.name == name)?;
    let (path, bytes) = page.files.iter().find(|(known, _)| *known == file)?;
    Some(assets::reply(request, path, bytes))
}
