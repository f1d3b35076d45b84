//! The consistency of the plugins' declarations of functions: names, roles, and when a value changes.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use errors::Result;
use function_suite::{Evaluator, NOW_MICROS};
use plugin_api::{Arity, FunctionRole, Growth, Module, PartitionUse, SessionServices, Volatility};
use types::{
    AggregateRole, CollationId, DataType, OperatorCall, PartitionQuestion, TypeKind, Value,
    ZoneRules,
};

#[test]
fn each_name_is_declared_once() {
    let evaluator = Evaluator::default();
    let registry = evaluator.registry();
    let mut registered: BTreeMap<&str, usize> = BTreeMap::new();
    for items in registry.modules().iter().map(Module::items) {
        for (slot, name) in
            items.iter().filter(|(slot, _)| ["FUNCTION", "AGGREGATE"].contains(slot))
        {
            let name = match *slot {
                "FUNCTION" => registry.function(name).map(|function| function.name),
                _ => registry.aggregate(name).map(|function| function.name),
            };
            *registered.entry(name.expect("a registered function is found")).or_default() += 1;
        }
    }
    // ANY_VALUE is a function of a row and, where the grammar requires one, an aggregate.
    let twice: Vec<_> = registered.iter().filter(|(_, count)| **count > 1).collect();
    assert_eq!(twice, [(&"ANY_VALUE", &2)]);
    for (name, function) in registry.scalars() {
        // An alias that another function has, too, leads to one of them only.
        let own = std::iter::once(&function.name).chain(function.aliases);
        assert!(own.into_iter().any(|own| *own == name), "{name} leads to {}", function.name);
        for alias in function.aliases {
            let found = registry.function(alias).map(|found| found.name);
            assert_eq!(found, Some(function.name), "{alias} is a name of two functions");
        }
        assert_eq!(name, name.to_ascii_uppercase());
        assert!(function.arity.min <= function.arity.max, "{name}");
        assert!(!function.help.is_empty(), "{name}");
        if let Some((deprecated, _)) = function.deprecated {
            assert!(own_names(function).contains(deprecated), "{name}: {deprecated}");
        }
    }
}

fn own_names(function: &plugin_api::ScalarFunction) -> BTreeSet<&'static str> {
    std::iter::once(function.name).chain(function.aliases.iter().copied()).collect()
}

/// Every role. A function with another one fails the test, so that a new role is added here.
fn roles() -> Vec<FunctionRole> {
    use FunctionRole as R;
    use OperatorCall as O;
    use PartitionQuestion as Q;
    let operators = [
        O::If,
        O::NullIf,
        O::IfNull,
        O::Coalesce,
        O::IsNull,
        O::Modulo,
        O::AddDays,
        O::SubtractDays,
        O::FindInSet,
        O::NameConst,
        O::CharsetName,
        O::CollationName,
        O::Coercibility,
    ];
    let questions = [Q::Number, Q::Probe, Q::First, Q::Last, Q::Before];
    let mut roles: Vec<R> = operators.map(R::Operator).into();
    roles.extend(questions.map(R::Partition));
    roles.extend([
        R::Concat,
        R::RegexpLike,
        R::Extract,
        R::Locate,
        R::Substring,
        R::TrimBoth,
        R::TrimLeading,
        R::TrimTrailing,
        R::GetFormat,
        R::TimestampAdd,
        R::TimestampDiff,
        R::DateAdd,
        R::DateSubtract,
        R::Interval,
        R::Soundex,
        R::ConvertUsing,
        R::Char,
        R::CharUsing,
        R::WeightString,
        R::JsonMemberOf,
        R::JsonContains,
        R::JsonOverlaps,
        R::JsonExtract,
        R::JsonUnquote,
        R::JsonValue,
        R::JsonContainsPath,
        R::JsonTableColumn,
        R::Now,
        R::SequenceNext,
        R::SequenceLast,
        R::SequenceSet,
        R::SequenceRestored,
        R::DatetimeNumber,
        R::PadRight,
        R::PartitionSeconds,
        R::AnyValue,
        R::Week,
        R::UnixTimestamp,
        R::JsonDualityDocument,
        R::JsonObject,
    ]);
    roles
}

#[test]
fn each_role_is_one_function_s() {
    let evaluator = Evaluator::default();
    let registry = evaluator.registry();
    let mut players: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
    for (_, function) in registry.scalars() {
        if let Some(role) = function.traits.role {
            assert!(roles().contains(&role), "{role:?} is not among the roles of this test");
            players.entry(format!("{role:?}")).or_default().insert(function.name);
        }
    }
    for role in roles() {
        let players = players.remove(&format!("{role:?}")).unwrap_or_default();
        assert_eq!(players.len(), 1, "{role:?}: {players:?}");
        assert!(registry.function_of(role).is_some_and(|function| function.is(role)));
    }
    let aggregates = [
        (AggregateRole::Count, "COUNT"),
        (AggregateRole::Sum, "SUM"),
        (AggregateRole::Average, "AVG"),
        (AggregateRole::Minimum, "MIN"),
        (AggregateRole::Maximum, "MAX"),
        (AggregateRole::BitAnd, "BIT_AND"),
        (AggregateRole::BitOr, "BIT_OR"),
        (AggregateRole::BitXor, "BIT_XOR"),
        (AggregateRole::StddevPop, "STDDEV_POP"),
        (AggregateRole::StddevSamp, "STDDEV_SAMP"),
        (AggregateRole::VarPop, "VAR_POP"),
        (AggregateRole::VarSamp, "VAR_SAMP"),
        (AggregateRole::GroupConcat, "GROUP_CONCAT"),
        (AggregateRole::JsonArrayAgg, "JSON_ARRAYAGG"),
        (AggregateRole::JsonObjectAgg, "JSON_OBJECTAGG"),
        (AggregateRole::AnyValue, "ANY_VALUE"),
    ];
    for (role, name) in aggregates {
        assert_eq!(registry.aggregate_of(role).map(|found| found.name), Some(name), "{role:?}");
    }
}

/// A value that is stored in a table, or turned into a range of a column, may not depend on the session.
#[test]
fn partitions_depend_on_nothing_that_changes() {
    for (name, function) in Evaluator::default().registry().scalars() {
        let traits = function.traits;
        let is_immutable = traits.volatility == Volatility::Immutable;
        // UNIX_TIMESTAMP of a TIMESTAMP column: the compiler takes the time zone out of it.
        let may_partition = match traits.partition {
            PartitionUse::Refused => true,
            PartitionUse::Timestamp => function.is(FunctionRole::UnixTimestamp),
            PartitionUse::Any
            | PartitionUse::Date
            | PartitionUse::DateOnly
            | PartitionUse::Time
            | PartitionUse::ByUnit => is_immutable,
        };
        assert!(may_partition, "{name}");
        assert!(traits.growth == Growth::Unknown || is_immutable, "{name}");
    }
}

/// A session all of whose answers depend on one number.
struct OneNumber(u64);

impl SessionServices for OneNumber {
    fn connection_id(&self) -> u64 {
        self.0
    }
    fn user(&self) -> String {
        format!("u{}@localhost", self.0)
    }
    fn current_user(&self) -> String {
        format!("c{}@localhost", self.0)
    }
    fn current_role(&self) -> String {
        format!("r{}", self.0)
    }
    fn load_file(&self, _: &str, _: u64) -> Option<Vec<u8>> {
        Some(self.0.to_string().into_bytes())
    }
    fn database(&self) -> Option<String> {
        Some(format!("d{}", self.0))
    }
    fn last_insert_id(&self) -> u64 {
        self.0
    }
    fn set_last_insert_id(&mut self, _: u64) {}
    fn row_count(&self) -> i64 {
        self.0 as i64
    }
    fn found_rows(&self) -> u64 {
        self.0
    }
    fn user_variable(&self, _: &str) -> Option<(Value, DataType)> {
        Some((Value::UInt(self.0), DataType::bigint_unsigned()))
    }
    fn set_user_variable(&mut self, _: &str, _: Value, _: DataType) {}
    fn system_variable(&self, _: &str) -> Option<Value> {
        Some(Value::UInt(self.0))
    }
    fn random(&mut self) -> f64 {
        self.0 as f64 / 100.0
    }
    fn time_zone(&self, _: &str) -> Option<std::sync::Arc<dyn ZoneRules>> {
        let zone = types::FixedOffset::parse(if self.0 == 1 { "+01:00" } else { "+02:00" })?;
        Some(std::sync::Arc::new(zone))
    }
    fn sleep(&mut self, _: Duration) -> bool {
        true
    }
    fn check_cancelled(&self) -> Result<()> {
        Ok(())
    }
    fn get_user_lock(&mut self, _: &str, _: f64) -> Result<bool> {
        Ok(self.0 == 1)
    }
    fn release_user_lock(&mut self, _: &str) -> Option<bool> {
        Some(self.0 == 1)
    }
    fn release_all_user_locks(&mut self) -> u64 {
        self.0
    }
    fn user_lock_holder(&self, _: &str) -> Option<u64> {
        (self.0 == 1).then_some(1)
    }
    fn version(&self) -> &str {
        if self.0 == 1 { "one" } else { "two" }
    }
}

/// Lists of arguments to try, by how many a function takes.
fn calls(arity: Arity) -> Vec<Vec<(Value, DataType)>> {
    let text =
        |value: &str| (Value::text(value), DataType::varchar(40, CollationId::UTF8MB4_0900_AI_CI));
    let number = (Value::Int(3), DataType::bigint());
    let date = types::Date::new(2020, 2, 29).expect("a date").at_midnight();
    let datetime = (Value::DateTime(date), DataType::new(TypeKind::DateTime, 26, 6));
    let kinds =
        [number, text("abc"), text("2020-02-29"), text("10:11"), datetime, text("{\"a\": 1}")];
    let mut calls = Vec::new();
    for count in arity.min..=arity.max.min(arity.min + 1).min(4) {
        for first in &kinds {
            for rest in &kinds {
                let args = (0..count).map(|at| if at == 0 { first } else { rest });
                calls.push(args.cloned().collect());
            }
        }
    }
    calls
}

/// An immutable function gives the same value in another session at another time, a stable one in the same statement.
#[test]
fn values_change_as_declared() {
    let evaluator = Evaluator::default();
    let later = NOW_MICROS + 1_000_000 * 86_400 * 400;
    let mut wrong = BTreeSet::new();
    let mut tried = BTreeSet::new();
    for (name, function) in evaluator.registry().scalars() {
        for args in calls(function.arity) {
            let call = |now, number| {
                evaluator.call_in(name, &args, false, now, &mut OneNumber(number)).ok()
            };
            let first = call(NOW_MICROS, 1);
            let again = match function.traits.volatility {
                Volatility::Immutable => call(later, 2),
                Volatility::Stable => call(NOW_MICROS, 1),
                Volatility::Volatile => continue,
            };
            if first.as_ref().is_some_and(|value| !value.is_null()) {
                tried.insert(name);
            }
            if first != again {
                wrong.insert(name);
            }
        }
    }
    assert_eq!(wrong, BTreeSet::new());
    assert!(tried.len() > 200, "only {} functions gave a value", tried.len());
}
