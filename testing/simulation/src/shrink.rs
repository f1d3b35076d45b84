//! Looks for a smaller run that breaks the same rule.

use crate::plan::Plan;

/// The smallest plan found that still `fails`: fewer lives, clients, statements, faults and kinds of work.
pub fn shrink(plan: &Plan, mut fails: impl FnMut(&Plan) -> bool) -> Plan {
    let mut smallest = plan.clone();
    loop {
        let smaller = smaller_plans(&smallest).into_iter().find(|smaller| fails(smaller));
        match smaller {
            Some(smaller) => smallest = smaller,
            None => return smallest,
        }
    }
}

/// Plans that are a step smaller, those that take away most first.
fn smaller_plans(plan: &Plan) -> Vec<Plan> {
    let mut smaller = Vec::new();
    let mut add = |change: &dyn Fn(&mut Plan)| {
        let mut changed = plan.clone();
        change(&mut changed);
        let is_new = changed != *plan && changed.clients > 0 && changed.lives > 0;
        if is_new && changed.statements > 0 {
            smaller.push(changed);
        }
    };
    add(&|plan| plan.faults.clear());
    add(&|plan| plan.lives = 1);
    add(&|plan| plan.lives -= 1);
    add(&|plan| plan.clients /= 2);
    add(&|plan| plan.statements /= 2);
    for fault in &plan.faults {
        add(&|plan| plan.faults.retain(|other| other != fault));
    }
    for work in &plan.work {
        add(&|plan| plan.work.retain(|other| other != work));
    }
    add(&|plan| plan.clients -= 1);
    add(&|plan| plan.statements -= plan.statements / 4);
    add(&|plan| plan.statements -= plan.statements.min(5));
    smaller
}
