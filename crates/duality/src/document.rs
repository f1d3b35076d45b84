//! A document read against a view's objects: the rows that it is about, and which of them are the same.

use std::fmt::Write;
use std::sync::Arc;

use errors::{Result, bail};
use hashbrown::HashMap;
use types::JsonValue;

use crate::literal::{alike, binary_value, identity};
use crate::shape::{Node, Shape};

/// What messages call objects and arrays.
const OBJECT: &str = "Json_object";
const ARRAY: &str = "Json_array";
/// The member that every document has beside those of the view.
pub(crate) const METADATA: &[u8] = b"_metadata";

/// What a document says of a column.
#[derive(Clone, Debug)]
pub(crate) enum Cell {
    Missing,
    Given(JsonValue),
    /// The primary key that this object gets when it is written.
    KeyOf(usize),
}

impl Cell {
    pub(crate) fn given(&self) -> Option<&JsonValue> {
        match self {
            Cell::Given(value) => Some(value),
            Cell::Missing | Cell::KeyOf(_) => None,
        }
    }

    /// The value, if it is one that a key can have.
    fn key(&self) -> Option<&JsonValue> {
        self.given().filter(|value| !matches!(value, JsonValue::Null))
    }
}

/// An object of a document.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) node: usize,
    pub(crate) path: String,
    pub(crate) above: Option<usize>,
    /// By the node's columns.
    pub(crate) cells: Vec<Cell>,
    pub(crate) children: Vec<usize>,
    /// The first object of the document that is the same row.
    pub(crate) first: usize,
}

/// A document.
#[derive(Debug)]
pub(crate) struct Document<'s> {
    pub(crate) shape: &'s Shape,
    /// An object comes before those within.
    pub(crate) items: Vec<Item>,
}

impl<'s> Document<'s> {
    /// Reads a document that a client gives.
    ///
    /// # Errors
    /// 6485, 6489, 6507: it is not a document of the view; 6487, 6488, 6560: it contradicts itself.
    pub(crate) fn read(shape: &'s Shape, document: JsonValue) -> Result<Document<'s>> {
        let mut read = Document::parts(shape, document)?;
        read.give_up();
        read.give_down()?;
        read.find_same()?;
        read.refuse_mixed_keys()?;
        Ok(read)
    }

    /// Reads a document that the view shows.
    ///
    /// # Errors
    /// As `read`, but for views of tables that have changed since.
    pub(crate) fn shown(shape: &'s Shape, document: JsonValue) -> Result<Document<'s>> {
        let mut read = Document::parts(shape, document)?;
        read.give_up();
        read.give_down()?;
        Ok(read)
    }

    fn parts(shape: &'s Shape, document: JsonValue) -> Result<Document<'s>> {
        let mut read = Document { shape, items: Vec::new() };
        read.object(0, document, "$".to_owned(), None)?;
        Ok(read)
    }

    pub(crate) fn node(&self, item: usize) -> &'s Node {
        &self.shape.nodes[self.items[item].node]
    }

    /// Where the value of a column is, or would be.
    pub(crate) fn path_of(&self, item: usize, column: usize) -> String {
        let mut path = self.items[item].path.clone();
        if let Some(key) = &self.node(item).columns[column].key {
            push_key(&mut path, key);
        }
        path
    }

    /// The objects of a member.
    pub(crate) fn within(&self, item: usize, node: usize) -> impl Iterator<Item = usize> {
        let of_node = move |child: &usize| self.items[*child].node == node;
        self.items[item].children.iter().copied().filter(of_node)
    }

    /// The value of the primary key; `None` where the table gives it.
    pub(crate) fn key(&self, item: usize) -> Option<&JsonValue> {
        self.items[item].cells[self.node(item).primary].key()
    }

    fn object(
        &mut self,
        node: usize,
        value: JsonValue,
        path: String,
        above: Option<usize>,
    ) -> Result<()> {
        let JsonValue::Object(object) = value else { bail!(JDV_NOT_OF_TYPE, path, OBJECT) };
        let shape = self.shape;
        let own = &shape.nodes[node];
        let at = self.items.len();
        let cells = vec![Cell::Missing; own.columns.len()];
        self.items.push(Item { node, path, above, cells, children: Vec::new(), first: at });
        if let Some(above) = above {
            self.items[above].children.push(at);
        }
        let mut inner: Vec<Option<JsonValue>> = vec![None; own.children.len()];
        for (name, value) in object.into_members() {
            let is = |key: &str| key.as_bytes() == name;
            let column = own.columns.iter().position(|one| one.key.as_deref().is_some_and(is));
            if let Some(column) = column {
                self.items[at].cells[column] = self.cell(at, column, value)?;
                continue;
            }
            let child = own.children.iter().position(|child| {
                shape.nodes[*child].link.as_ref().is_some_and(|link| is(&link.key))
            });
            match child {
                Some(child) => inner[child] = Some(value),
                None if above.is_none() && name == METADATA => {}
                None => {
                    let mut path = self.items[at].path.clone();
                    push_key(&mut path, &String::from_utf8_lossy(&name));
                    bail!(JDV_UNKNOWN_MEMBER, path, own.schema, own.table)
                }
            }
        }
        for (child, value) in own.children.iter().zip(inner) {
            if let Some(value) = value {
                self.member(at, *child, value)?;
            }
        }
        Ok(())
    }

    fn cell(&self, item: usize, column: usize, value: JsonValue) -> Result<Cell> {
        let node = self.node(item);
        if let JsonValue::String(text) = &value
            && node.columns[column].is_binary
        {
            return match binary_value(text) {
                Some(value) => Ok(Cell::Given(value)),
                None => bail!(JDV_NO_BASE64, self.path_of(item, column)),
            };
        }
        // A key that is NULL is one that the table gives.
        let is_open = column == node.primary && matches!(value, JsonValue::Null);
        Ok(if is_open { Cell::Missing } else { Cell::Given(value) })
    }

    /// Reads the member that holds the objects of a node.
    fn member(&mut self, at: usize, child: usize, value: JsonValue) -> Result<()> {
        let Some(link) = &self.shape.nodes[child].link else { return Ok(()) };
        let mut path = self.items[at].path.clone();
        push_key(&mut path, &link.key);
        if matches!(value, JsonValue::Null) {
            return Ok(());
        }
        if !link.is_nested {
            return self.object(child, value, path, Some(at));
        }
        let JsonValue::Array(elements) = value else { bail!(JDV_NOT_OF_TYPE, path, ARRAY) };
        for (number, element) in elements.into_iter().enumerate() {
            if !matches!(element, JsonValue::Null) {
                self.object(child, element, format!("{path}[{number}]"), Some(at))?;
            }
        }
        Ok(())
    }

    /// Columns of links that only the object within has a value for.
    fn give_up(&mut self) {
        for at in (0..self.items.len()).rev() {
            let (Some(link), Some(above)) = (&self.node(at).link, self.items[at].above) else {
                continue;
            };
            let own = self.items[at].cells[link.own].key().cloned();
            let upper = &mut self.items[above].cells[link.above];
            if let (Cell::Missing, Some(own)) = (&*upper, own) {
                *upper = Cell::Given(own);
            }
        }
    }

    /// Columns of links that only the object above has a value for; both values must be equal where both are there.
    fn give_down(&mut self) -> Result<()> {
        for at in 0..self.items.len() {
            let (Some(link), Some(above)) = (&self.node(at).link, self.items[at].above) else {
                continue;
            };
            let (own, upper) = (
                self.items[at].cells[link.own].clone(),
                self.items[above].cells[link.above].clone(),
            );
            match (own, upper) {
                (Cell::Given(own), Cell::Given(upper)) => {
                    if !alike(&own, &upper) {
                        return self.differs(at, above);
                    }
                }
                (_, Cell::Missing) if link.comes_first => {
                    self.items[above].cells[link.above] = Cell::KeyOf(at);
                }
                (_, Cell::Missing) => self.items[at].cells[link.own] = Cell::KeyOf(above),
                (Cell::Missing | Cell::KeyOf(_), upper) => self.items[at].cells[link.own] = upper,
                (Cell::Given(_), Cell::KeyOf(_)) => return self.differs(at, above),
            }
        }
        Ok(())
    }

    fn differs(&self, at: usize, above: usize) -> Result<()> {
        let (own, upper) = (self.node(at), self.node(above));
        let Some(link) = &own.link else { return Ok(()) };
        let (paths, names) = (
            (self.path_of(at, link.own), self.path_of(above, link.above)),
            (&own.columns[link.own].name, &upper.columns[link.above].name),
        );
        let ((path, path_above), (name, name_above)) = (paths, names);
        bail!(
            JDV_JOIN_DIFFERS,
            path,
            own.schema,
            own.table,
            name,
            path_above,
            upper.schema,
            upper.table,
            name_above
        )
    }

    /// Finds objects that are the same row, which must say the same of it.
    fn find_same(&mut self) -> Result<()> {
        let mut known: HashMap<(Arc<str>, Arc<str>, Vec<u8>), usize> = HashMap::new();
        for at in 0..self.items.len() {
            let Some(key) = self.key(at).map(identity) else { continue };
            let node = self.node(at);
            let row = (node.schema.clone(), node.table.clone(), key);
            let first = *known.entry(row).or_insert(at);
            if first != at {
                self.check_same(at, first)?;
                self.items[at].first = first;
            }
        }
        Ok(())
    }

    fn check_same(&self, at: usize, first: usize) -> Result<()> {
        let (own, other) = (self.node(at), self.node(first));
        for (place, column) in own.columns.iter().enumerate() {
            let same = |known: &crate::shape::Column| known.name == column.name;
            let Some(known) = other.columns.iter().position(same) else { continue };
            let (a, b) = (&self.items[at].cells[place], &self.items[first].cells[known]);
            let differs = match (a, b) {
                (Cell::Given(a), Cell::Given(b)) => !alike(a, b),
                (Cell::Given(_), Cell::Missing) | (Cell::Missing, Cell::Given(_)) => {
                    column.key.is_some()
                }
                (Cell::KeyOf(_), _) | (_, Cell::KeyOf(_)) | (Cell::Missing, Cell::Missing) => false,
            };
            if differs {
                let (path, before) = (self.given_path(at, place), self.given_path(first, known));
                let (schema, table, key) = (&own.schema, &own.table, &own.key().name);
                let item = &self.items[at].path;
                bail!(JDV_SAME_DIFFERS, item, schema, table, key, column.name, path, before)
            }
        }
        Ok(())
    }

    /// The path of a value that messages name.
    fn given_path(&self, item: usize, column: usize) -> String {
        let is_missing = matches!(self.items[item].cells[column], Cell::Missing);
        if is_missing { "null".to_owned() } else { self.path_of(item, column) }
    }

    /// Keys that a table gives could be those that the document gives other rows of it.
    fn refuse_mixed_keys(&self) -> Result<()> {
        let mut given: HashMap<(&str, &str), usize> = HashMap::new();
        for at in 0..self.items.len() {
            if self.key(at).is_some() {
                let node = self.node(at);
                given.entry((&node.schema, &node.table)).or_insert(at);
            }
        }
        for (at, item) in self.items.iter().enumerate() {
            let node = self.node(at);
            if matches!(item.cells[node.primary], Cell::Missing)
                && let Some(given) = given.get(&(&*node.schema, &*node.table))
            {
                bail!(JDV_KEYS_MIXED, self.items[*given].path, item.path)
            }
        }
        Ok(())
    }
}

fn push_key(path: &mut String, key: &str) {
    let is_plain = |(at, c): (usize, char)| {
        c.is_alphabetic() || c == '_' || c == '$' || at > 0 && c.is_ascii_digit()
    };
    if !key.is_empty() && key.chars().enumerate().all(is_plain) {
        let _ = write!(path, ".{key}");
        return;
    }
    let mut quoted = Vec::new();
    types::json::quote(key.as_bytes(), &mut quoted);
    let _ = write!(path, ".{}", String::from_utf8_lossy(&quoted));
}
