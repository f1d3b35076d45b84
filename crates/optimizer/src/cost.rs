//! Every constant with which the optimizer weighs one plan against another, with its origin.
//!
//! Three origins. *Reference*: a figure that MySQL 9.7 shows in EXPLAIN's column `filtered`, or documents. *Unit*: one by definition.
//! *Set*: chosen relative to [`ROW_COST`] so that the plans of `tests/plans` come out as a person would choose them; not measured. After a
//! change, run these plans.

// --- reading a table

/// Finding the start of a range. Set.
pub(crate) const DESCENT_COST: f64 = 2.0;
/// Ranges of a spatial index that a search reads. Set: more of small boxes on the borders of large cells, fewer of points.
pub(crate) const CELL_RANGES: f64 = 16.0;
/// A row of the clustered index. Unit.
pub(crate) const ROW_COST: f64 = 1.0;
/// A row found through another index. Set.
pub(crate) const LOOKUP_COST: f64 = 2.0;
/// The same for all rows of a table, which are scattered. Set.
pub(crate) const SCATTERED_COST: f64 = 6.0;
/// A row read from an index's entry alone. Set: many entries fit a page.
pub(crate) const ENTRY_COST: f64 = 0.4;
/// Bytes of an entry that cost as much as the entry itself. Set.
pub(crate) const ENTRY_BYTES: f64 = 1000.0;
/// An entry costs at most this share of a row, so that of two equal accesses the one through the shorter entries wins. Set.
pub(crate) const ENTRY_COST_MAX: f64 = ROW_COST * 0.9;
/// Makes a full scan lose against a forced index. Set: larger than the ratio of any two costs that matter.
pub(crate) const FORCED: f64 = 1e6;
/// Ranges that are expected to hold a smaller share of the rows are read without measuring them first. Set.
pub(crate) const LOOK_SHARE_MIN: f64 = 0.02;
/// The same in a table of fewer rows. Set.
pub(crate) const LOOK_ROWS_MIN: f64 = 100.0;

/// Of more ranges than this no rows are counted while planning. Reference: `eq_range_index_dive_limit`.
pub(crate) const MEASURED_RANGES_MAX: usize = 200;

/// Entries that are read of each group where a scan skips the others: as many as it fetches at once. Set.
pub(crate) const FIRSTS_ROWS: f64 = 32.0;

// --- sorting and grouping

/// Sorting a row, for each doubling of their number. Set.
pub(crate) const SORT_COST: f64 = 0.2;
/// Finding a row's group when equal rows are not adjacent. Set.
pub(crate) const GROUP_COST: f64 = 0.8;
/// An order that comes from an index may cost the first table of a join this many times as much as its cheapest access. Set.
pub(crate) const ORDER_COST_FACTOR: f64 = 2.0;
/// And this much in addition, which matters for small tables. Set.
pub(crate) const ORDER_COST_EXTRA: f64 = 10.0;

/// A join that stops after the first rows must be expected to be this many times as cheap as one of all rows. Set: a condition that few
/// rows satisfy makes it read on.
pub(crate) const SHORT_ORDER_GAIN: f64 = 2.0;

// --- joining

/// Putting a row into a hash table. Set.
pub(crate) const BUILD_COST: f64 = 1.0;
/// Looking a row up in one. Set: half of the insertion.
pub(crate) const PROBE_COST: f64 = 0.5;
/// Reading a row again from memory. Set.
pub(crate) const REREAD_COST: f64 = 0.3;
/// Passing on a joined row. Set: small, so that of two orders the one with fewer rows in between wins.
pub(crate) const JOINED_ROW_COST: f64 = 0.1;
/// A join is never expected to return fewer rows, so that costs after it still count. Set.
pub(crate) const JOINED_ROWS_MIN: f64 = 0.001;
/// Prices are remembered for more outer rows than this: for one row they are computed again. Set.
pub(crate) const REMEMBERED_ROWS_MIN: f64 = 1.5;
/// Distinct values of a join's column are never expected to be fewer. Set: the inverse of [`EQUAL_SHARE`].
pub(crate) const JOIN_DISTINCT_MIN: f64 = 10.0;
/// Share of the rows without a partner in an anti join. Set: nothing is known.
pub(crate) const ANTI_SHARE: f64 = 0.5;

// --- shares of rows that predicates keep, without statistics

/// `=`, `IS NULL`, and each value of a list. Reference: 10.00.
pub(crate) const EQUAL_SHARE: f64 = 0.1;
/// `<>`, `IS NOT NULL`. Reference: 90.00.
pub(crate) const NOT_EQUAL_SHARE: f64 = 0.9;
/// `<`, `>` and a range with one end. Reference: 33.33.
pub(crate) const HALF_OPEN_SHARE: f64 = 0.3333;
/// BETWEEN, LIKE, and a range with two ends. Reference: 11.11.
pub(crate) const BETWEEN_SHARE: f64 = 0.1111;
/// NOT BETWEEN, NOT LIKE. Reference: 88.89.
pub(crate) const NOT_BETWEEN_SHARE: f64 = 0.8889;
/// A list keeps no more, however long it is. Reference: 50.00.
pub(crate) const LIST_SHARE_MAX: f64 = 0.5;
/// Any other predicate. Set: nothing is known.
pub(crate) const UNKNOWN_SHARE: f64 = 0.5;
/// One of several OR-ed ranges with two ends. Set: listed ranges are usually small.
pub(crate) const UNION_PIECE_SHARE: f64 = 0.02;
/// Geometries whose boxes meet that of another. Set: what is searched is usually small; more than [`LOOK_SHARE_MIN`], as it may be everything.
pub(crate) const MEETING_SHARE: f64 = 0.03;
/// MATCH. Set.
pub(crate) const MATCH_SHARE: f64 = 0.01;

// --- numbers of rows

/// Rows of a relation without statistics: VALUES, a JSON document, a CTE that is not planned yet. Set.
pub(crate) const UNKNOWN_ROWS: f64 = 100.0;
/// Rows of an information table. Set.
pub(crate) const INFORMATION_ROWS: f64 = 1000.0;
/// The same where a column is compared with a known value. Set.
pub(crate) const INFORMATION_ROWS_FOUND: f64 = 10.0;
/// Times that the step of a recursive CTE is expected to run. Set.
pub(crate) const RECURSIONS: f64 = 10.0;
/// Groups among rows. Set.
pub(crate) const GROUPS_SHARE: f64 = 0.1;
/// Distinct rows among rows. Set.
pub(crate) const DISTINCT_SHARE: f64 = 0.5;
/// A histogram's share is never taken to be smaller: rows may have been added since it was made. Reference: 0.10.
pub(crate) const HISTOGRAM_SHARE_MIN: f64 = 0.001;
/// Rows that a LIMIT with a parameter requests: most clients page in small steps. Set.
pub(crate) const PARAMETER_LIMIT: f64 = 20.0;
/// At most this many distinct rows are compared in memory, so that they come in the order of an index. Set.
pub(crate) const ORDERED_DISTINCT_ROWS_MAX: f64 = 1000.0;
