//! The database's clock. It only confirms the program's own clock, before anything is deleted.

use grabd_domain::Timestamp;
use sea_orm::{ConnectionTrait, Statement};

use crate::areas::Retention;
use crate::{Error, Kind, Result};

const SQLITE: &str = "SELECT CAST(strftime('%s', CURRENT_TIMESTAMP) AS bigint) AS seconds";
const POSTGRES: &str = "SELECT CAST(EXTRACT(EPOCH FROM CURRENT_TIMESTAMP) AS bigint) AS seconds";

impl Retention<'_> {
    /// The current time of the database, to the second. With SQLite it is that of this machine.
    ///
    /// # Errors
    /// Database errors only.
    pub async fn database_time(self) -> Result<Timestamp> {
        let query = match self.store.kind() {
            Kind::Sqlite => SQLITE,
            Kind::Postgres => POSTGRES,
        };
        let reader = self.store.database.reader();
        let row = reader.query_one_raw(Statement::from_string(reader.get_database_backend(), query)).await?;
        let seconds: i64 = row.ok_or(Error::Inconsistent("no time"))?.try_get("", "seconds")?;
        Ok(Timestamp::from_ms(seconds.saturating_mul(1000)))
    }
}
