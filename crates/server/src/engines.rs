//! The storage engines: which there are, and which one keeps the dictionary and tables that name none.

use std::sync::Arc;

use engine_api::Engine;
use engine_memory::MemoryEngine;
use plugin_api::{Plugin, PluginInfo, Registrar};

/// Engines of a running server.
#[derive(Clone)]
pub(crate) struct Engines {
    /// Keeps the dictionary and tables that name no engine.
    pub(crate) default: Arc<dyn Engine>,
    /// Keeps temporary tables.
    pub(crate) temporary: Arc<dyn Engine>,
}

impl Engines {
    /// Opens all engines.
    ///
    /// # Errors
    /// I/O, damaged files.
    pub(crate) fn open() -> errors::Result<Engines> {
        let memory: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        Ok(Engines { default: memory.clone(), temporary: memory })
    }

    /// All of them, each once, the default one first.
    pub(crate) fn all(&self) -> Vec<Arc<dyn Engine>> {
        let mut all = vec![self.default.clone()];
        if !Arc::ptr_eq(&self.default, &self.temporary) {
            all.push(self.temporary.clone());
        }
        all
    }

    /// What brings them into the registry.
    pub(crate) fn plugin(&self) -> Box<dyn Plugin> {
        Box::new(EnginePlugin(self.clone()))
    }
}

struct EnginePlugin(Engines);

impl Plugin for EnginePlugin {
    fn info(&self) -> PluginInfo {
        PluginInfo { name: "engines", description: "Storage engines." }
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        for engine in self.0.all() {
            registrar.engine(engine);
        }
    }
}
