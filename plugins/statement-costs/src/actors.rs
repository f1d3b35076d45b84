//! `setup_actors`: which accounts' connections are recorded when they begin.

use errors::{Result, err};
use plugin_api::kit::text;
use sys::sync::Mutex;
use types::Value;

use crate::switches::{Switches, switch};

/// In place of a host, a user or a role: any.
const ANY: &str = "%";
/// Rows at most: a log-in looks at all.
const ACTORS_MAX: usize = 1024;
const NAME: &str = "setup_actors";
/// Places of the columns ENABLED and HISTORY.
const ENABLED: usize = 3;
const HISTORY: usize = 4;

/// One row.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Actor {
    host: String,
    user: String,
    role: String,
    switches: Switches,
}

impl Actor {
    fn key(&self) -> [&str; 3] {
        [&self.host, &self.user, &self.role]
    }
}

/// The rows. In the order of MySQL's search: those that name user and host come first, then those that name the user, then the host.
#[derive(Debug)]
pub(crate) struct Actors(Mutex<Vec<Actor>>);

impl Default for Actors {
    fn default() -> Actors {
        let any = || ANY.to_owned();
        let all = Actor { host: any(), user: any(), role: any(), switches: Switches::default() };
        Actors(Mutex::new(vec![all]))
    }
}

impl Actors {
    /// What is recorded of a new connection of this account: nothing when no row is about it.
    pub(crate) fn of(&self, user: &str, host: &str) -> Switches {
        let actors = self.0.lock();
        let fits = |pattern: &str, name: &str| pattern == ANY || pattern == name;
        let host_fits = |pattern: &str| pattern == ANY || pattern.eq_ignore_ascii_case(host);
        let fitting =
            actors.iter().filter(|actor| fits(&actor.user, user) && host_fits(&actor.host));
        let best = fitting.max_by_key(|actor| (actor.user != ANY, actor.host != ANY));
        best.map_or(Switches::NONE, |actor| actor.switches)
    }

    /// Whether the rows are those of the start: every connection is recorded.
    pub(crate) fn is_initial(&self) -> bool {
        matches!(&**self.0.lock(), [actor] if actor.key() == [ANY; 3] && actor.switches == Switches::default())
    }

    /// INSERT of a row; `None` stands for the column's default.
    ///
    /// # Errors
    /// 1022 when the row is there, 1265 for words other than YES and NO, 1114 when there are too many rows.
    pub(crate) fn insert(&self, row: &[Option<Value>], number: u64) -> Result<()> {
        let given = |at: usize| row.get(at).and_then(Option::as_ref);
        let name = |at| given(at).map_or_else(|| ANY.to_owned(), |value| text(value).into_owned());
        let word = |at, column| given(at).map_or(Ok(true), |value| switch(value, column, number));
        let switches = Switches {
            is_instrumented: word(ENABLED, "ENABLED")?,
            has_history: word(HISTORY, "HISTORY")?,
        };
        let actor = Actor { host: name(0), user: name(1), role: name(2), switches };
        let mut actors = self.0.lock();
        if actors.iter().any(|other| other.key() == actor.key()) {
            return Err(err!(DUP_KEY, NAME));
        }
        if actors.len() >= ACTORS_MAX {
            return Err(err!(RECORD_FILE_FULL, NAME));
        }
        actors.push(actor);
        Ok(())
    }

    /// DELETE of a row.
    pub(crate) fn delete(&self, row: &[Value]) -> bool {
        let mut actors = self.0.lock();
        let before = actors.len();
        actors.retain(|actor| !is_row(actor, row));
        actors.len() < before
    }

    /// UPDATE of a row.
    ///
    /// # Errors
    /// 1683 for other columns than ENABLED and HISTORY, 1265 for words other than YES and NO.
    pub(crate) fn update(
        &self,
        row: &[Value],
        assigned: &[(usize, Value)],
        number: u64,
    ) -> Result<bool> {
        let mut actors = self.0.lock();
        let Some(actor) = actors.iter_mut().find(|actor| is_row(actor, row)) else {
            return Ok(false);
        };
        let mut switches = actor.switches;
        for (at, value) in assigned {
            match *at {
                ENABLED => switches.is_instrumented = switch(value, "ENABLED", number)?,
                HISTORY => switches.has_history = switch(value, "HISTORY", number)?,
                _ => return Err(err!(WRONG_PERFSCHEMA_USAGE)),
            }
        }
        let is_changed = switches != actor.switches;
        actor.switches = switches;
        Ok(is_changed)
    }

    /// The rows.
    pub(crate) fn rows(&self) -> Vec<Vec<Value>> {
        let row = |actor: &Actor| {
            let names = actor.key().map(Value::text).into_iter();
            names.chain(actor.switches.columns()).collect()
        };
        self.0.lock().iter().map(row).collect()
    }

    /// TRUNCATE: no connection is recorded any more.
    pub(crate) fn clear(&self) {
        self.0.lock().clear();
    }
}

fn is_row(actor: &Actor, row: &[Value]) -> bool {
    row.len() >= 3 && actor.key().iter().zip(row).all(|(name, value)| *name == text(value))
}

#[cfg(test)]
mod tests {
    use errors::ErrorCode;

    use super::*;

    fn add(actors: &Actors, names: [&str; 3], enabled: &str) -> Result<()> {
        let mut row: Vec<_> = names.map(|name| Some(Value::text(name))).to_vec();
        row.extend([Some(Value::text(enabled)), None]);
        actors.insert(&row, 1)
    }

    #[test]
    fn the_row_that_names_most_decides() {
        let actors = Actors::default();
        assert!(actors.is_initial());
        assert!(add(&actors, ["%", "eve", "%"], "NO").is_ok());
        assert!(add(&actors, ["home", "eve", "%"], "YES").is_ok());
        assert!(!actors.is_initial());
        let is_on = |user, host| actors.of(user, host).is_instrumented;
        assert_eq!(
            (is_on("bob", "home"), is_on("eve", "away"), is_on("eve", "HOME")),
            (true, false, true)
        );
        let code = |result: Result<()>| result.err().map(|error| error.code());
        assert_eq!(code(add(&actors, ["%", "eve", "%"], "YES")), Some(ErrorCode::DUP_KEY));
        assert_eq!(code(add(&actors, ["%", "x", "%"], "maybe")), Some(ErrorCode::DATA_TRUNCATED));
        let row = ["%", "%", "%"].map(Value::text);
        assert!(actors.delete(&row) && !actors.delete(&row));
        assert_eq!(actors.of("bob", "home"), Switches::NONE);
    }
}
