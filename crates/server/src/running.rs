//! The listeners and background jobs of loaded plugins.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result, bail};
use plugin_api::{ListenerContext, Module, Rebinding, Registry, RunningJob, RunningListener};
use session::PluginHost;
use sys::clock::{Clock as _, RealClock};
use sys::sync::{Condvar, Mutex};
use types::Value;

/// How long running statements may take to finish when a listener stops.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(10);

/// How long a plugin that starts waits until its earlier run has stopped.
const STOP_WAIT: Duration = Duration::from_secs(15);

/// Everything that runs for plugins.
pub(crate) struct Running {
    state: Arc<State>,
    /// Root needs no password: no address but loopback ones.
    only_loopback: bool,
}

struct State {
    /// Listeners that start later start in it.
    context: Mutex<ListenerContext>,
    plugins: Mutex<Plugins>,
    stopped: Condvar,
}

#[derive(Default)]
struct Plugins {
    running: Vec<RunningPlugin>,
    /// Names of those that are being stopped.
    stopping: Vec<String>,
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

    fn is_empty(&self) -> bool {
        self.listeners.is_empty() && self.jobs.is_empty()
    }

    fn stop(self) {
        self.listeners.into_iter().for_each(|listener| listener.stop(STOP_GRACE));
        self.jobs.into_iter().for_each(|job| job.stop());
    }
}

impl Running {
    /// Nothing yet; listeners start in this context.
    ///
    /// # Errors
    /// It has other than loopback addresses, and may not.
    pub(crate) fn new(context: ListenerContext, only_loopback: bool) -> Result<Running> {
        let (plugins, stopped) = Default::default();
        let state = State { context: Mutex::new(context), plugins, stopped };
        let running = Running { state: Arc::new(state), only_loopback };
        running.check(&running.state.context.lock())?;
        Ok(running)
    }

    fn check(&self, context: &ListenerContext) -> Result<()> {
        let is_exposed = context.bind_addresses.iter().any(|address| !address.is_loopback());
        if self.only_loopback && is_exposed {
            bail!(OPTION_PREVENTS_STATEMENT, "--insecure-root");
        }
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
        let plugins = self.state.plugins.lock();
        plugins
            .running
            .iter()
            .flat_map(|plugin| &plugin.listeners)
            .find_map(|listener| listener.port())
    }

    /// The path of the UNIX socket.
    pub(crate) fn socket(&self) -> Option<PathBuf> {
        self.state.context.lock().socket.clone()
    }

    /// Stops everything.
    pub(crate) fn stop_all(&self) {
        let running = std::mem::take(&mut self.state.plugins.lock().running);
        running.into_iter().for_each(RunningPlugin::stop);
        self.state.wait_for_stops(|stopping| !stopping.is_empty());
    }
}

/// What several listeners have bound.
struct Rebound {
    state: Arc<State>,
    /// The context for listeners that start later, when it changes.
    context: Option<ListenerContext>,
    parts: Vec<Box<dyn Rebinding>>,
}

impl Rebinding for Rebound {
    fn bound(&self) -> Vec<(&'static str, Value)> {
        self.parts.iter().flat_map(|part| part.bound()).collect()
    }

    fn adopt(self: Box<Self>) {
        let bound = self.bound();
        self.parts.into_iter().for_each(|part| part.adopt());
        let Some(context) = self.context else { return };
        // With the port that was found for 0.
        let context = context.with(&bound).ok().flatten().unwrap_or(context);
        *self.state.context.lock() = context;
    }
}

impl State {
    /// Waits while `is_busy` with the names of the plugins that are being stopped. False when that takes too long.
    fn wait_for_stops(&self, is_busy: impl Fn(&[String]) -> bool) -> bool {
        let clock = RealClock::new();
        let deadline = clock.monotonic() + STOP_WAIT;
        let mut plugins = self.plugins.lock();
        while is_busy(&plugins.stopping) {
            let left = deadline.saturating_sub(clock.monotonic());
            if left.is_zero() {
                return false;
            }
            plugins = self.stopped.wait_for(plugins, left);
        }
        true
    }
}

impl PluginHost for Running {
    /// Nothing happens when the plugin runs already.
    fn start(&self, module: &Module) -> Result<()> {
        let name = &*module.info.name;
        if !self.state.wait_for_stops(|stopping| stopping.iter().any(|known| known == name)) {
            bail!(PLUGIN_IS_NOT_LOADED, format!("{name}: its earlier run has not stopped yet"));
        }
        let mut plugins = self.state.plugins.lock();
        if plugins.running.iter().any(|plugin| plugin.name == name) {
            return Ok(());
        }
        let context = self.state.context.lock().clone();
        let plugin = RunningPlugin::start(module, &context)?;
        // One that had nothing to run may have it later: the binary log while storage was being recovered.
        if !plugin.is_empty() {
            plugins.running.push(plugin);
        }
        Ok(())
    }

    fn rebind(&self, settings: &[(&'static str, Value)]) -> Result<Box<dyn Rebinding>> {
        let context = self.state.context.lock().with(settings)?;
        context.as_ref().map_or(Ok(()), |context| self.check(context))?;
        let plugins = self.state.plugins.lock();
        let mut parts = Vec::new();
        for listener in plugins.running.iter().flat_map(|plugin| &plugin.listeners) {
            parts.extend(listener.rebind(settings)?);
        }
        let rebound = Rebound { state: self.state.clone(), context, parts };
        let bound = rebound.bound();
        let is_unused = |name: &str| !bound.iter().any(|(known, _)| *known == name);
        match settings.iter().find(|(name, _)| is_unused(name)) {
            Some((name, _)) => Err(Error::not_supported(format!("ALTER SYSTEM SET {name}"))),
            None => Ok(Box::new(rebound)),
        }
    }

    fn reload_tls(&self, disables_on_error: bool) -> Result<()> {
        let plugins = self.state.plugins.lock();
        let mut listeners = plugins.running.iter().flat_map(|plugin| &plugin.listeners);
        listeners.try_for_each(|listener| listener.reload_tls(disables_on_error))
    }

    fn stop(&self, name: &str) {
        let mut plugins = self.state.plugins.lock();
        let Some(at) = plugins.running.iter().position(|plugin| plugin.name == name) else {
            return;
        };
        let plugin = plugins.running.swap_remove(at);
        if plugin.is_empty() {
            return;
        }
        plugins.stopping.push(name.to_owned());
        drop(plugins);
        let state = self.state.clone();
        // The thread may be one of the listener's own, which a stop waits for.
        let spawned = sys::threads::spawn("stop plugin", move || {
            let name = plugin.name.clone();
            plugin.stop();
            state.plugins.lock().stopping.retain(|known| *known != name);
            state.stopped.notify_all();
        });
        if let Err(error) = spawned {
            self.state.plugins.lock().stopping.retain(|known| *known != name);
            tracing::error!("no thread to stop plugin {name}: {error}");
        }
    }
}
