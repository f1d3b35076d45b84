//! Grouping: one group, a hash table of groups, or groups one after another; by one set of keys or several (ROLLUP, CUBE, GROUPING SETS).

use std::collections::VecDeque;

use errors::Result;
use plan::{AggregateMode, GroupSets};
use plugin_api::{Accumulator, BoundAggregate, Coercion};
use rows::convert;
use rows::key_set::{KEY_OVERHEAD, KeySet};
use rows::value_key::append_hash_key;
use types::{DataType, Decimal, Value};

use super::partitions::{LEVELS_MAX, Partitions};
use super::simple::Seen;
use super::sort::{KeyCode, Sorter};
use crate::expr::Code;
use crate::kept_rows::Rows;
use crate::operator::{Operator, Source};
use crate::run::Run;
use crate::spill::RowReader;

/// Grouping in a program.
pub(crate) struct AggregateNode {
    pub(crate) input: Box<dyn Source>,
    pub(crate) mode: AggregateMode,
    pub(crate) keys: Vec<(usize, Code, DataType)>,
    pub(crate) calls: Vec<CallNode>,
    pub(crate) carried: Vec<usize>,
    pub(crate) sets: GroupSets,
    pub(crate) grouping: Vec<Option<usize>>,
    /// Registers of the input that keys and calls read, and the carried ones: the part of a row that moves to a file.
    pub(crate) input_registers: Vec<usize>,
}

/// An aggregate call.
pub(crate) struct CallNode {
    pub(crate) function: BoundAggregate,
    pub(crate) kind: CallKind,
    pub(crate) args: Vec<(Code, DataType, Coercion)>,
    pub(crate) distinct: bool,
    pub(crate) order_by: Vec<KeyCode>,
    pub(crate) output: usize,
}

/// Calls that need no plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallKind {
    /// `COUNT(*)`.
    CountAll,
    /// `COUNT(expr)`.
    Count,
    /// SUM of an integer expression.
    SumInteger,
    Plugin,
}

/// State of one call in one group.
pub(crate) enum State {
    Count(i64),
    SumInteger { sum: i128, count: u64 },
    Plugin(Box<PluginState>),
}

/// State of a plugin's aggregate.
pub(crate) struct PluginState {
    accumulator: Box<dyn Accumulator>,
    seen: Option<Seen>,
    /// Rows waiting to be put in order.
    sorter: Option<Sorter>,
}

impl CallNode {
    pub(crate) fn new_state(&self) -> State {
        match self.kind {
            CallKind::CountAll | CallKind::Count => State::Count(0),
            CallKind::SumInteger => State::SumInteger { sum: 0, count: 0 },
            CallKind::Plugin => State::Plugin(Box::new(PluginState {
                accumulator: (self.function.accumulator)(),
                seen: self.distinct.then(Seen::default),
                sorter: (!self.order_by.is_empty()).then(|| Sorter::new(self.args.len())),
            })),
        }
    }

    /// Adds the current row.
    #[inline]
    pub(crate) fn update(&self, state: &mut State, run: &mut Run<'_>) -> Result<()> {
        match state {
            State::Count(count) => {
                if self.kind == CallKind::CountAll {
                    *count += 1;
                    return Ok(());
                }
                let code = &self.args[0].0;
                let is_null = match code.leaf(run) {
                    Some(value) => value.is_null(),
                    None => code.eval(run)?.is_null(),
                };
                *count += i64::from(!is_null);
                Ok(())
            }
            State::SumInteger { sum, count } => {
                let code = &self.args[0].0;
                let number = match code.leaf(run) {
                    Some(Value::Int(number)) => Some(i128::from(*number)),
                    Some(Value::UInt(number)) => Some(i128::from(*number)),
                    Some(Value::Null) => None,
                    _ => match code.eval(run)? {
                        Value::Null => None,
                        value => {
                            Some(convert::to_i128(&value, &self.args[0].1, &mut run.function)?)
                        }
                    },
                };
                if let Some(number) = number {
                    *sum += number;
                    *count += 1;
                }
                Ok(())
            }
            State::Plugin(state) => self.update_plugin(state, run),
        }
    }

    fn update_plugin(&self, state: &mut PluginState, run: &mut Run<'_>) -> Result<()> {
        let mut values = Vec::with_capacity(self.args.len());
        for (code, ty, coercion) in &self.args {
            let value = code.eval(run)?;
            let value = match coercion {
                Coercion::AsIs => value,
                coercion => convert::coerce(value, ty, coercion, &mut run.function)?,
            };
            if value.is_null() && self.function.skip_nulls {
                return Ok(());
            }
            values.push(value);
        }
        if let Some(seen) = &mut state.seen {
            let types = self.args.iter().map(|(_, ty, _)| ty);
            if !seen.insert(values.iter().zip(types), &mut run.memory)? {
                return Ok(());
            }
        }
        if let Some(sorter) = &mut state.sorter {
            sorter.push_key(&self.order_by, run)?;
            return sorter.rows.push_values(values.into_iter(), run);
        }
        state.accumulator.update(&mut run.function, &values)
    }

    /// The group's result.
    pub(crate) fn result(&self, state: &mut State, run: &mut Run<'_>) -> Result<Value> {
        match state {
            State::Count(count) => Ok(Value::Int(*count)),
            State::SumInteger { count: 0, .. } => Ok(Value::Null),
            State::SumInteger { sum, .. } => Ok(Value::Decimal(Decimal::from_i128(*sum, 0))),
            State::Plugin(state) => {
                if let Some(mut sorter) = state.sorter.take() {
                    for row in sorter.order_late_first() {
                        let values = sorter.rows.row(row as usize);
                        state.accumulator.update(&mut run.function, values)?;
                    }
                    sorter.clear(run);
                }
                state.accumulator.result(&mut run.function)
            }
        }
    }

    /// Back to the empty group.
    pub(crate) fn reset(&self, state: &mut State, run: &mut Run<'_>) {
        match state {
            State::Plugin(plugin) if plugin.seen.is_none() && self.order_by.is_empty() => {
                plugin.accumulator.reset();
            }
            State::Plugin(plugin) => {
                if let Some(seen) = &mut plugin.seen {
                    seen.clear(run);
                }
                *state = self.new_state();
            }
            State::Count(_) | State::SumInteger { .. } => *state = self.new_state(),
        }
    }
}

impl Source for AggregateNode {
    fn build<'r>(&'r self) -> Box<dyn Operator<'r> + 'r> {
        match self.mode {
            AggregateMode::Scalar if !self.is_rollup() => Box::new(Scalar::new(self)),
            AggregateMode::Hash if !self.is_rollup() => Box::new(Hash::new(self)),
            AggregateMode::Scalar | AggregateMode::Hash | AggregateMode::Sorted => {
                Box::new(Sorted::new(self))
            }
        }
    }
}

/// The keys that a group's set has.
#[derive(Clone, Copy)]
pub(crate) enum Live {
    /// The first ones.
    First(usize),
    /// One bit for each, by its place.
    Bits(u64),
}

impl Live {
    fn has(self, key: usize) -> bool {
        match self {
            Live::First(count) => key < count,
            Live::Bits(bits) => bits >> key & 1 == 1,
        }
    }
}

impl AggregateNode {
    pub(crate) fn is_rollup(&self) -> bool {
        self.sets == GroupSets::Rollup
    }

    /// The listed sets; none for a single set of all keys.
    fn listed(&self) -> &[u64] {
        match &self.sets {
            GroupSets::Listed(sets) => sets,
            GroupSets::One | GroupSets::Rollup => &[],
        }
    }

    /// The keys of the group whose key in a hash table is `key`: with listed sets it begins with the set's number.
    fn live(&self, key: &[u8]) -> Live {
        let set = key.first_chunk().map(|number| usize::from(u16::from_be_bytes(*number)));
        match set.and_then(|set| self.listed().get(set)) {
            Some(bits) => Live::Bits(*bits),
            None => Live::First(self.keys.len()),
        }
    }

    fn new_states(&self) -> Vec<State> {
        self.calls.iter().map(CallNode::new_state).collect()
    }

    fn update_all(&self, states: &mut [State], run: &mut Run<'_>) -> Result<()> {
        for (call, state) in self.calls.iter().zip(states) {
            call.update(state, run)?;
        }
        Ok(())
    }

    fn emit(&self, states: &mut [State], run: &mut Run<'_>) -> Result<()> {
        for (call, state) in self.calls.iter().zip(states) {
            let value = call.result(state, run)?;
            run.regs[call.output] = value;
        }
        Ok(())
    }

    /// The key values of the current row.
    fn key_values(&self, run: &mut Run<'_>, values: &mut Vec<Value>) -> Result<()> {
        values.clear();
        for (_, code, _) in &self.keys {
            values.push(code.eval(run)?);
        }
        Ok(())
    }

    pub(crate) fn set_grouping(&self, live: Live, run: &mut Run<'_>) {
        for (at, register) in self.grouping.iter().enumerate() {
            if let Some(register) = register {
                run.regs[*register] = Value::bool(!live.has(at));
            }
        }
    }
}

/// No GROUP BY: exactly one row.
struct Scalar<'r> {
    node: &'r AggregateNode,
    input: Box<dyn Operator<'r> + 'r>,
    done: bool,
}

impl<'r> Scalar<'r> {
    fn new(node: &'r AggregateNode) -> Scalar<'r> {
        Scalar { node, input: node.input.build(), done: false }
    }
}

impl<'r> Operator<'r> for Scalar<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.done = false;
        self.input.open(run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if std::mem::replace(&mut self.done, true) {
            return Ok(false);
        }
        let mut states = self.node.new_states();
        let mut carried: Option<Vec<Value>> = None;
        while self.input.next(run)? {
            run.tick()?;
            if carried.is_none() && !self.node.carried.is_empty() {
                carried = Some(self.node.carried.iter().map(|r| run.regs[*r].clone()).collect());
            }
            self.node.update_all(&mut states, run)?;
        }
        self.input.close(run);
        for (at, register) in self.node.carried.iter().enumerate() {
            let value = carried.as_ref().map_or(Value::Null, |values| values[at].clone());
            run.regs[*register] = value;
        }
        self.node.set_grouping(Live::First(self.node.keys.len()), run);
        self.node.emit(&mut states, run)?;
        Ok(true)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.input.close(run);
    }
}

/// Groups found by hash, delivered in order of first appearance. Rows of groups that do not fit memory move to files, divided
/// by their keys, and are grouped after the others.
struct Hash<'r> {
    node: &'r AggregateNode,
    input: Box<dyn Operator<'r> + 'r>,
    groups: KeySet,
    /// For each group: key values and carried registers of its first row.
    first_rows: Rows,
    states: Vec<State>,
    /// With listed sets, for each group its keys.
    live: Vec<Live>,
    bytes: usize,
    at: usize,
    registers: Vec<usize>,
    /// Rows that moved to files, and how often they were divided.
    parts: Vec<(RowReader, u32)>,
}

/// Bytes of a group's call state, as far as it is known in advance.
const STATE_BYTES: usize = size_of::<State>() + 48;

impl<'r> Hash<'r> {
    fn new(node: &'r AggregateNode) -> Hash<'r> {
        let keys = node.keys.iter().map(|(register, _, _)| *register);
        let registers: Vec<usize> = keys.chain(node.carried.iter().copied()).collect();
        Hash {
            node,
            input: node.input.build(),
            groups: KeySet::default(),
            first_rows: Rows::new(registers.len()),
            states: Vec::new(),
            live: Vec::new(),
            bytes: 0,
            at: 0,
            registers,
            parts: Vec::new(),
        }
    }

    fn clear(&mut self, run: &mut Run<'r>) {
        run.memory.release(self.bytes);
        self.bytes = 0;
        self.groups.clear();
        self.first_rows.clear(run);
        self.states.clear();
        self.live.clear();
        self.at = 0;
    }

    /// Groups the input, or a part of it that was divided `level` times.
    fn read(&mut self, part: Option<RowReader>, level: u32, run: &mut Run<'r>) -> Result<()> {
        let mut files = None;
        match part {
            Some(part) => self.read_part(part, level, &mut files, run)?,
            None => self.read_input(&mut files, run)?,
        }
        if let Some(files) = files {
            let level = files.next_level();
            self.parts.extend(files.finish()?.into_iter().flatten().map(|part| (part, level)));
        }
        Ok(())
    }

    fn read_part(
        &mut self,
        mut part: RowReader,
        level: u32,
        files: &mut Option<Partitions>,
        run: &mut Run<'r>,
    ) -> Result<()> {
        let mut key = Vec::new();
        while part.next_into(&mut key, &self.node.input_registers, run)? {
            run.tick()?;
            self.take_row(&key, level, files, run)?;
        }
        Ok(())
    }

    fn read_input(&mut self, files: &mut Option<Partitions>, run: &mut Run<'r>) -> Result<()> {
        let (node, mut key) = (self.node, Vec::new());
        let (mut values, mut ends) = (Vec::new(), Vec::with_capacity(node.keys.len()));
        while self.input.next(run)? {
            run.tick()?;
            values.clear();
            ends.clear();
            for (_, code, ty) in &node.keys {
                match code.leaf(run) {
                    Some(value) => append_hash_key(value, ty.collation, &mut values),
                    None => append_hash_key(&code.eval(run)?, ty.collation, &mut values),
                }
                ends.push(values.len());
            }
            if node.listed().is_empty() {
                self.take_row(&values, 0, files, run)?;
            }
            for (number, set) in (0u16..).zip(node.listed()) {
                key.clear();
                key.extend_from_slice(&number.to_be_bytes());
                let mut start = 0;
                for (at, end) in ends.iter().enumerate() {
                    if Live::Bits(*set).has(at) {
                        key.extend_from_slice(&values[start..*end]);
                    }
                    start = *end;
                }
                self.take_row(&key, 0, files, run)?;
            }
        }
        Ok(())
    }

    /// Adds the current row to the group with this key, or puts it into a file.
    fn take_row(
        &mut self,
        key: &[u8],
        level: u32,
        files: &mut Option<Partitions>,
        run: &mut Run<'r>,
    ) -> Result<()> {
        let width = self.node.calls.len();
        let group = match self.groups.get(key) {
            Some(group) => group as usize,
            None if self.is_full(level, run) => {
                let files = files.get_or_insert_with(|| Partitions::new(level, run));
                return files.push_registers(key, &self.node.input_registers, run);
            }
            None => {
                let mut values = Vec::with_capacity(self.registers.len());
                self.node.key_values(run, &mut values)?;
                let carried = self.node.carried.iter();
                values.extend(carried.map(|register| run.regs[*register].clone()));
                self.add_group(key, values, run)?
            }
        };
        self.node.update_all(&mut self.states[group * width..(group + 1) * width], run)
    }

    fn is_full(&self, level: u32, run: &Run<'r>) -> bool {
        let bytes = self.bytes + self.first_rows.bytes();
        bytes > run.operator_bytes() && level < LEVELS_MAX
    }

    /// `values`: those of its keys and carried registers.
    fn add_group(
        &mut self,
        key: &[u8],
        mut values: Vec<Value>,
        run: &mut Run<'r>,
    ) -> Result<usize> {
        let node = self.node;
        let group = self.first_rows.len();
        let bytes = key.len() + KEY_OVERHEAD + node.calls.len() * STATE_BYTES;
        self.bytes += bytes;
        run.memory.charge(bytes)?;
        self.groups.insert(key);
        if !node.listed().is_empty() {
            let live = node.live(key);
            let keys = values.iter_mut().take(node.keys.len()).enumerate();
            keys.filter(|(at, _)| !live.has(*at)).for_each(|(_, value)| *value = Value::Null);
            self.live.push(live);
        }
        self.first_rows.push_values(values.into_iter(), run)?;
        self.states.extend(node.calls.iter().map(CallNode::new_state));
        Ok(group)
    }

    /// A set without keys has a group of no rows as well.
    fn total_of_nothing(&mut self, run: &mut Run<'r>) -> Result<()> {
        for (number, _) in (0u16..).zip(self.node.listed()).filter(|(_, set)| **set == 0) {
            let values = vec![Value::Null; self.registers.len()];
            self.add_group(&number.to_be_bytes(), values, run)?;
        }
        Ok(())
    }
}

impl<'r> Operator<'r> for Hash<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.clear(run);
        self.parts.clear();
        run.counts.temporary_tables += 1;
        self.input.open(run)?;
        self.read(None, 0, run)?;
        if self.first_rows.is_empty() {
            self.total_of_nothing(run)?;
        }
        self.input.close(run);
        Ok(())
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        while self.at >= self.first_rows.len() {
            let Some((part, level)) = self.parts.pop() else { return Ok(false) };
            self.clear(run);
            self.read(Some(part), level, run)?;
        }
        self.first_rows.restore(self.at, &self.registers, run);
        let width = self.node.calls.len();
        let states = &mut self.states[self.at * width..(self.at + 1) * width];
        let all = Live::First(self.node.keys.len());
        let live = self.live.get(self.at).copied().unwrap_or(all);
        self.at += 1;
        self.node.set_grouping(live, run);
        self.node.emit(states, run)?;
        Ok(true)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.clear(run);
        self.parts.clear();
        self.input.close(run);
    }
}

/// One level of grouping: the first `keys` keys.
struct Level {
    keys: usize,
    states: Vec<State>,
}

/// A finished row: key values, carried values, results, number of live keys.
struct Finished {
    values: Vec<Value>,
    live_keys: usize,
}

/// Groups one after another in a sorted input; with ROLLUP several levels at once.
struct Sorted<'r> {
    node: &'r AggregateNode,
    input: Box<dyn Operator<'r> + 'r>,
    /// Finest level first.
    levels: Vec<Level>,
    /// Keys and carried values of the group being read; `None` before the first row.
    group: Option<Vec<Value>>,
    key_ends: Vec<usize>,
    key: Vec<u8>,
    finished: VecDeque<Finished>,
    /// Registers of the input's current row that emitting a group overwrites.
    registers: Vec<usize>,
    input_row: Vec<Value>,
    done: bool,
}

impl<'r> Sorted<'r> {
    fn new(node: &'r AggregateNode) -> Sorted<'r> {
        let keys = node.keys.iter().map(|(register, _, _)| *register);
        Sorted {
            node,
            input: node.input.build(),
            levels: Vec::new(),
            group: None,
            key_ends: Vec::new(),
            key: Vec::new(),
            finished: VecDeque::new(),
            registers: keys.chain(node.carried.iter().copied()).collect(),
            input_row: Vec::new(),
            done: false,
        }
    }

    /// The current row's key; returns how many leading keys it shares with the group being read.
    fn shared_keys(&mut self, run: &mut Run<'r>) -> Result<usize> {
        let (mut key, mut ends) = (Vec::new(), Vec::new());
        for (_, code, ty) in &self.node.keys {
            let value = code.eval(run)?;
            append_hash_key(&value, ty.collation, &mut key);
            ends.push(key.len());
        }
        let shared = ends
            .iter()
            .zip(&self.key_ends)
            .take_while(|(a, b)| a == b && key[..**a] == self.key[..**b])
            .count();
        self.key = key;
        self.key_ends = ends;
        Ok(shared)
    }

    /// Finishes all levels that have more than `keep` keys, finest first.
    fn finish(&mut self, keep: Option<usize>, run: &mut Run<'r>) -> Result<()> {
        let Some(group) = &self.group else { return self.total_of_nothing(run) };
        let key_count = self.node.keys.len();
        for level in &mut self.levels {
            if keep.is_some_and(|keep| level.keys <= keep) {
                continue;
            }
            let mut values = group.clone();
            for value in &mut values[level.keys..key_count] {
                *value = Value::Null;
            }
            for (call, state) in self.node.calls.iter().zip(&mut level.states) {
                values.push(call.result(state, run)?);
                call.reset(state, run);
            }
            self.finished.push_back(Finished { values, live_keys: level.keys });
        }
        Ok(())
    }

    /// WITH ROLLUP has a grand total of no rows as well.
    fn total_of_nothing(&mut self, run: &mut Run<'r>) -> Result<()> {
        let Some(total) = self.levels.last_mut().filter(|level| level.keys == 0) else {
            return Ok(());
        };
        let mut values = vec![Value::Null; self.registers.len()];
        for (call, state) in self.node.calls.iter().zip(&mut total.states) {
            values.push(call.result(state, run)?);
        }
        self.finished.push_back(Finished { values, live_keys: 0 });
        Ok(())
    }

    fn start_group(&mut self, run: &mut Run<'r>) -> Result<()> {
        let mut values = Vec::with_capacity(self.registers.len());
        self.node.key_values(run, &mut values)?;
        values.extend(self.node.carried.iter().map(|register| run.regs[*register].clone()));
        self.group = Some(values);
        Ok(())
    }

    fn take_row(&mut self, run: &mut Run<'r>) -> Result<()> {
        let shared = self.shared_keys(run)?;
        let key_count = self.node.keys.len();
        if self.group.is_none() || shared < key_count {
            if self.group.is_some() {
                self.finish(Some(shared), run)?;
            }
            self.start_group(run)?;
        }
        for level in &mut self.levels {
            self.node.update_all(&mut level.states, run)?;
        }
        Ok(())
    }

    fn emit(&mut self, row: Finished, run: &mut Run<'r>) {
        let outputs = self.node.calls.iter().map(|call| call.output);
        let registers = self.registers.iter().copied().chain(outputs);
        for (register, value) in registers.zip(row.values) {
            run.regs[register] = value;
        }
        self.node.set_grouping(Live::First(row.live_keys), run);
    }
}

impl<'r> Operator<'r> for Sorted<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        let key_count = self.node.keys.len();
        let counts = if self.node.is_rollup() { 0 } else { key_count }..=key_count;
        let level = |keys| Level { keys, states: self.node.new_states() };
        self.levels = counts.rev().map(level).collect();
        self.group = None;
        self.key.clear();
        self.key_ends.clear();
        self.finished.clear();
        self.input_row.clear();
        self.done = false;
        self.input.open(run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        loop {
            if let Some(row) = self.finished.pop_front() {
                self.emit(row, run);
                return Ok(true);
            }
            if self.done {
                return Ok(false);
            }
            // The input may not set its registers again for each row: it finds them as it left them.
            for (register, value) in self.registers.iter().zip(self.input_row.drain(..)) {
                run.regs[*register] = value;
            }
            while self.finished.is_empty() && !self.done {
                if self.input.next(run)? {
                    run.tick()?;
                    self.take_row(run)?;
                } else {
                    self.done = true;
                    self.finish(None, run)?;
                }
            }
            self.input_row = self.registers.iter().map(|r| run.regs[*r].clone()).collect();
        }
    }

    fn close(&mut self, run: &mut Run<'r>) {
        self.input.close(run);
        self.levels.clear();
        self.finished.clear();
        self.group = None;
    }
}
