//! The packages of the client libraries that the service offers, read at start.

use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use grabd_web::ClientPackages;

use crate::config::Config;

/// Where the packages are, from the directory of the program. The same for the Debian package, the archive and cargo's builds.
const BESIDE_PROGRAM: &str = "../share/grabd/packages";
/// The maximum size of a package. They are kept in memory; the largest is the command line client, with some megabytes.
const MAX_BYTES: u64 = 16 << 20;
/// The maximum number of packages.
const MAX_PACKAGES: usize = 16;

/// Reads the packages. There are none if no directory is named, and there is none beside the program.
///
/// # Errors
/// When the directory or one of its packages cannot be read, or there are too many.
pub fn client_packages(config: &Config) -> anyhow::Result<ClientPackages> {
    let named = &config.service.packages_dir;
    if !named.as_os_str().is_empty() {
        return read(named).with_context(|| format!("service.packages_dir {}", named.display()));
    }
    match beside_program().filter(|dir| dir.is_dir()) {
        Some(dir) => read(&dir).with_context(|| format!("the packages in {}", dir.display())),
        None => Ok(ClientPackages::default()),
    }
}

fn beside_program() -> Option<PathBuf> {
    let program = std::env::current_exe().ok()?;
    Some(program.parent()?.join(BESIDE_PROGRAM))
}

/// The packages in a directory. Other files are ignored.
fn read(dir: &Path) -> anyhow::Result<ClientPackages> {
    let mut files = Vec::new();
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        let Some(name) = entry.file_name().to_str().map(str::to_owned) else { continue };
        if !ClientPackages::is_package(&name) {
            continue;
        }
        ensure!(files.len() < MAX_PACKAGES, "it has more than {MAX_PACKAGES} packages");
        let mut bytes = Vec::new();
        File::open(entry.path())
            .and_then(|file| file.take(MAX_BYTES + 1).read_to_end(&mut bytes))
            .with_context(|| format!("{name} cannot be read"))?;
        ensure!(bytes.len() as u64 <= MAX_BYTES, "{name} is larger than {} MiB", MAX_BYTES >> 20);
        files.push((name, bytes));
    }
    Ok(ClientPackages::new(files))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn directory_is_read_within_limits() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        fs::write(path("notes.txt"), "x").unwrap();
        fs::write(path("grabd-1.tgz"), "x").unwrap();
        read(dir.path()).unwrap();
        File::create(path("grabd-2.tgz")).unwrap().set_len(MAX_BYTES + 1).unwrap();
        assert_eq!(read(dir.path()).unwrap_err().to_string(), "grabd-2.tgz is larger than 16 MiB");
        fs::remove_file(path("grabd-2.tgz")).unwrap();
        for number in 0..=MAX_PACKAGES {
            fs::write(path(&format!("grabd-{number}.tgz")), "x").unwrap();
        }
        assert_eq!(read(dir.path()).unwrap_err().to_string(), "it has more than 16 packages");
    }

    #[test]
    fn missing_directory_is_an_error_only_if_it_was_named() {
        let config = |dir: &str| Config::with(&BTreeMap::from([("service.packages_dir", dir.to_owned())])).unwrap();
        client_packages(&config("")).unwrap();
        let error = client_packages(&config("/nowhere")).unwrap_err();
        assert_eq!(error.to_string(), "service.packages_dir /nowhere");
    }
}
