//! IN and EXISTS in a WHERE clause become semi and anti joins.

use plan::{BinaryOp, Expr, Logical, Register, RegisterSet, SubqueryId, SubqueryKind};
use types::{DataType, TypeKind};

use crate::Planner;
use crate::graph::{Graph, RELATIONS_MAX, Relation, RelationKind, Source, definitions};
use crate::predicate::{has_subquery, split, substitute};

impl Planner<'_> {
    /// Turns predicates into relations where possible.
    pub(crate) fn unnest(&mut self, graph: &mut Graph) {
        if graph.relations.is_empty() {
            return;
        }
        let computed: RegisterSet = graph.projected.iter().map(|(register, _)| *register).collect();
        let mut rest = Vec::with_capacity(graph.predicates.len());
        for predicate in std::mem::take(&mut graph.predicates) {
            let done = match &predicate {
                Expr::Subquery { id, kind, negated, .. }
                    if graph.relations.len() < RELATIONS_MAX =>
                {
                    self.unnest_one(graph, *id, kind, *negated, &computed)
                }
                Expr::Unary { op: plan::UnaryOp::Not, operand, .. } => match &**operand {
                    Expr::Subquery { id, kind, negated, .. }
                        if graph.relations.len() < RELATIONS_MAX =>
                    {
                        self.unnest_one(graph, *id, kind, !*negated, &computed)
                    }
                    _ => false,
                },
                _ => false,
            };
            if !done {
                rest.push(predicate);
            }
        }
        // Conditions of a semi join that turned into an inner one have been added in the meantime.
        rest.append(&mut graph.predicates);
        graph.predicates = rest;
    }

    fn unnest_one(
        &mut self,
        graph: &mut Graph,
        id: SubqueryId,
        kind: &SubqueryKind,
        negated: bool,
        computed: &RegisterSet,
    ) -> bool {
        let index = id.0 as usize;
        let left: &[Expr] = match kind {
            SubqueryKind::Exists => &[],
            SubqueryKind::In(left) => left,
            SubqueryKind::Scalar(_) | SubqueryKind::Quantified(..) => {
                return false;
            }
        };
        if left.iter().any(|expr| has_subquery(expr) || expr.is_volatile()) {
            return false;
        }
        let subquery = &self.subqueries[index];
        if subquery.outer.iter().any(|register| computed.contains(*register)) {
            return false;
        }
        let is_in = matches!(kind, SubqueryKind::In(_));
        // NOT IN is an anti join only where no NULL can make the result unknown.
        if negated && is_in && left.iter().chain(&subquery.outputs).any(|expr| expr.ty().nullable) {
            return false;
        }
        let correlated = !subquery.outer.is_empty();
        let computed_once = is_in && !correlated && !negated;
        if !(is_simple(&subquery.root) || computed_once) {
            return false;
        }
        if subquery.outputs.iter().any(|output| has_subquery(output) || output.is_volatile()) {
            return false;
        }
        // Kept: a part of the statement may be planned more than once, and not all plans absorb it.
        let root = self.subqueries[index].root.clone();
        let outputs = self.subqueries[index].outputs.clone();
        self.absorbed[index] = true;
        let relation = self.semi_relation(graph, root, left, outputs, negated);
        self.add_semi(graph, relation);
        true
    }

    fn semi_relation(
        &mut self,
        graph: &Graph,
        root: Logical,
        left: &[Expr],
        mut outputs: Vec<Expr>,
        negated: bool,
    ) -> Relation {
        let mut conditions = Vec::new();
        let mut computed: Vec<(Register, Expr)> = Vec::new();
        let mut root = root;
        loop {
            root = match root {
                Logical::Filter { input, predicate } => {
                    split(predicate, &mut conditions);
                    *input
                }
                Logical::Project { input, columns }
                    if !columns
                        .iter()
                        .any(|(_, expr)| expr.is_volatile() || has_subquery(expr)) =>
                {
                    computed.extend(columns);
                    *input
                }
                Logical::Sort { input, .. } | Logical::Distinct { input, .. } => *input,
                other => {
                    root = other;
                    break;
                }
            };
        }
        for condition in &mut conditions {
            substitute(condition, &computed);
        }
        let collation_of = |left: &Expr, right: &Expr| comparison_collation(left, right);
        for (left, right) in left.iter().zip(&mut outputs) {
            substitute(right, &computed);
            let nullable = left.ty().nullable || right.ty().nullable;
            conditions.push(Expr::Binary {
                op: BinaryOp::Equal,
                collation: collation_of(left, right),
                left: Box::new(left.clone()),
                right: Box::new(right.clone()),
                ty: types::DataType::boolean().with_nullable(nullable),
            });
        }
        let defines = definitions(&root, &self.instances);
        let reads = self.reads_of(&root);
        let mut after = 0;
        let mut lateral = false;
        for (index, relation) in graph.relations.iter().enumerate() {
            if relation.defines.intersects(&reads) {
                after |= 1 << index;
                lateral = true;
            }
        }
        let source = match root {
            Logical::Get(id) => Source::Table(id),
            other => Source::Logical(other),
        };
        let kind = if negated { RelationKind::Anti } else { RelationKind::Semi };
        Relation { source, kind, defines, on: conditions, local: Vec::new(), after, lateral }
    }

    /// A semi join that can match one row only is an inner join.
    fn add_semi(&mut self, graph: &mut Graph, mut relation: Relation) {
        if relation.kind == RelationKind::Semi && self.matches_once(&relation) {
            relation.kind = RelationKind::Inner;
            graph.predicates.append(&mut relation.on);
        }
        graph.relations.push(relation);
    }

    /// The same join with the distinct values of a semi join's inner side as an ordinary relation, which may then come first.
    pub(crate) fn distinct_variant(&self, graph: &Graph) -> Option<Graph> {
        let index = graph.relations.iter().position(|relation| {
            relation.kind == RelationKind::Semi && !relation.lateral && relation.after != 0
        })?;
        let relation = &graph.relations[index];
        let mut columns = Vec::new();
        for condition in &relation.on {
            let Expr::Binary { op: BinaryOp::Equal, left, right, collation, .. } = condition else {
                return None;
            };
            let inner = [left, right].into_iter().find(|side| {
                side.as_column().is_some_and(|register| relation.defines.contains(register))
            })?;
            let other = if std::ptr::eq(inner, left) { right } else { left };
            let ty = inner.ty();
            if self.reads(other).intersects(&relation.defines)
                || (ty.is_string() && *collation != ty.collation)
            {
                return None;
            }
            columns.push((inner.as_column()?, ty));
        }
        let mut input = match &relation.source {
            Source::Table(id) => Logical::Get(*id),
            Source::Logical(node) => node.clone(),
        };
        for predicate in &relation.local {
            input = Logical::Filter { input: Box::new(input), predicate: predicate.clone() };
        }
        let mut variant = graph.clone();
        let relation = &mut variant.relations[index];
        relation.source = Source::Logical(Logical::Distinct { input: Box::new(input), columns });
        relation.kind = RelationKind::Inner;
        relation.after = 0;
        relation.local.clear();
        let mut on = std::mem::take(&mut relation.on);
        variant.predicates.append(&mut on);
        Some(variant)
    }

    fn matches_once(&self, relation: &Relation) -> bool {
        let Source::Table(id) = &relation.source else { return false };
        let instance = self.instance(*id);
        let table = self.table(*id);
        let mut fixed: Vec<usize> = Vec::new();
        // That a row is current is a condition of its own.
        let own = relation.local.iter().filter(|_| table.row_times().is_some());
        for condition in relation.on.iter().chain(own) {
            let Expr::Binary { op: BinaryOp::Equal, left, right, collation, .. } = condition else {
                continue;
            };
            for (column, value) in [(left, right), (right, left)] {
                let Some(position) =
                    column.as_column().and_then(|register| instance.column_of(register))
                else {
                    continue;
                };
                let ty = &table.columns[position].ty;
                let comparable = if ty.is_string() {
                    *collation == ty.collation
                } else {
                    ty.is_integer() && value.ty().is_integer()
                        || ty.as_fixed().is_some() && value.ty().kind == ty.kind
                        || is_stored_time(ty, value)
                };
                if comparable && !self.reads(value).intersects(&relation.defines) {
                    fixed.push(position);
                }
            }
        }
        table.indexes.iter().any(|index| {
            index.unique
                && table
                    .distinct_parts(index)
                    .iter()
                    .all(|part| part.prefix_length.is_none() && fixed.contains(&part.column))
        })
    }
}

/// Whether a column of timestamps is compared with one as columns store it.
fn is_stored_time(ty: &DataType, value: &Expr) -> bool {
    let is_time = |ty: &DataType| ty.kind == TypeKind::Timestamp;
    is_time(ty) && matches!(value, Expr::Literal { ty, .. } if is_time(ty))
}

/// The collation in which `left IN (SELECT right ..)` compares: the binder has checked that there is one, and a column beats a
/// constant.
fn comparison_collation(left: &Expr, right: &Expr) -> types::CollationId {
    let (a, b) = (left.ty(), right.ty());
    if !(a.is_string() && b.is_string()) {
        return types::CollationId::BINARY;
    }
    if a.is_binary() || b.is_binary() {
        return types::CollationId::BINARY;
    }
    match (left, right) {
        (Expr::Collate { .. }, _) => a.collation,
        (_, Expr::Collate { .. }) => b.collation,
        (Expr::Literal { .. } | Expr::Parameter { .. }, _) => b.collation,
        _ => a.collation,
    }
}

/// Only joins, filters and projections: the conditions can be extracted.
fn is_simple(node: &Logical) -> bool {
    match node {
        Logical::Get(_)
        | Logical::InformationGet { .. }
        | Logical::CteScan { .. }
        | Logical::Derived { .. } => true,
        Logical::Filter { input, .. }
        | Logical::Project { input, .. }
        | Logical::Sort { input, .. }
        | Logical::Distinct { input, .. } => is_simple(input),
        Logical::Join { .. } if crate::graph::is_full_join(node) => false,
        Logical::Join { left, right, .. } => is_simple(left) && is_simple(right),
        Logical::OneRow
        | Logical::Nothing
        | Logical::Values { .. }
        | Logical::JsonRows(_)
        | Logical::Aggregate { .. }
        | Logical::Window { .. }
        | Logical::Limit { .. }
        | Logical::SetOperation { .. }
        | Logical::RecursiveCte { .. } => false,
    }
}
