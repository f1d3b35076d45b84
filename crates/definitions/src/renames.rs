//! RENAME TABLE as edits of the catalog.

use std::sync::Arc;

use catalog::{CatalogSnapshot, Edit, Relation, Table, View};
use errors::{Result, bail, err};

use crate::names::check_made_names;

/// Schema and name.
pub type QualifiedName = (Arc<str>, Arc<str>);

/// The edits of a list of renames, each of which sees the previous ones.
///
/// # Errors
/// 1049, 1050, 1146; 1450 for a view that would change its schema.
pub fn rename_edits(
    catalog: &CatalogSnapshot,
    pairs: &[(QualifiedName, QualifiedName)],
) -> Result<Vec<Edit>> {
    let mut catalog = catalog.clone();
    let mut edits = Vec::new();
    for (from, to) in pairs {
        if catalog.schema(&to.0).is_none() {
            bail!(BAD_DB_ERROR, to.0);
        }
        if catalog.relation(&to.0, &to.1).is_some() {
            bail!(TABLE_EXISTS_ERROR, to.1);
        }
        let Some(relation) = catalog.relation(&from.0, &from.1) else {
            return Err(err!(NO_SUCH_TABLE, from.0, from.1));
        };
        let renaming = match relation {
            Relation::Table(table) => rename_table(&catalog, &table, to)?,
            Relation::View(_) if from.0 != to.0 => {
                bail!(FORBID_SCHEMA_CHANGE, from.0, to.0);
            }
            Relation::View(view) => {
                let mut new = View::clone(&view);
                new.name = to.1.clone();
                let (schema, name) = from.clone();
                vec![Edit::ReplaceView { schema, name, new: Arc::new(new) }]
            }
        };
        for edit in renaming {
            catalog.apply(&edit)?;
            edits.push(edit);
        }
    }
    Ok(edits)
}

/// A table under another name, and those that refer to it.
fn rename_table(catalog: &CatalogSnapshot, table: &Table, to: &QualifiedName) -> Result<Vec<Edit>> {
    let mut new = table.clone();
    new.rename(&to.0, &to.1);
    check_made_names(&new)?;
    let mut edits = vec![Edit::ReplaceTable { old: table.id, new: Arc::new(new) }];
    for child in catalog.children_of(&table.schema, &table.name) {
        if child.id != table.id {
            let mut child = Table::clone(&child);
            child.redirect_foreign_keys((&table.schema, &table.name), (&to.0, &to.1));
            edits.push(Edit::ReplaceTable { old: child.id, new: Arc::new(child) });
        }
    }
    Ok(edits)
}
