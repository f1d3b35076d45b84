//! REGEXP_LIKE, REGEXP_INSTR, REGEXP_SUBSTR, REGEXP_REPLACE. Patterns are written in ICU's syntax (`syntax`) and run by the
//! regex crate in linear time, or with look-around and back-references by fancy-regex under a step limit (`engine`).

pub(crate) mod engine;
pub(crate) mod replace;
mod syntax;

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use plugin_api::kit::{
    self, UNBOUNDED_CHARACTERS, any_nullable, result_collation, scalar, text_length, text_type,
};
use plugin_api::{
    ArgInfo, Arguments, Arity, BindContext, BoundFunction, Coercion, FunctionRole, ScalarFunction,
};
use sys::sync::Mutex;
use types::{CollationId, SqlBytes, Value};

use engine::Pattern;

use crate::build::bytes_value;

pub(crate) const FUNCTIONS: &[ScalarFunction] = &[
    scalar(
        "REGEXP_LIKE",
        Arity::between(2, 3),
        "REGEXP_LIKE(expr, pat[, match_type])\nWhether expr matches a regular expression.",
        bind_like,
    ).role(FunctionRole::RegexpLike).compares(Arguments::between(0, 2)).one_thread(),
    scalar(
        "REGEXP_INSTR",
        Arity::between(2, 6),
        "REGEXP_INSTR(expr, pat[, pos[, occurrence[, return_option[, match_type]]]])\nThe position of a match, or 0.",
        bind_instr,
    ).compares(Arguments::between(0, 2)).one_thread(),
    scalar(
        "REGEXP_SUBSTR",
        Arity::between(2, 5),
        "REGEXP_SUBSTR(expr, pat[, pos[, occurrence[, match_type]]])\nThe text of a match, or NULL.",
        bind_substr,
    ).compares(Arguments::between(0, 2)).one_thread(),
    scalar(
        "REGEXP_REPLACE",
        Arity::between(3, 6),
        "REGEXP_REPLACE(expr, pat, repl[, pos[, occurrence[, match_type]]])\nexpr with matches replaced.",
        bind_replace,
    ).one_thread(),
];

/// A pattern with the texts that it was compiled from.
struct Compiled {
    text: Vec<u8>,
    flags: Vec<u8>,
    pattern: Arc<Pattern>,
}

/// Compiles patterns of one call site; keeps the last one, which is the only one when the pattern is constant.
struct Compiler {
    name: &'static str,
    case_sensitive: bool,
    last: Mutex<Option<Compiled>>,
}

impl Compiler {
    fn new(name: &'static str, collation: CollationId) -> Compiler {
        let collation = charset::collation_or_binary(collation);
        let case_sensitive = collation.is_bin() || collation.name.contains("_cs");
        Compiler { name, case_sensitive, last: Mutex::new(None) }
    }

    fn pattern(&self, pattern: &Value, match_type: Option<&Value>) -> Result<Arc<Pattern>> {
        let pattern = kit::bytes(pattern);
        let flags = match_type.map_or(&b""[..], kit::bytes);
        let mut last = self.last.lock();
        if let Some(known) = &*last
            && known.text == pattern
            && known.flags == flags
        {
            return Ok(known.pattern.clone());
        }
        let options = self.options(flags)?;
        let compiled = Arc::new(Pattern::compile(&String::from_utf8_lossy(pattern), options)?);
        let (text, flags) = (pattern.to_vec(), flags.to_vec());
        *last = Some(Compiled { text, flags, pattern: compiled.clone() });
        Ok(compiled)
    }

    fn options(&self, flags: &[u8]) -> Result<engine::Options> {
        let mut options = engine::Options {
            case_insensitive: !self.case_sensitive,
            multi_line: false,
            dot_all: false,
            unix_lines: false,
        };
        for flag in flags {
            match flag {
                b'c' => options.case_insensitive = false,
                b'i' => options.case_insensitive = true,
                b'm' => options.multi_line = true,
                b'n' => options.dot_all = true,
                b'u' => options.unix_lines = true,
                _ => return Err(Error::with(ErrorCode::WRONG_ARGUMENTS, &[&self.name])),
            }
        }
        Ok(options)
    }
}

/// Mixing a binary string with text of a character set is error 3995.
fn compiler(
    ctx: &BindContext,
    args: &[ArgInfo],
    name: &'static str,
    strings: usize,
) -> Result<Arc<Compiler>> {
    let strings = &args[..strings];
    let is_string = |arg: &&ArgInfo| arg.ty.is_string();
    let mut collations = strings.iter().filter(is_string).map(|arg| arg.ty.collation);
    if let Some(first) = collations.next() {
        let differs =
            |other: &CollationId| (*other == CollationId::BINARY) != (first == CollationId::BINARY);
        if let Some(other) = collations.find(differs) {
            let name_of = |id| charset::collation_or_binary(id).name;
            let code = ErrorCode::CHARACTER_SET_MISMATCH;
            return Err(Error::with(code, &[&name_of(first), &name_of(other), &name]));
        }
    }
    Ok(Arc::new(Compiler::new(name, result_collation(ctx, strings))))
}

/// Byte offset of 1-based character `position`.
///
/// # Errors
/// 3686 outside the text.
fn start_of(text: &str, position: Option<&Value>) -> Result<usize> {
    let position = position.map_or(1, kit::integer);
    let characters = charset::char_length(text.as_bytes()) as i128;
    if position < 1 || position > characters.max(1) {
        return Err(Error::with(ErrorCode::REGEXP_INDEX_OUTOFBOUNDS_ERROR, &[]));
    }
    Ok(charset::char_prefix(text.as_bytes(), (position - 1) as usize))
}

fn occurrence_of(occurrence: Option<&Value>) -> u64 {
    occurrence.map_or(1, kit::integer).clamp(1, i128::from(u32::MAX)) as u64
}

fn bind_like(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let compiler = compiler(ctx, args, "regexp_like", 2)?;
    let ty = kit::integer_type(1, any_nullable(args));
    Ok(BoundFunction::new(ty, vec![Coercion::Text], move |_, args| {
        let pattern = compiler.pattern(&args[1], args.get(2))?;
        Ok(Value::bool(pattern.is_match(&kit::text(&args[0]))?))
    }))
}

const INSTR_COERCIONS: [Coercion; 6] = [
    Coercion::Text,
    Coercion::Text,
    Coercion::Integer,
    Coercion::Integer,
    Coercion::Integer,
    Coercion::Text,
];

fn bind_instr(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let compiler = compiler(ctx, args, "regexp_instr", 2)?;
    let ty = kit::integer_type(21, any_nullable(args));
    Ok(BoundFunction::new(ty, INSTR_COERCIONS.to_vec(), move |_, args| {
        let text = kit::text(&args[0]);
        let pattern = compiler.pattern(&args[1], args.get(5))?;
        let end_wanted = match args.get(4).map_or(0, kit::integer) {
            0 => false,
            1 => true,
            _ => {
                let what = "regexp_instr: return_option must be 1 or 0.";
                return Err(Error::with(ErrorCode::WRONG_ARGUMENTS, &[&what]));
            }
        };
        let start = start_of(&text, args.get(2))?;
        let found = pattern.nth(&text, start, occurrence_of(args.get(3)))?;
        Ok(Value::Int(found.map_or(0, |range| {
            let at = if end_wanted { range.end } else { range.start };
            charset::char_length(&text.as_bytes()[..at]) as i64 + 1
        })))
    }))
}

fn bind_substr(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let compiler = compiler(ctx, args, "regexp_substr", 2)?;
    let ty = text_type(text_length(&args[0].ty), result_collation(ctx, &args[..2]));
    let coercions = [&INSTR_COERCIONS[..4], &[Coercion::Text]].concat();
    Ok(BoundFunction::new(ty, coercions, move |_, args| {
        let text = kit::text(&args[0]);
        let pattern = compiler.pattern(&args[1], args.get(4))?;
        let start = start_of(&text, args.get(2))?;
        let found = pattern.nth(&text, start, occurrence_of(args.get(3)))?;
        Ok(found.map_or(Value::Null, |range| Value::Bytes(SqlBytes::from(&text[range]))))
    }))
}

fn bind_replace(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let compiler = compiler(ctx, args, "regexp_replace", 3)?;
    let ty = text_type(UNBOUNDED_CHARACTERS / 4, result_collation(ctx, &args[..3]));
    let coercions = vec![
        Coercion::Text,
        Coercion::Text,
        Coercion::Text,
        Coercion::Integer,
        Coercion::Integer,
        Coercion::Text,
    ];
    Ok(BoundFunction::new(ty, coercions, move |ctx, args| {
        let text = kit::text(&args[0]);
        let pattern = compiler.pattern(&args[1], args.get(5))?;
        let start = start_of(&text, args.get(3))?;
        let occurrence = args.get(4).map_or(0, kit::integer).clamp(0, i128::from(u32::MAX)) as u64;
        let template = replace::Template::parse(&kit::text(&args[2]))?;
        let limit = ctx.max_allowed_packet;
        match replace::replace(&pattern, &text, start, occurrence, &template, limit)? {
            Some(out) => Ok(bytes_value(out.into_bytes())),
            None => {
                ctx.fits_packet("regexp_replace", limit.saturating_add(1));
                Ok(Value::Null)
            }
        }
    }))
}
