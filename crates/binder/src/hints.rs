//! Optimizer hints of a query block: on indexes and the order of joins. An unknown name in a hint raises a warning.

use errors::ErrorCode;
use plan::{IndexHint, IndexHintKind, IndexHintScope, InstanceId};
use syntax::{Hint, HintTable, IndexHintName, JoinOrderName, parse_hints};

use crate::binder::Binder;

/// The maximum number of warnings for one statement's hints.
const NOTICES_MAX: usize = 64;
/// Characters of the text that a syntax error shows.
const NEAR_CHARS_MAX: usize = 80;

impl Binder<'_> {
    /// Applies the hints of the current block, whose tables are the instances from `first` on.
    pub(crate) fn apply_hints(&mut self, text: Option<&str>, first: usize) {
        let Some(text) = text.filter(|_| self.view_depth == 0) else { return };
        let hints = parse_hints(text);
        let names: Vec<&str> = hints
            .list
            .iter()
            .filter_map(|hint| match hint {
                Hint::BlockName(name) => Some(&**name),
                _ => None,
            })
            .collect();
        for doubled in names.iter().skip(1) {
            self.notice(ErrorCode::WARN_CONFLICTING_HINT, &[&format!("QB_NAME(`{doubled}`)")]);
        }
        let own = names.first().copied();
        for hint in &hints.list {
            match hint {
                Hint::MaxExecutionTime(millis) => self.time_hint(*millis),
                Hint::Index { kind, table, indexes } => {
                    if self.is_own_block(table.block.as_deref(), own, kind.as_str()) {
                        self.index_hint(*kind, table, indexes, first);
                    }
                }
                Hint::Order { kind, block, tables } => {
                    if self.is_own_block(block.as_deref(), own, kind.as_str()) {
                        self.order_hint(*kind, tables, first);
                    }
                }
                Hint::ResourceGroup(_) => {
                    if self.blocks.last().is_some_and(|block| block.number > 1) {
                        let places = "Subquery or Stored procedure or Trigger";
                        self.notice(ErrorCode::WARN_UNSUPPORTED_HINT, &[&places]);
                    }
                }
                // The session has set variables before the statement was bound.
                Hint::SetVar { .. } | Hint::BlockName(_) | Hint::Advice(_) => {}
            }
        }
        if let Some(at) = hints.error_at {
            self.syntax_notice(text, at);
        }
    }

    /// Notes the use of a deprecated character set.
    pub(crate) fn note_charset(&mut self, name: &str) {
        let name = name.to_ascii_lowercase();
        match name.as_str() {
            "utf8" => self.notice(ErrorCode::DEPRECATED_UTF8_ALIAS, &[]),
            "utf8mb3" | "ucs2" | "dec8" | "hp8" | "macce" | "macroman" => {
                self.notice(ErrorCode::WARN_DEPRECATED_SYNTAX, &[&name, &"utf8mb4"]);
            }
            _ => {}
        }
    }

    /// Notes a warning that each execution raises; nothing inside a view counts.
    pub(crate) fn notice(&mut self, code: ErrorCode, args: &[&dyn std::fmt::Display]) {
        if self.view_depth == 0 && self.notices.len() < NOTICES_MAX {
            self.notices.push((code, errors::Error::with(code, args).message().to_owned()));
        }
    }

    fn syntax_notice(&mut self, text: &str, at: usize) {
        let source = String::from_utf8_lossy(&self.source);
        let start = source.find(&format!("/*+{text}*/")).map_or(0, |start| start + 3 + at);
        let start = start.min(source.len());
        let near: String = source[start..].trim_start().chars().take(NEAR_CHARS_MAX).collect();
        let line = 1 + source[..start].matches('\n').count();
        let message = format!("Optimizer hint syntax error near '{near}' at line {line}");
        self.notices.push((ErrorCode::PARSE_ERROR, message));
    }

    fn time_hint(&mut self, millis: u64) {
        if !self.is_query || self.block_count > 1 {
            self.notice(ErrorCode::WARN_UNSUPPORTED_MAX_EXECUTION_TIME, &[]);
        } else if self.max_execution_millis.is_some() {
            let hint = format!("MAX_EXECUTION_TIME({millis})");
            self.notice(ErrorCode::WARN_CONFLICTING_HINT, &[&hint]);
        } else {
            self.max_execution_millis = Some(millis);
        }
    }

    fn block_name(&mut self) -> String {
        format!("select#{}", self.blocks.last().map_or(1, |block| block.number))
    }

    /// Whether a hint applies to its own block. Other blocks cannot be reached from here.
    fn is_own_block(&mut self, named: Option<&str>, own: Option<&str>, hint: &str) -> bool {
        let Some(named) = named else { return true };
        if own.is_some_and(|own| own.eq_ignore_ascii_case(named)) || *named == self.block_name() {
            return true;
        }
        self.notice(ErrorCode::WARN_UNKNOWN_QB_NAME, &[&format!("`{named}`"), &hint]);
        false
    }

    fn hinted_table(&self, name: &str, first: usize) -> Option<InstanceId> {
        let found = self.instances[first..].iter().position(|instance| *instance.alias == *name)?;
        Some(InstanceId((first + found) as u32))
    }

    fn index_hint(
        &mut self,
        kind: IndexHintName,
        table: &HintTable,
        indexes: &[Box<str>],
        first: usize,
    ) {
        let shown = format!("`{}`@`{}`", table.name, self.block_name());
        let Some(id) = self.hinted_table(&table.name, first) else {
            self.notice(ErrorCode::UNRESOLVED_HINT_NAME, &[&shown, &kind.as_str()]);
            for index in indexes {
                let shown = format!("{shown} `{index}`");
                self.notice(ErrorCode::UNRESOLVED_HINT_NAME, &[&shown, &kind.as_str()]);
            }
            return;
        };
        let definition = self.tables[self.instances[id.0 as usize].table].clone();
        let mut ids = Vec::with_capacity(indexes.len());
        for name in indexes {
            match definition.index(name) {
                Some(index) => ids.push(index.id.0),
                None => {
                    let shown = format!("{shown} `{name}`");
                    self.notice(ErrorCode::UNRESOLVED_HINT_NAME, &[&shown, &kind.as_str()]);
                }
            }
        }
        if indexes.is_empty() {
            ids = definition.indexes.iter().map(|index| index.id.0).collect();
        } else if ids.is_empty() {
            return;
        }
        let chosen = match kind {
            IndexHintName::Index | IndexHintName::JoinIndex => IndexHintKind::Force,
            IndexHintName::NoIndex | IndexHintName::NoJoinIndex => IndexHintKind::Ignore,
            // Access paths are chosen for a table as a whole: these decide nothing.
            IndexHintName::GroupIndex
            | IndexHintName::NoGroupIndex
            | IndexHintName::OrderIndex
            | IndexHintName::NoOrderIndex => return,
        };
        let hints = &mut self.instances[id.0 as usize].hints;
        if hints.iter().any(|known| known.scope == IndexHintScope::Join) {
            let list: Vec<String> = indexes.iter().map(|name| format!("`{name}`")).collect();
            let space = if list.is_empty() { " " } else { "  " };
            let hint = format!("{}(`{}`{space}{})", kind.as_str(), table.name, list.join(", "));
            self.notice(ErrorCode::WARN_CONFLICTING_HINT, &[&hint]);
            return;
        }
        hints.push(IndexHint { kind: chosen, scope: IndexHintScope::Join, indexes: ids });
    }

    /// Pairs of tables: the first must be joined before the second.
    fn order_hint(&mut self, kind: JoinOrderName, tables: &[HintTable], first: usize) {
        if kind == JoinOrderName::Fixed {
            self.straight_join = true;
            return;
        }
        let mut named = Vec::with_capacity(tables.len());
        for table in tables {
            match self.hinted_table(&table.name, first) {
                Some(id) => named.push(id),
                None => {
                    let shown = format!("`{}`", table.name);
                    self.notice(ErrorCode::UNRESOLVED_HINT_NAME, &[&shown, &kind.as_str()]);
                    return;
                }
            }
        }
        self.join_orders.extend(named.windows(2).map(|pair| (pair[0], pair[1])));
        let others = (first..self.instances.len()).map(|at| InstanceId(at as u32));
        let others = others.filter(|id| !named.contains(id));
        match (kind, named.first(), named.last()) {
            (JoinOrderName::Prefix, _, Some(last)) => {
                self.join_orders.extend(others.map(|other| (*last, other)));
            }
            (JoinOrderName::Suffix, Some(front), _) => {
                self.join_orders.extend(others.map(|other| (other, *front)));
            }
            _ => {}
        }
    }
}
