//! The two formats, and figures of a server that is none.

use std::sync::Arc;

use errors::{Result, bail};
use plugin_api::variable::GlobalValue;
use plugin_api::{
    AccountSecret, AuthRequest, Authenticator, ConnectInfo, ConnectionKind, InfoColumn,
    SessionFactory, SessionHandle, StatementCounts, StatementEnd,
};
use types::Value;

use crate::exposition::{Format, Type, Writer};
use crate::routes::Metrics;
use crate::statements::StatementTimes;
use crate::waits::Waits;

struct Server;

impl SessionFactory for Server {
    fn server_version(&self) -> String {
        "9 \"x\"\\".into()
    }

    fn server_collation(&self) -> u16 {
        255
    }

    fn default_authentication(&self) -> String {
        String::new()
    }

    fn find_account(
        &self,
        _: &AuthRequest,
        _: &ConnectionKind,
    ) -> Result<(Arc<dyn Authenticator>, AccountSecret)> {
        bail!(CON_COUNT_ERROR)
    }

    fn open(&self, _: ConnectInfo, _: &AuthRequest) -> Result<Box<dyn SessionHandle>> {
        bail!(CON_COUNT_ERROR)
    }

    fn kill(&self, _: u64) {}

    fn global_integer(&self, _: &str) -> u64 {
        151
    }

    fn global_text(&self, _: &str) -> String {
        String::new()
    }

    fn status(&self) -> Vec<(String, String)> {
        let pairs = [
            ("Com_select", "12"),
            ("Mystery", "1.5"),
            ("Ssl_cipher", ""),
            ("Ssl_session_cache_mode", "SERVER"),
            ("Threads_running", "2"),
        ];
        pairs.map(|(name, value)| (name.to_owned(), value.to_owned())).into()
    }

    fn count_status(&self, _: &'static str, _: u64) {}

    fn read_information(
        &self,
        _: &str,
        table: &str,
        emit: &mut dyn FnMut(&[InfoColumn], &[Value]) -> Result<()>,
    ) -> Result<()> {
        let text = Value::text;
        match table {
            "ENGINE_STATISTICS" => {
                let rows = [
                    ["e", "pool", "pages_read_total", "7"],
                    ["e", "pool", "pages_dirty", "3"],
                    ["e", "recovery", "phase", "done"],
                    ["e", "index_build", "t/i/rows", "1"],
                ];
                rows.iter().try_for_each(|row| emit(&[], &row.map(text)))
            }
            "IO_HISTOGRAM" => [(100, 4, 250), (1000, 1, 600), (0, 2, 9000)].iter().try_for_each(
                |(below, count, total)| {
                    emit(
                        &[],
                        &[
                            text("fsync"),
                            Value::UInt(*below),
                            Value::UInt(*count),
                            Value::UInt(*total),
                        ],
                    )
                },
            ),
            _ => bail!(UNKNOWN_TABLE, table, "data_dictionary"),
        }
    }
}

fn end(elapsed_micros: u64) -> StatementEnd<'static> {
    let counts = StatementCounts { rows_examined: 3, ..StatementCounts::default() };
    StatementEnd { rows_sent: 1, counts, elapsed_micros, ..StatementEnd::default() }
}

fn metrics() -> Metrics {
    let times = Arc::new(StatementTimes::new(GlobalValue::default()));
    times.count(b"SELECT", &end(30));
    times.count(b"SELECT", &end(90_000_000));
    times.count(b"GRANT", &end(1_000));
    Metrics { is_public: GlobalValue::default(), times, waits: Waits::default() }
}

fn has_all(text: &str, lines: &[&str]) {
    for line in lines {
        assert!(text.lines().any(|known| known == *line), "{line}\n{text}");
    }
}

#[test]
fn prometheus_reads_its_format() {
    let text = metrics().text(Format::Prometheus, &Server).unwrap();
    has_all(
        &text,
        &[
            "# TYPE squall_status_com_select_total counter",
            "# HELP squall_status_com_select_total Statements of the kind select.",
            "squall_status_com_select_total 12",
            "# TYPE squall_status_mystery untyped",
            "squall_status_mystery 1.5",
            "squall_status_threads_running 2",
            "squall_server_info{version=\"9 \\\"x\\\"\\\\\"} 1",
            "squall_status_text_info{name=\"Ssl_session_cache_mode\",value=\"SERVER\"} 1",
            "squall_engine_pool_pages_read_total{engine=\"e\"} 7",
            "# TYPE squall_engine_pool_pages_dirty gauge",
            "squall_statement_seconds_bucket{kind=\"select\",le=\"0.00002\"} 0",
            "squall_statement_seconds_bucket{kind=\"select\",le=\"0.00005\"} 1",
            "squall_statement_seconds_bucket{kind=\"select\",le=\"60.0\"} 1",
            "squall_statement_seconds_bucket{kind=\"select\",le=\"+Inf\"} 2",
            "squall_statement_seconds_count{kind=\"select\"} 2",
            "squall_statement_seconds_sum{kind=\"other\"} 0.001",
            "squall_statement_rows_examined_total{kind=\"select\"} 6",
            "squall_io_call_seconds_bucket{call=\"fsync\",le=\"0.001\"} 5",
            "squall_io_call_seconds_bucket{call=\"fsync\",le=\"+Inf\"} 7",
        ],
    );
    assert!(!text.contains("# EOF") && !text.contains("index_build"));
}

#[test]
fn openmetrics_differs_where_it_has_to() {
    let text = metrics().text(Format::OpenMetrics, &Server).unwrap();
    has_all(
        &text,
        &[
            "# TYPE squall_status_com_select counter",
            "squall_status_com_select_total 12",
            "# TYPE squall_status_mystery unknown",
            "# TYPE squall_server info",
            "squall_server_info{version=\"9 \\\"x\\\"\\\\\"} 1",
        ],
    );
    assert!(text.ends_with("# EOF\n"));
    assert_eq!(
        Format::accepted("application/openmetrics-text; version=1.0.0"),
        Format::OpenMetrics
    );
    assert_eq!(Format::accepted("text/plain, */*"), Format::Prometheus);
}

#[test]
fn families_stand_together_and_each_sample_once() {
    for format in [Format::Prometheus, Format::OpenMetrics] {
        let text = metrics().text(format, &Server).unwrap();
        let types: Vec<&str> = text.lines().filter(|line| line.starts_with("# TYPE")).collect();
        let mut families: Vec<&str> =
            types.iter().filter_map(|line| line.split(' ').nth(2)).collect();
        families.sort_unstable();
        assert!(families.windows(2).all(|two| two[0] != two[1]), "{families:?}");
        let samples = text.lines().filter(|line| !line.starts_with('#'));
        let mut series: Vec<&str> =
            samples.filter_map(|line| Some(line.rsplit_once(' ')?.0)).collect();
        let count = series.len();
        series.sort_unstable();
        series.dedup();
        assert_eq!(series.len(), count);
    }
}

#[test]
fn labels_are_escaped() {
    let mut writer = Writer::new(Format::Prometheus);
    writer.family("x", Type::Gauge, "a\nb\\");
    writer.sample(&[("l", "a\"b\\c\nd")], 1);
    assert_eq!(
        writer.finish(),
        "# TYPE squall_x gauge\n# HELP squall_x a\\nb\\\\\nsquall_x{l=\"a\\\"b\\\\c\\nd\"} 1\n"
    );
}
