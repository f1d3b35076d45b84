//! The schemas and tables that a statement creates, alters, renames or drops, for plugins that observe or deny.

use plugin_api::{SchemaChange, SchemaChangeKind, SessionFacts};
use syntax::ast::{AlterAction, ObjectName, Statement};

/// A change of a schema or table by a statement.
pub struct Change {
    kind: SchemaChangeKind,
    pub schema: String,
    pub table: Option<String>,
    pub renamed: Option<(String, String)>,
}

impl Change {
    pub fn event<'a>(&'a self, session: SessionFacts<'a>) -> SchemaChange<'a> {
        let renamed = self.renamed.as_ref();
        SchemaChange {
            session,
            kind: self.kind,
            schema: &self.schema,
            table: self.table.as_deref(),
            renamed: renamed.map(|(schema, table)| (schema.as_str(), table.as_str())),
        }
    }
}

/// The schemas and tables that a statement changes; `current` is the current schema.
pub fn changes_of(statement: &Statement, current: Option<&str>) -> Vec<Change> {
    use SchemaChangeKind::{
        AlterDatabase, AlterTable, CreateDatabase, CreateTable, DropDatabase, DropTable,
        RenameTable, TruncateTable,
    };
    let place = |name: &ObjectName| {
        let schema = name.schema.as_ref().map(|schema| &*schema.text).or(current);
        (schema.unwrap_or_default().to_owned(), name.name.text.to_string())
    };
    let database =
        |kind, name: &str| Change { kind, schema: name.to_owned(), table: None, renamed: None };
    let table = |kind, name: &ObjectName| {
        let (schema, table) = place(name);
        Change { kind, schema, table: Some(table), renamed: None }
    };
    let rename = |from: &ObjectName, to: &ObjectName| Change {
        renamed: Some(place(to)),
        ..table(RenameTable, from)
    };
    let each = |kind, names: &[ObjectName]| names.iter().map(|name| table(kind, name)).collect();
    if let Statement::CreateDatabase(create) = statement {
        return vec![database(CreateDatabase, &create.name.text)];
    }
    if let Statement::AlterDatabase(alter) = statement {
        let name = alter.name.as_ref().map(|name| &*name.text).or(current);
        return vec![database(AlterDatabase, name.unwrap_or_default())];
    }
    if let Statement::DropDatabase(drop) = statement {
        return vec![database(DropDatabase, &drop.name.text)];
    }
    if let Statement::CreateTable(create) = statement {
        return vec![table(CreateTable, &create.name)];
    }
    if let Statement::CreateView(create) = statement {
        return vec![table(CreateTable, &create.name)];
    }
    if let Statement::CreateSequence(create) = statement {
        return vec![table(CreateTable, &create.name)];
    }
    if let Statement::AlterSequence(alter) = statement {
        return vec![table(AlterTable, &alter.name)];
    }
    if let Statement::AlterView(alter) = statement {
        return vec![table(AlterTable, &alter.name)];
    }
    if let Statement::AlterTable(alter) = statement {
        let mut changes = vec![table(AlterTable, &alter.name)];
        for action in &alter.actions {
            if let AlterAction::RenameTable(to) = action {
                changes.push(rename(&alter.name, to));
            }
        }
        return changes;
    }
    if let Statement::CreateIndex(create) = statement {
        return vec![table(AlterTable, &create.table)];
    }
    if let Statement::DropIndex(drop) = statement {
        return vec![table(AlterTable, &drop.table)];
    }
    if let Statement::DropTable(drop) = statement {
        return each(DropTable, &drop.names);
    }
    if let Statement::DropView(drop) | Statement::DropSequence(drop) = statement {
        return each(DropTable, &drop.names);
    }
    if let Statement::RenameTable(renames) = statement {
        return renames.renames.iter().map(|(from, to)| rename(from, to)).collect();
    }
    if let Statement::TruncateTable(name) = statement {
        return vec![table(TruncateTable, name)];
    }
    Vec::new()
}
