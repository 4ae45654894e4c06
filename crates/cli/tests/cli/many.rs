//! Captures of many pages.

use grabd_tests::harness::REFUSED;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};

use crate::rig::{Rig, TIMEOUT};

#[tokio::test(flavor = "multi_thread")]
async fn one_failed_page_does_not_affect_the_others() {
    let rig = Rig::start(20, &[]).await;
    let site = &rig.harness.site;
    let mut list: Vec<String> = (0..9).map(|number| site.url(&format!("/tiny?page={number}"))).collect();
    list.insert(4, format!("http://{REFUSED}/"));
    std::fs::write(rig.file("urls.txt"), format!("# pages\n\n{}\n", list.join("\n"))).unwrap();
    let output = rig.live(&["--from", "urls.txt", "-o", "shots/", "--jobs", "3"]).await.expect_exit(1);
    assert_eq!(output.text().lines().count(), 9);
    assert!(output.text().lines().all(|file| rig.file(file).is_file()));
    assert!(output.stderr.contains("9 captured, 1 failed of 10 pages"), "{}", output.stderr);
    assert!(output.stderr.contains("ssrf_detected"), "{}", output.stderr);
    let usage = rig.live(&["usage", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(usage["credits"]["total"], 11, "failed captures are not charged");

    // A second run captures only the missing page.
    let second = rig.live(&["--from", "urls.txt", "-o", "shots/", "--skip-existing", "--json"]).await.expect_exit(1);
    let lines = second.json();
    assert_eq!(lines.len(), 1);
    assert_eq!(lines[0]["error"]["code"], "ssrf_detected");
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn exhausted_credits_stop_the_run() {
    let rig = Rig::start(2, &[]).await;
    let urls: Vec<String> = (0..6).map(|number| rig.harness.site.url(&format!("/tiny?page={number}"))).collect();
    let args: Vec<&str> = urls.iter().map(String::as_str).chain(["--jobs", "1"]).collect();
    let output = rig.live(&args).await.expect_exit(4);
    assert!(output.stderr.contains("2 captured, 1 failed, 3 not tried of 6 pages"), "{}", output.stderr);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn interrupt_prints_the_summary_and_leaves_no_partial_file() {
    let rig = Rig::start(5, &[]).await;
    let urls = [rig.harness.site.url("/tiny"), rig.harness.site.url("/hang")];
    let mut command = rig.command();
    command.env("GRAB_API_KEY", rig.harness.live()).args(&urls).args(["-o", "shots/"]);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    let pid = Pid::from_raw(i32::try_from(child.id().unwrap()).unwrap()).unwrap();
    rig.harness.site.wait_for_hits("/hang", 1).await;
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let file = tokio::time::timeout(TIMEOUT, lines.next_line()).await.unwrap().unwrap().unwrap();
    kill_process(pid, Signal::INT).unwrap();
    let output = child.wait_with_output().await.unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("1 captured, 1 not tried of 2 pages"), "{stderr}");
    let left: Vec<_> = std::fs::read_dir(rig.file("shots")).unwrap().map(|left| left.unwrap().path()).collect();
    assert_eq!(left, [rig.file(&file)]);
    rig.harness.finish().await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_of_many_pages_are_made_from_one_and_the_summary_says_what_was_charged() {
    let rig = Rig::start(5, &[]).await;
    let site = &rig.harness.site;
    let pages = [site.url("/tiny?1"), site.url("/nocontent"), site.url("/tiny?2")];
    let run = [&pages[0], &pages[1], &pages[2], "-o", "shots/", "--idempotency-key", "nightly-1"];
    let first = rig.live(&run).await.expect_exit(1);
    assert!(first.stderr.contains("2 captured, 1 failed of 3 pages"), "{}", first.stderr);
    assert!(!first.stderr.contains("Nothing was charged"), "{}", first.stderr);
    assert!(first.stderr.contains("Captures that failed were not charged."), "{}", first.stderr);
    // What is missing has the same key as before, and so have all.
    std::fs::remove_dir_all(rig.file("shots")).unwrap();
    rig.live(&run).await.expect_exit(1);
    rig.live(&[&run[..], &["--skip-existing"]].concat()).await.expect_exit(1);
    let usage = rig.live(&["usage", "--json"]).await.expect_exit(0).json().remove(0);
    assert_eq!(usage["credits"]["total"], 3);
    rig.harness.finish().await.unwrap();
}
