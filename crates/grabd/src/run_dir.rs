//! The browsers' run directory, and a record of earlier run directories that have not been cleared.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use grabd_browser::short_name;
use grabd_engine::random;

use crate::config::Config;

/// A run directory for browsers: that of the configuration, or a new one in the temporary directory. Its name cannot be
/// guessed: another user who knew it could make a directory of that name, and the service would not start. It is short, since
/// it contains sockets.
pub(crate) fn run_dir(config: &Config) -> PathBuf {
    if !config.browser.run_dir.as_os_str().is_empty() {
        return config.browser.run_dir.clone();
    }
    let uid = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("grabd-{uid}-{:032x}", random::random()))
}

/// A name for what belongs to this service, as opposed to others on the machine: that of its data directory.
pub(crate) fn instance(config: &Config) -> String {
    let data_dir = config.data_dir.canonicalize().or_else(|_| std::path::absolute(&config.data_dir));
    short_name(&data_dir.unwrap_or_else(|_| config.data_dir.clone()))
}

/// The run directories in which a service with this data directory may have left browsers.
pub fn recorded_run_dirs(data_dir: &Path) -> Vec<PathBuf> {
    let recorded = std::fs::read(data_dir.join(RECORD)).unwrap_or_default();
    let recorded = recorded.split(|byte| *byte == 0).filter(|path| !path.is_empty());
    recorded.map(|path| OsStr::from_bytes(path).into()).collect()
}

/// The file in the data directory.
const RECORD: &str = "browser-run-dir";

/// A file in the data directory that lists all directories in which browsers may exist. The temporary directory or the
/// setting may have changed since the previous start, and that service may have been killed at any time.
pub(crate) struct RunDirRecord {
    path: PathBuf,
    run_dir: PathBuf,
    /// Whether only `run_dir` is recorded.
    is_current: bool,
}

impl RunDirRecord {
    /// Records `run_dir`, and returns the other recorded directories, which must be cleared.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(crate) fn begin(data_dir: &Path, run_dir: &Path) -> anyhow::Result<(Self, Vec<PathBuf>)> {
        let path = data_dir.join(RECORD);
        let run_dir = std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned());
        let recorded = recorded_run_dirs(data_dir);
        let earlier: Vec<PathBuf> = recorded.iter().filter(|path| **path != run_dir).cloned().collect();
        let record = Self { path, is_current: earlier.is_empty() && !recorded.is_empty(), run_dir };
        if !record.is_current {
            record.write(earlier.iter().chain([&record.run_dir]))?;
        }
        Ok((record, earlier))
    }

    /// Removes the other directories from the record, after they were cleared.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub(crate) fn commit(self) -> anyhow::Result<()> {
        match self.is_current {
            true => Ok(()),
            false => self.write([&self.run_dir]),
        }
    }

    /// Replaces the file atomically.
    fn write<'a>(&self, paths: impl IntoIterator<Item = &'a PathBuf>) -> anyhow::Result<()> {
        let paths: Vec<&[u8]> = paths.into_iter().map(|path| path.as_os_str().as_bytes()).collect();
        let unfinished = self.path.with_extension("new");
        let written: io::Result<()> =
            std::fs::write(&unfinished, paths.join(&0)).and_then(|()| std::fs::rename(&unfinished, &self.path));
        written.with_context(|| format!("{} cannot be written", self.path.display()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_of_the_directory_cannot_be_guessed() {
        let config = Config::with(&std::collections::BTreeMap::new()).unwrap();
        let (one, other) = (run_dir(&config), run_dir(&config));
        assert_ne!(one, other);
        assert_eq!(one.parent(), Some(std::env::temp_dir().as_path()));
        assert_eq!(instance(&config), instance(&config));
    }

    #[test]
    fn directory_is_recorded_until_it_is_cleared() {
        let data = tempfile::tempdir().unwrap();
        let begin = |run_dir: &str| RunDirRecord::begin(data.path(), Path::new(run_dir)).unwrap();
        let earlier = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (record, none) = begin("/one");
        assert_eq!(none, earlier(&[]));
        record.commit().unwrap();
        // Killed before the first was cleared, and then before both were cleared.
        for expected in [&["/one"][..], &["/one"], &["/one"]] {
            assert_eq!(begin("/two").1, earlier(expected));
        }
        assert_eq!(begin("/three").1, earlier(&["/one", "/two"]));
        let (record, recorded) = begin("/one");
        assert_eq!(recorded, earlier(&["/two", "/three"]));
        record.commit().unwrap();
        assert_eq!(begin("/one").1, earlier(&[]));
        assert_eq!(std::fs::read(data.path().join("browser-run-dir")).unwrap(), b"/one");
        assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 1);
    }
}
