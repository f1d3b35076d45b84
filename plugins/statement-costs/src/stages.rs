//! Stages: the steps of statements by session and by name, and what runs now. Kept while a consumer of stages is on; everything has a bound.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;

use errors::Result;
use plugin_api::{InfoFilter, InformationContext, Stage, StatementEnd, StatementEvent};
use sys::sync::Mutex;
use types::Value;

use crate::consumers::{Consumer, Consumers};
use crate::recorder::{Recorder, Who, push};
use crate::row::Emit;
use crate::statements::visible;
use crate::sums::{MICROSECOND, NANOSECOND};

/// Accounts whose sums outlive their sessions; those of further ones count together.
const CLOSED_MAX: usize = 1024;
/// Stages of a session, and of all, that are kept.
const HISTORY_LENGTH: u64 = 10;
const HISTORY_LONG_LENGTH: u64 = 10_000;
/// The thread number of work that no connection asked for.
const NO_CONNECTION: u64 = 0;

/// A stage that ended.
#[derive(Clone, Debug)]
struct EndedStage {
    session: u64,
    number: u64,
    event: &'static str,
    started_micros: i64,
    /// Nanoseconds from the begin of the statement to the begin of the stage.
    offset_nanos: u64,
    nanos: u64,
    work: Option<(u64, u64)>,
}

/// Number and time of some stages.
#[derive(Clone, Copy, Debug, Default)]
struct StageSums {
    count: u64,
    nanos: u64,
    least: u64,
    most: u64,
}

impl StageSums {
    fn add(&mut self, other: &StageSums) {
        self.least = if self.count == 0 { other.least } else { self.least.min(other.least) };
        self.most = self.most.max(other.most);
        self.count += other.count;
        self.nanos += other.nanos;
    }

    /// The columns from COUNT_STAR on.
    fn columns(&self) -> [Value; 5] {
        let average = self.nanos.saturating_mul(NANOSECOND).checked_div(self.count).unwrap_or(0);
        let times = [self.nanos, self.least].map(|nanos| nanos.saturating_mul(NANOSECOND));
        let most = self.most.saturating_mul(NANOSECOND);
        [self.count, times[0], times[1], average, most].map(Value::UInt)
    }
}

type ByEvent = BTreeMap<&'static str, StageSums>;

#[derive(Debug, Default)]
struct SessionStages {
    who: Arc<Who>,
    sums: ByEvent,
    history: VecDeque<Arc<EndedStage>>,
    numbered: u64,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct Stages {
    sessions: Mutex<HashMap<u64, SessionStages>>,
    closed: Mutex<HashMap<Arc<Who>, ByEvent>>,
    history_long: Mutex<VecDeque<Arc<EndedStage>>>,
}

impl Stages {
    /// Keeps the steps of a statement; `has_history`: also one by one.
    pub(crate) fn record(
        &self,
        consumers: &Consumers,
        (event, end): (&StatementEvent<'_>, &StatementEnd<'_>),
        has_history: bool,
        who: impl FnOnce() -> Who,
    ) {
        let session = event.session.connection_id;
        let keeps = has_history && consumers.has(Consumer::STAGES_HISTORY);
        let keeps_long = has_history && consumers.has(Consumer::STAGES_HISTORY_LONG);
        let mut sessions = self.sessions.lock();
        let record = sessions.entry(session).or_default();
        if record.who.user != event.session.user || record.numbered == 0 {
            record.who = Arc::new(who());
        }
        let mut offset_nanos = 0;
        for step in end.steps {
            let Some(stage) = Stage::of_step(step.name) else { continue };
            let nanos = step.nanos;
            let one = StageSums { count: 1, nanos, least: nanos, most: nanos };
            record.sums.entry(stage.event).or_default().add(&one);
            record.numbered += 1;
            let ended = Arc::new(EndedStage {
                session,
                number: record.numbered,
                event: stage.event,
                started_micros: event.started_micros,
                offset_nanos,
                nanos,
                work: (step.work_expected > 0).then_some((step.work_done, step.work_expected)),
            });
            offset_nanos += nanos;
            if keeps_long {
                push(&mut self.history_long.lock(), ended.clone(), HISTORY_LONG_LENGTH);
            }
            if keeps {
                push(&mut record.history, ended, HISTORY_LENGTH);
            }
        }
    }

    /// The session ended: its sums count for its account.
    pub(crate) fn close(&self, session: u64) {
        let Some(record) = self.sessions.lock().remove(&session) else { return };
        let mut closed = self.closed.lock();
        let mut who = record.who;
        if closed.len() >= CLOSED_MAX && !closed.contains_key(&who) {
            who = Arc::default();
        }
        let sums = closed.entry(who).or_default();
        for (event, more) in &record.sums {
            sums.entry(event).or_default().add(more);
        }
    }

    pub(crate) fn clear_sums(&self) {
        self.closed.lock().clear();
        self.sessions.lock().values_mut().for_each(|record| record.sums.clear());
    }

    pub(crate) fn clear_history(&self) {
        self.sessions.lock().values_mut().for_each(|record| record.history.clear());
    }

    pub(crate) fn clear_history_long(&self) {
        self.history_long.lock().clear();
    }

    /// All sums by session, `None` for those that have ended, and account.
    fn all(&self) -> Vec<(Option<u64>, Arc<Who>, ByEvent)> {
        let sessions = self.sessions.lock();
        let open = sessions
            .iter()
            .map(|(session, record)| (Some(*session), record.who.clone(), record.sums.clone()));
        let mut all: Vec<_> = open.collect();
        drop(sessions);
        let closed = self.closed.lock();
        all.extend(closed.iter().map(|(who, sums)| (None, who.clone(), sums.clone())));
        all
    }
}

fn number(value: Option<u64>) -> Value {
    value.map_or(Value::Null, Value::UInt)
}

/// A row of the tables of single stages. `end`: `None` while it runs.
fn row(
    (thread, number_of_event): (u64, u64),
    event: &str,
    start_picos: u64,
    (picos, has_ended): (u64, bool),
    work: Option<(u64, u64)>,
) -> Vec<Value> {
    vec![
        Value::UInt(thread),
        Value::UInt(number_of_event),
        number(has_ended.then_some(number_of_event)),
        Value::text(event),
        Value::Null,
        Value::UInt(start_picos),
        Value::UInt(start_picos.saturating_add(picos)),
        Value::UInt(picos),
        number(work.map(|work| work.0)),
        number(work.map(|work| work.1)),
        Value::Null,
        Value::Null,
    ]
}

fn picos_since(started: i64, micros: i64) -> u64 {
    (micros.saturating_sub(started).max(0) as u64).saturating_mul(MICROSECOND)
}

/// `events_stages_current`: what statements do now, and how far recovery is. Nothing is recorded for it.
pub(crate) fn current(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    if !recorder.consumers.has(Consumer::STAGES_CURRENT) {
        return Ok(());
    }
    let (started, now) = (ctx.started_micros(), ctx.now_micros());
    let stats = ctx.engine_stats();
    let counter = |group: &str, name: &str| {
        let found = stats.iter().find(|stat| stat.group == group && stat.name == name);
        found.and_then(|stat| stat.value.parse::<u64>().ok()).unwrap_or(0)
    };
    for process in ctx.processes() {
        if !recorder.threads.of(process.id).is_instrumented {
            continue;
        }
        let (step, began) = process.stage;
        let Some(stage) = Stage::of_step(step) else { continue };
        let progress = process.progress.map(|now| (now.work_done, now.work_expected));
        let copied = process.copying.map(|copy| (copy.rows_copied, copy.rows_total));
        let work = match (stage.step, copied) {
            ("Backing up", _) => {
                Some((counter("backup", "pages_done"), counter("backup", "pages_total")))
            }
            ("copy to tmp table", Some(copied)) => Some(copied),
            _ => progress.filter(|_| stage.has_progress),
        };
        let work = work.map(|(done, expected)| (done, expected.max(done)));
        let numbered = recorder.stages.sessions.lock().get(&process.id).map(|own| own.numbered);
        let event = numbered.unwrap_or(0) + 1;
        let took = picos_since(began, now);
        let start = picos_since(started, began);
        emit(&row((process.id, event), stage.event, start, (took, false), work))?;
    }
    let recovers = |stat: &plugin_api::EngineStatView| {
        stat.group == "recovery" && stat.name == "phase" && stat.value != "done"
    };
    if stats.iter().any(recovers) && ctx.sees_all_processes() {
        let done = counter("recovery", "pages_done") + counter("recovery", "undo_done");
        let total = counter("recovery", "pages_total") + counter("recovery", "undo_total");
        let event = Stage::of_step("recovery").map_or("", |stage| stage.event);
        let took = counter("recovery", "milliseconds").saturating_mul(1_000 * MICROSECOND);
        emit(&row((NO_CONNECTION, 1), event, 0, (took, false), Some((done, total.max(done)))))?;
    }
    Ok(())
}

fn ended_row(ended: &EndedStage, server_started: i64) -> Vec<Value> {
    let offset = ended.offset_nanos.saturating_mul(NANOSECOND);
    let start = picos_since(server_started, ended.started_micros).saturating_add(offset);
    let picos = ended.nanos.saturating_mul(NANOSECOND);
    row((ended.session, ended.number), ended.event, start, (picos, true), ended.work)
}

/// `events_stages_history`.
pub(crate) fn history(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for session in visible(ctx) {
        let sessions = recorder.stages.sessions.lock();
        let kept = sessions.get(&session).map(|record| record.history.clone());
        drop(sessions);
        for ended in kept.iter().flatten() {
            emit(&ended_row(ended, ctx.started_micros()))?;
        }
    }
    Ok(())
}

/// `events_stages_history_long`.
pub(crate) fn history_long(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let (all, visible) = (ctx.sees_all_processes(), visible(ctx));
    let kept: Vec<_> = recorder.stages.history_long.lock().iter().cloned().collect();
    let seen = kept.iter().filter(|ended| all || visible.contains(&ended.session));
    seen.into_iter().try_for_each(|ended| emit(&ended_row(ended, ctx.started_micros())))
}

/// Adds up the sums that the account may see by `name`. Stages that never ran have rows of zeros where `name` groups nothing.
fn grouped(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    emit: &mut Emit<'_>,
    name: impl Fn(Option<u64>, &Who) -> Option<Vec<Value>>,
) -> Result<()> {
    let (all, visible) = (ctx.sees_all_processes(), visible(ctx));
    let mut groups: BTreeMap<String, (Vec<Value>, ByEvent)> = BTreeMap::new();
    for (session, who, sums) in recorder.stages.all() {
        let may_see = all || session.is_some_and(|session| visible.contains(&session));
        let Some(name) = name(session, &who).filter(|_| may_see) else { continue };
        let key = format!("{name:?}");
        let group = groups.entry(key).or_insert_with(|| (name, ByEvent::new()));
        for (event, more) in &sums {
            group.1.entry(event).or_default().add(more);
        }
    }
    for (name, sums) in groups.values() {
        for (event, sums) in sums {
            let mut cells = name.clone();
            cells.push(Value::text(event));
            cells.extend(sums.columns());
            emit(&cells)?;
        }
    }
    Ok(())
}

/// `events_stages_summary_by_account_by_event_name`.
pub(crate) fn by_account(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    grouped(recorder, ctx, emit, |_, who| {
        Some(vec![Value::text(&who.user), Value::text(&who.host)])
    })
}

/// `events_stages_summary_by_host_by_event_name`.
pub(crate) fn by_host(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    grouped(recorder, ctx, emit, |_, who| Some(vec![Value::text(&who.host)]))
}

/// `events_stages_summary_by_user_by_event_name`.
pub(crate) fn by_user(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    grouped(recorder, ctx, emit, |_, who| Some(vec![Value::text(&who.user)]))
}

/// `events_stages_summary_by_thread_by_event_name`.
pub(crate) fn by_thread(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    grouped(recorder, ctx, emit, |session, _| session.map(|session| vec![Value::UInt(session)]))
}

/// `events_stages_summary_global_by_event_name`: all stages, also those that never ran.
pub(crate) fn global(
    recorder: &Recorder,
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let mut sums = ByEvent::new();
    for (_, _, more) in recorder.stages.all().iter().filter(|_| ctx.sees_all_processes()) {
        for (event, more) in more {
            sums.entry(event).or_default().add(more);
        }
    }
    Stage::ALL.iter().try_for_each(|stage| {
        let sums = sums.get(stage.event).copied().unwrap_or_default();
        let mut cells = vec![Value::text(stage.event)];
        cells.extend(sums.columns());
        emit(&cells)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_keep_the_shortest_and_the_longest() {
        let one = |nanos| StageSums { count: 1, nanos, least: nanos, most: nanos };
        let mut sums = StageSums::default();
        [5, 3, 4].into_iter().for_each(|nanos| sums.add(&one(nanos)));
        let picos = [3, 12_000, 3_000, 4_000, 5_000].map(Value::UInt);
        assert_eq!(sums.columns(), picos);
    }

    #[test]
    fn every_stage_has_its_own_event() {
        let events: std::collections::HashSet<_> =
            Stage::ALL.iter().map(|stage| stage.event).collect();
        assert_eq!(events.len(), Stage::ALL.len());
    }
}
