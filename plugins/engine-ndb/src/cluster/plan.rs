//! The steps of a change.

use std::collections::HashMap;

use errors::{Error, ErrorCode, Result, err};
use plugin_api::ClusterStep;

use super::configuration::{Configuration, NewNode};
use super::parameters::{self, Restart};
use super::statement::{Address, Change};
use crate::shim::Node;

/// Between the fields of a stored action.
const FIELD: char = '\t';

/// What a step does. Each can be done twice, or finds that it was done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Action {
    /// The configuration gets values: parameters by number.
    Configure(Vec<(u32, u64)>),
    AddNodes(Vec<NewNode>),
    RemoveNodes(Vec<i32>),
    Restart {
        node: i32,
        is_initial: bool,
    },
    /// A process that somebody starts on its host joins.
    Await {
        node: i32,
        host: String,
    },
    /// Nodes become a node group.
    Group(Vec<i32>),
    /// A node group is no more; its nodes.
    Ungroup {
        group: i32,
        nodes: Vec<i32>,
    },
    /// A table gets a share on every node group.
    Spread(String),
    /// A node ends its work, and its process waits.
    Hold(i32),
    /// Processes end.
    End(Vec<i32>),
    Start(i32),
    Backup,
}

/// A step.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Step {
    pub(super) action: Action,
    pub(super) is_online: bool,
    pub(super) seconds: f64,
}

/// What a plan goes by.
pub(super) struct Facts {
    pub(super) nodes: Vec<Node>,
    pub(super) configuration: Configuration,
    /// Bytes of DataMemory that are used, on the fullest node.
    pub(super) used: u64,
    /// The tables of this server with their rows.
    pub(super) tables: Vec<(String, u64)>,
    /// How long steps took: the node, or 0, and the word of the action.
    pub(super) history: HashMap<(i32, String), f64>,
}

/// An error in our own words, in the form of the cluster's.
pub(super) fn refused(why: impl std::fmt::Display) -> Error {
    Error::with(ErrorCode::GET_ERRMSG, &[&0, &why, &"NDBCLUSTER"])
}

fn joined<T: ToString>(items: &[T], between: &str) -> String {
    items.iter().map(T::to_string).collect::<Vec<_>>().join(between)
}

fn numbers(text: &str) -> Option<Vec<i32>> {
    text.split(',').map(|number| number.parse().ok()).collect()
}

impl Action {
    /// The word under which it is stored.
    pub(super) fn word(&self) -> &'static str {
        match self {
            Action::Configure(_) => "configure",
            Action::AddNodes(_) => "add nodes",
            Action::RemoveNodes(_) => "remove nodes",
            Action::Restart { is_initial: false, .. } => "restart",
            Action::Restart { is_initial: true, .. } => "initial restart",
            Action::Await { .. } => "await",
            Action::Group(_) => "group",
            Action::Ungroup { .. } => "ungroup",
            Action::Spread(_) => "spread",
            Action::Hold(_) => "hold",
            Action::End(_) => "end",
            Action::Start(_) => "start",
            Action::Backup => "backup",
        }
    }

    /// The node that it is about; 0: none, or several.
    pub(super) fn node(&self) -> i32 {
        match self {
            Action::Restart { node, .. }
            | Action::Await { node, .. }
            | Action::Hold(node)
            | Action::Start(node) => *node,
            Action::End(nodes) if nodes.len() == 1 => nodes[0],
            Action::Configure(_)
            | Action::AddNodes(_)
            | Action::RemoveNodes(_)
            | Action::Group(_)
            | Action::Ungroup { .. }
            | Action::Spread(_)
            | Action::End(_)
            | Action::Backup => 0,
        }
    }

    /// What is stored beside the word.
    pub(super) fn arguments(&self) -> String {
        match self {
            Action::Configure(values) => {
                let values: Vec<String> =
                    values.iter().map(|(key, value)| format!("{key}={value}")).collect();
                joined(&values, ",")
            }
            Action::AddNodes(nodes) => {
                let fields = nodes.iter().flat_map(|node| {
                    let (id, port) = (node.id.to_string(), node.port.to_string());
                    [id, node.host.clone(), port, node.directory.clone().unwrap_or_default()]
                });
                joined(&fields.collect::<Vec<_>>(), &FIELD.to_string())
            }
            Action::RemoveNodes(nodes) | Action::Group(nodes) | Action::End(nodes) => {
                joined(nodes, ",")
            }
            Action::Restart { node, .. } | Action::Hold(node) | Action::Start(node) => {
                node.to_string()
            }
            Action::Await { node, host } => format!("{node}{FIELD}{host}"),
            Action::Ungroup { group, nodes } => format!("{group}{FIELD}{}", joined(nodes, ",")),
            Action::Spread(table) => table.clone(),
            Action::Backup => String::new(),
        }
    }

    /// The action that was stored.
    pub(super) fn stored(word: &str, arguments: &str) -> Option<Action> {
        let fields: Vec<&str> = arguments.split(FIELD).collect();
        Some(match word {
            "configure" => {
                let value = |text: &str| {
                    let (key, value) = text.split_once('=')?;
                    Some((key.parse().ok()?, value.parse().ok()?))
                };
                Action::Configure(arguments.split(',').map(value).collect::<Option<_>>()?)
            }
            "add nodes" => {
                let node = |fields: &[&str]| {
                    let [id, host, port, directory] = fields else { return None };
                    Some(NewNode {
                        id: id.parse().ok()?,
                        host: (*host).to_owned(),
                        port: port.parse().ok()?,
                        directory: (!directory.is_empty()).then(|| (*directory).to_owned()),
                    })
                };
                Action::AddNodes(fields.chunks(4).map(node).collect::<Option<_>>()?)
            }
            "remove nodes" => Action::RemoveNodes(numbers(arguments)?),
            "restart" | "initial restart" => Action::Restart {
                node: arguments.parse().ok()?,
                is_initial: word == "initial restart",
            },
            "await" => Action::Await {
                node: fields.first()?.parse().ok()?,
                host: (*fields.get(1)?).to_owned(),
            },
            "group" => Action::Group(numbers(arguments)?),
            "ungroup" => Action::Ungroup {
                group: fields.first()?.parse().ok()?,
                nodes: numbers(fields.get(1)?)?,
            },
            "spread" => Action::Spread(arguments.to_owned()),
            "hold" => Action::Hold(arguments.parse().ok()?),
            "end" => Action::End(numbers(arguments)?),
            "start" => Action::Start(arguments.parse().ok()?),
            "backup" => Action::Backup,
            _ => return None,
        })
    }

    /// In words.
    pub(super) fn shown(&self) -> String {
        match self {
            Action::Configure(values) => {
                let shown = |(key, value): &(u32, u64)| match parameters::by_key(*key) {
                    Some(parameter) => format!("{} = {}", parameter.name, parameter.shown(*value)),
                    None => format!("parameter {key} = {value}"),
                };
                let values: Vec<String> = values.iter().map(shown).collect();
                format!("the management server takes {}", joined(&values, ", "))
            }
            Action::AddNodes(nodes) => {
                let shown = |node: &NewNode| format!("{} at {}:{}", node.id, node.host, node.port);
                let nodes: Vec<String> = nodes.iter().map(shown).collect();
                format!("the management server takes data nodes {}", joined(&nodes, ", "))
            }
            Action::RemoveNodes(nodes) => {
                format!("the management server forgets data nodes {}", joined(nodes, ", "))
            }
            Action::Restart { is_initial: false, .. } => "restart".to_owned(),
            Action::Restart { is_initial: true, .. } => {
                "restart without its files: it copies its rows from its partner".to_owned()
            }
            Action::Await { node, host } => format!(
                "joins, when somebody starts it on {host}: ndbmtd --ndb-nodeid={node} --initial"
            ),
            Action::Group(nodes) => format!("nodes {} become a node group", joined(nodes, ", ")),
            Action::Ungroup { group, .. } => format!("node group {group} is dropped"),
            Action::Spread(table) => format!("table {table} gets a share on every node group"),
            Action::Hold(_) => "ends its work; its process waits for START NODE".to_owned(),
            Action::End(nodes) => format!("the processes of {} end", joined(nodes, ", ")),
            Action::Start(_) => "starts its work".to_owned(),
            Action::Backup => "all data nodes write a backup, each on its own disk".to_owned(),
        }
    }
}

impl Step {
    /// As EXPLAIN shows it.
    pub(super) fn explained(&self) -> ClusterStep {
        let node = self.action.node();
        ClusterStep {
            node: (node != 0).then(|| node.to_string()),
            action: self.action.shown(),
            is_online: self.is_online,
            seconds: self.seconds,
        }
    }
}

/// Kind and status of a node, as the management server counts them.
pub(super) const DATA: i32 = 0;
pub(super) const STARTED: i32 = 4;

/// Whether the node is in a node group.
pub(super) fn is_grouped(node: &Node) -> bool {
    (0..super::configuration::NO_GROUP as i32).contains(&node.group)
}

impl Facts {
    fn data_nodes(&self) -> impl Iterator<Item = &Node> {
        self.nodes.iter().filter(|node| node.kind == DATA)
    }

    fn data_node(&self, id: i32) -> Result<&Node> {
        let found = self.data_nodes().find(|node| node.id == id);
        found.ok_or_else(|| refused(format!("{id} is no data node of this cluster")))
    }

    /// Data nodes that are at work, or an error for one that should be and is not.
    fn working(&self) -> Result<Vec<i32>> {
        let added = self.configuration.without_group();
        let mut working = Vec::new();
        for node in self.data_nodes() {
            if node.status == STARTED {
                working.push(node.id);
            } else if is_grouped(node) || !added.contains(&node.id) {
                return Err(refused(format!("data node {} is not started", node.id)));
            }
        }
        Ok(working)
    }

    /// How long a step takes: as the last time, or by rule.
    fn step(&self, action: Action, is_online: bool) -> Step {
        // Seconds for each byte: a node reads or copies its rows at some 100 MB a second.
        let copy = self.used as f64 / 1e8;
        let rule = match &action {
            Action::Configure(_) | Action::AddNodes(_) | Action::RemoveNodes(_) => 0.1,
            Action::Restart { .. } => 35.0 + copy,
            Action::Await { .. } | Action::Start(_) => 15.0 + copy,
            Action::Group(_) | Action::Ungroup { .. } => 0.1,
            Action::Spread(table) => {
                let rows = self.tables.iter().find(|(name, _)| name == table);
                0.5 + rows.map_or(0.0, |(_, rows)| *rows as f64 / 20_000.0)
            }
            Action::Hold(_) | Action::End(_) => 20.0,
            Action::Backup => 0.5 + copy,
        };
        let known = self.history.get(&(action.node(), action.word().to_owned())).copied();
        // Each table has its own size.
        let is_table = matches!(action, Action::Spread(_));
        let seconds = known.filter(|_| !is_table).unwrap_or(rule);
        Step { action, is_online, seconds }
    }

    /// One node after the other.
    fn rolling(&self, nodes: &[i32], is_initial: bool) -> Vec<Step> {
        // Without a partner nobody has its rows meanwhile.
        let is_online = self.configuration.replicas() > 1;
        let restart =
            |node: &i32| self.step(Action::Restart { node: *node, is_initial }, is_online);
        nodes.iter().map(restart).collect()
    }

    /// The steps of a change.
    ///
    /// # Errors
    /// The cluster cannot do it now.
    pub(super) fn plan(&self, change: &Change) -> Result<Vec<Step>> {
        match change {
            Change::Set(values) => {
                let is_initial =
                    values.iter().any(|(parameter, _)| parameter.restart == Restart::Initial);
                if is_initial && self.configuration.replicas() < 2 {
                    return Err(refused("a data node without a partner would lose its rows"));
                }
                for (parameter, value) in values {
                    if parameter.name == "DataMemory" && *value < self.used {
                        let wanted = parameter.shown(*value);
                        return Err(err!(
                            WRONG_VALUE_FOR_VAR,
                            "DataMemory",
                            format!("{wanted}: {} bytes are used", self.used)
                        ));
                    }
                }
                let values = values.iter().map(|(parameter, value)| (parameter.key, *value));
                let mut steps = vec![self.step(Action::Configure(values.collect()), true)];
                steps.extend(self.rolling(&self.working()?, is_initial));
                Ok(steps)
            }
            Change::Add(addresses) => self.plan_add(addresses),
            Change::Drop(nodes) => self.plan_drop(nodes),
            Change::Restart(nodes) => {
                let working = self.working()?;
                if let Some(other) = nodes.iter().find(|node| !working.contains(node)) {
                    self.data_node(*other)?;
                    return Err(refused(format!("data node {other} is not started")));
                }
                Ok(self.rolling(if nodes.is_empty() { &working } else { nodes }, false))
            }
            Change::Stop(node) => {
                let stopped = self.data_node(*node)?;
                let has_partner = self.data_nodes().any(|other| {
                    other.id != *node && other.group == stopped.group && other.status == STARTED
                });
                if is_grouped(stopped) && stopped.status == STARTED && !has_partner {
                    return Err(refused(format!(
                        "data node {node} is the last of its node group: nobody else has its rows"
                    )));
                }
                Ok(vec![self.step(Action::Hold(*node), true)])
            }
            Change::Start(node) => {
                self.data_node(*node)?;
                Ok(vec![self.step(Action::Start(*node), true)])
            }
            Change::Backup => {
                self.working()?;
                Ok(vec![self.step(Action::Backup, true)])
            }
        }
    }

    /// Nodes that are not in the configuration yet, and those of it that are in no group, become groups as far as they go.
    fn plan_add(&self, addresses: &[Address]) -> Result<Vec<Step>> {
        let known = self.configuration.addresses();
        let mut free = self.configuration.free_ids();
        let mut new = Vec::new();
        let mut joining: Vec<(i32, String)> = known
            .iter()
            .filter(|(id, ..)| self.data_nodes().any(|node| node.id == *id && !is_grouped(node)))
            .map(|(id, host, _)| (*id, host.clone()))
            .collect();
        for Address { host, port, directory } in addresses {
            let there = known.iter().find(|(_, at, on)| at == host && *on == u64::from(*port));
            if let Some((id, ..)) = there {
                match joining.iter().any(|(joins, _)| joins == id) {
                    true => continue,
                    false => {
                        return Err(refused(format!("{host}:{port} is data node {id} already")));
                    }
                }
            }
            let id = free.next().ok_or_else(|| refused("a cluster has at most 144 data nodes"))?;
            joining.push((id, host.clone()));
            let (host, port, directory) = (host.clone(), *port, directory.clone());
            new.push(NewNode { id, host, port, directory });
        }
        let mut steps = Vec::new();
        if !new.is_empty() {
            steps.push(self.step(Action::AddNodes(new), true));
            steps.extend(self.rolling(&self.working()?, false));
        }
        for (node, host) in &joining {
            steps.push(self.step(Action::Await { node: *node, host: host.clone() }, true));
        }
        let ids: Vec<i32> = joining.iter().map(|(id, _)| *id).collect();
        let groups = ids.chunks_exact(self.configuration.replicas());
        // The rest waits for partners.
        let is_spread = groups.len() > 0;
        steps.extend(groups.map(|group| self.step(Action::Group(group.to_vec()), true)));
        if is_spread {
            let tables = self.tables.iter();
            steps.extend(tables.map(|(name, _)| self.step(Action::Spread(name.clone()), true)));
        }
        Ok(steps)
    }

    fn plan_drop(&self, nodes: &[i32]) -> Result<Vec<Step>> {
        let mut groups: Vec<i32> = Vec::new();
        for id in nodes {
            let node = self.data_node(*id)?;
            if is_grouped(node) && !groups.contains(&node.group) {
                groups.push(node.group);
            }
        }
        let mut steps = Vec::new();
        for group in groups {
            let members: Vec<i32> =
                self.data_nodes().filter(|node| node.group == group).map(|node| node.id).collect();
            if let Some(left) = members.iter().find(|id| !nodes.contains(id)) {
                return Err(refused(format!(
                    "data node {left} of the same node group would be left without partner"
                )));
            }
            steps.push(self.step(Action::Ungroup { group, nodes: members }, true));
        }
        let others: Vec<i32> =
            self.working()?.into_iter().filter(|node| !nodes.contains(node)).collect();
        if others.is_empty() {
            return Err(refused("no data node would be left"));
        }
        steps.push(self.step(Action::End(nodes.to_vec()), true));
        steps.push(self.step(Action::RemoveNodes(nodes.to_vec()), true));
        steps.extend(self.rolling(&others, false));
        Ok(steps)
    }
}

#[cfg(test)]
mod tests {
    use super::super::configuration::tests::example;
    use super::super::statement::parse;
    use super::*;

    fn node(id: i32, kind: i32, status: i32, group: i32) -> Node {
        Node { id, kind, status, group, version: 0, start_phase: 0, address: String::new() }
    }

    fn facts() -> Facts {
        Facts {
            nodes: vec![
                node(1, 2, 9, 0),
                node(2, 0, STARTED, 0),
                node(3, 0, STARTED, 0),
                node(50, 1, 9, 0),
            ],
            configuration: example(),
            used: 1 << 25,
            tables: vec![("t1".into(), 40_000)],
            history: HashMap::from([((2, "restart".into()), 12.0)]),
        }
    }

    fn plan(text: &str) -> Result<Vec<Action>> {
        let steps = facts().plan(&parse(text)?)?;
        Ok(steps.into_iter().map(|step| step.action).collect())
    }

    #[test]
    fn each_change_has_its_steps() {
        let restart = |node| Action::Restart { node, is_initial: false };
        let set = plan("SET DataMemory = 128M").expect("a plan");
        assert_eq!(set, [Action::Configure(vec![(112, 128 << 20)]), restart(2), restart(3)]);
        let add = plan("ADD NODE 'h:1', 'h:2' DATADIR '/x'").expect("a plan");
        let words: Vec<&str> = add.iter().map(Action::word).collect();
        assert_eq!(words, ["add nodes", "restart", "restart", "await", "await", "group", "spread"]);
        let one = plan("ADD NODE 'h:1'").expect("a plan");
        assert!(
            !one.iter().any(|action| matches!(action, Action::Group(_))),
            "it waits for a partner"
        );
        assert_eq!(plan("STOP NODE 3").expect("a plan"), [Action::Hold(3)]);
        assert_eq!(plan("BACKUP").expect("a plan"), [Action::Backup]);
        for action in set.iter().chain(&add) {
            assert_eq!(Action::stored(action.word(), &action.arguments()).as_ref(), Some(action));
        }
    }

    #[test]
    fn what_would_harm_is_refused() {
        for text in [
            "SET DataMemory = 16M",
            "ADD NODE 'one:1002'",
            "DROP NODE 3",
            "DROP NODE 2, 3",
            "RESTART NODE 50",
            "STOP NODE 1",
            "START NODE 9",
        ] {
            assert!(plan(text).is_err(), "{text}");
        }
        let mut facts = facts();
        facts.nodes[2].status = 1;
        for text in ["STOP NODE 2", "RESTART", "SET DataMemory = 128M", "BACKUP"] {
            assert!(facts.plan(&parse(text).expect("a change")).is_err(), "{text}");
        }
    }

    #[test]
    fn a_step_takes_as_long_as_last_time() {
        let steps = facts().plan(&parse("RESTART").expect("a change")).expect("a plan");
        assert_eq!(steps[0].seconds, 12.0);
        assert!(steps[1].seconds > 35.0);
    }
}
