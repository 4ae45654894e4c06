//! Connections are files of this process, and so are its database, its pictures and the pipes of its browser.

use rustix::process::{Resource, getrlimit};

/// Connections that a listener may have, of those that were asked for: with two listeners, half of all files are left.
pub(super) fn connections(asked: u32) -> usize {
    let asked = usize::try_from(asked).unwrap_or(usize::MAX);
    let Some(files) = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok()) else {
        return asked;
    };
    let possible = (files / 4).max(1);
    if possible < asked {
        tracing::warn!(
            asked,
            possible,
            files,
            "limits.connections is more than a quarter of the files allowed (ulimit -n)"
        );
    }
    asked.min(possible)
}
