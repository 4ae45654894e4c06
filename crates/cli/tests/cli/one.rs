//! Captures of one page, and commands on a capture.

use grabd_tests::harness::REFUSED;

use crate::rig::Rig;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";
const JPEG: &[u8] = b"\xff\xd8\xff";

#[tokio::test(flavor = "multi_thread")]
async fn capture_writes_a_file_named_after_the_page() {
    let rig = Rig::start(5, &[]).await;
    let url = rig.harness.site.url("/tiny");
    let output = rig.live(&[&url]).await.expect_exit(0);
    let file = output.text().trim_end().to_owned();
    assert!(file.starts_with("127.0.0.2_tiny") && file.ends_with(".png"), "{file}");
    assert!(std::fs::read(rig.file(&file)).unwrap().starts_with(PNG));
    assert!(output.stderr.contains("captured"), "{}", output.stderr);

    let piped = rig.live(&[&url, "-o", "-", "--format", "jpeg", "--width", "640", "--quiet"]).await.expect_exit(0);
    assert!(piped.stdout.starts_with(JPEG));
    assert_eq!(piped.stderr, "");

    rig.live(&[&url, "-o", "named.webp", "--full-page"]).await.expect_exit(0);
    assert_eq!(&std::fs::read(rig.file("named.webp")).unwrap()[8..12], b"WEBP");
    let usage = rig.live(&["usage", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(usage["credits"]["total"], 2);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn slices_are_saved_beside_the_image_and_listed() {
    let rig = Rig::start(2, &[]).await;
    let url = rig.harness.site.url("/tiny");
    let args = [&*url, "--slice-height", "300", "-o", "page.jpg", "--also", "text"];
    let listed = rig.live(&args).await.expect_exit(0).text();
    assert_eq!(listed.lines().collect::<Vec<_>>(), ["page.jpg", "page-01.jpg", "page-02.jpg", "page-03.jpg"]);
    for file in listed.lines() {
        assert!(std::fs::read(rig.file(file)).unwrap().starts_with(JPEG), "{file}");
    }
    assert!(rig.file("page.txt").exists() && !rig.file("page-04.jpg").exists());

    // A path that cannot be written is found before the capture.
    std::fs::create_dir(rig.file("other-02.png")).unwrap();
    let refused = rig.live(&[&url, "--slice-height", "300", "-o", "other.png"]).await.expect_exit(2);
    assert!(refused.stderr.contains("other-02.png cannot be a slice"), "{}", refused.stderr);
    let json =
        rig.live(&[&url, "--slice-height", "300", "-o", "one.png", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(json["slice_files"], serde_json::json!(["one-01.png", "one-02.png", "one-03.png"]));
    let usage = rig.live(&["usage", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(usage["credits"]["total"], 0);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn queued_capture_can_be_watched_listed_shown_and_deleted() {
    let rig = Rig::start(5, &[]).await;
    let url = rig.harness.site.url("/tiny");
    let id = rig.live(&[&url, "--async"]).await.expect_exit(0).text().trim_end().to_owned();
    let watched = rig.live(&["watch", &id]).await.expect_exit(0).text();
    assert!(watched.contains("done") && watched.contains("image"), "{watched}");

    let waited = rig.live(&[&url, "--wait", "30", "--json", "-o", "waited.png"]).await.expect_exit(0).json().remove(0);
    assert_eq!((&waited["status"], &waited["file"]), (&"done".into(), &"waited.png".into()));

    let listed = rig.live(&["list", "--status", "done", "--limit", "1"]).await.expect_exit(0).text();
    assert_eq!(listed.lines().count(), 2, "{listed}");
    assert!(listed.contains(waited["id"].as_str().unwrap()), "the newest capture is not first: {listed}");
    let all = rig.live(&["list", "--json"]).await.expect_exit(0).json();
    assert_eq!(all.len(), 2);

    let shown = rig.live(&["show", &id, "-o", "shown.png"]).await.expect_exit(0).text();
    assert!(shown.contains("1280 x 720 pixels"), "{shown}");
    assert!(std::fs::read(rig.file("shown.png")).unwrap().starts_with(PNG));
    rig.live(&["delete", &id]).await.expect_exit(0);
    let deleted = rig.live(&["show", &id, "-o", "shown.png"]).await.expect_exit(1);
    assert!(deleted.stderr.contains("was deleted") && !deleted.stderr.contains("charged"), "{}", deleted.stderr);
    assert!(rig.live(&["show", &id]).await.expect_exit(0).text().contains("image        deleted"));
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn auth_status_shows_where_the_credential_is_from_and_checks_it() {
    let rig = Rig::start(5, &[]).await;
    let shown = rig.live(&["auth", "status"]).await.expect_exit(0).text();
    assert!(shown.contains("API key from --api-key or GRAB_API_KEY") && shown.contains("credits      5"), "{shown}");
    assert!(!shown.contains("sk_live_"), "{shown}");

    let (file, key) = (rig.file("grab.toml"), rig.harness.test());
    std::fs::write(&file, format!("api_key = \"{key}\"\n")).unwrap();
    let file = file.to_str().unwrap();
    let stored = rig.run(None, &["auth", "status", "--json", "--config", file]).await.expect_exit(0).json().remove(0);
    assert_eq!((&stored["source"], &stored["environment"]), (&file.into(), &"test".into()));
    let explicit = rig.live(&["auth", "status", "--json", "--config", file]).await.expect_exit(0).json().remove(0);
    assert_eq!(explicit["environment"], "live");

    let none = rig.run(None, &["auth", "status"]).await.expect_exit(3);
    assert!(none.text().contains("credential   none"), "{}", none.text());
    rig.run(Some("sk_live_wrong"), &["auth", "status"]).await.expect_exit(3);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_set_the_exit_code_and_print_a_hint() {
    let rig = Rig::start(1, &[]).await;
    let refused = format!("http://{REFUSED}/");
    for (args, code, words) in [
        (&["https://broken.test"] as &[&str], 1, "Nothing was charged"),
        (&["https://blocked.test"], 1, "Nothing was charged"),
        (&[refused.as_str()], 1, "public addresses"),
        (&["show", "01990a1b-2c3d-7e4f-8a5b-6c7d8e9f0a1b"], 1, "grab list"),
        (&["show", "../usage"], 2, "is not a valid id"),
        (&["https://example.com", "--width", "9"], 2, "width"),
        (&["not an address"], 2, "url"),
        (&["lst"], 2, "`grab list`"),
        (&["https://example.com", "-o", "/proc/none/page.png"], 7, "/proc/none"),
        (&["--frobnicate"], 2, "--frobnicate"),
        (&["list", "https://example.com"], 2, "unexpected"),
        (&["https://example.com", "--base-url", "nonsense"], 2, "https://grabd.example/v1"),
        (&["https://exhausted.test"], 4, "grab usage"),
        (&["https://busy.test", "--retries", "0"], 5, "queue"),
        (&["https://example.com", "--base-url", "http://127.0.0.1:9", "--retries", "1"], 6, "GRAB_BASE_URL"),
        (&["usage", "--base-url", &rig.harness.site.origin()], 7, "grabd"),
    ] {
        let output = rig.test(args).await.expect_exit(code);
        assert!(output.stderr.contains(words), "{args:?}: {}", output.stderr);
        assert_eq!(output.text(), "", "{args:?}");
    }
    for (key, words) in [(None, "grab login"), (Some("sk_live_nonsense"), "grab login")] {
        let output = rig.run(key, &["usage"]).await.expect_exit(3);
        assert!(output.stderr.contains(words), "{}", output.stderr);
    }
    // The price list is public.
    assert!(rig.run(None, &["pricing"]).await.expect_exit(0).text().contains("0.002 USD"));
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_json_with_their_code_and_cause() {
    let rig = Rig::start(1, &[]).await;
    // A refused request, one that fails while it is waited for, and a queued capture that fails.
    let sync = rig.test(&["https://blocked.test", "--json"]).await.expect_exit(1).json().remove(0);
    assert_eq!((&sync["error"]["code"], &sync["error_cause"]), (&"render_blocked".into(), &"target".into()), "{sync}");
    let invalid = rig.test(&["https://example.com", "--width", "9", "--json"]).await.expect_exit(2).json().remove(0);
    let codes = (&invalid["error"]["code"], &invalid["error_cause"]);
    assert_eq!(codes, (&"invalid_viewport".into(), &"request".into()), "{invalid}");
    let url = rig.harness.site.url("/status/403");
    let queued = rig.live(&[&url, "--wait", "60", "--json"]).await.expect_exit(1).json().remove(0);
    assert_eq!((&queued["status"], &queued["error_code"]), (&"failed".into(), &"render_blocked".into()), "{queued}");
    for failure in [&sync, &invalid, &queued] {
        assert_eq!(failure["error"].as_object().unwrap().keys().collect::<Vec<_>>(), ["code", "message"], "{failure}");
    }
    assert_eq!((&queued["error"]["code"], &queued["error_cause"]), (&"render_blocked".into(), &"target".into()));
    let shown = rig.live(&["show", queued["id"].as_str().unwrap()]).await.expect_exit(0).text();
    assert!(shown.contains("(render_blocked)"), "{shown}");
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn configuration_file_supplies_the_defaults() {
    let rig = Rig::start(0, &[]).await;
    let directory = rig.file("config/grab");
    std::fs::create_dir_all(&directory).unwrap();
    let text = format!("base_url = {:?}\napi_key = {:?}\n", rig.harness.base(), rig.harness.test());
    std::fs::write(directory.join("config.toml"), text).unwrap();
    let mut command = rig.command();
    let output = crate::rig::run(command.env_remove("GRAB_BASE_URL").args(["usage"])).await.expect_exit(0);
    assert!(output.text().contains("test"), "{}", output.text());
    rig.harness.finish().await.unwrap();
}

#[tokio::test]
async fn completions_and_the_manual_page_are_printed() {
    for (args, words) in [
        (&["completions", "bash"] as &[&str], "_grab"),
        (&["completions", "zsh"], "#compdef grab"),
        (&["completions", "fish"], "complete -c grab"),
        (&["man"], ".TH grab 1"),
        (&["--help"], "Exit codes"),
    ] {
        let mut command = tokio::process::Command::new(env!("CARGO_BIN_EXE_grab"));
        let text = crate::rig::run(command.args(args)).await.expect_exit(0).text();
        assert!(text.contains(words), "{args:?}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_a_capture_is_read_as_a_whole_and_in_parts() {
    let rig = Rig::start(1, &[]).await;
    // A text leaves out what it has already.
    let lines: String = (1..=40)
        .map(|number| {
            format!("<p>Sentence {number} of an article that has many of them, so that it is read in parts.</p>")
        })
        .collect();
    std::fs::write(rig.file("page.html"), format!("<article><h1>Title</h1>{lines}</article>")).unwrap();
    let args = ["--html", "page.html", "--also", "text", "--no-download", "--json"];
    let made = rig.live(&args).await.expect_exit(0).json().remove(0);
    let id = made["id"].as_str().unwrap();
    let whole = rig.live(&["read", id, "--format", "text"]).await.expect_exit(0).text();
    assert_eq!(whole.matches("of an article that has many").count(), 40, "{whole}");

    let part = rig.live(&["read", id, "--format", "text", "--max-tokens", "200"]).await.expect_exit(0);
    let (_, from) = part.stderr.trim_end().rsplit_once("--from ").expect("how to go on");
    assert_eq!(part.text(), whole[..from.parse::<usize>().unwrap()]);
    let rest = rig.live(&["read", id, "--format", "text", "--from", from]).await.expect_exit(0);
    assert_eq!(part.text() + &rest.text(), whole);
    let json = rig.live(&["read", id, "--format", "text", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!((json["text"].as_str(), &json["next"]), (Some(&*whole), &serde_json::Value::Null));

    let missing = rig.live(&["read", id]).await.expect_exit(1);
    assert!(missing.stderr.contains("`also: [\"markdown\"]`"), "{}", missing.stderr);
    rig.harness.finish().await.unwrap();
}
