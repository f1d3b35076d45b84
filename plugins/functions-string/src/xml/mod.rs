//! EXTRACTVALUE and UPDATEXML.

mod eval;
mod path;
mod read;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{self, result_collation, scalar};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, FunctionContext, ScalarFunction,
};
use types::{CollationId, Value};

use self::eval::Evaluation;
use self::path::Expr;
use self::read::Document;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "EXTRACTVALUE",
        Arity::exactly(2),
        "EXTRACTVALUE(xml, xpath)\nThe texts of the nodes of an XML text that an XPath expression finds, with blanks between them; or the expression's own value.",
        bind_extract,
    ),
    scalar(
        "UPDATEXML",
        Arity::exactly(3),
        "UPDATEXML(xml, xpath, new)\nAn XML text with the node that an XPath expression finds replaced; unchanged when it finds none or several.",
        bind_update,
    ),
];

/// The expression of a call: parsed once, or, when it is not a literal, with each call.
enum Path {
    Parsed(Expr),
    PerCall,
}

impl Path {
    fn of(arg: &ArgInfo) -> Result<Path> {
        match &arg.constant {
            Some(Value::Null) => Ok(Path::PerCall),
            Some(value) => {
                let mut text = Vec::new();
                types::to_text(value, &arg.ty, &mut text);
                Ok(Path::Parsed(path::parse(&String::from_utf8_lossy(&text))?))
            }
            None => Ok(Path::PerCall),
        }
    }

    /// Calls `with` the expression.
    fn run<T>(&self, text: &Value, with: impl FnOnce(&Expr) -> Result<T>) -> Result<T> {
        match self {
            Path::Parsed(expr) => with(expr),
            Path::PerCall => with(&path::parse(&kit::text(text))?),
        }
    }
}

/// The document of a text; `None`, with warning 1525, when it cannot be read.
fn read<'a>(ctx: &mut FunctionContext<'_>, text: &'a Value) -> Option<Document<'a>> {
    match read::read(kit::bytes(text)) {
        Ok(document) => Some(document),
        Err(what) => {
            ctx.diagnostics.warn(ErrorCode::WRONG_VALUE, &[&"XML", &what]);
            None
        }
    }
}

/// The collation of the result, and its type: as long as a text can be.
fn result_type(ctx: &BindContext, args: &[ArgInfo]) -> (CollationId, types::DataType) {
    let collation = result_collation(ctx, args);
    let mut ty = kit::text_type(u64::from(u32::MAX), collation);
    ty.nullable = true;
    (collation, ty)
}

fn bind_extract(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let [_, xpath] = args else { return Err(Error::internal("arguments of EXTRACTVALUE")) };
    let path = Path::of(xpath)?;
    let (collation, ty) = result_type(ctx, args);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |ctx, args| {
        let [xml, xpath] = args else { return Ok(Value::Null) };
        path.run(xpath, |expr| {
            let Some(document) = read(ctx, xml) else { return Ok(Value::Null) };
            let mut evaluation = Evaluation::new(&document, collation, ctx);
            let value = evaluation.scalar(expr, Evaluation::root())?;
            Ok(value.text().map_or(Value::Null, |text| Value::Bytes(text.into())))
        })
    }))
}

fn bind_update(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let [xml, xpath, new] = args else { return Err(Error::internal("arguments of UPDATEXML")) };
    let path = Path::of(xpath)?;
    let (collation, ty) = result_type(ctx, &[xml.clone(), new.clone()]);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |ctx, args| {
        let [xml, xpath, new] = args else { return Ok(Value::Null) };
        path.run(xpath, |expr| {
            let Some(document) = read(ctx, xml) else { return Ok(Value::Null) };
            if !expr.is_nodes() {
                return Ok(Value::Null);
            }
            let mut evaluation = Evaluation::new(&document, collation, ctx);
            let set = evaluation.nodes(expr, Evaluation::root())?;
            let [only] = set.as_slice() else { return Ok(xml.clone()) };
            let Some(node) = document.nodes.get(only.node as usize) else { return Ok(Value::Null) };
            let (span, text) = (document.span(node), document.text);
            let new = kit::bytes(new);
            let length = text.len() - span.len() + new.len();
            if !ctx.fits_packet("updatexml", length as u64) {
                return Ok(Value::Null);
            }
            let mut updated = Vec::with_capacity(length);
            updated.extend_from_slice(text.get(..span.start).unwrap_or_default());
            updated.extend_from_slice(new);
            updated.extend_from_slice(text.get(span.end..).unwrap_or_default());
            Ok(Value::Bytes(updated.into()))
        })
    }))
}
