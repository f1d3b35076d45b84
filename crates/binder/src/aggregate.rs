//! Aggregate functions: the blocks they belong to, their types, and reuse of equal calls.

use errors::{Error, Result, bail};
use plan::{AggregateCall, Expr, SortKey};
use plugin_api::{AggregateFunction, ArgInfo, Geometries};
use syntax::ast::{self, AggregateFunc};
use types::{AggregateRole, DataType, TypeKind};

use crate::binder::Binder;
use crate::scope::Clause;

/// The role of an aggregate of the grammar.
fn role(func: AggregateFunc) -> AggregateRole {
    match func {
        AggregateFunc::Count => AggregateRole::Count,
        AggregateFunc::Sum => AggregateRole::Sum,
        AggregateFunc::Avg => AggregateRole::Average,
        AggregateFunc::Min => AggregateRole::Minimum,
        AggregateFunc::Max => AggregateRole::Maximum,
        AggregateFunc::BitAnd => AggregateRole::BitAnd,
        AggregateFunc::BitOr => AggregateRole::BitOr,
        AggregateFunc::BitXor => AggregateRole::BitXor,
        AggregateFunc::StddevPop => AggregateRole::StddevPop,
        AggregateFunc::StddevSamp => AggregateRole::StddevSamp,
        AggregateFunc::VarPop => AggregateRole::VarPop,
        AggregateFunc::VarSamp => AggregateRole::VarSamp,
        AggregateFunc::GroupConcat => AggregateRole::GroupConcat,
        AggregateFunc::JsonArrayAgg => AggregateRole::JsonArrayAgg,
        AggregateFunc::JsonObjectAgg => AggregateRole::JsonObjectAgg,
        AggregateFunc::StCollect => AggregateRole::StCollect,
    }
}

/// A call of an aggregate, whether the grammar or its name says that it is one.
pub(crate) struct Call<'a> {
    pub(crate) function: &'a AggregateFunction,
    pub(crate) args: &'a [ast::Expr],
    pub(crate) distinct: bool,
    pub(crate) order_by: &'a [ast::OrderItem],
    pub(crate) separator: Option<&'a [u8]>,
}

/// Arguments of GROUPING: one bit each.
const GROUPING_ARGS_MAX: usize = 64;

impl<'b> Binder<'b> {
    pub(crate) fn bind_aggregate(&mut self, call: &ast::AggregateCall) -> Result<Expr> {
        let function = self.aggregate_of(call.func)?;
        if call.over.is_none() && call.limit.is_some() {
            return Err(Error::not_supported("LIMIT in GROUP_CONCAT"));
        }
        let (args, separator) = (&*call.args, call.separator.as_deref());
        let (distinct, order_by) = (call.distinct, &*call.order_by);
        let whole = Call { function, args, distinct, order_by, separator };
        self.bind_aggregate_call(&whole, call.over.as_ref())
    }

    /// A call of a plugin's aggregate.
    pub(crate) fn bind_named_aggregate(
        &mut self,
        function: &AggregateFunction,
        call: &ast::FunctionCall,
    ) -> Result<Expr> {
        if call.arg_names.iter().any(Option::is_some) {
            bail!(WRONG_PARAMETERS_TO_NATIVE_FCT, call.name.text.to_lowercase());
        }
        let args = &*call.args;
        let whole = Call { function, args, distinct: false, order_by: &[], separator: None };
        self.bind_aggregate_call(&whole, call.over.as_ref())
    }

    fn bind_aggregate_call(&mut self, call: &Call<'_>, over: Option<&ast::Over>) -> Result<Expr> {
        if let Some(over) = over {
            return self.bind_aggregate_window(call, over);
        }
        let outer_deepest = self.deepest_reference.take();
        let outer_aggregate = self.deepest_aggregate.take();
        let current = self.blocks.len() - 1;
        self.blocks[current].in_aggregate += 1;
        let bound = self.bind_aggregate_parts(call);
        self.blocks[current].in_aggregate -= 1;
        let (args, order_by) = bound?;
        // An aggregate of outer columns only belongs to the block of the innermost of them, unless one in its arguments does.
        let level = match self.deepest_reference {
            Some(level)
                if level < current
                    && self.blocks[level].clause.allows_aggregates()
                    && self.deepest_aggregate.is_none_or(|inside| inside < level) =>
            {
                level
            }
            deepest => self.accepting_level(deepest, current),
        };
        // ANSI leaves no choice: it is the block of the innermost column.
        let strays = self.deepest_reference.is_some_and(|deepest| {
            deepest < level && !self.blocks[deepest].clause.allows_aggregates()
        });
        self.deepest_aggregate = outer_aggregate.max(Some(level));
        self.deepest_reference = outer_deepest.max(self.deepest_reference);
        if !self.blocks[level].accepts_aggregates()
            || strays && self.input.bind.sql_mode.contains(types::SqlMode::ANSI)
        {
            bail!(INVALID_GROUP_FUNC_USE);
        }
        let ty = self.aggregate_type(call.function, &args, call.separator)?;
        Ok(self.add_aggregate(level, call, args, order_by, ty))
    }

    /// Where an aggregate belongs whose arguments read nothing of the current block, in a clause without aggregates: to the
    /// innermost block around it that may have some.
    fn accepting_level(&self, deepest: Option<usize>, current: usize) -> usize {
        if self.blocks[current].accepts_aggregates() || deepest == Some(current) {
            return current;
        }
        let accepts = |level: &usize| {
            self.blocks[*level].hidden == 0 && self.blocks[*level].accepts_aggregates()
        };
        (deepest.unwrap_or(0)..current).rev().find(accepts).unwrap_or(current)
    }

    fn bind_aggregate_parts(&mut self, call: &Call<'_>) -> Result<(Vec<Expr>, Vec<SortKey>)> {
        let mut args = Vec::with_capacity(call.args.len());
        let numbers = call.function.numbers;
        for (position, arg) in call.args.iter().enumerate() {
            args.push(if numbers.contains(position) {
                let number = self.bind_number(arg)?;
                self.datetime_number(number)
            } else {
                self.bind_single(arg)?
            });
        }
        let mut order_by = Vec::with_capacity(call.order_by.len());
        for item in call.order_by {
            // An ordinal counts the arguments.
            let expr = match &item.expr.kind {
                ast::ExprKind::Literal(ast::Literal::Integer(number)) => {
                    let index = usize::try_from(*number).unwrap_or(0).wrapping_sub(1);
                    match args.get(index) {
                        Some(arg) => arg.clone(),
                        None => bail!(BAD_FIELD_ERROR, number, "order clause"),
                    }
                }
                _ => self.bind_single(&item.expr)?,
            };
            order_by.push(SortKey { expr, descending: item.desc });
        }
        let joins = call.function.role == AggregateRole::GroupConcat;
        if joins && call.distinct && order_by.is_empty() {
            // The reference finds distinct values in a tree, and reads them in its order.
            let ascending = |arg: &Expr| SortKey { expr: arg.clone(), descending: false };
            order_by.extend(args.iter().map(ascending));
        }
        if crate::fixed::takes_text(call.function.role) {
            let collation = self.input.bind.collation_connection;
            args.iter_mut().for_each(|arg| crate::fixed::text_of(arg, collation));
        }
        Ok((args, order_by))
    }

    /// The registry's function for an aggregate of the grammar; 1235 where no plugin has one.
    pub(crate) fn aggregate_of(&self, func: AggregateFunc) -> Result<&'b AggregateFunction> {
        match self.input.registry.aggregate_of(role(func)) {
            Some(function) => Ok(function),
            None => Err(Error::not_supported(func.name().to_ascii_uppercase())),
        }
    }

    /// The result type of an aggregate.
    pub(crate) fn aggregate_type(
        &self,
        function: &AggregateFunction,
        args: &[Expr],
        separator: Option<&[u8]>,
    ) -> Result<DataType> {
        if args.len() < function.arity.min || args.len() > function.arity.max {
            bail!(WRONG_PARAMCOUNT_TO_NATIVE_FCT, function.name);
        }
        let infos: Vec<ArgInfo> = args.iter().map(arg_info).collect();
        let refuses = function.geometries == Geometries::Refused;
        if refuses && infos.iter().any(|arg| arg.ty.kind == TypeKind::Geometry) {
            bail!(WRONG_ARGUMENTS, function.name.to_ascii_lowercase());
        }
        crate::fixed::check_aggregate(function.role, function.name, &infos)?;
        Ok(function.bind(self.input.bind, &infos, separator)?.ty)
    }

    fn add_aggregate(
        &mut self,
        level: usize,
        call: &Call<'_>,
        args: Vec<Expr>,
        order_by: Vec<SortKey>,
        ty: DataType,
    ) -> Expr {
        let function = call.function.reference();
        let separator: Option<Box<[u8]>> = call.separator.map(Into::into);
        let block = &mut self.blocks[level];
        block.has_own_aggregate |= !block.in_window && block.clause != Clause::WindowSpec;
        let same = block.aggregates.iter().find(|known| {
            known.function == function
                && known.args == args
                && known.distinct == call.distinct
                && known.order_by == order_by
                && known.separator == separator
        });
        if let Some(known) = same {
            return Expr::column(known.output, ty);
        }
        let output = self.new_register();
        self.blocks[level].aggregates.push(AggregateCall {
            function,
            args,
            distinct: call.distinct,
            order_by,
            separator,
            output,
            ty: ty.clone(),
        });
        Expr::column(output, ty)
    }

    /// `GROUPING(a, ..)`: one bit for each argument.
    pub(crate) fn bind_grouping(&mut self, args: &[ast::Expr]) -> Result<Expr> {
        let ty = DataType::bigint().with_nullable(false);
        if args.len() > GROUPING_ARGS_MAX {
            bail!(INVALID_NO_OF_ARGS, "GROUPING", args.len(), GROUPING_ARGS_MAX);
        }
        let is_number = |arg: &ast::Expr| {
            let text = arg.span.of(&self.source);
            !text.is_empty() && text.iter().all(u8::is_ascii_digit)
        };
        if args.iter().any(is_number) {
            bail!(WRONG_ARGUMENTS, "GROUPING function");
        }
        let mut result: Option<Expr> = None;
        for (position, arg) in args.iter().enumerate() {
            let bound = self.bind_single(arg)?;
            let register = self.grouping_register(position, &bound)?;
            let bit = Expr::column(register, ty.clone());
            result = Some(match result {
                None => bit,
                Some(before) => {
                    let two = crate::literal::integer(2);
                    let shifted = self.arithmetic(ast::BinaryOp::Mul, before, two)?;
                    self.arithmetic(ast::BinaryOp::Add, shifted, bit)?
                }
            });
        }
        result.ok_or_else(|| Error::internal("GROUPING without arguments"))
    }

    /// The register of GROUPING(key). The select list is bound before GROUP BY, so the key may not be known yet: it is noted as
    /// wanted and gets a key's place in `resolve_grouping`.
    fn grouping_register(&mut self, position: usize, arg: &Expr) -> Result<plan::Register> {
        let register = self.new_register();
        let block = self.block();
        if !block.grouped {
            bail!(INVALID_GROUP_FUNC_USE);
        }
        block.wanted_grouping.push((position, arg.clone(), register));
        Ok(register)
    }

    /// Gives every GROUPING() its key (3602 when it has none).
    pub(crate) fn resolve_grouping(&mut self) -> Result<()> {
        let block = self.block();
        block.grouping.resize(block.keys.len(), None);
        let wanted = std::mem::take(&mut block.wanted_grouping);
        let mut same: Vec<(plan::Register, plan::Register)> = Vec::new();
        for (position, arg, register) in wanted {
            let key = block.keys.iter().position(|(_, key)| *key == arg);
            match key {
                None => bail!(FIELD_IN_GROUPING_NOT_GROUP_BY, position + 1),
                Some(key) => match block.grouping[key] {
                    None => block.grouping[key] = Some(register),
                    Some(first) => same.push((register, first)),
                },
            }
        }
        block.same_grouping = same;
        Ok(())
    }
}

/// The facts that a function may read about an argument.
pub(crate) fn arg_info(arg: &Expr) -> ArgInfo {
    let constant = match arg {
        Expr::Literal { value, .. } => Some(value.clone()),
        _ => None,
    };
    let fixed =
        matches!(arg, Expr::Literal { .. } | Expr::Parameter { .. } | Expr::UserVariable { .. });
    ArgInfo { ty: arg.ty(), constant, fixed }
}
