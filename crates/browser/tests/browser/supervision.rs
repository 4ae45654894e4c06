//! Browser failures are detected quickly, and cost unaffected grabs at most a second attempt.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use grabd_browser::{Health, find_executable};
use grabd_domain::grabs::FailureReason;
use grabd_domain::render::{RenderError, RenderTask, Renderer};
use rustix::process::Signal;

use crate::rig::{Rig, request, signal, task};
use crate::site::{Reply, Site, html};

/// The documented detection time, plus the delay of a busy machine.
const DETECTION_LIMIT: Duration = Duration::from_millis(2500);

/// Tabs that a rig's browser keeps ready.
const SPARE: usize = 2;

fn green() -> Reply {
    html("<body style='background:lime'>")
}

/// A page that allocates memory and keeps it in use until it has settled.
fn memory_hog(megabytes: u32) -> Reply {
    html(format!(
        "<body style='background:lime'><script>
        window.kept = [];
        for (let i = 0; i < {megabytes} / 64; i++) kept.push(new Uint8Array(64 << 20).fill(i + 1));
        </script><img src=/silent>"
    ))
}

/// Processes in the group of `pid` whose command line contains `word`.
fn processes(pid: u32, word: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let stat = |pid: u32| fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let group = |of: u32| stat(of).rsplit_once(')').and_then(|(_, rest)| rest.split(' ').nth(3)?.parse::<u32>().ok());
    let line = |pid: u32| fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    pids.filter(|of| group(*of) == Some(pid) && String::from_utf8_lossy(&line(*of)).contains(word)).collect()
}

/// Captures a page repeatedly until `condition` holds.
async fn grab_until(rig: &Rig, url: &str, condition: impl Fn(&Health) -> bool) {
    let limit = Instant::now() + Duration::from_secs(30);
    while !condition(&rig.chromium.health()) {
        assert!(Instant::now() < limit, "{:?}", rig.chromium.health());
        rig.grab(url).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn hung_browser_is_detected_within_two_seconds() {
    let site = Site::start(2, [("/", green()), ("/silent", Reply::Silence)]).await;
    let rig = Rig::start().await;
    let pid = rig.chromium.health().pids[0];
    let hang = async {
        site.wait_for_request("/silent").await;
        signal(pid, Signal::STOP);
        Instant::now()
    };
    let (lost, hung) = tokio::join!(rig.render(request(&site.url("/silent"))), hang);
    assert!(matches!(lost, Err(RenderError::Lost(_))), "{lost:?}");
    println!("a hang was noticed after {:?}", hung.elapsed());
    assert!(hung.elapsed() < DETECTION_LIMIT, "{:?}", hung.elapsed());
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    assert_eq!(rig.chromium.health().restarts, [("hung", 1)].into());
    rig.chromium.shutdown().await;
}

/// Waits until no tab is being prepared, while one is in use: it is replaced when its image is taken.
async fn other_tabs_ready(rig: &Rig) {
    let mut interval = tokio::time::interval(Duration::from_millis(10));
    while rig.chromium.health().ready_contexts < SPARE - 1 {
        interval.tick().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn crashed_page_is_retried_isolated_and_then_fails() {
    let pages = [("/late", green().after(1000)), ("/silent", Reply::Silence), ("/mute", Reply::Silence)];
    let site = Site::start(2, pages).await;
    let rig = Rig::start().await;
    let shared = rig.chromium.health().pids[0];
    let isolated = |path: &str| RenderTask { alone: true, ..task(request(&site.url(path))) };
    let kill_pages = async |browser: u32| {
        site.wait_for_request("/silent").await;
        // Killing a tab while it is being created would make the browser look stuck.
        tokio::time::timeout(Duration::from_secs(30), other_tabs_ready(&rig)).await.unwrap();
        processes(browser, "--type=renderer").into_iter().for_each(|pid| signal(pid, Signal::KILL));
        Instant::now()
    };
    let (lost, killed) = tokio::join!(rig.render(request(&site.url("/silent"))), kill_pages(shared));
    assert!(matches!(lost, Err(RenderError::Lost(_))), "{lost:?}");
    println!("a dead page was noticed after {:?}", killed.elapsed());
    assert!(killed.elapsed() < DETECTION_LIMIT, "{:?}", killed.elapsed());

    // The browser had no other page, so it is ended with all that is left of this one.
    assert_eq!(rig.grab(&site.url("/late")).await.colour(600, 400), "lime");
    let health = rig.chromium.health();
    assert_eq!(health.restarts, [("excess", 1)].into());
    assert!(!health.pids.contains(&shared), "{health:?}");

    let kill_alone = async {
        site.wait_for_request("/mute").await;
        let own = rig.chromium.health().pids.into_iter().find(|pid| !health.pids.contains(pid)).unwrap();
        processes(own, "--type=renderer").into_iter().for_each(|pid| signal(pid, Signal::KILL));
    };
    let (ended, ()) = tokio::join!(rig.chromium.render(isolated("/mute")), kill_alone);
    let Err(RenderError::Page { failure, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!((failure.reason, &*failure.message), (FailureReason::RenderFailed, "The page crashed the browser."));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_over_the_memory_limit_ends_without_affecting_others() {
    let pages = [
        ("/", green()),
        ("/silent", Reply::Silence),
        ("/slow", html("<body style='background:lime'><img src=/silent>")),
        ("/hog", memory_hog(2048)),
    ];
    let site = Site::start(2, pages).await;
    let rig = Rig::with(&[2], |options| options.memory_limit_bytes = 900 << 20).await;
    let (memory_hog, neighbour) =
        tokio::join!(rig.render(request(&site.url("/hog"))), rig.render(request(&site.url("/slow"))));
    let Err(RenderError::Page { failure, .. }) = memory_hog else { panic!("{memory_hog:?}") };
    assert_eq!(failure.message, "The page uses more memory than a capture may.");
    assert!(neighbour.is_ok(), "{neighbour:?}");

    let isolated = RenderTask { alone: true, ..task(request(&site.url("/hog"))) };
    let Err(RenderError::Page { failure, .. }) = rig.chromium.render(isolated).await else {
        panic!("the page was captured")
    };
    assert_eq!(failure.message, "The page uses more memory than a capture may.");
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn large_browser_is_replaced_and_its_memory_released() {
    let site = Site::start(2, [("/", green()), ("/silent", Reply::Silence), ("/hog", memory_hog(1536))]).await;
    let rig = Rig::with(&[2], |options| options.memory_limit_bytes = 4 << 30).await;
    let recycled = rig.chromium.health().pids[0];
    grab_until(&rig, &site.url("/"), |health| health.memory_bytes > 20 << 20 && health.processes > 3).await;
    assert_eq!(rig.grab(&site.url("/hog")).await.colour(600, 400), "lime");
    grab_until(&rig, &site.url("/"), |health| !health.pids.contains(&recycled)).await;
    assert_eq!(rig.chromium.health().restarts, [("memory", 1)].into());
    grab_until(&rig, &site.url("/"), |_| processes(recycled, "").is_empty()).await;
    // Normal memory use, after a browser that used more.
    grab_until(&rig, &site.url("/"), |health| health.browsers() == 1 && health.memory_bytes < 800 << 20).await;
    rig.chromium.shutdown().await;
}

/// A script that runs `first` and then executes the browser, and the path that the script knows as `$gate`.
fn program(directory: &Path, first: &str) -> (PathBuf, PathBuf) {
    let (program, gate) = (directory.join("program"), directory.join("gate"));
    let browser = find_executable(None, "").unwrap();
    let script = format!("#!/bin/sh\ngate={}\n{first}\nexec {} \"$@\"\n", gate.display(), browser.display());
    fs::write(&program, script).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    (program, gate)
}

/// A rig whose first browser answers its first command, and then runs `command` instead of answering.
async fn unresponsive_browser(directory: &Path, command: &str) -> Rig {
    let version =
        r#"{"id":1,"result":{"protocolVersion":"1","product":"Deaf","revision":"1","userAgent":"","jsVersion":""}}"#;
    let (program, gate) = program(
        directory,
        &format!("[ -e $gate ] || {{ head -c 1 <&3 >/dev/null; printf '{version}\\0' >&4; {command}; }}"),
    );
    let rig = Rig::with(&[2], |options| options.executable = Some(program)).await;
    assert_eq!(rig.chromium.health().version.as_deref(), Some("Deaf"));
    fs::write(gate, "").unwrap();
    rig
}

#[tokio::test(flavor = "multi_thread")]
async fn blocked_browser_is_detected_within_two_seconds() {
    let site = Site::start(2, [("/", green())]).await;
    let directory = crate::rig::open_directory();
    let rig = unresponsive_browser(directory.path(), "exec sleep 60").await;
    let hung = Instant::now();
    let noticed = async {
        let mut interval = tokio::time::interval(Duration::from_millis(10));
        while rig.chromium.health().restarts.is_empty() {
            interval.tick().await;
        }
    };
    tokio::time::timeout(DETECTION_LIMIT, noticed).await.unwrap();
    println!("a hang was noticed after {:?}", hung.elapsed());
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    assert_eq!(rig.chromium.health().restarts, [("hung", 1)].into());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_browser_is_replaced_after_a_grace_period() {
    let site = Site::start(2, [("/", green())]).await;
    let directory = crate::rig::open_directory();
    let rig = unresponsive_browser(directory.path(), "while :; do :; done").await;
    let busy = rig.chromium.health().pids;
    let started = Instant::now();
    // The browser does not respond, and no tab is ready.
    let url = site.url("/");
    let mut grab = std::pin::pin!(rig.grab(&url));
    let early = tokio::time::timeout(Duration::from_secs(5), &mut grab).await;
    assert!(early.is_err() && rig.chromium.health().pids == busy, "{:?}", rig.chromium.health());
    assert_eq!(grab.await.colour(600, 400), "lime");
    println!("captured after {:?}", started.elapsed());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_grab_waits_for_the_successor_of_a_recycled_browser() {
    let site = Site::start(2, [("/", green())]).await;
    let directory = crate::rig::open_directory();
    let (program, gate) = program(directory.path(), "[ -p $gate ] && read line < $gate");
    let rig = Rig::with(&[2], |options| {
        (options.recycle_after, options.executable) = (2, Some(program));
    })
    .await;
    let recycled = rig.chromium.health().pids[0];
    rustix::fs::mknodat(rustix::fs::CWD, &gate, rustix::fs::FileType::Fifo, rustix::fs::Mode::from_raw_mode(0o644), 0)
        .unwrap();
    // From the second grab on, its successor is starting, and is blocked.
    for _ in 0..6 {
        assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    }
    assert_eq!(rig.chromium.health().restarts, [("grabs", 1)].into());
    assert_eq!(rig.chromium.health().pids, [recycled]);
    // Opening blocks until the successor reads.
    let opened = gate.clone();
    tokio::task::spawn_blocking(move || fs::write(opened, "go\n").unwrap()).await.unwrap();
    fs::remove_file(&gate).unwrap();
    grab_until(&rig, &site.url("/"), |health| !health.pids.contains(&recycled)).await;
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_start_of_a_further_browser_is_repeated() {
    // The first page holds its browser until the second one is requested, which needs a browser of its own.
    let site = Site::start(2, [("/", green()), ("/held", green().once_requested("/", 1))]).await;
    let directory = crate::rig::open_directory();
    // The browser's user removes the gate.
    fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o777)).unwrap();
    let (program, gate) = program(directory.path(), "[ -e $gate ] && { rm $gate; exit 1; }");
    let rig = Rig::with(&[2], |options| (options.slots, options.executable) = (2, Some(program))).await;
    let held_url = site.url("/held");
    let further = async {
        site.wait_for_request("/held").await;
        fs::write(&gate, "").unwrap();
        rig.grab(&site.url("/")).await
    };
    let (held, further) = tokio::join!(rig.grab(&held_url), further);
    assert_eq!((held.colour(600, 400), further.colour(600, 400)), ("lime", "lime"));
    assert!(!gate.exists(), "no further browser was started");
    rig.chromium.shutdown().await;
}
