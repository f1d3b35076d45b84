//! Does the steps of a change, one after the other. Every step may be begun again after a crash.

use std::collections::HashMap;
use std::time::Duration;

use errors::{Error, Result};

use super::configuration::Configuration;
use super::parameters;
use super::plan::{Action, STARTED, is_grouped, refused};
use crate::error::NdbError;
use crate::shim::{Command, Node};

/// Between two looks at the cluster.
const LOOK: Duration = Duration::from_millis(300);
/// The longest time that a node takes to come up.
const START_SECONDS: u64 = 3_600;
/// A process that was told to wait is back by then.
const HOLD_SECONDS: u64 = 60;
/// As long a management server may be away.
const AWAY_SECONDS: u64 = 120;

/// What a data node says of itself.
#[derive(Clone, Copy, Debug)]
pub(super) struct Age {
    /// Seconds since it began.
    pub(super) uptime: u64,
    /// The configuration that it runs with.
    pub(super) generation: u64,
}

/// The cluster, as steps see and change it.
pub(super) trait Cluster {
    fn nodes(&self) -> Result<Vec<Node>, NdbError>;
    fn configuration(&self) -> Result<Configuration, NdbError>;
    fn configure(&self, configuration: &Configuration) -> Result<(), NdbError>;
    fn command(&self, command: Command, nodes: &[i32]) -> Result<i32, NdbError>;
    /// Of the data nodes that answer.
    fn ages(&self) -> HashMap<i32, Age>;
    fn spread(&self, table: &str) -> Result<(), NdbError>;
    /// Connects this server anew, so that it knows the nodes that came.
    fn renew(&self) -> Result<()>;
    /// Seconds of the wall clock.
    fn now(&self) -> u64;
    /// Waits.
    ///
    /// # Errors
    /// The server stops; the change goes on when it starts again.
    fn pause(&self, time: Duration) -> Result<()>;
}

/// Does one step, which was begun at `began`.
///
/// # Errors
/// It cannot be done.
pub(super) fn run(cluster: &dyn Cluster, action: &Action, began: u64) -> Result<()> {
    match action {
        Action::Configure(_) | Action::AddNodes(_) | Action::RemoveNodes(_) => {
            configure(cluster, action)
        }
        Action::Restart { node, is_initial } => restart(cluster, *node, *is_initial, began),
        Action::Await { node, .. } => wait(cluster, began, |nodes| status(nodes, *node) == STARTED),
        Action::Group(members) => group(cluster, members, began),
        Action::Ungroup { group, nodes } => {
            let is_done =
                |all: &[Node]| !all.iter().any(|n| nodes.contains(&n.id) && is_grouped(n));
            match is_done(&nodes_of(cluster)?) {
                true => Ok(()),
                false => command(cluster, Command::Ungroup, &[*group]).map(drop),
            }
        }
        Action::Spread(table) => spread(cluster, table),
        Action::Hold(node) => {
            if is_working(status(&nodes_of(cluster)?, *node)) {
                tell(cluster, Command::Hold, *node)?;
            }
            // Between its work and its wait the process is started anew. One that nobody started waits for nothing.
            wait(cluster, began, |nodes| match status(nodes, *node) {
                NOT_STARTED => true,
                NO_CONTACT => cluster.now() > began + HOLD_SECONDS,
                _ => false,
            })
        }
        Action::End(ends) => {
            for node in ends {
                if status(&nodes_of(cluster)?, *node) != NO_CONTACT {
                    tell(cluster, Command::Stop, *node)?;
                }
                wait(cluster, began, |nodes| status(nodes, *node) == NO_CONTACT)?;
            }
            Ok(())
        }
        Action::Start(node) => {
            match status(&nodes_of(cluster)?, *node) {
                STARTED | STARTING => {}
                NOT_STARTED => drop(command(cluster, Command::Start, &[*node])?),
                _ => {
                    return Err(refused(format!(
                        "nothing runs as data node {node}: start its process, ndbmtd --ndb-nodeid={node}"
                    )));
                }
            }
            wait(cluster, began, |nodes| status(nodes, *node) == STARTED)
        }
        Action::Backup => command(cluster, Command::Backup, &[]).map(drop),
    }
}

/// Status of nodes, as the management server counts them.
pub(super) const NO_CONTACT: i32 = 1;
const NOT_STARTED: i32 = 2;
const STARTING: i32 = 3;
const SHUTTING_DOWN: i32 = 5;
const RESTARTING: i32 = 6;

fn is_working(status: i32) -> bool {
    !matches!(status, NO_CONTACT | NOT_STARTED)
}

fn status(nodes: &[Node], id: i32) -> i32 {
    nodes.iter().find(|node| node.id == id).map_or(NO_CONTACT, |node| node.status)
}

fn word(error: NdbError) -> Error {
    error.word()
}

/// The nodes; a management server may be away for a while.
fn nodes_of(cluster: &dyn Cluster) -> Result<Vec<Node>> {
    let until = cluster.now() + AWAY_SECONDS;
    loop {
        match cluster.nodes() {
            Ok(nodes) => return Ok(nodes),
            Err(error) if cluster.now() >= until => return Err(error.word()),
            Err(_) => cluster.pause(LOOK)?,
        }
    }
}

fn command(cluster: &dyn Cluster, what: Command, nodes: &[i32]) -> Result<i32> {
    cluster.command(what, nodes).map_err(word)
}

/// Tells a node to end its work, or to do it anew. One that refuses because it was told before a crash is on its way, which its status shows a
/// little later.
fn tell(cluster: &dyn Cluster, what: Command, node: i32) -> Result<()> {
    const LOOKS: u32 = 40;
    let before = status(&nodes_of(cluster)?, node);
    if matches!(before, SHUTTING_DOWN | RESTARTING) {
        return Ok(());
    }
    let Err(error) = cluster.command(what, &[node]) else { return Ok(()) };
    for _ in 0..LOOKS {
        cluster.pause(LOOK)?;
        if status(&nodes_of(cluster)?, node) != before {
            return Ok(());
        }
    }
    Err(error.word())
}

fn wait(cluster: &dyn Cluster, began: u64, is_done: impl Fn(&[Node]) -> bool) -> Result<()> {
    loop {
        if is_done(&nodes_of(cluster)?) {
            return Ok(());
        }
        if cluster.now() > began + START_SECONDS {
            return Err(refused("a data node did not do what it was told within an hour"));
        }
        cluster.pause(LOOK)?;
    }
}

/// Whether the configuration is as the step wants it; changes it otherwise, where `is_changing`.
fn is_configured(configuration: &mut Configuration, action: &Action) -> Result<bool> {
    let old = configuration.clone();
    match action {
        Action::Configure(values) => {
            for (key, value) in values {
                let parameter = parameters::by_key(*key)
                    .ok_or_else(|| refused(format!("parameter {key} is not known")))?;
                configuration.set(parameter, *value);
            }
        }
        Action::AddNodes(nodes) => {
            let there: Vec<i32> = old.addresses().into_iter().map(|(id, ..)| id).collect();
            for node in nodes.iter().filter(|node| !there.contains(&node.id)) {
                if !configuration.add(node) {
                    return Err(refused("the cluster has no data node to go by"));
                }
            }
        }
        Action::RemoveNodes(nodes) => nodes.iter().for_each(|node| configuration.remove(*node)),
        Action::Restart { .. }
        | Action::Await { .. }
        | Action::Group(_)
        | Action::Ungroup { .. }
        | Action::Spread(_)
        | Action::Hold(_)
        | Action::End(_)
        | Action::Start(_)
        | Action::Backup => {}
    }
    Ok(*configuration == old)
}

fn configure(cluster: &dyn Cluster, action: &Action) -> Result<()> {
    let mut configuration = cluster.configuration().map_err(word)?;
    match is_configured(&mut configuration, action)? {
        true => Ok(()),
        false => cluster.configure(&configuration).map_err(word),
    }
}

/// Whether a crash left nothing of the first step of a change, so that the whole of it never was.
pub(super) fn left_nothing(cluster: &dyn Cluster, first: &Action) -> Result<bool> {
    let is_configuration =
        matches!(first, Action::Configure(_) | Action::AddNodes(_) | Action::RemoveNodes(_));
    if !is_configuration {
        return Ok(false);
    }
    let until = cluster.now() + START_SECONDS;
    loop {
        match cluster.configuration() {
            Ok(mut configuration) => {
                return Ok(!is_configured(&mut configuration, first)?);
            }
            Err(error) if cluster.now() >= until => return Err(error.word()),
            Err(_) => cluster.pause(LOOK)?,
        }
    }
}

/// A node that began after the step did, with the newest configuration, was restarted.
fn restart(cluster: &dyn Cluster, id: i32, is_initial: bool, began: u64) -> Result<()> {
    let what = if is_initial { Command::RestartInitial } else { Command::Restart };
    let mut is_told = false;
    loop {
        let nodes = nodes_of(cluster)?;
        match status(&nodes, id) {
            STARTED => {
                let configuration = cluster.configuration().ok();
                let generation = configuration.as_ref().map_or(0, Configuration::generation);
                let added = configuration.map(|c| c.without_group()).unwrap_or_default();
                if let Some(age) = cluster.ages().get(&id) {
                    let elapsed = cluster.now().saturating_sub(began);
                    let is_fresh = age.uptime <= elapsed && age.generation == generation;
                    if is_fresh {
                        return Ok(());
                    }
                    // Not while a partner is down: nobody would have their rows.
                    let has_partners = nodes.iter().all(|node| {
                        let is_working = node.id == id || node.kind != 0 || node.status == STARTED;
                        is_working || added.contains(&node.id) && !is_grouped(node)
                    });
                    if !is_told && has_partners && generation > 0 {
                        tell(cluster, what, id)?;
                        is_told = true;
                    }
                }
            }
            NOT_STARTED if !is_told => {
                command(cluster, Command::Start, &[id])?;
                is_told = true;
            }
            _ => {}
        }
        if cluster.now() > began + START_SECONDS {
            return Err(refused(format!("data node {id} did not come up within an hour")));
        }
        cluster.pause(LOOK)?;
    }
}

fn group(cluster: &dyn Cluster, members: &[i32], began: u64) -> Result<()> {
    let is_done =
        |nodes: &[Node]| nodes.iter().filter(|node| members.contains(&node.id)).all(is_grouped);
    if !is_done(&nodes_of(cluster)?) {
        command(cluster, Command::Group, members)?;
    }
    wait(cluster, began, is_done)?;
    // Also when a crash came in between: it may have connected before the nodes were there.
    cluster.renew()
}

fn spread(cluster: &dyn Cluster, table: &str) -> Result<()> {
    const TRIES: u32 = 200;
    let mut tries = 0;
    loop {
        match cluster.spread(table) {
            Ok(()) => return Ok(()),
            // It was dropped meanwhile.
            Err(error) if error.is_no_table() => return Ok(()),
            Err(error) if tries == TRIES || !error.is_temporary() && !error.is_cut_off() => {
                return Err(error.word());
            }
            Err(_) => {}
        }
        tries += 1;
        cluster.pause(LOOK)?;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::{Cell, RefCell};

    use super::super::configuration::tests::example;
    use super::super::configuration::{NO_GROUP, NewNode};
    use super::*;

    /// A cluster of nodes 2 and 3 whose time passes with each look, and that can die before any call.
    struct Model {
        configuration: RefCell<Configuration>,
        /// Of a data node: status, group, start of its process, generation, end of what it does.
        nodes: RefCell<HashMap<i32, (i32, i32, u64, u64, u64)>>,
        now: Cell<u64>,
        calls_left: Cell<u32>,
        commands: RefCell<Vec<(Command, Vec<i32>)>>,
        spread: RefCell<Vec<String>>,
        renewals: Cell<u32>,
    }

    impl Model {
        fn new() -> Model {
            Model {
                configuration: RefCell::new(example()),
                nodes: RefCell::new(HashMap::from([
                    (2, (STARTED, 0, 0, 1, 0)),
                    (3, (STARTED, 0, 0, 1, 0)),
                ])),
                now: Cell::new(1_000),
                calls_left: Cell::new(u32::MAX),
                commands: RefCell::default(),
                spread: RefCell::default(),
                renewals: Cell::default(),
            }
        }

        fn call(&self) -> Result<(), NdbError> {
            let left = self.calls_left.get();
            if left == 0 {
                return Err(NdbError {
                    code: 1,
                    status: 2,
                    is_aborted: false,
                    text: "crash".into(),
                });
            }
            self.calls_left.set(left - 1);
            Ok(())
        }

        fn settle(&self) {
            let generation = self.configuration.borrow().generation();
            for (status, _, began, runs, end) in self.nodes.borrow_mut().values_mut() {
                if *status == STARTING && self.now.get() >= *end {
                    (*status, *began, *runs) = (STARTED, *end - 3, generation);
                }
            }
        }
    }

    impl Cluster for Model {
        fn nodes(&self) -> Result<Vec<Node>, NdbError> {
            self.call()?;
            self.settle();
            let node = |(id, (status, group, ..)): (&i32, &(i32, i32, u64, u64, u64))| Node {
                id: *id,
                kind: 0,
                status: *status,
                group: *group,
                version: 0,
                start_phase: 0,
                address: String::new(),
            };
            Ok(self.nodes.borrow().iter().map(node).collect())
        }

        fn configuration(&self) -> Result<Configuration, NdbError> {
            self.call()?;
            Ok(self.configuration.borrow().clone())
        }

        fn configure(&self, configuration: &Configuration) -> Result<(), NdbError> {
            self.call()?;
            let mut next = configuration.clone();
            next.count_change();
            for (id, ..) in next.addresses() {
                // Somebody starts what is new.
                let end = self.now.get() + 10;
                self.nodes.borrow_mut().entry(id).or_insert((
                    STARTING,
                    NO_GROUP as i32,
                    end,
                    0,
                    end,
                ));
            }
            *self.configuration.borrow_mut() = next;
            Ok(())
        }

        fn command(&self, command: Command, nodes: &[i32]) -> Result<i32, NdbError> {
            self.call()?;
            self.commands.borrow_mut().push((command, nodes.to_vec()));
            let mut all = self.nodes.borrow_mut();
            for id in nodes {
                let Some(node) = all.get_mut(id) else { continue };
                match command {
                    Command::Restart | Command::RestartInitial | Command::Start => {
                        (node.0, node.4) = (STARTING, self.now.get() + 20);
                    }
                    Command::Hold => node.0 = NOT_STARTED,
                    Command::Stop => node.0 = NO_CONTACT,
                    Command::Group => node.1 = 1,
                    Command::Backup | Command::Ungroup => {}
                }
            }
            let started = all.values().filter(|node| node.0 == STARTED && node.1 == 0).count();
            assert!(started > 0, "nobody has the rows of group 0");
            Ok(0)
        }

        fn ages(&self) -> HashMap<i32, Age> {
            let age = |(id, node): (&i32, &(i32, i32, u64, u64, u64))| {
                (*id, Age { uptime: self.now.get() - node.2, generation: node.3 })
            };
            self.nodes.borrow().iter().filter(|(_, node)| node.0 == STARTED).map(age).collect()
        }

        fn spread(&self, table: &str) -> Result<(), NdbError> {
            self.call()?;
            self.spread.borrow_mut().push(table.to_owned());
            Ok(())
        }

        fn renew(&self) -> Result<()> {
            self.call().map_err(word)?;
            self.renewals.set(self.renewals.get() + 1);
            Ok(())
        }

        fn now(&self) -> u64 {
            self.now.get()
        }

        fn pause(&self, _: Duration) -> Result<()> {
            self.now.set(self.now.get() + 1);
            self.call().map_err(word)
        }
    }

    fn steps() -> Vec<Action> {
        let node =
            |id| NewNode { id, host: "two".into(), port: 7_000 + id as u32, directory: None };
        let restart = |node| Action::Restart { node, is_initial: false };
        let joins = |node| Action::Await { node, host: "two".into() };
        vec![
            Action::Configure(vec![(112, 1 << 27)]),
            Action::AddNodes(vec![node(4), node(5)]),
            restart(2),
            restart(3),
            joins(4),
            joins(5),
            Action::Group(vec![4, 5]),
            Action::Spread("t1".into()),
            Action::Hold(3),
            Action::Start(3),
        ]
    }

    fn restarts(model: &Model) -> usize {
        model.commands.borrow().iter().filter(|(command, _)| *command == Command::Restart).count()
    }

    fn check_end(model: &Model) {
        model.settle();
        let nodes = model.nodes.borrow();
        assert!(nodes.values().all(|node| node.0 == STARTED), "{nodes:?}");
        assert_eq!((nodes[&4].1, nodes[&5].1, nodes.len()), (1, 1, 4));
        assert_eq!(model.renewals.get(), 1, "this server knows the new nodes");
        assert!(nodes.values().all(|node| node.3 == model.configuration.borrow().generation()));
        assert_eq!(model.configuration.borrow().addresses().len(), 4);
    }

    #[test]
    fn a_crash_before_any_call_does_no_harm() {
        let whole = Model::new();
        let (mut calls, limit) = (0, 1_000_000);
        whole.calls_left.set(limit);
        for action in steps() {
            run(&whole, &action, whole.now()).expect("a step");
        }
        calls += limit - whole.calls_left.get();
        check_end(&whole);
        assert_eq!(restarts(&whole), 2);
        for crash in 0..calls {
            let model = Model::new();
            model.calls_left.set(crash);
            let mut is_crashed = false;
            for action in steps() {
                let began = model.now();
                if run(&model, &action, began).is_err() {
                    assert!(!is_crashed, "it crashes once");
                    is_crashed = true;
                    // The server comes back a little later, and goes on with this step.
                    model.calls_left.set(u32::MAX);
                    model.now.set(model.now() + 7);
                    run(&model, &action, began).expect("a step that is begun again");
                }
            }
            check_end(&model);
            assert_eq!(restarts(&model), 2, "crash before call {crash}: no node restarts twice");
        }
    }

    #[test]
    fn what_left_nothing_is_seen() {
        let model = Model::new();
        let first = Action::Configure(vec![(112, 1 << 27)]);
        assert!(left_nothing(&model, &first).expect("an answer"));
        run(&model, &first, model.now()).expect("a step");
        assert!(!left_nothing(&model, &first).expect("an answer"));
        assert!(!left_nothing(&model, &Action::Backup).expect("an answer"));
    }

    #[test]
    fn nothing_restarts_while_a_partner_is_down() {
        let model = Model::new();
        run(&model, &Action::Hold(3), model.now()).expect("a step");
        model.calls_left.set(100);
        let restart = Action::Restart { node: 2, is_initial: false };
        assert!(
            run(&model, &restart, model.now()).is_err(),
            "it waits until the calls are used up"
        );
        assert_eq!(restarts(&model), 0);
        model.calls_left.set(u32::MAX);
        run(&model, &Action::Start(3), model.now()).expect("a step");
        run(&model, &restart, model.now()).expect("a step");
        assert_eq!(restarts(&model), 1);
    }
}
