//! Functions in WebAssembly.
