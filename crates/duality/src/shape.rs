//! A view's objects, each with what is to be known of its table.

use std::sync::Arc;

use catalog::{Relation, Table};
use definitions::{DualityLink, DualityTable};
use errors::{Error, Result};
use syntax::ast::DualityTags;
use types::TypeKind;

/// A column of an object's table.
#[derive(Debug)]
pub(crate) struct Column {
    pub(crate) name: Arc<str>,
    /// Its member; `None` of a column that only links objects.
    pub(crate) key: Option<Arc<str>>,
    /// Documents have its values in base64.
    pub(crate) is_binary: bool,
}

/// How an object is tied to the one that has it.
#[derive(Debug)]
pub(crate) struct Link {
    pub(crate) key: Arc<str>,
    /// Place of the column in the object above.
    pub(crate) above: usize,
    /// Place of the own column.
    pub(crate) own: usize,
    /// An array of objects.
    pub(crate) is_nested: bool,
    /// Its row is written before the row of the object above.
    pub(crate) comes_first: bool,
}

/// An object of the view.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) schema: Arc<str>,
    pub(crate) table: Arc<str>,
    pub(crate) tags: DualityTags,
    /// Those of the document, then those that only link.
    pub(crate) columns: Vec<Column>,
    /// Place of the primary key.
    pub(crate) primary: usize,
    /// AUTO_INCREMENT gives the primary key.
    pub(crate) generates: bool,
    /// `None` of the document itself.
    pub(crate) link: Option<Link>,
    pub(crate) children: Vec<usize>,
}

impl Node {
    pub(crate) fn key(&self) -> &Column {
        &self.columns[self.primary]
    }
}

/// What documents of a view are made of.
#[derive(Debug)]
pub struct Shape {
    /// The document itself is the first, and an object comes before those within.
    pub(crate) nodes: Vec<Node>,
    /// In which order rows are written.
    pub(crate) order: Vec<usize>,
}

impl Shape {
    /// The shape of a view's documents. `find`: what a schema's name stands for.
    ///
    /// # Errors
    /// 1815: a table is not what `definitions::duality_of` has read.
    pub fn of(root: &DualityTable, find: &dyn Fn(&str, &str) -> Option<Relation>) -> Result<Shape> {
        let mut shape = Shape { nodes: Vec::new(), order: Vec::new() };
        shape.add(root, None, find)?;
        shape.arrange(0);
        Ok(shape)
    }

    fn add(
        &mut self,
        object: &DualityTable,
        above: Option<usize>,
        find: &dyn Fn(&str, &str) -> Option<Relation>,
    ) -> Result<usize> {
        let Some(Relation::Table(table)) = find(&object.schema, &object.table) else {
            return Err(Error::internal("the table of a duality view is gone"));
        };
        let columns = object.columns.iter();
        let mut node = Node {
            schema: object.schema.clone(),
            table: object.table.clone(),
            tags: object.tags,
            columns: columns.map(|(name, key)| column(&table, name, Some(key.clone()))).collect(),
            primary: 0,
            generates: false,
            link: None,
            children: Vec::new(),
        };
        node.primary = place(&mut node, &table, &object.primary);
        node.generates =
            table.column(&object.primary).is_some_and(|at| table.columns[at].auto_increment);
        if let (Some(link), Some(above)) = (&object.link, above) {
            let Some(Relation::Table(upper)) =
                find(&self.nodes[above].schema, &self.nodes[above].table)
            else {
                return Err(Error::internal("the table of a duality view is gone"));
            };
            node.link = Some(Link {
                key: link.key.clone(),
                own: place(&mut node, &table, &link.child),
                above: place(&mut self.nodes[above], &upper, &link.parent),
                is_nested: link.is_nested,
                comes_first: !link.is_nested && !refers(&table, &upper, link),
            });
        }
        let at = self.nodes.len();
        self.nodes.push(node);
        for child in &object.children {
            let child = self.add(child, Some(at), find)?;
            self.nodes[at].children.push(child);
        }
        Ok(at)
    }

    fn arrange(&mut self, at: usize) {
        let first = |shape: &Shape, child: usize| {
            shape.nodes[child].link.as_ref().is_some_and(|link| link.comes_first)
        };
        let children = self.nodes[at].children.clone();
        let (before, after): (Vec<usize>, Vec<usize>) =
            children.into_iter().partition(|child| first(self, *child));
        before.into_iter().for_each(|child| self.arrange(child));
        self.order.push(at);
        after.into_iter().for_each(|child| self.arrange(child));
    }
}

/// Whether a foreign key over the link makes rows of the table need rows of the upper one.
fn refers(table: &Table, upper: &Table, link: &DualityLink) -> bool {
    table.foreign_keys.iter().any(|key| {
        catalog::same_name(&key.referenced_schema, &upper.schema)
            && catalog::same_name(&key.referenced_table, &upper.name)
            && key
                .columns
                .iter()
                .any(|at| catalog::same_name(&table.columns[*at].name, &link.child))
    })
}

/// The place of a column, which is added where documents do not have it.
fn place(node: &mut Node, table: &Table, name: &str) -> usize {
    let known = node.columns.iter().position(|known| catalog::same_name(&known.name, name));
    known.unwrap_or_else(|| {
        node.columns.push(column(table, name, None));
        node.columns.len() - 1
    })
}

fn column(table: &Table, name: &str, key: Option<Arc<str>>) -> Column {
    let found = table.column(name).map(|at| &table.columns[at]);
    let is_binary = found.is_some_and(|column| {
        column.ty.kind == TypeKind::Bit
            || column.ty.is_string() && column.ty.collation == types::CollationId::BINARY
    });
    Column { name: found.map_or_else(|| name.into(), |column| column.name.clone()), key, is_binary }
}
