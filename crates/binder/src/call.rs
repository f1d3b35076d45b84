//! Function calls, plain and with special syntax.

use std::sync::Arc;

use errors::{Error, Result, bail};
use plan::{BinaryOp, CastKind, Expr, UnaryOp};
use plugin_api::{ArgInfo, ArgumentNames, Coercion, CollationRule, ScalarFunction, TruthArguments};
use syntax::ast::{self, ExprKind, IntervalUnit};
use types::{CollationId, DataType, FunctionRole, OperatorCall, RunsStatements, TypeKind, Value};

use crate::aggregate::arg_info;
use crate::binder::Binder;
use crate::collation::{self, Differing};
use crate::compare::{held, hold, is_worth_holding};
use crate::expr::{not, single, to_text};
use crate::fixed;
use crate::literal;
use crate::reader::StoredProgram;
use crate::typing::{is_stringy, string_type};

/// The name of a unit as functions get it.
fn unit_name(unit: IntervalUnit) -> &'static str {
    match unit {
        IntervalUnit::Microsecond => "MICROSECOND",
        IntervalUnit::Second => "SECOND",
        IntervalUnit::Minute => "MINUTE",
        IntervalUnit::Hour => "HOUR",
        IntervalUnit::Day => "DAY",
        IntervalUnit::Week => "WEEK",
        IntervalUnit::Month => "MONTH",
        IntervalUnit::Quarter => "QUARTER",
        IntervalUnit::Year => "YEAR",
        IntervalUnit::SecondMicrosecond => "SECOND_MICROSECOND",
        IntervalUnit::MinuteMicrosecond => "MINUTE_MICROSECOND",
        IntervalUnit::MinuteSecond => "MINUTE_SECOND",
        IntervalUnit::HourMicrosecond => "HOUR_MICROSECOND",
        IntervalUnit::HourSecond => "HOUR_SECOND",
        IntervalUnit::HourMinute => "HOUR_MINUTE",
        IntervalUnit::DayMicrosecond => "DAY_MICROSECOND",
        IntervalUnit::DaySecond => "DAY_SECOND",
        IntervalUnit::DayMinute => "DAY_MINUTE",
        IntervalUnit::DayHour => "DAY_HOUR",
        IntervalUnit::YearMonth => "YEAR_MONTH",
    }
}

/// Characters that JSON_VALUE returns by default.
const JSON_VALUE_LENGTH: u32 = 512;
/// Characters of `RETURNING CHAR` without a length.
const LONGEST_TEXT: u32 = 0x3FFF_FFFF;

impl<'b> Binder<'b> {
    /// Expressions with special syntax that become calls.
    pub(crate) fn bind_special(&mut self, expr: &ast::Expr) -> Result<Expr> {
        match &expr.kind {
            ExprKind::Function(call) => self.bind_function(call),
            ExprKind::Regexp { expr, pattern, negated } => {
                let found = self.bind_call_of(FunctionRole::RegexpLike, &[expr, pattern])?;
                Ok(if *negated { not(found) } else { found })
            }
            ExprKind::ConvertUsing { expr, charset } => self.bind_convert_using(expr, charset),
            ExprKind::DateArith(arith) => self.bind_date_arithmetic(arith),
            ExprKind::Extract { unit, expr } => self.bind_extract(*unit, expr),
            ExprKind::Position { needle, haystack } => {
                self.bind_call_of(FunctionRole::Locate, &[needle, haystack])
            }
            ExprKind::Substring(substring) => {
                let mut args = vec![&substring.expr, &substring.from];
                args.extend(&substring.length);
                self.bind_call_of(FunctionRole::Substring, &args)
            }
            ExprKind::Trim(trim) => {
                let role = match trim.side {
                    ast::TrimSide::Both => FunctionRole::TrimBoth,
                    ast::TrimSide::Leading => FunctionRole::TrimLeading,
                    ast::TrimSide::Trailing => FunctionRole::TrimTrailing,
                };
                let mut args = vec![&trim.expr];
                args.extend(&trim.pattern);
                self.bind_call_of(role, &args)
            }
            ExprKind::Char { args, charset } => self.bind_char(args, charset.as_ref()),
            ExprKind::WeightString(weight) => self.bind_weight_string(weight),
            ExprKind::GetFormat { kind, expr } => {
                let kind = match kind {
                    ast::GetFormatKind::Date => "DATE",
                    ast::GetFormatKind::Time => "TIME",
                    ast::GetFormatKind::Datetime => "DATETIME",
                };
                let args = vec![self.ascii(kind), self.bind_single(expr)?];
                self.function(FunctionRole::GetFormat, args)
            }
            ExprKind::TimestampAdd { unit, amount, expr } => {
                self.unit_call(FunctionRole::TimestampAdd, *unit, &[amount, expr])
            }
            ExprKind::TimestampDiff { unit, from, to } => {
                self.unit_call(FunctionRole::TimestampDiff, *unit, &[from, to])
            }
            ExprKind::MemberOf { value, array } => {
                self.bind_call_of(FunctionRole::JsonMemberOf, &[value, array])
            }
            ExprKind::JsonExtract { value, path, unquote } => {
                self.bind_json_extract(value, path, *unquote)
            }
            ExprKind::JsonValue(value) => self.bind_json_value(value),
            ExprKind::DualityObject(object) => self.bind_duality_object(object),
            ExprKind::Default(Some(column)) => self.bind_default_of(column),
            ExprKind::Default(None) => bail!(WRONG_USAGE, "DEFAULT", "expression"),
            ExprKind::Values(column) => self.bind_insert_value(column),
            ExprKind::IntervalFunction(args) => {
                let args: Vec<&ast::Expr> = args.iter().collect();
                self.bind_call_of(FunctionRole::Interval, &args)
            }
            ExprKind::SoundsLike(left, right) => {
                let left = self.bind_call_of(FunctionRole::Soundex, &[left])?;
                let right = self.bind_call_of(FunctionRole::Soundex, &[right])?;
                self.comparison(BinaryOp::Equal, left, right)
            }
            ExprKind::Grouping(args) => self.bind_grouping(args),
            ExprKind::Match(found) => self.bind_match(found),
            ExprKind::NextValue(name) => self.bind_next_value(name),
            ExprKind::PreviousValue(name) => self.bind_previous_value(name),
            _ => Err(Error::internal("an expression without a binding")),
        }
    }

    // --- plain calls

    fn bind_function(&mut self, call: &ast::FunctionCall) -> Result<Expr> {
        if call.schema.is_some() || call.stored_only {
            return self.bind_stored_function(call);
        }
        let called = call.name.text.to_ascii_uppercase();
        let known = self.input.registry.function(&called);
        let Some(function) = known.filter(|function| !function.needs_schema()) else {
            if let Some(aggregate) = self.input.registry.named_aggregate(&called) {
                return self.bind_named_aggregate(aggregate, call);
            }
            // The function of a plugin that is not loaded is missing, with names or without.
            let has_names = call.arg_names.iter().any(Option::is_some);
            if has_names && !self.input.registry.may_come(&called) {
                bail!(WRONG_PARAMETERS_TO_STORED_FCT, format!("`{}`", call.name.text));
            }
            return self.bind_stored_function(call);
        };
        refuse_window(call)?;
        if let Some(bound) = self.bind_sequence_call(function.traits.role, call)? {
            return Ok(bound);
        }
        if function.names == ArgumentNames::Passed {
            return self.bind_call_with_names(function, &called, call);
        }
        if call.arg_names.iter().any(Option::is_some) {
            bail!(WRONG_PARAMETERS_TO_NATIVE_FCT, call.name.text.to_lowercase());
        }
        if let Some(FunctionRole::Operator(operator)) = function.traits.role
            && let Some(bound) = self.bind_operator_call(operator, function, &called, &call.args)?
        {
            return Ok(bound);
        }
        if let Some((_, warning)) = function.deprecated.filter(|(name, _)| *name == called) {
            self.deprecate(warning);
        }
        let args: Vec<&ast::Expr> = call.args.iter().collect();
        self.bind_args_of(function, &called, &args)
    }

    /// A call with the names of its arguments in one more argument.
    fn bind_call_with_names(
        &mut self,
        function: &ScalarFunction,
        called: &str,
        call: &ast::FunctionCall,
    ) -> Result<Expr> {
        if call.args.len() < function.arity.min || call.args.len() >= function.arity.max {
            bail!(WRONG_PARAMCOUNT_TO_NATIVE_FCT, called);
        }
        let mut names = vec![b'['];
        for index in 0..call.args.len() {
            if index > 0 {
                names.push(b',');
            }
            match call.arg_names.get(index) {
                Some(Some(name)) => types::json::quote(name.text.as_bytes(), &mut names),
                Some(None) | None => names.extend_from_slice(b"null"),
            }
        }
        names.push(b']');
        let mut args =
            call.args.iter().map(|arg| self.bind_single(arg)).collect::<Result<Vec<_>>>()?;
        args.push(literal::text(&names, self.input.bind.collation_connection));
        self.call(function, called, args)
    }

    /// A call of a function that is not built into the server.
    pub(crate) fn bind_stored_function(&mut self, call: &ast::FunctionCall) -> Result<Expr> {
        let schema = match &call.schema {
            Some(schema) => Some(&*schema.text),
            None => self.input.catalog.current_database(),
        };
        let registry = self.input.registry;
        let function = schema.and_then(|schema| registry.function_in(schema, &call.name.text));
        if let Some(function) = function {
            return self.bind_system_function(function, call);
        }
        let routine =
            schema.and_then(|schema| self.input.catalog.stored_function(schema, &call.name.text));
        let Some(routine) = routine else { return self.unknown_function(call) };
        refuse_window(call)?;
        let (wanted, given) = (routine.parameters.len(), call.args.len());
        if wanted != given {
            let shown = format!("{}.{}", routine.schema, routine.name);
            bail!(SP_WRONG_NO_OF_ARGS, "FUNCTION", shown, wanted, given);
        }
        self.spell_function(call, &routine.schema);
        self.uses_routine(&routine.schema, &routine.name);
        let args = call.args.iter().map(|arg| self.bind_single(arg)).collect::<Result<Vec<_>>>()?;
        let ty = routine.returns.as_ref().map_or_else(DataType::null, |(_, ty)| ty.clone());
        let deterministic = routine.deterministic;
        let program = self.function_number(routine, &args, &call.name.text);
        Ok(Expr::Stored { program, args, deterministic, ty: ty.with_nullable(true) })
    }

    /// A call of a function that a plugin has in a schema. It answers for its arguments as a stored function does.
    fn bind_system_function(
        &mut self,
        function: &ScalarFunction,
        call: &ast::FunctionCall,
    ) -> Result<Expr> {
        let (arity, given) = (function.arity, call.args.len());
        let wanted = if given < arity.min { arity.min } else { arity.max };
        if given < arity.min || given > arity.max {
            bail!(SP_WRONG_NO_OF_ARGS, "FUNCTION", function.name.to_lowercase(), wanted, given);
        }
        let args: Vec<&ast::Expr> = call.args.iter().collect();
        self.bind_args_of(function, function.name, &args)
    }

    /// The number of a stored function with these arguments; equal calls are equal expressions.
    fn function_number(
        &mut self,
        routine: Arc<catalog::Routine>,
        args: &[Expr],
        name: &str,
    ) -> u32 {
        let arguments: Vec<DataType> = args.iter().map(Expr::ty).collect();
        let known = self.programs.iter().position(|program| match program {
            StoredProgram::Function { routine: other, arguments: types, .. } => {
                Arc::ptr_eq(other, &routine) && *types == arguments
            }
            StoredProgram::Trigger(..) | StoredProgram::Statements => false,
        });
        if let Some(known) = known {
            return known as u32;
        }
        let caption = format!("{name}()").into();
        self.programs.push(StoredProgram::Function { routine, arguments, caption });
        self.programs.len() as u32 - 1
    }

    fn unknown_function(&self, call: &ast::FunctionCall) -> Result<Expr> {
        let schema = match &call.schema {
            Some(schema) => Some(&*schema.text),
            None => self.input.catalog.current_database(),
        };
        match schema {
            Some(schema) => {
                bail!(SP_DOES_NOT_EXIST, "FUNCTION", format!("{schema}.{}", call.name.text))
            }
            None => bail!(SP_DOES_NOT_EXIST, "FUNCTION", &call.name.text),
        }
    }

    /// Calls that are operators, or are answered from types alone. `called`: the name in the statement.
    fn bind_operator_call(
        &mut self,
        operator: OperatorCall,
        function: &ScalarFunction,
        called: &str,
        args: &[ast::Expr],
    ) -> Result<Option<Expr>> {
        if args.len() < function.arity.min || args.len() > function.arity.max {
            bail!(WRONG_PARAMCOUNT_TO_NATIVE_FCT, called)
        }
        // How errors call the operation.
        let operation = function.name.to_ascii_lowercase();
        Ok(Some(match operator {
            OperatorCall::If => {
                let condition = self.bind_number(&args[0])?;
                let then = self.bind_single(&args[1])?;
                let otherwise = self.bind_single(&args[2])?;
                self.case(vec![(condition, then)], Some(otherwise), &operation)?
            }
            OperatorCall::NullIf => self.bind_null_if(args, &operation)?,
            OperatorCall::IfNull | OperatorCall::Coalesce => {
                self.bind_coalesce(args, called, &operation)?
            }
            OperatorCall::IsNull => {
                let operand = Box::new(self.bind_single(&args[0])?);
                let ty = DataType::boolean().with_nullable(false);
                Expr::Unary { op: UnaryOp::IsNull, operand, ty }
            }
            OperatorCall::Modulo => {
                let left = self.bind_number(&args[0])?;
                let right = self.bind_number(&args[1])?;
                self.arithmetic(ast::BinaryOp::Mod, left, right)?
            }
            OperatorCall::AddDays => {
                self.unit_call(FunctionRole::DateAdd, IntervalUnit::Day, &[&args[0], &args[1]])?
            }
            OperatorCall::SubtractDays => {
                let args = [&args[0], &args[1]];
                self.unit_call(FunctionRole::DateSubtract, IntervalUnit::Day, &args)?
            }
            OperatorCall::FindInSet => return self.bind_find_in_set(args),
            OperatorCall::NameConst => {
                if !is_name_and_value(args) {
                    bail!(WRONG_ARGUMENTS, called);
                }
                self.bind_single(&args[1])?
            }
            OperatorCall::CharsetName => {
                collation_fact(self.bind_collation_of(&args[0])?.charset.name)
            }
            OperatorCall::CollationName => collation_fact(self.bind_collation_of(&args[0])?.name),
            OperatorCall::Coercibility => {
                let operand = self.bind_single(&args[0])?;
                let mut ty = DataType::bigint().with_nullable(false);
                ty.length = 10;
                Expr::literal(
                    Value::Int(collation::coercibility(&operand, &self.coercibilities) as i64),
                    ty,
                )
            }
        }))
    }

    fn bind_null_if(&mut self, args: &[ast::Expr], operation: &str) -> Result<Expr> {
        let first = self.bind_single(&args[0])?;
        let second = self.bind_single(&args[1])?;
        // Refused under its own name.
        self.comparison_collation(&[&first, &second], operation)?;
        let mut equal = self.scalar_comparison(BinaryOp::Equal, first.clone(), second)?;
        let null = Expr::literal(Value::Null, first.ty().with_nullable(true));
        // MySQL computes the value twice too, which shows when it changes.
        if !is_worth_holding(&first) || first.is_volatile() {
            self.count_copies([&first], 1)?;
            return self.case(vec![(equal, null)], Some(first), operation);
        }
        hold(&mut equal, std::slice::from_ref(&first), &[]);
        let value = Expr::HeldValue { index: 0, ty: first.ty() };
        let rest = self.case(vec![(equal, null)], Some(value), operation)?;
        Ok(held(vec![first], rest))
    }

    /// The collation of an expression's text; binary for an expression that is not text.
    fn bind_collation_of(&mut self, arg: &ast::Expr) -> Result<&'static charset::Collation> {
        let ty = self.bind_single(arg)?.ty();
        let id = if is_stringy(&ty) { ty.collation } else { CollationId::BINARY };
        Ok(charset::collation_or_binary(id))
    }

    /// `FIND_IN_SET('x', set_column)`: the member's number when it is in the value.
    fn bind_find_in_set(&mut self, args: &[ast::Expr]) -> Result<Option<Expr>> {
        let (needle, set) = (self.bind_single(&args[0])?, self.bind_single(&args[1])?);
        let ty = set.ty();
        let (Expr::Literal { value: Value::Bytes(text), .. }, Some(members), types::TypeKind::Set) =
            (&needle, &ty.members, ty.kind)
        else {
            return Ok(None);
        };
        let collation = charset::collation_or_binary(ty.collation);
        let found = members.names().position(|name| collation.equal(name, text));
        let number = found.map_or(0, |index| index as u64 + 1);
        let bit = found.map_or(0, |index| 1u64 << index);
        let bits = Expr::Cast {
            operand: Box::new(set),
            kind: plan::CastKind::Implicit,
            ty: DataType::bigint_unsigned().with_nullable(ty.nullable),
        };
        let masked = self.arithmetic(ast::BinaryOp::BitAnd, bits, literal::integer(bit))?;
        let zero = literal::integer(0);
        let absent = self.comparison(BinaryOp::Equal, masked, zero.clone())?;
        // NULL stays NULL: the product of a truth value and the number.
        let present = not(absent);
        let mut product = self.arithmetic(ast::BinaryOp::Mul, present, literal::integer(number))?;
        if let Expr::Binary { ty, .. } = &mut product {
            ty.length = 3;
        }
        Ok(Some(product))
    }

    fn bind_coalesce(&mut self, args: &[ast::Expr], called: &str, operation: &str) -> Result<Expr> {
        let Some((last, first)) = args.split_last() else {
            bail!(WRONG_PARAMCOUNT_TO_NATIVE_FCT, called)
        };
        let mut parts = Vec::with_capacity(args.len());
        for arg in first {
            parts.push(self.bind_single(arg)?);
        }
        let last = self.bind_single(last)?;
        if parts.is_empty() {
            return Ok(last);
        }
        parts.push(last);
        self.first_of(parts, operation)
    }

    fn first_of(&mut self, mut parts: Vec<Expr>, operation: &str) -> Result<Expr> {
        let nullable = parts.iter().all(|part| part.ty().nullable);
        let last = parts.pop();
        // The results of a CASE: their types are unified as its are.
        let known = literal::integer(1);
        let branches = parts.into_iter().map(|part| (known.clone(), part)).collect();
        let Expr::Case { branches, otherwise, mut ty, .. } =
            self.case(branches, last, operation)?
        else {
            return Err(Error::internal("CASE was bound to another expression"));
        };
        let mut parts: Vec<Expr> = branches.into_iter().map(|(_, part)| part).collect();
        parts.extend(otherwise.map(|last| *last));
        ty.nullable = nullable;
        Ok(Expr::FirstNotNull { parts, ty })
    }

    /// The first value that is not NULL of the columns that full joins merge.
    pub(crate) fn first_not_null(&mut self, parts: &[(Expr, Arc<str>)]) -> Result<Expr> {
        self.first_of(parts.iter().map(|(part, _)| part.clone()).collect(), "case")
    }

    /// A call that the grammar produces.
    pub(crate) fn bind_call_of(&mut self, role: FunctionRole, args: &[&ast::Expr]) -> Result<Expr> {
        let function = self.function_of(role)?;
        self.bind_args_of(function, function.name, args)
    }

    pub(crate) fn bind_args_of(
        &mut self,
        function: &ScalarFunction,
        called: &str,
        args: &[&ast::Expr],
    ) -> Result<Expr> {
        let mut bound = Vec::with_capacity(args.len());
        for (position, arg) in args.iter().enumerate() {
            bound.push(if function.numbers.contains(position) {
                let number = self.bind_number(arg)?;
                self.datetime_number(number)
            } else {
                self.bind_single(arg)?
            });
        }
        self.call(function, called, bound)
    }

    /// The function that plays a role; 1235 where no plugin has one.
    pub(crate) fn function_of(&self, role: FunctionRole) -> Result<&'b ScalarFunction> {
        match self.input.registry.function_of(role) {
            Some(function) => Ok(function),
            None => Err(Error::not_supported(format!("{role:?}"))),
        }
    }

    /// A call of the function that plays a role, with bound arguments.
    pub(crate) fn function(&mut self, role: FunctionRole, args: Vec<Expr>) -> Result<Expr> {
        let function = self.function_of(role)?;
        self.call(function, function.name, args)
    }

    /// A call with bound arguments. `called`: the name in the statement.
    fn call(
        &mut self,
        function: &ScalarFunction,
        called: &str,
        mut args: Vec<Expr>,
    ) -> Result<Expr> {
        if args.len() < function.arity.min || args.len() > function.arity.max {
            bail!(WRONG_PARAMCOUNT_TO_NATIVE_FCT, called);
        }
        args.iter().try_for_each(single)?;
        if function.is(FunctionRole::Week) && args.len() == 1 {
            args.push(self.default_week_mode()?);
        }
        if function.truths == TruthArguments::Number {
            args.iter_mut().for_each(number_unless_predicate);
        }
        self.agree_on_bytes(function, called, &mut args)?;
        let common = self.common_collation(function, called, &args)?;
        if !matches!(function.collation, CollationRule::Follows(_)) {
            self.adopt_collation(called, &mut args);
        }
        let mut infos = infos_in(&args, common);
        let mut bound = function.bind(self.input.bind, &infos)?;
        if fixed::has_any(&infos)
            && fixed::as_arguments(
                function,
                &mut args,
                &bound,
                &called.to_ascii_lowercase(),
                self.input.bind.collation_connection,
            )?
        {
            infos = infos_in(&args, common);
            bound = function.bind(self.input.bind, &infos)?;
        }
        for (index, arg) in infos.iter().enumerate() {
            let is_number = matches!(bound.coercion(index), Coercion::Double | Coercion::Decimal);
            if is_number && arg.ty.kind == TypeKind::Geometry {
                bail!(WRONG_ARGUMENTS, function.name.to_ascii_lowercase());
            }
        }
        let mut ty = bound.ty;
        if let Some(common) = common
            && ty.is_text()
            && ![common, ty.collation].contains(&CollationId::BINARY)
        {
            ty.collation = common;
        }
        let mut reference = function.reference();
        self.has_chance |= reference.is_volatile();
        if reference.traits.statements == RunsStatements::Yes {
            self.programs.push(StoredProgram::Statements);
            if self.view_depth > 0 {
                reference.traits.statements = RunsStatements::Refused;
            }
        }
        Ok(Expr::Function { function: reference, args, ty })
    }

    /// The mode of a WEEK without one. A table's expression has the mode 0: its value must not change with the session.
    fn default_week_mode(&mut self) -> Result<Expr> {
        if self.in_definition {
            return Ok(literal::integer(0));
        }
        let name = ast::Ident::new("default_week_format");
        self.system_variable(&ast::SystemVar { scope: None, component: None, name })
    }

    /// The common collation of a function's text arguments; 1267 when they have none. `None`: it does not matter.
    fn common_collation(
        &self,
        function: &ScalarFunction,
        called: &str,
        args: &[Expr],
    ) -> Result<Option<CollationId>> {
        let (texts, differing) = match function.collation {
            CollationRule::Own => return Ok(None),
            CollationRule::Follows(subject) => {
                let ty = args.get(subject).map(Expr::ty);
                return Ok(ty
                    .filter(|ty| ty.is_text() || ty.is_enum_or_set())
                    .map(|ty| ty.collation));
            }
            CollationRule::Joins(texts) => (texts.of(args), Differing::Binary),
            CollationRule::Compares(texts) => (texts.of(args), Differing::Refuse),
        };
        let explicit = |arg: &Expr| matches!(arg, Expr::Collate { .. });
        let is_text = |arg: &&Expr| {
            let ty = arg.ty();
            ty.is_text() || ty.is_enum_or_set()
        };
        let columns = texts.iter().filter(is_text).count();
        if columns < 2 && !texts.iter().any(explicit) {
            return Ok(None);
        }
        let texts = texts.iter().filter(is_text);
        collation::aggregate(texts, &self.coercibilities, &called.to_ascii_lowercase(), differing)
            .map(Some)
    }

    /// Where some text arguments are binary strings and others are not, all become what the stronger are.
    fn agree_on_bytes(
        &mut self,
        function: &ScalarFunction,
        called: &str,
        args: &mut [Expr],
    ) -> Result<()> {
        let (texts, differing) = match function.collation {
            CollationRule::Own => return Ok(()),
            CollationRule::Follows(subject) => return self.follow(subject, args),
            CollationRule::Joins(texts) => (texts, Differing::Binary),
            CollationRule::Compares(texts) => (texts, Differing::Refuse),
        };
        let has_bytes = texts.of(args).iter().any(|arg| arg.ty().is_binary());
        let has_text = |arg: &Expr| is_stringy(&arg.ty()) && !arg.ty().is_binary();
        if !has_bytes || !texts.of(args).iter().any(has_text) {
            return Ok(());
        }
        let strings = texts.of(args).iter().filter(|arg| is_stringy(&arg.ty()));
        let operation = called.to_ascii_lowercase();
        let common = collation::aggregate(strings, &self.coercibilities, &operation, differing)?;
        for (position, arg) in args.iter_mut().enumerate() {
            if texts.contains(position) && is_stringy(&arg.ty()) {
                let null = Expr::literal(Value::Null, DataType::null());
                *arg = self.joined_in(std::mem::replace(arg, null), common)?;
            }
        }
        Ok(())
    }

    /// Texts beside the one that a function works on become of its character set.
    fn follow(&mut self, subject: usize, args: &mut [Expr]) -> Result<()> {
        let Some(ty) = args.get(subject).map(Expr::ty).filter(is_stringy) else { return Ok(()) };
        for (position, arg) in args.iter_mut().enumerate() {
            if position != subject && is_stringy(&arg.ty()) {
                let null = Expr::literal(Value::Null, DataType::null());
                *arg = self.follower(std::mem::replace(arg, null), ty.collation)?;
            }
        }
        Ok(())
    }

    /// Text constants combined with columns take the collation of the call.
    fn adopt_collation(&self, name: &str, args: &mut [Expr]) {
        let fixed = |arg: &Expr| matches!(arg, Expr::Literal { .. } | Expr::Parameter { .. });
        let mixed = args.iter().any(|arg| arg.ty().is_text() && fixed(arg))
            && args.iter().any(|arg| arg.ty().is_text() && !fixed(arg));
        if !mixed {
            return;
        }
        let wanted =
            collation::aggregate(args.iter(), &self.coercibilities, name, Differing::Binary);
        let Ok(collation) = wanted else { return };
        for arg in args {
            if let Expr::Literal { ty, .. } | Expr::Parameter { ty, .. } = arg
                && ty.is_text()
            {
                ty.collation = collation;
            }
        }
    }

    pub(crate) fn ascii(&self, text: &str) -> Expr {
        literal::text(text.as_bytes(), self.input.bind.collation_connection)
    }

    // --- dates

    pub(crate) fn unit_text(&self, unit: IntervalUnit) -> Expr {
        self.ascii(unit_name(unit))
    }

    fn unit_call(
        &mut self,
        role: FunctionRole,
        unit: IntervalUnit,
        args: &[&ast::Expr],
    ) -> Result<Expr> {
        let mut bound = vec![self.unit_text(unit)];
        for arg in args {
            bound.push(self.bind_single(arg)?);
        }
        self.function(role, bound)
    }

    fn bind_extract(&mut self, unit: IntervalUnit, expr: &ast::Expr) -> Result<Expr> {
        let mut args = vec![self.unit_text(unit), self.bind_single(expr)?];
        if unit == IntervalUnit::Week {
            args.push(self.default_week_mode()?);
        }
        self.function(FunctionRole::Extract, args)
    }

    fn bind_date_arithmetic(&mut self, arith: &ast::DateArith) -> Result<Expr> {
        let role = match arith.subtract {
            true => FunctionRole::DateSubtract,
            false => FunctionRole::DateAdd,
        };
        self.unit_call(role, arith.unit, &[&arith.date, &arith.amount])
    }

    // --- text

    fn bind_convert_using(&mut self, expr: &ast::Expr, charset: &ast::Ident) -> Result<Expr> {
        let operand = self.bind_single(expr)?;
        self.note_charset(&charset.text);
        let Some(charset) = charset::charset_by_name(&charset.text) else {
            bail!(UNKNOWN_CHARACTER_SET, charset.text)
        };
        let name = self.ascii(charset.name);
        self.function(FunctionRole::ConvertUsing, vec![operand, name])
    }

    fn bind_char(&mut self, args: &[ast::Expr], charset: Option<&ast::Ident>) -> Result<Expr> {
        let mut bound = Vec::with_capacity(args.len() + 1);
        for arg in args {
            // Hexadecimal literals are numbers here.
            bound.push(if crate::compare::is_binary_literal(arg) {
                self.bind_number(arg)?
            } else {
                self.bind_single(arg)?
            });
        }
        let Some(charset) = charset else { return self.function(FunctionRole::Char, bound) };
        self.note_charset(&charset.text);
        let Some(charset) = charset::charset_by_name(&charset.text) else {
            bail!(UNKNOWN_CHARACTER_SET, charset.text)
        };
        bound.push(self.ascii(charset.name));
        self.function(FunctionRole::CharUsing, bound)
    }

    fn bind_weight_string(&mut self, weight: &ast::WeightString) -> Result<Expr> {
        let operand = self.bind_single(&weight.expr)?;
        let (word, numbers) = match (weight.cast, weight.widths) {
            (Some((length, true)), _) => ("BINARY", vec![length]),
            (Some((characters, false)), _) => ("CHAR", vec![0, characters, 0]),
            (None, Some((bytes, characters, flags))) => ("CHAR", vec![bytes, characters, flags]),
            (None, None) => return self.function(FunctionRole::WeightString, vec![operand]),
        };
        let collation = match (word, operand.ty().is_string()) {
            ("BINARY", _) => CollationId::BINARY,
            (_, true) => operand.ty().collation,
            (_, false) => self.input.bind.collation_connection,
        };
        let is_number = operand.ty().is_integer();
        let text =
            if is_number { operand } else { to_text(operand, collation, CastKind::Implicit) };
        let mut args = vec![text, self.ascii(word)];
        args.extend(numbers.into_iter().map(literal::integer));
        self.function(FunctionRole::WeightString, args)
    }

    // --- JSON

    fn bind_json_extract(
        &mut self,
        value: &ast::Expr,
        path: &ast::StringLiteral,
        unquote: bool,
    ) -> Result<Expr> {
        let value = self.bind_single(value)?;
        let path = literal::text(&path.value, self.input.bind.collation_connection);
        let found = self.function(FunctionRole::JsonExtract, vec![value, path])?;
        if unquote { self.function(FunctionRole::JsonUnquote, vec![found]) } else { Ok(found) }
    }

    fn bind_json_value(&mut self, value: &ast::JsonValue) -> Result<Expr> {
        let doc = self.bind_single(&value.doc)?;
        let path = self.bind_single(&value.path)?;
        let ty = match &value.returning {
            Some(target) if is_text_without_set(target) => {
                let length = target.length.unwrap_or(u64::from(LONGEST_TEXT));
                string_type(length.min(u64::from(u32::MAX)) as u32, CollationId::UTF8MB4_0900_BIN)
            }
            Some(target) => self.cast_type(target, &doc)?,
            None => string_type(JSON_VALUE_LENGTH, CollationId::UTF8MB4_0900_BIN),
        };
        let mut args = vec![doc, path, Expr::literal(types::Value::Null, ty)];
        for on in [&value.on_empty, &value.on_error] {
            let null = || Expr::literal(types::Value::Null, DataType::null());
            let (kind, given) = match on {
                None | Some(ast::JsonOn::Null) => (0, null()),
                Some(ast::JsonOn::Error) => (1, null()),
                Some(ast::JsonOn::Default(given)) => {
                    // It is converted once, when the statement is planned.
                    self.wants_literals = true;
                    (2, self.bind_single(given)?)
                }
            };
            args.extend([literal::integer(kind), given]);
        }
        self.function(FunctionRole::JsonValue, args)
    }
}

/// `CHAR` or `CHAR(n)`.
fn is_text_without_set(target: &ast::DataType) -> bool {
    matches!(target.name, ast::TypeName::Char | ast::TypeName::Varchar)
        && target.charset.is_none()
        && target.collation.is_none()
        && !target.binary
}

/// The grammar has OVER for aggregates only; a function's name shows whether it is one.
fn refuse_window(call: &ast::FunctionCall) -> Result<()> {
    if call.over.is_some() {
        bail!(PARSE_ERROR, "OVER", 1);
    }
    Ok(())
}

/// A string or a literal, perhaps with a sign or a collation: an argument of NAME_CONST.
fn is_name_and_value(args: &[ast::Expr]) -> bool {
    let literal = |expr: &ast::Expr| matches!(expr.kind, ExprKind::Literal(_));
    let value = match &args[1].kind {
        ExprKind::Unary { op: ast::UnaryOp::Neg, expr } => literal(expr),
        ExprKind::Collate { expr, .. } => literal(expr),
        _ => literal(&args[1]),
    };
    literal(&args[0]) && value
}

/// The name of a character set or collation as a constant.
fn collation_fact(name: &str) -> Expr {
    let ty = DataType::varchar(64, CollationId::UTF8MB3_GENERAL_CI);
    Expr::literal(Value::text(name), ty)
}

/// A JSON true or false comes from a predicate; an expression that only passes a value on is a number.
fn number_unless_predicate(arg: &mut Expr) {
    if !arg.ty().is_truth() || is_predicate(arg) {
        return;
    }
    match arg {
        Expr::Column { ty, .. }
        | Expr::Case { ty, .. }
        | Expr::FirstNotNull { ty, .. }
        | Expr::Subquery { ty, .. } => {
            ty.length = DataType::bigint().length;
        }
        Expr::Held { rest, .. } => number_unless_predicate(rest),
        _ => {}
    }
}

/// Whether an expression is a predicate by its form, not by its type.
fn is_predicate(expr: &Expr) -> bool {
    use plan::SubqueryKind::Scalar;
    if let Expr::Held { rest, .. } = expr {
        return is_predicate(rest);
    }
    !matches!(
        expr,
        Expr::Column { .. }
            | Expr::Case { .. }
            | Expr::FirstNotNull { .. }
            | Expr::Subquery { kind: Scalar(_), .. }
    )
}

/// The facts about arguments. Texts that work in a common collation are of it: inside, texts of all character sets are alike.
fn infos_in(args: &[Expr], common: Option<CollationId>) -> Vec<ArgInfo> {
    let mut infos: Vec<ArgInfo> = args.iter().map(arg_info).collect();
    let Some(common) = common.filter(|common| *common != CollationId::BINARY) else { return infos };
    for info in &mut infos {
        if info.ty.is_enum_or_set() || info.ty.is_text() && !info.ty.is_binary() {
            info.ty.collation = common;
        }
    }
    infos
}
