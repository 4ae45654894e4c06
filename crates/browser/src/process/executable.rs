//! Where the browser is.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// The one kind that is run: the shell without a desktop is two to three times as fast as a full browser.
const NAME: &str = "chromium-headless-shell";

/// Where distributions and people put it. The first is Debian's program itself, which `/usr/bin` only wraps in a
/// script: started directly, the process we watch is the browser.
const PLACES: [&str; 5] =
    ["/usr/lib/chromium", "/usr/local/bin", "/usr/bin", "/opt/chromium", "/usr/lib/chromium-browser"];

/// The browser's program: `named` when given, else the first of the usual places and `search_path`'s directories
/// (colon-separated, as in `PATH`) that has it. `None` when there is none that could be run.
pub fn find_executable(named: Option<&Path>, search_path: &str) -> Option<PathBuf> {
    let found = match named {
        Some(path) => Some(path.to_owned()),
        None => PLACES
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
    fn a_named_program_must_be_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("shell");
        assert_eq!(find_executable(Some(&path), ""), None);
        std::fs::write(&path, "").unwrap();
        assert_eq!(find_executable(Some(&path), ""), None);
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).unwrap();
        assert_eq!(find_executable(Some(&path), ""), Some(path));
    }
}
