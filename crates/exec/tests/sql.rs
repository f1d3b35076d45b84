//! SQL text through parser, binder, optimizer and executor on the memory engine. Each query runs under several guesses of table
//! sizes: the plans differ, the rows must not.

mod common;
#[path = "../../binder/tests/support/mod.rs"]
mod support;

use std::sync::Arc;

use binder::{BindInput, Binder};
use catalog::Relation;
use common::{Answer, Database};
use errors::Result;
use optimizer::{OptimizeInput, StatisticsSource};
use plan::ExecutionMode;
use types::Value;

/// All tables have this many rows, or the first few have others.
struct Guess(u64, u64);

impl StatisticsSource for Guess {
    fn rows(&self, table: u64) -> u64 {
        if table.is_multiple_of(2) { self.0 } else { self.1 }
    }
}

const GUESSES: [Guess; 3] = [Guess(1_000_000, 10), Guess(3, 1_000_000), Guess(50, 50)];

struct Sql {
    database: Database,
    catalog: support::Catalog,
    show_plans: bool,
}

impl Sql {
    fn new() -> Sql {
        Sql::on(Arc::new(engine_memory::MemoryEngine::new()))
    }

    /// On the durable engine, whose small pages give a small table many of them.
    fn durable() -> Sql {
        let config = engine::EngineConfig {
            page_bytes: 1024,
            pool_bytes: 4 << 20,
            pages_max: 1 << 16,
            background: false,
            ..engine::EngineConfig::default()
        };
        let disk = Arc::new(sys::sim::SimDisk::new());
        Sql::on(Arc::new(engine::DurableEngine::open(disk, config, |_| {}).expect("open")))
    }

    fn on(engine: Arc<dyn engine_api::Engine>) -> Sql {
        let mut sql = Sql {
            database: Database::on(
                engine,
                vec![
                    Box::new(aggregates::Aggregates),
                    Box::new(functions_string::StringFunctions),
                    Box::new(functions_numeric::NumericFunctions),
                    Box::new(functions_temporal::TemporalFunctions),
                    Box::new(functions_misc::MiscFunctions),
                ],
            ),
            catalog: support::catalog(),
            show_plans: false,
        };
        for relation in sql.catalog.relations.values() {
            if let Relation::Table(table) = relation {
                use exec::TransactionSource;
                let txn = sql.database.source.transaction("").expect("transaction");
                txn.create_table(&table.definition).expect("create table");
            }
        }
        sql.database.commit();
        sql
    }

    fn with_rows() -> Sql {
        let mut sql = Sql::new();
        for statement in [
            "insert into t1 values (1, 10, 'one'), (2, 20, 'two'), (3, 10, 'three'), (4, null, 'four'), (5, 30, null)",
            "insert into t2 values (1, 10, '2020-01-01'), (2, 10, '2021-01-01'), (3, 20, null), (7, 40, '2020-06-01')",
            "insert into t3 values (10, 'a'), (10, 'b'), (20, 'c'), (null, 'd')",
            "insert into t4 values (1, 1, '2020-01-02 03:04:05'), (2, 1, null), (3, 2, '2021-05-06 07:08:09')",
        ] {
            sql.run(statement).expect(statement);
        }
        sql
    }

    fn run(&mut self, text: &str) -> Result<Answer> {
        self.run_guessing(text, &GUESSES[2])
    }

    fn run_guessing(&mut self, text: &str, guess: &Guess) -> Result<Answer> {
        let (statement, _) = syntax::parse_one(text, &syntax::ParseOptions::default())
            .unwrap_or_else(|error| panic!("{text}: {error}"));
        let bind = support::bind_context();
        let input = BindInput {
            catalog: &self.catalog,
            registry: &self.database.registry,
            bind: &bind,
            variables: &support::Variables,
            parameter_types: None,
        };
        let bound = Binder::new(input).bind(&statement, text.as_bytes())?;
        let input = OptimizeInput {
            tables: &bound.tables,
            statistics: guess,
            collation: support::COLLATION,
            trace: None,
        };
        let (plan, _) = optimizer::optimize(bound.plan, &input)?;
        if self.show_plans {
            println!("{}", plan::print::plan(&plan));
        }
        self.database.run_with(&plan, &[] as &[Value])
    }

    /// The rows, which every guess must give; sorted unless the query orders them.
    #[track_caller]
    fn check(&mut self, text: &str, expected: &[&str]) {
        for guess in &GUESSES {
            let answer = self.run_guessing(text, guess);
            let mut rows = answer.unwrap_or_else(|error| panic!("{text}: {error}")).rows;
            if !text.contains("order by") {
                rows.sort();
            }
            assert_eq!(rows, expected, "{text} with guess {} {}", guess.0, guess.1);
        }
    }

    #[track_caller]
    fn affects(&mut self, text: &str, expected: u64) {
        let answer = self.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(answer.outcome.affected, expected, "{text}");
    }

    #[track_caller]
    fn fails(&mut self, text: &str, code: u16) {
        match self.run(text) {
            Ok(answer) => panic!("{text} ran: {:?}", answer.rows),
            Err(error) => assert_eq!(error.code().0, code, "{text}: {error}"),
        }
    }
}

#[test]
fn selects() {
    let mut sql = Sql::with_rows();
    sql.check("select 1 + 1, 'x', null, 1.5 * 2", &["2|x|NULL|3.0"]);
    sql.check("select a, c from t1 where a = 3", &["3|three"]);
    sql.check("select a from t1 where b = 10", &["1", "3"]);
    sql.check("select a from t1 where b in (30, 20, 99)", &["2", "5"]);
    sql.check("select a from t1 where a between 2 and 4 order by a desc", &["4", "3", "2"]);
    sql.check("select a from t1 where c like 't%'", &["2", "3"]);
    sql.check("select a from t1 where b is null or c is null", &["4", "5"]);
    sql.check("select a from t1 where not (b = 10)", &["2", "5"]);
    sql.check("select a, b from t1 order by b desc, a limit 2 offset 1", &["2|20", "1|10"]);
    sql.check("select distinct b from t1 order by b", &["NULL", "10", "20", "30"]);
    sql.check("select upper(c), length(c) from t1 where a < 3", &["ONE|3", "TWO|3"]);
    sql.check("select a from t2 where d > '2020-02-01'", &["2", "7"]);
    sql.check("select a, d + interval 1 day from t2 where a = 1", &["1|2020-01-02"]);
    sql.check("select id, ts from t4 where ts > '2020-06-01'", &["3|2021-05-06 07:08:09"]);
    sql.check("select case b when 10 then 'ten' else 'other' end k, count(*) from t1 group by k order by k", &["other|3", "ten|2"]);
    sql.check("select k, b1 from v1 where b1 = 11", &["1|11", "3|11"]);
    sql.check("select ifnull(b, 0) + a from t1 order by 1", &["4", "11", "13", "22", "35"]);
}

#[test]
fn overflow_names_the_expression() {
    let mut sql = Sql::with_rows();
    let mut message = |text: &str| match sql.run(text) {
        Ok(answer) => panic!("{text} ran: {:?}", answer.rows),
        Err(error) => error.message().to_owned(),
    };
    assert_eq!(
        message("select a + 9223372036854775807 from t1"),
        "BIGINT value is out of range in '(`test`.`t1`.`a` + 9223372036854775807)'"
    );
    assert_eq!(
        message("select cast(1 as unsigned) - length(x.c) from t1 x where x.a = 3"),
        "BIGINT UNSIGNED value is out of range in '(cast(1 as unsigned) - length(`test`.`x`.`c`))'"
    );
}

#[test]
fn joins_and_subqueries() {
    let mut sql = Sql::with_rows();
    sql.check(
        "select t1.a, t2.a from t1 join t2 on t1.b = t2.b",
        &["1|1", "1|2", "2|3", "3|1", "3|2"],
    );
    sql.check(
        "select t1.a, t2.d from t1 left join t2 on t1.a = t2.a",
        &["1|2020-01-01", "2|2021-01-01", "3|NULL", "4|NULL", "5|NULL"],
    );
    sql.check(
        "select t1.a, y from t1 left join t3 on t3.x = t1.b and y <> 'a' where t1.a < 3",
        &["1|b", "2|c"],
    );
    sql.check("select count(*) from t1, t2, t3", &["80"]);
    sql.check("select a from t1 where b in (select b from t2)", &["1", "2", "3"]);
    sql.check("select a from t1 where b not in (select b from t2)", &["5"]);
    sql.check("select a from t1 where b not in (select x from t3)", &[]);
    sql.check("select a from t1 where exists (select 1 from t3 where x = b)", &["1", "2", "3"]);
    sql.check("select a from t1 where not exists (select 1 from t3 where x = b)", &["4", "5"]);
    sql.check(
        "select a, (select max(y) from t3 where x = t1.b) m from t1 order by a",
        &["1|b", "2|c", "3|b", "4|NULL", "5|NULL"],
    );
    sql.check("select a from t1 where b > all (select b from t2 where b < 20)", &["2", "5"]);
    sql.check("select a from t1 where b < any (select b from t2)", &["1", "2", "3", "5"]);
    sql.check("select a from t1 where (a, b) in (select a, b from t2)", &["1"]);
    sql.check("select a from t1 where (a, b) = (select a, b from t2 where a = 1)", &["1"]);
    sql.fails("select a from t1 where (a, b) = (select a, b from t2)", 1242);
    sql.fails("select (select a from t2)", 1242);
    sql.check("select n from (select b, count(*) n from t1 group by b) d where n > 1", &["2"]);
    sql.check(
        "select t1.a, l.x from t1, lateral (select x from t3 where x = b limit 1) l",
        &["1|10", "2|20", "3|10"],
    );
    sql.check("with q as (select b, count(*) n from t1 group by b) select q1.b, q2.n from q q1 join q q2 on q1.b = q2.b", &["10|2", "20|1", "30|1"]);
    sql.check("with recursive n as (select 1 i union all select i + 1 from n where i < 5) select sum(i) from n", &["15"]);
    sql.check(
        "with recursive n as (select 1 i union select i % 3 + 1 from n) select i from n",
        &["1", "2", "3"],
    );
    sql.check(
        "select a from t1 where a in (select parent from t4) and b in (select x from t3)",
        &["1", "2"],
    );
}

#[test]
fn groups_windows_and_sets() {
    let mut sql = Sql::with_rows();
    sql.check(
        "select b, count(*), sum(a), min(c), max(c) from t1 group by b",
        &["10|2|4|one|three", "20|1|2|two|two", "30|1|5|NULL|NULL", "NULL|1|4|four|four"],
    );
    sql.check("select b, count(*) n from t1 group by b having n > 1", &["10|2"]);
    sql.check("select count(*), count(b), sum(b), avg(b) from t1", &["5|4|70|17.5000"]);
    sql.check("select count(*), sum(a) from t1 where a > 100", &["0|NULL"]);
    sql.check(
        "select group_concat(c order by a desc separator '-') from t1",
        &["four-three-two-one"],
    );
    sql.check("select count(distinct b), sum(distinct b) from t1", &["3|60"]);
    sql.check(
        "select b, a, sum(a) from t1 where b < 30 group by b, a with rollup",
        &["10|1|1", "10|3|3", "10|NULL|4", "20|2|2", "20|NULL|2", "NULL|NULL|6"],
    );
    sql.check(
        "select a, row_number() over (order by a desc) r, sum(a) over (order by a) s from t1",
        &["1|5|1", "2|4|3", "3|3|6", "4|2|10", "5|1|15"],
    );
    sql.check("select a, rank() over (partition by b order by a) r, count(*) over (partition by b) n from t1 where b = 10", &["1|1|2", "3|2|2"]);
    sql.check(
        "select a, lag(a) over (order by a), lead(a, 2, 0) over (order by a) from t1 where a < 4",
        &["1|NULL|3", "2|1|0", "3|2|0"],
    );
    sql.check("select b from t1 union select x from t3", &["10", "20", "30", "NULL"]);
    sql.check(
        "select b from t1 union all select b from t2 where a = 7",
        &["10", "10", "20", "30", "40", "NULL"],
    );
    sql.check("select b from t1 intersect select x from t3", &["10", "20", "NULL"]);
    sql.check("select b from t1 except select x from t3", &["30"]);
    sql.check("select 1 a union select 2.5 union select 'x' order by a", &["1", "2.5", "x"]);
}

#[test]
fn writes() {
    let mut sql = Sql::with_rows();
    sql.affects("update t1 set b = b + 1 where b = 10", 2);
    sql.check("select a, b from t1 where b = 11", &["1|11", "3|11"]);
    sql.affects("update t1 set a = a + 10 where a >= 4 order by a desc", 2);
    sql.check("select a from t1", &["1", "14", "15", "2", "3"]);
    sql.affects("update t1 join t2 on t1.a = t2.a set t1.c = 'joined', t2.b = 99", 6);
    sql.check("select c from t1 join t2 using (a)", &["joined", "joined", "joined"]);
    sql.affects("insert into t1 (a, b, c) values (1, 5, 'n'), (100, 5, 'n') on duplicate key update b = values(b) + a, c = 'dup'", 3);
    sql.check("select a, b, c from t1 where a in (1, 100)", &["100|5|n", "1|6|dup"]);
    sql.affects("insert into t1 (a, c) select a + 1000, c from t1 where a < 4", 3);
    sql.affects("replace into t1 values (3, 2, 'replaced')", 2);
    sql.check("select c from t1 where a = 3", &["replaced"]);
    sql.fails("insert into t1 values (1, 1, 'x')", 1062);
    sql.fails("insert into t1 values (9, 1, 'a text that is much too long')", 1406);
    sql.fails("insert into t4 values (9, 12345, null)", 1452);
    sql.fails("insert into t1 values (9, 1 / 0, 'x')", 1365);
    sql.fails("update t1 set b = cast('1x' as signed)", 1292);
    sql.fails("delete from t1 where c = 5", 1292);
    sql.affects("update ignore t1 set b = 'x' where a = -1", 0);
    sql.affects("insert ignore into t1 values (1, 1, 'x'), (9, 9, 'nine')", 1);
    sql.affects("delete from t1 where a > 1000", 3);
    sql.affects("delete t1 from t1 join t2 on t1.a = t2.a where t2.a = 3", 1);
    sql.check("select id from t4 where parent = 1", &["1", "2"]);
    sql.affects("delete from t1 where a = 1", 1);
    sql.check("select id from t4", &["3"]);
    sql.affects("delete from t3 limit 3", 3);
    sql.affects("update t4 set ts = '2022-02-03 04:05:06' where id = 3", 1);
    sql.check("select ts from t4", &["2022-02-03 04:05:06"]);
    sql.affects("update t4 set ts = ts where id = 3", 0);
    sql.affects("update t3 set x = 1, y = concat(y, '!')", 1);
    sql.check("select x, y from t3", &["1|d!"]);
}

#[test]
fn big_join_and_group_keep_their_rows() {
    let mut sql = Sql::new();
    let rows: Vec<String> = (0..2000).map(|a| format!("({a}, {}, 'c{}')", a % 50, a % 7)).collect();
    sql.affects(&format!("insert into t1 values {}", rows.join(", ")), 2000);
    let rows: Vec<String> = (0..500).map(|a| format!("({a}, {}, null)", a % 50)).collect();
    sql.affects(&format!("insert into t2 values {}", rows.join(", ")), 500);
    sql.check("select count(*), sum(t1.a) from t1 join t2 on t1.b = t2.b", &["20000|19990000"]);
    sql.check("select count(*) from t1 join t2 on t1.b = t2.b and t1.a < t2.a", &["2250"]);
    sql.check("select c, count(*) from t1 group by c order by c limit 2", &["c0|286", "c1|286"]);
    sql.check("select a from t1 order by b desc, a desc limit 3", &["1999", "1949", "1899"]);
    sql.check("select max(n) from (select b, count(*) n from t1 group by b) d", &["40"]);
}

/// A small generator, so that a printed seed repeats a failure anywhere.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut word = self.0;
        word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((word ^ (word >> 31)) % limit) as usize
    }

    fn pick<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64)]
    }
}

fn random_predicate(random: &mut Random, depth: usize) -> String {
    if depth > 0 && random.below(3) == 0 {
        let (left, right) =
            (random_predicate(random, depth - 1), random_predicate(random, depth - 1));
        return match random.below(3) {
            0 => format!("({left} and {right})"),
            1 => format!("({left} or {right})"),
            _ => format!("not ({left})"),
        };
    }
    let number = random.below(12);
    match random.below(16) {
        0 => format!("t1.a = {number}"),
        1 => format!("t1.b {} {}", random.pick(&["<", ">=", "<>", "="]), number * 5),
        2 => format!("t1.a between {} and {}", number / 2, number),
        3 => "t1.c is null".into(),
        4 => format!("t1.b in ({}, {}, 10)", number * 5, number),
        5 => "t1.b in (select x from t3)".into(),
        6 => "t1.b not in (select b from t2 where b is not null)".into(),
        7 => "exists (select 1 from t2 where t2.a = t1.a)".into(),
        8 => "not exists (select 1 from t3 where t3.x = t1.b and t3.y > 'a')".into(),
        9 => "t1.a > (select min(t2.a) from t2 where t2.b = t1.b)".into(),
        10 => format!("t1.c like '%{}%'", random.pick(&["o", "t", "1", ""])),
        11 => format!("t1.b <=> {}", random.pick(&["null", "10", "t1.a * 10"])),
        12 => format!(
            "t1.b {} (select t2.b from t2 where t2.a > t1.a)",
            random.pick(&["> all", "<= any", "<> all", "= any"])
        ),
        13 => "t1.b not in (select x from t3 where x >= t1.a or x is null and t1.a > 7)".into(),
        14 => "exists (select 1 from t2 join t3 on t3.x = t2.b where t2.b = t1.b)".into(),
        _ => format!("t1.a % 3 = {}", number % 3),
    }
}

fn random_query(random: &mut Random) -> String {
    let filter = random_predicate(random, 2);
    let join = random.pick(&[
        "",
        "join t2 on t2.a = t1.a",
        "join t2 on t2.b = t1.b",
        "left join t2 on t2.b = t1.b and t2.a > 1",
        "left join t3 on t3.x = t1.b",
        "join t3 on t3.x = t1.b left join t2 on t2.a = t1.a",
        "left join (t2 join t3 on t3.x = t2.b) on t2.a = t1.a",
        "join (select b, count(*) n from t2 group by b) d on d.b = t1.b",
        "join t2 on t2.b = t1.b join t3 on t3.x = t2.b",
        "join t2 on t2.b = t1.b and t2.a = t1.b join t3 on t3.x = t1.b",
        "join t2 x2 on x2.b = t1.b join t3 on t3.x = x2.b join t2 on t2.a = t3.x and t2.b = t1.b",
    ]);
    match random.below(6) {
        0 => format!(
            "select t1.b, count(*), sum(t1.a), min(t1.c) from t1 {join} where {filter} group by t1.b"
        ),
        1 => format!("select distinct t1.b from t1 {join} where {filter}"),
        2 => format!("select count(*), max(t1.a) from t1 {join} where {filter}"),
        3 => format!(
            "select t1.a, t1.c from t1 {join} where {filter} order by t1.b desc, t1.a, t1.c limit 7"
        ),
        4 => format!("select t1.a from t1 {join} where {filter} union select b from t2"),
        _ => format!("select * from t1 {join} where {filter}"),
    }
}

#[test]
fn plans_of_random_queries_agree() {
    let mut sql = Sql::new();
    let mut random = Random(7);
    let nullable = |random: &mut Random, limit: u64| match random.below(5) {
        0 => "null".to_owned(),
        _ => (random.below(limit) * 5).to_string(),
    };
    for a in 0..30 {
        let b = nullable(&mut random, 8);
        let c = random.pick(&["null", "'one'", "'two'", "'Two'", "'c1'"]);
        sql.affects(&format!("insert into t1 values ({a}, {b}, {c})"), 1);
        if a % 2 == 0 {
            let b = nullable(&mut random, 8);
            sql.affects(&format!("insert into t2 values ({a}, {b}, '2020-01-0{}')", a % 9 + 1), 1);
            let x = nullable(&mut random, 8);
            let y = random.pick(&["null", "'a'", "'b'", "'B'"]);
            sql.affects(&format!("insert into t3 values ({x}, {y})"), 1);
        }
    }
    for seed in 0..400 {
        let text = random_query(&mut Random(seed));
        let mut answers = Vec::new();
        for guess in &GUESSES {
            let answer = sql.run_guessing(&text, guess);
            let mut rows =
                answer.unwrap_or_else(|error| panic!("seed {seed}: {text}: {error}")).rows;
            rows.sort();
            answers.push(rows);
        }
        if answers.iter().any(|rows| *rows != answers[0]) {
            sql.show_plans = true;
            for guess in &GUESSES {
                let _ = sql.run_guessing(&text, guess);
            }
        }
        assert_eq!(answers[0], answers[1], "seed {seed}: {text}");
        assert_eq!(answers[0], answers[2], "seed {seed}: {text}");
        // A row is in the result, not in it, or unknown: together they are all rows.
        if let Some((_, filter)) = text.split_once(" where ")
            && text.starts_with("select * from t1  where")
        {
            let count = |sql: &mut Sql, truth: &str| {
                let text = format!("select count(*) from t1 where ({filter}) is {truth}");
                sql.run(&text).expect("it runs").rows[0].parse::<i64>().expect("a count")
            };
            let parts: i64 = ["true", "false", "unknown"].iter().map(|t| count(&mut sql, t)).sum();
            assert_eq!(parts, 30, "seed {seed}: {filter}");
            assert_eq!(count(&mut sql, "true"), answers[0].len() as i64, "seed {seed}: {filter}");
        }
    }
}

/// Conditions of a join of `p` and `q`, with and without keys.
fn random_join_condition(random: &mut Random) -> String {
    let key = random.pick(&["p.b = q.b", "p.a = q.a", "p.c = q.y", "p.b = q.b and p.c = q.y", ""]);
    let other = random.pick(&[
        "p.a < q.a",
        "q.a > 7",
        "p.b > 10",
        "p.b <=> q.b",
        "p.c is null and q.b is not null",
        "q.b in (select x from t3)",
        "false",
        "",
    ]);
    match (key, other) {
        ("", "") => "true".into(),
        ("", one) | (one, "") => one.into(),
        (key, other) => format!("{key} and {other}"),
    }
}

/// A full join is a left join and the rows of the right side that match nothing: with all sizes, with tables in memory and in files.
#[test]
fn full_joins_keep_the_rows_of_both_sides() {
    let mut sql = Sql::new();
    let mut random = Random(31);
    for a in 0..60 {
        let mut value = |limit: u64| match random.below(4) {
            0 => "null".to_owned(),
            _ => (random.below(limit) * 5).to_string(),
        };
        let (b, other, x) = (value(9), value(9), value(9));
        sql.affects(&format!("insert into t1 values ({a}, {b}, 'c{}')", a % 7), 1);
        if a % 3 != 0 {
            sql.affects(&format!("insert into t2 values ({a}, {other}, '2020-01-01')"), 1);
            sql.affects(&format!("insert into t3 values ({x}, 'c{}')", a % 11), 1);
        }
    }
    let sides = [
        ("(select * from t1 where a % 2 = 0)", "(select a, b, 'c1' y from t2)"),
        ("t1", "(select t2.a, t2.b, t3.y from t2 join t3 on t3.x = t2.b)"),
        (
            "(select t1.a, t2.b, t1.c from t1 left join t2 on t2.a = t1.a)",
            "(select a, b, c y from t1)",
        ),
        ("t1", "(select a, b, 'c2' y from t2 where false)"),
    ];
    for seed in 0..40 {
        let mut random = Random(seed);
        let (left, right) = sides[random.below(sides.len() as u64)];
        let on = random_join_condition(&mut random);
        let filter = random.pick(&[
            "true",
            "p.a is null",
            "q.b > 5",
            "coalesce(p.b, q.b) = 20",
            "p.a + q.a > 9",
        ]);
        let columns = "p.a pa, p.b pb, q.a qa, q.b qb";
        let full = format!(
            "select {columns} from {left} p full outer join {right} q on {on} where {filter}"
        );
        let parts = format!(
            "select {columns} from {left} p left join {right} q on {on} where {filter}
             union all select p.a, p.b, q.a, q.b
             from {right} q join (select nullif(1, 1) a, nullif(1, 1) b) p
             where not exists (select 1 from {left} p where {on}) and {filter}"
        );
        let mut expected =
            sql.run(&parts).unwrap_or_else(|error| panic!("seed {seed}: {parts}: {error}")).rows;
        expected.sort();
        for guess in &GUESSES {
            for bytes in [16 << 20, 1024] {
                sql.database.settings.operator_memory_bytes = bytes;
                let mut rows = sql
                    .run_guessing(&full, guess)
                    .unwrap_or_else(|error| panic!("seed {seed}: {full}: {error}"))
                    .rows;
                rows.sort();
                assert_eq!(rows, expected, "seed {seed} with {bytes} bytes: {full}");
            }
        }
        sql.database.settings.operator_memory_bytes = 16 << 20;
    }
}

/// Queries that the batch program supports, on t1 with 1,500 rows.
const BATCHED: &[&str] = &[
    "select count(*), sum(a), avg(a), min(b), max(c), count(c), avg(b) from t1",
    "select count(*), sum(b) from t1 where a > 5000",
    "select b, count(*), sum(a), min(c), max(a) from t1 group by b",
    "select c, count(*), sum(a * 2 - b) from t1 group by c",
    "select c, b, count(*) from t1 where a % 7 <> 3 and c is not null group by c, b",
    "select a % 10, sum(b + 1.25), avg(a * 1.5) from t1 group by 1",
    "select sum(case when c = 'TWO' then a else 0 end), sum(case when b > 10 then 1.5 else a end) from t1",
    "select count(*) from t1 where c like 't%' or b in (5, 15, null)",
    "select count(*) from t1 where not (b between 10 and 20)",
    "select upper(c), count(*) from t1 group by upper(c)",
    "select length(c), max(b) from t1 where a >= 100 and a < 1200 group by length(c)",
    "select sum(a * 9000000000000000000) from t1 where a = 1",
    "select a div 0, count(*) from t1 group by 1",
    "select sum(1 / b) from t1 where b > 0",
    "select count(*), sum(b / 3), sum(a / 7.00) from t1",
    "select max(n) from (select b, count(*) n from t1 group by b) d",
    "select count(*) from t1 where a > (select avg(a) from t1)",
    "select t.b, (select count(*) from t1 where t1.b = t.b) from t2 t where a < 5",
    "select b, sum(a) from t1 where c > 'one' group by b having sum(a) > 10 order by b",
    "select b, count(distinct c), count(distinct a % 9), sum(distinct a % 9), avg(distinct b * 1.5) from t1 group by b",
    "select count(distinct c), sum(distinct b), avg(distinct a % 50), max(distinct c) from t1",
    "select c, count(distinct b), count(*) from t1 where a < 700 group by c",
    "select count(distinct upper(c)), count(distinct case when b > 10 then b / 2 end) from t1 where a > 90000",
    "select b, count(*), sum(a), min(c) from t1 group by b with rollup",
    "select c, b, a % 3, count(*), avg(a), max(c), grouping(b) from t1 group by c, b, a % 3 with rollup",
    "select c, b, count(distinct a % 9), sum(distinct a % 5) from t1 group by c, b with rollup having count(*) > 9",
    "select c, count(*), sum(a) from t1 where a > 90000 group by c with rollup",
    "select length(c), sum(a + 0e0) from t1 group by length(c) with rollup",
    "select count(*) from t1 where b in (0, 5, 10, 99, 98, 97, 96) and a not in (1, 2, 3, 5, 8, 13, 21)",
    "select count(*), count(b in (1, 2, 3, 4, 5, 6, null)), sum(b not in (1, 2, 3, 4, 5, 6, null)) from t1",
    "select c, count(*) from t1 where c in ('ONE', 'two ', 'E', 'x', 'y', 'z', 'w') group by c",
    "select count(*) from t1 where concat(c, '-', a) like '%1-1%'",
    "select concat(a % 4, c, b / 2), count(*) from t1 group by 1",
    "select b, max(cast(a as char)), sum(cast(b / 4 as signed)), min(cast(c as char(2))) from t1 group by b",
    "select b, sum(cast(c as signed)) from t1 group by b",
    "select left(c, b / 20), count(*) from t1 group by 1",
];

fn many_rows(sql: &mut Sql) {
    let mut random = Random(11);
    let texts = ["null", "'one'", "'two'", "'Two'", "'c1'", "'three'", "''", "'\u{e9}'", "'E'"];
    for chunk in 0..15 {
        let row = |a: usize, random: &mut Random| {
            let b = match random.below(6) {
                0 => "null".to_owned(),
                _ => (random.below(8) * 5).to_string(),
            };
            format!("({a}, {b}, {})", random.pick(&texts))
        };
        let rows: Vec<String> = (0..100).map(|a| row(chunk * 100 + a, &mut random)).collect();
        sql.affects(&format!("insert into t1 values {}", rows.join(", ")), 100);
    }
    sql.affects("insert into t2 values (1, 10, null), (2, 5, '2021-01-01'), (3, null, null)", 3);
    sql.affects("insert into t3 values (10, 'a'), (5, 'b'), (null, 'c')", 3);
    sql.database.commit();
}

#[test]
fn batch_and_row_programs_agree() {
    let mut sql = Sql::durable();
    many_rows(&mut sql);
    // Versions that a snapshot has to walk back for, and rows that only this transaction sees.
    sql.affects("update t1 set b = 36 where a % 50 = 0", 30);
    sql.affects("delete from t1 where a % 97 = 5", 16);
    let random: Vec<String> = (1000..1080).map(|seed| random_query(&mut Random(seed))).collect();
    let texts = BATCHED.iter().copied().chain(random.iter().map(String::as_str));
    let mut batched = 0;
    for text in texts {
        let mut answers = Vec::new();
        for (mode, degree) in
            [(ExecutionMode::Row, 1), (ExecutionMode::Batch, 1), (ExecutionMode::Batch, 3)]
        {
            sql.database.settings.execution_mode = mode;
            sql.database.settings.parallel_degree = degree;
            let answer = sql.run_guessing(text, &GUESSES[0]).map(|answer| answer.rows);
            let warnings = sql.database.diagnostics.conditions().to_vec();
            answers.push((answer.map_err(|error| error.to_string()), warnings));
            batched += std::mem::take(&mut sql.database.scratch.counts).batch_groupings;
        }
        assert_eq!(answers[0], answers[1], "{text} on one thread");
        assert_eq!(answers[0], answers[2], "{text} on three threads");
    }
    // Most of the list by the batch program, once on one thread and once on three.
    assert!(batched >= 30, "only {batched} groupings were batched");
}

#[test]
fn what_exceeds_memory_moves_to_files() {
    let mut sql = Sql::durable();
    many_rows(&mut sql);
    sql.database.settings.execution_mode = ExecutionMode::Row;
    let texts = [
        "select a, b, c from t1 order by c, b desc, a",
        "select a, c from t1 order by a % 13, a limit 40 offset 1200",
        "select a, row_number() over (order by c, a) from t1",
        "select a, b, count(*), max(c) from t1 group by a, b",
        "select distinct a, c from t1",
        "select distinct a, c from t1 order by c, a desc",
        "select distinct a, b from t1 order by b, a limit 30 offset 1000",
        "select a, c from t1 union select a + 1, c from t1",
        "select x.a, y.b, y.c from t1 x join t1 y on x.a = y.a + 1",
        "select x.a, y.b from t1 x left join t1 y on x.a * 2 = y.a * 1 and y.b > 5",
        "select a from t1 x where not exists (select 1 from t1 y where y.a * 3 = x.a * 1)",
        "with w as (select a, c from t1) select x.a, y.c from w x join w y on x.a = y.a + 2",
        "with recursive r as (select a, c from t1 union all select a + 10000, c from r where a < 10000) select a, c from r",
        "select b, group_concat(a order by a) from t1 group by b",
    ];
    for text in texts {
        let mut answers = Vec::new();
        for bytes in [16 << 20, 4096] {
            sql.database.settings.operator_memory_bytes = bytes;
            sql.database.scratch.counts = exec::ExecCounts::default();
            let mut rows = sql.run(text).unwrap_or_else(|error| panic!("{text}: {error}")).rows;
            if !text.contains("order by") {
                rows.sort();
            }
            answers.push(rows);
            let counts = sql.database.scratch.counts;
            let moved = counts.sort_merge_passes + counts.disk_tables > 0;
            let exceeds = bytes == 4096 && !text.starts_with("select b, group_concat");
            assert_eq!(moved, exceeds, "{text} with {bytes} bytes: {counts:?}");
        }
        assert_eq!(answers[0].len(), answers[1].len(), "{text}");
        assert_eq!(answers[0], answers[1], "{text}");
    }
}

/// Distinct rows that an index gives in order stay so when memory is short.
#[test]
fn distinct_rows_keep_their_order() {
    let mut sql = Sql::durable();
    many_rows(&mut sql);
    for limit in ["", "limit 20 offset 700", "limit 20 offset 1200"] {
        let text = format!("select distinct a, b from t1 order by b, a {limit}");
        let mut answers = Vec::new();
        for bytes in [16 << 20, 4096] {
            sql.database.settings.operator_memory_bytes = bytes;
            answers.push(sql.run(&text).expect("rows").rows);
        }
        assert!(!answers[0].is_empty());
        assert_eq!(answers[0], answers[1], "{text}");
    }
}

/// Writes that must find all of their rows first, with rows that do not fit memory.
#[test]
fn rows_to_write_move_to_files() {
    let mut contents = Vec::new();
    for bytes in [16 << 20, 4096] {
        let mut sql = Sql::durable();
        many_rows(&mut sql);
        sql.database.settings.operator_memory_bytes = bytes;
        let texts = [
            "update t1 set a = a + 100000 order by a desc limit 1000",
            "insert into t1 select a + 500000, b, c from t1",
            "delete from t1 where a > 0 order by c, a limit 700",
        ];
        for text in texts {
            sql.database.scratch.counts = exec::ExecCounts::default();
            sql.run(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let counts = sql.database.scratch.counts;
            let moved = counts.sort_merge_passes + counts.disk_tables > 0;
            assert_eq!(moved, bytes == 4096, "{text} with {bytes} bytes: {counts:?}");
        }
        contents.push(sql.run("select a, b, c from t1 order by a, b, c").expect("rows").rows);
    }
    assert_eq!(contents[0].len(), contents[1].len());
    assert_eq!(contents[0], contents[1]);
}
