//! Settings that change while the server is in use, and persisted ones, which the next start has.

use super::definitions::Changer;
use super::{Reply, Stop};

/// The value of the one setting that is persisted.
#[derive(Debug, Default)]
pub struct Persisted {
    committed: Option<u64>,
    /// Of the statement that is under way, or whose answer was lost.
    under_way: Option<u64>,
}

/// Settings and values that change how the server works and not what it answers.
const SETTINGS: [(&str, [&str; 3]); 7] = [
    ("recovery_time_target_sec", ["1", "5", "60"]),
    ("plan_cache_size", ["0", "65536", "67108864"]),
    ("commit_delay_us", ["0", "50", "1000"]),
    ("innodb_deadlock_detect", ["ON", "ON", "ON"]),
    ("table_definition_cache", ["400", "2000", "5000"]),
    ("max_prepared_stmt_count", ["100", "1000", "1048576"]),
    ("thread_cache_size", ["0", "9", "100"]),
];
const PERSISTED: &str = "max_connect_errors";

impl Changer {
    /// Changes one.
    pub(super) fn set(&mut self) -> Result<(), Stop> {
        if !self.session.one_in(4) {
            let (name, values) =
                SETTINGS[self.session.random.below(SETTINGS.len() as u64) as usize];
            let value = values[self.session.random.below(3) as usize];
            return self.session.must(&format!("SET GLOBAL {name} = {value}")).map(drop);
        }
        let value = 1 + self.session.random.below(1_000_000);
        self.session.world.know().persisted.under_way = Some(value);
        match self.session.send(&format!("SET PERSIST {PERSISTED} = {value}")) {
            Ok(Reply::Done(..)) => {
                let mut known = self.session.world.know();
                known.persisted.committed = known.persisted.under_way.take();
                Ok(())
            }
            Err(Stop::Over) => Err(Stop::Over),
            Ok(Reply::Refused(_)) | Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => {
                Err(Stop::Lost)
            }
        }
    }

    /// Compares the persisted setting with what it can be.
    pub(super) fn settle_settings(&mut self) -> Result<(), Stop> {
        let sql = format!(
            "SELECT VARIABLE_VALUE FROM performance_schema.persisted_variables WHERE VARIABLE_NAME = '{PERSISTED}'"
        );
        let persisted = self.session.rows(&sql)?;
        let value = |row: &Vec<Option<String>>| row.first()?.as_ref()?.parse::<u64>().ok();
        let found = persisted.first().and_then(value);
        let mut known = self.session.world.know();
        let under_way = known.persisted.under_way.take();
        if found == known.persisted.committed || (under_way.is_some() && found == under_way) {
            known.persisted.committed = found;
            return Ok(());
        }
        let committed = known.persisted.committed;
        drop(known);
        let detail = format!("it is {found:?}, expected {committed:?} or {under_way:?}");
        Err(self.session.violate("a persisted setting stays", detail))
    }
}
