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

    // A build fails by the exit code alone.
    let over = |limit: &'static str| ["diff", &*earlier, "example.com/a", "--height", "700", "--fail-over", limit];
    assert!(rig.test(&over("0")).await.expect_exit(8).text().contains("% changed in "));
    rig.test(&over("1")).await.expect_exit(0);
    rig.test(&["diff", &earlier, "--fail-over", "0"]).await.expect_exit(0);

    let count = rig.test(&["list", "--json"]).await.expect_exit(0).json().len();
    for (args, code, words) in [
        (&["diff", &earlier, &whole] as &[&str], 2, "were not compared"),
        (&["diff", &earlier, "-o", "none/change.png"], 2, "does not exist"),
        (&["diff", "01990a1b-2c3d-7e4f-8a5b-6c7d8e9f0a1b"], 1, "grab list"),
        (&["diff"], 2, "EARLIER"),
        (&["diff", &earlier, "-o", "change.webp"], 2, "the extension of webp, and the image is png"),
        (&["diff", &earlier, "--fail-over", "2"], 2, "from 0 to 1"),
        (&["diff", &earlier, "--baseline", "x"], 2, "cannot be used with"),
    ] {
        let refused = rig.test(args).await.expect_exit(code);
        assert!(refused.stderr.contains(words), "{args:?}: {}", refused.stderr);
    }
    assert_eq!(rig.test(&["list", "--json"]).await.expect_exit(0).json().len(), count, "a refused one captured");
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_compared_with_a_baseline_and_a_repeated_run_is_free() {
    let rig = Rig::start(12, &[]).await;
    let site = &rig.harness.site;
    let pages = ["/tiny?a", "/tiny?b", "/tiny?c"].map(|path| site.url(path));
    std::fs::write(rig.file("urls.txt"), pages.join("\n")).unwrap();
    let baseline = rig.live(&["--from", "urls.txt", "--json", "--no-download", "--width", "800"]).await.expect_exit(0);
    std::fs::write(rig.file("baseline.jsonl"), baseline.text()).unwrap();
    let change = "if (location.search === '?b') document.body.style.background = 'green'";
    let pages = ["diff", "--baseline", "baseline.jsonl", "--script", change];
    let run = [&pages[..], &["--fail-over", "0", "-o", "diffs/", "--idempotency-key", "run-1"]].concat();
    let first = rig.live(&run).await.expect_exit(8);
    assert_eq!(first.text().lines().filter(|line| line.contains("nothing changed")).count(), 2, "{}", first.text());
    assert!(first.stderr.contains("1 changed of 3 pages, 1 by more than --fail-over"), "{}", first.stderr);
    assert_eq!(std::fs::read_dir(rig.file("diffs")).unwrap().count(), 1);
    let credits = async || rig.live(&["usage", "--json"]).await.expect_exit(0).json()[0]["credits"]["total"].clone();
    assert_eq!(credits().await, 6);
    let again = rig.live(&[&run[..], &["--json"]].concat()).await.expect_exit(8);
    assert_eq!(credits().await, 6, "the second run has the captures of the first one");
    let over: Vec<_> = again.json().iter().map(|page| page["over"].as_bool().unwrap()).collect();
    assert_eq!(over.iter().filter(|over| **over).count(), 1);
    assert!(again.json().iter().all(|page| page["difference"]["ratio"].is_number()));
    // Not all changes matter.
    rig.live(&[&pages[..], &["--fail-over", "1"]].concat()).await.expect_exit(0);
    let refused = rig.live(&["diff", "--baseline", "urls.txt"]).await.expect_exit(2);
    assert!(refused.stderr.contains("line 1 of urls.txt"), "{}", refused.stderr);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn twelve_pages_are_compared_by_one_command_with_a_report() {
    let rig = Rig::without_browser().await;
    let pages: String = (0..12).map(|number| format!("https://example.com/{number}\n")).collect();
    std::fs::write(rig.file("urls.txt"), &pages).unwrap();
    let args = ["--from", "urls.txt", "--baseline", "baseline.jsonl", "--report", "report"];
    let made = rig.test(&args).await.expect_exit(0);
    assert!(made.stderr.contains("baseline.jsonl has 12 pages"), "{}", made.stderr);
    let baseline = std::fs::read_to_string(rig.file("baseline.jsonl")).unwrap();
    assert_eq!(baseline.lines().count(), 12);

    let same = rig.test(&args).await.expect_exit(0);
    assert!(same.stderr.contains("0 changed of 12 pages, 0 by more than --fail-over"), "{}", same.stderr);
    let in_order: Vec<_> = (0..12).map(|number| format!("https://example.com/{number}: nothing changed")).collect();
    assert_eq!(same.text().lines().collect::<Vec<_>>(), in_order, "each run has the order of the pages");
    let report = std::fs::read_to_string(rig.file("report/index.html")).unwrap();
    assert!(report.contains("<h1>0 changed, 0 failed, 12 as before</h1>"), "{report}");

    // Placeholders show their size, so that another height changes all of them.
    let changed = rig.test(&[&args[..], &["--height", "700", "--fail-over", "0.001"]].concat()).await.expect_exit(8);
    assert_eq!(changed.text().lines().filter(|line| line.contains("% changed in ")).count(), 12);
    let report = std::fs::read_to_string(rig.file("report/index.html")).unwrap();
    assert!(report.contains("<h1>12 changed, 0 failed, 0 as before</h1>"), "{report}");
    for name in ["1-before.png", "1-now.png", "1-difference.png", "12-difference.png"] {
        assert!(std::fs::read(rig.file(&format!("report/{name}"))).unwrap().starts_with(PNG), "{name}");
    }
    assert_eq!(std::fs::read_to_string(rig.file("baseline.jsonl")).unwrap(), baseline, "only with --update-baseline");

    // A page that the baseline lacks is no success.
    let args_of_new = ["example.com/0", "example.com/new", "--baseline", "baseline.jsonl", "--report", "report"];
    let new = rig.test(&args_of_new).await.expect_exit(8);
    assert!(new.stderr.contains("new       https://example.com/new"), "{}", new.stderr);
    assert!(new.stderr.contains("left out  https://example.com/11"), "{}", new.stderr);
    assert!(new.stderr.contains("--fail-over, 1 not in the baseline"), "{}", new.stderr);
    let report = std::fs::read_to_string(rig.file("report/index.html")).unwrap();
    assert!(report.contains("<h1>0 changed, 0 failed, 1 not in the baseline, 1 as before</h1>"), "{report}");
    let updated = [&args[..], &["--update-baseline", "--height", "700"]].concat();
    rig.test(&updated).await.expect_exit(0);
    rig.test(&[&args[..], &["--height", "700"]].concat()).await.expect_exit(0);

    // A baseline is not replaced by an incomplete one.
    std::fs::write(rig.file("urls.txt"), format!("{pages}http://127.0.0.1/\n")).unwrap();
    let kept = std::fs::read_to_string(rig.file("baseline.jsonl")).unwrap();
    let refused = rig.test(&updated).await;
    assert!(refused.code != 0 && refused.stderr.contains("1 of 13 pages failed"), "{}", refused.stderr);
    assert!(!refused.stderr.contains("Nothing was charged"), "the others were: {}", refused.stderr);
    assert_eq!(std::fs::read_to_string(rig.file("baseline.jsonl")).unwrap(), kept);
    for args in [&["--fail-over", "0.1", "example.com"][..], &["--report", "x", "example.com"]] {
        let refused = rig.test(args).await.expect_exit(2);
        assert!(refused.stderr.contains("--baseline"), "{}", refused.stderr);
    }
    rig.harness.finish().await.unwrap();
}
