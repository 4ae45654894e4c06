//! Images in a directory of this machine.
//!
//! A file is written to a temporary file, synced and renamed, so a file at its final path is complete and durable.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grabd_domain::grabs::ImageKey;

use super::name::FileName;
use super::spool::{Draft, Spool, Unfinished, create_private};

/// A directory with the images below `i/`.
#[derive(Clone, Debug)]
pub(super) struct Directory {
    root: Arc<Path>,
    spool: Spool,
}

impl Directory {
    /// The directory with this spool, which is on the same file system.
    pub(super) fn open(root: &Path, spool: Spool) -> io::Result<Self> {
        create_private(&root.join("i"))?;
        Ok(Self { root: root.into(), spool })
    }

    pub(super) const fn spool(&self) -> &Spool {
        &self.spool
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn path(&self, key: &ImageKey, name: FileName) -> PathBuf {
        self.root.join(name.path(key))
    }

    /// Writes a whole file.
    pub(super) fn put(&self, key: &ImageKey, name: FileName, content: &[u8]) -> io::Result<()> {
        let (unfinished, mut file) = self.spool.create(key.as_str())?;
        file.write_all(content)?;
        file.sync_all()?;
        sync(&self.rename(&unfinished, &self.path(key, name))?)
    }

    /// Completes files, in this order. Those before the first error are left behind.
    pub(super) fn finish_all(&self, files: Vec<(ImageKey, FileName, Draft)>) -> io::Result<()> {
        let mut directories = BTreeSet::new();
        for (key, name, draft) in files {
            directories.extend(self.rename(&draft.end()?, &self.path(&key, name))?);
        }
        sync(&directories)
    }

    /// Deletes an image and everything beside it, if they exist.
    pub(super) fn delete(&self, key: &ImageKey) -> io::Result<()> {
        // The image first: a thumbnail that is being stored is deleted again if its image is gone.
        remove(&self.path(key, FileName::Image))?;
        FileName::attachments().try_for_each(|name| remove(&self.path(key, name)))
    }

    /// Deletes one file, if it exists.
    pub(super) fn remove(&self, key: &ImageKey, name: FileName) -> io::Result<()> {
        remove(&self.path(key, name))
    }

    /// Moves a file to its final path. Returns the directories that must be synced.
    fn rename(&self, unfinished: &Unfinished, path: &Path) -> io::Result<BTreeSet<PathBuf>> {
        create_private(path.parent().unwrap_or(&self.root))?;
        std::fs::rename(&unfinished.0, path)?;
        // A new directory's own entry must be synced too: sync every directory up to and including the root.
        let directories = path.ancestors().skip(1).take_while(|directory| directory.starts_with(&self.root));
        Ok(directories.map(Path::to_path_buf).collect())
    }
}

fn sync(directories: &BTreeSet<PathBuf>) -> io::Result<()> {
    // The innermost first, as their names are longer.
    directories.iter().rev().try_for_each(|directory| File::open(directory)?.sync_all())
}

/// Deletes a file, if it exists.
fn remove(path: &Path) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => Ok(()),
    }
}
