//! Where transactions begin and end, without stored tables.

use std::sync::Arc;

use catalog::{Catalog, EffectivePrivileges, MetadataLocks};
use engine_api::{CancelToken, IsolationLevel};
use errors::ErrorCode;
use plugin_api::{Registry, Traffic};
use syntax::ast::{Completion, SetTransaction, Statement, Xa};
use sys::sync::Mutex;
use types::Value;
use variables::{Globals, SessionValues, Settings};

use crate::scope::{Afterwards, Writable};
use crate::transactions::{TransactionHome, Transactions};
use crate::xa::{XaBranches, XaContext};
use observation::process::{Activity, SessionShared};
use statements::status::SessionCounters;

/// One session's transactions, and the server's state about all transactions.
struct World {
    globals: Globals,
    settings: Settings,
    privileges: EffectivePrivileges,
    transactions: Transactions,
}

impl World {
    fn new() -> World {
        let globals = Globals::new();
        let values = SessionValues::new(&globals);
        let settings = Settings::decode(&globals, &values, &|_| None, &Arc::default());
        let session = Arc::new(SessionShared {
            id: 1,
            opened_micros: 0,
            cancel: CancelToken::new(),
            counters: SessionCounters::default(),
            traffic: Traffic::default(),
            memory: Default::default(),
            group: Default::default(),
            activity: Mutex::new(Activity::default()),
        });
        let locks = Arc::new(MetadataLocks::new());
        let slot = locks.register(1);
        let branches = Arc::new(XaBranches::default());
        let registry = Arc::new(Registry::default());
        let catalog = Catalog::open(Arc::new(engine_memory::MemoryEngine::new()));
        let catalog = Arc::new(catalog.expect("an empty dictionary"));
        let home = TransactionHome {
            registry,
            locks,
            branches,
            session,
            changes: Arc::default(),
            catalog,
        };
        let privileges = EffectivePrivileges::everything();
        World { globals, settings, privileges, transactions: Transactions::new(home, slot) }
    }

    fn xa(&mut self, text: &str) -> Result<(), ErrorCode> {
        let around = XaContext {
            settings: &self.settings,
            writable: Writable {
                globals: &self.globals,
                privileges: &self.privileges,
                is_applier: false,
            },
            tables_locked: false,
        };
        let ran = self.transactions.run_xa(&xa_of(text), around);
        ran.map(|_| ()).map_err(|error| error.code())
    }
}

fn statement(text: &str) -> Statement {
    syntax::parse_one(text, &syntax::ParseOptions::default()).expect(text).0
}

fn xa_of(text: &str) -> Xa {
    match statement(text) {
        Statement::Xa(xa) => xa,
        other => panic!("{other:?}"),
    }
}

fn set_transaction(text: &str) -> SetTransaction {
    match statement(text) {
        Statement::SetTransaction(set) => set,
        other => panic!("{other:?}"),
    }
}

#[test]
fn set_transaction_is_about_the_next_one_only() {
    let mut world = World::new();
    let set = set_transaction("SET TRANSACTION ISOLATION LEVEL SERIALIZABLE, READ ONLY");
    let World { transactions, settings, .. } = &mut world;
    transactions.set_next(&set, settings).expect("no transaction is open");
    transactions.begin_explicit(None, settings);
    let first = transactions.characteristics;
    assert_eq!((first.isolation, first.read_only), (IsolationLevel::Serializable, true));
    let refused = transactions.set_next(&set, settings).expect_err("one is open");
    assert_eq!(refused.code(), ErrorCode::CANT_CHANGE_TX_CHARACTERISTICS);
    transactions.roll_back_explicitly().expect("nothing to undo");
    transactions.begin_explicit(None, settings);
    let second = transactions.characteristics;
    assert_eq!((second.isolation, second.read_only), (settings.isolation, false));
}

#[test]
fn and_chain_begins_another_like_it_and_release_ends_the_connection() {
    let mut world = World::new();
    let World { transactions, settings, .. } = &mut world;
    transactions.begin_explicit(Some(true), settings);
    let before = transactions.characteristics;
    transactions.roll_back_explicitly().expect("nothing to undo");
    assert!(!transactions.is_open(settings));
    let chain = Completion { chain: Some(true), release: None };
    assert_eq!(transactions.complete(chain, before, settings), Afterwards::Stay);
    assert!(transactions.is_open(settings) && transactions.characteristics.read_only);
    transactions.roll_back_explicitly().expect("nothing to undo");
    let release = Completion { chain: None, release: Some(true) };
    assert_eq!(transactions.complete(release, before, settings), Afterwards::Release);
    assert!(!transactions.is_open(settings));
}

#[test]
fn statements_of_a_function_are_parts_of_the_one_that_calls_it() {
    let mut world = World::new();
    let World { transactions, settings, .. } = &mut world;
    assert!(!transactions.is_open(settings));
    transactions.function_depth = 1;
    assert!(transactions.is_open(settings));
    transactions.characteristics.read_only = true;
    transactions.begin_scope(settings);
    assert!(transactions.characteristics.read_only, "the caller's stay in force");
}

#[test]
fn a_branch_follows_its_states() {
    let mut world = World::new();
    world.xa("XA START 'a'").expect("nothing is open");
    assert_eq!(world.xa("XA START 'b'"), Err(ErrorCode::XAER_RMFAIL));
    assert_eq!(world.xa("XA PREPARE 'a'"), Err(ErrorCode::XAER_RMFAIL));
    assert_eq!(world.xa("XA END 'b'"), Err(ErrorCode::XAER_NOTA));
    let commit = statement("COMMIT");
    assert!(world.transactions.check_branch(&commit).is_err());
    world.xa("XA END 'a'").expect("it is active");
    assert_eq!(world.xa("XA COMMIT 'a'"), Err(ErrorCode::XAER_RMFAIL), "it is not prepared");
    world.xa("XA PREPARE 'a'").expect("it is idle");
    assert!(world.transactions.check_branch(&commit).is_ok(), "no session is in it");
    assert_eq!(world.xa("XA START 'a'"), Err(ErrorCode::XAER_DUPID));
    world.xa("XA ROLLBACK 'a'").expect("it is prepared");
    assert_eq!(world.xa("XA ROLLBACK 'a'"), Err(ErrorCode::XAER_NOTA));
}

#[test]
fn a_branch_that_the_engine_rolled_back_allows_only_xa_rollback() {
    let mut world = World::new();
    world.xa("XA START 'a'").expect("nothing is open");
    world.transactions.branch_rolled_back(ErrorCode::XA_RBDEADLOCK);
    assert_eq!(world.xa("XA END 'a'"), Err(ErrorCode::XA_RBDEADLOCK));
    assert_eq!(world.xa("XA PREPARE 'a'"), Err(ErrorCode::XAER_RMFAIL));
    world.xa("XA ROLLBACK 'a'").expect("all that is left");
    world.xa("XA START 'a'").expect("the xid is free");
}

#[test]
fn a_read_only_server_names_its_option() {
    let world = World::new();
    let writable =
        Writable { globals: &world.globals, privileges: &world.privileges, is_applier: false };
    writable.check().expect("it takes writes");
    let known = |name: &str| world.globals.definitions.find(name).expect(name);
    world.globals.set(
        &[(known("read_only"), Value::Int(1))],
        &variables::Provenance::of(variables::Origin::Dynamic),
    );
    writable.check().expect("of administrators");
    let nobody = EffectivePrivileges::default();
    let refused = Writable { privileges: &nobody, ..writable }.check().expect_err("of others");
    assert!(refused.message().contains("--read-only"));
    world.globals.set(
        &[(known("super_read_only"), Value::Int(1))],
        &variables::Provenance::of(variables::Origin::Dynamic),
    );
    assert!(writable.check().expect_err("of nobody").message().contains("--super-read-only"));
    Writable { is_applier: true, ..writable }.check().expect("of a replica");
}
