//! What a run does: the little that its command line says. Everything else is drawn from the seed.

use std::collections::BTreeSet;

use sys::entropy::SplitMix;

/// What can go wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Power fails: of what is not synced, all, some or nothing stays, and writes may be torn.
    Power,
    /// The process dies; what it wrote stays.
    Kill,
    /// Reads of files fail.
    ReadErrors,
    /// Writes of files fail, half done.
    WriteErrors,
    /// Syncs of files fail and drop what was written.
    SyncErrors,
    /// The disk is full for a while.
    FullDisk,
    /// The disk is slow for a while.
    SlowDisk,
    /// Connections are cut.
    Cut,
    /// Packets take long for a while, or a connection delivers nothing.
    SlowNetwork,
    /// The wall clock jumps.
    Clock,
    /// Statements and connections are ended by KILL.
    KillSession,
}

/// What clients do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Each changes and reads rows of its own.
    Own,
    /// Each reads the rows of others.
    Others,
    /// All append to the same lists.
    Lists,
    /// All move amounts between the same accounts.
    Transfers,
    /// Own changes are XA branches now and then.
    Xa,
    /// Values that do not fit a page.
    Wide,
    /// Somebody changes the definitions of the tables in use.
    Definitions,
    /// Somebody creates, fills, empties, renames and drops tables.
    Scratch,
    /// Somebody takes backups, which are restored at the end.
    Backup,
    /// Somebody changes settings.
    Settings,
}

/// All faults, with their names.
pub const FAULTS: [(Fault, &str); 11] = [
    (Fault::Power, "power"),
    (Fault::Kill, "kill"),
    (Fault::ReadErrors, "read-errors"),
    (Fault::WriteErrors, "write-errors"),
    (Fault::SyncErrors, "sync-errors"),
    (Fault::FullDisk, "full-disk"),
    (Fault::SlowDisk, "slow-disk"),
    (Fault::Cut, "cut"),
    (Fault::SlowNetwork, "slow-network"),
    (Fault::Clock, "clock"),
    (Fault::KillSession, "kill-session"),
];

/// All work, with its names.
pub const WORK: [(Work, &str); 10] = [
    (Work::Own, "own"),
    (Work::Others, "others"),
    (Work::Lists, "lists"),
    (Work::Transfers, "transfers"),
    (Work::Xa, "xa"),
    (Work::Wide, "wide"),
    (Work::Definitions, "definitions"),
    (Work::Scratch, "scratch"),
    (Work::Backup, "backup"),
    (Work::Settings, "settings"),
];

/// Defects that can be planted: their names, and the rules that the server breaks with them (`sys::model::breaks`).
pub const PLANTED: [(&str, &str); 6] = [
    ("skipped-sync", "syncs reach the device"),
    ("early-reply", "replies wait for the log"),
    ("lost-row-lock", "writers wait for locks of rows"),
    ("stale-plan", "plans follow definitions"),
    ("eager-purge", "pins hold purge back"),
    ("leaked-metadata-lock", "metadata locks end with their transaction"),
];

/// A run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Decides everything.
    pub seed: u64,
    /// Clients at a time.
    pub clients: u32,
    /// Statements that each client sends in a life of the server.
    pub statements: u32,
    /// Lives of the server.
    pub lives: u32,
    /// What may go wrong.
    pub faults: BTreeSet<Fault>,
    /// What clients do.
    pub work: BTreeSet<Work>,
    /// The name of a defect of the server.
    pub planted: Option<&'static str>,
}

impl Plan {
    /// The run of a seed. Each seed leaves some faults and some work out: what is rare beside everything is common beside little.
    pub fn of_seed(seed: u64) -> Plan {
        let mut random = SplitMix::new(seed ^ 0x5EED);
        let faults = FAULTS.iter().filter(|_| random.below(3) == 0).map(|(fault, _)| *fault);
        let mut faults: BTreeSet<Fault> = faults.collect();
        if random.below(4) > 0 {
            faults.insert(Fault::Power);
        }
        let work = WORK.iter().filter(|_| random.below(3) > 0).map(|(work, _)| *work);
        let mut work: BTreeSet<Work> = work.collect();
        work.insert([Work::Own, Work::Lists, Work::Transfers][random.below(3) as usize]);
        let (clients, lives) = (2 + random.below(4) as u32, 2 + random.below(3) as u32);
        Plan { seed, clients, statements: 60, lives, faults, work, planted: None }
    }

    /// The options that repeat this run.
    pub fn options(&self) -> String {
        let Plan { seed, clients, statements, lives, faults, work, planted } = self;
        let faults: Vec<&str> = faults.iter().map(|fault| name(&FAULTS, fault)).collect();
        let work: Vec<&str> = work.iter().map(|work| name(&WORK, work)).collect();
        let planted = planted.map(|defect| format!(" --planted {defect}"));
        format!(
            "--seed {seed} --clients {clients} --statements {statements} --lives {lives} --faults {} --work {}{}",
            list(&faults),
            list(&work),
            planted.unwrap_or_default()
        )
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(",") }
}

fn name<T: PartialEq>(all: &[(T, &'static str)], wanted: &T) -> &'static str {
    all.iter().find(|(one, _)| one == wanted).map_or("", |(_, name)| name)
}

/// What names say, separated by commas; `none` is nothing and `all` is everything.
///
/// # Errors
/// A name that is not in the table.
pub fn named<T: Copy + Ord>(all: &[(T, &'static str)], names: &str) -> Result<BTreeSet<T>, String> {
    let find = |wanted: &str| match all.iter().find(|(_, name)| *name == wanted) {
        Some((one, _)) => Ok(*one),
        None => {
            let known: Vec<&str> = all.iter().map(|(_, name)| *name).collect();
            Err(format!("nothing is called {wanted}; there are {}", known.join(", ")))
        }
    };
    match names {
        "none" => Ok(BTreeSet::new()),
        "all" => Ok(all.iter().map(|(one, _)| *one).collect()),
        names => names.split(',').map(find).collect(),
    }
}

/// The defect of a name.
///
/// # Errors
/// There is none.
pub fn planted(wanted: &str) -> Result<&'static str, String> {
    let found = PLANTED.iter().find(|(name, _)| *name == wanted).map(|(name, _)| *name);
    let known: Vec<&str> = PLANTED.iter().map(|(name, _)| *name).collect();
    found.ok_or_else(|| format!("no defect is called {wanted}; there are {}", known.join(", ")))
}
