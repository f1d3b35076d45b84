//! Subqueries inside expressions: run once and remembered, or run again for each set of outer values.

use std::rc::Rc;

use errors::{Error, ErrorCode, Result};
use hashbrown::HashSet;
use plan::{BinaryOp, QuantifiedOp};
use rows::numbers::answers;
use rows::value_key::{Domain, Side};
use types::Value;

use super::predicate::order_values;
use super::{Code, truth_value};
use crate::kept_rows::Rows;
use crate::operator::Operator;
use crate::run::Run;

/// The use of a subquery.
pub(crate) enum Question {
    Scalar {
        column: usize,
    },
    Exists,
    /// With the left side and how it is compared with each output.
    In {
        left: Vec<(Code, Domain)>,
    },
    Quantified {
        left: Vec<(Code, Domain)>,
        op: BinaryOp,
        all: bool,
    },
}

/// A subquery as an operand.
pub(crate) struct SubqueryCode {
    pub(crate) id: usize,
    pub(crate) question: Question,
    pub(crate) negated: bool,
}

impl Question {
    pub(crate) fn is_all(op: QuantifiedOp) -> bool {
        op == QuantifiedOp::All
    }
}

/// The remembered result of a subquery during a run.
#[derive(Default)]
pub(crate) struct SubqueryState<'r> {
    operator: Option<Box<dyn Operator<'r> + 'r>>,
    /// Result for `outer_values`.
    answer: Option<Answer>,
    outer_values: Vec<Value>,
}

#[derive(Clone)]
enum Answer {
    Exists(bool),
    /// All rows.
    Rows(Rc<Rows>),
    /// All rows as keys; whether one of them has a NULL.
    Set(Rc<KeySet>, bool),
}

type KeySet = HashSet<Box<[u8]>, foldhash::fast::FixedState>;

impl<'r> SubqueryState<'r> {
    /// The operator, to be closed when the statement ends.
    pub(crate) fn take_operator(&mut self) -> Option<Box<dyn Operator<'r> + 'r>> {
        self.operator.take()
    }
}

impl SubqueryCode {
    /// The value of the expression.
    pub(crate) fn eval(&self, run: &mut Run<'_>) -> Result<Value> {
        match &self.question {
            Question::Scalar { column } => self.scalar(*column, run),
            Question::Exists => {
                let exists = self.exists(run)?;
                Ok(Value::bool(exists != self.negated))
            }
            Question::In { left } => {
                let answer = self.is_in(left, run)?;
                Ok(truth_value(answer.map(|found| found != self.negated)))
            }
            Question::Quantified { left, op, all } => {
                let answer = self.quantified(left, *op, *all, run)?;
                Ok(truth_value(answer.map(|holds| holds != self.negated)))
            }
        }
    }

    /// Forgets results for other outer values. Returns whether a result remains valid.
    fn refresh(&self, run: &mut Run<'_>) -> bool {
        let outer = &run.body.subqueries[self.id].outer;
        let state = &mut run.memo.subqueries[self.id];
        let same = state.answer.is_some()
            && outer.iter().zip(&state.outer_values).all(|(r, value)| run.regs[*r] == *value);
        if !same {
            if let Some(Answer::Rows(rows)) = state.answer.take() {
                run.memory.release(rows.bytes());
            }
            state.outer_values.clear();
            state.outer_values.extend(outer.iter().map(|register| run.regs[*register].clone()));
        }
        same
    }

    /// Runs the subquery and gives each row's outputs to `each` until it returns false.
    fn rows(
        &self,
        run: &mut Run<'_>,
        each: &mut dyn FnMut(&mut Run<'_>, &[Code]) -> Result<bool>,
    ) -> Result<()> {
        let node = &run.body.subqueries[self.id];
        let mut operator = match run.memo.subqueries[self.id].operator.take() {
            Some(operator) => operator,
            None => node.root.build(),
        };
        // Not closed: the next evaluation opens it again and reuses the parts that do not depend on outer values.
        let outcome = drive(operator.as_mut(), &node.outputs, run, each);
        run.memo.subqueries[self.id].operator = Some(operator);
        outcome
    }

    fn exists(&self, run: &mut Run<'_>) -> Result<bool> {
        if self.refresh(run)
            && let Some(Answer::Exists(exists)) = run.memo.subqueries[self.id].answer
        {
            return Ok(exists);
        }
        let mut exists = false;
        self.rows(run, &mut |_, _| {
            exists = true;
            Ok(false)
        })?;
        run.memo.subqueries[self.id].answer = Some(Answer::Exists(exists));
        Ok(exists)
    }

    /// At most `limit + 1` rows.
    fn collect(&self, run: &mut Run<'_>, limit: usize) -> Result<Rc<Rows>> {
        if self.refresh(run)
            && let Some(Answer::Rows(rows)) = &run.memo.subqueries[self.id].answer
        {
            return Ok(rows.clone());
        }
        let width = run.body.subqueries[self.id].outputs.len();
        let mut rows = Rows::new(width);
        self.rows(run, &mut |run, outputs| {
            rows.push_codes(outputs, run)?;
            Ok(rows.len() <= limit)
        })?;
        let rows = Rc::new(rows);
        run.memo.subqueries[self.id].answer = Some(Answer::Rows(rows.clone()));
        Ok(rows)
    }

    fn single(&self, run: &mut Run<'_>) -> Result<Rc<Rows>> {
        let rows = self.collect(run, 1)?;
        if rows.len() > 1 {
            run.memo.subqueries[self.id].answer = None;
            return Err(Error::with(ErrorCode::SUBQUERY_NO_1_ROW, &[]));
        }
        Ok(rows)
    }

    fn scalar(&self, column: usize, run: &mut Run<'_>) -> Result<Value> {
        let rows = self.single(run)?;
        Ok(if rows.is_empty() { Value::Null } else { rows.row(0)[column].clone() })
    }

    fn is_in(&self, left: &[(Code, Domain)], run: &mut Run<'_>) -> Result<Option<bool>> {
        let mut values = Vec::with_capacity(left.len());
        for (code, _) in left {
            values.push(code.eval(run)?);
        }
        if !run.body.subqueries[self.id].outer.is_empty() {
            return self.any_equal(left, &values, run);
        }
        let (set, set_has_null) = self.key_set(left, run)?;
        if set.is_empty() && !set_has_null {
            return Ok(Some(false));
        }
        let (mut key, mut complete) = (Vec::new(), true);
        for ((_, domain), value) in left.iter().zip(&values) {
            complete &= domain.append(value, Side::Left, &mut run.function, &mut key)?;
        }
        if complete {
            if set.contains(key.as_slice()) {
                return Ok(Some(true));
            }
            if !set_has_null {
                return Ok(Some(false));
            }
        }
        if left.len() == 1 {
            return Ok(None);
        }
        // A row with a NULL on either side: it is unknown only if the other columns can be equal.
        self.any_equal(left, &values, run)
    }

    fn key_set(&self, left: &[(Code, Domain)], run: &mut Run<'_>) -> Result<(Rc<KeySet>, bool)> {
        if let Some(Answer::Set(set, has_null)) = &run.memo.subqueries[self.id].answer {
            return Ok((set.clone(), *has_null));
        }
        let mut set = KeySet::default();
        let (mut has_null, mut key) = (false, Vec::new());
        self.rows(run, &mut |run, outputs| {
            key.clear();
            let mut complete = true;
            for ((_, domain), output) in left.iter().zip(outputs) {
                complete &= output.append_key(domain, Side::Right, run, &mut key)?;
            }
            if !complete {
                has_null = true;
            } else if !set.contains(key.as_slice()) {
                run.memory.charge(key.len() + ENTRY_BYTES)?;
                set.insert(Box::from(key.as_slice()));
            }
            Ok(true)
        })?;
        let set = Rc::new(set);
        run.memo.subqueries[self.id].answer = Some(Answer::Set(set.clone(), has_null));
        Ok((set, has_null))
    }

    /// Compares with every row.
    fn any_equal(
        &self,
        left: &[(Code, Domain)],
        values: &[Value],
        run: &mut Run<'_>,
    ) -> Result<Option<bool>> {
        let mut unknown = false;
        let is_found = self.find_row(run, &mut |row, run| {
            let mut equal = Some(true);
            for ((right, value), (_, domain)) in row.iter().zip(values).zip(left) {
                match order_values(domain.comparator(), value, right, run)? {
                    None => equal = None,
                    Some(order) if order.is_ne() => {
                        equal = Some(false);
                        break;
                    }
                    Some(_) => {}
                }
            }
            unknown |= equal.is_none();
            Ok(equal == Some(true))
        })?;
        Ok(match is_found {
            false if unknown => None,
            is_found => Some(is_found),
        })
    }

    /// Whether a row `is_wanted`; rows after it need not be computed.
    fn find_row(
        &self,
        run: &mut Run<'_>,
        is_wanted: &mut dyn FnMut(&[Value], &mut Run<'_>) -> Result<bool>,
    ) -> Result<bool> {
        let node = &run.body.subqueries[self.id];
        if node.outer.is_empty() || self.refresh(run) {
            let rows = self.remembered_rows(run)?;
            for at in 0..rows.len() {
                run.tick()?;
                if is_wanted(rows.row(at), run)? {
                    return Ok(true);
                }
            }
            return Ok(false);
        }
        // Only all rows are worth remembering: the next outer values may be the same.
        let (mut rows, mut is_found) = (Rows::new(node.outputs.len()), false);
        let outcome = self.rows(run, &mut |run, outputs| {
            run.tick()?;
            rows.push_codes(outputs, run)?;
            is_found = is_wanted(rows.row(rows.len() - 1), run)?;
            Ok(!is_found)
        });
        match outcome {
            Ok(()) if !is_found => {
                run.memo.subqueries[self.id].answer = Some(Answer::Rows(Rc::new(rows)));
            }
            _ => rows.clear(run),
        }
        outcome.map(|()| is_found)
    }

    fn remembered_rows(&self, run: &mut Run<'_>) -> Result<Rc<Rows>> {
        if let Some(Answer::Set(..)) = run.memo.subqueries[self.id].answer {
            // Keys do not distinguish unknown from unequal; the rows replace them.
            run.memo.subqueries[self.id].answer = None;
        }
        self.collect(run, usize::MAX - 1)
    }

    fn quantified(
        &self,
        left: &[(Code, Domain)],
        op: BinaryOp,
        all: bool,
        run: &mut Run<'_>,
    ) -> Result<Option<bool>> {
        let [(code, domain)] = left else { return self.compare_row(left, op, run) };
        let value = code.eval(run)?;
        let mut unknown = false;
        let is_decided = self.find_row(run, &mut |row, run| {
            let order = order_values(domain.comparator(), &value, &row[0], run)?;
            unknown |= order.is_none();
            Ok(order.is_some_and(|order| answers(op, order) != all))
        })?;
        Ok(match is_decided {
            true => Some(!all),
            false if unknown => None,
            false => Some(all),
        })
    }
}

impl SubqueryCode {
    /// `(a, b) op (SELECT c, d ...)`: the subquery has one row or none, the first unequal column decides.
    fn compare_row(
        &self,
        left: &[(Code, Domain)],
        op: BinaryOp,
        run: &mut Run<'_>,
    ) -> Result<Option<bool>> {
        let rows = self.single(run)?;
        let null_safe = op == BinaryOp::NullSafeEqual;
        let is_equality = matches!(op, BinaryOp::Equal | BinaryOp::NotEqual) || null_safe;
        let mut unknown = false;
        for (column, (code, domain)) in left.iter().enumerate() {
            let value = code.eval(run)?;
            let right = if rows.is_empty() { &Value::Null } else { &rows.row(0)[column] };
            match order_values(domain.comparator(), &value, right, run)? {
                Some(order) if order.is_ne() => return Ok(Some(answers(op, order))),
                Some(_) => {}
                None if null_safe && value.is_null() && right.is_null() => {}
                None if null_safe => return Ok(Some(false)),
                None if is_equality => unknown = true,
                None => return Ok(None),
            }
        }
        let equal = std::cmp::Ordering::Equal;
        Ok(if unknown { None } else { Some(answers(op, equal)) })
    }
}

/// Bytes of a hash table's entry in addition to the key.
const ENTRY_BYTES: usize = 32;

fn drive<'r>(
    operator: &mut (dyn Operator<'r> + 'r),
    outputs: &[Code],
    run: &mut Run<'r>,
    each: &mut dyn FnMut(&mut Run<'_>, &[Code]) -> Result<bool>,
) -> Result<()> {
    operator.open(run)?;
    while operator.next(run)? {
        if !each(run, outputs)? {
            break;
        }
    }
    Ok(())
}
