//! What only the tables say, read beside the service by somebody else's means; and the passing of time.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::grabs::ImageKey;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement, TryGetable, Value};
use tokio::time::{interval, timeout};
use uuid::Uuid;

use super::life::Home;
use super::world::World;

/// How often is looked for what may be wrong for a moment only.
const EVERY: Duration = Duration::from_millis(20);
/// How often something that nobody tells is asked for.
const LOOK: Duration = Duration::from_millis(50);
/// How long something owed may take. It only bounds a test that fails.
const PATIENCE: Duration = Duration::from_secs(60);

/// Ends of asynchronous live grabs of which no message is owed, although every team has an endpoint.
const UNOWED: &str = "SELECT id FROM grab WHERE class = 1 AND env = 0 AND status IN (2, 3) \
    AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.grab_id = grab.id)";
/// Pictures shown by grabs that were done lately.
const SHOWN: &str = "SELECT image_key FROM grab WHERE status = 2 AND env = 0 AND image_key IS NOT NULL \
    AND finished_at > 1000 * (CAST(strftime('%s', 'now') AS integer) - 3)";
const STILL_SHOWN: &str = "SELECT image_key FROM grab WHERE image_key = ?";

/// The service's database.
pub(crate) struct Tables(DatabaseConnection);

impl Tables {
    pub(crate) async fn open(home: &Home) -> Result<Self> {
        let mut options = ConnectOptions::new(home.database_url());
        options.max_connections(1).sqlx_logging(false);
        Ok(Self(Database::connect(options).await?))
    }

    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.0.close().await?)
    }

    /// Grabs that have not ended.
    pub(crate) async fn open_grabs(&self) -> Result<i64> {
        self.number("SELECT COUNT(*) FROM job").await
    }

    /// Attempts that came to nothing: every grab ends with its last one.
    pub(crate) async fn lost_attempts(&self) -> Result<i64> {
        self.number("SELECT COALESCE(SUM(MAX(attempts - 1, 0)), 0) FROM grab").await
    }

    /// Live grabs whose ends are told to endpoints.
    pub(crate) async fn told_of(&self) -> Result<BTreeSet<String>> {
        let ids: Vec<Uuid> = self.column("SELECT id FROM grab WHERE class = 1 AND env = 0", []).await?;
        Ok(ids.iter().map(Uuid::to_string).collect())
    }

    /// Makes everything due that waits for its time: pictures to be deleted, whose number is the answer, and messages.
    pub(crate) async fn time_passes(&self) -> Result<i64> {
        let owed = self.number("SELECT COUNT(*) FROM image_gc").await?;
        for statement in
            ["UPDATE image_gc SET not_before = 0", "UPDATE delivery SET next_at = 0 WHERE next_at IS NOT NULL"]
        {
            self.0.execute_unprepared(statement).await?;
        }
        Ok(owed)
    }

    /// Waits until the service has deleted every picture it owes to delete, and has delivered every message.
    pub(crate) async fn nothing_is_owed(&self) -> Result<()> {
        let settled = async {
            let mut look = interval(LOOK);
            loop {
                look.tick().await;
                let pictures = self.number("SELECT COUNT(*) FROM image_gc").await?;
                let messages = self.number("SELECT COUNT(*) FROM delivery WHERE state <> 1").await?;
                if pictures + messages == 0 {
                    return Ok(());
                }
            }
        };
        timeout(PATIENCE, settled).await.context("pictures are not deleted, or messages not delivered")?
    }

    /// What must hold at every moment, however short.
    async fn look(&self, images: &Path) -> Result<()> {
        let unowed: Vec<Uuid> = self.column(UNOWED, []).await?;
        ensure!(unowed.is_empty(), "grabs have ended, and nobody is owed the message: {unowed:?}");
        for key in self.column::<String>(SHOWN, []).await? {
            let path = images.join(ImageKey::parse(&key).context("an image key")?.path());
            if !path.is_file() {
                // It may have been deleted on request since the table was read.
                let shown: Vec<String> = self.column(STILL_SHOWN, [key.into()]).await?;
                ensure!(shown.is_empty(), "a grab is done, and its picture is not there: {shown:?}");
            }
        }
        Ok(())
    }

    async fn number(&self, query: &str) -> Result<i64> {
        self.column(query, []).await?.first().copied().context("one number")
    }

    /// The first column of a query.
    async fn column<T: TryGetable>(&self, query: &str, values: impl IntoIterator<Item = Value>) -> Result<Vec<T>> {
        let statement = Statement::from_sql_and_values(self.0.get_database_backend(), query, values);
        let rows = self.0.query_all_raw(statement).await?;
        rows.iter().map(|row| Ok(row.try_get_by_index(0)?)).collect()
    }
}

impl World {
    /// Looks at the tables all the time that there is a life, until they are wrong. Between two lives nobody has them
    /// open, so that a life finds what the one before it left.
    pub(crate) async fn watch_tables(&self) -> Result<()> {
        let images = self.home.images();
        loop {
            let mut life = self.life();
            life.wait_for(Option::is_some).await?;
            let tables = Tables::open(&self.home).await?;
            let mut tick = interval(EVERY);
            while life.borrow().is_some() {
                tick.tick().await;
                tables.look(&images).await?;
            }
            tables.close().await?;
        }
    }
}
