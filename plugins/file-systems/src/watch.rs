//! Looks at the file systems every second, and says in the error log when one fills up and when it has space again.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use errors::{Error, Result};
use plugin_api::{BackgroundJob, RunningJob, SessionFactory};
use sys::process::{Gravity, tell};
use sys::sync::{Condvar, Mutex};
use sys::threads::Thread;

use crate::{Fill, PLACES};

const INTERVAL: Duration = Duration::from_secs(1);

/// The job.
pub(crate) struct Watch;

#[derive(Default)]
struct Stop {
    is_asked: Mutex<bool>,
    changed: Condvar,
}

struct Watching {
    stop: Arc<Stop>,
    thread: Thread,
}

impl BackgroundJob for Watch {
    fn name(&self) -> &'static str {
        "file systems"
    }

    fn start(&self, sessions: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        let stop = Arc::new(Stop::default());
        let asked = stop.clone();
        let thread = sys::threads::spawn("file systems", move || watch(&*sessions, &asked));
        let thread = thread.map_err(|error| Error::internal(format!("file systems: {error}")))?;
        Ok(Box::new(Watching { stop, thread }))
    }
}

impl RunningJob for Watching {
    fn stop(self: Box<Self>) {
        *self.stop.is_asked.lock() = true;
        self.stop.changed.notify_all();
        self.thread.join();
    }
}

fn watch(sessions: &dyn SessionFactory, stop: &Stop) {
    let mut told = vec![Fill::Ample; PLACES.len()];
    let mut is_asked = stop.is_asked.lock();
    while !*is_asked {
        drop(is_asked);
        for ((used_for, variable), told) in PLACES.iter().zip(&mut told) {
            let path = sessions.global_text(variable);
            let space = (!path.is_empty()).then(|| sys::files::space(Path::new(&path))).flatten();
            if let Some((free, total)) = space {
                let fill = Fill::of(free, total);
                if let Some((gravity, text)) = news((used_for, &path), (*told, fill), free, total) {
                    tell(gravity, &text);
                    *told = fill;
                }
            }
        }
        is_asked = stop.is_asked.lock();
        if !*is_asked {
            is_asked = stop.changed.wait_for(is_asked, INTERVAL);
        }
    }
}

/// What there is to say when a file system changes from one state to another.
fn news(
    (used_for, path): (&str, &str),
    (from, to): (Fill, Fill),
    free: u64,
    total: u64,
) -> Option<(Gravity, String)> {
    let room = format!("the file system of '{path}' ({used_for}) has {free} of {total} bytes free");
    match to {
        _ if from == to => None,
        Fill::Ample => Some((Gravity::Note, format!("{room}: there is space again"))),
        // Halfway back is no news: it would be told again and again at a threshold.
        _ if to < from => None,
        Fill::Low => Some((Gravity::Warning, format!("{room}: 90 percent are in use"))),
        Fill::VeryLow => Some((
            Gravity::Warning,
            format!("{room}: 95 percent are in use; make space before statements fail"),
        )),
        Fill::Full => Some((
            Gravity::Error,
            format!(
                "{room}: it is full. Statements that need space fail until there is some; reading, commits and rollbacks go on"
            ),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_step_up_is_told_once_and_the_end_of_it() {
        let say = |from, to| news(("data", "/d"), (from, to), 1, 100).map(|(gravity, _)| gravity);
        assert_eq!(say(Fill::Ample, Fill::Low), Some(Gravity::Warning));
        assert_eq!(say(Fill::Low, Fill::Low), None);
        assert_eq!(say(Fill::Low, Fill::Full), Some(Gravity::Error));
        assert_eq!(say(Fill::Full, Fill::VeryLow), None);
        assert_eq!(say(Fill::Full, Fill::Ample), Some(Gravity::Note));
    }
}
