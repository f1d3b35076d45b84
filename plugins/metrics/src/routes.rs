//! The call `GET /metrics`.

use std::sync::Arc;

use errors::Result;
use plugin_api::variable::GlobalValue;
use plugin_api::{
    HttpAccess, HttpReply, HttpRequest, HttpRoute, HttpRoutes, HttpServer, SessionFactory,
};

use crate::exposition::{Format, Type, Writer};
use crate::statements::StatementTimes;
use crate::waits::Waits;
use crate::{engines, status};

const ROUTES: &[HttpRoute] = &[HttpRoute { method: "GET", path: "/metrics" }];

/// What answers the call.
pub struct Metrics {
    /// `metrics_public`.
    pub is_public: GlobalValue,
    /// Latencies by kind of statement.
    pub times: Arc<StatementTimes>,
    /// Waits of threads.
    pub waits: Waits,
}

impl Metrics {
    /// All figures.
    ///
    /// # Errors
    /// Those of engines cannot be read.
    pub fn text(&self, format: Format, server: &dyn SessionFactory) -> Result<String> {
        let started = sys::clock::monotonic();
        let mut writer = Writer::new(format);
        writer.family("server", Type::Info, "The server.");
        writer.sample(&[("version", &server.server_version())], 1);
        let resident = sys::process::resident_bytes();
        writer.one("resident_bytes", Type::Gauge, "Memory of the process.", resident);
        let most = server.global_integer("max_connections");
        writer.one("max_connections", Type::Gauge, "Most connections at one time.", most);
        status::write(&mut writer, &server.status());
        engines::write(&mut writer, server)?;
        self.times.write(&mut writer);
        self.waits.write(&mut writer);
        let took = sys::clock::monotonic().saturating_sub(started).as_secs_f64();
        writer.one("scrape_seconds", Type::Gauge, "Time that this answer took.", took);
        Ok(writer.finish())
    }
}

impl HttpRoutes for Metrics {
    fn name(&self) -> &'static str {
        "metrics"
    }

    fn routes(&self) -> &'static [HttpRoute] {
        ROUTES
    }

    fn access(&self, _: &HttpRoute) -> HttpAccess {
        match self.is_public.is_on() {
            true => HttpAccess::Anybody,
            false => HttpAccess::Privileged("PROCESS"),
        }
    }

    fn answer(
        &self,
        _: &HttpRoute,
        request: &HttpRequest<'_>,
        server: &mut dyn HttpServer,
    ) -> Result<HttpReply> {
        let format = Format::accepted(request.header("accept").unwrap_or(""));
        let text = self.text(format, server.server())?;
        let mut reply = HttpReply::new(format.media_type(), text);
        reply.headers.push(("cache-control", "no-store".to_owned()));
        Ok(reply)
    }
}
