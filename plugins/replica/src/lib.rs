//! A replica of another server: reads the binary log of MySQL and repeats its transactions here. `docs/replication.md` tells how.
//!
//! Each transaction is one transaction here, which also stores the position after it, so a crash neither repeats nor loses one.

mod apply;
mod binlog_statement;
mod by_hash;
mod channel;
mod clone;
mod control;
mod coordinator;
mod crew;
mod filter;
mod local;
mod mariadb;
mod partitions;
mod remote;
mod settings;
mod source;
mod status;
mod store;
mod switch_over;
mod tables;
mod target;
mod wait;

pub use clone::{adopt, end_archive, forget_old};

use std::sync::Arc;
use std::time::Duration;

use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, as_u64, blocks, uint};
use plugin_api::{
    BackgroundJob, GlobalValue, Plugin, PluginInfo, Registrar, RunningJob, SessionFactory,
};
use sys::sync::atomic::{AtomicBool, Ordering};
use sys::threads::Thread;

use crate::clone::Clones;
use crate::control::{Channels, Control};

static SKIP_START: Definition = Definition::fixed(
    "skip_replica_start",
    Kind::Bool,
    "OFF",
    "Whether replicas wait for START REPLICA when the server starts",
);

static PARALLEL_WORKERS: Definition = Definition::global(
    "replica_parallel_workers",
    uint(0, settings::WORKERS_MAX),
    "4",
    "Threads of a channel that apply transactions side by side, from its next start; 0: its own thread applies them",
);
static PRESERVE_COMMIT_ORDER: Definition = Definition::global(
    "replica_preserve_commit_order",
    Kind::Bool,
    "ON",
    "Transactions of a channel commit in the order of the source; OFF is not supported",
);
static PENDING_BYTES_MAX: Definition = Definition::global(
    "replica_pending_jobs_size_max",
    blocks(1024, i64::MAX as u64, 1024),
    "134217728",
    "Bytes of the transactions that wait for the threads of a channel; larger ones are applied alone, as they come",
);

static SKIP_COUNTER: Definition = Definition::global(
    "sql_replica_skip_counter",
    uint(0, u32::MAX as u64),
    "0",
    "Events that the next START REPLICA passes over, with the rest of the transaction that the last one is in",
);

static REPORT_HOST: Definition = Definition::fixed(
    "report_host",
    Kind::NullableText,
    "NULL",
    "The host that sources show of this replica (SHOW REPLICAS)",
);
static REPORT_PORT: Definition = Definition::fixed(
    "report_port",
    uint(0, 65_535),
    "0",
    "The port that sources show of this replica; 0, the default, for its own",
);
static REPORT_USER: Definition = Definition::fixed(
    "report_user",
    Kind::NullableText,
    "NULL",
    "The user that this replica tells its sources",
);

static SEMI_SYNC: Definition = Definition::global(
    "rpl_semi_sync_replica_enabled",
    Kind::Bool,
    "OFF",
    "Replicas acknowledge transactions to sources that wait for it, from their next start",
);

/// The plugin.
#[derive(Default)]
pub struct Replica {
    channels: Arc<Channels>,
    clones: Arc<Clones>,
    skip_start: GlobalValue,
    workers: GlobalValue,
    commit_order: GlobalValue,
    bytes_max: GlobalValue,
    skip: GlobalValue,
    semi_sync: GlobalValue,
    report_host: GlobalValue,
    report_port: GlobalValue,
    report_user: GlobalValue,
}

impl Plugin for Replica {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("replica", "Repeats the transactions of another server.").by_default()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.variable(&SKIP_START, &self.skip_start);
        registrar.variable(&PARALLEL_WORKERS, &self.workers);
        registrar.variable(&PENDING_BYTES_MAX, &self.bytes_max);
        registrar.checked_variable(
            &PRESERVE_COMMIT_ORDER,
            &self.commit_order,
            |value| match as_u64(value) {
                0 => Err(Error::not_supported("replica_preserve_commit_order = OFF")),
                _ => Ok(()),
            },
        );
        registrar.variable(&SEMI_SYNC, &self.semi_sync);
        registrar.variable(&REPORT_HOST, &self.report_host);
        registrar.variable(&REPORT_PORT, &self.report_port);
        registrar.variable(&REPORT_USER, &self.report_user);
        let channels = self.channels.clone();
        registrar.status("Rpl_semi_sync_replica_status", move || {
            let is_on = channels.list().iter().any(|channel| channel.status().is_semi_sync);
            if is_on { "ON".to_owned() } else { "OFF".to_owned() }
        });
        let channels = self.channels.clone();
        registrar.status("Gtid_slave_pos", move || {
            let positions = channels
                .list()
                .into_iter()
                .map(|channel| channel.status().gtid_slave_pos.to_string());
            positions.filter(|text| !text.is_empty()).collect::<Vec<_>>().join(",")
        });
        let channels = self.channels.clone();
        registrar.checked_variable(&SKIP_COUNTER, &self.skip, move |value| {
            channels.check_skip(as_u64(value))
        });
        registrar.privilege(switch_over::PRIVILEGE);
        clone::register(&self.clones, registrar);
        let (channels, clones) = (self.channels.clone(), self.clones.clone());
        registrar.replication(Arc::new(Control { channels, clones }));
        tables::register(&self.channels, registrar);
        registrar.shared_state(wait::STATE, self.channels.clone());
        registrar.shared_state(by_hash::STATE, self.channels.rows.clone());
        by_hash::functions().into_iter().for_each(|function| registrar.function(function));
        wait::functions().into_iter().for_each(|function| registrar.function(function));
        let (channels, clones) = (self.channels.clone(), self.clones.clone());
        let skip_start = self.skip_start.clone();
        registrar.job(Arc::new(Job { channels, clones, skip_start }));
    }
}

/// Starts the channels with the server.
struct Job {
    channels: Arc<Channels>,
    clones: Arc<Clones>,
    skip_start: GlobalValue,
}

struct RunningChannels {
    channels: Arc<Channels>,
    stops: Arc<AtomicBool>,
    thread: Thread,
}

impl BackgroundJob for Job {
    fn name(&self) -> &'static str {
        "replica"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        self.clones.load(&*sessions);
        self.channels.set_sessions(Some(sessions));
        let stops = Arc::new(AtomicBool::new(false));
        let (channels, asked) = (self.channels.clone(), stops.clone());
        let starts = !self.skip_start.is_on();
        let load = move || load(&channels, starts, &asked);
        let thread = sys::threads::spawn("replica-start", load).map_err(Error::internal)?;
        let channels = self.channels.clone();
        Ok(Box::new(RunningChannels { channels, stops, thread }))
    }
}

/// Reads the channels as soon as tables can be read.
fn load(channels: &Channels, starts: bool, stops: &AtomicBool) {
    const STEP: Duration = Duration::from_millis(200);
    // Pairs with the store in `stop`.
    while !stops.load(Ordering::Acquire) {
        match channels.load(starts) {
            Ok(()) => return,
            Err(error) if error.code() == ErrorCode::SERVER_ISNT_AVAILABLE => {
                sys::threads::sleep(STEP);
            }
            Err(error) => {
                tracing::error!(%error, "the channels of replicas cannot be read");
                return;
            }
        }
    }
}

impl RunningJob for RunningChannels {
    fn stop(self: Box<Self>) {
        // Pairs with the load in `load`.
        self.stops.store(true, Ordering::Release);
        self.thread.join();
        self.channels.stop_all();
        self.channels.set_sessions(None);
    }
}
