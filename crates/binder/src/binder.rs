//! The state of binding one statement, and its result.

use std::borrow::Cow;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use catalog::{Table, View};
use errors::Result;
use plan::{
    CteId, InstanceId, LogicalCte, LogicalPlan, LogicalStatement, LogicalSubquery, Register,
    TableInstance,
};
use plugin_api::{BindContext, Registry};
use types::DataType;

use crate::collation::Coercibilities;
use crate::reader::{CatalogReader, Notice, RequiredPrivilege, StoredProgram, VariableTypes};
use crate::scope::{Block, CteDefinition, InsertView, NewRow, RowsOf, ScopeTable, VisibleColumn};
use crate::spelling::{Change, Spelling};

/// The environment of binding.
#[derive(Clone, Copy)]
pub struct BindInput<'a> {
    /// Schemas and tables, one snapshot.
    pub catalog: &'a dyn CatalogReader,
    /// Registry of functions and information tables.
    pub registry: &'a Registry,
    /// Session facts; holds the SQL mode.
    pub bind: &'a BindContext,
    /// Types of variables.
    pub variables: &'a dyn VariableTypes,
    /// Types of the parameters, when they are known (execution, lifted literals).
    pub parameter_types: Option<&'a [DataType]>,
}

/// A bound statement.
#[derive(Debug)]
pub struct Bound {
    /// The logical plan of the statement.
    pub plan: LogicalPlan,
    /// Tables that the plan's instances refer to by position, and all others that it depends on.
    pub tables: Vec<Arc<Table>>,
    /// Stored views that it reads through.
    pub views: Vec<Arc<View>>,
    /// The privileges that the account must have.
    pub privileges: Vec<RequiredPrivilege>,
    /// Types of the parameters: as given, or inferred from their context.
    pub parameters: Vec<DataType>,
    /// Texts of warnings 1287 that each execution raises: uses of features that the reference calls deprecated.
    pub deprecations: Vec<&'static str>,
    /// It names a user or system variable itself, not through a view.
    pub names_variable: bool,
    /// The text does not decide what it does: a volatile function, a variable of the system, a change with LIMIT.
    pub has_chance: bool,
    /// Other warnings of each execution: hints with unknown names.
    pub notices: Vec<Notice>,
    /// Tables and views that the statement names itself.
    pub references: Vec<Reference>,
    /// `MAX_EXECUTION_TIME` of the statement.
    pub max_execution_millis: Option<u64>,
    /// `WAIT n`: seconds to wait for locks in this statement.
    pub lock_wait_seconds: Option<u64>,
    /// With its lifted literals in place it could use an index on an expression.
    pub wants_literals: bool,
    /// Programs that run while the plan runs.
    pub programs: Vec<StoredProgram>,
    /// Numbers of the sequences that it draws from or moves.
    pub drawn: Vec<u64>,
    /// Those of them that defaults of columns draw from.
    pub drawn_by_defaults: Vec<u64>,
}

/// A view that a statement names.
#[derive(Clone)]
pub(crate) struct NamedView {
    pub(crate) schema: Arc<str>,
    pub(crate) name: Arc<str>,
    /// The name that it has in the statement.
    pub(crate) alias: Arc<str>,
    /// The references to tables inside it.
    pub(crate) instances: Range<usize>,
}

impl NamedView {
    pub(crate) fn is_same(&self, other: &NamedView) -> bool {
        (&self.schema, &self.name) == (&other.schema, &other.name)
    }
}

/// A table or a view as a statement names it; LOCK TABLES uses the aliases.
#[derive(Clone, Debug)]
pub struct Reference {
    /// Schema.
    pub schema: Arc<str>,
    /// Its own name.
    pub name: Arc<str>,
    /// The name that it has in the statement.
    pub alias: Arc<str>,
}

/// Binds one statement.
pub struct Binder<'a> {
    pub(crate) input: BindInput<'a>,
    /// The text that spans refer to.
    pub(crate) source: Cow<'a, [u8]>,
    pub(crate) registers: u32,
    /// Nodes of expressions that were copied.
    pub(crate) copied_nodes: usize,
    /// How strongly the texts of columns hold their collations.
    pub(crate) coercibilities: Coercibilities,
    pub(crate) instances: Vec<TableInstance>,
    pub(crate) tables: Vec<Arc<Table>>,
    pub(crate) views: Vec<Arc<View>>,
    pub(crate) subqueries: Vec<LogicalSubquery>,
    /// Subqueries inside derived tables that are computed before the statement writes anything.
    pub(crate) computed_before: Vec<Range<usize>>,
    /// Views that the statement itself names, and the table references inside them.
    pub(crate) named_views: Vec<NamedView>,
    pub(crate) ctes: Vec<LogicalCte>,
    pub(crate) next_cte: u32,
    pub(crate) privileges: Vec<RequiredPrivilege>,
    pub(crate) parameters: Vec<Option<DataType>>,
    pub(crate) blocks: Vec<Block>,
    pub(crate) cte_scope: Vec<Rc<CteDefinition>>,
    pub(crate) block_count: u32,
    /// Deepest block (index) that a column reference has reached since it was last reset.
    pub(crate) deepest_reference: Option<usize>,
    /// The innermost block that an aggregate bound so far belongs to; likewise.
    pub(crate) deepest_aggregate: Option<usize>,
    /// `user@host` whose privileges count, inside a view with definer's rights.
    pub(crate) definer: Option<Arc<str>>,
    pub(crate) view_depth: u32,
    /// Inside the document of a JSON duality view.
    pub(crate) in_duality: bool,
    /// What the conditions of the query that is bound say of documents' keys.
    pub(crate) document_keys: Vec<crate::document_key::DocumentKey>,
    /// An expression of a table's definition is bound: its value must not depend on the session.
    pub(crate) in_definition: bool,
    /// Conditions of the views bound so far on rows written through them.
    pub(crate) view_checks: Vec<plan::ViewCheck>,
    /// Conditions of PARTITION (..) on rows of table references.
    pub(crate) selections: Vec<(InstanceId, plan::Expr)>,
    /// FOR SYSTEM_TIME of the view that is being bound.
    pub(crate) view_time: Option<RowsOf>,
    /// A table of that view keeps history.
    pub(crate) time_of_view_is_used: bool,
    /// Table references to rows that are not the current ones, which nothing writes.
    pub(crate) not_current: Vec<InstanceId>,
    /// Table references inside views that cannot be written through.
    pub(crate) read_only: Vec<InstanceId>,
    /// Queries inside queries.
    pub(crate) query_depth: u32,
    pub(crate) straight_join: bool,
    /// Pairs of tables: the first must be joined before the second.
    pub(crate) join_orders: Vec<(InstanceId, InstanceId)>,
    pub(crate) notices: Vec<Notice>,
    pub(crate) references: Vec<Reference>,
    pub(crate) max_execution_millis: Option<u64>,
    pub(crate) lock_wait_seconds: Option<u64>,
    /// The statement is a query.
    pub(crate) is_query: bool,
    /// The statement is UPDATE or DELETE.
    pub(crate) is_change: bool,
    pub(crate) uncacheable: bool,
    /// Only membership in the rows of the query that is bound next matters: IN, ANY, ALL, EXISTS.
    pub(crate) asks_membership: bool,
    /// With its literals in place the statement could use an index on an expression.
    pub(crate) wants_literals: bool,
    /// The text itself, not that of a view, names a user or system variable.
    pub(crate) names_variable: bool,
    pub(crate) has_chance: bool,
    pub(crate) deprecations: Vec<&'static str>,
    pub(crate) programs: Vec<StoredProgram>,
    pub(crate) drawn: Vec<u64>,
    pub(crate) drawn_by_defaults: Vec<u64>,
    /// The statement has parameters that a client binds.
    pub(crate) has_placeholders: bool,
    /// Tables of the SELECT that was bound last, when its rows are those of its tables (no grouping).
    pub(crate) last_tables: Vec<ScopeTable>,
    /// What unqualified names mean in that SELECT, where its joins have USING or NATURAL.
    pub(crate) last_visible: Option<Vec<VisibleColumn>>,
    /// INSERT into a view whose columns have other names than the table's: the view for ON DUPLICATE KEY UPDATE.
    pub(crate) insert_view: Option<InsertView>,
    /// ON DUPLICATE KEY UPDATE: the row that `VALUES(column)` reads.
    pub(crate) insert_values: Option<NewRow>,
    /// The resolved names, when the text is to be rewritten with them.
    pub(crate) spelling: Option<Spelling>,
    /// Table references of subqueries, derived tables, common table expressions, computed views and set operations' operands but the last: a
    /// locking clause outside does not lock them.
    pub(crate) locked_apart: Vec<std::ops::Range<usize>>,
    /// What the statement names, when that is asked for.
    pub(crate) usage: Option<crate::usage::Usage>,
}

/// More warnings than this give no new information.
const DEPRECATIONS_MAX: usize = 64;
/// Queries nested deeper than this are refused (1473), as the reference does.
pub(crate) const QUERY_DEPTH_MAX: u32 = 61;
/// Tables in one block.
pub(crate) const BLOCK_TABLES_MAX: usize = 61;
/// Views nested deeper than this are refused.
pub(crate) const VIEW_DEPTH_MAX: u32 = 64;

impl<'a> Binder<'a> {
    /// A binder for one statement.
    pub fn new(input: BindInput<'a>) -> Binder<'a> {
        Binder {
            coercibilities: Coercibilities::new(input.bind.collation_connection),
            input,
            source: Cow::Borrowed(&[]),
            registers: 0,
            copied_nodes: 0,
            instances: Vec::new(),
            tables: Vec::new(),
            views: Vec::new(),
            subqueries: Vec::new(),
            computed_before: Vec::new(),
            named_views: Vec::new(),
            selections: Vec::new(),
            view_time: None,
            time_of_view_is_used: false,
            not_current: Vec::new(),
            ctes: Vec::new(),
            next_cte: 0,
            privileges: Vec::new(),
            parameters: Vec::new(),
            blocks: Vec::new(),
            cte_scope: Vec::new(),
            block_count: 0,
            deepest_reference: None,
            deepest_aggregate: None,
            definer: None,
            view_depth: 0,
            in_duality: false,
            document_keys: Vec::new(),
            in_definition: false,
            view_checks: Vec::new(),
            read_only: Vec::new(),
            query_depth: 0,
            straight_join: false,
            join_orders: Vec::new(),
            notices: Vec::new(),
            max_execution_millis: None,
            lock_wait_seconds: None,
            is_query: false,
            is_change: false,
            uncacheable: false,
            asks_membership: false,
            wants_literals: false,
            programs: Vec::new(),
            drawn: Vec::new(),
            drawn_by_defaults: Vec::new(),
            names_variable: false,
            has_chance: false,
            deprecations: Vec::new(),
            references: Vec::new(),
            has_placeholders: false,
            last_tables: Vec::new(),
            last_visible: None,
            insert_view: None,
            insert_values: None,
            spelling: None,
            usage: None,
            locked_apart: Vec::new(),
        }
    }

    /// As `bind`, with the changes that write out the statement's names.
    ///
    /// # Errors
    /// As `bind`.
    pub fn bind_spelled(
        mut self,
        statement: &syntax::Statement,
        source: &'a [u8],
    ) -> Result<(Bound, Vec<Change>)> {
        self.source = Cow::Borrowed(source);
        self.spelling = Some(Spelling::default());
        let mut statement = self.bind_statement(statement)?;
        self.use_generated_columns(&mut statement)?;
        let changes = self.spelling.take().map(Spelling::finish).unwrap_or_default();
        Ok((self.finish(statement), changes))
    }

    /// Binds `statement`, whose spans refer to `source`.
    ///
    /// # Errors
    /// Every fault of a statement that shows before it runs: unknown names, ambiguity, operand counts, collations; 1235 for
    /// unsupported features.
    pub fn bind(mut self, statement: &syntax::Statement, source: &'a [u8]) -> Result<Bound> {
        self.source = Cow::Borrowed(source);
        let mut statement = self.bind_statement(statement)?;
        self.use_generated_columns(&mut statement)?;
        Ok(self.finish(statement))
    }

    pub(crate) fn finish(self, statement: LogicalStatement) -> Bound {
        let fallback = self.default_parameter_type();
        let parameters =
            self.parameters.into_iter().map(|ty| ty.unwrap_or_else(|| fallback.clone())).collect();
        Bound {
            plan: LogicalPlan {
                statement,
                instances: self.instances,
                subqueries: self.subqueries,
                ctes: self.ctes,
                registers: self.registers,
                cte_ids: self.next_cte,
                straight_join: self.straight_join,
                join_orders: self.join_orders,
                uncacheable: self.uncacheable,
            },
            tables: self.tables,
            views: self.views,
            privileges: self.privileges,
            parameters,
            names_variable: self.names_variable,
            has_chance: self.has_chance,
            deprecations: self.deprecations,
            notices: self.notices,
            references: self.references,
            max_execution_millis: self.max_execution_millis,
            lock_wait_seconds: self.lock_wait_seconds,
            wants_literals: self.wants_literals,
            programs: self.programs,
            drawn: self.drawn,
            drawn_by_defaults: self.drawn_by_defaults,
        }
    }

    /// The type of a parameter whose context does not determine one.
    pub(crate) fn default_parameter_type(&self) -> DataType {
        DataType::varchar(16_383, self.input.bind.collation_connection)
    }

    /// Notes a use of a deprecated feature; nothing inside a view counts.
    pub(crate) fn deprecate(&mut self, text: &'static str) {
        if self.view_depth == 0 && self.deprecations.len() < DEPRECATIONS_MAX {
            self.deprecations.push(text);
        }
    }

    pub(crate) fn new_register(&mut self) -> Register {
        self.registers += 1;
        Register(self.registers - 1)
    }

    pub(crate) fn new_registers(&mut self, count: usize) -> Register {
        let base = Register(self.registers);
        self.registers += count as u32;
        base
    }

    pub(crate) fn new_cte(&mut self) -> CteId {
        self.next_cte += 1;
        CteId(self.next_cte - 1)
    }

    /// Position of `table` in the statement's list.
    pub(crate) fn table_index(&mut self, table: &Arc<Table>) -> usize {
        if let Some(position) = self.tables.iter().position(|known| Arc::ptr_eq(known, table)) {
            return position;
        }
        self.tables.push(table.clone());
        self.tables.len() - 1
    }

    pub(crate) fn instance(&self, id: InstanceId) -> &TableInstance {
        &self.instances[id.0 as usize]
    }
}
