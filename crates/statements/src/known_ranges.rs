//! Ranges of an index before a statement runs, for the optimizer to ask the engine how many rows they hold.
//!
//! They may hold a key more or less than those that are read, where an end is rounded.

use batch::NoSession;
use engine_api::{KeyBound, KeyRange};
use errors::Diagnostics;
use plan::{Expr, IndexKeySource, RangeBound, RangeSpec};
use plugin_api::{BindContext, FunctionContext, NullRule, Registry, Repeats};
use rows::arguments::{arg_infos, trimmed};
use rows::convert::{self, KeyFit};
use types::key::encode_part;
use types::{DateTime, Value, ZoneRules};

/// What values depend on.
pub struct Known<'a> {
    /// Of parameters; those that are not known yet are left out.
    pub parameters: &'a [Value],
    /// Functions.
    pub registry: &'a Registry,
    /// The session, as functions are bound in it.
    pub bind: &'a BindContext,
    /// Its time zone.
    pub time_zone: &'a dyn ZoneRules,
    /// The start of the statement, microseconds since 1970 UTC.
    pub now_micros: i64,
    /// The same in the session's time zone.
    pub now: DateTime,
}

impl Known<'_> {
    /// The ranges with values; `None` when a value is known only while the statement runs.
    pub fn ranges(&self, specs: &[RangeSpec]) -> Option<Vec<KeyRange>> {
        let mut diagnostics = Diagnostics::new(0);
        let mut session = NoSession;
        let mut function = FunctionContext {
            sql_mode: self.bind.sql_mode,
            time_zone: self.time_zone,
            now_micros: self.now_micros,
            now: self.now,
            div_precision_increment: self.bind.div_precision_increment,
            max_allowed_packet: self.bind.max_allowed_packet,
            diagnostics: &mut diagnostics,
            session: &mut session,
        };
        let mut ranges = Vec::with_capacity(specs.len());
        for spec in specs {
            ranges.extend(self.range(spec, &mut function)?);
        }
        Some(ranges)
    }

    /// Nothing inside: a range that no row is in.
    fn range(
        &self,
        spec: &RangeSpec,
        function: &mut FunctionContext<'_>,
    ) -> Option<Option<KeyRange>> {
        let mut prefix = Vec::new();
        for part in &spec.equal {
            if !self.append(part, function, &mut prefix)? {
                return Some(None);
            }
        }
        let Some(part) = spec.lower.as_ref().or(spec.upper.as_ref()).map(|bound| &bound.key) else {
            return Some(Some(KeyRange::prefix(prefix)));
        };
        let (mut lower, mut upper) = (prefix.clone(), prefix.clone());
        for (bound, key) in [(&spec.lower, &mut lower), (&spec.upper, &mut upper)] {
            match bound {
                Some(bound) if !self.append(&bound.key, function, key)? => return Some(None),
                Some(_) => {}
                // NULL is in no range.
                None if part.ty.nullable => key.push(not_null_tag(part.descending)),
                None => {}
            }
        }
        debug_assert!(lower.starts_with(&prefix) && upper.starts_with(&prefix));
        let end = |bound: &Option<RangeBound>, key: Vec<u8>| match bound {
            _ if key.is_empty() => KeyBound::Unbounded,
            Some(bound) if !bound.inclusive => KeyBound::Excluded(key),
            Some(_) | None => KeyBound::Included(key),
        };
        let (lower, upper) = (end(&spec.lower, lower), end(&spec.upper, upper));
        Some(Some(match part.descending {
            true => KeyRange { lower: upper, upper: lower },
            false => KeyRange { lower, upper },
        }))
    }

    /// Appends a part of a key; false when no row can have it.
    fn append(
        &self,
        part: &IndexKeySource,
        function: &mut FunctionContext<'_>,
        key: &mut Vec<u8>,
    ) -> Option<bool> {
        let value = self.value(&part.value, function)?;
        if value.is_null() {
            if !part.null_safe || !part.ty.nullable {
                return Some(false);
            }
            encode_part(&Value::Null, &part.ty, part.prefix_length, part.descending, key);
            return Some(true);
        }
        let from = part.value.ty();
        let is_utc = matches!(&part.value, Expr::Cast { kind: plan::CastKind::TimestampToUtc, .. });
        let fitted = convert::to_key(value, &from, &part.ty, is_utc, function).ok()?;
        let (KeyFit::Exact(value) | KeyFit::Rounded(value, _)) = fitted;
        if value.is_null() {
            return Some(false);
        }
        encode_part(&value, &part.ty, part.prefix_length, part.descending, key);
        Some(true)
    }

    fn value(&self, expr: &Expr, function: &mut FunctionContext<'_>) -> Option<Value> {
        if let Expr::Literal { value, .. } = expr {
            return Some(value.clone());
        }
        if let Expr::Parameter { index, .. } = expr {
            return self.parameters.get(*index as usize).cloned();
        }
        if let Expr::Collate { operand, .. } = expr {
            return self.value(operand, function);
        }
        if let Expr::Cast { operand, kind, ty } = expr {
            let value = self.value(operand, function)?;
            return convert::cast(value, &operand.ty(), ty, *kind, function).ok();
        }
        let Expr::Function { function: called, args, .. } = expr else { return None };
        if called.is_volatile() {
            return None;
        }
        let bound = self.registry.function(called.name)?.bind(self.bind, &arg_infos(args)).ok()?;
        if bound.statements.is_some() || !matches!(bound.repeats, Repeats::No) {
            return None;
        }
        let mut values = Vec::with_capacity(args.len());
        for (at, arg) in args.iter().enumerate() {
            let (value, ty) = (self.value(arg, function)?, arg.ty());
            let coercion = trimmed(bound.coercion(at).clone(), &ty);
            let mut context = convert::context(function);
            values.push(convert::coerce_in(value, &ty, &coercion, &mut context).ok()?);
        }
        if bound.nulls == NullRule::Propagate && values.iter().any(Value::is_null) {
            return Some(Value::Null);
        }
        (bound.kernel)(function, &values).ok()
    }
}

/// The tag before a value that is not NULL, see `types::key`.
fn not_null_tag(descending: bool) -> u8 {
    const NOT_NULL: u8 = 1;
    if descending { !NOT_NULL } else { NOT_NULL }
}
