//! Limits connections by the open file limit, which the database, images and browser pipes share.

use rustix::process::{Resource, getrlimit};

/// The maximum connections of a listener: at most a quarter of the limit, which leaves half for everything else.
pub(super) fn connections(configured: u32) -> usize {
    let configured = usize::try_from(configured).unwrap_or(usize::MAX);
    let Some(files) = getrlimit(Resource::Nofile).current.and_then(|files| usize::try_from(files).ok()) else {
        return configured;
    };
    let possible = (files / 4).max(1);
    if possible < configured {
        tracing::warn!(
            configured,
            possible,
            files,
            "limits.connections is more than a quarter of the files allowed (ulimit -n)"
        );
    }
    configured.min(possible)
}
