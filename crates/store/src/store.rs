//! The handle to the database. Its reads and changes are in the modules of what they concern.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::actor::Actor;
use crate::database::Database;
use crate::set_aside::SetAside;
use crate::shared_reads::SharedReads;
use crate::{Error, Kind, LockMode, MigrationPlan, Notifications, OtherService, Result, ServiceLock};

/// Handle to the database. Cheap to clone; clones share the connections.
#[derive(Clone, Debug)]
pub struct Store {
    pub(crate) database: Database,
    pub(crate) set_aside: Arc<SetAside>,
    pub(crate) shared_reads: Arc<SharedReads>,
    /// Who makes the changes, for the audit trail.
    pub(crate) actor: Option<Arc<Actor>>,
}

impl Store {
    /// Opens the database at `url`: `sqlite:///path/grabd.sqlite`, `sqlite::memory:` or `postgres://…`.
    ///
    /// A missing SQLite file is created, readable by its owner only. The schema is not changed.
    ///
    /// # Errors
    /// [`Error::Url`] when the scheme is unsupported, [`Error::Unavailable`] when the database cannot be opened.
    pub async fn open(url: &str) -> Result<Self> {
        let database = Database::open(url).await?;
        Ok(Self { database, set_aside: Arc::default(), shared_reads: Arc::default(), actor: None })
    }

    /// The file of an SQLite database, which may not exist yet. Other databases have none, and neither has one in memory.
    ///
    /// # Errors
    /// [`Error::Url`] and others when the URL is invalid.
    pub fn file(url: &str) -> Result<Option<PathBuf>> {
        Database::file(url)
    }

    /// Brings the schema up to date. Idempotent.
    ///
    /// # Errors
    /// Database errors. A failed step is rolled back. [`Error::NewerSchema`] and [`Error::EditedStep`] when the applied
    /// steps are not those of this program; nothing is changed then.
    pub async fn migrate(&self) -> Result<()> {
        self.database.migrate().await
    }

    /// Whether every migration known to this program is applied.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database cannot be reached; [`Error::NewerSchema`] and [`Error::EditedStep`] as
    /// for [`Store::migrate`].
    pub async fn schema_is_current(&self) -> Result<bool> {
        Ok(self.plan_migration().await?.pending.is_empty())
    }

    /// What [`Store::migrate`] would do.
    ///
    /// # Errors
    /// As [`Store::schema_is_current`].
    pub async fn plan_migration(&self) -> Result<MigrationPlan> {
        self.database.plan_migration().await
    }

    /// Makes this process the only service on the database, as long as the lock is held. Waits up to `wait` for a
    /// service that is about to exit. The inner error is the service that uses the database. Commands need no lock.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database cannot be reached.
    pub async fn lock_service(&self, wait: Duration) -> Result<Result<ServiceLock, OtherService>, Error> {
        self.database.lock_service(LockMode::Alone, wait).await
    }

    /// The same for a process of a cluster: other processes of the cluster may use the database too. The inner error is
    /// a service that uses the database alone.
    ///
    /// # Errors
    /// As [`Store::lock_service`].
    pub async fn lock_cluster(&self, wait: Duration) -> Result<Result<ServiceLock, OtherService>, Error> {
        self.database.lock_service(LockMode::Shared, wait).await
    }

    /// Connects to the server for notifications on this channel, as an identifier. They are never the only way to learn
    /// of a change.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when the database cannot be reached, [`Error::Inconsistent`] for SQLite, which has none.
    pub async fn notifications(&self, channel: &str) -> Result<Notifications> {
        self.database.notifications(channel).await
    }

    /// Copies a consistent state of an SQLite database to a new file, readable by its owner only. Services and commands
    /// may write meanwhile.
    ///
    /// # Errors
    /// [`Error::Full`] and [`Error::Unavailable`] when the file cannot be written, [`Error::Inconsistent`] for
    /// PostgreSQL, whose own program `pg_dump` does this.
    pub async fn copy_database(&self, path: &Path) -> Result<()> {
        self.database.copy_to(path).await
    }

    /// Changes whenever this process may have changed who has access to what: keys, tokens, users, members and teams.
    /// A result that was read after a version is valid while the version is the same, unless another process changes it.
    pub fn access_version(&self) -> u64 {
        self.database.access_version()
    }

    /// Checks that the database responds.
    ///
    /// # Errors
    /// [`Error::Unavailable`] when it does not.
    pub async fn ping(&self) -> Result<()> {
        self.database.ping().await
    }

    /// Completes the queued writes and closes the connections. Later calls return [`Error::Closed`].
    pub async fn close(self) {
        self.database.close().await;
    }

    /// The kind of database.
    pub const fn kind(&self) -> Kind {
        self.database.kind()
    }

    /// Number of rows set aside since the start, by kind of work.
    pub fn rows_set_aside(&self) -> BTreeMap<&'static str, u64> {
        self.set_aside.counts()
    }
}
