//! Checks of the database, read independently of the service's own code, and changes to it that simulate the passage of
//! time.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::grabs::ImageKey;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement, TryGetable, Value};
use tokio::time::{interval, timeout};
use uuid::Uuid;

use super::crash_test::CrashTest;
use super::service::ServiceDirs;

/// Interval of checks for conditions that may be wrong only briefly.
const CHECK_INTERVAL: Duration = Duration::from_millis(20);
/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(50);
/// Time limit for scheduled work. Only reached by failing tests.
const WAIT_LIMIT: Duration = Duration::from_secs(60);

/// Ended asynchronous live grabs without a delivery, although every team has an endpoint.
const MISSING_DELIVERIES: &str = "SELECT id FROM grab WHERE class = 1 AND env = 0 AND status IN (2, 3) \
    AND NOT EXISTS (SELECT 1 FROM delivery WHERE delivery.grab_id = grab.id)";
/// Images of grabs that were done in the last seconds.
const RECENT_IMAGES: &str = "SELECT image_key FROM grab WHERE status = 2 AND env = 0 AND image_key IS NOT NULL \
    AND finished_at > 1000 * (CAST(strftime('%s', 'now') AS integer) - 3)";
const IMAGE_EXISTS: &str = "SELECT image_key FROM grab WHERE image_key = ?";

/// The service's database.
pub(crate) struct TestDatabase(DatabaseConnection);

impl TestDatabase {
    pub(crate) async fn open(dirs: &ServiceDirs) -> Result<Self> {
        let mut options = ConnectOptions::new(dirs.database_url());
        options.max_connections(1).sqlx_logging(false);
        Ok(Self(Database::connect(options).await?))
    }

    pub(crate) async fn close(self) -> Result<()> {
        Ok(self.0.close().await?)
    }

    /// The number of open grabs.
    pub(crate) async fn open_grabs(&self) -> Result<i64> {
        self.number("SELECT COUNT(*) FROM job").await
    }

    /// The number of lost attempts: every grab ends with its last attempt.
    pub(crate) async fn lost_attempts(&self) -> Result<i64> {
        self.number("SELECT COALESCE(SUM(MAX(attempts - 1, 0)), 0) FROM grab").await
    }

    /// Live grabs that cause webhooks.
    pub(crate) async fn grabs_with_webhooks(&self) -> Result<BTreeSet<String>> {
        let ids: Vec<Uuid> = self.column("SELECT id FROM grab WHERE class = 1 AND env = 0", []).await?;
        Ok(ids.iter().map(Uuid::to_string).collect())
    }

    /// Makes image deletions and deliveries due. Returns the number of images to delete.
    pub(crate) async fn make_everything_due(&self) -> Result<i64> {
        let scheduled = self.number("SELECT COUNT(*) FROM image_gc").await?;
        for statement in
            ["UPDATE image_gc SET not_before = 0", "UPDATE delivery SET next_at = 0 WHERE next_at IS NOT NULL"]
        {
            self.0.execute_unprepared(statement).await?;
        }
        Ok(scheduled)
    }

    /// Waits until the service has deleted all scheduled images and delivered all messages.
    pub(crate) async fn wait_for_scheduled_work(&self) -> Result<()> {
        let finished = async {
            let mut ticks = interval(POLL_INTERVAL);
            loop {
                ticks.tick().await;
                let images = self.number("SELECT COUNT(*) FROM image_gc").await?;
                let messages = self.number("SELECT COUNT(*) FROM delivery WHERE state <> 1").await?;
                if images + messages == 0 {
                    return Ok(());
                }
            }
        };
        timeout(WAIT_LIMIT, finished).await.context("images were not deleted, or messages not delivered")?
    }

    /// Checks what must hold at every moment.
    async fn check(&self, images: &Path) -> Result<()> {
        let missing: Vec<Uuid> = self.column(MISSING_DELIVERIES, []).await?;
        ensure!(missing.is_empty(), "ended grabs have no delivery: {missing:?}");
        for key in self.column::<String>(RECENT_IMAGES, []).await? {
            let path = images.join(ImageKey::parse(&key).context("an image key")?.path());
            if !path.is_file() {
                // The image may have been deleted on request since the table was read.
                let shown: Vec<String> = self.column(IMAGE_EXISTS, [key.into()]).await?;
                ensure!(shown.is_empty(), "a done grab has no image file: {shown:?}");
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

impl CrashTest {
    /// Checks the database while the service runs, until a check fails. The database is closed between two processes,
    /// so that each finds it as the one before left it.
    pub(crate) async fn watch_database(&self) -> Result<()> {
        let images = self.dirs.images();
        loop {
            let mut base = self.base_changes();
            base.wait_for(Option::is_some).await?;
            let database = TestDatabase::open(&self.dirs).await?;
            let mut tick = interval(CHECK_INTERVAL);
            while base.borrow().is_some() {
                tick.tick().await;
                database.check(&images).await?;
            }
            database.close().await?;
        }
    }
}
