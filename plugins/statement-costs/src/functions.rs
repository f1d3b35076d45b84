//! `perf_udf()` and `perf_source()`: what an expression costs the session that evaluates it, and where the figures come from.

use errors::{Error, ErrorCode, Result};
use plugin_api::{
    ArgInfo, Arity, BindContext, BoundFunction, Coercion, Reading, ScalarFunction, kit,
};
use sys::usage::{self, Usage};
use types::{CollationId, DataType, Value};

pub(crate) fn all() -> Vec<ScalarFunction> {
    vec![
        kit::scalar(
            "PERF_UDF",
            Arity::between(2, 3),
            "PERF_UDF(count[, event], expr)\nWhat evaluating the expression count times costs this session: cycles, or nanoseconds of processor time where PERF_SOURCE() is task-clock; or the number of events.",
            bind_measure,
        )
        .volatile(),
        kit::scalar(
            "PERF_SOURCE",
            Arity::between(0, 1),
            "PERF_SOURCE([event])\nWhat counts an event: hardware, software or task-clock; NULL when nothing does. Without an event, of the figures of PERF_UDF(count, expr).",
            bind_source,
        )
        .volatile(),
    ]
}

/// An event that can be counted.
struct Event {
    /// As the `perf` program calls it.
    name: &'static str,
    source: Source,
    read: Reading,
}

#[derive(Clone, Copy)]
enum Source {
    /// The processor.
    Hardware,
    /// The kernel's event counters.
    Software,
    /// The kernel's accounts of the thread, which are always there.
    Kernel,
    /// The thread's clock.
    Clock,
    /// The server.
    Server,
}

impl Source {
    /// `None` when the machine does not count the event.
    fn name(self) -> Option<&'static str> {
        match self {
            Source::Hardware => usage::counts_cycles().then_some("hardware"),
            Source::Software => usage::counts_migrations().then_some("software"),
            Source::Kernel => Some("software"),
            Source::Clock => Some("task-clock"),
            Source::Server => Some("server"),
        }
    }
}

/// An event read from everything that is known of the thread.
macro_rules! event {
    ($name:literal, $source:ident, $read:expr) => {
        Event {
            name: $name,
            source: Source::$source,
            read: || {
                let read: fn(Usage) -> Option<u64> = $read;
                read(usage::now())
            },
        }
    };
}

const EVENTS: [Event; 15] = [
    event!("cycles", Hardware, |used| used.cycles),
    event!("instructions", Hardware, |used| used.instructions),
    event!("cache-misses", Hardware, |used| used.cache_misses),
    Event { name: "task-clock", source: Source::Clock, read: || Some(usage::cpu_nanos()) },
    Event { name: "cpu-clock", source: Source::Clock, read: || Some(usage::cpu_nanos()) },
    event!("cpu-migrations", Software, |used| used.migrations),
    event!("page-faults", Kernel, |used| Some(used.times.minor_faults + used.times.major_faults)),
    event!("minor-faults", Kernel, |used| Some(used.times.minor_faults)),
    event!("major-faults", Kernel, |used| Some(used.times.major_faults)),
    event!("context-switches", Kernel, |used| {
        Some(used.times.voluntary_switches + used.times.involuntary_switches)
    }),
    event!("pages", Server, |used| Some(used.counts.pages)),
    event!("pages-missed", Server, |used| Some(used.counts.pages_missed)),
    event!("log-bytes", Server, |used| Some(used.counts.log_bytes)),
    event!("read-bytes", Server, |used| Some(used.counts.read_bytes)),
    event!("written-bytes", Server, |used| Some(used.counts.written_bytes)),
];

/// Cycles where the processor counts them, else nanoseconds.
fn work() -> Option<u64> {
    usage::cycles().or_else(|| Some(usage::cpu_nanos()))
}

/// The event that a constant argument names.
fn event_of(argument: &ArgInfo, function: &'static str) -> Result<&'static Event> {
    let wrong = || Error::with(ErrorCode::WRONG_ARGUMENTS, &[&function]);
    let name = argument.constant.as_ref().ok_or_else(wrong)?;
    let name = kit::text(name);
    EVENTS.iter().find(|event| event.name.eq_ignore_ascii_case(&name)).ok_or_else(wrong)
}

fn bind_measure(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let reading = match args {
        [_, event, _] => event_of(event, "perf_udf")?.read,
        _ => work,
    };
    let ty = DataType { unsigned: true, ..kit::integer_type(20, true) };
    let coercions = vec![Coercion::Integer, Coercion::AsIs];
    let bound = BoundFunction::new(ty, coercions, |_, values| {
        let known = matches!(values.first(), Some(Value::Int(count)) if *count >= 0);
        Ok(match values.last() {
            Some(amount) if known => amount.clone(),
            _ => Value::Null,
        })
    });
    Ok(bound.with_nulls().measuring(reading))
}

fn bind_source(_: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let event = args.first().map(|event| event_of(event, "perf_source")).transpose()?;
    let ty = DataType::varchar(16, CollationId::UTF8MB4_0900_AI_CI);
    let bound = BoundFunction::new(ty, vec![Coercion::AsIs], move |_, _| {
        let name = match event {
            Some(event) => event.source.name(),
            None => Source::Hardware.name().or(Source::Clock.name()),
        };
        Ok(name.map_or(Value::Null, Value::text))
    });
    Ok(bound.with_nulls())
}
