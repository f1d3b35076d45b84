//! Stored procedures as the catalog keeps them. Their text is kept as written; the session that runs them parses it again.

use std::sync::Arc;

use errors::Result;
use types::{CollationId, DataType};

use crate::codec::{read_type, type_writer};
use crate::fields::{FieldWriter, nested_fields, object_fields};

/// The kinds of routine; each has a separate namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RoutineKind {
    /// CALL runs it.
    Procedure,
    /// Expressions call it.
    Function,
}

impl RoutineKind {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            RoutineKind::Procedure => "PROCEDURE",
            RoutineKind::Function => "FUNCTION",
        }
    }
}

/// A parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct RoutineParameter {
    /// Name.
    pub name: Arc<str>,
    /// `IN`, `OUT`, `INOUT`.
    pub mode: Arc<str>,
    /// Type.
    pub ty: DataType,
}

/// A stored routine.
#[derive(Clone, Debug, PartialEq)]
pub struct Routine {
    /// Schema.
    pub schema: Arc<str>,
    /// Name as created; routines' names compare without regard to case.
    pub name: Arc<str>,
    /// Procedure or function.
    pub kind: RoutineKind,
    /// The parameter list as written, without its parentheses.
    pub parameter_text: Arc<str>,
    /// The parameters, parsed.
    pub parameters: Vec<RoutineParameter>,
    /// RETURNS of a function: its text and its type.
    pub returns: Option<(Arc<str>, DataType)>,
    /// The body as written.
    pub body: Arc<str>,
    /// `user@host`.
    pub definer: Arc<str>,
    /// `SQL SECURITY INVOKER`.
    pub invoker: bool,
    /// DETERMINISTIC.
    pub deterministic: bool,
    /// `CONTAINS SQL`, `NO SQL`, `READS SQL DATA`, `MODIFIES SQL DATA`.
    pub data_access: Arc<str>,
    /// COMMENT.
    pub comment: Arc<str>,
    /// The SQL mode that the text is parsed and run in.
    pub sql_mode: u64,
    /// Microseconds since 1970 UTC.
    pub created_micros: i64,
    /// Microseconds since 1970 UTC.
    pub altered_micros: i64,
    /// `character_set_client` of the session that created it.
    pub charset_client: Arc<str>,
    /// `collation_connection` of that session.
    pub collation_connection: Arc<str>,
    /// Collation of the schema then.
    pub database_collation: CollationId,
}

/// The key of a routine in its schema.
pub(crate) type RoutineKey = (RoutineKind, Arc<str>);

/// The key of a routine's name.
pub(crate) fn routine_key(kind: RoutineKind, name: &str) -> RoutineKey {
    (kind, Arc::from(name.to_lowercase()))
}

/// A routine: schema 1, name 2, function 3, parameter text 4, parameter 5, body 6, definer 7, invoker 8, deterministic 9, data
/// access 10, comment 11, SQL mode 12, created 13, altered 14, character set of the client 15, collation of the connection 16,
/// collation of the schema 17, RETURNS 18 and its type 19. A parameter: name 1, mode 2, type 3.
pub(crate) fn write_routine(routine: &Routine) -> Vec<u8> {
    let mut out = FieldWriter::object();
    out.text(1, &routine.schema);
    out.text(2, &routine.name);
    out.flag(3, routine.kind == RoutineKind::Function);
    out.text(4, &routine.parameter_text);
    for parameter in &routine.parameters {
        let mut nested = FieldWriter::nested();
        nested.text(1, &parameter.name);
        nested.text(2, &parameter.mode);
        nested.nest(3, type_writer(&parameter.ty));
        out.nest(5, nested);
    }
    out.text(6, &routine.body);
    out.text(7, &routine.definer);
    out.flag(8, routine.invoker);
    out.flag(9, routine.deterministic);
    out.text(10, &routine.data_access);
    out.text(11, &routine.comment);
    out.number(12, routine.sql_mode);
    out.number(13, routine.created_micros as u64);
    out.number(14, routine.altered_micros as u64);
    out.text(15, &routine.charset_client);
    out.text(16, &routine.collation_connection);
    out.number(17, u64::from(routine.database_collation.0));
    if let Some((text, ty)) = &routine.returns {
        out.text(18, text);
        out.nest(19, type_writer(ty));
    }
    out.finish()
}

pub(crate) fn read_routine(bytes: &[u8]) -> Result<Routine> {
    let none: Arc<str> = Arc::from("");
    let mut routine = Routine {
        schema: none.clone(),
        name: none.clone(),
        kind: RoutineKind::Procedure,
        parameter_text: none.clone(),
        parameters: Vec::new(),
        returns: None,
        body: none.clone(),
        definer: none.clone(),
        invoker: false,
        deterministic: false,
        data_access: none.clone(),
        comment: none.clone(),
        sql_mode: 0,
        created_micros: 0,
        altered_micros: 0,
        charset_client: none.clone(),
        collation_connection: none.clone(),
        database_collation: CollationId::UTF8MB4_0900_AI_CI,
    };
    let (mut returns, mut returned) = (none.clone(), None);
    for field in object_fields(bytes)? {
        match field.tag {
            1 => routine.schema = field.text()?.into(),
            2 => routine.name = field.text()?.into(),
            3 if field.flag()? => routine.kind = RoutineKind::Function,
            4 => routine.parameter_text = field.text()?.into(),
            5 => routine.parameters.push(read_parameter(field.bytes)?),
            6 => routine.body = field.text()?.into(),
            7 => routine.definer = field.text()?.into(),
            8 => routine.invoker = field.flag()?,
            9 => routine.deterministic = field.flag()?,
            10 => routine.data_access = field.text()?.into(),
            11 => routine.comment = field.text()?.into(),
            12 => routine.sql_mode = field.number()?,
            13 => routine.created_micros = field.number()? as i64,
            14 => routine.altered_micros = field.number()? as i64,
            15 => routine.charset_client = field.text()?.into(),
            16 => routine.collation_connection = field.text()?.into(),
            17 => routine.database_collation = CollationId(field.narrow()?),
            18 => returns = field.text()?.into(),
            19 => returned = Some(read_type(field.bytes)?),
            _ => {}
        }
    }
    routine.returns = returned.map(|ty| (returns, ty));
    Ok(routine)
}

fn read_parameter(bytes: &[u8]) -> Result<RoutineParameter> {
    let none: Arc<str> = Arc::from("");
    let mut parameter = RoutineParameter { name: none.clone(), mode: none, ty: DataType::null() };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => parameter.name = field.text()?.into(),
            2 => parameter.mode = field.text()?.into(),
            3 => parameter.ty = read_type(field.bytes)?,
            _ => {}
        }
    }
    Ok(parameter)
}
