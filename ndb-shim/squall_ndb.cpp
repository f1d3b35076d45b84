// The C interface of squall_ndb.h over the NDB API. MIT licence, see LICENSE.
//
// A row in memory is its columns as NDB keeps them: two bytes of length, then the bytes.

#include "squall_ndb.h"

#include <NdbApi.hpp>
#include <NdbIndexStat.hpp>
#include <mgmapi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#define EXPORT extern "C" __attribute__((visibility("default")))

// Its header wants another one that not every package has.
extern "C" unsigned ndbGetOwnVersion(void);

// ndbinfo is in the library and in no public header. Declared here as far as it is used, as release 9.7 has it.
class NdbInfoScanOperation {
 public:
  struct Value {
    const char *data;
    Uint32 length;
    bool is_defined;
  };
  virtual int readTuples() = 0;
  virtual const Value *getValue(const char *column) = 0;
  virtual const Value *getValue(Uint32 column) = 0;
  virtual int execute() = 0;
  virtual int nextResult() = 0;
  virtual ~NdbInfoScanOperation() = default;
};

class NdbInfo {
 public:
  class Table;
  NdbInfo(Ndb_cluster_connection *connection, const char *prefix);
  ~NdbInfo();
  bool init();
  int openTable(const char *name, const Table **table);
  void closeTable(const Table *table);
  int createScanOperation(const Table *table, NdbInfoScanOperation **scan, Uint32 max_rows, Uint32 max_bytes);
  void releaseScanOperation(NdbInfoScanOperation *scan) const;

 private:
  // More than it has.
  char members_[8192];
};

// The configuration's classes are in the library and in no public header. Declared here as far as they are used, as release 9.7 has them.
class ConfigSection {
 public:
  enum ValueType { NoType = 0, IntType = 1, StringType = 2, SectionType = 3, Int64Type = 4 };
  class Entry {
   public:
    Uint32 m_key;
    ValueType m_type;
    union {
      Uint32 m_int;
      Uint64 m_int64;
      const char *m_string;
    };
  };
};

class ConfigObject {
 public:
  ConfigObject();
  ~ConfigObject();
  bool begin();
  bool createSection(Uint32 kind, Uint32 type);
  void closeSection();
  ConfigSection *openSection(Uint32 kind, Uint32 at) const;
  bool put(Uint32 key, Uint32 value);
  bool put64(Uint32 key, Uint64 value);
  bool put(Uint32 key, const char *value);
  bool get(ConfigSection *section, Uint32 key, ConfigSection::Entry &entry) const;
  bool commitConfig(bool only_sort);
  int get_error_code() const;

 private:
  // More than it has.
  char members_[4096];
};

int ndb_mgm_set_configuration(NdbMgmHandle handle, struct ndb_mgm_configuration *configuration);

namespace {

constexpr uint32_t INFO_RELEASE = 9 << 8 | 7;
constexpr Uint32 INFO_ROWS = 256;
constexpr const char *KEY_INDEX = "ordered";
constexpr int PARALLEL_TRANSACTIONS = 4;
constexpr size_t POOL_MAX = 64;
constexpr int OUTDATED_TRIES = 3;

// The library is silent: errors reach the caller as values.
class Silence : public NdbApiLogConsumer {
 public:
  void log(LogLevel, const char *, const char *) override {}
};

void fill(squall_ndb_error *error, int code, int status, int classification, bool aborted, const char *text) {
  error->code = code;
  error->status = status;
  error->classification = classification;
  error->is_aborted = aborted ? 1 : 0;
  snprintf(error->text, sizeof(error->text), "%s", text ? text : "");
}

int fail(squall_ndb_error *error, const NdbError &from, bool aborted = false) {
  fill(error, from.code, static_cast<int>(from.status), static_cast<int>(from.classification), aborted, from.message);
  return 1;
}

int fail_plain(squall_ndb_error *error, int code, const char *text) {
  fill(error, code, 2, 0, false, text);
  return 1;
}

// Definitions of tables that another client has changed or dropped.
bool is_outdated(int code) { return code == 241 || code == 284 || code == 1225 || code == 1226; }

// Before anything else of the library.
void begin_library() {
  static std::once_flag once;
  std::call_once(once, [] {
    ndb_init();
    // Never destroyed: threads of the library may outlive the rest.
    Ndb_cluster_connection::set_log_consumer(new Silence);
  });
}

bool is_answer(int code) { return code == 0 || code == 626 || code == 630 || code == 635; }

}  // namespace

struct squall_ndb_link {
  std::unique_ptr<Ndb_cluster_connection> connection;
  std::string database;
  // Looks up and changes definitions.
  std::unique_ptr<Ndb> definer;
  std::mutex definer_mutex;
  std::vector<Ndb *> pool;
  std::mutex pool_mutex;

  Ndb *take(squall_ndb_error *error) {
    {
      std::lock_guard<std::mutex> guard(pool_mutex);
      if (!pool.empty()) {
        Ndb *ndb = pool.back();
        pool.pop_back();
        return ndb;
      }
    }
    auto ndb = std::make_unique<Ndb>(connection.get(), database.c_str());
    if (ndb->init(PARALLEL_TRANSACTIONS) != 0) {
      fail(error, ndb->getNdbError());
      return nullptr;
    }
    return ndb.release();
  }

  void give(Ndb *ndb) {
    {
      std::lock_guard<std::mutex> guard(pool_mutex);
      if (pool.size() < POOL_MAX) {
        pool.push_back(ndb);
        return;
      }
    }
    delete ndb;
  }
};

struct squall_ndb_table {
  squall_ndb_link *link;
  const NdbDictionary::Table *table;
  const NdbDictionary::Index *key_index;
  NdbRecord *record;
  NdbRecord *key_record;
  uint32_t key_offset, row_offset, length, key_bytes, row_bytes;
  int key_attribute, row_attribute;
};

struct squall_ndb_transaction {
  squall_ndb_link *link;
  Ndb *ndb;
  NdbTransaction *transaction;
  uint32_t scans = 0;
  std::vector<char> scratch;
  std::unique_ptr<char[]> results;
  size_t results_size = 0;
};

struct squall_ndb_scan {
  squall_ndb_transaction *transaction;
  squall_ndb_table *table;
  NdbIndexScanOperation *operation;
  std::vector<char> rows;
  bool with_rows;
  bool is_over = false;
};

namespace {

void put(char *at, squall_ndb_bytes bytes) {
  at[0] = static_cast<char>(bytes.length & 0xff);
  at[1] = static_cast<char>(bytes.length >> 8);
  if (bytes.length > 0) memcpy(at + 2, bytes.data, bytes.length);
}

squall_ndb_bytes get(const char *at) {
  const auto *bytes = reinterpret_cast<const uint8_t *>(at);
  return {bytes + 2, static_cast<uint64_t>(bytes[0] | bytes[1] << 8)};
}

void build_row(const squall_ndb_table *table, const squall_ndb_operation &operation, char *row) {
  put(row + table->key_offset, operation.key);
  if (operation.kind == SQUALL_NDB_READ || operation.kind == SQUALL_NDB_DELETE) return;
  put(row + table->row_offset, operation.row);
}

bool is_too_long(const squall_ndb_table *table, const squall_ndb_operation &operation) {
  if (operation.key.length > table->key_bytes) return true;
  if (operation.kind == SQUALL_NDB_READ || operation.kind == SQUALL_NDB_DELETE) return false;
  return operation.row.length > table->row_bytes;
}

void set_bit(unsigned char *mask, int bit) { mask[bit / 8] = static_cast<unsigned char>(mask[bit / 8] | 1 << (bit % 8)); }

// A mask of the row alone.
std::vector<unsigned char> value_mask(const squall_ndb_table *table) {
  std::vector<unsigned char> mask(NDB_MAX_ATTRIBUTES_IN_TABLE / 8, 0);
  set_bit(mask.data(), table->row_attribute);
  return mask;
}

NdbOperation::LockMode lock_mode(uint32_t lock) {
  switch (lock) {
    case SQUALL_NDB_SHARED:
      return NdbOperation::LM_Read;
    case SQUALL_NDB_EXCLUSIVE:
      return NdbOperation::LM_Exclusive;
    default:
      return NdbOperation::LM_CommittedRead;
  }
}

const NdbOperation *define(squall_ndb_transaction *own, const squall_ndb_operation &operation, char *row, char *result) {
  squall_ndb_table *table = operation.table;
  NdbTransaction *transaction = own->transaction;
  build_row(table, operation, row);
  switch (operation.kind) {
    case SQUALL_NDB_READ: {
      NdbOperation::OperationOptions options{};
      options.optionsPresent = operation.no_wait ? NdbOperation::OperationOptions::OO_NOWAIT : 0;
      return transaction->readTuple(table->record, row, table->record, result, lock_mode(operation.lock), value_mask(table).data(), &options, sizeof(options));
    }
    case SQUALL_NDB_INSERT:
      return transaction->insertTuple(table->record, row, table->record, row);
    case SQUALL_NDB_UPDATE:
      return transaction->updateTuple(table->record, row, table->record, row, value_mask(table).data());
    case SQUALL_NDB_WRITE:
      return transaction->writeTuple(table->record, row, table->record, row);
    default:
      return transaction->deleteTuple(table->record, row, table->record);
  }
}

// The columns of a table as they are in a row; false when the table has another form.
bool lay_out(squall_ndb_table *own, NdbDictionary::RecordSpecification (&columns)[2]) {
  const NdbDictionary::Column *key = own->table->getColumn("k");
  const NdbDictionary::Column *row = own->table->getColumn("r");
  if (!key || !row || own->table->getNoOfColumns() != 2) return false;
  own->key_bytes = static_cast<uint32_t>(key->getLength());
  own->row_bytes = static_cast<uint32_t>(row->getLength());
  own->key_attribute = key->getAttrId();
  own->row_attribute = row->getAttrId();
  own->key_offset = 0;
  own->row_offset = 2 + own->key_bytes;
  own->length = own->row_offset + 2 + own->row_bytes;
  columns[0].column = key;
  columns[0].offset = own->key_offset;
  columns[1].column = row;
  columns[1].offset = own->row_offset;
  return true;
}

NdbDictionary::Column bytes_column(const char *name, uint32_t length) {
  NdbDictionary::Column column(name);
  column.setType(NdbDictionary::Column::Longvarbinary);
  column.setLength(static_cast<int>(length));
  return column;
}

int create_index(NdbDictionary::Dictionary *dictionary, const NdbDictionary::Table *table, squall_ndb_error *error) {
  NdbDictionary::Index index(KEY_INDEX);
  index.setTable(table->getName());
  index.setType(NdbDictionary::Index::OrderedIndex);
  index.setLogging(false);
  index.addColumnName("k");
  return dictionary->createIndex(index, *table) == 0 ? 0 : fail(error, dictionary->getNdbError());
}

// Keys from `low` to `high`; a bound without data is no bound. The rows are memory for the bounds.
NdbIndexScanOperation::IndexBound key_bound(const squall_ndb_table *table, squall_ndb_bytes low, bool low_inclusive, squall_ndb_bytes high,
                                            bool high_inclusive, char *low_row, char *high_row) {
  NdbIndexScanOperation::IndexBound bound{};
  if (low.data) {
    put(low_row + table->key_offset, low);
    bound.low_key = low_row;
    bound.low_key_count = 1;
    bound.low_inclusive = low_inclusive;
  }
  if (high.data) {
    put(high_row + table->key_offset, high);
    bound.high_key = high_row;
    bound.high_key_count = 1;
    bound.high_inclusive = high_inclusive;
  }
  return bound;
}

}  // namespace

EXPORT uint32_t squall_ndb_abi(void) { return SQUALL_NDB_ABI; }

EXPORT uint32_t squall_ndb_version(void) { return ndbGetOwnVersion(); }

EXPORT int squall_ndb_connect(const char *connectstring, const char *database, int32_t seconds, squall_ndb_link **link, squall_ndb_error *error) {
  begin_library();
  auto own = std::make_unique<squall_ndb_link>();
  own->connection = std::make_unique<Ndb_cluster_connection>(connectstring);
  own->connection->set_name("squalld");
  own->connection->set_timeout(seconds * 1000);
  own->database = database;
  if (own->connection->connect(0, 1, 0) != 0) {
    return fail_plain(error, own->connection->get_latest_error() ? own->connection->get_latest_error() : 4009, own->connection->get_latest_error_msg());
  }
  if (own->connection->wait_until_ready(seconds, 0) < 0) return fail_plain(error, 4009, "no data node answers");
  own->definer = std::make_unique<Ndb>(own->connection.get(), database);
  if (own->definer->init(PARALLEL_TRANSACTIONS) != 0) return fail(error, own->definer->getNdbError());
  // Ordered indexes cannot be made before the tables of their statistics.
  Ndb statistics(own->connection.get(), "mysql");
  if (statistics.init() != 0) return fail(error, statistics.getNdbError());
  NdbIndexStat index_statistics;
  if (index_statistics.check_systables(&statistics) != 0 && index_statistics.create_systables(&statistics) != 0 &&
      index_statistics.check_systables(&statistics) != 0) {
    return fail(error, index_statistics.getNdbError());
  }
  *link = own.release();
  return 0;
}

EXPORT void squall_ndb_disconnect(squall_ndb_link *link) {
  for (Ndb *ndb : link->pool) delete ndb;
  link->pool.clear();
  link->definer.reset();
  delete link;
}

EXPORT int32_t squall_ndb_ready_nodes(squall_ndb_link *link) { return link->connection->get_no_ready(); }

EXPORT uint32_t squall_ndb_own_node(squall_ndb_link *link) { return link->connection->node_id(); }

EXPORT int squall_ndb_table_create(squall_ndb_link *link, const char *name, uint32_t key_bytes, uint32_t row_bytes, squall_ndb_error *error) {
  std::lock_guard<std::mutex> guard(link->definer_mutex);
  NdbDictionary::Dictionary *dictionary = link->definer->getDictionary();
  NdbDictionary::Table table(name);
  NdbDictionary::Column key = bytes_column("k", key_bytes);
  key.setPrimaryKey(true);
  key.setNullable(false);
  table.addColumn(key);
  NdbDictionary::Column row = bytes_column("r", row_bytes);
  row.setNullable(false);
  table.addColumn(row);
  table.setReadBackupFlag(true);
  table.setLogging(true);
  if (dictionary->createTable(table) != 0) return fail(error, dictionary->getNdbError());
  squall_ndb_error first{};
  const NdbDictionary::Table *made = dictionary->getTable(name);
  int outcome = made ? create_index(dictionary, made, &first) : fail(&first, dictionary->getNdbError());
  if (outcome != 0) {
    dictionary->dropTable(name);
    *error = first;
  }
  return outcome;
}

EXPORT int squall_ndb_table_drop(squall_ndb_link *link, const char *name, squall_ndb_error *error) {
  std::lock_guard<std::mutex> guard(link->definer_mutex);
  NdbDictionary::Dictionary *dictionary = link->definer->getDictionary();
  for (int tries = 0;; tries++) {
    if (dictionary->dropTable(name) == 0) return 0;
    NdbError reason = dictionary->getNdbError();
    if (!is_outdated(reason.code) || tries == OUTDATED_TRIES) return fail(error, reason);
    dictionary->invalidateTable(name);
  }
}

EXPORT int squall_ndb_table_open(squall_ndb_link *link, const char *name, squall_ndb_table **result, squall_ndb_error *error) {
  std::lock_guard<std::mutex> guard(link->definer_mutex);
  NdbDictionary::Dictionary *dictionary = link->definer->getDictionary();
  auto own = std::make_unique<squall_ndb_table>();
  own->link = link;
  dictionary->invalidateTable(name);
  own->table = dictionary->getTable(name);
  if (!own->table) return fail(error, dictionary->getNdbError());
  NdbDictionary::RecordSpecification columns[2]{};
  if (!lay_out(own.get(), columns)) return fail_plain(error, 723, "the table was not made by this program");
  own->record = dictionary->createRecord(own->table, columns, 2, sizeof(columns[0]));
  if (!own->record) return fail(error, dictionary->getNdbError());
  dictionary->invalidateIndex(KEY_INDEX, name);
  own->key_index = dictionary->getIndex(KEY_INDEX, name);
  if (!own->key_index) return fail(error, dictionary->getNdbError());
  own->key_record = dictionary->createRecord(own->key_index, columns, 1, sizeof(columns[0]));
  if (!own->key_record) return fail(error, dictionary->getNdbError());
  *result = own.release();
  return 0;
}

EXPORT void squall_ndb_table_close(squall_ndb_table *table) {
  {
    std::lock_guard<std::mutex> guard(table->link->definer_mutex);
    NdbDictionary::Dictionary *dictionary = table->link->definer->getDictionary();
    dictionary->releaseRecord(table->record);
    dictionary->releaseRecord(table->key_record);
  }
  delete table;
}

EXPORT uint32_t squall_ndb_table_row_bytes(squall_ndb_table *table) { return table->row_bytes; }

EXPORT uint32_t squall_ndb_table_key_bytes(squall_ndb_table *table) { return table->key_bytes; }

// Scans each fragment for figures about itself instead of rows. `each` gets them fragment by fragment; `bound` makes it a scan of the ordered index.
template <size_t COUNT, typename Each>
static int scan_figures(squall_ndb_link *link, squall_ndb_table *table, const NdbIndexScanOperation::IndexBound *bound,
                        NdbOperation::GetValueSpec (&figures)[COUNT], Each each, squall_ndb_error *error) {
  Ndb *ndb = link->take(error);
  if (!ndb) return 1;
  int outcome = 1;
  if (NdbTransaction *transaction = ndb->startTransaction(table->table)) {
    NdbInterpretedCode code(table->table);
    NdbScanOperation::ScanOptions options{};
    using Options = NdbScanOperation::ScanOptions;
    options.optionsPresent = Options::SO_GETVALUE | Options::SO_INTERPRETED;
    options.extraGetValues = figures;
    options.numExtraGetValues = COUNT;
    options.interpretedCode = &code;
    std::vector<unsigned char> mask(NDB_MAX_ATTRIBUTES_IN_TABLE / 8, 0);
    NdbScanOperation *scan = nullptr;
    if (code.interpret_exit_last_row() == 0 && code.finalise() == 0) {
      constexpr auto mode = NdbOperation::LM_CommittedRead;
      if (bound) {
        scan = transaction->scanIndex(table->key_record, table->record, mode, mask.data(), bound, &options, sizeof(options));
      } else {
        scan = transaction->scanTable(table->record, mode, mask.data(), &options, sizeof(options));
      }
    }
    if (scan && transaction->execute(NdbTransaction::NoCommit, NdbOperation::AbortOnError, 1) == 0) {
      const char *row;
      int next;
      while ((next = scan->nextResult(&row, true, true)) == 0) each();
      outcome = next == 1 ? 0 : fail(error, scan->getNdbError());
    } else {
      fail(error, transaction->getNdbError());
    }
    ndb->closeTransaction(transaction);
  } else {
    fail(error, ndb->getNdbError());
  }
  link->give(ndb);
  return outcome;
}

static NdbOperation::GetValueSpec figure(const NdbDictionary::Column *column, void *into) {
  NdbOperation::GetValueSpec spec{};
  spec.column = column;
  spec.appStorage = into;
  return spec;
}

EXPORT int squall_ndb_table_size(squall_ndb_link *link, squall_ndb_table *table, uint64_t *rows, uint64_t *bytes, squall_ndb_error *error) {
  Uint64 count = 0, fixed = 0, varied = 0;
  NdbOperation::GetValueSpec figures[3] = {figure(NdbDictionary::Column::ROW_COUNT, &count), figure(NdbDictionary::Column::FRAGMENT_FIXED_MEMORY, &fixed),
                                           figure(NdbDictionary::Column::FRAGMENT_VARSIZED_MEMORY, &varied)};
  *rows = *bytes = 0;
  auto each = [&] {
    *rows += count;
    *bytes += fixed + varied;
  };
  return scan_figures(link, table, nullptr, figures, each, error);
}

EXPORT int squall_ndb_begin(squall_ndb_link *link, squall_ndb_table *table, squall_ndb_bytes key, squall_ndb_transaction **result,
                            squall_ndb_error *error) {
  Ndb *ndb = link->take(error);
  if (!ndb) return 1;
  NdbTransaction *transaction = nullptr;
  if (table && key.data && key.length <= table->key_bytes) {
    std::vector<char> row(table->length);
    std::vector<Uint64> scratch(table->key_bytes / 2 + 64);
    put(row.data() + table->key_offset, key);
    transaction = ndb->startTransaction(table->record, row.data(), scratch.data(), static_cast<Uint32>(scratch.size() * sizeof(Uint64)));
  } else {
    transaction = ndb->startTransaction();
  }
  if (!transaction) {
    fail(error, ndb->getNdbError(), true);
    link->give(ndb);
    return 1;
  }
  auto own = std::make_unique<squall_ndb_transaction>();
  own->link = link;
  own->ndb = ndb;
  own->transaction = transaction;
  *result = own.release();
  return 0;
}

EXPORT int squall_ndb_execute(squall_ndb_transaction *own, squall_ndb_operation *operations, uint32_t count, squall_ndb_error *error) {
  size_t needed = 0, widest = 0;
  for (uint32_t at = 0; at < count; at++) {
    if (is_too_long(operations[at].table, operations[at])) return fail_plain(error, 738, "a key or row is longer than its column");
    needed += operations[at].kind == SQUALL_NDB_READ ? operations[at].table->length : 0;
    widest = std::max<size_t>(widest, operations[at].table->length);
  }
  if (own->results_size < needed) {
    own->results.reset(new char[needed]);
    own->results_size = needed;
  }
  if (own->scratch.size() < widest) own->scratch.resize(widest);
  std::vector<const NdbOperation *> defined(count);
  char *result = own->results.get();
  for (uint32_t at = 0; at < count; at++) {
    defined[at] = define(own, operations[at], own->scratch.data(), result);
    if (!defined[at]) return fail(error, own->transaction->getNdbError(), true);
    if (operations[at].kind != SQUALL_NDB_READ) continue;
    operations[at].out.data = reinterpret_cast<const uint8_t *>(result);
    result += operations[at].table->length;
  }
  int executed = own->transaction->execute(NdbTransaction::NoCommit, NdbOperation::AO_IgnoreError, 1);
  NdbTransaction::CommitStatusType status = own->transaction->commitStatus();
  const NdbError &reason = own->transaction->getNdbError();
  if (status == NdbTransaction::Aborted || status == NdbTransaction::NeedAbort || (executed != 0 && reason.status == NdbError::UnknownResult)) {
    return fail(error, reason, true);
  }
  bool any = false;
  for (uint32_t at = 0; at < count; at++) {
    squall_ndb_operation &operation = operations[at];
    operation.code = defined[at]->getNdbError().code;
    // One that says more than "no row", "a row is there", "it is locked" fails them all, though it was to be ignored.
    if (!is_answer(operation.code)) return fail(error, defined[at]->getNdbError(), true);
    any = any || operation.code != 0;
    if (operation.kind != SQUALL_NDB_READ) continue;
    const char *row = reinterpret_cast<const char *>(operation.out.data);
    operation.out = operation.code == 0 ? get(row + operation.table->row_offset) : squall_ndb_bytes{nullptr, 0};
  }
  if (executed != 0 && !any) return fail(error, reason, true);
  if (own->scans == 0) own->transaction->releaseCompletedOpsAndQueries();
  return 0;
}

static void end(squall_ndb_transaction *own) {
  own->ndb->closeTransaction(own->transaction);
  own->link->give(own->ndb);
  delete own;
}

EXPORT int squall_ndb_commit(squall_ndb_transaction *own, squall_ndb_error *error) {
  int executed = own->transaction->execute(NdbTransaction::Commit, NdbOperation::AbortOnError, 1);
  int outcome = 0;
  if (executed != 0 || own->transaction->commitStatus() != NdbTransaction::Committed) {
    outcome = fail(error, own->transaction->getNdbError(), own->transaction->commitStatus() == NdbTransaction::Aborted);
  }
  end(own);
  return outcome;
}

EXPORT void squall_ndb_rollback(squall_ndb_transaction *own) { end(own); }

EXPORT int squall_ndb_scan_open(squall_ndb_transaction *own, squall_ndb_table *table, squall_ndb_bytes low, int32_t low_inclusive,
                                squall_ndb_bytes high, int32_t high_inclusive, int32_t descending, int32_t with_rows, uint32_t batch,
                                squall_ndb_scan **result, squall_ndb_error *error) {
  std::vector<char> low_row(table->length), high_row(table->length);
  NdbIndexScanOperation::IndexBound bound =
      key_bound(table, low, low_inclusive != 0, high, high_inclusive != 0, low_row.data(), high_row.data());
  std::vector<unsigned char> mask(NDB_MAX_ATTRIBUTES_IN_TABLE / 8, 0);
  set_bit(mask.data(), table->key_attribute);
  if (with_rows) set_bit(mask.data(), table->row_attribute);
  NdbScanOperation::ScanOptions options{};
  options.optionsPresent = NdbScanOperation::ScanOptions::SO_SCANFLAGS | NdbScanOperation::ScanOptions::SO_BATCH;
  options.scan_flags = NdbScanOperation::SF_OrderBy | (descending ? NdbScanOperation::SF_Descending : 0);
  options.batch = batch;
  const bool bounded = bound.low_key || bound.high_key;
  NdbIndexScanOperation *operation = own->transaction->scanIndex(table->key_record, table->record, NdbOperation::LM_CommittedRead, mask.data(),
                                                                 bounded ? &bound : nullptr, &options, sizeof(options));
  if (!operation) return fail(error, own->transaction->getNdbError());
  if (own->transaction->execute(NdbTransaction::NoCommit, NdbOperation::AO_IgnoreError, 1) != 0) {
    NdbError reason = own->transaction->getNdbError();
    operation->close();
    return fail(error, reason, own->transaction->commitStatus() == NdbTransaction::Aborted);
  }
  auto scan = std::make_unique<squall_ndb_scan>();
  scan->transaction = own;
  scan->table = table;
  scan->operation = operation;
  scan->with_rows = with_rows != 0;
  own->scans++;
  *result = scan.release();
  return 0;
}

EXPORT int squall_ndb_scan_next(squall_ndb_scan *scan, squall_ndb_row *rows, uint32_t room, uint32_t *count, squall_ndb_error *error) {
  *count = 0;
  scan->rows.clear();
  const squall_ndb_table *table = scan->table;
  std::vector<size_t> places;
  auto keep = [&](squall_ndb_bytes bytes) {
    size_t at = scan->rows.size();
    scan->rows.insert(scan->rows.end(), bytes.data, bytes.data + bytes.length);
    return squall_ndb_bytes{reinterpret_cast<const uint8_t *>(at), bytes.length};
  };
  while (!scan->is_over && *count < room) {
    const char *row = nullptr;
    // After the first row only those that are here already.
    int next = scan->operation->nextResult(&row, *count == 0, true);
    if (next == 2) break;
    if (next == 1) {
      scan->is_over = true;
      break;
    }
    if (next != 0) {
      NdbError reason = scan->operation->getNdbError();
      if (reason.code == 0) reason = scan->transaction->transaction->getNdbError();
      return fail(error, reason, scan->transaction->transaction->commitStatus() == NdbTransaction::Aborted);
    }
    squall_ndb_row &out = rows[(*count)++];
    out.key = keep(get(row + table->key_offset));
    out.row = keep(scan->with_rows ? get(row + table->row_offset) : squall_ndb_bytes{nullptr, 0});
  }
  // The buffer stays where it is now.
  auto settle = [&](squall_ndb_bytes &bytes) {
    bytes.data = reinterpret_cast<const uint8_t *>(scan->rows.data()) + reinterpret_cast<size_t>(bytes.data);
  };
  for (uint32_t at = 0; at < *count; at++) {
    settle(rows[at].key);
    settle(rows[at].row);
  }
  return 0;
}

EXPORT void squall_ndb_scan_close(squall_ndb_scan *scan) {
  scan->operation->close(true, true);
  scan->transaction->scans--;
  delete scan;
}

EXPORT int squall_ndb_range_size(squall_ndb_link *link, squall_ndb_table *table, squall_ndb_bytes low, squall_ndb_bytes high, uint64_t *rows,
                                 squall_ndb_error *error) {
  std::vector<char> low_row(table->length), high_row(table->length);
  NdbIndexScanOperation::IndexBound bound = key_bound(table, low, true, high, false, low_row.data(), high_row.data());
  // The index's rows, those in the range, those before and those after it.
  Uint32 in_fragment[4] = {0, 0, 0, 0};
  NdbOperation::GetValueSpec figures[1] = {figure(NdbDictionary::Column::RECORDS_IN_RANGE, in_fragment)};
  *rows = 0;
  return scan_figures(link, table, &bound, figures, [&] { *rows += in_fragment[1]; }, error);
}

struct squall_ndb_info {
  std::unique_ptr<NdbInfo> info;
  const NdbInfo::Table *table = nullptr;
  NdbInfoScanOperation *scan = nullptr;
  std::vector<const NdbInfoScanOperation::Value *> values;

  ~squall_ndb_info() {
    if (scan) info->releaseScanOperation(scan);
    if (table) info->closeTable(table);
  }
};

EXPORT int squall_ndb_info_open(squall_ndb_link *link, const char *table, const char *const *columns, uint32_t count, squall_ndb_info **result,
                                squall_ndb_error *error) {
  if (ndbGetOwnVersion() >> 8 != INFO_RELEASE) return fail_plain(error, 4003, "ndbinfo of this release is not known: 9.7 is");
  auto own = std::make_unique<squall_ndb_info>();
  own->info = std::make_unique<NdbInfo>(link->connection.get(), "ndbinfo/");
  if (!own->info->init()) return fail_plain(error, 4000, "ndbinfo cannot begin");
  int code = own->info->openTable((std::string("ndbinfo/") + table).c_str(), &own->table);
  if (code != 0) return fail_plain(error, code, "ndbinfo has no such table");
  code = own->info->createScanOperation(own->table, &own->scan, INFO_ROWS, 0);
  if (code == 0) code = own->scan->readTuples();
  if (code != 0) return fail_plain(error, code, "ndbinfo cannot be read");
  for (uint32_t at = 0; at < count; at++) own->values.push_back(own->scan->getValue(columns[at]));
  code = own->scan->execute();
  if (code != 0) return fail_plain(error, code, "ndbinfo cannot be read");
  *result = own.release();
  return 0;
}

EXPORT int squall_ndb_info_next(squall_ndb_info *info, squall_ndb_bytes *values, int32_t *is_row, squall_ndb_error *error) {
  int code = info->scan->nextResult();
  *is_row = code == 1 ? 1 : 0;
  if (code != 0 && code != 1) return fail_plain(error, code, "ndbinfo cannot be read on");
  for (size_t at = 0; code == 1 && at < info->values.size(); at++) {
    const NdbInfoScanOperation::Value *value = info->values[at];
    const bool is_there = value && value->is_defined;
    values[at] = {is_there ? reinterpret_cast<const uint8_t *>(value->data) : nullptr, is_there ? value->length : 0};
  }
  return 0;
}

EXPORT void squall_ndb_info_close(squall_ndb_info *info) { delete info; }

EXPORT int squall_ndb_nodes(const char *connectstring, squall_ndb_node *nodes, uint32_t room, uint32_t *count, squall_ndb_error *error) {
  *count = 0;
  begin_library();
  NdbMgmHandle handle = ndb_mgm_create_handle();
  if (!handle) return fail_plain(error, 4000, "no memory");
  ndb_mgm_set_timeout(handle, 5000);
  int outcome = 1;
  if (ndb_mgm_set_connectstring(handle, connectstring) != 0 || ndb_mgm_connect(handle, 0, 0, 0) != 0) {
    fail_plain(error, ndb_mgm_get_latest_error(handle), ndb_mgm_get_latest_error_msg(handle));
  } else if (ndb_mgm_cluster_state *state = ndb_mgm_get_status(handle)) {
    for (int at = 0; at < state->no_of_nodes && *count < room; at++) {
      const ndb_mgm_node_state &from = state->node_states[at];
      squall_ndb_node &node = nodes[(*count)++];
      node.id = from.node_id;
      node.type = from.node_type == NDB_MGM_NODE_TYPE_NDB ? 0 : from.node_type == NDB_MGM_NODE_TYPE_MGM ? 2 : 1;
      node.status = from.node_status;
      node.group = from.node_group;
      node.version = from.version;
      node.start_phase = from.start_phase;
      snprintf(node.address, sizeof(node.address), "%s", from.connect_address);
    }
    free(state);
    outcome = 0;
  } else {
    fail_plain(error, ndb_mgm_get_latest_error(handle), ndb_mgm_get_latest_error_msg(handle));
  }
  ndb_mgm_destroy_handle(&handle);
  return outcome;
}

// Management: the configuration of the cluster, and what its nodes are told to do.

namespace {

constexpr Uint32 SECTION_SYSTEM = 1000, SECTION_NODE = 2000, SECTION_CONNECTION = 3000;
constexpr Uint32 KEY_TYPE = 999;
constexpr int COMMAND_MILLISECONDS = 120000;
constexpr int WAIT_FOR_END = 2;

// A connection to a management server.
class Manager {
 public:
  Manager(const char *connectstring, int milliseconds, squall_ndb_error *error) {
    begin_library();
    handle_ = ndb_mgm_create_handle();
    if (!handle_) {
      fail_plain(error, 4000, "no memory");
      return;
    }
    ndb_mgm_set_timeout(handle_, static_cast<unsigned>(milliseconds));
    if (ndb_mgm_set_connectstring(handle_, connectstring) == 0 && ndb_mgm_connect(handle_, 0, 0, 0) == 0) {
      is_connected_ = true;
      return;
    }
    refuse(error);
  }
  Manager(const Manager &) = delete;
  Manager &operator=(const Manager &) = delete;
  ~Manager() {
    if (handle_) ndb_mgm_destroy_handle(&handle_);
  }
  bool is_connected() const { return is_connected_; }
  NdbMgmHandle handle() const { return handle_; }
  // Says why the last call failed.
  int refuse(squall_ndb_error *error) const {
    const std::string text = std::string(ndb_mgm_get_latest_error_msg(handle_)) + ": " + ndb_mgm_get_latest_error_desc(handle_);
    return fail_plain(error, ndb_mgm_get_latest_error(handle_), text.c_str());
  }

 private:
  NdbMgmHandle handle_ = nullptr;
  bool is_connected_ = false;
};

bool add_entry(ConfigObject &object, const squall_ndb_setting &setting) {
  switch (setting.form) {
    case ConfigSection::IntType:
      return object.put(setting.key, static_cast<Uint32>(setting.number));
    case ConfigSection::Int64Type:
      return object.put64(setting.key, setting.number);
    default:
      return object.put(setting.key, setting.text);
  }
}

}  // namespace

struct squall_ndb_config {
  ndb_mgm_configuration *from = nullptr;
  std::vector<squall_ndb_setting> settings;
  ~squall_ndb_config() {
    if (from) ndb_mgm_destroy_configuration(from);
  }
};

EXPORT int squall_ndb_config_read(const char *connectstring, squall_ndb_config **result, const squall_ndb_setting **settings, uint32_t *count,
                                  squall_ndb_error *error) {
  if (ndbGetOwnVersion() >> 8 != INFO_RELEASE) return fail_plain(error, 4003, "the configuration of this release is not known: 9.7 is");
  Manager manager(connectstring, COMMAND_MILLISECONDS, error);
  if (!manager.is_connected()) return 1;
  auto own = std::make_unique<squall_ndb_config>();
  own->from = ndb_mgm_get_configuration(manager.handle(), ndbGetOwnVersion());
  if (!own->from) return manager.refuse(error);
  const auto *object = reinterpret_cast<const ConfigObject *>(own->from);
  uint32_t sections = 0;
  for (Uint32 kind : {SECTION_SYSTEM, SECTION_NODE, SECTION_CONNECTION}) {
    for (Uint32 at = 0;; at++) {
      ConfigSection *section = object->openSection(kind, at);
      if (!section) break;
      ConfigSection::Entry entry{};
      const Uint32 type = object->get(section, KEY_TYPE, entry) ? entry.m_int : 0;
      for (Uint32 key = 0; key < KEY_TYPE; key++) {
        if (!object->get(section, key, entry)) continue;
        squall_ndb_setting setting{sections, kind, type, key, static_cast<uint32_t>(entry.m_type), 0, 0, nullptr};
        if (entry.m_type == ConfigSection::IntType) setting.number = entry.m_int;
        if (entry.m_type == ConfigSection::Int64Type) setting.number = entry.m_int64;
        if (entry.m_type == ConfigSection::StringType) setting.text = entry.m_string;
        own->settings.push_back(setting);
      }
      sections++;
    }
  }
  *settings = own->settings.data();
  *count = static_cast<uint32_t>(own->settings.size());
  *result = own.release();
  return 0;
}

EXPORT void squall_ndb_config_free(squall_ndb_config *config) { delete config; }

EXPORT int squall_ndb_config_write(const char *connectstring, const squall_ndb_setting *settings, uint32_t count, squall_ndb_error *error) {
  if (ndbGetOwnVersion() >> 8 != INFO_RELEASE) return fail_plain(error, 4003, "the configuration of this release is not known: 9.7 is");
  Manager manager(connectstring, COMMAND_MILLISECONDS, error);
  if (!manager.is_connected()) return 1;
  ConfigObject object;
  bool is_well = object.begin();
  for (uint32_t at = 0; is_well && at < count; at++) {
    if (at == 0 || settings[at].section != settings[at - 1].section) {
      if (at > 0) object.closeSection();
      is_well = object.createSection(settings[at].kind, settings[at].type);
    }
    is_well = is_well && add_entry(object, settings[at]);
  }
  object.closeSection();
  if (!is_well || !object.commitConfig(false)) return fail_plain(error, object.get_error_code(), "the configuration cannot be built");
  if (ndb_mgm_set_configuration(manager.handle(), reinterpret_cast<ndb_mgm_configuration *>(&object)) != 0) return manager.refuse(error);
  return 0;
}

EXPORT int squall_ndb_command(const char *connectstring, uint32_t command, const int32_t *nodes, uint32_t count, int32_t *result,
                              squall_ndb_error *error) {
  *result = 0;
  Manager manager(connectstring, COMMAND_MILLISECONDS, error);
  if (!manager.is_connected()) return 1;
  NdbMgmHandle handle = manager.handle();
  const int number = static_cast<int>(count);
  int disconnect = 0;
  ndb_mgm_reply reply{};
  bool is_well = false;
  switch (command) {
    case SQUALL_NDB_RESTART:
    case SQUALL_NDB_RESTART_INITIAL:
    case SQUALL_NDB_HOLD:
      is_well = ndb_mgm_restart4(handle, number, nodes, command == SQUALL_NDB_RESTART_INITIAL, command == SQUALL_NDB_HOLD, 0, 0, &disconnect) == number;
      break;
    case SQUALL_NDB_STOP:
      is_well = ndb_mgm_stop4(handle, number, nodes, 0, 0, &disconnect) == number;
      break;
    case SQUALL_NDB_START:
      is_well = ndb_mgm_start(handle, number, nodes) == number;
      break;
    case SQUALL_NDB_BACKUP: {
      unsigned backup = 0;
      is_well = ndb_mgm_start_backup(handle, WAIT_FOR_END, &backup, &reply) == 0;
      *result = static_cast<int32_t>(backup);
      break;
    }
    case SQUALL_NDB_GROUP: {
      std::vector<int> members(nodes, nodes + count);
      members.push_back(0);
      is_well = ndb_mgm_create_nodegroup(handle, members.data(), result, &reply) == 0;
      break;
    }
    case SQUALL_NDB_UNGROUP:
      is_well = count == 1 && ndb_mgm_drop_nodegroup(handle, nodes[0], &reply) == 0;
      break;
    default:
      return fail_plain(error, 4003, "no such command");
  }
  return is_well ? 0 : manager.refuse(error);
}

EXPORT int squall_ndb_table_names(squall_ndb_link *link, char *names, uint64_t room, uint64_t *length, squall_ndb_error *error) {
  std::lock_guard<std::mutex> guard(link->definer_mutex);
  NdbDictionary::Dictionary::List list;
  NdbDictionary::Dictionary *dictionary = link->definer->getDictionary();
  if (dictionary->listObjects(list, NdbDictionary::Object::UserTable) != 0) return fail(error, dictionary->getNdbError());
  *length = 0;
  for (unsigned at = 0; at < list.count; at++) {
    const auto &element = list.elements[at];
    if (link->database != element.database) continue;
    const uint64_t size = strlen(element.name) + 1;
    if (*length + size <= room) memcpy(names + *length, element.name, size);
    *length += size;
  }
  return 0;
}

// Between `beginSchemaTrans` and `endSchemaTrans`.
static int spread(NdbDictionary::Dictionary *dictionary, const NdbDictionary::Table *old, squall_ndb_error *error) {
  NdbDictionary::Table changed(*old);
  changed.setFragmentCount(0);
  changed.setFragmentData(nullptr, 0);
  if (dictionary->prepareHashMap(*old, changed) != 0) return fail(error, dictionary->getNdbError());
  NdbDictionary::HashMap before, after;
  if (dictionary->getHashMap(before, old) == 0 && dictionary->getHashMap(after, &changed) == 0 && before.equal(after)) return 0;
  return dictionary->alterTable(*old, changed) == 0 ? 0 : fail(error, dictionary->getNdbError());
}

EXPORT int squall_ndb_table_spread(squall_ndb_link *link, const char *name, squall_ndb_error *error) {
  // Of its own: this takes as long as copying the rows takes, and others define tables meanwhile.
  Ndb own(link->connection.get(), link->database.c_str());
  if (own.init() != 0) return fail(error, own.getNdbError());
  NdbDictionary::Dictionary *dictionary = own.getDictionary();
  dictionary->invalidateTable(name);
  const NdbDictionary::Table *old = dictionary->getTable(name);
  if (!old) return fail(error, dictionary->getNdbError());
  if (dictionary->beginSchemaTrans() != 0) return fail(error, dictionary->getNdbError());
  const int outcome = spread(dictionary, old, error);
  const auto flag = outcome == 0 ? 0 : NdbDictionary::Dictionary::SchemaTransAbort;
  if (dictionary->endSchemaTrans(flag) != 0 && outcome == 0) return fail(error, dictionary->getNdbError());
  dictionary->invalidateTable(name);
  return outcome;
}
