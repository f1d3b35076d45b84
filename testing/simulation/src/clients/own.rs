//! Changes of a client's own rows, each checked against the model, as statements, transactions and XA branches.

use sys::simulation::note;

use super::branch::{Branch, Stage};
use super::{Reply, Session, Stop, Worker};
use crate::model::{Change, Look, State};
use crate::plan::Work;

/// Changes and reads of a transaction.
const STEPS: u64 = 6;
const LEVELS: [&str; 3] = ["READ COMMITTED", "REPEATABLE READ", "SERIALIZABLE"];
const LOCKING: [&str; 5] = ["", "", "", " FOR UPDATE", " FOR SHARE"];

impl Session {
    /// The level of the next transactions: its number, of READ COMMITTED, REPEATABLE READ and SERIALIZABLE.
    pub fn draw_level(&mut self) -> Result<usize, Stop> {
        // The middle one, the usual one, more often.
        let level = [0, 1, 1, 1, 2][self.random.below(5) as usize];
        self.set_level(LEVELS[level])?;
        Ok(level)
    }

    pub fn set_level(&mut self, level: &str) -> Result<(), Stop> {
        self.must(&format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")).map(drop)
    }
}

impl Worker {
    /// The client's committed rows.
    fn committed(&self) -> State {
        (*self.session.world.know().timelines[self.number as usize].committed()).clone()
    }

    fn draw_change(&mut self) -> Change {
        let number = self.session.world.number();
        let wide = self.session.world.plan.work.contains(&Work::Wide);
        Change::draw(&mut self.session.random, number, wide)
    }

    pub(super) fn change_own(&mut self) -> Result<(), Stop> {
        let has_branches = self.session.world.plan.work.contains(&Work::Xa);
        match self.session.random.below(8) {
            0 | 1 => self.change_at_once(),
            2 | 3 if has_branches => self.branch(),
            _ => self.transaction(),
        }
    }

    /// One statement that commits by itself.
    fn change_at_once(&mut self) -> Result<(), Stop> {
        let change = self.draw_change();
        let mut state = self.committed();
        let expected = change.apply(&mut state);
        if expected.is_ok() {
            self.begin_commit(state);
        }
        let reply = self.session.send(&change.sql(self.number));
        // After an error the outcome is found out after the next log-in.
        let reply = reply.map_err(|stop| if stop == Stop::Over { stop } else { Stop::Lost })?;
        if expected.is_ok() {
            match reply {
                Reply::Done(..) => self.acknowledge(),
                Reply::Refused(_) => self.withdraw()?,
            }
        }
        self.check(&change, expected, reply).map(drop)
    }

    fn begin_commit(&self, state: State) {
        self.session.world.know().timelines[self.number as usize].begin(state);
    }

    fn acknowledge(&self) {
        let mut known = self.session.world.know();
        known.timelines[self.number as usize].acknowledge();
        known.counts.commits += 1;
    }

    fn withdraw(&self) -> Result<(), Stop> {
        let is_unseen = self.session.world.know().timelines[self.number as usize].withdraw();
        match is_unseen {
            true => Ok(()),
            false => Err(self.session.violate(
                "nobody sees what is not committed",
                "another client saw a change of this one that failed",
            )),
        }
    }

    /// Compares an answer with what the model says. Whether the statement was done.
    fn check(
        &mut self,
        change: &Change,
        expected: Result<u64, u16>,
        reply: Reply,
    ) -> Result<bool, Stop> {
        let said = match (&reply, expected) {
            (Reply::Done(affected, _), Ok(wanted)) if *affected == wanted => return Ok(true),
            (Reply::Refused(code), Err(wanted)) if *code == wanted => return Ok(false),
            (Reply::Refused(1205), _) => return Ok(false),
            (Reply::Done(affected, _), _) => format!("{affected} rows"),
            (Reply::Refused(code), _) => format!("error {code}"),
        };
        let sql = super::short(&change.sql(self.number));
        let detail = format!("{sql}: {said}, expected {expected:?}");
        Err(self.session.violate("a statement does to its rows what it says", detail))
    }

    /// A transaction of changes and reads.
    fn transaction(&mut self) -> Result<(), Stop> {
        self.session.draw_level()?;
        self.session.must("START TRANSACTION")?;
        let state = self.steps(true)?;
        if self.session.one_in(6) {
            return self.session.must("ROLLBACK").map(drop);
        }
        self.begin_commit(state);
        self.commit("COMMIT")
    }

    /// Sends what commits, and notes its outcome.
    fn commit(&mut self, sql: &str) -> Result<(), Stop> {
        match self.session.send(sql) {
            Ok(Reply::Done(..)) => {
                self.acknowledge();
                Ok(())
            }
            Ok(Reply::Refused(code)) => {
                let detail = format!("{sql}: error {code}");
                Err(self.session.violate("a commit is not refused", detail))
            }
            // It may have taken place: the client looks after its next log-in.
            Err(Stop::Over) => Err(Stop::Over),
            Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => {
                self.session.world.know().counts.unknown += 1;
                Err(Stop::Lost)
            }
        }
    }

    /// Changes and reads within a transaction; the rows when it commits.
    fn steps(&mut self, has_savepoints: bool) -> Result<State, Stop> {
        let mut state = self.committed();
        let comes_first = self.session.one_in(2);
        if comes_first {
            self.count_up(&mut state)?;
        }
        let mut saved: Option<State> = None;
        for _ in 0..1 + self.session.random.below(STEPS) {
            match self.session.random.below(14) {
                0..5 => self.read(&state)?,
                5 if has_savepoints => {
                    self.session.must("SAVEPOINT s")?;
                    saved = Some(state.clone());
                }
                6 | 7 if saved.is_some() => {
                    self.session.must("ROLLBACK TO SAVEPOINT s")?;
                    state = saved.clone().unwrap_or_default();
                }
                _ => self.change(&mut state)?,
            }
            self.session.think();
        }
        if !comes_first {
            self.count_up(&mut state)?;
        }
        Ok(state)
    }

    fn count_up(&mut self, state: &mut State) -> Result<(), Stop> {
        let (owner, version) = (self.number, state.version + 1);
        let sql = format!("UPDATE versions SET v = {version} WHERE owner = {owner}");
        let (affected, _) = self.session.must(&sql)?;
        if affected != 1 {
            let detail = format!("{sql}: {affected} rows");
            return Err(self.session.violate("a statement does to its rows what it says", detail));
        }
        state.version = version;
        Ok(())
    }

    fn change(&mut self, state: &mut State) -> Result<(), Stop> {
        let change = self.draw_change();
        let mut after = state.clone();
        let expected = change.apply(&mut after);
        let reply = self.session.send(&change.sql(self.number))?;
        if self.check(&change, expected, reply)? {
            *state = after;
        }
        Ok(())
    }

    /// A read of the client's own rows must show what it has done.
    fn read(&mut self, state: &State) -> Result<(), Stop> {
        let look = Look::draw(&mut self.session.random);
        let locking = LOCKING[self.session.random.below(LOCKING.len() as u64) as usize];
        let sql = look.sql(self.number, locking);
        let rows = self.session.rows(&sql)?;
        let wanted = look.rows(self.number, state);
        if rows != wanted {
            let detail = format!("{sql}\n  returned {rows:?}\n  expected {wanted:?}");
            return Err(self.session.violate("a client reads what it wrote", detail));
        }
        Ok(())
    }

    /// The same as an XA branch, which is prepared and decided later.
    fn branch(&mut self) -> Result<(), Stop> {
        self.session.draw_level()?;
        let xid = format!("x{}-{}", self.number, self.session.world.number());
        self.session.must(&format!("XA START '{xid}'"))?;
        let state = match self.steps(false) {
            Ok(state) => state,
            Err(stop) => return self.abandon(&xid, stop),
        };
        self.session.must(&format!("XA END '{xid}'"))?;
        match self.session.random.below(6) {
            0 => return self.session.must(&format!("XA ROLLBACK '{xid}'")).map(drop),
            1 => {
                self.begin_commit(state);
                return self.commit(&format!("XA COMMIT '{xid}' ONE PHASE"));
            }
            _ => {}
        }
        self.set_branch(Some(Branch { xid: xid.clone(), stage: Stage::Preparing, state }));
        // When it fails, the client finds out after its next log-in what became of it.
        let prepared = self.session.must(&format!("XA PREPARE '{xid}'"));
        prepared.map_err(|stop| if stop == Stop::Over { stop } else { Stop::Lost })?;
        self.set_stage(Stage::Prepared);
        self.session.think();
        if self.session.one_in(4) {
            // Another session decides.
            note("another session decides about the branch");
            return Err(Stop::Lost);
        }
        self.decide()
    }

    /// Rolls a branch back that could not be finished.
    fn abandon(&mut self, xid: &str, stop: Stop) -> Result<(), Stop> {
        if matches!(stop, Stop::Over | Stop::Lost) {
            return Err(stop);
        }
        // The first is refused when the server has rolled the branch back.
        let _ended = self.session.send(&format!("XA END '{xid}'"));
        match self.session.send(&format!("XA ROLLBACK '{xid}'")) {
            Err(Stop::Over) => Err(Stop::Over),
            Ok(_) => Ok(()),
            // Whatever it is, the branch ends with its connection.
            Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => Err(Stop::Lost),
        }
    }

    pub(super) fn set_branch(&self, branch: Option<Branch>) {
        let mut known = self.session.world.know();
        match branch {
            Some(branch) => drop(known.branches.insert(self.number, branch)),
            None => drop(known.branches.remove(&self.number)),
        }
    }

    fn set_stage(&self, stage: Stage) {
        let mut known = self.session.world.know();
        if let Some(branch) = known.branches.get_mut(&self.number) {
            branch.stage = stage;
        }
    }

    /// Commits the prepared branch or rolls it back.
    pub(super) fn decide(&mut self) -> Result<(), Stop> {
        let branch = self.session.world.know().branches.get(&self.number).cloned();
        let Some(Branch { xid, state, .. }) = branch else { return Ok(()) };
        if self.session.one_in(3) {
            self.set_stage(Stage::RollingBack);
            match self.session.must(&format!("XA ROLLBACK '{xid}'")) {
                Ok(_) => self.set_branch(None),
                Err(Stop::Over) => return Err(Stop::Over),
                Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => return Err(Stop::Lost),
            }
            return Ok(());
        }
        self.set_stage(Stage::Committing);
        self.begin_commit(state);
        self.commit(&format!("XA COMMIT '{xid}'"))?;
        self.set_branch(None);
        Ok(())
    }
}
