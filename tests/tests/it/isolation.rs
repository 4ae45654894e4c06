//! What one grab leaves behind, no other finds: neither the next one nor one at the same time, of the same site.

use std::path::{Path, PathBuf};

use anyhow::Result;
use grabd_tests::harness::Harness;
use grabd_tests::hostile::memory::{KEPT, Memory};
use grabd_tests::hostile::unguarded::Unguarded;
use serde_json::json;

/// Long enough for a second grab while the first one is held.
const HELD_MS: u32 = 6000;

/// Long enough for a page to tell what it found.
const TOLD_MS: u32 = 2500;

#[tokio::test(flavor = "multi_thread")]
async fn within_one_context_everything_is_found() -> Result<()> {
    let memory = Memory::start().await?;
    let browser = Unguarded::start().await?;
    browser.open(&memory.url("remember")).await?;
    memory.report("remembered", 0).await;
    // A second page in the same tab finds what a tab keeps, and what is left of the first one.
    browser.open(&memory.url("remember?then=recall")).await?;
    memory.report("remembered", 1).await;
    let found = memory.report("recalled", 0).await;
    browser.stop().await?;
    assert_eq!(found, KEPT);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_grab_finds_nothing() -> Result<()> {
    let memory = Memory::start().await?;
    let harness = Harness::start(10, &[]).await?;
    for round in 0..2 {
        for page in ["remember", "recall"] {
            let (status, grab) = harness.create(json!({ "url": memory.url(page), "delay_ms": TOLD_MS })).await?;
            assert_eq!(status, 200, "{grab}");
        }
        memory.report("remembered", round).await;
        assert_eq!(memory.report("recalled", round).await, Vec::<String>::new());
    }
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grab_at_the_same_time_finds_nothing() -> Result<()> {
    let memory = Memory::start().await?;
    let harness = Harness::start(10, &[]).await?;
    let request = json!({ "url": memory.url("remember"), "delay_ms": HELD_MS });
    let mut holder = Box::pin(harness.create(request));
    let mut neighbour = Box::pin(async {
        memory.report("remembered", 0).await;
        harness.create(json!({ "url": memory.url("recall"), "delay_ms": TOLD_MS })).await
    });
    // The neighbour ends first, so all that it looked for was there, in the other context.
    let (status, grab) = tokio::select! {
        biased;
        held = &mut holder => panic!("the first grab was not held: {held:?}"),
        neighbour = &mut neighbour => neighbour?,
    };
    assert_eq!(status, 200, "{grab}");
    assert_eq!(memory.report("recalled", 0).await, Vec::<String>::new());
    let (status, grab) = holder.as_mut().await?;
    assert_eq!(status, 200, "{grab}");
    drop((holder, neighbour));
    harness.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn no_download_is_saved_and_no_browser_leaves_anything() -> Result<()> {
    let memory = Memory::start().await?;
    let directory = tempfile::tempdir()?;
    std::fs::set_permissions(directory.path(), std::os::unix::fs::PermissionsExt::from_mode(0o711))?;
    let run_dir = directory.path().join("run");
    // Every grab wears its browser out, so that several come and go.
    let settings = [("browser.run_dir", &*run_dir.display().to_string()), ("browser.recycle_grabs", "1")];
    let harness = Harness::start(10, &settings).await?;
    for _ in 0..2 {
        let (status, grab) = harness.create(json!({ "url": memory.url("download"), "delay_ms": 500 })).await?;
        assert_eq!(status, 200, "{grab}");
        let saved: Vec<_> =
            files(&run_dir).into_iter().filter(|path| path.to_string_lossy().contains("hostile")).collect();
        assert_eq!(saved, Vec::<PathBuf>::new());
    }
    assert_ne!(processes(&run_dir), Vec::<String>::new(), "the search does not find what is there");
    harness.finish().await?;
    assert_eq!(processes(&run_dir), Vec::<String>::new());
    assert!(!run_dir.exists(), "{:?}", files(&run_dir));
    Ok(())
}

/// Every file below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let found = entries.flat_map(|entry| match entry.path() {
        path if entry.file_type().is_ok_and(|kind| kind.is_dir()) => files(&path),
        path => vec![path],
    });
    found.collect()
}

/// The command lines of all processes that name a directory.
fn processes(directory: &Path) -> Vec<String> {
    let needle = directory.to_string_lossy().into_owned();
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let lines = entries.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.map(|line| String::from_utf8_lossy(&line).into_owned()).filter(|line| line.contains(&needle)).collect()
}
