//! Downloads images and attachments. Files are written atomically.

use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use futures::StreamExt;
use reqwest::Response;
use tempfile::NamedTempFile;
use url::Url;

use super::names;
use grabd_api::Viewport;

use crate::api::{Api, Grab};
use crate::failure::Failure;

/// Downloads the image to a temporary file, then moves it to `path`.
pub(crate) async fn to_file(api: &Api, grab: &Grab, path: &Path) -> Result<(), Failure> {
    save(api, &image_url(api, grab)?, path).await
}

/// Downloads the attachments, named as the image with other extensions, its slices, which are numbered, the images in
/// further viewports, which have their size in the name, and those that steps took, which have the name of the step.
/// Returns the paths of the slices.
pub(crate) async fn attachments(api: &Api, grab: &Grab, image: &Path) -> Result<Vec<PathBuf>, Failure> {
    let mut slices = Vec::new();
    for file in grab.files() {
        let path = match &*file.kind {
            "html" => image.with_extension("html"),
            "text" => image.with_extension("txt"),
            "markdown" => image.with_extension("md"),
            "links" => image.with_extension("links.json"),
            "elements" => image.with_extension("elements.json"),
            "accessibility" => image.with_extension("accessibility.yaml"),
            "marks" => image.with_extension("marks.png"),
            "pdf" => image.with_extension("pdf"),
            "report" => image.with_extension("report.json"),
            "mhtml" => image.with_extension("mhtml"),
            "har" => image.with_extension("har"),
            "slice" => names::slice_path(image, slices.len() + 1),
            "viewport" => match file.viewport {
                Some(Viewport { width, height }) => names::beside_path(image, &format!("{width}x{height}")),
                None => continue,
            },
            "capture" => match file.name.as_deref().filter(|name| names::is_image_name(name)) {
                Some(name) => names::beside_path(image, name),
                None => continue,
            },
            "difference" => image.with_extension("difference.png"),
            "thumbnail" => image.with_extension("thumbnail.jpeg"),
            "evidence" => image.with_extension("evidence.zip"),
            // Of a later version of the service. Its URL is in the output of --json.
            _ => continue,
        };
        if let Some(url) = Grab::file(api, file) {
            save(api, &url, &path).await?;
            if file.kind == "slice" {
                slices.push(path);
            }
        }
    }
    Ok(slices)
}

/// Downloads a file to a temporary file, then moves it to `path`.
pub(crate) async fn save(api: &Api, url: &Url, path: &Path) -> Result<(), Failure> {
    let mut new = temporary(path)?;
    copy(api, url, |bytes| new.write_all(bytes).map_err(Failure::file(path))).await?;
    new.persist(path).map_err(|error| Failure::file(path)(error.error))?;
    Ok(())
}

/// Writes the body of a response to a temporary file, then moves it to `path`.
pub(crate) async fn save_body(response: Response, path: &Path) -> Result<(), Failure> {
    let url = response.url().clone();
    let mut new = temporary(path)?;
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        new.write_all(&chunk.map_err(Failure::unreachable(&url))?).map_err(Failure::file(path))?;
    }
    new.persist(path).map_err(|error| Failure::file(path)(error.error))?;
    Ok(())
}

/// Writes a file, which appears complete or not at all.
pub(crate) fn write(path: &Path, content: &[u8]) -> Result<(), Failure> {
    let mut new = temporary(path)?;
    new.write_all(content).map_err(Failure::file(path))?;
    new.persist(path).map_err(|error| Failure::file(path)(error.error))?;
    Ok(())
}

fn temporary(path: &Path) -> Result<NamedTempFile, Failure> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    tempfile::Builder::new()
        .prefix(".grab-")
        // The permissions of an ordinary new file, reduced by the umask.
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(directory)
        .map_err(Failure::file(directory))
}

/// Downloads the image to stdout.
pub(crate) async fn to_stdout(api: &Api, grab: &Grab) -> Result<(), Failure> {
    let mut stdout = std::io::stdout().lock();
    copy(api, &image_url(api, grab)?, |bytes| stdout.write_all(bytes).map_err(Failure::file("stdout"))).await?;
    stdout.flush().map_err(Failure::file("stdout"))
}

fn image_url(api: &Api, grab: &Grab) -> Result<Url, Failure> {
    grab.image(api).ok_or_else(|| no_image(grab))
}

async fn copy(api: &Api, url: &Url, mut write: impl FnMut(&[u8]) -> Result<(), Failure>) -> Result<(), Failure> {
    let response = api.file(url).send().await.map_err(Failure::unreachable(url))?;
    let response = check(url, response)?;
    let mut chunks = response.bytes_stream();
    while let Some(chunk) = chunks.next().await {
        write(&chunk.map_err(Failure::unreachable(url))?)?;
    }
    Ok(())
}

/// The error for a capture without an image.
pub(crate) fn no_image(grab: &Grab) -> Failure {
    let id = &grab.fields.id;
    Failure::NoImage(match &*grab.fields.status {
        "done" => format!("the image of capture {id} was deleted"),
        status => format!("capture {id} is {status} and has no image"),
    })
}

/// Rejects error responses. A body shorter than its `Content-Length` fails while it is read.
fn check(url: &Url, response: Response) -> Result<Response, Failure> {
    match response.status().is_success() {
        true => Ok(response),
        false => Err(Failure::UnexpectedResponse { url: url.clone(), status: response.status() }),
    }
}
