//! A generated statement as a tree of text: what a part of it is is known, so that a failing statement can be made smaller.

/// What a part of a statement is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A number.
    Number,
    /// A string.
    Text,
    /// A DATE.
    Date,
    /// A DATETIME or TIMESTAMP.
    DateTime,
    /// A TIME.
    Time,
    /// A condition: 0, 1 or NULL.
    Truth,
    /// JSON.
    Json,
    /// A part that may be left out: a clause, an item of a list after the first.
    Optional,
    /// A part that must stay as it is, whose parts may change.
    Fixed,
}

impl Kind {
    /// A constant that stands for any expression of this kind when a statement is made smaller.
    fn constants(self) -> &'static [&'static str] {
        match self {
            Kind::Number => &["1", "NULL"],
            Kind::Text => &["'a'", "NULL"],
            Kind::Date => &["DATE'2020-01-01'", "NULL"],
            Kind::DateTime => &["TIMESTAMP'2020-01-01 00:00:00'", "NULL"],
            Kind::Time => &["TIME'10:00:00'", "NULL"],
            Kind::Truth => &["TRUE", "NULL"],
            Kind::Json => &["CAST('[1]' AS JSON)", "NULL"],
            Kind::Optional => &[""],
            Kind::Fixed => &[],
        }
    }
}

/// A part of a node.
#[derive(Clone, Debug)]
pub(crate) enum Part {
    /// Words of SQL.
    Text(String),
    /// A part with a meaning of its own.
    Node(Node),
}

/// A statement, or a part of one.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    /// What it is.
    pub(crate) kind: Kind,
    /// In the order of the text.
    pub(crate) parts: Vec<Part>,
}

impl Node {
    /// Without parts yet.
    pub(crate) fn new(kind: Kind) -> Node {
        Node { kind, parts: Vec::new() }
    }

    /// Of text alone.
    pub(crate) fn leaf(kind: Kind, text: impl Into<String>) -> Node {
        Node { kind, parts: vec![Part::Text(text.into())] }
    }

    /// Adds text.
    pub(crate) fn text(&mut self, text: &str) -> &mut Node {
        self.parts.push(Part::Text(text.to_owned()));
        self
    }

    /// Adds a part.
    pub(crate) fn node(&mut self, node: Node) -> &mut Node {
        self.parts.push(Part::Node(node));
        self
    }

    /// The text of the statement.
    pub(crate) fn sql(&self) -> String {
        let mut sql = String::new();
        self.write(&mut sql);
        sql
    }

    fn write(&self, sql: &mut String) {
        for part in &self.parts {
            match part {
                Part::Text(text) => sql.push_str(text),
                Part::Node(node) => node.write(sql),
            }
        }
    }

    /// The number of nodes, this one included.
    pub(crate) fn count(&self) -> usize {
        let children = self.parts.iter().map(|part| match part {
            Part::Text(_) => 0,
            Part::Node(node) => node.count(),
        });
        1 + children.sum::<usize>()
    }

    /// The statements that are this one with node `at` (in the order of the text) made smaller, smallest first.
    pub(crate) fn smaller_at(&self, at: usize) -> Vec<Node> {
        let Some(target) = self.find(&mut { at }) else { return Vec::new() };
        let mut replacements: Vec<Node> = Vec::new();
        if target.count() > 1 || target.kind == Kind::Optional {
            let constants = target.kind.constants().iter();
            replacements.extend(constants.map(|text| Node::leaf(target.kind, *text)));
        }
        let mut inner = Vec::new();
        target.descendants(&mut inner);
        let same = inner.into_iter().filter(|node| node.kind == target.kind);
        if target.kind != Kind::Fixed && target.kind != Kind::Optional {
            replacements.extend(same.cloned());
        }
        let unchanged = target.sql();
        replacements.retain(|node| node.sql() != unchanged);
        replacements
            .into_iter()
            .map(|replacement| {
                let mut whole = self.clone();
                if let Some(place) = whole.find_mut(&mut { at }) {
                    *place = replacement;
                }
                whole
            })
            .collect()
    }

    fn find(&self, left: &mut usize) -> Option<&Node> {
        if *left == 0 {
            return Some(self);
        }
        *left -= 1;
        self.parts.iter().find_map(|part| match part {
            Part::Text(_) => None,
            Part::Node(node) => node.find(left),
        })
    }

    fn find_mut(&mut self, left: &mut usize) -> Option<&mut Node> {
        if *left == 0 {
            return Some(self);
        }
        *left -= 1;
        self.parts.iter_mut().find_map(|part| match part {
            Part::Text(_) => None,
            Part::Node(node) => node.find_mut(left),
        })
    }

    fn descendants<'a>(&'a self, found: &mut Vec<&'a Node>) {
        for part in &self.parts {
            if let Part::Node(node) = part {
                found.push(node);
                node.descendants(found);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn smaller_statements_are_each_a_part_less() {
        let mut sum = Node::new(Kind::Number);
        sum.node(Node::leaf(Kind::Number, "a")).text(" + ").node(Node::leaf(Kind::Number, "b"));
        let mut limit = Node::new(Kind::Optional);
        limit.text(" LIMIT 1");
        let mut query = Node::new(Kind::Fixed);
        query.text("SELECT ").node(sum).node(limit);
        assert_eq!((query.sql().as_str(), query.count()), ("SELECT a + b LIMIT 1", 5));
        let smaller = |at| query.smaller_at(at).iter().map(Node::sql).collect::<Vec<_>>();
        assert_eq!(smaller(0), Vec::<String>::new());
        let sums =
            ["SELECT 1 LIMIT 1", "SELECT NULL LIMIT 1", "SELECT a LIMIT 1", "SELECT b LIMIT 1"];
        assert_eq!(smaller(1), sums);
        assert_eq!(smaller(4), ["SELECT a + b"]);
        assert_eq!(smaller(5), Vec::<String>::new(), "there is no such node");
    }
}
