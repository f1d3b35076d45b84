//! A session's running programs, its loaded ones, and the plans of their statements.

use std::sync::Arc;

use catalog::Routine;
use engine_api::TableId;
use errors::{Result, bail};
use hashbrown::HashMap;
use plugin_api::SystemProcedure;
use types::DataType;

use crate::frame::Frame;
use crate::host::ProgramHost;
use crate::load::{Loaded, Made};

/// Maximum number of programs that a session keeps parsed.
const KEPT_MAX: usize = 64;
/// Maximum number of plans that a session keeps for programs' statements.
const PLANS_MAX: usize = 1024;
/// Maximum depth of programs that call each other.
const CALLS_MAX: usize = 24;

/// The programs of a session. `P`: a plan, `C`: the context that it was made in.
pub struct ProgramState<P, C> {
    /// The running programs, the innermost last.
    pub(crate) frames: Vec<Frame>,
    /// The tables of the statements that called them, which they may not write.
    above: Vec<Arc<[TableId]>>,
    /// The loaded programs, by the address of their definition.
    loaded: HashMap<usize, Arc<Loaded>>,
    /// By the address of the statement or expression in a loaded program.
    plans: HashMap<usize, KeptPlan<P, C>>,
    /// Procedures of plugins that were called.
    system: Vec<(Arc<SystemProcedure>, Arc<Routine>)>,
}

/// A plan of a statement of a program, and the context that it was made in.
struct KeptPlan<P, C> {
    plan: P,
    /// Keeps the address valid.
    _loaded: Arc<Loaded>,
    types: Arc<[DataType]>,
    context: C,
}

impl<P, C> Default for ProgramState<P, C> {
    fn default() -> ProgramState<P, C> {
        ProgramState {
            frames: Vec::new(),
            above: Vec::new(),
            loaded: HashMap::new(),
            plans: HashMap::new(),
            system: Vec::new(),
        }
    }
}

impl<P, C> ProgramState<P, C> {
    /// The running program.
    pub fn frame(&self) -> Option<&Frame> {
        self.frames.last()
    }

    /// The running program.
    pub(crate) fn frame_mut(&mut self) -> Result<&mut Frame> {
        self.frames.last_mut().ok_or_else(|| errors::Error::internal("no stored program runs"))
    }

    /// Begins a statement that runs programs: they may not write its tables.
    pub fn push_tables(&mut self, tables: Arc<[TableId]>) {
        self.above.push(tables);
    }

    /// Ends the statement.
    pub fn pop_tables(&mut self) {
        self.above.pop();
    }

    /// Whether no statement that runs programs is running.
    pub fn is_outermost(&self) -> bool {
        self.above.is_empty()
    }

    /// Whether a running statement uses the table.
    pub fn is_used_above(&self, table: TableId) -> bool {
        self.above.iter().any(|above| above.contains(&table))
    }

    /// Limits the depth of programs that call each other.
    ///
    /// # Errors
    /// 1436.
    pub(crate) fn check_depth(&self) -> Result<()> {
        if self.frames.len() >= CALLS_MAX {
            bail!(STACK_OVERRUN_NEED_MORE, 0, 0, 0);
        }
        Ok(())
    }

    /// The program that was loaded from `made` earlier.
    pub(crate) fn known(&self, made: &Made) -> Option<Arc<Loaded>> {
        self.loaded.get(&made.address()).filter(|known| known.is_made_from(made)).cloned()
    }

    /// The definition of a plugin's procedure that was made earlier.
    pub(crate) fn known_system(&self, procedure: &Arc<SystemProcedure>) -> Option<Arc<Routine>> {
        let known = self.system.iter().find(|(known, _)| Arc::ptr_eq(known, procedure));
        known.map(|(_, routine)| routine.clone())
    }

    /// Keeps the definition of a plugin's procedure.
    pub(crate) fn keep_system(&mut self, procedure: Arc<SystemProcedure>, routine: Arc<Routine>) {
        if self.system.len() >= KEPT_MAX {
            self.system.clear();
        }
        self.system.push((procedure, routine));
    }

    /// Keeps a loaded program.
    pub(crate) fn keep(&mut self, loaded: Arc<Loaded>) {
        if self.loaded.len() >= KEPT_MAX {
            self.loaded.clear();
        }
        self.loaded.insert(loaded.made.address(), loaded);
    }
}

/// The plan kept for a statement or an expression of the running program, if it is still valid, with its tables locked.
///
/// # Errors
/// Missing privileges, waiting too long for a table.
pub fn kept_plan<H: ProgramHost + ?Sized>(host: &mut H, address: usize) -> Result<Option<H::Plan>> {
    let state = host.state();
    let Some(known) = state.plans.get(&address) else { return Ok(None) };
    let types = state.frame().is_some_and(|frame| Arc::ptr_eq(frame.types_shared(), &known.types));
    let plan = known.plan.clone();
    if types && known.context == host.plan_context() && host.lock_kept(&plan)? {
        return Ok(Some(plan));
    }
    host.state_mut().plans.remove(&address);
    Ok(None)
}

/// Keeps the plan of a statement or an expression of the running program.
pub fn keep_plan<H: ProgramHost + ?Sized>(host: &mut H, address: usize, plan: &H::Plan) {
    let (may_keep, context) = (host.may_keep(plan), host.plan_context());
    let state = host.state_mut();
    let Some(frame) = state.frames.last().filter(|_| may_keep) else { return };
    let kept = KeptPlan {
        plan: plan.clone(),
        _loaded: frame.loaded.clone(),
        types: frame.types_shared().clone(),
        context,
    };
    if state.plans.len() >= PLANS_MAX {
        state.plans.clear();
    }
    state.plans.insert(address, kept);
}
