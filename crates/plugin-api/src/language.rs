//! The slot for languages of stored programs other than SQL: `CREATE FUNCTION .. LANGUAGE x AS '..'`.
//!
//! The kernel keeps the definition, checks privileges, converts arguments to the parameters' types and results to the types that the
//! program declares. A language compiles a text and runs it with values.

use errors::Result;
use types::{DataType, Value};

use crate::function::FunctionContext;
use crate::statements::Statements;

/// How values pass through a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParameterMode {
    /// To the program.
    In,
    /// From the program.
    Out,
    /// Both.
    InOut,
}

/// A parameter of a program.
#[derive(Clone, Copy, Debug)]
pub struct ProgramParameter<'a> {
    /// Name.
    pub name: &'a str,
    /// See the type.
    pub mode: ParameterMode,
    /// Arguments have been converted to it; results will be.
    pub ty: &'a DataType,
}

/// A library that a program uses.
#[derive(Clone, Copy, Debug)]
pub struct ProgramLibrary<'a> {
    /// The name by which the program knows it: that after AS, else the library's own.
    pub alias: &'a str,
    /// Its schema.
    pub schema: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its language, upper case; not always that of the program.
    pub language: &'a str,
    /// Its text.
    pub source: &'a str,
}

/// A program to compile.
#[derive(Clone, Debug)]
pub struct ProgramText<'a> {
    /// Its schema.
    pub schema: &'a str,
    /// Its name.
    pub name: &'a str,
    /// The parameters in order.
    pub parameters: Vec<ProgramParameter<'a>>,
    /// The type that a function returns; `None` for a procedure.
    pub returns: Option<&'a DataType>,
    /// The text after AS, without its quotes.
    pub source: &'a str,
    /// USING.
    pub libraries: Vec<ProgramLibrary<'a>>,
}

/// A language of stored programs.
pub trait ProgramLanguage: Send + Sync {
    /// The name after LANGUAGE, upper case.
    fn name(&self) -> &str;

    /// Compiles a program. A session does it once for each definition; CREATE does it to find errors and drops the result.
    ///
    /// # Errors
    /// Errors in the text; types of parameters that the language does not take.
    fn compile(&self, text: &ProgramText<'_>) -> Result<Box<dyn CompiledProgram>>;

    /// Checks the text of a new library.
    ///
    /// # Errors
    /// Errors in the text.
    fn check_library(&self, name: &str, source: &str) -> Result<()>;
}

/// A program ready to run. It belongs to one session, where a procedure may call itself.
pub trait CompiledProgram: Send + Sync {
    /// Runs it. It checks `context.session.check_cancelled()` often enough to end soon after KILL.
    ///
    /// # Errors
    /// The program's own, its limits, 1317 when cancelled.
    fn invoke(&self, call: ProgramCall<'_>) -> Result<ProgramOutcome>;
}

/// One call of a program.
pub struct ProgramCall<'a> {
    /// A value for each parameter, of its type; NULL for one that is OUT.
    pub arguments: &'a [Value],
    /// Facts about the session, and its warnings.
    pub context: FunctionContext<'a>,
    /// Runs statements in the session. `Statements::run` keeps to the rules of stored functions in procedures too.
    pub statements: &'a mut dyn Statements,
}

/// A value that a program made, before its conversion to the declared type.
#[derive(Clone, Debug, PartialEq)]
pub struct TypedValue {
    /// The value.
    pub value: Value,
    /// Its own type.
    pub ty: DataType,
}

/// The results of a call.
#[derive(Clone, Debug, Default)]
pub struct ProgramOutcome {
    /// The value of a function; `None` of a procedure.
    pub returned: Option<TypedValue>,
    /// Values of OUT and INOUT parameters by position; others keep theirs.
    pub out: Vec<(usize, TypedValue)>,
}
