//! Copies files from one place to another.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::time::Duration;

use grabd_domain::grabs::ImageKey;
use tokio::time::Instant;

use super::error::{Error, Result};
use super::name::FileName;
use super::place::Place;
use super::spool::run_blocking;

/// Copies a file within a time, unless the other place has it already. Returns its size in bytes; `None` if it does not
/// exist.
pub(super) async fn copy(
    from: &Place,
    to: &Place,
    key: &ImageKey,
    name: FileName,
    limit: Duration,
) -> Result<Option<u64>> {
    let Some(size) = from.size(key, name).await? else { return Ok(None) };
    if to.size(key, name).await? == Some(size) {
        return Ok(Some(size));
    }
    let Some(source) = from.local_copy(key, name).await? else { return Ok(None) };
    let mut draft = to.begin(key).await?;
    let filled = run_blocking(move || match File::open(source.path()) {
        Ok(mut file) => {
            io::copy(&mut file, &mut draft)?;
            Ok(Some(draft))
        }
        // Deleted since it was found.
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    });
    let Some(draft) = filled.await? else { return Ok(None) };
    if draft.bytes() != size {
        return Err(Error::Incomplete);
    }
    to.finish_all(vec![(key.clone(), name, draft)], Instant::now() + limit).await?;
    Ok(Some(size))
}
