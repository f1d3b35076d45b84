//! Statements through sessions, with the memory engine.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

mod support;

use std::time::{Duration, Instant};

use support::Harness;
use types::Value;

#[test]
fn rows_go_in_and_come_out() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE t1 (a INT PRIMARY KEY AUTO_INCREMENT, b VARCHAR(10) NOT NULL DEFAULT 'x')",
    );
    root.check(&[
        ("INSERT INTO t1 (b) VALUES ('one'), ('two')", "ok 2"),
        ("SELECT LAST_INSERT_ID(), ROW_COUNT()", "1|2"),
        ("UPDATE t1 SET b = 'three' WHERE a = 2", "ok 1"),
        ("SELECT ROW_COUNT()", "1"),
        ("SELECT * FROM t1", "1|one\n2|three"),
        ("DELETE FROM t1 WHERE a = 1", "ok 1"),
        ("REPLACE INTO t1 VALUES (2, 'four')", "ok 2"),
        ("SELECT * FROM t1; SELECT COUNT(*) FROM t1", "1"),
        ("SELECT a, b FROM t1 WHERE a = 2 INTO @x, @y", "ok 1"),
        ("SELECT @x, @y", "2|four"),
    ]);
    root.refuse(&[
        ("SELECT * FROM nothing", 1146),
        ("SELECT nothing FROM t1", 1054),
        ("SELEC 1", 1064),
        ("", 1065),
        ("RESTART", 3707),
    ]);
}

#[test]
fn a_branch_ends_with_its_connection() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup("CREATE TABLE t1 (a INT PRIMARY KEY)");
    let mut other = harness.root();
    other.check(&[("XA START 'a'", "ok 0"), ("INSERT INTO t1 VALUES (1)", "ok 1")]);
    root.refuse(&[("XA START 'a'", 1440)]);
    drop(other);
    root.check(&[
        ("XA START 'a'", "ok 0"),
        ("INSERT INTO t1 VALUES (1)", "ok 1"),
        ("XA END 'a'", "ok 0"),
        ("XA COMMIT 'a' ONE PHASE", "ok 0"),
        ("SELECT * FROM t1", "1"),
    ]);
}

#[test]
fn several_statements_stop_at_the_first_error() {
    let harness = Harness::new();
    let mut root = harness.root();
    let sink = root.sink("SELECT 1; SELECT nothing; SELECT 2");
    assert_eq!(sink.results.len(), 2);
    assert!(sink.results[1].starts_with("error 1054"));
    root.session.set_multi_statements(false);
    root.refuse(&[("SELECT 1; SELECT 2", 1064)]);
    root.check(&[
        ("SELECT 1;", "1"),
        ("SELECT 1; -- a comment", "1"),
        ("SELECT 1; /* a */ # b", "1"),
    ]);
}

#[test]
fn transactions_and_savepoints() {
    let harness = Harness::new();
    let mut root = harness.root();
    let mut other = harness.root();
    root.setup("CREATE TABLE t1 (a INT PRIMARY KEY)");
    root.setup("BEGIN\nINSERT INTO t1 VALUES (1)\nSAVEPOINT s\nINSERT INTO t1 VALUES (2)");
    assert_eq!(other.run("SELECT COUNT(*) FROM t1"), "0");
    root.setup("ROLLBACK TO s\nINSERT INTO t1 VALUES (3)");
    root.refuse(&[("ROLLBACK TO nothing", 1305), ("SET TRANSACTION READ ONLY", 1568)]);
    root.setup("COMMIT");
    assert_eq!(other.run("SELECT a FROM t1 ORDER BY a"), "1\n3");
    root.setup("SET autocommit = 0\nDELETE FROM t1\nROLLBACK");
    assert_eq!(root.run("SELECT COUNT(*) FROM t1"), "2");
    root.setup("DELETE FROM t1 WHERE a = 1\nSET autocommit = 1");
    assert_eq!(other.run("SELECT a FROM t1"), "3");
    root.setup("BEGIN\nDELETE FROM t1\nCREATE TABLE t2 (a INT)\nROLLBACK");
    assert_eq!(other.run("SELECT COUNT(*) FROM t1"), "0", "definitions commit what went before");
    root.setup("START TRANSACTION READ ONLY");
    root.refuse(&[("INSERT INTO t1 VALUES (9)", 1792)]);
    root.setup("COMMIT AND CHAIN\nROLLBACK");
}

#[test]
fn a_failed_statement_leaves_nothing_behind() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup("CREATE TABLE t1 (a INT PRIMARY KEY)\nINSERT INTO t1 VALUES (3)");
    root.refuse(&[("INSERT INTO t1 VALUES (1), (2), (3)", 1062)]);
    let condition = "Error|1062|Duplicate entry '3' for key 't1.PRIMARY'";
    root.check(&[("SHOW COUNT(*) WARNINGS", "1"), ("SHOW WARNINGS", condition)]);
    root.check(&[("SHOW ERRORS", condition), ("SELECT @@error_count", "1")]);
    root.check(&[("SELECT * FROM t1", "3"), ("SHOW WARNINGS", "")]);
    root.refuse(&[("CREATE TABLE t2 (PRIMARY KEY (a)) SELECT 1 AS a UNION ALL SELECT 1", 1062)]);
    root.refuse(&[("SELECT * FROM t2", 1146)]);
}

#[test]
fn definitions_are_checked() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup("CREATE TABLE p (a INT PRIMARY KEY)");
    root.refuse(&[
        ("CREATE TABLE t1 (a INT DEFAULT 'x')", 1067),
        ("CREATE TABLE t1 (a INT NOT NULL DEFAULT NULL)", 1067),
        ("CREATE TABLE t1 (a DATETIME DEFAULT CURRENT_TIMESTAMP(3))", 1067),
        ("CREATE TABLE t1 (a DATE DEFAULT '2024-02-30')", 1067),
        ("CREATE TABLE t1 (a VARCHAR(2) DEFAULT 'abc')", 1067),
        ("CREATE TABLE t1 (a INT, A INT)", 1060),
        ("CREATE TABLE t1 (a INT, KEY k (a), KEY K (a))", 1061),
        ("CREATE TABLE t1 (a INT PRIMARY KEY, b INT PRIMARY KEY)", 1068),
        ("CREATE TABLE t1 (a VARCHAR(1000), KEY (a))", 1071),
        ("CREATE TABLE t1 (a INT, KEY (b))", 1072),
        ("CREATE TABLE t1 (a INT AUTO_INCREMENT)", 1075),
        ("CREATE TABLE t1 (a TEXT, KEY (a))", 1170),
        ("CREATE TABLE t1 (a JSON, KEY (a))", 3152),
        ("CREATE TABLE t1 (a TEXT DEFAULT 'x')", 1101),
        ("CREATE TABLE t1 (a VARCHAR(70000))", 1074),
        ("CREATE TABLE t1 (a VARBINARY(40000), b VARBINARY(40000))", 1118),
        ("CREATE TABLE t1 (a DECIMAL(66))", 1426),
        ("CREATE TABLE t1 (a DECIMAL(5, 31))", 1425),
        ("CREATE TABLE t1 (a ENUM('x', 'X'))", 1291),
        ("CREATE TABLE t1 (a TIME(7))", 1426),
        ("CREATE TABLE t1 (a CHAR(5) CHARACTER SET nothing)", 1115),
        ("CREATE TABLE t1 (a CHAR(5) COLLATE nothing)", 1273),
        ("CREATE TABLE t1 (a CHAR(5) CHARACTER SET latin1 COLLATE utf8mb4_bin)", 1253),
        ("CREATE TABLE t1 (a INT) ENGINE = nothing", 1286),
        ("CREATE TABLE t1 (a INT NULL PRIMARY KEY)", 1171),
        ("CREATE TABLE t1 (a INT, CHECK (b > 0))", 3820),
        ("CREATE TABLE t1 (a INT, CONSTRAINT c CHECK (a > 0), CONSTRAINT c CHECK (a > 1))", 3822),
        ("CREATE TABLE t1 (a INT AS (b) VIRTUAL)", 1054),
        ("CREATE TABLE t1 (a INT, FOREIGN KEY (a) REFERENCES nothing (a))", 1824),
        ("CREATE TABLE t1 (a BIGINT, FOREIGN KEY (a) REFERENCES p (a))", 3780),
        ("CREATE TABLE t1 (a INT, FOREIGN KEY (a) REFERENCES p (b))", 3734),
        (
            "CREATE TABLE t1 (a INT NOT NULL, FOREIGN KEY (a) REFERENCES p (a) ON DELETE SET NULL)",
            1830,
        ),
        ("CREATE TABLE p (a INT)", 1050),
        ("CREATE TABLE nothing.t1 (a INT)", 1049),
        ("CREATE TABLE information_schema.t1 (a INT)", 1044),
        ("DROP TABLE nothing", 1051),
        ("CREATE DATABASE t", 1007),
        ("DROP DATABASE nothing", 1008),
        ("USE nothing", 1049),
        ("ALTER TABLE p DROP COLUMN nothing", 1091),
        ("ALTER TABLE p DROP COLUMN a", 1090),
        ("ALTER TABLE p DROP INDEX nothing", 1091),
        ("ALTER TABLE p ADD COLUMN a INT", 1060),
        ("ALTER TABLE p RENAME TO p2, ALGORITHM = nothing", 1800),
    ]);
}

#[test]
fn large_enums_are_quick_to_define() {
    let harness = Harness::new();
    let mut root = harness.root();
    let members = |count: usize| {
        let names: Vec<String> = (0..count).map(|number| format!("'m{number}'")).collect();
        format!("CREATE TABLE e{count} (a ENUM({}))", names.join(","))
    };
    let begun = Instant::now();
    assert_eq!(root.run(&members(65_535)), "ok 0");
    assert_eq!(root.code(&members(65_536)), 3504);
    assert!(begun.elapsed() < Duration::from_secs(20), "{:?}", begun.elapsed());
}

#[test]
fn show_create_table_is_the_references_text() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE p (a INT PRIMARY KEY)
        CREATE TABLE t1 (a BIGINT UNSIGNED NOT NULL AUTO_INCREMENT, b TINYINT(1) DEFAULT '1', c DECIMAL(10,2) NOT NULL DEFAULT 1.5 COMMENT 'it''s', d TIMESTAMP(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3), e VARCHAR(20) COLLATE utf8mb4_bin, f INT AS (b + 1) VIRTUAL, g TEXT, h BIT(3) DEFAULT b'101', i INT DEFAULT (1 + 1), j INT INVISIBLE, p INT, PRIMARY KEY (a), UNIQUE KEY u (e DESC), KEY k (g(10)), KEY f ((UPPER(e))), CONSTRAINT fk FOREIGN KEY (p) REFERENCES p (a) ON DELETE CASCADE, CHECK (c > 0)) COMMENT = 'a table' AUTO_INCREMENT = 5",
    );
    let expected = "t1|CREATE TABLE `t1` (
  `a` bigint unsigned NOT NULL AUTO_INCREMENT,
  `b` tinyint(1) DEFAULT '1',
  `c` decimal(10,2) NOT NULL DEFAULT '1.50' COMMENT 'it''s',
  `d` timestamp(3) NULL DEFAULT CURRENT_TIMESTAMP(3) ON UPDATE CURRENT_TIMESTAMP(3),
  `e` varchar(20) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin DEFAULT NULL,
  `f` int GENERATED ALWAYS AS ((`b` + 1)) VIRTUAL,
  `g` text,
  `h` bit(3) DEFAULT b'101',
  `i` int DEFAULT ((1 + 1)),
  `j` int DEFAULT NULL /*!80023 INVISIBLE */,
  `p` int DEFAULT NULL,
  PRIMARY KEY (`a`),
  UNIQUE KEY `u` (`e` DESC),
  KEY `k` (`g`(10)),
  KEY `fk` (`p`),
  KEY `f` ((upper(`e`))),
  CONSTRAINT `fk` FOREIGN KEY (`p`) REFERENCES `p` (`a`) ON DELETE CASCADE,
  CONSTRAINT `t1_chk_1` CHECK ((`c` > 0))
) ENGINE=InnoDB AUTO_INCREMENT=5 DEFAULT CHARSET=utf8mb4 COLLATE=utf8mb4_0900_ai_ci COMMENT='a table'";
    root.check(&[("SHOW CREATE TABLE t1", expected)]);
    // The shown text creates the same table again.
    let text = expected.strip_prefix("t1|").expect("a name");
    root.check(&[("DROP TABLE t1", "ok 0"), (text, "ok 0"), ("SHOW CREATE TABLE t1", expected)]);
}

#[test]
fn altered_tables_keep_their_rows() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE t1 (a INT PRIMARY KEY, b VARCHAR(5), c INT)
        INSERT INTO t1 VALUES (1, 'x', 10), (2, 'y', 20)
        ALTER TABLE t1 ADD COLUMN d INT FIRST, ADD COLUMN e INT NOT NULL DEFAULT 7 AFTER a
        ALTER TABLE t1 MODIFY b VARCHAR(50), RENAME COLUMN c TO cc, ADD INDEX (cc)
        ALTER TABLE t1 CHANGE b bb TEXT AFTER e, DROP COLUMN d",
    );
    root.check(&[
        ("SELECT * FROM t1 ORDER BY a", "1|7|x|10\n2|7|y|20"),
        ("SELECT a FROM t1 WHERE cc = 20", "2"),
        ("ALTER TABLE t1 DROP PRIMARY KEY, ADD PRIMARY KEY (cc)", "ok 0"),
        ("SELECT a FROM t1 WHERE cc = 10", "1"),
        ("RENAME TABLE t1 TO t2, t2 TO t3", "ok 0"),
        ("SELECT COUNT(*) FROM t3", "2"),
        ("TRUNCATE t3", "ok 0"),
        ("SELECT COUNT(*) FROM t3", "0"),
    ]);
    root.setup("INSERT INTO t3 (a, e, cc) VALUES (1, 1, 1), (1, 1, 2)");
    root.refuse(&[
        ("ALTER TABLE t3 ADD UNIQUE (a)", 1062),
        ("ALTER TABLE t3 MODIFY a DATE", 1292),
        ("ALTER TABLE t3 ADD CHECK (cc < 2)", 3819),
    ]);
    root.check(&[("SELECT a, cc FROM t3 ORDER BY cc", "1|1\n1|2")]);
}

#[test]
fn temporary_tables_hide_others_and_vanish() {
    let harness = Harness::new();
    let mut root = harness.root();
    let mut other = harness.root();
    root.setup(
        "CREATE TABLE t1 (a INT)
        INSERT INTO t1 VALUES (1)
        CREATE TEMPORARY TABLE t1 (b INT)
        INSERT INTO t1 VALUES (2), (3)",
    );
    root.check(&[("SELECT b FROM t1", "2\n3"), ("SHOW TABLES", "t1")]);
    assert_eq!(other.run("SELECT a FROM t1"), "1");
    root.setup("ALTER TABLE t1 ADD COLUMN c INT DEFAULT 5\nDROP TEMPORARY TABLE t1");
    root.check(&[("SELECT a FROM t1", "1")]);
    root.setup("CREATE TEMPORARY TABLE t2 SELECT a, a + 1 AS b FROM t1");
    root.check(&[("SELECT * FROM t2", "1|2")]);
    root.session.reset_connection().expect("reset");
    root.refuse(&[("SELECT * FROM t.t2", 1146)]);
}

#[test]
fn handlers_end_with_the_session_and_are_counted() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup("CREATE TABLE t1 (a INT PRIMARY KEY)\nINSERT INTO t1 VALUES (1), (2)");
    root.setup("HANDLER t1 OPEN\nHANDLER t1 OPEN AS t2");
    root.check(&[("HANDLER t1 READ FIRST", "1"), ("HANDLER t2 READ `PRIMARY` LAST", "2")]);
    root.session.reset_connection().expect("reset");
    root.refuse(&[("HANDLER t1 READ FIRST", 1109), ("HANDLER t2 CLOSE", 1109)]);
    root.setup(
        "CREATE USER u
        GRANT SELECT ON t.* TO u
        SET GLOBAL global_connection_memory_tracking = ON
        SET GLOBAL connection_memory_limit = 2097152",
    );
    let mut user = harness.connect("u").expect("may connect");
    user.setup("USE t");
    let refused = (0..1000).find(|at| {
        let answer = user.run(&format!("HANDLER t1 OPEN AS h{at}"));
        answer != "ok 0"
    });
    assert!(refused.is_some_and(|at| at > 400), "{refused:?} fit into 2 MiB");
}

#[test]
fn set_in_every_form() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup(
        "SET NAMES utf8mb4, @@SESSION.sql_mode = CONCAT(@@sql_mode, ',NO_AUTO_VALUE_ON_ZERO'), @@SESSION.wait_timeout = 2147483
        SET sql_mode = (SELECT CONCAT(@@sql_mode, ',PIPES_AS_CONCAT')), time_zone = '+00:00', NAMES utf8mb4 COLLATE utf8mb4_unicode_ci
        SET @a = 1, @b := 'x', SESSION autocommit = ON, @@local.sql_notes = OFF",
    );
    root.check(&[
        (
            "SELECT @@wait_timeout, @@time_zone, @@collation_connection",
            "2147483|+00:00|utf8mb4_unicode_ci",
        ),
        ("SELECT 'a' || 'b'", "ab"),
        ("SELECT @a, @b, @@sql_notes", "1|x|0"),
        ("SET sql_notes = DEFAULT, sql_mode = DEFAULT", "ok 0"),
        ("SELECT @@sql_notes, 1 || 0", "1|1"),
        ("SET CHARACTER SET latin1", "ok 0"),
        ("SELECT @@character_set_client, @@character_set_connection", "latin1|utf8mb4"),
        ("SET NAMES DEFAULT", "ok 0"),
        ("SET character_set_results = NULL", "ok 0"),
        ("SELECT @@character_set_results", "NULL"),
        ("SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ ONLY", "ok 0"),
        ("SELECT @@transaction_isolation, @@tx_read_only", "READ-COMMITTED|1"),
        ("SET GLOBAL max_connections = 1000000", "ok 0"),
        ("SHOW WARNINGS", "Warning|1292|Truncated incorrect max_connections value: '1000000'"),
        ("SELECT @@GLOBAL.max_connections", "100000"),
        ("SET timestamp = 1", "ok 0"),
        ("SELECT UNIX_TIMESTAMP()", "1"),
        ("SET optimizer_switch = 'mrr=off'", "ok 0"),
    ]);
    root.refuse(&[
        ("SET nothing = 1", 1193),
        ("SET max_connections = 1", 1229),
        ("SET GLOBAL timestamp = 1", 1228),
        ("SET version = 'x'", 1238),
        ("SET autocommit = 2", 1231),
        ("SET wait_timeout = 'x'", 1232),
        ("SET sql_mode = 'nothing'", 1231),
        ("SET time_zone = 'nothing'", 1298),
        ("SET NAMES nothing", 1115),
        ("SET NAMES latin1 COLLATE utf8mb4_bin", 1253),
        ("SET max_allowed_packet = 1", 1621),
        ("SET @a = 5, nothing = 1", 1193),
    ]);
    root.check(&[("SELECT @a", "1")]);
}

#[test]
fn prepared_statements_by_name_and_number() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE t1 (a BIGINT PRIMARY KEY)
        INSERT INTO t1 VALUES (1), (2), (3), (4), (5)
        PREPARE s FROM 'SELECT a FROM t1 WHERE a > ? ORDER BY a LIMIT ?'
        SET @a = 2, @n = 2",
    );
    root.check(&[("EXECUTE s USING @a, @n", "3\n4")]);
    root.refuse(&[("EXECUTE s USING @a", 1210), ("EXECUTE nothing", 1243)]);
    root.refuse(&[("PREPARE s FROM 'nonsense'", 1064), ("EXECUTE s", 1243)]);
    let info = root.session.prepare(b"SELECT a FROM t1 WHERE a > ? ORDER BY a").expect("prepared");
    assert_eq!((info.parameters.len(), info.columns.len()), (1, 1));
    let id = info.statement_id;
    assert_eq!(root.execute(id, &[Value::Int(3)], false).results, ["4\n5"]);
    assert_eq!(root.execute(id, &[Value::text("4")], false).results, ["5"]);
    root.setup("ALTER TABLE t1 ADD COLUMN b INT");
    assert_eq!(root.execute(id, &[Value::Int(4)], false).results, ["5"]);
    let opened = root.execute(id, &[Value::Int(0)], true);
    assert!(opened.last_ok.cursor_open && !opened.last_ok.last_row_sent);
    assert_eq!(root.fetch(id, 2).results, ["1\n2"]);
    let last = root.fetch(id, 10);
    assert_eq!(last.results, ["3\n4\n5"]);
    assert!(last.last_ok.last_row_sent);
    assert!(root.fetch(id, 1).results[0].starts_with("error 1421"));
    root.session.close_statement(id);
    assert!(root.execute(id, &[Value::Int(0)], false).results[0].starts_with("error 1243"));
    root.setup("SET GLOBAL max_prepared_stmt_count = 0");
    assert_eq!(root.session.prepare(b"SELECT 1").expect_err("too many").code().0, 1461);
    root.setup("SET GLOBAL max_prepared_stmt_count = DEFAULT");
}

#[test]
fn plans_are_shared_and_forgotten() {
    let harness = Harness::new();
    let mut root = harness.root();
    let mut other = harness.root();
    root.setup("CREATE TABLE t1 (a INT PRIMARY KEY, b VARCHAR(300))");
    for number in 0..5 {
        let text = "x".repeat(number * 60);
        assert_eq!(root.run(&format!("INSERT INTO t1 VALUES ({number}, '{text}')")), "ok 1");
    }
    for number in 0..5 {
        let length = format!("{}", number * 60);
        let sql = format!("SELECT LENGTH(b) FROM t1 WHERE a = {number}");
        assert_eq!(root.run(&sql), length);
        assert_eq!(other.run(&sql), length);
    }
    let hits: u64 = root
        .run("SELECT VARIABLE_VALUE FROM performance_schema.session_status WHERE VARIABLE_NAME = 'Plan_cache_hits'")
        .parse()
        .expect("a number");
    assert!(hits >= 4, "{hits}");
    root.setup("ALTER TABLE t1 CHANGE b c TEXT, DROP PRIMARY KEY");
    other.refuse(&[("SELECT LENGTH(b) FROM t1 WHERE a = 1", 1054)]);
    root.setup("DROP TABLE t1");
    root.refuse(&[("SELECT 1 FROM t1 WHERE a = 1", 1146)]);
    // Another mode, another meaning.
    root.check(&[("SELECT 1 WHERE 'a' || 'b'", "")]);
    root.setup("SET sql_mode = 'PIPES_AS_CONCAT,ANSI_QUOTES'");
    root.check(&[("SELECT 1 WHERE 'a' || 'b' = 'ab'", "1")]);
}

#[test]
fn definitions_wait_for_transactions() {
    let harness = Harness::new();
    let mut root = harness.root();
    let mut other = harness.root();
    root.setup("CREATE TABLE t1 (a INT)\nBEGIN\nSELECT * FROM t1");
    other.setup("SET lock_wait_timeout = 1");
    other.refuse(&[("DROP TABLE t1", 1205), ("ALTER TABLE t1 ADD COLUMN b INT", 1205)]);
    root.setup("COMMIT");
    other.check(&[("ALTER TABLE t1 ADD COLUMN b INT", "ok 0")]);
    root.setup("LOCK TABLES t1 READ");
    root.refuse(&[("INSERT INTO t1 VALUES (1, 1)", 1099)]);
    other.check(&[("SELECT COUNT(*) FROM t1", "0")]);
    other.refuse(&[("INSERT INTO t1 VALUES (1, 1)", 1205)]);
    root.setup("UNLOCK TABLES");
    other.check(&[("INSERT INTO t1 VALUES (1, 1)", "ok 1")]);
}

#[test]
fn accounts_may_do_what_they_are_granted() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE t1 (a INT, b INT)
        INSERT INTO t1 VALUES (1, 2)
        CREATE VIEW v1 AS SELECT a FROM t1
        CREATE USER u IDENTIFIED BY 'x'
        CREATE ROLE r
        GRANT INSERT ON t.* TO r",
    );
    assert!(harness.connect("nobody").is_err());
    let mut user = harness.connect("u").expect("an account");
    user.refuse(&[
        ("USE t", 1044),
        ("SELECT * FROM t.t1", 1142),
        ("CREATE DATABASE x", 1044),
        ("SET GLOBAL wait_timeout = 1", 1227),
        ("GRANT SELECT ON t.* TO u", 1044),
        ("KILL 1", 1095),
        ("DROP USER root@localhost", 1227),
    ]);
    root.setup("GRANT SELECT (a) ON t.t1 TO u");
    user.check(&[("SELECT a FROM t.t1", "1"), ("SELECT COUNT(*) FROM t.t1", "1")]);
    user.refuse(&[("SELECT b FROM t.t1", 1143), ("SELECT * FROM t.t1", 1143)]);
    user.refuse(&[("SELECT * FROM t.v1", 1142), ("INSERT INTO t.t1 VALUES (1, 1)", 1142)]);
    root.setup("GRANT SELECT ON t.v1 TO u\nGRANT r TO u");
    user.check(&[
        ("SELECT * FROM t.v1", "1"),
        ("SET ROLE r", "ok 0"),
        ("SELECT CURRENT_ROLE()", "`r`@`%`"),
    ]);
    user.check(&[("INSERT INTO t.t1 VALUES (3, 3)", "ok 1"), ("SET ROLE NONE", "ok 0")]);
    root.setup("REVOKE SELECT (a) ON t.t1 FROM u");
    user.refuse(&[("SELECT a FROM t.t1", 1142), ("INSERT INTO t.t1 VALUES (3, 3)", 1142)]);
    root.check(&[(
        "SHOW GRANTS FOR u",
        "GRANT USAGE ON *.* TO `u`@`%`\nGRANT SELECT ON `t`.`v1` TO `u`@`%`\nGRANT `r`@`%` TO `u`@`%`",
    )]);
    root.setup("ALTER USER u ACCOUNT LOCK");
    assert_eq!(harness.connect("u").err().map(|error| error.code().0), Some(3118));
    root.setup("DROP USER u\nDROP ROLE r");
    root.refuse(&[("DROP USER u", 1396), ("GRANT SELECT ON *.* TO u", 1410)]);
}

#[test]
fn files_are_loaded() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup("CREATE TABLE t1 (a INT PRIMARY KEY, b VARCHAR(20), c INT)");
    root.file = b"1\tone\t10\n2\ttwo\\tx\t\\N\n3\tthree\t30\n".to_vec();
    root.check(&[
        ("LOAD DATA LOCAL INFILE 'f' INTO TABLE t1", "ok 3"),
        ("SELECT * FROM t1", "1|one|10\n2|two\tx|NULL\n3|three|30"),
    ]);
    root.file = b"head\r\n4,\"fo,\"\"ur\",40\r\n5,five,50".to_vec();
    root.check(&[
        ("LOAD DATA LOCAL INFILE 'f' INTO TABLE t1 FIELDS TERMINATED BY ',' OPTIONALLY ENCLOSED BY '\"' LINES TERMINATED BY '\\r\\n' IGNORE 1 LINES (a, b, @c) SET c = @c * 2", "ok 2"),
        ("SELECT * FROM t1 WHERE a > 3", "4|fo,\"ur|80\n5|five|100"),
    ]);
    root.file =
        b"<l><row a='6' b='x&lt;y'/><row><a>7</a><field name='b'>z</field></row><row a='8'/></l>"
            .to_vec();
    root.check(&[
        ("LOAD XML LOCAL INFILE 'f' INTO TABLE t1 ROWS IDENTIFIED BY '<row>' IGNORE 1 ROWS (a, @b) SET b = CONCAT(@b, '!'), c = a + 1", "ok 2"),
        ("SELECT * FROM t1 WHERE a > 5", "7|z!|8\n8|NULL|9"),
        ("LOAD XML LOCAL INFILE 'f' IGNORE INTO TABLE t1", "ok 1"),
        ("SELECT * FROM t1 WHERE a = 6", "6|x<y|NULL"),
        ("LOAD XML LOCAL INFILE 'f' INTO TABLE t1 ROWS IDENTIFIED BY '<other>'", "ok 0"),
    ]);
    // A separator may end the line; what follows it is too much.
    root.setup("CREATE TABLE t2 (a INT, b INT)");
    root.file = b"1,2,\n3,4\n5,6,,\n7,8,9\n".to_vec();
    root.check(&[
        ("LOAD DATA LOCAL INFILE 'f' INTO TABLE t2 FIELDS TERMINATED BY ','", "ok 4"),
        ("SHOW COUNT(*) WARNINGS", "2"),
        ("SELECT * FROM t2", "1|2\n3|4\n5|6\n7|8"),
    ]);
    root.refuse(&[("LOAD DATA INFILE '/etc/passwd' INTO TABLE t1", 1290)]);
    root.refuse(&[("LOAD XML INFILE '/etc/passwd' INTO TABLE t1", 1290)]);
}

#[test]
fn statements_can_be_stopped() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup("SET max_execution_time = 300");
    // SLEEP returns 1 when it is stopped; the statement fails at its next row.
    root.check(&[("SELECT SLEEP(5), 7", "1|7")]);
    root.refuse(&[("SELECT SLEEP(5) FROM (SELECT 1 UNION ALL SELECT 2) AS two", 3024)]);
    root.setup("SET max_execution_time = 0");
    let mut victim = harness.root();
    let id = victim.id;
    let (begin, begun) = std::sync::mpsc::channel();
    let killer = std::thread::spawn(move || {
        for sql in begun {
            // Stopped before it sleeps it would fail.
            let sleeping = format!(
                "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE ID = {id} AND INFO = '{sql}' AND STATE = 'User sleep'"
            );
            while root.run(&sleeping) != "1" {
                std::thread::sleep(Duration::from_millis(5));
            }
            root.run(&format!("KILL QUERY {id}"));
        }
    });
    for (sql, expected) in [
        ("SELECT SLEEP(60)", "1"),
        ("DO SLEEP(60)", "ok 0"),
        ("SELECT SLEEP(60) FROM (SELECT 1 UNION ALL SELECT 2) AS two", "error 1317"),
    ] {
        begin.send(sql).expect("the killer waits");
        let stopped = victim.run(sql);
        assert!(stopped == expected || stopped.starts_with(&format!("{expected}:")), "{stopped}");
    }
    drop(begin);
    killer.join().expect("the killer ends");
    assert_eq!(victim.run("SELECT 1"), "1");
}

#[test]
fn another_sessions_statement_is_explained() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup("CREATE TABLE t1 (a INT PRIMARY KEY)\nINSERT INTO t1 VALUES (1)");
    let mut victim = harness.root();
    let id = victim.id;
    assert!(root.run(&format!("EXPLAIN FOR CONNECTION {id}")).starts_with("error 3012"));
    let sleeper = std::thread::spawn(move || victim.run("SELECT a, SLEEP(60) FROM t1 WHERE a = 1"));
    let explain = format!("EXPLAIN FORMAT=TREE FOR CONNECTION {id}");
    let mut plan = root.run(&explain);
    while plan.starts_with("error 3012") {
        std::thread::sleep(Duration::from_millis(5));
        plan = root.run(&explain);
    }
    assert!(plan.contains("t1 using PRIMARY (a = 1)"), "{plan}");
    root.run(&format!("KILL QUERY {id}"));
    sleeper.join().expect("the sleeper ends");
}

#[test]
fn named_locks_find_deadlocks() {
    let harness = Harness::new();
    let (mut one, mut two) = (harness.root(), harness.root());
    one.check(&[("SELECT GET_LOCK('a', 0), GET_LOCK('A', 0)", "1|1")]);
    two.check(&[("SELECT GET_LOCK('b', 0), GET_LOCK('a', 0)", "1|0")]);
    two.check(&[("SELECT IS_USED_LOCK('a') IS NULL, IS_FREE_LOCK('c')", "0|1")]);
    let waiter = std::thread::spawn(move || {
        let result = one.run("SELECT GET_LOCK('b', 10)");
        (one, result)
    });
    std::thread::sleep(Duration::from_secs(1));
    two.refuse(&[("SELECT GET_LOCK('a', 10)", 3058)]);
    two.check(&[("SELECT RELEASE_LOCK('b')", "1")]);
    let (mut one, granted) = waiter.join().expect("the waiter ends");
    assert_eq!(granted, "1");
    one.check(&[("SELECT RELEASE_ALL_LOCKS()", "3")]);
}

#[test]
fn diagnostics_can_be_read() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.refuse(&[("SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'boom', MYSQL_ERRNO = 5000", 5000)]);
    root.check(&[
        ("GET DIAGNOSTICS CONDITION 1 @s = RETURNED_SQLSTATE, @m = MESSAGE_TEXT, @e = MYSQL_ERRNO", "ok 0"),
        ("SELECT @s, @m, @e", "45000|boom|5000"),
    ]);
    // A number that no condition has: not an error, but one more condition.
    root.check(&[
        ("SELECT 1/0", "NULL"),
        ("GET DIAGNOSTICS CONDITION 5 @x = MESSAGE_TEXT", "ok 0"),
        ("SELECT @@error_count, @@warning_count", "1|2"),
        ("SELECT 1/0", "NULL"),
        ("GET DIAGNOSTICS CONDITION 5 @x = MESSAGE_TEXT", "ok 0"),
        ("GET DIAGNOSTICS CONDITION 2 @x = MYSQL_ERRNO", "ok 0"),
        ("SELECT @x", "1758"),
    ]);
}

#[test]
fn prepared_statements_share_texts_within_limits() {
    let harness = Harness::new();
    let mut root = harness.root();
    let mut other = harness.root();
    root.setup("SET GLOBAL max_prepared_stmt_count = 3");
    let first = root.session.prepare(b"SELECT ?").expect("the first").statement_id;
    let second = other.session.prepare(b"SELECT ?").expect("the second").statement_id;
    root.session.prepare(b"SELECT ?").expect("the third");
    let refused = root.session.prepare(b"SELECT 1").map(|info| info.statement_id);
    assert_eq!(refused.expect_err("one too many").code().0, 1461);
    root.session.close_statement(first);
    assert!(root.session.parameter_count(first).is_err());
    assert_eq!(other.session.parameter_count(second).expect("still open"), 1);
    let again = root.session.prepare(b"SELECT ?, ?").expect("room again").statement_id;
    assert_ne!(again, first, "a closed statement's id names nothing else");
    assert_eq!(root.session.parameter_count(again).expect("open"), 2);
    root.setup("SET GLOBAL max_prepared_stmt_count = 4000000");
    root.setup("SET GLOBAL prepared_stmt_memory_limit = 1048576");
    let mut count = 0;
    let error = loop {
        match root.session.prepare(format!("SELECT {count}").as_bytes()) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert_eq!(error.code().0, 1461);
    assert!(count > 5_000, "{count} fit into a MiB");
    root.session.reset_connection().expect("closed all");
    root.session.prepare(b"SELECT 1").expect("room again");
}

#[test]
fn hourly_limits_are_kept() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup("CREATE USER u WITH MAX_QUERIES_PER_HOUR 3 MAX_UPDATES_PER_HOUR 1");
    root.setup("GRANT ALL ON t.* TO u");
    root.setup("CREATE TABLE t1 (a INT)");
    let mut user = harness.connect("u").expect("may connect");
    user.check(&[("SELECT 1", "1"), ("INSERT INTO t.t1 VALUES (1)", "ok 1")]);
    user.refuse(&[("INSERT INTO t.t1 VALUES (1)", 1226), ("SELECT 1", 1226)]);
    root.setup("FLUSH USER_RESOURCES");
    user.check(&[("SELECT 1", "1")]);
    root.setup("CREATE USER v WITH MAX_CONNECTIONS_PER_HOUR 1");
    assert!(harness.connect("v").is_ok());
    assert_eq!(harness.connect("v").err().map(|error| error.code().0), Some(1226));
}

/// What the reply to the last statement of a text told about the session, as in the reference.
fn told(client: &mut support::Client, sql: &str) -> String {
    let shown = |change: &plugin_api::StateChange| match change {
        plugin_api::StateChange::TransactionState(text)
        | plugin_api::StateChange::TransactionCharacteristics(text) => text.clone(),
        other => format!("{other:?}"),
    };
    let changes: Vec<String> = client.sink(sql).last_ok.changes.iter().map(shown).collect();
    changes.join(" | ")
}

#[test]
fn replies_tell_what_a_transaction_has_done() {
    let harness = Harness::new();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE t1 (a INT PRIMARY KEY, b INT)
        INSERT INTO t1 VALUES (1, 1)
        CREATE PROCEDURE p() BEGIN START TRANSACTION; UPDATE t1 SET b = 3; COMMIT; START TRANSACTION; END",
    );
    let cases = [
        ("BEGIN", ""),
        ("COMMIT", ""),
        ("SET session_track_transaction_info = 'STATE'", ""),
        ("SELECT * FROM t1", ""),
        ("START TRANSACTION", "T_______"),
        ("SELECT 1", "T_____S_"),
        ("SELECT * FROM t1", "T_R___S_"),
        ("SELECT * FROM t1", ""),
        ("UPDATE t1 SET b = 2 WHERE a = 9", "T_R_W_S_"),
        ("SAVEPOINT a", ""),
        ("COMMIT AND CHAIN", "T_______"),
        ("SELECT * FROM t1 FOR UPDATE", "T___W_S_"),
        ("ROLLBACK", "________"),
        ("BEGIN; DO RAND()", "T____s__"),
        ("CREATE TABLE t2 (a INT)", "________"),
        ("SET autocommit = 0", "SystemVariable(\"autocommit\", \"OFF\")"),
        ("SELECT 1", ""),
        ("SELECT * FROM t1", "I_R___S_"),
        ("SET autocommit = 1", "SystemVariable(\"autocommit\", \"ON\") | ________"),
        ("CALL p()", "T_______"),
        ("ROLLBACK", "________"),
        ("LOCK TABLES t1 READ", "_______L"),
        ("UNLOCK TABLES", "________"),
        ("XA START 'a'", "T_______"),
        ("XA END 'a'", ""),
        ("XA ROLLBACK 'a'", "________"),
    ];
    for (sql, expected) in cases {
        assert_eq!(told(&mut root, sql), expected, "{sql}");
    }
}

#[test]
fn replies_tell_how_to_begin_a_transaction_again() {
    let harness = Harness::new();
    let mut root = harness.root();
    let level = "SET TRANSACTION ISOLATION LEVEL SERIALIZABLE;";
    let read_only = "START TRANSACTION READ ONLY;";
    let cases = [
        ("SET session_track_transaction_info = 'CHARACTERISTICS'", String::new()),
        ("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE", level.to_owned()),
        ("SET @@transaction_read_only = 1", format!("{level} SET TRANSACTION READ ONLY;")),
        ("START TRANSACTION", format!("T_______ | {level} {read_only}")),
        ("COMMIT AND CHAIN", format!("{level} {read_only}")),
        ("COMMIT", "________ | ".to_owned()),
        ("XA START 'b', '\\'', 3", "T_______ | XA START 'b',0x27,3;".to_owned()),
    ];
    for (sql, expected) in cases {
        assert_eq!(told(&mut root, sql), expected, "{sql}");
    }
}

#[test]
fn replies_tell_once_that_something_of_the_session_has_changed() {
    let harness = Harness::new();
    let mut root = harness.root();
    assert_eq!(told(&mut root, "SET @x = 1"), "");
    let cases = [
        ("SET session_track_state_change = 1", "State"),
        ("SET @x = 1, @y = 2", "State"),
        ("SELECT 1 INTO @x", ""),
        ("CREATE TEMPORARY TABLE t1 (a INT)", "State"),
        ("DROP TEMPORARY TABLE t1", "State"),
        ("PREPARE s FROM 'SELECT 1'", "State"),
        ("EXECUTE s", ""),
        ("DEALLOCATE PREPARE s", "State"),
        ("USE t", "Schema(\"t\") | State"),
    ];
    for (sql, expected) in cases {
        assert_eq!(told(&mut root, sql), expected, "{sql}");
    }
}
