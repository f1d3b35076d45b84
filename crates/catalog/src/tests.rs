//! Stored form, snapshots and locks.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use engine_api::{CancelToken, ColumnDef, IndexDef, IndexId, KeyPart, TableDef, TableId};
use types::fulltext::WordParser;
use types::geometry::{GeometryKind, SpatialType};
use types::{CollationId, DataType, Fixed, Members, TypeKind, Value};

use crate::*;

pub(crate) fn table(id: u64, schema: &str, name: &str) -> Table {
    let int = DataType::new(TypeKind::Int, 11, 0).with_nullable(false);
    let mut choice = DataType::new(TypeKind::Enum, 1, 0);
    choice.members = Some(Arc::new(Members::new(["a", ""])));
    let column = |name: &str, ty: &DataType, stored, default| Column {
        name: Arc::from(name),
        ty: ty.clone(),
        stored: Some(stored),
        default,
        on_update_now: Some(3),
        auto_increment: stored == 0,
        generated: None,
        invisible: false,
        comment: "c".into(),
        collation_written: stored == 1,
        histogram: None,
        placement: crate::Placement::default(),
        history: crate::ColumnHistory::Kept,
    };
    let default = ColumnDefault::Constant(Value::UInt(2));
    Table {
        id: TableId(id),
        schema: schema.into(),
        name: name.into(),
        engine: "InnoDB".into(),
        temporary: false,
        columns: vec![column("a", &int, 0, ColumnDefault::None), column("b", &choice, 1, default)],
        indexes: vec![Index {
            id: IndexId::CLUSTERED,
            name: "PRIMARY".into(),
            unique: true,
            parts: vec![IndexPart { column: 0, prefix_length: None, descending: true }],
            visible: true,
            for_foreign_key: true,
            method: Some(crate::IndexMethod::BTree),
            without_overlaps: false,
            comment: String::new(),
        }],
        fulltext: Vec::new(),
        foreign_keys: vec![ForeignKey {
            name: "f".into(),
            columns: vec![0],
            referenced_schema: "s".into(),
            referenced_table: "p".into(),
            referenced_columns: vec!["id".into()],
            on_update: ReferenceAction::Cascade,
            on_delete: ReferenceAction::NoAction,
        }],
        checks: vec![Check { name: "k".into(), expression: "(`a` > 0)".into(), enforced: true }],
        collation: CollationId::UTF8MB4_0900_AI_CI,
        comment: String::new(),
        options: vec![("ROW_FORMAT".into(), "DYNAMIC".into())],
        partitioning: None,
        period: None,
        created_micros: 7,
        definition: TableDef {
            id: TableId(id),
            name: format!("{schema}.{name}"),
            columns: vec![
                ColumnDef { name: "a".into(), ty: int, instant_default: None },
                ColumnDef { name: "b".into(), ty: choice, instant_default: Some(Value::UInt(1)) },
            ],
            indexes: vec![IndexDef {
                id: IndexId::CLUSTERED,
                name: "PRIMARY".into(),
                unique: true,
                parts: vec![KeyPart {
                    column: 0,
                    prefix_length: None,
                    descending: true,
                    elements: None,
                }],
            }],
        },
    }
}

#[test]
fn tables_survive_storing() {
    let table = table(1024, "s", "t");
    let bytes = codec::write_table(&table);
    let read = codec::read_table(&bytes).expect("readable");
    assert_eq!(format!("{table:?}"), format!("{read:?}"));
    for cut in 0..bytes.len() {
        // Damage is an error or another object, never a panic.
        let _ = codec::read_table(&bytes[..cut]);
    }
}

#[test]
fn accounts_survive_storing() {
    let mut account = Account {
        name: AccountName::new("u", "%"),
        plugin: "caching_sha2_password".into(),
        authentication_string: vec![1, 2, 255],
        tls: TlsRequirement::Specified {
            subject: "x".into(),
            issuer: "".into(),
            cipher: "".into(),
        },
        limits: [1, 0, 3, 0],
        ..Account::default()
    }
    .with_all_privileges();
    account.schemas.insert("s\\_%".into(), PrivilegeSet::SELECT);
    let mut grant = TableGrant { table: PrivilegeSet::INSERT, ..TableGrant::default() };
    grant.columns.insert("c".into(), PrivilegeSet::SELECT);
    account.tables.insert(("s".into(), "t".into()), grant);
    let role = AccountName::new("r", "%");
    account.roles.push(RoleGrant { role: role.clone(), admin: true });
    account.default_roles.push(role);
    account.password_policy = PasswordPolicy {
        lifetime_days: Some(0),
        history: Some(7),
        reuse_days: None,
        require_current: Some(false),
        failed_logins_max: 2,
        lock_time: LockTime::Unbounded,
    };
    account.restrictions.add("d", PrivilegeSet::INSERT | PrivilegeSet::GRANT_OPTION);
    account.second_secret = vec![0, 7];
    account.earlier_passwords = vec![
        EarlierPassword { since_micros: 9, secret: vec![1] },
        EarlierPassword { since_micros: 8, secret: vec![2] },
    ];
    let read =
        account_codec::read_account(&account_codec::write_account(&account)).expect("readable");
    assert_eq!(account, read);
}

#[test]
fn a_snapshot_finds_children_by_name() {
    let mut snapshot = CatalogSnapshot::default();
    let schema = Edit::CreateSchema {
        name: "s".into(),
        options: SchemaOptions::of_collation(CollationId::BINARY),
    };
    snapshot.apply(&schema).expect("new schema");
    snapshot.apply(&Edit::CreateTable(Arc::new(table(1, "s", "t")))).expect("new table");
    assert_eq!(snapshot.children_of("s", "p").count(), 1);
    let renamed = Arc::new(table(1, "s", "u"));
    snapshot.apply(&Edit::ReplaceTable { old: TableId(1), new: renamed }).expect("rename");
    assert!(snapshot.table("s", "t").is_none() && snapshot.table("s", "u").is_some());
    let again = snapshot.apply(&Edit::CreateTable(Arc::new(table(2, "s", "u"))));
    assert_eq!(again.expect_err("taken").code(), errors::ErrorCode::TABLE_EXISTS_ERROR);
    snapshot.apply(&Edit::DropTable(TableId(1))).expect("drop");
    assert_eq!(snapshot.children_of("s", "p").count(), 0);
}

#[test]
fn logins_match_the_most_specific_host() {
    let mut accounts = Accounts::default();
    for (user, host) in [("u", "%"), ("", "localhost"), ("u", "10.1.%"), ("u", "10.0.0.0/8")] {
        let name = AccountName::new(user, host);
        accounts.put(Account { name, ..Account::default() });
    }
    let found = |user: &str, host: &str| {
        accounts.find_login(user, &[host], |_| true).map(|account| account.name.to_string())
    };
    assert_eq!(found("u", "localhost").as_deref(), Some("@localhost"));
    assert_eq!(found("u", "10.1.2.3").as_deref(), Some("u@10.0.0.0/8"));
    assert_eq!(found("u", "11.1.2.3").as_deref(), Some("u@%"));
    assert_eq!(found("v", "11.1.2.3"), None);
}

#[test]
fn privileges_add_up_over_levels_and_roles() {
    let mut accounts = Accounts::default();
    let role = AccountName::new("r", "%");
    let mut reader = Account { name: role.clone(), is_role: true, ..Account::default() };
    reader.schemas.insert("app\\_%".into(), PrivilegeSet::SELECT);
    accounts.put(reader);
    let user = AccountName::new("u", "%");
    accounts.put(Account { name: user.clone(), ..Account::default() });
    let none = accounts.effective(&user, &[]);
    assert!(!none.allows_table("app_1", "t", PrivilegeSet::SELECT));
    assert!(!none.sees_schema("app_1"));
    let with_role = accounts.effective(&user, &[role]);
    assert!(with_role.allows_table("app_1", "t", PrivilegeSet::SELECT));
    assert!(!with_role.allows_table("appx1", "t", PrivilegeSet::SELECT));
    assert!(with_role.sees_schema("app_1"));
}

/// Longer than any test runs.
const FOREVER: Duration = Duration::from_secs(60);

#[test]
fn ddl_waits_for_users_and_users_for_ddl() {
    let locks = Arc::new(MetadataLocks::new());
    let (one, two) = (locks.register(1), locks.register(2));
    let cancel = CancelToken::new();
    let table = TableId(9);
    let soon = Duration::from_millis(5);
    let read = [(table, Usage::Read)];
    assert!(!locks.use_tables(&one, &read, soon, &cancel).expect("free"));
    let refused = locks.lock(2, &[(Some(table), LockMode::Exclusive)], soon, &cancel);
    assert!(refused.is_err());
    let no_write = locks.lock(2, &[(Some(table), LockMode::NoWrite)], soon, &cancel);
    drop(no_write.expect("readers may stay"));
    one.release_to(0);
    let guard = locks.lock(2, &[(Some(table), LockMode::Exclusive)], soon, &cancel).expect("free");
    assert!(locks.use_tables(&one, &read, soon, &cancel).is_err());
    assert!(!locks.use_tables(&two, &read, soon, &cancel).expect("own lock"));
    drop(guard);
    assert!(!locks.use_tables(&one, &read, soon, &cancel).expect("free again"));
}

#[test]
fn a_transaction_continues_with_its_tables_while_ddl_waits() {
    let locks = Arc::new(MetadataLocks::new());
    let (one, _two) = (locks.register(1), locks.register(2));
    let cancel = CancelToken::new();
    let (table, other) = (TableId(9), TableId(10));
    let soon = Duration::from_millis(5);
    let used = locks.use_tables(&one, &[(table, Usage::Write)], soon, &cancel);
    assert!(!used.expect("free"));
    let waiter = {
        let (locks, cancel) = (locks.clone(), cancel.clone());
        let wanted = [(Some(table), LockMode::Exclusive), (Some(other), LockMode::Exclusive)];
        std::thread::spawn(move || {
            locks.lock(2, &wanted, Duration::from_secs(5), &cancel).map(|_| ())
        })
    };
    // The waiter has announced when a table that was never used is refused: it and this session would wait for each other.
    let refused = loop {
        match locks.use_tables(&one, &[(other, Usage::Read)], soon, &cancel) {
            Ok(_) => one.release_to(1),
            Err(error) => break error,
        }
    };
    assert_eq!(refused.code(), errors::ErrorCode::LOCK_DEADLOCK);
    let again = locks.use_tables(&one, &[(table, Usage::Read)], soon, &cancel);
    assert!(!again.expect("its own table"));
    one.release_to(0);
    waiter.join().expect("no panic").expect("granted");
}

#[test]
fn new_statements_pass_a_change_that_waits_for_a_transaction() {
    let locks = Arc::new(MetadataLocks::new());
    let (long, reader) = (locks.register(1), locks.register(2));
    let cancel = CancelToken::new();
    let (table, soon) = (TableId(9), Duration::from_millis(1));
    let (read, write) = ([(table, Usage::Read)], [(table, Usage::Write)]);
    locks.use_tables(&long, &read, soon, &cancel).expect("free");
    let waiter = {
        let (locks, cancel) = (locks.clone(), cancel.clone());
        let wait = LockWait { timeout: FOREVER, policy: DdlWaitPolicy::SkipAhead };
        std::thread::spawn(move || {
            let wanted = [(Some(table), LockMode::Exclusive)];
            let mut guard = locks.lock(3, &wanted, wait, &cancel)?;
            guard.downgrade();
            guard.upgrade(wait, &cancel).map(|()| guard)
        })
    };
    for _ in 0..200 {
        let waited = locks.use_tables(&reader, &write, soon, &cancel).expect("it passes");
        assert!(!waited);
        reader.release_to(0);
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(!waiter.is_finished());
    long.release_to(0);
    let guard = waiter.join().expect("no panic").expect("granted");
    assert!(locks.use_tables(&reader, &read, soon, &cancel).is_err());
    drop(guard);
    assert!(!locks.use_tables(&reader, &read, soon, &cancel).expect("free again"));
}

#[test]
fn kept_locks_outlive_the_statement_and_a_circle_of_changes_is_found() {
    let locks = Arc::new(MetadataLocks::new());
    let (one, _two) = (locks.register(1), locks.register(2));
    let cancel = CancelToken::new();
    let (first, second) = (TableId(9), TableId(10));
    let exclusive = |table| [(Some(table), LockMode::Exclusive)];
    let soon = Duration::from_millis(5);
    let keep = |owner, table| {
        let guard = locks.lock(owner, &exclusive(table), soon, &cancel).expect("free");
        let kept = locks.keep(owner);
        drop(guard);
        kept
    };
    let (kept_first, kept_second) = (keep(1, first), keep(2, second));
    assert!(locks.use_tables(&one, &[(second, Usage::Read)], soon, &cancel).is_err(), "kept");
    let waiter = {
        let (locks, cancel) = (locks.clone(), cancel.clone());
        std::thread::spawn(move || locks.lock(1, &exclusive(second), FOREVER, &cancel))
    };
    // Once the first one waits, the second one would wait for ever.
    let refused = loop {
        match locks.lock(2, &exclusive(first), soon, &cancel) {
            Err(error) if error.code() == errors::ErrorCode::LOCK_WAIT_TIMEOUT => {}
            other => break other,
        }
    };
    let refused = refused.expect_err("a circle");
    assert_eq!(refused.code(), errors::ErrorCode::LOCK_DEADLOCK);
    drop(kept_second);
    let granted = waiter.join().expect("no panic");
    assert!(granted.is_ok());
    drop((granted, kept_first));
    assert!(locks.keep(1).is_none());
}

#[test]
fn two_users_of_a_table_that_both_want_to_change_it_are_a_circle() {
    let locks = Arc::new(MetadataLocks::new());
    let (one, two) = (locks.register(1), locks.register(2));
    let cancel = CancelToken::new();
    let (table, soon) = (TableId(9), Duration::from_millis(5));
    for slot in [&one, &two] {
        locks.use_tables(slot, &[(table, Usage::Write)], soon, &cancel).expect("free");
    }
    let wanted = [(Some(table), LockMode::Exclusive)];
    let waiter = {
        let (locks, cancel) = (locks.clone(), cancel.clone());
        std::thread::spawn(move || locks.lock(1, &wanted, FOREVER, &cancel).map(drop))
    };
    let refused = loop {
        match locks.lock(2, &wanted, soon, &cancel) {
            Err(error) if error.code() == errors::ErrorCode::LOCK_WAIT_TIMEOUT => {}
            other => break other,
        }
    };
    let refused = refused.expect_err("a circle");
    assert_eq!(refused.code(), errors::ErrorCode::LOCK_DEADLOCK);
    two.release_to(0);
    waiter.join().expect("no panic").expect("granted");
}

#[test]
fn a_change_gets_its_turn_among_short_statements_that_overlap() {
    let locks = Arc::new(MetadataLocks::new());
    let (cancel, table) = (CancelToken::new(), TableId(9));
    let done = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let readers: Vec<_> = (1..5)
        .map(|session| {
            let (locks, cancel, done) = (locks.clone(), cancel.clone(), done.clone());
            std::thread::spawn(move || {
                let slot = locks.register(session);
                while !done.load(std::sync::atomic::Ordering::Relaxed) {
                    let read = [(table, Usage::Read)];
                    locks.use_tables(&slot, &read, FOREVER, &cancel).expect("it ends");
                    std::thread::sleep(Duration::from_millis(3));
                    slot.release_to(0);
                }
            })
        })
        .collect();
    let wait = LockWait { timeout: FOREVER, policy: DdlWaitPolicy::SkipAhead };
    for _ in 0..5 {
        let wanted = [(Some(table), LockMode::Exclusive)];
        drop(locks.lock(9, &wanted, wait, &cancel).expect("granted"));
    }
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    readers.into_iter().for_each(|reader| reader.join().expect("no panic"));
}

#[test]
fn dictionary_entries_have_their_golden_bytes() {
    const TABLE: &str = include_str!("../tests/golden/table.hex");
    const FULLTEXT: &str = include_str!("../tests/golden/table-fulltext.hex");
    const GEOMETRY: &str = include_str!("../tests/golden/table-geometry.hex");
    const ACCOUNT: &str = include_str!("../tests/golden/account.hex");
    let mut with_words = table(1024, "s", "t");
    with_words.fulltext.push(FulltextIndex {
        entries: TableId(1025),
        name: "words".into(),
        columns: vec![1],
        visible: false,
        comment: "of b".into(),
        parser: WordParser::Separated,
    });
    golden::check("table-fulltext.hex", &codec::write_table(&with_words), FULLTEXT);
    let read = codec::read_table(&golden::bytes(FULLTEXT)).expect("readable");
    assert_eq!(format!("{read:?}"), format!("{with_words:?}"));
    let mut with_points = table(1024, "s", "t");
    with_points.columns[1].ty = DataType::geometry();
    with_points.columns[1].ty.spatial = SpatialType { kind: GeometryKind::Point, srid: Some(4326) };
    golden::check("table-geometry.hex", &codec::write_table(&with_points), GEOMETRY);
    let read = codec::read_table(&golden::bytes(GEOMETRY)).expect("readable");
    assert_eq!(format!("{read:?}"), format!("{with_points:?}"));
    const FIXED: &str = include_str!("../tests/golden/table-uuid.hex");
    let mut with_uuids = table(1024, "s", "t");
    with_uuids.columns[1].ty = DataType::fixed(Fixed::Uuid);
    golden::check("table-uuid.hex", &codec::write_table(&with_uuids), FIXED);
    let read = codec::read_table(&golden::bytes(FIXED)).expect("readable");
    assert_eq!(format!("{read:?}"), format!("{with_uuids:?}"));
    // An index over a geometry is a spatial one, which changes the number of the format only.
    const CELLS: &str = include_str!("../tests/golden/table-cells.hex");
    let mut with_cells = with_points.clone();
    with_cells.columns[1].ty.nullable = false;
    let part = IndexPart { column: 1, prefix_length: None, descending: false };
    with_cells.indexes.last_mut().expect("an index").parts = vec![part];
    golden::check("table-cells.hex", &codec::write_table(&with_cells), CELLS);
    let mut read = codec::read_table(&golden::bytes(CELLS)).expect("readable");
    let index = read.indexes.last().expect("an index").clone();
    assert!(read.is_multi_valued(&index) && read.spatial_column(&index) == Some(1));
    read.definition = with_cells.definition.clone();
    assert_eq!(format!("{read:?}"), format!("{with_cells:?}"));
    let stored = table(1024, "s", "t");
    golden::check("table.hex", &codec::write_table(&stored), TABLE);
    let read = codec::read_table(&golden::bytes(TABLE)).expect("readable");
    assert_eq!(format!("{read:?}"), format!("{stored:?}"));
    // Members were written in the engine's columns too. They are in memory once, however they are stored.
    const TWICE: &str = include_str!("../tests/golden/table-members-twice.hex");
    for entry in [TABLE, TWICE] {
        let read = codec::read_table(&golden::bytes(entry)).expect("readable");
        assert_eq!(format!("{read:?}"), format!("{stored:?}"));
        let of_engine = &read.definition.columns[1].ty.members;
        let members = read.columns[1].ty.members.as_ref().expect("an ENUM");
        assert!(of_engine.as_ref().is_some_and(|own| Arc::ptr_eq(own, members)));
    }
    let mut account = Account {
        name: AccountName::new("u", "%"),
        plugin: "caching_sha2_password".into(),
        authentication_string: vec![1, 2, 255],
        limits: [1, 0, 3, 0],
        ..Account::default()
    };
    account.schemas.insert("s".into(), PrivilegeSet::SELECT | PrivilegeSet::INSERT);
    golden::check("account.hex", &account_codec::write_account(&account), ACCOUNT);
    assert_eq!(account_codec::read_account(&golden::bytes(ACCOUNT)).expect("readable"), account);
}

/// The entry, and the table while it is open.
#[test]
fn a_table_with_a_period_has_its_golden_bytes() {
    const PERIOD: &str = include_str!("../tests/golden/table-period.hex");
    let mut table = table(1024, "s", "t");
    table.period = Some(crate::Period { name: "p".into(), start: 1, end: 0 });
    table.indexes[0].without_overlaps = true;
    golden::check("table-period.hex", &codec::write_table(&table), PERIOD);
    let read = codec::read_table(&golden::bytes(PERIOD)).expect("readable");
    assert_eq!(format!("{read:?}"), format!("{table:?}"));
    assert_eq!(read.period_check().as_deref(), Some("p"));
    table.checks[0].name = "P".into();
    assert_eq!(table.period_check().as_deref(), Some("p_1"));
}

#[test]
fn a_large_definition_costs_at_most_three_times_its_text() {
    let names: Vec<String> = (0..50_000).map(|at| format!("member number {at:06}")).collect();
    let text_bytes: usize = names.iter().map(|name| name.len() + "'',".len()).sum();
    let mut large = table(1, "s", "t");
    let members = Arc::new(Members::new(&names));
    large.columns[1].ty.members = Some(members.clone());
    large.definition.columns[1].ty.members = Some(members);
    let encoded = codec::write_table(&large);
    let read = codec::read_table(&encoded).expect("readable");
    let members = read.columns[1].ty.members.as_ref().expect("an ENUM");
    let of_engine = read.definition.columns[1].ty.members.as_ref().expect("an ENUM");
    assert!(
        Arc::ptr_eq(members, of_engine) && members.get(49_999) == Some(b"member number 049999")
    );
    let bytes = encoded.len() + members.memory_bytes();
    assert!(bytes < 3 * text_bytes, "{bytes} bytes for a text of {text_bytes}");
}

#[test]
fn histograms_are_kept_with_their_columns() {
    let bucket = |lower: u64, upper: u64, cumulative| {
        let (lower, upper) = (Value::UInt(lower), Value::UInt(upper));
        HistogramBucket { lower, upper, cumulative, distinct: 2 }
    };
    let histogram = Histogram {
        singleton: false,
        buckets: vec![bucket(0, 1, 0.25), bucket(2, 3, 0.75)],
        nulls: 0.25,
        buckets_max: 8,
        auto_update: true,
        updated_micros: 9,
        sampling_rate: 0.5,
    };
    let mut snapshot = CatalogSnapshot::default();
    let collation = CollationId::UTF8MB4_0900_AI_CI;
    snapshot
        .apply(&Edit::CreateSchema {
            name: "s".into(),
            options: SchemaOptions::of_collation(collation),
        })
        .expect("new");
    snapshot.apply(&Edit::CreateTable(Arc::new(table(1, "s", "t")))).expect("new");
    let made = Some(Arc::new(histogram));
    let columns = vec![("B".into(), made.clone()), ("gone".into(), made.clone())];
    snapshot.apply(&Edit::PutHistograms { table: TableId(1), columns }).expect("there");
    let entry = snapshot.encoded_table(TableId(1)).expect("there");
    let read = crate::codec::read_table(entry).expect("readable");
    assert_eq!(read.columns[1].histogram, made);
    assert_eq!(read.columns[0].histogram, None);
    // A table that was dropped in the meantime has none.
    let none = Edit::PutHistograms { table: TableId(2), columns: Vec::new() };
    snapshot.apply(&none).expect("nothing to do");
}
