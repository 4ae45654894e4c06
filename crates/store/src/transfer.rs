//! Copies all rows of an SQLite database to an empty PostgreSQL database with the same schema.

use std::collections::{BTreeMap, BTreeSet};

use sea_orm::{ConnectionTrait, DbBackend, QueryResult, Statement, Value};
use uuid::Uuid;

use crate::database::{Database, Transaction, Tx};
use crate::{Error, Kind, Result, Store};

/// Tables that the target fills itself, when its schema is made.
const OWN: [&str; 2] = ["seaql_migrations", "schema_step"];

/// Rows of one statement. With the widest table they have fewer parameters than a statement may have.
const CHUNK: usize = 500;

/// The number of copied rows of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTable {
    /// The table.
    pub name: String,
    /// Its rows.
    pub rows: u64,
}

struct CopyRows {
    source: Database,
}

impl Store {
    /// Copies all rows to an empty PostgreSQL database, in one transaction: either everything is there afterwards, or nothing.
    /// No other process may use either database. Both need the current schema.
    ///
    /// # Errors
    /// [`Error::Inconsistent`] when this is no SQLite database, when the target is none of PostgreSQL or is not empty, and when
    /// the tables differ. Otherwise database errors.
    pub async fn copy_rows_to(&self, target: &Self) -> Result<Vec<CopiedTable>> {
        if (self.database.kind(), target.database.kind()) != (Kind::Sqlite, Kind::Postgres) {
            return Err(Error::Inconsistent("rows are copied from SQLite to PostgreSQL only"));
        }
        target.database.write(CopyRows { source: self.database.clone() }).await
    }
}

impl Transaction for CopyRows {
    type Outcome = Vec<CopiedTable>;

    async fn apply(&self, tx: &Tx) -> Result<Vec<CopiedTable>> {
        let source = self.source.snapshot().await?;
        // Statements over whole tables take longer than those of the service may.
        tx.execute_unprepared("SET LOCAL statement_timeout = 0").await?;
        let tables = tables(tx).await?;
        for name in ["team", "user", "grab"] {
            if count(tx, DbBackend::Postgres, name).await? > 0 {
                return Err(Error::Inconsistent("the target has teams, users or captures already"));
            }
        }
        check_columns(&source, &tables).await?;
        let order = in_order(&tables, &references(tx).await?)?;
        // What triggers keep is copied like everything else. Foreign keys are checked nevertheless.
        for name in &order {
            tx.execute_unprepared(&format!("ALTER TABLE \"{name}\" DISABLE TRIGGER USER")).await?;
        }
        for name in order.iter().rev() {
            tx.execute_unprepared(&format!("DELETE FROM \"{name}\"")).await?;
        }
        let mut copied = Vec::new();
        for name in &order {
            copy_table(&source, tx, name, &tables[name]).await?;
            let rows = count(&source, DbBackend::Sqlite, name).await?;
            if count(tx, DbBackend::Postgres, name).await? != rows {
                tracing::error!(table = name, source_rows = rows, "the row counts of both databases differ");
                return Err(Error::Inconsistent("the target does not have as many rows as the source"));
            }
            copied.push(CopiedTable { name: name.clone(), rows });
        }
        for name in &order {
            for column in tables[name].iter().filter(|column| column.is_serial) {
                let Column { name: column, .. } = column;
                tx.execute_unprepared(&format!(
                    "SELECT setval(pg_get_serial_sequence('\"{name}\"', '{column}'), \
                     COALESCE((SELECT max(\"{column}\") FROM \"{name}\"), 0) + 1, false)"
                ))
                .await?;
            }
            tx.execute_unprepared(&format!("ALTER TABLE \"{name}\" ENABLE TRIGGER USER")).await?;
        }
        Ok(copied)
    }
}

/// A column, and how its values are copied.
struct Column {
    name: String,
    class: Class,
    is_serial: bool,
}

/// The type of a column of PostgreSQL.
#[derive(Clone, Copy)]
enum Class {
    Uuid,
    Bytes,
    Boolean,
    Small,
    Integer,
    Big,
    Double,
    Json,
    Text,
}

type Tables = BTreeMap<String, Vec<Column>>;

/// The tables of the target, with their columns.
async fn tables(tx: &Tx) -> Result<Tables> {
    let sql = "SELECT c.table_name::text, c.column_name::text, c.udt_name::text, \
               COALESCE(c.column_default LIKE 'nextval(%', false) OR c.is_identity = 'YES' \
               FROM information_schema.columns c JOIN information_schema.tables t USING (table_schema, table_name) \
               WHERE c.table_schema = current_schema() AND t.table_type = 'BASE TABLE' \
               ORDER BY c.table_name, c.ordinal_position";
    let mut tables = Tables::new();
    for row in tx.query_all_raw(Statement::from_string(DbBackend::Postgres, sql)).await? {
        let (table, name): (String, String) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        let (kind, is_serial): (String, bool) = (row.try_get_by_index(2)?, row.try_get_by_index(3)?);
        let class = match kind.as_str() {
            "uuid" => Class::Uuid,
            "bytea" => Class::Bytes,
            "bool" => Class::Boolean,
            "int2" => Class::Small,
            "int4" => Class::Integer,
            "int8" => Class::Big,
            "float8" => Class::Double,
            "json" | "jsonb" => Class::Json,
            "text" | "varchar" => Class::Text,
            _ => return Err(Error::Inconsistent("a column has a type that cannot be copied")),
        };
        if !OWN.contains(&table.as_str()) {
            tables.entry(table).or_default().push(Column { name, class, is_serial });
        }
    }
    Ok(tables)
}

/// The tables that each table refers to.
async fn references(tx: &Tx) -> Result<Vec<(String, String)>> {
    let sql = "SELECT a.relname::text, b.relname::text FROM pg_constraint c JOIN pg_class a ON a.oid = c.conrelid \
               JOIN pg_class b ON b.oid = c.confrelid WHERE c.contype = 'f' \
               AND a.relnamespace = current_schema()::regnamespace";
    let rows = tx.query_all_raw(Statement::from_string(DbBackend::Postgres, sql)).await?;
    rows.iter().map(|row| Ok((row.try_get_by_index(0)?, row.try_get_by_index(1)?))).collect()
}

/// The tables in an order in which each comes after those that it refers to.
fn in_order(tables: &Tables, references: &[(String, String)]) -> Result<Vec<String>> {
    let mut order: Vec<String> = Vec::new();
    let mut left: BTreeSet<&String> = tables.keys().collect();
    while !left.is_empty() {
        let waits =
            |name: &&String| references.iter().any(|(from, to)| from == *name && to != from && left.contains(to));
        let next: Vec<&String> = left.iter().copied().filter(|name| !waits(name)).collect();
        if next.is_empty() {
            return Err(Error::Inconsistent("tables refer to each other in a circle"));
        }
        for name in next {
            left.remove(name);
            order.push(name.clone());
        }
    }
    Ok(order)
}

/// Checks that both databases have the same tables and columns, so that nothing is left behind.
async fn check_columns(source: &Tx, tables: &Tables) -> Result<()> {
    let sql = "SELECT m.name, c.name FROM sqlite_master m JOIN pragma_table_info(m.name) c \
               WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%'";
    let mut found = BTreeSet::new();
    for row in source.query_all_raw(Statement::from_string(DbBackend::Sqlite, sql)).await? {
        let (table, column): (String, String) = (row.try_get_by_index(0)?, row.try_get_by_index(1)?);
        if !OWN.contains(&table.as_str()) {
            found.insert((table, column));
        }
    }
    let expected: BTreeSet<(String, String)> = tables
        .iter()
        .flat_map(|(table, columns)| columns.iter().map(|column| (table.clone(), column.name.clone())))
        .collect();
    match found == expected {
        true => Ok(()),
        false => {
            let different: Vec<_> = found.symmetric_difference(&expected).collect();
            tracing::error!(?different, "the tables of both databases differ");
            Err(Error::Inconsistent("the tables of both databases differ"))
        }
    }
}

/// Copies the rows of a table in chunks.
async fn copy_table(source: &Tx, target: &Tx, name: &str, columns: &[Column]) -> Result<()> {
    let names = columns.iter().map(|column| format!("\"{}\"", column.name)).collect::<Vec<_>>().join(", ");
    // Without a declared type, SQLite returns values as they are cast.
    let selected: Vec<String> = columns
        .iter()
        .map(|Column { name, class, .. }| match class {
            Class::Uuid | Class::Bytes => format!("CAST(\"{name}\" AS BLOB)"),
            Class::Boolean | Class::Small | Class::Integer | Class::Big => format!("CAST(\"{name}\" AS INTEGER)"),
            Class::Double => format!("CAST(\"{name}\" AS REAL)"),
            Class::Json | Class::Text => format!("CAST(\"{name}\" AS TEXT)"),
        })
        .collect();
    let selected = selected.join(", ");
    let by_row_number = has_row_numbers(source, name).await?;
    let (mut copied, mut last) = (0, i64::MIN);
    loop {
        let page = match by_row_number {
            true => {
                format!("SELECT {selected}, rowid FROM \"{name}\" WHERE rowid > {last} ORDER BY rowid LIMIT {CHUNK}")
            }
            // No two rows are equal in all columns, so the order is the same for every chunk.
            false => format!("SELECT {selected} FROM \"{name}\" ORDER BY {names} LIMIT {CHUNK} OFFSET {copied}"),
        };
        let found = source.query_all_raw(Statement::from_string(DbBackend::Sqlite, page)).await?;
        let Some(end) = found.last() else { return Ok(()) };
        if by_row_number {
            last = end.try_get_by_index(columns.len())?;
        }
        let mut values: Vec<Value> = Vec::with_capacity(found.len() * columns.len());
        for row in &found {
            for (at, column) in columns.iter().enumerate() {
                values.push(value(row, at, column.class)?);
            }
        }
        let row = |number: usize| {
            let places: Vec<String> =
                (1..=columns.len()).map(|at| format!("${}", number * columns.len() + at)).collect();
            format!("({})", places.join(", "))
        };
        let inserted: Vec<String> = (0..found.len()).map(row).collect();
        let insert = format!("INSERT INTO \"{name}\" ({names}) VALUES {}", inserted.join(", "));
        target.execute_raw(Statement::from_sql_and_values(DbBackend::Postgres, insert, values)).await?;
        copied += found.len();
    }
}

/// Whether a table of SQLite has row numbers, which tables declared `WITHOUT ROWID` lack.
async fn has_row_numbers(source: &Tx, table: &str) -> Result<bool> {
    let sql = "SELECT wr FROM pragma_table_list WHERE schema = 'main' AND name = ?";
    let row = source.query_one_raw(Statement::from_sql_and_values(DbBackend::Sqlite, sql, [table.into()])).await?;
    let is_without: i64 = row.ok_or(Error::Inconsistent("a table of the source was not found"))?.try_get_by_index(0)?;
    Ok(is_without == 0)
}

/// A value of SQLite as one of PostgreSQL.
fn value(row: &QueryResult, at: usize, class: Class) -> Result<Value> {
    let bytes = || row.try_get_by_index::<Option<Vec<u8>>>(at);
    let integer = || row.try_get_by_index::<Option<i64>>(at);
    let text = || row.try_get_by_index::<Option<String>>(at);
    let too_large = Error::Inconsistent("a number does not fit its column");
    let malformed = Error::Inconsistent("a value does not have the type of its column");
    Ok(match class {
        Class::Uuid => {
            let id = bytes()?.map(|bytes| Uuid::from_slice(&bytes)).transpose().map_err(|_| malformed)?;
            Value::from(id)
        }
        Class::Bytes => Value::from(bytes()?),
        Class::Boolean => Value::from(integer()?.map(|number| number != 0)),
        Class::Small => Value::from(integer()?.map(i16::try_from).transpose().map_err(|_| too_large)?),
        Class::Integer => Value::from(integer()?.map(i32::try_from).transpose().map_err(|_| too_large)?),
        Class::Big => Value::from(integer()?),
        Class::Double => Value::from(row.try_get_by_index::<Option<f64>>(at)?),
        Class::Json => {
            let parsed = text()?.map(|text| serde_json::from_str::<serde_json::Value>(&text)).transpose();
            Value::from(parsed.map_err(|_| malformed)?)
        }
        Class::Text => Value::from(text()?),
    })
}

async fn count(tx: &Tx, backend: DbBackend, table: &str) -> Result<u64> {
    let sql = format!("SELECT count(*) FROM \"{table}\"");
    let row = tx.query_one_raw(Statement::from_string(backend, sql)).await?;
    let count: i64 = row.ok_or(Error::Inconsistent("a count returned no row"))?.try_get_by_index(0)?;
    Ok(u64::try_from(count).unwrap_or(0))
}
