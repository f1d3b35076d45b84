//! `connection_control`: after some failed log-ins in a row to an account, each further answer comes later than the one before, up to a limit.
//! A guess costs an attacker time; the log-in with the right password ends the count.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use errors::{Error, ErrorCode, Result};
use plugin_api::variable::{Definition, Kind, as_text};
use plugin_api::{
    ConnectionEvent, EventSet, GlobalValue, InfoColumn, InfoFilter, InformationContext,
    InformationTable, LoginAttempt, LoginFailure, Observer, Plugin, PluginInfo, Registrar,
};
use sys::sync::Mutex;
use types::{CollationId, DataType, TypeKind, Value};

const DELAY_MIN: i64 = 1000;
const DELAY_MAX: i64 = i32::MAX as i64;
/// Values out of range are refused, not cut: the check of each variable does that.
const UNCHECKED: Kind = Kind::Int { min: i64::MIN, max: i64::MAX };

static THRESHOLD: Definition = Definition::global(
    "connection_control_failed_connections_threshold",
    UNCHECKED,
    "3",
    "Failed log-ins in a row to an account before answers are delayed; 0 delays none. SET forgets all failures",
);
static MIN_DELAY: Definition = Definition::global(
    "connection_control_min_connection_delay",
    UNCHECKED,
    "1000",
    "milliseconds that the first delayed answer waits",
);
static MAX_DELAY: Definition = Definition::global(
    "connection_control_max_connection_delay",
    UNCHECKED,
    "2147483647",
    "milliseconds that an answer waits at most",
);

/// Names without an account whose failures are counted. Nobody can log in under one, so that those beyond need no delay.
const UNKNOWN_MAX: usize = 10_000;

/// The plugin.
#[derive(Debug)]
pub struct ConnectionControl;

impl Plugin for ConnectionControl {
    fn info(&self) -> PluginInfo {
        PluginInfo::new(
            "connection_control",
            "Delays the answers to log-ins to an account after failed ones.",
        )
        .on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        let control = Arc::new(Control::default());
        let forgetting = control.clone();
        registrar.checked_variable(&THRESHOLD, &control.threshold, move |value| {
            in_range(&THRESHOLD, value, 0..=DELAY_MAX)?;
            forgetting.forget();
            Ok(())
        });
        let other = control.max_delay.clone();
        registrar.checked_variable(&MIN_DELAY, &control.min_delay, move |value| {
            in_range(&MIN_DELAY, value, DELAY_MIN..=limit_of(&other, DELAY_MAX))
        });
        let other = control.min_delay.clone();
        registrar.checked_variable(&MAX_DELAY, &control.max_delay, move |value| {
            in_range(&MAX_DELAY, value, limit_of(&other, DELAY_MIN)..=DELAY_MAX)
        });
        let delays = control.clone();
        registrar.status("Connection_control_delay_generated", move || {
            delays.delays.load(Ordering::Relaxed).to_string()
        });
        for schema in ["information_schema", "performance_schema"] {
            registrar.information_table(Arc::new(Attempts::new(schema, control.clone())));
        }
        registrar.observer(control);
    }
}

/// The value of the other limit; `unset` before it has one.
fn limit_of(other: &GlobalValue, unset: i64) -> i64 {
    match other.number() {
        0 => unset,
        value => i64::try_from(value).unwrap_or(DELAY_MAX),
    }
}

fn in_range(
    variable: &Definition,
    value: &Value,
    range: std::ops::RangeInclusive<i64>,
) -> Result<()> {
    let text = as_text(value);
    if text.parse().is_ok_and(|number| range.contains(&number)) {
        return Ok(());
    }
    Err(Error::with(ErrorCode::WRONG_VALUE_FOR_VAR, &[&variable.name, &text]))
}

/// Failures in a row.
#[derive(Debug)]
struct Failures {
    is_known: bool,
    count: u32,
}

#[derive(Debug, Default)]
struct Control {
    threshold: GlobalValue,
    min_delay: GlobalValue,
    max_delay: GlobalValue,
    failures: Mutex<BTreeMap<String, Failures>>,
    delays: AtomicU64,
}

impl Control {
    fn forget(&self) {
        self.failures.lock().clear();
        self.delays.store(0, Ordering::Relaxed);
    }

    fn count(&self, name: String, is_known: bool) {
        let mut all = self.failures.lock();
        if let Some(failures) = all.get_mut(&name) {
            failures.count = failures.count.saturating_add(1);
            return;
        }
        let unknown = || all.values().filter(|failures| !failures.is_known).count();
        if !is_known && all.len() >= UNKNOWN_MAX && unknown() >= UNKNOWN_MAX {
            return;
        }
        all.insert(name, Failures { is_known, count: 1 });
    }

    fn count_of(&self, name: &str) -> u64 {
        self.failures.lock().get(name).map_or(0, |failures| failures.count.into())
    }
}

/// The milliseconds that an answer waits after so many failures in a row.
fn delay_millis(failures: u64, threshold: u64, min: u64, max: u64) -> u64 {
    if threshold == 0 || failures < threshold {
        return 0;
    }
    let seconds = failures - threshold + 1;
    seconds.saturating_mul(1000).clamp(min, max.max(min))
}

/// As the tables show it: the account, or what the client said.
fn shown(account: Option<&str>, user: &str, host: &str) -> String {
    account.map_or_else(|| format!("'{user}'@'{host}'"), str::to_owned)
}

impl Observer for Control {
    fn name(&self) -> &'static str {
        "connection_control"
    }

    fn events(&self) -> EventSet {
        match self.threshold.number() {
            0 => EventSet::NONE,
            _ => EventSet::LOGIN_ANSWER | EventSet::LOGIN_FAILURE | EventSet::CONNECT,
        }
    }

    fn login_delay(&self, attempt: &LoginAttempt<'_>) -> Duration {
        let failures = self.count_of(&shown(attempt.account, attempt.user, attempt.host));
        let (min, max) = (self.min_delay.number(), self.max_delay.number());
        let millis = delay_millis(failures, self.threshold.number(), min, max);
        if millis > 0 {
            self.delays.fetch_add(1, Ordering::Relaxed);
        }
        Duration::from_millis(millis)
    }

    fn login_failed(&self, failure: &LoginFailure<'_>) {
        let name = shown(failure.account, failure.user, failure.host);
        self.count(name, failure.account.is_some());
    }

    fn connected(&self, connection: &ConnectionEvent<'_>) {
        let (user, host) = connection.session.account.rsplit_once('@').unwrap_or_default();
        self.failures.lock().remove(&shown(None, user, host));
    }
}

/// `CONNECTION_CONTROL_FAILED_LOGIN_ATTEMPTS`, in one of two schemas.
#[derive(Debug)]
struct Attempts {
    schema: &'static str,
    control: Arc<Control>,
    columns: Vec<InfoColumn>,
}

impl Attempts {
    fn new(schema: &'static str, control: Arc<Control>) -> Attempts {
        let text = DataType::varchar(357, CollationId::UTF8MB3_GENERAL_CI).with_nullable(false);
        let number = DataType::new(TypeKind::Int, 10, 0);
        let number = DataType { unsigned: true, ..number.with_nullable(false) };
        let columns = vec![
            InfoColumn { name: "USERHOST", ty: text },
            InfoColumn { name: "FAILED_ATTEMPTS", ty: number },
        ];
        Attempts { schema, control, columns }
    }
}

impl InformationTable for Attempts {
    fn schema(&self) -> &'static str {
        self.schema
    }

    fn name(&self) -> &'static str {
        match self.schema {
            "performance_schema" => "connection_control_failed_login_attempts",
            _ => "CONNECTION_CONTROL_FAILED_LOGIN_ATTEMPTS",
        }
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.columns
    }

    fn rows(
        &self,
        ctx: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        if !ctx.has_privilege("PROCESS") {
            return Err(Error::with(ErrorCode::SPECIFIC_ACCESS_DENIED_ERROR, &[&"PROCESS"]));
        }
        let rows: Vec<(String, u32)> = {
            let all = self.control.failures.lock();
            all.iter().map(|(name, failures)| (name.clone(), failures.count)).collect()
        };
        rows.iter()
            .try_for_each(|(name, count)| emit(&[Value::text(name), Value::UInt((*count).into())]))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_by_a_second_between_their_limits() {
        let delay = |failures| delay_millis(failures, 3, 1500, 4000);
        assert_eq!([2, 3, 4, 5, 6, 7, 8].map(delay), [0, 1500, 2000, 3000, 4000, 4000, 4000]);
        assert_eq!(delay_millis(9, 0, 1000, 2000), 0);
    }

    #[test]
    fn unknown_names_are_bounded_and_accounts_are_not() {
        let control = Control::default();
        for number in 0..UNKNOWN_MAX + 5 {
            control.count(format!("'{number}'@'h'"), false);
        }
        assert_eq!(control.failures.lock().len(), UNKNOWN_MAX);
        control.count("'u'@'%'".into(), true);
        control.count("'u'@'%'".into(), true);
        assert_eq!(control.count_of("'u'@'%'"), 2);
        control.forget();
        assert_eq!(control.count_of("'u'@'%'"), 0);
    }
}
