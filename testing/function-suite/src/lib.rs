//! Evaluates expressions of literals and function calls with the plugins alone: no binder, no plan. For tables of
//! expressions with the reference's answers.

mod evaluate;
mod parse;

pub use evaluate::{Answer, Evaluator, NOW_MICROS};
