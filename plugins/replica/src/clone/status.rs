//! The last clone, as `performance_schema.clone_status` and `clone_progress` show it, and as the file `clone-status` keeps it over the restart.

use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value as Json, json};
use sys::files::{self, Existing, File};
use sys::io_times::IoTimes;
use types::{DateTime, Value};

use crate::status::now_micros;

const FILE: &str = "clone-status";
const NEW_FILE: &str = "clone-status-new";
const FILE_MODE: u32 = 0o600;

/// The stages, as the reference names them. Nothing is dropped before the clone is whole, so the first one has nothing to do.
pub(crate) const STAGES: [&str; 7] =
    ["DROP DATA", "FILE COPY", "PAGE COPY", "REDO COPY", "FILE SYNC", "RESTART", "RECOVERY"];
/// Places in `STAGES`.
pub(crate) const DROP_DATA: usize = 0;
pub(crate) const FILE_COPY: usize = 1;
pub(crate) const PAGE_COPY: usize = 2;
pub(crate) const REDO_COPY: usize = 3;
pub(crate) const FILE_SYNC: usize = 4;
pub(crate) const RESTART: usize = 5;
pub(crate) const RECOVERY: usize = 6;

/// How far a clone or a stage is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Progress {
    #[default]
    NotStarted,
    UnderWay,
    Completed,
    Failed,
}

impl Progress {
    const ALL: [Progress; 4] =
        [Progress::NotStarted, Progress::UnderWay, Progress::Completed, Progress::Failed];

    fn name(self) -> &'static str {
        match self {
            Progress::NotStarted => "Not Started",
            Progress::UnderWay => "In Progress",
            Progress::Completed => "Completed",
            Progress::Failed => "Failed",
        }
    }

    fn of(name: &str) -> Option<Progress> {
        Progress::ALL.into_iter().find(|known| known.name() == name)
    }
}

/// A stage.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Stage {
    state: Progress,
    begin_micros: i64,
    end_micros: i64,
    estimate: u64,
    data: u64,
    network: u64,
}

/// A clone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CloneStatus {
    pub(crate) session: u64,
    state: Progress,
    begin_micros: i64,
    end_micros: i64,
    pub(crate) source: String,
    pub(crate) destination: String,
    error: (u16, String),
    /// The transactions that it has.
    pub(crate) executed: String,
    stages: [Stage; STAGES.len()],
}

impl CloneStatus {
    pub(crate) fn begun(session: u64, source: String, destination: String) -> CloneStatus {
        let begin_micros = now_micros();
        let state = Progress::UnderWay;
        CloneStatus { session, state, begin_micros, source, destination, ..CloneStatus::default() }
    }

    pub(crate) fn is_under_way(&self) -> bool {
        self.state == Progress::UnderWay
    }

    /// All stages before this one have ended.
    pub(crate) fn enter(&mut self, stage: usize) {
        let now = now_micros();
        for (place, known) in self.stages.iter_mut().enumerate().take(stage + 1) {
            if known.state == Progress::NotStarted {
                (known.state, known.begin_micros) = (Progress::UnderWay, now);
            }
            if place < stage && known.state == Progress::UnderWay {
                (known.state, known.end_micros) = (Progress::Completed, now);
            }
        }
    }

    /// Bytes of a stage came.
    pub(crate) fn add(&mut self, stage: usize, bytes: u64, expected: u64) {
        self.enter(stage);
        if let Some(stage) = self.stages.get_mut(stage) {
            stage.data += bytes;
            stage.network += bytes;
            stage.estimate = expected.max(stage.data);
        }
    }

    /// The end.
    pub(crate) fn end(&mut self, error: Option<&errors::Error>) {
        let now = now_micros();
        self.end_micros = now;
        let last = match error {
            None => Progress::Completed,
            Some(_) => Progress::Failed,
        };
        self.state = last;
        self.error =
            error.map_or((0, String::new()), |error| (error.code().0, error.message().to_owned()));
        for stage in &mut self.stages {
            if stage.state == Progress::UnderWay {
                (stage.state, stage.end_micros) = (last, now);
            }
        }
    }

    /// A start of the server has put the clone in the place of its data.
    pub(crate) fn has_been_adopted(&mut self) {
        self.enter(RECOVERY);
    }

    /// The server can be used: with the clone, or it was ended before the clone was whole.
    pub(crate) fn server_has_started(&mut self) {
        match self.stages[RECOVERY].state {
            Progress::UnderWay => self.end(None),
            Progress::NotStarted | Progress::Completed | Progress::Failed => {
                let text = "The server ended before the clone was whole";
                let interrupted = errors::ErrorCode::QUERY_INTERRUPTED;
                self.end(Some(&errors::Error::new(interrupted, text)));
            }
        }
    }

    fn json(&self) -> Json {
        let stages = self.stages.iter().map(|stage| {
            let Stage { state, begin_micros, end_micros, estimate, data, network } = stage;
            json!([state.name(), begin_micros, end_micros, estimate, data, network])
        });
        json!({
            "session": self.session, "state": self.state.name(), "begin": self.begin_micros,
            "end": self.end_micros, "source": self.source, "destination": self.destination,
            "error": self.error.0, "message": self.error.1, "executed": self.executed,
            "stages": stages.collect::<Vec<_>>(),
        })
    }

    fn of_json(json: &Json) -> Option<CloneStatus> {
        let text = |name: &str| json.get(name)?.as_str().map(str::to_owned);
        let number = |name: &str| json.get(name)?.as_i64();
        let mut stages: [Stage; STAGES.len()] = Default::default();
        for (stage, known) in stages.iter_mut().zip(json.get("stages")?.as_array()?) {
            let number = |place: usize| known.get(place)?.as_i64();
            *stage = Stage {
                state: Progress::of(known.get(0)?.as_str()?)?,
                begin_micros: number(1)?,
                end_micros: number(2)?,
                estimate: number(3)?.try_into().ok()?,
                data: number(4)?.try_into().ok()?,
                network: number(5)?.try_into().ok()?,
            };
        }
        Some(CloneStatus {
            session: number("session")?.try_into().ok()?,
            state: Progress::of(&text("state")?)?,
            begin_micros: number("begin")?,
            end_micros: number("end")?,
            source: text("source")?,
            destination: text("destination")?,
            error: (number("error")?.try_into().ok()?, text("message")?),
            executed: text("executed")?,
            stages,
        })
    }

    /// The row of `clone_status`.
    pub(crate) fn row(&self) -> Vec<Value> {
        vec![
            Value::Int(1),
            Value::Int(self.session as i64),
            Value::text(self.state.name()),
            time(self.begin_micros),
            time(self.end_micros),
            Value::text(&self.source),
            Value::text(&self.destination),
            Value::Int(i64::from(self.error.0)),
            Value::text(&self.error.1),
            // A clone follows by its identifiers; files of the donor's log have no meaning here.
            Value::text(""),
            Value::Int(0),
            Value::text(&self.executed),
        ]
    }

    /// The rows of `clone_progress`.
    pub(crate) fn stage_rows(&self) -> Vec<Vec<Value>> {
        let rows = STAGES.iter().zip(&self.stages).map(|(name, stage)| {
            let until = if stage.end_micros > 0 { stage.end_micros } else { now_micros() };
            let is_running = stage.state == Progress::UnderWay;
            let micros = (until - stage.begin_micros).max(1) as u64;
            let speed = |bytes: u64| bytes.saturating_mul(1_000_000) / micros;
            let speed = |bytes| Value::Int(if is_running { speed(bytes) as i64 } else { 0 });
            vec![
                Value::Int(1),
                Value::text(name),
                Value::text(stage.state.name()),
                time(stage.begin_micros),
                time(stage.end_micros),
                Value::Int(i64::from(stage.state != Progress::NotStarted)),
                Value::Int(stage.estimate as i64),
                Value::Int(stage.data as i64),
                Value::Int(stage.network as i64),
                speed(stage.data),
                speed(stage.network),
            ]
        });
        rows.collect()
    }
}

fn time(micros: i64) -> Value {
    let at = if micros == 0 { None } else { DateTime::from_unix_micros(micros) };
    at.map_or(Value::Null, Value::DateTime)
}

/// What the last clone left; `None` when there was none, or the file is damaged: it is for people only.
pub(crate) fn read(data_directory: &Path) -> Option<CloneStatus> {
    let text = files::read_text(&data_directory.join(FILE)).ok()?;
    CloneStatus::of_json(&serde_json::from_str(&text).ok()?)
}

/// Removes what a crash left of a `write`.
///
/// # Errors
/// I/O.
pub(crate) fn forget_unfinished(data_directory: &Path) -> io::Result<()> {
    match files::remove(&data_directory.join(NEW_FILE)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}

/// Keeps it.
///
/// # Errors
/// I/O.
pub(crate) fn write(
    data_directory: &Path,
    status: &CloneStatus,
    times: &IoTimes,
) -> io::Result<()> {
    let new = data_directory.join(NEW_FILE);
    let mut file = File::create(&new, FILE_MODE, Existing::Replace)?;
    file.write_all(format!("{}\n", status.json()).as_bytes())?;
    file.sync(times)?;
    files::rename(&new, &data_directory.join(FILE))?;
    files::sync_directory(data_directory, times)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_as_it_was_written() {
        let mut status = CloneStatus::begun(7, "db1:3306".into(), "LOCAL INSTANCE".into());
        status.add(FILE_COPY, 100, 1000);
        status.executed = "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-7".into();
        assert_eq!(CloneStatus::of_json(&status.json()), Some(status.clone()));
        let mut failed = status.clone();
        failed.server_has_started();
        assert_eq!(failed.state, Progress::Failed);
        assert_eq!(failed.stages[FILE_COPY].state, Progress::Failed);
        status.has_been_adopted();
        status.server_has_started();
        assert_eq!(status.state, Progress::Completed);
        assert!(status.stages.iter().all(|stage| stage.state == Progress::Completed));
        assert_eq!(CloneStatus::of_json(&json!({"state": "Completed"})), None);
    }
}
