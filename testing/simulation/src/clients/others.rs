//! Reads of other clients' rows: whatever a snapshot shows is one of the states that they committed, and not an old one.

use std::time::Duration;

use super::{Stop, Worker};
use crate::model::{Look, Rows};

/// Reads of a snapshot.
const LOOKS: u64 = 6;
const READ_COMMITTED: usize = 0;
const SERIALIZABLE: usize = 2;

/// What a reader found of another client.
struct Findings {
    owner: u32,
    /// The state that was acknowledged before the reader began.
    floor: usize,
    seen: Vec<(Look, Rows)>,
}

impl Worker {
    pub(super) fn look_at_others(&mut self) -> Result<(), Stop> {
        let owner = self.session.random.below(self.session.world.plan.clients.into()) as u32;
        let level = self.session.draw_level()?;
        let begin = match self.session.random.below(3) {
            0 if level != READ_COMMITTED => "START TRANSACTION WITH CONSISTENT SNAPSHOT",
            1 => "START TRANSACTION READ ONLY",
            _ => "START TRANSACTION",
        };
        let mut findings = Findings { owner, floor: self.floor(owner), seen: Vec::new() };
        self.session.must(begin)?;
        for _ in 0..1 + self.session.random.below(LOOKS) {
            if level == READ_COMMITTED {
                // Each statement has a snapshot of its own.
                findings = Findings { owner, floor: self.floor(owner), seen: Vec::new() };
            }
            let look = Look::draw(&mut self.session.random);
            // A locking read is of the present, where others may stand between two snapshots.
            let rows = self.session.rows(&look.sql(owner, ""))?;
            findings.seen.push((look, rows));
            self.compare(&findings)?;
            match self.session.one_in(5) && level != SERIALIZABLE {
                // Others go on, and purge would like to.
                true => {
                    let micros = self.session.random.below(200_000);
                    sys::threads::sleep(Duration::from_micros(micros));
                }
                false => self.session.think(),
            }
        }
        self.session.must("COMMIT").map(drop)
    }

    fn floor(&self, owner: u32) -> usize {
        self.session.world.know().timelines[owner as usize].floor()
    }

    /// One of the states must show all that was found.
    fn compare(&self, Findings { owner, floor, seen }: &Findings) -> Result<(), Stop> {
        let mut known = self.session.world.know();
        let timeline = &mut known.timelines[*owner as usize];
        let shows_all =
            |at: &usize| seen.iter().all(|(look, rows)| timeline.shows(*at, *owner, *look, rows));
        let candidates: Vec<usize> = timeline.numbers().skip(*floor).filter(shows_all).collect();
        if !candidates.is_empty() {
            timeline.see(&candidates);
            return Ok(());
        }
        let states = timeline.numbers().skip(*floor);
        let states: Vec<String> = states.map(|at| timeline.words(at)).collect();
        let older =
            timeline.numbers().take(*floor).rev().find(|at| {
                seen.iter().all(|(look, rows)| timeline.shows(*at, *owner, *look, rows))
            });
        drop(known);
        let seen: Vec<String> = seen
            .iter()
            .map(|(look, rows)| format!("{} returned {rows:?}", look.sql(*owner, "")))
            .collect();
        let hint = older.map_or(String::new(), |at| format!("\n  which is the older state {at}"));
        let detail = format!(
            "of client {owner} it saw\n  {}{hint}\n  which is none of\n  {}",
            seen.join("\n  "),
            states.join("\n  ")
        );
        let rule = "a snapshot shows what one moment committed, and everything that was acknowledged before";
        Err(self.session.violate(rule, detail))
    }
}
