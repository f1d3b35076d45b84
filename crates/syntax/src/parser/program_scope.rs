//! The names of a stored program while it is read: variables, conditions, cursors and labels are known by their blocks,
//! so that every use is a number (or an error) when the text is understood.

use super::{PResult, Parser, near};
use crate::ast::*;

/// The names of one block.
#[derive(Default)]
struct Names {
    variables: Vec<(Box<str>, u32)>,
    conditions: Vec<(Box<str>, ConditionValue)>,
    cursors: Vec<(Box<str>, u32)>,
    has_handler: bool,
    handled: Vec<ConditionValue>,
}

/// A label that LEAVE, and in a loop ITERATE, may name.
struct Label {
    name: Box<str>,
    is_loop: bool,
}

/// All names in scope at one place of a program.
#[derive(Default)]
pub(super) struct ProgramScope {
    blocks: Vec<Names>,
    labels: Vec<Label>,
    /// Labels before this one are outside the handler that is being read.
    first_label: usize,
    variables: u32,
    cursors: u32,
    /// Variables that are not integers.
    not_integers: Vec<u32>,
    kind: Option<ProgramKind>,
    returns: bool,
    row_columns: Vec<RowColumn>,
}

/// The kind of a program, which decides the statements that it may contain.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ProgramKind {
    Procedure,
    Function,
    Trigger { before: bool, event: TriggerEvent },
}

impl ProgramScope {
    /// How many variables and cursors the program has.
    pub(super) fn counts(&self) -> (u32, u32) {
        (self.variables, self.cursors)
    }

    /// Whether a RETURN was read.
    pub(super) fn returns(&self) -> bool {
        self.returns
    }

    /// The columns of OLD and NEW that were named.
    pub(super) fn take_row_columns(&mut self) -> Vec<RowColumn> {
        std::mem::take(&mut self.row_columns)
    }

    /// Its statements are part of another: it may neither end a transaction nor return rows.
    fn is_part(&self) -> bool {
        matches!(self.kind, Some(ProgramKind::Function | ProgramKind::Trigger { .. }))
    }

    fn variable(&self, name: &str) -> Option<u32> {
        let known = |names: &Names| find(&names.variables, name).copied();
        self.blocks.iter().rev().find_map(known)
    }
}

/// Names of programs compare case-insensitively.
fn same(a: &str, b: &str) -> bool {
    a == b || a.to_lowercase() == b.to_lowercase()
}

fn find<'n, T>(names: &'n [(Box<str>, T)], name: &str) -> Option<&'n T> {
    names.iter().find(|(known, _)| same(known, name)).map(|(_, value)| value)
}

impl Parser<'_> {
    /// A program of this kind begins; its parameters are its first variables.
    pub(super) fn begin_program(
        &mut self,
        kind: Option<RoutineKind>,
        params: &[RoutineParam],
    ) -> PResult<()> {
        let kind = kind.map(|kind| match kind {
            RoutineKind::Function => ProgramKind::Function,
            RoutineKind::Procedure => ProgramKind::Procedure,
        });
        self.program = Some(Box::new(ProgramScope { kind, ..ProgramScope::default() }));
        self.enter_block();
        for param in params {
            match self.declare_variable(&param.name) {
                Some(slot) => self.note_type(slot, 1, &param.data_type),
                None => {
                    let text = format!("Duplicate parameter: {}", param.name.text);
                    return self.fail_other(1330, text);
                }
            }
        }
        Ok(())
    }

    /// A trigger begins.
    pub(super) fn begin_trigger(&mut self, before: bool, event: TriggerEvent) {
        let kind = Some(ProgramKind::Trigger { before, event });
        self.program = Some(Box::new(ProgramScope { kind, ..ProgramScope::default() }));
        self.enter_block();
    }

    /// Whether a qualified name is a column of a trigger's row, and whether of NEW.
    pub(super) fn row_of_trigger(&self, qualifier: &str) -> Option<bool> {
        let scope = self.program.as_deref()?;
        let is_new = qualifier.eq_ignore_ascii_case("NEW");
        let is_row = is_new || qualifier.eq_ignore_ascii_case("OLD");
        (is_row && matches!(scope.kind, Some(ProgramKind::Trigger { .. }))).then_some(is_new)
    }

    /// The variable for `OLD.name` or `NEW.name`.
    pub(super) fn row_column(
        &mut self,
        is_new: bool,
        name: &Ident,
        assigned: bool,
    ) -> PResult<LocalVariable> {
        let Some(ProgramKind::Trigger { before, event }) = self.scope().kind else {
            return self.fail();
        };
        let row = if is_new { "NEW" } else { "OLD" };
        let absent = match event {
            TriggerEvent::Insert => (!is_new).then_some("INSERT"),
            TriggerEvent::Delete => is_new.then_some("DELETE"),
            TriggerEvent::Update => None,
        };
        if let Some(event) = absent {
            return self.fail_other(1363, format!("There is no {row} row in on {event} trigger"));
        }
        if assigned && !(is_new && before) {
            let word = if is_new { "after " } else { "" };
            let text = format!("Updating of {row} row is not allowed in {word}trigger");
            return self.fail_other(1362, text);
        }
        let scope = self.scope();
        let known = scope
            .row_columns
            .iter_mut()
            .find(|known| known.is_new == is_new && same(&known.name.text, &name.text));
        if let Some(known) = known {
            known.assigned |= assigned;
            return Ok(LocalVariable { name: name.clone(), slot: known.slot });
        }
        let slot = scope.variables;
        scope.variables += 1;
        scope.row_columns.push(RowColumn { is_new, name: name.clone(), slot, assigned });
        Ok(LocalVariable { name: name.clone(), slot })
    }

    /// A procedure may write to a column of NEW that is passed to it.
    fn note_call(&mut self, call: &Call) {
        let Some(scope) = self.program.as_deref_mut() else { return };
        let is_before = matches!(scope.kind, Some(ProgramKind::Trigger { before: true, .. }));
        for arg in call.args.iter().filter(|_| is_before) {
            let ExprKind::Param(slot) = arg.kind else { continue };
            let columns = scope.row_columns.iter_mut();
            columns
                .filter(|column| column.is_new && column.slot == slot)
                .for_each(|column| column.assigned = true);
        }
    }

    fn scope(&mut self) -> &mut ProgramScope {
        self.program.get_or_insert_default()
    }

    fn names(&mut self) -> &mut Names {
        let scope = self.scope();
        if scope.blocks.is_empty() {
            scope.blocks.push(Names::default());
        }
        scope.blocks.last_mut().expect("a program has a block")
    }

    pub(super) fn enter_block(&mut self) {
        self.scope().blocks.push(Names::default());
    }

    pub(super) fn leave_block(&mut self) {
        self.scope().blocks.pop();
    }

    /// The number of a new variable of the innermost block; `None` when the block already has one of that name.
    fn declare_variable(&mut self, name: &Ident) -> Option<u32> {
        if find(&self.names().variables, &name.text).is_some() {
            return None;
        }
        let slot = self.scope().variables;
        self.scope().variables += 1;
        self.names().variables.push((name.text.clone(), slot));
        Some(slot)
    }

    /// Notes the type of `count` variables from `first` on.
    pub(super) fn note_type(&mut self, first: u32, count: u32, ty: &DataType) {
        use TypeName::*;
        if !matches!(ty.name, TinyInt | SmallInt | MediumInt | Int | BigInt | Bool) {
            self.scope().not_integers.extend(first..first + count);
        }
    }

    /// A variable that LIMIT counts by.
    pub(super) fn limit_variable(&self, name: &Ident, start: u32) -> PResult<u32> {
        let Some(slot) = self.local_variable(&name.text) else {
            return self.fail_other(1327, format!("Undeclared variable: {}", name.text));
        };
        let scope = self.program.as_deref();
        if scope.is_some_and(|scope| scope.not_integers.contains(&slot)) {
            let (near, line) = near(self.src, start as usize);
            let text = format!(
                "The variable \"{}\" has a non-integer based type near '{near}' at line {line}",
                name.text
            );
            return self.fail_other(1064, text);
        }
        Ok(slot)
    }

    /// DECLARE a, b: the number of the first. Their default is read before they are known.
    pub(super) fn declare_variables(&mut self, names: &[Ident]) -> PResult<u32> {
        let first = self.scope().variables;
        for name in names {
            if self.declare_variable(name).is_none() {
                return self.fail_other(1331, format!("Duplicate variable: {}", name.text));
            }
        }
        Ok(first)
    }

    /// Variables and conditions come before cursors and handlers.
    pub(super) fn check_declared_early(&mut self) -> PResult<()> {
        let names = self.names();
        if names.has_handler || !names.cursors.is_empty() {
            let text = "Variable or condition declaration after cursor or handler declaration";
            return self.fail_other(1337, text);
        }
        Ok(())
    }

    pub(super) fn declare_condition(
        &mut self,
        name: &Ident,
        value: &ConditionValue,
    ) -> PResult<()> {
        self.check_declared_early()?;
        if find(&self.names().conditions, &name.text).is_some() {
            return self.fail_other(1332, format!("Duplicate condition: {}", name.text));
        }
        self.names().conditions.push((name.text.clone(), value.clone()));
        Ok(())
    }

    /// The number of a new cursor.
    pub(super) fn declare_cursor(&mut self, name: &Ident) -> PResult<u32> {
        if self.names().has_handler {
            return self.fail_other(1338, "Cursor declaration after handler declaration");
        }
        if find(&self.names().cursors, &name.text).is_some() {
            return self.fail_other(1333, format!("Duplicate cursor: {}", name.text));
        }
        let slot = self.scope().cursors;
        self.scope().cursors += 1;
        self.names().cursors.push((name.text.clone(), slot));
        Ok(slot)
    }

    /// The body of a handler begins: labels around it are out of reach.
    pub(super) fn enter_handler(&mut self, conditions: &[ConditionValue]) -> PResult<usize> {
        let names = self.names();
        names.has_handler = true;
        for condition in conditions {
            if names.handled.contains(condition) {
                return self.fail_other(1413, "Duplicate handler declared in the same block");
            }
            names.handled.push(condition.clone());
        }
        let scope = self.scope();
        let outer = scope.first_label;
        scope.first_label = scope.labels.len();
        Ok(outer)
    }

    pub(super) fn leave_handler(&mut self, outer: usize) {
        self.scope().first_label = outer;
    }

    /// A labelled statement begins.
    pub(super) fn enter_label(&mut self, label: Option<&Ident>, is_loop: bool) -> PResult<()> {
        let Some(label) = label else { return Ok(()) };
        let scope = self.scope();
        if scope.labels[scope.first_label..].iter().any(|known| same(&known.name, &label.text)) {
            return self.fail_other(1309, format!("Redefining label {}", label.text));
        }
        scope.labels.push(Label { name: label.text.clone(), is_loop });
        Ok(())
    }

    pub(super) fn leave_label(&mut self, label: Option<&Ident>) {
        if label.is_some() {
            self.scope().labels.pop();
        }
    }

    /// The label of LEAVE and ITERATE.
    pub(super) fn used_label(&mut self, iterate: bool) -> PResult<Ident> {
        let label = self.ident()?;
        let scope = self.scope();
        let known = scope.labels[scope.first_label..]
            .iter()
            .any(|known| same(&known.name, &label.text) && (known.is_loop || !iterate));
        if !known {
            let word = if iterate { "ITERATE" } else { "LEAVE" };
            return self.fail_other(1308, format!("{word} with no matching label: {}", label.text));
        }
        Ok(label)
    }

    /// RETURN is read.
    pub(super) fn note_return(&mut self) -> PResult<()> {
        let scope = self.scope();
        scope.returns = true;
        if scope.kind != Some(ProgramKind::Function) {
            return self.fail_other(1313, "RETURN is only allowed in a FUNCTION");
        }
        Ok(())
    }

    /// The number of a cursor by its name.
    pub(super) fn used_cursor(&mut self) -> PResult<u32> {
        let name = self.ident()?;
        let known =
            self.scope().blocks.iter().rev().find_map(|names| find(&names.cursors, &name.text));
        match known.copied() {
            Some(slot) => Ok(slot),
            None => self.fail_other(1324, format!("Undefined CURSOR: {}", name.text)),
        }
    }

    /// The condition that a name refers to.
    pub(super) fn used_condition(&mut self, name: Ident) -> PResult<ConditionValue> {
        let Some(scope) = self.program.as_deref() else { return Ok(ConditionValue::Name(name)) };
        let known = scope.blocks.iter().rev().find_map(|names| find(&names.conditions, &name.text));
        match known.cloned() {
            Some(value) => Ok(value),
            None => self.fail_other(1319, format!("Undefined CONDITION: {}", name.text)),
        }
    }

    /// The variable that a name in an expression refers to.
    #[inline]
    pub(super) fn local_variable(&self, name: &str) -> Option<u32> {
        self.program.as_deref()?.variable(name)
    }

    /// A variable that is assigned to.
    pub(super) fn assigned_variable(&mut self, name: Ident) -> PResult<LocalVariable> {
        match self.local_variable(&name.text) {
            Some(slot) => Ok(LocalVariable { name, slot }),
            None => self.fail_other(1327, format!("Undeclared variable: {}", name.text)),
        }
    }

    /// Statements that stored programs may not have.
    pub(super) fn check_in_program(&mut self, statement: &Statement) -> PResult<()> {
        if let Statement::Call(call) = statement {
            self.note_call(call);
        }
        let word = match statement {
            Statement::LockTables(_) => "LOCK",
            Statement::Handler(_) => "HANDLER",
            Statement::UnlockTables => "UNLOCK",
            Statement::Use(_) => "USE",
            Statement::LoadData(_) => "LOAD DATA",
            Statement::AlterView(_) => "ALTER VIEW",
            Statement::Help(_) => "HELP",
            Statement::TableMaintenance(work) if work.kind == MaintenanceKind::Check => "CHECK",
            Statement::CreateRoutine(create) => {
                let text = format!(
                    "Can't create a {} from within another stored routine",
                    word_of(create.kind)
                );
                return self.fail_other(1303, text);
            }
            Statement::CreateTrigger(_) => {
                let text = "Can't create a TRIGGER from within another stored routine";
                return self.fail_other(1303, text);
            }
            Statement::DropRoutine(drop) => return self.refuse_change(drop.kind),
            Statement::AlterRoutine(alter) => return self.refuse_change(alter.kind),
            _ if self.program.as_deref().is_some_and(ProgramScope::is_part) => {
                return self.check_in_function(statement);
            }
            _ => return Ok(()),
        };
        self.fail_other(1314, format!("{word} is not allowed in stored procedures"))
    }

    /// Statements that stored functions and triggers may not have either.
    fn check_in_function(&self, statement: &Statement) -> PResult<()> {
        const AUTOCOMMIT: &str = "Not allowed to set autocommit from a stored function or trigger";
        use Statement::*;
        let (number, text) = match statement {
            Query(query) if query.into.is_none() => return self.no_result_set(),
            Show(_) | Describe(_) | Explain(_) | Profile(_) | TableMaintenance(_) | KeyCache(_) => {
                return self.no_result_set();
            }
            Prepare { .. } | Execute { .. } | ExecuteText { .. } | Deallocate(_) => {
                (1336, "Dynamic SQL is not allowed in stored function or trigger")
            }
            Flush(_) => (1336, "FLUSH is not allowed in stored function or trigger"),
            Reset(_) | ResetPersist { .. } => {
                (1336, "RESET is not allowed in stored function or trigger")
            }
            SetPassword(_) => (1445, AUTOCOMMIT),
            Set(items) if items.iter().any(sets_autocommit) => (1445, AUTOCOMMIT),
            statement if may_commit(statement) => {
                (1422, "Explicit or implicit commit is not allowed in stored function or trigger.")
            }
            _ => return Ok(()),
        };
        self.fail_other(number, text)
    }

    fn no_result_set(&self) -> PResult<()> {
        let kind = self.program.as_deref().and_then(|scope| scope.kind);
        let word = match kind {
            Some(ProgramKind::Trigger { .. }) => "trigger",
            Some(ProgramKind::Function | ProgramKind::Procedure) | None => "function",
        };
        self.fail_other(1415, format!("Not allowed to return a result set from a {word}"))
    }

    fn refuse_change(&self, kind: RoutineKind) -> PResult<()> {
        let kind = word_of(kind);
        let text = format!("Can't drop or alter a {kind} from within another stored routine");
        self.fail_other(1357, text)
    }
}

/// Whether the reference lets no function have a statement, since it ends the transaction.
#[rustfmt::skip]
fn may_commit(statement: &Statement) -> bool {
    use Statement::*;
    match statement {
        CreateTable(create) => !create.temporary,
        DropTable(drop) => !drop.temporary,
        Plugin(change) => matches!(**change, PluginStatement::InstallPlugin { .. } | PluginStatement::UninstallPlugin { .. }),
        other => matches!(other, StartTransaction(_) | Commit(_) | Rollback(_) | TruncateTable(_) | AlterTable(_) | RenameTable(_) | CreateIndex(_) | DropIndex(_)
        | CreateView(_) | DropView(_) | DropTrigger(_) | CreateDatabase(_) | AlterDatabase(_) | DropDatabase(_) | AlterEvent(_) | DropEvent(_)
        | CreateUser(_) | AlterUser(_) | DropUser { .. } | RenameUser(_) | CreateRole { .. } | DropRole { .. } | Grant(_) | Revoke(_) | Server(_)
        | DropServer { .. } | Tablespace(_) | LogfileGroup(_) | CreateSpatialReferenceSystem(_) | DropSpatialReferenceSystem { .. }
        | ResourceGroup(_) | AlterInstance(_) | Replication(_)),
    }
}

fn sets_autocommit(item: &SetItem) -> bool {
    matches!(item, SetItem::Variable { component: None, name, .. } if name.is("AUTOCOMMIT"))
}

fn word_of(kind: RoutineKind) -> &'static str {
    match kind {
        RoutineKind::Procedure => "PROCEDURE",
        RoutineKind::Function => "FUNCTION",
    }
}
