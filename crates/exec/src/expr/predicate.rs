//! Comparisons, IN, BETWEEN and LIKE.

use std::cmp::Ordering;
use std::rc::Rc;

use errors::{Error, ErrorCode, Result};
use hashbrown::HashSet;
use plan::BinaryOp;
use rows::convert;
use rows::numbers::answers;
use rows::value_key::{Domain, Side};
use types::{CollationId, Comparator, DataType, Value, compare_values};

use super::Code;
use crate::run::Run;

/// `left op right` with the rule for the operands' types.
pub(crate) struct Comparison {
    pub(crate) op: BinaryOp,
    pub(crate) left: Code,
    pub(crate) right: Code,
    pub(crate) comparator: Comparator,
}

impl Comparison {
    /// Three-valued result; `<=>` never returns NULL.
    #[inline]
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Option<bool>> {
        if self.comparator.is_direct()
            && let (Some(left), Some(right)) = (self.left.leaf(run), self.right.leaf(run))
        {
            if let (Value::Int(left), Value::Int(right)) = (left, right) {
                return Ok(Some(answers(self.op, left.cmp(right))));
            }
            let order = compare_values(self.comparator.kind(), left, right);
            return Ok(self.answer(order, left, right));
        }
        let left = self.left.eval(run)?;
        if left.is_null() && self.op != BinaryOp::NullSafeEqual {
            return Ok(None);
        }
        let right = self.right.eval(run)?;
        let order = order_values(&self.comparator, &left, &right, run)?;
        Ok(self.answer(order, &left, &right))
    }

    fn answer(&self, order: Option<Ordering>, left: &Value, right: &Value) -> Option<bool> {
        match order {
            Some(order) => Some(answers(self.op, order)),
            None if self.op == BinaryOp::NullSafeEqual => Some(left.is_null() && right.is_null()),
            None => None,
        }
    }
}

/// Order of two values; `None` when one is NULL.
pub(crate) fn order_values(
    comparator: &Comparator,
    left: &Value,
    right: &Value,
    run: &mut Run<'_>,
) -> Result<Option<Ordering>> {
    if comparator.is_direct() {
        return Ok(compare_values(comparator.kind(), left, right));
    }
    comparator.compare(left, right, &mut convert::context(&mut run.function))
}

/// Rows compared column by column. Each column's comparison has operator `=` or `<=>`; `op` is the operator of the whole.
pub(crate) struct RowComparison {
    pub(crate) op: BinaryOp,
    pub(crate) columns: Vec<Comparison>,
}

impl RowComparison {
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Option<bool>> {
        match self.op {
            BinaryOp::Equal | BinaryOp::NullSafeEqual => self.all_equal(run),
            BinaryOp::NotEqual => Ok(self.all_equal(run)?.map(|equal| !equal)),
            _ => self.ordered(run),
        }
    }

    fn all_equal(&self, run: &mut Run<'_>) -> Result<Option<bool>> {
        let mut unknown = false;
        for column in &self.columns {
            match column.eval(run)? {
                Some(false) => return Ok(Some(false)),
                None => unknown = true,
                Some(true) => {}
            }
        }
        Ok(if unknown { None } else { Some(true) })
    }

    /// `<`, `<=`, `>` and `>=`: the first unequal column decides.
    fn ordered(&self, run: &mut Run<'_>) -> Result<Option<bool>> {
        for column in &self.columns {
            let left = column.left.eval(run)?;
            let right = column.right.eval(run)?;
            if left.is_null() || right.is_null() {
                return Ok(None);
            }
            let order = order_values(&column.comparator, &left, &right, run)?;
            let Some(order) = order else { return Ok(None) };
            if order.is_ne() {
                return Ok(Some(answers(self.op, order)));
            }
        }
        Ok(Some(answers(self.op, Ordering::Equal)))
    }
}

pub(crate) fn eval_between(
    low: &Comparison,
    high: &Comparison,
    negated: bool,
    run: &mut Run<'_>,
) -> Result<Option<bool>> {
    let above = low.eval(run)?;
    if above == Some(false) {
        return Ok(Some(negated));
    }
    let inside = match (above, high.eval(run)?) {
        (_, Some(false)) => Some(false),
        (Some(true), Some(true)) => Some(true),
        _ => None,
    };
    Ok(inside.map(|inside| inside != negated))
}

/// Three-valued OR over comparisons with `=`.
pub(crate) fn eval_in_list(
    comparisons: &[Comparison],
    negated: bool,
    run: &mut Run<'_>,
) -> Result<Option<bool>> {
    let Some(first) = comparisons.first() else { return Ok(Some(negated)) };
    if let Some(value) = first.left.leaf(run)
        && value.is_null()
    {
        return Ok(None);
    }
    let mut unknown = false;
    for comparison in comparisons {
        match comparison.eval(run)? {
            Some(true) => return Ok(Some(!negated)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(negated) })
}

pub(crate) fn eval_in_rows(
    comparisons: &[RowComparison],
    negated: bool,
    run: &mut Run<'_>,
) -> Result<Option<bool>> {
    let mut unknown = false;
    for comparison in comparisons {
        match comparison.eval(run)? {
            Some(true) => return Ok(Some(!negated)),
            Some(false) => {}
            None => unknown = true,
        }
    }
    Ok(if unknown { None } else { Some(negated) })
}

/// The values of a long IN list.
pub(crate) struct InSet {
    keys: HashSet<Box<[u8]>, foldhash::fast::FixedState>,
    has_null: bool,
}

/// `operand IN (long list of constants)`. All items are compared as the same kind.
pub(crate) struct InSetCode {
    pub(crate) operand: Code,
    pub(crate) list: Vec<(Code, Domain)>,
    pub(crate) slot: usize,
    pub(crate) negated: bool,
}

impl InSetCode {
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Option<bool>> {
        let set = match &run.memo.sets[self.slot] {
            Some(set) => set.clone(),
            None => self.build(run)?,
        };
        let Some((_, domain)) = self.list.first() else { return Ok(Some(self.negated)) };
        let mut key = std::mem::take(&mut run.buffers.key);
        key.clear();
        let is_value = self.operand.append_key(domain, Side::Left, run, &mut key);
        let found = set.keys.contains(key.as_slice());
        run.buffers.key = key;
        Ok(match (is_value?, found) {
            (false, _) => None,
            (true, true) => Some(!self.negated),
            (true, false) if set.has_null => None,
            (true, false) => Some(self.negated),
        })
    }

    fn build(&self, run: &mut Run<'_>) -> Result<Rc<InSet>> {
        let mut set = InSet { keys: HashSet::default(), has_null: false };
        let mut key = Vec::new();
        for (item, domain) in &self.list {
            key.clear();
            if item.append_key(domain, Side::Right, run, &mut key)? {
                set.keys.insert(key.as_slice().into());
            } else {
                set.has_null = true;
            }
        }
        let set = Rc::new(set);
        run.memo.sets[self.slot] = Some(set.clone());
        Ok(set)
    }
}

/// `operand LIKE pattern ESCAPE escape`; both operands are text already.
pub(crate) struct Like {
    pub(crate) operand: Code,
    pub(crate) pattern: Code,
    pub(crate) escape: Option<Code>,
    pub(crate) operand_ty: DataType,
    pub(crate) pattern_ty: DataType,
    pub(crate) negated: bool,
    pub(crate) collation: CollationId,
}

impl Like {
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Option<bool>> {
        let escape = match &self.escape {
            None if run.function.sql_mode.contains(types::SqlMode::NO_BACKSLASH_ESCAPES) => None,
            None => Some('\\'),
            Some(escape) => escape_character(&escape.eval(run)?)?,
        };
        let collation = charset::collation_or_binary(self.collation);
        if let (Some(Value::Bytes(text)), Some(Value::Bytes(pattern))) =
            (self.operand.leaf(run), self.pattern.leaf(run))
        {
            return Ok(Some(collation.like(pattern, text, escape) != self.negated));
        }
        let text = self.operand.eval(run)?;
        let pattern = self.pattern.eval(run)?;
        if text.is_null() || pattern.is_null() {
            return Ok(None);
        }
        let text = convert::text_bytes(&text, &self.operand_ty);
        let pattern = convert::text_bytes(&pattern, &self.pattern_ty);
        Ok(Some(collation.like(&pattern, &text, escape) != self.negated))
    }
}

fn escape_character(value: &Value) -> Result<Option<char>> {
    let Value::Bytes(bytes) = value else { return Ok(Some('\\')) };
    let text = std::str::from_utf8(bytes).unwrap_or("");
    let mut chars = text.chars();
    match (chars.next(), chars.next()) {
        (first, None) => Ok(first),
        _ => Err(Error::with(ErrorCode::WRONG_ARGUMENTS, &[&"ESCAPE"])),
    }
}
