//! Random statements over random tables.

use sys::entropy::SplitMix;

use crate::node::{Kind, Node};
use crate::schema::{Schema, one_in, pick};
use crate::templates;

/// A column that an expression may name.
#[derive(Clone, Debug)]
struct Visible {
    sql: String,
    kind: Kind,
}

/// What values an expression may be of.
const VALUES: [Kind; 7] =
    [Kind::Number, Kind::Text, Kind::Date, Kind::DateTime, Kind::Time, Kind::Truth, Kind::Json];

/// A random statement.
pub(crate) struct Query {
    /// Its tree.
    pub(crate) node: Node,
    /// Which of several equal strings it shows is not decided: groups, DISTINCT, set operations.
    pub(crate) folds: bool,
    /// Its rows have an order.
    pub(crate) ordered: bool,
}

/// The parts of a statement for the oracles that compare a statement with others of itself.
pub(crate) struct Parted {
    /// What is selected.
    pub(crate) items: Node,
    /// Tables and joins.
    pub(crate) from: Node,
    /// A condition on their rows.
    pub(crate) condition: Node,
}

/// Makes statements.
pub(crate) struct Maker<'a> {
    random: &'a mut SplitMix,
    schema: &'a Schema,
    /// Columns that can be named here; those of outer queries first.
    scope: Vec<Visible>,
    aliases: u32,
    /// Queries within queries so far.
    depth: u32,
}

impl<'a> Maker<'a> {
    /// Over the tables of `schema`.
    pub(crate) fn new(random: &'a mut SplitMix, schema: &'a Schema) -> Maker<'a> {
        Maker { random, schema, scope: Vec::new(), aliases: 0, depth: 0 }
    }

    /// A whole statement.
    pub(crate) fn query(&mut self) -> Query {
        match self.random.below(10) {
            0..4 => self.rows(),
            4..7 => self.groups(),
            7..8 => self.windows(),
            _ => self.set_operation(),
        }
    }

    /// Items, tables and a condition.
    pub(crate) fn parted(&mut self) -> Parted {
        let from = self.from(3);
        let condition = self.expression(Kind::Truth, 3);
        let mut items = Node::new(Kind::Fixed);
        self.items(&mut items, 1, 3);
        Parted { items, from, condition }
    }

    fn rows(&mut self) -> Query {
        let from = self.from(3);
        let distinct = one_in(self.random, 5);
        let mut node = Node::new(Kind::Fixed);
        node.text("SELECT ");
        if distinct {
            node.node(Node::leaf(Kind::Optional, "DISTINCT "));
        }
        self.items(&mut node, 1, 4);
        node.text(" FROM ").node(from);
        self.condition(&mut node, " WHERE ");
        let ids: Vec<String> = self
            .scope
            .iter()
            .filter(|one| one.sql.ends_with(".id"))
            .map(|one| one.sql.clone())
            .collect();
        let ordered = !distinct && !ids.is_empty() && one_in(self.random, 3);
        if ordered {
            let key = self.expression(Kind::Number, 1);
            let mut order = Node::new(Kind::Fixed);
            let mut first = Node::new(Kind::Optional);
            first.node(key).text(if one_in(self.random, 2) { " DESC, " } else { ", " });
            order.text(" ORDER BY ").node(first).text(&ids.join(", "));
            node.node(order);
            if one_in(self.random, 2) {
                let limit =
                    format!(" LIMIT {}, {}", self.random.below(3), 1 + self.random.below(9));
                node.node(Node::leaf(Kind::Optional, limit));
            }
        }
        Query { node, folds: distinct, ordered }
    }

    fn groups(&mut self) -> Query {
        let from = self.from(2);
        let mut keys: Vec<String> = Vec::new();
        for _ in 0..self.random.below(3) {
            let column = pick(self.random, &self.scope);
            if column.kind != Kind::Json && !keys.contains(&column.sql) {
                keys.push(column.sql.clone());
            }
        }
        let mut node = Node::new(Kind::Fixed);
        node.text("SELECT ");
        for key in &keys {
            node.node(Node::leaf(Kind::Optional, format!("{key}, ")));
        }
        let aggregate = self.aggregate(2);
        node.node(aggregate);
        for _ in 0..self.random.below(3) {
            let mut item = Node::new(Kind::Optional);
            let aggregate = self.aggregate(2);
            item.text(", ").node(aggregate);
            node.node(item);
        }
        node.text(" FROM ").node(from);
        self.condition(&mut node, " WHERE ");
        if !keys.is_empty() {
            node.text(" GROUP BY ").text(&keys.join(", "));
            if one_in(self.random, 6) {
                node.node(Node::leaf(Kind::Optional, " WITH ROLLUP"));
            }
        }
        if one_in(self.random, 3) {
            let mut having = Node::new(Kind::Optional);
            let text = *pick(self.random, templates::aggregate(Kind::Truth));
            let condition = self.fill(Kind::Truth, text, 1);
            having.text(" HAVING ").node(condition);
            node.node(having);
        }
        Query { node, folds: true, ordered: false }
    }

    fn windows(&mut self) -> Query {
        let from = self.from(1);
        let order: Vec<String> = self
            .scope
            .iter()
            .filter(|one| one.sql.ends_with(".id"))
            .map(|one| one.sql.clone())
            .collect();
        if order.is_empty() {
            return self.rows();
        }
        let mut node = Node::new(Kind::Fixed);
        node.text("SELECT ");
        self.items(&mut node, 1, 2);
        for _ in 0..1 + self.random.below(2) {
            let mut item = Node::new(Kind::Optional);
            let text = *pick(self.random, templates::WINDOWS);
            let partition = match one_in(self.random, 2) {
                true => format!("PARTITION BY {} ", pick(self.random, &self.scope).sql),
                false => String::new(),
            };
            let text = text.replace("{w}", &format!("{partition}ORDER BY {}", order.join(", ")));
            let window = self.fill(Kind::Fixed, &text, 1);
            item.text(", ").node(window);
            node.node(item);
        }
        node.text(" FROM ").node(from);
        self.condition(&mut node, " WHERE ");
        Query { node, folds: false, ordered: false }
    }

    fn set_operation(&mut self) -> Query {
        let kinds: Vec<Kind> =
            (0..1 + self.random.below(3)).map(|_| *pick(self.random, &VALUES[..6])).collect();
        let mut node = Node::new(Kind::Fixed);
        let first = self.block(&kinds);
        node.node(first);
        for _ in 0..1 + self.random.below(2) {
            let words = [" UNION ", " UNION ALL ", " EXCEPT ", " INTERSECT ", " INTERSECT ALL "];
            let mut more = Node::new(Kind::Optional);
            let word = *pick(self.random, &words);
            let block = self.block(&kinds);
            more.text(word).node(block);
            node.node(more);
        }
        Query { node, folds: true, ordered: false }
    }

    /// A query block that selects values of `kinds`.
    fn block(&mut self, kinds: &[Kind]) -> Node {
        let outer = self.scope.len();
        let from = self.from(2);
        let mut node = Node::new(Kind::Fixed);
        node.text("SELECT ");
        for (at, kind) in kinds.iter().enumerate() {
            let item = self.expression(*kind, 2);
            node.text(if at == 0 { "" } else { ", " }).node(item);
        }
        node.text(" FROM ").node(from);
        self.condition(&mut node, " WHERE ");
        self.scope.truncate(outer);
        node
    }

    fn items(&mut self, node: &mut Node, least: u64, most: u64) {
        for at in 0..least + self.random.below(most - least + 1) {
            let kind = *pick(self.random, &VALUES);
            let item = self.expression(kind, 3);
            if at == 0 {
                node.node(item);
            } else {
                let mut optional = Node::new(Kind::Optional);
                optional.text(", ").node(item);
                node.node(optional);
            }
        }
    }

    fn condition(&mut self, node: &mut Node, word: &str) {
        if one_in(self.random, 4) {
            return;
        }
        let mut clause = Node::new(Kind::Optional);
        let condition = self.expression(Kind::Truth, 3);
        clause.text(word).node(condition);
        node.node(clause);
    }

    /// At most `most` tables with joins; their columns come into scope.
    fn from(&mut self, most: u64) -> Node {
        let tables = 1 + self.random.below(most);
        let mut node = Node::new(Kind::Fixed);
        let first = self.source();
        node.node(first);
        for _ in 1..tables {
            let mut join = Node::new(Kind::Fixed);
            let word = *pick(
                self.random,
                &[" JOIN ", " LEFT JOIN ", " RIGHT JOIN ", " INNER JOIN ", " LEFT JOIN "],
            );
            let before = self.scope.len();
            let source = self.source();
            join.text(word).node(source).text(" ON ");
            let condition = match one_in(self.random, 2) {
                true => self.equality(before),
                false => self.expression(Kind::Truth, 2),
            };
            join.node(condition);
            node.node(join);
        }
        node
    }

    /// A column of the tables before `at` equals one of those since.
    fn equality(&mut self, at: usize) -> Node {
        let own = pick(self.random, &self.scope[at..]).clone();
        let others: Vec<Visible> =
            self.scope[..at].iter().filter(|one| one.kind == own.kind).cloned().collect();
        if others.is_empty() {
            return self.expression(Kind::Truth, 2);
        }
        let other = pick(self.random, &others);
        Node::leaf(Kind::Truth, format!("({} = {})", other.sql, own.sql))
    }

    /// A table, or a query in its place.
    fn source(&mut self) -> Node {
        self.aliases += 1;
        let alias = format!("a{}", self.aliases);
        if self.depth < 2 && one_in(self.random, 6) {
            return self.derived(&alias);
        }
        let table = pick(self.random, &self.schema.tables);
        for column in &table.columns {
            self.scope.push(Visible { sql: format!("{alias}.{}", column.name), kind: column.kind });
        }
        Node::leaf(Kind::Fixed, format!("{} {alias}", table.name))
    }

    fn derived(&mut self, alias: &str) -> Node {
        self.depth += 1;
        // It sees nothing of the query around it.
        let outer = std::mem::take(&mut self.scope);
        let kinds: Vec<Kind> =
            (0..1 + self.random.below(3)).map(|_| *pick(self.random, &VALUES[..6])).collect();
        let from = self.from(2);
        let mut node = Node::new(Kind::Fixed);
        node.text("(SELECT ");
        for (at, kind) in kinds.iter().enumerate() {
            let item = self.expression(*kind, 2);
            node.text(if at == 0 { "" } else { ", " }).node(item).text(&format!(" AS d{at}"));
        }
        node.text(" FROM ").node(from);
        self.condition(&mut node, " WHERE ");
        node.text(") ").text(alias);
        self.scope = outer;
        for (at, kind) in kinds.iter().enumerate() {
            self.scope.push(Visible { sql: format!("{alias}.d{at}"), kind: *kind });
        }
        self.depth -= 1;
        node
    }

    fn aggregate(&mut self, depth: u32) -> Node {
        let kind = *pick(self.random, &VALUES[..6]);
        let text = *pick(self.random, templates::aggregate(kind));
        self.fill(Kind::Fixed, text, depth)
    }

    /// A random expression, of at most `depth` levels.
    fn expression(&mut self, kind: Kind, depth: u32) -> Node {
        if depth == 0 || one_in(self.random, 4) {
            return self.leaf(kind);
        }
        let text = *pick(self.random, templates::scalar(kind));
        self.fill(kind, text, depth - 1)
    }

    fn leaf(&mut self, kind: Kind) -> Node {
        let columns: Vec<&Visible> = self.scope.iter().filter(|one| one.kind == kind).collect();
        if !columns.is_empty() && !one_in(self.random, 4) {
            return Node::leaf(kind, pick(self.random, &columns).sql.clone());
        }
        if kind == Kind::Truth {
            let number = self.leaf(Kind::Number);
            let mut node = Node::new(kind);
            let test = pick(self.random, &[" > 1)", " = 0)", " IS NULL)"]).to_owned();
            node.text("(").node(number).text(test);
            return node;
        }
        Node::leaf(kind, *pick(self.random, constants(kind)))
    }

    /// Puts random parts in the places of a template.
    fn fill(&mut self, kind: Kind, template: &str, depth: u32) -> Node {
        let mut node = Node::new(kind);
        let mut rest = template;
        while let Some((text, after)) = rest.split_once('{') {
            node.text(text);
            let Some((place, after)) = after.split_once('}') else { break };
            rest = after;
            let part = match place {
                "n" => self.expression(Kind::Number, depth),
                "s" => self.expression(Kind::Text, depth),
                "d" => self.expression(Kind::Date, depth),
                "e" => self.expression(Kind::DateTime, depth),
                "t" => self.expression(Kind::Time, depth),
                "b" => self.expression(Kind::Truth, depth),
                "j" => self.expression(Kind::Json, depth),
                "c" => Node::leaf(Kind::Fixed, *pick(self.random, templates::UNITS)),
                "k" => Node::leaf(Kind::Fixed, self.random.below(13).to_string()),
                "Qn" => self.subquery(Kind::Number),
                _ => self.subquery(Kind::Text),
            };
            node.node(part);
        }
        node.text(rest);
        node
    }

    /// What follows SELECT in a query within an expression, which may name columns of the query around it.
    fn subquery(&mut self, kind: Kind) -> Node {
        if self.depth >= 2 {
            return self.leaf(kind);
        }
        self.depth += 1;
        let outer = self.scope.len();
        let from = self.from(2);
        let mut node = Node::new(Kind::Fixed);
        let item = self.expression(kind, 1);
        node.node(item).text(" FROM ").node(from);
        self.condition(&mut node, " WHERE ");
        self.scope.truncate(outer);
        self.depth -= 1;
        node
    }
}

fn constants(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Number => {
            &["0", "1", "2", "-1", "1.5", "3.25e0", "100", "NULL", "0.00", "12345678901"]
        }
        Kind::Text => {
            &["'a'", "'b'", "''", "'10'", "'abc'", "'2020-01-01'", "NULL", "'1e1'", "' x'"]
        }
        Kind::Date => &["DATE'2020-01-01'", "DATE'1999-12-31'", "NULL", "DATE'2024-02-29'"],
        Kind::DateTime => {
            &["TIMESTAMP'2020-01-01 00:00:00'", "NULL", "TIMESTAMP'2021-03-04 05:06:07.5'"]
        }
        Kind::Time => &["TIME'00:00:00'", "TIME'12:34:56'", "NULL", "TIME'-10:00:00.25'"],
        Kind::Json => &["CAST('[1, 2]' AS JSON)", "JSON_OBJECT('a', 1)", "NULL"],
        Kind::Truth | Kind::Optional | Kind::Fixed => &["TRUE", "FALSE", "NULL"],
    }
}
