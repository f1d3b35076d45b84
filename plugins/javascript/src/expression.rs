//! Scripts that are one expression and change nothing: they need no global object of their own, so that their compiled form is kept.
//!
//! A script that may leave something in the global object, or in an object that all scripts see (`Array.prototype`), gets a fresh one for each call,
//! which takes a hundred times as long. Here only what is known to be harmless passes: operators that do not assign, the arguments, and calls of methods
//! by name that neither change what they are called on nor run code that they are given. Everything else goes the long way, with the same result.

use std::collections::HashMap;
use std::sync::Arc;

use rquickjs::function::{Args, Function};
use rquickjs::{Context, Ctx, Value as JsValue};
use types::{DataType, Value};

use crate::failure::Failure;
use crate::function::options;
use crate::guard::Watch;
use crate::value::{Builtins, array, settle, to_js, to_sql};
use plugin_api::TypedValue;

/// Longest text of an expression.
const BYTES_MAX: usize = 4 << 10;
/// Compiled expressions of an isolate; one more begins anew.
const KEPT_MAX: usize = 64;

/// Globals that may be named.
const GLOBALS: &str = "Array BigInt Boolean Date Infinity JSON Math NaN Number String false isFinite isNaN null \
    parseFloat parseInt true undefined decodeURIComponent encodeURIComponent";
/// Globals whose value may be used by itself, not only to call it or a method of it.
const CONSTANTS: &str = "Infinity NaN false null true undefined";
/// Operators that are words.
const WORDS: &str = "in instanceof typeof void";
/// Properties that lead to what all scripts share.
const HIDDEN: &str = "caller callee constructor prototype";
/// What may be called: functions and methods that change nothing, on whatever they are called, and run none of their arguments.
const CALLS: &str = "BigInt Boolean Number String isFinite isNaN parseFloat parseInt decodeURIComponent \
    encodeURIComponent abs acos asin atan atan2 cbrt ceil cos exp floor hypot log log10 log2 \
    max min pow random round sign sin sqrt tan trunc UTC fromCharCode isArray isInteger \
    isSafeInteger now parse stringify at charAt charCodeAt codePointAt concat endsWith \
    includes indexOf join lastIndexOf padEnd padStart repeat slice split startsWith substr \
    substring toExponential toFixed toLowerCase toPrecision toString toUpperCase trim trimEnd \
    trimStart valueOf getDate getDay getFullYear getHours getMilliseconds getMinutes getMonth \
    getSeconds getTime getUTCDate getUTCDay getUTCFullYear getUTCHours getUTCMilliseconds \
    getUTCMinutes getUTCMonth getUTCSeconds toISOString toJSON";

/// The compiled expressions of an isolate, with the global object that they share and none of them changes.
pub(crate) struct Expressions {
    pub context: Context,
    /// Numbers of the compiled functions by text.
    known: HashMap<Box<str>, Known>,
    /// How many were compiled.
    count: usize,
}

struct Known {
    names: Arc<str>,
    number: usize,
}

impl Expressions {
    pub(crate) fn new(context: Context) -> Expressions {
        Expressions { context, known: HashMap::new(), count: 0 }
    }

    pub(crate) fn is_full(&self) -> bool {
        self.count >= KEPT_MAX
    }

    pub(crate) fn knows(&self, code: &str, names: &str) -> bool {
        self.known.get(code).is_some_and(|known| *known.names == *names)
    }

    /// Compiles an expression. The names of its arguments are checked.
    pub(crate) fn add(
        &mut self,
        ctx: &Ctx<'_>,
        code: &str,
        names: &Arc<str>,
    ) -> rquickjs::Result<()> {
        let code = without_end(code);
        let source = format!("{}{code}\n)}})", header(names));
        let function: Function<'_> = ctx.eval_with_options(source, options())?;
        let number = self.count;
        self.count += 1;
        ctx.globals().set(name_of(number), function)?;
        self.known.insert(code.into(), Known { names: names.clone(), number });
        Ok(())
    }

    /// The function of an expression.
    fn find<'js>(&self, ctx: &Ctx<'js>, code: &str) -> rquickjs::Result<Option<Function<'js>>> {
        let Some(known) = self.known.get(code) else { return Ok(None) };
        ctx.globals().get(name_of(known.number)).map(Some)
    }

    /// Computes a known expression; `None` when it is not known.
    pub(crate) fn run(
        &self,
        ctx: &Ctx<'_>,
        watch: &Watch,
        code: &str,
        arguments: (&[Value], &[DataType], &[Option<String>]),
    ) -> Result<Option<TypedValue>, Failure> {
        let Some(function) = self.find(ctx, code)? else { return Ok(None) };
        let builtins = Builtins::of(ctx)?;
        let (values, types, names) = arguments;
        let given = values.iter().zip(types).map(|(value, ty)| to_js(ctx, &builtins, value, ty));
        let values = array(ctx, given)?;
        let mut args = Args::new(ctx.clone(), names.len() + 1);
        for (index, name) in names.iter().enumerate() {
            if name.is_some() {
                args.push_arg(values.get::<JsValue<'_>>(index)?)?;
            }
        }
        args.push_arg(values)?;
        let value: JsValue<'_> = function.call_arg(args)?;
        let value = settle(ctx, value, watch)?;
        to_sql(ctx, &builtins, &value, watch).map(Some)
    }
}

/// The text before an expression.
fn header(names: &str) -> String {
    format!("(function({names}){{return(")
}

/// Its characters.
pub(crate) fn header_characters(names: &str) -> usize {
    header(names).chars().count()
}

/// The parameters of an expression's function: the names, and the array of all arguments; `None` when a name has a meaning of its own.
pub(crate) fn parameters(names: &[Option<String>]) -> Option<Arc<str>> {
    let mut list = String::new();
    for name in names.iter().flatten() {
        let is_plain = name.bytes().enumerate().all(|(at, byte)| is_part(byte, at == 0));
        if name.is_empty() || !is_plain || is_in(CONSTANTS, name) || is_reserved(name) {
            return None;
        }
        list.push_str(name);
        list.push(',');
    }
    list.push_str("arguments");
    Some(list.into())
}

fn name_of(number: usize) -> String {
    format!("$expression${number}$")
}

fn is_part(byte: u8, is_first: bool) -> bool {
    byte.is_ascii_alphabetic()
        || byte == b'_'
        || byte == b'$'
        || (!is_first && byte.is_ascii_digit())
}

/// Whether a list of words has this one.
fn is_in(list: &str, word: &str) -> bool {
    list.split_ascii_whitespace().any(|known| known == word)
}

/// Words that are no names in a script.
fn is_reserved(word: &str) -> bool {
    const RESERVED: &str = "async await break case catch class const continue debugger default delete do else enum \
        eval export extends finally for function if implements import interface let new of package \
        private protected public return static super switch this throw try var while with yield";
    is_in(RESERVED, word) || is_in(WORDS, word)
}

/// The text without the semicolon that may end it.
pub(crate) fn without_end(code: &str) -> &str {
    let code = code.trim_end_matches([' ', '\t', '\r', '\n']);
    code.strip_suffix(';').unwrap_or(code)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Before<'a> {
    /// Nothing, an operator, a comma or an opening bracket: an operand comes next.
    Operator,
    /// A dot: a property comes next.
    Dot,
    /// A name or a property, which may be called.
    Name(&'a str),
    /// A value that may not be called.
    Value,
}

/// A reader of one expression.
struct Reader<'a> {
    text: &'a [u8],
    code: &'a str,
    at: usize,
    before: Before<'a>,
    /// Open brackets.
    open: Vec<u8>,
}

/// Whether a script is an expression that changes nothing. `names`: its arguments.
pub(crate) fn is_harmless(code: &str, names: &[Option<String>]) -> bool {
    let code = without_end(code);
    if code.len() > BYTES_MAX || !code.is_ascii() {
        return false;
    }
    let text = code.as_bytes();
    let mut reader = Reader { text, code, at: 0, before: Before::Operator, open: Vec::new() };
    let is_name =
        |word: &str| word == "arguments" || names.iter().flatten().any(|name| name == word);
    while reader.at < text.len() {
        if reader.token(&is_name).is_none() {
            return false;
        }
    }
    reader.open.is_empty() && matches!(reader.before, Before::Name(_) | Before::Value)
}

impl<'a> Reader<'a> {
    fn peek(&self, ahead: usize) -> u8 {
        self.text.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn is_operand_next(&self) -> bool {
        self.before == Before::Operator
    }

    /// Reads one token; `None` when it may do harm, or is not understood here.
    fn token(&mut self, is_name: &dyn Fn(&str) -> bool) -> Option<()> {
        match self.peek(0) {
            b' ' | b'\t' | b'\r' | b'\n' => {
                self.at += 1;
                Some(())
            }
            b'0'..=b'9' => self.number(),
            b'\'' | b'"' => self.text(),
            byte if is_part(byte, true) => self.word(is_name),
            b'(' => self.call_or_group(),
            b'[' => self.element_or_array(),
            byte @ (b')' | b']') => self.close(byte),
            b'.' => self.dot(1),
            b'?' if self.peek(1) == b'.' => self.dot(2),
            _ => self.operator(),
        }
    }

    fn number(&mut self) -> Option<()> {
        if !self.is_operand_next() {
            return None;
        }
        let digits = |reader: &mut Self| {
            while reader.peek(0).is_ascii_alphanumeric() {
                reader.at += 1;
            }
        };
        digits(self);
        if self.peek(0) == b'.' {
            self.at += 1;
            digits(self);
        }
        self.before = Before::Value;
        Some(())
    }

    fn text(&mut self) -> Option<()> {
        if !self.is_operand_next() {
            return None;
        }
        let quote = self.peek(0);
        self.at += 1;
        loop {
            match self.peek(0) {
                0 | b'\n' | b'\r' => return None,
                b'\\' => self.at += 2,
                byte => {
                    self.at += 1;
                    if byte == quote {
                        self.before = Before::Value;
                        return Some(());
                    }
                }
            }
        }
    }

    fn word(&mut self, is_name: &dyn Fn(&str) -> bool) -> Option<()> {
        let start = self.at;
        while is_part(self.peek(0), false) {
            self.at += 1;
        }
        let word = &self.code[start..self.at];
        match self.before {
            Before::Dot => {
                let is_hidden = is_in(HIDDEN, word) || word.starts_with("__");
                self.before = Before::Name(word);
                (!is_hidden).then_some(())
            }
            Before::Operator if matches!(word, "typeof" | "void") => Some(()),
            Before::Operator if is_name(word) => {
                self.before = Before::Name(word);
                Some(())
            }
            Before::Operator => {
                let rest = self.code[self.at..].trim_start();
                let is_used = rest.starts_with(['(', '.']) || is_in(CONSTANTS, word);
                self.before = Before::Name(word);
                (is_in(GLOBALS, word) && is_used).then_some(())
            }
            Before::Name(_) | Before::Value => {
                self.before = Before::Operator;
                matches!(word, "in" | "instanceof").then_some(())
            }
        }
    }

    fn call_or_group(&mut self) -> Option<()> {
        let is_allowed = match self.before {
            Before::Operator => true,
            Before::Name(name) => is_in(CALLS, name),
            Before::Dot | Before::Value => false,
        };
        self.open(b')');
        is_allowed.then_some(())
    }

    /// An array, or the element of one whose index is a number.
    fn element_or_array(&mut self) -> Option<()> {
        let is_element = !self.is_operand_next();
        if is_element {
            let inside = self.code[self.at + 1..].split(']').next().unwrap_or("").trim();
            let is_index = !inside.is_empty() && inside.bytes().all(|byte| byte.is_ascii_digit());
            if self.before == Before::Dot || !is_index {
                return None;
            }
        }
        self.open(b']');
        Some(())
    }

    fn open(&mut self, close: u8) {
        self.open.push(close);
        self.at += 1;
        self.before = Before::Operator;
    }

    fn close(&mut self, byte: u8) -> Option<()> {
        self.at += 1;
        let is_complete = self.before != Before::Dot;
        self.before = Before::Value;
        (is_complete && self.open.pop() == Some(byte)).then_some(())
    }

    fn dot(&mut self, length: usize) -> Option<()> {
        let follows_value = matches!(self.before, Before::Name(_) | Before::Value);
        self.at += length;
        self.before = Before::Dot;
        follows_value.then_some(())
    }

    fn operator(&mut self) -> Option<()> {
        // Longer ones first. Those that assign are not among them.
        const OPERATORS: &[&str] = &[
            "===", "!==", ">>>", "==", "!=", "<=", ">=", "<<", ">>", "&&", "||", "??", "**", "+",
            "-", "*", "/", "%", "<", ">", "&", "|", "^", "!", "~", ",", "?", ":",
        ];
        let rest = &self.code[self.at..];
        let found = *OPERATORS.iter().find(|known| rest.starts_with(**known))?;
        let next = rest.as_bytes().get(found.len()).copied().unwrap_or(0);
        let is_one_more = match found {
            "+" => next == b'+',
            "-" => next == b'-',
            "/" => next == b'/' || next == b'*',
            _ => false,
        };
        let takes_operand_before = !matches!(found, "!" | "~" | "+" | "-" | ",");
        let is_wrong = match self.before {
            Before::Dot => true,
            Before::Operator => takes_operand_before,
            Before::Name(_) | Before::Value => matches!(found, "!" | "~"),
        };
        let assigns =
            next == b'=' && !found.ends_with('=') || (found == "<" && rest.starts_with("<!"));
        self.at += found.len();
        self.before = Before::Operator;
        (!is_one_more && !is_wrong && !assigns).then_some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_change_nothing_are_known() {
        let names = [Some("first".to_owned()), Some("second".to_owned()), None];
        for code in [
            "first + second",
            " first + second ; ",
            "1",
            "JSON.parse(first).a.b[0] === 'x;y=1'",
            "Math.max(first, second) / 2 - -1",
            "first.toUpperCase().slice(1, 3) + \"\\\"=\"",
            "typeof first === 'number' ? first : null",
            "arguments[2]",
            "arguments.length",
            "[first, second].join('-')",
            "Array.isArray(arguments)",
            "first?.length ?? 0",
            "first == 1 && second != 2 || !first",
            "'a' in JSON.parse(first)",
            "(1, 2)",
        ] {
            assert!(is_harmless(code, &names), "{code}");
        }
    }

    #[test]
    fn everything_else_goes_the_long_way() {
        let names = [Some("first".to_owned()), Some("eval2".to_owned())];
        for code in [
            "x = 1",
            "first = 1",
            "first += 1",
            "first++",
            "--first",
            "first.a = 1",
            "first ??= 1",
            "first >>>= 1",
            "var x = 1",
            "let x",
            "function f() {}",
            "() => 1",
            "a => 1",
            "{}",
            "({a: 1})",
            "1; 2",
            "`a${1}`",
            "eval('x = 1')",
            "globalThis.x",
            "this.x",
            "new Date()",
            "delete first.a",
            "x",
            "other",
            "Object.assign(Array.prototype, [])",
            "[].push(1)",
            "[].map(first)",
            "[1].sort()",
            "first.replace('a', first)",
            "''.constructor",
            "''['constructor']",
            "[]['con' + 'cat']",
            "first.__proto__",
            "first.__defineGetter__('a', first)",
            "Array.prototype",
            "Math",
            "JSON.parse(first, Math)",
            "(first)(1)",
            "first(1)",
            "first[0](1)",
            "first?.(1)",
            "db.query('SELECT 1')",
            "Reflect.set(first, 'a', 1)",
            "Function('x = 1')",
            "/a/.test('a')",
            "1 /a/ 2//",
            "1 // a",
            "1 /* a */",
            "first <!-- a",
            "1) + (2",
            "(1",
            "[1",
            "(1]",
            "",
            ";",
            "first.",
            "first second",
            "'a",
            "'a\nb'",
            "\\u0061",
            "é",
            "first.a\u{2028}",
            "String.raw`a`",
            "await first",
            "yield",
            "async (1)",
            "import('a')",
            "1 +",
            "+ * 2",
            "! = 1",
            "first ! second",
            "Date.prototype.getTime.call(first)",
            "[].concat.call(first)",
            "setTimeout(first)",
            "Array(1)",
            "Array.from('ab', parseInt)",
            "#a in first",
            "@a",
            "first => 1",
            "1..constructor",
        ] {
            assert!(!is_harmless(code, &names), "{code}");
        }
        assert!(!is_harmless(&"1+".repeat(4000), &names));
    }

    #[test]
    fn names_of_arguments_are_names() {
        let of = |name: &str| parameters(&[Some(name.to_owned()), None]);
        assert_eq!(of("first").as_deref(), Some("first,arguments"));
        for name in ["", "a b", "1a", "a){", "this", "undefined", "eval", "let", "é", "in"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
