//! The tables of the service's SQLite database: their sizes, and the passing of time.

use std::path::Path;

use anyhow::Context;
use sea_orm::{ConnectionTrait, Database, DatabaseConnection, Statement};

/// Ends of the names of columns that contain a time in milliseconds since 1970.
const TIMES: [&str; 4] = ["_at", "_until", "not_before", "_since"];
/// Columns that contain a day: the number of days since 1970.
const DAYS: &str = "day";
const DAY_MS: i64 = 24 * 60 * 60 * 1000;
/// Entries of these cannot be changed. Both are kept longer than the simulation lasts.
const APPEND_ONLY: [&str; 2] = ["audit", "ledger"];

/// What a table takes.
pub(crate) struct Size {
    table: String,
    pub(crate) rows: i64,
    /// With its indexes.
    bytes: i64,
}

/// A connection beside those of the service.
pub(crate) struct Tables {
    database: DatabaseConnection,
    names: Vec<String>,
    /// The statements that move all times back by a day.
    day: Vec<String>,
}

impl Tables {
    pub(crate) async fn open(file: &Path) -> anyhow::Result<Self> {
        let database = Database::connect(format!("sqlite://{}", file.display())).await?;
        database.execute_unprepared("PRAGMA busy_timeout = 30000").await?;
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' \
                      AND name NOT LIKE '%migration%' ORDER BY name";
        let names = texts(&database, tables).await?;
        let mut day = Vec::new();
        for table in names.iter().filter(|name| !APPEND_ONLY.contains(&name.as_str())) {
            for column in texts(&database, &format!("SELECT name FROM pragma_table_info('{table}')")).await? {
                if column == DAYS {
                    // In two steps, since one day would meet the next one in the primary key.
                    day.push(format!("UPDATE \"{table}\" SET \"{column}\" = 1 - \"{column}\""));
                    day.push(format!("UPDATE \"{table}\" SET \"{column}\" = -\"{column}\""));
                } else if TIMES.iter().any(|end| column.ends_with(end)) {
                    day.push(format!("UPDATE \"{table}\" SET \"{column}\" = \"{column}\" - {DAY_MS}"));
                }
            }
        }
        Ok(Self { database, names, day })
    }

    /// Moves all times a day back, as if a day had passed.
    pub(crate) async fn pass_a_day(&self) -> anyhow::Result<()> {
        for statement in &self.day {
            self.database.execute_unprepared(statement).await.with_context(|| statement.clone())?;
        }
        Ok(())
    }

    pub(crate) async fn sizes(&self) -> anyhow::Result<Vec<Size>> {
        let mut sizes = Vec::with_capacity(self.names.len());
        for table in &self.names {
            let sql = format!(
                "SELECT (SELECT count(*) FROM \"{table}\"), (SELECT sum(pgsize) FROM dbstat WHERE aggregate = TRUE \
                 AND name IN (SELECT name FROM sqlite_schema WHERE tbl_name = '{table}'))"
            );
            let statement = Statement::from_string(self.database.get_database_backend(), sql);
            let row = self.database.query_one_raw(statement).await?.context("a row")?;
            sizes.push(Size {
                table: table.clone(),
                rows: row.try_get_by_index(0)?,
                bytes: row.try_get_by_index::<Option<i64>>(1)?.unwrap_or_default(),
            });
        }
        Ok(sizes)
    }

    pub(crate) async fn close(self) -> anyhow::Result<()> {
        Ok(self.database.close().await?)
    }
}

async fn texts(database: &DatabaseConnection, sql: &str) -> anyhow::Result<Vec<String>> {
    let statement = Statement::from_string(database.get_database_backend(), sql);
    let rows = database.query_all_raw(statement).await?;
    rows.iter().map(|row| Ok(row.try_get_by_index(0)?)).collect()
}

/// Prints rows by day, and the bytes on the last one. The bounds are in docs/operating/retention.md.
pub(crate) fn print(days: &[(u32, Vec<Size>)]) {
    let Some((_, last)) = days.last() else { return };
    print!("\n{:<22}", "rows after day");
    for (day, _) in days {
        print!("{day:>9}");
    }
    println!("{:>14}{:>16}", "KiB at the end", "growth per day");
    for (index, size) in last.iter().enumerate() {
        print!("{:<22}", size.table);
        for (_, sizes) in days {
            print!("{:>9}", sizes[index].rows);
        }
        let growth = match days {
            [.., (before, sizes), (day, _)] if day > before => {
                (size.rows - sizes[index].rows) / i64::from(day - before)
            }
            _ => 0,
        };
        println!("{:>14}{growth:>16}", size.bytes / 1024);
    }
}
