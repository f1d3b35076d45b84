//! JavaScript in SQL.
