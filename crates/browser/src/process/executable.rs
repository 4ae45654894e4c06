//! Locates the browser's program.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The only supported program. The headless shell is two to three times as fast as a full browser.
const NAME: &str = "chromium-headless-shell";

/// Usual install directories. The first contains Debian's binary, which `/usr/bin` only wraps in a script: when it is
/// started directly, the watched process is the browser.
const DIRECTORIES: [&str; 5] =
    ["/usr/lib/chromium", "/usr/local/bin", "/usr/bin", "/opt/chromium", "/usr/lib/chromium-browser"];

/// The browser's program: `named` if given, else the first match in the usual directories and then in those of
/// `search_path` (colon-separated, as in `PATH`). `None` if no executable file is found.
pub fn find_executable(named: Option<&Path>, search_path: &str) -> Option<PathBuf> {
    let found = match named {
        Some(path) => Some(path.to_owned()),
        None => DIRECTORIES
            .into_iter()
            .map(PathBuf::from)
            .chain(std::env::split_paths(search_path))
            .map(|directory| directory.join(NAME))
            .find(|path| is_executable(path)),
    };
    found.filter(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn named_program_must_exist_and_be_executable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shell");
        assert_eq!(find_executable(Some(&path), ""), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(find_executable(Some(&path), ""), None);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(find_executable(Some(&path), ""), Some(path));
    }
}
