//! Stored programs: procedures, functions, triggers and events. Their definitions, how they are parsed from their text, how their
//! statements run one after another, and when events run.
//!
//! The session that runs a program is its `ProgramHost`: it has the transactions, runs the statements that exist outside programs too, and computes
//! expressions. Must not know sessions, plans or engines.

mod call;
mod conditions;
mod diagnostics;
mod event;
mod external;
mod frame;
mod function;
mod host;
mod load;
mod routine;
mod row_trigger;
mod run;
mod running;
mod schedule;
mod scheduler;
mod show;
mod state;
mod system_routine;
mod text;
mod trigger;

pub use call::run_call;
pub use diagnostics::{get_diagnostics, run_signal};
pub use event::{
    alter_event, create_event, drop_event, event_view, run_event_body, show_create_event,
};
pub use external::{alter_library, create_library, drop_library};
pub use frame::{Frame, assign_local};
pub use function::{call_function, callable};
pub use host::{Conditions, DefinitionHost, Facts, ProgramHost};
pub use load::{Loaded, Made, loaded};
pub use routine::{alter_routine, create_routine, drop_routine};
pub use row_trigger::fire_trigger;
pub use run::{check_in_function, refuse_division_by_zero};
pub use running::{Origin, Running};
pub use scheduler::{EventHost, EventScheduler, schedule_events};
pub use show::{
    RoutineVisibility, routine_view, show_create_library, show_create_routine, visibility_of,
};
pub use state::{ProgramState, keep_plan, kept_plan};
pub use text::{parse_error, parse_options_of};
pub use trigger::{create_trigger, drop_trigger, follow_tables, show_create_trigger, trigger_view};
