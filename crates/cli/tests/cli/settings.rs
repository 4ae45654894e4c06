//! `grab config`.

use serde_json::json;

use crate::rig::{Rig, run};

#[tokio::test(flavor = "multi_thread")]
async fn settings_are_stored_shown_and_removed() {
    let rig = Rig::without_browser().await;
    let file = rig.file("config/grab/config.toml");
    let config = async |args: &[&str]| run(rig.command().arg("config").args(args)).await;
    let stored = config(&["set", "api_key", rig.harness.test()]).await.expect_exit(0);
    assert!(stored.stderr.contains(file.to_str().unwrap()) && stored.text().is_empty(), "{}", stored.stderr);
    // Commands use it.
    assert!(run(rig.command().arg("usage")).await.expect_exit(0).text().contains("test"));
    assert_eq!(config(&["get", "api_key"]).await.expect_exit(0).text().trim_end(), rig.harness.test());

    let overridden = config(&["set", "base_url", "https://grabd.example"]).await.expect_exit(0);
    assert!(overridden.stderr.contains("GRAB_BASE_URL is set too"), "{}", overridden.stderr);
    let shown = config(&["show", "--json"]).await.expect_exit(0);
    assert!(!shown.text().contains(rig.harness.test()), "{}", shown.text());
    let shown = shown.json();
    let base = json!({ "name": "base_url", "value": rig.harness.base(), "source": "GRAB_BASE_URL" });
    assert_eq!((&shown[0], &shown[1]["source"]), (&base, &json!(file)));
    assert!(shown[1]["value"].as_str().unwrap().starts_with("sk_test_…"), "{}", shown[1]);
    assert_eq!(shown[2], json!({ "name": "link_key", "value": null, "source": null }));
    let flag = config(&["show", "--json", "--base-url", "https://other.example"]).await.expect_exit(0).json();
    assert_eq!(flag[0]["source"], "--base-url");
    let text = run(rig.command().env_remove("GRAB_BASE_URL").arg("config")).await.expect_exit(0).text();
    assert!(text.contains("https://grabd.example") && text.contains("link_secret"), "{text}");

    config(&["unset", "base_url"]).await.expect_exit(0);
    let text = run(rig.command().env_remove("GRAB_BASE_URL").arg("config")).await.expect_exit(0).text();
    assert!(text.contains("http://127.0.0.1:8080/v1") && text.contains("default"), "{text}");
    for (args, code, words) in [
        (&["set", "base_url", "nonsense"] as &[&str], 2, "https://grabd.example/v1"),
        (&["set", "api_key"], 2, "visible ASCII"),
        (&["set", "bas_url", "x"], 2, "base_url"),
        (&["get", "link_secret"], 2, "link_secret is not set"),
    ] {
        let refused = config(args).await.expect_exit(code);
        assert!(refused.stderr.contains(words), "{args:?}: {}", refused.stderr);
    }
    // A file that commands refuse can be corrected.
    std::fs::write(&file, "base_url = \"nonsense\" # ours\n").unwrap();
    run(rig.command().env_remove("GRAB_BASE_URL").arg("usage")).await.expect_exit(2);
    config(&["set", "base_url", "https://grabd.example/v1"]).await.expect_exit(0);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "base_url = \"https://grabd.example/v1\" # ours\n");
    rig.harness.finish().await.unwrap();
}
