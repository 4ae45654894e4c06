//! `grab diff`.

use crate::rig::Rig;

const PNG: &[u8] = b"\x89PNG\r\n\x1a\n";

#[tokio::test(flavor = "multi_thread")]
async fn page_is_compared_with_an_earlier_capture() {
    let rig = Rig::without_browser().await;
    let capture = async |args: &[&str]| {
        let args = [&["--json", "--no-download"], args].concat();
        rig.test(&args).await.expect_exit(0).json().remove(0)["id"].as_str().unwrap().to_owned()
    };
    let earlier = capture(&["https://example.com/a", "--format", "webp"]).await;
    let same = rig.test(&["diff", &earlier]).await.expect_exit(0);
    assert_eq!(same.text().trim_end(), "nothing changed");
    // Placeholders show their size.
    let args = ["diff", &*earlier, "example.com/a", "--height", "700", "-o", "change.png"];
    let changed = rig.test(&args).await.expect_exit(0);
    let text = changed.text();
    assert!(text.lines().next().unwrap().contains("% changed in ") && text.contains(" x "), "{text}");
    assert!(std::fs::read(rig.file("change.png")).unwrap().starts_with(PNG));
    let listed = rig.test(&["list", "--json", "--limit", "1"]).await.expect_exit(0).json().remove(0);
    assert_eq!((&listed["format"], &listed["width"]), (&"webp".into(), &1280.into()), "as the earlier capture");
    // Two captures that were compared when the later one was made, in any order.
    let later = listed["id"].as_str().unwrap();
    for [first, second] in [[&*earlier, later], [later, &earlier]] {
        let shown = rig.test(&["diff", first, second, "--json"]).await.expect_exit(0).json().remove(0);
        assert_eq!((&shown["id"], &shown["difference"]["compared_to"]), (&later.into(), &earlier.as_str().into()));
    }
    let unchanged = rig.test(&["diff", &earlier, "-o", "none.png"]).await.expect_exit(0);
    assert!(unchanged.stderr.contains("Nothing changed") && !rig.file("none.png").exists(), "{}", unchanged.stderr);
    // A full page is captured as one.
    let whole = capture(&["https://example.com/b", "--full-page"]).await;
    assert_eq!(rig.test(&["diff", &whole]).await.expect_exit(0).text().trim_end(), "nothing changed");

    let count = rig.test(&["list", "--json"]).await.expect_exit(0).json().len();
    for (args, code, words) in [
        (&["diff", &earlier, &whole] as &[&str], 2, "were not compared"),
        (&["diff", &earlier, "-o", "none/change.png"], 2, "does not exist"),
        (&["diff", "01990a1b-2c3d-7e4f-8a5b-6c7d8e9f0a1b"], 1, "grab list"),
        (&["diff"], 2, "EARLIER"),
    ] {
        let refused = rig.test(args).await.expect_exit(code);
        assert!(refused.stderr.contains(words), "{args:?}: {}", refused.stderr);
    }
    assert_eq!(rig.test(&["list", "--json"]).await.expect_exit(0).json().len(), count, "a refused one captured");
    rig.harness.finish().await.unwrap();
}
