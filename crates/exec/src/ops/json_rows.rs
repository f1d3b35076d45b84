//! The rows of JSON_TABLE and other table functions: the items that paths find in a document, in order. The columns are computed above it.

use std::sync::Arc;

use errors::{Error, ErrorCode, Result};
use types::json::{self, JsonRef};
use types::{DataType, JsonPath, SqlBytes, Value};

use crate::expr::Code;
use crate::operator::Operator;
use crate::run::Run;

/// JSON_TABLE in a program.
pub(crate) struct JsonRowsNode {
    document: Code,
    ty: DataType,
    /// As errors name the function.
    name: Arc<str>,
    levels: Vec<Level>,
}

/// A path, and the paths that search its items.
struct Level {
    path: JsonPath,
    children: Vec<usize>,
    item: usize,
    ordinal: usize,
}

impl JsonRowsNode {
    /// # Errors
    /// 3143 for an invalid path.
    pub(crate) fn new(rows: &plan::JsonRows, document: Code) -> Result<JsonRowsNode> {
        let mut levels: Vec<Level> = Vec::with_capacity(rows.levels.len());
        for (at, level) in rows.levels.iter().enumerate() {
            let path = JsonPath::parse(level.path.as_bytes())
                .map_err(|position| Error::with(ErrorCode::INVALID_JSON_PATH, &[&position]))?;
            if let Some(parent) = level.parent {
                levels[parent].children.push(at);
            }
            levels.push(Level {
                path,
                children: Vec::new(),
                item: level.item.0 as usize,
                ordinal: level.ordinal.0 as usize,
            });
        }
        let (ty, name) = (rows.document.ty(), rows.function.clone());
        Ok(JsonRowsNode { document, ty, name, levels })
    }

    /// The document as binary JSON; `None` for NULL.
    fn document(&self, run: &mut Run<'_>) -> Result<Option<SqlBytes>> {
        match self.document.eval(run)? {
            Value::Null => Ok(None),
            Value::Json(document) => Ok(Some(document)),
            Value::Bytes(text) if !self.ty.is_binary() => match json::parse(&text) {
                Ok(document) => Ok(Some(document.to_binary())),
                Err(error) if error.too_deep => {
                    Err(Error::with(ErrorCode::JSON_DOCUMENT_TOO_DEEP, &[]))
                }
                Err(error) => {
                    let code = ErrorCode::INVALID_JSON_TEXT_IN_PARAM;
                    Err(Error::with(code, &[&1, &self.name, &error.message, &error.position]))
                }
            },
            Value::Bytes(_) => Err(Error::with(ErrorCode::INVALID_JSON_CHARSET, &[&"binary"])),
            _ => Err(Error::with(ErrorCode::INVALID_TYPE_FOR_JSON, &[&1, &self.name])),
        }
    }
}

/// The position of a level.
#[derive(Default)]
struct State {
    items: Vec<SqlBytes>,
    /// Items that were started; the last of them is the current one.
    begun: usize,
    /// The child whose rows are being returned, as an index in `children`.
    child: usize,
    child_open: bool,
    /// The current item has given a row.
    given: bool,
}

/// A running JSON_TABLE.
pub(crate) struct JsonRows<'r> {
    node: &'r JsonRowsNode,
    states: Vec<State>,
}

impl<'r> JsonRows<'r> {
    pub(crate) fn new(node: &'r JsonRowsNode) -> JsonRows<'r> {
        JsonRows { node, states: node.levels.iter().map(|_| State::default()).collect() }
    }

    fn open_level(&mut self, level: usize, document: &[u8]) {
        let mut found = Vec::new();
        self.node.levels[level].path.select(JsonRef::new(document), &mut found);
        let items = found.into_iter().map(JsonRef::to_document).collect();
        self.states[level] = State { items, ..State::default() };
    }

    /// The next row of a level and those below it. As deep as NESTED is written.
    fn next_of(&mut self, level: usize, run: &mut Run<'r>) -> Result<bool> {
        let node = self.node;
        loop {
            run.tick()?;
            let children = &node.levels[level].children;
            while self.states[level].begun > 0 && self.states[level].child < children.len() {
                let child = children[self.states[level].child];
                if !std::mem::replace(&mut self.states[level].child_open, true) {
                    let item = self.states[level].items[self.states[level].begun - 1].clone();
                    self.open_level(child, &item);
                }
                if self.next_of(child, run)? {
                    self.states[level].given = true;
                    return Ok(true);
                }
                self.clear(child, run);
                self.states[level].child += 1;
                self.states[level].child_open = false;
            }
            let state = &mut self.states[level];
            if state.begun > 0 && !std::mem::replace(&mut state.given, true) {
                return Ok(true);
            }
            let Some(item) = state.items.get(state.begun).cloned() else { return Ok(false) };
            state.begun += 1;
            (state.child, state.given) = (0, false);
            let ordinal = state.begun as u64;
            run.set(node.levels[level].item, Value::Json(item));
            run.set(node.levels[level].ordinal, Value::UInt(ordinal));
        }
    }

    /// No item of a level and of those below it.
    fn clear(&mut self, level: usize, run: &mut Run<'r>) {
        let place = &self.node.levels[level];
        run.set(place.item, Value::Null);
        run.set(place.ordinal, Value::Null);
        self.states[level] = State::default();
        for child in &place.children {
            self.clear(*child, run);
        }
    }
}

impl<'r> Operator<'r> for JsonRows<'r> {
    fn open(&mut self, run: &mut Run<'r>) -> Result<()> {
        self.clear(0, run);
        if let Some(document) = self.node.document(run)? {
            self.open_level(0, &document);
        }
        Ok(())
    }

    fn next(&mut self, run: &mut Run<'r>) -> Result<bool> {
        self.next_of(0, run)
    }

    fn close(&mut self, _run: &mut Run<'r>) {
        self.states.iter_mut().for_each(|state| *state = State::default());
    }
}
