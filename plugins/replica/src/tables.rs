//! What channels tell of themselves, as tables: `data_dictionary.REPLICA_STATUS` for SHOW REPLICA STATUS, `performance_schema.replication_*`. No
//! table has a password.

use std::sync::Arc;

use errors::{Result, err};
use plugin_api::{
    InfoColumn, InfoFilter, InformationContext, InformationTable, Registrar, TableDefinition,
    table_definitions,
};
use types::{DateTime, Value};

use crate::channel::{Channel, Until};
use crate::control::Channels;
use crate::filter::{self, KINDS, Rules};
use crate::settings::Settings;
use crate::status::{Connection, LastError, Seen, Status, now_micros};

/// A channel at one moment.
struct Moment {
    name: String,
    settings: Settings,
    status: Status,
    until: Until,
}

impl Moment {
    fn of(channel: &Channel) -> Moment {
        Moment {
            name: channel.name.clone(),
            settings: channel.settings.lock().clone(),
            status: channel.status(),
            until: channel.until.lock().clone(),
        }
    }
}

/// Makes the rows of a channel.
type Rows = fn(&Moment) -> Vec<Vec<Value>>;

struct ChannelTable {
    definition: TableDefinition,
    channels: Arc<Channels>,
    of_channel: Rows,
}

/// Registers the tables.
pub(crate) fn register(channels: &Arc<Channels>, registrar: &mut Registrar<'_>) {
    for definition in table_definitions(include_str!("definitions.txt")) {
        if let Some(is_global) = match definition.name {
            "replication_applier_filters" => Some(false),
            "replication_applier_global_filters" => Some(true),
            _ => None,
        } {
            let channels = channels.clone();
            let table = FilterTable { definition, channels, is_global };
            registrar.information_table(Arc::new(table));
            continue;
        }
        let of_channel: Rows = match definition.name {
            "replication_applier_configuration" => |moment| vec![applier_configuration(moment)],
            "replication_applier_status" => |moment| vec![applier_status(moment)],
            "replication_applier_status_by_coordinator" => applier_status_by_coordinator,
            "replication_applier_status_by_worker" => applier_status_by_worker,
            "replication_connection_configuration" => {
                |moment| vec![connection_configuration(moment)]
            }
            "replication_connection_status" => |moment| vec![connection_status(moment)],
            _ => |moment| vec![replica_status(moment)],
        };
        let channels = channels.clone();
        registrar.information_table(Arc::new(ChannelTable { definition, channels, of_channel }));
    }
}

impl InformationTable for ChannelTable {
    fn schema(&self) -> &'static str {
        self.definition.schema
    }

    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.definition.columns
    }

    fn rows(
        &self,
        ctx: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let is_status = self.definition.schema == "data_dictionary";
        if is_status && !ctx.has_privilege("REPLICATION CLIENT") && !ctx.has_privilege("SUPER") {
            return Err(err!(SPECIFIC_ACCESS_DENIED_ERROR, "SUPER, REPLICATION CLIENT"));
        }
        let channels = self.channels.list();
        channels.iter().try_for_each(|channel| {
            let rows = (self.of_channel)(&Moment::of(channel));
            rows.iter().try_for_each(|row| emit(row))
        })
    }
}

/// The filters, of channels or of those that come.
struct FilterTable {
    definition: TableDefinition,
    channels: Arc<Channels>,
    is_global: bool,
}

impl InformationTable for FilterTable {
    fn schema(&self) -> &'static str {
        self.definition.schema
    }

    fn name(&self) -> &'static str {
        self.definition.name
    }

    fn columns(&self) -> &[InfoColumn] {
        &self.definition.columns
    }

    fn rows(
        &self,
        _: &dyn InformationContext,
        _: &InfoFilter,
        emit: &mut dyn FnMut(&[Value]) -> Result<()>,
    ) -> Result<()> {
        let of_rules = |kind: &str, rules: &Rules| {
            let by = if rules.is_of_channel { "_FOR_CHANNEL" } else { "" };
            [
                text(kind),
                text(filter::shown(kind, &rules.values)),
                text(format!("CHANGE_REPLICATION_FILTER{by}")),
                time(rules.since_micros),
            ]
        };
        if self.is_global {
            let filters = self.channels.filters.lock().clone();
            return filters.list().try_for_each(|(kind, rules)| emit(&of_rules(kind, rules)));
        }
        for channel in self.channels.list() {
            let filters = channel.settings.lock().filters.clone();
            for (kind, rules) in filters.list() {
                let [kind, rule, by, since] = of_rules(kind, rules);
                let passed = number(channel.status().filtered);
                emit(&[text(&channel.name), kind, rule, by, since, passed])?;
            }
        }
        Ok(())
    }
}

fn text(text: impl AsRef<str>) -> Value {
    Value::text(text.as_ref())
}

fn number(number: impl Into<u64>) -> Value {
    Value::UInt(number.into())
}

fn yes(is: bool) -> Value {
    text(if is { "Yes" } else { "No" })
}

fn on(is: bool) -> Value {
    text(if is { "ON" } else { "OFF" })
}

fn flag(is: bool) -> Value {
    text(if is { "1" } else { "0" })
}

fn time(micros: i64) -> Value {
    let at = if micros == 0 { None } else { DateTime::from_unix_micros(micros) };
    Value::DateTime(at.unwrap_or(DateTime::ZERO))
}

/// The time of an error as the reference writes it: `yymmdd hh:mm:ss`.
fn short_time(error: &LastError) -> Value {
    if error.at_micros == 0 {
        return text("");
    }
    let at = DateTime::from_unix_micros(error.at_micros).unwrap_or(DateTime::ZERO);
    let (year, month, day) = (at.year() % 100, at.month(), at.day());
    let (hour, minute, second) = (at.hour(), at.minute(), at.second());
    text(format!("{year:02}{month:02}{day:02} {hour:02}:{minute:02}:{second:02}"))
}

fn seconds_until(micros: i64) -> u64 {
    u64::try_from((micros - now_micros()).div_euclid(1_000_000) + 1).unwrap_or(0)
}

fn replica_status(moment: &Moment) -> Vec<Value> {
    let Moment { name, settings, status, until } = moment;
    let connection_state = match status.connection {
        Connection::No => "",
        Connection::Connecting => "Connecting to source",
        Connection::Yes => "Waiting for source to send event",
    };
    let apply_state = match (status.is_applying, status.waits_until_micros, status.applying_since) {
        (false, ..) => "",
        (true, Some(_), _) => "Waiting until SOURCE_DELAY seconds after source executed event",
        (true, None, Some(_)) => "Applying batch of row changes (write)",
        (true, None, None) => "Replica has read all relay log; waiting for more updates",
    };
    let (until_file, until_offset) = match until {
        Until::Source(file, offset) => (file.as_str(), *offset),
        Until::None | Until::BeforeGtids(_) | Until::AfterGtids(_) | Until::AfterGaps => ("", 0),
    };
    let ignored: Vec<_> = settings.ignored_servers.iter().map(u64::to_string).collect();
    let (connecting, applying) = (&status.connection_error, &status.apply_error);
    let nothing = || text("");
    let mut row = vec![
        text(connection_state),
        text(&settings.host),
        text(&settings.user),
        number(settings.port),
        number(settings.connect_retry),
        text(&status.read_file),
        number(status.read_offset),
        // There is no relay log.
        nothing(),
        number(0u64),
        text(&status.applied_file),
        text(status.connection.name()),
        yes(status.is_applying),
    ];
    row.extend(KINDS[..6].iter().map(|kind| text(settings.filters.shown(kind))));
    row.extend([
        number(applying.number),
        text(&applying.message),
        number(status.skip),
        number(status.applied_offset),
        number(0u64),
        text(until.name()),
        text(until_file),
        number(until_offset),
        yes(settings.ssl),
        text(&settings.ssl_ca),
        text(&settings.ssl_capath),
        text(&settings.ssl_cert),
        text(&settings.ssl_cipher),
        text(&settings.ssl_key),
        status.seconds_behind().map_or(Value::Null, number),
        yes(settings.ssl_verify),
        number(connecting.number),
        text(&connecting.message),
        number(applying.number),
        text(&applying.message),
        text(ignored.join(",")),
        number(status.source_server_id),
        text(&status.source_uuid),
        text("squall_replication.channels"),
        number(settings.delay),
        status.waits_until_micros.map_or(Value::Null, |at| number(seconds_until(at))),
        text(apply_state),
        number(settings.retry_count),
        nothing(),
        short_time(connecting),
        short_time(applying),
        text(&settings.ssl_crl),
        text(&settings.ssl_crlpath),
        text(status.retrieved.to_string()),
        text(status.executed.to_string()),
        number(u64::from(settings.auto_position)),
        text(settings.filters.shown(KINDS[6])),
        text(name),
        text(&settings.tls_version),
        nothing(),
        number(1u64),
        nothing(),
    ]);
    row
}

fn applier_configuration(moment: &Moment) -> Vec<Value> {
    vec![
        text(&moment.name),
        Value::Int(moment.settings.delay as i64),
        Value::Null,
        text("NO"),
        text("STREAM"),
        text("OFF"),
        Value::Null,
    ]
}

fn applier_status(moment: &Moment) -> Vec<Value> {
    let status = &moment.status;
    vec![
        text(&moment.name),
        on(status.is_applying),
        status.waits_until_micros.map_or(Value::Null, |at| number(seconds_until(at))),
        number(status.retries),
    ]
}

fn error(error: &LastError) -> [Value; 3] {
    [Value::Int(i64::from(error.number)), text(&error.message), time(error.at_micros)]
}

fn commits(seen: &Seen) -> [Value; 3] {
    [text(&seen.name), time(seen.original_micros), time(seen.immediate_micros)]
}

fn session(number: u64) -> Value {
    if number == 0 { Value::Null } else { Value::UInt(number) }
}

/// The thread that reads; without workers there is no such row, as for the reference.
fn applier_status_by_coordinator(moment: &Moment) -> Vec<Vec<Value>> {
    let status = &moment.status;
    let Some(own) = status.workers.first().filter(|_| status.workers.len() > 1) else {
        return Vec::new();
    };
    let mut row = vec![text(&moment.name), session(own.session), on(status.is_applying)];
    row.extend(error(&status.apply_error));
    row.extend(commits(&status.read));
    row.extend([time(status.read.started_micros), time(status.read.ended_micros)]);
    row.extend(commits(&status.reading));
    row.push(time(status.reading.started_micros));
    vec![row]
}

/// The thread of the channel, which applies what no worker may have, as number 0, then the workers.
fn applier_status_by_worker(moment: &Moment) -> Vec<Vec<Value>> {
    let status = &moment.status;
    let rows = status.workers.iter().enumerate().map(|(slot, worker)| {
        let (is_running, failed) = match slot {
            0 => (status.is_applying, &status.apply_error),
            _ => (worker.is_running, &worker.error),
        };
        let number = Value::UInt(slot as u64);
        let mut row = vec![text(&moment.name), number, session(worker.session), on(is_running)];
        row.extend(error(failed));
        row.extend(commits(&worker.last));
        row.extend([time(worker.last.started_micros), time(worker.last.ended_micros)]);
        row.extend(commits(&worker.current));
        row.push(time(worker.current.started_micros));
        for seen in [&worker.last, &worker.current] {
            row.push(Value::UInt(seen.retries));
            row.extend(error(&seen.transient));
        }
        row
    });
    rows.collect()
}

fn connection_configuration(moment: &Moment) -> Vec<Value> {
    let settings = &moment.settings;
    let nothing = || text("");
    let mut row = vec![
        text(&moment.name),
        text(&settings.host),
        Value::Int(i64::from(settings.port)),
        text(&settings.user),
        nothing(),
        flag(settings.auto_position),
        text(if settings.ssl { "YES" } else { "NO" }),
        text(&settings.ssl_ca),
        text(&settings.ssl_capath),
        text(&settings.ssl_cert),
        text(&settings.ssl_cipher),
        text(&settings.ssl_key),
    ];
    row.extend([
        text(if settings.ssl_verify { "YES" } else { "NO" }),
        text(&settings.ssl_crl),
        text(&settings.ssl_crlpath),
        Value::Int(settings.connect_retry as i64),
        number(settings.retry_count),
        Value::Double(settings.heartbeat),
        text(&settings.tls_version),
        nothing(),
        text("YES"),
        nothing(),
        text(&settings.compression),
        Value::Int(i64::from(settings.zstd_level)),
        if settings.tls_ciphersuites.is_empty() {
            Value::Null
        } else {
            text(&settings.tls_ciphersuites)
        },
        flag(false),
        flag(false),
    ]);
    row
}

fn connection_status(moment: &Moment) -> Vec<Value> {
    let status = &moment.status;
    let state = match status.connection {
        Connection::No => "OFF",
        Connection::Connecting => "CONNECTING",
        Connection::Yes => "ON",
    };
    let mut row = vec![
        text(&moment.name),
        text(""),
        text(&status.source_uuid),
        Value::Null,
        text(state),
        number(status.heartbeats),
        time(status.last_heartbeat_micros),
        text(status.retrieved.to_string()),
    ];
    row.extend(error(&status.connection_error));
    row.extend(commits(&status.read));
    row.extend([time(status.read.started_micros), time(status.read.ended_micros)]);
    row.extend(commits(&status.reading));
    row.push(time(status.reading.started_micros));
    row
}
