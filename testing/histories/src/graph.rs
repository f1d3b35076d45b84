//! A directed graph with kinds of edges; cycles through allowed kinds only. Independent of transactions.

/// Why one node comes before another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The second overwrote the first.
    WriteWrite,
    /// The second read a value that the first wrote.
    WriteRead,
    /// The second overwrote a value that the first read.
    ReadWrite,
    /// The first had ended when the second began.
    Time,
    /// From a transaction's snapshot to its end.
    Within,
}

impl Why {
    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// A set of kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kinds(u8);

impl Kinds {
    /// These kinds.
    pub fn of(kinds: &[Why]) -> Kinds {
        Kinds(kinds.iter().fold(0, |bits, why| bits | why.bit()))
    }

    fn has(self, why: Why) -> bool {
        self.0 & why.bit() != 0
    }
}

/// An edge, with a label for the reader.
#[derive(Clone, Copy, Debug)]
pub struct Edge {
    /// From.
    pub from: u32,
    /// To.
    pub to: u32,
    /// Why.
    pub why: Why,
    /// The list that it is about.
    pub key: u32,
}

/// Edges by their first node.
pub struct Graph {
    first: Vec<u32>,
    edges: Vec<Edge>,
}

const NONE: u32 = u32::MAX;

impl Graph {
    /// A graph of `nodes` nodes.
    pub fn new(nodes: usize, mut edges: Vec<Edge>) -> Graph {
        edges.sort_by_key(|edge| edge.from);
        let mut first = vec![0; nodes + 1];
        edges.iter().for_each(|edge| first[edge.from as usize + 1] += 1);
        (0..nodes).for_each(|node| first[node + 1] += first[node]);
        Graph { first, edges }
    }

    fn nodes(&self) -> usize {
        self.first.len() - 1
    }

    fn from(&self, node: u32) -> std::ops::Range<usize> {
        self.first[node as usize] as usize..self.first[node as usize + 1] as usize
    }

    /// Component of each node (Tarjan's, without recursion): nodes in one component reach each other through `kinds`.
    fn components(&self, kinds: Kinds) -> Vec<u32> {
        let count = self.nodes();
        let (mut index, mut low) = (vec![NONE; count], vec![0; count]);
        let (mut component, mut on_stack) = (vec![NONE; count], vec![false; count]);
        let (mut stack, mut path): (Vec<u32>, Vec<(u32, usize)>) = (Vec::new(), Vec::new());
        let (mut next, mut components) = (0, 0);
        for root in 0..count as u32 {
            if index[root as usize] != NONE {
                continue;
            }
            path.push((root, self.from(root).start));
            while let Some((node, at)) = path.pop() {
                let this = node as usize;
                if index[this] == NONE {
                    (index[this], low[this]) = (next, next);
                    next += 1;
                    stack.push(node);
                    on_stack[this] = true;
                }
                let deeper = (at..self.from(node).end).find(|edge| {
                    let edge = &self.edges[*edge];
                    let to = edge.to as usize;
                    if kinds.has(edge.why) && index[to] != NONE && on_stack[to] {
                        low[this] = low[this].min(index[to]);
                    }
                    kinds.has(edge.why) && index[to] == NONE
                });
                if let Some(edge) = deeper {
                    let to = self.edges[edge].to;
                    path.push((node, edge + 1));
                    path.push((to, self.from(to).start));
                    continue;
                }
                if low[this] == index[this] {
                    while let Some(member) = stack.pop() {
                        on_stack[member as usize] = false;
                        component[member as usize] = components;
                        if member == node {
                            break;
                        }
                    }
                    components += 1;
                }
                if let Some((parent, _)) = path.last() {
                    low[*parent as usize] = low[*parent as usize].min(low[this]);
                }
            }
        }
        component
    }

    /// A shortest way from `start` to `goal` through `kinds` within a component.
    fn way(&self, start: u32, goal: u32, kinds: Kinds, component: &[u32]) -> Option<Vec<Edge>> {
        let here = component[start as usize];
        let mut came: std::collections::HashMap<u32, usize> = std::collections::HashMap::new();
        let mut queue = std::collections::VecDeque::from([start]);
        while let Some(node) = queue.pop_front() {
            if node == goal {
                let (mut edges, mut at) = (Vec::new(), goal);
                while at != start {
                    let edge = self.edges[came[&at]];
                    edges.push(edge);
                    at = edge.from;
                }
                edges.reverse();
                return Some(edges);
            }
            for at in self.from(node) {
                let edge = &self.edges[at];
                let inside = component[edge.to as usize] == here && edge.to != start;
                if kinds.has(edge.why) && inside && !came.contains_key(&edge.to) {
                    came.insert(edge.to, at);
                    queue.push_back(edge.to);
                }
            }
        }
        None
    }

    /// One cycle from each component that has one: made of `kinds`, closed by an edge of kind `closing`, the rest of it, where that
    /// is possible, of `rest` only.
    pub fn cycles(&self, kinds: Kinds, closing: Why, rest: Kinds) -> Vec<Vec<Edge>> {
        let component = self.components(kinds);
        let mut found: std::collections::BTreeMap<u32, Vec<Edge>> =
            std::collections::BTreeMap::new();
        for edge in &self.edges {
            let (from, to) = (component[edge.from as usize], component[edge.to as usize]);
            if edge.why != closing || from != to || found.contains_key(&from) {
                continue;
            }
            if let Some(mut way) = self.way(edge.to, edge.from, rest, &component) {
                way.push(*edge);
                found.insert(from, way);
            }
        }
        found.into_values().collect()
    }
}
