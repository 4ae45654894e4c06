//! The copy of the browser's program.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

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
    let replaced = async {
        let mut interval = tokio::time::interval(Duration::from_millis(10));
        while rig.chromium.health().pids.first().is_none_or(|other| *other == pid) {
            interval.tick().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), replaced).await.unwrap();
}

async fn start(cache: &Path) -> Rig {
    Rig::with(&[2], |options| options.program_cache = Some(cache.to_owned())).await
}

#[tokio::test(flavor = "multi_thread")]
async fn copy_is_run_while_it_exists_and_starts() {
    let site = Site::start(2, [("/", html("<body style='background:lime'>"))]).await;
    // On a disk, since copies are not made in memory.
    let directory = tempfile::tempdir_in("/var/tmp").unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
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
