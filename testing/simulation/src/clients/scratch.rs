//! Tables that come, are filled and emptied, get other names and go. Each statement happens as a whole or not at all.

use std::collections::BTreeMap;

use super::definitions::Changer;
use super::{Reply, Stop};

/// Rows of tables by their names.
type Tables = BTreeMap<String, Vec<u32>>;

/// The tables that there are.
#[derive(Debug, Default)]
pub struct ScratchTables {
    committed: Tables,
    /// After the statement that is under way, or whose answer was lost.
    under_way: Option<Tables>,
}

const NAMES: [&str; 4] = ["scratch_a", "scratch_b", "scratch_c", "scratch_d"];
const RULE: &str = "a change of tables happens as a whole or not at all";

impl Changer {
    /// One statement about scratch tables.
    pub(super) fn scratch(&mut self) -> Result<(), Stop> {
        let tables = self.session.world.know().scratch.committed.clone();
        let Some((sql, after)) = self.draw_scratch(tables) else { return Ok(()) };
        self.session.world.know().scratch.under_way = Some(after);
        let reply = self.session.send(&sql);
        let is_done = match reply {
            Ok(Reply::Done(..)) => true,
            Ok(Reply::Refused(1205)) => false,
            Ok(Reply::Refused(code)) => {
                return Err(self.session.violate(RULE, format!("{sql}: error {code}")));
            }
            Err(Stop::Over) => return Err(Stop::Over),
            Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => return Err(Stop::Lost),
        };
        let mut known = self.session.world.know();
        if let Some(after) = known.scratch.under_way.take()
            && is_done
        {
            known.scratch.committed = after;
        }
        Ok(())
    }

    fn draw_scratch(&mut self, mut tables: Tables) -> Option<(String, Tables)> {
        let random = &mut self.session.random;
        let name = NAMES[random.below(4) as usize].to_owned();
        let other = NAMES[random.below(4) as usize].to_owned();
        let Some(rows) = tables.get(&name).cloned() else {
            let sql = format!(
                "CREATE TABLE {name} (id INT AUTO_INCREMENT PRIMARY KEY, v INT NOT NULL, KEY (v))"
            );
            tables.insert(name, Vec::new());
            return Some((sql, tables));
        };
        let kind = random.below(9);
        let count = 1 + random.below(40);
        match kind {
            0 => {
                tables.remove(&name);
                Some((format!("DROP TABLE {name}"), tables))
            }
            1 => {
                tables.insert(name.clone(), Vec::new());
                Some((format!("TRUNCATE TABLE {name}"), tables))
            }
            2 if other != name => {
                let renamed = match tables.insert(other.clone(), rows) {
                    // Two at once.
                    Some(others) => {
                        tables.insert(name.clone(), others);
                        format!("{name} TO scratch_x, {other} TO {name}, scratch_x TO {other}")
                    }
                    None => {
                        tables.remove(&name);
                        format!("{name} TO {other}")
                    }
                };
                Some((format!("RENAME TABLE {renamed}"), tables))
            }
            3 if !tables.contains_key(&other) => {
                tables.insert(other.clone(), rows);
                Some((
                    format!("CREATE TABLE {other} (PRIMARY KEY (v)) AS SELECT v FROM {name}"),
                    tables,
                ))
            }
            4 => {
                let gone = rows.first().copied()?;
                tables.insert(name.clone(), rows.into_iter().filter(|v| *v != gone).collect());
                Some((format!("DELETE FROM {name} WHERE v = {gone}"), tables))
            }
            5 => Some((format!("ALTER TABLE {name} MODIFY v BIGINT NOT NULL"), tables)),
            _ => {
                let fresh: Vec<u32> = (0..count).map(|_| self.session.world.number()).collect();
                let values: Vec<String> = fresh.iter().map(|v| format!("({v})")).collect();
                tables.insert(name.clone(), [rows, fresh].concat());
                Some((format!("INSERT INTO {name} (v) VALUES {}", values.join(", ")), tables))
            }
        }
    }

    /// Compares the tables that are there with those that can be.
    pub(super) fn settle_scratch(&mut self) -> Result<(), Stop> {
        let sql = "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = 'd' AND TABLE_NAME LIKE 'scratch%'";
        let mut found = Tables::new();
        for row in self.session.rows(sql)? {
            let name = row.into_iter().next().flatten().unwrap_or_default();
            let rows = self.session.rows(&format!("SELECT v FROM {name}"))?;
            let number = |row: &Vec<Option<String>>| row.first()?.as_ref()?.parse().ok();
            found.insert(name, rows.iter().filter_map(number).collect());
        }
        let mut known = self.session.world.know();
        let scratch = &mut known.scratch;
        let under_way = scratch.under_way.take();
        let fits = |tables: &Tables| sorted(tables.clone()) == sorted(found.clone());
        if let Some(after) = under_way.as_ref().filter(|after| fits(after)) {
            scratch.committed = after.clone();
            return Ok(());
        }
        if fits(&scratch.committed) {
            return Ok(());
        }
        let committed = scratch.committed.clone();
        drop(known);
        let detail = format!("it has {found:?}\n  expected {committed:?}\n  or {under_way:?}");
        Err(self.session.violate(RULE, detail))
    }
}

fn sorted(mut tables: Tables) -> Tables {
    tables.values_mut().for_each(|rows| rows.sort_unstable());
    tables
}
