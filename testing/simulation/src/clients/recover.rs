//! What a client does after each log-in: it finds out what became of what it had sent, and decides about its branch.

use std::time::Duration;

use super::branch::{Branch, Stage};
use super::{Reply, Session, Stop, Worker};
use crate::model::{Look, Settled};

/// Simulated time until the session of a connection that is gone must be gone too.
const SESSION_STAYS: Duration = Duration::from_secs(200);
const ATTEMPT: Duration = Duration::from_millis(10);

/// Waits for locks are shorter than a client's patience.
const SETTINGS: [&str; 3] = [
    "SET SESSION innodb_lock_wait_timeout = 20, lock_wait_timeout = 60, max_execution_time = 0",
    "SET SESSION autocommit = 1",
    "USE d",
];

impl Session {
    /// Connects, and waits until the connection before has no session any more: what was sent over it has happened then, or never will.
    pub fn log_in(&mut self) -> Result<(), Stop> {
        let before = self.connect()?;
        for setting in SETTINGS {
            self.must(setting)?;
        }
        let Some(before) = before else { return Ok(()) };
        let until = sys::clock::monotonic() + SESSION_STAYS;
        let count =
            format!("SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {before}");
        while self.rows(&count)? != [[Some("0".to_owned())]] {
            if sys::clock::monotonic() > until {
                let detail = format!("connection {before} is still there");
                return Err(self.violate("the session of a lost connection ends", detail));
            }
            sys::threads::sleep(ATTEMPT);
        }
        Ok(())
    }
}

impl Session {
    /// Stops the server.
    pub fn shut_down(&mut self) -> Result<(), Stop> {
        match self.send("SHUTDOWN") {
            Err(Stop::Over) => Err(Stop::Over),
            // The server may be gone before its answer comes.
            Ok(_) | Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => Ok(()),
        }
    }
}

impl Worker {
    /// Logs in; afterwards it is known which rows the client has.
    pub(super) fn recover(&mut self) -> Result<(), Stop> {
        let recovered = self.try_to_recover();
        // Whatever kept it from that, it tries again.
        recovered.map_err(|stop| if stop == Stop::Over { stop } else { Stop::Lost })
    }

    fn try_to_recover(&mut self) -> Result<(), Stop> {
        self.session.log_in()?;
        let branch = self.session.world.know().branches.get(&self.number).cloned();
        let is_prepared = match &branch {
            Some(branch) => self.find_branch(branch)?,
            None => false,
        };
        self.find_decided(branch.as_ref())?;
        self.settle(branch.as_ref().map(|branch| (branch, is_prepared)))?;
        if is_prepared { self.decide() } else { Ok(()) }
    }

    /// Whether a branch is prepared.
    fn find_branch(&mut self, branch: &Branch) -> Result<bool, Stop> {
        let rows = self.session.rows("XA RECOVER")?;
        let xid = Some(branch.xid.clone());
        let is_prepared = rows.iter().any(|row| row.get(3) == Some(&xid));
        if !is_prepared && branch.stage == Stage::Prepared {
            let detail = format!("{} is not among {rows:?}", branch.xid);
            let rule = "a prepared branch stays until somebody decides about it";
            return Err(self.session.violate(rule, detail));
        }
        Ok(is_prepared)
    }

    /// No branch of this client may be there besides the one that it left.
    fn find_decided(&mut self, left: Option<&Branch>) -> Result<(), Stop> {
        let (own, left) = (format!("x{}-", self.number), left.map(|branch| branch.xid.as_str()));
        let rows = self.session.rows("XA RECOVER")?;
        let xids = rows.iter().filter_map(|row| row.get(3)?.as_deref());
        match xids.filter(|xid| xid.starts_with(&own)).find(|xid| Some(*xid) != left) {
            None => Ok(()),
            Some(xid) => {
                let rule = "a branch that was decided does not come back";
                Err(self.session.violate(rule, format!("{xid} is prepared")))
            }
        }
    }

    /// Reads all of the client's rows and compares them with what they can be. Of a branch: whether it is still prepared.
    fn settle(&mut self, branch: Option<(&Branch, bool)>) -> Result<(), Stop> {
        let owner = self.number;
        self.session.set_level("REPEATABLE READ")?;
        self.session.must("START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY")?;
        let mut seen = Vec::new();
        for look in Look::WHOLE {
            seen.push((look, self.session.rows(&look.sql(owner, ""))?));
        }
        self.session.must("COMMIT")?;
        let (settled, is_unseen, expected) = {
            let mut known = self.session.world.know();
            let timeline = &mut known.timelines[owner as usize];
            let expected = [Some(timeline.committed()), timeline.under_way()];
            let is_there = |state: &crate::model::State| {
                seen.iter().all(|(look, rows)| look.rows(owner, state) == *rows)
            };
            let settled = timeline.settle(is_there);
            let is_unseen = settled != Settled::Lost || timeline.withdraw();
            (settled, is_unseen, expected)
        };
        let words: Vec<String> = expected.iter().flatten().map(|state| state.words()).collect();
        if settled == Settled::Neither {
            let detail = format!("it has {seen:?}\n  expected {}", words.join("\n  or "));
            let rule =
                "what was acknowledged is there, what was not is there as a whole or not at all";
            return Err(self.session.violate(rule, detail));
        }
        if !is_unseen {
            let detail = format!("somebody read {}", words.last().map_or("", String::as_str));
            return Err(self.session.violate("nobody sees what is not committed", detail));
        }
        let Some((branch, is_prepared)) = branch else { return Ok(()) };
        let is_right = match (branch.stage, is_prepared, settled) {
            // Decided in part is not decided.
            (_, true, settled) => {
                settled != Settled::Neither && expected[1].is_none() || settled == Settled::Lost
            }
            (Stage::Committing, false, settled) => {
                settled == Settled::Committed && expected[1].is_some()
            }
            (Stage::Preparing | Stage::Prepared | Stage::RollingBack, false, _) => true,
        };
        if !is_right {
            let detail = format!("{branch:?}, prepared: {is_prepared}; {settled:?}");
            let rule = "a prepared branch is committed or rolled back as it was told";
            return Err(self.session.violate(rule, detail));
        }
        if !is_prepared {
            self.set_branch(None);
        }
        Ok(())
    }

    /// The client's first rows.
    pub(crate) fn create(session: &mut Session, owner: u32) -> Result<(), Stop> {
        match session.send(&format!("INSERT INTO versions VALUES ({owner}, 0)"))? {
            Reply::Done(1, _) => Ok(()),
            other => {
                Err(session
                    .violate("a statement does to its rows what it says", format!("{other:?}")))
            }
        }
    }
}
