//! Window functions over an input sorted by partition and order. The whole input is kept.

use errors::{Error, Result, bail};
use plan::FrameUnit;
use rows::convert;
use types::{DataType, Value};

use super::aggregate::{CallNode, State};
use super::sort::{KeyCode, append_keys};
use crate::expr::{Code, Comparison};
use crate::kept_rows::Rows;
use crate::operator::{Operator, Source};
use crate::run::Run;

/// Window calls in a program.
pub(crate) struct WindowNode {
    pub(crate) input: Box<dyn Source>,
    pub(crate) partition_by: Vec<KeyCode>,
    pub(crate) order_by: Vec<KeyCode>,
    pub(crate) calls: Vec<WindowCallNode>,
    pub(crate) columns: Vec<usize>,
    /// A register for values other than the row's own.
    pub(crate) scratch: usize,
}

/// One call.
pub(crate) struct WindowCallNode {
    pub(crate) function: WindowFunction,
    pub(crate) args: Vec<Code>,
    pub(crate) arg_types: Vec<DataType>,
    pub(crate) unit: FrameUnit,
    pub(crate) start: Bound,
    pub(crate) end: Bound,
    pub(crate) output: usize,
}

/// The function called.
pub(crate) enum WindowFunction {
    RowNumber,
    Rank,
    DenseRank,
    PercentRank,
    CumeDist,
    Ntile,
    Lead,
    Lag,
    FirstValue,
    LastValue,
    NthValue,
    Aggregate(Box<CallNode>),
}

impl WindowFunction {
    /// The name, in messages, of a function with an argument that counts rows.
    fn counter_name(&self) -> &'static str {
        match self {
            WindowFunction::Ntile => "ntile",
            WindowFunction::Lead => "lead",
            WindowFunction::Lag => "lag",
            WindowFunction::NthValue => "nth_value",
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumeDist
            | WindowFunction::FirstValue
            | WindowFunction::LastValue
            | WindowFunction::Aggregate(_) => "",
        }
    }
}

/// End of a frame. For RANGE with a distance: whether a row's order value is after the current row's (low end) or before it.
pub(crate) enum Bound {
    Unbounded,
    CurrentRow,
    /// ROWS: a number of rows before (negative) or after.
    Rows {
        distance: Code,
        preceding: bool,
    },
    /// RANGE: the limit as an expression of the current row, and the comparison of a row's order value with the scratch register.
    Range {
        limit: Code,
        inside: Box<Comparison>,
        /// NULLs sort after all values: the order is descending.
        nulls_last: bool,
    },
}

/// A running window operator.
pub(crate) struct Window<'r> {
    node: &'r WindowNode,
    input: Box<dyn Operator<'r> + 'r>,
    rows: Rows,
    results: Vec<Value>,
    /// First row of each partition, and the end.
    partitions: Vec<usize>,
    /// For each row the number of its peer group.
    peers: Vec<u32>,
    at: usize,
}

/// A partition being computed.
#[derive(Clone, Copy)]
struct Partition {
    start: usize,
    end: usize,
}

impl<'r> Window<'r> {
    pub(crate) fn new(node: &'r WindowNode) -> Window<'r> {
        Window {
            node,
            input: node.input.build(),
            rows: Rows::new(node.columns.len()),
            results: Vec::new(),
            partitions: Vec::new(),
            peers: Vec::new(),
            at: 0,
        }
    }

    fn read(&mut self, run: &mut Run<'r>) -> Result<()> {
        let (mut last_partition, mut last_order) = (Vec::new(), Vec::new());
        let (mut partition, mut order) = (Vec::new(), Vec::new());
        let mut peer = 0;
        while self.input.next(run)? {
            run.tick()?;
            partition.clear();
            order.clear();
            append_keys(&self.node.partition_by, run, &mut partition)?;
            append_keys(&self.node.order_by, run, &mut order)?;
            let row = self.rows.len();
            let new_partition = row == 0 || partition != last_partition;
            if new_partition {
                self.partitions.push(row);
            }
            if new_partition || order != last_order {
                peer += 1;
            }
            self.peers.push(peer);
            std::mem::swap(&mut partition, &mut last_partition);
            std::mem::swap(&mut order, &mut last_order);
            self.rows.push_registers(&self.node.columns, run)?;
        }
        self.partitions.push(self.rows.len());
        Ok(())
    }

    fn load(&self, row: usize, run: &mut Run<'r>) {
        self.rows.restore(row, &self.node.columns, run);
    }

    fn compute(&mut self, run: &mut Run<'r>) -> Result<()> {
        let width = self.node.calls.len();
        let bytes = self.rows.len() * width * size_of::<Value>();
        run.memory.charge(bytes)?;
        self.results = vec![Value::Null; self.rows.len() * width];
        let bounds = self.partitions.clone();
        for pair in bounds.windows(2) {
            let partition = Partition { start: pair[0], end: pair[1] };
            for (at, call) in self.node.calls.iter().enumerate() {
                self.compute_call(at, call, partition, run)?;
            }
        }
        Ok(())
    }

    fn put(&mut self, call: usize, row: usize, value: Value) {
        self.results[row * self.node.calls.len() + call] = value;
    }

    fn compute_call(
        &mut self,
        at: usize,
        call: &'r WindowCallNode,
        partition: Partition,
        run: &mut Run<'r>,
    ) -> Result<()> {
        match &call.function {
            WindowFunction::RowNumber
            | WindowFunction::Rank
            | WindowFunction::DenseRank
            | WindowFunction::PercentRank
            | WindowFunction::CumeDist => {
                self.compute_rank(at, &call.function, partition);
                Ok(())
            }
            WindowFunction::Ntile => self.compute_ntile(at, call, partition, run),
            WindowFunction::Lead | WindowFunction::Lag => {
                self.compute_offset(at, call, partition, run)
            }
            WindowFunction::FirstValue | WindowFunction::LastValue | WindowFunction::NthValue => {
                self.compute_value(at, call, partition, run)
            }
            WindowFunction::Aggregate(aggregate) => {
                self.compute_aggregate(at, call, aggregate, partition, run)
            }
        }
    }

    fn compute_rank(&mut self, at: usize, function: &WindowFunction, partition: Partition) {
        let count = (partition.end - partition.start) as f64;
        let (mut rank, mut dense) = (1i64, 0i64);
        for row in partition.start..partition.end {
            let number = (row - partition.start) as i64 + 1;
            if row == partition.start || self.peers[row] != self.peers[row - 1] {
                rank = number;
                dense += 1;
            }
            let value = match function {
                WindowFunction::RowNumber => Value::Int(number),
                WindowFunction::Rank => Value::Int(rank),
                WindowFunction::DenseRank => Value::Int(dense),
                WindowFunction::PercentRank if count <= 1.0 => Value::Double(0.0),
                WindowFunction::PercentRank => Value::Double((rank - 1) as f64 / (count - 1.0)),
                _ => {
                    let end = self.peer_end(row, partition);
                    Value::Double((end - partition.start) as f64 / count)
                }
            };
            self.put(at, row, value);
        }
    }

    fn peer_end(&self, row: usize, partition: Partition) -> usize {
        let peer = self.peers[row];
        row + self.peers[row..partition.end].partition_point(|other| *other <= peer)
    }

    fn peer_start(&self, row: usize, partition: Partition) -> usize {
        let peer = self.peers[row];
        partition.start + self.peers[partition.start..row].partition_point(|other| *other < peer)
    }

    /// The argument of NTILE, LEAD, LAG or NTH_VALUE that counts rows: an integer from `least`, else error 1210.
    fn count_arg(
        &self,
        call: &WindowCallNode,
        index: usize,
        least: i128,
        run: &mut Run<'r>,
    ) -> Result<i128> {
        let Some(code) = call.args.get(index) else { return Ok(1) };
        let value = code.eval(run)?;
        let number = if value.is_null() {
            -1
        } else {
            convert::to_i128(&value, &call.arg_types[index], &mut run.function)?
        };
        if number < least || number > i128::from(i64::MAX) {
            bail!(WRONG_ARGUMENTS, call.function.counter_name());
        }
        Ok(number)
    }

    fn compute_ntile(
        &mut self,
        at: usize,
        call: &WindowCallNode,
        partition: Partition,
        run: &mut Run<'r>,
    ) -> Result<()> {
        if partition.start < partition.end {
            self.load(partition.start, run);
        }
        let buckets = self.count_arg(call, 0, 1, run)?;
        let count = (partition.end - partition.start) as i128;
        for row in partition.start..partition.end {
            // The first `count % buckets` buckets have one row more.
            let index = (row - partition.start) as i128;
            let (small, large) = (count / buckets, count % buckets);
            let border = large * (small + 1);
            let bucket = if index < border {
                index / (small + 1)
            } else {
                large + (index - border) / small.max(1)
            };
            self.put(at, row, Value::Int(bucket as i64 + 1));
        }
        Ok(())
    }

    fn compute_offset(
        &mut self,
        at: usize,
        call: &WindowCallNode,
        partition: Partition,
        run: &mut Run<'r>,
    ) -> Result<()> {
        let forward = matches!(call.function, WindowFunction::Lead);
        for row in partition.start..partition.end {
            run.tick()?;
            self.load(row, run);
            let distance = self.count_arg(call, 1, 0, run)?;
            let target = row as i128 + if forward { distance } else { -distance };
            let inside = (partition.start as i128..partition.end as i128).contains(&target);
            let value = if inside {
                self.load(target as usize, run);
                call.args[0].eval(run)?
            } else {
                call.args.get(2).map_or(Ok(Value::Null), |default| default.eval(run))?
            };
            self.put(at, row, value);
        }
        Ok(())
    }

    fn compute_value(
        &mut self,
        at: usize,
        call: &WindowCallNode,
        partition: Partition,
        run: &mut Run<'r>,
    ) -> Result<()> {
        for row in partition.start..partition.end {
            run.tick()?;
            let (start, end) = self.frame(call, row, partition, run)?;
            if start >= end {
                continue;
            }
            let target = match call.function {
                WindowFunction::FirstValue => Some(start),
                WindowFunction::LastValue => Some(end - 1),
                _ => {
                    self.load(row, run);
                    let nth = self.count_arg(call, 1, 1, run)?;
                    let target = start as i128 + nth - 1;
                    (target < end as i128).then_some(target as usize)
                }
            };
            if let Some(target) = target {
                self.load(target, run);
                let value = call.args[0].eval(run)?;
                self.put(at, row, value);
            }
        }
        Ok(())
    }

    fn compute_aggregate(
        &mut self,
        at: usize,
        call: &WindowCallNode,
        aggregate: &CallNode,
        partition: Partition,
        run: &mut Run<'r>,
    ) -> Result<()> {
        let mut state = aggregate.new_state();
        // The frame that `state` holds; it only grows at its end, else it starts again.
        let (mut have_start, mut have_end) = (partition.start, partition.start);
        for row in partition.start..partition.end {
            run.tick()?;
            let (start, end) = self.frame(call, row, partition, run)?;
            if start >= end {
                let mut empty = aggregate.new_state();
                let value = aggregate.result(&mut empty, run)?;
                self.put(at, row, value);
                continue;
            }
            if start != have_start || end < have_end {
                aggregate.reset(&mut state, run);
                (have_start, have_end) = (start, start);
            }
            self.feed(aggregate, &mut state, have_end, end, run)?;
            have_end = end;
            let value = aggregate.result(&mut state, run)?;
            self.put(at, row, value);
        }
        Ok(())
    }

    fn feed(
        &self,
        aggregate: &CallNode,
        state: &mut State,
        from: usize,
        to: usize,
        run: &mut Run<'r>,
    ) -> Result<()> {
        for row in from..to {
            run.tick()?;
            self.load(row, run);
            aggregate.update(state, run)?;
        }
        Ok(())
    }

    /// The rows of a frame; `start >= end` when it is empty.
    fn frame(
        &self,
        call: &WindowCallNode,
        row: usize,
        partition: Partition,
        run: &mut Run<'r>,
    ) -> Result<(usize, usize)> {
        let start = match &call.start {
            Bound::Unbounded => partition.start,
            Bound::CurrentRow if call.unit == FrameUnit::Rows => row,
            Bound::CurrentRow => self.peer_start(row, partition),
            Bound::Rows { distance, preceding } => {
                let target = self.row_at(distance, *preceding, row, run)?;
                clamp(target, partition.start, partition.end)
            }
            Bound::Range { limit, inside, nulls_last } => {
                self.load(row, run);
                let value = limit.eval(run)?;
                if value.is_null() {
                    self.peer_start(row, partition)
                } else {
                    self.first_inside(value, inside, *nulls_last, partition, run)?
                }
            }
        };
        let end = match &call.end {
            Bound::Unbounded => partition.end,
            Bound::CurrentRow if call.unit == FrameUnit::Rows => row + 1,
            Bound::CurrentRow => self.peer_end(row, partition),
            Bound::Rows { distance, preceding } => {
                let target = self.row_at(distance, *preceding, row, run)?;
                clamp(target + 1, partition.start, partition.end)
            }
            Bound::Range { limit, inside, nulls_last } => {
                self.load(row, run);
                let value = limit.eval(run)?;
                if value.is_null() {
                    self.peer_end(row, partition)
                } else {
                    self.behind_last_inside(value, inside, *nulls_last, partition, run)?
                }
            }
        };
        Ok((start, end))
    }

    fn row_at(
        &self,
        distance: &Code,
        preceding: bool,
        row: usize,
        run: &mut Run<'r>,
    ) -> Result<i128> {
        let value = distance.eval(run)?;
        let distance = convert::to_i128(&value, &DataType::bigint(), &mut run.function)?;
        if value.is_null() || distance < 0 {
            return Err(Error::with(errors::ErrorCode(3586), &[&"<unnamed window>"]));
        }
        Ok(row as i128 + if preceding { -distance } else { distance })
    }

    /// Rows inside one end of a range frame are adjacent: the first of them.
    fn first_inside(
        &self,
        limit: Value,
        inside: &Comparison,
        nulls_last: bool,
        partition: Partition,
        run: &mut Run<'r>,
    ) -> Result<usize> {
        run.set(self.node.scratch, limit);
        let (mut low, mut high) = (partition.start, partition.end);
        while low < high {
            let middle = low + (high - low) / 2;
            self.load(middle, run);
            match inside.eval(run)? {
                Some(true) => high = middle,
                None if nulls_last => high = middle,
                // NULLs come first in ascending order and are before every value.
                _ => low = middle + 1,
            }
        }
        Ok(low)
    }

    /// The index after the last row inside.
    fn behind_last_inside(
        &self,
        limit: Value,
        inside: &Comparison,
        nulls_last: bool,
        partition: Partition,
        run: &mut Run<'r>,
    ) -> Result<usize> {
        run.set(self.node.scratch, limit);
        let (mut low, mut high) = (partition.start, partition.end);
        while low < high {
            let middle = low + (high - low) / 2;
            self.load(middle, run);
            match inside.eval(run)? {
                Some(false) => high = middle,
                None if nulls_last => high = middle,
                _ => low = middle + 1,
            }
        }
        Ok(low)
    }
}

fn clamp(row: i128, low: usize, high: usize) -> usize {
    row.clamp(low as i128, high as i128) as usize
}

impl<'r> Operator<'r> for Window<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.close(run);
        self.input.open(run)?;
        self.read(run)?;
        self.input.close(run);
        self.compute(run)
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        if self.at >= self.rows.len() {
            return Ok(false);
        }
        self.load(self.at, run);
        let width = self.node.calls.len();
        for (at, call) in self.node.calls.iter().enumerate() {
            run.regs[call.output] = self.results[self.at * width + at].clone();
        }
        self.at += 1;
        Ok(true)
    }

    fn close(&mut self, run: &mut Run<'r>) {
        run.memory.release(self.results.len() * size_of::<Value>());
        self.rows.clear(run);
        self.results.clear();
        self.partitions.clear();
        self.peers.clear();
        self.at = 0;
        self.input.close(run);
    }
}
