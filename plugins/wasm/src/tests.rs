//! Routines in WebAssembly: values in and out, and modules that want to harm.

use errors::{Diagnostics, ErrorCode, Result, bail};
use plugin_api::test_support::FakeSession;
use plugin_api::{
    Accumulator, ArgInfo, BindContext, BoundAggregate, FunctionContext, Module, ParameterMode,
    PluginLoader, ProgramCall, ProgramLanguage, ProgramOutcome, ProgramParameter, ProgramText,
    Registry, SessionHandle, StatementResult, Statements,
};
use types::{CollationId, DataType, DateTime, FixedOffset, SqlMode, TypeKind, Value};
use wasmi::Val;

use crate::code::Code;
use crate::failure::Failure;
use crate::guest::Budget;
use crate::limits::Limits;
use crate::loader::WasmLoader;
use crate::program::WasmLanguage;

struct NoStatements;

impl Statements for NoStatements {
    fn run(&mut self, _: &str, _: &[Value]) -> Result<StatementResult> {
        bail!(NOT_ALLOWED_COMMAND)
    }
    fn open_session(&mut self) -> Result<Box<dyn SessionHandle>> {
        bail!(NOT_ALLOWED_COMMAND)
    }
    fn require_privilege(&self, _: &str) -> Result<()> {
        bail!(NOT_ALLOWED_COMMAND)
    }
}

fn int() -> DataType {
    DataType::new(TypeKind::Int, 11, 0)
}

fn big() -> DataType {
    DataType::new(TypeKind::BigInt, 20, 0)
}

fn double() -> DataType {
    DataType::new(TypeKind::Double, 22, types::NOT_FIXED_DECIMALS)
}

fn text() -> DataType {
    DataType::varchar(100, CollationId::UTF8MB4_0900_AI_CI)
}

fn limits() -> Limits {
    Limits::of(5_000_000, 4 << 20, 200, "")
}

/// A routine with its parameters; of a procedure no `returns`.
struct Routine<'a> {
    source: &'a str,
    parameters: &'a [(ParameterMode, DataType)],
    returns: Option<DataType>,
    limits: Limits,
}

/// A function.
fn function<'a>(
    source: &'a str,
    parameters: &'a [(ParameterMode, DataType)],
    returns: DataType,
) -> Routine<'a> {
    Routine { source, parameters, returns: Some(returns), limits: limits() }
}

impl Routine<'_> {
    /// Compiles it and calls it once for each row of arguments; the last outcome, and the notes.
    fn run(&self, rows: &[&[Value]]) -> Result<(ProgramOutcome, Vec<String>)> {
        let parameter = |(mode, ty)| ProgramParameter { name: "a", mode, ty };
        let given = self.parameters.iter().map(|(mode, ty)| (*mode, ty));
        let compiled = WasmLanguage::new(self.limits.clone()).compile(&ProgramText {
            schema: "test",
            name: "f",
            parameters: given.map(parameter).collect(),
            returns: self.returns.as_ref(),
            source: self.source,
            libraries: Vec::new(),
        })?;
        let mut diagnostics = Diagnostics::new(100);
        let mut session = FakeSession::default();
        let zone = FixedOffset::utc();
        let mut outcome = ProgramOutcome::default();
        for arguments in rows {
            let context = FunctionContext {
                sql_mode: SqlMode::default(),
                time_zone: &zone,
                now_micros: 0,
                now: DateTime::default(),
                div_precision_increment: 4,
                max_allowed_packet: 1 << 20,
                diagnostics: &mut diagnostics,
                session: &mut session,
            };
            let statements = &mut NoStatements;
            outcome = compiled.invoke(ProgramCall { arguments, context, statements })?;
        }
        let notes = diagnostics.conditions().iter().map(|one| one.message.to_string());
        Ok((outcome, notes.collect()))
    }

    fn value(&self, arguments: &[Value]) -> Value {
        let (outcome, _) = self.run(&[arguments]).expect("it runs");
        outcome.returned.expect("a function returns a value").value
    }

    fn error(&self, arguments: &[Value]) -> String {
        let error = self.run(&[arguments]).expect_err("it fails");
        let expected = [ErrorCode::UDF_ERROR, ErrorCode::CANT_INITIALIZE_UDF];
        assert!(expected.contains(&error.code()), "{error}");
        error.message().to_owned()
    }
}

const IN: ParameterMode = ParameterMode::In;

/// Memory from a pointer that only grows, and a function that returns its argument in upper case.
const UPPER: &str = r#"(module
    (memory (export "memory") 1)
    (global $next (mut i32) (i32.const 1024))
    (func (export "squall_abi_version") (result i32) (i32.const 1))
    (func $alloc (export "squall_alloc") (param $length i32) (result i32)
        (global.get $next)
        (global.set $next (i32.add (global.get $next) (local.get $length))))
    (func (export "squall_free") (param i32 i32) (global.set $next (i32.const 1024)))
    (func (export "upper") (param $at i32) (param $length i32) (result i64)
        (local $index i32) (local $byte i32)
        (loop $next
            (if (i32.lt_u (local.get $index) (local.get $length))
                (then
                    (local.set $byte
                        (i32.load8_u (i32.add (local.get $at) (local.get $index))))
                    (if (i32.and (i32.ge_u (local.get $byte) (i32.const 97))
                                 (i32.le_u (local.get $byte) (i32.const 122)))
                        (then (i32.store8 (i32.add (local.get $at) (local.get $index))
                                          (i32.sub (local.get $byte) (i32.const 32)))))
                    (local.set $index (i32.add (local.get $index) (i32.const 1)))
                    (br $next))))
        (i64.or (i64.shl (i64.extend_i32_u (local.get $at)) (i64.const 32))
                (i64.extend_i32_u (local.get $length)))))"#;

#[test]
fn numbers_go_straight_in_and_out() {
    let add = r#"(module (func (export "add") (param i64 i32) (result i64)
        (i64.add (local.get 0) (i64.extend_i32_s (local.get 1)))))"#;
    let parameters = [(IN, big()), (IN, int())];
    let routine = function(add, &parameters, big());
    assert_eq!(routine.value(&[Value::Int(40), Value::Int(-2)]), Value::Int(38));
    assert_eq!(routine.value(&[Value::Int(40), Value::Null]), Value::Null);
    assert!(routine.error(&[Value::Int(40), Value::Int(1 << 40)]).contains("does not fit"));
    let unsigned = DataType { unsigned: true, ..big() };
    let same = r#"(module (func (export "f") (param i64) (result i64) (local.get 0)))"#;
    let parameters = [(IN, unsigned.clone())];
    let routine = function(same, &parameters, unsigned);
    assert_eq!(routine.value(&[Value::UInt(u64::MAX)]), Value::UInt(u64::MAX));
    let half = r#"(module (func (export "f") (param f64) (result f64)
        (f64.div (local.get 0) (f64.const 2))))"#;
    let parameters = [(IN, double())];
    let routine = function(half, &parameters, double());
    assert_eq!(routine.value(&[Value::Double(3.0)]), Value::Double(1.5));
    let parameters = [(IN, int())];
    assert_eq!(function(half, &parameters, double()).value(&[Value::Int(5)]), Value::Double(2.5));
    let infinite = r#"(module (func (export "f") (result f64) (f64.const inf)))"#;
    assert!(function(infinite, &[], double()).error(&[]).contains("finite"));
}

#[test]
fn texts_go_through_the_memory_of_the_module() {
    let parameters = [(IN, text())];
    let routine = function(UPPER, &parameters, text());
    assert_eq!(routine.value(&[Value::text("héllo z{")]), Value::text("HéLLO Z{"));
    assert_eq!(routine.value(&[Value::text("")]), Value::text(""));
    assert_eq!(routine.value(&[Value::Null]), Value::Null);
    // The memory is given back after each call: a thousand of them need no more than one.
    let long = Value::text(&"x".repeat(60_000));
    let row: &[Value] = std::slice::from_ref(&long);
    let (outcome, _) = routine.run(&vec![row; 20]).expect("all run");
    let expected = Value::text(&"X".repeat(60_000));
    assert_eq!(outcome.returned.expect("a value").value, expected);
    // A decimal keeps its digits as a text.
    let decimal = DataType::new(TypeKind::Decimal, 30, 2);
    let parameters = [(IN, decimal.clone())];
    let value =
        Value::Decimal(types::Decimal::parse(b"12345678901234567890.12").expect("a decimal"));
    let text = function(UPPER, &parameters, decimal).value(&[value]);
    assert_eq!(text, Value::text("12345678901234567890.12"));
}

#[test]
fn nulls_are_bits_for_a_module_that_takes_them() {
    let count = r#"(module
        (func (export "squall_takes_nulls"))
        (func (export "f") (param i64 i64 f64) (result i64) (i64.popcnt (local.get 0))))"#;
    let parameters = [(IN, big()), (IN, double())];
    let routine = function(count, &parameters, big());
    assert_eq!(routine.value(&[Value::Null, Value::Null]), Value::Int(2));
    assert_eq!(routine.value(&[Value::Int(1), Value::Null]), Value::Int(1));
    let null = r#"(module
        (func (export "squall_was_null") (result i32) (i32.const 1))
        (func (export "f") (result i64) (i64.const 5)))"#;
    assert_eq!(function(null, &[], big()).value(&[]), Value::Null);
    let null = r#"(module (memory (export "memory") 1)
        (func (export "f") (result i64) (i64.const -1)))"#;
    assert_eq!(function(null, &[], text()).value(&[]), Value::Null);
}

#[test]
fn a_procedure_returns_its_out_parameters() {
    let source = r#"(module (func (export "f") (param i64 i64) (result i64 f64)
        (i64.mul (local.get 0) (local.get 1)) (f64.const 0.5)))"#;
    let parameters = [(IN, big()), (ParameterMode::InOut, big()), (ParameterMode::Out, double())];
    let routine = Routine { source, parameters: &parameters, returns: None, limits: limits() };
    let (outcome, _) =
        routine.run(&[&[Value::Int(3), Value::Int(4), Value::Null]]).expect("it runs");
    let out: Vec<_> = outcome.out.iter().map(|(slot, typed)| (*slot, &typed.value)).collect();
    assert_eq!(out, [(1, &Value::Int(12)), (2, &Value::Double(0.5))]);
    assert!(outcome.returned.is_none());
}

#[test]
fn a_signature_that_does_not_match_is_refused_by_create() {
    let two = r#"(module (func (export "a") (result i32) (i32.const 1))
                         (func (export "b") (result i32) (i32.const 1)))"#;
    assert!(function(two, &[], int()).error(&[]).contains("several functions"));
    assert!(function("(module)", &[], int()).error(&[]).contains("exports no function"));
    let one = r#"(module (func (export "f") (param i32) (result i32) (local.get 0)))"#;
    assert!(function(one, &[], int()).error(&[]).contains("other parameters"));
    let parameters = [(IN, text())];
    assert!(function(one, &parameters, int()).error(&[]).contains("parameter 1 has no form"));
    let parameters = [(IN, int())];
    assert!(function(one, &parameters, text()).error(&[]).contains("another type"));
    let newer = r#"(module (func (export "squall_abi_version") (result i32) (i32.const 2))
        (func (export "f") (result i32) (i32.const 1)))"#;
    assert!(function(newer, &[], int()).error(&[]).contains("version 2"));
    let parameters = [(IN, text())];
    let no_alloc = r#"(module (func (export "f") (param i32 i32) (result i64) (i64.const 0)))"#;
    let routine = function(no_alloc, &parameters, text());
    assert!(routine.error(&[Value::text("a")]).contains("squall_alloc"));
}

#[test]
fn a_module_imports_only_what_is_granted() {
    let source = r#"(module (import "squall" "log" (func $log (param i32 i32)))
        (memory (export "memory") 1) (data (i32.const 8) "hello")
        (func (export "f") (result i32)
            (call $log (i32.const 8) (i32.const 5))
            (call $log (i32.const 8) (i32.const 5)) (i32.const 1)))"#;
    let routine = function(source, &[], int());
    assert!(routine.error(&[]).contains("squall.log"), "{}", routine.error(&[]));
    let granted = Routine { limits: Limits::of(1 << 20, 1 << 20, 100, "log"), ..routine };
    let (outcome, notes) = granted.run(&[&[]]).expect("it runs");
    assert_eq!(outcome.returned.expect("a value").value, Value::Int(1));
    assert_eq!(notes, ["hello", "hello"]);
    let outside = source.replace(
        "(call $log (i32.const 8) (i32.const 5)) (i32.const 1)",
        "(call $log (i32.const -1) (i32.const 5)) (i32.const 1)",
    );
    let outside = Routine { source: &outside, ..granted };
    assert!(outside.error(&[]).contains("outside of the memory"));
    let wasi = r#"(module (import "wasi_snapshot_preview1" "fd_write"
        (func (param i32 i32 i32 i32) (result i32))))"#;
    assert!(function(wasi, &[], int()).error(&[]).contains("fd_write"));
}

#[test]
fn an_endless_loop_ends_with_its_fuel() {
    let source = r#"(module (func (export "f") (result i32) (loop (br 0)) (i32.const 1)))"#;
    assert!(function(source, &[], int()).error(&[]).contains("wasm_fuel"));
    // Also in a start function, which CREATE runs.
    let start = r#"(module (func $s (loop (br 0))) (start $s)
        (func (export "f") (result i32) (i32.const 1)))"#;
    assert!(function(start, &[], int()).error(&[]).contains("fuel"));
    // And in the functions of the interface.
    let version = r#"(module (func (export "squall_abi_version") (result i32) (loop (br 0)) (i32.const 1))
        (func (export "f") (result i32) (i32.const 1)))"#;
    assert!(function(version, &[], int()).error(&[]).contains("fuel"));
    let alloc = UPPER.replace("(global.get $next)\n", "(loop (br 0)) (global.get $next)\n");
    let parameters = [(IN, text())];
    assert!(function(&alloc, &parameters, text()).error(&[Value::text("a")]).contains("fuel"));
}

#[test]
fn a_call_stops_between_slices_when_its_statement_is_cancelled() {
    let source = r#"(module (func (export "f") (result i32) (loop (br 0)) (i32.const 1)))"#;
    let code = Code::new(source.as_bytes(), &limits()).expect("a module");
    let mut guest = code.take().expect("an instance");
    let mut checks = 0;
    let mut check = || {
        checks += 1;
        if checks == 3 { bail!(QUERY_INTERRUPTED) } else { Ok(()) }
    };
    let mut budget = Budget { fuel: u64::MAX >> 1, check: &mut check };
    let function = guest.function("f").expect("exported");
    let failure = guest.call(function, &[], &mut [Val::I32(0)], &mut budget).expect_err("killed");
    assert!(
        matches!(&failure, Failure::Server(error) if error.code() == ErrorCode::QUERY_INTERRUPTED)
    );
    assert_eq!(checks, 3);
}

#[test]
fn memory_and_tables_have_limits() {
    let bomb = r#"(module (memory (export "memory") 1)
        (func (export "f") (result i32)
            (loop (br_if 0 (i32.ne (memory.grow (i32.const 16)) (i32.const -1))))
            (memory.size)))"#;
    // 4 MiB are 64 pages.
    assert_eq!(function(bomb, &[], int()).value(&[]), Value::Int(49));
    let large = r#"(module (memory 65536) (func (export "f") (result i32) (i32.const 1)))"#;
    assert!(!function(large, &[], int()).error(&[]).is_empty());
    let table =
        r#"(module (table 10000000 funcref) (func (export "f") (result i32) (i32.const 1)))"#;
    assert!(!function(table, &[], int()).error(&[]).is_empty());
    let tables = format!(
        r#"(module {} (func (export "f") (result i32) (i32.const 1)))"#,
        "(table 100000 funcref)".repeat(50)
    );
    assert!(!function(&tables, &[], int()).error(&[]).is_empty());
    let grow = r#"(module (table $t 1 funcref) (func (export "f") (result i32)
        (table.grow $t (ref.null func) (i32.const 2000000000))))"#;
    assert_eq!(function(grow, &[], int()).value(&[]), Value::Int(-1));
}

#[test]
fn deep_recursion_is_a_trap() {
    let source = r#"(module (func $f (export "f") (param i32) (result i32)
        (i32.add (i32.const 1) (call $f (local.get 0)))))"#;
    let parameters = [(IN, int())];
    assert!(function(source, &parameters, int()).error(&[Value::Int(1)]).contains("stack"));
    // A text form that nests deeply is refused by its parser.
    let deep = format!("(module {}{})", "(func (block ".repeat(100_000), "))".repeat(100_000));
    assert!(!function(&deep, &[], int()).error(&[]).is_empty());
}

#[test]
fn pointers_from_the_module_are_checked() {
    let returning = |buffer: &str| {
        format!(
            r#"(module (memory (export "memory") 1)
            (func (export "f") (result i64) (i64.const {buffer})))"#
        )
    };
    for (buffer, expected) in [
        // One byte at the end of the page is there, the next is not.
        ("0x0000FFFF_00000002", "outside"),
        ("0xFFFFFFFF_00000001", "outside"),
        ("0xFFFFFFF0_000FFFFF", "outside"),
        ("0x00000000_7FFFFFFF", "max_allowed_packet"),
        ("0x00000000_FFFFFFFE", "max_allowed_packet"),
    ] {
        let source = returning(buffer);
        let message = function(&source, &[], text()).error(&[]);
        assert!(message.contains(expected), "{buffer}: {message}");
    }
    let source = returning("0x0000FFFF_00000001");
    assert_eq!(function(&source, &[], text()).value(&[]), Value::text("\0"));
    for pointer in ["-1", "65535", "2147483647"] {
        let alloc = UPPER.replace(
            "(global.get $next)\n",
            &format!("(drop (global.get $next)) (i32.const {pointer})\n"),
        );
        let parameters = [(IN, text())];
        let message = function(&alloc, &parameters, text()).error(&[Value::text("abc")]);
        assert!(message.contains("squall_alloc returned memory"), "{pointer}: {message}");
    }
    let invalid = r#"(module (memory (export "memory") 1) (data (i32.const 0) "\ff\fe")
        (func (export "f") (result i64) (i64.const 2)))"#;
    assert!(function(invalid, &[], text()).error(&[]).contains("UTF-8"));
    let no_memory = r#"(module (func (export "f") (result i64) (i64.const 2)))"#;
    assert!(function(no_memory, &[], text()).error(&[]).contains("memory"));
}

#[test]
fn an_instance_whose_call_failed_is_not_used_again() {
    let source = r#"(module (global $n (mut i32) (i32.const 0))
        (func (export "f") (param i32) (result i32)
            (global.set $n (i32.add (global.get $n) (i32.const 1)))
            (if (local.get 0) (then unreachable))
            (global.get $n)))"#;
    let parameters = [(IN, int())];
    let routine = function(source, &parameters, int());
    let (no, yes): (&[Value], &[Value]) = (&[Value::Int(0)], &[Value::Int(1)]);
    let value = |rows: &[&[Value]]| {
        routine.run(rows).map(|(outcome, _)| outcome.returned.expect("a value").value)
    };
    assert_eq!(value(&[no, no, no]).expect("it runs"), Value::Int(3));
    assert!(value(&[no, yes]).is_err());
    let code = Code::new(source.as_bytes(), &limits()).expect("a module");
    drop(code.take().expect("the first instance"));
    let mut guest = code.take().expect("another");
    let mut check = || Ok(());
    let mut budget = Budget { fuel: 1 << 20, check: &mut check };
    let (function, mut outputs) = (guest.function("f").expect("exported"), [Val::I32(0)]);
    guest.call(function, &[Val::I32(0)], &mut outputs, &mut budget).expect("it runs");
    assert!(matches!(outputs[0], Val::I32(1)), "a fresh one");
}

/// A generator of numbers: every run mutates alike.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below as u64) as usize
    }
}

/// Whatever bytes a module has, it is refused, fails or returns: it never panics, hangs or takes more than its limits.
#[test]
fn mutated_modules_do_no_harm() {
    const SEED: u64 = 0x5EED_0021;
    let module = crate::source::module_bytes(UPPER).expect("a text");
    let module = wat::parse_bytes(&module).expect("a module").into_owned();
    let mut numbers = Numbers(SEED);
    let parameters = [(IN, text())];
    let (mut refused, mut ran) = (0, 0);
    for _ in 0..4000 {
        let mut mutated = module.clone();
        for _ in 0..1 + numbers.next(4) {
            let at = 8 + numbers.next(mutated.len() - 8);
            match numbers.next(4) {
                0 => mutated[at] ^= 1 << numbers.next(8),
                1 => mutated[at] = numbers.next(256) as u8,
                2 => drop(mutated.remove(at)),
                _ => mutated.insert(at, numbers.next(256) as u8),
            }
        }
        let digits: String = mutated.iter().map(|byte| format!("{byte:02x}")).collect();
        let limits = Limits::of(100_000, 1 << 20, 50, "");
        let routine = Routine { limits, ..function(&digits, &parameters, text()) };
        match routine.run(&[&[Value::text("abc")]]) {
            Ok(_) => ran += 1,
            Err(error) => {
                let expected = [ErrorCode::UDF_ERROR, ErrorCode::CANT_INITIALIZE_UDF];
                assert!(expected.contains(&error.code()), "seed {SEED:x}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 1000 && ran > 100, "seed {SEED:x}: {refused} refused, {ran} ran");
}

/// Built once from `tests/plugins/text-tools.rs`, and not again.
const KEPT: &[u8] = include_bytes!("../../../tests/plugins/text-tools.wasm");

fn loaded(name: &str, contents: &[u8]) -> Result<Module> {
    let plugin = WasmLoader::new(limits()).load(name, contents)?;
    Ok(Module::new(plugin.as_ref(), Some("text-tools.wasm".into())))
}

/// Calls a function of a plugin.
fn call_of(module: &Module, name: &str, args: &[Value]) -> Result<Value> {
    let function = module.slots().function(name).expect("the plugin has it");
    let bind = BindContext {
        sql_mode: SqlMode::default(),
        collation_connection: CollationId::UTF8MB4_0900_AI_CI,
        div_precision_increment: 4,
        group_concat_max_len: 1024,
        max_allowed_packet: 1 << 20,
        history: plugin_api::HistorySettings::default(),
        cascades_fire_triggers: false,
    };
    let info = |_: &Value| ArgInfo { ty: DataType::null(), constant: None, fixed: false };
    let bound = function.bind(&bind, &args.iter().map(info).collect::<Vec<_>>())?;
    let zone = FixedOffset::utc();
    let mut context = FunctionContext {
        sql_mode: SqlMode::default(),
        time_zone: &zone,
        now_micros: 0,
        now: DateTime::default(),
        div_precision_increment: 4,
        max_allowed_packet: 1 << 20,
        diagnostics: &mut Diagnostics::new(100),
        session: &mut FakeSession::default(),
    };
    (bound.kernel)(&mut context, args)
}

#[test]
fn a_plugin_that_was_built_long_ago_works() {
    let module = loaded("text_tools", KEPT).expect("version 1 of the interface stays");
    assert_eq!((&*module.info.name, &*module.info.version), ("text_tools", "0.1.0"));
    assert_eq!((&*module.info.author, &*module.info.licence), ("you", "MIT"));
    let reverse = |text: &str| call_of(&module, "TEXT_TOOLS_REVERSE", &[Value::text(text)]);
    for (text, expected) in [("one two three", "three two one"), ("", ""), ("ü", "ü")] {
        assert_eq!(reverse(text).expect("it runs"), Value::text(expected));
    }
    let add = |a, b| call_of(&module, "TEXT_TOOLS_ADD", &[a, b]).expect("it runs");
    assert_eq!(add(Value::Int(1), Value::Int(2)), Value::Int(3));
    assert_eq!(add(Value::Null, Value::Int(2)), Value::Null);
    // Its memory does not grow with the number of calls.
    for _ in 0..2000 {
        reverse(&"word ".repeat(1000)).expect("it runs");
    }
    // As part of a registry it may not take a name that is in use.
    let registry = Registry::default().with_added(module).expect("added");
    assert!(registry.function("TEXT_TOOLS_ADD").is_some());
    let other = loaded("other", KEPT).expect("another name");
    assert!(registry.with_added(other).is_err());
}

#[test]
fn a_file_that_is_no_plugin_is_refused() {
    let no_description = wat::parse_str(UPPER).expect("a module");
    let missing = r#"(module (memory (export "memory") 1)
        (data (i32.const 0) "function f() int")
        (func (export "squall_describe") (result i64) (i64.const 16)))"#;
    let endless =
        r#"(module (func (export "squall_describe") (result i64) (loop (br 0)) (i64.const 0)))"#;
    let module = |text| wat::parse_str(text).expect("a module");
    let half = r#"(module (memory (export "memory") 1)
        (data (i32.const 0) "aggregate f() int")
        (func (export "f_begin") (result i32) (i32.const 0))
        (func (export "squall_describe") (result i64) (i64.const 17)))"#;
    let end = r#"(func (export "f_end") (param i64)) (func (export "squall_d"#;
    let other_group = half.replace(r#"(func (export "squall_d"#, end);
    for (contents, expected) in [
        (module(half), "does not export f_end"),
        (module(&other_group), "f_end is not a function (i32) -> ()"),
        (b"\x7fELF".to_vec(), "not a WebAssembly module"),
        (UPPER.as_bytes().to_vec(), "not a WebAssembly module"),
        (KEPT[..KEPT.len() / 2].to_vec(), ""),
        (no_description, "squall_describe"),
        (module(missing), "does not export it"),
        (module(endless), "wasm_fuel"),
    ] {
        let error = loaded("x", &contents).expect_err("refused");
        assert_eq!(error.code(), ErrorCode::CANT_INITIALIZE_UDF);
        assert!(error.message().contains(expected), "{error}");
    }
}

/// An aggregate whose groups are cells of memory in a row, ended groups first in a list.
const PRODUCT: &str = r#"(module (memory (export "memory") 1)
    (data (i32.const 0) "aggregate product(int) int")
    (global $next (mut i32) (i32.const 64)) (global $free (mut i32) (i32.const 0))
    (func (export "squall_describe") (result i64) (i64.const 26))
    (func (export "product_begin") (result i32) (local $at i32)
        (if (global.get $free)
            (then (local.set $at (global.get $free))
                (global.set $free (i32.load (local.get $at))))
            (else (local.set $at (global.get $next))
                (global.set $next (i32.add (local.get $at) (i32.const 8)))
                (if (i32.gt_u (global.get $next) (i32.mul (memory.size) (i32.const 65536)))
                    (then (if (i32.eq (memory.grow (i32.const 1)) (i32.const -1))
                        (then unreachable))))))
        (i64.store (local.get $at) (i64.const 1)) (local.get $at))
    (func (export "product_add") (param i32 i64)
        (if (i64.eq (local.get 1) (i64.const 13)) (then (loop (br 0))))
        (i64.store (local.get 0) (i64.mul (i64.load (local.get 0)) (local.get 1))))
    (func (export "product_result") (param i32) (result i64) (i64.load (local.get 0)))
    (func (export "product_end") (param i32)
        (i32.store (local.get 0) (global.get $free)) (global.set $free (local.get 0))))"#;

/// Works with groups of an aggregate of one session.
struct GroupsOf {
    bound: BoundAggregate,
    session: FakeSession,
}

impl GroupsOf {
    fn new(module: &Module, name: &str) -> GroupsOf {
        let function = module.slots().named_aggregate(name).expect("the plugin has it");
        let bind = BindContext {
            sql_mode: SqlMode::default(),
            collation_connection: CollationId::UTF8MB4_0900_AI_CI,
            div_precision_increment: 4,
            group_concat_max_len: 1024,
            max_allowed_packet: 1 << 20,
            history: plugin_api::HistorySettings::default(),
            cascades_fire_triggers: false,
        };
        let arguments = [ArgInfo { ty: big(), constant: None, fixed: false }];
        let bound = function.bind(&bind, &arguments, None).expect("it binds");
        GroupsOf { bound, session: FakeSession::default() }
    }

    fn begin(&self) -> Box<dyn Accumulator> {
        (self.bound.accumulator)()
    }

    fn with<T>(&mut self, work: impl FnOnce(&mut FunctionContext<'_>) -> T) -> T {
        let zone = FixedOffset::utc();
        work(&mut FunctionContext {
            sql_mode: SqlMode::default(),
            time_zone: &zone,
            now_micros: 0,
            now: DateTime::default(),
            div_precision_increment: 4,
            max_allowed_packet: 1 << 20,
            diagnostics: &mut Diagnostics::new(100),
            session: &mut self.session,
        })
    }

    fn add(&mut self, group: &mut dyn Accumulator, number: i64) -> Result<()> {
        self.with(|context| group.update(context, &[Value::Int(number)]))
    }

    fn result(&mut self, group: &mut dyn Accumulator) -> Result<Value> {
        self.with(|context| group.result(context))
    }
}

/// With 1 MiB of memory.
fn product() -> Module {
    let contents = wat::parse_str(PRODUCT).expect("a module");
    let loader = WasmLoader::new(Limits::of(5_000_000, 1 << 20, 200, ""));
    let plugin = loader.load("product", &contents).expect("a plugin");
    Module::new(plugin.as_ref(), Some("product.wasm".into()))
}

#[test]
fn groups_of_an_aggregate_do_not_meet() {
    let module = product();
    let mut groups = GroupsOf::new(&module, "PRODUCT");
    assert!(groups.bound.skip_nulls);
    assert_eq!(groups.bound.ty.kind, TypeKind::BigInt);
    let (mut a, mut b) = (groups.begin(), groups.begin());
    assert_eq!(groups.result(&mut *b).expect("empty"), Value::Int(1));
    for number in 1..=5 {
        groups.add(&mut *a, number).expect("added");
        groups.add(&mut *b, 2).expect("added");
        let expected = Value::Int(1 << number);
        assert_eq!(groups.result(&mut *b).expect("so far"), expected);
    }
    assert_eq!(groups.result(&mut *a).expect("so far"), Value::Int(120));
    a.reset();
    assert_eq!(groups.result(&mut *a).expect("empty again"), Value::Int(1));
    // Another call has an instance of its own.
    let mut other = GroupsOf::new(&module, "PRODUCT");
    let mut c = other.begin();
    other.add(&mut *c, 7).expect("added");
    assert_eq!(groups.result(&mut *b).expect("so far"), Value::Int(32));
    // Groups that ended leave their memory to others: 1 MiB would not do for these.
    for _ in 0..200_000 {
        let mut group = groups.begin();
        groups.add(&mut *group, 3).expect("added");
    }
}

#[test]
fn an_aggregate_has_the_limits_of_a_function() {
    let module = product();
    let mut groups = GroupsOf::new(&module, "PRODUCT");
    let mut many = Vec::new();
    let error = loop {
        let mut group = groups.begin();
        match groups.add(&mut *group, 3) {
            Ok(()) => many.push(group),
            Err(error) => break error,
        }
    };
    assert_eq!(error.code(), ErrorCode::UDF_ERROR);
    assert!((120_000..140_000).contains(&many.len()), "{} groups in 1 MiB", many.len());
    // The instance is gone with all its groups; the next statement has another.
    let error = groups.add(&mut *many[0], 3).expect_err("its instance is gone");
    assert!(error.message().contains("another group failed"), "{error}");
    let mut next = groups.begin();
    groups.add(&mut *next, 3).expect("another instance");
    drop(many);
    assert_eq!(groups.result(&mut *next).expect("a result"), Value::Int(3));
    let error = groups.add(&mut *next, 13).expect_err("it has no end");
    assert!(error.message().contains("wasm_fuel"), "{error}");
}
