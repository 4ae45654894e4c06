//! The site commands.

use crate::rig::Rig;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_site_are_saved_with_a_contact_sheet() {
    let rig = Rig::start(5, &[]).await;
    let url = rig.harness.site.url("/tiny");
    let saved = rig.live(&["site", &url, "--depth", "0", "-o", "shots", "--name", "Tiny"]).await.expect_exit(0);
    assert_eq!(saved.text(), "shots/127.0.0.2_tiny.png\n", "{}", saved.stderr);
    assert!(saved.stderr.contains("1 captured of 1 pages"), "{}", saved.stderr);
    assert!(std::fs::read(rig.file("shots/127.0.0.2_tiny.png")).unwrap().starts_with(PNG));
    let sheet = std::fs::read_to_string(rig.file("shots/index.html")).unwrap();
    assert!(sheet.contains("src=\"127.0.0.2_tiny.png\"") && sheet.contains(&url), "{sheet}");

    let listed = rig.live(&["site", "list"]).await.expect_exit(0).text();
    assert!(listed.starts_with("ID") && listed.contains("done") && listed.contains("Tiny"), "{listed}");
    let job = rig.live(&["site", "list", "--json"]).await.expect_exit(0).json().remove(0);
    let id = job["id"].as_str().unwrap();
    assert_eq!((&job["pages"]["captured"], &job["max_depth"]), (&1.into(), &0.into()), "{job}");
    let shown = rig.live(&["site", "show", id]).await.expect_exit(0).text();
    assert!(shown.contains(&format!("start page   {url}")) && shown.contains("1 captured"), "{shown}");
    let page = rig.live(&["site", "pages", id, "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!((&page["state"], &page["url"]), (&"done".into(), &url.clone().into()), "{page}");

    // A job that has ended can be saved again, by default into a directory named after the host.
    let again = rig.live(&["site", "save", id, "--json"]).await.expect_exit(0).json().remove(0);
    let file = again["file"].as_str().unwrap();
    assert_eq!((file, &again["site_id"]), ("127.0.0.2/127.0.0.2_tiny.png", &id.into()), "{again}");
    assert!(rig.file(file).is_file() && rig.file("127.0.0.2/index.html").is_file());

    let deleted = rig.live(&["site", "delete", id]).await.expect_exit(0);
    assert!(deleted.stderr.contains("Its captures stay."), "{}", deleted.stderr);
    let missing = rig.live(&["site", "show", id]).await.expect_exit(1);
    assert!(missing.stderr.contains("`grab site list` shows"), "{}", missing.stderr);
    let usage = rig.live(&["usage", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(usage["credits"]["total"], 4, "saving again charges nothing");
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_sitemap_are_saved_and_the_contact_sheet_says_which_are_missing() {
    let rig = Rig::start(5, &[]).await;
    let sitemap = rig.harness.site.url("/pages.txt");
    let args = ["site", &sitemap, "--requests-per-minute", "120", "--exclude", "*?page=2", "--format", "webp"];
    let saved = rig.live(&args).await.expect_exit(0);
    let files = ["127.0.0.2/127.0.0.2_tiny.webp", "127.0.0.2/127.0.0.2_tiny_page_3.webp"];
    assert_eq!(saved.text().lines().collect::<Vec<_>>(), files, "{}", saved.stderr);
    assert!(saved.stderr.contains("2 captured, 1 skipped of 3 pages"), "{}", saved.stderr);
    for file in files {
        assert_eq!(&std::fs::read(rig.file(file)).unwrap()[8..12], b"WEBP", "{file}");
    }
    let sheet = std::fs::read_to_string(rig.file("127.0.0.2/index.html")).unwrap();
    assert!(sheet.contains("?page=2</a>: not included, or excluded"), "{sheet}");
    let usage = rig.live(&["usage", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(usage["credits"]["total"], 3);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn job_that_is_not_waited_for_can_be_canceled() {
    let rig = Rig::start(5, &[]).await;
    let url = rig.harness.site.url("/hang");
    let job = rig.live(&["site", &url, "--depth", "0", "--no-wait", "--json"]).await.expect_exit(0).json().remove(0);
    let id = job["id"].as_str().unwrap();
    assert!(!rig.file("127.0.0.2").exists(), "a directory without images was made");
    let canceled = rig.live(&["site", "cancel", id, "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(canceled["state"], "canceled", "{canceled}");
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_sites_are_refused_before_a_directory_is_made() {
    let rig = Rig::without_browser().await;
    for (args, words) in [
        (&["site"] as &[&str], "required"),
        (&["site", "lst"], "neither a command nor a URL"),
        (&["site", "https://example.com", "list"], "cannot be used together"),
        (&["site", "https://example.com", "--no-wait", "-o", "shots"], "cannot be used with"),
        (&["site", "https://example.com", "--no-wait", "--max-pages", "0"], "max_pages"),
        (&["site", "https://example.com", "--no-wait", "--depth", "11"], "max_depth"),
        (&["site", "https://example.com", "--no-wait", "--include", "docs/*"], "include"),
        (&["site", "show", "../keys"], "is not a valid id"),
    ] {
        let refused = rig.test(args).await.expect_exit(2);
        assert!(refused.stderr.contains(words), "{args:?}: {}", refused.stderr);
    }
    assert!(rig.test(&["site", "list", "--json"]).await.expect_exit(0).json().is_empty());
    rig.harness.finish().await.unwrap();
}
