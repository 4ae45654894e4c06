//! State of one grab is not visible to others, neither to later nor to concurrent captures of the same site.

use std::path::{Path, PathBuf};

use anyhow::Result;
use grabd_tests::harness::TestApp;
use grabd_tests::hostile::browser_state::{STATE_KINDS, StateSite};
use grabd_tests::hostile::unguarded::UnguardedBrowser;
use serde_json::json;

/// Long enough for a second capture during the first.
const HELD_MS: u32 = 9000;

/// Long enough for a page to report what it found.
const REPORT_MS: u32 = 2500;

#[tokio::test(flavor = "multi_thread")]
async fn pages_in_one_context_find_all_state() -> Result<()> {
    let site = StateSite::start().await?;
    let browser = UnguardedBrowser::start().await?;
    browser.open(&site.url("remember")).await?;
    site.report("remembered", 0).await;
    // A second page in the same tab also finds state of the tab.
    browser.open(&site.url("remember?then=recall")).await?;
    site.report("remembered", 1).await;
    let found = site.report("recalled", 0).await;
    browser.stop().await?;
    assert_eq!(found, STATE_KINDS);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn next_grab_finds_no_state() -> Result<()> {
    let site = StateSite::start().await?;
    let app = TestApp::start(10, &[]).await?;
    for round in 0..2 {
        for page in ["remember", "recall"] {
            let (status, grab) = app.create(json!({ "url": site.url(page), "delay_ms": REPORT_MS })).await?;
            assert_eq!(status, 200, "{grab}");
        }
        site.report("remembered", round).await;
        assert_eq!(site.report("recalled", round).await, Vec::<String>::new());
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_grab_finds_no_state() -> Result<()> {
    let site = StateSite::start().await?;
    let app = TestApp::start(10, &[]).await?;
    let request = json!({ "url": site.url("remember"), "delay_ms": HELD_MS });
    let mut holder = Box::pin(app.create(request));
    let mut neighbour = Box::pin(async {
        site.report("remembered", 0).await;
        app.create(json!({ "url": site.url("recall"), "delay_ms": REPORT_MS })).await
    });
    // The second capture ends first, so all state still existed in the other context.
    let (status, grab) = tokio::select! {
        biased;
        held = &mut holder => panic!("the first capture ended too early: {held:?}"),
        neighbour = &mut neighbour => neighbour?,
    };
    assert_eq!(status, 200, "{grab}");
    assert_eq!(site.report("recalled", 0).await, Vec::<String>::new());
    let (status, grab) = holder.as_mut().await?;
    assert_eq!(status, 200, "{grab}");
    drop((holder, neighbour));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_are_not_saved_and_browsers_leave_no_files() -> Result<()> {
    let site = StateSite::start().await?;
    let directory = tempfile::tempdir()?;
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    let run_dir = directory.path().join("run");
    // The browser is replaced after every grab, so that several are started and stopped.
    let settings = [("browser.run_dir", &*run_dir.display().to_string()), ("browser.recycle_grabs", "1")];
    let app = TestApp::start(10, &settings).await?;
    for _ in 0..2 {
        let (status, grab) = app.create(json!({ "url": site.url("download"), "delay_ms": 500 })).await?;
        assert_eq!(status, 200, "{grab}");
        let saved: Vec<_> =
            files(&run_dir).into_iter().filter(|path| path.to_string_lossy().contains("hostile")).collect();
        assert_eq!(saved, Vec::<PathBuf>::new());
    }
    assert_ne!(processes(&run_dir), Vec::<String>::new(), "the search does not find running browsers");
    app.finish().await?;
    assert_eq!(processes(&run_dir), Vec::<String>::new());
    assert!(!run_dir.exists(), "{:?}", files(&run_dir));
    Ok(())
}

/// All files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let found = entries.flat_map(|entry| match entry.path() {
        path if entry.file_type().is_ok_and(|kind| kind.is_dir()) => files(&path),
        path => vec![path],
    });
    found.collect()
}

/// The command lines of all processes that contain a directory.
fn processes(directory: &Path) -> Vec<String> {
    let needle = directory.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(&needle)).collect()
}
