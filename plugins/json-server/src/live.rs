//! Counters of the server now and in the last hour, in bounded memory: one sample a second for ten minutes, one per ten seconds for
//! the hour.

use std::collections::{HashMap, VecDeque};

use plugin_api::SessionFactory;
use serde_json::{Value as Json, json};
use sys::sync::Mutex;

const SECONDS_FINE: usize = 600;
const SAMPLES_COARSE: usize = 360;
const SECONDS_COARSE: u64 = 10;

/// The status variables that are sampled.
pub const NAMES: &[&str] = &[
    "Queries",
    "Questions",
    "Slow_queries",
    "Com_select",
    "Com_insert",
    "Com_update",
    "Com_delete",
    "Com_replace",
    "Com_commit",
    "Com_rollback",
    "Com_stmt_execute",
    "Handler_read_key",
    "Handler_read_next",
    "Handler_read_rnd_next",
    "Handler_write",
    "Handler_update",
    "Handler_delete",
    "Created_tmp_tables",
    "Created_tmp_disk_tables",
    "Sort_rows",
    "Plan_cache_hits",
    "Plan_cache_misses",
    "Connections",
    "Threads_connected",
    "Threads_running",
    "Bytes_received",
    "Bytes_sent",
    "Open_tables",
    "Prepared_stmt_count",
    "Uptime",
    RESIDENT,
];

/// The process's memory, which is no status variable.
const RESIDENT: &str = "Resident_bytes";

type Sample = Box<[u64]>;

#[derive(Default)]
struct Samples {
    fine: VecDeque<Sample>,
    coarse: VecDeque<Sample>,
}

/// The samples.
#[derive(Default)]
pub struct Live(Mutex<Samples>);

impl Live {
    /// Takes a sample.
    pub fn sample(&self, sessions: &dyn SessionFactory) {
        self.add(read(sessions));
    }

    fn add(&self, sample: Sample) {
        let mut samples = self.0.lock();
        let last_coarse = samples.coarse.back().map_or(0, |sample| sample[0]);
        if sample[0] >= last_coarse + SECONDS_COARSE {
            samples.coarse.push_back(sample.clone());
        }
        samples.fine.push_back(sample);
        while samples.fine.len() > SECONDS_FINE {
            samples.fine.pop_front();
        }
        while samples.coarse.len() > SAMPLES_COARSE {
            samples.coarse.pop_front();
        }
    }

    /// The samples of the last `seconds`, the older ones ten seconds apart.
    pub fn history(&self, seconds: u64) -> Json {
        let samples = self.0.lock();
        let now = samples.fine.back().map_or(0, |sample| sample[0]);
        let since = now.saturating_sub(seconds);
        let fine_since = samples.fine.front().map_or(u64::MAX, |sample| sample[0]);
        let older = samples.coarse.iter().filter(|sample| sample[0] < fine_since);
        let all = older.chain(&samples.fine).filter(|sample| sample[0] >= since);
        let rows: Vec<Json> = all.map(|sample| json!(&sample[..])).collect();
        json!({ "names": NAMES, "samples": rows })
    }
}

/// The counters now.
pub fn now(sessions: &dyn SessionFactory) -> Json {
    let sample = read(sessions);
    let values: serde_json::Map<String, Json> = NAMES
        .iter()
        .zip(&sample[1..])
        .map(|(name, value)| ((*name).to_owned(), json!(value)))
        .collect();
    json!({ "time": sample[0], "version": sessions.server_version(), "values": values })
}

/// Seconds since 1970, then the values in the order of `NAMES`.
fn read(sessions: &dyn SessionFactory) -> Sample {
    let status: HashMap<String, String> = sessions.status().into_iter().collect();
    let of = |name: &&str| match *name {
        RESIDENT => sys::process::resident_bytes(),
        name => status.get(name).and_then(|value| value.parse().ok()).unwrap_or(0),
    };
    let seconds = sys::clock::wall().as_secs();
    std::iter::once(seconds).chain(NAMES.iter().map(of)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64) -> Sample {
        std::iter::once(second).chain(NAMES.iter().map(|_| second * 2)).collect()
    }

    #[test]
    fn an_hour_is_kept_in_bounded_memory() {
        let live = Live::default();
        assert_eq!(live.history(60)["samples"], json!([]));
        for second in 1_000_000..1_010_000 {
            live.add(sample(second));
        }
        {
            let samples = live.0.lock();
            assert_eq!((samples.fine.len(), samples.coarse.len()), (SECONDS_FINE, SAMPLES_COARSE));
        }
        let minute = live.history(60);
        assert_eq!(minute["samples"].as_array().unwrap().len(), 61);
        assert_eq!(minute["samples"][60][0], 1_009_999);
        assert_eq!(minute["samples"][0].as_array().unwrap().len(), NAMES.len() + 1);
        let hour = live.history(3600);
        let times: Vec<u64> = hour["samples"]
            .as_array()
            .unwrap()
            .iter()
            .map(|sample| sample[0].as_u64().unwrap())
            .collect();
        assert!(times.is_sorted_by(|a, b| a < b), "each second once");
        assert_eq!(times.first(), Some(&1_006_400));
        assert_eq!(times.len(), 300 + 600);
    }
}
