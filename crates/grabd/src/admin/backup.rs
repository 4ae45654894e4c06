//! `grabd admin backup` and `grabd admin restore`.
//!
//! Images in a bucket are not copied: the backup says where they are. Copying a bucket is a matter of the object store.
//!
//! The database is copied before the images. Images never change, so every finished grab of the copy has its image,
//! unless it was deleted meanwhile. The manifest is written last: a backup without one is incomplete.

use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, ensure};
use grabd_engine::clock::Clock;
use grabd_images::Location;
use grabd_store::{Kind, Store};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::process::Command;

use super::output::CommandOutput;
use crate::config::Config;
use crate::database_url::WithoutPassword;
use crate::{data_dir_lock, wiring};

/// The copy of an SQLite database.
const SQLITE_COPY: &str = "grabd.db";
/// The dump of a PostgreSQL database.
const POSTGRES_DUMP: &str = "grabd.dump";
/// The directory of the images, in the backup and in the directory of the images.
const IMAGES: &str = "i";
/// The list of the images: path and size in bytes, separated by a tab.
const IMAGE_LIST: &str = "images.tsv";
const SECRETS: &str = "secrets.key";
const MANIFEST: &str = "manifest.json";
/// Maximum duration of a dump or its restoration.
const DUMP_TIMEOUT: Duration = Duration::from_secs(12 * 60 * 60);

/// What a backup contains.
#[derive(Debug, Serialize, Deserialize)]
struct Manifest {
    /// The version of grabd that made it.
    version: String,
    /// When it was complete.
    created_at: String,
    /// `sqlite` or `postgres`.
    database: String,
    /// Number of images.
    images: u64,
    /// Their size in bytes.
    image_bytes: u64,
    /// The bucket with images that are not in the backup.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bucket: Option<String>,
    /// Whether it has the key that encrypts webhook secrets.
    has_secrets_key: bool,
}

/// Creates a backup while the service runs.
pub(super) async fn create(config: &Config, store: &Store, directory: &Path) -> anyhow::Result<CommandOutput> {
    create_empty(directory)?;
    match store.kind() {
        Kind::Sqlite => {
            store.copy_database(&directory.join(SQLITE_COPY)).await.context("the database was not copied")?;
        }
        Kind::Postgres => dump(config, &directory.join(POSTGRES_DUMP)).await?,
    }
    let ImageSources { directory: from, bucket } = places(config);
    let to = directory.to_owned();
    let (images, image_bytes) = blocking(move || link_images(from.as_deref(), &to)).await?;
    let key_file = wiring::key_file(config);
    let has_secrets_key = key_file.exists();
    if has_secrets_key {
        copy_private(&key_file, &directory.join(SECRETS))?;
    }
    let manifest = Manifest {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        created_at: Clock::system().now().to_string(),
        database: store.kind().to_string(),
        images,
        image_bytes,
        bucket,
        has_secrets_key,
    };
    write_private(&directory.join(MANIFEST), &serde_json::to_vec_pretty(&manifest)?)?;
    File::open(directory)?.sync_all()?;
    store
        .audit()
        .record_backup(&directory.display().to_string())
        .await
        .context("the backup is complete, but not recorded")?;
    let (database, shown) = (&manifest.database, directory.display());
    let text = match &manifest.bucket {
        None => format!("Backed up the {database} database and {images} images to {shown}."),
        Some(bucket) => format!(
            "Backed up the {database} database and {images} images in files to {shown}.\nThe images in {bucket} were \
             NOT copied: back up the bucket with the tools of its object store, after this command."
        ),
    };
    Ok(CommandOutput::ok(
        text,
        json!({
            "directory": directory.display().to_string(),
            "images": images,
            "image_bytes": image_bytes,
            "bucket": manifest.bucket,
        }),
    ))
}

/// Restores a backup into an empty data directory and database.
pub(super) async fn restore(config: &Config, directory: &Path) -> anyhow::Result<CommandOutput> {
    let manifest = directory.join(MANIFEST);
    let manifest = std::fs::read(&manifest)
        .with_context(|| format!("{} cannot be read; is the backup complete?", manifest.display()))?;
    let manifest: Manifest = serde_json::from_slice(&manifest).context("the manifest of the backup is not valid")?;
    // No service may use the data directory meanwhile.
    let _lock = data_dir_lock::lock(&config.data_dir)?;
    let url = config.database_url();
    let database = if url.starts_with("sqlite:") { "sqlite" } else { "postgres" };
    ensure!(
        manifest.database == database,
        "the backup is of a {} database, but a {database} database is configured (GRABD_DATABASE__URL)",
        manifest.database
    );
    let images = places(config).directory;
    if let Some(images) = &images {
        ensure!(
            is_empty_or_missing(&images.join(IMAGES))?,
            "{} has images; restore into an empty data directory (GRABD_DATA_DIR)",
            images.display()
        );
    }
    ensure!(
        images.is_some() || manifest.images == 0,
        "the backup has {} images in files, but images.url and images.fallback_url name no directory; restore them into \
         one, and move them then (docs/IMAGES.md)",
        manifest.images
    );
    let from = directory.to_owned();
    let listed = blocking(move || check_images(&from)).await?;
    ensure!(listed == manifest.images, "the backup lists {listed} images, but its manifest {}", manifest.images);
    restore_secrets(config, directory, &manifest)?;
    match database {
        "sqlite" => restore_sqlite(&url, &directory.join(SQLITE_COPY))?,
        _ => restore_postgres(config, &directory.join(POSTGRES_DUMP)).await?,
    }
    let (from, to) = (directory.to_owned(), images);
    let restored = match to {
        Some(to) => blocking(move || restore_images(&from, &to)).await?,
        None => 0,
    };
    // Proves that the database can be used, and brings one of an earlier version up to date.
    let store = wiring::open_store(config).await?;
    store.migrate().await.context("the restored database cannot be used")?;
    let violations = store.credits().verify_ledger().await.context("the restored ledger cannot be checked")?;
    store.close().await;
    let mut text = match violations.is_empty() {
        true => format!("Restored the database and {restored} images; the ledger is consistent."),
        false => format!("Restored, but the ledger has {} errors: `grabd admin ledger verify`.", violations.len()),
    };
    if let Some(bucket) = &manifest.bucket {
        text += &format!("\nOther images were in {bucket}: set images.url to it, or to a copy of it.");
    }
    let json = json!({
        "images": restored,
        "ledger_errors": violations.len(),
        "version": manifest.version,
        "bucket": manifest.bucket,
    });
    Ok(CommandOutput { text, json, success: violations.is_empty() })
}

/// The places of the images: at most one directory is used, and at most one bucket is named.
struct ImageSources {
    directory: Option<PathBuf>,
    bucket: Option<String>,
}

fn places(config: &Config) -> ImageSources {
    let mut places = ImageSources { directory: None, bucket: None };
    for location in std::iter::once(wiring::images_location(config)).chain(config.images.fallback()) {
        match location {
            Location::Directory(root) => places.directory = places.directory.or(Some(root)),
            bucket @ Location::Bucket { .. } => places.bucket = places.bucket.or(Some(bucket.to_string())),
        }
    }
    places
}

/// Creates a directory for its owner only. It may exist if it is empty.
fn create_empty(directory: &Path) -> anyhow::Result<()> {
    ensure!(
        is_empty_or_missing(directory)?,
        "{} is not empty; name a new directory for each backup",
        directory.display()
    );
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(directory)
        .with_context(|| format!("{} cannot be created", directory.display()))
}

fn is_empty_or_missing(directory: &Path) -> anyhow::Result<bool> {
    match std::fs::read_dir(directory) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(true),
        Err(error) => Err(error).with_context(|| format!("{} cannot be read", directory.display())),
    }
}

/// Links the images into the backup, or copies them if it is on another file system. Returns number and size.
fn link_images(images: Option<&Path>, backup: &Path) -> anyhow::Result<(u64, u64)> {
    let mut list = BufWriter::new(create_private(&backup.join(IMAGE_LIST))?);
    let (mut count, mut total) = (0, 0);
    let images = images.unwrap_or(backup);
    for relative in files(&images.join(IMAGES))? {
        let (from, to) = (images.join(IMAGES).join(&relative), backup.join(IMAGES).join(&relative));
        match link_or_copy(&from, &to) {
            Ok(bytes) => {
                writeln!(list, "{}\t{bytes}", relative.display())?;
                (count, total) = (count + 1, total + bytes);
            }
            // Deleted since the directory was read.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error).with_context(|| format!("{} cannot be backed up", from.display())),
        }
    }
    list.into_inner().context("the list of images was not written")?.sync_all()?;
    Ok((count, total))
}

/// Checks that every listed image is in the backup. Returns their number.
fn check_images(backup: &Path) -> anyhow::Result<u64> {
    let mut count = 0;
    for image in listed(backup)? {
        let (relative, bytes) = image?;
        let path = backup.join(IMAGES).join(&relative);
        let size = path.metadata().with_context(|| format!("{} is missing in the backup", path.display()))?.len();
        ensure!(size == bytes, "{} has {size} bytes, but {bytes} when it was backed up", path.display());
        count += 1;
    }
    Ok(count)
}

fn restore_images(backup: &Path, images: &Path) -> anyhow::Result<u64> {
    let mut count = 0;
    for image in listed(backup)? {
        let (relative, _) = image?;
        let (from, to) = (backup.join(IMAGES).join(&relative), images.join(IMAGES).join(&relative));
        link_or_copy(&from, &to).with_context(|| format!("{} cannot be restored", to.display()))?;
        count += 1;
    }
    Ok(count)
}

/// The paths and sizes in the list of images.
fn listed(backup: &Path) -> anyhow::Result<impl Iterator<Item = anyhow::Result<(PathBuf, u64)>> + use<>> {
    let list = File::open(backup.join(IMAGE_LIST)).context("the list of images cannot be read")?;
    Ok(BufReader::new(list).lines().map(|line| -> anyhow::Result<(PathBuf, u64)> {
        let line = line?;
        let (path, bytes) = line.split_once('\t').context("the list of images is not valid")?;
        let path = PathBuf::from(path);
        // A path must not lead out of the directory.
        ensure!(
            path.components().all(|part| matches!(part, std::path::Component::Normal(_))),
            "the list of images has the path {}",
            path.display()
        );
        Ok((path, bytes.parse()?))
    }))
}

/// All files below a directory, relative to it.
fn files(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let (mut found, mut directories) = (Vec::new(), vec![root.to_owned()]);
    while let Some(directory) = directories.pop() {
        let entries = match std::fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("{} cannot be read", directory.display())),
        };
        for entry in entries {
            let entry = entry?;
            let kind = entry.file_type()?;
            if kind.is_dir() {
                directories.push(entry.path());
            } else if kind.is_file() {
                found.push(entry.path().strip_prefix(root)?.to_owned());
            }
        }
    }
    Ok(found)
}

/// Links a file, or copies it if it is on another file system. Returns its size. Images are never modified, so a link
/// is as good as a copy.
fn link_or_copy(from: &Path, to: &Path) -> io::Result<u64> {
    if let Some(parent) = to.parent() {
        DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    match std::fs::hard_link(from, to) {
        Ok(()) => Ok(to.metadata()?.len()),
        // Other file systems and kernels with protected hard links refuse it.
        Err(error) if matches!(error.kind(), ErrorKind::CrossesDevices | ErrorKind::PermissionDenied) => {
            let bytes = std::fs::copy(from, to)?;
            File::open(to)?.sync_all()?;
            Ok(bytes)
        }
        Err(error) => Err(error),
    }
}

fn create_private(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn write_private(path: &Path, text: &[u8]) -> anyhow::Result<()> {
    let mut file = create_private(path).with_context(|| format!("{} cannot be created", path.display()))?;
    file.write_all(text)?;
    file.sync_all()?;
    Ok(())
}

fn copy_private(from: &Path, to: &Path) -> anyhow::Result<()> {
    let text = std::fs::read(from).with_context(|| format!("{} cannot be read", from.display()))?;
    write_private(to, &text)
}

/// Restores the key of the webhook secrets. An existing key must be the same one.
fn restore_secrets(config: &Config, directory: &Path, manifest: &Manifest) -> anyhow::Result<()> {
    if !manifest.has_secrets_key {
        return Ok(());
    }
    let (from, to) = (directory.join(SECRETS), wiring::key_file(config));
    if to.exists() {
        let same = std::fs::read(&from)? == std::fs::read(&to)?;
        ensure!(same, "{} is another key than that of the backup; move it away first", to.display());
        return Ok(());
    }
    copy_private(&from, &to)
}

/// Copies the database next to its place, then renames it.
fn restore_sqlite(url: &str, copy: &Path) -> anyhow::Result<()> {
    let path = url.strip_prefix("sqlite:").unwrap_or(url);
    let path = path.strip_prefix("//").unwrap_or(path);
    let path = PathBuf::from(path.split_once('?').map_or(path, |(path, _)| path));
    ensure!(!path.exists(), "{} exists; restore into an empty data directory (GRABD_DATA_DIR)", path.display());
    let unfinished = path.with_extension("restoring");
    std::fs::copy(copy, &unfinished).with_context(|| format!("{} cannot be restored", path.display()))?;
    std::fs::set_permissions(&unfinished, Permissions::from_mode(0o600))?;
    File::open(&unfinished)?.sync_all()?;
    std::fs::rename(&unfinished, &path)?;
    if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        File::open(parent)?.sync_all()?;
    }
    Ok(())
}

async fn dump(config: &Config, to: &Path) -> anyhow::Result<()> {
    let (url, password) = postgres_url(config);
    let mut command = Command::new("pg_dump");
    command.args(["--format=custom", "--no-owner", "--no-privileges"]).arg("--file").arg(to).arg("--dbname").arg(url);
    run(command, password, "pg_dump").await?;
    std::fs::set_permissions(to, Permissions::from_mode(0o600))?;
    File::open(to)?.sync_all()?;
    Ok(())
}

async fn restore_postgres(config: &Config, from: &Path) -> anyhow::Result<()> {
    // No service may use the database meanwhile.
    let store = wiring::open_store(config).await?;
    let lock = wiring::lock_service(config, &store).await?;
    let (url, password) = postgres_url(config);
    let mut command = Command::new("pg_restore");
    // In one transaction: a database that is not empty stays as it is.
    command.args(["--no-owner", "--no-privileges", "--exit-on-error", "--single-transaction"]);
    command.arg("--dbname").arg(url).arg(from);
    let restored = run(command, password, "pg_restore").await;
    lock.release().await;
    store.close().await;
    restored.context("the database must be empty; nothing was changed in it")
}

/// The database URL without its password, and the password, which must not be in the list of processes.
fn postgres_url(config: &Config) -> (String, Option<String>) {
    let url = config.database_url();
    let without = WithoutPassword::of(&url);
    let password = without.password.map(|encoded| {
        let form = format!("p={}", encoded.replace('+', "%2B").replace('&', "%26"));
        url::form_urlencoded::parse(form.as_bytes()).map(|(_, password)| password.into_owned()).collect::<String>()
    });
    (without.url(), password)
}

async fn run(mut command: Command, password: Option<String>, name: &str) -> anyhow::Result<()> {
    if let Some(password) = password {
        command.env("PGPASSWORD", password);
    }
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let output = tokio::time::timeout(DUMP_TIMEOUT, command.output())
        .await
        .with_context(|| format!("{name} took more than 12 hours"))?
        .with_context(|| format!("{name} cannot be run; install the PostgreSQL client programs"))?;
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{name} failed: {}", errors.trim());
    Ok(())
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> anyhow::Result<T> + Send + 'static) -> anyhow::Result<T> {
    tokio::task::spawn_blocking(work).await.context("the files were not copied")?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_linked_and_listed_and_damage_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let (images, backup, target) = (dir.path().join("images"), dir.path().join("backup"), dir.path().join("new"));
        std::fs::create_dir_all(images.join("i/ab")).unwrap();
        std::fs::write(images.join("i/ab/one.png"), "1234").unwrap();
        std::fs::write(images.join("i/two.png"), "12").unwrap();
        create_empty(&backup).unwrap();
        assert_eq!(link_images(Some(&images), &backup).unwrap(), (2, 6));
        assert_eq!(check_images(&backup).unwrap(), 2);
        assert_eq!(restore_images(&backup, &target).unwrap(), 2);
        assert_eq!(std::fs::read(target.join("i/ab/one.png")).unwrap(), b"1234");
        assert!(create_empty(&backup).unwrap_err().to_string().contains("not empty"));
        std::fs::remove_file(backup.join("i/two.png")).unwrap();
        assert!(check_images(&backup).unwrap_err().to_string().contains("missing in the backup"));
        std::fs::write(backup.join(IMAGE_LIST), "../../etc/passwd\t1\n").unwrap();
        assert!(check_images(&backup).unwrap_err().to_string().contains("../../etc/passwd"));
    }
}
