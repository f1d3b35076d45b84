//! Expressions to text.

use syntax::ast::*;
use syntax::is_reserved_word;

use crate::Printer;

impl Printer<'_> {
    pub(super) fn exprs(&mut self, exprs: &[Expr]) {
        self.list(exprs, Self::expr);
    }

    /// `name(a, b)`.
    fn call(&mut self, name: &str, args: &[&Expr]) {
        self.s(name);
        self.s("(");
        self.list(args, |p, a| p.expr(a));
        self.s(")");
    }

    /// An expression where a truth value is wanted.
    pub(super) fn condition(&mut self, expr: &Expr) {
        if !self.options.canonical || is_truth_value(expr) {
            return self.expr(expr);
        }
        self.s("(0 <> ");
        self.expr(expr);
        self.s(")");
    }

    /// An operand: gets parentheses unless it prints its own.
    pub(super) fn operand(&mut self, expr: &Expr) {
        let bare = self.options.canonical
            && matches!(
                expr.kind,
                ExprKind::InSubquery { .. }
                    | ExprKind::Quantified { .. }
                    | ExprKind::MemberOf { .. }
            );
        self.when(bare, "(");
        self.expr(expr);
        self.when(bare, ")");
    }

    pub(super) fn infix(&mut self, left: &Expr, op: &str, right: &Expr) {
        self.s("(");
        self.operand(left);
        self.s(" ");
        self.s(op);
        self.s(" ");
        self.operand(right);
        self.s(")");
    }

    fn chain(&mut self, items: &[Expr], op: &str, truth: bool) {
        self.joined(items, op, |p, item| if truth { p.condition(item) } else { p.operand(item) });
    }

    /// `(not(` `inner` `))` around the output of `inner`.
    pub(super) fn negated(&mut self, negated: bool, inner: impl FnOnce(&mut Self)) {
        self.when(negated, "(not(");
        inner(self);
        self.when(negated, "))");
    }

    pub(super) fn expr(&mut self, expr: &Expr) {
        use ExprKind::*;
        match &expr.kind {
            Literal(literal) => self.literal(literal),
            Param(_) => self.s("?"),
            Column(column) => self.column(column),
            UserVar(name) => self.user_var(name),
            SystemVar(variable) => self.system_var(variable),
            Unary { op, expr } => self.unary(*op, expr),
            Binary { op, left, right } => self.infix(left, binary_text(*op), right),
            And(items) => self.chain(items, " and ", true),
            Or(items) => self.chain(items, " or ", true),
            Concat(items) if self.options.canonical => self.list_call("concat", items),
            Concat(items) => self.chain(items, " || ", false),
            Xor(left, right) => self.xor(left, right),
            NotSign(inner) if !self.options.canonical => {
                self.s("(!");
                self.operand(inner);
                self.s(")");
            }
            Not(inner) | NotSign(inner) => self.not(inner),
            Assign { variable, value } => self.assign(variable, value),
            Row(items) => self.list_call(if self.options.canonical { "" } else { "row" }, items),
            Subquery(query) => self.subquery("", query),
            Exists(query) => self.subquery("exists", query),
            Between(between) => self.between(between, between.negated),
            InList { expr, list, negated } => self.in_list(expr, list, *negated),
            InSubquery { expr, query, negated } => self.in_subquery(expr, query, *negated),
            Like(like) => self.like(like),
            Regexp { expr, pattern, negated } => self.regexp(expr, pattern, *negated),
            Is { expr, test, negated } => self.is(expr, *test, *negated),
            Quantified { left, op, all, query } => {
                self.quantified(left, binary_text(*op), *all, query)
            }
            MemberOf { value, array } => self.member_of(value, array),
            SoundsLike(left, right) => self.sounds_like(left, right),
            Case(case) => self.case(case),
            Collate { expr, collation } => self.collate(expr, collation),
            Function(call) => self.function(call),
            Aggregate(call) => self.aggregate(call),
            Window(call) => self.window_call(call),
            Cast(cast) => self.cast(cast),
            ConvertUsing { expr, charset } => self.convert_using(expr, charset),
            DateArith(arith) => {
                let op = if arith.subtract { " - interval " } else { " + interval " };
                self.date_arith(&arith.date, op, &arith.amount, arith.unit);
            }
            TimestampAdd { unit, amount, expr } => self.timestamp_add(*unit, amount, expr),
            TimestampDiff { unit, from, to } => {
                self.unit_call("timestampdiff(", *unit, &[from, to]);
            }
            Extract { unit, expr } => self.extract(*unit, expr),
            Position { needle, haystack } => self.position(needle, haystack),
            Substring(sub) => self.substring(sub),
            Trim(trim) => self.trim(trim),
            Char { args, charset } => self.char_call(args, charset.as_ref()),
            WeightString(weight) => self.weight_string(weight),
            GetFormat { kind, expr } => self.get_format(*kind, expr),
            Match(search) => self.match_against(search),
            JsonExtract { value, path, unquote } => self.json_extract(value, path, *unquote),
            JsonValue(value) => self.json_value(value),
            DualityObject(object) => self.duality_object(object),
            Default(None) => self.s("DEFAULT"),
            Default(Some(column)) => self.column_call("default", column),
            Values(column) => self.column_call("values", column),
            IntervalFunction(args) => self.list_call("interval", args),
            Grouping(args) => self.list_call("grouping", args),
            NextValue(name) => self.sequence_call("nextval", name),
            PreviousValue(name) => self.sequence_call("lastval", name),
            OdbcEscape { name, expr } => self.odbc_escape(name, expr),
        }
    }

    fn xor(&mut self, left: &Expr, right: &Expr) {
        self.s("(");
        self.condition(left);
        self.s(" xor ");
        self.condition(right);
        self.s(")");
    }

    fn assign(&mut self, variable: &Ident, value: &Expr) {
        self.s("(");
        self.user_var(variable);
        self.s(":=");
        self.expr(value);
        self.s(")");
    }

    fn collate(&mut self, expr: &Expr, collation: &Ident) {
        self.s("(");
        self.operand(expr);
        self.s(" collate ");
        self.word(collation);
        self.s(")");
    }

    pub(super) fn subquery(&mut self, before: &str, query: &Query) {
        self.s(before);
        self.s("(");
        self.query(query);
        self.s(")");
    }

    fn unary(&mut self, op: UnaryOp, expr: &Expr) {
        match op {
            UnaryOp::Plus if self.options.canonical => return self.expr(expr),
            UnaryOp::Binary if self.options.canonical => {
                self.s("cast(");
                self.expr(expr);
                return self.s(" as char charset binary)");
            }
            UnaryOp::Neg => self.s("-("),
            UnaryOp::Plus => self.s("+("),
            UnaryOp::BitNot => self.s("~("),
            UnaryOp::Binary => self.s("binary("),
        }
        self.expr(expr);
        self.s(")");
    }

    pub(super) fn between(&mut self, between: &Between, negated: bool) {
        self.s("(");
        self.operand(&between.expr);
        self.s(not(negated));
        self.s(" between ");
        self.operand(&between.low);
        self.s(" and ");
        self.operand(&between.high);
        self.s(")");
    }

    pub(super) fn quantified(&mut self, left: &Expr, op: &str, all: bool, query: &Query) {
        let canonical = self.options.canonical;
        match (op, all) {
            ("=", false) if canonical => return self.in_subquery(left, query, false),
            ("<>", true) if canonical => return self.in_subquery(left, query, true),
            _ => {}
        }
        self.when(!canonical, "(");
        self.operand(left);
        self.s(" ");
        self.s(op);
        self.subquery(if all { " all " } else { " any " }, query);
        self.when(!canonical, ")");
    }

    fn regexp(&mut self, expr: &Expr, pattern: &Expr, negated: bool) {
        if self.options.canonical {
            return self.negated(negated, |p| p.call("regexp_like", &[expr, pattern]));
        }
        self.infix(expr, if negated { "not regexp" } else { "regexp" }, pattern);
    }

    fn member_of(&mut self, value: &Expr, array: &Expr) {
        let parens = !self.options.canonical;
        self.when(parens, "(");
        self.operand(value);
        self.s(" member of (");
        self.expr(array);
        self.s(")");
        self.when(parens, ")");
    }

    fn sounds_like(&mut self, left: &Expr, right: &Expr) {
        if !self.options.canonical {
            return self.infix(left, "sounds like", right);
        }
        self.s("(");
        self.call("soundex", &[left]);
        self.s(" = ");
        self.call("soundex", &[right]);
        self.s(")");
    }

    fn like(&mut self, like: &Like) {
        let outside = like.negated && self.options.canonical;
        self.negated(outside, |p| {
            p.s("(");
            p.operand(&like.expr);
            p.s(if like.negated && !outside { " not like " } else { " like " });
            p.operand(&like.pattern);
            if let Some(escape) = &like.escape {
                p.s(" escape ");
                p.operand(escape);
            }
            p.s(")");
        });
    }

    pub(super) fn is(&mut self, expr: &Expr, test: IsTest, negated: bool) {
        let canonical = self.options.canonical;
        self.s("(");
        match test {
            IsTest::True | IsTest::False => self.condition(expr),
            IsTest::Null | IsTest::Unknown => self.operand(expr),
        }
        self.s(if negated { " is not " } else { " is " });
        self.s(match test {
            IsTest::Null => "null",
            IsTest::True => "true",
            IsTest::False => "false",
            IsTest::Unknown if canonical => "null",
            IsTest::Unknown => "unknown",
        });
        self.s(")");
    }

    fn case(&mut self, case: &Case) {
        self.s("(case ");
        if let Some(operand) = &case.operand {
            self.expr(operand);
            self.s(" ");
        }
        for (when, then) in &case.whens {
            self.s("when ");
            self.expr(when);
            self.s(" then ");
            self.expr(then);
            self.s(" ");
        }
        if let Some(otherwise) = &case.otherwise {
            self.s("else ");
            self.expr(otherwise);
            self.s(" ");
        }
        self.s("end)");
    }

    // --- constants and variables

    pub(super) fn literal(&mut self, literal: &Literal) {
        match literal {
            Literal::Null => self.s("NULL"),
            Literal::Bool(value) => self.s(if *value { "true" } else { "false" }),
            Literal::Integer(value) => self.number(value),
            Literal::Decimal(text) | Literal::Float(text) => self.s(text),
            Literal::String(string) => {
                if let Some(introducer) = &string.introducer {
                    self.introducer(introducer);
                } else if let Some(introducer) = self.options.introducer {
                    self.s("_");
                    self.s(introducer);
                } else if string.national && !self.options.canonical {
                    self.s("N");
                }
                self.string(&string.value);
            }
            Literal::Hex(binary) => self.binary(binary, false),
            Literal::Bit(binary) => self.binary(binary, !self.options.canonical),
            // The reference writes a literal in braces as one without.
            Literal::Temporal { kind, text, in_braces }
                if *in_braces && !self.options.canonical =>
            {
                self.s(match kind {
                    TemporalKind::Date => "{d ",
                    TemporalKind::Time => "{t ",
                    TemporalKind::Timestamp => "{ts ",
                });
                self.string(text);
                self.s("}");
            }
            Literal::Temporal { kind, text, .. } => {
                self.s(match kind {
                    TemporalKind::Date => "DATE",
                    TemporalKind::Time => "TIME",
                    TemporalKind::Timestamp => "TIMESTAMP",
                });
                self.string(text);
            }
        }
    }

    /// `_charset`; the reference writes out the full name of `utf8`.
    fn introducer(&mut self, charset: &Ident) {
        self.s("_");
        if self.options.canonical && charset.is("utf8") {
            self.s("utf8mb3");
        } else {
            self.word(charset);
        }
    }

    fn binary(&mut self, binary: &BinaryLiteral, bits: bool) {
        if let Some(introducer) = &binary.introducer {
            self.introducer(introducer);
            self.s(" ");
        }
        let digits: String = if bits {
            binary.value.iter().map(|b| format!("{b:08b}")).collect()
        } else {
            binary.value.iter().map(|b| format!("{b:02X}")).collect()
        };
        match (bits, digits.is_empty()) {
            (true, _) => self.s(&format!("b'{digits}'")),
            (false, true) => self.s("x''"),
            (false, false) => self.s(&format!("0x{digits}")),
        }
    }

    fn user_var(&mut self, name: &Ident) {
        self.s("@");
        self.ident(name);
    }

    fn system_var(&mut self, variable: &SystemVar) {
        self.s("@@");
        self.s(match variable.scope {
            None => "",
            Some(VarScope::Global) => "global.",
            Some(VarScope::Session) => "session.",
            Some(VarScope::Persist) => "persist.",
            Some(VarScope::PersistOnly) => "persist_only.",
            Some(VarScope::System) => "system.",
        });
        if let Some(component) = &variable.component {
            self.ident(component);
            self.s(".");
        }
        self.ident(&variable.name);
    }

    // --- functions

    fn function(&mut self, call: &FunctionCall) {
        let name = call.name.text.as_ref();
        if let Some(schema) = &call.schema {
            if !self.is_home(schema) {
                self.ident(schema);
                self.s(".");
            }
            self.ident(&call.name);
        } else if call.stored_only {
            self.function_name(&call.name);
            self.s(" ");
        } else if self.options.canonical {
            if let ("mod", [left, right]) = (name.to_ascii_lowercase().as_str(), &call.args[..]) {
                return self.infix(left, "%", right);
            }
            self.s(&canonical_name(name));
        } else {
            self.function_name(&call.name);
        }
        self.s("(");
        for (index, arg) in call.args.iter().enumerate() {
            self.when(index > 0, ",");
            self.expr(arg);
            if let Some(Some(alias)) = call.arg_names.get(index) {
                self.s(" AS ");
                self.ident(alias);
            }
        }
        self.s(")");
        if let Some(over) = &call.over {
            self.over(over);
        }
    }

    /// A quoted name stays quoted: without quotes it may be a keyword, like MIN.
    fn function_name(&mut self, name: &Ident) {
        if is_plain_name(&name.text) && !name.quoted {
            self.s(&name.text);
        } else {
            self.quoted(&name.text);
        }
    }

    fn aggregate(&mut self, call: &AggregateCall) {
        self.s(call.func.name());
        self.s("(");
        self.when(call.distinct, "distinct ");
        match (call.star, self.options.canonical) {
            (true, true) => self.s("0"),
            (true, false) => self.s("*"),
            (false, _) => self.exprs(&call.args),
        }
        if !call.order_by.is_empty() {
            self.s(" order by ");
            let canonical = self.options.canonical;
            let (ascending, descending) = if canonical { (" ASC", " DESC") } else { ("", " desc") };
            self.list(&call.order_by, |p, item| {
                p.expr(&item.expr);
                p.s(if item.desc { descending } else { ascending });
            });
        }
        if let Some(separator) = &call.separator {
            self.s(" separator ");
            self.string(separator);
        } else if self.options.canonical && call.func == AggregateFunc::GroupConcat {
            self.s(" separator ','");
        }
        self.limit(call.limit.as_ref());
        self.s(")");
        if let Some(over) = &call.over {
            self.over(over);
        }
    }

    fn window_call(&mut self, call: &WindowCall) {
        self.s(window_name(call.func));
        self.s("(");
        self.exprs(&call.args);
        self.s(")");
        self.when(call.from_last, " FROM LAST");
        self.when(call.ignore_nulls, " IGNORE NULLS");
        self.over(&call.over);
    }

    fn over(&mut self, over: &Over) {
        self.s(" OVER ");
        match over {
            Over::Name(name) => self.ident(name),
            Over::Spec(spec) => {
                self.window_spec(spec);
                self.when(self.options.canonical, " ");
            }
        }
    }

    pub(super) fn window_spec(&mut self, spec: &WindowSpec) {
        self.s("(");
        if let Some(base) = &spec.base {
            self.ident(base);
            self.s(" ");
        }
        if !spec.partition_by.is_empty() {
            self.s("PARTITION BY ");
            self.exprs(&spec.partition_by);
            self.s(" ");
        }
        if !spec.order_by.is_empty() {
            self.s("ORDER BY ");
            self.sorting(&spec.order_by, " desc");
            self.s(" ");
        }
        if let Some(frame) = &spec.frame {
            self.s(match frame.unit {
                FrameUnit::Rows => "ROWS BETWEEN ",
                FrameUnit::Range => "RANGE BETWEEN ",
                FrameUnit::Groups => "GROUPS BETWEEN ",
            });
            self.frame_bound(&frame.start);
            self.s(" AND ");
            self.frame_bound(&frame.end);
            self.s(match frame.exclude {
                FrameExclude::NoOthers => "",
                FrameExclude::CurrentRow => " EXCLUDE CURRENT ROW",
                FrameExclude::Group => " EXCLUDE GROUP",
                FrameExclude::Ties => " EXCLUDE TIES",
            });
        }
        self.s(")");
    }

    fn frame_bound(&mut self, bound: &FrameBound) {
        let (amount, unit, word) = match bound {
            FrameBound::UnboundedPreceding => return self.s("UNBOUNDED PRECEDING"),
            FrameBound::UnboundedFollowing => return self.s("UNBOUNDED FOLLOWING"),
            FrameBound::CurrentRow => return self.s("CURRENT ROW"),
            FrameBound::Preceding(amount, unit) => (amount, unit, " PRECEDING"),
            FrameBound::Following(amount, unit) => (amount, unit, " FOLLOWING"),
        };
        self.when(unit.is_some(), "INTERVAL ");
        self.expr(amount);
        if let Some(unit) = unit {
            self.s(" ");
            self.s(unit_name(*unit));
            self.when(self.options.canonical, " ");
        }
        self.s(word);
    }

    fn cast(&mut self, cast: &Cast) {
        if cast.convert && !self.options.canonical {
            self.s("convert(");
            self.expr(&cast.expr);
            self.s(",");
            self.cast_type(&cast.target);
            return self.s(")");
        }
        self.s("cast(");
        self.expr(&cast.expr);
        if let Some(zone) = &cast.time_zone {
            self.s(" at time zone ");
            self.text(zone);
        }
        self.s(" as ");
        self.cast_type(&cast.target);
        self.when(cast.array, " array");
        self.s(")");
    }

    // --- functions with special syntax

    fn convert_using(&mut self, expr: &Expr, charset: &Ident) {
        self.s("convert(");
        self.expr(expr);
        self.s(" using ");
        self.word(charset);
        self.s(")");
    }

    fn timestamp_add(&mut self, unit: IntervalUnit, amount: &Expr, expr: &Expr) {
        if self.options.canonical {
            return self.date_arith(expr, " + interval ", amount, unit);
        }
        self.unit_call("timestampadd(", unit, &[amount, expr]);
    }

    fn extract(&mut self, unit: IntervalUnit, expr: &Expr) {
        self.s("extract(");
        self.s(unit_name(unit));
        self.s(" from ");
        self.expr(expr);
        self.s(")");
    }

    fn position(&mut self, needle: &Expr, haystack: &Expr) {
        if self.options.canonical {
            return self.call("locate", &[needle, haystack]);
        }
        self.s("position(");
        self.expr(needle);
        self.s(" in ");
        self.expr(haystack);
        self.s(")");
    }

    fn substring(&mut self, sub: &Substring) {
        match &sub.length {
            Some(length) => self.call("substr", &[&sub.expr, &sub.from, length]),
            None => self.call("substr", &[&sub.expr, &sub.from]),
        }
    }

    fn char_call(&mut self, args: &[Expr], charset: Option<&Ident>) {
        self.s("char(");
        self.exprs(args);
        if let Some(charset) = charset {
            self.s(" using ");
            self.word(charset);
        }
        self.s(")");
    }

    fn weight_string(&mut self, weight: &WeightString) {
        self.s("weight_string(");
        self.expr(&weight.expr);
        if let Some((length, binary)) = weight.cast {
            self.s(if binary { " as binary(" } else { " as char(" });
            self.number(length);
            self.s(")");
        }
        if let Some((bytes, characters, flags)) = weight.widths {
            for number in [bytes, characters, flags] {
                self.s(",");
                self.number(number);
            }
        }
        self.s(")");
    }

    fn get_format(&mut self, kind: GetFormatKind, expr: &Expr) {
        self.s(match kind {
            GetFormatKind::Date => "get_format(DATE, ",
            GetFormatKind::Time => "get_format(TIME, ",
            GetFormatKind::Datetime => "get_format(DATETIME, ",
        });
        self.expr(expr);
        self.s(")");
    }

    fn duality_object(&mut self, object: &DualityObject) {
        self.s("json_duality_object(");
        let tags = object.tags;
        let written = [(tags.insert, "INSERT"), (tags.update, "UPDATE"), (tags.delete, "DELETE")];
        let written: Vec<&str> =
            written.iter().filter(|(is_set, _)| *is_set).map(|(_, name)| *name).collect();
        if !written.is_empty() {
            self.s(" WITH (");
            self.s(&written.join(","));
            self.s(") ");
        }
        for (position, member) in object.members.iter().enumerate() {
            self.when(position > 0, ",");
            self.text(&member.key);
            self.s(":");
            self.expr(&member.value);
        }
        self.s(")");
    }

    fn json_value(&mut self, value: &JsonValue) {
        self.s("json_value(");
        self.expr(&value.doc);
        self.s(", ");
        self.expr(&value.path);
        self.s(" returning ");
        match &value.returning {
            Some(returning) => self.returning_type(returning),
            None => self.s("char(512)"),
        }
        self.json_on(value.on_empty.as_ref(), " on empty");
        self.json_on(value.on_error.as_ref(), " on error");
        self.s(")");
    }

    /// A call whose argument is a column.
    fn column_call(&mut self, name: &str, column: &ColumnName) {
        self.s(name);
        self.s("(");
        self.column(column);
        self.s(")");
    }

    /// A call with a list of arguments.
    fn list_call(&mut self, name: &str, args: &[Expr]) {
        self.s(name);
        self.s("(");
        self.exprs(args);
        self.s(")");
    }

    /// A call whose argument is a sequence.
    fn sequence_call(&mut self, name: &str, sequence: &ObjectName) {
        self.s(name);
        self.s("(");
        if let Some(schema) = self.options.sequence_schema.filter(|_| sequence.schema.is_none()) {
            self.ident(&Ident::new(schema));
            self.s(".");
        }
        self.object(sequence);
        self.s(")");
    }

    fn odbc_escape(&mut self, name: &Ident, expr: &Expr) {
        self.s("{");
        self.ident(name);
        self.s(" ");
        self.expr(expr);
        self.s("}");
    }

    fn date_arith(&mut self, date: &Expr, op: &str, amount: &Expr, unit: IntervalUnit) {
        self.s("(");
        self.operand(date);
        self.s(op);
        self.operand(amount);
        self.s(" ");
        self.s(unit_name(unit));
        self.s(")");
    }

    fn unit_call(&mut self, name: &str, unit: IntervalUnit, args: &[&Expr]) {
        self.s(name);
        self.s(&unit_name(unit).to_ascii_uppercase());
        for arg in args {
            self.s(",");
            self.expr(arg);
        }
        self.s(")");
    }

    fn trim(&mut self, trim: &Trim) {
        self.s("trim(");
        let plain = trim.side == TrimSide::Both && trim.pattern.is_none();
        if !plain {
            self.s(match trim.side {
                TrimSide::Both => "both ",
                TrimSide::Leading => "leading ",
                TrimSide::Trailing => "trailing ",
            });
            if let Some(pattern) = &trim.pattern {
                self.expr(pattern);
                self.s(" ");
            }
            self.s("from ");
        }
        self.expr(&trim.expr);
        self.s(")");
    }

    fn match_against(&mut self, search: &Match) {
        self.s("(match ");
        self.list(&search.columns, Self::column);
        self.s(" against (");
        self.operand(&search.against);
        self.s(match search.mode {
            MatchMode::NaturalLanguage => "",
            MatchMode::NaturalLanguageWithExpansion if !self.options.canonical => {
                " in natural language mode with query expansion"
            }
            MatchMode::NaturalLanguageWithExpansion | MatchMode::WithExpansion => {
                " with query expansion"
            }
            MatchMode::Boolean => " in boolean mode",
        });
        self.s("))");
    }

    fn json_extract(&mut self, value: &Expr, path: &StringLiteral, unquote: bool) {
        if !self.options.canonical {
            self.expr(value);
            self.s(if unquote { "->>" } else { "->" });
            return self.string(&path.value);
        }
        self.when(unquote, "json_unquote(");
        self.s("json_extract(");
        self.expr(value);
        self.s(",");
        self.literal(&Literal::String(Box::new(path.clone())));
        self.s(")");
        self.when(unquote, ")");
    }

    pub(super) fn json_on(&mut self, on: Option<&JsonOn>, when: &str) {
        match on {
            None => return,
            Some(JsonOn::Error) => self.s(" error"),
            Some(JsonOn::Null) => self.s(" null"),
            Some(JsonOn::Default(value)) => {
                self.s(" default ");
                self.expr(value);
            }
        }
        self.s(when);
    }
}

fn not(negated: bool) -> &'static str {
    if negated { " not" } else { "" }
}

/// Whether it always yields 0, 1 or NULL, by the reference's own rule.
pub(super) fn is_truth_value(expr: &Expr) -> bool {
    match &expr.kind {
        ExprKind::Binary { op, .. } => op.is_comparison(),
        ExprKind::And(_)
        | ExprKind::Or(_)
        | ExprKind::Xor(..)
        | ExprKind::Not(_)
        | ExprKind::NotSign(_)
        | ExprKind::Between(_)
        | ExprKind::InList { .. }
        | ExprKind::InSubquery { .. }
        | ExprKind::Like(_)
        | ExprKind::Regexp { .. }
        | ExprKind::Is { .. }
        | ExprKind::Quantified { .. }
        | ExprKind::MemberOf { .. }
        | ExprKind::SoundsLike(..)
        | ExprKind::Exists(_)
        | ExprKind::Match(_)
        | ExprKind::Literal(Literal::Bool(_)) => true,
        _ => false,
    }
}

/// Whether it is a predicate, as CHECK requires.
pub fn is_predicate(expr: &Expr) -> bool {
    const FUNCTIONS: [&str; 14] = [
        "IS_IPV4",
        "IS_IPV4_COMPAT",
        "IS_IPV4_MAPPED",
        "IS_IPV6",
        "IS_UUID",
        "ISNULL",
        "JSON_CONTAINS",
        "JSON_CONTAINS_PATH",
        "JSON_OVERLAPS",
        "JSON_SCHEMA_VALID",
        "JSON_VALID",
        "LIKE",
        "REGEXP_LIKE",
        "STRCMP",
    ];
    match &expr.kind {
        ExprKind::Function(call) => {
            call.schema.is_none() && FUNCTIONS.iter().any(|name| call.name.is(name))
        }
        _ => is_truth_value(expr),
    }
}

fn binary_text(op: BinaryOp) -> &'static str {
    match op {
        BinaryOp::Add => "+",
        BinaryOp::Sub => "-",
        BinaryOp::Mul => "*",
        BinaryOp::Div => "/",
        BinaryOp::IntDiv => "DIV",
        BinaryOp::Mod => "%",
        BinaryOp::BitAnd => "&",
        BinaryOp::BitOr => "|",
        BinaryOp::BitXor => "^",
        BinaryOp::ShiftLeft => "<<",
        BinaryOp::ShiftRight => ">>",
        BinaryOp::Eq => "=",
        BinaryOp::NullSafeEq => "<=>",
        BinaryOp::NotEq => "<>",
        BinaryOp::Lt => "<",
        BinaryOp::LtEq => "<=",
        BinaryOp::Gt => ">",
        BinaryOp::GtEq => ">=",
    }
}

fn window_name(func: WindowFunc) -> &'static str {
    match func {
        WindowFunc::RowNumber => "row_number",
        WindowFunc::Rank => "rank",
        WindowFunc::DenseRank => "dense_rank",
        WindowFunc::CumeDist => "cume_dist",
        WindowFunc::PercentRank => "percent_rank",
        WindowFunc::Ntile => "ntile",
        WindowFunc::Lead => "lead",
        WindowFunc::Lag => "lag",
        WindowFunc::FirstValue => "first_value",
        WindowFunc::LastValue => "last_value",
        WindowFunc::NthValue => "nth_value",
    }
}

/// The word of a unit in lower case.
pub(super) fn unit_name(unit: IntervalUnit) -> &'static str {
    match unit {
        IntervalUnit::Microsecond => "microsecond",
        IntervalUnit::Second => "second",
        IntervalUnit::Minute => "minute",
        IntervalUnit::Hour => "hour",
        IntervalUnit::Day => "day",
        IntervalUnit::Week => "week",
        IntervalUnit::Month => "month",
        IntervalUnit::Quarter => "quarter",
        IntervalUnit::Year => "year",
        IntervalUnit::SecondMicrosecond => "second_microsecond",
        IntervalUnit::MinuteMicrosecond => "minute_microsecond",
        IntervalUnit::MinuteSecond => "minute_second",
        IntervalUnit::HourMicrosecond => "hour_microsecond",
        IntervalUnit::HourSecond => "hour_second",
        IntervalUnit::HourMinute => "hour_minute",
        IntervalUnit::DayMicrosecond => "day_microsecond",
        IntervalUnit::DaySecond => "day_second",
        IntervalUnit::DayMinute => "day_minute",
        IntervalUnit::DayHour => "day_hour",
        IntervalUnit::YearMonth => "year_month",
    }
}

/// The main name of a function in lower case.
fn canonical_name(name: &str) -> String {
    let lower = name.to_ascii_lowercase();
    let main = match lower.as_str() {
        "lcase" => "lower",
        "ucase" => "upper",
        "current_date" => "curdate",
        "current_time" => "curtime",
        "current_timestamp" | "localtime" | "localtimestamp" => "now",
        "schema" => "database",
        "session_user" | "system_user" => "user",
        "power" => "pow",
        "character_length" => "char_length",
        "octet_length" => "length",
        "day" => "dayofmonth",
        _ => return lower,
    };
    main.to_owned()
}

/// Reserved words that are names of functions anyway.
const RESERVED_FUNCTIONS: &[&str] = &[
    "IF",
    "LEFT",
    "RIGHT",
    "REPLACE",
    "INSERT",
    "REPEAT",
    "MOD",
    "DATABASE",
    "SCHEMA",
    "CURRENT_DATE",
    "CURRENT_TIME",
    "CURRENT_TIMESTAMP",
    "LOCALTIME",
    "LOCALTIMESTAMP",
    "UTC_DATE",
    "UTC_TIME",
    "UTC_TIMESTAMP",
    "CURRENT_USER",
];

/// Whether a function's name may be printed without quotes.
fn is_plain_name(name: &str) -> bool {
    let word = !name.is_empty()
        && !name.as_bytes()[0].is_ascii_digit()
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    let known = RESERVED_FUNCTIONS.iter().any(|known| name.eq_ignore_ascii_case(known));
    word && (known || !is_reserved_word(name))
}
