//! What a session keeps while a statement is profiled.

use std::sync::Arc;

use exec::{Measure, MeasuredNodes};
use observation::Profiling;
use optimizer::Explainer;
use optimizer::explain::Actual;
use plan::Plan;

use crate::planned::Planned;

/// A statement that is profiled.
pub(crate) struct Profiled {
    pub(crate) profiling: Profiling,
    /// Plans that were made for it and have not run yet.
    pub(crate) plans: Vec<MeasuredPlan>,
    /// The one that ran last, by its address, and its name: LOAD DATA runs one for each row.
    pub(crate) last: (usize, String),
}

/// A plan whose operators are measured, with what their names need.
pub(crate) struct MeasuredPlan {
    pub(crate) planned: Arc<Planned>,
    /// The nodes are known by their addresses.
    pub(crate) plan: Box<Plan>,
    pub(crate) explainer: Explainer,
    pub(crate) nodes: MeasuredNodes,
}

/// The measurements of an operator; `None` when it was never run.
pub(crate) fn actual_of(measures: &[Measure], place: usize) -> Option<Actual> {
    let measure = measures.get(place).filter(|measure| measure.loops > 0)?;
    Some(Actual {
        place,
        loops: measure.loops,
        rows: measure.rows,
        examined: measure.examined,
        first: measure.first,
        last: measure.last,
    })
}
