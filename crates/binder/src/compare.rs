//! Comparisons: rows split into columns, constants converted to the type that they are compared with, the collation of texts.

use errors::{Result, bail, err};
use plan::{BinaryOp, CastKind, Expr, UnaryOp};
use syntax::ast;
use types::temporal::{parse_date, parse_datetime, parse_time};
use types::{CollationId, DataType, TypeKind, Value};

use crate::binder::Binder;
use crate::collation::{self, Differing};
use crate::expr::{and, binary, columns_of, json_text, logical, not, single, to_text};
use crate::fixed;
use crate::literal::width;
use crate::typing::is_stringy;

/// Digits that a double always keeps.
const DIGITS_OF_DOUBLE: u32 = 15;
/// Rows wider than this compare for equality only.
const ROW_ORDER_MAX: usize = 64;

/// The operator with its operands exchanged.
pub(crate) fn mirrored(op: BinaryOp) -> BinaryOp {
    match op {
        BinaryOp::Less => BinaryOp::Greater,
        BinaryOp::LessOrEqual => BinaryOp::GreaterOrEqual,
        BinaryOp::Greater => BinaryOp::Less,
        BinaryOp::GreaterOrEqual => BinaryOp::LessOrEqual,
        other => other,
    }
}

impl Binder<'_> {
    pub(crate) fn bind_comparison(
        &mut self,
        op: BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Expr> {
        if let Some(found) = self.bind_row_subquery(op, left, right)? {
            return Ok(found);
        }
        let mut sides = self.bind_compared(&[left, right])?.into_iter();
        let (Some(a), Some(b)) = (sides.next(), sides.next()) else { bail!(OPERAND_COLUMNS, 1) };
        self.comparison(op, a, b)
    }

    /// Binds operands that are compared with one another: hexadecimal literals are numbers when compared with numbers.
    pub(crate) fn bind_compared(&mut self, sides: &[&ast::Expr]) -> Result<Vec<Expr>> {
        let mut bound = Vec::with_capacity(sides.len());
        for side in sides {
            bound.push(self.bind_expr(side)?);
        }
        if sides.iter().any(|side| is_binary_literal(side))
            && bound.iter().any(|side| !matches!(side, Expr::Row(_)) && side.ty().is_numeric())
        {
            for (side, bound) in sides.iter().zip(&mut bound) {
                if is_binary_literal(side) {
                    *bound = self.bind_number(side)?;
                }
            }
        }
        Ok(bound)
    }

    /// `left op right` with both sides bound.
    pub(crate) fn comparison(&mut self, op: BinaryOp, left: Expr, right: Expr) -> Result<Expr> {
        if columns_of(&left) != columns_of(&right) {
            bail!(OPERAND_COLUMNS, columns_of(&left));
        }
        match (left, right) {
            (Expr::Row(left), Expr::Row(right)) => self.row_comparison(op, left, right),
            (left, right) => {
                let mut result = self.scalar_comparison(op, left, right)?;
                if let Expr::Binary { left, right, .. } = &mut result {
                    self.demand_date(left, right);
                    self.demand_date(right, left);
                    without_time(left, right);
                    without_time(right, left);
                }
                Ok(result)
            }
        }
    }

    pub(crate) fn scalar_comparison(
        &mut self,
        op: BinaryOp,
        left: Expr,
        right: Expr,
    ) -> Result<Expr> {
        let equality = matches!(op, BinaryOp::Equal | BinaryOp::NullSafeEqual | BinaryOp::NotEqual);
        if !equality {
            refuse_geometries([&left, &right], plan::print::operator(op))?;
        }
        let (left, right) = self.comparable(left, right, equality);
        fixed::check_compared(&[&left, &right], plan::print::operator(op))?;
        let collation = self.comparison_collation(&[&left, &right], plan::print::operator(op))?;
        let [left, right] = self.operands_in([left, right], collation)?;
        let nullable = op != BinaryOp::NullSafeEqual && (left.ty().nullable || right.ty().nullable);
        let ty = DataType::boolean().with_nullable(nullable);
        Ok(binary(op, left, right, collation, ty))
    }

    /// A constant text that is compared with a date must be one; a client's parameter need not be.
    fn demand_date(&self, constant: &mut Expr, other: &Expr) {
        let other = match other {
            Expr::Cast { operand, kind: CastKind::TimestampToLocal, .. } => operand.ty().kind,
            other => other.ty().kind,
        };
        let Expr::Cast { operand, kind, ty } = constant else { return };
        if matches!(kind, CastKind::Implicit | CastKind::BesideDate)
            && ty.kind == TypeKind::DateTime
            && operand.ty().is_string()
            && is_fixed(operand)
            && !self.has_placeholders
            && matches!(other, TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp)
        {
            *kind = CastKind::Compared(other);
        }
    }

    /// The collation for a comparison; `binary` when it is not one of texts.
    pub(crate) fn comparison_collation(
        &self,
        exprs: &[&Expr],
        operation: &str,
    ) -> Result<CollationId> {
        let texts = exprs.iter().filter(|expr| is_stringy(&expr.ty())).count();
        if texts < 2 {
            return Ok(CollationId::BINARY);
        }
        collation::aggregate(
            exprs.iter().copied(),
            &self.coercibilities,
            operation,
            Differing::Refuse,
        )
    }

    /// Rows compare element by element.
    fn row_comparison(&mut self, op: BinaryOp, left: Vec<Expr>, right: Vec<Expr>) -> Result<Expr> {
        let mut pairs = left.into_iter().zip(right).collect::<Vec<_>>();
        match op {
            BinaryOp::Equal | BinaryOp::NullSafeEqual => {
                let mut parts = Vec::with_capacity(pairs.len());
                for (a, b) in pairs {
                    parts.push(self.comparison(op, a, b)?);
                }
                Ok(Expr::balanced(BinaryOp::And, parts).expect("rows have elements"))
            }
            BinaryOp::NotEqual => {
                let (left, right) = pairs.into_iter().unzip();
                self.row_comparison(BinaryOp::Equal, left, right).map(not)
            }
            _ if pairs.len() > ROW_ORDER_MAX => {
                Err(errors::Error::not_supported("ordering of rows this wide"))
            }
            _ => {
                // (a, b) < (c, d) is a < c or (a = c and b < d); the last pair keeps `<=`.
                let (a, b) = pairs.pop().expect("rows have at least two elements");
                let mut result = self.comparison(op, a, b)?;
                let strict = match op {
                    BinaryOp::LessOrEqual => BinaryOp::Less,
                    BinaryOp::GreaterOrEqual => BinaryOp::Greater,
                    other => other,
                };
                while let Some((a, b)) = pairs.pop() {
                    let mut less = self.comparison(strict, a.clone(), b.clone())?;
                    let mut equal = self.comparison(BinaryOp::Equal, a.clone(), b.clone())?;
                    let is_row = matches!(a, Expr::Row(_));
                    if is_row || !is_worth_holding(&a) && !is_worth_holding(&b) {
                        self.count_copies([&a, &b], 1)?;
                        result = logical(BinaryOp::Or, less, and(equal, result));
                        continue;
                    }
                    let (left, right) = ([a], [b]);
                    hold(&mut less, &left, &right);
                    hold(&mut equal, &left, &right);
                    result = logical(BinaryOp::Or, less, and(equal, result));
                    result = held(left.into_iter().chain(right).collect(), result);
                }
                Ok(result)
            }
        }
    }

    /// Converts constants (and ENUM and SET) so that both sides compare by the type of the other.
    pub(crate) fn comparable(
        &mut self,
        mut left: Expr,
        mut right: Expr,
        equality: bool,
    ) -> (Expr, Expr) {
        self.infer(&mut left, &right.ty());
        self.infer(&mut right, &left.ty());
        (left, right) = fixed::compared(left, right);
        if left.ty().is_numeric() != right.ty().is_numeric() {
            left = self.datetime_number(left);
            right = self.datetime_number(right);
        }
        if is_computed_time(&left, &right) {
            left = to_text(left, self.input.bind.collation_connection, CastKind::Implicit);
        } else if is_computed_time(&right, &left) {
            right = to_text(right, self.input.bind.collation_connection, CastKind::Implicit);
        }
        let (a, b) = (left.ty(), right.ty());
        let (fixed_left, fixed_right) = (is_fixed(&left), is_fixed(&right));
        if has_date(&a) && is_stringy(&b) && (fixed_left || !fixed_right) {
            right = beside_date(right);
        } else if has_date(&b) && is_stringy(&a) && (fixed_right || !fixed_left) {
            left = beside_date(left);
        } else if fixed_right && !fixed_left {
            right = self.constant_for(&left, &a, right, equality);
        } else if fixed_left && !fixed_right {
            left = self.constant_for(&right, &b, left, equality);
        } else if a.kind == TypeKind::Time && b.is_string() {
            // A TIME that is not a column compares with text as text.
            left = to_text(left, b.collation, CastKind::Implicit);
        } else if b.kind == TypeKind::Time && a.is_string() {
            right = to_text(right, a.collation, CastKind::Implicit);
        }
        let (a, b) = (left.ty(), right.ty());
        (plain_member(left, &a, &b), plain_member(right, &b, &a))
    }

    /// A WHEN that CASE compares with `operand`: a date or a document beside a text counts by its text.
    pub(crate) fn when_beside(&self, operand: &Expr, when: Expr) -> Expr {
        if !operand.ty().is_string() {
            return when;
        }
        match when.ty() {
            ty if ty.kind == TypeKind::Json => json_text(when),
            ty if has_date(&ty) => {
                to_text(when, self.input.bind.collation_connection, CastKind::Implicit)
            }
            _ => when,
        }
    }

    /// A constant as it compares with `column`.
    fn constant_for(&self, column: &Expr, ty: &DataType, constant: Expr, equality: bool) -> Expr {
        let from = constant.ty();
        let is_date = matches!(ty.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp);
        let is_variable = matches!(constant, Expr::UserVariable { .. });
        // A variable is only read as a date.
        if from.kind == TypeKind::Null || is_variable && !(is_date && from.is_string()) {
            return constant;
        }
        match ty.kind {
            TypeKind::Time
                if from.is_string() && crate::grouping::plain_register(column).is_none() =>
            {
                constant
            }
            TypeKind::Date | TypeKind::Time | TypeKind::DateTime | TypeKind::Timestamp
                if from.is_string() =>
            {
                self.temporal_constant(ty, constant)
            }
            TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp if from.is_integer() => {
                let beside = DataType::new(TypeKind::DateTime, width(19, 6), 6).with_nullable(true);
                let kind = CastKind::NumberBeside(ty.kind);
                Expr::Cast { operand: Box::new(constant), kind, ty: beside }
            }
            TypeKind::Year => year_constant(constant),
            TypeKind::Decimal if is_exact_beside(&from, ty) => exact_constant(constant, ty.kind),
            TypeKind::Enum if equality && crate::grouping::plain_register(column).is_some() => {
                member_constant(ty, constant)
            }
            _ if ty.is_integer() => match integer_constant(constant) {
                constant
                    if is_exact_beside(&constant.ty(), ty)
                        && crate::grouping::plain_register(column).is_some() =>
                {
                    exact_constant(constant, ty.kind)
                }
                constant => constant,
            },
            TypeKind::Float | TypeKind::Double if from.is_text() => {
                cast(constant, DataType::double())
            }
            _ => constant,
        }
    }

    /// Text that is compared with a temporal value.
    fn temporal_constant(&self, ty: &DataType, constant: Expr) -> Expr {
        let mode = self.temporal_mode();
        if let Expr::Literal { value: Value::Bytes(text), .. } = &constant {
            if ty.kind == TypeKind::Time {
                let parsed = parse_time(text, 6, mode);
                if let (Some(time), false) = (parsed.value, parsed.truncated) {
                    let fsp = parsed.fsp.min(6);
                    let ty = DataType::new(TypeKind::Time, width(10, fsp), fsp);
                    return Expr::literal(Value::Time(time), ty.with_nullable(false));
                }
            } else {
                let parsed = parse_datetime(text, 6, mode);
                if parsed.offset.is_none()
                    && let (Some(at), false) = (parsed.value, parsed.truncated)
                {
                    if ty.kind == TypeKind::Date
                        && (parsed.date_only || at.date().at_midnight() == at)
                        && let Some(date) = parse_date(text, mode).value
                    {
                        let ty = DataType::new(TypeKind::Date, 10, 0).with_nullable(false);
                        return Expr::literal(Value::Date(date), ty);
                    }
                    let fsp = parsed.fsp.min(6);
                    let ty = DataType::new(TypeKind::DateTime, width(19, fsp), fsp);
                    return Expr::literal(Value::DateTime(at), ty.with_nullable(false));
                }
            }
        }
        temporal_cast(constant, ty)
    }

    /// A text, constant or of rows, that is compared with several values of which one is a date.
    fn among_dates(&self, value: Expr) -> Expr {
        let datetime = DataType::new(TypeKind::DateTime, width(19, 6), 6);
        match is_stringy(&value.ty()) {
            true if is_fixed(&value) => never_null(self.temporal_constant(&datetime, value)),
            true => beside_date(value),
            false => value,
        }
    }

    /// Counts copies of expressions: calls within calls that are written out with copies would grow a short statement without bound.
    ///
    /// # Errors
    /// 3170.
    pub(crate) fn count_copies<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e Expr>,
        copies: usize,
    ) -> Result<()> {
        /// Nodes of all copies of a statement; some 100 bytes each.
        const COPIED_NODES_MAX: usize = 100_000;
        let left = COPIED_NODES_MAX - self.copied_nodes;
        for expr in exprs {
            let mut nodes = 0_usize;
            let is_large = expr.any(&mut |_| {
                nodes += 1;
                nodes > SMALL_NODES && nodes.saturating_mul(copies) > left
            });
            if is_large {
                let reason = "Calls are nested too deeply in one another.";
                bail!(
                    CAPACITY_EXCEEDED,
                    COPIED_NODES_MAX * size_of::<Expr>(),
                    "expressions",
                    reason
                );
            }
            if nodes > SMALL_NODES {
                self.copied_nodes = (self.copied_nodes + nodes * copies).min(COPIED_NODES_MAX);
            }
        }
        Ok(())
    }

    // --- BETWEEN, IN

    pub(crate) fn bind_between(&mut self, between: &ast::Between) -> Result<Expr> {
        let bound = self.bind_compared(&[&between.expr, &between.low, &between.high])?;
        let Ok([operand, low, high]) = <[Expr; 3]>::try_from(bound) else {
            bail!(OPERAND_COLUMNS, 1)
        };
        for expr in [&operand, &low, &high] {
            single(expr)?;
        }
        refuse_geometries([&operand, &low, &high], "between")?;
        let [operand, low, high] = as_numbers_if_mixed([operand, low, high]);
        let [operand, low, high] = match is_text_among_dates(&operand, &[&low, &high]) {
            true => [operand, low, high].map(|expr| self.among_dates(expr)),
            false => [operand, low, high],
        };
        let (first, low) = self.comparable(operand.clone(), low, false);
        let (second, high) = self.comparable(operand.clone(), high, false);
        fixed::check_compared(&[&first, &low, &high], "between")?;
        let (low, high) = (never_null(low), never_null(high));
        if first != second {
            // The ends compare by different types.
            let above = self.scalar_comparison(BinaryOp::GreaterOrEqual, first, low)?;
            let below = self.scalar_comparison(BinaryOp::LessOrEqual, second, high)?;
            let both = and(above, below);
            return Ok(hold_operands(
                vec![operand],
                if between.negated { not(both) } else { both },
            ));
        }
        let collation = self.comparison_collation(&[&first, &low, &high], "between")?;
        let [first, low, high] = self.operands_in([first, low, high], collation)?;
        Ok(Expr::Between {
            operand: Box::new(first),
            low: Box::new(low),
            high: Box::new(high),
            negated: between.negated,
            collation,
        })
    }

    pub(crate) fn bind_in_list(
        &mut self,
        expr: &ast::Expr,
        list: &[ast::Expr],
        negated: bool,
    ) -> Result<Expr> {
        // A list of one is a comparison.
        if let [only] = list {
            let op = if negated { BinaryOp::NotEqual } else { BinaryOp::Equal };
            let mut sides = self.bind_compared(&[expr, only])?;
            if !sides.iter().any(|side| matches!(side, Expr::Row(_)))
                && sides.iter().any(|side| has_date(&side.ty()))
                && let (Some(only), Some(operand)) = (sides.pop(), sides.pop())
            {
                return self.comparison(op, operand, only);
            }
        }
        let mut sides = Vec::with_capacity(list.len() + 1);
        sides.push(expr);
        sides.extend(list);
        let mut items = self.bind_compared(&sides)?;
        let operand = items.remove(0);
        if items.iter().any(|item| columns_of(item) != columns_of(&operand)) {
            bail!(OPERAND_COLUMNS, columns_of(&operand));
        }
        if matches!(operand, Expr::Row(_)) {
            return self.row_in_list(operand, items, negated);
        }
        // Beside columns each pair compares by itself.
        let is_text = items.iter().all(is_fixed)
            && is_text_among_dates(&operand, &items.iter().collect::<Vec<_>>());
        let (operand, items) = match is_text {
            true => {
                let items = items.into_iter().map(|item| self.among_dates(item)).collect();
                (self.among_dates(operand), items)
            }
            false => (operand, items),
        };
        let mut changed = operand.clone();
        let mut same = true;
        let mut converted = Vec::with_capacity(items.len());
        for item in &items {
            // Two digits are a year only when compared with nothing else.
            let plain =
                items.len() > 1 && operand.ty().kind == TypeKind::Year && item.ty().is_integer();
            let (left, right) = match plain {
                true => (operand.clone(), item.clone()),
                false => self.comparable(operand.clone(), item.clone(), true),
            };
            same &= converted.is_empty() || left == changed;
            changed = left;
            converted.push(never_null(right));
        }
        if !same {
            return self.in_as_equalities(operand, items, negated);
        }
        let mut all = vec![&changed];
        all.extend(&converted);
        fixed::check_compared(&all, "in")?;
        let operation = if list.len() == 1 { "=" } else { " IN " };
        let collation = self.comparison_collation(&all, operation)?;
        let [changed] = self.operands_in([changed], collation)?;
        for item in &mut converted {
            let null = Expr::literal(Value::Null, DataType::null());
            let [text] = self.operands_in([std::mem::replace(item, null)], collation)?;
            *item = text;
        }
        Ok(Expr::InList { operand: Box::new(changed), list: converted, negated, collation })
    }

    /// Elements that compare by different types.
    fn in_as_equalities(&mut self, operand: Expr, items: Vec<Expr>, negated: bool) -> Result<Expr> {
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            let equal = self.scalar_comparison(BinaryOp::Equal, operand.clone(), item)?;
            parts.push(equal);
        }
        let result = Expr::balanced(BinaryOp::Or, parts).expect("IN lists are not empty");
        Ok(hold_operands(vec![operand], if negated { not(result) } else { result }))
    }

    fn row_in_list(&mut self, operand: Expr, items: Vec<Expr>, negated: bool) -> Result<Expr> {
        self.in_rows(operand, items).map(|found| if negated { not(found) } else { found })
    }

    fn in_rows(&mut self, operand: Expr, items: Vec<Expr>) -> Result<Expr> {
        let Expr::Row(columns) = operand else { bail!(OPERAND_COLUMNS, 1) };
        let mut left = columns.clone();
        let mut rows = Vec::with_capacity(items.len());
        let mut regular = true;
        for (position, item) in items.iter().enumerate() {
            let Expr::Row(cells) = item else { bail!(OPERAND_COLUMNS, columns.len()) };
            let mut row = Vec::with_capacity(cells.len());
            for (index, cell) in cells.iter().enumerate() {
                regular &= !matches!(cell, Expr::Row(_));
                let (a, b) = self.comparable(columns[index].clone(), cell.clone(), true);
                regular &= position == 0 || left[index] == a;
                left[index] = a;
                row.push(b);
            }
            rows.push(Expr::Row(row));
        }
        if regular {
            let mut collation = CollationId::BINARY;
            for (index, column) in left.iter().enumerate() {
                let mut all = vec![column];
                all.extend(rows.iter().filter_map(|row| match row {
                    Expr::Row(cells) => cells.get(index),
                    _ => None,
                }));
                let used = self.comparison_collation(&all, " IN ")?;
                if used != CollationId::BINARY {
                    regular &= collation == CollationId::BINARY || collation == used;
                    collation = used;
                }
            }
            if regular {
                let operand = Box::new(Expr::Row(left));
                return Ok(Expr::InList { operand, list: rows, negated: false, collation });
            }
        }
        self.count_copies(columns.iter().filter(|column| is_row(column)), items.len())?;
        let mut parts = Vec::with_capacity(items.len());
        for item in items {
            parts.push(self.comparison(BinaryOp::Equal, Expr::Row(columns.clone()), item)?);
        }
        let result = Expr::balanced(BinaryOp::Or, parts).expect("IN lists are not empty");
        Ok(hold_operands(columns, result))
    }
}

/// What a statement copies is small in comparison with its text up to this size of each copy.
const SMALL_NODES: usize = 8;

/// Whether copies of an expression would take much more memory than the statement's text.
fn is_large(expr: &Expr) -> bool {
    let mut nodes = 0_usize;
    expr.any(&mut |_| {
        nodes += 1;
        nodes > SMALL_NODES
    })
}

fn is_row(expr: &Expr) -> bool {
    matches!(expr, Expr::Row(_))
}

/// Whether an operand that is used more than once is to be held: copies would take much memory or time, or give several values.
pub(crate) fn is_worth_holding(expr: &Expr) -> bool {
    let is_subquery = |node: &Expr| matches!(node, Expr::Subquery { .. });
    !is_row(expr)
        && (is_large(expr) || expr.is_volatile() || expr.any(&mut |node| is_subquery(node)))
}

/// `rest` with what it compares, where that is worth it, held.
pub(crate) fn hold_operands(mut operands: Vec<Expr>, mut rest: Expr) -> Expr {
    operands.retain(is_worth_holding);
    let is_twice = |at: usize| operands[..at].contains(&operands[at]);
    if operands.is_empty() || (1..operands.len()).any(is_twice) {
        return rest;
    }
    hold(&mut rest, &operands, &[]);
    held(operands, rest)
}

/// `rest` around which values are held.
pub(crate) fn held(values: Vec<Expr>, rest: Expr) -> Expr {
    Expr::Held { values, rest: Box::new(rest) }
}

/// Puts held values in place of the operands of comparisons: `lefts` on their left sides, `rights`, which follow them, on their right.
pub(crate) fn hold(node: &mut Expr, lefts: &[Expr], rights: &[Expr]) {
    if let Expr::Binary { op: BinaryOp::And | BinaryOp::Or, left, right, .. } = node {
        hold(left, lefts, rights);
        hold(right, lefts, rights);
    } else if let Expr::Binary { left, right, .. } = node {
        hold_side(left, lefts, 0);
        hold_side(right, rights, lefts.len());
    } else if let Expr::Unary { op: UnaryOp::Not, operand, .. } = node {
        hold(operand, lefts, rights);
    } else if let Expr::Case { branches, .. } = node {
        branches.iter_mut().for_each(|(when, _)| hold(when, lefts, rights));
    }
}

/// An operand may have been converted.
fn hold_side(side: &mut Expr, values: &[Expr], first: usize) {
    if let Some(at) = values.iter().position(|value| value == side) {
        *side = Expr::HeldValue { index: first + at, ty: side.ty() };
    } else if let Expr::Cast { operand, .. } | Expr::Collate { operand, .. } = side {
        hold_side(operand, values, first);
    }
}

/// DATE, DATETIME and TIMESTAMP.
fn has_date(ty: &DataType) -> bool {
    matches!(ty.kind, TypeKind::Date | TypeKind::DateTime | TypeKind::Timestamp)
}

/// Whether a text of rows is compared with several dates, or with dates and texts: all are dates then.
fn is_text_among_dates(operand: &Expr, others: &[&Expr]) -> bool {
    operand.ty().is_string()
        && !is_fixed(operand)
        && others.iter().any(|other| has_date(&other.ty()))
        && others.iter().all(|other| has_date(&other.ty()) || other.ty().is_string())
}

/// A text of rows beside a DATE that is no constant is read as a DATE: its time does not count.
fn without_time(text: &mut Expr, date: &Expr) {
    let is_one = matches!(date, Expr::Subquery { .. }) || is_fixed(date);
    if let Expr::Cast { operand, kind: CastKind::BesideDate, ty } = text
        && operand.ty().is_string()
        && date.ty().kind == TypeKind::Date
        && !is_one
    {
        *ty = DataType::new(TypeKind::Date, 10, 0).with_nullable(true);
    }
}

/// A hexadecimal or bit literal without introducer.
pub(crate) fn is_binary_literal(expr: &ast::Expr) -> bool {
    matches!(
        &expr.kind,
        ast::ExprKind::Literal(ast::Literal::Hex(binary) | ast::Literal::Bit(binary))
            if binary.introducer.is_none()
    )
}

/// A TIME compares with text as text, unless a TIME column is compared with a constant.
fn is_computed_time(time: &Expr, text: &Expr) -> bool {
    let is_column = crate::grouping::plain_register(time).is_some();
    time.ty().kind == TypeKind::Time && text.ty().is_string() && !(is_column && is_fixed(text))
}

/// One value for the whole statement: a constant, a parameter, a variable.
fn is_fixed(expr: &Expr) -> bool {
    match expr {
        Expr::Literal { .. } | Expr::Parameter { .. } => true,
        Expr::UserVariable { .. } => true,
        Expr::Cast { operand, .. } => is_fixed(operand),
        expr => expr.is_constant() && !expr.is_volatile(),
    }
}

/// Whether a constant compares with an integer or a DECIMAL as an exact number. As doubles, integers of more than 15 digits would equal
/// their neighbours, and no index would serve.
fn is_exact_beside(from: &DataType, ty: &DataType) -> bool {
    match from.kind {
        // As doubles, only DECIMALs of few digits equal no more numbers than these.
        TypeKind::Double => ty.is_integer() || ty.length <= DIGITS_OF_DOUBLE,
        _ => from.is_text(),
    }
}

fn exact_constant(constant: Expr, kind: TypeKind) -> Expr {
    let ty = DataType::decimal(65, 30).with_nullable(true);
    Expr::Cast { operand: Box::new(constant), kind: CastKind::Exact(kind), ty }
}

fn cast(operand: Expr, ty: DataType) -> Expr {
    let ty = ty.with_nullable(true);
    Expr::Cast { operand: Box::new(operand), kind: CastKind::Implicit, ty }
}

/// Text compared with a temporal value, converted at run time.
fn temporal_cast(text: Expr, ty: &DataType) -> Expr {
    let target = match ty.kind {
        TypeKind::Time => DataType::new(TypeKind::Time, width(10, 6), 6),
        _ => DataType::new(TypeKind::DateTime, width(19, 6), 6),
    };
    cast(text, target)
}

/// Texts and numbers in one BETWEEN all compare as doubles, except for a column of numbers between constants.
fn as_numbers_if_mixed(exprs: [Expr; 3]) -> [Expr; 3] {
    let [operand, low, high] = &exprs;
    let types = exprs.each_ref().map(Expr::ty);
    let is_range = types[0].is_numeric()
        && crate::grouping::plain_register(operand).is_some()
        && is_fixed(low)
        && is_fixed(high);
    let is_mixed = types.iter().all(|ty| is_stringy(ty) || ty.is_numeric())
        && types.iter().any(is_stringy)
        && types.iter().any(DataType::is_numeric);
    if is_range || !is_mixed {
        return exprs;
    }
    exprs.map(|expr| if is_stringy(&expr.ty()) { cast(expr, DataType::double()) } else { expr })
}

/// Text of rows, or a number, that is compared with a date; what is no date is zero.
fn beside_date(value: Expr) -> Expr {
    let ty = value.ty();
    let value = match ty.is_enum_or_set() {
        // A member counts by its name.
        true => to_text(value, ty.collation, CastKind::Implicit),
        false => value,
    };
    let ty = DataType::new(TypeKind::DateTime, width(19, 6), 6).with_nullable(true);
    Expr::Cast { operand: Box::new(value), kind: CastKind::BesideDate, ty }
}

/// A constant text among several that are compared with a date or a time: an invalid one is zero, not NULL.
fn never_null(value: Expr) -> Expr {
    match value {
        Expr::Cast { operand, kind: CastKind::Implicit, ty }
            if matches!(ty.kind, TypeKind::DateTime | TypeKind::Time)
                && operand.ty().is_string()
                && is_fixed(&operand) =>
        {
            Expr::Cast { operand, kind: CastKind::BesideDate, ty }
        }
        other => other,
    }
}

/// A constant that is compared with a YEAR.
fn year_constant(constant: Expr) -> Expr {
    let ty = constant.ty();
    let ty = if ty.is_integer() { ty } else { DataType::double() };
    Expr::Cast { operand: Box::new(constant), kind: CastKind::BesideYear, ty }
}

/// Text that is exactly an integer becomes one.
fn integer_constant(constant: Expr) -> Expr {
    let Expr::Literal { value: Value::Bytes(text), ty } = &constant else { return constant };
    if !ty.is_text() {
        return constant;
    }
    let number = std::str::from_utf8(text).ok().map(str::trim).filter(|text| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        !digits.is_empty() && digits.len() < 19 && digits.bytes().all(|b| b.is_ascii_digit())
    });
    match number.and_then(|text| text.parse::<i64>().ok()) {
        Some(number) => {
            let mut ty = DataType::bigint().with_nullable(false);
            ty.length = number.unsigned_abs().checked_ilog10().unwrap_or(0) + 2;
            Expr::literal(Value::Int(number), ty)
        }
        None => constant,
    }
}

/// The name of an ENUM member becomes its number.
fn member_constant(ty: &DataType, constant: Expr) -> Expr {
    let (Expr::Literal { value: Value::Bytes(text), .. }, Some(members)) = (&constant, &ty.members)
    else {
        return constant;
    };
    let collation = charset::collation_or_binary(ty.collation);
    let found = members.names().position(|name| collation.equal(name, text));
    match found {
        Some(index) => {
            let ty = ty.clone().with_nullable(false);
            Expr::literal(Value::UInt(index as u64 + 1), ty)
        }
        None => constant,
    }
}

/// ENUM and SET compare as text with text, as numbers with numbers, and unchanged with their own type.
fn plain_member(expr: Expr, ty: &DataType, other: &DataType) -> Expr {
    if !matches!(ty.kind, TypeKind::Enum | TypeKind::Set) {
        return expr;
    }
    if ty.kind == other.kind && ty.members == other.members {
        return expr;
    }
    if other.is_numeric() {
        return cast(expr, DataType::bigint_unsigned());
    }
    to_text(expr, ty.collation, CastKind::Implicit)
}

/// Geometries can only be compared for equality.
///
/// # Errors
/// 1210.
pub(crate) fn refuse_geometries<const N: usize>(exprs: [&Expr; N], operation: &str) -> Result<()> {
    match exprs.iter().any(|expr| expr.ty().kind == TypeKind::Geometry) {
        true => Err(err!(WRONG_ARGUMENTS, operation)),
        false => Ok(()),
    }
}
