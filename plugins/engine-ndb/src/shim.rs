//! The functions of `libsquall_ndb.so` (ndb-shim/squall_ndb.h), which is loaded when the engine first needs the cluster. With `management`, the only `unsafe` of this crate.
#![allow(unsafe_code)]

use std::ffi::{CString, c_char, c_void};
use std::ptr::{null, null_mut};

use engine_api::{EngineError, EngineResult};
use errors::{Error, ErrorCode};
use sys::library::Library;
use sys::sync::Arc;

use crate::error::NdbError;
use management::RawSetting;
pub(crate) use management::{Command, Entry, Section};

mod management;

/// The version of the interface that this file declares.
const ABI: u32 = 3;
/// The name of the library when no path is given.
pub(crate) const LIBRARY: &str = "libsquall_ndb.so";
const BUILD_COMMAND: &str = "cargo xtask ndb-shim --include DIR --lib DIR";

#[repr(C)]
struct RawError {
    code: i32,
    status: i32,
    classification: i32,
    is_aborted: i32,
    text: [u8; 240],
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawBytes {
    data: *const u8,
    length: u64,
}

#[repr(C)]
struct RawOperation {
    kind: u32,
    lock: u32,
    no_wait: u32,
    code: i32,
    table: *mut c_void,
    key: RawBytes,
    row: RawBytes,
    out: RawBytes,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawRow {
    key: RawBytes,
    row: RawBytes,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct RawNode {
    id: i32,
    kind: i32,
    status: i32,
    group: i32,
    version: i32,
    start_phase: i32,
    address: [u8; 64],
}

type Handle = *mut c_void;

/// Declares the functions, and a function that looks all of them up.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?, $symbol:literal;)*) => {
        #[derive(Clone, Copy)]
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn find(library: Library) -> Result<Functions, String> {
                // SAFETY: these are the declarations of squall_ndb.h for these names, whose version was checked; a function pointer and a data pointer
                // have the same size and form on every platform that has dlsym.
                unsafe {
                    Ok(Functions {
                        $($name: std::mem::transmute::<
                            *mut c_void,
                            unsafe extern "C" fn($($argument),*) $(-> $result)?,
                        >(library.symbol($symbol)?),)*
                    })
                }
            }
        }
    };
}

functions! {
    version: fn() -> u32, c"squall_ndb_version";
    connect: fn(*const c_char, *const c_char, i32, *mut Handle, *mut RawError) -> i32, c"squall_ndb_connect";
    disconnect: fn(Handle), c"squall_ndb_disconnect";
    ready_nodes: fn(Handle) -> i32, c"squall_ndb_ready_nodes";
    own_node: fn(Handle) -> u32, c"squall_ndb_own_node";
    table_create: fn(Handle, *const c_char, u32, u32, *mut RawError) -> i32, c"squall_ndb_table_create";
    table_drop: fn(Handle, *const c_char, *mut RawError) -> i32, c"squall_ndb_table_drop";
    table_open: fn(Handle, *const c_char, *mut Handle, *mut RawError) -> i32, c"squall_ndb_table_open";
    table_close: fn(Handle), c"squall_ndb_table_close";
    table_row_bytes: fn(Handle) -> u32, c"squall_ndb_table_row_bytes";
    table_key_bytes: fn(Handle) -> u32, c"squall_ndb_table_key_bytes";
    table_size: fn(Handle, Handle, *mut u64, *mut u64, *mut RawError) -> i32, c"squall_ndb_table_size";
    begin: fn(Handle, Handle, RawBytes, *mut Handle, *mut RawError) -> i32, c"squall_ndb_begin";
    execute: fn(Handle, *mut RawOperation, u32, *mut RawError) -> i32, c"squall_ndb_execute";
    commit: fn(Handle, *mut RawError) -> i32, c"squall_ndb_commit";
    rollback: fn(Handle), c"squall_ndb_rollback";
    scan_open: fn(Handle, Handle, RawBytes, i32, RawBytes, i32, i32, i32, u32, *mut Handle, *mut RawError) -> i32, c"squall_ndb_scan_open";
    scan_next: fn(Handle, *mut RawRow, u32, *mut u32, *mut RawError) -> i32, c"squall_ndb_scan_next";
    scan_close: fn(Handle), c"squall_ndb_scan_close";
    range_size: fn(Handle, Handle, RawBytes, RawBytes, *mut u64, *mut RawError) -> i32, c"squall_ndb_range_size";
    info_open: fn(Handle, *const c_char, *const *const c_char, u32, *mut Handle, *mut RawError) -> i32, c"squall_ndb_info_open";
    info_next: fn(Handle, *mut RawBytes, *mut i32, *mut RawError) -> i32, c"squall_ndb_info_next";
    info_close: fn(Handle), c"squall_ndb_info_close";
    config_read: fn(*const c_char, *mut Handle, *mut *const RawSetting, *mut u32, *mut RawError) -> i32, c"squall_ndb_config_read";
    config_free: fn(Handle), c"squall_ndb_config_free";
    config_write: fn(*const c_char, *const RawSetting, u32, *mut RawError) -> i32, c"squall_ndb_config_write";
    command: fn(*const c_char, u32, *const i32, u32, *mut i32, *mut RawError) -> i32, c"squall_ndb_command";
    table_names: fn(Handle, *mut c_char, u64, *mut u64, *mut RawError) -> i32, c"squall_ndb_table_names";
    table_spread: fn(Handle, *const c_char, *mut RawError) -> i32, c"squall_ndb_table_spread";
    nodes: fn(*const c_char, *mut RawNode, u32, *mut u32, *mut RawError) -> i32, c"squall_ndb_nodes";
}

const NOTHING: RawBytes = RawBytes { data: null(), length: 0 };

fn raw(bytes: &[u8]) -> RawBytes {
    RawBytes { data: bytes.as_ptr(), length: bytes.len() as u64 }
}

fn raw_bound(bytes: Option<&[u8]>) -> RawBytes {
    bytes.map_or(NOTHING, raw)
}

/// The bytes of a result.
///
/// # Safety
/// The shim has set it, and nothing was called since that ends its life.
unsafe fn bytes<'a>(from: RawBytes) -> &'a [u8] {
    if from.data.is_null() || from.length == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(from.data, from.length as usize) }
}

/// Text of C, up to its zero byte. Bytes and not `c_char`, which has a sign on some processors only.
fn text(from: &[u8]) -> String {
    let bytes = from.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(bytes).into_owned()
}

fn c_text(text: &str) -> CString {
    // Names and addresses have no zero bytes; one that has ends there.
    CString::new(text.split('\0').next().unwrap_or_default()).unwrap_or_default()
}

/// The loaded shim.
#[derive(Clone, Copy)]
pub(crate) struct Shim(Functions);

fn no_error() -> RawError {
    RawError { code: 0, status: 0, classification: 0, is_aborted: 0, text: [0; 240] }
}

fn outcome(result: i32, error: &RawError) -> Result<(), NdbError> {
    if result == 0 {
        return Ok(());
    }
    Err(NdbError {
        code: error.code,
        status: error.status,
        is_aborted: error.is_aborted != 0,
        text: text(&error.text),
    })
}

impl Shim {
    /// Loads the library in this file.
    ///
    /// # Errors
    /// 1126: no such file, another version. It says what to do.
    pub(crate) fn load(path: &str) -> EngineResult<Shim> {
        let refused = |why: String| {
            let advice = format!(
                "{why}. Engine NDB needs this library: build it with `{BUILD_COMMAND}`, and start the server with --ndb-shim=FILE"
            );
            let values: [&dyn std::fmt::Display; 3] = [&path, &0, &advice];
            EngineError::Other(Error::with(ErrorCode::CANT_OPEN_LIBRARY, &values))
        };
        // SAFETY: the administrator named this library; loading it is what he asked for.
        let library = unsafe { Library::open(path) }.map_err(refused)?;
        let abi = library.symbol(c"squall_ndb_abi").map_err(refused)?;
        // SAFETY: this function has had this form in every version of the interface.
        let abi =
            unsafe { std::mem::transmute::<*mut c_void, unsafe extern "C" fn() -> u32>(abi)() };
        if abi != ABI {
            return Err(refused(format!("{path} has interface {abi}, wanted is {ABI}")));
        }
        Functions::find(library).map(Shim).map_err(refused)
    }

    /// The release of MySQL Cluster's client library: `9.7.4`.
    pub(crate) fn client_version(&self) -> String {
        // SAFETY: the function takes nothing.
        let version = unsafe { (self.0.version)() };
        format!("{}.{}.{}", version >> 16, version >> 8 & 0xff, version & 0xff)
    }

    /// The nodes of the cluster, as its management server sees them.
    pub(crate) fn nodes(&self, connectstring: &str) -> Result<Vec<Node>, NdbError> {
        const ROOM: usize = 256;
        let none = RawNode {
            id: 0,
            kind: 0,
            status: 0,
            group: 0,
            version: 0,
            start_phase: 0,
            address: [0; 64],
        };
        let (mut nodes, mut count, mut error) = (vec![none; ROOM], 0, no_error());
        let connectstring = c_text(connectstring);
        // SAFETY: the buffers are as large as said.
        let result = unsafe {
            (self.0.nodes)(
                connectstring.as_ptr(),
                nodes.as_mut_ptr(),
                ROOM as u32,
                &mut count,
                &mut error,
            )
        };
        outcome(result, &error)?;
        nodes.truncate(count as usize);
        let shown = |node: &RawNode| Node {
            id: node.id,
            kind: node.kind,
            status: node.status,
            group: node.group,
            version: node.version,
            start_phase: node.start_phase,
            address: text(&node.address),
        };
        Ok(nodes.iter().map(shown).collect())
    }
}

/// A node of the cluster.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) id: i32,
    /// 0 data, 1 client, 2 management.
    pub(crate) kind: i32,
    pub(crate) status: i32,
    pub(crate) group: i32,
    pub(crate) version: i32,
    pub(crate) start_phase: i32,
    pub(crate) address: String,
}

/// A connection to the cluster, closed when the last table and transaction that use it are gone.
pub(crate) struct Connection {
    functions: Functions,
    handle: Handle,
}

// SAFETY: the shim's functions on a link may be called by any thread.
unsafe impl Send for Connection {}
// SAFETY: as above.
unsafe impl Sync for Connection {}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: tables and transactions hold the connection, so none is left.
        unsafe { (self.functions.disconnect)(self.handle) }
    }
}

impl Connection {
    /// Connects, waiting at most so many seconds for a data node.
    pub(crate) fn open(
        shim: Shim,
        connectstring: &str,
        database: &str,
        seconds: i32,
    ) -> Result<Arc<Connection>, NdbError> {
        let (connectstring, database) = (c_text(connectstring), c_text(database));
        let (mut handle, mut error) = (null_mut(), no_error());
        // SAFETY: both are C strings, the rest are places for results.
        let result = unsafe {
            (shim.0.connect)(
                connectstring.as_ptr(),
                database.as_ptr(),
                seconds,
                &mut handle,
                &mut error,
            )
        };
        outcome(result, &error)?;
        Ok(Arc::new(Connection { functions: shim.0, handle }))
    }

    /// Data nodes that this connection reaches.
    pub(crate) fn ready_nodes(&self) -> i32 {
        // SAFETY: the link is open.
        unsafe { (self.functions.ready_nodes)(self.handle) }
    }

    /// The number of this client in the cluster.
    pub(crate) fn own_node(&self) -> u32 {
        // SAFETY: the link is open.
        unsafe { (self.functions.own_node)(self.handle) }
    }

    pub(crate) fn create_table(
        &self,
        name: &str,
        key_bytes: u32,
        row_bytes: u32,
    ) -> Result<(), NdbError> {
        let (name, mut error) = (c_text(name), no_error());
        // SAFETY: the link is open, the name a C string.
        let result = unsafe {
            (self.functions.table_create)(
                self.handle,
                name.as_ptr(),
                key_bytes,
                row_bytes,
                &mut error,
            )
        };
        outcome(result, &error)
    }

    pub(crate) fn drop_table(&self, name: &str) -> Result<(), NdbError> {
        let (name, mut error) = (c_text(name), no_error());
        // SAFETY: the link is open, the name a C string.
        let result = unsafe { (self.functions.table_drop)(self.handle, name.as_ptr(), &mut error) };
        outcome(result, &error)
    }
}

/// An open scan of a table of ndbinfo.
struct InfoScan<'c> {
    connection: &'c Connection,
    handle: Handle,
}

impl Drop for InfoScan<'_> {
    fn drop(&mut self) {
        // SAFETY: it is open.
        unsafe { (self.connection.functions.info_close)(self.handle) }
    }
}

impl Connection {
    /// Shows `each` the rows of a base table of ndbinfo until it returns false: the bytes of these columns, `None` for NULL.
    pub(crate) fn info_rows(
        &self,
        table: &str,
        columns: &[&str],
        mut each: impl FnMut(&[Option<&[u8]>]) -> bool,
    ) -> Result<(), NdbError> {
        let table = c_text(table);
        let names: Vec<CString> = columns.iter().map(|column| c_text(column)).collect();
        let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let (mut handle, mut error) = (null_mut(), no_error());
        // SAFETY: the link is open, the names are C strings and as many as said.
        let result = unsafe {
            (self.functions.info_open)(
                self.handle,
                table.as_ptr(),
                pointers.as_ptr(),
                pointers.len() as u32,
                &mut handle,
                &mut error,
            )
        };
        outcome(result, &error)?;
        let scan = InfoScan { connection: self, handle };
        let mut raw = vec![NOTHING; columns.len()];
        loop {
            let mut is_row = 0;
            // SAFETY: the scan is open, and there is room for as many values as it has columns.
            let result = unsafe {
                (self.functions.info_next)(scan.handle, raw.as_mut_ptr(), &mut is_row, &mut error)
            };
            outcome(result, &error)?;
            if is_row == 0 {
                return Ok(());
            }
            // SAFETY: nothing was called since.
            let value = |raw: &RawBytes| (!raw.data.is_null()).then(|| unsafe { bytes(*raw) });
            let values: Vec<Option<&[u8]>> = raw.iter().map(value).collect();
            if !each(&values) {
                return Ok(());
            }
        }
    }
}

/// A table of the cluster: keys and rows.
pub(crate) struct NdbTable {
    connection: Arc<Connection>,
    handle: Handle,
    pub(crate) name: String,
    pub(crate) row_bytes: usize,
    pub(crate) key_bytes: usize,
}

// SAFETY: the shim reads a table from any thread and changes it nowhere.
unsafe impl Send for NdbTable {}
// SAFETY: as above.
unsafe impl Sync for NdbTable {}

impl Drop for NdbTable {
    fn drop(&mut self) {
        // SAFETY: operations and scans hold the table, so none is left.
        unsafe { (self.connection.functions.table_close)(self.handle) }
    }
}

impl NdbTable {
    pub(crate) fn open(
        connection: &Arc<Connection>,
        name: &str,
    ) -> Result<Arc<NdbTable>, NdbError> {
        let (c_name, mut handle, mut error) = (c_text(name), null_mut(), no_error());
        let functions = &connection.functions;
        // SAFETY: the link is open, the name a C string.
        let result = unsafe {
            (functions.table_open)(connection.handle, c_name.as_ptr(), &mut handle, &mut error)
        };
        outcome(result, &error)?;
        // SAFETY: the table was just opened.
        let (row_bytes, key_bytes) =
            unsafe { ((functions.table_row_bytes)(handle), (functions.table_key_bytes)(handle)) };
        Ok(Arc::new(NdbTable {
            connection: connection.clone(),
            handle,
            name: name.to_owned(),
            row_bytes: row_bytes as usize,
            key_bytes: key_bytes as usize,
        }))
    }

    /// Committed rows, and their bytes in one replica.
    pub(crate) fn size(&self) -> Result<(u64, u64), NdbError> {
        let (mut rows, mut size, mut error) = (0, 0, no_error());
        let connection = &self.connection;
        // SAFETY: link and table are open.
        let result = unsafe {
            (connection.functions.table_size)(
                connection.handle,
                self.handle,
                &mut rows,
                &mut size,
                &mut error,
            )
        };
        outcome(result, &error).map(|()| (rows, size))
    }

    /// About how many keys are from `low` to before `high`.
    pub(crate) fn range_size(
        &self,
        low: Option<&[u8]>,
        high: Option<&[u8]>,
    ) -> Result<u64, NdbError> {
        let (mut rows, mut error) = (0, no_error());
        let connection = &self.connection;
        // SAFETY: link and table are open, the bounds are copied.
        let result = unsafe {
            (connection.functions.range_size)(
                connection.handle,
                self.handle,
                raw_bound(low),
                raw_bound(high),
                &mut rows,
                &mut error,
            )
        };
        outcome(result, &error).map(|()| rows)
    }
}

/// The kinds of an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Insert,
    Update,
    Write,
    Delete,
}

/// The lock that a read takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hold {
    Nothing,
    Shared,
    Exclusive,
}

/// One operation on one key.
#[derive(Clone)]
pub(crate) struct Operation {
    pub(crate) kind: Kind,
    pub(crate) hold: Hold,
    pub(crate) table: Arc<NdbTable>,
    pub(crate) key: Vec<u8>,
    /// The row that is written, or was read.
    pub(crate) row: Vec<u8>,
    /// 0, or NDB's number.
    pub(crate) code: i32,
    /// A read waits for the lock that it takes, in the cluster: too long a wait ends the transaction.
    pub(crate) waits: bool,
}

impl Operation {
    pub(crate) fn new(kind: Kind, table: &Arc<NdbTable>, key: &[u8], row: &[u8]) -> Operation {
        Operation {
            kind,
            hold: Hold::Nothing,
            table: table.clone(),
            key: key.to_vec(),
            row: row.to_vec(),
            code: 0,
            waits: false,
        }
    }

    /// A read; one that takes a lock does not wait for it.
    pub(crate) fn read(table: &Arc<NdbTable>, key: &[u8], hold: Hold) -> Operation {
        Operation { hold, ..Operation::new(Kind::Read, table, key, &[]) }
    }

    /// The same read, which waits.
    pub(crate) fn waiting(self) -> Operation {
        Operation { waits: true, ..self }
    }
}

/// A transaction that is not over; its scans hold it too, so that they end before it.
struct Open {
    connection: Arc<Connection>,
    handle: Handle,
}

// SAFETY: the shim's transactions may move between threads; `&mut` of the transaction and of its scans, which one session has, keeps two from using it at a time.
unsafe impl Send for Open {}
// SAFETY: as above.
unsafe impl Sync for Open {}

impl Drop for Open {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it is open, and its scans are closed.
            unsafe { (self.connection.functions.rollback)(self.handle) }
        }
    }
}

/// A transaction of the cluster. Dropping it rolls it back.
pub(crate) struct NdbTransaction {
    open: Arc<Open>,
    raw: Vec<RawOperation>,
    /// The tables that operations used: they must outlive it.
    tables: Vec<Arc<NdbTable>>,
}

// SAFETY: `raw` is only memory between two calls.
unsafe impl Send for NdbTransaction {}

impl NdbTransaction {
    /// Begins, near the data node of a key if one is given.
    pub(crate) fn begin(
        connection: &Arc<Connection>,
        hint: Option<(&NdbTable, &[u8])>,
    ) -> Result<NdbTransaction, NdbError> {
        let (mut handle, mut error) = (null_mut(), no_error());
        let (table, key) =
            hint.map_or((null_mut(), NOTHING), |(table, key)| (table.handle, raw(key)));
        // SAFETY: link and table are open, the key is copied.
        let result = unsafe {
            (connection.functions.begin)(connection.handle, table, key, &mut handle, &mut error)
        };
        outcome(result, &error)?;
        let open = Arc::new(Open { connection: connection.clone(), handle });
        Ok(NdbTransaction { open, raw: Vec::new(), tables: Vec::new() })
    }

    fn keep(&mut self, table: &Arc<NdbTable>) {
        if !self.tables.iter().any(|known| Arc::ptr_eq(known, table)) {
            self.tables.push(table.clone());
        }
    }

    /// Runs operations in one round trip. Each has its code then, and reads their row.
    pub(crate) fn execute(&mut self, operations: &mut [Operation]) -> Result<(), NdbError> {
        self.execute_after(&mut [], operations)
    }

    /// The same, with other operations before them.
    pub(crate) fn execute_after(
        &mut self,
        first: &mut [Operation],
        operations: &mut [Operation],
    ) -> Result<(), NdbError> {
        for operation in first.iter().chain(operations.iter()) {
            self.keep(&operation.table);
        }
        self.raw.clear();
        self.raw.extend(first.iter().chain(operations.iter()).map(|operation| RawOperation {
            kind: operation.kind as u32,
            lock: operation.hold as u32,
            no_wait: u32::from(operation.hold != Hold::Nothing && !operation.waits),
            code: 0,
            table: operation.table.handle,
            key: raw(&operation.key),
            row: raw(&operation.row),
            out: NOTHING,
        }));
        let mut error = no_error();
        let count = self.raw.len() as u32;
        // SAFETY: the transaction and the tables are open; keys and rows live through the call.
        let result = unsafe {
            (self.open.connection.functions.execute)(
                self.open.handle,
                self.raw.as_mut_ptr(),
                count,
                &mut error,
            )
        };
        outcome(result, &error)?;
        for (operation, raw) in first.iter_mut().chain(operations).zip(&self.raw) {
            operation.code = raw.code;
            if operation.kind == Kind::Read {
                operation.row.clear();
                // SAFETY: nothing was called since.
                operation.row.extend_from_slice(unsafe { bytes(raw.out) });
            }
        }
        Ok(())
    }

    /// Commits; it is over in any case.
    pub(crate) fn commit(mut self) -> Result<(), NdbError> {
        let mut error = no_error();
        let Some(open) = Arc::get_mut(&mut self.open) else {
            let text = "a scan is open at the commit".to_owned();
            return Err(NdbError { code: 0, status: 2, is_aborted: true, text });
        };
        let handle = std::mem::replace(&mut open.handle, null_mut());
        // SAFETY: the transaction is open and is not used again.
        let result = unsafe { (open.connection.functions.commit)(handle, &mut error) };
        outcome(result, &error)
    }

    /// Opens a scan in the order of the keys.
    pub(crate) fn scan(
        &mut self,
        table: &Arc<NdbTable>,
        range: &ScanRange<'_>,
    ) -> Result<NdbScan, NdbError> {
        self.keep(table);
        let (mut handle, mut error) = (null_mut(), no_error());
        // SAFETY: transaction and table are open, the bounds are copied.
        let result = unsafe {
            (self.open.connection.functions.scan_open)(
                self.open.handle,
                table.handle,
                raw_bound(range.low),
                i32::from(range.low_inclusive),
                raw_bound(range.high),
                0,
                i32::from(range.descending),
                i32::from(range.with_rows),
                range.batch,
                &mut handle,
                &mut error,
            )
        };
        outcome(result, &error)?;
        let (table, open) = (table.clone(), self.open.clone());
        Ok(NdbScan { handle, rows: Vec::new(), _table: table, open })
    }
}

/// The keys of a scan.
pub(crate) struct ScanRange<'a> {
    pub(crate) low: Option<&'a [u8]>,
    pub(crate) low_inclusive: bool,
    /// Exclusive.
    pub(crate) high: Option<&'a [u8]>,
    pub(crate) descending: bool,
    pub(crate) with_rows: bool,
    /// Rows that a fragment sends at a time.
    pub(crate) batch: u32,
}

/// An open scan.
pub(crate) struct NdbScan {
    handle: Handle,
    rows: Vec<RawRow>,
    _table: Arc<NdbTable>,
    open: Arc<Open>,
}

// SAFETY: as its transaction; `rows` is only memory between two calls.
unsafe impl Send for NdbScan {}

impl Drop for NdbScan {
    fn drop(&mut self) {
        // SAFETY: it is open, and so is its transaction.
        unsafe { (self.open.connection.functions.scan_close)(self.handle) }
    }
}

impl NdbScan {
    /// Shows up to `limit` keys with their rows; 0: the end.
    pub(crate) fn next(
        &mut self,
        limit: usize,
        mut each: impl FnMut(&[u8], &[u8]),
    ) -> Result<usize, NdbError> {
        self.rows.resize(limit, RawRow { key: NOTHING, row: NOTHING });
        let (mut count, mut error) = (0, no_error());
        // SAFETY: the scan is open, the buffer as large as said.
        let result = unsafe {
            (self.open.connection.functions.scan_next)(
                self.handle,
                self.rows.as_mut_ptr(),
                limit as u32,
                &mut count,
                &mut error,
            )
        };
        outcome(result, &error)?;
        for row in self.rows.iter().take(count as usize) {
            // SAFETY: nothing was called since.
            let (key, row) = unsafe { (bytes(row.key), bytes(row.row)) };
            each(key, row);
        }
        Ok(count as usize)
    }
}
