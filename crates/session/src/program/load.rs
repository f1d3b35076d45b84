//! From a stored text to what runs: the text is parsed once a session, the types of its variables are known by their numbers.

use std::sync::Arc;

use catalog::{Routine, RoutineParameter};
use errors::{Error, Result, bail, err};
use hashbrown::HashMap;
use syntax::Statement;
use syntax::ast::{self, BodyKind, CreateRoutine, Declaration, Program, ProgramStatement, SetItem};
use types::{CollationId, DataType, SqlMode, TypeKind};

use crate::ddl::{TypeContext, column_type};
use crate::session::Session;
use crate::show_create::quote;
use crate::statement::parse_error;

/// Routines that a session keeps parsed.
const KEPT_MAX: usize = 64;

/// A variable of a program.
#[derive(Clone, Debug)]
pub(crate) struct Variable {
    pub(crate) name: Box<str>,
    pub(crate) ty: DataType,
}

/// A routine ready to run.
#[derive(Debug)]
pub(crate) struct Loaded {
    pub(crate) routine: Arc<Routine>,
    /// The text that the spans of `body` refer to.
    pub(crate) source: Box<[u8]>,
    pub(crate) body: ProgramStatement,
    /// By number; the parameters first.
    pub(crate) variables: Vec<Variable>,
    pub(crate) types: Arc<[DataType]>,
    pub(crate) cursors: usize,
}

/// The routines that a session has parsed, by the address of their definition.
#[derive(Default)]
pub(crate) struct Programs {
    loaded: HashMap<usize, Arc<Loaded>>,
}

impl Session {
    /// The text of a routine, as CREATE would read it.
    fn routine_source(routine: &Routine) -> String {
        format!(
            "CREATE {} {}({}){}\n{}",
            routine.kind.as_str(),
            quote(&routine.name),
            routine.parameter_text,
            routine
                .returns
                .as_ref()
                .map_or_else(String::new, |(text, _)| format!(" RETURNS {text}")),
            routine.body
        )
    }

    /// A routine ready to run, parsed now unless it was before.
    pub(super) fn loaded_routine(&mut self, routine: &Arc<Routine>) -> Result<Arc<Loaded>> {
        let address = Arc::as_ptr(routine) as usize;
        if let Some(known) = self.programs.loaded.get(&address)
            && Arc::ptr_eq(&known.routine, routine)
        {
            return Ok(known.clone());
        }
        let loaded = Arc::new(self.load_routine(routine)?);
        if self.programs.loaded.len() >= KEPT_MAX {
            self.programs.loaded.clear();
        }
        self.programs.loaded.insert(address, loaded.clone());
        Ok(loaded)
    }

    /// Parses a routine.
    ///
    /// # Errors
    /// What its text and its types are refused for.
    pub(super) fn load_routine(&self, routine: &Arc<Routine>) -> Result<Loaded> {
        let source = Session::routine_source(routine).into_bytes();
        let mode = SqlMode(routine.sql_mode);
        let options = syntax::ParseOptions {
            multi_statements: false,
            ..crate::statement::parse_options_of(mode, false)
        };
        let (statement, _) =
            syntax::parse_bytes(&source, &options).map_err(|error| parse_error(&error))?;
        let Statement::CreateRoutine(create) = statement else {
            return Err(err!(SP_LOAD_FAILED, routine.name));
        };
        let create = *create;
        let (variables, cursors) = (create.variables as usize, create.cursors as usize);
        let BodyKind::Sql(body) = create.body.kind else {
            return Err(Error::not_supported("stored programs in other languages"));
        };
        let body = ProgramStatement { statement: *body, span: create.body.span };
        let parameters = routine.parameters.iter();
        let mut known: Vec<Variable> = parameters
            .map(|parameter| Variable { name: (*parameter.name).into(), ty: parameter.ty.clone() })
            .collect();
        known.resize(variables, Variable { name: "".into(), ty: DataType::null() });
        let mut types = Types { session: self, collation: routine.database_collation, mode, known };
        types.statement(&body)?;
        let known = types.known;
        Ok(Loaded {
            routine: routine.clone(),
            source: source.into(),
            body,
            types: known.iter().map(|variable| variable.ty.clone()).collect(),
            variables: known,
            cursors,
        })
    }

    /// The parameters of a routine with their types.
    pub(super) fn routine_parameters(
        &self,
        create: &CreateRoutine,
        collation: CollationId,
    ) -> Result<Vec<RoutineParameter>> {
        let mode = self.settings.sql_mode;
        let parameter = |param: &ast::RoutineParam| {
            Ok(RoutineParameter {
                name: Arc::from(&*param.name.text),
                mode: Arc::from(match param.mode {
                    None | Some(ast::ParamMode::In) => "IN",
                    Some(ast::ParamMode::Out) => "OUT",
                    Some(ast::ParamMode::InOut) => "INOUT",
                }),
                ty: self.variable_type(&param.data_type, &param.name.text, collation, mode)?,
            })
        };
        create.params.iter().map(parameter).collect()
    }

    /// What a function returns.
    pub(super) fn routine_returns(
        &self,
        create: &CreateRoutine,
        collation: CollationId,
        running: &crate::statement::Running<'_>,
    ) -> Result<Option<(Arc<str>, DataType)>> {
        let Some(written) = &create.returns else { return Ok(None) };
        let text = String::from_utf8_lossy(written.span.of(running.source)).into_owned();
        let ty = self.variable_type(written, "", collation, self.settings.sql_mode)?;
        Ok(Some((text.into(), ty)))
    }

    /// The type of a variable: a column's, but that moments are kept as they are read.
    fn variable_type(
        &self,
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
        let mut ty = column_type(written, &ctx)?.with_nullable(true);
        if ty.kind == TypeKind::Timestamp {
            ty.kind = TypeKind::DateTime;
        }
        Ok(ty)
    }
}

/// Finds the declarations of a program.
struct Types<'s> {
    session: &'s Session,
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

    /// What SET names is a variable of the program or of the system.
    fn set_item(&self, item: &SetItem) -> Result<()> {
        if let SetItem::Variable { component: None, name, .. } = item
            && self.session.server.globals.definitions.find(&name.text).is_none()
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
                let ty = self.session.variable_type(data_type, name, self.collation, self.mode)?;
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
