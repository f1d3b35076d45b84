//! From a stored text to a program that can run: the text is parsed once per session, its variables are found by number.

use std::sync::Arc;

use catalog::{Routine, RoutineParameter, Table, Trigger};
use definitions::{TypeContext, column_type, quote};
use errors::{Error, Result, bail, err};
use syntax::Statement;
use syntax::ast::{self, BodyKind, CreateRoutine, Declaration, Program, ProgramStatement, SetItem};
use types::{CollationId, DataType, SqlMode, TypeKind};

use crate::external::{ExternalCode, is_current, load_external};
use crate::host::ProgramHost;
use crate::running::Running;
use crate::text::{parse_error, parse_options_of};

/// A variable of a program.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: Box<str>,
    pub(crate) ty: DataType,
}

/// The definition that a program was made from.
#[derive(Clone, Debug)]
pub enum Made {
    /// A procedure, a function, or the body of an event.
    Routine(Arc<Routine>),
    /// A trigger of the table as it is now.
    Trigger(Arc<Trigger>, Arc<Table>),
}

/// A column of OLD or NEW that a trigger names.
#[derive(Debug)]
pub(crate) struct RowSlot {
    pub(crate) is_new: bool,
    /// Its position in the row: stored columns first, then those that are computed when read.
    pub(crate) position: usize,
    /// The variable.
    pub(crate) slot: usize,
    pub(crate) assigned: bool,
    /// The column's own type.
    pub(crate) ty: DataType,
}

/// The code of a program.
#[derive(Debug)]
pub(crate) enum Code {
    /// Statements.
    Sql(ProgramStatement),
    /// Of a language other than SQL.
    External(ExternalCode),
}

/// A program ready to run.
#[derive(Debug)]
pub struct Loaded {
    /// The definition that it was made from.
    pub made: Made,
    /// The schema of its unqualified names.
    pub schema: Arc<str>,
    /// `user@host`.
    pub definer: Arc<str>,
    /// It runs with the caller's privileges.
    pub invoker: bool,
    /// The SQL mode that it was created in.
    pub sql_mode: u64,
    /// Of triggers.
    pub(crate) row: Vec<RowSlot>,
    /// The text that the spans of its statements refer to.
    pub(crate) source: Box<[u8]>,
    pub(crate) code: Code,
    /// By number; the parameters first.
    pub(crate) variables: Vec<Variable>,
    pub(crate) types: Arc<[DataType]>,
    pub(crate) cursors: usize,
}

impl Made {
    /// The address of the definition, by which a session finds the program that it has loaded from it.
    pub(crate) fn address(&self) -> usize {
        match self {
            Made::Routine(routine) => Arc::as_ptr(routine) as usize,
            Made::Trigger(trigger, _) => Arc::as_ptr(trigger) as usize,
        }
    }
}

impl Loaded {
    /// Whether it is this routine.
    pub(crate) fn is_routine(&self, routine: &Routine) -> bool {
        match &self.made {
            Made::Routine(own) => {
                own.kind == routine.kind && own.name == routine.name && own.schema == routine.schema
            }
            Made::Trigger(..) => false,
        }
    }

    /// Whether it was made from `other`.
    pub(crate) fn is_made_from(&self, other: &Made) -> bool {
        match (&self.made, other) {
            (Made::Routine(own), Made::Routine(other)) => Arc::ptr_eq(own, other),
            (Made::Trigger(own, table), Made::Trigger(other, now)) => {
                Arc::ptr_eq(own, other) && Arc::ptr_eq(table, now)
            }
            (Made::Routine(_), Made::Trigger(..)) | (Made::Trigger(..), Made::Routine(_)) => false,
        }
    }
}

/// The text of a routine, as CREATE would parse it.
fn routine_source(routine: &Routine) -> String {
    format!(
        "CREATE {} {}({}){}\n{}",
        routine.kind.as_str(),
        quote(&routine.name),
        routine.parameter_text,
        routine.returns.as_ref().map_or_else(String::new, |(text, _)| format!(" RETURNS {text}")),
        routine.body
    )
}

/// Returns a program ready to run; parses it unless that is already done.
///
/// # Errors
/// Errors in its text.
pub fn loaded<H: ProgramHost + ?Sized>(host: &mut H, made: Made) -> Result<Arc<Loaded>> {
    if let Some(known) = host.state().known(&made) {
        match &known.code {
            Code::External(code) if !is_current(host, code) => {}
            Code::Sql(_) | Code::External(_) => return Ok(known),
        }
    }
    let is_variable = |name: &str| host.has_variable(name);
    let loaded = Arc::new(match &made {
        Made::Routine(routine) => match &routine.external {
            Some(external) => load_external(host, routine, external)?,
            None => load_routine(&is_variable, routine)?,
        },
        Made::Trigger(trigger, table) => load_trigger(&is_variable, trigger, table)?,
    });
    host.state_mut().keep(loaded.clone());
    Ok(loaded)
}

/// Parses a trigger and finds the columns that it names.
///
/// # Errors
/// Errors in its text; 1054.
pub(crate) fn load_trigger(
    is_variable: &dyn Fn(&str) -> bool,
    trigger: &Arc<Trigger>,
    table: &Arc<Table>,
) -> Result<Loaded> {
    let source = format!(
        "CREATE TRIGGER {} {} {} ON {} FOR EACH ROW {}",
        quote(&trigger.name),
        trigger.timing(),
        trigger.event.as_str(),
        quote(&trigger.table),
        trigger.body
    )
    .into_bytes();
    let mode = SqlMode(trigger.sql_mode);
    let Statement::CreateTrigger(create) = parse_program(&source, mode)? else {
        return Err(err!(SP_LOAD_FAILED, trigger.name));
    };
    let BodyKind::Sql(body) = create.body.kind else {
        return Err(Error::internal("a body in another language"));
    };
    let body = ProgramStatement { statement: *body, span: create.body.span };
    let mut known =
        vec![Variable { name: "".into(), ty: DataType::null() }; create.variables as usize];
    let mut row = Vec::with_capacity(create.row_columns.len());
    for named in &create.row_columns {
        let (position, column) = row_column(table, named)?;
        let slot = named.slot as usize;
        known[slot] = Variable { name: (*column.name).into(), ty: variable_of(column.ty.clone()) };
        let (is_new, assigned) = (named.is_new, named.assigned);
        // A generated column is computed again.
        let assigned = assigned && !column.is_computed();
        row.push(RowSlot { is_new, position, slot, assigned, ty: column.ty.clone() });
    }
    let collation = trigger.database_collation;
    let mut types = Types { is_variable, collation, mode, known };
    types.statement(&body)?;
    let known = types.known;
    Ok(Loaded {
        made: Made::Trigger(trigger.clone(), table.clone()),
        schema: trigger.schema.clone(),
        definer: trigger.definer.clone(),
        invoker: false,
        sql_mode: trigger.sql_mode,
        row,
        source: source.into(),
        code: Code::Sql(body),
        types: known.iter().map(|variable| variable.ty.clone()).collect(),
        variables: known,
        cursors: create.cursors as usize,
    })
}

/// Parses a routine.
///
/// # Errors
/// Errors in its text and its types.
pub(crate) fn load_routine(
    is_variable: &dyn Fn(&str) -> bool,
    routine: &Arc<Routine>,
) -> Result<Loaded> {
    let source = routine_source(routine).into_bytes();
    let mode = SqlMode(routine.sql_mode);
    let Statement::CreateRoutine(create) = parse_program(&source, mode)? else {
        return Err(err!(SP_LOAD_FAILED, routine.name));
    };
    let create = *create;
    let (variables, cursors) = (create.variables as usize, create.cursors as usize);
    let BodyKind::Sql(body) = create.body.kind else {
        return Err(Error::internal("a body in another language"));
    };
    let body = ProgramStatement { statement: *body, span: create.body.span };
    let parameters = routine.parameters.iter();
    let mut known: Vec<Variable> = parameters
        .map(|parameter| Variable { name: (*parameter.name).into(), ty: parameter.ty.clone() })
        .collect();
    known.resize(variables, Variable { name: "".into(), ty: DataType::null() });
    let mut types = Types { is_variable, collation: routine.database_collation, mode, known };
    types.statement(&body)?;
    let known = types.known;
    Ok(Loaded {
        made: Made::Routine(routine.clone()),
        schema: routine.schema.clone(),
        definer: routine.definer.clone(),
        invoker: routine.invoker,
        sql_mode: routine.sql_mode,
        row: Vec::new(),
        source: source.into(),
        code: Code::Sql(body),
        types: known.iter().map(|variable| variable.ty.clone()).collect(),
        variables: known,
        cursors,
    })
}

/// The parameters of a routine with their types.
pub(crate) fn routine_parameters(
    mode: SqlMode,
    create: &CreateRoutine,
    collation: CollationId,
) -> Result<Vec<RoutineParameter>> {
    let parameter = |param: &ast::RoutineParam| {
        Ok(RoutineParameter {
            name: Arc::from(&*param.name.text),
            mode: Arc::from(match param.mode {
                None | Some(ast::ParamMode::In) => "IN",
                Some(ast::ParamMode::Out) => "OUT",
                Some(ast::ParamMode::InOut) => "INOUT",
            }),
            ty: variable_type(&param.data_type, &param.name.text, collation, mode)?,
        })
    };
    create.params.iter().map(parameter).collect()
}

/// The return type of a function.
pub(crate) fn routine_returns(
    mode: SqlMode,
    create: &CreateRoutine,
    collation: CollationId,
    running: &Running<'_>,
) -> Result<Option<(Arc<str>, DataType)>> {
    let Some(written) = &create.returns else { return Ok(None) };
    let text = String::from_utf8_lossy(written.span.of(running.source)).into_owned();
    let ty = variable_type(written, "", collation, mode)?;
    Ok(Some((text.into(), ty)))
}

/// The type of a variable: that of a column, except that timestamps are kept as they are read.
fn variable_type(
    written: &ast::DataType,
    name: &str,
    collation: CollationId,
    sql_mode: SqlMode,
) -> Result<DataType> {
    let ctx = TypeContext {
        table_collation: collation,
        collate: written.collation.as_ref().map(|name| &*name.text),
        sql_mode,
        enum_members_max: 0,
        column: name,
    };
    Ok(variable_of(column_type(written, &ctx)?))
}
/// The type of a variable for values of a column's type.
fn variable_of(ty: DataType) -> DataType {
    let mut ty = ty.with_nullable(true);
    if ty.kind == TypeKind::Timestamp {
        ty.kind = TypeKind::DateTime;
    }
    ty
}

/// The statement of a program's text.
pub(crate) fn parse_program(source: &[u8], mode: SqlMode) -> Result<Statement> {
    let options = syntax::ParseOptions { multi_statements: false, ..parse_options_of(mode, false) };
    let parsed = syntax::parse_bytes(source, &options);
    parsed.map(|(statement, _)| statement).map_err(|error| parse_error(&error))
}

/// The column that a trigger names, and its position in the row.
fn row_column<'t>(
    table: &'t Table,
    named: &ast::RowColumn,
) -> Result<(usize, &'t catalog::Column)> {
    let is_hidden =
        |column: &catalog::Column| column.generated.as_ref().is_some_and(|made| made.hidden);
    let found = table.column(&named.name.text).filter(|at| !is_hidden(&table.columns[*at]));
    let Some(at) = found else {
        bail!(BAD_FIELD_ERROR, named.name.text, if named.is_new { "NEW" } else { "OLD" });
    };
    let column = &table.columns[at];
    let stored = table.columns.iter().filter(|column| column.stored.is_some()).count();
    let computed = table.columns[..at]
        .iter()
        .filter(|column| column.stored.is_none() && column.generated.is_some());
    Ok((column.stored.unwrap_or_else(|| stored + computed.count()), column))
}

/// Finds the declarations of a program.
struct Types<'s> {
    is_variable: &'s dyn Fn(&str) -> bool,
    collation: CollationId,
    mode: SqlMode,
    known: Vec<Variable>,
}

impl Types<'_> {
    fn all(&mut self, statements: &[ProgramStatement]) -> Result<()> {
        statements.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &ProgramStatement) -> Result<()> {
        let program = match &statement.statement {
            Statement::Program(program) => program,
            Statement::Set(items) => return items.iter().try_for_each(|item| self.set_item(item)),
            _ => return Ok(()),
        };
        match &**program {
            Program::Block(block) => {
                block
                    .declarations
                    .iter()
                    .try_for_each(|declaration| self.declaration(declaration))?;
                self.all(&block.body)
            }
            Program::If { branches, otherwise } => self.branches(branches, otherwise.as_deref()),
            Program::Case { whens, otherwise, .. } => self.branches(whens, otherwise.as_deref()),
            Program::Loop { body, .. }
            | Program::While { body, .. }
            | Program::Repeat { body, .. } => self.all(body),
            Program::Leave(_)
            | Program::Iterate(_)
            | Program::Return(_)
            | Program::Open(_)
            | Program::Close(_)
            | Program::Fetch { .. } => Ok(()),
        }
    }

    /// Checks that SET names a variable of the program or of the system.
    fn set_item(&self, item: &SetItem) -> Result<()> {
        if let SetItem::Variable { component: None, name, .. } = item
            && !(self.is_variable)(&name.text)
        {
            bail!(UNKNOWN_SYSTEM_VARIABLE, name.text);
        }
        Ok(())
    }

    fn branches(
        &mut self,
        branches: &[(ast::Expr, Vec<ProgramStatement>)],
        otherwise: Option<&[ProgramStatement]>,
    ) -> Result<()> {
        branches.iter().try_for_each(|(_, statements)| self.all(statements))?;
        self.all(otherwise.unwrap_or_default())
    }

    fn declaration(&mut self, declaration: &Declaration) -> Result<()> {
        match declaration {
            Declaration::Variables { names, first_slot, data_type, .. } => {
                let name = names.first().map_or("", |name| &name.text);
                let ty = variable_type(data_type, name, self.collation, self.mode)?;
                for (name, slot) in names.iter().zip(*first_slot as usize..) {
                    if let Some(variable) = self.known.get_mut(slot) {
                        *variable = Variable { name: name.text.clone(), ty: ty.clone() };
                    }
                }
                Ok(())
            }
            Declaration::Handler { body, .. } => self.statement(body),
            Declaration::Condition { .. } | Declaration::Cursor { .. } => Ok(()),
        }
    }
}
