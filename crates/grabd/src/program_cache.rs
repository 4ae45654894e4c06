//! Where the copy of the browser's program is.

use std::path::{Path, PathBuf};

use crate::config::Config;

/// The directory for a copy of the browser's program. `None`: no copy.
pub(crate) fn program_cache(config: &Config) -> Option<PathBuf> {
    let named = &config.browser.program_cache;
    if !named.as_os_str().is_empty() {
        return (named != Path::new("off")).then(|| named.clone());
    }
    // systemd names a service's directory, and is followed by the XDG Base Directory Specification.
    let of_environment = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let directory = of_environment("CACHE_DIRECTORY")
        .or_else(|| rustix::process::geteuid().is_root().then(|| PathBuf::from("/var/cache/grabd")))
        .or_else(|| of_environment("XDG_CACHE_HOME").map(|path| path.join("grabd")))
        .or_else(|| of_environment("HOME").filter(|home| home.is_dir()).map(|home| home.join(".cache/grabd")));
    Some(directory.unwrap_or_else(|| config.data_dir.join("cache")))
}
