//! Expressions: operators, predicates, casts, variables. Calls are in `call`, comparisons in `compare`.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result, bail};
use plan::{BinaryOp, CastKind, Expr, UnaryOp};
use syntax::ast::{self, ExprKind};
use types::{
    CollationId, DataType, DatetimeText, Fixed, FunctionRole, NOT_FIXED_DECIMALS, SqlMode,
    TypeKind, Value,
};

use crate::binder::Binder;
use crate::collation::{self, Differing};
use crate::compare::{hold_operands, is_binary_literal, refuse_geometries};
use crate::fixed;
use crate::literal;
use crate::typing::{
    Arithmetic, NumberClass, arithmetic, display_width, number_class, string_type,
};

impl Binder<'_> {
    /// Binds an expression.
    pub(crate) fn bind_expr(&mut self, expr: &ast::Expr) -> Result<Expr> {
        match &expr.kind {
            ExprKind::Literal(literal) => self.bind_literal(literal),
            ExprKind::Param(index) => {
                // A literal that the plan cache lifted remains in the text.
                self.has_placeholders |= expr.span.of(&self.source) == b"?";
                Ok(self.parameter(*index, None))
            }
            ExprKind::Column(name) => self.bind_column(name),
            ExprKind::UserVar(name) => Ok(self.user_variable(&name.text)),
            ExprKind::SystemVar(variable) => self.system_variable(variable),
            ExprKind::Unary { op, expr } => self.bind_unary(*op, expr),
            ExprKind::Binary { op, left, right } => self.bind_binary_op(*op, left, right),
            ExprKind::And(items) => self.bind_logical(BinaryOp::And, items),
            ExprKind::Or(items) => self.bind_logical(BinaryOp::Or, items),
            ExprKind::Xor(left, right) => self.bind_xor(left, right),
            ExprKind::Not(operand) => Ok(not(self.bind_condition(operand)?)),
            ExprKind::NotSign(operand) => {
                self.deprecate(
                    "'!' is deprecated and will be removed in a future release. Please use NOT instead",
                );
                Ok(not(self.bind_condition(operand)?))
            }
            ExprKind::Concat(items) => {
                let items: Vec<&ast::Expr> = items.iter().collect();
                self.bind_call_of(FunctionRole::Concat, &items)
            }
            ExprKind::Between(between) => self.bind_between(between),
            ExprKind::InList { expr, list, negated } => self.bind_in_list(expr, list, *negated),
            ExprKind::InSubquery { expr, query, negated } => {
                self.bind_in_subquery(expr, query, *negated)
            }
            ExprKind::Like(like) => self.bind_like(like),
            ExprKind::Is { expr, test, negated } => self.bind_is(expr, *test, *negated),
            ExprKind::Case(case) => self.bind_case(case),
            ExprKind::Cast(cast) => self.bind_cast(cast),
            ExprKind::Collate { expr, collation } => self.bind_collate(expr, &collation.text),
            ExprKind::Aggregate(call) => self.bind_aggregate(call),
            ExprKind::Window(call) => self.bind_window_call(call),
            ExprKind::Subquery(query) => self.bind_scalar_subquery(query),
            ExprKind::Exists(query) => self.bind_exists(query),
            ExprKind::Quantified { left, op, all, query } => {
                self.bind_quantified(left, *op, *all, query)
            }
            ExprKind::Row(items) => {
                let items: Result<Vec<_>> = items.iter().map(|item| self.bind_expr(item)).collect();
                items.map(Expr::Row)
            }
            ExprKind::Assign { variable, value } => self.bind_assign(variable, value),
            ExprKind::OdbcEscape { expr, .. } => self.bind_expr(expr),
            _ => self.bind_special(expr),
        }
    }

    /// Binds an expression that must be a single value.
    pub(crate) fn bind_single(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let bound = self.bind_expr(expr)?;
        single(&bound)?;
        Ok(bound)
    }

    // --- variables

    pub(crate) fn user_variable(&mut self, name: &str) -> Expr {
        // Its type is that of the value it has now.
        self.uncacheable = true;
        self.names_variable |= self.view_depth == 0;
        let ty = self.input.variables.user_variable(name).unwrap_or_else(|| {
            let mut ty = DataType::new(TypeKind::LongText, 16_777_216, NOT_FIXED_DECIMALS);
            ty.collation = self.input.bind.collation_connection;
            ty
        });
        Expr::UserVariable { name: Arc::from(name), ty: ty.with_nullable(true) }
    }

    pub(crate) fn system_variable(&mut self, variable: &ast::SystemVar) -> Result<Expr> {
        let mut name = variable.name.text.to_ascii_lowercase();
        if let Some(component) = &variable.component {
            name = format!("{}.{name}", component.text.to_ascii_lowercase());
        }
        self.names_variable |= self.view_depth == 0;
        self.has_chance = true;
        if let Some(text) = self.input.variables.removal_of(&name) {
            self.deprecate(text);
        }
        match self.input.variables.system_variable(&name, variable.scope)? {
            Some(ty) => Ok(Expr::SystemVariable {
                name: Arc::from(name),
                global: variable.scope == Some(ast::VarScope::Global),
                ty,
            }),
            None => bail!(UNKNOWN_SYSTEM_VARIABLE, name),
        }
    }

    fn bind_assign(&mut self, variable: &ast::Ident, value: &ast::Expr) -> Result<Expr> {
        self.deprecate(
            "Setting user variables within expressions is deprecated and will be removed in a future \
             release. Consider alternatives: 'SET variable=expression, ...', or 'SELECT \
             expression(s) INTO variables(s)'.",
        );
        self.names_variable |= self.view_depth == 0;
        let value = self.bind_single(value)?;
        let ty = value.ty();
        // The result is the variable's value, which has none of these types.
        let wanted = if ty.kind == TypeKind::Float {
            Some(DataType::double())
        } else if matches!(ty.kind, TypeKind::Year | TypeKind::Bit) {
            Some(DataType { unsigned: true, ..DataType::new(TypeKind::Int, 10, 0) })
        } else {
            let text = DataType::varchar(ty.length, CollationId::LATIN1_SWEDISH_CI);
            (ty.is_temporal() || ty.as_fixed().is_some()).then_some(text)
        };
        let value = match wanted {
            Some(wanted) => {
                let ty = wanted.with_nullable(ty.nullable);
                Expr::Cast { operand: Box::new(value), kind: CastKind::Implicit, ty }
            }
            None => value,
        };
        Ok(Expr::AssignUserVariable { name: Arc::from(&*variable.text), value: Box::new(value) })
    }

    // --- operators

    fn bind_unary(&mut self, op: ast::UnaryOp, operand: &ast::Expr) -> Result<Expr> {
        match op {
            ast::UnaryOp::Plus => self.bind_single(operand),
            ast::UnaryOp::Neg => {
                let operand = self.bind_number(operand)?;
                refuse_geometries([&operand], "-")?;
                fixed::refuse(&[&operand], "-")?;
                Ok(negate(operand))
            }
            ast::UnaryOp::BitNot => {
                let operand = self.bind_number(operand)?;
                refuse_geometries([&operand], "~")?;
                fixed::refuse(&[&operand], "~")?;
                let ty = bit_type(&[&operand]);
                Ok(Expr::Unary { op: UnaryOp::BitNot, operand: Box::new(operand), ty })
            }
            ast::UnaryOp::Binary => {
                self.deprecate(
                    "'BINARY expr' is deprecated and will be removed in a future release. Please use \
                     CAST instead",
                );
                let operand = self.bind_single(operand)?;
                Ok(to_text(self.encoded(operand)?, CollationId::BINARY, CastKind::Explicit))
            }
        }
    }

    /// An operand of arithmetic or of a connective: hexadecimal and bit literals are numbers here.
    pub(crate) fn bind_number(&mut self, expr: &ast::Expr) -> Result<Expr> {
        if let Some(number) = literal::number_of_bits(expr) {
            let mut ty = DataType::bigint_unsigned().with_nullable(false);
            ty.length = 20;
            return Ok(Expr::literal(Value::UInt(number), ty));
        }
        self.bind_single(expr)
    }

    /// An expression used as a condition; 3986 warns of documents.
    pub(crate) fn bind_condition(&mut self, expr: &ast::Expr) -> Result<Expr> {
        let bound = self.bind_number(expr)?;
        if bound.ty().kind == TypeKind::Json {
            self.notice(ErrorCode::IMPLICIT_COMPARISON_FOR_JSON, &[]);
        }
        Ok(bound)
    }

    /// A datetime that a function returns as text counts with all its digits.
    pub(crate) fn datetime_number(&mut self, expr: Expr) -> Expr {
        if !is_datetime_text(&expr) {
            return expr;
        }
        self.function(FunctionRole::DatetimeNumber, vec![expr.clone()]).unwrap_or(expr)
    }

    fn bind_binary_op(
        &mut self,
        op: ast::BinaryOp,
        left: &ast::Expr,
        right: &ast::Expr,
    ) -> Result<Expr> {
        if op.is_comparison() {
            return self.bind_comparison(comparison_op(op), left, right);
        }
        let left = self.bind_number(left)?;
        let right = self.bind_number(right)?;
        self.arithmetic(op, left, right)
    }

    pub(crate) fn arithmetic(
        &mut self,
        op: ast::BinaryOp,
        mut left: Expr,
        mut right: Expr,
    ) -> Result<Expr> {
        left = self.datetime_number(left);
        right = self.datetime_number(right);
        let guess = |other: &Expr| match number_class(&other.ty()) {
            NumberClass::Integer { .. } => DataType::bigint(),
            NumberClass::Decimal => DataType::decimal(65, 30),
            NumberClass::Real => DataType::double(),
        };
        self.infer(&mut left, &guess(&right));
        self.infer(&mut right, &guess(&left));
        let shape = match op {
            ast::BinaryOp::Add => Arithmetic::Add,
            ast::BinaryOp::Sub => Arithmetic::Subtract,
            ast::BinaryOp::Mul => Arithmetic::Multiply,
            ast::BinaryOp::Div => Arithmetic::Divide,
            ast::BinaryOp::IntDiv => Arithmetic::IntegerDivide,
            ast::BinaryOp::Mod => Arithmetic::Modulo,
            ast::BinaryOp::BitAnd
            | ast::BinaryOp::BitOr
            | ast::BinaryOp::BitXor
            | ast::BinaryOp::ShiftLeft
            | ast::BinaryOp::ShiftRight => {
                refuse_geometries([&left, &right], plan::print::operator(bit_op(op)))?;
                fixed::refuse(&[&left, &right], plan::print::operator(bit_op(op)))?;
                let ty = bit_type(&[&left, &right]);
                return Ok(binary(bit_op(op), left, right, CollationId::BINARY, ty));
            }
            ast::BinaryOp::Eq
            | ast::BinaryOp::NullSafeEq
            | ast::BinaryOp::NotEq
            | ast::BinaryOp::Lt
            | ast::BinaryOp::LtEq
            | ast::BinaryOp::Gt
            | ast::BinaryOp::GtEq => return self.comparison(comparison_op(op), left, right),
        };
        let signed = self.input.bind.sql_mode.contains(SqlMode::NO_UNSIGNED_SUBTRACTION);
        let increment = self.input.bind.div_precision_increment;
        let ty = arithmetic(shape, &left.ty(), &right.ty(), increment, signed);
        let op = match shape {
            Arithmetic::Add => BinaryOp::Add,
            Arithmetic::Subtract => BinaryOp::Subtract,
            Arithmetic::Multiply => BinaryOp::Multiply,
            Arithmetic::Divide => BinaryOp::Divide,
            Arithmetic::IntegerDivide => BinaryOp::IntegerDivide,
            Arithmetic::Modulo => BinaryOp::Modulo,
        };
        refuse_geometries([&left, &right], plan::print::operator(op))?;
        fixed::refuse(&[&left, &right], plan::print::operator(op))?;
        Ok(binary(op, left, right, CollationId::BINARY, ty))
    }

    fn bind_logical(&mut self, op: BinaryOp, items: &[ast::Expr]) -> Result<Expr> {
        let mut operands = Vec::with_capacity(items.len());
        for item in items {
            operands.push(self.bind_condition(item)?);
        }
        for pair in items.windows(2) {
            self.deprecate_signs(op, pair[0].span.end, pair[1].span.start);
        }
        Expr::balanced(op, operands).ok_or_else(|| Error::internal("a connective without operands"))
    }

    /// `&&` and `||` instead of AND and OR, between two operands.
    fn deprecate_signs(&mut self, op: BinaryOp, from: u32, to: u32) {
        let between = ast::Span { start: from, end: to };
        let has = |signs: &[u8]| between.of(&self.source).windows(2).any(|pair| pair == signs);
        if op == BinaryOp::And && has(b"&&") {
            self.deprecate(
                "'&&' is deprecated and will be removed in a future release. Please use AND instead",
            );
        } else if op == BinaryOp::Or && has(b"||") {
            self.deprecate(
                "'|| as a synonym for OR' is deprecated and will be removed in a future release. Please \
                 use OR instead",
            );
        }
    }

    fn bind_xor(&mut self, left: &ast::Expr, right: &ast::Expr) -> Result<Expr> {
        let left = self.bind_condition(left)?;
        let right = self.bind_condition(right)?;
        Ok(logical(BinaryOp::Xor, left, right))
    }

    fn bind_is(&mut self, expr: &ast::Expr, test: ast::IsTest, negated: bool) -> Result<Expr> {
        let operand = Box::new(self.bind_number(expr)?);
        let op = match (test, negated) {
            (ast::IsTest::Null | ast::IsTest::Unknown, false) => UnaryOp::IsNull,
            (ast::IsTest::Null | ast::IsTest::Unknown, true) => UnaryOp::IsNotNull,
            (ast::IsTest::True, false) => UnaryOp::IsTrue,
            (ast::IsTest::True, true) => UnaryOp::IsNotTrue,
            (ast::IsTest::False, false) => UnaryOp::IsFalse,
            (ast::IsTest::False, true) => UnaryOp::IsNotFalse,
        };
        Ok(Expr::Unary { op, operand, ty: DataType::boolean().with_nullable(false) })
    }

    fn bind_like(&mut self, like: &ast::Like) -> Result<Expr> {
        let operand = self.bind_single(&like.expr)?;
        let mut pattern = self.bind_single(&like.pattern)?;
        let connection = self.input.bind.collation_connection;
        self.infer(&mut pattern, &DataType::varchar(16_383, connection));
        refuse_geometries([&operand, &pattern], "like")?;
        let collation = collation::aggregate(
            [&operand, &pattern],
            &self.coercibilities,
            "like",
            Differing::Refuse,
        )?;
        let escape = match &like.escape {
            Some(escape) => Some(Box::new(self.bind_single(escape)?)),
            None => None,
        };
        let operand = self.operand_in(as_text(operand, collation), collation)?;
        let pattern = self.operand_in(as_text(pattern, collation), collation)?;
        Ok(Expr::Like {
            operand: Box::new(operand),
            pattern: Box::new(pattern),
            escape,
            negated: like.negated,
            collation,
        })
    }

    // --- CASE, casts, collations

    fn bind_case(&mut self, case: &ast::Case) -> Result<Expr> {
        let operand = match &case.operand {
            Some(operand) => {
                let mut sides: Vec<&ast::Expr> = vec![operand];
                sides.extend(case.whens.iter().map(|(when, _)| when));
                let mut bound = self.bind_compared(&sides)?;
                let texts: Vec<&Expr> = bound.iter().collect();
                let is_row = texts.iter().any(|side| matches!(side, Expr::Row(_)));
                // Beside a number texts are numbers.
                if !is_row && bound[0].ty().is_string() {
                    self.comparison_collation(&texts, "case")?;
                }
                let first = bound.swap_remove(0);
                // Unlike `=`, CASE compares a document by its text, but for numbers.
                let is_text = first.ty().kind == TypeKind::Json
                    && !bound.iter().any(|when| when.ty().is_numeric());
                Some(if is_text { json_text(first) } else { first })
            }
            None => None,
        };
        // Without an operand, WHEN has truth values.
        let numeric = operand.as_ref().is_none_or(|operand| operand.ty().is_numeric());
        let mut branches = Vec::with_capacity(case.whens.len());
        for (when, then) in &case.whens {
            let mut when = if numeric { self.bind_number(when)? } else { self.bind_single(when)? };
            if let Some(operand) = &operand {
                when = match operand {
                    Expr::Row(_) => self.comparison(BinaryOp::Equal, operand.clone(), when)?,
                    _ => {
                        let when = self.when_beside(operand, when);
                        self.scalar_comparison(BinaryOp::Equal, operand.clone(), when)?
                    }
                };
            }
            branches.push((when, self.bind_single(then)?));
        }
        let otherwise = match &case.otherwise {
            Some(otherwise) => Some(self.bind_single(otherwise)?),
            None => None,
        };
        let Some(operand) = operand else { return self.case(branches, otherwise, "case") };
        // The comparison of each WHEN decides how; a plain operand may be read again for each.
        if let Expr::Row(columns) = operand {
            let nested = columns.iter().filter(|column| matches!(column, Expr::Row(_)));
            self.count_copies(nested, branches.len())?;
            return Ok(hold_operands(columns, self.case(branches, otherwise, "case")?));
        }
        if operand.as_column().is_some() || operand.is_constant() && !operand.is_volatile() {
            return Ok(hold_operands(vec![operand], self.case(branches, otherwise, "case")?));
        }
        self.case_with_operand(operand, branches, otherwise)
    }

    /// `CASE WHEN`; unifies the types of the results.
    pub(crate) fn case(
        &mut self,
        mut branches: Vec<(Expr, Expr)>,
        mut otherwise: Option<Expr>,
        operation: &str,
    ) -> Result<Expr> {
        let results: Vec<&Expr> =
            branches.iter().map(|(_, then)| then).chain(otherwise.as_ref()).collect();
        let mut ty = match results.iter().all(|expr| expr.ty().kind == types::TypeKind::Null) {
            true => DataType::null(),
            false => self.unify_exprs(&results, operation)?,
        };
        if ty.is_binary() {
            let texts =
                results.iter().copied().filter(|expr| crate::typing::is_stringy(&expr.ty()));
            let common =
                collation::aggregate(texts, &self.coercibilities, operation, Differing::Binary)?;
            for (_, then) in &mut branches {
                let null = Expr::literal(types::Value::Null, DataType::null());
                *then = self.joined_in(std::mem::replace(then, null), common)?;
            }
            otherwise = otherwise.map(|otherwise| self.joined_in(otherwise, common)).transpose()?;
            if common != CollationId::BINARY {
                let results: Vec<&Expr> =
                    branches.iter().map(|(_, then)| then).chain(otherwise.as_ref()).collect();
                ty = self.unify_exprs(&results, operation)?;
            }
        }
        ty.nullable |= otherwise.is_none();
        Ok(Expr::Case {
            operand: None,
            branches,
            otherwise: otherwise.map(Box::new),
            collation: CollationId::BINARY,
            ty,
        })
    }

    fn case_with_operand(
        &mut self,
        operand: Expr,
        branches: Vec<(Expr, Expr)>,
        otherwise: Option<Expr>,
    ) -> Result<Expr> {
        let mut collation = CollationId::BINARY;
        let mut values = Vec::with_capacity(branches.len());
        for (when, then) in branches {
            match when {
                Expr::Binary { right, collation: used, .. } => {
                    collation = used;
                    values.push((*right, then));
                }
                other => values.push((other, then)),
            }
        }
        let Expr::Case { branches, otherwise, ty, .. } = self.case(values, otherwise, "case")?
        else {
            return Err(Error::internal("CASE was bound to another expression"));
        };
        Ok(Expr::Case { operand: Some(Box::new(operand)), branches, otherwise, collation, ty })
    }

    fn bind_cast(&mut self, cast: &ast::Cast) -> Result<Expr> {
        if cast.array {
            return Err(Error::not_supported(
                "Use of CAST( .. AS .. ARRAY) outside of functional index in \
                 CREATE(non-SELECT)/ALTER TABLE or in general expressions",
            ));
        }
        if cast.time_zone.is_some() {
            return Err(Error::not_supported("AT TIME ZONE"));
        }
        let mut operand = self.bind_single(&cast.expr)?;
        let ty = self.cast_type(&cast.target, &operand)?;
        fixed::check_cast(&operand.ty(), &ty)?;
        if ty.is_numeric() && ty.kind != TypeKind::Year && is_binary_literal(&cast.expr) {
            operand = self.bind_number(&cast.expr)?;
        }
        self.infer(&mut operand, &ty);
        if ty.is_numeric() && ty.kind != TypeKind::Year {
            operand = self.datetime_number(operand);
        }
        if ty.is_integer()
            && matches!(operand, Expr::Subquery { .. })
            && operand.ty().kind == TypeKind::Json
        {
            operand = to_text(operand, CollationId::UTF8MB4_BIN, CastKind::Implicit);
        }
        if ty.is_string() && ty.is_binary() {
            operand = self.encoded(operand)?;
        }
        let cast_to = &cast.target;
        let padded = matches!(cast_to.name, ast::TypeName::Binary | ast::TypeName::Varbinary)
            .then_some(cast_to.length)
            .flatten();
        let value = Expr::Cast { operand: Box::new(operand), kind: CastKind::Explicit, ty };
        // BINARY(n) has n bytes.
        match padded {
            None => Ok(value),
            Some(length) => {
                let zero = literal::text(b"\0", CollationId::BINARY);
                self.function(FunctionRole::PadRight, vec![value, literal::integer(length), zero])
            }
        }
    }

    /// The type that CAST names.
    pub(crate) fn cast_type(&mut self, target: &ast::DataType, operand: &Expr) -> Result<DataType> {
        use ast::TypeName;
        let from = operand.ty();
        let fsp = |whole: u32| -> Result<(u32, u8)> {
            let digits = target.length.unwrap_or(0);
            if digits > 6 {
                bail!(TOO_BIG_PRECISION, digits, "CAST", 6);
            }
            Ok((literal::width(whole, digits as u8), digits as u8))
        };
        let ty = match target.name {
            TypeName::Signed | TypeName::BigInt | TypeName::Int => DataType::bigint(),
            TypeName::Unsigned => DataType::bigint_unsigned(),
            TypeName::Char | TypeName::Varchar => self.cast_text_type(target, &from)?,
            TypeName::Binary | TypeName::Varbinary => {
                let natural = match from.as_fixed() {
                    Some(kind) => kind.bytes() as u64,
                    None => u64::from(display_width(&from)) * character_bytes(&from),
                };
                let length = target.length.unwrap_or(natural);
                string_type(length.min(u64::from(u32::MAX)) as u32, CollationId::BINARY)
            }
            TypeName::Decimal => {
                let precision = target.length.filter(|length| *length > 0).unwrap_or(10);
                let scale = target.decimals.unwrap_or(0);
                if precision > 65 {
                    bail!(TOO_BIG_PRECISION, precision, "CAST", 65);
                }
                if scale > 30 {
                    bail!(TOO_BIG_SCALE, scale, "CAST", 30);
                }
                if u64::from(scale) > precision {
                    bail!(M_BIGGER_THAN_D, "CAST");
                }
                DataType::decimal(precision as u32, scale as u8)
            }
            TypeName::Date => DataType::new(TypeKind::Date, 10, 0),
            TypeName::Datetime | TypeName::Timestamp => {
                let (length, digits) = fsp(19)?;
                DataType::new(TypeKind::DateTime, length, digits)
            }
            TypeName::Time => {
                let (length, digits) = fsp(10)?;
                DataType::new(TypeKind::Time, length, digits)
            }
            TypeName::Year => DataType::new(TypeKind::Year, 4, 0),
            TypeName::Float if target.length.unwrap_or(0) <= 24 => {
                DataType::new(TypeKind::Float, 12, NOT_FIXED_DECIMALS)
            }
            TypeName::Float | TypeName::Double => DataType::double(),
            TypeName::Json => {
                let mut ty = DataType::new(TypeKind::Json, u32::MAX, 0);
                ty.collation = CollationId::BINARY;
                ty
            }
            TypeName::Uuid => DataType::fixed(Fixed::Uuid),
            TypeName::Inet4 => DataType::fixed(Fixed::Inet4),
            TypeName::Inet6 => DataType::fixed(Fixed::Inet6),
            _ => return Err(Error::not_supported(format!("CAST AS {:?}", target.name))),
        };
        // In strict mode a text may not fit.
        let always = ty.is_string() && self.input.bind.sql_mode.is_strict()
            || ty.is_temporal()
            || matches!(ty.kind, TypeKind::Year | TypeKind::Json)
            || ty.as_fixed().is_some()
            || from.nullable;
        Ok(ty.with_nullable(always || matches!(operand, Expr::Parameter { .. })))
    }

    fn cast_text_type(&mut self, target: &ast::DataType, from: &DataType) -> Result<DataType> {
        let mut collation = match &target.charset {
            None => self.input.bind.collation_connection,
            Some(name) => {
                self.note_charset(&name.text);
                match charset::charset_by_name(&name.text) {
                    Some(charset) => charset.default_collation,
                    None => bail!(UNKNOWN_CHARACTER_SET, name.text),
                }
            }
        };
        if target.binary {
            let charset = charset::collation_or_binary(collation).charset.name;
            let bin = charset::collations()
                .iter()
                .find(|c| c.charset.name == charset && c.is_bin())
                .map(|c| c.id);
            collation = bin.unwrap_or(collation);
        }
        if let Some(name) = &target.collation {
            collation = collation_for(&name.text, collation)?;
        }
        let length = target.length.unwrap_or(u64::from(display_width(from)));
        Ok(string_type(length.min(u64::from(u32::MAX)) as u32, collation))
    }

    fn bind_collate(&mut self, expr: &ast::Expr, name: &str) -> Result<Expr> {
        let operand = self.bind_single(expr)?;
        // A value that is not text is converted to the requested collation's character set.
        let operand = match charset::collation_by_name(name) {
            _ if operand.ty().is_string() => operand,
            Some(wanted) => to_text(operand, wanted.id, CastKind::Implicit),
            None => bail!(UNKNOWN_COLLATION, name),
        };
        let mut ty = operand.ty();
        let current = if ty.is_binary() { CollationId::BINARY } else { ty.collation };
        ty.collation = collation_for(name, current)?;
        ty.nullable = true;
        Ok(Expr::Collate { operand: Box::new(operand), ty })
    }
}

/// The collation called `name`, which must belong to the character set of `current` (1253).
fn collation_for(name: &str, current: CollationId) -> Result<CollationId> {
    let Some(wanted) = charset::collation_by_name(name) else { bail!(UNKNOWN_COLLATION, name) };
    let has = charset::collation_or_binary(current).charset.name;
    if wanted.charset.name != has {
        bail!(COLLATION_CHARSET_MISMATCH, wanted.name, has);
    }
    Ok(wanted.id)
}

/// Whether it is a datetime that a function returns as text.
pub(crate) fn is_datetime_text(expr: &Expr) -> bool {
    let Expr::Function { function, args, ty } = expr else { return false };
    let is_datetime = match function.traits.datetime_text {
        DatetimeText::Never => false,
        DatetimeText::Always => true,
        DatetimeText::FromDates => args.iter().any(|arg| arg.ty().has_date()),
    };
    is_datetime && ty.is_text()
}

/// 1241 when `expr` is a row.
pub(crate) fn single(expr: &Expr) -> Result<()> {
    match expr {
        Expr::Row(_) => bail!(OPERAND_COLUMNS, 1),
        _ => Ok(()),
    }
}

/// How many columns an operand has.
pub(crate) fn columns_of(expr: &Expr) -> usize {
    match expr {
        Expr::Row(items) => items.len(),
        _ => 1,
    }
}

pub(crate) fn binary(
    op: BinaryOp,
    left: Expr,
    right: Expr,
    collation: CollationId,
    ty: DataType,
) -> Expr {
    Expr::Binary { op, left: Box::new(left), right: Box::new(right), collation, ty }
}

/// AND, OR and XOR.
pub(crate) fn logical(op: BinaryOp, left: Expr, right: Expr) -> Expr {
    Expr::connected(op, left, right)
}

pub(crate) fn and(left: Expr, right: Expr) -> Expr {
    logical(BinaryOp::And, left, right)
}

pub(crate) fn not(operand: Expr) -> Expr {
    let ty = DataType::boolean().with_nullable(operand.ty().nullable);
    Expr::Unary { op: UnaryOp::Not, operand: Box::new(operand), ty }
}

/// Unary minus; literals are folded.
fn negate(operand: Expr) -> Expr {
    if let Expr::Literal { value, ty } = &operand {
        // A number that does not fit BIGINT is a DECIMAL.
        let wide = match value {
            Value::Int(i64::MIN) => Some(1i128 << 63),
            Value::UInt(number) if *number > 1 << 63 => Some(-i128::from(*number)),
            _ => None,
        };
        if let Some(wide) = wide {
            let precision = wide.unsigned_abs().ilog10() + 1;
            let ty = DataType::decimal(precision, 0).with_nullable(false);
            return Expr::literal(Value::Decimal(types::Decimal::from_i128(wide, 0)), ty);
        }
        let negative = match value {
            Value::Int(number) => number.checked_neg().map(Value::Int),
            Value::UInt(number) if *number == 1 << 63 => Some(Value::Int(i64::MIN)),
            Value::Double(number) => Some(Value::Double(-number)),
            Value::Decimal(number) => Some(Value::Decimal(number.neg())),
            _ => None,
        };
        if let Some(value) = negative {
            let mut ty = ty.clone();
            ty.unsigned = false;
            if matches!(value, Value::Int(i64::MIN)) {
                ty.length = 20;
            }
            return Expr::Literal { value, ty };
        }
    }
    let from = operand.ty();
    let mut ty = match number_class(&from) {
        NumberClass::Integer { unsigned } => {
            let mut ty = DataType::bigint();
            ty.length = display_width(&from).saturating_add(u32::from(unsigned)).clamp(2, 21);
            ty
        }
        NumberClass::Decimal if from.kind == TypeKind::Decimal => from.clone(),
        NumberClass::Decimal => DataType::decimal(display_width(&from), from.decimals),
        NumberClass::Real => DataType::double(),
    };
    ty.unsigned = false;
    ty.zerofill = false;
    let ty = ty.with_nullable(from.nullable);
    Expr::Unary { op: UnaryOp::Negate, operand: Box::new(operand), ty }
}

/// Bit operations give BIGINT UNSIGNED, or bytes when all operands are binary strings and one is not a literal.
fn bit_type(operands: &[&Expr]) -> DataType {
    let nullable = operands.iter().any(|operand| operand.ty().nullable);
    let bytes = operands.iter().all(|operand| operand.ty().is_binary())
        && operands.iter().any(|operand| !matches!(operand, Expr::Literal { .. }));
    if bytes {
        let length = operands.iter().map(|operand| operand.ty().length).max().unwrap_or(0);
        return string_type(length, CollationId::BINARY).with_nullable(nullable);
    }
    DataType::bigint_unsigned().with_nullable(nullable)
}

fn bit_op(op: ast::BinaryOp) -> BinaryOp {
    match op {
        ast::BinaryOp::BitAnd => BinaryOp::BitAnd,
        ast::BinaryOp::BitOr => BinaryOp::BitOr,
        ast::BinaryOp::BitXor => BinaryOp::BitXor,
        ast::BinaryOp::ShiftLeft => BinaryOp::ShiftLeft,
        _ => BinaryOp::ShiftRight,
    }
}

pub(crate) fn comparison_op(op: ast::BinaryOp) -> BinaryOp {
    match op {
        ast::BinaryOp::NullSafeEq => BinaryOp::NullSafeEqual,
        ast::BinaryOp::NotEq => BinaryOp::NotEqual,
        ast::BinaryOp::Lt => BinaryOp::Less,
        ast::BinaryOp::LtEq => BinaryOp::LessOrEqual,
        ast::BinaryOp::Gt => BinaryOp::Greater,
        ast::BinaryOp::GtEq => BinaryOp::GreaterOrEqual,
        _ => BinaryOp::Equal,
    }
}

/// Converts to text in `collation`; a text stays as it is.
pub(crate) fn as_text(expr: Expr, collation: CollationId) -> Expr {
    let ty = expr.ty();
    if ty.is_string() || ty.kind == TypeKind::Null {
        return expr;
    }
    to_text(expr, collation, CastKind::Implicit)
}

/// Most bytes of a character that a value of this type prints.
fn character_bytes(ty: &DataType) -> u64 {
    match ty.is_text() || ty.is_enum_or_set() {
        true => charset::collation_or_binary(ty.collation).charset.max_length.into(),
        false => 4,
    }
}

/// A document as its text.
pub(crate) fn json_text(document: Expr) -> Expr {
    to_text(document, CollationId::UTF8MB4_BIN, CastKind::Implicit)
}

/// Converts to a string of `collation`, as wide as the values print.
pub(crate) fn to_text(expr: Expr, collation: CollationId, kind: CastKind) -> Expr {
    let from = expr.ty();
    let mut width = display_width(&from);
    if collation == CollationId::BINARY && from.is_text() {
        width = width.saturating_mul(character_bytes(&from) as u32);
    }
    let ty = string_type(width, collation).with_nullable(from.nullable);
    Expr::Cast { operand: Box::new(expr), kind, ty }
}
