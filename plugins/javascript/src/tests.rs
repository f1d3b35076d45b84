//! `JS()` with a session that is none: values, errors, limits, and scripts that want to do harm.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::sync::Arc;
use std::time::{Duration, Instant};

use errors::{Diagnostics, Error, ErrorCode, Result, bail};
use plugin_api::test_support::FakeSession;
use plugin_api::{
    ArgInfo, BindContext, ColumnMeta, FunctionContext, ParameterMode, ProgramCall, ProgramLanguage,
    ProgramLibrary, ProgramParameter, ProgramText, ScalarFunction, SessionHandle, SessionServices,
    StatementResult, Statements,
};
use types::{CollationId, DataType, Date, DateTime, FixedOffset, SqlMode, TypeKind, Value, json};

use crate::function;
use crate::language::JavaScript as Language;
use crate::pool::Pool;

const MEMORY: u64 = 16 << 20;

/// Returns its parameters as a row, or fails.
#[derive(Default)]
struct Echo {
    statements: Vec<String>,
}

impl Statements for Echo {
    fn run(&mut self, sql: &str, parameters: &[Value]) -> Result<StatementResult> {
        self.statements.push(sql.to_owned());
        if sql == "fail" {
            bail!(NO_SUCH_TABLE, "d", "t");
        }
        if sql == "change" {
            return Ok(StatementResult {
                affected_rows: 3,
                last_insert_id: 7,
                ..Default::default()
            });
        }
        let columns = parameters.iter().enumerate().map(|(at, value)| {
            let ty = match value {
                Value::Int(_) => DataType::bigint(),
                Value::DateTime(_) => DataType::datetime(0),
                _ => DataType::varchar(100, CollationId::UTF8MB4_0900_AI_CI),
            };
            ColumnMeta::computed(&format!("c{at}"), ty)
        });
        Ok(StatementResult {
            columns: columns.collect(),
            rows: vec![parameters.to_vec()],
            ..StatementResult::default()
        })
    }

    fn open_session(&mut self) -> Result<Box<dyn SessionHandle>> {
        bail!(SP_NO_RECURSION)
    }

    fn require_privilege(&self, _: &str) -> Result<()> {
        Ok(())
    }
}

fn bind_context() -> BindContext {
    BindContext {
        sql_mode: SqlMode::DEFAULT,
        collation_connection: CollationId::UTF8MB4_0900_AI_CI,
        div_precision_increment: 4,
        group_concat_max_len: 1024,
        max_allowed_packet: 1 << 26,
        history: plugin_api::HistorySettings::default(),
        cascades_fire_triggers: false,
    }
}

/// A pool with limits for tests.
fn pool(milliseconds: u64) -> Arc<Pool> {
    let pool = Arc::new(Pool::default());
    pool.settings.set(MEMORY, milliseconds, 8);
    pool
}

fn run_in(
    pool: &Arc<Pool>,
    session: &mut dyn SessionServices,
    code: &str,
    args: &[(Value, DataType, Option<&str>)],
) -> Result<Value> {
    let js: ScalarFunction = function::js(pool);
    let text = DataType::varchar(1000, CollationId::UTF8MB4_0900_AI_CI);
    let mut names = b"[null".to_vec();
    for (.., name) in args {
        names.push(b',');
        match name {
            Some(name) => json::quote(name.as_bytes(), &mut names),
            None => names.extend_from_slice(b"null"),
        }
    }
    names.push(b']');
    let names = Value::text(std::str::from_utf8(&names).expect("UTF-8"));
    let info = |ty: &DataType| ArgInfo { ty: ty.clone(), constant: None, fixed: false };
    let mut infos = vec![info(&text)];
    infos.extend(args.iter().map(|(_, ty, _)| info(ty)));
    infos.push(ArgInfo { ty: text, constant: Some(names.clone()), fixed: true });
    let bound = js.bind(&bind_context(), &infos)?;
    let mut values = vec![Value::text(code)];
    values.extend(args.iter().map(|(value, ..)| value.clone()));
    values.push(names);
    let kernel = bound.statements.expect("it runs statements");
    let (zone, mut diagnostics) = (FixedOffset::utc(), Diagnostics::default());
    let mut context = FunctionContext {
        sql_mode: SqlMode::DEFAULT,
        time_zone: &zone,
        now_micros: 0,
        now: DateTime::default(),
        div_precision_increment: 4,
        max_allowed_packet: 1 << 26,
        diagnostics: &mut diagnostics,
        session,
    };
    kernel(&mut context, &mut Echo::default(), &values)
}

fn run(pool: &Arc<Pool>, code: &str, args: &[(Value, DataType, Option<&str>)]) -> String {
    shown(run_in(pool, &mut FakeSession::default(), code, args))
}

fn shown(result: Result<Value>) -> String {
    match result {
        Ok(Value::Null) => "NULL".into(),
        Ok(Value::Bytes(bytes)) => String::from_utf8_lossy(&bytes).into_owned(),
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("error {}: {}", error.code().0, error.message()),
    }
}

fn check(cases: &[(&str, &str)]) {
    let pool = pool(10_000);
    let results: Vec<_> = cases.iter().map(|(code, _)| (*code, run(&pool, code, &[]))).collect();
    let expected: Vec<_> = cases.iter().map(|(code, it)| (*code, (*it).to_owned())).collect();
    let differing: Vec<_> = results.iter().zip(&expected).filter(|(a, b)| a != b).collect();
    assert!(differing.is_empty(), "{differing:#?}");
}

#[test]
fn the_value_of_the_last_statement_is_the_result() {
    check(&[
        ("1 + 2;", "3"),
        ("var a = 'x'; a + 'ü😀'", "xü😀"),
        ("6.5", "6.5"),
        ("1e21", "1e21"),
        ("-0", "0"),
        ("0/0", "NaN"),
        ("2n ** 63n", "9223372036854775808"),
        ("2n ** 100n", "1267650600228229401496703205376"),
        ("3 > 2", "1"),
        ("null", "NULL"),
        ("undefined", "NULL"),
        ("", "NULL"),
        ("var x = 1", "NULL"),
        ("({b: 1, a: [null, 'x']})", r#"{"a": [null, "x"], "b": 1}"#),
        ("[1, 2.5]", "[1, 2.5]"),
        ("new Date(Date.UTC(2024, 1, 29, 12, 30, 1))", "2024-02-29 12:30:01"),
        ("new Date(Date.UTC(2024, 1, 29, 12, 30, 1, 50))", "2024-02-29 12:30:01.050"),
        ("new Date(NaN)", "NULL"),
        ("new Uint8Array([97, 98])", "ab"),
        ("if (true) { 'yes' } else { 'no' }", "yes"),
        ("Promise.resolve(5).then(x => x + 1)", "6"),
        ("(async () => { await null; return 'later' })()", "later"),
        ("function* g() { yield 1; yield 2 } [...g()].length", "2"),
        ("eval('1 + 1')", "2"),
        ("[1, [2, [3, [4]]]].flat()", "[1, 2, [3, [4]]]"),
        ("[1, [2, [3, [4]]]].flat(Infinity)", "[1, 2, 3, 4]"),
        ("[1, 2].flatMap(x => [x, [x]])", "[1, [1], 2, [2]]"),
        ("[3, 1, 2].sort((a, b) => b - a).concat([7], 8).slice(1).reverse()", "[8, 7, 1, 2]"),
        ("(function () { return [].slice.call(arguments, 1) })(1, 2, 3)", "[2, 3]"),
    ]);
}

#[test]
fn arguments_have_places_and_names() {
    let pool = pool(10_000);
    let int = |number, name| (Value::Int(number), DataType::bigint(), name);
    let double = |number, name| (Value::Double(number), DataType::double(), name);
    let three = [int(1, None), int(2, None), int(3, None)];
    assert_eq!(run(&pool, "arguments[0]+arguments[1]+arguments[2];", &three), "6");
    let named = [int(1, Some("first")), double(2.0, Some("second")), double(3.5, Some("third"))];
    assert_eq!(run(&pool, "first + second + third;", &named), "6.5");
    assert_eq!(run(&pool, "arguments.length", &named), "3");
    let big = [int(i64::MAX, Some("big"))];
    assert_eq!(run(&pool, "typeof big + (big + 1n)", &big), "bigint9223372036854775808");
    let at = DateTime::from_unix_micros(1_709_209_801_000_000).expect("a date");
    let at = [(Value::DateTime(at), DataType::datetime(0), Some("at"))];
    assert_eq!(run(&pool, "at.toISOString()", &at), "2024-02-29T12:30:01.000Z");
    assert_eq!(run(&pool, "at.setUTCDate(1); at", &at), "2024-02-01 12:30:01");
    let none = [(Value::Date(Date::default()), DataType::date(), Some("none"))];
    assert_eq!(run(&pool, "none", &none), "0000-00-00");
    let document = json::parse(br#"{"a": [1, "x"]}"#).expect("JSON").to_value();
    let document = [(document, DataType::json(), Some("d"))];
    assert_eq!(run(&pool, "d.a[1] + d.a.length", &document), "x2");
    let bytes = Value::Bytes(types::SqlBytes::new(&[1, 2, 255]));
    let bytes = [(bytes, DataType::varbinary(3), Some("b"))];
    assert_eq!(run(&pool, "b instanceof Uint8Array && b[2]", &bytes), "255");
    let decimal = types::Decimal::from_f64(1.25).expect("a decimal");
    let decimal = [(Value::Decimal(decimal), DataType::decimal(5, 2), Some("d"))];
    assert_eq!(run(&pool, "typeof d + d * 2", &decimal), "number2.5");
    let null = [(Value::Null, DataType::new(TypeKind::Null, 0, 0), Some("n"))];
    assert_eq!(run(&pool, "n === null", &null), "1");
}

#[test]
fn errors_say_where() {
    check(&[
        (
            "this is not javascript",
            "error 6000: JavaScript> SyntaxError: expecting ';' (line 1, column 6)",
        ),
        (
            "var a = 1;\n  nothing + a",
            "error 6000: JavaScript> ReferenceError: nothing is not defined (line 2, column 3)",
        ),
        (
            "function f() {\n throw new RangeError('so')\n}\nf()",
            "error 6000: JavaScript> RangeError: so (line 2, column 12)",
        ),
        ("throw 'plain'", "error 6000: JavaScript> uncaught plain"),
        ("throw {toString() { throw 1 }}", "error 6000: JavaScript> Error: "),
        ("Symbol('x')", "error 6000: JavaScript> a value of type symbol has no SQL value"),
        ("x => x", "error 6000: JavaScript> a value of type function has no SQL value"),
        ("new Promise(() => {})", "error 6000: JavaScript> the promise is never settled"),
        (
            "Promise.reject(new Error('no'))",
            "error 6000: JavaScript> Error: no (line 1, column 20)",
        ),
        ("var a = {}; a.a = a; a", "error 6000: JavaScript> TypeError: circular reference"),
        (
            "({get a() { throw new Error('get') }})",
            "error 6000: JavaScript> Error: get (line 1, column 23)",
        ),
        (
            "new Proxy({}, {ownKeys() { throw new Error('own') }})",
            "error 6000: JavaScript> Error: own (line 1, column 38)",
        ),
        ("new Uint8Array([255])", "error 6000: JavaScript> the bytes of the result are not UTF-8"),
        (
            "'a\u{0}b'.length",
            "error 6000: JavaScript> String contained internal null bytes: nul byte found in provided data at position: 2",
        ),
    ]);
}

#[test]
fn scripts_reach_nothing_of_the_host() {
    check(&[
        (
            "[typeof require, typeof process, typeof std, typeof os, typeof fetch].join()",
            "undefined,undefined,undefined,undefined,undefined",
        ),
        (
            "typeof WebAssembly + typeof XMLHttpRequest + typeof Worker",
            "undefinedundefinedundefined",
        ),
        ("import('os').then(() => 'in', () => 'refused')", "refused"),
        ("import('/etc/passwd').then(() => 'in', () => 'refused')", "refused"),
        ("Object.keys(globalThis).sort().join()", "arguments,db,performance"),
    ]);
}

#[test]
fn statements_run_inside() {
    check(&[
        ("db.query('x', 1, 'two')[0].c1", "two"),
        ("db.query('x', 1, 'two').columns", r#"["c0", "c1"]"#),
        ("db.query('x', new Date(0))[0].c0.getTime()", "0"),
        ("db.query('change')", r#"{"affectedRows": 3, "lastInsertId": 7}"#),
        (
            "try { db.query('fail') } catch (e) { e.errno + e.sqlState + e.message }",
            "114642S02Table 'd.t' doesn't exist",
        ),
        ("db.query('fail')", "error 1146: Table 'd.t' doesn't exist"),
        (
            "db.query('x', Symbol())",
            "error 6000: JavaScript> Error: a value of type symbol has no SQL value (line 1, column 14)",
        ),
    ]);
}

#[test]
fn nothing_leaks_from_one_call_to_the_next() {
    let pool = pool(10_000);
    for (first, second, expected) in [
        (
            "secret = 5; globalThis.other = 6; 1",
            "typeof secret + typeof other",
            "undefinedundefined",
        ),
        (
            "Object.prototype.polluted = 1; Array.prototype.map = 0; 1",
            "({}).polluted + typeof [].map",
            "undefinedfunction",
        ),
        (
            "Date.prototype.getTime = () => 0; JSON.stringify = () => 'x'; 1",
            "JSON.stringify(new Date(5).getTime())",
            "5",
        ),
        (
            "RegExp.prototype.exec = () => null; delete globalThis.Math; 1",
            "/a/.test('a') && Math.max(1, 2)",
            "2",
        ),
        (
            "Promise.resolve().then(function f() { Promise.resolve().then(f) }); throw 1",
            "typeof f",
            "undefined",
        ),
    ] {
        run(&pool, first, &[]);
        assert_eq!(run(&pool, second, &[]), expected, "after {first}");
    }
    // A script cannot deceive the conversion of its own result.
    check(&[(
        "Date.prototype.getTime = () => 0; new Date(Date.UTC(2024, 0, 1))",
        "2024-01-01 00:00:00",
    )]);
}

/// A comment makes a script one that is not kept compiled.
#[test]
fn expressions_have_the_same_value_both_ways() {
    let pool = pool(10_000);
    let text = |text: &str| (Value::text(text), DataType::varchar(40, CollationId::UTF8MB4_BIN));
    let (json, word) = (text(r#"{"a":{"b":[7,8]},"n":null}"#), text("two words"));
    let number = (Value::Int(5), DataType::bigint());
    let args = [
        (json.0, json.1, Some("document")),
        (word.0, word.1, Some("word")),
        (number.0, number.1, Some("number")),
        (Value::Null, DataType::null(), None),
    ];
    for code in [
        "JSON.parse(document).a.b[1] + number",
        "JSON.parse(document).a.b",
        "word.toUpperCase().split(' ').join('-')",
        "arguments.length + ' ' + arguments[3]",
        "Array.isArray(arguments)",
        "number / 2 > 2 ? 'more' : 'less'",
        "missing.a",
        "JSON.parse(document).missing.a",
        "\n\n  JSON.parse(word)",
        "'x'.repeat(-1)",
        "typeof missing",
        "number;",
        "'use strict'",
        "null",
        "1, 2",
        "word.length === 9 && !number",
    ] {
        let long = format!("/**/{code}");
        let wanted = run(&pool, &long, &args);
        for _ in 0..3 {
            let got = run(&pool, code, &args);
            // The comment moves columns of the first line by its four characters.
            let place = |shown: &str| shown.split(" (line").next().unwrap_or("").to_owned();
            assert_eq!(place(&got), place(&wanted), "{code}");
        }
    }
    assert_eq!(run(&pool, "\n number.a.b", &args), run(&pool, "/**/\n number.a.b", &args));
}

#[test]
fn expressions_see_nothing_of_other_scripts() {
    let pool = pool(10_000);
    for code in [
        "secret = 5; Array.prototype.join = () => 'x'; JSON.parse = () => 1; Math.max = () => 9; 1",
        "globalThis.$expression$0$ = () => 'x'; Object.prototype.length = 77; 1",
    ] {
        for _ in 0..3 {
            run(&pool, code, &[]);
            assert_eq!(run(&pool, "Math.max(1, 2) + [1, 2].join('-')", &[]), "21-2");
            assert_eq!(run(&pool, "JSON.parse('{\"a\":2}').a", &[]), "2");
            assert_eq!(run(&pool, "typeof secret", &[]), run(&pool, "typeof other", &[]));
        }
    }
    // More than are kept; one text with arguments of other names.
    for number in 0..200 {
        assert_eq!(run(&pool, &format!("{number} + 1"), &[]), (number + 1).to_string());
        let name = if number % 2 == 0 { "a" } else { "b" };
        let arg = [(Value::Int(number), DataType::bigint(), Some(name))];
        let value = run(&pool, "arguments[0] + arguments.length", &arg);
        assert_eq!(value, (number + 1).to_string());
    }
    let shown = run(&pool, "a", &[(Value::Int(1), DataType::bigint(), Some("b"))]);
    assert!(shown.contains("a is not defined"), "{shown}");
}

/// Each has a global object of its own: those of thousands do not fit into the memory of an isolate together.
#[test]
fn what_a_call_leaves_is_freed() {
    let pool = pool(10_000);
    let mut first = Vec::new();
    for number in 0..3000 {
        let script = format!("let x = {{ a: [{number}] }}; x.self = x; x.a.concat([1]).length");
        assert_eq!(run(&pool, &script, &[]), "2", "call {number}");
        first.push(pool.counts().isolates);
    }
    assert!(first.iter().all(|isolates| *isolates == 1));
}

#[test]
fn harmful_scripts_end_within_their_limits() {
    let pool = pool(300);
    let mut wrong = Vec::new();
    let time = "error 6000: JavaScript> the script ran for longer than 300 ms (js_timeout)";
    let memory = "error 6000: JavaScript> the script needs more than 16777216 bytes of memory (js_memory_limit)";
    for (code, expected) in [
        ("while (true) {}", time),
        ("for (;;) { try { for (;;) {} } catch (e) {} finally { continue } }", time),
        ("(function f() { try { f() } finally { f() } })()", time),
        ("function* g() { for (;;) yield 1 } for (const x of g()) {}", time),
        ("(function f() { Promise.resolve().then(f) })()", time),
        ("(async () => { for (;;) await null })()", time),
        ("/^(a+)+$/.test('a'.repeat(40) + 'b')", time),
        ("Array.prototype.indexOf.call({length: 2 ** 53 - 1}, 1)", time),
        (
            "new Array(4294967295).sort()",
            "error 6000: JavaScript> RangeError: the array has too many elements (line 1, column 22)",
        ),
        ("Array.prototype.slice.call({get length() { return 2 ** 53 - 1 }})", ""),
        ("[].concat({length: 2 ** 53 - 1, [Symbol.isConcatSpreadable]: true})", ""),
        (
            "Array.prototype.fill.call(Object.assign(Object.create(Uint8Array.prototype), {length: 2 ** 53 - 1}), 0)",
            "",
        ),
        ("new Array(4294967295).flat()", ""),
        ("new Array(4294967295).join('')", ""),
        ("JSON.stringify(new Array(4294967295))", ""),
        ("({get a() { for (;;) {} }})", time),
        ("new Proxy({}, {ownKeys() { for (;;) {} }})", time),
        ("({toJSON() { for (;;) {} }})", time),
        ("throw {get message() { for (;;) {} }}", time),
        ("throw {get stack() { for (;;) {} }, message: 'x'}", time),
        ("throw new Proxy({}, {get() { for (;;) {} }})", time),
        ("var a = []; for (;;) a.push('x'.repeat(1000) + a.length)", memory),
        ("var s = 'x'; for (;;) s += s", ""),
        ("'x'.repeat(1 << 29)", memory),
        ("new Uint8Array(1 << 30)", ""),
        ("new Array(1e7).fill(0)", memory),
        (
            "(function f() { f() })()",
            "error 6000: JavaScript> RangeError: Maximum call stack size exceeded (line 1, column 16)",
        ),
        ("eval('['.repeat(1e5))", ""),
        ("JSON.parse('['.repeat(1e6))", ""),
        ("var a = []; for (var i = 0; i < 1e5; i++) a = [a]; a", ""),
        ("var a = []; for (var i = 0; i < 150; i++) a = [a]; a", ""),
        ("new RegExp('('.repeat(1e5))", ""),
        ("9n ** (9n ** 9n) ** 9n", ""),
    ] {
        let begun = Instant::now();
        let result = run(&pool, code, &[]);
        assert!(result.starts_with("error "), "{code}: {result:.200}");
        if !(expected.is_empty() || result == expected) {
            wrong.push(format!("{code}: {result}"));
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "{code}: {:?}", begun.elapsed());
        assert_eq!(run(&pool, "1 + 1", &[]), "2", "after {code}");
    }
    assert_eq!(pool.counts().in_use, 0);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// A session that is killed after some questions.
struct Killed(std::cell::Cell<u32>, FakeSession);

impl SessionServices for Killed {
    fn check_cancelled(&self) -> Result<()> {
        let left = self.0.get();
        self.0.set(left.saturating_sub(1));
        if left == 0 { Err(Error::with(ErrorCode::QUERY_INTERRUPTED, &[])) } else { Ok(()) }
    }
    fn connection_id(&self) -> u64 {
        self.1.connection_id()
    }
    fn user(&self) -> String {
        self.1.user()
    }
    fn current_user(&self) -> String {
        self.1.current_user()
    }
    fn database(&self) -> Option<String> {
        self.1.database()
    }
    fn last_insert_id(&self) -> u64 {
        self.1.last_insert_id()
    }
    fn set_last_insert_id(&mut self, value: u64) {
        self.1.set_last_insert_id(value);
    }
    fn row_count(&self) -> i64 {
        self.1.row_count()
    }
    fn found_rows(&self) -> u64 {
        self.1.found_rows()
    }
    fn user_variable(&self, name: &str) -> Option<(Value, DataType)> {
        self.1.user_variable(name)
    }
    fn set_user_variable(&mut self, name: &str, value: Value, ty: DataType) {
        self.1.set_user_variable(name, value, ty);
    }
    fn system_variable(&self, name: &str) -> Option<Value> {
        self.1.system_variable(name)
    }
    fn random(&mut self) -> f64 {
        self.1.random()
    }
    fn time_zone(&self, name: &str) -> Option<Arc<dyn types::ZoneRules>> {
        self.1.time_zone(name)
    }
    fn sleep(&mut self, duration: Duration) -> bool {
        self.1.sleep(duration)
    }
    fn get_user_lock(&mut self, name: &str, timeout_seconds: f64) -> Result<bool> {
        self.1.get_user_lock(name, timeout_seconds)
    }
    fn release_user_lock(&mut self, name: &str) -> Option<bool> {
        self.1.release_user_lock(name)
    }
    fn release_all_user_locks(&mut self) -> u64 {
        self.1.release_all_user_locks()
    }
    fn user_lock_holder(&self, name: &str) -> Option<u64> {
        self.1.user_lock_holder(name)
    }
    fn version(&self) -> &str {
        self.1.version()
    }
}

#[test]
fn kill_stops_a_script_that_catches_everything() {
    let pool = pool(60_000);
    for code in [
        "for (;;) { try { for (;;) {} } catch (e) {} finally { continue } }",
        "throw new Proxy({}, {get() { for (;;) {} }})",
        "(async () => { for (;;) await null })()",
    ] {
        let mut session = Killed(std::cell::Cell::new(3), FakeSession::default());
        let result = shown(run_in(&pool, &mut session, code, &[]));
        assert_eq!(result, "error 1317: Query execution was interrupted", "{code}");
    }
}

#[test]
fn many_threads_share_few_isolates() {
    let pool = pool(60_000);
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..64)
            .map(|thread| {
                let pool = &pool;
                scope.spawn(move || {
                    for round in 0..5 {
                        let args = [(Value::Int(thread), DataType::bigint(), Some("n"))];
                        let code = "if (typeof seen != 'undefined') throw 'leak'; seen = n; \
                                    for (var i = 0, s = 0; i < 1000; i++) s += n; s";
                        assert_eq!(run(pool, code, &args), (1000 * thread).to_string(), "{round}");
                    }
                })
            })
            .collect();
        threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    });
    let counts = pool.counts();
    assert_eq!(counts.in_use, 0);
    assert!(counts.isolates <= 8, "{counts:?}");
}

#[test]
fn a_statement_waits_for_an_isolate_no_longer_than_its_limit() {
    let pool = pool(100);
    pool.settings.set(MEMORY, 100, 1);
    let limits = pool.settings.limits();
    let held = pool.lease(None, &limits, || Ok(())).expect("the first one");
    let expected = "error 6000: JavaScript> all 1 isolates (js_max_isolates) were in use for 100 ms (js_timeout)";
    assert_eq!(run(&pool, "1", &[]), expected);
    let mut session = Killed(std::cell::Cell::new(0), FakeSession::default());
    let killed = shown(run_in(&pool, &mut session, "1", &[]));
    assert_eq!(killed, "error 1317: Query execution was interrupted");
    drop(held);
    assert_eq!(run(&pool, "1", &[]), "1");
}

/// Compiles a program and calls it several times; shows its value and what it left in its parameters.
fn program(pool: &Arc<Pool>, source: &str, library: Option<&str>, calls: &[[i64; 2]]) -> String {
    let ty = DataType::bigint();
    let parameter = |name, mode| ProgramParameter { name, mode, ty: &ty };
    let text = ProgramText {
        schema: "d",
        name: "p",
        parameters: vec![parameter("a", ParameterMode::In), parameter("b", ParameterMode::InOut)],
        returns: Some(&ty),
        source,
        libraries: library
            .iter()
            .map(|source| ProgramLibrary {
                alias: "lib",
                schema: "d",
                name: "l",
                language: "JAVASCRIPT",
                source,
            })
            .collect(),
    };
    let compiled = match Language::new(pool).compile(&text) {
        Ok(compiled) => compiled,
        Err(error) => return shown(Err(error)),
    };
    let (zone, mut diagnostics) = (FixedOffset::utc(), Diagnostics::default());
    let mut session = FakeSession::default();
    let mut shown_calls = Vec::new();
    for call in calls {
        let context = FunctionContext {
            sql_mode: SqlMode::DEFAULT,
            time_zone: &zone,
            now_micros: 0,
            now: DateTime::default(),
            div_precision_increment: 4,
            max_allowed_packet: 1 << 26,
            diagnostics: &mut diagnostics,
            session: &mut session,
        };
        let arguments = call.map(Value::Int);
        let statements = &mut Echo::default();
        let call = ProgramCall { arguments: &arguments, context, statements };
        shown_calls.push(match compiled.invoke(call) {
            Ok(outcome) => {
                let returned = outcome.returned.map(|typed| typed.value);
                let out: Vec<_> = outcome.out.iter().map(|(_, typed)| &typed.value).collect();
                format!("{returned:?} {out:?}")
            }
            Err(error) => shown(Err(error)),
        });
    }
    shown_calls.join("; ")
}

#[test]
fn programs_have_parameters_and_libraries() {
    let pool = pool(10_000);
    let square = "export function square(x) { return x * x }";
    for (source, library, expected) in [
        ("return a + b", None, "Some(Int(3)) [Int(2)]; Some(Int(7)) [Int(4)]"),
        (
            "b += a; if (a == 1) return; return b",
            None,
            "Some(Null) [Int(3)]; Some(Int(7)) [Int(7)]",
        ),
        ("return lib.square(b)", Some(square), "Some(Int(4)) [Int(2)]; Some(Int(16)) [Int(4)]"),
        ("return db.query('x', a)[0].c0 + 1", None, "Some(Int(2)) [Int(2)]; Some(Int(4)) [Int(4)]"),
        (
            "let x = 1;\nreturn x + nothing",
            None,
            "error 6000: JavaScript> ReferenceError: nothing is not defined (line 2, column 12); \
             error 6000: JavaScript> ReferenceError: nothing is not defined (line 2, column 12)",
        ),
        (
            "return nothing",
            None,
            "error 6000: JavaScript> ReferenceError: nothing is not defined (line 1, column 8); \
             error 6000: JavaScript> ReferenceError: nothing is not defined (line 1, column 8)",
        ),
    ] {
        assert_eq!(program(&pool, source, library, &[[1, 2], [3, 4]]), expected, "{source}");
    }
    let wrong = program(&pool, "return ]", None, &[]);
    assert!(wrong.starts_with("error 6000: JavaScript> SyntaxError: "), "{wrong}");
    let wrong = program(&pool, "return 1", Some("export function ("), &[[1, 1]]);
    assert!(wrong.starts_with("error 6000: JavaScript> SyntaxError: "), "{wrong}");
    assert_eq!(pool.counts().in_use, 0);
}
