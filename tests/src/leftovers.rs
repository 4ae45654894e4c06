//! Checks that a stopped service leaves nothing behind: no leases, orphaned images, processes or directories.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use grabd::config::Config;
use grabd::run_dir::recorded_run_dirs;
use grabd::wiring;
use grabd_domain::grabs::ImageKey;
use grabd_images::Location;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement, TryGetable};

/// A drain finishes the captures in progress. Jobs in the queue wait for the next start.
const LEASED: &str = "SELECT COUNT(*) FROM job WHERE lease_until IS NOT NULL";
/// Image keys that may have a file, including images that are scheduled for deletion.
const KNOWN: &str = "SELECT image_key FROM grab WHERE image_key IS NOT NULL UNION SELECT key FROM image_gc";
/// Image keys that must have a file. Images of test keys are rendered on request.
const SHOWN: &str = "SELECT image_key FROM grab WHERE status = 2 AND env = 0 AND image_key IS NOT NULL";

/// Checks everything that a stopped service with these settings used.
///
/// # Errors
/// If something was left behind.
pub async fn check_no_leftovers(config: &Config) -> Result<()> {
    let mut options = ConnectOptions::new(config.database_url());
    options.max_connections(1).sqlx_logging(false);
    let database = Database::connect(options).await?;
    let leased: Vec<i64> = column(&database, LEASED).await?;
    let (known, shown) = (paths(&database, KNOWN).await?, paths(&database, SHOWN).await?);
    database.close().await?;
    ensure!(leased == [0], "leases remain: {leased:?}");
    // Tests with a bucket check its objects themselves. Here, nothing must be left of their uploads.
    let (files, shown) = match wiring::images_location(config) {
        Location::Directory(root) => (files_below(&root)?, shown),
        Location::Bucket { .. } => (files_below(&wiring::images_dir(config))?, BTreeSet::new()),
    };
    // The thumbnail and the files of a grab are stored beside its image, with its name and another suffix.
    let is_beside = |file: &str| {
        let image = file.strip_suffix(".thumbnail.jpeg").or_else(|| Some(file.rsplit_once('.')?.0));
        image.is_some_and(|image| known.contains(image) && files.contains(image))
    };
    let belongs = |file: &String| known.contains(file) || is_beside(file);
    let orphaned: Vec<_> = files.iter().filter(|file| !belongs(file)).collect();
    ensure!(orphaned.is_empty(), "images without a grab: {orphaned:?}");
    let missing: Vec<_> = shown.difference(&files).collect();
    ensure!(missing.is_empty(), "grabs without their images: {missing:?}");

    for run_dir in recorded_run_dirs(&config.data_dir) {
        let processes = processes_in(&run_dir);
        ensure!(processes.is_empty(), "browser processes remain: {processes:?}");
        let directories: Vec<_> = std::fs::read_dir(run_dir).into_iter().flatten().flatten().collect();
        ensure!(directories.is_empty(), "browser directories remain: {directories:?}");
    }
    Ok(())
}

/// Processes whose command line contains this directory.
pub fn processes_in(run_dir: &Path) -> Vec<u32> {
    let marker = run_dir.display().to_string();
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    all.filter_map(|entry| {
        let pid = entry.file_name().to_str()?.parse().ok()?;
        let command = std::fs::read(entry.path().join("cmdline")).ok()?;
        String::from_utf8_lossy(&command).contains(&marker).then_some(pid)
    })
    .collect()
}

/// All files below a directory, relative to it.
///
/// # Errors
/// If a directory cannot be read.
pub fn files_below(root: &Path) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    let mut directories = vec![root.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in std::fs::read_dir(directory)? {
            let entry = entry?;
            match entry.file_type()?.is_dir() {
                true => directories.push(entry.path()),
                false => drop(files.insert(entry.path().strip_prefix(root)?.display().to_string())),
            }
        }
    }
    Ok(files)
}

/// The file paths of the image keys that a query returns.
async fn paths(database: &DatabaseConnection, query: &str) -> Result<BTreeSet<String>> {
    let keys: Vec<String> = column(database, query).await?;
    keys.iter().map(|key| Ok(ImageKey::parse(key).context("an image key")?.path())).collect()
}

async fn column<T: TryGetable>(database: &DatabaseConnection, query: &str) -> Result<Vec<T>> {
    let statement = Statement::from_string(database.get_database_backend(), query);
    let rows = database.query_all_raw(statement).await?;
    rows.iter().map(|row| Ok(row.try_get_by_index(0)?)).collect()
}
