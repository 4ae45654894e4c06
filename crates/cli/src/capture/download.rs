//! Fetches pictures: whole or not at all.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use futures::StreamExt;
use reqwest::Response;
use url::Url;

use crate::api::{Api, Grab};
use crate::failure::Failure;

/// Fetches the picture into a file, which takes its place when it is whole.
pub(crate) async fn to_file(api: &Api, grab: &Grab, path: &Path) -> Result<(), Failure> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut new = tempfile::Builder::new()
        .prefix(".grab-")
        // As any file that this user makes: the umask takes its share.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(Failure::file(directory))?;
    copy(api, grab, |bytes| new.write_all(bytes).map_err(Failure::file(path))).await?;
    new.persist(path).map_err(|error| Failure::file(path)(error.error))?;
    Ok(())
}

/// Fetches the picture to stdout.
pub(crate) async fn to_stdout(api: &Api, grab: &Grab) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    copy(api, grab, |bytes| stdout.write_all(bytes).map_err(Failure::file("stdout"))).await?;
    stdout.flush().map_err(Failure::file("stdout"))
}

async fn copy(api: &Api, grab: &Grab, mut write: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    let url = grab.image(api).ok_or_else(|| Failure::NotCaptured {
        message: "The capture has no picture any more; it was deleted.".to_owned(),
    })?;
    let response = api.file(&url).send().await.map_err(Failure::unreachable(&url))?;
    let whole = check(&url, response)?;
    let mut chunks = whole.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        write(&chunk.map_err(Failure::unreachable(&url))?)?;
    }
    Ok(())
}

/// An answer that is a picture. One that ends early is an error of its own: its length was announced.
fn check(url: &Url, response: Response) -> Result<Response, Failure> {
    match response.status().is_success() {
        true => Ok(response),
        false => Err(Failure::Foreign { url: url.clone(), status: response.status() }),
    }
}
