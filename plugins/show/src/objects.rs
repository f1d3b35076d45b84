//! SHOW statements about schemas, tables and their parts.

use errors::{Result, err};
use syntax::ast::{Describe, ObjectName, ShowFilter};

use crate::Scope;
use crate::select::{Select, identifier, literal};

/// SHOW DATABASES. The caption names the pattern.
pub fn databases(filter: Option<&ShowFilter>) -> Select {
    let caption = match filter {
        Some(ShowFilter::Like(pattern)) => {
            format!("Database ({})", String::from_utf8_lossy(pattern))
        }
        _ => "Database".to_owned(),
    };
    Select::from("information_schema.SCHEMATA").item("SCHEMA_NAME", &caption).ordered("1")
}

/// SHOW TABLES. The caption names the schema and the pattern.
pub fn tables(schema: &str, full: bool, filter: Option<&ShowFilter>) -> Select {
    let caption = match filter {
        Some(ShowFilter::Like(pattern)) => {
            format!("Tables_in_{schema} ({})", String::from_utf8_lossy(pattern))
        }
        _ => format!("Tables_in_{schema}"),
    };
    let mut select = Select::from("information_schema.TABLES").item("TABLE_NAME", &caption);
    if full {
        select = select.item("TABLE_TYPE", "Table_type");
    }
    select.equal("TABLE_SCHEMA", schema).ordered("1")
}

/// SHOW TABLE STATUS.
pub fn table_status(schema: &str) -> Select {
    Select::from("information_schema.TABLES")
        .items(&[
            ("TABLE_NAME", "Name"),
            ("ENGINE", "Engine"),
            ("VERSION", "Version"),
            ("ROW_FORMAT", "Row_format"),
            ("TABLE_ROWS", "Rows"),
            ("AVG_ROW_LENGTH", "Avg_row_length"),
            ("DATA_LENGTH", "Data_length"),
            ("MAX_DATA_LENGTH", "Max_data_length"),
            ("INDEX_LENGTH", "Index_length"),
            ("DATA_FREE", "Data_free"),
            ("AUTO_INCREMENT", "Auto_increment"),
            ("CREATE_TIME", "Create_time"),
            ("UPDATE_TIME", "Update_time"),
            ("CHECK_TIME", "Check_time"),
            ("TABLE_COLLATION", "Collation"),
            ("CHECKSUM", "Checksum"),
            ("CREATE_OPTIONS", "Create_options"),
            ("TABLE_COMMENT", "Comment"),
        ])
        .equal("TABLE_SCHEMA", schema)
        .ordered("1")
}

/// SHOW OPEN TABLES: empty, because the server has no table cache.
pub fn open_tables() -> Select {
    Select::empty(&[("Database", "''"), ("Table", "''"), ("In_use", "0"), ("Name_locked", "0")])
}

/// SHOW [FULL] COLUMNS.
pub fn columns(name: &ObjectName, full: bool, scope: &Scope<'_>) -> Result<Select> {
    let named = name.schema.as_ref().map(|schema| &*schema.text);
    let (schema, table) = scope.whole_table(named, &name.name.text)?;
    let mut select = Select::from("information_schema.COLUMNS")
        .item("COLUMN_NAME", "Field")
        .item("COLUMN_TYPE", "Type");
    if full {
        select = select.item("COLLATION_NAME", "Collation");
    }
    select = select.items(&[
        ("IS_NULLABLE", "Null"),
        ("COLUMN_KEY", "Key"),
        ("COLUMN_DEFAULT", "Default"),
        ("EXTRA", "Extra"),
    ]);
    if full {
        select = select.item("PRIVILEGES", "Privileges").item("COLUMN_COMMENT", "Comment");
    }
    Ok(select
        .equal("TABLE_SCHEMA", &schema)
        .equal("TABLE_NAME", &table)
        .ordered("ORDINAL_POSITION"))
}

/// DESCRIBE, with a column name or pattern.
pub fn describe(describe: &Describe, scope: &Scope<'_>) -> Result<Select> {
    let select = columns(&describe.table, false, scope)?;
    Ok(match &describe.column {
        None => select,
        Some(column) => select.only(format!("COLUMN_NAME LIKE {}", literal(column))),
    })
}

/// SHOW INDEX.
pub fn indexes(name: &ObjectName, scope: &Scope<'_>) -> Result<Select> {
    let named = name.schema.as_ref().map(|schema| &*schema.text);
    let (schema, table, _) = scope.table(named, &name.name.text)?;
    Ok(Select::from("information_schema.STATISTICS")
        .items(&[
            ("TABLE_NAME", "Table"),
            ("NON_UNIQUE", "Non_unique"),
            ("INDEX_NAME", "Key_name"),
            ("SEQ_IN_INDEX", "Seq_in_index"),
            ("COLUMN_NAME", "Column_name"),
            ("COLLATION", "Collation"),
            ("CARDINALITY", "Cardinality"),
            ("SUB_PART", "Sub_part"),
            ("PACKED", "Packed"),
            ("NULLABLE", "Null"),
            ("INDEX_TYPE", "Index_type"),
            ("COMMENT", "Comment"),
            ("INDEX_COMMENT", "Index_comment"),
            ("IS_VISIBLE", "Visible"),
            ("EXPRESSION", "Expression"),
        ])
        .equal("TABLE_SCHEMA", &schema)
        .equal("TABLE_NAME", &table))
}

/// SHOW CREATE TABLE; for a view the result has the view's columns.
pub fn create_table(name: &ObjectName, scope: &Scope<'_>) -> Result<Select> {
    let named = name.schema.as_ref().map(|schema| &*schema.text);
    let (schema, table, kind) = scope.table(named, &name.name.text)?;
    Ok(if kind == "VIEW" {
        create_text(&schema, &table, "View", "Create View")
            .item("CHARACTER_SET_CLIENT", "character_set_client")
            .item("COLLATION_CONNECTION", "collation_connection")
    } else {
        create_text(&schema, &table, "Table", "Create Table")
    })
}

/// SHOW CREATE SEQUENCE: its options are in its row.
pub fn create_sequence(name: &ObjectName, scope: &Scope<'_>) -> Result<Select> {
    let named = name.schema.as_ref().map(|schema| &*schema.text);
    let (schema, name, rest) = scope.sequence(named, &name.name.text)?;
    let begin = literal(&format!("CREATE SEQUENCE {} start with ", identifier(&name)));
    let text = format!(
        "CONCAT({begin}, start_value, ' minvalue ', minimum_value, ' maxvalue ', maximum_value, ' increment by ', `increment`, \
         IF(cache_size = 0, ' nocache', CONCAT(' cache ', cache_size)), IF(cycle_option, ' cycle', ' nocycle'), {})",
        literal(&rest)
    );
    let source = format!("{}.{}", identifier(&schema), identifier(&name));
    Ok(Select::from(&source).item(&literal(&name), "Table").item(&text, "Create Table"))
}

/// SHOW CREATE VIEW.
pub fn create_view(name: &ObjectName, scope: &Scope<'_>) -> Result<Select> {
    let named = name.schema.as_ref().map(|schema| &*schema.text);
    let (schema, table, kind) = scope.table(named, &name.name.text)?;
    if kind != "VIEW" {
        return Err(err!(WRONG_OBJECT, schema, table, "VIEW"));
    }
    create_table(name, scope)
}

fn create_text(schema: &str, table: &str, subject: &str, caption: &str) -> Select {
    Select::from("data_dictionary.CREATE_STATEMENTS")
        .item("TABLE_NAME", subject)
        .item("CREATE_STATEMENT", caption)
        .equal("TABLE_SCHEMA", schema)
        .equal("TABLE_NAME", table)
}

/// SHOW CREATE DATABASE.
pub fn create_database(schema: &str, if_not_exists: bool) -> Select {
    const IF_NOT_EXISTS: &str =
        "CONCAT('CREATE DATABASE /*!32312 IF NOT EXISTS*/', SUBSTRING(CREATE_STATEMENT, 16))";
    let text = if if_not_exists { IF_NOT_EXISTS } else { "CREATE_STATEMENT" };
    Select::from("data_dictionary.CREATE_SCHEMA_STATEMENTS")
        .item("SCHEMA_NAME", "Database")
        .item(text, "Create Database")
        .equal("SCHEMA_NAME", schema)
}

/// SHOW TRIGGERS. LIKE matches the names of tables: dump programs request each table's triggers this way.
pub fn triggers(schema: &str) -> Select {
    Select::from("information_schema.TRIGGERS")
        .items(&[
            ("TRIGGER_NAME", "Trigger"),
            ("EVENT_MANIPULATION", "Event"),
            ("EVENT_OBJECT_TABLE", "Table"),
            ("ACTION_STATEMENT", "Statement"),
            ("ACTION_TIMING", "Timing"),
            ("CREATED", "Created"),
            ("SQL_MODE", "sql_mode"),
            ("DEFINER", "Definer"),
            ("CHARACTER_SET_CLIENT", "character_set_client"),
            ("COLLATION_CONNECTION", "collation_connection"),
            ("DATABASE_COLLATION", "Database Collation"),
        ])
        .equal("TRIGGER_SCHEMA", schema)
        .about("Table")
}

/// SHOW EVENTS.
pub fn events(schema: &str) -> Select {
    Select::from("information_schema.EVENTS")
        .items(&[
            ("EVENT_SCHEMA", "Db"),
            ("EVENT_NAME", "Name"),
            ("DEFINER", "Definer"),
            ("TIME_ZONE", "Time zone"),
            ("EVENT_TYPE", "Type"),
            ("EXECUTE_AT", "Execute at"),
            ("INTERVAL_VALUE", "Interval value"),
            ("INTERVAL_FIELD", "Interval field"),
            ("STARTS", "Starts"),
            ("ENDS", "Ends"),
            ("STATUS", "Status"),
            ("ORIGINATOR", "Originator"),
            ("CHARACTER_SET_CLIENT", "character_set_client"),
            ("COLLATION_CONNECTION", "collation_connection"),
            ("DATABASE_COLLATION", "Database Collation"),
        ])
        .equal("EVENT_SCHEMA", schema)
        .about("Name")
        .ordered("2")
}

/// SHOW PROCEDURE STATUS and SHOW FUNCTION STATUS.
pub fn routines(kind: &str) -> Select {
    Select::from("information_schema.ROUTINES")
        .items(&[
            ("ROUTINE_SCHEMA", "Db"),
            ("ROUTINE_NAME", "Name"),
            ("ROUTINE_TYPE", "Type"),
            ("EXTERNAL_LANGUAGE", "Language"),
            ("DEFINER", "Definer"),
            ("LAST_ALTERED", "Modified"),
            ("CREATED", "Created"),
            ("SECURITY_TYPE", "Security_type"),
            ("ROUTINE_COMMENT", "Comment"),
            ("CHARACTER_SET_CLIENT", "character_set_client"),
            ("COLLATION_CONNECTION", "collation_connection"),
            ("DATABASE_COLLATION", "Database Collation"),
        ])
        .equal("ROUTINE_TYPE", kind)
        .about("Name")
        .ordered("1, 2")
}

/// `SHOW LIBRARY STATUS`.
pub fn libraries() -> Select {
    Select::from("information_schema.LIBRARIES")
        .items(&[
            ("LIBRARY_SCHEMA", "Db"),
            ("LIBRARY_NAME", "Name"),
            ("LANGUAGE", "Language"),
            ("CREATOR", "Creator"),
            ("LAST_ALTERED", "Modified"),
            ("CREATED", "Created"),
            ("LIBRARY_COMMENT", "Comment"),
        ])
        .about("Name")
        .ordered("1, 2")
}
