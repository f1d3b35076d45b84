//! Stored programs: routines, triggers, events, and the statements that only they may contain.

use super::{
    CreateFlags, DataType, Expr, Ident, IntervalUnit, ObjectName, Span, SqlSecurity, Statement,
    UserName,
};

/// The body of a stored program: its text and its statements.
#[derive(Clone, Debug, PartialEq)]
pub struct Body {
    /// The text, from the first to the last byte of the body.
    pub span: Span,
    /// Its statements.
    pub kind: BodyKind,
}

/// The languages of bodies.
#[derive(Clone, Debug, PartialEq)]
pub enum BodyKind {
    /// One SQL statement, mostly a block.
    Sql(Box<Statement>),
    /// `AS 'text'` or `AS $$text$$` of another language.
    External(Box<str>),
}

/// `CREATE PROCEDURE|FUNCTION`.
#[derive(Clone, Debug, PartialEq)]
pub struct CreateRoutine {
    /// Procedure or function.
    pub kind: RoutineKind,
    /// `OR REPLACE` (MariaDB), `IF NOT EXISTS`.
    pub flags: CreateFlags,
    /// MariaDB's stored `AGGREGATE` function.
    pub aggregate: bool,
    /// `DEFINER`.
    pub definer: Option<UserName>,
    /// The routine.
    pub name: ObjectName,
    /// Its parameters.
    pub params: Vec<RoutineParam>,
    /// The text between the parentheses of the parameter list.
    pub params_span: Span,
    /// `RETURNS`, of functions.
    pub returns: Option<DataType>,
    /// The characteristics.
    pub options: RoutineOptions,
    /// The body.
    pub body: Body,
    /// How many variables it has, parameters included, which come first.
    pub variables: u32,
    /// How many cursors it has.
    pub cursors: u32,
    /// It contains a RETURN.
    pub has_return: bool,
}

/// A variable of a stored program that is assigned to; where it is read it is `ExprKind::Param` of its number.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct LocalVariable {
    pub name: Ident,
    pub slot: u32,
}

/// The kinds of routine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum RoutineKind {
    Procedure,
    Function,
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct RoutineParam {
    /// `None`: not written.
    pub mode: Option<ParamMode>,
    pub name: Ident,
    pub data_type: DataType,
}

/// Parameter modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum ParamMode {
    In,
    Out,
    InOut,
}

/// Characteristics of routines.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub struct RoutineOptions {
    pub comment: Option<Box<str>>,
    pub language: Option<Ident>,
    pub deterministic: Option<bool>,
    pub data_access: Option<DataAccess>,
    pub security: Option<SqlSecurity>,
    /// `USING (library [AS alias], ..)`.
    pub libraries: Option<Vec<(ObjectName, Option<Ident>)>>,
}

/// The kind of data that a routine touches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum DataAccess {
    ContainsSql,
    NoSql,
    ReadsSqlData,
    ModifiesSqlData,
}

/// `CREATE [AGGREGATE] FUNCTION name RETURNS type SONAME 'file'`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateLoadableFunction {
    pub aggregate: bool,
    pub flags: CreateFlags,
    pub name: ObjectName,
    /// `STRING`, `INTEGER`, `REAL` or `DECIMAL`.
    pub returns: Ident,
    pub soname: Box<str>,
}

/// `ALTER PROCEDURE|FUNCTION`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct AlterRoutine {
    pub kind: RoutineKind,
    pub name: ObjectName,
    pub options: RoutineOptions,
}

/// `DROP PROCEDURE|FUNCTION`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct DropRoutine {
    pub kind: RoutineKind,
    pub if_exists: bool,
    pub name: ObjectName,
}

/// `CREATE TRIGGER`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateTrigger {
    pub flags: CreateFlags,
    pub definer: Option<UserName>,
    pub name: ObjectName,
    pub before: bool,
    pub event: TriggerEvent,
    pub table: ObjectName,
    /// `FOLLOWS` (true) or `PRECEDES` another trigger.
    pub order: Option<(bool, Ident)>,
    pub body: Body,
    /// How many variables it has, those for columns of its rows included.
    pub variables: u32,
    /// How many cursors it has.
    pub cursors: u32,
    /// The columns of OLD and NEW that it names.
    pub row_columns: Vec<RowColumn>,
}

/// A column of a trigger's OLD or NEW row: a variable of the program, filled before it runs.
#[derive(Clone, Debug, PartialEq)]
pub struct RowColumn {
    /// Of NEW, not of OLD.
    pub is_new: bool,
    /// The column.
    pub name: Ident,
    /// The variable.
    pub slot: u32,
    /// The trigger may change it.
    pub assigned: bool,
}

/// The event that fires a trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum TriggerEvent {
    Insert,
    Update,
    Delete,
}

/// `CREATE EVENT`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateEvent {
    pub flags: CreateFlags,
    pub definer: Option<UserName>,
    pub name: ObjectName,
    pub schedule: Schedule,
    pub preserve: Option<bool>,
    pub status: Option<EventStatus>,
    pub comment: Option<Box<str>>,
    pub body: Body,
}

/// `ALTER EVENT`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct AlterEvent {
    pub definer: Option<UserName>,
    pub name: ObjectName,
    pub schedule: Option<Schedule>,
    pub preserve: Option<bool>,
    pub rename: Option<ObjectName>,
    pub status: Option<EventStatus>,
    pub comment: Option<Box<str>>,
    pub body: Option<Body>,
}

/// When an event runs.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum Schedule {
    At(Expr),
    Every { amount: Expr, unit: IntervalUnit, starts: Option<Expr>, ends: Option<Expr> },
}

/// Whether an event runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub enum EventStatus {
    Enable,
    Disable,
    DisableOnReplica,
}

/// `CREATE LIBRARY`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct CreateLibrary {
    pub flags: CreateFlags,
    pub name: ObjectName,
    pub comment: Option<Box<str>>,
    pub language: Ident,
    pub source: Box<str>,
}

/// `ALTER LIBRARY`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct AlterLibrary {
    pub name: ObjectName,
    pub comment: Box<str>,
}

/// Statements that exist only inside stored programs.
#[derive(Clone, Debug, PartialEq)]
pub enum Program {
    /// `[label:] BEGIN .. END`.
    Block(Block),
    /// `IF`.
    If {
        /// `IF`/`ELSEIF` conditions with their statements.
        branches: Vec<(Expr, Vec<ProgramStatement>)>,
        /// `ELSE`.
        otherwise: Option<Vec<ProgramStatement>>,
    },
    /// `CASE`.
    Case {
        /// The operand of the simple form.
        operand: Option<Expr>,
        /// `WHEN`.
        whens: Vec<(Expr, Vec<ProgramStatement>)>,
        /// `ELSE`.
        otherwise: Option<Vec<ProgramStatement>>,
    },
    /// `LOOP`.
    Loop {
        /// `label:`.
        label: Option<Ident>,
        /// The repeated statements.
        body: Vec<ProgramStatement>,
    },
    /// `WHILE`.
    While {
        /// `label:`.
        label: Option<Ident>,
        /// As long as.
        condition: Expr,
        /// The repeated statements.
        body: Vec<ProgramStatement>,
    },
    /// `REPEAT`.
    Repeat {
        /// `label:`.
        label: Option<Ident>,
        /// The repeated statements.
        body: Vec<ProgramStatement>,
        /// Until.
        until: Expr,
    },
    /// `LEAVE label`.
    Leave(Ident),
    /// `ITERATE label`.
    Iterate(Ident),
    /// `RETURN expr`.
    Return(Expr),
    /// `OPEN cursor`, by its number.
    Open(u32),
    /// `CLOSE cursor`.
    Close(u32),
    /// `FETCH cursor INTO a, ..`.
    Fetch {
        /// The cursor.
        cursor: u32,
        /// The variables.
        into: Vec<LocalVariable>,
    },
}

/// A statement of a stored program and its text.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct ProgramStatement {
    pub statement: Statement,
    pub span: Span,
}

/// A block.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Block {
    pub label: Option<Ident>,
    pub declarations: Vec<Declaration>,
    pub body: Vec<ProgramStatement>,
}

/// A declaration of a block.
#[derive(Clone, Debug, PartialEq)]
pub enum Declaration {
    /// `DECLARE a, b type [DEFAULT expr]`.
    Variables {
        /// Names.
        names: Vec<Ident>,
        /// The number of the first; the others follow.
        first_slot: u32,
        /// Their type.
        data_type: DataType,
        /// `DEFAULT`.
        default: Option<Expr>,
    },
    /// `DECLARE name CONDITION FOR value`.
    Condition {
        /// Its name.
        name: Ident,
        /// The value that it names.
        value: ConditionValue,
    },
    /// `DECLARE name CURSOR FOR query`.
    Cursor {
        /// Its name.
        name: Ident,
        /// Its query, a `Statement::Query`.
        query: std::sync::Arc<Statement>,
        /// Its number in the program.
        slot: u32,
        /// The text of the query.
        span: Span,
    },
    /// `DECLARE CONTINUE|EXIT HANDLER FOR value, .. statement`.
    Handler {
        /// The action after the handler.
        action: HandlerKind,
        /// The conditions handled.
        conditions: Vec<ConditionValue>,
        /// The handler's statement.
        body: std::sync::Arc<ProgramStatement>,
    },
}

/// The action after a handler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum HandlerKind {
    Continue,
    Exit,
    Undo,
}

/// Conditions.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ConditionValue {
    SqlState(Box<str>),
    ErrorCode(u64),
    Name(Ident),
    SqlWarning,
    NotFound,
    SqlException,
}

/// `SIGNAL`, `RESIGNAL`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct Signal {
    pub resignal: bool,
    pub condition: Option<ConditionValue>,
    /// `SET item = value, ..`.
    pub items: Vec<(Ident, Expr)>,
}

/// `GET DIAGNOSTICS`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct GetDiagnostics {
    pub stacked: bool,
    /// `CONDITION n`.
    pub condition: Option<Expr>,
    /// Target and item name.
    pub items: Vec<(super::IntoVariable, Ident)>,
}
