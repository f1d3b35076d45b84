//! A client that changes what others work with: definitions of their tables, tables of its own, settings; that takes backups and ends others' statements.

use std::collections::{BTreeMap, BTreeSet};

use super::{Reply, Session, Stop};
use crate::model::Rows;
use crate::plan::{Fault, Work};
use crate::world::Backup;

/// What there is of a table's definition that comes and goes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Shape {
    indexes: BTreeSet<String>,
    has_extra: bool,
    /// 0 without.
    partitions: u64,
}

type Shapes = BTreeMap<String, Shape>;

/// Definitions of the tables in use.
#[derive(Debug, Default)]
pub struct Toggles {
    committed: Shapes,
    /// After the statement that is under way, or whose answer was lost.
    under_way: Option<Shapes>,
}

/// Tables, and indexes that they may have.
const TABLES: [(&str, &[(&str, &str)]); 4] = [
    ("items", &[("extra_v", "(v(12))"), ("extra_su", "(s, u)"), ("extra_unique", "UNIQUE (u, s)")]),
    ("parts", &[("extra_n", "(n)"), ("extra_sn", "(s, n)")]),
    ("lists", &[("extra_list", "(list(10))"), ("extra_gk", "(g, k)")]),
    ("accounts", &[("extra_moves", "(moves)")]),
];
/// A table that is partitioned by a hash, and the partitions that it begins with.
const HASHED: (&str, u64) = ("parts", 3);
const RULE: &str = "a change of a definition happens as a whole or not at all";

/// The client.
pub(crate) struct Changer {
    pub session: Session,
    statements: u32,
}

impl Changer {
    pub fn new(session: Session) -> Changer {
        let statements = session.world.plan.statements / 3;
        Changer { session, statements }
    }

    /// Whether the plan has something for it to do.
    pub fn has_work(session: &Session) -> bool {
        let work = &session.world.plan.work;
        let changes = [Work::Definitions, Work::Scratch, Work::Backup, Work::Settings];
        changes.iter().any(|one| work.contains(one)) || session.world.has(Fault::KillSession)
    }

    /// Works until the end of its statements or of the life.
    pub fn work(mut self) {
        let mut recovers = true;
        while !self.session.world.know().is_over {
            let done = match std::mem::take(&mut recovers) {
                true => self.recover(),
                false if self.session.sent >= self.statements => break,
                false => self.something(),
            };
            match done.or_else(|stop| self.session.roll_back(stop)) {
                Ok(()) => {}
                Err(Stop::Over) => break,
                Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => recovers = true,
            }
        }
        self.session.leave();
    }

    fn recover(&mut self) -> Result<(), Stop> {
        let mut recovered = self.session.log_in();
        let patience = "SET SESSION lock_wait_timeout = 200";
        recovered = recovered.and_then(|()| self.session.must(patience).map(drop));
        recovered = recovered.and_then(|()| self.settle_shapes());
        recovered = recovered.and_then(|()| self.settle_scratch());
        recovered = recovered.and_then(|()| self.settle_settings());
        recovered.map_err(|stop| if stop == Stop::Over { stop } else { Stop::Lost })
    }

    fn something(&mut self) -> Result<(), Stop> {
        type Act = fn(&mut Changer) -> Result<(), Stop>;
        const ACTS: [(Work, Act); 5] = [
            (Work::Definitions, Changer::alter),
            (Work::Definitions, Changer::maintain),
            (Work::Scratch, Changer::scratch),
            (Work::Backup, Changer::back_up),
            (Work::Settings, Changer::set),
        ];
        self.session.think();
        let plan = &self.session.world.plan;
        let mut acts: Vec<Act> =
            ACTS.iter().filter(|(work, _)| plan.work.contains(work)).map(|(_, act)| *act).collect();
        if plan.faults.contains(&Fault::KillSession) {
            acts.push(Changer::kill);
        }
        match acts.get(self.session.random.below(acts.len() as u64) as usize) {
            Some(act) => act(self),
            None => self.session.must("SELECT 1").map(drop),
        }
    }

    /// Changes the definition of a table that others use.
    fn alter(&mut self) -> Result<(), Stop> {
        let mut shapes = self.session.world.know().toggles.committed.clone();
        let (table, indexes) = TABLES[self.session.random.below(TABLES.len() as u64) as usize];
        let shape = shapes.entry(table.to_owned()).or_default();
        let change = match self.session.random.below(10) {
            0 | 1 => {
                shape.has_extra = !shape.has_extra;
                match shape.has_extra {
                    true => "ADD COLUMN extra INT NOT NULL DEFAULT 7".to_owned(),
                    false => "DROP COLUMN extra".to_owned(),
                }
            }
            2 => "FORCE".to_owned(),
            3 | 4 if table == HASHED.0 => {
                let partitions = 2 + self.session.random.below(4);
                let before = std::mem::replace(&mut shape.partitions, partitions);
                match partitions.cmp(&before) {
                    std::cmp::Ordering::Greater => {
                        format!("ADD PARTITION PARTITIONS {}", partitions - before)
                    }
                    std::cmp::Ordering::Less => {
                        format!("COALESCE PARTITION {}", before - partitions)
                    }
                    std::cmp::Ordering::Equal => "REBUILD PARTITION ALL".to_owned(),
                }
            }
            _ => {
                let at = self.session.random.below(indexes.len() as u64) as usize;
                let (name, parts) = indexes[at];
                match shape.indexes.remove(name) {
                    true => format!("DROP INDEX {name}"),
                    false => {
                        shape.indexes.insert(name.to_owned());
                        let unique = parts.starts_with("UNIQUE");
                        let parts = parts.trim_start_matches("UNIQUE ");
                        format!("ADD {}INDEX {name} {parts}", if unique { "UNIQUE " } else { "" })
                    }
                }
            }
        };
        let is_of_partitions = change.contains("PARTITION");
        let how = match self.session.random.below(4) {
            0 if !is_of_partitions => ", ALGORITHM=COPY",
            1 if !is_of_partitions => ", LOCK=NONE",
            _ => "",
        };
        self.run_change(&format!("ALTER TABLE {table} {change}{how}"), shapes)
    }

    fn run_change(&mut self, sql: &str, after: Shapes) -> Result<(), Stop> {
        self.session.world.know().toggles.under_way = Some(after);
        match self.session.send(sql) {
            Ok(Reply::Done(..)) => {
                let mut known = self.session.world.know();
                let after = known.toggles.under_way.take();
                known.toggles.committed = after.unwrap_or_default();
                Ok(())
            }
            // Nobody's transaction lasts as long as it waits.
            Ok(Reply::Refused(1205)) => {
                let rule = "who changes a definition waits for transactions, and these end";
                Err(self.session.violate(rule, format!("{sql}: error 1205")))
            }
            Ok(Reply::Refused(code)) => {
                Err(self.session.violate(RULE, format!("{sql}: error {code}")))
            }
            Err(Stop::Over) => Err(Stop::Over),
            Err(Stop::Lost | Stop::RolledBack | Stop::GiveUp) => Err(Stop::Lost),
        }
    }

    /// Statements that change nothing that a reader sees.
    fn maintain(&mut self) -> Result<(), Stop> {
        const STATEMENTS: [&str; 4] =
            ["ANALYZE TABLE", "CHECK TABLE", "OPTIMIZE TABLE", "FLUSH TABLES"];
        let statement = STATEMENTS[self.session.random.below(4) as usize];
        let (table, _) = TABLES[self.session.random.below(TABLES.len() as u64) as usize];
        let rows = self.session.rows(&format!("{statement} {table}"))?;
        self.session.expect_sound(statement, &rows)
    }

    /// Reads the definitions that there are and compares them with those that can be.
    fn settle_shapes(&mut self) -> Result<(), Stop> {
        let mut found = Shapes::new();
        let of = "TABLE_SCHEMA = 'd' AND TABLE_NAME IN ('items', 'parts', 'lists', 'accounts')";
        let indexes = format!(
            "SELECT DISTINCT TABLE_NAME, INDEX_NAME FROM information_schema.STATISTICS WHERE {of} AND INDEX_NAME LIKE 'extra%'"
        );
        for (table, index) in pairs(self.session.rows(&indexes)?) {
            found.entry(table).or_default().indexes.insert(index);
        }
        let columns = format!(
            "SELECT TABLE_NAME, COLUMN_NAME FROM information_schema.COLUMNS WHERE {of} AND COLUMN_NAME = 'extra'"
        );
        for (table, _) in pairs(self.session.rows(&columns)?) {
            let sql = format!("SELECT COUNT(*) FROM {table} WHERE extra <> 7");
            if self.session.rows(&sql)? != [[Some("0".to_owned())]] {
                return Err(self.session.violate("an added column has its default", sql));
            }
            found.entry(table).or_default().has_extra = true;
        }
        let partitions = format!(
            "SELECT COUNT(*) FROM information_schema.PARTITIONS WHERE TABLE_SCHEMA = 'd' AND TABLE_NAME = '{}'",
            HASHED.0
        );
        let count = self.session.rows(&partitions)?;
        let count = count.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
        found.entry(HASHED.0.to_owned()).or_default().partitions = count.unwrap_or(0);
        self.compare_shapes(&found)
    }

    fn compare_shapes(&mut self, found: &Shapes) -> Result<(), Stop> {
        let mut known = self.session.world.know();
        let under_way = known.toggles.under_way.take();
        let hashed = known.toggles.committed.entry(HASHED.0.to_owned()).or_default();
        if hashed.partitions == 0 {
            hashed.partitions = HASHED.1;
        }
        let full = |shapes: &Shapes| -> Shapes {
            let shaped = shapes.iter().filter(|(_, shape)| **shape != Shape::default());
            shaped.map(|(table, shape)| (table.clone(), shape.clone())).collect()
        };
        let fits = |shapes: &Shapes| full(shapes) == full(found);
        if fits(&known.toggles.committed) || under_way.as_ref().is_some_and(fits) {
            known.toggles.committed = found.clone();
            return Ok(());
        }
        let committed = known.toggles.committed.clone();
        drop(known);
        let detail = format!("there is {found:?}\n  expected {committed:?}\n  or {under_way:?}");
        Err(self.session.violate(RULE, detail))
    }

    /// Takes a backup.
    fn back_up(&mut self) -> Result<(), Stop> {
        if self.session.one_in(2) {
            return Ok(());
        }
        let path = format!("/backup-{}", self.session.world.number());
        let floors = self.session.world.know().timelines.iter().map(|line| line.floor()).collect();
        self.session.must(&format!("BACKUP DATABASE TO '{path}'"))?;
        self.session.world.know().backups.push(Backup { path, floors });
        Ok(())
    }

    /// Ends somebody's statement or connection.
    fn kill(&mut self) -> Result<(), Stop> {
        let others = "SELECT ID FROM information_schema.PROCESSLIST WHERE USER = 'root' AND ID <> CONNECTION_ID()";
        let ids = self.session.rows(others)?;
        let at = self.session.random.below(ids.len() as u64) as usize;
        let Some(Some(id)) = ids.get(at).and_then(|row| row.first()) else { return Ok(()) };
        let what = if self.session.one_in(2) { "KILL" } else { "KILL QUERY" };
        // It may have gone by itself.
        self.session.send(&format!("{what} {id}")).map(drop)
    }
}

fn pairs(rows: Rows) -> Vec<(String, String)> {
    let pair = |row: Vec<Option<String>>| {
        let mut cells = row.into_iter().map(Option::unwrap_or_default);
        (cells.next().unwrap_or_default(), cells.next().unwrap_or_default())
    };
    rows.into_iter().map(pair).collect()
}

impl Session {
    /// What CHECK TABLE and its kin say.
    pub fn expect_sound(&mut self, statement: &str, rows: &Rows) -> Result<(), Stop> {
        // A prepared branch keeps its tables from being checked, and may stay for long.
        let is_kept_away = |row: &Vec<Option<String>>| {
            row.iter().flatten().any(|text| text.starts_with("Lock wait timeout"))
        };
        if rows.iter().any(is_kept_away) {
            return Ok(());
        }
        let is_sound = |row: &Vec<Option<String>>| {
            let kind = row.get(2).and_then(Option::as_deref);
            let text = row.get(3).and_then(Option::as_deref).unwrap_or("");
            kind == Some("note") || text == "OK"
        };
        if rows.iter().all(is_sound) {
            return Ok(());
        }
        let detail = format!("{statement}: {rows:?}");
        Err(self.violate("tables and their indexes agree", detail))
    }
}
