//! The log over HTTP: its last entries, and the page of the web console that shows them.

use std::sync::Arc;

use errors::{Result, bail};
use plugin_api::{
    ConsolePage, HttpAccess, HttpReply, HttpRequest, HttpRoute, HttpRoutes, HttpServer,
};
use serde_json::Value;

use crate::log::AuditLog;

/// The privilege to read the log.
const PRIVILEGE: &str = "AUDIT_ADMIN";
const ENTRIES: HttpRoute = HttpRoute { method: "GET", path: "/1.0/audit/entries" };

/// The page.
pub(crate) const PAGE: ConsolePage = ConsolePage {
    name: "audit-log",
    title: "Audit log",
    privilege: Some(PRIVILEGE),
    module: "audit.js",
    style: None,
    files: &[("audit.js", include_bytes!("../web/audit.js"))],
};

/// The calls.
#[derive(Debug)]
pub(crate) struct AuditRoutes(pub(crate) Arc<AuditLog>);

impl HttpRoutes for AuditRoutes {
    fn name(&self) -> &'static str {
        "audit_log"
    }

    fn routes(&self) -> &'static [HttpRoute] {
        &[ENTRIES]
    }

    fn access(&self, _: &HttpRoute) -> HttpAccess {
        HttpAccess::Privileged(PRIVILEGE)
    }

    /// `{"entries": [..]}`, the newest first; `event` and `count` choose.
    fn answer(
        &self,
        _: &HttpRoute,
        request: &HttpRequest<'_>,
        _: &mut dyn HttpServer,
    ) -> Result<HttpReply> {
        let event = request.parameter("event").unwrap_or("");
        let count = match request.parameter("count").map(str::parse::<usize>) {
            None => usize::MAX,
            Some(Ok(count)) => count,
            Some(Err(_)) => bail!(WRONG_ARGUMENTS, "count"),
        };
        let is_wanted = |line: &&String| {
            event.is_empty()
                || serde_json::from_str::<Value>(line).is_ok_and(|entry| entry["event"] == event)
        };
        let lines = self.0.recent();
        let lines = lines.iter().rev().filter(is_wanted).take(count);
        // Each line is a JSON object already.
        let entries: Vec<&str> = lines.map(|line| line.trim_end()).collect();
        let body = format!("{{\"entries\":[{}]}}", entries.join(","));
        let mut reply = HttpReply::new("application/json", body);
        reply.headers.push(("cache-control", "no-store".to_owned()));
        Ok(reply)
    }
}
