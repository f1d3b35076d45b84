//! The nodes of a cluster, as its management server shows them.

/// What a node is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Data,
    Management,
    Client,
}

impl Kind {
    pub(super) fn word(self) -> &'static str {
        match self {
            Kind::Data => "data",
            Kind::Management => "management",
            Kind::Client => "client",
        }
    }
}

/// What it does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is not connected.
    Away,
    Starting,
    Up,
}

impl State {
    pub(super) fn word(self) -> &'static str {
        match self {
            State::Away => "away",
            State::Starting => "starting",
            State::Up => "up",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) id: u32,
    pub(super) kind: Kind,
    pub(super) state: State,
    pub(super) group: Option<u32>,
    /// Where it is, or may come from.
    pub(super) host: String,
}

/// Reads the answer to SHOW: a line `[kind] ..` before the nodes of each kind, `id=N @HOST (..)` for one that is there, and
/// `id=N (not connected, accepting connect from HOST)` for one that is not.
pub(super) fn read(shown: &str) -> Vec<Node> {
    let mut kind = None;
    let mut nodes = Vec::new();
    for line in shown.lines().map(str::trim) {
        if line.starts_with('[') {
            kind = match line {
                line if line.contains("(NDB)") => Some(Kind::Data),
                line if line.contains("(MGM)") => Some(Kind::Management),
                line if line.contains("(API)") => Some(Kind::Client),
                _ => None,
            };
        }
        if let Some(kind) = kind {
            nodes.extend(line.strip_prefix("id=").and_then(|rest| node(kind, rest)));
        }
    }
    nodes
}

fn node(kind: Kind, rest: &str) -> Option<Node> {
    let (id, rest) = rest.split_once(|blank: char| blank.is_whitespace())?;
    let id = id.parse().ok()?;
    let rest = rest.trim();
    let group = rest.split("Nodegroup: ").nth(1).and_then(|group| {
        group.split(|end: char| !end.is_ascii_digit()).next().and_then(|group| group.parse().ok())
    });
    let node = match rest.strip_prefix('@') {
        Some(there) => {
            let host = there.split_whitespace().next().unwrap_or_default().to_owned();
            let is_starting = there.contains(", starting") || there.contains(", shutting down");
            let state = if is_starting { State::Starting } else { State::Up };
            Node { id, kind, state, group, host }
        }
        None => {
            let host = rest.split("connect from ").nth(1).unwrap_or_default();
            let host = host.trim_end_matches(')').to_owned();
            Node { id, kind, state: State::Away, group: None, host }
        }
    };
    Some(node)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_read() {
        let shown = "Connected to management server at 127.0.0.1 port 1186 (using cleartext)\nCluster Configuration\n---------------------\n\
            [ndbd(NDB)]\t3 node(s)\nid=2\t@127.0.0.1  (mysql-9.7.4 ndb-9.7.4, Nodegroup: 0, *)\n\
            id=3\t@127.0.0.1  (mysql-9.7.4 ndb-9.7.4, starting, Nodegroup: 0)\n\
            id=4 (not connected, accepting connect from two.example)\n\n\
            [ndb_mgmd(MGM)]\t1 node(s)\nid=1\t@127.0.0.1  (mysql-9.7.4 ndb-9.7.4)\n\n\
            [mysqld(API)]\t1 node(s)\nid=50 (not connected, accepting connect from any host)\n\n";
        let node = |id, kind, state, group, host: &str| {
            let host = host.to_owned();
            Node { id, kind, state, group, host }
        };
        let wanted = [
            node(2, Kind::Data, State::Up, Some(0), "127.0.0.1"),
            node(3, Kind::Data, State::Starting, Some(0), "127.0.0.1"),
            node(4, Kind::Data, State::Away, None, "two.example"),
            node(1, Kind::Management, State::Up, None, "127.0.0.1"),
            node(50, Kind::Client, State::Away, None, "any host"),
        ];
        assert_eq!(read(shown), wanted);
        assert_eq!(read("id=2 @a\n[ndbd(NDB)]\nid=x @a\nid=\n"), []);
    }
}
