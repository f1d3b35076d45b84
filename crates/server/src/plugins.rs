//! The built-in plugins, in the order in which they register.

use std::sync::Arc;

use plugin_api::{Plugin, Registry};
use sys::io_times::IoTimes;

use crate::engines::Engines;

/// A registry of everything; `io_times` counts file operations.
pub(crate) fn registry(engines: &Engines, io_times: &Arc<IoTimes>) -> Registry {
    let plugins: Vec<Box<dyn Plugin>> = vec![
        mysql_protocol::plugin(io_times.clone()),
        authentication::plugin(),
        Box::new(functions_numeric::NumericFunctions),
        Box::new(functions_string::StringFunctions),
        Box::new(functions_temporal::TemporalFunctions),
        Box::new(functions_json::JsonFunctions),
        Box::new(functions_spatial::SpatialFunctions),
        Box::new(functions_crypto::CryptoFunctions),
        Box::new(functions_misc::MiscFunctions),
        Box::new(aggregates::Aggregates),
        Box::new(information_schema::InformationSchema),
        Box::new(show::ShowStatements),
        Box::new(execute::Execute),
        engines.plugin(),
    ];
    Registry::build(&plugins)
}
