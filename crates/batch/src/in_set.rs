//! IN with a long list of constants: looked up instead of compared one by one.

use std::rc::Rc;

use charset::Collation;
use hashbrown::HashSet;
use types::ComparisonKind;

use crate::Fit;
use crate::column::{Column, Data};
use crate::env::Env;
use crate::expr::{BatchExpr, FALSE, Operand, TRUE, UNKNOWN};

/// Shorter lists are compared.
const LIST_MIN: usize = 6;

type Set<K> = HashSet<K, foldhash::fast::FixedState>;

/// The values of a list.
enum Values {
    Numbers(Set<i128>),
    /// Weights of texts.
    Texts(Set<Box<[u8]>>, &'static Collation),
}

/// A list that was prepared for look-ups.
pub(crate) struct InSet {
    values: Values,
    has_null: bool,
}

fn number(column: &Column, row: usize) -> Option<i128> {
    match &column.data {
        Data::Int(values) => Some(i128::from(values[row])),
        Data::UInt(values) => Some(i128::from(values[row])),
        _ => None,
    }
}

impl InSet {
    /// `None`: the items are compared.
    fn new(items: &[&Column], kind: ComparisonKind) -> Option<InSet> {
        let given = items.iter().filter(|item| !item.is_null(0));
        let has_null = items.iter().any(|item| item.is_null(0));
        let values = match kind {
            ComparisonKind::Integer => {
                Values::Numbers(given.map(|item| number(item, 0)).collect::<Option<_>>()?)
            }
            ComparisonKind::String(collation) => {
                let collation = charset::collation_or_binary(collation);
                let weights = given.map(|item| match &item.data {
                    Data::Texts(texts) => {
                        let mut key = Vec::new();
                        collation.write_key(texts.get(0), &mut key);
                        Some(key.into_boxed_slice())
                    }
                    _ => None,
                });
                Values::Texts(weights.collect::<Option<_>>()?, collation)
            }
            _ => return None,
        };
        Some(InSet { values, has_null })
    }

    /// Whether each row's value is one of them; `None` where the values are of another kind.
    fn contains(&self, column: &Column, rows: impl Iterator<Item = usize>) -> Option<Vec<u8>> {
        let missing = if self.has_null { UNKNOWN } else { FALSE };
        let truth = |found: bool| if found { TRUE } else { missing };
        match (&self.values, &column.data) {
            (Values::Numbers(set), Data::Int(_) | Data::UInt(_)) => {
                let is_in = |row| number(column, row).is_some_and(|number| set.contains(&number));
                Some(rows.map(|row| truth(is_in(row))).collect())
            }
            (Values::Texts(set, collation), Data::Texts(texts)) => {
                let mut key = Vec::new();
                let is_in = |row| {
                    key.clear();
                    collation.write_key(texts.get(row), &mut key);
                    set.contains(key.as_slice())
                };
                Some(rows.map(is_in).map(truth).collect())
            }
            _ => None,
        }
    }
}

/// `operand IN (list)` by look-ups; `None` where they gain nothing or may give another result.
pub(super) fn in_set(
    operand: &Operand<'_>,
    list: &[BatchExpr],
    kind: ComparisonKind,
    negated: bool,
    rows: usize,
    env: &Env<'_>,
) -> Fit<Option<Vec<u8>>> {
    let Some(BatchExpr::Constant(first)) = list.first() else { return Ok(None) };
    if list.len() < LIST_MIN {
        return Ok(None);
    }
    let mut sets = env.sets.borrow_mut();
    let set = sets.entry(*first).or_insert_with(|| {
        let constant = |item: &BatchExpr| match item {
            BatchExpr::Constant(index) => env.constants.get(*index),
            _ => None,
        };
        let items = list.iter().map(constant).collect::<Option<Vec<_>>>()?;
        InSet::new(&items, kind).map(Rc::new)
    });
    let Some(set) = set.clone() else { return Ok(None) };
    drop(sets);
    let (source, step) = (operand.source(), operand.step());
    let Some(mut truths) = set.contains(source, (0..rows).map(|row| row * step)) else {
        return Ok(None);
    };
    for (row, truth) in truths.iter_mut().enumerate() {
        *truth = match *truth {
            _ if source.is_null(row * step) => UNKNOWN,
            TRUE if negated => FALSE,
            FALSE if negated => TRUE,
            other => other,
        };
    }
    Ok(Some(truths))
}
