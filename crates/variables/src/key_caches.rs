//! Key caches with names of their own, `SET GLOBAL hot.key_buffer_size`: no engine here has keys that one could hold, so that they are what was said of
//! them and no memory. They are not kept over a restart, as in the reference.

use std::collections::BTreeMap;

use errors::{Condition, Diagnostics, ErrorCode, Level, Result};
use plugin_api::variable::{blocks, uint};
use sys::sync::Mutex;
use types::{DataType, Value};

use crate::{Definition, convert, expression_type, shown};

const NO_EFFECT: &str = "No effect; a key cache of another engine, which is not here";

/// What a cache has. Without a size there is none.
static PARTS: [Definition; 4] = [
    Definition::global("key_buffer_size", blocks(0, u64::MAX, 4096), "0", NO_EFFECT),
    Definition::global("key_cache_block_size", blocks(512, 16_384, 512), "1024", NO_EFFECT),
    Definition::global("key_cache_division_limit", uint(1, 100), "100", NO_EFFECT),
    Definition::global("key_cache_age_threshold", uint(100, u64::MAX), "300", NO_EFFECT),
];
/// The size that DEFAULT means.
const SIZE: u64 = 8_388_608;

/// A part of a cache, as `cache.part` names it.
#[derive(Clone, Debug)]
pub struct KeyCachePart {
    /// In lower case.
    cache: String,
    part: usize,
    written: String,
}

impl KeyCachePart {
    /// The part that a name means, if it is of this form.
    pub fn named(name: &str) -> Option<KeyCachePart> {
        let (cache, part) = name.split_once('.')?;
        let part = PARTS.iter().position(|known| known.name.eq_ignore_ascii_case(part))?;
        let (cache, written) = (cache.to_lowercase(), cache.to_owned());
        (cache != "default").then_some(KeyCachePart { cache, part, written })
    }

    /// The variable without the name of the cache.
    pub fn variable(&self) -> &'static str {
        PARTS[self.part].name
    }

    /// The value that SET stores, with its warnings; DEFAULT is `None`.
    ///
    /// # Errors
    /// 1232 for what is no integer.
    pub fn converted(&self, wanted: Option<&Value>, conditions: &mut Diagnostics) -> Result<Value> {
        let value = match wanted {
            Some(wanted) => {
                let converted = convert(&PARTS[self.part], wanted, &Value::Null)?;
                if converted.truncated {
                    let words: [&dyn std::fmt::Display; 2] = [&self.variable(), &shown(wanted)];
                    conditions.warn(ErrorCode::TRUNCATED_WRONG_VALUE, &words);
                }
                converted.value
            }
            None if self.part == 0 => Value::UInt(SIZE),
            None => self.default(),
        };
        conditions.push(self.warning());
        Ok(value)
    }

    fn default(&self) -> Value {
        crate::convert::default_value(&PARTS[self.part])
    }

    /// That such variables will go.
    fn warning(&self) -> Condition {
        let code = ErrorCode::WARN_DEPRECATED_SYNTAX;
        let message = format!(
            "{}.{} syntax is deprecated and will be removed in a future release",
            self.written,
            self.variable()
        );
        Condition::new(Level::Warning, code, code.sqlstate(), message)
    }
}

/// The type in expressions of a name of such a part.
pub fn key_cache_type(name: &str) -> Option<DataType> {
    KeyCachePart::named(name).map(|part| expression_type(&PARTS[part.part]))
}

/// All named caches.
#[derive(Debug, Default)]
pub struct KeyCaches(Mutex<BTreeMap<String, [Option<Value>; 4]>>);

impl KeyCaches {
    /// Whether something was said of the cache, so that it exists.
    pub fn has(&self, cache: &str) -> bool {
        cache.eq_ignore_ascii_case("default") || self.0.lock().contains_key(&cache.to_lowercase())
    }

    /// A part of a cache; the default of one that does not exist.
    pub fn get(&self, name: &str) -> Option<Value> {
        let part = KeyCachePart::named(name)?;
        let known = self.0.lock();
        let kept = known.get(&part.cache).and_then(|parts| parts[part.part].clone());
        Some(kept.unwrap_or_else(|| part.default()))
    }

    /// Sets a part.
    pub fn set(&self, part: &KeyCachePart, value: Value) {
        self.0.lock().entry(part.cache.clone()).or_default()[part.part] = Some(value);
    }
}
