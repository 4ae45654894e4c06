//! What a service that has ended must not leave behind: leases, pictures of nobody's, processes and directories.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use grabd::config::Config;
use grabd::wiring;
use grabd_domain::grabs::ImageKey;
use sea_orm::{ConnectOptions, ConnectionTrait, Database, DatabaseConnection, Statement, TryGetable};

/// A drain finishes what is being rendered; what waits in the queue waits for the next start.
const LEASED: &str = "SELECT COUNT(*) FROM job WHERE lease_until IS NOT NULL";
/// Keys under which a file may lie: a picture that is owed its deletion is still somebody's to delete.
const KNOWN: &str = "SELECT image_key FROM grab WHERE image_key IS NOT NULL UNION SELECT key FROM image_gc";
/// Keys under which one must: pictures of test keys are drawn when they are asked for.
const SHOWN: &str = "SELECT image_key FROM grab WHERE status = 2 AND env = 0 AND image_key IS NOT NULL";

/// Looks at everything that an ended service with these settings had.
///
/// # Errors
/// What it left behind.
pub async fn nothing_remains(config: &Config) -> Result<()> {
    let mut options = ConnectOptions::new(config.database_url());
    options.max_connections(1).sqlx_logging(false);
    let database = Database::connect(options).await?;
    let leased: Vec<i64> = column(&database, LEASED).await?;
    let (known, shown) = (paths(&database, KNOWN).await?, paths(&database, SHOWN).await?);
    database.close().await?;
    ensure!(leased == [0], "grabs whose render has not ended: {leased:?}");
    let files = files_below(&wiring::images_dir(config))?;
    let nobodys: Vec<_> = files.difference(&known).collect();
    ensure!(nobodys.is_empty(), "pictures of no grab: {nobodys:?}");
    let lost: Vec<_> = shown.difference(&files).collect();
    ensure!(lost.is_empty(), "grabs without their pictures: {lost:?}");

    let run_dir = wiring::browser_options(config, None).run_dir;
    let processes = processes_in(&run_dir);
    ensure!(processes.is_empty(), "browsers outlive the service: {processes:?}");
    let directories: Vec<_> = std::fs::read_dir(run_dir).into_iter().flatten().flatten().collect();
    ensure!(directories.is_empty(), "browsers leave directories behind: {directories:?}");
    Ok(())
}

/// Processes that run in this directory, by their command line.
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

/// Every file below a directory, by its path from there.
///
/// # Errors
/// When a directory cannot be read.
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

/// Where the pictures of these keys lie.
async fn paths(database: &DatabaseConnection, query: &str) -> Result<BTreeSet<String>> {
    let keys: Vec<String> = column(database, query).await?;
    keys.iter().map(|key| Ok(ImageKey::parse(key).context("an image key")?.path())).collect()
}

async fn column<T: TryGetable>(database: &DatabaseConnection, query: &str) -> Result<Vec<T>> {
    let statement = Statement::from_string(database.get_database_backend(), query);
    let rows = database.query_all_raw(statement).await?;
    rows.iter().map(|row| Ok(row.try_get_by_index(0)?)).collect()
}
