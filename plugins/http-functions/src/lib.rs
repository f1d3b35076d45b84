//! HTTP requests from SQL.
