/* The C interface between Squall's plugin `ndb` and MySQL Cluster's client library. MIT licence, see LICENSE.
 *
 * A table here has a key `k` and a row `r`: byte strings, compared byte by byte. An ordered index covers `k`. The caller owns every buffer that it gives; results stay valid until the next call on the same transaction or scan.
 *
 * A transaction, with its scans, is used by one thread at a time. Every other function may be called by any thread. Functions that return int return 0 for success,
 * or 1 and fill `error`.
 */
#ifndef SQUALL_NDB_H
#define SQUALL_NDB_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Changes with every change of this file that a caller can notice. */
#define SQUALL_NDB_ABI 3

typedef struct squall_ndb_link squall_ndb_link;
typedef struct squall_ndb_table squall_ndb_table;
typedef struct squall_ndb_transaction squall_ndb_transaction;
typedef struct squall_ndb_scan squall_ndb_scan;
typedef struct squall_ndb_info squall_ndb_info;

typedef struct {
  int32_t code;           /* NDB's number */
  int32_t status;         /* 1 temporary, 2 permanent, 3 the result is unknown */
  int32_t classification; /* as NDB counts them */
  int32_t is_aborted;     /* the transaction is gone */
  char text[240];
} squall_ndb_error;

typedef struct {
  const uint8_t *data; /* NULL: the value is NULL */
  uint64_t length;
} squall_ndb_bytes;

enum { SQUALL_NDB_READ, SQUALL_NDB_INSERT, SQUALL_NDB_UPDATE, SQUALL_NDB_WRITE, SQUALL_NDB_DELETE };
enum { SQUALL_NDB_COMMITTED, SQUALL_NDB_SHARED, SQUALL_NDB_EXCLUSIVE };

typedef struct {
  uint32_t kind;
  uint32_t lock;    /* of a read */
  uint32_t no_wait; /* a read that meets a lock fails with 635 */
  int32_t code;     /* out: 0, or NDB's number */
  squall_ndb_table *table;
  squall_ndb_bytes key;
  squall_ndb_bytes row;
  squall_ndb_bytes out;          /* out: the row that was read */
} squall_ndb_operation;

typedef struct {
  squall_ndb_bytes key;
  squall_ndb_bytes row;
} squall_ndb_row;

typedef struct {
  int32_t id;
  int32_t type;   /* 0 data, 1 client, 2 management */
  int32_t status; /* as NDB counts them: 3 starting, 4 started */
  int32_t group;
  int32_t version;
  int32_t start_phase;
  char address[64];
} squall_ndb_node;

uint32_t squall_ndb_abi(void);
/* The release of the client library: major << 16 | minor << 8 | build. */
uint32_t squall_ndb_version(void);

/* Connects and waits until a data node is there, at most so many seconds. `database` is the NDB database of all tables. */
int squall_ndb_connect(const char *connectstring, const char *database, int32_t seconds, squall_ndb_link **link, squall_ndb_error *error);
/* Every transaction and table of the link must be closed before. */
void squall_ndb_disconnect(squall_ndb_link *link);
/* The number of data nodes that this link reaches. */
int32_t squall_ndb_ready_nodes(squall_ndb_link *link);
uint32_t squall_ndb_own_node(squall_ndb_link *link);

int squall_ndb_table_create(squall_ndb_link *link, const char *name, uint32_t key_bytes, uint32_t row_bytes, squall_ndb_error *error);
int squall_ndb_table_drop(squall_ndb_link *link, const char *name, squall_ndb_error *error);
int squall_ndb_table_open(squall_ndb_link *link, const char *name, squall_ndb_table **table, squall_ndb_error *error);
void squall_ndb_table_close(squall_ndb_table *table);
uint32_t squall_ndb_table_row_bytes(squall_ndb_table *table);
uint32_t squall_ndb_table_key_bytes(squall_ndb_table *table);
/* Rows, and bytes in one replica, of the committed table. */
int squall_ndb_table_size(squall_ndb_link *link, squall_ndb_table *table, uint64_t *rows, uint64_t *bytes, squall_ndb_error *error);

/* `key` of `table`, if given, decides which data node leads the transaction. */
int squall_ndb_begin(squall_ndb_link *link, squall_ndb_table *table, squall_ndb_bytes key, squall_ndb_transaction **transaction, squall_ndb_error *error);
/* Runs the operations in one round trip, in their order. Each has its own code afterwards. 1: the transaction is gone. */
int squall_ndb_execute(squall_ndb_transaction *transaction, squall_ndb_operation *operations, uint32_t count, squall_ndb_error *error);
/* Commits; the transaction is over in any case. */
int squall_ndb_commit(squall_ndb_transaction *transaction, squall_ndb_error *error);
void squall_ndb_rollback(squall_ndb_transaction *transaction);

/* A bound without data is no bound. Rows come in the order of their keys. */
int squall_ndb_scan_open(squall_ndb_transaction *transaction, squall_ndb_table *table, squall_ndb_bytes low, int32_t low_inclusive,
                         squall_ndb_bytes high, int32_t high_inclusive, int32_t descending, int32_t with_rows, uint32_t batch, squall_ndb_scan **scan,
                         squall_ndb_error *error);
/* Up to `room` rows; 0 rows: the end. */
int squall_ndb_scan_next(squall_ndb_scan *scan, squall_ndb_row *rows, uint32_t room, uint32_t *count, squall_ndb_error *error);
void squall_ndb_scan_close(squall_ndb_scan *scan);
int squall_ndb_range_size(squall_ndb_link *link, squall_ndb_table *table, squall_ndb_bytes low, squall_ndb_bytes high, uint64_t *rows,
                          squall_ndb_error *error);

/* Reads columns of a base table of ndbinfo, by name; values are text, or numbers of 4 or 8 bytes in this machine's order. A column that is not there is NULL in each row. */
int squall_ndb_info_open(squall_ndb_link *link, const char *table, const char *const *columns, uint32_t count, squall_ndb_info **info,
                         squall_ndb_error *error);
/* The next row, valid until the next call; `is_row` is 0 at the end. */
int squall_ndb_info_next(squall_ndb_info *info, squall_ndb_bytes *values, int32_t *is_row, squall_ndb_error *error);
void squall_ndb_info_close(squall_ndb_info *info);

/* The nodes as the management server sees them; returns how many through `count`. */
int squall_ndb_nodes(const char *connectstring, squall_ndb_node *nodes, uint32_t room, uint32_t *count, squall_ndb_error *error);

/* The configuration of the whole cluster, as its management server has it: values in sections. */
typedef struct {
  uint32_t section; /* counts sections, in their order */
  uint32_t kind;    /* 1000 of the system, 2000 of a node, 3000 of a connection */
  uint32_t type;    /* of a node: 0 data, 1 client, 2 management; of a connection: 0 TCP, 1 shared memory */
  uint32_t key;     /* as NDB counts parameters */
  uint32_t form;    /* 1 a number of 32 bits, 2 text, 4 a number of 64 bits */
  uint32_t unused;
  uint64_t number;
  const char *text;
} squall_ndb_setting;

typedef struct squall_ndb_config squall_ndb_config;

/* The settings are valid until `config` is freed. */
int squall_ndb_config_read(const char *connectstring, squall_ndb_config **config, const squall_ndb_setting **settings, uint32_t *count,
                           squall_ndb_error *error);
void squall_ndb_config_free(squall_ndb_config *config);
/* Replaces the configuration; refused when it was changed since these settings were read. */
int squall_ndb_config_write(const char *connectstring, const squall_ndb_setting *settings, uint32_t count, squall_ndb_error *error);

enum {
  SQUALL_NDB_RESTART,         /* of data nodes, orderly */
  SQUALL_NDB_RESTART_INITIAL, /* without what they have on disk */
  SQUALL_NDB_HOLD,            /* they end their work; their processes wait for a start */
  SQUALL_NDB_STOP,            /* their processes end */
  SQUALL_NDB_START,           /* of nodes that were held */
  SQUALL_NDB_BACKUP,          /* waits for the end; the result is its number */
  SQUALL_NDB_GROUP,           /* makes a node group of these nodes; the result is its number */
  SQUALL_NDB_UNGROUP          /* drops the group whose number is given in place of nodes */
};
int squall_ndb_command(const char *connectstring, uint32_t command, const int32_t *nodes, uint32_t count, int32_t *result, squall_ndb_error *error);

/* The names of the tables of the link's database, each with a zero byte; `length` is how many bytes that takes, also when there is no room. */
int squall_ndb_table_names(squall_ndb_link *link, char *names, uint64_t room, uint64_t *length, squall_ndb_error *error);
/* Spreads a table over all node groups, while others use it; one that is spread already stays as it is. */
int squall_ndb_table_spread(squall_ndb_link *link, const char *name, squall_ndb_error *error);

#ifdef __cplusplus
}
#endif
#endif
