//! Browsers are replaced without losing a grab, except one in a browser that crashed.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use grabd_browser::{BrowserUser, Chromium, FrameMode, Options, StartError, probe};
use grabd_domain::grabs::FailureReason;
use grabd_domain::render::{RenderError, RenderTask, Renderer};
use tokio::sync::Notify;
use tracing_subscriber::Layer;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;

use crate::rig::{Rig, guard, jailed, open_directory, request, signal, task};
use crate::site::{Reply, Site, html};

fn green() -> Reply {
    html("<body style='background:lime'>")
}

/// Kills a browser that this test's rig started.
fn kill(pid: u32) {
    signal(pid, rustix::process::Signal::KILL);
}

/// Number of processes with `run_dir` on their command line.
fn processes_of(run_dir: &Path) -> usize {
    let needle = run_dir.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).contains(&needle)).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn grab_in_a_crashed_browser_is_lost_and_the_next_succeeds() {
    let site = Site::start(2, [("/", green()), ("/silent", Reply::Silence)]).await;
    // With one slot only one browser runs, so the ended one is that with the page.
    let rig = Rig::with(&[2], |options| options.slots = 1).await;
    for round in 1..=2 {
        let pid = rig.chromium.health().pids[0];
        let asked = async {
            site.wait_for_request("/silent").await;
            kill(pid);
        };
        let (lost, ()) = tokio::join!(rig.render(request(&site.url("/silent"))), asked);
        assert!(matches!(lost, Err(RenderError::Lost(_))), "{lost:?}");
        assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
        assert_eq!(rig.chromium.health().restarts, [("died", round)].into());
        assert_ne!(rig.chromium.health().pids, [pid]);
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn recycled_browser_is_replaced_without_losing_a_grab() {
    let site = Site::start(2, [("/", green().after(30))]).await;
    let rig = Rig::with(&[2], |options| (options.recycle_after, options.slots) = (5, 3)).await;
    let url = site.url("/");
    let workers = (0..3).map(|_| async {
        for _ in 0..7 {
            assert_eq!(rig.grab(&url).await.colour(600, 400), "lime");
        }
    });
    futures::future::join_all(workers).await;
    let restarts = rig.chromium.health().restarts;
    assert!(restarts.keys().eq(["grabs"].iter()) && restarts["grabs"] >= 2, "{restarts:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn browser_is_recycled_by_age_and_memory() {
    for (why, change) in [
        ("age", (|options: &mut Options| options.recycle_age = Duration::from_millis(300)) as fn(&mut Options)),
        ("memory", |options| options.recycle_rss_bytes = 1_000_000),
    ] {
        let site = Site::start(2, [("/", green())]).await;
        let rig = Rig::with(&[2], change).await;
        for _ in 0..200 {
            if !rig.chromium.health().restarts.is_empty() {
                break;
            }
            rig.grab(&site.url("/")).await;
        }
        assert!(rig.chromium.health().restarts.get(why).is_some_and(|count| *count > 0), "{why}");
        rig.chromium.shutdown().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn isolated_grab_gets_its_own_browser() {
    let site = Site::start(2, [("/", green()), ("/silent", Reply::Silence)]).await;
    let rig = Rig::start().await;
    let alone = |path: &str| RenderTask { alone: true, ..task(request(&site.url(path))) };
    rig.chromium.render(alone("/")).await.unwrap();
    let usual = rig.chromium.health().pids[0];
    let kill_it = async {
        site.wait_for_request("/silent").await;
        let pids = rig.chromium.health().pids;
        kill(*pids.iter().find(|pid| **pid != usual && Path::new(&format!("/proc/{pid}")).exists()).unwrap());
    };
    let (ended, ()) = tokio::join!(rig.chromium.render(alone("/silent")), kill_it);
    let Err(RenderError::Page { failure, .. }) = ended else { panic!("{ended:?}") };
    assert_eq!((failure.reason, &*failure.message), (FailureReason::RenderFailed, "The page crashed the browser."));
    assert!(rig.chromium.health().restarts.is_empty(), "the shared browser is not affected");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dropped_grab_releases_its_resources() {
    let site = Site::start(2, [("/", green()), ("/silent", Reply::Silence)]).await;
    let rig = Rig::with(&[2], |options| (options.slots, options.spare_contexts) = (1, 1)).await;
    for _ in 0..4 {
        let url = site.url("/silent");
        let grab = rig.render(request(&url));
        tokio::select! {
            ended = grab => panic!("{:?}", ended.map(|capture| capture.metadata)),
            () = site.wait_for_request("/silent") => {}
        }
        // Its slot is free when the page is disposed of.
        let free = async {
            let mut interval = tokio::time::interval(Duration::from_millis(5));
            while rig.chromium.health().free_slots < 1 {
                interval.tick().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(3), free).await.unwrap();
    }
    assert_eq!(rig.grab(&site.url("/")).await.colour(600, 400), "lime");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn shutdown_leaves_no_process_and_no_directory() {
    let site = Site::start(2, [("/silent", Reply::Silence)]).await;
    let rig = Rig::start().await;
    assert!(processes_of(&rig.run_dir) > 0);
    let end = async {
        site.wait_for_request("/silent").await;
        rig.chromium.shutdown().await;
    };
    let (lost, ()) = tokio::join!(rig.render(request(&site.url("/silent"))), end);
    assert!(matches!(lost, Err(RenderError::Lost(_))), "{lost:?}");
    assert_eq!(processes_of(&rig.run_dir), 0);
    assert!(!rig.run_dir.exists());
    assert!(rig.chromium.health().pids.is_empty());
}

/// Notifies when a browser has just started, before it can be leased.
struct StartNotifier(Arc<Notify>);

impl<S: tracing::Subscriber> Layer<S> for StartNotifier {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        let mut text = String::new();
        event.record(&mut |field: &tracing::field::Field, value: &dyn std::fmt::Debug| {
            if field.name() == "message" {
                text = format!("{value:?}");
            }
        });
        if text == "a browser is running" {
            self.0.notify_one();
        }
    }
}

// On one thread, so that all log events are seen, and the service ends before anything else happens.
#[tokio::test]
async fn browser_that_starts_during_a_shutdown_is_ended() {
    let started = Arc::new(Notify::new());
    let _guard = tracing_subscriber::registry().with(StartNotifier(started.clone())).set_default();
    let site = Site::start(2, [("/silent", Reply::Silence)]).await;
    let directory = open_directory();
    // A copy of the program is checked when a browser has started.
    let cache = tempfile::tempdir_in("/var/tmp").unwrap();
    std::fs::set_permissions(cache.path(), std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let run_dir = directory.path().join("browsers");
    let options = Options { slots: 2, program_cache: Some(cache.path().to_owned()), ..jailed(&run_dir) };
    let chromium = Chromium::start(options, guard(&[2])).await.unwrap();
    started.notified().await;

    let url = site.url("/silent");
    let captures = futures::future::join_all([(); 2].map(|()| chromium.render(task(request(&url)))));
    let end = async {
        started.notified().await;
        tokio::time::timeout(Duration::from_secs(20), chromium.shutdown()).await.expect("a browser is not ended");
    };
    let (lost, ()) = tokio::join!(captures, end);
    assert!(lost.iter().all(|lost| matches!(lost, Err(RenderError::Lost(_)))), "{lost:?}");
    assert_eq!(processes_of(&run_dir), 0);
    assert!(!run_dir.exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn failed_browser_start_reports_the_reason() {
    let site = Site::start(2, [("/", green())]).await;
    let directory = open_directory();
    let options = || Options::new(directory.path().join("browsers"));
    let start = async |options| Chromium::start(options, guard(&[2])).await.err();
    let missing = Options { executable: Some("/nowhere/chromium".into()), ..options() };
    assert_eq!(start(missing).await, Some(StartError::NoExecutable));
    let silent = Options { executable: Some("/bin/false".into()), ..options() };
    assert!(matches!(start(silent).await, Some(StartError::Browser { .. })));
    if rustix::process::geteuid().is_root() {
        let unknown = Options { user: Some(BrowserUser::Named("no-such-user".into())), ..options() };
        assert!(matches!(start(unknown).await, Some(StartError::NoUser(_))));
        let closed = tempfile::tempdir().unwrap();
        std::fs::set_permissions(closed.path(), std::os::unix::fs::PermissionsExt::from_mode(0o700)).unwrap();
        assert!(matches!(start(Options::new(closed.path().join("x"))).await, Some(StartError::Barred(_))));
    }

    // The program is removed while the service runs.
    let program = directory.path().join("program");
    std::os::unix::fs::symlink(grabd_browser::find_executable(None, "").unwrap(), &program).unwrap();
    let chromium =
        Chromium::start(Options { executable: Some(program.clone()), ..options() }, guard(&[2])).await.unwrap();
    chromium.render(task(request(&site.url("/")))).await.unwrap();
    std::fs::remove_file(&program).unwrap();
    kill(chromium.health().pids[0]);
    let error = tokio::time::timeout(Duration::from_secs(20), chromium.failed()).await.unwrap();
    assert!(error.to_string().contains("does not start"), "{error}");
    chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn probe_reports_a_working_browser_and_cleans_up() {
    let directory = open_directory();
    let program_cache = Some(directory.path().join("cache"));
    let findings = probe(&Options { program_cache, ..Options::new(directory.path()) }, guard(&[])).await;
    let of = |name: &str| findings.iter().find(|finding| finding.name == name).unwrap();
    assert!(of("browser").ok && of("browser").detail.contains("Chrome"), "{:?}", of("browser"));
    assert!(findings.iter().all(|finding| finding.ok || !finding.remedy.is_empty()));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    let missing = Options { executable: Some("/nowhere".into()), ..Options::new(directory.path()) };
    let findings = probe(&missing, guard(&[])).await;
    assert!(findings.iter().any(|finding| finding.name == "program" && !finding.ok));
    assert!(findings.iter().any(|finding| finding.name == "browser" && !finding.ok));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_busy_slot_has_its_own_browser_with_frames_on_demand() {
    let pages = [("/slow", html("<body style='background:lime'><img src=/never.svg>")), ("/never.svg", Reply::Silence)];
    let site = Site::start(2, pages).await;
    for (frames, browsers) in [(FrameMode::OnDemand, 2), (FrameMode::Timer, 1)] {
        let rig = Rig::with(&[2], |options| {
            options.slots = 2;
            options.frames = frames;
        })
        .await;
        assert_eq!(rig.chromium.health().browsers(), 1, "the others start when they are needed");
        let url = site.url("/slow");
        let (one, other) = tokio::join!(rig.grab(&url), rig.grab(&url));
        assert_eq!((one.colour(600, 400), other.colour(600, 400)), ("lime", "lime"));
        assert_eq!(rig.chromium.health().browsers(), browsers, "{frames:?}");
        rig.chromium.shutdown().await;
    }
}
