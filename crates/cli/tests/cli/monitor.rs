//! The monitor commands.

use crate::rig::Rig;

#[tokio::test(flavor = "multi_thread")]
async fn monitor_can_be_created_paused_resumed_and_deleted() {
    let rig = Rig::without_browser().await;
    let args = [
        "monitor",
        "create",
        "example.com/price",
        "--every",
        "6h",
        "--selector",
        ".price",
        "--threshold",
        "0",
        "--json",
    ];
    let created = rig.test(&args).await.expect_exit(0).json().remove(0);
    assert_eq!((&created["state"], &created["every"]), (&"active".into(), &"6h".into()), "{created}");
    assert_eq!(created["capture"]["url"], "https://example.com/price");
    assert_eq!(created["capture"]["selector"], ".price");
    assert_eq!(created["compare"]["image"]["threshold_ratio"].as_f64(), Some(0.0));
    let id = created["id"].as_str().unwrap();

    let listed = rig.test(&["monitor", "list"]).await.expect_exit(0).text();
    assert!(listed.starts_with("ID") && listed.contains(id) && listed.contains("every 6h"), "{listed}");
    assert_eq!(rig.test(&["monitor", "list", "--json"]).await.expect_exit(0).json().len(), 1);
    let shown = rig.test(&["monitor", "show", id]).await.expect_exit(0).text();
    assert!(shown.contains("page         https://example.com/price"), "{shown}");

    let paused = rig.test(&["monitor", "pause", id, "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!((&paused["state"], &paused["next_run_at"]), (&"paused".into(), &serde_json::Value::Null));
    let resumed = rig.test(&["monitor", "resume", id]).await.expect_exit(0).text();
    assert!(resumed.contains("state        active") && resumed.contains("next run"), "{resumed}");

    rig.test(&["monitor", "runs", id]).await.expect_exit(0);
    let addresses = rig.test(&["monitor", "feed", id]).await.expect_exit(0).text();
    assert!(addresses.contains("/feed.atom") && addresses.contains("/badge.svg"), "{addresses}");
    assert_eq!(rig.test(&["monitor", "show", id, "--json"]).await.expect_exit(0).json()[0]["has_feed"], true);
    rig.test(&["monitor", "feed", id, "--off"]).await.expect_exit(0);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("history.zip");
    rig.test(&["monitor", "history", id, "--output", file.to_str().unwrap()]).await.expect_exit(0);
    assert!(std::fs::read(&file).unwrap().starts_with(b"PK"));
    // Nothing has been captured that could be accepted.
    let other = "01990a1b-2c3d-7e4f-8a5b-6c7d8e9f0a1b";
    assert_ne!(rig.test(&["monitor", "accept", id, "--grab", other]).await.code, 0);
    let deleted = rig.test(&["monitor", "delete", id]).await.expect_exit(0);
    assert!(deleted.stderr.contains("Deleted the monitor"), "{}", deleted.stderr);
    let missing = rig.test(&["monitor", "show", id]).await.expect_exit(1);
    assert!(missing.stderr.contains("`grab monitor list` shows"), "{}", missing.stderr);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn several_pages_get_a_monitor_each_or_none_does() {
    let rig = Rig::without_browser().await;
    let create = ["monitor", "create", "example.com/a", "example.com/b", "--every", "6h", "--name", "Prices"];
    let table = rig.test(&create).await.expect_exit(0).text();
    assert!(table.starts_with("ID") && table.contains("Prices: example.com/b"), "{table}");
    let more = ["monitor", "create", "example.com/c", "example.com/d", "--every", "6h", "--json"];
    let created = rig.test(&more).await.expect_exit(0).json();
    let urls: Vec<&serde_json::Value> = created.iter().map(|monitor| &monitor["capture"]["url"]).collect();
    assert_eq!(urls, ["https://example.com/c", "https://example.com/d"]);
    let twice = ["monitor", "create", "example.com/e", "example.com/e", "--every", "6h"];
    let refused = rig.test(&twice).await.expect_exit(2);
    assert!(refused.stderr.contains("urls[1]"), "{}", refused.stderr);
    assert_eq!(rig.test(&["monitor", "list", "--json"]).await.expect_exit(0).json().len(), 4);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_monitors_are_refused() {
    let rig = Rig::without_browser().await;
    for (args, words) in [
        (&["example.com"] as &[&str], "--every"),
        (&["example.com", "--every", "6h", "--cron", "0 8 * * *"], "cannot be used with"),
        (&["example.com", "--every", "1s"], "every"),
        (&["example.com", "--cron", "0 8 * *"], "cron"),
        (&["example.com", "--every", "6h", "--threshold", "2"], "from 0 to 1"),
        (&["example.com", "--every", "6h", "--alert-after", "11"], "alert_after"),
        (&["lst", "--every", "6h"], "neither a command nor a URL"),
    ] {
        let refused = rig.test(&[&["monitor", "create"], args].concat()).await.expect_exit(2);
        assert!(refused.stderr.contains(words), "{args:?}: {}", refused.stderr);
    }
    for command in [["monitor", "show", "../keys"], ["monitor", "runs", "a/b"]] {
        rig.test(&command).await.expect_exit(2);
    }
    assert!(rig.test(&["monitor", "list", "--json"]).await.expect_exit(0).json().is_empty());
    rig.harness.finish().await.unwrap();
}
