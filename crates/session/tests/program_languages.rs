//! Routines in a language of a plugin: compiled once for a session, called with values of their parameters' types.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use errors::{Error, ErrorCode, Result};
use plugin_api::{
    CompiledProgram, ParameterMode, Plugin, PluginInfo, ProgramCall, ProgramLanguage,
    ProgramOutcome, ProgramText, Registrar, TypedValue,
};
use support::Harness;
use types::{CollationId, DataType, TypeKind, Value};

/// A plugin with the language STEPS: one command a line.
struct Steps(Arc<AtomicUsize>);

impl Plugin for Steps {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("steps", "The language of this test.")
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.language(Arc::new(StepsLanguage(self.0.clone())));
    }
}

/// Counts compilations.
struct StepsLanguage(Arc<AtomicUsize>);

struct Program {
    lines: Vec<String>,
    libraries: Vec<(String, String)>,
    modes: Vec<ParameterMode>,
    returns: bool,
}

impl ProgramLanguage for StepsLanguage {
    fn name(&self) -> &str {
        "STEPS"
    }

    fn compile(&self, text: &ProgramText<'_>) -> Result<Box<dyn CompiledProgram>> {
        self.0.fetch_add(1, Ordering::Relaxed);
        self.check_library(text.name, text.source)?;
        let libraries = text.libraries.iter();
        Ok(Box::new(Program {
            lines: text.source.lines().map(|line| line.trim().to_owned()).collect(),
            libraries: libraries.map(|used| (used.alias.into(), used.source.into())).collect(),
            modes: text.parameters.iter().map(|parameter| parameter.mode).collect(),
            returns: text.returns.is_some(),
        }))
    }

    fn check_library(&self, name: &str, source: &str) -> Result<()> {
        if source.contains("nonsense") {
            return Err(Error::new(ErrorCode::PARSE_ERROR, format!("{name}: nonsense")));
        }
        Ok(())
    }
}

fn text(text: &str) -> TypedValue {
    let ty = DataType::varchar(100, CollationId::UTF8MB4_0900_AI_CI);
    TypedValue { value: Value::text(text), ty }
}

impl CompiledProgram for Program {
    fn invoke(&self, call: ProgramCall<'_>) -> Result<ProgramOutcome> {
        let mut outcome = ProgramOutcome::default();
        for line in &self.lines {
            let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
            match word {
                "sum" => {
                    let sum = call.arguments.iter().map(|value| match value {
                        Value::Int(value) => *value,
                        _ => 0,
                    });
                    let ty = DataType::new(TypeKind::BigInt, 20, 0);
                    let value = Value::Int(sum.sum());
                    outcome.returned = Some(TypedValue { value, ty });
                }
                "return" => outcome.returned = Some(text(rest)),
                "user" => outcome.returned = Some(text(&call.context.session.current_user())),
                "variable" => {
                    let value = call.context.session.user_variable(rest).map(|(value, _)| value);
                    let shown = format!("{value:?}");
                    outcome.returned = Some(text(&shown));
                }
                "out" => {
                    for (slot, mode) in self.modes.iter().enumerate() {
                        if *mode != ParameterMode::In {
                            outcome.out.push((slot, text(rest)));
                        }
                    }
                }
                "sql" => {
                    let result = call.statements.run(rest, call.arguments)?;
                    let cell = result.rows.first().and_then(|row| row.first());
                    outcome.returned = Some(text(&format!("{cell:?}")));
                }
                "library" => {
                    let found = self.libraries.iter().find(|(alias, _)| alias == rest);
                    outcome.returned = found.map(|(_, source)| text(source));
                }
                "warn" => {
                    call.context.diagnostics.warn(ErrorCode::WRONG_ARGUMENTS, &[&rest]);
                }
                "fail" => return Err(Error::new(ErrorCode::WRONG_ARGUMENTS, rest)),
                "panic" => panic!("{rest}"),
                _ => {}
            }
        }
        if !self.returns {
            outcome.returned = None;
        }
        Ok(outcome)
    }
}

fn harness() -> (Harness, Arc<AtomicUsize>) {
    let compiled = Arc::new(AtomicUsize::new(0));
    (Harness::with(vec![Box::new(Steps(compiled.clone()))]), compiled)
}

#[test]
fn a_function_is_compiled_once_and_its_values_are_converted() {
    let (harness, compiled) = harness();
    let mut root = harness.root();
    root.setup(
        "CREATE FUNCTION f1(a INT, b INT) RETURNS INT DETERMINISTIC LANGUAGE steps AS $$sum$$
         CREATE FUNCTION f2(a TINYINT) RETURNS DECIMAL(5,2) LANGUAGE STEPS AS 'return 1.239'
         CREATE FUNCTION f3() RETURNS INT LANGUAGE STEPS AS 'return no number'
         CREATE FUNCTION f4() RETURNS VARCHAR(9) LANGUAGE STEPS AS $x$return $$ $x$
         CREATE FUNCTION f5() RETURNS INT LANGUAGE STEPS AS ''
         CREATE TABLE t1 (a INT PRIMARY KEY)
         INSERT INTO t1 VALUES (1), (2), (3)",
    );
    let before = compiled.load(Ordering::Relaxed);
    root.check(&[
        ("SELECT f1(a, '10') FROM t1", "11\n12\n13"),
        ("SELECT f1(1, 2), F1(NULL, 4), t.f1(1.5, 1)", "3|4|3"),
        ("SELECT f2(1)", "1.24"),
        ("SELECT f2(1000)", "error 1264: Out of range value for column 'a' at row 1"),
        (
            "SELECT f3()",
            "error 1366: Incorrect integer value: 'no number' for column 'f3()' at row 1",
        ),
        ("SELECT f4()", "$$"),
        ("SELECT f5()", "error 1321: FUNCTION f5 ended without RETURN"),
        (
            "SELECT f1(1)",
            "error 1318: Incorrect number of arguments for FUNCTION t.f1; expected 2, got 1",
        ),
        ("SELECT a FROM t1 WHERE f1(a, 1) = 3", "2"),
    ]);
    assert_eq!(compiled.load(Ordering::Relaxed) - before, 5, "once for each function");
    assert_eq!(root.run("SET sql_mode = ''"), "ok 0");
    // Arguments are converted in the caller's mode, the result in the creator's.
    root.check(&[
        ("SELECT f2(1000)", "1.24"),
        (
            "SELECT f3()",
            "error 1366: Incorrect integer value: 'no number' for column 'f3()' at row 1",
        ),
    ]);
}

#[test]
fn a_text_with_errors_is_refused_by_create() {
    let (harness, _) = harness();
    let mut root = harness.root();
    root.check(&[
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE STEPS AS 'nonsense'", "error 1064: f: nonsense"),
        ("CREATE LIBRARY l LANGUAGE STEPS AS 'nonsense'", "error 1064: l: nonsense"),
        ("SELECT COUNT(*) FROM information_schema.ROUTINES WHERE ROUTINE_SCHEMA = 't'", "0"),
        ("CREATE FUNCTION f() RETURNS INT LANGUAGE OTHER AS 'nonsense'", "ok 0"),
        ("SHOW WARNINGS", "Warning|6001|Language component: Not available."),
        ("SELECT f()", "error 6001: Language component: Not available."),
        ("CREATE FUNCTION g() RETURNS INT LANGUAGE STEPS AS 'sum'", "ok 0"),
        ("SHOW WARNINGS", ""),
    ]);
}

#[test]
fn a_procedure_hands_out_its_parameters_and_runs_statements() {
    let (harness, _) = harness();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE log (a VARCHAR(20))
         CREATE PROCEDURE p1(IN a INT, OUT b INT, INOUT c VARCHAR(3)) LANGUAGE STEPS AS 'out 12'
         CREATE PROCEDURE p2(a VARCHAR(9)) LANGUAGE STEPS AS 'sql INSERT INTO log VALUES (?)\\nwarn p2'
         CREATE PROCEDURE p3(a VARCHAR(9)) LANGUAGE STEPS AS 'sql INSERT INTO log VALUES (?)\\nfail no'
         CREATE PROCEDURE p4() LANGUAGE STEPS AS 'sql COMMIT'
         CREATE PROCEDURE p5(OUT a INT) LANGUAGE STEPS AS 'out none'
         CREATE PROCEDURE p6() LANGUAGE STEPS AS 'panic here'
         CREATE FUNCTION f1(a INT) RETURNS VARCHAR(50) LANGUAGE STEPS AS 'sql SELECT COUNT(*) + ? FROM log'
         CREATE PROCEDURE outer_one() BEGIN DECLARE v INT; CALL p1(1, v, @c); SET @v = v + 1; END",
    );
    root.check(&[
        ("CALL p1(1, @b, @c)", "ok 0"),
        ("SELECT @b, @c", "12|12"),
        ("CALL outer_one()", "ok 0"),
        ("SELECT @v", "13"),
        ("CALL p5(@b)", "error 1366: Incorrect integer value: 'none' for column 'a' at row 1"),
        ("CALL p2('x')", "ok 0"),
        ("SHOW WARNINGS", "Warning|1210|Incorrect arguments to p2"),
        ("CALL p3('y')", "error 1210: no"),
        ("SELECT * FROM log", "x"),
        ("START TRANSACTION", "ok 0"),
        ("CALL p2('z')", "ok 0"),
        ("CALL p3('y')", "error 1210: no"),
        ("SELECT f1(1)", "Some(Int(3))"),
        ("ROLLBACK", "ok 0"),
        ("SELECT f1(1)", "Some(Int(2))"),
        (
            "CALL p4()",
            "error 1422: Explicit or implicit commit is not allowed in stored function or trigger.",
        ),
    ]);
    assert!(root.run("CALL p6()").starts_with("error 1815"), "a bug ends the statement alone");
    assert_eq!(root.run("SELECT @b, f1(1)"), "12|Some(Int(2))");
}

#[test]
fn a_routine_has_its_libraries_as_they_are_now() {
    let (harness, _) = harness();
    let mut root = harness.root();
    root.setup(
        "CREATE LIBRARY l1 COMMENT 'c' LANGUAGE STEPS AS 'one'
         CREATE LIBRARY l2 LANGUAGE STEPS AS X'3031'
         CREATE FUNCTION f1() RETURNS TEXT LANGUAGE STEPS USING (l1 AS x, t.l2) AS 'library x'
         CREATE FUNCTION f2() RETURNS TEXT LANGUAGE STEPS USING (L2) AS 'library l2'",
    );
    root.check(&[
        ("SELECT f1(), f2()", "one|0x3031"),
        ("DROP LIBRARY l1", "ok 0"),
        (
            "SELECT f1()",
            "error 6435: The routine 't.f1' references a missing library 't.l1' or definer/invoker of the \
             routine lack rights to use it.",
        ),
        ("CREATE LIBRARY l1 LANGUAGE STEPS AS 'two'", "ok 0"),
        ("SELECT f1()", "two"),
        ("ALTER FUNCTION f1 USING (l2 AS x)", "ok 0"),
        ("SELECT f1()", "0x3031"),
        ("ALTER FUNCTION f1 USING ()", "ok 0"),
        ("SELECT f1()", "error 1321: FUNCTION f1 ended without RETURN"),
        (
            "ALTER FUNCTION f1 LANGUAGE SQL",
            "error 6004: Altering the language of an existing routine is not possible.",
        ),
        ("DROP DATABASE t", "ok 0"),
        ("SELECT COUNT(*) FROM information_schema.LIBRARIES", "0"),
    ]);
}

#[test]
fn a_routine_runs_as_its_definer_or_its_caller() {
    let (harness, _) = harness();
    let mut root = harness.root();
    root.setup(
        "CREATE TABLE secret (a INT)
         INSERT INTO secret VALUES (5)
         CREATE LIBRARY l1 LANGUAGE STEPS AS 'one'
         CREATE FUNCTION f1() RETURNS TEXT LANGUAGE STEPS AS 'sql SELECT a FROM secret'
         CREATE FUNCTION f2() RETURNS TEXT SQL SECURITY INVOKER LANGUAGE STEPS AS 'sql SELECT a FROM secret'
         CREATE FUNCTION f3() RETURNS TEXT SQL SECURITY INVOKER LANGUAGE STEPS AS 'user'
         CREATE USER u
         GRANT EXECUTE ON FUNCTION t.f1 TO u
         GRANT EXECUTE ON FUNCTION t.f2 TO u
         GRANT EXECUTE ON FUNCTION t.f3 TO u
         CREATE DATABASE own
         GRANT CREATE ROUTINE ON own.* TO u",
    );
    let mut user = harness.connect("u").expect("the user exists");
    user.check(&[
        ("SELECT t.f1(), t.f3()", "Some(Int(5))|u@%"),
        (
            "SELECT t.f2()",
            "error 1142: SELECT command denied to user 'u'@'localhost' for table 'secret'",
        ),
        (
            "CREATE FUNCTION own.f() RETURNS INT LANGUAGE STEPS USING (t.l1) AS 'sum'",
            "error 1370: execute command denied to user 'u'@'%' for routine 't.l1'",
        ),
        (
            "DROP LIBRARY t.l1",
            "error 1370: alter routine command denied to user 'u'@'%' for routine 't.l1'",
        ),
        ("SHOW CREATE LIBRARY t.l1", "error 1305: LIBRARY l1 does not exist"),
    ]);
    root.setup("GRANT EXECUTE ON LIBRARY t.l1 TO u");
    user.check(&[
        ("CREATE FUNCTION own.f() RETURNS INT LANGUAGE STEPS USING (t.l1) AS 'sum'", "ok 0"),
        ("SELECT own.f()", "0"),
        ("SELECT LIBRARY_NAME, LIBRARY_DEFINITION FROM information_schema.LIBRARIES", "l1|NULL"),
    ]);
}
