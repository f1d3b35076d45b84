//! `squall cluster`: runs a MySQL Cluster on this machine whose configuration nobody edits.
//!
//! The management server gets its first configuration through a pipe and keeps it in its own cache, where ALTER CLUSTER changes it. So no file says
//! what the cluster should be: `start` and `status` ask the management server which data nodes there are.

mod binaries;
mod nodes;

use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::error::ErrorKind;
use clap::{Args, Parser, Subcommand};

use self::binaries::Binaries;
use self::nodes::{Kind, Node, State};

/// The node id of the management server; data nodes have those after it.
const MANAGER: u32 = 1;
/// The first node id of a client. Data nodes end below it.
const FIRST_CLIENT: u32 = 145;
const LOOK: Duration = Duration::from_millis(300);
/// A management server answers by then.
const MANAGER_TIME: Duration = Duration::from_secs(30);
/// Data nodes that run connect to a new management server by then.
const RETURN_TIME: Duration = Duration::from_secs(8);
const STOP_TIME: Duration = Duration::from_secs(120);
/// In the directory of a cluster: what it was made with.
const SETTINGS: &str = "squall-cluster";

/// A MySQL Cluster on this machine.
#[derive(Debug, Parser)]
#[command(name = "squall cluster")]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Makes a cluster in a new directory and starts it
    Init(Init),
    /// Starts what does not run
    Start {
        #[command(flatten)]
        place: Place,
        /// Seconds until the data nodes are up
        #[arg(long, default_value_t = 600)]
        wait: u64,
    },
    /// Stops all nodes in order; rows stay
    Stop {
        #[command(flatten)]
        place: Place,
    },
    /// Shows the nodes
    Status {
        #[command(flatten)]
        place: Place,
    },
}

#[derive(Debug, Args)]
struct Place {
    /// Directory of the cluster
    directory: PathBuf,
    /// Where ndb_mgmd, ndbmtd and ndb_mgm are; without it where they were last, or PATH
    #[arg(long)]
    ndb_bin: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Init {
    #[command(flatten)]
    place: Place,
    /// Address of this machine that data nodes and clients use
    #[arg(long, default_value = "127.0.0.1")]
    host: String,
    /// Port of the management server; data nodes use those after it
    #[arg(long, default_value_t = 1186)]
    port: u16,
    /// How many data nodes
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=48))]
    data_nodes: u32,
    /// How many of them have each row
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(1..=4))]
    replicas: u32,
    /// Memory for rows and indexes of each data node: 512M, 4G
    #[arg(long, default_value = "512M")]
    data_memory: String,
    /// How many connections clients may make; each server takes one, and another one while nodes are added
    #[arg(long, default_value_t = 16, value_parser = clap::value_parser!(u32).range(2..=100))]
    clients: u32,
    /// Seconds until the data nodes are up
    #[arg(long, default_value_t = 600)]
    wait: u64,
}

/// Runs the command line after `squall cluster`.
///
/// # Errors
/// The command line is wrong, a program is missing, the cluster does not do what it was told.
pub fn run(arguments: impl Iterator<Item = String>) -> Result<String, String> {
    let all = ["squall cluster".to_owned()].into_iter().chain(arguments);
    let arguments = match Arguments::try_parse_from(all) {
        Ok(arguments) => arguments,
        // What was asked for is no error.
        Err(error) if error.kind() == ErrorKind::DisplayHelp => return Ok(error.to_string()),
        Err(error) => return Err(error.render().ansi().to_string()),
    };
    match arguments.command {
        Command::Init(init) => make(&init),
        Command::Start { place, wait } => Cluster::open(&place)?.start(Duration::from_secs(wait)),
        Command::Stop { place } => Cluster::open(&place)?.stop(),
        Command::Status { place } => Cluster::open(&place)?.status(),
    }
}

/// The configuration of a new cluster, in the words of its management server.
fn configuration(init: &Init, directory: &Path, processors: usize) -> String {
    let Init { host, port, data_nodes, replicas, data_memory, .. } = init;
    let each = processors / *data_nodes as usize;
    // One thread does everything where there is no processor for more.
    let threads = match each {
        0 | 1 => "AutomaticThreadConfig=0\nThreadConfig=recv={count=1}".to_owned(),
        _ => format!("AutomaticThreadConfig=1\nNumCPUs={each}"),
    };
    let directory = directory.display();
    // Each index of a table of Squall's is a table of the cluster.
    let mut text = format!(
        "[ndbd default]\nNoOfReplicas={replicas}\nDataMemory={data_memory}\n{threads}\nDiskPageBufferMemory=4M\nMaxNoOfConcurrentOperations=65536\n\
         MaxNoOfTables=2000\nMaxNoOfOrderedIndexes=2000\nMaxNoOfAttributes=8000\n\
         [ndb_mgmd]\nNodeId={MANAGER}\nHostName={host}\nPortNumber={port}\nDataDir={directory}/node{MANAGER}\n"
    );
    for node in MANAGER + 1..=MANAGER + data_nodes {
        let port = u32::from(*port) + node - MANAGER;
        text.push_str(&format!(
            "[ndbd]\nNodeId={node}\nHostName={host}\nServerPort={port}\nDataDir={directory}/node{node}\n"
        ));
    }
    for node in FIRST_CLIENT..FIRST_CLIENT + init.clients {
        text.push_str(&format!("[api]\nNodeId={node}\n"));
    }
    text
}

fn check(init: &Init) -> Result<(), String> {
    let digits = init.data_memory.trim_end_matches(['K', 'M', 'G', 'T']);
    let is_size =
        init.data_memory.len() - digits.len() <= 1 && digits.parse::<u64>().is_ok_and(|n| n > 0);
    if !is_size {
        return Err(format!("--data-memory {}: a number with K, M, G or T", init.data_memory));
    }
    if !init.data_nodes.is_multiple_of(init.replicas) {
        return Err(format!(
            "{} data nodes cannot have each row {} times: --data-nodes must be a multiple of --replicas",
            init.data_nodes, init.replicas
        ));
    }
    if u32::from(init.port) + init.data_nodes > u32::from(u16::MAX) {
        return Err(format!("--port {}: no ports are left for the data nodes", init.port));
    }
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b".:-_".contains(&byte);
    if init.host.is_empty() || !init.host.bytes().all(is_plain) {
        return Err(format!("--host {}: no host", init.host));
    }
    Ok(())
}

/// `init`.
fn make(init: &Init) -> Result<String, String> {
    check(init)?;
    let binaries = Binaries::find(init.place.ndb_bin.as_deref())?;
    let directory = &init.place.directory;
    let failed = |error: std::io::Error| format!("{}: {error}", directory.display());
    for port in 0..=init.data_nodes as u16 {
        if is_open(&init.host, init.port + port) {
            return Err(format!("port {} of {} is in use", init.port + port, init.host));
        }
    }
    std::fs::create_dir(directory).map_err(failed)?;
    let directory = std::fs::canonicalize(directory).map_err(failed)?;
    if directory.display().to_string().contains(['\n', '#', ' ']) {
        std::fs::remove_dir(&directory).map_err(failed)?;
        return Err(format!("{}: a path without blanks and #", directory.display()));
    }
    for node in MANAGER..=MANAGER + init.data_nodes {
        std::fs::create_dir(directory.join(format!("node{node}"))).map_err(failed)?;
    }
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    let text = configuration(init, &directory, processors);
    let cluster = Cluster { directory, binaries, host: init.host.clone(), port: init.port };
    cluster.remember()?;
    cluster.start_manager(Some(&text))?;
    let started = cluster.start(Duration::from_secs(init.wait))?;
    Ok(format!(
        "{started}use it: squalld --plugin-add=ndb --ndb-connectstring={}:{}\n\
         Nothing starts it when the machine does: call squall cluster start {} then.\n",
        cluster.host,
        cluster.port,
        cluster.directory.display()
    ))
}

/// Whether somebody listens.
fn is_open(host: &str, port: u16) -> bool {
    let addresses = (host, port).to_socket_addrs().into_iter().flatten();
    addresses.into_iter().any(|address| TcpStream::connect_timeout(&address, LOOK).is_ok())
}

/// A cluster that was made.
struct Cluster {
    directory: PathBuf,
    binaries: Binaries,
    host: String,
    port: u16,
}

impl Cluster {
    fn open(place: &Place) -> Result<Cluster, String> {
        let file = place.directory.join(SETTINGS);
        let text = std::fs::read_to_string(&file).map_err(|error| {
            format!("{}: {error}: squall cluster init makes it", file.display())
        })?;
        let value = |name: &str| {
            let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
            line.ok_or_else(|| format!("{}: it has no {name}", file.display()))
        };
        let port = value("port")?;
        let port = port.parse().map_err(|_| format!("{}: port {port}", file.display()))?;
        let (host, last) = (value("host")?.to_owned(), PathBuf::from(value("binaries")?));
        let given = place.ndb_bin.as_deref();
        let binaries = match given {
            None if Binaries::find(Some(&last)).is_ok() => Binaries::find(Some(&last))?,
            given => Binaries::find(given)?,
        };
        let directory = std::fs::canonicalize(&place.directory)
            .map_err(|error| format!("{}: {error}", place.directory.display()))?;
        let cluster = Cluster { directory, binaries, host, port };
        if given.is_some() {
            cluster.remember()?;
        }
        Ok(cluster)
    }

    fn remember(&self) -> Result<(), String> {
        let binaries = self.binaries.directory.display();
        let text = format!("host={}\nport={}\nbinaries={binaries}\n", self.host, self.port);
        let file = self.directory.join(SETTINGS);
        std::fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))
    }

    /// The port of a data node that `init` made.
    fn port_of(&self, node: u32) -> u16 {
        u16::try_from(u32::from(self.port) + node - MANAGER).unwrap_or(u16::MAX)
    }

    fn address(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }

    /// The nodes, if the management server answers.
    fn nodes(&self) -> Option<Vec<Node>> {
        if !is_open(&self.host, self.port) {
            return None;
        }
        self.binaries.tell(&self.address(), "SHOW").ok().map(|shown| nodes::read(&shown))
    }

    /// With the first configuration, or with the one that it has.
    fn start_manager(&self, first: Option<&str>) -> Result<(), String> {
        let home = self.directory.join(format!("node{MANAGER}"));
        let mut arguments = vec![
            format!("--configdir={}", home.display()),
            format!("--ndb-nodeid={MANAGER}"),
            format!("--bind-address={}", self.host),
        ];
        if first.is_some() {
            arguments.push("--config-file=/dev/stdin".to_owned());
        }
        let log = self.directory.join("start.log");
        self.binaries.start("ndb_mgmd", &arguments, &log, first)?;
        let began = Instant::now();
        while self.nodes().is_none() {
            if began.elapsed() > MANAGER_TIME {
                return Err(format!("the management server does not answer: {}", log.display()));
            }
            std::thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Waits until the nodes are as wanted, and returns them.
    fn wait(&self, longest: Duration, is_done: impl Fn(&[Node]) -> bool) -> Option<Vec<Node>> {
        let began = Instant::now();
        loop {
            let nodes = self.nodes().unwrap_or_default();
            if !nodes.is_empty() && is_done(&nodes) {
                return Some(nodes);
            }
            if began.elapsed() > longest {
                return None;
            }
            std::thread::sleep(LOOK);
        }
    }

    fn start(&self, longest: Duration) -> Result<String, String> {
        if self.nodes().is_none() {
            self.start_manager(None)?;
            // Data nodes that run on without one come back to it: they must not be started twice.
            let all_are_back = |nodes: &[Node]| data(nodes).all(|node| node.state != State::Away);
            let nodes = self.nodes().unwrap_or_default();
            if data(&nodes).any(|node| is_open(&self.host, self.port_of(node.id))) {
                // What does not come back is started.
                let _ = self.wait(RETURN_TIME, all_are_back);
            }
        }
        let log = self.directory.join("start.log");
        let mut elsewhere = Vec::new();
        for node in data(&self.nodes().unwrap_or_default()) {
            match node.state {
                State::Away if node.host == self.host => {
                    let arguments = [
                        format!("--ndb-connectstring={}", self.address()),
                        format!("--ndb-nodeid={}", node.id),
                    ];
                    self.binaries.start("ndbmtd", &arguments, &log, None)?;
                }
                State::Away => elsewhere.push(format!("{} on {}", node.id, node.host)),
                State::Starting | State::Up => {}
            }
        }
        if !elsewhere.is_empty() {
            let nodes = elsewhere.join(", ");
            return Err(format!(
                "start on their hosts, with ndbmtd --ndb-connectstring={}: data nodes {nodes}",
                self.address()
            ));
        }
        let all_are_up = |nodes: &[Node]| data(nodes).all(|node| node.state == State::Up);
        match self.wait(longest, all_are_up) {
            Some(nodes) => Ok(format!(
                "{} data nodes are up, connect string {}\n",
                data(&nodes).count(),
                self.address()
            )),
            None => Err(format!(
                "after {} seconds not all data nodes are up: squall cluster status {}; {}",
                longest.as_secs(),
                self.directory.display(),
                log.display()
            )),
        }
    }

    fn stop(&self) -> Result<String, String> {
        let Some(nodes) = self.nodes() else {
            return Err(format!(
                "no management server answers at {}: squall cluster start brings it back",
                self.address()
            ));
        };
        // Processes live a little longer than their nodes; those of nodes that came by ALTER CLUSTER have ports of their own.
        let runs = |node: &&Node| node.state != State::Away && node.host == self.host;
        let ports = data(&nodes).filter(runs).map(|node| self.port_of(node.id));
        let mut ports: Vec<u16> = ports.filter(|port| is_open(&self.host, *port)).collect();
        ports.push(self.port);
        self.binaries.tell(&self.address(), "SHUTDOWN")?;
        let began = Instant::now();
        while ports.iter().any(|port| is_open(&self.host, *port)) {
            if began.elapsed() > STOP_TIME {
                return Err(format!(
                    "after {} seconds not all nodes have ended",
                    STOP_TIME.as_secs()
                ));
            }
            std::thread::sleep(LOOK);
        }
        Ok("stopped\n".to_owned())
    }

    fn status(&self) -> Result<String, String> {
        let nodes = self.nodes();
        let nodes =
            nodes.ok_or_else(|| format!("stopped: nothing answers at {}", self.address()))?;
        let mut text =
            format!("{:>4}  {:<10} {:<8} {:>5}  host\n", "node", "kind", "state", "group");
        for node in nodes.iter().filter(|node| node.kind != Kind::Client || node.state == State::Up)
        {
            let group = node.group.map_or_else(String::new, |group| group.to_string());
            let (kind, state) = (node.kind.word(), node.state.word());
            text.push_str(&format!(
                "{:>4}  {kind:<10} {state:<8} {group:>5}  {}\n",
                node.id, node.host
            ));
        }
        Ok(text)
    }
}

fn data(nodes: &[Node]) -> impl Iterator<Item = &Node> {
    nodes.iter().filter(|node| node.kind == Kind::Data)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn init(arguments: &[&str]) -> Init {
        let all = ["squall cluster", "init", "/c"].iter().chain(arguments);
        match Arguments::try_parse_from(all).expect("arguments").command {
            Command::Init(init) => init,
            Command::Start { .. } | Command::Stop { .. } | Command::Status { .. } => unreachable!(),
        }
    }

    #[test]
    fn a_configuration_names_every_node_once() {
        let text = configuration(&init(&["--data-nodes=4", "--port=7000"]), Path::new("/c"), 8);
        let ids: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("NodeId=")).collect();
        assert_eq!(ids[..5], ["1", "2", "3", "4", "5"]);
        assert_eq!((ids.len(), ids[5]), (5 + 16, "145"));
        assert!(text.contains("ServerPort=7004\nDataDir=/c/node5\n") && text.contains("NumCPUs=2"));
        let small = configuration(&init(&[]), Path::new("/c"), 2);
        assert!(small.contains("ThreadConfig=recv={count=1}"));
    }

    #[test]
    fn what_a_cluster_cannot_be_is_refused() {
        for wrong in [
            "--data-memory=1X",
            "--data-memory=M",
            "--data-memory=0",
            "--data-memory=1MM",
            "--data-nodes=3",
            "--port=65534",
            "--host=a b",
        ] {
            assert!(check(&init(&[wrong])).is_err(), "{wrong}");
        }
        check(&init(&["--data-memory=4G", "--data-nodes=4"])).expect("a cluster");
    }
}
