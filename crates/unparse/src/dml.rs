//! INSERT, REPLACE, UPDATE and DELETE to text.

use syntax::ast::*;

use crate::Printer;

impl Printer<'_> {
    fn hints(&mut self, hints: Option<&str>) {
        if let Some(hints) = hints {
            self.s("/*+");
            self.s(hints);
            self.s("*/ ");
        }
    }

    fn partitions(&mut self, partitions: &[Ident]) {
        if !partitions.is_empty() {
            self.s(" PARTITION ");
            self.paren_idents(partitions);
        }
    }

    fn assignments(&mut self, assignments: &[Assignment]) {
        self.list(assignments, |p, assignment| {
            p.column(&assignment.column);
            p.s(" = ");
            p.expr(&assignment.value);
        });
    }

    fn returning(&mut self, items: &[SelectItem]) {
        if !items.is_empty() {
            self.s(" returning ");
            self.select_items(items);
        }
    }

    pub(super) fn insert(&mut self, insert: &Insert) {
        self.s(if insert.replace { "replace " } else { "insert " });
        self.hints(insert.hints.as_deref());
        self.s(match insert.priority {
            Priority::Normal => "",
            Priority::Low => "low_priority ",
            Priority::Delayed => "delayed ",
            Priority::High => "high_priority ",
        });
        self.when(insert.ignore, "ignore ");
        self.s("into ");
        self.object(&insert.table);
        self.partitions(&insert.partitions);
        if let Some(columns) = &insert.columns {
            self.s(" (");
            self.list(columns, Self::column);
            self.s(")");
        }
        match &insert.source {
            InsertSource::Values(rows) => {
                self.s(" values ");
                self.list(rows, |p, row| {
                    p.s("(");
                    p.exprs(row);
                    p.s(")");
                });
            }
            InsertSource::Set(assignments) => {
                self.s(" set ");
                self.assignments(assignments);
            }
            InsertSource::Query(query) => {
                self.s(" ");
                self.query(query);
            }
        }
        if let Some(alias) = &insert.row_alias {
            self.s(" as ");
            self.ident(&alias.name);
            if !alias.columns.is_empty() {
                self.s(" ");
                self.paren_idents(&alias.columns);
            }
        }
        if !insert.on_duplicate.is_empty() {
            self.s(" on duplicate key update ");
            self.assignments(&insert.on_duplicate);
        }
        self.returning(&insert.returning);
    }

    pub(super) fn update(&mut self, update: &Update) {
        self.with(update.with.as_ref());
        self.s("update ");
        self.hints(update.hints.as_deref());
        self.when(update.low_priority, "low_priority ");
        self.when(update.ignore, "ignore ");
        if let (Some(portion), [TableFactor::Table(table)]) = (&update.portion, &update.tables[..])
        {
            self.object(&table.name);
            self.partitions(&table.partitions);
            self.portion(portion);
            if let Some(alias) = &table.alias {
                self.s(" ");
                self.ident(alias);
            }
        } else {
            self.table_factors(&update.tables);
        }
        self.s(" set ");
        self.assignments(&update.set);
        self.filter(" where ", update.filter.as_ref());
        self.order_by(&update.order_by);
        self.limit(update.limit.as_ref());
        self.returning(&update.returning);
    }

    fn portion(&mut self, portion: &Portion) {
        self.s(" for portion of ");
        self.ident(&portion.name);
        self.s(" from ");
        self.expr(&portion.from);
        self.s(" to ");
        self.expr(&portion.to);
    }

    pub(super) fn delete(&mut self, delete: &Delete) {
        self.with(delete.with.as_ref());
        self.s("delete ");
        self.hints(delete.hints.as_deref());
        self.when(delete.low_priority, "low_priority ");
        self.when(delete.quick, "quick ");
        self.when(delete.ignore, "ignore ");
        match &delete.target {
            DeleteTarget::Single(table) => {
                self.s("from ");
                self.object(&table.name);
                if let Some(alias) = &table.alias {
                    self.s(" ");
                    self.ident(alias);
                }
                self.partitions(&table.partitions);
                if let Some(portion) = &delete.portion {
                    self.portion(portion);
                }
            }
            DeleteTarget::History { table, before } => {
                self.s("history from ");
                self.object(&table.name);
                if let Some(before) = before {
                    self.s(" before system_time ");
                    self.system_point(before);
                }
            }
            DeleteTarget::Multi { tables, using, from } => {
                self.when(*using, "from ");
                self.list(tables, Self::object);
                self.s(if *using { " using " } else { " from " });
                self.table_factors(from);
            }
        }
        self.filter(" where ", delete.filter.as_ref());
        self.order_by(&delete.order_by);
        self.limit(delete.limit.as_ref());
        self.returning(&delete.returning);
    }
}
