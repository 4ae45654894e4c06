//! Ensures that one service uses a data directory: it owns all leases in the database.

use std::fs::{File, OpenOptions};
use std::path::Path;

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};

/// Held while the service runs. The kernel releases the lock when the process ends.
#[derive(Debug)]
pub(crate) struct DataDirLock(#[expect(dead_code, reason = "held for its lock alone")] File);

/// Locks the data directory, which is created if necessary.
pub(crate) fn lock(data_dir: &Path) -> anyhow::Result<DataDirLock> {
    std::fs::create_dir_all(data_dir)
        .with_context(|| format!("the data directory {} cannot be created; set GRABD_DATA_DIR", data_dir.display()))?;
    let path = data_dir.join("lock");
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).open(&path).with_context(|| {
            format!("{} cannot be written; does the directory belong to another user?", path.display())
        })?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        bail!(
            "another grabd serves {} already; stop it or set GRABD_DATA_DIR to another directory. Several can serve one \
             PostgreSQL database, each with a data directory of its own: see docs/FLEET.md",
            data_dir.display()
        );
    }
    Ok(DataDirLock(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_directory_cannot_be_locked_twice() {
        let dir = tempfile::tempdir().unwrap();
        let held = lock(dir.path()).unwrap();
        assert!(lock(dir.path()).unwrap_err().to_string().contains("serves"));
        drop(held);
        lock(dir.path()).unwrap();
    }
}
