//! One connection's random transactions, as SQL and as operations for the checker.

use std::ops::Range;
use std::time::Instant;

use client::{Connection, Failure, Options};
use histories::{Element, End, Key, Op, Reading, Transaction};
use sys::entropy::SplitMix;

use crate::work::{FLEETING, Lists, RANGE, Rows, SECOND_KEY, key_of};

const DEADLOCK: u16 = 1213;
const LOCK_NOWAIT: u16 = 3572;
/// Transactions are short: a wait of this length means an undetected deadlock, which fails the run.
const LOCK_WAIT_SECONDS: u32 = 30;

pub(crate) struct Session<'l> {
    connection: Connection,
    lists: &'l Lists,
    clock: Instant,
    random: SplitMix,
    /// Other transactions cannot insert a row where a locking read found none.
    locks_gaps: bool,
}

/// The reason why a transaction stopped.
enum Stopped {
    /// Rolled back; this is expected.
    Aborted,
    Failed(String),
}

impl From<Failure> for Stopped {
    fn from(failure: Failure) -> Stopped {
        match failure {
            Failure::Server(error) if error.code().0 == DEADLOCK => Stopped::Aborted,
            other => Stopped::Failed(other.to_string()),
        }
    }
}

/// How a read locks.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lock {
    None,
    Update,
    Share,
    NoWait,
    SkipLocked,
}

impl Lock {
    fn sql(self) -> &'static str {
        match self {
            Lock::None => "",
            Lock::Update => " FOR UPDATE",
            Lock::Share => " FOR SHARE",
            Lock::NoWait => " FOR UPDATE NOWAIT",
            Lock::SkipLocked => " FOR UPDATE SKIP LOCKED",
        }
    }

    fn reading(self) -> Reading {
        if self == Lock::None { Reading::Plain } else { Reading::Locking }
    }
}

/// Reads that record nothing for lists that they do not find.
const NOWHERE: Range<u32> = 0..0;

impl<'l> Session<'l> {
    pub fn open(
        login: &Options,
        level: &str,
        lists: &'l Lists,
        clock: Instant,
        seed: u64,
    ) -> Result<Session<'l>, String> {
        let mut connection = Connection::open(login).map_err(|failure| failure.to_string())?;
        for sql in [
            format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}"),
            format!("SET SESSION innodb_lock_wait_timeout = {LOCK_WAIT_SECONDS}"),
            "USE histories".into(),
        ] {
            connection
                .query(sql.as_bytes(), &mut ())
                .map_err(|failure| format!("{sql}: {failure}"))?;
        }
        let (random, locks_gaps) = (SplitMix::new(seed), level != "READ COMMITTED");
        Ok(Session { connection, lists, clock, random, locks_gaps })
    }

    /// Affected rows.
    fn run(&mut self, sql: &str) -> Result<u64, Stopped> {
        let outcome = self.connection.query(sql.as_bytes(), &mut ());
        outcome.map(|outcome| outcome.affected_rows).map_err(|failure| with_sql(sql, failure))
    }

    fn now(&self) -> u64 {
        self.clock.elapsed().as_nanos() as u64
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.random.below(count) == 0
    }

    /// A random transaction.
    pub fn transaction(&mut self) -> Result<Transaction, String> {
        let began = self.now();
        let mut ops = Vec::new();
        let kind = self.random.below(12);
        let done = match kind {
            0 | 1 => self.body(true, &mut ops),
            2 => self.autocommitted(&mut ops),
            _ => self.body(false, &mut ops),
        };
        let end = match done {
            Ok(()) if kind == 2 => Ok(End::Committed),
            Ok(()) if self.one_in(20) => self.end("ROLLBACK", End::Aborted),
            Ok(()) => self.end("COMMIT", End::Committed),
            Err(Stopped::Aborted) => self.end("ROLLBACK", End::Aborted),
            Err(Stopped::Failed(error)) => Err(error),
        }?;
        Ok(Transaction { ops, end, began, ended: self.now() })
    }

    fn end(&mut self, sql: &str, end: End) -> Result<End, String> {
        match self.run(sql) {
            Ok(_) => Ok(end),
            Err(Stopped::Aborted) => Ok(End::Unknown),
            Err(Stopped::Failed(error)) => Err(error),
        }
    }

    fn body(&mut self, read_only: bool, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        match read_only {
            true => self.run("START TRANSACTION READ ONLY")?,
            false => self.run("START TRANSACTION")?,
        };
        for _ in 0..1 + self.random.below(5) {
            match self.random.below(24) {
                0..11 if !read_only => self.change(ops)?,
                11 if !read_only => self.change_and_take_back(ops)?,
                0 if read_only => self.check_notes()?,
                11 | 12 => self.read_range(ops, read_only)?,
                13 => self.read_by_group(ops, read_only)?,
                14 | 15 => self.read_fleeting(ops, read_only)?,
                _ => self.read_one(ops, read_only)?,
            }
        }
        Ok(())
    }

    /// One statement as a transaction.
    fn autocommitted(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        let place = self.lists.pick(&mut self.random);
        let element = self.lists.new_element();
        let appended = match self.random.below(4) {
            0 => self.run(&self.update_sql(place, element))? == 1,
            1 => self.run(&self.upsert_sql(place, element)).map(|_| true)?,
            // No record is needed: a client that locked the list still finds it.
            2 => {
                let k = self.fleeting_place() + SECOND_KEY;
                self.run(&format!("DELETE FROM lists WHERE k = {k}")).map(|_| false)?
            }
            _ => self.read_one(ops, true).map(|()| false)?,
        };
        if appended {
            self.lists.note_append(place);
            ops.push(Op::Append { key: place, element, undone: false });
        }
        Ok(())
    }

    fn change(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        match self.random.below(12) {
            0 | 1 => self.append_to_many(ops),
            2..5 => self.append_to_fleeting(ops),
            5 => self.delete_fleeting(ops),
            6 => self.replace_fleeting(ops),
            _ => self.append(ops),
        }
    }

    fn change_and_take_back(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        self.run("SAVEPOINT s")?;
        let mut taken_back = Vec::new();
        let changed = self.change(&mut taken_back).and_then(|()| self.change(&mut taken_back));
        // Reads in between contain elements that were never there.
        ops.extend(taken_back.into_iter().filter_map(|op| match op {
            Op::Append { key, element, .. } => Some(Op::Append { key, element, undone: true }),
            Op::Read { .. } => None,
        }));
        changed?;
        self.run("ROLLBACK TO SAVEPOINT s").map(drop)
    }

    /// Neighbours share a group, which keeps groups small.
    fn group_of(&mut self, place: u32) -> u32 {
        place / 4 + self.random.below(2) as u32
    }

    fn update_sql(&self, place: u32, element: Element) -> String {
        format!("UPDATE lists SET list = CONCAT(list, ',{element}') WHERE id = {place}")
    }

    fn upsert_sql(&self, place: u32, element: Element) -> String {
        let (k, g) = (place + SECOND_KEY, place / 4);
        format!(
            "INSERT INTO lists VALUES ({place}, {k}, {g}, '{element}') \
             ON DUPLICATE KEY UPDATE list = CONCAT(list, ',{element}')"
        )
    }

    fn append(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        let place = self.lists.pick(&mut self.random);
        let element = self.lists.new_element();
        let update = match self.random.below(4) {
            0 => {
                let (k, g) = (place + SECOND_KEY, self.group_of(place));
                format!("UPDATE lists SET g = {g}, list = CONCAT(list, ',{element}') WHERE k = {k}")
            }
            _ => self.update_sql(place, element),
        };
        let appended = self.one_in(2) && self.run(&update)? == 1;
        if !appended {
            self.run(&self.upsert_sql(place, element))?;
        }
        self.lists.note_append(place);
        ops.push(Op::Append { key: place, element, undone: false });
        if self.one_in(4) {
            self.run(&format!("INSERT INTO notes VALUES ({element}, {place})"))?;
        }
        Ok(())
    }

    /// One UPDATE of all lists in a range or of a group; then a read that shows which lists it changed.
    fn append_to_many(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        let place = self.lists.pick(&mut self.random);
        let element = self.lists.new_element();
        let condition = match self.random.below(4) {
            0 => range("id", place),
            1 => range("k", place + SECOND_KEY),
            2 => format!("k >= {}", FLEETING.start + SECOND_KEY),
            _ => format!("g = {}", self.group_of(place)),
        };
        let sql = format!("UPDATE lists SET list = CONCAT(list, ',{element}') WHERE {condition}");
        let changed = self.run(&sql)?;
        let rows = self.rows(&format!("SELECT k, list FROM lists WHERE {condition}"))?;
        let rows = rows.0.into_iter().filter(|(_, list)| list.contains(&element));
        let rows: Vec<_> = rows.map(|(place, list)| (key_of(place, &list), list)).collect();
        if rows.len() as u64 != changed {
            return Err(Stopped::Failed(format!("{sql}: {changed} rows, then {rows:?}")));
        }
        for (key, elements) in rows {
            ops.push(Op::Append { key, element, undone: false });
            ops.push(Op::Read { key, elements, reading: Reading::Plain });
        }
        Ok(())
    }

    fn fleeting_place(&mut self) -> u32 {
        FLEETING.start + self.random.below(FLEETING.len() as u64) as u32
    }

    /// Primary keys of a fleeting place are its own: only another list at the place can have them.
    fn fleeting_id(&mut self, place: u32) -> u32 {
        place * 2 + self.random.below(2) as u32
    }

    fn append_to_fleeting(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        let place = self.fleeting_place();
        let (id, k, g) = (self.fleeting_id(place), place + SECOND_KEY, self.group_of(place));
        let element = self.lists.new_element();
        let longer = format!("list = CONCAT(list, ',{element}')");
        let insert = format!("INSERT INTO lists VALUES ({id}, {k}, {g}, '{element}')");
        let sql = match self.random.below(4) {
            0 => format!("UPDATE lists SET g = {g}, {longer} WHERE k = {k}"),
            1 => format!("UPDATE lists SET id = {id}, {longer} WHERE k = {k}"),
            2 => format!("{insert} ON DUPLICATE KEY UPDATE id = {id}, {longer}"),
            _ => format!("{insert} ON DUPLICATE KEY UPDATE g = {g}, {longer}"),
        };
        let changed = self.run(&sql)?;
        if changed == 0 {
            return Ok(());
        }
        // By range: of two rows with a unique key, a search for the key finds one.
        let look = format!("SELECT k, list FROM lists WHERE k BETWEEN {} AND {}", k - 1, k + 1);
        let found = self.rows(&look)?.0;
        let is_own = |(_, list): &&(u32, Vec<Element>)| list.last() == Some(&element);
        let Some((_, elements)) = found.iter().find(is_own) else {
            return Err(Stopped::Failed(format!("{sql}: {changed} rows, then {found:?}")));
        };
        let elements = elements.clone();
        let key = key_of(place, &elements);
        ops.push(Op::Append { key, element, undone: false });
        ops.push(Op::Read { key, elements, reading: Reading::Plain });
        if self.one_in(4) {
            let sql = format!(
                "INSERT INTO notes SELECT {element}, id FROM lists WHERE k >= {k} AND FIND_IN_SET({element}, list)"
            );
            self.expect(&sql, |count| count == 1)?;
        }
        Ok(())
    }

    /// Deletes lists that it has locked; to the checker that is a last element, which no read may see.
    fn delete_fleeting(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        let place = self.fleeting_place();
        let k = place + SECOND_KEY;
        let condition = match self.random.below(3) {
            0 => range("k", k),
            _ => format!("k = {k}"),
        };
        let found = self.read(ops, &condition, NOWHERE, Lock::Update)?.unwrap_or_default().0;
        let (count, locks_gaps) = (found.len() as u64, self.locks_gaps);
        self.expect(&format!("DELETE FROM lists WHERE {condition}"), |deleted| {
            deleted == count || deleted > count && !locks_gaps
        })?;
        for (place, list) in &found {
            let (key, element) = (key_of(*place, list), self.lists.new_element());
            ops.push(Op::Append { key, element, undone: false });
        }
        if found.iter().any(|row| row.0 == place) && self.one_in(2) {
            let (id, g) = (self.fleeting_id(place), self.group_of(place));
            let element = self.lists.new_element();
            let sql = format!("INSERT INTO lists VALUES ({id}, {k}, {g}, '{element}')");
            self.expect(&sql, |inserted| inserted == 1)?;
            ops.push(Op::Append { key: key_of(place, &[element]), element, undone: false });
        }
        Ok(())
    }

    /// Deletes a list and inserts a longer one, perhaps with another primary key.
    fn replace_fleeting(&mut self, ops: &mut Vec<Op>) -> Result<(), Stopped> {
        let place = self.fleeting_place();
        let (id, k, g) = (self.fleeting_id(place), place + SECOND_KEY, self.group_of(place));
        let found = self.read(ops, &format!("k = {k}"), NOWHERE, Lock::Update)?;
        let mut list = found.and_then(|mut rows| rows.0.pop()).unwrap_or_default().1;
        let (is_new, locks_gaps) = (list.is_empty(), self.locks_gaps);
        let element = self.lists.new_element();
        list.push(element);
        let texts: Vec<String> = list.iter().map(Element::to_string).collect();
        let sql = format!("REPLACE INTO lists VALUES ({id}, {k}, {g}, '{}')", texts.join(","));
        let changed = self.run(&sql)?;
        let is_right = match is_new {
            true => changed == 1 || changed == 2 && !locks_gaps,
            false => changed == 2,
        };
        if !is_right {
            return Err(Stopped::Failed(format!("{sql}: {changed} rows")));
        }
        if is_new && changed == 2 {
            // A list came after the look. REPLACE keeps its notes when the primary key is the same, and the new list has not its elements.
            self.run(&format!("DELETE FROM notes WHERE list = {id} AND element <> {element}"))?;
        }
        ops.push(Op::Append { key: key_of(place, &list), element, undone: false });
        Ok(())
    }

    fn expect(&mut self, sql: &str, is_right: impl Fn(u64) -> bool) -> Result<(), Stopped> {
        let count = self.run(sql)?;
        match is_right(count) {
            true => Ok(()),
            false => Err(Stopped::Failed(format!("{sql}: {count} rows"))),
        }
    }

    fn lock(&mut self, read_only: bool) -> Lock {
        match self.random.below(10) {
            0 | 1 if !read_only => Lock::Update,
            2 | 3 if !read_only => Lock::Share,
            4 if !read_only => Lock::NoWait,
            5 if !read_only => Lock::SkipLocked,
            _ => Lock::None,
        }
    }

    fn rows(&mut self, sql: &str) -> Result<Rows, Stopped> {
        let mut rows = Rows::default();
        let read = self.connection.query(sql.as_bytes(), &mut rows);
        read.map(|_| rows).map_err(|failure| with_sql(sql, failure))
    }

    /// Reads lists and records the reads, also of those of `places` that do not exist. NOWAIT reads nothing when there is a lock.
    fn read(
        &mut self,
        ops: &mut Vec<Op>,
        condition: &str,
        places: Range<u32>,
        lock: Lock,
    ) -> Result<Option<Rows>, Stopped> {
        let sql = format!("SELECT k, list FROM lists WHERE {condition}{}", lock.sql());
        let mut rows = Rows::default();
        match self.connection.query(sql.as_bytes(), &mut rows) {
            Ok(_) => {}
            Err(Failure::Server(error))
                if lock == Lock::NoWait && error.code().0 == LOCK_NOWAIT =>
            {
                return Ok(None);
            }
            Err(failure) => return Err(with_sql(&sql, failure)),
        }
        let reading = lock.reading();
        for (place, list) in &rows.0 {
            let (key, elements) = (key_of(*place, list), list.clone());
            // When a list has moved, a snapshot has both its old row and the new one with later appends.
            let is_old = FLEETING.contains(place)
                && reading == Reading::Plain
                && last_own(ops, key).is_some_and(|own| list.last() != Some(&own));
            if !is_old {
                ops.push(Op::Read { key, elements, reading });
            }
        }
        if lock != Lock::SkipLocked {
            let missing = places.filter(|place| rows.0.iter().all(|row| row.0 != *place));
            ops.extend(missing.map(|key| Op::Read { key, elements: Vec::new(), reading }));
        }
        Ok(Some(rows))
    }

    fn read_one(&mut self, ops: &mut Vec<Op>, read_only: bool) -> Result<(), Stopped> {
        let place = self.lists.pick(&mut self.random);
        let lock = self.lock(read_only);
        let condition = match self.random.below(3) {
            0 => format!("k = {}", place + SECOND_KEY),
            _ => format!("id = {place}"),
        };
        self.read(ops, &condition, place..place + 1, lock).map(drop)
    }

    /// A range that may include lists that do not exist yet.
    fn read_range(&mut self, ops: &mut Vec<Op>, read_only: bool) -> Result<(), Stopped> {
        let place = self.lists.pick(&mut self.random);
        let lock = self.lock(read_only);
        let mut condition = match self.random.below(3) {
            0 => range("k", place + SECOND_KEY),
            _ => range("id", place),
        };
        let mut places = place..place + RANGE;
        if self.one_in(4) {
            condition += " ORDER BY id DESC LIMIT 2";
            places = NOWHERE;
        }
        self.read(ops, &condition, places, lock).map(drop)
    }

    fn read_by_group(&mut self, ops: &mut Vec<Op>, read_only: bool) -> Result<(), Stopped> {
        let place = self.lists.pick(&mut self.random);
        let (lock, group) = (self.lock(read_only), self.group_of(place));
        self.read(ops, &format!("g = {group}"), NOWHERE, lock).map(drop)
    }

    fn read_fleeting(&mut self, ops: &mut Vec<Op>, read_only: bool) -> Result<(), Stopped> {
        let place = self.fleeting_place();
        let lock = self.lock(read_only);
        let condition = match self.random.below(4) {
            0 => range("k", place + SECOND_KEY),
            1 => format!("id IN ({}, {})", place * 2, place * 2 + 1),
            2 => format!("g = {}", self.group_of(place)),
            _ => format!("k = {}", place + SECOND_KEY),
        };
        self.read(ops, &condition, NOWHERE, lock).map(drop)
    }

    /// Checks that notes belong to elements of existing lists, at any time.
    fn check_notes(&mut self) -> Result<(), Stopped> {
        let sql = "SELECT n.list, n.element FROM notes n LEFT JOIN lists l ON l.id = n.list \
                   WHERE l.id IS NULL OR NOT FIND_IN_SET(n.element, l.list)";
        let stray = self.rows(sql)?.0;
        match stray.is_empty() {
            true => Ok(()),
            false => Err(Stopped::Failed(format!("notes that belong to no list: {stray:?}"))),
        }
    }

    /// The final state.
    pub fn read_all(&mut self) -> Result<Transaction, String> {
        let began = self.now();
        let (mut ops, places) = (Vec::new(), self.lists.places());
        let read = self.read(&mut ops, "TRUE", places, Lock::None).map(drop);
        match read.and_then(|()| self.check_notes()) {
            Ok(()) => Ok(Transaction { ops, end: End::Committed, began, ended: self.now() }),
            Err(Stopped::Aborted) => Err("a deadlock without others".into()),
            Err(Stopped::Failed(error)) => Err(error),
        }
    }
}

/// The last own append to a list.
fn last_own(ops: &[Op], wanted: Key) -> Option<Element> {
    ops.iter().rev().find_map(|op| match op {
        Op::Append { key, element, .. } if *key == wanted => Some(*element),
        _ => None,
    })
}

fn with_sql(sql: &str, failure: Failure) -> Stopped {
    match Stopped::from(failure) {
        Stopped::Failed(error) => Stopped::Failed(format!("{sql}: {error}")),
        Stopped::Aborted => Stopped::Aborted,
    }
}

fn range(column: &str, first: u32) -> String {
    format!("{column} BETWEEN {first} AND {}", first + RANGE - 1)
}
