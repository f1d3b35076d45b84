//! Character sets, engines, plugins, variables, counters and connections.

use errors::Result;
use plugin_api::{
    InfoFilter, InformationContext, Loading, OptimizerTraceView, PluginItemView, PluginView,
    ProcessView, SessionServices, StatusScope,
};
use types::Value;

use crate::row::{Emit, exact_time, optional, yes_no};

/// `CHARACTER_SETS`.
pub fn character_sets(
    _: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let mut sets: Vec<_> = charset::charsets().iter().collect();
    sets.sort_by_key(|charset| charset.default_collation.0);
    for charset in sets {
        let collation = charset::collation_or_binary(charset.default_collation);
        emit(&[
            Value::text(charset.name),
            Value::text(collation.name),
            Value::text(charset.description),
            Value::UInt(charset.max_length.into()),
        ])?;
    }
    Ok(())
}

/// The collations, grouped by character set.
fn by_character_set() -> Vec<&'static charset::Collation> {
    let mut collations: Vec<_> = charset::collations().iter().collect();
    collations.sort_by_key(|collation| (collation.charset.name, collation.id.0));
    collations
}

/// `COLLATIONS`.
pub fn collations(_: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for collation in by_character_set() {
        let pad = match collation.pad {
            charset::PadAttribute::PadSpace => "PAD SPACE",
            charset::PadAttribute::NoPad => "NO PAD",
        };
        emit(&[
            Value::text(collation.name),
            Value::text(collation.charset.name),
            Value::UInt(collation.id.0.into()),
            Value::text(if collation.is_default { "Yes" } else { "" }),
            Value::text("Yes"),
            Value::UInt(collation.sort_length.into()),
            Value::text(pad),
        ])?;
    }
    Ok(())
}

/// `COLLATION_CHARACTER_SET_APPLICABILITY`.
pub fn collation_character_sets(
    _: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    by_character_set().into_iter().try_for_each(|collation| {
        emit(&[Value::text(collation.name), Value::text(collation.charset.name)])
    })
}

/// `INNODB_FT_DEFAULT_STOPWORD`: words that FULLTEXT indexes ignore.
pub fn stopwords(_: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    types::fulltext::STOPWORDS.iter().try_for_each(|word| emit(&[Value::text(word)]))
}

/// `ENGINES`.
pub fn engines(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for engine in ctx.engines() {
        emit(&[
            Value::text(&engine.name),
            Value::text(engine.support),
            Value::text(&engine.comment),
            yes_no(engine.transactions),
            yes_no(engine.xa),
            yes_no(engine.savepoints),
        ])?;
    }
    Ok(())
}

/// `PLUGINS`: a row for each plugin that can be removed, loaded or not, and one for each method, engine and listener of those that are
/// always there.
pub fn plugins(ctx: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    for plugin in ctx.plugins() {
        if plugin.info.loading != Loading::Always {
            emit_plugin(&plugin, &plugin.info.name, MODULE, emit)?;
            continue;
        }
        for PluginItemView { slot, name } in plugin.items.iter().filter(|item| is_shown(item.slot))
        {
            emit_plugin(&plugin, name, slot, emit)?;
        }
    }
    Ok(())
}

/// The type of a plugin as a whole.
const MODULE: &str = "MODULE";

/// A row of `PLUGINS`.
fn emit_plugin(plugin: &PluginView, name: &str, kind: &str, emit: &mut Emit<'_>) -> Result<()> {
    let (info, library) = (&plugin.info, plugin.library.as_deref());
    emit(&[
        Value::text(name),
        Value::text(&info.version),
        Value::text(if plugin.is_loaded { "ACTIVE" } else { "DISABLED" }),
        Value::text(kind),
        Value::text("1.0"),
        library.map_or(Value::Null, Value::text),
        library.map_or(Value::Null, |_| Value::text("1.0")),
        Value::text(&info.author),
        Value::text(&info.description),
        Value::text(&info.licence),
        Value::text(match (info.loading, plugin.is_loaded) {
            (Loading::Always, _) => "FORCE",
            (Loading::ByDefault | Loading::OnRequest, true) => "ON",
            (Loading::ByDefault | Loading::OnRequest, false) => "OFF",
        }),
    ])
}

fn is_shown(slot: &str) -> bool {
    matches!(slot, "AUTHENTICATION" | "STORAGE ENGINE" | "LISTENER")
}

/// `mysql.plugin`: the loaded plugins that somebody asked for, with their files.
pub fn mysql_plugin(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for PluginView { info, library, is_loaded, .. } in ctx.plugins() {
        if is_loaded && info.loading == Loading::OnRequest {
            emit(&[Value::text(&info.name), Value::text(library.as_deref().unwrap_or(""))])?;
        }
    }
    Ok(())
}

/// `mysql.component`: the same plugins under the names that INSTALL COMPONENT takes.
pub fn mysql_component(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let mut id = 0;
    for PluginView { info, library, is_loaded, .. } in ctx.plugins() {
        if is_loaded && info.loading == Loading::OnRequest && library.is_none() {
            id += 1;
            let urn = format!("file://component_{}", info.name);
            emit(&[Value::UInt(id), Value::UInt(id), Value::text(&urn)])?;
        }
    }
    Ok(())
}

/// `mysql.servers`: those of CREATE SERVER.
pub fn mysql_servers(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for server in ctx.foreign_servers() {
        let mut row: Vec<Value> = server.texts.iter().map(|text| Value::text(text)).collect();
        row.push(Value::UInt(server.port.into()));
        row.extend(server.rest.iter().map(|text| Value::text(text)));
        emit(&row)?;
    }
    Ok(())
}

/// `KEYWORDS`: words that the SQL standard and the reference reserve.
pub fn keywords(_: &dyn InformationContext, _: &InfoFilter, emit: &mut Emit<'_>) -> Result<()> {
    RESERVED.split_whitespace().try_for_each(|word| emit(&[Value::text(word), Value::Int(1)]))
}

const RESERVED: &str = "ACCESSIBLE ADD ALL ALTER ANALYZE AND AS ASC ASENSITIVE BEFORE BETWEEN \
    BIGINT BINARY BLOB BOTH BY CALL CASCADE CASE CHANGE CHAR CHARACTER CHECK COLLATE COLUMN \
    CONDITION CONSTRAINT CONTINUE CONVERT CREATE CROSS CUBE CUME_DIST CURRENT_DATE CURRENT_TIME \
    CURRENT_TIMESTAMP CURRENT_USER CURSOR DATABASE DATABASES DAY_HOUR DAY_MICROSECOND DAY_MINUTE \
    DAY_SECOND DEC DECIMAL DECLARE DEFAULT DELAYED DELETE DENSE_RANK DESC DESCRIBE DETERMINISTIC \
    DISTINCT DISTINCTROW DIV DOUBLE DROP DUAL EACH ELSE ELSEIF EMPTY ENCLOSED ESCAPED EXCEPT \
    EXISTS EXIT EXPLAIN FALSE FETCH FIRST_VALUE FLOAT FLOAT4 FLOAT8 FOR FORCE FOREIGN FROM \
    FULLTEXT FUNCTION GENERATED GET GRANT GROUP GROUPING GROUPS HAVING HIGH_PRIORITY \
    HOUR_MICROSECOND HOUR_MINUTE HOUR_SECOND IF IGNORE IN INDEX INFILE INNER INOUT INSENSITIVE \
    INSERT INT INT1 INT2 INT3 INT4 INT8 INTEGER INTERSECT INTERVAL INTO IO_AFTER_GTIDS \
    IO_BEFORE_GTIDS IS ITERATE JOIN JSON_TABLE KEY KEYS KILL LAG LAST_VALUE LATERAL LEAD LEADING \
    LEAVE LEFT LIKE LIMIT LINEAR LINES LOAD LOCALTIME LOCALTIMESTAMP LOCK LONG LONGBLOB LONGTEXT \
    LOOP LOW_PRIORITY MANUAL MATCH MAXVALUE MEDIUMBLOB MEDIUMINT MEDIUMTEXT MIDDLEINT \
    MINUTE_MICROSECOND MINUTE_SECOND MOD MODIFIES NATURAL NOT NO_WRITE_TO_BINLOG NTH_VALUE NTILE \
    NULL NUMERIC OF ON OPTIMIZE OPTIMIZER_COSTS OPTION OPTIONALLY OR ORDER OUT OUTER OUTFILE OVER \
    PARALLEL PARTITION PERCENT_RANK PRECISION PRIMARY PROCEDURE PURGE QUALIFY RANGE RANK READ \
    READS READ_WRITE REAL RECURSIVE REFERENCES REGEXP RELEASE RENAME REPEAT REPLACE REQUIRE \
    RESIGNAL RESTRICT RETURN REVOKE RIGHT RLIKE ROW ROWS ROW_NUMBER SCHEMA SCHEMAS \
    SECOND_MICROSECOND SELECT SENSITIVE SEPARATOR SET SHOW SIGNAL SMALLINT SPATIAL SPECIFIC SQL \
    SQLEXCEPTION SQLSTATE SQLWARNING SQL_BIG_RESULT SQL_CALC_FOUND_ROWS SQL_SMALL_RESULT SSL \
    STARTING STORED STRAIGHT_JOIN SYSTEM TABLE TABLESAMPLE TERMINATED THEN TINYBLOB TINYINT \
    TINYTEXT TO TRAILING TRIGGER TRUE UNDO UNION UNIQUE UNLOCK UNSIGNED UPDATE USAGE USE USING \
    UTC_DATE UTC_TIME UTC_TIMESTAMP VALUES VARBINARY VARCHAR VARCHARACTER VARYING VIRTUAL WHEN \
    WHERE WHILE WINDOW WITH WRITE XOR YEAR_MONTH ZEROFILL";

fn process_row(process: &ProcessView) -> Vec<Value> {
    vec![
        Value::UInt(process.id),
        Value::text(&process.user),
        Value::text(&process.host),
        optional(process.database.as_deref()),
        Value::text(process.command),
        Value::Int(process.seconds as i64),
        Value::text(process.state),
        optional(process.info.as_deref()),
    ]
}

/// `PROCESSLIST`.
pub fn processlist(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    ctx.processes().iter().try_for_each(|process| emit(&process_row(process)))
}

/// `performance_schema.processlist`, which also names the executing engine.
pub fn performance_processlist(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    ctx.processes().iter().try_for_each(|process| {
        let mut row = process_row(process);
        row.push(Value::text("PRIMARY"));
        emit(&row)
    })
}

/// `performance_schema.session_connect_attrs`: the attributes that the clients of all connections sent.
pub fn connect_attributes(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    ctx.processes().iter().try_for_each(|process| attributes(process, emit))
}

/// `performance_schema.session_account_connect_attrs`: of the connections of the own account.
pub fn account_attributes(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let own = ctx.current_user();
    let processes = ctx.processes();
    let mut of_account = processes.iter().filter(|process| process.account == own);
    of_account.try_for_each(|process| attributes(process, emit))
}

fn attributes(process: &ProcessView, emit: &mut Emit<'_>) -> Result<()> {
    for (position, (name, value)) in process.attributes.iter().enumerate() {
        let id = Value::UInt(process.id);
        emit(&[id, Value::text(name), Value::text(value), Value::Int(position as i64)])?;
    }
    Ok(())
}

/// `performance_schema.global_variables`.
pub fn global_variables(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for variable in ctx.variables() {
        if let Some(value) = &variable.global {
            emit(&[Value::text(&variable.name), Value::text(value)])?;
        }
    }
    Ok(())
}

/// `performance_schema.session_variables`.
pub fn session_variables(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    ctx.variables().iter().try_for_each(|variable| {
        emit(&[Value::text(&variable.name), Value::text(&variable.session)])
    })
}

/// `performance_schema.variables_info`: the origin of each value.
pub fn variables_info(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for variable in ctx.variables() {
        // Whole numbers, also of variables with fractions.
        let whole = |limit: &str| Value::text(limit.split('.').next().unwrap_or(limit));
        let (least, greatest) = match &variable.range {
            Some((least, greatest)) => (whole(least), whole(greatest)),
            None => (Value::text("0"), Value::text("0")),
        };
        let changed = variable.changed.as_ref();
        emit(&[
            Value::text(&variable.name),
            Value::text(variable.source),
            // Kept values are in the dictionary, not in a file.
            Value::text(""),
            least,
            greatest,
            changed.map_or(Value::Null, |by| exact_time(by.micros)),
            changed.map_or(Value::Null, |by| Value::text(&by.user)),
            changed.map_or(Value::Null, |by| Value::text(&by.host)),
        ])?;
    }
    Ok(())
}

/// `performance_schema.variables_metadata`.
pub fn variables_metadata(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for variable in ctx.variables() {
        let whole = |limit: &str| Value::text(limit.split('.').next().unwrap_or(limit));
        let (least, greatest) = match &variable.range {
            Some((least, greatest)) => (whole(least), whole(greatest)),
            None => (Value::text(""), Value::text("")),
        };
        emit(&[
            Value::text(&variable.name),
            Value::text(variable.scope),
            Value::text(variable.data_type),
            least,
            greatest,
            Value::text(variable.description),
        ])?;
    }
    Ok(())
}

/// `performance_schema.persisted_variables`: what later starts use.
pub fn persisted_variables(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    for variable in ctx.variables() {
        if let Some(kept) = &variable.persisted {
            emit(&[Value::text(&variable.name), Value::text(kept)])?;
        }
    }
    Ok(())
}

fn status(ctx: &dyn InformationContext, scope: StatusScope, emit: &mut Emit<'_>) -> Result<()> {
    let counters = ctx.status(scope);
    counters.iter().try_for_each(|(name, value)| emit(&[Value::text(name), Value::text(value)]))
}

/// `performance_schema.global_status`.
pub fn global_status(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    status(ctx, StatusScope::Global, emit)
}

/// `performance_schema.status_by_thread`: what each session has counted, and how its connection is encrypted.
pub fn status_by_thread(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    let counts = ctx.session_counts();
    for process in ctx.processes() {
        let (version, cipher) = process.tls.as_ref().map_or(("", ""), |(one, two)| (one, two));
        let mut row = |name: &str, value: &str| {
            emit(&[Value::UInt(process.id), Value::text(name), Value::text(value)])
        };
        if let Some(own) = counts.iter().find(|counts| counts.id == process.id) {
            row("Bytes_received", &own.received.to_string())?;
            row("Bytes_sent", &own.sent.to_string())?;
            own.counters.iter().try_for_each(|(name, count)| row(name, &count.to_string()))?;
        }
        row("Ssl_cipher", cipher)?;
        row("Ssl_sessions_reused", "0")?;
        row("Ssl_version", version)?;
    }
    Ok(())
}

/// `performance_schema.session_status`.
pub fn session_status(
    ctx: &dyn InformationContext,
    _: &InfoFilter,
    emit: &mut Emit<'_>,
) -> Result<()> {
    status(ctx, StatusScope::Session, emit)
}

/// `information_schema.OPTIMIZER_TRACE`.
pub fn optimizer_traces(session: &dyn SessionServices) -> Vec<Vec<Value>> {
    let row = |trace: OptimizerTraceView| {
        vec![
            Value::text(&trace.query),
            Value::text(&trace.trace),
            Value::Int(trace.missing_bytes.cast_signed()),
            Value::Int(i64::from(trace.is_hidden)),
        ]
    };
    session.optimizer_traces().into_iter().map(row).collect()
}
