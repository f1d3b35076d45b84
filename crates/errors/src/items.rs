//! What a condition says beside its number, state and message: the items that SIGNAL sets and GET DIAGNOSTICS reads.

/// An item of a condition that is a text and has no place of its own in a [`Condition`](crate::Condition).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConditionItem {
    /// Who defined the class of the SQLSTATE, its first two characters.
    ClassOrigin,
    /// Who defined the last three characters.
    SubclassOrigin,
    /// The catalog of a constraint that is broken.
    ConstraintCatalog,
    /// The schema of the constraint.
    ConstraintSchema,
    /// The name of the constraint.
    ConstraintName,
    /// The catalog of a table.
    CatalogName,
    /// The schema of the table.
    SchemaName,
    /// The name of the table.
    TableName,
    /// The name of a column.
    ColumnName,
    /// The name of a cursor.
    CursorName,
}

const NAMES: [(&str, ConditionItem); 10] = [
    ("CLASS_ORIGIN", ConditionItem::ClassOrigin),
    ("SUBCLASS_ORIGIN", ConditionItem::SubclassOrigin),
    ("CONSTRAINT_CATALOG", ConditionItem::ConstraintCatalog),
    ("CONSTRAINT_SCHEMA", ConditionItem::ConstraintSchema),
    ("CONSTRAINT_NAME", ConditionItem::ConstraintName),
    ("CATALOG_NAME", ConditionItem::CatalogName),
    ("SCHEMA_NAME", ConditionItem::SchemaName),
    ("TABLE_NAME", ConditionItem::TableName),
    ("COLUMN_NAME", ConditionItem::ColumnName),
    ("CURSOR_NAME", ConditionItem::CursorName),
];

impl ConditionItem {
    /// The item of an SQL name, in any case.
    pub fn of_name(name: &str) -> Option<ConditionItem> {
        let known = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(name));
        known.map(|(_, item)| *item)
    }
}

/// The items of one condition. Most conditions have none: they keep an empty box of them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConditionItems([String; NAMES.len()]);

impl ConditionItems {
    /// The items of a condition that the server itself raised: the origins that its SQLSTATE tells.
    pub fn of_server(sqlstate: [u8; 5]) -> ConditionItems {
        // The SQL standard keeps these first letters for itself.
        let is_standard = matches!(sqlstate[0], b'0'..=b'4' | b'A'..=b'H');
        let origin = if is_standard { "ISO 9075" } else { "MySQL" };
        let mut items = ConditionItems::default();
        items.set(ConditionItem::ClassOrigin, origin.to_owned());
        items.set(ConditionItem::SubclassOrigin, origin.to_owned());
        items
    }

    /// The text of an item; empty when nobody set it.
    pub fn get(&self, item: ConditionItem) -> &str {
        self.0.get(item as usize).map_or("", String::as_str)
    }

    /// Sets an item.
    pub fn set(&mut self, item: ConditionItem, text: String) {
        if let Some(place) = self.0.get_mut(item as usize) {
            *place = text;
        }
    }
}
