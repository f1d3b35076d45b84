//! NOT and lists of one item in the reference's spelling: NOT goes inward as far as an operator takes it up, and `a IN (b)` is
//! `a = b`.

use syntax::ast::*;

use crate::Printer;
use crate::expr::is_truth_value;

impl Printer<'_> {
    pub(super) fn not(&mut self, inner: &Expr) {
        if !self.options.canonical {
            return self.negated(true, |p| p.expr(inner));
        }
        match &inner.kind {
            ExprKind::Not(inner) | ExprKind::NotSign(inner) => return self.condition(inner),
            ExprKind::Binary { op, left, right } => {
                if let Some(opposite) = opposite(*op) {
                    return self.infix(left, opposite, right);
                }
            }
            ExprKind::Is { expr, test, negated } => return self.is(expr, *test, !negated),
            ExprKind::Between(between) => return self.between(between, !between.negated),
            ExprKind::InList { expr, list, negated } => return self.in_list(expr, list, !negated),
            ExprKind::InSubquery { expr, query, negated } => {
                return self.in_subquery(expr, query, !negated);
            }
            ExprKind::Exists(query) => {
                self.s("(not ");
                self.subquery("exists", query);
                return self.s(")");
            }
            ExprKind::Quantified { left, op, all, query } => {
                if let Some(opposite) = opposite(*op) {
                    return self.quantified(left, opposite, !all, query);
                }
            }
            ExprKind::And(items) => return self.joined(items, " or ", Self::not),
            ExprKind::Or(items) => return self.joined(items, " and ", Self::not),
            ExprKind::Xor(left, right) => {
                self.s("(");
                self.not(left);
                self.s(" xor ");
                self.condition(right);
                return self.s(")");
            }
            _ => {}
        }
        if !is_truth_value(inner) {
            self.s("(0 = ");
            self.operand(inner);
            return self.s(")");
        }
        self.negated(true, |p| p.expr(inner));
    }

    /// Items in parentheses with an operator between them.
    pub(super) fn joined<T>(
        &mut self,
        items: &[T],
        operator: &str,
        mut print: impl FnMut(&mut Self, &T),
    ) {
        self.s("(");
        for (index, item) in items.iter().enumerate() {
            self.when(index > 0, operator);
            print(self, item);
        }
        self.s(")");
    }

    pub(super) fn in_list(&mut self, expr: &Expr, list: &[Expr], negated: bool) {
        if self.options.canonical
            && let [item] = list
        {
            return self.equality(expr, item, negated);
        }
        self.s("(");
        self.operand(expr);
        self.s(if negated { " not in (" } else { " in (" });
        self.exprs(list);
        self.s("))");
    }

    /// Rows are compared field by field.
    fn equality(&mut self, left: &Expr, right: &Expr, negated: bool) {
        let mut pairs = Vec::new();
        pair_fields(left, right, &mut pairs);
        let (operator, between) = if negated { ("<>", " or ") } else { ("=", " and ") };
        match pairs[..] {
            [(left, right)] => self.infix(left, operator, right),
            _ => self.joined(&pairs, between, |p, (left, right)| p.infix(left, operator, right)),
        }
    }

    pub(super) fn in_subquery(&mut self, expr: &Expr, query: &Query, negated: bool) {
        if self.options.canonical {
            self.when(negated, "(not(");
            self.operand(expr);
            self.subquery(" in ", query);
            return self.when(negated, "))");
        }
        self.s("(");
        self.operand(expr);
        self.subquery(if negated { " not in " } else { " in " }, query);
        self.s(")");
    }
}

fn pair_fields<'a>(left: &'a Expr, right: &'a Expr, pairs: &mut Vec<(&'a Expr, &'a Expr)>) {
    if let (ExprKind::Row(lefts), ExprKind::Row(rights)) = (&left.kind, &right.kind)
        && lefts.len() == rights.len()
    {
        lefts.iter().zip(rights).for_each(|(left, right)| pair_fields(left, right, pairs));
    } else {
        pairs.push((left, right));
    }
}

/// The comparison that holds when `op` does not.
fn opposite(op: BinaryOp) -> Option<&'static str> {
    Some(match op {
        BinaryOp::Eq => "<>",
        BinaryOp::NotEq => "=",
        BinaryOp::Lt => ">=",
        BinaryOp::LtEq => ">",
        BinaryOp::Gt => "<=",
        BinaryOp::GtEq => "<",
        BinaryOp::Add
        | BinaryOp::Sub
        | BinaryOp::Mul
        | BinaryOp::Div
        | BinaryOp::IntDiv
        | BinaryOp::Mod
        | BinaryOp::BitAnd
        | BinaryOp::BitOr
        | BinaryOp::BitXor
        | BinaryOp::ShiftLeft
        | BinaryOp::ShiftRight
        | BinaryOp::NullSafeEq => return None,
    })
}
