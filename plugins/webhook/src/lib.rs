//! The sink `webhook`: batches of a change stream's events as POST requests with NDJSON. docs/changes.md tells how.

mod delivery;
mod settings;

use std::sync::Arc;

use engine_api::CancelToken;
use errors::Result;
use plugin_api::{
    Plugin, PluginInfo, Registrar, SinkConnection, SinkFailure, SinkOptions, StreamSink,
};

use crate::delivery::Delivery;
use crate::settings::Settings;

/// The plugin.
#[derive(Debug)]
pub struct Webhook;

impl Plugin for Webhook {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("webhook", "Brings change streams to a URL.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.stream_sink(Arc::new(WebhookSink));
    }
}

struct WebhookSink;

impl StreamSink for WebhookSink {
    fn name(&self) -> &'static str {
        "webhook"
    }

    fn secrets(&self) -> &'static [&'static str] {
        &["secret", "headers"]
    }

    fn check(&self, options: &SinkOptions) -> Result<()> {
        Settings::read(options).map(drop)
    }

    fn open(
        &self,
        options: &SinkOptions,
        cancel: &CancelToken,
    ) -> std::result::Result<Box<dyn SinkConnection>, SinkFailure> {
        let settings = Settings::read(options).map_err(SinkFailure::new)?;
        Ok(Box::new(Delivery::new(settings, cancel.clone())))
    }
}
