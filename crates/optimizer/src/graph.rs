//! A tree of joins, filters and projections split into relations and the predicates between them.

use plan::{Expr, InstanceId, Logical, LogicalJoinKind, Register, RegisterSet, TableInstance};

use crate::Planner;
use crate::predicate::{self, rejects_null, split, substitute};

/// Relations that fit one bit mask.
pub(crate) const RELATIONS_MAX: usize = 61;

/// Relations whose columns one class may have for equalities to be added: more would multiply the orders that are tried, and gain
/// little.
const CLASS_RELATIONS_MAX: u32 = 4;

/// How a relation joins the previous ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RelationKind {
    Inner,
    Left,
    Semi,
    Anti,
}

/// The rows that a relation reads.
#[derive(Clone, Debug)]
pub(crate) enum Source {
    Table(InstanceId),
    Logical(Logical),
}

/// A member of a join.
#[derive(Clone, Debug)]
pub(crate) struct Relation {
    pub source: Source,
    pub kind: RelationKind,
    /// Registers that it sets.
    pub defines: RegisterSet,
    /// Left, Semi, Anti: the condition.
    pub on: Vec<Expr>,
    /// Predicates on this relation alone.
    pub local: Vec<Expr>,
    /// Relations that must come before.
    pub after: u64,
    /// It reads registers of earlier relations and must be opened again for each row.
    pub lateral: bool,
}

/// A join as a set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Graph {
    pub relations: Vec<Relation>,
    /// WHERE and ON of inner joins.
    pub predicates: Vec<Expr>,
    /// Computed columns, to be computed after all joins.
    pub projected: Vec<(Register, Expr)>,
    /// Predicates that need computed columns.
    pub late: Vec<Expr>,
    /// Columns of several relations that are equal in all rows: each pair has its predicate, and of those that a step of the join
    /// could check, one is equivalent to all.
    pub classes: Vec<RegisterSet>,
    /// The result is empty.
    pub empty: bool,
    straight: bool,
}

impl Graph {
    /// The class of a predicate that compares two of a class's columns.
    fn class_of(&self, predicate: &Expr) -> Option<usize> {
        let Expr::Binary { op: plan::BinaryOp::Equal, left, right, .. } = predicate else {
            return None;
        };
        let (left, right) = (left.as_column()?, right.as_column()?);
        self.classes.iter().position(|class| class.contains(left) && class.contains(right))
    }

    /// Which predicates are to be checked when the relations of `own` join those of `placed`. Of several that compare a class's columns
    /// the first is equivalent to all.
    pub(crate) fn live(
        &self,
        predicates: &[Expr],
        masks: &[u64],
        own: u64,
        placed: u64,
    ) -> Vec<bool> {
        let mut live: Vec<bool> = masks.iter().map(|mask| mask & !own & !placed == 0).collect();
        if self.classes.is_empty() {
            return live;
        }
        let mut said = vec![false; self.classes.len()];
        for ((predicate, mask), live) in predicates.iter().zip(masks).zip(&mut live) {
            if *live
                && mask & own != 0
                && mask & !own != 0
                && let Some(class) = self.class_of(predicate)
            {
                *live = !std::mem::replace(&mut said[class], true);
            }
        }
        live
    }

    /// Whether relation `one` cannot come before `other`.
    fn needs(&self, one: usize, other: usize) -> bool {
        let (mut reached, mut seen) = (self.relations[one].after | 1 << one, 0);
        while reached != seen {
            seen = reached;
            for (index, relation) in self.relations.iter().enumerate() {
                if seen >> index & 1 == 1 {
                    reached |= relation.after;
                }
            }
        }
        reached >> other & 1 == 1
    }
}

impl Planner<'_> {
    /// Splits `node`.
    pub(crate) fn graph(&mut self, node: Logical) -> Graph {
        let mut graph = Graph { straight: self.straight_join, ..Graph::default() };
        let hoist = !has_lateral(&node) && !self.asks_in_outer_join(&node);
        self.flatten(node, &mut graph, hoist);
        self.order_by_hints(&mut graph);
        graph
    }

    /// Applies the order that hints request, unless the joins themselves require the contrary.
    fn order_by_hints(&self, graph: &mut Graph) {
        let place = |graph: &Graph, id: plan::InstanceId| {
            let is_table =
                |relation: &Relation| matches!(relation.source, Source::Table(own) if own == id);
            graph.relations.iter().position(is_table)
        };
        for (before, after) in &self.join_orders {
            if let (Some(before), Some(after)) = (place(graph, *before), place(graph, *after))
                && !graph.needs(before, after)
            {
                graph.relations[after].after |= 1 << before;
            }
        }
    }

    /// Whether a subquery in the condition of an outer join reads what a projection below computes: that must be known there, and not
    /// only above all joins.
    fn asks_in_outer_join(&self, node: &Logical) -> bool {
        let mut computed = RegisterSet::new();
        let mut asked = RegisterSet::new();
        self.note_asked(node, &mut computed, &mut asked);
        computed.intersects(&asked)
    }

    fn note_asked(&self, node: &Logical, computed: &mut RegisterSet, asked: &mut RegisterSet) {
        if let Logical::Project { columns, .. } = node {
            columns.iter().for_each(|(register, _)| _ = computed.insert(*register));
        } else if let Logical::Join { on: Some(on), .. } = node {
            on.any(&mut |node| {
                if let Expr::Subquery { id, .. } = node {
                    asked.extend(self.outer(*id).iter().copied());
                }
                false
            });
        } else if !matches!(node, Logical::Filter { .. } | Logical::Join { .. }) {
            return;
        }
        node.for_each_input(&mut |input| self.note_asked(input, computed, asked));
    }

    fn flatten(&mut self, node: Logical, graph: &mut Graph, hoist: bool) {
        match node {
            Logical::OneRow => {}
            Logical::Filter { input, predicate } => {
                split(predicate, &mut graph.predicates);
                self.flatten(*input, graph, hoist);
            }
            Logical::Project { input, columns }
                if hoist && !columns.iter().any(|(_, expr)| expr.is_volatile()) =>
            {
                graph.projected.extend(columns);
                self.flatten(*input, graph, hoist);
            }
            Logical::Get(id) => {
                let defines = definitions(&Logical::Get(id), &self.instances);
                self.add_relation(graph, Source::Table(id), RelationKind::Inner, defines);
            }
            Logical::Join { kind: LogicalJoinKind::Left, left, right, on } => {
                self.flatten_left(*left, *right, on, graph, hoist);
            }
            Logical::Join { kind: LogicalJoinKind::Full, left, right, on } => {
                self.flatten_full((left, right), on, graph, hoist);
            }
            Logical::Join { kind, left, right, on } => {
                if let Some(on) = on {
                    split(on, &mut graph.predicates);
                }
                if kind == LogicalJoinKind::Straight {
                    self.note_misplaced(&right);
                }
                self.flatten(*left, graph, hoist);
                let before = graph.relations.len();
                self.flatten(*right, graph, hoist);
                if kind == LogicalJoinKind::Straight {
                    let mask = (1u64 << before) - 1;
                    for relation in &mut graph.relations[before..] {
                        relation.after |= mask;
                    }
                }
            }
            other => {
                let defines = definitions(&other, &self.instances);
                let source = Source::Logical(other);
                self.add_relation(graph, source, RelationKind::Inner, defines);
            }
        }
    }

    fn add_relation(
        &mut self,
        graph: &mut Graph,
        source: Source,
        kind: RelationKind,
        defines: RegisterSet,
    ) {
        let mut after = 0;
        if graph.straight {
            after = (1u64 << graph.relations.len()) - 1;
        }
        let mut lateral = false;
        if let Source::Logical(node) = &source
            && (matches!(node, Logical::Derived { lateral: true, .. })
                || is_full_join(node) && has_lateral(node))
        {
            let reads = self.reads_of(node);
            for (index, relation) in graph.relations.iter().enumerate() {
                if relation.defines.intersects(&reads) {
                    after |= 1 << index;
                    lateral = true;
                }
            }
        }
        graph.relations.push(Relation {
            source,
            kind,
            defines,
            on: Vec::new(),
            local: Vec::new(),
            after,
            lateral,
        });
    }

    /// Registers that a tree reads and does not set.
    pub(crate) fn reads_of(&self, node: &Logical) -> RegisterSet {
        let mut used = RegisterSet::new();
        node.visit_exprs(&mut |expr| expr.add_registers(&|id| self.outer(id), &mut used));
        used.subtract(&definitions(node, &self.instances));
        used
    }

    /// A full join: one relation, whose own joins are ordered apart. Where a predicate above cannot be true for the NULLs of one side, the
    /// rows that only the other side has are gone, and it is a left join.
    fn flatten_full(
        &mut self,
        (left, right): (Box<Logical>, Box<Logical>),
        on: Option<Expr>,
        graph: &mut Graph,
        hoist: bool,
    ) {
        let needs = |side: &Logical| {
            let defines = definitions(side, &self.instances);
            graph.predicates.iter().any(|predicate| {
                let mut predicate = predicate.clone();
                substitute(&mut predicate, &graph.projected);
                rejects_null(&predicate, &defines)
            })
        };
        let (needs_left, needs_right) = (needs(&left), needs(&right));
        if needs_left {
            return self.flatten_left(*left, *right, on, graph, hoist);
        }
        if needs_right {
            return self.flatten_left(*right, *left, on, graph, hoist);
        }
        let join = Logical::Join { kind: LogicalJoinKind::Full, left, right, on };
        let defines = definitions(&join, &self.instances);
        self.add_relation(graph, Source::Logical(join), RelationKind::Inner, defines);
    }

    /// Notes that a recursive expression is read where other rows come first: it would have to be first.
    fn note_misplaced(&mut self, node: &Logical) {
        if let Logical::CteScan { id, .. } = node {
            for recursion in &mut self.recursions {
                recursion.misplaced |= recursion.id == *id;
            }
        }
        if !self.recursions.is_empty() {
            node.for_each_input(&mut |input| self.note_misplaced(input));
        }
    }

    /// A left join, or an inner one when a predicate above cannot be true for NULLs.
    fn flatten_left(
        &mut self,
        left: Logical,
        right: Logical,
        on: Option<Expr>,
        graph: &mut Graph,
        hoist: bool,
    ) {
        let defines = definitions(&right, &self.instances);
        let rejected = graph.predicates.iter().any(|predicate| {
            let mut predicate = predicate.clone();
            substitute(&mut predicate, &graph.projected);
            rejects_null(&predicate, &defines)
        });
        if rejected {
            if let Some(on) = on {
                split(on, &mut graph.predicates);
            }
            self.flatten(left, graph, hoist);
            self.flatten(right, graph, hoist);
            return;
        }
        self.note_misplaced(&right);
        self.flatten(left, graph, hoist);
        let mut conditions = Vec::new();
        if let Some(on) = on {
            split(on, &mut conditions);
        }
        // A filter directly below may join the condition: rows that fail it match nothing either way.
        let mut right = right;
        while let Logical::Filter { input, predicate } = right {
            split(predicate, &mut conditions);
            right = *input;
        }
        let source = match right {
            Logical::Get(id) => Source::Table(id),
            other => Source::Logical(other),
        };
        self.add_relation(graph, source, RelationKind::Left, defines);
        let relation = graph.relations.last_mut().expect("just added");
        relation.on = conditions;
    }

    /// Sorts conditions to where they can be checked, after all projections are known.
    pub(crate) fn place_predicates(&mut self, graph: &mut Graph) {
        let computed: RegisterSet = graph.projected.iter().map(|(register, _)| *register).collect();
        let mut predicates = Vec::with_capacity(graph.predicates.len());
        for mut predicate in std::mem::take(&mut graph.predicates) {
            if self.subquery_reads(&predicate, &computed) || predicate.is_volatile() {
                graph.late.push(predicate);
                continue;
            }
            substitute(&mut predicate, &graph.projected);
            match predicate::constant_truth(&predicate) {
                Some(true) => {}
                Some(false) => graph.empty = true,
                None => predicate::factor(predicate, &mut predicates),
            }
        }
        self.derive_equalities(graph, &mut predicates);
        for index in 0..graph.relations.len() {
            self.place_conditions(graph, index);
        }
        for predicate in predicates {
            let reads = self.reads(&predicate);
            let mask = mask_of(&graph.relations, &reads);
            let single = mask.count_ones() == 1;
            let index = mask.trailing_zeros() as usize;
            if single && graph.relations[index].kind == RelationKind::Inner {
                graph.relations[index].local.push(predicate);
            } else {
                self.restrict_relations(graph, mask, &predicate);
                graph.predicates.push(predicate);
            }
        }
    }

    /// Filters relations early by the restrictions that an OR over several implies for each.
    fn restrict_relations(&self, graph: &mut Graph, mask: u64, predicate: &Expr) {
        for index in 0..graph.relations.len() {
            if mask >> index & 1 == 0 || graph.relations[index].kind != RelationKind::Inner {
                continue;
            }
            let relations = &graph.relations;
            let is_own = |expr: &Expr| mask_of(relations, &self.reads(expr)) == 1 << index;
            let restriction = predicate::restriction(predicate, is_own);
            graph.relations[index].local.extend(restriction);
        }
    }

    /// Conditions of an outer, semi or anti join: those on the relation alone filter it.
    fn place_conditions(&mut self, graph: &mut Graph, index: usize) {
        let conditions = std::mem::take(&mut graph.relations[index].on);
        for mut condition in conditions {
            substitute(&mut condition, &graph.projected);
            let reads = self.reads(&condition);
            let mask = mask_of(&graph.relations, &reads);
            graph.relations[index].after |= mask & !(1 << index);
            let relation = &mut graph.relations[index];
            if mask == 1 << index && !condition.is_volatile() {
                relation.local.push(condition);
            } else {
                relation.on.push(condition);
            }
        }
    }

    /// Whether a subquery in the expression reads one of these registers.
    fn subquery_reads(&self, expr: &Expr, registers: &RegisterSet) -> bool {
        expr.any(&mut |node| match node {
            Expr::Subquery { id, .. } => {
                self.outer(*id).iter().any(|register| registers.contains(*register))
            }
            _ => false,
        })
    }

    /// `a = b AND b = 5` also means `a = 5`: a constant applies to everything equal to it. `a = b AND b = c` also means `a = c`, so that
    /// two relations can be joined before the one that both were compared with.
    fn derive_equalities(&self, graph: &mut Graph, predicates: &mut Vec<Expr>) {
        let mut fixed: Vec<(Register, Expr)> = Vec::new();
        let mut linked: Vec<(Expr, Expr)> = Vec::new();
        for predicate in predicates.iter() {
            let Expr::Binary { op: plan::BinaryOp::Equal, left, right, .. } = predicate else {
                continue;
            };
            match (left.as_column(), right.as_column()) {
                (Some(_), Some(_)) if left.ty().is_integer() && right.ty().is_integer() => {
                    linked.push(((**left).clone(), (**right).clone()));
                }
                (Some(register), None) if is_plain_constant(right) => {
                    fixed.push((register, (**right).clone()));
                }
                (None, Some(register)) if is_plain_constant(left) => {
                    fixed.push((register, (**left).clone()));
                }
                _ => {}
            }
        }
        let mut done: RegisterSet = fixed.iter().map(|(register, _)| *register).collect();
        let mut next = 0;
        while next < fixed.len() {
            let (register, value) = fixed[next].clone();
            next += 1;
            if !value.ty().is_integer() {
                continue;
            }
            for (left, right) in &linked {
                let other = if left.as_column() == Some(register) {
                    right
                } else if right.as_column() == Some(register) {
                    left
                } else {
                    continue;
                };
                let Some(target) = other.as_column() else { continue };
                if done.insert(target) {
                    fixed.push((target, value.clone()));
                    predicates.push(equal(other.clone(), value.clone()));
                }
            }
        }
        // Classes with a value are filtered by it, each relation alone.
        linked.retain(|(left, _)| left.as_column().is_some_and(|column| !done.contains(column)));
        for class in equality_classes(&linked) {
            self.complete_class(graph, &class, &linked, predicates);
        }
    }

    /// Adds the implied equalities between a class's columns.
    fn complete_class(
        &self,
        graph: &mut Graph,
        class: &[Expr],
        linked: &[(Expr, Expr)],
        predicates: &mut Vec<Expr>,
    ) {
        let masks: Vec<u64> =
            class.iter().map(|column| mask_of(&graph.relations, &self.reads(column))).collect();
        let all = masks.iter().fold(0, |all: u64, mask| all | mask);
        let is_inner = |index: usize| graph.relations[index].kind == RelationKind::Inner;
        let fits = masks.iter().all(|mask| mask.count_ones() == 1)
            && all.count_ones() <= CLASS_RELATIONS_MAX
            && (0..graph.relations.len()).all(|index| all >> index & 1 == 0 || is_inner(index));
        if class.len() < 3 || !fits {
            return;
        }
        for (at, left) in class.iter().enumerate() {
            for right in &class[at + 1..] {
                let is_pair =
                    |(a, b): &(Expr, Expr)| (a, b) == (left, right) || (a, b) == (right, left);
                if !linked.iter().any(is_pair) {
                    predicates.push(equal(left.clone(), right.clone()));
                }
            }
        }
        graph.classes.push(class.iter().filter_map(Expr::as_column).collect());
    }
}

/// Columns that equalities make equal to one another, each class once.
fn equality_classes(linked: &[(Expr, Expr)]) -> Vec<Vec<Expr>> {
    let mut classes: Vec<Vec<Expr>> = Vec::new();
    for (left, right) in linked {
        let place = |classes: &[Vec<Expr>], column: &Expr| {
            classes.iter().position(|class| class.contains(column))
        };
        match (place(&classes, left), place(&classes, right)) {
            (None, None) => classes.push(vec![left.clone(), right.clone()]),
            (Some(class), None) => classes[class].push(right.clone()),
            (None, Some(class)) => classes[class].push(left.clone()),
            (Some(one), Some(other)) if one != other => {
                let (one, other) = (one.min(other), one.max(other));
                let more = classes.swap_remove(other);
                classes[one].extend(more);
            }
            _ => {}
        }
    }
    classes
}

fn equal(left: Expr, right: Expr) -> Expr {
    let nullable = left.ty().nullable || right.ty().nullable;
    Expr::Binary {
        op: plan::BinaryOp::Equal,
        left: Box::new(left),
        right: Box::new(right),
        collation: types::CollationId::BINARY,
        ty: types::DataType::boolean().with_nullable(nullable),
    }
}

fn is_plain_constant(expr: &Expr) -> bool {
    matches!(expr, Expr::Literal { .. } | Expr::Parameter { .. })
}

/// Which relations set registers of this set.
pub(crate) fn mask_of(relations: &[Relation], reads: &RegisterSet) -> u64 {
    relations
        .iter()
        .enumerate()
        .filter(|(_, relation)| relation.defines.intersects(reads))
        .fold(0, |mask, (index, _)| mask | 1 << index)
}

/// Registers that a tree sets.
pub(crate) fn definitions(node: &Logical, instances: &[TableInstance]) -> RegisterSet {
    let mut set = RegisterSet::new();
    node.add_definitions(instances, &mut set);
    set
}

/// Whether the tree is a full join, which is planned apart from the joins around it.
pub(crate) fn is_full_join(node: &Logical) -> bool {
    matches!(node, Logical::Join { kind: LogicalJoinKind::Full, .. })
}

fn has_lateral(node: &Logical) -> bool {
    match node {
        Logical::Derived { lateral, .. } => *lateral,
        Logical::Join { left, right, .. } => has_lateral(left) || has_lateral(right),
        Logical::Filter { input, .. } | Logical::Project { input, .. } => has_lateral(input),
        _ => false,
    }
}

/// How many relations a tree would be split into, at most.
pub(crate) fn count_relations(node: &Logical) -> usize {
    match node {
        node if is_full_join(node) => 1,
        Logical::Join { left, right, .. } => count_relations(left) + count_relations(right),
        Logical::Filter { input, .. } | Logical::Project { input, .. } => count_relations(input),
        _ => 1,
    }
}
