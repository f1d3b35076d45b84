//! Indexed generated columns, those of functional indexes included, take the place of their expressions in conditions and in ORDER BY, so that
//! the index can answer them. Knows nothing of access paths.
//!
//! Invariant: an expression is replaced only below every outer join that could make NULL of the table, and only where the
//! table's registers are still those of its row.

use errors::Result;
use plan::{
    BinaryOp, Expr, InstanceId, Logical, LogicalJoinKind, LogicalStatement, SortKey, UnaryOp,
};
use types::{DataType, FunctionRole, SqlMode};

use crate::array_match::{ArrayMatch, use_array};
use crate::binder::Binder;
use crate::scope::column_read;

/// An expression and the indexed column that holds its value.
pub(crate) struct Candidate {
    instance: InstanceId,
    pub(crate) expression: Expr,
    pub(crate) column: Expr,
    /// The column is the array of a multi-valued index, with elements of this type, and the expression is its document.
    elements: Option<DataType>,
}

impl Binder<'_> {
    /// Makes the replacements in a bound statement.
    pub(crate) fn use_generated_columns(&mut self, statement: &mut LogicalStatement) -> Result<()> {
        let candidates = self.generated_candidates()?;
        if candidates.is_empty() {
            return Ok(());
        }
        let sql_mode = self.input.bind.sql_mode;
        let mut search = Search { candidates: &candidates, sql_mode, nearly: false };
        search.statement(statement);
        for subquery in &mut self.subqueries {
            search.operator(&mut subquery.root);
        }
        for cte in &mut self.ctes {
            search.operator(&mut cte.root);
        }
        self.wants_literals |= search.nearly && !self.has_placeholders;
        Ok(())
    }

    fn generated_candidates(&mut self) -> Result<Vec<Candidate>> {
        let mut candidates = Vec::new();
        for at in 0..self.instances.len() {
            let instance = &self.instances[at];
            let table = self.tables[instance.table].clone();
            let base = instance.base;
            for (index, column) in table.columns.iter().enumerate() {
                let Some(generated) = &column.generated else { continue };
                let indexed = table
                    .indexes
                    .iter()
                    .any(|own| own.parts.iter().any(|part| part.column == index));
                if column.stored.is_none() || !indexed {
                    continue;
                }
                let expression = self.bind_text_over(&generated.expression, &table, base)?;
                let register = plan::Register(base.0 + index as u32);
                let elements = column.elements().cloned();
                let fits = elements.is_some()
                    || expression.as_column().is_none()
                        && holds_value(&column.ty, &expression.ty());
                if fits {
                    let column = column_read(register, &column.ty);
                    let instance = InstanceId(at as u32);
                    candidates.push(Candidate { instance, expression, column, elements });
                }
            }
        }
        Ok(candidates)
    }
}

/// Whether a column of one type holds a value of another unchanged and compares as it does.
fn holds_value(column: &DataType, value: &DataType) -> bool {
    if column.is_integer() && value.is_integer() {
        return column.unsigned == value.unsigned;
    }
    let text = column.is_string() && value.is_string();
    if text {
        return column.collation == value.collation;
    }
    column.kind == value.kind
        && column.unsigned == value.unsigned
        && column.decimals >= value.decimals
        && column.members == value.members
}

struct Search<'c> {
    candidates: &'c [Candidate],
    sql_mode: SqlMode,
    /// A match would exist if a lifted literal were the one that the column's expression has.
    nearly: bool,
}

impl Search<'_> {
    fn statement(&mut self, statement: &mut LogicalStatement) {
        match statement {
            LogicalStatement::Query(query) => _ = self.operator(&mut query.root),
            LogicalStatement::Update(write) | LogicalStatement::Delete(write) => {
                self.operator(&mut write.root);
            }
            LogicalStatement::Insert(insert) => {
                if let plan::LogicalInsertSource::Query(query) = &mut insert.source {
                    self.operator(&mut query.root);
                }
            }
            LogicalStatement::Explain { statement, .. } => self.statement(statement),
            LogicalStatement::Do(_) => {}
        }
    }

    /// Makes the replacements in an operator and below; returns the table references whose rows its output shows.
    fn operator(&mut self, operator: &mut Logical) -> Vec<InstanceId> {
        match operator {
            Logical::Get(id) => vec![*id],
            Logical::Filter { input, predicate } => {
                let seen = self.operator(input);
                self.condition(predicate, &seen);
                seen
            }
            Logical::Join { kind, left, right, on } => {
                let mut seen = self.operator(left);
                let mut all = self.operator(right);
                all.extend_from_slice(&seen);
                if let Some(on) = on {
                    self.condition(on, &all);
                }
                match kind {
                    LogicalJoinKind::Inner | LogicalJoinKind::Straight => seen = all,
                    LogicalJoinKind::Left => {}
                    LogicalJoinKind::Full => seen.clear(),
                }
                seen
            }
            Logical::Sort { input, keys } => {
                let seen = self.operator(input);
                for SortKey { expr, .. } in keys {
                    self.operand(expr, &seen);
                }
                seen
            }
            Logical::Project { input, .. }
            | Logical::Window { input, .. }
            | Logical::Limit { input, .. } => self.operator(input),
            Logical::OneRow
            | Logical::Nothing
            | Logical::InformationGet { .. }
            | Logical::Values { .. }
            | Logical::JsonRows(_)
            | Logical::CteScan { .. }
            | Logical::Aggregate { .. }
            | Logical::Distinct { .. }
            | Logical::SetOperation { .. }
            | Logical::Derived { .. }
            | Logical::RecursiveCte { .. } => {
                operator.for_each_input_mut(&mut |input| _ = self.operator(input));
                Vec::new()
            }
        }
    }

    fn condition(&mut self, predicate: &mut Expr, seen: &[InstanceId]) {
        match predicate {
            Expr::Binary { op, left, right, .. } => match op {
                BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => {
                    self.condition(left, seen);
                    self.condition(right, seen);
                }
                BinaryOp::Equal
                | BinaryOp::NullSafeEqual
                | BinaryOp::Less
                | BinaryOp::LessOrEqual
                | BinaryOp::Greater
                | BinaryOp::GreaterOrEqual => {
                    self.operand(left, seen);
                    self.operand(right, seen);
                }
                _ => {}
            },
            Expr::Between { operand, .. } | Expr::InList { operand, .. } => {
                self.operand(operand, seen);
            }
            // No index answers what an array does not have.
            Expr::Unary { op: UnaryOp::Not, operand, .. }
                if !matches!(**operand, Expr::Function { .. }) =>
            {
                self.condition(operand, seen);
            }
            Expr::Function { .. } => self.array_call(predicate, seen),
            Expr::Unary { op: UnaryOp::IsNull, operand, .. } => self.operand(operand, seen),
            _ => {}
        }
    }

    fn array_call(&mut self, call: &mut Expr, seen: &[InstanceId]) {
        for candidate in self.candidates.iter().filter(|own| seen.contains(&own.instance)) {
            let Some(elements) = &candidate.elements else { continue };
            match use_array(call, candidate, elements, self.sql_mode) {
                ArrayMatch::None => {}
                ArrayMatch::Nearly => self.nearly = true,
                ArrayMatch::Done => return,
            }
        }
    }

    fn operand(&mut self, operand: &mut Expr, seen: &[InstanceId]) {
        for candidate in self.candidates {
            if !seen.contains(&candidate.instance) || candidate.elements.is_some() {
                continue;
            }
            if is_same(operand, &candidate.expression) {
                *operand = candidate.column.clone();
                return;
            }
            self.nearly |= is_near(operand, &candidate.expression);
        }
    }
}

/// Whether both have the same value: a path into a document may have any collation.
pub(crate) fn is_same(a: &Expr, b: &Expr) -> bool {
    if a == b {
        return true;
    }
    if let (
        Expr::Cast { operand, kind, ty },
        Expr::Cast { operand: other, kind: other_kind, ty: other_ty },
    ) = (a, b)
    {
        return kind == other_kind && ty == other_ty && is_same(operand, other);
    }
    let (
        Expr::Function { function, args, .. },
        Expr::Function { function: other, args: others, .. },
    ) = (a, b)
    else {
        return false;
    };
    let is_path = |at: usize| at > 0 && function.is(FunctionRole::JsonExtract);
    let passes = is_path(1) || function.is(FunctionRole::JsonUnquote);
    let mut pairs = args.iter().zip(others).enumerate();
    passes
        && function == other
        && args.len() == others.len()
        && pairs.all(|(at, (a, b))| is_path(at) && is_same_text(a, b) || is_same(a, b))
}

fn is_same_text(a: &Expr, b: &Expr) -> bool {
    let (Expr::Literal { value: a, ty: one }, Expr::Literal { value: b, ty: other }) = (a, b)
    else {
        return false;
    };
    a == b && one.is_text() && other.is_text()
}

/// Whether both are the same except for the values of constants.
pub(crate) fn is_near(a: &Expr, b: &Expr) -> bool {
    let constant = |expr: &Expr| matches!(expr, Expr::Literal { .. } | Expr::Parameter { .. });
    if constant(a) || constant(b) {
        return constant(a) && constant(b);
    }
    let same = match (a, b) {
        (Expr::Column { register: a, .. }, Expr::Column { register: b, .. }) => a == b,
        (Expr::Binary { op: a, .. }, Expr::Binary { op: b, .. }) => a == b,
        (Expr::Unary { op: a, .. }, Expr::Unary { op: b, .. }) => a == b,
        (Expr::Function { function: a, .. }, Expr::Function { function: b, .. }) => a == b,
        (Expr::Cast { kind: a, .. }, Expr::Cast { kind: b, .. }) => a == b,
        _ => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    if !same {
        return false;
    }
    let (mut left, mut right) = (Vec::new(), Vec::new());
    a.for_each_child(&mut |child| left.push(child));
    b.for_each_child(&mut |child| right.push(child));
    left.len() == right.len() && left.iter().zip(&right).all(|(a, b)| is_near(a, b))
}
