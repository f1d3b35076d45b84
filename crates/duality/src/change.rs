//! What INSERT and UPDATE share: the row of an object, its key, and its statements.

use std::sync::Arc;

use errors::{Result, bail};
use syntax::ast::DualityTags;
use types::{JsonValue, Value};

use crate::Host;
use crate::document::{Cell, Document};
use crate::literal::unquoted;
use crate::shape::Node;
use crate::statements::{self, Given};

/// A change that is under way.
pub(crate) struct Change<'d, 'h> {
    pub(crate) document: &'d Document<'d>,
    pub(crate) host: &'h mut dyn Host,
    /// The keys of rows, by their first objects.
    keys: Vec<Option<JsonValue>>,
    /// The objects of each row, by its first.
    members: Vec<Vec<usize>>,
    is_done: Vec<bool>,
    pub(crate) affected: u64,
}

/// What columns of a row get; `None` is DEFAULT.
pub(crate) type Row = Vec<(Arc<str>, Option<JsonValue>)>;

pub(crate) fn given(row: &Row) -> Vec<Given<'_>> {
    row.iter().map(|(name, value)| (&**name, value.clone())).collect()
}

impl<'d, 'h> Change<'d, 'h> {
    pub(crate) fn new(document: &'d Document<'d>, host: &'h mut dyn Host) -> Change<'d, 'h> {
        let count = document.items.len();
        let mut members = vec![Vec::new(); count];
        for (at, item) in document.items.iter().enumerate() {
            members[item.first].push(at);
        }
        let keys = (0..count).map(|at| document.key(at).cloned()).collect();
        Change { document, host, keys, members, is_done: vec![false; count], affected: 0 }
    }

    /// Calls `write` for each row, in the order in which they are to be written.
    pub(crate) fn each_row(
        &mut self,
        write: &mut dyn FnMut(&mut Change<'d, 'h>, usize) -> Result<()>,
    ) -> Result<()> {
        for node in &self.document.shape.order {
            for (at, item) in self.document.items.iter().enumerate() {
                if item.node != *node || self.is_done[item.first] {
                    continue;
                }
                self.is_done[item.first] = true;
                debug_assert!(item.first <= at);
                write(self, item.first)?;
            }
        }
        Ok(())
    }

    pub(crate) fn members(&self, first: usize) -> Vec<usize> {
        self.members[first].clone()
    }

    /// What any of a row's places lets be changed.
    pub(crate) fn tags(&self, first: usize) -> DualityTags {
        let mut tags = DualityTags::default();
        for member in &self.members[first] {
            let own = self.document.node(*member).tags;
            tags.insert |= own.insert;
            tags.update |= own.update;
        }
        tags
    }

    pub(crate) fn key(&self, item: usize) -> Option<&JsonValue> {
        self.keys[self.document.items[item].first].as_ref()
    }

    /// The value of a cell as far as it is known; `None` is DEFAULT.
    pub(crate) fn value(&self, cell: &Cell) -> Option<JsonValue> {
        match cell {
            Cell::Missing => None,
            Cell::Given(value) => Some(value.clone()),
            Cell::KeyOf(item) => self.key(*item).cloned(),
        }
    }

    /// What all objects of a row say of it.
    pub(crate) fn row(&self, first: usize) -> Row {
        let mut row: Row = Vec::new();
        for member in &self.members[first] {
            let node = self.document.node(*member);
            for (column, cell) in node.columns.iter().zip(&self.document.items[*member].cells) {
                let value = self.value(cell);
                match row.iter_mut().find(|(name, _)| *name == column.name) {
                    Some((_, known)) if known.is_none() => *known = value,
                    Some(_) => {}
                    None => row.push((column.name.clone(), value)),
                }
            }
        }
        row
    }

    /// Inserts a row.
    ///
    /// # Errors
    /// 6490: no place of it has the tag; 6486: its key is not given.
    pub(crate) fn insert(&mut self, first: usize) -> Result<()> {
        let (node, path) = (self.document.node(first), &self.document.items[first].path);
        if !self.tags(first).insert {
            bail!(JDV_NO_INSERT_TAG, node.schema, node.table, path);
        }
        let mut row = self.row(first);
        if self.key(first).is_none() {
            self.open_key(node, first, &mut row)?;
        }
        self.write_row(first, &row, false)
    }

    /// The table is to give the key.
    fn open_key(&self, node: &Node, first: usize, row: &mut Row) -> Result<()> {
        let name = &node.key().name;
        let known = row.iter_mut().find(|(column, _)| column == name);
        match known {
            Some((_, value)) if value.is_none() && node.generates => {
                *value = Some(JsonValue::Null);
                Ok(())
            }
            Some((_, Some(_))) => Ok(()),
            Some(_) | None => {
                let path = self.document.path_of(first, node.primary);
                bail!(JDV_KEY_NOT_GIVEN, node.schema, node.table, name, path)
            }
        }
    }

    fn write_row(&mut self, first: usize, row: &Row, or_change: bool) -> Result<()> {
        let node = self.document.node(first);
        let written = self.host.write(&statements::insert(node, &given(row), or_change))?;
        self.affected += written.affected;
        let key = row.iter().find(|(name, _)| *name == node.key().name);
        self.keys[first] = match written.generated {
            Some(generated) => Some(JsonValue::UInt(generated)),
            None => key.and_then(|(_, value)| value.clone()),
        };
        Ok(())
    }

    /// Makes a row be as the document says, whether or not the table has it.
    ///
    /// # Errors
    /// 6491, 6492: what is needed for that has no tag.
    pub(crate) fn insert_or_change(&mut self, first: usize) -> Result<()> {
        let node = self.document.node(first);
        let row = self.row(first);
        let Some((_, Some(key))) = row.iter().find(|(name, _)| *name == node.key().name) else {
            return self.insert(first);
        };
        let (tags, key) = (self.tags(first), key.clone());
        let path = &self.document.items[first].path;
        let Some(differing) = self.differing(first, &key, &row)? else {
            if !tags.insert {
                let shown = String::from_utf8_lossy(&unquoted(&key)).into_owned();
                bail!(JDV_READ_ONLY_MISSING, path, node.schema, node.table, node.key().name, shown);
            }
            return self.write_row(first, &row, false);
        };
        if tags.update {
            return self.write_row(first, &row, true);
        }
        self.keys[first] = Some(key);
        let moved = node.link.as_ref().map(|link| &node.columns[link.own].name);
        match moved.filter(|name| differing.contains(name)) {
            Some(name) => bail!(JDV_READ_ONLY_LINK, path, node.schema, node.table, name),
            None => Ok(()),
        }
    }

    /// The columns of a row whose values are not the given ones; `None` when the table does not have the row, which is locked.
    pub(crate) fn differing(
        &mut self,
        first: usize,
        key: &JsonValue,
        row: &Row,
    ) -> Result<Option<Vec<Arc<str>>>> {
        let query = statements::compare(self.document.node(first), key, &given(row));
        let names = row.iter().filter(|(_, value)| value.is_some()).map(|(name, _)| name);
        let found = self.host.read(&query)?;
        Ok(found.map(|same| {
            let differs = |(_, same): &(&Arc<str>, Value)| !matches!(same, Value::Int(1));
            names.zip(same).filter(differs).map(|(name, _)| name.clone()).collect()
        }))
    }

    /// Gives columns of a row that is there new values.
    pub(crate) fn update(&mut self, first: usize, key: &JsonValue, row: &Row) -> Result<()> {
        let statement = statements::update(self.document.node(first), key, &given(row));
        self.affected += self.host.write(&statement)?.affected;
        Ok(())
    }
}
