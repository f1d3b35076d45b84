//! Predicates: conjuncts, rejection of NULL, substitution, constants.

use plan::{BinaryOp, Expr, Register, RegisterSet, SubqueryKind, UnaryOp};
use types::Value;

use crate::cost::{
    BETWEEN_SHARE, EQUAL_SHARE, HALF_OPEN_SHARE, LIST_SHARE_MAX, NOT_BETWEEN_SHARE,
    NOT_EQUAL_SHARE, UNKNOWN_SHARE,
};

/// Splits AND into its conjuncts.
pub(crate) fn split(predicate: Expr, into: &mut Vec<Expr>) {
    match predicate {
        Expr::Binary { op: BinaryOp::And, left, right, .. } => {
            split(*left, into);
            split(*right, into);
        }
        // NOT (a OR b) is NOT a AND NOT b; the connective of the result matters.
        other => into.push(other),
    }
}

fn split_or(predicate: Expr, into: &mut Vec<Vec<Expr>>) {
    match predicate {
        Expr::Binary { op: BinaryOp::Or, left, right, .. } => {
            split_or(*left, into);
            split_or(*right, into);
        }
        other => {
            let mut conjuncts = Vec::new();
            split(other, &mut conjuncts);
            into.push(conjuncts);
        }
    }
}

/// The alternatives of an OR, each as its conjuncts; `None` for a predicate that is not an OR, or must not be split.
pub(crate) fn alternatives(predicate: &Expr) -> Option<Vec<Vec<Expr>>> {
    let is_or = matches!(predicate, Expr::Binary { op: BinaryOp::Or, .. });
    if !is_or || predicate.is_volatile() || has_subquery(predicate) {
        return None;
    }
    let mut alternatives = Vec::new();
    split_or(predicate.clone(), &mut alternatives);
    Some(alternatives)
}

/// Adds a predicate; of `a AND b OR a AND c` the conjuncts `a` and `b OR c`.
pub(crate) fn factor(predicate: Expr, into: &mut Vec<Expr>) {
    let Some(mut alternatives) = alternatives(&predicate) else { return into.push(predicate) };
    let mut common = alternatives[0].clone();
    for other in &alternatives[1..] {
        common.retain(|conjunct| other.contains(conjunct));
        if common.is_empty() {
            return into.push(predicate);
        }
    }
    for alternative in &mut alternatives {
        alternative.retain(|conjunct| !common.contains(conjunct));
    }
    into.extend(common);
    // An alternative without further conditions makes the rest of the OR true.
    let rest = alternatives.into_iter().map(conjunction).collect::<Option<Vec<_>>>();
    into.extend(rest.and_then(|rest| Expr::balanced(BinaryOp::Or, rest)));
}

/// The condition that an OR implies on the terms for which `is_own` holds: `x = 1 AND y = 2 OR x = 3` implies `x = 1 OR x = 3` for x.
pub(crate) fn restriction(predicate: &Expr, is_own: impl Fn(&Expr) -> bool) -> Option<Expr> {
    let own = |alternative: Vec<Expr>| conjunction(alternative.into_iter().filter(&is_own));
    let alternatives = alternatives(predicate)?.into_iter().map(own);
    Expr::balanced(BinaryOp::Or, alternatives.collect::<Option<Vec<_>>>()?)
}

/// Joins conjuncts in order; the tree is as flat as possible.
pub(crate) fn conjunction(predicates: impl IntoIterator<Item = Expr>) -> Option<Expr> {
    Expr::balanced(BinaryOp::And, predicates.into_iter().collect())
}

pub(crate) fn has_subquery(expr: &Expr) -> bool {
    expr.any(&mut |node| matches!(node, Expr::Subquery { .. }))
}

/// The truth of a constant predicate, when it is known.
pub(crate) fn constant_truth(expr: &Expr) -> Option<bool> {
    match expr {
        Expr::Literal { value, .. } => match value {
            Value::Null => Some(false),
            Value::Int(number) => Some(*number != 0),
            Value::UInt(number) => Some(*number != 0),
            Value::Double(number) => Some(*number != 0.0),
            Value::Decimal(number) => Some(!number.is_zero()),
            _ => None,
        },
        Expr::Binary { op, left, right, .. } => {
            let (
                Expr::Literal { value: Value::Int(a), .. },
                Expr::Literal { value: Value::Int(b), .. },
            ) = (&**left, &**right)
            else {
                return None;
            };
            match op {
                BinaryOp::Equal | BinaryOp::NullSafeEqual => Some(a == b),
                BinaryOp::NotEqual => Some(a != b),
                BinaryOp::Less => Some(a < b),
                BinaryOp::LessOrEqual => Some(a <= b),
                BinaryOp::Greater => Some(a > b),
                BinaryOp::GreaterOrEqual => Some(a >= b),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Whether the predicate is not true when all of `registers` are NULL.
pub(crate) fn rejects_null(expr: &Expr, registers: &RegisterSet) -> bool {
    match expr {
        Expr::Binary { op, left, right, .. } => match op {
            BinaryOp::And => rejects_null(left, registers) || rejects_null(right, registers),
            BinaryOp::Or => rejects_null(left, registers) && rejects_null(right, registers),
            BinaryOp::NullSafeEqual => {
                is_null_with(left, registers) && never_null(right)
                    || is_null_with(right, registers) && never_null(left)
            }
            _ => is_null_with(expr, registers),
        },
        Expr::Unary { op, operand, .. } => match op {
            UnaryOp::IsNotNull | UnaryOp::IsTrue | UnaryOp::IsFalse => {
                is_null_with(operand, registers)
            }
            UnaryOp::Not => is_null_with(operand, registers),
            _ => is_null_with(expr, registers),
        },
        Expr::Subquery { kind: SubqueryKind::In(left), negated: false, .. } => {
            left.iter().any(|expr| is_null_with(expr, registers))
        }
        _ => is_null_with(expr, registers),
    }
}

fn never_null(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal { value, .. } if !value.is_null())
}

/// Whether the expression is NULL when all of `registers` are.
fn is_null_with(expr: &Expr, registers: &RegisterSet) -> bool {
    match expr {
        Expr::Column { register, .. } => registers.contains(*register),
        Expr::Literal { value, .. } => value.is_null(),
        Expr::Unary { op, operand, .. } => match op {
            UnaryOp::Negate | UnaryOp::BitNot | UnaryOp::Not => is_null_with(operand, registers),
            UnaryOp::IsNull
            | UnaryOp::IsNotNull
            | UnaryOp::IsTrue
            | UnaryOp::IsNotTrue
            | UnaryOp::IsFalse
            | UnaryOp::IsNotFalse => false,
        },
        Expr::Binary { op, left, right, .. } => match op {
            BinaryOp::NullSafeEqual => false,
            BinaryOp::And | BinaryOp::Or => {
                is_null_with(left, registers) && is_null_with(right, registers)
            }
            _ => is_null_with(left, registers) || is_null_with(right, registers),
        },
        Expr::Between { operand, .. } => is_null_with(operand, registers),
        Expr::InList { operand, .. } => is_null_with(operand, registers),
        Expr::Like { operand, pattern, .. } => {
            is_null_with(operand, registers) || is_null_with(pattern, registers)
        }
        Expr::Cast { operand, .. } | Expr::Collate { operand, .. } => {
            is_null_with(operand, registers)
        }
        Expr::FirstNotNull { parts, .. } => {
            parts.iter().all(|part| is_null_with(part, registers))
        }
        // Functions may turn NULL into another value.
        Expr::Function { .. }
        | Expr::Stored { .. }
        // A NULL-extended row fits no search: 0.
        | Expr::Match { .. }
        | Expr::Case { .. }
        | Expr::Held { .. }
        | Expr::HeldValue { .. }
        | Expr::Subquery { .. }
        | Expr::Row(_)
        | Expr::Parameter { .. }
        | Expr::UserVariable { .. }
        | Expr::AssignUserVariable { .. }
        | Expr::SystemVariable { .. } => false,
    }
}

/// Replaces registers by expressions, until none is left.
pub(crate) fn substitute(expr: &mut Expr, columns: &[(Register, Expr)]) {
    if columns.is_empty() {
        return;
    }
    let mut changed = false;
    expr.rewrite(&mut |node| {
        let Expr::Column { register, .. } = node else { return false };
        let register = *register;
        let Some((_, value)) = columns.iter().find(|(target, _)| *target == register) else {
            return false;
        };
        if value.as_column() == Some(register) {
            return true;
        }
        *node = value.clone();
        changed = true;
        true
    });
    // Projections stack: a value may name a register of one further down.
    if changed {
        substitute(expr, columns);
    }
}

/// The share of rows that a predicate keeps, when no statistics are available.
pub(crate) fn selectivity(expr: &Expr) -> f64 {
    match expr {
        Expr::Binary { op, left, right, .. } => match op {
            BinaryOp::Equal | BinaryOp::NullSafeEqual => EQUAL_SHARE,
            BinaryOp::Less
            | BinaryOp::LessOrEqual
            | BinaryOp::Greater
            | BinaryOp::GreaterOrEqual => HALF_OPEN_SHARE,
            BinaryOp::NotEqual => NOT_EQUAL_SHARE,
            BinaryOp::And => selectivity(left) * selectivity(right),
            BinaryOp::Or => (selectivity(left) + selectivity(right)).min(1.0),
            _ => UNKNOWN_SHARE,
        },
        Expr::Between { negated, .. } => {
            if *negated {
                NOT_BETWEEN_SHARE
            } else {
                BETWEEN_SHARE
            }
        }
        Expr::InList { list, negated, .. } => {
            let share = (list.len() as f64 * EQUAL_SHARE).min(LIST_SHARE_MAX);
            if *negated { 1.0 - share } else { share }
        }
        Expr::Like { negated, .. } => {
            if *negated {
                NOT_BETWEEN_SHARE
            } else {
                BETWEEN_SHARE
            }
        }
        Expr::Unary { op, .. } => match op {
            UnaryOp::IsNull => EQUAL_SHARE,
            UnaryOp::IsNotNull => NOT_EQUAL_SHARE,
            _ => UNKNOWN_SHARE,
        },
        _ => UNKNOWN_SHARE,
    }
}
