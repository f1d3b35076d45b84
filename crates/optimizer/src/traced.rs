//! Writes what planning considered and chose into a trace: names as in MySQL where the optimizers do the same.
//!
//! Planning writes only when it is given a trace; without one a look at an `Option` is all that it costs.

use plan::{Access, Expr, InstanceId};

use crate::Planner;
use crate::access::TablePlan;
use crate::graph::{Graph, RelationKind, Source};
use crate::join::{Candidate, Method, Step};
use crate::json::{Json, object};
use crate::trace::stepped;

impl Planner<'_> {
    /// The ways to read a table were compared, and the first of the cheapest was chosen. `paths` is empty without a trace.
    pub(crate) fn trace_paths(&self, id: InstanceId, paths: &[TablePlan], best: &TablePlan) {
        let Some(trace) = self.input.trace.filter(|trace| trace.parts.paths) else { return };
        let chosen = paths.iter().position(|path| path.cost <= best.cost);
        let paths = paths.iter().enumerate();
        let paths = paths.map(|(at, path)| self.trace_path(id, path, Some(at) == chosen));
        let paths = Json::List(paths.collect());
        let name = Json::Text(self.trace_table(id));
        trace
            .tables
            .borrow_mut()
            .push(object([("table", name), ("considered_access_paths", paths)]));
    }

    fn trace_table(&self, id: InstanceId) -> String {
        format!("`{}`", self.instance(id).alias)
    }

    fn trace_relation(&self, graph: &Graph, index: usize) -> Json {
        let relation = &graph.relations[index];
        Json::Text(match (&relation.source, relation.kind) {
            (Source::Table(id), _) => self.trace_table(*id),
            (Source::Logical(_), RelationKind::Semi | RelationKind::Anti) => "<subquery>".into(),
            (Source::Logical(_), RelationKind::Inner | RelationKind::Left) => "<derived>".into(),
        })
    }

    fn trace_path(&self, id: InstanceId, path: &TablePlan, chosen: bool) -> Json {
        let table = self.table(id);
        let named = |number: u32| {
            let found = table.indexes.iter().find(|index| index.id.0 == number);
            found.map(|index| ("index", Json::text(&index.name)))
        };
        let (kind, index) = match &path.access {
            Access::Unique { index, .. } => ("eq_ref", named(*index)),
            Access::Ranges { index, ranges, .. } => {
                let is_ref =
                    ranges.iter().all(|range| range.lower.is_none() && range.upper.is_none());
                (if is_ref { "ref" } else { "range" }, named(*index))
            }
            Access::Merge { arms, .. } => {
                let names: Vec<String> = arms
                    .iter()
                    .filter_map(|arm| table.indexes.iter().find(|known| known.id.0 == arm.index))
                    .map(|index| index.name.to_string())
                    .collect();
                ("index_merge", Some(("indexes", Json::texts(names))))
            }
            Access::Fulltext { .. } => ("fulltext", None),
            Access::Full { index: 0, .. } => ("scan", None),
            Access::Full { index, .. } => ("index_scan", named(*index)),
            Access::Walk(walk) => ("handler", named(walk.index)),
        };
        let mut members = vec![("access_type", Json::text(kind))];
        members.extend(index);
        members.push(("rows", rounded(path.rows)));
        members.push(("cost", rounded(path.cost)));
        members.push(("chosen", Json::Bool(chosen)));
        Json::Object(members)
    }

    /// One more relation behind others was tried, by this step. `paths` are the ways to read it; `is_best`: it costs less than what was known for the same
    /// relations.
    pub(crate) fn trace_order(
        &self,
        graph: &Graph,
        before: &[usize],
        step: &Step,
        paths: Vec<Json>,
        is_best: bool,
    ) {
        let Some(trace) = self.input.trace.filter(|trace| trace.parts.orders) else { return };
        let prefix = before.iter().map(|index| self.trace_relation(graph, *index)).collect();
        let table = self.trace_relation(graph, step.relation);
        let mut members = vec![("plan_prefix", Json::List(prefix)), ("table", table)];
        if !paths.is_empty() {
            members.push(("best_access_path", Json::List(paths)));
        }
        members.push(("join", Json::text(method_name(&step.method))));
        members.push(("rows_for_plan", rounded(step.rows)));
        members.push(("cost_for_plan", rounded(step.cost)));
        members.push(("pruned_by_cost", Json::Bool(!is_best)));
        trace.orders.borrow_mut().push(Json::Object(members));
    }

    /// What was considered for relation `index` alone.
    pub(crate) fn trace_alone(
        &self,
        graph: &Graph,
        index: usize,
        alone: &Candidate,
    ) -> Option<Json> {
        let trace = self.input.trace?;
        let mut members = vec![("table", self.trace_relation(graph, index))];
        if let Some(Json::Object(paths)) = trace.take_tables().pop() {
            members.extend(paths.into_iter().filter(|(name, _)| *name != "table"));
        }
        members.push(("rows", rounded(alone.rows)));
        members.push(("cost", rounded(alone.cost)));
        Some(Json::Object(members))
    }

    /// A join is planned. `alone` is about its relations, `steps` are the chosen order; of one relation they are empty.
    pub(crate) fn trace_block(&self, graph: &Graph, alone: Vec<Json>, steps: &[Step]) {
        let Some(trace) = self.input.trace else { return };
        let mut parts = vec![
            object([("condition_processing", self.trace_conditions(graph))]),
            object([("table_dependencies", self.trace_dependencies(graph))]),
            object([("rows_estimation", Json::List(alone))]),
        ];
        let again = trace.take_tables();
        // Of several relations it was said with the orders.
        if !again.is_empty() && steps.is_empty() {
            parts.push(object([("best_access_path", Json::List(again))]));
        }
        let orders = trace.orders.take();
        if !orders.is_empty() {
            parts.push(object([("considered_execution_plans", Json::List(orders))]));
        }
        if !steps.is_empty() {
            let chosen = steps.iter().enumerate().map(|(at, step)| {
                let join = if at == 0 { "first" } else { method_name(&step.method) };
                object([
                    ("table", self.trace_relation(graph, step.relation)),
                    ("join", Json::text(join)),
                    ("rows", rounded(step.rows)),
                    ("cost", rounded(step.cost)),
                ])
            });
            parts.push(object([("chosen_order", Json::List(chosen.collect()))]));
        }
        trace.blocks.borrow_mut().push(object([("join_optimization", stepped(parts))]));
    }

    fn trace_conditions(&self, graph: &Graph) -> Json {
        let context = self.context();
        let texts = |exprs: &[Expr]| Json::texts(exprs.iter().map(|expr| context.expr(expr)));
        let mut conditions = vec![("conditions", texts(&graph.predicates))];
        let of_tables: Vec<Json> = (0..graph.relations.len())
            .filter_map(|index| {
                let relation = &graph.relations[index];
                let own: Vec<Expr> = relation.local.iter().chain(&relation.on).cloned().collect();
                let table = self.trace_relation(graph, index);
                (!own.is_empty()).then(|| object([("table", table), ("attached", texts(&own))]))
            })
            .collect();
        if !of_tables.is_empty() {
            conditions.push(("attached_conditions_of_tables", Json::List(of_tables)));
        }
        Json::Object(conditions)
    }

    fn trace_dependencies(&self, graph: &Graph) -> Json {
        let relations = graph.relations.iter().enumerate().map(|(index, relation)| {
            let after = (0..graph.relations.len()).filter(|other| relation.after >> other & 1 == 1);
            object([
                ("table", self.trace_relation(graph, index)),
                ("row_may_be_null", Json::Bool(relation.kind == RelationKind::Left)),
                ("map_bit", Json::Count(index as u64)),
                (
                    "depends_on_map_bits",
                    Json::List(after.map(|at| Json::Count(at as u64)).collect()),
                ),
            ])
        });
        Json::List(relations.collect())
    }
}

fn method_name(method: &Method) -> &'static str {
    match method {
        Method::Lookup(_) => "index lookup for each row",
        Method::Hash => "hash join",
        Method::Reread => "read once, compare with each row",
        Method::Lateral => "computed for each row",
    }
}

/// Numbers of a trace: two digits after the point are more than an estimate has.
fn rounded(number: f64) -> Json {
    Json::Number((number * 100.0).round() / 100.0)
}
