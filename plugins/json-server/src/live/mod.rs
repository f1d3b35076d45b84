//! Counters of the server now and in the last hour, in bounded memory: one sample a second for ten minutes, one per ten seconds for
//! the hour.

mod counters;

use std::collections::VecDeque;

use plugin_api::SessionFactory;
use serde_json::{Value as Json, json};
use sys::sync::Mutex;

use counters::Counters;

const SECONDS_FINE: usize = 600;
const SAMPLES_COARSE: usize = 360;
const SECONDS_COARSE: u64 = 10;

type Sample = Box<[u64]>;

#[derive(Default)]
struct Samples {
    fine: VecDeque<Sample>,
    coarse: VecDeque<Sample>,
    counters: Counters,
}

/// The samples.
#[derive(Default)]
pub struct Live(Mutex<Samples>);

impl Live {
    /// Takes a sample.
    pub fn sample(&self, sessions: &dyn SessionFactory) {
        // Only the thread that samples reads: no other one waits for the tables meanwhile.
        let mut counters = std::mem::take(&mut self.0.lock().counters);
        let sample = read(&mut counters, sessions);
        self.0.lock().counters = counters;
        self.add(sample);
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
        let names: Vec<&str> = counters::names().collect();
        json!({ "names": names, "samples": rows })
    }
}

/// The counters now. The latencies are those of all statements so far.
pub fn now(sessions: &dyn SessionFactory) -> Json {
    let sample = read(&mut Counters::default(), sessions);
    let values: serde_json::Map<String, Json> = counters::names()
        .zip(&sample[1..])
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .collect();
    json!({ "time": sample[0], "version": sessions.server_version(), "values": values })
}

/// Seconds since 1970, then the values in the order of `counters::names`.
fn read(counters: &mut Counters, sessions: &dyn SessionFactory) -> Sample {
    let seconds = sys::clock::wall().as_secs();
    std::iter::once(seconds).chain(counters.read(sessions)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: u64) -> Sample {
        std::iter::once(second).chain(counters::names().map(|_| second * 2)).collect()
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
        assert_eq!(minute["samples"][0].as_array().unwrap().len(), counters::names().count() + 1);
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
