//! WITH RECURSIVE: a union of seeds and of steps that read the rows of the last round. Knows what a step may not contain.

use std::rc::Rc;
use std::sync::Arc;

use errors::{Error, ErrorCode, Result, bail};
use plan::{CteId, Expr, Logical, Making, OutputColumn, SetOperation};
use syntax::ast;
use types::DataType;

use crate::binder::Binder;
use crate::from::derived_names;
use crate::scope::{BoundQuery, CteDefinition};

const SINGLE_REFERENCE: ErrorCode = ErrorCode::CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE;

/// A part of the union: its query, and whether the operator before it keeps duplicates.
struct Part<'q> {
    body: &'q ast::SetExpr,
    all: bool,
}

/// The parts that were bound, each with whether the operator before it keeps duplicates.
#[derive(Default)]
struct Parts {
    seeds: Vec<(BoundQuery, bool)>,
    steps: Vec<BoundQuery>,
    /// A step is added by UNION DISTINCT: no row comes twice.
    distinct: bool,
}

impl Binder<'_> {
    pub(crate) fn bind_recursive(
        &mut self,
        cte: &Rc<CteDefinition>,
        alias: &Arc<str>,
    ) -> Result<Logical> {
        let ast::SetExpr::SetOp(chain) = &cte.query.body else {
            bail!(CTE_RECURSIVE_REQUIRES_UNION, cte.name)
        };
        if chain.rest.iter().any(|term| term.op != ast::SetOperator::Union) {
            bail!(CTE_RECURSIVE_REQUIRES_UNION, cte.name);
        }
        let bound = self.in_definition(cte, |binder| binder.bind_recursion(cte, chain))?;
        let names: Vec<Arc<str>> = bound.outputs.iter().map(|output| output.name.clone()).collect();
        if self.reads_outside(&bound) {
            // Its rows depend on the outer row: they are computed again for each.
            return self.attach(bound, None, alias.clone(), &names, false, None);
        }
        let shared = self.share_cte(cte, bound, &names)?;
        self.scan_cte(shared.id, &shared.columns, alias)
    }

    /// A reference of a recursive expression to itself: in the FROM clause of the step, once.
    ///
    /// # Errors
    /// 3577.
    pub(crate) fn count_recursive_reference(&self, cte: &CteDefinition) -> Result<()> {
        let count = cte.referenced.get() + 1;
        cte.referenced.set(count);
        if count > 1 || self.blocks.len() != cte.depth.get() {
            bail!(CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE, cte.name);
        }
        Ok(())
    }

    /// The union of seed and step: parts are steps from the first one on that refers to the expression itself.
    fn bind_recursion(
        &mut self,
        cte: &Rc<CteDefinition>,
        chain: &ast::SetOp,
    ) -> Result<BoundQuery> {
        let id = self.new_cte();
        let first = self.bind_set_expr(&chain.first).map_err(|error| match error.code().0 {
            // The expression itself, searched as a table; not another missing table.
            1146 if !error.message().contains(&format!(".{}'", cte.name)) => error,
            1146 | 1046 => errors::err!(CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST, cte.name),
            _ => error,
        })?;
        let block = first.block;
        let names = derived_names(&first, &cte.columns)?;
        let parts = self.bind_union_parts(cte, (id, &names), first, chain)?;
        if !parts.steps.is_empty()
            && let Some(item) = cte.query.order_by.first()
        {
            if mentions(item.expr.span.of(&self.source), &cte.name) {
                bail!(CTE_RECURSIVE_REQUIRES_SINGLE_REFERENCE, cte.name);
            }
            return refuse("ORDER BY over UNION in recursive Common Table Expression");
        }
        let distinct = parts.distinct;
        let seed_types = seed_columns(&names, &parts.seeds, self)?;
        let seed = self.merge_seeds(parts.seeds, block)?;
        let mut step = self.merge_parts(SetOperation::UnionAll, parts.steps, block)?;
        if matches!(step.plan, Logical::Nothing) {
            // Only an expression that nothing uses refers to this one: no step adds a row.
            let null = |(name, ty): &(Arc<str>, DataType)| OutputColumn {
                name: name.clone(),
                expr: Expr::literal(types::Value::Null, ty.clone().with_nullable(true)),
                source: None,
                making: Making::Kept,
            };
            step.outputs = seed_types.iter().map(null).collect();
        }
        let mut columns = Vec::with_capacity(names.len());
        let mut outputs = Vec::with_capacity(names.len());
        for (name, ty) in seed_types {
            let register = self.new_register();
            columns.push((register, ty.clone()));
            outputs.push(OutputColumn {
                name,
                expr: Expr::column(register, ty),
                source: None,
                making: Making::Kept,
            });
        }
        let plan = Logical::RecursiveCte {
            id,
            name: cte.name.clone(),
            seed: Box::new(seed.plan),
            seed_outputs: seed.outputs.into_iter().map(|output| output.expr).collect(),
            step: Box::new(step.plan),
            step_outputs: step.outputs.into_iter().map(|output| output.expr).collect(),
            distinct,
            columns,
            names,
        };
        let bound = BoundQuery { plan, outputs, mergeable: false, block };
        self.bind_tail(bound, &cte.query.order_by, cte.query.limit.as_ref())
    }

    fn bind_union_parts(
        &mut self,
        cte: &Rc<CteDefinition>,
        (id, names): (CteId, &[Arc<str>]),
        first: BoundQuery,
        chain: &ast::SetOp,
    ) -> Result<Parts> {
        let mut parts = Parts { seeds: vec![(first, true)], ..Parts::default() };
        for Part { body, all } in flattened(chain) {
            let columns = seed_columns(names, &parts.seeds, self)?;
            cte.referenced.set(0);
            cte.depth.set(self.blocks.len() + 1);
            *cte.working.borrow_mut() = Some((id, columns));
            let part = self.bind_set_expr(body);
            *cte.working.borrow_mut() = None;
            let part = match (part, nested(body)) {
                // What the operation is comes before what it names.
                (Err(error), Some(chain)) if error.code() == SINGLE_REFERENCE => {
                    check_nested(chain)?;
                    return Err(error);
                }
                (part, _) => part?,
            };
            if part.outputs.len() != names.len() {
                bail!(WRONG_NUMBER_OF_COLUMNS_IN_SELECT);
            }
            match (cte.referenced.get(), parts.steps.is_empty()) {
                (0, true) => parts.seeds.push((part, all)),
                (0, false) => bail!(CTE_RECURSIVE_REQUIRES_NONRECURSIVE_FIRST, cte.name),
                _ => {
                    check_step(cte, body, &part)?;
                    if parts.distinct && all {
                        return refuse(
                            "recursive query blocks with UNION DISTINCT then UNION ALL, in recursive Common Table Expression",
                        );
                    }
                    parts.distinct |= !all;
                    parts.steps.push(part);
                }
            }
        }
        Ok(parts)
    }

    /// The rows that a recursion begins with. A UNION DISTINCT makes all before it distinct.
    fn merge_seeds(
        &mut self,
        mut seeds: Vec<(BoundQuery, bool)>,
        block: u32,
    ) -> Result<BoundQuery> {
        let distinct = seeds.iter().rposition(|(_, all)| !all).map_or(0, |last| last + 1);
        let rest: Vec<BoundQuery> =
            seeds.split_off(distinct).into_iter().map(|seed| seed.0).collect();
        if seeds.is_empty() {
            return self.merge_parts(SetOperation::UnionAll, rest, block);
        }
        let seeds = seeds.into_iter().map(|seed| seed.0).collect();
        let merged = self.merge_parts(SetOperation::UnionDistinct, seeds, block)?;
        let parts = std::iter::once(merged).chain(rest).collect();
        self.merge_parts(SetOperation::UnionAll, parts, block)
    }

    fn merge_parts(
        &mut self,
        operation: SetOperation,
        mut parts: Vec<BoundQuery>,
        block: u32,
    ) -> Result<BoundQuery> {
        match parts.len() {
            0 => Ok(BoundQuery {
                plan: Logical::Nothing,
                outputs: Vec::new(),
                mergeable: false,
                block,
            }),
            1 => Ok(parts.remove(0)),
            _ => self.combine(operation, parts, block),
        }
    }
}

/// The operands of a chain of unions, with those of a UNION ALL in parentheses.
fn flattened(chain: &ast::SetOp) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    for term in &chain.rest {
        match nested(&term.right) {
            Some(inner) if inner.rest.iter().all(is_union_all) => {
                parts.push(Part { body: &inner.first, all: term.all });
                parts.extend(
                    inner.rest.iter().map(|part| Part { body: &part.right, all: term.all }),
                );
            }
            _ => parts.push(Part { body: &term.right, all: term.all }),
        }
    }
    parts
}

fn is_union_all(term: &ast::SetOpTerm) -> bool {
    term.op == ast::SetOperator::Union && term.all
}

/// A set operation, perhaps in parentheses.
fn nested(body: &ast::SetExpr) -> Option<&ast::SetOp> {
    match body {
        ast::SetExpr::SetOp(chain) => Some(chain),
        ast::SetExpr::Query(query) if query.with.is_none() => nested(&query.body),
        ast::SetExpr::Select(_)
        | ast::SetExpr::Table(_)
        | ast::SetExpr::Values(_)
        | ast::SetExpr::Query(_) => None,
    }
}

/// What a step, which refers to its own expression, may not be.
///
/// # Errors
/// 1235, 3575, 3576, 4114.
fn check_step(cte: &CteDefinition, body: &ast::SetExpr, part: &BoundQuery) -> Result<()> {
    if let Some(chain) = nested(body) {
        check_nested(chain)?;
    }
    if has_tail(body) {
        return refuse(
            "ORDER BY / LIMIT / SELECT DISTINCT in recursive query block of Common Table Expression",
        );
    }
    let mut aggregated = false;
    fn look(node: &Logical, found: &mut bool) {
        *found |= matches!(node, Logical::Aggregate { .. } | Logical::Window { .. });
        if !matches!(node, Logical::Derived { .. }) {
            node.for_each_input(&mut |input| look(input, found));
        }
    }
    look(&part.plan, &mut aggregated);
    if aggregated {
        bail!(CTE_RECURSIVE_FORBIDS_AGGREGATION, cte.name);
    }
    Ok(())
}

/// A set operation is no step.
fn check_nested(chain: &ast::SetOp) -> Result<()> {
    if chain.rest.iter().any(|term| term.op != ast::SetOperator::Union) {
        bail!(CTE_RECURSIVE_NOT_UNION);
    }
    refuse("right nested recursive query blocks, in Common Table Expression")
}

/// Whether ORDER BY, LIMIT or DISTINCT belongs to a block.
fn has_tail(body: &ast::SetExpr) -> bool {
    match body {
        ast::SetExpr::Select(select) => select.options.distinct,
        ast::SetExpr::Query(query) => {
            !query.order_by.is_empty() || query.limit.is_some() || has_tail(&query.body)
        }
        ast::SetExpr::Table(_) | ast::SetExpr::Values(_) | ast::SetExpr::SetOp(_) => false,
    }
}

fn refuse<T>(what: &str) -> Result<T> {
    Err(Error::not_supported(what))
}

/// The columns of a recursive expression: types of the seed, all nullable.
fn seed_columns(
    names: &[Arc<str>],
    seeds: &[(BoundQuery, bool)],
    binder: &Binder<'_>,
) -> Result<Vec<(Arc<str>, DataType)>> {
    let mut columns = Vec::with_capacity(names.len());
    for (index, name) in names.iter().enumerate() {
        let exprs: Vec<&Expr> = seeds.iter().map(|(seed, _)| &seed.outputs[index].expr).collect();
        let ty = binder.unify_exprs(&exprs, "UNION")?.with_nullable(true);
        columns.push((name.clone(), ty));
    }
    Ok(columns)
}

/// Whether the expression's text contains its own name: a recursive reference cannot hide from that, and a false alarm only costs the
/// check that follows.
pub(crate) fn mentions_itself(cte: &CteDefinition, source: &[u8]) -> bool {
    let text = cte.query.span.of(source);
    match text.is_empty() {
        true => matches!(cte.query.body, ast::SetExpr::SetOp(_)),
        false => mentions(text, &cte.name),
    }
}

/// Whether a text contains `name` as a word.
fn mentions(text: &[u8], name: &str) -> bool {
    let text = String::from_utf8_lossy(text);
    text.match_indices(name).any(|(at, _)| {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let before = text[..at].chars().next_back().is_some_and(word);
        let after = text[at + name.len()..].chars().next().is_some_and(word);
        !before && !after
    })
}
