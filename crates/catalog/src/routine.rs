//! Stored procedures, functions and libraries as the catalog keeps them. Their text is kept as written; the session that runs them parses it again.

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
    /// A text that programs in languages other than SQL use.
    Library,
}

impl RoutineKind {
    /// As shown.
    pub fn as_str(self) -> &'static str {
        match self {
            RoutineKind::Procedure => "PROCEDURE",
            RoutineKind::Function => "FUNCTION",
            RoutineKind::Library => "LIBRARY",
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

/// A library that a routine uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UsedLibrary {
    /// Schema.
    pub schema: Arc<str>,
    /// Name.
    pub name: Arc<str>,
    /// The name after AS.
    pub alias: Option<Arc<str>>,
}

/// The language of a routine or library that is not SQL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Its name, upper case.
    pub language: Arc<str>,
    /// USING, in order.
    pub libraries: Vec<UsedLibrary>,
}

/// A stored routine. A library has no parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Routine {
    /// Schema.
    pub schema: Arc<str>,
    /// Name as created; routines' names compare without regard to case.
    pub name: Arc<str>,
    /// Procedure, function or library.
    pub kind: RoutineKind,
    /// The parameter list as written, without its parentheses.
    pub parameter_text: Arc<str>,
    /// The parameters, parsed.
    pub parameters: Vec<RoutineParameter>,
    /// RETURNS of a function: its text and its type.
    pub returns: Option<(Arc<str>, DataType)>,
    /// The body as written, or in a language other than SQL the text without its quotes.
    pub body: Arc<str>,
    /// Its language; `None` for SQL.
    pub external: Option<External>,
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
/// collation of the schema 17, RETURNS 18 and its type 19, language 20 unless it is SQL, used library 21, library 22. A parameter: name 1,
/// mode 2, type 3. A used library: schema 1, name 2, alias 3.
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
    if let Some(external) = &routine.external {
        out.text(20, &external.language);
        for library in &external.libraries {
            let mut nested = FieldWriter::nested();
            nested.text(1, &library.schema);
            nested.text(2, &library.name);
            nested.text(3, library.alias.as_deref().unwrap_or(""));
            out.nest(21, nested);
        }
    }
    out.flag(22, routine.kind == RoutineKind::Library);
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
        external: None,
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
    let (mut language, mut libraries) = (none.clone(), Vec::new());
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
            20 => language = field.text()?.into(),
            21 => libraries.push(read_library(field.bytes)?),
            22 if field.flag()? => routine.kind = RoutineKind::Library,
            _ => {}
        }
    }
    routine.returns = returned.map(|ty| (returns, ty));
    if !language.is_empty() {
        routine.external = Some(External { language, libraries });
    }
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

fn read_library(bytes: &[u8]) -> Result<UsedLibrary> {
    let none: Arc<str> = Arc::from("");
    let mut library = UsedLibrary { schema: none.clone(), name: none, alias: None };
    for field in nested_fields(bytes)? {
        match field.tag {
            1 => library.schema = field.text()?.into(),
            2 => library.name = field.text()?.into(),
            3 => library.alias = Some(field.text()?.into()),
            _ => {}
        }
    }
    Ok(library)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn routine(kind: RoutineKind, external: Option<External>) -> Routine {
        Routine {
            schema: "s".into(),
            name: "Name".into(),
            kind,
            parameter_text: "a INT".into(),
            parameters: Vec::new(),
            returns: Some(("INT".into(), DataType::null())),
            body: "return a".into(),
            external,
            definer: "root@localhost".into(),
            invoker: true,
            deterministic: true,
            data_access: "NO SQL".into(),
            comment: "c".into(),
            sql_mode: 1 << 40,
            created_micros: 3,
            altered_micros: 4,
            charset_client: "utf8mb4".into(),
            collation_connection: "utf8mb4_bin".into(),
            database_collation: CollationId(46),
        }
    }

    #[test]
    fn a_routine_is_read_as_it_was_written() {
        let library = |alias: Option<&str>| UsedLibrary {
            schema: "l".into(),
            name: "lib".into(),
            alias: alias.map(Arc::from),
        };
        let external = |libraries| Some(External { language: "WASM".into(), libraries });
        for routine in [
            routine(RoutineKind::Function, None),
            routine(RoutineKind::Procedure, external(Vec::new())),
            routine(RoutineKind::Function, external(vec![library(Some("x")), library(None)])),
            routine(RoutineKind::Library, external(Vec::new())),
        ] {
            assert_eq!(read_routine(&write_routine(&routine)).expect("readable"), routine);
        }
    }

    /// Fields that came later are missing in files of earlier versions.
    #[test]
    fn a_routine_without_a_language_is_in_sql() {
        let written = write_routine(&routine(RoutineKind::Function, None));
        let tags: Vec<u16> =
            object_fields(&written).expect("readable").iter().map(|field| field.tag).collect();
        assert!(tags.iter().all(|tag| *tag < 20), "{tags:?}");
        assert_eq!(read_routine(&written).expect("readable").external, None);
    }
}
