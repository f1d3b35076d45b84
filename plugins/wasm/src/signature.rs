//! How SQL types meet WebAssembly's: a function's parameters and results are matched with the declared ones from left to right, and no
//! choice is ambiguous.

use types::{DataType, TypeKind};
use wasmi::{FuncType, ValType};

use crate::failure::Failure;

/// The form of one value in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    I32,
    I64,
    F32,
    F64,
    /// Bytes in memory: as a parameter pointer and length, as a result both in one `i64`.
    Buffer,
}

/// A value of a routine: its SQL type and its form.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) ty: DataType,
    pub(crate) form: Form,
}

/// A function's values.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    /// The first parameter is an `i64` with a bit for each NULL.
    pub(crate) takes_nulls: bool,
    pub(crate) parameters: Vec<Place>,
    pub(crate) results: Vec<Place>,
}

/// The forms that values of a type may have.
enum Class {
    Integer,
    Real,
    Decimal,
    Bytes,
}

fn class(ty: &DataType) -> Class {
    match ty.kind {
        TypeKind::TinyInt
        | TypeKind::SmallInt
        | TypeKind::MediumInt
        | TypeKind::Int
        | TypeKind::BigInt
        | TypeKind::Year => Class::Integer,
        TypeKind::Float | TypeKind::Double => Class::Real,
        TypeKind::Decimal => Class::Decimal,
        TypeKind::Null
        | TypeKind::Bit
        | TypeKind::Date
        | TypeKind::Time
        | TypeKind::DateTime
        | TypeKind::Timestamp
        | TypeKind::Char
        | TypeKind::VarChar
        | TypeKind::Binary
        | TypeKind::VarBinary
        | TypeKind::TinyText
        | TypeKind::Text
        | TypeKind::MediumText
        | TypeKind::LongText
        | TypeKind::TinyBlob
        | TypeKind::Blob
        | TypeKind::MediumBlob
        | TypeKind::LongBlob
        | TypeKind::Enum
        | TypeKind::Set
        | TypeKind::Json
        | TypeKind::Vector
        | TypeKind::Geometry
        | TypeKind::Fixed(_) => Class::Bytes,
    }
}

/// The form of a parameter, and how many of the function's own it takes.
fn parameter_form(ty: &DataType, given: &[ValType]) -> Option<(Form, usize)> {
    match (class(ty), given) {
        (Class::Integer, [ValType::I32, ..]) => Some((Form::I32, 1)),
        (Class::Integer, [ValType::I64, ..]) => Some((Form::I64, 1)),
        (Class::Integer | Class::Real | Class::Decimal, [ValType::F64, ..]) => Some((Form::F64, 1)),
        (Class::Integer | Class::Real, [ValType::F32, ..]) => Some((Form::F32, 1)),
        (Class::Decimal | Class::Bytes, [ValType::I32, ValType::I32, ..]) => {
            Some((Form::Buffer, 2))
        }
        (Class::Integer | Class::Real | Class::Decimal | Class::Bytes, _) => None,
    }
}

fn result_form(ty: &DataType, given: ValType) -> Option<Form> {
    match (class(ty), given) {
        (Class::Integer | Class::Decimal, ValType::I32) => Some(Form::I32),
        (Class::Integer, ValType::I64) => Some(Form::I64),
        (Class::Real | Class::Decimal | Class::Integer, ValType::F64) => Some(Form::F64),
        (Class::Real, ValType::F32) => Some(Form::F32),
        (Class::Decimal | Class::Bytes, ValType::I64) => Some(Form::Buffer),
        (Class::Integer | Class::Real | Class::Decimal | Class::Bytes, _) => None,
    }
}

impl Signature {
    /// Matches a function's type with the declared types.
    pub(crate) fn new(
        function: &FuncType,
        takes_nulls: bool,
        parameters: &[DataType],
        results: &[DataType],
    ) -> Result<Signature, Failure> {
        let mut given = function.params();
        if takes_nulls {
            let [ValType::I64, rest @ ..] = given else {
                return Err(Failure::guest("its first parameter is not the i64 of NULLs"));
            };
            if parameters.len() > 64 {
                return Err(Failure::guest("more than 64 parameters with squall_takes_nulls"));
            }
            given = rest;
        }
        let mut signature = Signature { takes_nulls, parameters: Vec::new(), results: Vec::new() };
        for (position, ty) in parameters.iter().enumerate() {
            let Some((form, taken)) = parameter_form(ty, given) else {
                let what =
                    format!("parameter {} has no form that its function takes", position + 1);
                return Err(Failure::Guest(what));
            };
            debug_assert!((1..=2).contains(&taken) && taken <= given.len());
            given = &given[taken..];
            signature.parameters.push(Place { ty: ty.clone(), form });
        }
        if !given.is_empty() || function.results().len() != results.len() {
            return Err(Failure::guest(
                "its function has other parameters or results than declared",
            ));
        }
        for (ty, given) in results.iter().zip(function.results()) {
            let Some(form) = result_form(ty, *given) else {
                return Err(Failure::guest("its function returns another type than declared"));
            };
            signature.results.push(Place { ty: ty.clone(), form });
        }
        debug_assert_eq!(signature.parameters.len(), parameters.len());
        debug_assert_eq!(signature.results.len(), results.len());
        Ok(signature)
    }
}
