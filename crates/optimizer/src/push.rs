//! Moves a predicate down into a relation's own query.

use plan::{Expr, GroupSets, Logical, Register, RegisterSet, SetOperation};

use crate::Planner;
use crate::predicate::{has_subquery, substitute};

impl Planner<'_> {
    /// `node` with only the rows that satisfy `predicate`, checked as far down as possible.
    pub(crate) fn push(&self, node: Logical, predicate: Expr) -> Logical {
        if predicate.is_volatile() || has_subquery(&predicate) {
            return filter(node, predicate);
        }
        let reads = self.reads(&predicate);
        match node {
            Logical::Filter { input, predicate: other } => {
                let input = Box::new(self.push(*input, predicate));
                Logical::Filter { input, predicate: other }
            }
            Logical::Derived { input, columns, alias, block, lateral } => {
                let input = Box::new(self.push(*input, predicate));
                Logical::Derived { input, columns, alias, block, lateral }
            }
            Logical::Project { input, columns } => self.push_project(*input, columns, predicate),
            Logical::Sort { input, keys } => {
                Logical::Sort { input: Box::new(self.push(*input, predicate)), keys }
            }
            Logical::Distinct { input, columns } if covers(&columns, &reads, self, &input) => {
                Logical::Distinct { input: Box::new(self.push(*input, predicate)), columns }
            }
            Logical::Aggregate { input, keys, aggregates, scalar, sets, grouping } => {
                let known: RegisterSet = keys.iter().map(|(register, _)| *register).collect();
                let own = set_by_groups(&aggregates, &grouping);
                let mut inside = reads.clone();
                inside.subtract(&known);
                let movable = !scalar && sets == GroupSets::One && !inside.intersects(&own);
                let volatile = keys.iter().any(|(_, key)| key.is_volatile());
                if !movable || volatile || !self.only_keys(&input, &keys, &reads) {
                    let node =
                        Logical::Aggregate { input, keys, aggregates, scalar, sets, grouping };
                    return filter(node, predicate);
                }
                let mut predicate = predicate;
                let computed: Vec<(Register, Expr)> = keys
                    .iter()
                    .filter(|(register, key)| key.as_column() != Some(*register))
                    .cloned()
                    .collect();
                substitute(&mut predicate, &computed);
                let input = Box::new(self.push(*input, predicate));
                Logical::Aggregate { input, keys, aggregates, scalar, sets, grouping }
            }
            Logical::Window { input, partition_by, order_by, calls } => {
                let parts: RegisterSet = partition_by.iter().filter_map(Expr::as_column).collect();
                let mut inner = RegisterSet::new();
                input.add_definitions(&self.instances, &mut inner);
                let mut loose = reads.clone();
                loose.subtract(&parts);
                let outputs: RegisterSet = calls.iter().map(|call| call.output).collect();
                if loose.intersects(&inner) || loose.intersects(&outputs) {
                    return filter(
                        Logical::Window { input, partition_by, order_by, calls },
                        predicate,
                    );
                }
                let input = Box::new(self.push(*input, predicate));
                Logical::Window { input, partition_by, order_by, calls }
            }
            Logical::SetOperation { operation, inputs, columns } => {
                self.push_set_operation(operation, inputs, columns, predicate)
            }
            other => filter(other, predicate),
        }
    }

    fn push_project(
        &self,
        input: Logical,
        columns: Vec<(Register, Expr)>,
        mut predicate: Expr,
    ) -> Logical {
        let reads = self.reads(&predicate);
        let fixed = columns.iter().any(|(register, expr)| {
            reads.contains(*register) && (expr.is_volatile() || has_subquery(expr))
        });
        if fixed {
            return filter(Logical::Project { input: Box::new(input), columns }, predicate);
        }
        substitute(&mut predicate, &columns);
        Logical::Project { input: Box::new(self.push(input, predicate)), columns }
    }

    /// Whether the predicate reads only keys of the input's registers (other columns depend on the group's first row).
    fn only_keys(&self, input: &Logical, keys: &[(Register, Expr)], reads: &RegisterSet) -> bool {
        let mut inner = RegisterSet::new();
        input.add_definitions(&self.instances, &mut inner);
        let known: RegisterSet = keys.iter().map(|(register, _)| *register).collect();
        let mut loose = reads.clone();
        loose.subtract(&known);
        !loose.intersects(&inner)
    }

    fn push_set_operation(
        &self,
        operation: SetOperation,
        inputs: Vec<(Logical, Vec<Expr>)>,
        columns: Vec<(Register, types::DataType)>,
        predicate: Expr,
    ) -> Logical {
        let reads = self.reads(&predicate);
        // A column that is converted on output compares differently before.
        let same = columns.iter().enumerate().all(|(index, (register, ty))| {
            !reads.contains(*register)
                || inputs.iter().all(|(_, outputs)| {
                    let from = outputs[index].ty();
                    from.kind == ty.kind
                        && from.collation == ty.collation
                        && from.decimals == ty.decimals
                        && !outputs[index].is_volatile()
                        && !has_subquery(&outputs[index])
                })
        });
        if !same {
            return filter(Logical::SetOperation { operation, inputs, columns }, predicate);
        }
        let inputs = inputs
            .into_iter()
            .map(|(input, outputs)| {
                let map: Vec<(Register, Expr)> = columns
                    .iter()
                    .zip(&outputs)
                    .map(|((register, _), output)| (*register, output.clone()))
                    .collect();
                let mut predicate = predicate.clone();
                substitute(&mut predicate, &map);
                (self.push(input, predicate), outputs)
            })
            .collect();
        Logical::SetOperation { operation, inputs, columns }
    }
}

fn covers(
    columns: &[(Register, types::DataType)],
    reads: &RegisterSet,
    planner: &Planner<'_>,
    input: &Logical,
) -> bool {
    let mut inner = RegisterSet::new();
    input.add_definitions(&planner.instances, &mut inner);
    let shown: RegisterSet = columns.iter().map(|(register, _)| *register).collect();
    let mut loose = reads.clone();
    loose.subtract(&shown);
    !loose.intersects(&inner)
}

/// Registers that grouping sets in addition to its keys; a computed key is inserted by substitution.
fn set_by_groups(aggregates: &[plan::AggregateCall], grouping: &[Option<Register>]) -> RegisterSet {
    let outputs = aggregates.iter().map(|call| call.output);
    outputs.chain(grouping.iter().flatten().copied()).collect()
}

/// `node` under a filter.
pub(crate) fn filter(node: Logical, predicate: Expr) -> Logical {
    Logical::Filter { input: Box::new(node), predicate }
}
