//! SQL, documents and tables over HTTP.
