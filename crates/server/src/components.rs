//! Components of the reference whose function is always here: they can be installed, so that statements written for it run, and are then
//! listed like others.

use plugin_api::{Plugin, PluginInfo, Registrar};

/// A component that adds nothing to what is there.
#[derive(Debug)]
pub(crate) struct BuiltIn {
    name: &'static str,
    about: &'static str,
}

/// All of them.
pub(crate) const BUILT_IN: [BuiltIn; 2] = [
    BuiltIn {
        name: "log_sink_json",
        about: "The error log as JSON, which log_error_services names: always there.",
    },
    BuiltIn { name: "classic_hashing", about: "MD5() and SHA1(), SHA(): always there." },
];

impl Plugin for BuiltIn {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(self.name, self.about).on_request()
    }

    fn register(&self, _: &mut Registrar<'_>) {}
}
