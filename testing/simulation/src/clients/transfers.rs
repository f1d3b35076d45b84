//! Amounts that move between accounts: no moment shows more or less of them.

use super::{Reply, Session, Stop, Worker};

/// Accounts, and what each begins with.
const ACCOUNTS: u32 = 9;
const AMOUNT: u32 = 1000;

/// The table of accounts.
pub(crate) const TABLE: &str = "CREATE TABLE d.accounts (id INT NOT NULL, balance INT NOT NULL, moves INT NOT NULL, PRIMARY KEY (id), KEY b (balance)) \
     PARTITION BY RANGE (id) (PARTITION a VALUES LESS THAN (3), PARTITION b VALUES LESS THAN (6), PARTITION c VALUES LESS THAN MAXVALUE)";

/// The first rows.
pub(crate) fn rows() -> String {
    let rows: Vec<String> = (0..ACCOUNTS).map(|id| format!("({id}, {AMOUNT}, 0)")).collect();
    format!("INSERT INTO accounts VALUES {}", rows.join(", "))
}

/// What a sum of all accounts shows.
pub(crate) fn total() -> Vec<Option<String>> {
    vec![Some((ACCOUNTS * AMOUNT).to_string()), Some(ACCOUNTS.to_string())]
}

impl Session {
    /// Sums all accounts by a statement.
    pub fn sum(&mut self, sql: &str) -> Result<(), Stop> {
        let rows = self.rows(sql)?;
        let wanted = total();
        if rows != [wanted.clone()] {
            let detail = format!("{sql} returned {rows:?}, expected {wanted:?}");
            let rule = "every moment shows all amounts that are moved between accounts";
            return Err(self.violate(rule, detail));
        }
        Ok(())
    }
}

impl Worker {
    pub(super) fn transfer(&mut self) -> Result<(), Stop> {
        let level = self.session.draw_level()?;
        if self.session.one_in(4) {
            return self.sum_twice(level);
        }
        self.session.must("START TRANSACTION")?;
        for _ in 0..1 + self.session.random.below(3) {
            self.move_amount()?;
            self.session.think();
            // What it moved itself does not change the sum either, where the snapshot is not older than the rows that it changed.
            if level != 1 && self.session.one_in(6) {
                self.session.sum("SELECT SUM(balance), COUNT(*) FROM accounts")?;
            }
        }
        let end = if self.session.one_in(8) { "ROLLBACK" } else { "COMMIT" };
        self.session.must(end)?;
        self.session.world.know().counts.commits += u64::from(end == "COMMIT");
        Ok(())
    }

    fn move_amount(&mut self) -> Result<(), Stop> {
        let mut account = || self.session.random.below(ACCOUNTS.into());
        let (from, to) = (account(), account());
        let amount = self.session.random.below(50);
        match self.session.random.below(4) {
            0 if from != to => {
                let sql = format!(
                    "UPDATE accounts SET balance = balance + IF(id = {to}, {amount}, -{amount}), moves = moves + 1 WHERE id IN ({from}, {to})"
                );
                self.update(&sql, 2)
            }
            1 => {
                // By what it read under a lock.
                let sql = format!("SELECT balance FROM accounts WHERE id = {from} FOR UPDATE");
                let rows = self.session.rows(&sql)?;
                let balance = rows.first().and_then(|row| row.first()?.as_ref()?.parse().ok());
                let balance: i64 = balance.unwrap_or(0);
                let less = balance - amount as i64;
                let set = format!("SET balance = {less}, moves = moves + 1 WHERE id = {from}");
                self.update(&format!("UPDATE accounts {set}"), 1)?;
                self.add(to, amount as i64)
            }
            _ => {
                self.add(from, -(amount as i64))?;
                self.session.think();
                self.add(to, amount as i64)
            }
        }
    }

    fn add(&mut self, account: u64, amount: i64) -> Result<(), Stop> {
        let set = format!("SET balance = balance + ({amount}), moves = moves + 1");
        self.update(&format!("UPDATE accounts {set} WHERE id = {account}"), 1)
    }

    /// A statement of a transfer. When it is refused, its half is not there, and the client rolls back.
    fn update(&mut self, sql: &str, wanted: u64) -> Result<(), Stop> {
        match self.session.send(sql)? {
            Reply::Done(affected, _) if affected == wanted => Ok(()),
            Reply::Refused(1205) => Err(Stop::GiveUp),
            reply => {
                let detail = format!("{sql}: {reply:?}, expected {wanted} rows");
                let rule = "a statement does to its rows what it says";
                Err(self.session.violate(rule, detail))
            }
        }
    }

    /// Two sums of one transaction, by different ways.
    fn sum_twice(&mut self, level: usize) -> Result<(), Stop> {
        const WAYS: [&str; 3] = [
            "SELECT SUM(balance), COUNT(*) FROM accounts",
            "SELECT SUM(balance), COUNT(*) FROM accounts FORCE INDEX (b) WHERE balance > -1000000",
            "SELECT SUM(balance), COUNT(*) FROM accounts WHERE id >= 0 FOR SHARE",
        ];
        // Without locks of gaps and of what it has passed, a locking read is of no one moment.
        let ways = if level == 0 { 2 } else { 3 };
        self.session.must("START TRANSACTION")?;
        for _ in 0..2 {
            let way = WAYS[self.session.random.below(ways) as usize];
            self.session.sum(way)?;
            self.session.think();
        }
        self.session.must("COMMIT").map(drop)
    }
}
