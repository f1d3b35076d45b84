//! From `plan::Expr` to `Code`: functions are bound, comparisons get their rule, constants are hoisted.

use std::sync::Arc;

use engine_api::EngineIndex;
use errors::{Error, ErrorCode, Result};
use plan::{BinaryOp, Expr, FulltextSearch, Subquery, SubqueryKind, UnaryOp};
use plugin_api::{BindContext, BoundFunction, Registry, Repeats};
use rows::arguments::{arg_infos, trimmed};
use rows::numbers::Numbers;
use rows::value_key::Domain;
use types::{CollationId, Comparator, ComparisonKind, DataType, RunsStatements};

use super::arithmetic::BitOperator;
use super::predicate::{InSetCode, Like};
use super::subquery::Question;
use super::text::{Names, text};
use super::{
    Arithmetic, BitOperation, Call, Code, Comparison, RowComparison, SubqueryCode, Truth,
    common_collation,
};
use crate::fulltext::{MatchCode, SearchCode};

/// IN lists of constants from this length on are hashed.
const HASHED_LIST_MIN: usize = 8;
/// Deepest expression; the parser's bound is lower.
const DEPTH_MAX: usize = 2048;

/// Compiles the expressions of one statement.
pub(crate) struct Compiler<'a> {
    pub(crate) registry: &'a Registry,
    pub(crate) bind: &'a BindContext,
    pub(crate) subqueries: &'a [Subquery],
    pub(crate) registers: usize,
    pub(crate) once_slots: usize,
    pub(crate) set_slots: usize,
    /// Searches of MATCH, without duplicates.
    pub(crate) searches: Vec<(Arc<FulltextSearch>, Expr, Arc<SearchCode>)>,
    /// Column names of registers, for messages.
    pub(crate) names: Names,
    inside_once: bool,
    depth: usize,
    /// Registers of the values that the innermost `Expr::Held` holds.
    held: Vec<usize>,
}

fn is_leaf(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal { .. } | Expr::Parameter { .. } | Expr::Column { .. })
}

impl<'a> Compiler<'a> {
    /// The place of the engine with this name.
    pub(crate) fn engine(&self, name: &str) -> Result<EngineIndex> {
        let found = self.registry.engine_index(name);
        found.ok_or_else(|| Error::with(ErrorCode::UNKNOWN_STORAGE_ENGINE, &[&name]))
    }

    pub(crate) fn new(
        registry: &'a Registry,
        bind: &'a BindContext,
        subqueries: &'a [Subquery],
        registers: u32,
    ) -> Compiler<'a> {
        Compiler {
            registry,
            bind,
            subqueries,
            registers: registers as usize,
            once_slots: 0,
            set_slots: 0,
            searches: Vec::new(),
            names: Names::new(),
            inside_once: false,
            depth: 0,
            held: Vec::new(),
        }
    }

    /// A register that the plan does not know.
    pub(crate) fn new_register(&mut self) -> usize {
        self.registers += 1;
        self.registers - 1
    }

    pub(crate) fn exprs<'e>(
        &mut self,
        exprs: impl IntoIterator<Item = &'e Expr>,
    ) -> Result<Vec<Code>> {
        exprs.into_iter().map(|expr| self.expr(expr)).collect()
    }

    pub(crate) fn truth(&mut self, expr: &Expr) -> Result<Truth> {
        Ok(Truth { code: self.expr(expr)?, ty: expr.ty() })
    }

    pub(crate) fn option(&mut self, expr: Option<&Expr>) -> Result<Option<Code>> {
        expr.map(|expr| self.expr(expr)).transpose()
    }

    /// Compiles an expression; one without columns is evaluated once per statement.
    pub(crate) fn expr(&mut self, expr: &Expr) -> Result<Code> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return Err(Error::with(ErrorCode::STACK_OVERRUN, &[&0, &0, &0]));
        }
        let hoist = !self.inside_once && !is_leaf(expr) && self.is_hoistable(expr);
        let code = if hoist {
            self.inside_once = true;
            let operand = self.inner(expr);
            self.inside_once = false;
            let slot = self.once_slots;
            self.once_slots += 1;
            Ok(Code::Once { slot, operand: Box::new(operand?) })
        } else {
            self.inner(expr)
        };
        self.depth -= 1;
        code
    }

    fn is_hoistable(&self, expr: &Expr) -> bool {
        let volatile = |node: &Expr| match node {
            Expr::Function { function, .. } => function.is_volatile(),
            Expr::Stored { deterministic, .. } => !deterministic,
            Expr::Row(_) => true,
            _ => false,
        };
        expr.is_constant() && !expr.any(&mut |node| volatile(node))
    }

    fn inner(&mut self, expr: &Expr) -> Result<Code> {
        Ok(match expr {
            Expr::Literal { value, .. } => Code::Constant(value.clone()),
            Expr::Parameter { index, .. } => Code::Parameter(*index as usize),
            Expr::Column { register, .. } => Code::Register(register.0 as usize),
            Expr::UserVariable { name, ty } => {
                Code::UserVariable { name: name.clone(), ty: ty.clone() }
            }
            Expr::AssignUserVariable { name, value } => Code::AssignUserVariable {
                name: name.clone(),
                ty: value.ty(),
                value: Box::new(self.expr(value)?),
            },
            Expr::SystemVariable { name, global, .. } => {
                Code::SystemVariable { name: name.clone(), global: *global }
            }
            Expr::Stored { program, args, .. } => {
                Code::Stored { program: *program, args: self.exprs(args)?.into() }
            }
            Expr::Unary { op, operand, ty } => self.unary(*op, operand, ty, expr)?,
            Expr::Binary { op, left, right, collation, ty } => {
                self.binary(*op, left, right, *collation, ty, expr)?
            }
            Expr::Between { operand, low, high, negated, collation } => {
                self.between(operand, low, high, *negated, *collation)?
            }
            Expr::InList { operand, list, negated, collation } => {
                self.in_list(operand, list, *negated, *collation)?
            }
            Expr::Like { operand, pattern, escape, negated, collation } => {
                Code::Like(Box::new(Like {
                    operand: self.expr(operand)?,
                    pattern: self.expr(pattern)?,
                    escape: self.option(escape.as_deref())?,
                    operand_ty: operand.ty(),
                    pattern_ty: pattern.ty(),
                    negated: *negated,
                    collation: *collation,
                }))
            }
            Expr::Case { operand, branches, otherwise, collation, ty } => {
                let otherwise = otherwise.as_deref();
                self.case(operand.as_deref(), branches, otherwise, *collation, ty)?
            }
            Expr::FirstNotNull { parts, ty } => {
                let parts = parts.iter().map(|part| self.unified(part, ty));
                Code::FirstNotNull(parts.collect::<Result<_>>()?)
            }
            Expr::Held { values, rest } => self.held(values, rest)?,
            Expr::HeldValue { index, .. } => match self.held.get(*index) {
                Some(register) => Code::Register(*register),
                None => return Err(Error::internal("a held value outside what holds it")),
            },
            Expr::Cast { operand, kind, ty } => Code::Cast {
                from: operand.ty(),
                to: ty.clone(),
                kind: *kind,
                operand: Box::new(self.expr(operand)?),
            },
            // The same bytes under another collation; a number becomes text.
            Expr::Collate { operand, ty } => self.unified(operand, ty)?,
            Expr::Function { function, args, .. } => {
                let call = self.call(function.name, args)?;
                match (call, function.traits.statements) {
                    (Code::StatementCall(call, _), statements) => {
                        Code::StatementCall(call, statements)
                    }
                    (call, _) => call,
                }
            }
            Expr::Match { search, row, against } => {
                let has_key = !search.key.is_empty();
                let mut row = self.exprs(row)?.into_iter();
                Code::Match(Box::new(MatchCode {
                    locator: if has_key { None } else { row.next() },
                    key: row.zip(search.key.iter().cloned()).collect(),
                    search: self.search(search, against)?,
                }))
            }
            Expr::Row(_) => return Err(Error::with(ErrorCode::OPERAND_COLUMNS, &[&1])),
            Expr::Subquery { id, kind, negated, .. } => {
                Code::Subquery(Box::new(self.subquery(id.0 as usize, kind, *negated)?))
            }
        })
    }

    /// The search of a MATCH.
    pub(crate) fn search(
        &mut self,
        search: &Arc<FulltextSearch>,
        against: &Expr,
    ) -> Result<Arc<SearchCode>> {
        let same = |(known, text, _): &&(Arc<FulltextSearch>, Expr, Arc<SearchCode>)| {
            known == search && text == against
        };
        if let Some((.., code)) = self.searches.iter().find(same) {
            return Ok(code.clone());
        }
        let text = self.expr(against)?;
        let slot = self.searches.len();
        let engine = self.engine(&search.engine)?;
        let code = Arc::new(SearchCode::new(search, engine, text, against.ty(), slot));
        self.searches.push((search.clone(), against.clone(), code.clone()));
        Ok(code)
    }

    fn unary(&mut self, op: UnaryOp, operand: &Expr, ty: &DataType, whole: &Expr) -> Result<Code> {
        let is_truth =
            |wanted, negated, truth| Code::IsTruth { operand: Box::new(truth), wanted, negated };
        Ok(match op {
            UnaryOp::Negate => Code::Arithmetic(Box::new(Arithmetic {
                op: BinaryOp::Subtract,
                left: self.expr(operand)?,
                right: None,
                left_ty: operand.ty(),
                right_ty: operand.ty(),
                numbers: Numbers::of(ty),
                ty: ty.clone(),
                text: text(whole, &self.names).into(),
            })),
            UnaryOp::BitNot => Code::Bits(Box::new(BitOperation {
                op: BitOperator::unary(op).unwrap_or(BitOperator::Not),
                left: self.expr(operand)?,
                right: None,
                left_ty: operand.ty(),
                right_ty: operand.ty(),
                ty: ty.clone(),
            })),
            UnaryOp::Not => Code::Not(Box::new(self.truth(operand)?)),
            UnaryOp::IsNull | UnaryOp::IsNotNull => Code::IsNull {
                operand: Box::new(self.expr(operand)?),
                negated: op == UnaryOp::IsNotNull,
            },
            UnaryOp::IsTrue => is_truth(true, false, self.truth(operand)?),
            UnaryOp::IsNotTrue => is_truth(true, true, self.truth(operand)?),
            UnaryOp::IsFalse => is_truth(false, false, self.truth(operand)?),
            UnaryOp::IsNotFalse => is_truth(false, true, self.truth(operand)?),
        })
    }

    fn binary(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        collation: CollationId,
        ty: &DataType,
        whole: &Expr,
    ) -> Result<Code> {
        use BinaryOp::*;
        Ok(match op {
            Add | Subtract | Multiply | Divide | IntegerDivide | Modulo => {
                Code::Arithmetic(Box::new(Arithmetic {
                    op,
                    left: self.expr(left)?,
                    right: Some(self.expr(right)?),
                    left_ty: left.ty(),
                    right_ty: right.ty(),
                    numbers: Numbers::of(ty),
                    ty: ty.clone(),
                    text: text(whole, &self.names).into(),
                }))
            }
            BitAnd | BitOr | BitXor | ShiftLeft | ShiftRight => {
                Code::Bits(Box::new(BitOperation {
                    op: BitOperator::Binary(op),
                    left: self.expr(left)?,
                    right: Some(self.expr(right)?),
                    left_ty: left.ty(),
                    right_ty: right.ty(),
                    ty: ty.clone(),
                }))
            }
            Equal | NullSafeEqual | NotEqual | Less | LessOrEqual | Greater | GreaterOrEqual => {
                if is_row(left) || is_row(right) {
                    let rows = self.row_comparison(op, left, right, collation)?;
                    return Ok(Code::CompareRows(Box::new(rows)));
                }
                Code::Compare(Box::new(self.comparison(op, left, right, collation)?))
            }
            And => Code::And(Box::new(self.truth(left)?), Box::new(self.truth(right)?)),
            Or => Code::Or(Box::new(self.truth(left)?), Box::new(self.truth(right)?)),
            Xor => Code::Xor(Box::new(self.truth(left)?), Box::new(self.truth(right)?)),
        })
    }

    pub(crate) fn comparison(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        collation: CollationId,
    ) -> Result<Comparison> {
        let comparator = comparator(&left.ty(), &right.ty(), collation);
        Ok(Comparison { op, left: self.expr(left)?, right: self.expr(right)?, comparator })
    }

    /// The columns of a row operand.
    fn row_items(&mut self, expr: &Expr) -> Result<Vec<(Code, DataType)>> {
        match expr {
            Expr::Row(items) => {
                items.iter().map(|item| Ok((self.expr(item)?, item.ty()))).collect()
            }
            single => Ok(vec![(self.expr(single)?, single.ty())]),
        }
    }

    fn row_comparison(
        &mut self,
        op: BinaryOp,
        left: &Expr,
        right: &Expr,
        collation: CollationId,
    ) -> Result<RowComparison> {
        let left_items = self.row_items(left)?;
        let right_items = self.row_items(right)?;
        if left_items.len() != right_items.len() {
            return Err(Error::with(ErrorCode::OPERAND_COLUMNS, &[&left_items.len()]));
        }
        let column_op = match op {
            BinaryOp::NullSafeEqual => op,
            _ => BinaryOp::Equal,
        };
        let columns = left_items.into_iter().zip(right_items);
        let columns = columns.map(|((left, left_ty), (right, right_ty))| {
            let collation = column_collation(&left_ty, &right_ty, collation);
            let comparator = comparator(&left_ty, &right_ty, collation);
            Comparison { op: column_op, left, right, comparator }
        });
        Ok(RowComparison { op, columns: columns.collect() })
    }

    fn between(
        &mut self,
        operand: &Expr,
        low: &Expr,
        high: &Expr,
        negated: bool,
        collation: CollationId,
    ) -> Result<Code> {
        self.with_held(operand, |compiler, operand| {
            let at_least = BinaryOp::GreaterOrEqual;
            Ok(Code::Between {
                low: Box::new(compiler.comparison(at_least, operand, low, collation)?),
                high: Box::new(compiler.comparison(
                    BinaryOp::LessOrEqual,
                    operand,
                    high,
                    collation,
                )?),
                negated,
            })
        })
    }

    fn in_list(
        &mut self,
        operand: &Expr,
        list: &[Expr],
        negated: bool,
        collation: CollationId,
    ) -> Result<Code> {
        if is_row(operand) {
            return self.with_held(operand, |compiler, operand| {
                let rows = list
                    .iter()
                    .map(|item| compiler.row_comparison(BinaryOp::Equal, operand, item, collation));
                Ok(Code::InRows { comparisons: rows.collect::<Result<_>>()?, negated })
            });
        }
        if self.is_hashable(operand, list) {
            let slot = self.set_slots;
            self.set_slots += 1;
            let ty = operand.ty();
            let items = list
                .iter()
                .map(|item| Ok((self.expr(item)?, Domain::new(&ty, &item.ty(), collation))));
            let list = items.collect::<Result<Vec<_>>>()?;
            let operand = self.expr(operand)?;
            return Ok(Code::InSet(Box::new(InSetCode { operand, list, slot, negated })));
        }
        self.with_held(operand, |compiler, operand| {
            let comparisons = list
                .iter()
                .map(|item| compiler.comparison(BinaryOp::Equal, operand, item, collation))
                .collect::<Result<_>>()?;
            Ok(Code::InList { comparisons, negated })
        })
    }

    fn held(&mut self, values: &[Expr], rest: &Expr) -> Result<Code> {
        let mut computed = Vec::with_capacity(values.len());
        for value in values {
            computed.push((self.new_register(), self.expr(value)?));
        }
        let registers = computed.iter().map(|(register, _)| *register).collect();
        let outer = std::mem::replace(&mut self.held, registers);
        let rest = self.expr(rest);
        self.held = outer;
        Ok(computed.into_iter().rev().fold(rest?, |rest, (register, value)| Code::Held {
            operand: Box::new(value),
            register,
            rest: Box::new(rest),
        }))
    }

    /// What `compile` makes with an operand that it uses many times: its computed values are held in registers, so that they are
    /// neither compiled nor computed for each use.
    fn with_held(
        &mut self,
        operand: &Expr,
        compile: impl FnOnce(&mut Self, &Expr) -> Result<Code>,
    ) -> Result<Code> {
        let mut held = operand.clone();
        let columns = match &mut held {
            Expr::Row(columns) => columns.iter_mut().collect(),
            single => vec![single],
        };
        let mut values = Vec::new();
        for column in columns {
            if !is_row(column) && !is_leaf(uncast(column)) {
                let register = self.new_register();
                values.push((register, self.expr(column)?));
                *column = Expr::column(plan::Register(register as u32), column.ty());
            }
        }
        let rest = compile(self, &held)?;
        Ok(values.into_iter().rev().fold(rest, |rest, (register, value)| Code::Held {
            operand: Box::new(value),
            register,
            rest: Box::new(rest),
        }))
    }

    /// A long list of constants that are all compared as one kind.
    fn is_hashable(&self, operand: &Expr, list: &[Expr]) -> bool {
        if list.len() < HASHED_LIST_MIN || !list.iter().all(|item| self.is_hoistable(item)) {
            return false;
        }
        let ty = operand.ty();
        let mut kinds = list.iter().map(|item| ComparisonKind::for_types(&ty, &item.ty()));
        let first = kinds.next();
        kinds.all(|kind| Some(kind) == first)
    }

    fn case(
        &mut self,
        operand: Option<&Expr>,
        branches: &[(Expr, Expr)],
        otherwise: Option<&Expr>,
        collation: CollationId,
        ty: &DataType,
    ) -> Result<Code> {
        let register = operand.map(|_| self.new_register());
        let mut compiled = Vec::with_capacity(branches.len());
        for (when, then) in branches {
            let condition = match (operand, register) {
                (Some(operand), Some(register)) => Truth {
                    code: Code::Compare(Box::new(Comparison {
                        op: BinaryOp::Equal,
                        left: Code::Register(register),
                        right: self.expr(when)?,
                        comparator: comparator(&operand.ty(), &when.ty(), collation),
                    })),
                    ty: DataType::boolean(),
                },
                _ => self.truth(when)?,
            };
            compiled.push((condition, self.unified(then, ty)?));
        }
        let otherwise = otherwise.map(|value| self.unified(value, ty).map(Box::new)).transpose()?;
        let rest = Code::Case { branches: compiled, otherwise };
        Ok(match (operand, register) {
            (Some(operand), Some(register)) => Code::Held {
                operand: Box::new(self.expr(operand)?),
                register,
                rest: Box::new(rest),
            },
            _ => rest,
        })
    }

    /// The expression with its value in the representation of `ty`.
    pub(crate) fn unified(&mut self, expr: &Expr, ty: &DataType) -> Result<Code> {
        let code = self.expr(expr)?;
        Ok(unify_code(code, expr.ty(), ty))
    }

    fn call(&mut self, name: &str, args: &[Expr]) -> Result<Code> {
        let function = self.bound_function(name, args)?;
        // A repeated expression must not be computed once.
        let inside_once = self.inside_once;
        self.inside_once |= !matches!(function.repeats, Repeats::No);
        let args = args.iter().enumerate().map(|(at, arg)| {
            let coercion = function.coercion(at).clone();
            Ok((self.expr(arg)?, arg.ty(), trimmed(coercion, &arg.ty())))
        });
        let args = args.collect::<Result<Vec<_>>>();
        self.inside_once = inside_once;
        let args = args?;
        let runs_statements = function.statements.is_some();
        let call = Box::new(Call { args, function });
        Ok(if runs_statements {
            Code::StatementCall(call, RunsStatements::Yes)
        } else {
            Code::Call(call)
        })
    }

    fn bound_function(&self, name: &str, args: &[Expr]) -> Result<BoundFunction> {
        let function = self
            .registry
            .function(name)
            .ok_or_else(|| Error::with(ErrorCode::SP_DOES_NOT_EXIST, &[&"FUNCTION", &name]))?;
        function.bind(self.bind, &arg_infos(args))
    }

    pub(crate) fn output_types(&self, id: usize) -> Vec<DataType> {
        let outputs = self.subqueries.get(id).map(|subquery| subquery.outputs.as_slice());
        outputs.unwrap_or_default().iter().map(Expr::ty).collect()
    }

    fn subquery(&mut self, id: usize, kind: &SubqueryKind, negated: bool) -> Result<SubqueryCode> {
        let types = self.output_types(id);
        let question = match kind {
            SubqueryKind::Scalar(column) => Question::Scalar { column: *column as usize },
            SubqueryKind::Exists => Question::Exists,
            SubqueryKind::In(left) => Question::In { left: self.left_side(left, &types)? },
            SubqueryKind::Quantified(left, op, quantifier) => Question::Quantified {
                left: self.left_side(left, &types)?,
                op: *op,
                all: Question::is_all(*quantifier),
            },
        };
        Ok(SubqueryCode { id, question, negated })
    }

    fn left_side(&mut self, left: &[Expr], types: &[DataType]) -> Result<Vec<(Code, Domain)>> {
        let items: Vec<&Expr> = match left {
            [Expr::Row(items)] => items.iter().collect(),
            items => items.iter().collect(),
        };
        if items.len() != types.len() {
            return Err(Error::with(ErrorCode::OPERAND_COLUMNS, &[&items.len()]));
        }
        let items = items.into_iter().zip(types);
        items
            .map(|(item, right)| {
                let ty = item.ty();
                let domain = Domain::new(&ty, right, common_collation(&ty, right));
                Ok((self.expr(item)?, domain))
            })
            .collect()
    }
}

pub(crate) fn comparator(left: &DataType, right: &DataType, collation: CollationId) -> Comparator {
    let kind = ComparisonKind::for_types(left, right).with_collation(collation);
    Comparator::with_kind(kind, left, right)
}

/// What is converted: a conversion is made, and warns, for each use.
fn uncast(mut expr: &Expr) -> &Expr {
    while let Expr::Cast { operand, .. } = expr {
        expr = operand;
    }
    expr
}

fn is_row(expr: &Expr) -> bool {
    matches!(expr, Expr::Row(_))
}

/// A row comparison carries one collation; columns that are text take their own where it is binary.
fn column_collation(left: &DataType, right: &DataType, whole: CollationId) -> CollationId {
    if whole == CollationId::BINARY { common_collation(left, right) } else { whole }
}

/// Wraps a conversion around `code` when values of `from` look different from values of `to`.
pub(crate) fn unify_code(code: Code, from: DataType, to: &DataType) -> Code {
    if same_representation(&from, to) {
        return code;
    }
    Code::Unify { operand: Box::new(code), from, to: to.clone() }
}

fn same_representation(from: &DataType, to: &DataType) -> bool {
    use types::TypeKind::{DateTime, Decimal, Double, Float, Null, Timestamp};
    if from.kind == Null || to.kind == Null {
        return true;
    }
    if from.is_integer() && to.is_integer() {
        return from.unsigned == to.unsigned;
    }
    if from.is_string() && to.is_string() {
        return true;
    }
    match (from.kind, to.kind) {
        (Decimal, Decimal) => from.decimals == to.decimals,
        (Double | Float, Double | Float) => true,
        (Timestamp | DateTime, Timestamp | DateTime) => true,
        (a, b) => a == b && from.members == to.members,
    }
}
