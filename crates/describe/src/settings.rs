//! EXPLAIN of SET and of ALTER SYSTEM: what the statement would change, what it keeps waiting, when it takes effect. Nothing changes.

use errors::{Error, Result};
use plugin_api::ColumnMeta;
use syntax::ast::{Expr, ExprKind, SetItem};
use types::{CollationId, DataType, Value};
use variables::{
    Definition, Effect, Memory, VariableId, as_u64, display_text, effect, memory, operator_bytes,
    unit,
};

use crate::facts::ServerFacts;

/// Which value of a variable a statement changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// The session's.
    Session,
    /// That of the session's next transaction.
    NextTransaction,
    /// The server's.
    Global,
    /// The server's, and the one that is kept for later starts.
    Persist,
    /// Only the one that is kept.
    PersistOnly,
    /// That of a listener, and the one that is kept.
    Rebind,
}

impl Level {
    fn is_kept(self) -> bool {
        match self {
            Level::Persist | Level::PersistOnly | Level::Rebind => true,
            Level::Session | Level::NextTransaction | Level::Global => false,
        }
    }
}

/// A checked assignment of the statement.
#[derive(Clone, Debug)]
pub struct PlannedSetting {
    /// The variable.
    pub id: VariableId,
    /// Which of its values.
    pub level: Level,
    /// The value now.
    pub current: Value,
    /// The value after the statement.
    pub new: Value,
}

/// Refuses assignments that cannot be explained: those that only a run can compute without side effects, and those to other things than
/// system variables.
///
/// # Errors
/// 1235.
pub fn check_explainable(items: &[SetItem]) -> Result<()> {
    for item in items {
        match item {
            SetItem::Variable { value, .. } if has_no_effects(value) => {}
            SetItem::Variable { .. } => {
                return Err(Error::not_supported(
                    "EXPLAIN of SET to the value of a function or subquery",
                ));
            }
            SetItem::Names { .. } | SetItem::CharacterSet(_) => {}
            SetItem::UserVar { .. } | SetItem::Local { .. } => {
                return Err(Error::not_supported("EXPLAIN of SET of a user variable"));
            }
        }
    }
    Ok(())
}

/// Whether computing the value calls nothing and assigns nothing.
fn has_no_effects(value: &Expr) -> bool {
    if let ExprKind::Unary { expr, .. } = &value.kind {
        return has_no_effects(expr);
    }
    if let ExprKind::Binary { left, right, .. } = &value.kind {
        return has_no_effects(left) && has_no_effects(right);
    }
    matches!(
        value.kind,
        ExprKind::Literal(_)
            | ExprKind::Param(_)
            | ExprKind::Column(_)
            | ExprKind::UserVar(_)
            | ExprKind::SystemVar(_)
            | ExprKind::Default(None)
    )
}

/// The columns of the answer.
pub fn setting_columns() -> Vec<ColumnMeta> {
    let text = |name, length| {
        ColumnMeta::computed(name, DataType::varchar(length, CollationId::UTF8MB4_0900_AI_CI))
    };
    vec![
        ColumnMeta::computed("step", DataType::bigint_unsigned()),
        text("node", 64),
        text("action", 255),
        text("online", 3),
        text("blocks", 64),
        ColumnMeta::computed("estimated_seconds", DataType::double()),
        text("variable", 64),
        text("current_value", 1024),
        text("new_value", 1024),
        text("unit", 16),
        ColumnMeta::computed("memory_bytes", DataType::bigint()),
        text("memory_of", 32),
        text("takes_effect", 16),
        text("needs_restart", 3),
    ]
}

/// One row of the answer.
struct Step {
    action: String,
    blocks: Option<String>,
    seconds: f64,
    setting: Option<SettingFacts>,
    needs_restart: bool,
}

struct SettingFacts {
    name: &'static str,
    current: String,
    new: String,
    unit: Option<&'static str>,
    memory: Option<(i64, Memory)>,
    effect: &'static str,
}

/// The rows: a step for each assignment, one for what is kept, and the total.
pub fn setting_rows(server: &dyn ServerFacts, planned: &[PlannedSetting]) -> Vec<Vec<Value>> {
    let mut steps: Vec<Step> = planned.iter().map(|setting| step(server, setting)).collect();
    let kept = planned.iter().filter(|setting| setting.level.is_kept()).count();
    if kept > 0 {
        let settings = if kept == 1 { "setting" } else { "settings" };
        steps.push(plain_step(
            format!("keep {kept} {settings} for later starts, in one transaction"),
            // The log is synced, and once more when the commit has to wait for a sync that runs.
            2.0 * server.globals().integer("storage_sync_us") as f64 / 1e6,
        ));
    }
    if planned.iter().any(|setting| setting.level == Level::Rebind) {
        let action = "close the addresses that are no longer used; their connections stay";
        steps.push(plain_step(action.to_owned(), 0.0));
    }
    let mut rows: Vec<Vec<Value>> =
        steps.iter().zip(1..).map(|(step, number)| row(Some(number), step)).collect();
    rows.push(row(None, &total(&steps)));
    rows
}

fn plain_step(action: String, seconds: f64) -> Step {
    Step { action, blocks: None, seconds, setting: None, needs_restart: false }
}

fn step(server: &dyn ServerFacts, setting: &PlannedSetting) -> Step {
    let definition = server.globals().definitions.get(setting.id);
    let effect = effect(definition);
    let is_running = !matches!(setting.level, Level::PersistOnly);
    let is_server = matches!(setting.level, Level::Global | Level::Persist | Level::Rebind);
    let shown = |value: &Value| match value {
        Value::Null => "NULL".to_owned(),
        value => display_text(definition, value),
    };
    let facts = SettingFacts {
        name: definition.name,
        current: shown(&setting.current),
        new: shown(&setting.new),
        unit: unit(definition),
        memory: memory_change(server, definition, setting),
        effect: match setting.level {
            Level::Session | Level::Rebind => "AT ONCE",
            Level::NextTransaction => "NEXT TRANSACTION",
            Level::PersistOnly if effect != Effect::Nothing => "NEXT START",
            Level::Global | Level::Persist | Level::PersistOnly => effect.as_str(),
        },
    };
    let is_changed = setting.current != setting.new;
    Step {
        action: action(setting.level, effect).to_owned(),
        blocks: if is_running && is_server {
            blocks(server, definition, &setting.new)
        } else {
            None
        },
        seconds: 0.0,
        needs_restart: is_changed
            && match setting.level {
                Level::PersistOnly => effect != Effect::Nothing,
                Level::Global | Level::Persist => effect.needs_restart(),
                Level::Session | Level::NextTransaction | Level::Rebind => false,
            },
        setting: Some(facts),
    }
}

fn action(level: Level, effect: Effect) -> &'static str {
    match (level, effect) {
        (Level::Rebind, _) => "listen on the new address beside the present one",
        (_, Effect::Nothing) => "note the value; nothing reads it",
        (Level::Session, _) => "change the value of this session",
        (Level::NextTransaction, _) => "change the value of the next transaction",
        (Level::PersistOnly, _) => "leave the running server as it is",
        (Level::Global | Level::Persist, Effect::NewSessions) => {
            "change the value that new sessions begin with"
        }
        (Level::Global | Level::Persist, Effect::Option) => {
            "note the value; an option of the next start decides"
        }
        (
            Level::Global | Level::Persist,
            Effect::AtOnce | Effect::Rebinds | Effect::NextStart | Effect::Fact,
        ) => "change the value of the running server",
    }
}

/// What waits or is refused once the server has the value.
fn blocks(server: &dyn ServerFacts, definition: &Definition, new: &Value) -> Option<String> {
    let is_on = as_u64(new) == 1;
    match definition.name {
        "read_only" if is_on => Some("writes of accounts without CONNECTION_ADMIN".to_owned()),
        "super_read_only" if is_on => Some("all writes".to_owned()),
        "offline_mode" if is_on => Some("accounts without CONNECTION_ADMIN".to_owned()),
        "require_secure_transport" if is_on => Some("log-ins over plain TCP".to_owned()),
        "event_scheduler" if variables::as_text(new) != "ON" => Some("events".to_owned()),
        "max_connections" => {
            let excess = server.connections().open.saturating_sub(as_u64(new));
            (excess > 0).then(|| format!("log-ins, until {excess} connections have ended"))
        }
        _ => None,
    }
}

/// How many bytes more may be used, and by whom.
fn memory_change(
    server: &dyn ServerFacts,
    definition: &Definition,
    setting: &PlannedSetting,
) -> Option<(i64, Memory)> {
    let memory = memory(definition)?;
    let (current, new) = (as_u64(&setting.current), as_u64(&setting.new));
    let other = |name| server.globals().integer(name);
    let (before, after) = match definition.name {
        "sort_buffer_size" => {
            let other = other("tmp_table_size");
            (operator_bytes(current, other), operator_bytes(new, other))
        }
        "tmp_table_size" => {
            let other = other("sort_buffer_size");
            (operator_bytes(other, current), operator_bytes(other, new))
        }
        _ => (current, new),
    };
    let change = i128::from(after) - i128::from(before);
    let bounds = (i128::from(i64::MIN), i128::from(i64::MAX));
    Some((change.clamp(bounds.0, bounds.1) as i64, memory))
}

/// The sum of the steps. Only the memory of the server as a whole can be added.
fn total(steps: &[Step]) -> Step {
    let of_server = steps.iter().filter_map(|step| match step.setting.as_ref()?.memory? {
        (bytes, Memory::Server) => Some(bytes),
        (_, Memory::Connection | Memory::Operator) => None,
    });
    let bytes = of_server
        .fold(None, |sum: Option<i64>, bytes| Some(sum.unwrap_or_default().saturating_add(bytes)));
    let blocks: Vec<&str> = steps.iter().filter_map(|step| step.blocks.as_deref()).collect();
    let facts = bytes.map(|bytes| SettingFacts {
        name: "",
        current: String::new(),
        new: String::new(),
        unit: None,
        memory: Some((bytes, Memory::Server)),
        effect: "",
    });
    Step {
        action: "total".to_owned(),
        blocks: (!blocks.is_empty()).then(|| blocks.join("; ")),
        seconds: steps.iter().map(|step| step.seconds).sum(),
        setting: facts,
        needs_restart: steps.iter().any(|step| step.needs_restart),
    }
}

fn row(number: Option<u64>, step: &Step) -> Vec<Value> {
    let yes_no = |truth| Value::text(if truth { "YES" } else { "NO" });
    let facts = step.setting.as_ref();
    let of_variable = |text: fn(&SettingFacts) -> &str| match facts {
        Some(facts) if !facts.name.is_empty() => Value::text(text(facts)),
        _ => Value::Null,
    };
    let memory = facts.and_then(|facts| facts.memory);
    vec![
        number.map_or(Value::Null, Value::UInt),
        Value::text("this server"),
        Value::text(&step.action),
        yes_no(step.blocks.is_none()),
        Value::text(step.blocks.as_deref().unwrap_or("nothing")),
        // In steps of a millisecond.
        Value::Double((step.seconds * 1000.0).ceil() / 1000.0),
        of_variable(|facts| facts.name),
        of_variable(|facts| &facts.current),
        of_variable(|facts| &facts.new),
        facts.and_then(|facts| facts.unit).map_or(Value::Null, Value::text),
        memory.map_or(Value::Null, |(bytes, _)| Value::Int(bytes)),
        memory.map_or(Value::Null, |(_, whose)| Value::text(whose.as_str())),
        of_variable(|facts| facts.effect),
        yes_no(step.needs_restart),
    ]
}
