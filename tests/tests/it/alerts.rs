//! The alerts for Prometheus, and the dashboard for Grafana.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use grabd_tests::harness::TestApp;
use serde_json::json;

fn read(path: &str) -> Result<String> {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path);
    fs::read_to_string(&path).with_context(|| format!("{}", path.display()))
}

/// The values of a key in the file, which has one on a line.
fn values<'a>(text: &'a str, key: &'a str) -> impl Iterator<Item = &'a str> {
    text.lines()
        .filter_map(move |line| line.trim_start().trim_start_matches("- ").strip_prefix(key)?.strip_prefix(": "))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_metric_of_alerts_and_dashboard_is_exported() -> Result<()> {
    let app = TestApp::start(5, &[]).await?;
    // Families without a sample are not exported.
    for path in ["/tiny", "/status/403"] {
        app.create(json!({ "url": app.site.url(path) })).await?;
    }
    let text = app.client.get(format!("http://{}/metrics", app.service.metrics())).send().await?.text().await?;
    let exported: BTreeSet<&str> =
        text.lines().filter(|line| !line.starts_with('#')).filter_map(|line| line.split(['{', ' ']).next()).collect();
    let (alerts, dashboard) = (read("deploy/prometheus/alerts.yaml")?, read("deploy/grafana/grabd.json")?);
    let expressions: Vec<&str> = alerts
        .lines()
        .filter(|line| line.starts_with("          "))
        .chain(dashboard.lines().filter(|line| line.trim_start().starts_with("\"expr\"")))
        .collect();
    let words = expressions.iter().flat_map(|line| {
        line.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|word| word.starts_with("grabd_"))
    });
    let named: BTreeSet<&str> = words.collect();
    ensure!(named.len() > 20, "{named:?}");
    let missing: Vec<_> = named.difference(&exported).filter(|name| !text.contains(&format!("{name}{{"))).collect();
    // Counters begin with a sample of zero: an increase from an absent one is none.
    assert_eq!(missing.into_iter().copied().collect::<Vec<_>>(), [""; 0], "{text}");
    assert!(text.contains("# TYPE grabd_browser_restarts counter"), "{text}");
    app.finish().await
}

#[test]
fn every_alert_has_a_paragraph_in_the_runbook_and_tests() -> Result<()> {
    let (alerts, tests) = (read("deploy/prometheus/alerts.yaml")?, read("deploy/prometheus/tests.yaml")?);
    let runbook = read("docs/RUNBOOK.md")?;
    let names: Vec<&str> = values(&alerts, "alert").collect();
    let links: Vec<&str> = values(&alerts, "runbook").collect();
    ensure!(names.len() > 10 && names.len() == links.len(), "{names:?} {links:?}");
    for (name, link) in names.iter().zip(links) {
        assert_eq!(link, format!("docs/RUNBOOK.md#{}", name.to_lowercase()));
        assert!(runbook.lines().any(|line| line == format!("## {name}")), "{name} is not in the runbook");
        let cases = values(&tests, "alertname").filter(|tested| tested == name).count();
        assert!(cases >= 2, "{name} needs a test in which it fires, and one in which it does not");
    }
    Ok(())
}
