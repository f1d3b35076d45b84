//! Evaluates XPath over a document, with the reference's types: a set of one node is true, numbers keep their digits, texts become
//! numbers as far as they begin with one.

use std::borrow::Cow;

use charset::Collation;
use errors::{Error, ErrorCode, Result};
use plugin_api::FunctionContext;
use types::convert::{CastContext, to_decimal, to_f64, to_i64};
use types::{CollationId, DataType, Value};

use super::path::{Arithmetic, Axis, Comparison, Expr, Function, Step};
use super::read::{Document, Node, NodeKind};
use crate::text::Text;

/// Nodes of one set. Sets may hold a node more than once, so that steps can multiply them.
const SET_MAX: usize = 4 << 20;
/// Work after which the evaluation looks whether it shall end.
const CHECK_EVERY: u32 = 4096;

/// A node in a set, with its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    /// The position among the document's nodes.
    pub(super) node: u32,
    /// Its place in the set of its step, from 0.
    place: u32,
    /// In a filter: the size of the set that it filters, else 0.
    size: u32,
}

/// A value that is no set of nodes.
#[derive(Clone, Debug)]
pub(super) enum Scalar<'a> {
    Null,
    Truth(bool),
    Integer(i64),
    /// A number, with the digits after the point that it shows; all that it has without.
    Real(f64, Option<usize>),
    Text(Cow<'a, [u8]>),
}

impl Scalar<'_> {
    /// As the text that the function returns; `None` for NULL.
    pub(super) fn text(&self) -> Option<Vec<u8>> {
        Some(match self {
            Scalar::Null => return None,
            Scalar::Truth(truth) => vec![b'0' + u8::from(*truth)],
            Scalar::Integer(number) => number.to_string().into_bytes(),
            Scalar::Real(number, Some(digits)) => format!("{number:.digits$}").into_bytes(),
            Scalar::Real(number, None) => {
                let mut text = Vec::new();
                types::to_text(&Value::Double(*number), &DataType::double(), &mut text);
                text
            }
            Scalar::Text(text) => text.to_vec(),
        })
    }
}

/// What an evaluation reads and whom it warns.
pub(super) struct Evaluation<'a, 'b, 'c> {
    document: &'a Document<'a>,
    collation: &'static Collation,
    text: Text,
    ctx: &'b mut FunctionContext<'c>,
    work: u32,
}

impl<'a, 'b, 'c> Evaluation<'a, 'b, 'c> {
    pub(super) fn new(
        document: &'a Document<'a>,
        collation: CollationId,
        ctx: &'b mut FunctionContext<'c>,
    ) -> Evaluation<'a, 'b, 'c> {
        let text = Text::new(collation);
        Evaluation { document, collation: text.collation(), text, ctx, work: 0 }
    }

    fn node(&self, at: u32) -> Result<&'a Node> {
        self.document.nodes.get(at as usize).ok_or_else(|| Error::internal("a node of XML"))
    }

    /// # Errors
    /// The statement was stopped.
    fn note_work(&mut self) -> Result<()> {
        self.work = self.work.wrapping_add(1);
        match self.work.is_multiple_of(CHECK_EVERY) {
            true => self.ctx.session.check_cancelled(),
            false => Ok(()),
        }
    }

    // --- sets of nodes

    /// The nodes of an expression that is a set; `context` is the node that a filter looks at.
    pub(super) fn nodes(&mut self, expr: &Expr, context: Member) -> Result<Vec<Member>> {
        Ok(match expr {
            Expr::Root => vec![Self::root()],
            Expr::Context => vec![context],
            Expr::Path(from, steps) => {
                let mut set = self.nodes(from, context)?;
                for step in steps {
                    set = match step {
                        Step::Walk(axis, name) => self.walk(&set, *axis, name.as_deref())?,
                        Step::Filter(condition) => self.filter(&set, condition)?,
                    };
                }
                set
            }
            Expr::Union(left, right) => {
                let mut set = self.nodes(left, context)?;
                set.extend(self.nodes(right, context)?);
                in_order(set)
            }
            Expr::Integer(_)
            | Expr::Decimal(..)
            | Expr::Text(_)
            | Expr::UserVariable(_)
            | Expr::Negative(_)
            | Expr::Arithmetic(..)
            | Expr::Compare(..)
            | Expr::And(..)
            | Expr::Or(..)
            | Expr::Call(..) => Vec::new(),
        })
    }

    /// The set of the document alone.
    pub(super) fn root() -> Member {
        Member { node: 0, place: 0, size: 0 }
    }

    fn walk(&mut self, set: &[Member], axis: Axis, name: Option<&str>) -> Result<Vec<Member>> {
        let mut found = Vec::new();
        for member in set {
            let mut place = 0;
            self.walk_from(member.node, axis, &mut |walk, at| {
                let node = walk.node(at)?;
                let fits = match node.kind {
                    NodeKind::Text => false,
                    NodeKind::Attribute if axis != Axis::Itself => axis == Axis::Attribute,
                    NodeKind::Root | NodeKind::Element | NodeKind::Attribute => {
                        axis != Axis::Attribute
                    }
                };
                let named = |name: &str| walk.document.content(node) == name.as_bytes();
                if fits && name.is_none_or(named) {
                    if found.len() >= SET_MAX {
                        let message = "XPATH error: too many nodes";
                        return Err(Error::new(ErrorCode::UNKNOWN_ERROR, message));
                    }
                    found.push(Member { node: at, place, size: 0 });
                    place += 1;
                }
                Ok(())
            })?;
        }
        Ok(match axis {
            // Nodes share parents.
            Axis::Parent | Axis::Ancestor | Axis::AncestorOrSelf => in_order(found),
            Axis::Itself
            | Axis::Child
            | Axis::Attribute
            | Axis::Descendant
            | Axis::DescendantOrSelf => found,
        })
    }

    /// Calls `each` for every node of an axis of one node.
    fn walk_from(
        &mut self,
        from: u32,
        axis: Axis,
        each: &mut dyn FnMut(&mut Self, u32) -> Result<()>,
    ) -> Result<()> {
        let start = self.node(from)?;
        match axis {
            Axis::Itself => each(self, from)?,
            Axis::Child | Axis::Attribute => {
                let mut at = from + 1;
                while at < start.end {
                    self.note_work()?;
                    each(self, at)?;
                    at = self.node(at)?.end;
                }
            }
            Axis::Descendant | Axis::DescendantOrSelf => {
                let first = if axis == Axis::Descendant { from + 1 } else { from };
                for at in first..start.end {
                    self.note_work()?;
                    each(self, at)?;
                }
            }
            Axis::Parent if from != 0 => each(self, start.parent)?,
            Axis::Parent => {}
            Axis::Ancestor | Axis::AncestorOrSelf => {
                if axis == Axis::AncestorOrSelf {
                    each(self, from)?;
                }
                // The whole text is nobody's ancestor here.
                let mut at = start.parent;
                while at != 0 {
                    self.note_work()?;
                    each(self, at)?;
                    at = self.node(at)?.parent;
                }
            }
        }
        Ok(())
    }

    fn filter(&mut self, set: &[Member], condition: &Expr) -> Result<Vec<Member>> {
        let size = set.len() as u32;
        let mut kept: Vec<Member> = Vec::new();
        for member in set {
            self.note_work()?;
            let context = Member { size, ..*member };
            let keeps = if condition.is_truth() {
                self.truth(condition, context)? == Some(true)
            } else {
                let number = self.scalar(condition, context)?;
                self.integer(&number, condition) == i64::from(member.place) + 1
            };
            if keeps {
                let place = kept.len() as u32;
                kept.push(Member { node: member.node, place, size: 0 });
            }
        }
        Ok(kept)
    }

    /// The texts that are children of the nodes, in the order of the document, with a blank between them.
    pub(super) fn text_of(&mut self, set: Vec<Member>) -> Result<Vec<u8>> {
        let mut wanted: Vec<u32> = set.into_iter().map(|member| member.node).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let mut texts: Vec<(u32, &[u8])> = Vec::new();
        for node in wanted {
            self.texts(node, &mut |at, text| {
                texts.push((at, text));
                Ok(false)
            })?;
        }
        texts.sort_unstable_by_key(|(at, _)| *at);
        let texts: Vec<&[u8]> = texts.into_iter().map(|(_, text)| text).collect();
        Ok(texts.join(&b' '))
    }

    /// Calls `each` with the texts of a node, until it says that it has seen enough.
    fn texts(
        &mut self,
        node: u32,
        each: &mut dyn FnMut(u32, &'a [u8]) -> Result<bool>,
    ) -> Result<bool> {
        let end = self.node(node)?.end;
        let mut at = node + 1;
        while at < end {
            self.note_work()?;
            let child = self.node(at)?;
            if child.kind == NodeKind::Text && each(at, self.document.content(child))? {
                return Ok(true);
            }
            at = child.end;
        }
        Ok(false)
    }

    // --- values

    /// The value of an expression; a set of nodes as its texts.
    pub(super) fn scalar(&mut self, expr: &Expr, context: Member) -> Result<Scalar<'a>> {
        Ok(match expr {
            Expr::Integer(number) => Scalar::Integer(*number),
            Expr::Decimal(number, digits) => Scalar::Real(*number, Some(*digits)),
            Expr::Text(text) => Scalar::Text(Cow::Owned(text.as_bytes().to_vec())),
            Expr::UserVariable(name) => self.variable(name),
            Expr::Root | Expr::Context | Expr::Path(..) | Expr::Union(..) => {
                let set = self.nodes(expr, context)?;
                Scalar::Text(Cow::Owned(self.text_of(set)?))
            }
            Expr::Negative(inner) => match self.scalar(inner, context)? {
                Scalar::Null => Scalar::Null,
                Scalar::Integer(number) => Scalar::Integer(
                    number.checked_neg().ok_or_else(|| out_of_range(format!("-({number})")))?,
                ),
                value => {
                    let digits = digits_of(&value);
                    Scalar::Real(-self.number(&value), digits)
                }
            },
            Expr::Arithmetic(operator, left, right) => {
                let left = self.scalar(left, context)?;
                let right = self.scalar(right, context)?;
                self.calculate(*operator, &left, &right)?
            }
            Expr::Compare(..) | Expr::And(..) | Expr::Or(..) => {
                truth_value(self.truth(expr, context)?)
            }
            Expr::Call(function, arguments) => self.call(*function, arguments, context)?,
        })
    }

    fn variable(&self, name: &str) -> Scalar<'a> {
        let Some((value, ty)) = self.ctx.session.user_variable(name) else { return Scalar::Null };
        match value {
            Value::Null => Scalar::Null,
            Value::Int(number) => Scalar::Integer(number),
            Value::Double(number) => Scalar::Real(number, None),
            Value::Decimal(number) => Scalar::Real(number.to_f64(), Some(usize::from(ty.decimals))),
            value => {
                let mut text = Vec::new();
                types::to_text(&value, &ty, &mut text);
                Scalar::Text(Cow::Owned(text))
            }
        }
    }

    fn truth(&mut self, expr: &Expr, context: Member) -> Result<Option<bool>> {
        Ok(match expr {
            // The reference takes a set of several nodes for false.
            Expr::Root | Expr::Context | Expr::Path(..) | Expr::Union(..) => {
                Some(self.nodes(expr, context)?.len() == 1)
            }
            Expr::And(left, right) => {
                let left = self.truth(left, context)?;
                if left == Some(false) {
                    return Ok(left);
                }
                match (left, self.truth(right, context)?) {
                    (_, Some(false)) => Some(false),
                    (Some(true), right) => right,
                    _ => None,
                }
            }
            Expr::Or(left, right) => {
                let left = self.truth(left, context)?;
                if left == Some(true) {
                    return Ok(left);
                }
                match (left, self.truth(right, context)?) {
                    (_, Some(true)) => Some(true),
                    (Some(false), right) => right,
                    _ => None,
                }
            }
            Expr::Compare(operator, left, right) => {
                let scalar = self.scalar(right, context)?;
                if left.is_nodes() {
                    let set = self.nodes(left, context)?;
                    return self.compare_nodes(*operator, &set, &scalar);
                }
                let left = self.scalar(left, context)?;
                self.compare(*operator, &left, &scalar)
            }
            expr => match self.scalar(expr, context)? {
                Scalar::Null => None,
                Scalar::Truth(truth) => Some(truth),
                value => Some(self.number(&value) != 0.0),
            },
        })
    }

    /// Whether the comparison holds for a text of the nodes.
    fn compare_nodes(
        &mut self,
        operator: Comparison,
        set: &[Member],
        scalar: &Scalar<'_>,
    ) -> Result<Option<bool>> {
        for member in set {
            let mut texts = Vec::new();
            self.texts(member.node, &mut |_, text| {
                texts.push(text);
                Ok(false)
            })?;
            for text in texts {
                let text = Scalar::Text(Cow::Borrowed(text));
                if self.compare(operator, &text, scalar) == Some(true) {
                    return Ok(Some(true));
                }
            }
        }
        Ok(Some(false))
    }

    fn compare(
        &mut self,
        operator: Comparison,
        left: &Scalar<'_>,
        right: &Scalar<'_>,
    ) -> Option<bool> {
        if matches!((left, right), (Scalar::Null, _) | (_, Scalar::Null)) {
            return None;
        }
        let order = if let (Scalar::Text(left), Scalar::Text(right)) = (left, right) {
            self.collation.compare(left, right)
        } else if let (Scalar::Integer(left), Scalar::Integer(right)) = (left, right) {
            left.cmp(right)
        } else {
            let (left, right) = (self.number(left), self.number(right));
            left.partial_cmp(&right)?
        };
        Some(match operator {
            Comparison::Equal => order.is_eq(),
            Comparison::NotEqual => order.is_ne(),
            Comparison::Less => order.is_lt(),
            Comparison::LessOrEqual => order.is_le(),
            Comparison::Greater => order.is_gt(),
            Comparison::GreaterOrEqual => order.is_ge(),
        })
    }

    fn casts(&mut self) -> CastContext<'_> {
        CastContext::new(self.ctx.sql_mode, self.ctx.diagnostics)
    }

    /// As a double, with a warning for a text that is not wholly a number.
    fn number(&mut self, value: &Scalar<'_>) -> f64 {
        match value {
            Scalar::Null => 0.0,
            Scalar::Truth(truth) => f64::from(u8::from(*truth)),
            Scalar::Integer(number) => *number as f64,
            Scalar::Real(number, _) => *number,
            Scalar::Text(text) => {
                let (text, ty) = text_value(text);
                to_f64(&text, &ty, &mut self.casts())
            }
        }
    }

    /// As an integer; `expr` is where the value comes from.
    fn integer(&mut self, value: &Scalar<'_>, expr: &Expr) -> i64 {
        match value {
            Scalar::Null => 0,
            Scalar::Truth(truth) => i64::from(*truth),
            Scalar::Integer(number) => *number,
            // The cast saturates.
            Scalar::Real(number, _) => number.round_ties_even() as i64,
            Scalar::Text(text) => {
                let (text, ty) = text_value(text);
                // The text of a variable becomes a number without a warning.
                if matches!(expr, Expr::UserVariable(_)) {
                    let mut silent = errors::Diagnostics::new(0);
                    return to_i64(
                        &text,
                        &ty,
                        &mut CastContext::new(self.ctx.sql_mode, &mut silent),
                    );
                }
                to_i64(&text, &ty, &mut self.casts())
            }
        }
    }

    fn calculate(
        &mut self,
        operator: Arithmetic,
        left: &Scalar<'_>,
        right: &Scalar<'_>,
    ) -> Result<Scalar<'a>> {
        if matches!(left, Scalar::Null) || matches!(right, Scalar::Null) {
            return Ok(Scalar::Null);
        }
        if let (Scalar::Integer(a), Scalar::Integer(b)) = (left, right) {
            return self.calculate_integers(operator, *a, *b);
        }
        if operator == Arithmetic::Divide {
            return Ok(self.divide(left, right));
        }
        let digits = digits_of(left).zip(digits_of(right)).map(|(left, right)| left.max(right));
        let (a, b) = (self.number(left), self.number(right));
        Ok(match operator {
            Arithmetic::Add => Scalar::Real(a + b, digits),
            Arithmetic::Subtract => Scalar::Real(a - b, digits),
            Arithmetic::Multiply => Scalar::Real(a * b, digits),
            Arithmetic::Divide | Arithmetic::Modulo if b == 0.0 => self.divided_by_zero(),
            Arithmetic::Divide | Arithmetic::Modulo => Scalar::Real(a % b, digits),
        })
    }

    fn calculate_integers(&mut self, operator: Arithmetic, a: i64, b: i64) -> Result<Scalar<'a>> {
        let (result, sign) = match operator {
            Arithmetic::Add => (a.checked_add(b), "+"),
            Arithmetic::Subtract => (a.checked_sub(b), "-"),
            Arithmetic::Multiply => (a.checked_mul(b), "*"),
            Arithmetic::Divide | Arithmetic::Modulo if b == 0 => {
                return Ok(self.divided_by_zero());
            }
            Arithmetic::Divide => (a.checked_div(b), "DIV"),
            Arithmetic::Modulo => (Some(a.wrapping_rem(b)), "%"),
        };
        let result = result.ok_or_else(|| out_of_range(format!("({a} {sign} {b})")))?;
        Ok(Scalar::Integer(result))
    }

    /// The whole part of a quotient.
    fn divide(&mut self, left: &Scalar<'_>, right: &Scalar<'_>) -> Scalar<'a> {
        let mut part = |value: &Scalar<'_>| match value {
            Scalar::Text(text) => {
                let (text, ty) = text_value(text);
                to_decimal(&text, &ty, &mut self.casts()).to_f64()
            }
            value => self.number(value),
        };
        let (a, b) = (part(left), part(right));
        match b == 0.0 {
            true => self.divided_by_zero(),
            false => Scalar::Integer((a / b).trunc() as i64),
        }
    }

    fn divided_by_zero(&mut self) -> Scalar<'a> {
        self.ctx.diagnostics.warn(ErrorCode::DIVISION_BY_ZERO, &[]);
        Scalar::Null
    }

    // --- functions

    fn call(
        &mut self,
        function: Function,
        arguments: &[Expr],
        context: Member,
    ) -> Result<Scalar<'a>> {
        let argument = |at: usize| {
            arguments.get(at).ok_or_else(|| Error::internal("an argument of an XPath function"))
        };
        Ok(match function {
            Function::True => Scalar::Truth(true),
            Function::False => Scalar::Truth(false),
            Function::Not => truth_value(self.truth(argument(0)?, context)?.map(|truth| !truth)),
            Function::Boolean => Scalar::Truth(self.truth(argument(0)?, context)? == Some(true)),
            Function::Position => Scalar::Integer(i64::from(context.place) + 1),
            Function::Last => Scalar::Integer(i64::from(context.size)),
            Function::Count => {
                let set = self.nodes(argument(0)?, context)?;
                Scalar::Integer(match set.as_slice() {
                    // A filter's own node stands for the set that it filters.
                    [only] if only.size > 0 => i64::from(only.size),
                    set => set.len() as i64,
                })
            }
            Function::Sum => self.sum(argument(0)?, context)?,
            Function::Number => match self.scalar(argument(0)?, context)? {
                Scalar::Null => Scalar::Null,
                value => Scalar::Real(self.number(&value), None),
            },
            Function::Round | Function::Floor | Function::Ceiling => {
                let value = self.scalar(argument(0)?, context)?;
                self.round(function, value)
            }
            Function::StringLength => {
                let text = self.scalar(argument(0)?, context)?.text();
                text.map_or(Scalar::Null, |text| Scalar::Integer(self.text.length(&text) as i64))
            }
            Function::Contains => {
                let text = self.scalar(argument(0)?, context)?.text();
                let part = self.scalar(argument(1)?, context)?.text();
                match text.zip(part) {
                    Some((text, part)) => Scalar::Truth(self.text.find(&text, &part, 0).is_some()),
                    None => Scalar::Truth(false),
                }
            }
            // Of more than two the reference takes the first two.
            Function::Concat => {
                let text = self.scalar(argument(0)?, context)?.text();
                let more = self.scalar(argument(1)?, context)?.text();
                match text.zip(more) {
                    Some((mut text, more)) => {
                        text.extend(more);
                        Scalar::Text(Cow::Owned(text))
                    }
                    None => Scalar::Null,
                }
            }
            Function::Substring => self.substring(arguments, context)?,
        })
    }

    fn sum(&mut self, set: &Expr, context: Member) -> Result<Scalar<'a>> {
        let set = self.nodes(set, context)?;
        let (mut sum, sql_mode) = (0.0, self.ctx.sql_mode);
        let mut silent = errors::Diagnostics::new(0);
        for member in set {
            self.texts(member.node, &mut |_, text| {
                let (text, ty) = text_value(text);
                sum += to_f64(&text, &ty, &mut CastContext::new(sql_mode, &mut silent));
                Ok(false)
            })?;
        }
        Ok(Scalar::Real(sum, None))
    }

    fn round(&mut self, function: Function, value: Scalar<'a>) -> Scalar<'a> {
        match value {
            Scalar::Null => Scalar::Null,
            Scalar::Integer(number) => Scalar::Integer(number),
            value => {
                let number = self.number(&value);
                let number = if function == Function::Floor {
                    number.floor()
                } else if function == Function::Ceiling {
                    number.ceil()
                } else {
                    number.round_ties_even()
                };
                Scalar::Real(number, Some(0))
            }
        }
    }

    fn substring(&mut self, arguments: &[Expr], context: Member) -> Result<Scalar<'a>> {
        let [text, from, rest @ ..] = arguments else {
            return Err(Error::internal("SUBSTRING of XPath"));
        };
        let Some(text) = self.scalar(text, context)?.text() else { return Ok(Scalar::Null) };
        let place = self.scalar(from, context)?;
        let place = self.integer(&place, from);
        let count = match rest.first() {
            Some(expr) => {
                let count = self.scalar(expr, context)?;
                self.integer(&count, expr)
            }
            None => i64::MAX,
        };
        let length = self.text.length(&text) as i64;
        let start = if place < 0 { length.saturating_add(place) } else { place - 1 };
        if place == 0 || count <= 0 || start < 0 || start >= length {
            return Ok(Scalar::Text(Cow::Borrowed(b"")));
        }
        let part = self.text.slice(&text, start as usize, count as usize);
        Ok(Scalar::Text(Cow::Owned(part.to_vec())))
    }
}

/// Each node once, in the order of the document.
fn in_order(mut set: Vec<Member>) -> Vec<Member> {
    set.sort_by_key(|member| member.node);
    set.dedup_by_key(|member| member.node);
    for (place, member) in set.iter_mut().enumerate() {
        (member.place, member.size) = (place as u32, 0);
    }
    set
}

fn truth_value<'a>(truth: Option<bool>) -> Scalar<'a> {
    truth.map_or(Scalar::Null, Scalar::Truth)
}

/// Digits after the point that a number shows; `None` for as many as it has.
fn digits_of(value: &Scalar<'_>) -> Option<usize> {
    match value {
        Scalar::Null | Scalar::Truth(_) | Scalar::Integer(_) => Some(0),
        Scalar::Real(_, digits) => *digits,
        Scalar::Text(_) => None,
    }
}

fn text_value(text: &[u8]) -> (Value, DataType) {
    (Value::Bytes(text.into()), DataType::varchar(1, CollationId::UTF8MB4_0900_AI_CI))
}

#[cold]
fn out_of_range(expression: String) -> Error {
    errors::err!(DATA_OUT_OF_RANGE, "BIGINT", expression)
}
