//! The plugins that are compiled in, in the order in which they register. Each says itself when it is loaded.

use std::sync::Arc;

use binary_log::BinaryLogPlugin;
use error_log::{DragnetPlugin, ErrorLog, ErrorLogPlugin, SystemLogPlugin};
use plugin_api::Plugin;
use sys::io_times::IoTimes;

use crate::components::BUILT_IN;
use crate::engines::Engines;
use crate::keyrings::{self, KeyringChoice};

/// All of them; `io_times` counts file operations.
pub(crate) fn known(
    engines: &Engines,
    io_times: &Arc<IoTimes>,
    error_log: &Arc<ErrorLog>,
    keyring: Option<&KeyringChoice>,
) -> Vec<Box<dyn Plugin>> {
    let mut plugins: Vec<Box<dyn Plugin>> = vec![
        mysql_protocol::plugin(io_times.clone()),
        authentication::plugin(),
        Box::new(functions_numeric::NumericFunctions),
        Box::new(functions_string::StringFunctions),
        Box::new(functions_temporal::TemporalFunctions),
        Box::new(functions_json::JsonFunctions),
        Box::new(functions_spatial::SpatialFunctions),
        Box::new(functions_crypto::CryptoFunctions),
        Box::new(functions_misc::MiscFunctions),
        Box::new(functions_misc::QueryAttributes),
        Box::new(aggregates::Aggregates),
        Box::new(information_schema::InformationSchema),
        Box::new(help::HelpTopics),
        Box::new(show::ShowStatements),
        Box::new(execute::Execute),
        Box::new(ErrorLogPlugin(error_log.clone())),
        Box::new(DragnetPlugin(error_log.clone())),
        Box::new(SystemLogPlugin(error_log.clone())),
        Box::new(query_log::QueryLogs),
        Box::new(query_log::LoggingQuery),
        Box::new(statement_costs::StatementCosts),
        Box::new(profile::Profile),
        Box::new(syslog::Syslog),
        Box::new(BinaryLogPlugin::new(engines.default.clone(), io_times.clone())),
        Box::new(file_systems::FileSystems),
        Box::new(change_log::ChangeLogPlugin),
        Box::new(user_locks::UserLocks),
        Box::<replica::Replica>::default(),
        Box::new(sys_schema::SysSchema),
        Box::new(policies::SimpleUserPolicy),
        Box::new(policies::RegexPolicy),
        Box::new(policies::ConnectionControl),
        Box::new(policies::ValidatePassword),
        Box::new(policies::SqlFirewall),
        Box::new(http_functions::HttpFunctions),
        #[cfg(not(any(
            target_arch = "s390x",
            all(target_arch = "powerpc64", target_endian = "little")
        )))]
        Box::new(javascript::JavaScript::default()),
        json_server::plugin(),
        Box::new(metrics::MetricsPlugin::default()),
        Box::new(otlp::Otlp),
        Box::new(webhook::Webhook),
        Box::new(kafka::Kafka),
        Box::<wasm::Wasm>::default(),
        engines.plugin(),
        Box::new(engine_blackhole::BlackholePlugin),
        // After the others: its engine comes and goes without moving theirs. A program without a dynamic loader cannot reach its library.
        #[cfg(not(target_feature = "crt-static"))]
        Box::new(engine_ndb::NdbPlugin),
    ];
    plugins.extend(audit::plugins());
    plugins.extend(keyrings::plugins(keyring));
    plugins.extend(external_authentication::plugins());
    plugins.extend(BUILT_IN.into_iter().map(|component| Box::new(component) as Box<dyn Plugin>));
    plugins
}
