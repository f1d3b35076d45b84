//! A small catalog and registry for tests of the binder and the optimizer.

#![allow(dead_code)]

use std::collections::BTreeMap;
use std::sync::Arc;

use binder::{BindInput, Binder, Bound, CatalogReader, VariableTypes};
use catalog::{
    Column, ColumnDefault, ForeignKey, Index, IndexPart, ReferenceAction, Relation, Table, View,
};
use engine_api::{ColumnDef, IndexDef, IndexId, KeyPart, TableDef, TableId};
use errors::Result;
use plugin_api::{
    Accumulator, AggregateBinding, AggregateFunction, AggregateRole, ArgInfo, Arguments, Arity,
    BindContext, BoundAggregate, BoundFunction, Coercion, FunctionContext, FunctionRole,
    Geometries, Plugin, PluginInfo, Registrar, Registry, Volatility, kit,
};
use types::{CollationId, DataType, SqlMode, TypeKind, Value};

pub const COLLATION: CollationId = CollationId::UTF8MB4_0900_AI_CI;

/// Tables of the schema `test`.
pub struct Catalog {
    pub relations: BTreeMap<String, Relation>,
}

pub fn int() -> DataType {
    DataType::new(TypeKind::Int, 11, 0)
}

pub fn varchar(length: u32) -> DataType {
    DataType::varchar(length, COLLATION)
}

pub fn not_null(ty: DataType) -> DataType {
    ty.with_nullable(false)
}

fn column(name: &str, ty: DataType, stored: usize) -> Column {
    let default = match ty.nullable {
        true => ColumnDefault::Constant(Value::Null),
        false => ColumnDefault::None,
    };
    Column {
        name: Arc::from(name),
        ty,
        stored: Some(stored),
        default,
        on_update_now: None,
        auto_increment: false,
        generated: None,
        invisible: false,
        comment: String::new(),
        collation_written: false,
        histogram: None,
        placement: catalog::Placement::default(),
        history: catalog::ColumnHistory::Kept,
    }
}

/// A table: columns, then indexes as `(name, unique, columns)`; `PRIMARY` first.
pub fn table(
    id: u64,
    name: &str,
    columns: &[(&str, DataType)],
    indexes: &[(&str, bool, &[usize])],
) -> Table {
    let has_primary = indexes.first().is_some_and(|index| index.0 == "PRIMARY");
    let indexes: Vec<Index> = indexes
        .iter()
        .enumerate()
        .map(|(position, (name, unique, parts))| Index {
            id: IndexId(position as u32 + u32::from(!has_primary)),
            name: Arc::from(*name),
            unique: *unique,
            parts: parts
                .iter()
                .map(|part| IndexPart { column: *part, prefix_length: None, descending: false })
                .collect(),
            visible: true,
            comment: String::new(),
            for_foreign_key: false,
            method: None,
            without_overlaps: false,
        })
        .collect();
    let definition = TableDef {
        id: TableId(id),
        name: format!("test.{name}"),
        columns: columns
            .iter()
            .map(|(name, ty)| ColumnDef {
                name: (*name).to_owned(),
                ty: ty.clone(),
                instant_default: None,
            })
            .collect(),
        indexes: indexes
            .iter()
            .map(|index| IndexDef {
                id: index.id,
                name: index.name.to_string(),
                unique: index.unique,
                parts: index
                    .parts
                    .iter()
                    .map(|part| KeyPart {
                        column: part.column,
                        prefix_length: None,
                        descending: false,
                        elements: None,
                    })
                    .collect(),
            })
            .collect(),
    };
    Table {
        id: TableId(id),
        schema: Arc::from("test"),
        name: Arc::from(name),
        engine: Arc::from("MEMORY"),
        temporary: false,
        columns: columns
            .iter()
            .enumerate()
            .map(|(position, (name, ty))| column(name, ty.clone(), position))
            .collect(),
        indexes,
        fulltext: Vec::new(),
        foreign_keys: Vec::new(),
        checks: Vec::new(),
        collation: COLLATION,
        comment: String::new(),
        options: Vec::new(),
        partitioning: None,
        period: None,
        created_micros: 0,
        definition,
    }
}

/// t1(a PRIMARY, b KEY, c varchar), t2(a PRIMARY, b, d date, KEY bd), t3(x, y) without keys, child of t1; view v1.
pub fn catalog() -> Catalog {
    let t1 = table(
        1024,
        "t1",
        &[("a", not_null(int())), ("b", int()), ("c", varchar(20))],
        &[("PRIMARY", true, &[0]), ("b", false, &[1])],
    );
    let date = DataType::new(TypeKind::Date, 10, 0);
    let t2 = table(
        1025,
        "t2",
        &[("a", not_null(int())), ("b", int()), ("d", date)],
        &[("PRIMARY", true, &[0]), ("bd", false, &[1, 2])],
    );
    let t3 = table(1026, "t3", &[("x", int()), ("y", varchar(10))], &[]);
    let stamp = DataType::new(TypeKind::Timestamp, 19, 0);
    let mut t4 = table(
        1027,
        "t4",
        &[("id", not_null(int())), ("parent", int()), ("ts", stamp)],
        &[("PRIMARY", true, &[0]), ("parent", false, &[1])],
    );
    t4.foreign_keys.push(ForeignKey {
        name: Arc::from("fk"),
        columns: vec![1],
        referenced_schema: Arc::from("test"),
        referenced_table: Arc::from("t1"),
        referenced_columns: vec![Arc::from("a")],
        on_update: ReferenceAction::NoAction,
        on_delete: ReferenceAction::Cascade,
    });
    let v1 = View {
        schema: Arc::from("test"),
        name: Arc::from("v1"),
        definition: Arc::from("select `t1`.`a` AS `k`, `t1`.`b` + 1 AS `b1` from `test`.`t1`"),
        columns: vec![],
        definer: Arc::from("root@localhost"),
        invoker: false,
        algorithm: Arc::from("UNDEFINED"),
        check_option: Arc::from("NONE"),
        charset_client: Arc::from("utf8mb4"),
        collation_connection: Arc::from("utf8mb4_0900_ai_ci"),
        is_duality: false,
    };
    let mut relations = BTreeMap::new();
    for table in [t1, t2, t3, t4] {
        relations.insert(table.name.to_string(), Relation::Table(Arc::new(table)));
    }
    relations.insert("v1".into(), Relation::View(Arc::new(v1)));
    Catalog { relations }
}

impl CatalogReader for Catalog {
    fn current_database(&self) -> Option<&str> {
        Some("test")
    }
    fn schema_exists(&self, schema: &str) -> bool {
        schema == "test"
    }
    fn relation(&self, schema: &str, name: &str) -> Option<Relation> {
        (schema == "test").then(|| self.relations.get(name).cloned()).flatten()
    }
    fn referencing_keys(&self, schema: &str, name: &str) -> Vec<(Arc<Table>, usize)> {
        let mut found = Vec::new();
        for relation in self.relations.values() {
            let Relation::Table(table) = relation else { continue };
            for (position, key) in table.foreign_keys.iter().enumerate() {
                if *key.referenced_schema == *schema && *key.referenced_table == *name {
                    found.push((table.clone(), position));
                }
            }
        }
        found
    }
}

/// No variable is known.
pub struct Variables;

impl VariableTypes for Variables {
    fn user_variable(&self, _name: &str) -> Option<DataType> {
        None
    }
    fn system_variable(
        &self,
        name: &str,
        _scope: Option<syntax::ast::VarScope>,
    ) -> Result<Option<DataType>> {
        Ok((name == "autocommit").then(DataType::bigint))
    }
}

struct Functions;

fn bind_text(ctx: &BindContext, args: &[ArgInfo]) -> Result<BoundFunction> {
    let collation = args.first().map_or(ctx.collation_connection, |arg| arg.ty.collation);
    let ty = DataType::varchar(args.iter().map(|arg| arg.ty.length).sum(), collation);
    Ok(BoundFunction::new(ty, vec![Coercion::Text], |_, _| Ok(Value::Null)))
}

fn bind_now(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    let ty = DataType::new(TypeKind::DateTime, 19, 0).with_nullable(false);
    Ok(BoundFunction::new(ty, vec![], |_, _| Ok(Value::Null)))
}

fn bind_double(_: &BindContext, _: &[ArgInfo]) -> Result<BoundFunction> {
    Ok(BoundFunction::new(DataType::double(), vec![Coercion::Double], |_, _| Ok(Value::Null)))
}

struct Nothing;

impl Accumulator for Nothing {
    fn update(&mut self, _: &mut FunctionContext<'_>, _: &[Value]) -> Result<()> {
        Ok(())
    }
    fn result(&mut self, _: &mut FunctionContext<'_>) -> Result<Value> {
        Ok(Value::Null)
    }
    fn reset(&mut self) {}
}

fn aggregate(ty: DataType) -> BoundAggregate {
    BoundAggregate {
        ty,
        coercions: vec![Coercion::AsIs],
        skip_nulls: true,
        accumulator: Arc::new(|| Box::new(Nothing)),
    }
}

fn bind_count(_: &BindContext, _: &[ArgInfo], _: Option<&[u8]>) -> Result<BoundAggregate> {
    Ok(aggregate(DataType::bigint().with_nullable(false)))
}

fn bind_same(_: &BindContext, args: &[ArgInfo], _: Option<&[u8]>) -> Result<BoundAggregate> {
    Ok(aggregate(args[0].ty.clone().with_nullable(true)))
}

fn bind_sum(_: &BindContext, _: &[ArgInfo], _: Option<&[u8]>) -> Result<BoundAggregate> {
    Ok(aggregate(DataType::decimal(32, 0)))
}

impl Plugin for Functions {
    fn info(&self) -> PluginInfo {
        PluginInfo::new("test", "functions for tests")
    }
    fn register(&self, registrar: &mut Registrar<'_>) {
        let scalar = |name, arity, volatility, bind| {
            let mut function = kit::scalar(name, arity, "", bind);
            function.traits.volatility = volatility;
            function
        };
        let any = Arity::at_least(0);
        registrar.function(scalar("CONCAT", Arity::at_least(1), Volatility::Immutable, bind_text));
        registrar.function(scalar("UPPER", Arity::exactly(1), Volatility::Immutable, bind_text));
        registrar.function(scalar("NOW", any, Volatility::Stable, bind_now));
        registrar.function(scalar("RAND", any, Volatility::Volatile, bind_double));
        let add = kit::scalar("DATE_ADD_INTERVAL", Arity::exactly(3), "", bind_now);
        registrar.function(add.role(FunctionRole::DateAdd));
        let group = |name, role, arity, bind| AggregateFunction {
            name,
            aliases: &[],
            arity,
            role,
            numbers: Arguments::NONE,
            geometries: Geometries::Refused,
            help: "",
            binding: AggregateBinding::Code(bind),
        };
        let one = Arity::exactly(1);
        registrar.aggregate(group("COUNT", AggregateRole::Count, any, bind_count));
        registrar.aggregate(group("SUM", AggregateRole::Sum, one, bind_sum));
        registrar.aggregate(group("MIN", AggregateRole::Minimum, one, bind_same));
        registrar.aggregate(group("MAX", AggregateRole::Maximum, one, bind_same));
    }
}

pub fn registry() -> Registry {
    Registry::build(&[Box::new(Functions)])
}

pub fn bind_context() -> BindContext {
    BindContext {
        sql_mode: SqlMode::DEFAULT,
        collation_connection: COLLATION,
        div_precision_increment: 4,
        group_concat_max_len: 1024,
        max_allowed_packet: 1 << 26,
        history: plugin_api::HistorySettings::default(),
        cascades_fire_triggers: false,
    }
}

/// Binds `sql`, or the error as text.
pub fn bind(sql: &str) -> std::result::Result<Bound, String> {
    let (catalog, registry, context) = (catalog(), registry(), bind_context());
    let input = BindInput {
        catalog: &catalog,
        registry: &registry,
        bind: &context,
        variables: &Variables,
        parameter_types: None,
    };
    let (statement, _) = syntax::parse_one(sql, &syntax::ParseOptions::default())
        .map_err(|error| error.to_string())?;
    Binder::new(input)
        .bind(&statement, sql.as_bytes())
        .map_err(|error| format!("{} {}", error.code().0, error.message()))
}
