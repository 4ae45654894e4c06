//! An SQLite database with the current schema and without rows. Tests copy it, which takes a fraction of the time of the
//! migrations.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use grabd_migrations::Migrator;
use grabd_store::Store;

/// Copies the database to a new file, readable by its owner only.
pub(crate) async fn copy_to(path: &Path) {
    std::fs::copy(original().await, path).unwrap();
}

/// The database, which the first test creates. Its name depends on the migrations, and on the user, who alone may read it.
async fn original() -> PathBuf {
    let mut schema = DefaultHasher::new();
    Migrator::SOURCES.hash(&mut schema);
    let user = rustix::process::geteuid().as_raw();
    let path = std::env::temp_dir().join(format!("grabd-migrated-{user}-{:016x}.db", schema.finish()));
    if !path.exists() {
        // Concurrent tests may each create one, of which any can stay: renaming is atomic.
        let directory = tempfile::tempdir().unwrap();
        let new = directory.path().join("new.db");
        let store = Store::open(&format!("sqlite://{}", new.display())).await.unwrap();
        store.migrate().await.unwrap();
        store.close().await;
        std::fs::rename(new, &path).unwrap();
    }
    path
}
