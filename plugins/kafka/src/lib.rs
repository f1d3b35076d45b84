//! The sink `kafka`: a change stream's events as records of a topic, for any broker that speaks Kafka's protocol. docs/changes.md tells how.

mod broker;
mod delivery;
mod message;
mod protocol;
mod records;
mod route;
mod scram;
mod settings;
mod socket;

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
pub struct Kafka;

impl Plugin for Kafka {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("kafka", "Brings change streams to a topic of Kafka.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.stream_sink(Arc::new(KafkaSink));
    }
}

struct KafkaSink;

impl StreamSink for KafkaSink {
    fn name(&self) -> &'static str {
        "kafka"
    }

    fn secrets(&self) -> &'static [&'static str] {
        &["password", "private_key"]
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
