//! The binder's queries to its environment, and its privilege requests.

use std::sync::Arc;

use catalog::{CatalogView, Relation, Table};
use errors::ErrorCode;
use plan::Expr;
use types::{DataType, FunctionRef};

/// One snapshot of the catalog as a session sees it.
pub trait CatalogReader {
    /// The current schema.
    fn current_database(&self) -> Option<&str>;
    /// Whether a schema exists, the information schemas included.
    fn schema_exists(&self, schema: &str) -> bool;
    /// Whether a schema is READ ONLY: nothing writes its tables.
    fn is_read_only(&self, _schema: &str) -> bool {
        false
    }
    /// The table or view called `schema.name`; the session's temporary tables hide others. Information tables are found in the
    /// registry, not here.
    fn relation(&self, schema: &str, name: &str) -> Option<Relation>;
    /// Foreign keys of other tables (or the same) that refer to `schema.name`: the table and the position of the key in it.
    fn referencing_keys(&self, schema: &str, name: &str) -> Vec<(Arc<Table>, usize)>;
    /// The triggers of a stored table, those of one event and time in order.
    fn triggers(&self, _table: &Table) -> Vec<Arc<catalog::Trigger>> {
        Vec::new()
    }
    /// The stored function called `schema.name`.
    fn stored_function(&self, _schema: &str, _name: &str) -> Option<Arc<catalog::Routine>> {
        None
    }
}

/// Reads a session's view of the catalog.
pub struct ViewReader<'a> {
    /// The view.
    pub view: &'a CatalogView,
    /// The schema of unqualified names.
    pub database: Option<&'a str>,
}

impl CatalogReader for ViewReader<'_> {
    fn current_database(&self) -> Option<&str> {
        self.database
    }

    fn schema_exists(&self, schema: &str) -> bool {
        self.view.has_schema(schema) || catalog::system_schema(schema).is_some()
    }

    fn is_read_only(&self, schema: &str) -> bool {
        let schema = self.view.snapshot.schema(schema);
        schema.is_some_and(|schema| schema.options.is_read_only)
    }

    fn relation(&self, schema: &str, name: &str) -> Option<Relation> {
        self.view.relation(schema, name)
    }

    fn triggers(&self, table: &Table) -> Vec<Arc<catalog::Trigger>> {
        self.view.snapshot.triggers_of(&table.schema, &table.name)
    }

    fn stored_function(&self, schema: &str, name: &str) -> Option<Arc<catalog::Routine>> {
        self.view.snapshot.routine(schema, catalog::RoutineKind::Function, name).cloned()
    }

    fn referencing_keys(&self, schema: &str, name: &str) -> Vec<(Arc<Table>, usize)> {
        let mut keys = Vec::new();
        for child in self.view.snapshot.children_of(schema, name) {
            for (position, key) in child.foreign_keys.iter().enumerate() {
                if *key.referenced_schema == *schema && *key.referenced_table == *name {
                    keys.push((child.clone(), position));
                }
            }
        }
        // As they were made: changes of a child do not change the order of cascades.
        keys.sort_by_key(|(child, _)| child.id);
        keys
    }
}

/// What an expression of a table's definition may use of the catalog: sequences.
pub struct OnlySequences<'a>(pub &'a CatalogView);

impl CatalogReader for OnlySequences<'_> {
    fn current_database(&self) -> Option<&str> {
        None
    }

    fn schema_exists(&self, _schema: &str) -> bool {
        false
    }

    fn relation(&self, schema: &str, name: &str) -> Option<Relation> {
        let table = self.0.table(schema, name).filter(|table| table.is_sequence())?;
        Some(Relation::Table(table))
    }

    fn referencing_keys(&self, _schema: &str, _name: &str) -> Vec<(Arc<Table>, usize)> {
        Vec::new()
    }
}

/// A stored program that runs while the statement runs, by its number in the plan.
#[derive(Clone, Debug)]
pub enum StoredProgram {
    /// A trigger, and the table that it belongs to.
    Trigger(Arc<catalog::Trigger>, Arc<Table>),
    /// A function, as one place of the statement calls it.
    Function {
        /// The function.
        routine: Arc<catalog::Routine>,
        /// The types of its arguments.
        arguments: Vec<DataType>,
        /// The call as written, for messages.
        caption: Arc<str>,
    },
    /// Whatever statements the functions of plugins run.
    Statements,
}

/// Types of variables at bind time.
pub trait VariableTypes {
    /// The type of `@name`; `None` when it was never set.
    fn user_variable(&self, name: &str) -> Option<DataType>;
    /// The type of `@@name` (lower case) in the global or session scope; `None` when the variable does not exist (1193).
    ///
    /// # Errors
    /// 1238 when the variable has no such scope.
    fn system_variable(
        &self,
        name: &str,
        scope: Option<syntax::ast::VarScope>,
    ) -> errors::Result<Option<DataType>>;
    /// The text of warning 1287 about `@@name` (lower case), if it is about to be removed.
    fn removal_of(&self, _name: &str) -> Option<&'static str> {
        None
    }
}

/// The operation on a table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PrivilegeKind {
    Select,
    /// SELECT on the columns that are read, on none if none are: of a table that is written.
    SelectColumns,
    Insert,
    Update,
    Delete,
}

/// A privilege that a statement needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredPrivilege {
    /// Schema.
    pub schema: Arc<str>,
    /// Table or view.
    pub table: Arc<str>,
    /// Columns that are used; empty: any one column suffices (`SELECT COUNT(*)`).
    pub columns: Vec<Arc<str>>,
    /// The operation.
    pub kind: PrivilegeKind,
    /// `user@host` whose privilege counts instead of the session's: the definer of a view.
    pub definer: Option<Arc<str>>,
}

/// An expression of a table definition, bound over registers `0..columns`.
#[derive(Clone, Debug)]
pub struct BoundTableExpression {
    /// The expression; column `i` of the table is register `i`.
    pub expr: Expr,
    /// Columns that it reads, ascending.
    pub columns: Vec<usize>,
    /// Features that make it give another result the next time.
    pub disallowed: Option<Disallowed>,
}

/// Features that an expression of a table must not use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Disallowed {
    /// A function; defaults may call it.
    Function(FunctionRef),
    /// A function that no definition may call.
    AnyCall(FunctionRef),
    /// A user or system variable.
    Variable,
    /// A subquery, a parameter, or a function whose plugin may be removed.
    Other,
}

/// A warning of each execution.
pub type Notice = (ErrorCode, String);
