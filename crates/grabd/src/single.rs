//! One service for each data directory: what is leased in its database belongs to it alone.

use std::fs::{File, OpenOptions};
use std::path::Path;

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};

/// Held as long as the service runs; the system lets go of it when the process ends, however it ends.
#[derive(Debug)]
pub(crate) struct Hold(#[expect(dead_code, reason = "held for its lock alone")] File);

/// Takes the data directory, which is made when it is not there.
pub(crate) fn take(data_dir: &Path) -> anyhow::Result<Hold> {
    std::fs::create_dir_all(data_dir)
        .with_context(|| format!("the data directory {} cannot be made; set GRABD_DATA_DIR", data_dir.display()))?;
    let path = data_dir.join("lock");
    let file =
        OpenOptions::new().create(true).truncate(false).write(true).open(&path).with_context(|| {
            format!("{} cannot be written; does the directory belong to another user?", path.display())
        })?;
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        bail!(
            "another grabd serves {} already; stop it or set GRABD_DATA_DIR to another directory",
            data_dir.display()
        );
    }
    Ok(Hold(file))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_data_directory_serves_once() {
        let dir = tempfile::tempdir().unwrap();
        let hold = take(dir.path()).unwrap();
        assert!(take(dir.path()).unwrap_err().to_string().contains("serves"));
        drop(hold);
        take(dir.path()).unwrap();
    }
}
