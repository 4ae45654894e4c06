//! The copy of the browser's program.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::fs::{Advice, fadvise};
use rustix::process::Signal;

use crate::rig::{Rig, signal};
use crate::site::{Site, html};

/// The program of the rig's only browser.
fn program(rig: &Rig) -> PathBuf {
    let pids = rig.chromium.health().pids;
    assert_eq!(pids.len(), 1);
    fs::read_link(format!("/proc/{}/exe", pids[0])).unwrap()
}

/// Kills the rig's only browser, and waits for its successor.
async fn kill(rig: &Rig) {
    let pid = rig.chromium.health().pids[0];
    signal(pid, Signal::KILL);
    until(|| rig.chromium.health().pids.first().is_some_and(|other| *other != pid)).await;
}

async fn until(condition: impl Fn() -> bool) {
    let fulfilled = async {
        let mut interval = tokio::time::interval(Duration::from_millis(10));
        while !condition() {
            interval.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), fulfilled).await.unwrap();
}

/// A directory for copies, on a disk, since copies are not made in memory.
fn cache() -> tempfile::TempDir {
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    directory
}

async fn start(cache: &Path) -> Rig {
    Rig::with(&[2], |options| options.program_cache = Some(cache.to_owned())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_is_run_while_it_exists_and_starts() {
    let site = Site::start(2, [("/", html("<body style='background:lime'>"))]).await;
    let directory = cache();
    let cache = directory.path().canonicalize().unwrap();
    let installed = grabd_browser::find_executable(None, "").unwrap().canonicalize().unwrap();

    let rig = start(&cache).await;
    let copy = program(&rig);
    assert!(copy.starts_with(&cache), "{copy:?}");
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    // The directory is cleared while the service runs.
    fs::remove_dir_all(&cache).unwrap();
    kill(&rig).await;
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    assert_eq!(program(&rig), installed);
    rig.chromium.shutdown().await;

    // It is written again, and damaged after that.
    let rig = start(&cache).await;
    assert!(copy.exists() && program(&rig) == copy);
    rig.chromium.shutdown().await;
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, "#!/bin/sh\nexit 1\n").unwrap();
    fs::set_permissions(&copy, fs::Permissions::from_mode(0o755)).unwrap();
    // As if it had been mapped with huge pages, which not all file systems support.
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap();
    fs::write(copy.with_file_name("grabd-state"), boot).unwrap();
    let rig = start(&cache).await;
    assert_eq!(program(&rig), installed);
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    rig.chromium.shutdown().await;
}

/// Kibibytes of files that a process maps with huge pages.
fn huge(pid: u32) -> u64 {
    let mappings = fs::read_to_string(format!("/proc/{pid}/smaps")).unwrap();
    let sizes = mappings.lines().filter_map(|line| line.strip_prefix("FilePmdMapped:")?.trim().strip_suffix(" kB"));
    sizes.map(|size| size.parse::<u64>().unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_that_was_dropped_from_memory_is_written_again() {
    let directory = cache();
    let rig = start(directory.path()).await;
    let copy = program(&rig);
    let before = huge(rig.chromium.health().pids[0]);
    // The mapping is checked in the background, and recorded if there are no huge pages.
    let state = || fs::read_to_string(copy.with_file_name("grabd-state")).unwrap().lines().count();
    until(|| state() == if before == 0 { 2 } else { 1 }).await;
    rig.chromium.shutdown().await;
    if before == 0 {
        eprintln!("this file system or kernel has no huge pages for files: nothing more to see");
        return;
    }
    let file = fs::File::open(&copy).unwrap();
    file.sync_all().unwrap();
    fadvise(&file, 0, None, Advice::DontNeed).unwrap();

    let rig = start(directory.path()).await;
    let dropped = huge(rig.chromium.health().pids[0]);
    if dropped * 2 >= before {
        eprintln!("this system reads files from the disk in large pieces: nothing more to see");
        return;
    }
    let former = file.metadata().unwrap().ino();
    until(|| fs::metadata(&copy).is_ok_and(|data| data.ino() != former)).await;
    kill(&rig).await;
    let pid = rig.chromium.health().pids[0];
    let (run, renewed) = (fs::metadata(format!("/proc/{pid}/exe")).unwrap(), fs::metadata(&copy).unwrap());
    assert_eq!(run.ino(), renewed.ino());
    // How much it is depends on the free memory.
    let after = huge(pid);
    assert!(after > dropped, "{after} KiB after {dropped} KiB, and {before} KiB before");
    rig.chromium.shutdown().await;
}
