//! UPDATE of a document: what is to be done to make the rows of the shown document those of the new one.

use errors::{Result, bail};
use hashbrown::HashMap;
use types::JsonValue;

use crate::change::{Change, Row};
use crate::delete::delete_rows;
use crate::document::{Cell, Document, METADATA};
use crate::literal::{alike, identity};
use crate::{Host, Shape};

/// The tag of a document's content in `_metadata`.
const TAG: &[u8] = b"etag";

/// What has become of an object of the new document.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    /// The row of this object of the shown document.
    Was(usize),
    /// Another row than before, which is there.
    Replaces,
    /// A row that is there, or not yet.
    Either,
    /// A new element of an array.
    New,
}

/// What an update did.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Updated {
    /// Affected rows.
    pub(crate) affected: u64,
    /// The new document had a tag, which was right.
    pub(crate) was_tagged: bool,
}

/// Replaces a document that the view shows by a new one.
///
/// # Errors
/// 6494: the new document has the tag of another state; 6485 to 6498, 6507, 6560: it does not fit the view, its tags or the old one;
/// errors of the tables.
pub(crate) fn update(
    shape: &Shape,
    shown: JsonValue,
    new: JsonValue,
    host: &mut dyn Host,
) -> Result<Updated> {
    let was_tagged = check_tag(&shown, &new)?;
    let shown = Document::shown(shape, shown)?;
    refuse_other_key(shape, &shown, &new)?;
    let new = Document::read(shape, new)?;
    let mut comparison = Comparison {
        shown: &shown,
        new: &new,
        fates: vec![Fate::New; new.items.len()],
        gone: Vec::new(),
    };
    comparison.compare(0, Fate::Was(0))?;
    let Comparison { fates, gone, .. } = comparison;
    let deleted = delete_rows(&shown, &gone, host)?;
    let mut change = Change::new(&new, host);
    change.each_row(&mut |change, first| write(change, &shown, &fates, first))?;
    Ok(Updated { affected: deleted + change.affected, was_tagged })
}

/// Whether a document has the tag of the shown one; without a tag it is for any.
///
/// # Errors
/// 6494: it has another.
fn check_tag(shown: &JsonValue, new: &JsonValue) -> Result<bool> {
    let Some(tag) = tag_of(new) else { return Ok(false) };
    if tag_of(shown).is_some_and(|known| alike(known, tag)) {
        return Ok(true);
    }
    bail!(JDV_ETAG_DIFFERS, String::from_utf8_lossy(&tag.to_text()))
}

fn tag_of(document: &JsonValue) -> Option<&JsonValue> {
    let JsonValue::Object(object) = document else { return None };
    let JsonValue::Object(metadata) = object.get(METADATA)? else { return None };
    metadata.get(TAG)
}

/// The key of a document stays.
fn refuse_other_key(shape: &Shape, shown: &Document<'_>, new: &JsonValue) -> Result<()> {
    let root = &shape.nodes[0];
    let (JsonValue::Object(object), Some(key)) = (new, &root.key().key) else { return Ok(()) };
    let (Some(given), Some(known)) = (object.get(key.as_bytes()), shown.key(0)) else {
        return Ok(());
    };
    if alike(given, known) {
        return Ok(());
    }
    let path = shown.path_of(0, root.primary);
    bail!(JDV_KEY_CHANGED, root.schema, root.table, root.key().name, path)
}

struct Comparison<'d> {
    shown: &'d Document<'d>,
    new: &'d Document<'d>,
    fates: Vec<Fate>,
    /// Elements of arrays that the new document does not have.
    gone: Vec<usize>,
}

impl Comparison<'_> {
    fn compare(&mut self, at: usize, fate: Fate) -> Result<()> {
        self.fates[at] = fate;
        if matches!(fate, Fate::Was(_) | Fate::Replaces) {
            self.refuse_missing(at)?;
        }
        let node = self.new.node(at);
        for child in &node.children {
            let is_nested =
                self.new.shape.nodes[*child].link.as_ref().is_some_and(|link| link.is_nested);
            if is_nested {
                self.compare_elements(at, *child, fate)?;
            } else {
                self.compare_single(at, *child, fate)?;
            }
        }
        Ok(())
    }

    /// # Errors
    /// 6495: a row that is there has to be given whole.
    fn refuse_missing(&self, at: usize) -> Result<()> {
        let (node, item) = (self.new.node(at), &self.new.items[at]);
        let missing = node.columns.iter().zip(&item.cells).enumerate().find(|(place, pair)| {
            let is_open = match pair.1 {
                Cell::Missing => true,
                // Of a row that is there the key is not given by the table.
                Cell::KeyOf(_) => *place == node.primary,
                Cell::Given(_) => false,
            };
            pair.0.key.is_some() && is_open
        });
        match missing {
            Some((_, (column, _))) => {
                bail!(JDV_VALUE_NOT_GIVEN, item.path, node.schema, node.table, column.name)
            }
            None => Ok(()),
        }
    }

    fn compare_single(&mut self, at: usize, node: usize, fate: Fate) -> Result<()> {
        let own = self.new.within(at, node).next();
        let before = match fate {
            Fate::Was(shown) => self.shown.within(shown, node).next(),
            Fate::Replaces | Fate::Either | Fate::New => None,
        };
        match (own, before) {
            (None, None) => Ok(()),
            (None, Some(before)) => {
                let known = self.shown.node(before);
                let path = &self.shown.items[before].path;
                bail!(JDV_NO_DELETE_TAG, known.schema, known.table, path)
            }
            (Some(own), None) => {
                let is_there = fate == Fate::Replaces;
                self.compare(own, if is_there { Fate::Replaces } else { Fate::Either })
            }
            (Some(own), Some(before)) => {
                let fate = match (self.new.key(own), self.shown.key(before)) {
                    (Some(a), Some(b)) if alike(a, b) => Fate::Was(before),
                    _ => Fate::Replaces,
                };
                self.compare(own, fate)
            }
        }
    }

    fn compare_elements(&mut self, at: usize, node: usize, fate: Fate) -> Result<()> {
        let otherwise = if fate == Fate::New { Fate::New } else { Fate::Either };
        let Fate::Was(shown) = fate else {
            let own: Vec<usize> = self.new.within(at, node).collect();
            return own.into_iter().try_for_each(|own| self.compare(own, otherwise));
        };
        let mut before: HashMap<Vec<u8>, usize> = HashMap::new();
        for element in self.shown.within(shown, node) {
            if let Some(key) = self.shown.key(element) {
                before.insert(identity(key), element);
            }
        }
        let own: Vec<usize> = self.new.within(at, node).collect();
        let mut kept = vec![false; self.shown.items.len()];
        for own in own {
            let known = self.new.key(own).and_then(|key| before.get(&identity(key)).copied());
            if let Some(known) = known {
                kept[known] = true;
            }
            self.compare(own, known.map_or(Fate::New, Fate::Was))?;
        }
        self.gone.extend(self.shown.within(shown, node).filter(|element| !kept[*element]));
        Ok(())
    }
}

/// Writes a row of the new document.
fn write(
    change: &mut Change<'_, '_>,
    shown: &Document<'_>,
    fates: &[Fate],
    first: usize,
) -> Result<()> {
    let members = change.members(first);
    let mut row: Row = Vec::new();
    let mut is_there = false;
    for member in &members {
        if let Fate::Was(before) = fates[*member] {
            is_there = true;
            add_changed(change, shown, (*member, before), &mut row)?;
        }
    }
    if is_there {
        let Some(key) = change.key(first).cloned() else { return Ok(()) };
        return if row.is_empty() { Ok(()) } else { change.update(first, &key, &row) };
    }
    if members.iter().any(|member| fates[*member] == Fate::Replaces) {
        return replace(change, first);
    }
    if members.iter().any(|member| fates[*member] == Fate::Either) {
        return change.insert_or_change(first);
    }
    change.insert(first)
}

/// The columns of a row to which the new document gives other values.
///
/// # Errors
/// 6497: they may not be changed.
fn add_changed(
    change: &Change<'_, '_>,
    shown: &Document<'_>,
    (at, before): (usize, usize),
    row: &mut Row,
) -> Result<()> {
    let (node, item) = (change.document.node(at), &change.document.items[at]);
    for (place, column) in node.columns.iter().enumerate() {
        let Some(value) = change.value(&item.cells[place]) else { continue };
        let is_same = match &shown.items[before].cells[place] {
            Cell::Given(known) => alike(known, &value),
            Cell::Missing | Cell::KeyOf(_) => matches!(value, JsonValue::Null),
        };
        if is_same {
            continue;
        }
        if !change.tags(item.first).update {
            let path = linked_path(change.document, at, place);
            bail!(JDV_NO_UPDATE_TAG, node.schema, node.table, column.name, path);
        }
        if !row.iter().any(|(name, _)| *name == column.name) {
            row.push((column.name.clone(), Some(value)));
        }
    }
    Ok(())
}

/// Where the value of a column comes from: for one that only links objects, the key of the object within.
fn linked_path(document: &Document<'_>, at: usize, column: usize) -> String {
    let within = document.items[at].children.iter().find(|child| {
        document.node(**child).link.as_ref().is_some_and(|link| link.above == column)
    });
    match within.filter(|_| document.node(at).columns[column].key.is_none()) {
        Some(child) => document.path_of(*child, document.node(*child).primary),
        None => document.path_of(at, column),
    }
}

/// Another row takes the place of the one before: it must be there, and is changed where that may be.
fn replace(change: &mut Change<'_, '_>, first: usize) -> Result<()> {
    let node = change.document.node(first);
    let Some(key) = change.key(first).cloned() else { return Ok(()) };
    let mut row = change.row(first);
    let Some(differing) = change.differing(first, &key, &row)? else {
        let path = change.document.path_of(first, node.primary);
        bail!(JDV_NO_UPDATE_TAG, node.schema, node.table, node.key().name, path)
    };
    row.retain(|(name, _)| differing.contains(name));
    if row.is_empty() || !change.tags(first).update {
        return Ok(());
    }
    change.update(first, &key, &row)
}
