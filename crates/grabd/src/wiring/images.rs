//! Opens the image storage, and checks its places.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use grabd_engine::clock::Clock;
use grabd_engine::random;
use grabd_images::{ImageOptions, Images, Location, S3Options, Shared, SignedUploads, UploadError, Uploader};
use grabd_memory::MemoryBudget;
use grabd_store::Store;
use grabd_store::image_places::ImagePlaces;

use crate::config::Config;

/// Unfinished image files that are older belong to no upload: leases are much shorter.
const STALE_UPLOAD: Duration = Duration::from_secs(24 * 60 * 60);

/// The name under which the directory in the data directory is recorded, wherever that is.
const DEFAULT_PLACE: &str = "data_dir";

/// The memory for images: one budget for the whole process.
pub fn image_memory(config: &Config) -> MemoryBudget {
    MemoryBudget::new(config.capture.image_memory_megabytes << 20)
}

/// The directory of the images, unless `images.url` names another place. Unfinished uploads to a bucket are in it, too.
pub fn images_dir(config: &Config) -> PathBuf {
    config.data_dir.join("images")
}

/// Where new images are stored.
pub fn images_location(config: &Config) -> Location {
    config.images.location().unwrap_or_else(|| Location::Directory(images_dir(config)))
}

/// The operator's certificate authorities for the object store, as PEM.
fn images_roots(config: &Config) -> anyhow::Result<Vec<u8>> {
    let file = &config.images.ca_file;
    match file.as_os_str().is_empty() {
        true => Ok(Vec::new()),
        false => std::fs::read(file).with_context(|| format!("images.ca_file {}", file.display())),
    }
}

/// What uploads images to the object store without its credentials.
///
/// # Errors
/// When the operator's certificates cannot be used.
pub fn uploader(config: &Config) -> anyhow::Result<Uploader> {
    Uploader::new(&images_roots(config)?).with_context(|| format!("images.ca_file {}", config.images.ca_file.display()))
}

/// How the image storage is opened.
///
/// # Errors
/// When the operator's certificates cannot be read.
pub fn image_options(config: &Config) -> anyhow::Result<ImageOptions> {
    let images = &config.images;
    let extra_roots = images_roots(config)?;
    let secret = images.secret_access_key.expose();
    let s3 = S3Options {
        endpoint: images.endpoint.clone(),
        region: images.region.clone(),
        keys: (!secret.is_empty()).then(|| (images.access_key_id.clone(), secret.to_owned())),
        path_style: images.path_style,
        extra_roots,
        environment: aws_environment(),
    };
    let (location, fallback) = (images_location(config), config.images.fallback());
    let shared = config.cluster.enabled.then(|| Shared {
        stale_before: Clock::system().now() - STALE_UPLOAD,
        prefix: format!("{}-", random::secret_text()),
    });
    Ok(ImageOptions { scratch: images_dir(config), location, fallback, s3, shared })
}

/// The variables by which programs usually get their credentials for AWS.
fn aws_environment() -> Vec<(String, String)> {
    const NAMES: [&str; 12] = [
        "AWS_ACCESS_KEY_ID",
        "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_DEFAULT_REGION",
        "AWS_ENDPOINT_URL_STS",
        "AWS_REGION",
        "AWS_ROLE_ARN",
        "AWS_ROLE_SESSION_NAME",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_SESSION_TOKEN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
    ];
    let read = |name: &str| Some((name.to_owned(), std::env::var_os(name)?.into_string().ok()?));
    NAMES.into_iter().filter_map(read).filter(|(_, value)| !value.is_empty()).collect()
}

/// The name under which a place of images is recorded.
pub fn place_name(config: &Config, location: &Location) -> String {
    let absolute = |path: &Path| std::path::absolute(path).ok();
    match location {
        Location::Directory(path) if absolute(path) == absolute(&images_dir(config)) => DEFAULT_PLACE.to_owned(),
        location @ (Location::Directory(_) | Location::Bucket { .. }) => location.to_string(),
    }
}

/// The configured places of the images, as they are recorded.
pub fn image_places(config: &Config) -> ImagePlaces {
    let name = |location: Location| place_name(config, &location);
    let others = config.images.fallback().map(name).into_iter().collect();
    ImagePlaces { first: Some(name(images_location(config))), others }
}

/// Checks that no place that may have images is missing in the configuration. Returns the places that are recorded.
///
/// # Errors
/// When a place is missing, with what to do.
async fn check_image_places(config: &Config, store: &Store) -> anyhow::Result<ImagePlaces> {
    let (recorded, configured) = (store.images().image_places().await?, image_places(config));
    let mut known: Vec<String> = recorded.first.iter().chain(&recorded.others).cloned().collect();
    let has_images = |dir: PathBuf| std::fs::read_dir(dir).is_ok_and(|mut found| found.next().is_some());
    if known.is_empty() && has_images(images_dir(config).join("i")) {
        // A database of an earlier version.
        known.push(DEFAULT_PLACE.to_owned());
    }
    let is_configured = |place: &String| configured.first.as_ref() == Some(place) || configured.others.contains(place);
    if let Some(missing) = known.iter().find(|place| !is_configured(place)) {
        let url = match missing == DEFAULT_PLACE {
            true => Location::Directory(std::path::absolute(images_dir(config))?).to_string(),
            false => missing.clone(),
        };
        anyhow::bail!(
            "images may also be in {url}: set GRABD_IMAGES__FALLBACK_URL to it, and move them with `grabd admin images \
             move` (docs/IMAGES.md). If it has none, run `grabd admin images forget {missing}`"
        );
    }
    Ok(recorded)
}

/// The name of the object that shows whether a bucket can be used. Two processes do not use the same.
fn probe_name() -> String {
    format!("grabd-probe-{}", std::process::id())
}

/// Opens the image storage for the service, checks the buckets, and records the places.
///
/// # Errors
/// When a place cannot be used or is missing, with what to check.
pub(super) async fn open_images(config: &Config, store: &Store) -> anyhow::Result<Images> {
    let recorded = check_image_places(config, store).await?;
    let images = Images::open(&image_options(config)?).context("the image storage cannot be used")?;
    check_images(config, &images).await?;
    log_signed_uploads(config, &images).await?;
    // After the check, so that a place that was never used is not recorded.
    let configured = image_places(config);
    if recorded != configured {
        store.images().record_image_places(configured).await?;
    }
    Ok(images)
}

/// What the object store does with uploads of renderers. `None` if they upload no images.
///
/// # Errors
/// When the operator's certificates cannot be used.
pub async fn signed_uploads(
    config: &Config,
    images: &Images,
) -> anyhow::Result<Option<Result<SignedUploads, UploadError>>> {
    if !config.images.direct_upload || config.cluster.listen.is_none() {
        return Ok(None);
    }
    let name = format!("{}-upload", probe_name());
    Ok(images.probe_signed_uploads(&name, &uploader(config)?).await.transpose())
}

/// Finds out whether renderers can upload images, and logs what operators should know.
async fn log_signed_uploads(config: &Config, images: &Images) -> anyhow::Result<()> {
    match signed_uploads(config, images).await? {
        None | Some(Ok(SignedUploads::Once)) => {}
        Some(Ok(SignedUploads::Repeatable | SignedUploads::Unconditional)) => {
            tracing::info!(
                "the object store does not support If-None-Match: an upload can be repeated while its URL is valid"
            );
        }
        Some(Ok(SignedUploads::Refused)) => {
            tracing::warn!("the object store refuses uploads to signed URLs: all images pass through the cores");
        }
        Some(Err(error)) => tracing::warn!(%error, "it is not known whether renderers can upload images themselves"),
    }
    Ok(())
}

/// Checks that the buckets of the image storage can be written, read and deleted from.
///
/// # Errors
/// When that fails, with what to check.
pub async fn check_images(config: &Config, images: &Images) -> anyhow::Result<()> {
    images.probe(&probe_name()).await.with_context(|| format!("{} cannot be used", describe_images(config)))
}

/// The places of the images, for people.
pub fn describe_images(config: &Config) -> String {
    let place = |location: Location| match location {
        Location::Directory(path) => path.display().to_string(),
        bucket @ Location::Bucket { .. } => match config.images.endpoint.as_str() {
            "" => bucket.to_string(),
            endpoint => format!("{bucket} at {endpoint}"),
        },
    };
    let first = place(images_location(config));
    match config.images.fallback() {
        Some(fallback) => format!("{first}, and {}", place(fallback)),
        None => first,
    }
}
