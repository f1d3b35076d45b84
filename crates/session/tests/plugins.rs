//! Plugins that come and go while statements run.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

#[expect(dead_code, reason = "other tests use the rest")]
mod support;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Barrier, Mutex};
use std::time::{Duration, Instant};

use engine_memory::MemoryEngine;
use errors::{Result, bail};
use plugin_api::kit::{aggregate_made, scalar};
use plugin_api::variable::{Definition, uint};
use plugin_api::{
    Accumulator, ArgInfo, Arity, BackgroundJob, BindContext, BoundAggregate, BoundFunction,
    Coercion, FunctionContext, GlobalValue, Module, Plugin, PluginInfo, PluginLoader, Rebinding,
    Registrar, RunningJob, SessionFactory,
};
use session::{PluginChoice, PluginHost, Wanted};
use support::Harness;
use types::{DataType, Value};

static ROOM: Definition = Definition::both("guest_room", uint(1, 100), "7", "Guests at a time");

/// Lets a test look into a running call of `MEET()`.
static MEETING: Mutex<Option<Arc<Barrier>>> = Mutex::new(None);

/// Off unless asked for.
struct Guest {
    room: GlobalValue,
}

fn bind_seven(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::bigint(), Vec::new(), |_, _| Ok(Value::Int(7))))
}

/// `MEET()`: waits for the test twice.
fn bind_meet(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::bigint(), Vec::new(), |_, _| {
        let barrier = MEETING.lock().expect("no panic").clone().expect("a test");
        barrier.wait();
        barrier.wait();
        Ok(Value::Int(8))
    }))
}

/// `PRODUCT(n)`: an aggregate that the grammar does not know.
struct Product(i64);

impl Accumulator for Product {
    fn update(&mut self, _: &mut FunctionContext<'_>, args: &[Value]) -> Result<()> {
        let Value::Int(number) = args[0] else { bail!(WRONG_ARGUMENTS, "product") };
        self.0 *= number;
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        Ok(Value::Int(self.0))
    }
    fn reset(&mut self) {
        self.0 = 1;
    }
}

fn bind_product(_: &BindContext, _: &[ArgInfo]) -> Result<BoundAggregate> {
    Ok(BoundAggregate {
        ty: DataType::bigint(),
        coercions: vec![Coercion::Integer],
        skip_nulls: true,
        accumulator: Arc::new(|| Box::new(Product(1))),
    })
}

struct Nap;

struct Napping;

impl BackgroundJob for Nap {
    fn name(&self) -> &'static str {
        "nap"
    }
    fn start(&self, _: Arc<dyn SessionFactory>) -> Result<Box<dyn RunningJob>> {
        Ok(Box::new(Napping))
    }
}

impl RunningJob for Napping {
    fn stop(self: Box<Self>) {}
}

impl Plugin for Guest {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("good_guest", "Comes and goes.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.function(scalar("GREET", Arity::exactly(0), "GREET()", bind_seven).stable());
        registrar.function(scalar("POLITE", Arity::exactly(1), "POLITE(n)", bind_seven));
        registrar.function(scalar("MEET", Arity::exactly(0), "MEET()", bind_meet).volatile());
        let product = Arc::new(bind_product);
        registrar.aggregate(aggregate_made("PRODUCT", Arity::exactly(1), "PRODUCT(n)", product));
        registrar.variable(&ROOM, &self.room);
        let room = self.room.clone();
        registrar.status("Guest_rooms", move || room.number().to_string());
        registrar.loader(Arc::new(Letters));
    }
}

/// Has something to run.
struct Sleeper;

impl Plugin for Sleeper {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("sleeper", "Runs a job.").on_request()
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.job(Arc::new(Nap));
    }
}

/// Reads files whose text is `letter`.
struct Letters;

struct Letter(String);

impl PluginLoader for Letters {
    fn suffix(&self) -> &'static str {
        "letter"
    }
    fn load(&self, name: &str, contents: &[u8]) -> Result<Box<dyn Plugin>> {
        if contents != b"letter" {
            bail!(CANT_FIND_DL_ENTRY, name);
        }
        Ok(Box::new(Letter(name.to_owned())))
    }
}

impl Plugin for Letter {
    fn info(&self) -> PluginInfo {
        let info = PluginInfo::new("", "From a file.").on_request();
        PluginInfo { name: self.0.clone().into(), ..info }
    }

    fn register(&self, registrar: &mut Registrar<'_>) {
        registrar.function(scalar("READ_LETTER", Arity::exactly(0), "", bind_seven));
    }
}

fn plugins() -> Vec<Box<dyn Plugin>> {
    vec![Box::new(Guest { room: GlobalValue::default() }), Box::new(Sleeper)]
}

fn harness() -> Harness {
    Harness::with(plugins())
}

const INSTALL: &str = "INSTALL PLUGIN good_guest";
const UNINSTALL: &str = "UNINSTALL PLUGIN good_guest";

#[test]
fn a_function_comes_and_goes_with_its_plugin() {
    let harness = harness();
    let (mut one, mut two) = (harness.root(), harness.root());
    one.setup("CREATE TABLE a (n INT PRIMARY KEY)\nINSERT INTO a VALUES (1)");
    one.setup("CREATE PROCEDURE p() BEGIN DECLARE x INT; SET x = GREET(); SELECT x + GREET(); END");
    let uses = ["SELECT GREET()", "SELECT n + GREET() FROM a", "CALL p()"];
    for _ in 0..2 {
        uses.iter().for_each(|sql| two.refuse(&[(sql, 1305)]));
        one.check(&[(INSTALL, "ok 0")]);
        one.refuse(&[(INSTALL, 1125)]);
        for client in [&mut one, &mut two] {
            client.check(&[(uses[0], "7"), (uses[1], "8"), (uses[1], "8")]);
            assert_eq!(client.sink(uses[2]).results[0], "14");
        }
        let prepared = two.session.prepare(b"SELECT GREET() + ?").expect("prepared").statement_id;
        let execute = |client: &mut support::Client| {
            client.execute(prepared, &[Value::Int(1)], false).results.pop().unwrap_or_default()
        };
        assert_eq!((execute(&mut two), execute(&mut two)), ("8".into(), "8".into()));
        one.check(&[("CREATE VIEW v AS SELECT GREET() AS g", "ok 0")]);
        two.check(&[("SELECT g FROM v", "7")]);
        two.setup("PREPARE s FROM 'SELECT GREET()'");
        one.check(&[(UNINSTALL, "ok 0")]);
        one.refuse(&[(UNINSTALL, 1305)]);
        assert!(execute(&mut two).starts_with("error 1305:"));
        two.refuse(&[("EXECUTE s", 1305), ("SELECT g FROM v", 1356)]);
        one.check(&[("DROP VIEW v", "ok 0")]);
    }
}

#[test]
fn an_aggregate_of_a_plugin_is_one_by_its_name() {
    let harness = harness();
    let mut root = harness.root();
    root.setup("CREATE TABLE a (k INT, n INT)");
    root.setup("INSERT INTO a VALUES (1, 2), (1, 3), (2, 5), (2, NULL), (3, NULL)");
    let grouped = "SELECT k, PRODUCT(n) FROM a GROUP BY k ORDER BY k";
    let uses = [
        ("SELECT PRODUCT(n) FROM a", "30"),
        (grouped, "1|6\n2|5\n3|1"),
        ("SELECT k FROM a GROUP BY k HAVING product(n) > 5", "1"),
        ("SELECT k FROM a GROUP BY k ORDER BY PRODUCT(n) DESC LIMIT 1", "1"),
        ("SELECT PRODUCT(n) + COUNT(*) FROM a WHERE k = 9", "1"),
        ("SELECT k, PRODUCT(n) FROM a GROUP BY k WITH ROLLUP", "1|6\n2|5\n3|1\nNULL|30"),
        // Of the outer query, as every aggregate of its columns.
        ("SELECT (SELECT PRODUCT(a.n) FROM (SELECT 1 AS one) AS b) FROM a", "30"),
        ("SELECT n, PRODUCT(n) OVER (ORDER BY n) FROM a WHERE k < 3 AND n > 0", "2|2\n3|6\n5|30"),
        (
            "SELECT PRODUCT(n) OVER (ORDER BY n ROWS 1 PRECEDING) FROM a WHERE n > 0 ORDER BY n",
            "2\n6\n15",
        ),
    ];
    for _ in 0..2 {
        uses.iter().for_each(|(sql, _)| root.refuse(&[(sql, 1305)]));
        root.check(&[(INSTALL, "ok 0")]);
        root.check(&uses);
        root.refuse(&[
            ("SELECT PRODUCT() FROM a", 1582),
            ("SELECT PRODUCT(n, n) FROM a", 1582),
            ("SELECT PRODUCT(n AS m) FROM a", 1583),
            ("SELECT n FROM a WHERE PRODUCT(n) > 1", 1111),
            ("SELECT PRODUCT(PRODUCT(n)) FROM a", 1111),
            ("SELECT n, PRODUCT(n) FROM a", 1140),
            ("SELECT PRODUCT(DISTINCT n) FROM a", 1064),
            ("SELECT POLITE(n) OVER () FROM a", 1064),
        ]);
        root.check(&[("CREATE VIEW v AS SELECT k, PRODUCT(n) AS p FROM a GROUP BY k", "ok 0")]);
        root.check(&[("CREATE VIEW w AS SELECT PRODUCT(n) OVER (ORDER BY n) AS p FROM a", "ok 0")]);
        root.check(&[("SELECT SUM(p) FROM v", "12"), ("SELECT MAX(p) FROM w", "30")]);
        root.setup(&format!("PREPARE s FROM '{grouped}'"));
        root.check(&[("EXECUTE s", uses[1].1), (UNINSTALL, "ok 0")]);
        root.refuse(&[("EXECUTE s", 1305), ("SELECT p FROM v", 1356)]);
        root.check(&[("DROP VIEW v, w", "ok 0")]);
    }
}

#[test]
fn a_running_statement_keeps_the_plugins_that_it_began_with() {
    let harness = harness();
    let (mut one, mut two) = (harness.root(), harness.root());
    one.check(&[(INSTALL, "ok 0")]);
    let barrier = Arc::new(Barrier::new(2));
    *MEETING.lock().expect("no panic") = Some(barrier.clone());
    std::thread::scope(|scope| {
        let running = scope.spawn(move || two.run("SELECT MEET() + GREET()"));
        barrier.wait();
        one.check(&[(UNINSTALL, "ok 0")]);
        one.refuse(&[("SELECT MEET()", 1305)]);
        barrier.wait();
        assert_eq!(running.join().expect("no panic"), "15");
    });
}

#[test]
fn variables_are_there_while_their_plugin_is() {
    let harness = harness();
    let (mut one, mut two) = (harness.root(), harness.root());
    let absent = ["SELECT @@guest_room", "SET guest_room = 1", "SET GLOBAL guest_room = 1"];
    let shown = "SHOW VARIABLES LIKE 'guest%'";
    absent.iter().for_each(|sql| one.refuse(&[(sql, 1193)]));
    one.check(&[(shown, ""), (INSTALL, "ok 0"), (shown, "guest_room|7")]);
    one.check(&[("SET GLOBAL guest_room = 12", "ok 0"), ("SELECT @@GLOBAL.guest_room", "12")]);
    one.check(&[("SHOW STATUS LIKE 'guest%'", "Guest_rooms|12"), ("SET guest_room = 3", "ok 0")]);
    one.check(&[("SELECT @@guest_room", "3"), ("SET guest_room = 1000", "ok 0")]);
    one.check(&[("SELECT @@guest_room", "100"), ("SET guest_room = DEFAULT", "ok 0")]);
    two.check(&[("SELECT @@guest_room", "7")]);
    let listed = "SELECT VARIABLE_VALUE FROM performance_schema.global_variables WHERE \
        VARIABLE_NAME = 'guest_room'";
    one.check(&[(listed, "12"), (UNINSTALL, "ok 0"), (listed, ""), (shown, "")]);
    absent.iter().for_each(|sql| one.refuse(&[(sql, 1193)]));
    // What SET PERSIST kept can be forgotten also while the plugin is away.
    one.setup(INSTALL);
    one.setup(&format!("SET PERSIST guest_room = 12\n{UNINSTALL}"));
    one.check(&[("RESET PERSIST guest_room", "ok 0")]);
    one.refuse(&[("RESET PERSIST guest_room", 3549)]);
    one.check(&[("SHOW STATUS LIKE 'guest%'", ""), (INSTALL, "ok 0"), (listed, "12")]);
}

#[test]
fn tables_of_plugins_agree() {
    let mut root = harness().root();
    let state = |client: &mut support::Client| {
        let queries = [
            "SELECT PLUGIN_STATUS, LOAD_OPTION FROM information_schema.PLUGINS \
             WHERE PLUGIN_NAME = 'good_guest'",
            "SELECT COUNT(*) FROM data_dictionary.MODULES WHERE MODULE_NAME = 'good_guest'",
            "SELECT IS_ACTIVE, PLUGIN_TYPE FROM data_dictionary.PLUGINS WHERE PLUGIN_NAME = 'GREET'",
            "SELECT COUNT(*) FROM mysql.plugin WHERE name = 'good_guest'",
            "SELECT COUNT(*) FROM mysql.component",
        ];
        queries.map(|sql| client.run(sql))
    };
    assert_eq!(state(&mut root), ["DISABLED|OFF", "0", "NO|FUNCTION", "0", "0"]);
    root.check(&[("INSTALL COMPONENT 'file://component_good_guest'", "ok 0")]);
    assert_eq!(state(&mut root), ["ACTIVE|ON", "1", "YES|FUNCTION", "1", "1"]);
    root.check(&[("UNINSTALL COMPONENT 'file://component_good_guest'", "ok 0")]);
    assert_eq!(state(&mut root), ["DISABLED|OFF", "0", "NO|FUNCTION", "0", "0"]);
}

#[test]
fn no_table_depends_on_a_function_that_may_leave() {
    let mut root = harness().root();
    root.setup("INSTALL PLUGIN good_guest");
    root.refuse(&[
        ("CREATE TABLE a (n INT, m INT AS (n + POLITE(n)))", 3102),
        ("CREATE TABLE a (n INT DEFAULT (POLITE(1)))", 3769),
        ("CREATE TABLE a (n INT CHECK (POLITE(n) > 0))", 3815),
        ("CREATE TABLE a (n INT, KEY ((POLITE(n))))", 3758),
    ]);
}

#[test]
fn statements_about_plugins_have_the_errors_of_the_reference() {
    let harness = harness();
    let mut root = harness.root();
    root.refuse(&[
        ("INSTALL PLUGIN nobody", 1524),
        ("INSTALL PLUGIN nobody SONAME 'nobody.so'", 1126),
        ("INSTALL PLUGIN good_guest SONAME '../good_guest.so'", 1124),
        ("INSTALL PLUGIN good_guest SONAME 'memory.so'", 1127),
        ("INSTALL PLUGIN memory SONAME 'memory.so'", 1125),
        ("UNINSTALL PLUGIN nobody", 1305),
        ("UNINSTALL PLUGIN memory", 1619),
        ("INSTALL COMPONENT 'good_guest'", 3527),
        ("INSTALL COMPONENT 'file://component_nobody'", 1126),
        ("UNINSTALL COMPONENT 'file://component_good_guest'", 3537),
        // All or none.
        ("INSTALL COMPONENT 'file://component_good_guest', 'file://component_nobody'", 1126),
        ("SELECT GREET()", 1305),
    ]);
    root.check(&[("INSTALL PLUGIN good_guest SONAME 'good-guest.so'", "ok 0")]);
    root.refuse(&[("INSTALL COMPONENT 'file://good_guest'", 3529)]);
    root.check(&[
        ("INSTALL PLUGIN IF NOT EXISTS good_guest SONAME 'good_guest.so'", "ok 0"),
        ("SHOW WARNINGS", "Note|1125|Function 'good_guest' already exists"),
        (UNINSTALL, "ok 0"),
        ("UNINSTALL PLUGIN IF EXISTS good_guest", "ok 0"),
        ("SHOW WARNINGS", "Note|1305|PLUGIN good_guest does not exist"),
    ]);
    // The open transaction is committed, as by a definition.
    root.setup("CREATE TABLE a (n INT PRIMARY KEY)\nBEGIN\nINSERT INTO a VALUES (1)");
    root.check(&[(INSTALL, "ok 0"), ("ROLLBACK", "ok 0"), ("SELECT COUNT(*) FROM a", "1")]);
}

#[test]
fn the_right_to_change_plugins_is_one_on_tables_of_mysql() {
    let harness = harness();
    let mut root = harness.root();
    root.setup("CREATE USER u");
    let mut user = harness.connect("u").expect("u may connect");
    user.refuse(&[(INSTALL, 1142), (UNINSTALL, 1142)]);
    user.refuse(&[("INSTALL COMPONENT 'file://good_guest'", 1142)]);
    root.setup("GRANT INSERT ON mysql.plugin TO u\nGRANT DELETE ON mysql.component TO u");
    user.check(&[(INSTALL, "ok 0")]);
    user.refuse(&[(UNINSTALL, 1142)]);
    user.check(&[("UNINSTALL COMPONENT 'file://good_guest'", "ok 0")]);
}

#[test]
fn later_starts_load_what_was_installed() {
    let engine = Arc::new(MemoryEngine::new());
    let start = |choices: &[(&str, Wanted)]| {
        let choice = |(name, wanted): &(&str, Wanted)| PluginChoice {
            name: (*name).to_owned(),
            wanted: *wanted,
        };
        Harness::start(engine.clone(), plugins(), choices.iter().map(choice).collect(), "")
    };
    let works = |harness: &Harness| harness.root().code("SELECT GREET()") == 0;
    let first = start(&[]);
    assert!(!works(&first));
    first.root().check(&[(INSTALL, "ok 0")]);
    drop(first);
    assert!(works(&start(&[])));
    assert!(!works(&start(&[("good-guest", Wanted::NotLoaded)])));
    let last = start(&[("good_guest", Wanted::NotLoaded), ("good_guest", Wanted::Loaded)]);
    assert!(works(&last));
    last.root().check(&[(UNINSTALL, "ok 0")]);
    drop(last);
    assert!(!works(&start(&[])));
    assert!(works(&start(&[("GOOD_GUEST", Wanted::Loaded)])));
}

#[test]
fn files_are_loaded_by_the_plugin_that_reads_them() {
    let directory = std::env::temp_dir().join(format!("squall-letters-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a directory");
    std::fs::write(directory.join("a.letter"), "letter").expect("a file");
    std::fs::write(directory.join("b.letter"), "nonsense").expect("a file");
    let engine = Arc::new(MemoryEngine::new());
    let path = directory.display().to_string();
    let start = || Harness::start(engine.clone(), plugins(), Vec::new(), &path);
    let harness = start();
    let mut root = harness.root();
    root.refuse(&[("INSTALL PLUGIN post SONAME 'a.letter'", 1126)]);
    root.check(&[(INSTALL, "ok 0")]);
    root.refuse(&[
        ("INSTALL PLUGIN post SONAME 'c.letter'", 1126),
        ("INSTALL PLUGIN post SONAME 'b.letter'", 1127),
        ("INSTALL PLUGIN post SONAME '../a.letter'", 1124),
    ]);
    root.check(&[
        ("INSTALL PLUGIN post SONAME 'a.letter'", "ok 0"),
        ("SELECT READ_LETTER()", "7"),
        ("SELECT name, dl FROM mysql.plugin WHERE dl > ''", "post|a.letter"),
        (
            "SELECT IS_BUILTIN, MODULE_LIBRARY FROM data_dictionary.MODULES WHERE MODULE_NAME = 'post'",
            "NO|a.letter",
        ),
    ]);
    // It needs the plugin that reads its file.
    root.refuse(&[(UNINSTALL, 1883)]);
    drop((root, harness));
    let mut root = start().root();
    root.check(&[("SELECT READ_LETTER()", "7"), ("UNINSTALL PLUGIN post", "ok 0")]);
    root.refuse(&[("SELECT READ_LETTER()", 1305)]);
    root.check(&[(UNINSTALL, "ok 0"), ("SELECT COUNT(*) FROM mysql.plugin", "0")]);
    std::fs::remove_dir_all(&directory).expect("the directory");
}

/// Counts what it is told.
#[derive(Default)]
struct CountingHost {
    running: AtomicU64,
    refuses: AtomicBool,
}

impl PluginHost for CountingHost {
    fn start(&self, module: &Module) -> Result<()> {
        if self.refuses.load(Ordering::Relaxed) {
            bail!(CANT_OPEN_LIBRARY, "port", 98, "in use");
        }
        self.running.fetch_add(module.slots().jobs().len() as u64, Ordering::Relaxed);
        Ok(())
    }
    fn rebind(&self, _: &[(&'static str, Value)]) -> Result<Box<dyn Rebinding>> {
        bail!(NOT_SUPPORTED_YET, "listeners");
    }
    fn reload_tls(&self, _: bool) -> Result<()> {
        Ok(())
    }
    fn stop(&self, _: &str) {
        self.running.fetch_sub(1, Ordering::Relaxed);
    }
}

#[test]
fn what_a_plugin_runs_starts_and_stops_with_it() {
    let harness = harness();
    let mut root = harness.root();
    // Nobody is there to run it.
    root.refuse(&[("INSTALL PLUGIN sleeper", 1815)]);
    let counting = Arc::new(CountingHost::default());
    let host: Arc<dyn PluginHost> = counting.clone();
    harness.server.run_plugins_by(&host);
    let running = || counting.running.load(Ordering::Relaxed);
    root.check(&[("INSTALL PLUGIN sleeper", "ok 0")]);
    assert_eq!(running(), 1);
    root.check(&[("UNINSTALL PLUGIN sleeper", "ok 0")]);
    assert_eq!(running(), 0);
    counting.refuses.store(true, Ordering::Relaxed);
    root.refuse(&[("INSTALL PLUGIN sleeper", 1126)]);
    root.check(&[("SELECT COUNT(*) FROM mysql.plugin", "0")]);
}

#[test]
fn settings_of_a_component_hold_before_it_starts_and_go_when_it_cannot() {
    let harness = harness();
    let mut root = harness.root();
    let counting = Arc::new(CountingHost::default());
    let host: Arc<dyn PluginHost> = counting.clone();
    harness.server.run_plugins_by(&host);
    counting.refuses.store(true, Ordering::Relaxed);
    let install = "INSTALL COMPONENT 'file://good_guest' SET PERSIST guest_room = 9";
    root.refuse(&[(install, 1126)]);
    counting.refuses.store(false, Ordering::Relaxed);
    root.check(&[(INSTALL, "ok 0"), ("SELECT @@GLOBAL.guest_room", "7"), (UNINSTALL, "ok 0")]);
    root.check(&[(install, "ok 0"), ("SELECT @@GLOBAL.guest_room", "9")]);
    root.check(&[("RESET PERSIST guest_room", "ok 0")]);
}

/// Row D6 of issue 21, for two seconds.
#[test]
fn a_load_sees_only_1305_while_a_plugin_comes_and_goes() {
    const STEP: Duration = Duration::from_millis(100);
    let harness = harness();
    harness.root().setup("CREATE TABLE a (n INT PRIMARY KEY, m INT)\nINSERT INTO a VALUES (1, 0)");
    let until = Instant::now() + Duration::from_secs(2);
    let (good, gone) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for number in 0..4 {
            let (harness, good, gone) = (&harness, &good, &gone);
            scope.spawn(move || {
                let mut client = harness.root();
                client.setup("PREPARE s FROM 'SELECT m FROM a WHERE n = ?'\nSET @n = 1");
                while Instant::now() < until {
                    let uses = match number % 2 {
                        0 => "SELECT GREET() + n FROM a WHERE n = 1",
                        _ => "UPDATE a SET m = GREET() WHERE n = 1",
                    };
                    match client.code(uses) {
                        0 => good.fetch_add(1, Ordering::Relaxed),
                        1305 => gone.fetch_add(1, Ordering::Relaxed),
                        other => panic!("error {other}"),
                    };
                    assert_eq!(client.code("SELECT m FROM a WHERE n = 1"), 0);
                    assert_eq!(client.code("EXECUTE s USING @n"), 0);
                }
            });
        }
        let mut root = harness.root();
        while Instant::now() < until {
            root.check(&[(INSTALL, "ok 0")]);
            std::thread::sleep(STEP / 2);
            root.check(&[(UNINSTALL, "ok 0")]);
            std::thread::sleep(STEP / 2);
        }
    });
    assert!(good.load(Ordering::Relaxed) > 0 && gone.load(Ordering::Relaxed) > 0);
}

#[test]
fn a_statement_reads_the_attributes_that_came_with_it() {
    let harness = Harness::with(vec![Box::new(functions_misc::QueryAttributes)]);
    let mut root = harness.root();
    root.setup("INSTALL COMPONENT 'file://component_query_attributes'");
    let mut ask = |attributes: &[plugin_api::QueryAttribute]| {
        let text = b"SELECT mysql_query_attribute_string('a'), mysql_query_attribute_string('A')";
        let mut sink = support::TextSink::default();
        root.session.query(text, attributes, &mut sink).expect("the sink never fails");
        sink.results.pop().expect("a result")
    };
    let attribute = |name: &str, value| plugin_api::QueryAttribute { name: name.to_owned(), value };
    assert_eq!(ask(&[]), "NULL|NULL");
    let both = [attribute("b", types::Value::Int(1)), attribute("a", types::Value::text("x"))];
    assert_eq!(ask(&both), "x|NULL");
    assert_eq!(ask(&[attribute("a", types::Value::Int(-7))]), "-7|NULL");
    assert_eq!(ask(&[]), "NULL|NULL");
}
