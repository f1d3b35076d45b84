//! The diagnostics area of a statement: its conditions (notes, warnings, errors) and their counts.
//!
//! Stored conditions are bounded by `max_error_count`; the counts continue past that bound.

use std::fmt::Display;

use crate::error::fill_template;
use crate::{ConditionItems, Error, ErrorCode};

/// Severity of a condition, in the order `SHOW WARNINGS` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Level {
    /// Informational; suppressed by `sql_notes = OFF`.
    Note,
    /// Something was changed or looks wrong.
    Warning,
    /// The statement failed.
    Error,
}

impl Level {
    /// The text of the `Level` column of `SHOW WARNINGS`.
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Note => "Note",
            Level::Warning => "Warning",
            Level::Error => "Error",
        }
    }
}

/// One condition of the diagnostics area.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Condition {
    /// Severity.
    pub level: Level,
    /// Error number.
    pub code: ErrorCode,
    /// Five-byte SQLSTATE.
    pub sqlstate: [u8; 5],
    /// Finished text.
    pub message: String,
    /// Items of a condition that SIGNAL or RESIGNAL made; conditions of the server have those of their SQLSTATE.
    pub items: Option<Box<ConditionItems>>,
}

impl Condition {
    /// A condition of the server.
    pub fn new(level: Level, code: ErrorCode, sqlstate: [u8; 5], message: String) -> Condition {
        Condition { level, code, sqlstate, message, items: None }
    }

    /// Its items, or those of its SQLSTATE.
    pub fn items(&self) -> ConditionItems {
        match &self.items {
            Some(items) => (**items).clone(),
            None => ConditionItems::of_server(self.sqlstate),
        }
    }
}

/// The default of `max_error_count`.
pub const MAX_ERROR_COUNT_DEFAULT: u32 = 1024;

/// Conditions raised by a statement, bounded, with counts per level.
#[derive(Clone, Debug)]
pub struct Diagnostics {
    conditions: Vec<Condition>,
    max_error_count: u32,
    notes_enabled: bool,
    counts: [u32; 3],
}

impl Default for Diagnostics {
    fn default() -> Diagnostics {
        Diagnostics::new(MAX_ERROR_COUNT_DEFAULT)
    }
}

impl Diagnostics {
    /// An empty area that stores at most `max_error_count` conditions.
    pub fn new(max_error_count: u32) -> Diagnostics {
        Diagnostics { conditions: Vec::new(), max_error_count, notes_enabled: true, counts: [0; 3] }
    }

    /// How many conditions it stores.
    pub fn max_error_count(&self) -> u32 {
        self.max_error_count
    }

    /// Changes the bound; conditions already stored are kept.
    pub fn set_max_error_count(&mut self, max_error_count: u32) {
        self.max_error_count = max_error_count;
    }

    /// Follows `sql_notes`: when off, notes are neither stored nor counted.
    pub fn set_notes_enabled(&mut self, notes_enabled: bool) {
        self.notes_enabled = notes_enabled;
    }

    /// Clears everything, at the start of a statement that does not read the area.
    pub fn clear(&mut self) {
        self.conditions.clear();
        self.counts = [0; 3];
    }

    /// Whether further conditions are only counted.
    pub fn is_full(&self) -> bool {
        self.conditions.len() >= self.max_error_count as usize
    }

    /// Adds a finished condition.
    pub fn push(&mut self, condition: Condition) {
        if condition.level == Level::Note && !self.notes_enabled {
            return;
        }
        let count = &mut self.counts[condition.level as usize];
        *count = count.saturating_add(1);
        if !self.is_full() {
            self.conditions.push(condition);
        }
    }

    /// Adds a condition with the catalogue's wording. No text is built once the area is full.
    pub fn raise(&mut self, level: Level, code: ErrorCode, args: &[&dyn Display]) {
        let message = if self.is_full() { String::new() } else { fill_template(code, args) };
        self.push(Condition::new(level, code, code.sqlstate(), message));
    }

    /// Adds a warning with the catalogue's wording.
    pub fn warn(&mut self, code: ErrorCode, args: &[&dyn Display]) {
        self.raise(Level::Warning, code, args);
    }

    /// Adds a note with the catalogue's wording.
    pub fn note(&mut self, code: ErrorCode, args: &[&dyn Display]) {
        self.raise(Level::Note, code, args);
    }

    /// Adds `error` at `level`: as the error of a failed statement, or downgraded to a warning.
    pub fn push_error(&mut self, level: Level, error: &Error) {
        self.push(Condition {
            level,
            code: error.code(),
            sqlstate: error.sqlstate(),
            message: if self.is_full() { String::new() } else { error.message().to_owned() },
            items: error.items().cloned().map(Box::new),
        });
    }

    /// Forgets the conditions after the first `kept` ones.
    pub fn forget_after(&mut self, kept: usize) {
        for condition in self.conditions.drain(kept.min(self.conditions.len())..) {
            let count = &mut self.counts[condition.level as usize];
            *count = count.saturating_sub(1);
        }
    }

    /// Moves the conditions of `other` to the end of this area.
    pub fn append(&mut self, other: Diagnostics) {
        for (count, more) in self.counts.iter_mut().zip(other.counts) {
            *count = count.saturating_add(more);
        }
        let room = (self.max_error_count as usize).saturating_sub(self.conditions.len());
        self.conditions.extend(other.conditions.into_iter().take(room));
    }

    /// Stored conditions in order of raising.
    pub fn conditions(&self) -> &[Condition] {
        &self.conditions
    }

    /// Conditions raised at `level`, stored or not.
    pub fn count(&self, level: Level) -> u32 {
        self.counts[level as usize]
    }

    /// `@@warning_count`: all conditions raised.
    pub fn warning_count(&self) -> u32 {
        self.counts.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// `@@error_count`.
    pub fn error_count(&self) -> u32 {
        self.count(Level::Error)
    }

    /// The count as sent in OK and EOF packets.
    pub fn warning_count_on_wire(&self) -> u16 {
        u16::try_from(self.warning_count()).unwrap_or(u16::MAX)
    }

    /// Whether no condition was raised.
    pub fn is_empty(&self) -> bool {
        self.warning_count() == 0
    }
}
