//! Calls and console pages of another plugin.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::sync::Arc;

use errors::Result;
use plugin_api::{
    ConsolePage, HttpAccess, HttpReply, HttpRequest, HttpRoute, HttpRoutes, HttpServer, Plugin,
    PluginInfo, Registrar,
};
use serde_json::json;
use support::{Machine, basic};
use types::Value;

const OPEN: HttpRoute = HttpRoute { method: "GET", path: "/facts" };
const ACCOUNT: HttpRoute = HttpRoute { method: "POST", path: "/1.0/sums/{left}" };
const PRIVILEGED: HttpRoute = HttpRoute { method: "GET", path: "/1.0/secret" };
const CLOSED: HttpRoute = HttpRoute { method: "GET", path: "/closed" };
/// The server's own call of this path must win.
const TAKEN: HttpRoute = HttpRoute { method: "GET", path: "/1.0/me" };

struct Calls;

impl HttpRoutes for Calls {
    fn name(&self) -> &'static str {
        "calls"
    }

    fn routes(&self) -> &'static [HttpRoute] {
        &[OPEN, ACCOUNT, PRIVILEGED, CLOSED, TAKEN]
    }

    fn access(&self, route: &HttpRoute) -> HttpAccess {
        match *route {
            OPEN => HttpAccess::Anybody,
            ACCOUNT | TAKEN => HttpAccess::Account,
            PRIVILEGED => HttpAccess::Privileged("AUDIT_ADMIN"),
            _ => HttpAccess::Nobody,
        }
    }

    fn answer(
        &self,
        route: &HttpRoute,
        request: &HttpRequest<'_>,
        server: &mut dyn HttpServer,
    ) -> Result<HttpReply> {
        assert!(request.header("authorization").is_none());
        let text = match *route {
            OPEN => {
                assert_eq!(server.user(), None);
                assert!(server.run("SELECT 1", &[]).is_err(), "there is no account");
                let mut schemas = 0;
                let mut count = |_: &[plugin_api::InfoColumn], row: &[Value]| {
                    schemas += usize::from(row[1] == Value::text("hidden"));
                    Ok(())
                };
                server.server().read_information("information_schema", "SCHEMATA", &mut count)?;
                format!("{schemas} {}", request.parameter("x").unwrap_or("-"))
            }
            ACCOUNT => {
                let body = String::from_utf8_lossy(request.body);
                let parameters = [Value::text(&request.names[0]), Value::text(&body)];
                let result = server.run("SELECT CAST(? + ? AS SIGNED)", &parameters)?;
                format!("{:?} {:?}", result.rows[0][0], server.user())
            }
            _ => "private".to_owned(),
        };
        Ok(HttpReply::new("text/plain", text))
    }
}

struct Brought;

impl Plugin for Brought {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("brought", "Calls and a page.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.http_routes(Arc::new(Calls));
        let page = ConsolePage {
            name: "brought",
            title: "Brought",
            privilege: None,
            module: "brought.js",
            style: Some("brought.css"),
            files: &[("brought.js", b"export function mount() {}"), ("brought.css", b"p {}")],
        };
        registrar.console_page(page);
        let private = ConsolePage { name: "private", privilege: Some("AUDIT_ADMIN"), ..page };
        registrar.console_page(private);
    }
}

fn machine() -> Machine {
    let machine = Machine::with(vec![Box::new(Brought)]);
    machine.client().sql("CREATE USER u IDENTIFIED BY 'q'; CREATE DATABASE hidden");
    machine
}

#[test]
fn calls_of_plugins_are_made_by_those_who_may() {
    let machine = machine();
    let mut client = machine.client();
    let answer = client.request("POST", "/1.0/sums/40", "", b"2");
    assert_eq!(answer.body, b"Int(42) Some(\"root\")");
    assert_eq!(client.get("/1.0/secret").body, b"private");
    assert_eq!(client.request("PUT", "/1.0/secret", "", b"").status, 405);
    assert_eq!(client.get("/closed").status, 404);
    assert_eq!(client.get("/1.0/me").json()["user"], "root");
    let failed = client.request("POST", "/1.0/sums/1", "Origin: http://elsewhere\r\n", b"2");
    assert_eq!(failed.status, 403);
    client.login = basic("u", "q");
    assert_eq!(client.get("/1.0/secret").status, 403);
    assert_eq!(client.request("POST", "/1.0/sums/1", "", b"1").status, 200);
    client.login = basic("u", "wrong");
    assert_eq!(client.request("POST", "/1.0/sums/1", "", b"1").status, 401);
    client.login = String::new();
    assert_eq!(client.get("/1.0/secret").status, 401);
    let open = client.get("/facts?x=a%20b");
    assert_eq!((open.status, open.body), (200, b"1 a b".to_vec()));
}

#[test]
fn pages_of_plugins_are_listed_and_served() {
    let machine = machine();
    let mut client = machine.client();
    let page = |name: &str| {
        json!({"name": name, "title": "Brought", "module": format!("/pages/{name}/brought.js"),
               "style": format!("/pages/{name}/brought.css")})
    };
    let listed = client.get("/1.0/pages").json();
    assert_eq!(listed, json!({ "pages": [page("brought"), page("private")] }));
    client.login = basic("u", "q");
    assert_eq!(client.get("/1.0/pages").json(), json!({ "pages": [page("brought")] }));
    client.login = String::new();
    assert_eq!(client.get("/1.0/pages").status, 401);
    let module = client.get("/pages/brought/brought.js");
    assert_eq!(module.body, b"export function mount() {}");
    assert_eq!(module.header("content-type"), Some("text/javascript; charset=utf-8"));
    let policy = module.header("content-security-policy").unwrap();
    assert!(policy.contains("script-src 'self'"), "{policy}");
    assert_eq!(client.get("/pages/brought/other.js").status, 404);
    assert_eq!(client.get("/pages/brought/../private/brought.js").status, 404);
}
