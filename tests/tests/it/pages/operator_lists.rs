//! The operator's lists of failures and people, and the confirmation of a suspension.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::accounts::Email;
use grabd_tests::harness::{ALLOWED, TestApp};
use serde_json::json;

use super::operator::operator;
use super::team::team_of;
use super::users::send;
use super::visitor::{PageResponse, Visitor, start_app};

fn rows(page: &PageResponse) -> usize {
    page.body.matches("data-label=\"Grab\"").count()
}

#[tokio::test(flavor = "multi_thread")]
async fn failures_are_filtered_and_grouped_by_host() -> Result<()> {
    let app = TestApp::start(9, &[("accounts.sign_up", "true")]).await?;
    let mut olga = operator(&app).await?;
    let empty = olga.get("/operator/failures").await?;
    assert!(empty.body.contains("No failures") && !empty.body.contains("Hosts with the most"), "{}", empty.body);
    for path in ["/status/403", "/status/403?again", "/redirect?to=http://127.0.0.1:8080/"] {
        let (status, _) = app.create(json!({ "url": app.site.url(path) })).await?;
        assert_ne!(status, 200, "{path}");
    }
    let today = app.service.core().now().to_string();
    let today = today.split('T').next().context("a day")?;
    let team = app.team.team;
    for (query, expected) in [
        (String::new(), 3),
        ("code=render_blocked".to_owned(), 2),
        ("code=ssrf_detected&cause=target".to_owned(), 1),
        ("code=internal_error".to_owned(), 0),
        ("cause=target".to_owned(), 3),
        ("cause=service".to_owned(), 0),
        (format!("team={team}&code=render_blocked"), 2),
        ("team=nobody".to_owned(), 0),
        (format!("day={today}"), 3),
        ("day=2020-01-01".to_owned(), 0),
    ] {
        let page = olga.get(&format!("/operator/failures?{query}")).await?;
        assert_eq!((page.status, rows(&page)), (200, expected), "{query}: {}", page.body);
        assert_eq!(page.body.contains("Hosts with the most failures"), expected > 0, "{query}");
        assert_eq!(page.body.contains("No failures match"), expected == 0, "{query}");
    }
    let all = olga.get("/operator/failures").await?;
    let host = format!("<bdi>{ALLOWED}</bdi></th><td class=\"count\" data-label=\"Failures\">3</td>");
    assert!(all.body.contains(&host), "{}", all.body);
    assert!(all.body.contains("data-label=\"Cause\">Target site</td>"), "{}", all.body);
    assert!(all.body.contains(&format!("href=\"/operator/teams/{team}\"")), "{}", all.body);
    assert!(!all.body.contains("/status/403"), "{}", all.body);
    for (query, message) in [
        ("code=x", "Choose a result of the list."),
        ("cause=x", "Choose a cause of the list."),
        ("day=x", "“x” is not a day."),
    ] {
        let page = olga.get(&format!("/operator/failures?{query}")).await?;
        assert!(page.status == 422 && page.body.contains(message), "{query}: {} {}", page.status, page.body);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn overview_has_latency_disk_and_the_captures_of_each_hour() -> Result<()> {
    let app = TestApp::start(9, &[("accounts.sign_up", "true")]).await?;
    let mut olga = operator(&app).await?;
    let before = olga.get("/operator").await?;
    assert!(before.body.contains("<dt>Latency, last 24 hours</dt><dd>–</dd>"), "{}", before.body);
    assert!(before.body.contains("No live captures ended."), "{}", before.body);
    app.capture("/tiny", json!({})).await?;
    // The disk is measured in the background.
    let page = tokio::time::timeout(Duration::from_secs(30), async {
        loop {
            let page = olga.get("/operator").await?;
            if page.body.contains(" % used</dd>") {
                return anyhow::Ok(page);
            }
        }
    })
    .await??;
    assert!(page.body.contains("Of one live capture</dd>"), "{}", page.body);
    let name = "Live captures of each of the last 24 hours. Done: 1. Failed: 0. Most in an hour: 1.";
    assert!(page.body.contains(&format!("<title id=\"hours-name\">{name}</title>")), "{}", page.body);
    // The table has the same figures.
    let table = page.body.split("Live captures of the last 24 hours\">").nth(1).context("a table")?;
    let table = table.split("</table>").next().unwrap_or_default();
    assert_eq!(table.matches("<td class=\"number\">1</td>").count(), 1, "{table}");
    assert_eq!(table.matches("<time").count(), 24, "{table}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn people_are_listed_with_teams_and_sign_in() -> Result<()> {
    let app = start_app(&[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    Visitor::with_account(&app, "eve@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let mut olga = operator(&app).await?;
    let emails = |page: &PageResponse| {
        let rows = page.body.split("<tr><th scope=\"row\"><bdi title=\"").skip(1);
        rows.filter_map(|row| row.split('>').nth(1)?.split('<').next().map(str::to_owned)).collect::<Vec<_>>()
    };
    let all = olga.get("/operator/people").await?;
    let mut sorted = emails(&all);
    sorted.sort_unstable();
    assert_eq!(sorted, ["ada@example.com", "eve@example.com", "olga@example.com"], "{}", all.body);
    assert!(all.body.contains("olga@example.com</bdi> <span class=\"tag\">operator</span>"), "{}", all.body);
    let ada = app.service.store().accounts().find_user(&Email::parse("ada@example.com")?).await?.context("ada")?;
    for search in ["ADA%40", "ada", &*ada.id.to_string()] {
        let found = olga.get(&format!("/operator/people?q={search}")).await?;
        assert_eq!(emails(&found), ["ada@example.com"], "{search}: {}", found.body);
        assert!(found.body.contains(&format!("<a href=\"/operator/teams/{team}\"><bdi>ada</bdi></a> · owner")));
        assert!(found.body.contains("data-label=\"Second factor\">No</td>"), "{}", found.body);
        assert!(!found.body.contains("none recorded"), "{}", found.body);
    }
    let nobody = olga.get("/operator/people?q=%25").await?;
    assert!(emails(&nobody).is_empty() && nobody.body.contains("Nobody matches"), "{}", nobody.body);
    assert_eq!(olga.get("/operator/people?after=x").await?.status, 400);

    app.service.store().accounts().suspend_user(ada.id, "spam", app.service.core().now()).await?;
    let found = olga.get("/operator/people?q=ada").await?;
    assert!(found.body.contains("<span class=\"state failed\">Suspended</span>"), "{}", found.body);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn suspension_asks_first_and_is_shown_to_the_operator_and_the_members() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let mut olga = operator(&app).await?;
    let (page, path) = (format!("/operator/teams/{team}"), format!("/operator/teams/{team}/suspend"));
    let shown = olga.get(&page).await?;
    assert!(shown.body.contains(&format!("href=\"{path}\">Suspend team…</a>")), "{}", shown.body);
    let asked = olga.get(&path).await?;
    assert!(asked.status == 200 && asked.body.contains("Suspend team <bdi>ada</bdi>?"), "{}", asked.body);
    assert!(asked.body.contains("Its images stay.") && asked.body.contains("name=\"suspend_reason\""));
    // Asking changes nothing, and neither does a reason that is too short.
    let short = send(&mut olga, &path, &path, &[("suspend_reason", "no")]).await?;
    assert!(short.status == 422 && short.body.contains("Write a reason of 3 to 200 characters."), "{}", short.body);
    assert!(short.body.contains("value=\"no\""), "{}", short.body);
    ensure!(ada.get(&format!("/teams/{team}/grabs")).await?.status == 200);
    let done = send(&mut olga, &path, &path, &[("suspend_reason", "phishing pages")]).await?;
    assert_eq!((done.status, done.location()), (303, &*page));

    let banner = "<div class=\"notice bad\">\n<h2>This team is suspended</h2>";
    let shown = olga.get(&page).await?;
    assert!(shown.body.contains(banner) && shown.body.contains("phishing pages"), "{}", shown.body);
    assert_eq!(olga.get(&path).await?.location(), page, "there is nothing to confirm");
    assert!(olga.get("/operator/teams").await?.body.contains("<span class=\"state failed\">Suspended</span>"));
    let refused = ada.get(&format!("/teams/{team}/grabs")).await?;
    let banner = "<div class=\"notice bad\">\n<h1>This team is suspended</h1>";
    assert!(refused.status == 403 && refused.body.contains(banner), "{}", refused.body);
    let teams = ada.get("/teams").await?;
    assert!(teams.body.contains("<p class=\"notice bad\"><bdi>ada</bdi> is suspended"), "{}", teams.body);
    app.finish().await
}
