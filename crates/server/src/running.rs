//! The listeners and background jobs of loaded plugins.

use std::sync::Arc;
use std::time::Duration;

use errors::Result;
use plugin_api::{ListenerContext, Module, Registry, RunningJob, RunningListener};
use sys::sync::Mutex;

/// How long running statements may take to finish when a listener stops.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(10);

/// Everything that runs for plugins.
pub(crate) struct Running {
    context: ListenerContext,
    plugins: Mutex<Vec<RunningPlugin>>,
}

/// What runs for one plugin.
struct RunningPlugin {
    name: String,
    listeners: Vec<Box<dyn RunningListener>>,
    jobs: Vec<Box<dyn RunningJob>>,
}

impl RunningPlugin {
    fn start(module: &Module, context: &ListenerContext) -> Result<RunningPlugin> {
        let name = module.info.name.to_string();
        let mut plugin = RunningPlugin { name, listeners: Vec::new(), jobs: Vec::new() };
        match plugin.start_all(module.slots(), context) {
            Ok(()) => Ok(plugin),
            Err(error) => {
                plugin.stop();
                Err(error)
            }
        }
    }

    fn start_all(&mut self, slots: &Registry, context: &ListenerContext) -> Result<()> {
        for listener in slots.listeners() {
            self.listeners.push(listener.start(context.clone())?);
        }
        for job in slots.jobs() {
            self.jobs.push(job.start(Arc::clone(&context.sessions))?);
        }
        Ok(())
    }

    fn stop(self) {
        self.listeners.into_iter().for_each(|listener| listener.stop(STOP_GRACE));
        self.jobs.into_iter().for_each(|job| job.stop());
    }
}

impl Running {
    /// Nothing yet; listeners start in this context.
    pub(crate) fn new(context: ListenerContext) -> Running {
        Running { context, plugins: Mutex::new(Vec::new()) }
    }

    /// Starts what a plugin has to run, unless it runs already.
    ///
    /// # Errors
    /// A port cannot be bound; then nothing of the plugin runs.
    pub(crate) fn start(&self, module: &Module) -> Result<()> {
        let mut plugins = self.plugins.lock();
        if plugins.iter().any(|plugin| plugin.name == module.info.name) {
            return Ok(());
        }
        plugins.push(RunningPlugin::start(module, &self.context)?);
        Ok(())
    }

    /// Starts what all loaded plugins have to run.
    ///
    /// # Errors
    /// A port cannot be bound.
    pub(crate) fn start_loaded(&self, registry: &Registry) -> Result<()> {
        let mut loaded = registry.modules().iter().filter(|module| module.is_loaded);
        loaded.try_for_each(|module| self.start(module))
    }

    /// The TCP port of the first listener that has one.
    pub(crate) fn port(&self) -> Option<u16> {
        let plugins = self.plugins.lock();
        plugins.iter().flat_map(|plugin| &plugin.listeners).find_map(|listener| listener.port())
    }

    /// Stops everything.
    pub(crate) fn stop_all(&self) {
        let plugins = std::mem::take(&mut *self.plugins.lock());
        plugins.into_iter().for_each(RunningPlugin::stop);
    }
}
