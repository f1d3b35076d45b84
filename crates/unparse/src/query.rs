//! Queries to text.

use syntax::ast::*;

use crate::Printer;

impl Printer<'_> {
    pub(super) fn query(&mut self, query: &Query) {
        self.with(query.with.as_ref());
        self.set_expr(&query.body);
        self.order_by(&query.order_by);
        self.limit(query.limit.as_ref());
        for locking in &query.locking {
            self.locking(locking);
        }
        if let Some(into) = &query.into {
            self.into(into);
        }
    }

    pub(super) fn with(&mut self, with: Option<&With>) {
        let Some(with) = with else { return };
        self.s(if with.recursive { "with recursive " } else { "with " });
        let canonical = self.options.canonical;
        let mut first = true;
        self.list(&with.ctes, |p, cte| {
            p.when(canonical && !std::mem::take(&mut first), " ");
            p.ident(&cte.name);
            if !cte.columns.is_empty() {
                p.s(" ");
                p.paren_idents(&cte.columns);
            }
            p.s(" as (");
            p.query(&cte.query);
            p.s(")");
        });
        self.s(" ");
    }

    fn set_expr(&mut self, body: &SetExpr) {
        match body {
            SetExpr::Select(select) => self.select(select),
            SetExpr::Values(rows) => {
                self.s("values ");
                self.list(rows, |p, row| {
                    p.s("row(");
                    p.exprs(row);
                    p.s(")");
                });
            }
            SetExpr::Table(name) => {
                self.s("table ");
                self.object(name);
            }
            SetExpr::SetOp(chain) => self.set_operation(chain),
            SetExpr::Query(query) => {
                self.s("(");
                self.query(query);
                self.s(")");
            }
        }
    }

    fn set_operation(&mut self, chain: &SetOp) {
        let start = self.out.len();
        let mut before: Option<&SetOpTerm> = None;
        for (index, term) in chain.rest.iter().enumerate() {
            let same = before.is_none_or(|before| (before.op, before.all) == (term.op, term.all));
            if index == 0 {
                self.set_operand(&chain.first, term);
            } else if self.options.canonical && !same {
                self.out.insert(start, b'(');
                self.s(")");
            }
            self.s(match term.op {
                SetOperator::Union => " union ",
                SetOperator::Except => " except ",
                SetOperator::Intersect => " intersect ",
            });
            self.when(term.all, "all ");
            self.set_operand(&term.right, term);
            before = Some(term);
        }
    }

    /// An operand of a set operation; the canonical spelling leaves out redundant parentheses.
    fn set_operand(&mut self, body: &SetExpr, term: &SetOpTerm) {
        if self.options.canonical
            && let SetExpr::Query(query) = body
            && query.with.is_none()
            && query.order_by.is_empty()
            && query.limit.is_none()
            && query.locking.is_empty()
        {
            let plain = match &query.body {
                SetExpr::Select(_) | SetExpr::Values(_) | SetExpr::Table(_) => true,
                SetExpr::SetOp(inner) => {
                    term.op != SetOperator::Except
                        && inner.rest.iter().all(|one| (one.op, one.all) == (term.op, term.all))
                }
                SetExpr::Query(_) => false,
            };
            if plain {
                return self.set_expr(&query.body);
            }
        }
        self.set_expr(body);
    }

    fn select(&mut self, select: &Select) {
        self.s("select ");
        if let Some(hints) = &select.hints {
            self.s("/*+");
            self.s(hints);
            self.s("*/ ");
        }
        let o = &select.options;
        self.when(o.straight_join, "straight_join ");
        self.when(o.high_priority, "high_priority ");
        self.when(o.distinct, "distinct ");
        self.when(o.all && !self.options.canonical, "all ");
        self.when(o.small_result, "sql_small_result ");
        self.when(o.big_result, "sql_big_result ");
        self.when(o.buffer_result, "sql_buffer_result ");
        self.when(o.no_cache, "sql_no_cache ");
        self.when(o.calc_found_rows, "sql_calc_found_rows ");
        self.select_items(&select.items);
        if select.from.is_empty() {
            // The reference writes DUAL, with this space, only where a condition follows.
            match self.options.canonical {
                true => self.when(select.filter.is_some(), " from DUAL "),
                false => self.when(select.from_dual, " from dual"),
            }
        } else {
            self.s(" from ");
            if self.options.canonical && select.from.len() > 1 {
                self.s("(");
                for (index, factor) in select.from.iter().enumerate() {
                    self.when(index > 0, " join ");
                    self.table_factor(factor);
                }
                self.s(")");
            } else {
                self.table_factors(&select.from);
            }
        }
        self.filter(" where ", select.filter.as_ref());
        if let Some(group) = &select.group_by {
            self.group_by(group);
        }
        self.filter(" having ", select.having.as_ref());
        if !select.windows.is_empty() {
            self.s(" window ");
            self.list(&select.windows, |p, (name, spec)| {
                p.ident(name);
                p.s(" AS ");
                p.window_spec(spec);
                p.when(p.options.canonical, " ");
            });
        }
        self.filter(" qualify ", select.qualify.as_ref());
    }

    pub(super) fn filter(&mut self, word: &str, filter: Option<&Expr>) {
        if let Some(filter) = filter {
            self.s(word);
            self.condition(filter);
        }
    }

    pub(super) fn select_items(&mut self, items: &[SelectItem]) {
        self.list(items, |p, item| match &item.kind {
            SelectItemKind::Wildcard => p.s("*"),
            SelectItemKind::QualifiedWildcard(name) => {
                p.object(name);
                p.s(".*");
            }
            SelectItemKind::Expr { expr, alias } => {
                p.expr(expr);
                if let Some(alias) = alias {
                    p.s(" AS ");
                    p.ident(alias);
                }
            }
        });
    }

    fn group_by(&mut self, group: &GroupBy) {
        self.s(" group by ");
        self.list(&group.elements, Self::group_element);
        self.when(group.with_rollup, " with rollup");
    }

    fn group_element(&mut self, element: &GroupElement) {
        match element {
            GroupElement::Expr(expr) => self.expr(expr),
            GroupElement::Set(keys) => {
                self.s("(");
                self.exprs(keys);
                self.s(")");
            }
            GroupElement::Rollup(parts) => self.group_parts("rollup (", parts),
            GroupElement::Cube(parts) => self.group_parts("cube (", parts),
            GroupElement::Sets(elements) => {
                self.s("grouping sets (");
                self.list(elements, Self::group_element);
                self.s(")");
            }
        }
    }

    fn group_parts(&mut self, word: &str, parts: &[Vec<Expr>]) {
        self.s(word);
        self.list(parts, |p, part| {
            let several = part.len() > 1;
            p.when(several, "(");
            p.exprs(part);
            p.when(several, ")");
        });
        self.s(")");
    }

    pub(super) fn order_by(&mut self, items: &[OrderItem]) {
        if !items.is_empty() {
            self.s(" order by ");
            self.sorting(items, " desc");
        }
    }

    pub(super) fn sorting(&mut self, items: &[OrderItem], descending: &str) {
        self.list(items, |p, item| {
            p.expr(&item.expr);
            p.when(item.desc, descending);
        });
    }

    pub(super) fn limit(&mut self, limit: Option<&Limit>) {
        let Some(limit) = limit else { return };
        self.s(" limit ");
        if let Some(offset) = &limit.offset {
            self.expr(offset);
            self.s(",");
        }
        self.expr(&limit.count);
    }

    fn locking(&mut self, locking: &Locking) {
        self.s(match locking.strength {
            LockStrength::Update => " for update",
            LockStrength::Share => " for share",
            LockStrength::ShareMode => " lock in share mode",
        });
        if !locking.of.is_empty() {
            self.s(" of ");
            self.list(&locking.of, Self::object);
        }
        match locking.wait {
            LockWait::Wait => {}
            LockWait::NoWait => self.s(" nowait"),
            LockWait::SkipLocked => self.s(" skip locked"),
            LockWait::Seconds(seconds) => {
                self.s(" wait ");
                self.number(seconds);
            }
        }
    }

    fn into(&mut self, into: &Into) {
        match into {
            Into::Outfile { file, charset, format } => {
                self.s(" into outfile ");
                self.text(file);
                if let Some(charset) = charset {
                    self.s(" character set ");
                    self.word(charset);
                }
                self.file_format(format);
            }
            Into::Dumpfile(file) => {
                self.s(" into dumpfile ");
                self.text(file);
            }
            Into::Variables(variables) => {
                self.s(" into ");
                self.list(variables, |p, variable| match variable {
                    IntoVariable::User(name) => {
                        p.s("@");
                        p.ident(name);
                    }
                    IntoVariable::Local(variable) => p.ident(&variable.name),
                });
            }
        }
    }

    fn file_format(&mut self, format: &FileFormat) {
        let fields = [
            (" terminated by ", &format.fields_terminated_by),
            (
                if format.fields_optionally_enclosed {
                    " optionally enclosed by "
                } else {
                    " enclosed by "
                },
                &format.fields_enclosed_by,
            ),
            (" escaped by ", &format.fields_escaped_by),
        ];
        let lines = [
            (" starting by ", &format.lines_starting_by),
            (" terminated by ", &format.lines_terminated_by),
        ];
        for (word, parts) in [(" fields", &fields[..]), (" lines", &lines[..])] {
            if parts.iter().any(|(_, value)| value.is_some()) {
                self.s(word);
            }
            for (by, value) in parts {
                if let Some(value) = value {
                    self.s(by);
                    self.string(value);
                }
            }
        }
    }

    // --- tables

    pub(super) fn table_factors(&mut self, factors: &[TableFactor]) {
        self.list(factors, Self::table_factor);
    }

    fn table_factor(&mut self, factor: &TableFactor) {
        match factor {
            TableFactor::Table(table) => self.named_table(table),
            TableFactor::Derived(derived) => {
                self.when(derived.lateral, "lateral ");
                self.s("(");
                self.query(&derived.query);
                self.s(") ");
                self.ident(&derived.alias);
                if !derived.columns.is_empty() {
                    self.s(" ");
                    self.paren_idents(&derived.columns);
                }
            }
            TableFactor::JsonTable(table) => {
                self.s("json_table(");
                self.expr(&table.doc);
                self.s(", ");
                self.text(&table.path);
                self.json_columns(&table.columns);
                self.s(") ");
                self.ident(&table.alias);
            }
            TableFactor::Function(table) => {
                self.ident(&table.name);
                self.s("(");
                self.list(&table.args, Self::expr);
                self.s(")");
                if let Some(alias) = &table.alias {
                    self.s(" ");
                    self.ident(alias);
                }
            }
            TableFactor::Join(join) => self.join(join),
            TableFactor::List(items) => {
                self.s("(");
                self.table_factors(items);
                self.s(")");
            }
        }
    }

    fn join(&mut self, join: &Join) {
        self.s("(");
        self.table_factor(&join.left);
        self.when(join.condition == JoinCondition::Natural, " natural");
        self.s(match join.kind {
            JoinKind::Inner => " join ",
            JoinKind::Straight => " straight_join ",
            JoinKind::Left => " left join ",
            JoinKind::Right => " right join ",
            JoinKind::Full => " full outer join ",
        });
        self.table_factor(&join.right);
        match &join.condition {
            JoinCondition::None | JoinCondition::Natural => {}
            JoinCondition::On(condition) => {
                self.s(" on(");
                self.condition(condition);
                self.s(")");
            }
            JoinCondition::Using(columns) => {
                self.s(" using ");
                self.paren_idents(columns);
            }
        }
        self.s(")");
    }

    pub(super) fn named_table(&mut self, table: &NamedTable) {
        self.object(&table.name);
        if !table.partitions.is_empty() {
            self.s(" PARTITION ");
            self.paren_idents(&table.partitions);
        }
        if let Some(time) = &table.system_time {
            self.system_time(time);
        }
        if let Some(alias) = &table.alias {
            self.s(" ");
            self.ident(alias);
        }
        if let Some(sample) = &table.sample {
            let kind = if sample.bernoulli { "bernoulli" } else { "system" };
            self.s(&format!(" tablesample {kind} ("));
            self.expr(&sample.percent);
            self.s(")");
        }
        for hint in &table.index_hints {
            self.s(match hint.kind {
                IndexHintKind::Use => " USE INDEX ",
                IndexHintKind::Ignore => " IGNORE INDEX ",
                IndexHintKind::Force => " FORCE INDEX ",
            });
            self.s(match hint.scope {
                IndexHintScope::All => "",
                IndexHintScope::Join => "FOR JOIN ",
                IndexHintScope::OrderBy => "FOR ORDER BY ",
                IndexHintScope::GroupBy => "FOR GROUP BY ",
            });
            self.paren_idents(&hint.indexes);
        }
    }

    fn system_time(&mut self, time: &SystemTime) {
        self.s(" for system_time ");
        match time {
            SystemTime::All => self.s("all"),
            SystemTime::AsOf(point) => {
                self.s("as of ");
                self.system_point(point);
            }
            SystemTime::Between(low, high) => {
                self.s("between ");
                self.system_point(low);
                self.s(" and ");
                self.system_point(high);
            }
            SystemTime::FromTo(low, high) => {
                self.s("from ");
                self.system_point(low);
                self.s(" to ");
                self.system_point(high);
            }
        }
    }

    pub(super) fn system_point(&mut self, point: &SystemPoint) {
        match point {
            SystemPoint::Timestamp(at) => self.expr(at),
            SystemPoint::Transaction(at) => {
                self.s("transaction ");
                self.expr(at);
            }
        }
    }

    fn json_columns(&mut self, columns: &[JsonTableColumn]) {
        self.s(" columns (");
        for (index, column) in columns.iter().enumerate() {
            self.when(index > 0, ", ");
            self.json_column(column);
        }
        self.s(")");
    }

    fn json_column(&mut self, column: &JsonTableColumn) {
        match column {
            JsonTableColumn::Ordinality(name) => {
                self.ident(name);
                self.s(" for ordinality");
            }
            JsonTableColumn::Path { name, data_type, path, on_empty, on_error } => {
                self.ident(name);
                self.s(" ");
                self.json_type(data_type);
                self.s(" path ");
                self.text(path);
                self.json_on(on_empty.as_ref(), " on empty");
                self.json_on(on_error.as_ref(), " on error");
            }
            JsonTableColumn::Exists { name, data_type, path } => {
                self.ident(name);
                self.s(" ");
                self.json_type(data_type);
                self.s(" exists path ");
                self.text(path);
            }
            JsonTableColumn::Nested { path, columns } => {
                self.s("nested path ");
                self.text(path);
                self.json_columns(columns);
            }
        }
    }

    /// A text's character set is printed even when it is the default.
    fn json_type(&mut self, written: &DataType) {
        self.data_type(written);
        let is_text = matches!(written.name, TypeName::Char | TypeName::Varchar);
        self.when(
            self.options.canonical && is_text && written.charset.is_none(),
            " character set utf8mb4",
        );
    }

    /// `CREATE .. VIEW`.
    pub(super) fn create_view(&mut self, view: &CreateView) {
        self.s("CREATE ");
        self.when(view.flags.or_replace, "OR REPLACE ");
        self.s(match view.algorithm {
            ViewAlgorithm::Undefined => "ALGORITHM=UNDEFINED ",
            ViewAlgorithm::Merge => "ALGORITHM=MERGE ",
            ViewAlgorithm::Temptable => "ALGORITHM=TEMPTABLE ",
        });
        if let Some(definer) = &view.definer {
            self.s("DEFINER=");
            self.user(definer);
            self.s(" ");
        }
        self.s(match view.security {
            None => "",
            Some(SqlSecurity::Definer) => "SQL SECURITY DEFINER ",
            Some(SqlSecurity::Invoker) => "SQL SECURITY INVOKER ",
        });
        self.when(view.is_duality, "JSON RELATIONAL DUALITY ");
        self.s("VIEW ");
        self.when(view.flags.if_not_exists, "IF NOT EXISTS ");
        self.object(&view.name);
        if !view.columns.is_empty() {
            self.s(" ");
            self.paren_idents(&view.columns);
        }
        self.s(" AS ");
        self.query(&view.query);
        self.s(match view.check_option {
            None => "",
            Some(CheckOption::Cascaded) => " WITH CASCADED CHECK OPTION",
            Some(CheckOption::Local) => " WITH LOCAL CHECK OPTION",
        });
    }
}
