//! Routines, triggers and events.

use std::sync::Arc;

use catalog::{Event, PrivilegeSet, Routine, RoutineKind, Trigger};
use plugin_api::{EventView, ProgramInformation, RoutineView, TriggerView};
use programs::{RoutineVisibility, event_view, routine_view, trigger_view, visibility_of};

use crate::information::Information;

impl Information<'_> {
    fn visible_routines(&self, schema: &str, wanted: fn(RoutineKind) -> bool) -> Vec<RoutineView> {
        let snapshot = self.snapshot();
        let view =
            |routine: &Arc<Routine>| match visibility_of(routine, self.privileges, self.account) {
                RoutineVisibility::Hidden => None,
                RoutineVisibility::NameOnly => Some(routine_view(routine, false)),
                RoutineVisibility::Full => Some(routine_view(routine, true)),
            };
        let routines = snapshot.routines(schema).filter(|routine| wanted(routine.kind));
        routines.filter_map(view).collect()
    }
}

impl ProgramInformation for Information<'_> {
    fn routines(&self, schema: &str) -> Vec<RoutineView> {
        self.visible_routines(schema, |kind| kind != RoutineKind::Library)
    }

    fn libraries(&self, schema: &str) -> Vec<RoutineView> {
        self.visible_routines(schema, |kind| kind == RoutineKind::Library)
    }

    fn triggers(&self, schema: &str) -> Vec<TriggerView> {
        let snapshot = self.snapshot();
        let is_seen = |trigger: &&Arc<Trigger>| {
            self.privileges.allows_table(schema, &trigger.table, PrivilegeSet::TRIGGER)
        };
        let mut seen: Vec<&Arc<Trigger>> = snapshot.triggers(schema).filter(is_seen).collect();
        seen.sort_by_key(|trigger| (&trigger.table, trigger.event, !trigger.before, trigger.order));
        seen.into_iter().map(|trigger| trigger_view(trigger)).collect()
    }

    fn events(&self, schema: &str) -> Vec<EventView> {
        if !self.privileges.on_schema(schema).contains(PrivilegeSet::EVENT) {
            return Vec::new();
        }
        let snapshot = self.snapshot();
        let view = |event: &Arc<Event>| event_view(event, &*self.server.event_zone(event));
        snapshot.events(schema).map(view).collect()
    }
}
