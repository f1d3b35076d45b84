//! The configuration of the cluster, as its management server keeps it, and changes of it.

use crate::shim::{Entry, Section};

use super::parameters::Parameter;

const KIND_SYSTEM: u32 = 1000;
const KIND_NODE: u32 = 2000;
const KIND_CONNECTION: u32 = 3000;
const DATA_NODE: u32 = 0;

const GENERATION: u32 = 2;
const NODE_ID: u32 = 3;
const HOST: u32 = 5;
const DIRECTORY: u32 = 7;
const REPLICAS: u32 = 101;
const NODE_GROUP: u32 = 185;
const SERVER_PORT: u32 = 635;
const CONNECTION_NODES: [u32; 2] = [400, 401];
const CONNECTION_HOSTS: [u32; 2] = [407, 408];
const CONNECTION_PORT: u32 = 406;
/// The end that listens.
const CONNECTION_SERVER: u32 = 410;

/// The group of a data node that is in none.
pub(super) const NO_GROUP: u32 = 65_536;
/// Numbers of data nodes.
const DATA_NODE_MAX: i32 = 144;

/// A data node that joins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewNode {
    pub(super) id: i32,
    pub(super) host: String,
    pub(super) port: u32,
    pub(super) directory: Option<String>,
}

/// All sections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Configuration(pub(super) Vec<Section>);

impl Section {
    fn number(&self, key: u32) -> Option<u64> {
        match self.entries.iter().find(|(at, _)| *at == key)?.1 {
            Entry::Number(number) => Some(u64::from(number)),
            Entry::Wide(number) => Some(number),
            Entry::Text(_) => None,
        }
    }

    fn text(&self, key: u32) -> Option<&str> {
        match &self.entries.iter().find(|(at, _)| *at == key)?.1 {
            Entry::Text(text) => Some(text),
            Entry::Number(_) | Entry::Wide(_) => None,
        }
    }

    fn put(&mut self, key: u32, entry: Entry) {
        match self.entries.iter_mut().find(|(at, _)| *at == key) {
            Some((_, old)) => *old = entry,
            None => {
                let at = self.entries.partition_point(|(at, _)| *at < key);
                self.entries.insert(at, (key, entry));
            }
        }
    }

    fn put_number(&mut self, key: u32, number: u32) {
        self.put(key, Entry::Number(number));
    }

    fn put_text(&mut self, key: u32, text: &str) {
        self.put(key, Entry::Text(text.to_owned()));
    }

    fn is_data_node(&self) -> bool {
        self.kind == KIND_NODE && self.ty == DATA_NODE
    }

    fn id(&self) -> i32 {
        self.number(NODE_ID).and_then(|id| i32::try_from(id).ok()).unwrap_or(0)
    }

    /// The nodes of a connection.
    fn ends(&self) -> [i32; 2] {
        CONNECTION_NODES.map(|key| self.number(key).map_or(0, |id| id as i32))
    }
}

impl Configuration {
    /// Counts the changes that there were.
    pub(super) fn generation(&self) -> u64 {
        let system = self.0.iter().find(|section| section.kind == KIND_SYSTEM);
        system.and_then(|section| section.number(GENERATION)).unwrap_or(0)
    }

    fn data_nodes(&self) -> impl Iterator<Item = &Section> {
        self.0.iter().filter(|section| section.is_data_node())
    }

    /// The number, host and port of each data node.
    pub(super) fn addresses(&self) -> Vec<(i32, String, u64)> {
        let shown = |node: &Section| {
            let host = node.text(HOST).unwrap_or_default().to_owned();
            (node.id(), host, node.number(SERVER_PORT).unwrap_or(0))
        };
        self.data_nodes().map(shown).collect()
    }

    /// The data nodes that were added without a node group.
    pub(super) fn without_group(&self) -> Vec<i32> {
        let added = |node: &&Section| node.number(NODE_GROUP) == Some(u64::from(NO_GROUP));
        self.data_nodes().filter(added).map(Section::id).collect()
    }

    /// The nodes that hold a row.
    pub(super) fn replicas(&self) -> usize {
        self.data_nodes().next().and_then(|node| node.number(REPLICAS)).unwrap_or(1) as usize
    }

    /// The numbers that new data nodes get.
    pub(super) fn free_ids(&self) -> impl Iterator<Item = i32> {
        let nodes = self.0.iter().filter(|section| section.kind == KIND_NODE);
        let used: Vec<i32> = nodes.map(Section::id).collect();
        let last = self.data_nodes().map(Section::id).max().unwrap_or(0);
        let all = (last + 1..=DATA_NODE_MAX).chain(1..=last);
        all.filter(move |id| !used.contains(id))
    }

    /// Gives every data node a value.
    pub(super) fn set(&mut self, parameter: &Parameter, value: u64) {
        for node in self.0.iter_mut().filter(|section| section.is_data_node()) {
            node.put(
                parameter.key,
                match parameter.is_wide {
                    true => Entry::Wide(value),
                    false => Entry::Number(value as u32),
                },
            );
        }
    }

    /// Adds a data node that is in no group, as the first one is, with its connections. False when there is none to go by.
    pub(super) fn add(&mut self, new: &NewNode) -> bool {
        let Some(model) = self.data_nodes().next().cloned() else { return false };
        let mut connections = Vec::new();
        for old in self.0.iter().filter(|section| section.kind == KIND_CONNECTION) {
            let ends = old.ends();
            let Some(end) = ends.iter().position(|id| *id == model.id()) else { continue };
            if self.data_nodes().any(|node| node.id() == ends[1 - end]) {
                continue;
            }
            let mut connection = old.clone();
            connection.put_number(CONNECTION_NODES[end], new.id as u32);
            connection.put_text(CONNECTION_HOSTS[end], &new.host);
            if old.number(CONNECTION_SERVER) == Some(model.id() as u64) {
                connection.put_number(CONNECTION_SERVER, new.id as u32);
                connection.put_number(CONNECTION_PORT, new.port);
            }
            connections.push(connection);
        }
        let Some(pattern) = self.0.iter().find(|section| section.kind == KIND_CONNECTION) else {
            return false;
        };
        for other in self.data_nodes() {
            let mut connection = pattern.clone();
            let host = other.text(HOST).unwrap_or_default();
            for (end, (id, host)) in [(other.id(), host), (new.id, &*new.host)].iter().enumerate() {
                connection.put_number(CONNECTION_NODES[end], *id as u32);
                connection.put_text(CONNECTION_HOSTS[end], host);
            }
            connection.put_number(CONNECTION_SERVER, other.id() as u32);
            connection.put_number(CONNECTION_PORT, other.number(SERVER_PORT).unwrap_or(0) as u32);
            connections.push(connection);
        }
        let mut node = model.clone();
        if let (Some(old), Some(directory)) = (model.text(DIRECTORY), &new.directory) {
            for (_, entry) in &mut node.entries {
                // The directories of files and backups, if nobody said otherwise.
                if *entry == Entry::Text(old.to_owned()) {
                    *entry = Entry::Text(directory.clone());
                }
            }
        }
        node.put_number(NODE_ID, new.id as u32);
        node.put_text(HOST, &new.host);
        node.put_number(SERVER_PORT, new.port);
        node.put_number(NODE_GROUP, NO_GROUP);
        let at = self.0.iter().rposition(Section::is_data_node).map_or(self.0.len(), |at| at + 1);
        self.0.insert(at, node);
        self.0.extend(connections);
        true
    }

    /// Takes out a data node with its connections.
    pub(super) fn remove(&mut self, id: i32) {
        self.0.retain(|section| match section.kind {
            KIND_NODE => section.id() != id,
            KIND_CONNECTION => !section.ends().contains(&id),
            _ => true,
        });
    }
}

#[cfg(test)]
impl Configuration {
    /// As a management server does when it takes a configuration.
    pub(super) fn count_change(&mut self) {
        let next = self.generation() as u32 + 1;
        let system = self.0.iter_mut().find(|section| section.kind == KIND_SYSTEM);
        system.expect("a system section").put_number(GENERATION, next);
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::parameters;
    use super::*;

    /// A management node 1, data nodes 2 and 3, and a client 50.
    pub(in super::super) fn example() -> Configuration {
        let section = |kind, ty, entries: &[(u32, u32)]| Section {
            kind,
            ty,
            entries: entries.iter().map(|(key, value)| (*key, Entry::Number(*value))).collect(),
        };
        let data = |id: u32| {
            let mut node = section(
                KIND_NODE,
                DATA_NODE,
                &[(NODE_ID, id), (REPLICAS, 2), (SERVER_PORT, 1000 + id)],
            );
            node.put_text(HOST, "one");
            node.put_text(DIRECTORY, "/d");
            node.put(112, Entry::Wide(1 << 26));
            node
        };
        let connection = |a: u32, b: u32, server: u32, port: u32| {
            let mut connection =
                section(KIND_CONNECTION, 0, &[(400, a), (401, b), (406, port), (410, server)]);
            connection.put_text(407, "one");
            connection.put_text(408, "one");
            connection
        };
        Configuration(vec![
            section(KIND_SYSTEM, KIND_SYSTEM, &[(GENERATION, 1)]),
            section(KIND_NODE, 2, &[(NODE_ID, 1)]),
            data(2),
            data(3),
            section(KIND_NODE, 1, &[(NODE_ID, 50)]),
            connection(1, 2, 1, 1000),
            connection(1, 3, 1, 1000),
            connection(2, 3, 2, 1002),
            connection(50, 2, 2, 1002),
            connection(50, 3, 3, 1003),
        ])
    }

    #[test]
    fn a_value_is_for_every_data_node() {
        let mut configuration = example();
        configuration.set(parameters::find("DataMemory").expect("a parameter"), 1 << 27);
        assert!(configuration.data_nodes().all(|node| node.number(112) == Some(1 << 27)));
        assert_eq!((configuration.generation(), configuration.replicas()), (1, 2));
    }

    #[test]
    fn new_nodes_reach_everybody() {
        let mut configuration = example();
        let ids: Vec<i32> = configuration.free_ids().take(2).collect();
        assert_eq!(ids, [4, 5]);
        for (id, port) in [(4, 7004), (5, 7005)] {
            let directory = Some(format!("/d{id}"));
            assert!(configuration.add(&NewNode { id, host: "two".into(), port, directory }));
        }
        assert_eq!(
            configuration.addresses()[2..],
            [(4, "two".into(), 7004), (5, "two".into(), 7005)]
        );
        let mut pairs: Vec<([i32; 2], u64, u64)> = configuration
            .0
            .iter()
            .filter(|section| section.kind == KIND_CONNECTION)
            .map(|c| {
                (
                    c.ends(),
                    c.number(CONNECTION_SERVER).expect("a server"),
                    c.number(CONNECTION_PORT).expect("a port"),
                )
            })
            .collect();
        pairs.sort();
        let new: Vec<_> = pairs
            .into_iter()
            .filter(|(ends, ..)| ends.iter().any(|id| *id == 4 || *id == 5))
            .collect();
        assert_eq!(
            new,
            [
                ([1, 4], 1, 1000),
                ([1, 5], 1, 1000),
                ([2, 4], 2, 1002),
                ([2, 5], 2, 1002),
                ([3, 4], 3, 1003),
                ([3, 5], 3, 1003),
                ([4, 5], 4, 7004),
                ([50, 4], 4, 7004),
                ([50, 5], 5, 7005),
            ]
        );
        let node = configuration.data_nodes().nth(2).expect("the third");
        assert_eq!((node.text(DIRECTORY), node.number(NODE_GROUP)), (Some("/d4"), Some(65_536)));
        configuration.remove(5);
        configuration.remove(4);
        assert_eq!(configuration, example());
    }
}
