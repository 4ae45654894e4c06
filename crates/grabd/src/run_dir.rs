//! Where the browsers live, and where they lived at starts whose browsers nobody has cleared yet.

use std::ffi::OsStr;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::Context;
use grabd_browser::short_name;

use crate::config::Config;

/// The browser's directory: this data directory's own, and short, since sockets lie in it.
pub(crate) fn run_dir(config: &Config) -> PathBuf {
    if !config.browser.run_dir.as_os_str().is_empty() {
        return config.browser.run_dir.clone();
    }
    let data_dir = config.data_dir.canonicalize().or_else(|_| std::path::absolute(&config.data_dir));
    let data_dir = data_dir.unwrap_or_else(|_| config.data_dir.clone());
    let uid = rustix::process::getuid().as_raw();
    std::env::temp_dir().join(format!("grabd-{uid}-{}", short_name(&data_dir)))
}

/// A note beside the data of every directory in which browsers may live. The temporary directory, or the setting, may be
/// another one at a start than it was at the start before, which may have been killed at any moment.
pub(crate) struct Note {
    path: PathBuf,
    run_dir: PathBuf,
    /// Is only `run_dir` noted?
    settled: bool,
}

impl Note {
    /// Notes `run_dir`, and answers which others are noted: what is left there is to be cleared.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub(crate) fn begin(data_dir: &Path, run_dir: &Path) -> anyhow::Result<(Self, Vec<PathBuf>)> {
        let path = data_dir.join("browser-run-dir");
        let run_dir = std::path::absolute(run_dir).unwrap_or_else(|_| run_dir.to_owned());
        let noted = std::fs::read(&path).unwrap_or_default();
        let noted = noted.split(|byte| *byte == 0).filter(|path| !path.is_empty());
        let noted: Vec<PathBuf> = noted.map(|path| OsStr::from_bytes(path).into()).collect();
        let former: Vec<PathBuf> = noted.iter().filter(|path| **path != run_dir).cloned().collect();
        let note = Self { path, settled: former.is_empty() && !noted.is_empty(), run_dir };
        if !note.settled {
            note.write(former.iter().chain([&note.run_dir]))?;
        }
        Ok((note, former))
    }

    /// Forgets the others, which are cleared.
    ///
    /// # Errors
    /// When the note cannot be written.
    pub(crate) fn settle(self) -> anyhow::Result<()> {
        match self.settled {
            true => Ok(()),
            false => self.write([&self.run_dir]),
        }
    }

    /// Killed in the midst of it, we leave the note as it was.
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
    fn a_directory_is_noted_until_it_is_cleared() {
        let data = tempfile::tempdir().unwrap();
        let begin = |run_dir: &str| Note::begin(data.path(), Path::new(run_dir)).unwrap();
        let former = |paths: &[&str]| paths.iter().map(PathBuf::from).collect::<Vec<_>>();
        let (note, none) = begin("/one");
        assert_eq!(none, former(&[]));
        note.settle().unwrap();
        // Killed before it had cleared the first, and then before it had cleared both.
        for expected in [&["/one"][..], &["/one"], &["/one"]] {
            assert_eq!(begin("/two").1, former(expected));
        }
        assert_eq!(begin("/three").1, former(&["/one", "/two"]));
        let (note, noted) = begin("/one");
        assert_eq!(noted, former(&["/two", "/three"]));
        note.settle().unwrap();
        assert_eq!(begin("/one").1, former(&[]));
        assert_eq!(std::fs::read(data.path().join("browser-run-dir")).unwrap(), b"/one");
        assert_eq!(std::fs::read_dir(data.path()).unwrap().count(), 1);
    }
}
