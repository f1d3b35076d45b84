//! A table `t1 (a BIGINT PRIMARY KEY, b BIGINT NULL, c VARCHAR(40))` with a unique index on `b` and a plain one on `c`,
//! and helpers to use it.

use std::sync::Arc;
use std::time::Duration;

use engine_api::{
    CancelToken, ColumnDef, Direction, Engine, EngineError, EngineResult, GetOutcome, IndexDef,
    IndexId, IsolationLevel, KeyBound, KeyPart, KeyRange, RowBatch, RowBuf, RowLock, ScanSpec,
    TableDef, TableId, Transaction, TxnOptions, WaitPolicy,
};
use types::key::encode_part;
use types::record::RecordLayout;
use types::{CollationId, DataType, Value};

/// A row of `t1`.
pub type Row = (i64, Option<i64>, String);

/// Id of `t1`.
pub const T1: TableId = TableId(2000);
/// Unique index on `b`.
pub const BY_B: IndexId = IndexId(1);
/// Index on `c`.
pub const BY_C: IndexId = IndexId(2);
/// Time after which a lock wait ends in checks that expect it.
pub const SHORT: Duration = Duration::from_millis(60);
/// Time for waits that must succeed.
pub const LONG: Duration = Duration::from_secs(30);

/// An engine with `t1`.
pub struct Bench {
    pub engine: Arc<dyn Engine>,
    pub layout: RecordLayout,
}

pub fn key_part(column: usize) -> KeyPart {
    KeyPart { column, prefix_length: None, descending: false, elements: None }
}

pub fn index(id: IndexId, name: &str, unique: bool, columns: &[usize]) -> IndexDef {
    let parts = columns.iter().map(|column| key_part(*column)).collect();
    IndexDef { id, name: name.into(), unique, parts }
}

pub fn column(name: &str, ty: DataType) -> ColumnDef {
    ColumnDef { name: name.into(), ty, instant_default: None }
}

/// The definition of `t1`.
pub fn t1() -> TableDef {
    TableDef {
        id: T1,
        name: "test.t1".into(),
        columns: vec![
            column("a", DataType::bigint().with_nullable(false)),
            column("b", DataType::bigint()),
            column("c", DataType::varchar(40, CollationId::BINARY).with_nullable(false)),
        ],
        indexes: vec![
            index(IndexId::CLUSTERED, "PRIMARY", true, &[0]),
            index(BY_B, "b", true, &[1]),
            index(BY_C, "c", false, &[2]),
        ],
    }
}

pub fn options(isolation: IsolationLevel) -> TxnOptions {
    TxnOptions {
        isolation,
        read_only: false,
        may_be_prepared: false,
        lock_wait_timeout: SHORT,
        cancel: CancelToken::new(),
    }
}

impl Bench {
    /// A fresh engine with an empty, committed `t1`.
    pub fn new(factory: crate::Factory<'_>) -> Bench {
        let engine = factory();
        let types: Vec<DataType> = t1().columns.into_iter().map(|column| column.ty).collect();
        let bench = Bench { engine, layout: RecordLayout::new(&types) };
        let mut txn = bench.begin();
        txn.create_table(&t1()).expect("create t1");
        commit(txn);
        assert!(bench.engine.has_table(T1), "a committed table exists");
        bench
    }

    /// The same with rows.
    pub fn with_rows(factory: crate::Factory<'_>, rows: &[(i64, Option<i64>, &str)]) -> Bench {
        let bench = Bench::new(factory);
        let mut txn = bench.begin();
        for (a, b, c) in rows {
            bench.insert(&mut *txn, *a, *b, c).expect("insert");
        }
        commit(txn);
        bench
    }

    pub fn begin(&self) -> Box<dyn Transaction> {
        self.begin_at(IsolationLevel::RepeatableRead)
    }

    pub fn begin_at(&self, isolation: IsolationLevel) -> Box<dyn Transaction> {
        self.begin_with(&options(isolation))
    }

    pub fn begin_with(&self, options: &TxnOptions) -> Box<dyn Transaction> {
        let mut txn = self.engine.new_transaction();
        txn.start(options).expect("start");
        txn.begin_statement();
        txn
    }

    pub fn record(&self, a: i64, b: Option<i64>, c: &str) -> Vec<u8> {
        let b = b.map_or(Value::Null, Value::Int);
        let mut out = Vec::new();
        self.layout
            .encode(&[Value::Int(a), b, Value::text(c)], &mut out)
            .expect("the values have the column types");
        out
    }

    pub fn row(&self, record: &[u8]) -> Row {
        let value = |column| self.layout.value(record, column, None).expect("a sound record");
        let Value::Int(a) = value(0) else { panic!("column a is {:?}", value(0)) };
        let b = match value(1) {
            Value::Null => None,
            Value::Int(b) => Some(b),
            other => panic!("column b is {other:?}"),
        };
        let Value::Bytes(c) = value(2) else { panic!("column c is {:?}", value(2)) };
        (a, b, String::from_utf8(c.as_slice().to_vec()).expect("text"))
    }

    pub fn insert(
        &self,
        txn: &mut dyn Transaction,
        a: i64,
        b: Option<i64>,
        c: &str,
    ) -> EngineResult<()> {
        txn.insert(T1, &self.record(a, b, c))
    }

    /// Replaces the row whose key is `key`.
    pub fn update(&self, txn: &mut dyn Transaction, key: i64, row: Row) -> EngineResult<()> {
        txn.update(T1, &key_a(key), &self.record(row.0, row.1, &row.2))
    }

    pub fn delete(&self, txn: &mut dyn Transaction, a: i64) -> EngineResult<()> {
        txn.delete(T1, &key_a(a))
    }

    pub fn get(&self, txn: &mut dyn Transaction, a: i64) -> Option<Row> {
        self.get_locked(txn, a, RowLock::None, WaitPolicy::Wait).expect("get")
    }

    pub fn get_locked(
        &self,
        txn: &mut dyn Transaction,
        a: i64,
        lock: RowLock,
        wait: WaitPolicy,
    ) -> EngineResult<Option<Row>> {
        let mut out = RowBuf::default();
        match txn.get(T1, IndexId::CLUSTERED, &key_a(a), lock, wait, &mut out)? {
            GetOutcome::Found => Ok(Some(self.row(&out.record))),
            GetOutcome::NotFound | GetOutcome::Skipped => Ok(None),
        }
    }

    pub fn spec(&self, index: IndexId, range: KeyRange) -> ScanSpec {
        ScanSpec {
            table: T1,
            index,
            range,
            direction: Direction::Forward,
            lock: RowLock::None,
            wait: WaitPolicy::Wait,
        }
    }

    pub fn scan(&self, txn: &mut dyn Transaction, spec: &ScanSpec) -> EngineResult<Vec<Row>> {
        let cursor = txn.open_cursor(spec)?;
        let (mut rows, mut batch) = (Vec::new(), RowBatch::new());
        loop {
            batch.clear();
            // Three at a time: tests the borders between fetches.
            let count = txn.fetch(cursor, 3, &mut batch)?;
            assert_eq!(count, batch.len(), "fetch returns what it appended");
            if count == 0 {
                break;
            }
            rows.extend(batch.iter().map(|row| self.row(row.record)));
        }
        txn.close_cursor(cursor);
        Ok(rows)
    }

    /// All rows in order of `a`.
    pub fn all(&self, txn: &mut dyn Transaction) -> Vec<Row> {
        self.scan(txn, &self.spec(IndexId::CLUSTERED, KeyRange::ALL)).expect("scan")
    }

    /// Keys of all rows, as a new transaction sees them.
    pub fn keys(&self) -> Vec<i64> {
        let mut txn = self.begin();
        let keys = self.all(&mut *txn).into_iter().map(|row| row.0).collect();
        txn.rollback().expect("rollback");
        keys
    }

    pub fn check(&self) {
        let problems = self.engine.check_table(T1).expect("check_table");
        assert!(problems.is_empty(), "{problems:?}");
    }
}

pub fn commit(mut txn: Box<dyn Transaction>) {
    txn.commit().expect("commit").wait().expect("durable");
}

pub fn key_a(a: i64) -> Vec<u8> {
    let mut key = Vec::new();
    encode_part(&Value::Int(a), &DataType::bigint().with_nullable(false), None, false, &mut key);
    key
}

pub fn key_b(b: Option<i64>) -> Vec<u8> {
    let mut key = Vec::new();
    let value = b.map_or(Value::Null, Value::Int);
    encode_part(&value, &DataType::bigint(), None, false, &mut key);
    key
}

pub fn key_c(c: &str) -> Vec<u8> {
    let mut key = Vec::new();
    let ty = DataType::varchar(40, CollationId::BINARY).with_nullable(false);
    encode_part(&Value::text(c), &ty, None, false, &mut key);
    key
}

/// `low <= a <= high`.
pub fn range_a(low: i64, high: i64) -> KeyRange {
    KeyRange { lower: KeyBound::Included(key_a(low)), upper: KeyBound::Included(key_a(high)) }
}

pub fn row(a: i64, b: Option<i64>, c: &str) -> Row {
    (a, b, c.to_owned())
}

#[track_caller]
pub fn expect_duplicate(outcome: EngineResult<()>, index: IndexId, locator: &[u8]) {
    match outcome {
        Err(EngineError::DuplicateKey { index: found, locator: at }) => {
            assert_eq!(found, index, "the violated index");
            assert_eq!(at, locator, "the row that has the key");
        }
        other => panic!("expected a duplicate key, got {other:?}"),
    }
}

#[track_caller]
pub fn expect_timeout<T: std::fmt::Debug>(outcome: EngineResult<T>) {
    assert!(
        matches!(outcome, Err(EngineError::LockWaitTimeout)),
        "expected a lock wait timeout, got {outcome:?}"
    );
}
