//! Everything below `/teams/{team}` is only for members of the team.

use anyhow::{Context, Result};
use grabd_domain::accounts::Email;
use grabd_domain::ids::TeamId;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::TestApp;

use super::monitors::create_monitor;
use super::proxies::create_proxy;
use super::sites::create_site;
use super::visitor::{PageResponse, Visitor, start_app};
use super::webhooks::{create_webhook, submit};

/// All routes of a team, and whether they take forms. `{grab}` is a grab of the team, `{monitor}` one of its monitors,
/// `{proxy}` one of its proxies, `{site}` one of its site jobs, `{webhook}` one of its webhooks, and `{delivery}` a message
/// sent to it.
const ROUTES: [(&str, bool); 68] = [
    ("billing", false),
    ("billing/ledger", false),
    ("billing/ledger.csv", false),
    ("billing/paid", false),
    ("billing/checkout", true),
    ("capture", false),
    ("capture", true),
    ("first-steps", true),
    ("grabs", false),
    ("grabs/events?grab={grab}", false),
    ("grabs/new?environment=test&since={grab}", false),
    ("grabs/download?grab={grab}", false),
    ("grabs/{grab}", false),
    ("grabs/{grab}/events", false),
    ("grabs/{grab}/thumbnail", false),
    ("grabs/{grab}/delete", false),
    ("grabs/{grab}/delete", true),
    ("grabs/{grab}/retake", true),
    ("monitors", false),
    ("monitors/new", false),
    ("monitors/new", true),
    ("monitors/{monitor}", false),
    ("monitors/{monitor}/history.zip", false),
    ("monitors/{monitor}/feed", true),
    ("monitors/{monitor}/feed/off", true),
    ("monitors/{monitor}/change", false),
    ("monitors/{monitor}/change", true),
    ("monitors/{monitor}/pause", true),
    ("monitors/{monitor}/resume", true),
    ("monitors/{monitor}/accept", true),
    ("monitors/{monitor}/delete", false),
    ("monitors/{monitor}/delete", true),
    ("proxies", false),
    ("proxies/new", false),
    ("proxies/new", true),
    ("proxies/{proxy}/change", false),
    ("proxies/{proxy}/change", true),
    ("proxies/{proxy}/login", false),
    ("proxies/{proxy}/login", true),
    ("proxies/{proxy}/delete", false),
    ("proxies/{proxy}/delete", true),
    ("requests", false),
    ("sites", false),
    ("sites/new", false),
    ("sites/new", true),
    ("sites/{site}", false),
    ("sites/{site}/events", false),
    ("sites/{site}/cancel", false),
    ("sites/{site}/cancel", true),
    ("sites/{site}/delete", false),
    ("sites/{site}/delete", true),
    ("webhooks", false),
    ("webhooks/new", false),
    ("webhooks/new", true),
    ("webhooks/{webhook}", false),
    ("webhooks/{webhook}/change", false),
    ("webhooks/{webhook}/change", true),
    ("webhooks/{webhook}/secret", false),
    ("webhooks/{webhook}/secret", true),
    ("webhooks/{webhook}/off", false),
    ("webhooks/{webhook}/off", true),
    ("webhooks/{webhook}/on", true),
    ("webhooks/{webhook}/keep", true),
    ("webhooks/{webhook}/delete", false),
    ("webhooks/{webhook}/delete", true),
    ("webhooks/{webhook}/test", true),
    ("webhooks/{webhook}/deliveries/{delivery}", false),
    ("webhooks/{webhook}/deliveries/{delivery}/again", true),
];

/// The first team of a user, with additional prepaid credits.
pub(crate) async fn team_of(app: &TestApp, email: &str, credits: u32) -> Result<TeamId> {
    let store = app.service.store();
    let user = store.accounts().find_user(&Email::parse(email)?).await?.context("no person has this address")?;
    let (team, ..) =
        store.accounts().list_memberships(user.id).await?.into_iter().next().context("the person is in no team")?;
    if credits > 0 {
        accounts::grant_prepaid(store, team, credits, &format!("for {email}"), Clock::system().now()).await?;
    }
    Ok(team)
}

/// Submits the capture form of a team with these fields.
pub(crate) async fn capture(visitor: &mut Visitor<'_>, team: TeamId, fields: &[(&str, &str)]) -> Result<PageResponse> {
    let path = format!("/teams/{team}/capture");
    let form = visitor.get(&path).await?;
    let (form_token, once) = (form.hidden_field("form_token")?, form.hidden_field("once")?);
    let own = [("form_token", &*form_token), ("once", &*once)];
    visitor.post(&path, &[&own, fields].concat()).await
}

/// Captures a placeholder. Returns the path of its page.
pub(super) async fn placeholder(visitor: &mut Visitor<'_>, team: TeamId, url: &str) -> Result<String> {
    let answer = capture(visitor, team, &[("url", url), ("environment", "test")]).await?;
    anyhow::ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
    Ok(answer.location().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn team_pages_are_not_found_for_non_members() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let (hers, eves) = (team_of(&app, "ada@example.com", 0).await?, team_of(&app, "eve@example.com", 0).await?);
    let page = placeholder(&mut ada, hers, "https://secret.example/").await?;
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let grab = last(&page);
    let fields = [("url", "https://secret.example/"), ("events", "*"), ("environment", "test")];
    let (webhook_page, _) = create_webhook(&mut ada, hers, &fields).await?;
    let sent = submit(&mut ada, &format!("{webhook_page}/test")).await?;
    let (webhook, delivery) = (last(&webhook_page), last(sent.location().trim_end_matches("?sent")));
    let monitor_page = create_monitor(&mut ada, hers, &[("url", "https://secret.example/")]).await?;
    let monitor = last(&monitor_page);
    let proxy = create_proxy(&mut ada, hers, "test").await?;
    let start = app.site.url("/tiny");
    let site_page = create_site(&mut ada, hers, &[("url", &*start), ("name", "secret.example")]).await?;
    let site = last(&site_page);
    let unknown = "01993e1c-7b1a-7000-8000-0123456789ab".to_owned();
    let form_token = eve.get(&format!("/teams/{eves}/capture")).await?.hidden_field("form_token")?;
    let form = [
        ("form_token", &*form_token),
        ("once", "x"),
        ("url", "https://example.com/"),
        ("environment", "test"),
        ("events", "*"),
    ];

    for (route, is_form) in ROUTES {
        // With the ids of the owner's objects, or with another id.
        let path = |team: &str, other: Option<&str>| {
            let own = [
                ("{grab}", &grab),
                ("{monitor}", &monitor),
                ("{proxy}", &proxy),
                ("{site}", &site),
                ("{webhook}", &webhook),
                ("{delivery}", &delivery),
            ];
            let replaced = |path: String, (name, id): (&str, &String)| path.replace(name, other.unwrap_or(id));
            format!("/teams/{team}/{}", own.into_iter().fold(route.to_owned(), replaced))
        };
        let mut foreign = vec![path(&hers.to_string(), None), path(&unknown, None), path("x", None)];
        if route.contains('{') {
            // Within the own team, foreign ids are as unknown as ids that do not exist.
            foreign.extend([None, Some(&*unknown), Some("x")].map(|other| path(&eves.to_string(), other)));
        }
        let mut bodies = Vec::new();
        for path in foreign {
            let answer = if is_form { eve.post(&path, &form).await? } else { eve.get(&path).await? };
            assert_eq!(answer.status, 404, "{path} {}", answer.body);
            assert!(!answer.body.contains("secret.example"), "{path}");
            bodies.push(answer.body);
        }
        bodies.sort();
        bodies.dedup();
        assert!(bodies.len() <= 2, "{route}: foreign ids can be distinguished from unknown ids");

        // Signed-out visitors get the same response whether or not the object exists.
        let mut signed_out = Visitor::new(&app);
        let path = path(&hers.to_string(), None);
        let answer = if is_form { signed_out.post(&path, &form).await? } else { signed_out.get(&path).await? };
        let is_part = ["events", "thumbnail", "grabs/new"].iter().any(|part| route.contains(part));
        let expected = if is_form || is_part { 403 } else { 303 };
        assert_eq!(answer.status, expected, "{path}");
        assert!(expected == 403 || answer.location().starts_with("/sign-in?next=%2Fteams%2F"), "{path}");

        // Members get the page, which shows that the table contains valid routes.
        if !is_form {
            let answer = ada.get(&path).await?;
            assert_eq!(answer.status, 200, "{path}");
        }
    }
    let cursor = eve.get(&format!("/teams/{eves}/grabs?starting_after={grab}")).await?;
    assert_eq!(cursor.status, 400);
    assert!(ada.get(&page).await?.body.contains("/i/"), "the image must still exist");
    assert!(ada.get(&monitor_page).await?.body.contains("Pause"), "the monitor must still be active");
    assert_eq!(ada.get(&site_page).await?.status, 200, "the site job must still exist");
    let webhook = ada.get(&webhook_page).await?.body;
    assert!(webhook.contains("Send test message") && webhook.matches("?sent").count() == 0, "{webhook}");
    assert_eq!(webhook.matches("webhook.test").count(), 1, "{webhook}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn removed_member_loses_access_at_once() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let page = placeholder(&mut ada, team, "https://example.com/").await?;
    assert_eq!(ada.get("/grabs").await?.location(), format!("/teams/{team}/grabs"));
    assert_eq!(ada.get(&page).await?.status, 200);
    let user = app.service.store().accounts().find_user(&Email::parse("ada@example.com")?).await?.context("ada")?;
    assert!(app.service.store().accounts().remove_member(team, user.id).await?);
    for path in [page.clone(), format!("{page}/thumbnail"), format!("/teams/{team}/capture")] {
        assert_eq!(ada.get(&path).await?.status, 404, "{path}");
    }
    for path in ["/grabs", "/capture", "/billing"] {
        let home = ada.get(path).await?;
        assert_eq!((home.status, home.location()), (303, "/teams"), "{path}: {}", home.body);
    }
    let teams = ada.get("/teams").await?.body;
    assert!(teams.contains("You are not a member of a team") && teams.contains("Create team"), "{teams}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn team_switcher_links_to_the_matching_page() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let first = team_of(&app, "ada@example.com", 0).await?;
    let form_token = ada.get("/apps").await?.hidden_field("form_token")?;
    let created = ada.post("/teams", &[("form_token", &form_token), ("name", "The <other> ones")]).await?;
    let second = created.location().split('/').nth(2).context("a team")?.to_owned();
    let fields = [("url", "https://hooks.example.com/"), ("events", "*"), ("environment", "test")];
    let (webhook, _) = create_webhook(&mut ada, first, &fields).await?;
    let grab = placeholder(&mut ada, first, "https://example.com/").await?;
    // Pages that every team has lead to the same page of the other team, others to the list they belong to.
    for (here, there) in [
        (format!("/teams/{first}/grabs"), "grabs"),
        (format!("/teams/{first}/capture"), "capture"),
        (format!("/teams/{first}/monitors"), "monitors"),
        (format!("/teams/{first}/sites"), "sites"),
        (format!("/teams/{first}/webhooks"), "webhooks"),
        (format!("/teams/{first}/keys"), "keys"),
        (grab.clone(), "grabs"),
        (format!("{grab}/delete"), "grabs"),
        (webhook.clone(), "webhooks"),
    ] {
        let page = ada.get(&here).await?;
        let target = format!("/teams/{second}/{there}");
        let link = format!("<a href=\"{target}\"><bdi>The &#60;other&#62; ones</bdi></a>");
        // Once in the bar of wide screens, and once in the menu of narrow ones.
        assert_eq!(page.body.matches(&link).count(), 2, "{here}: {}", page.body);
        let other = ada.get(&target).await?;
        assert_eq!(other.status, 200, "{target}");
        let current = format!("<a href=\"{target}\" aria-current=\"true\">");
        assert!(other.body.contains(&current), "{target}: {}", other.body);
        assert!(other.body.contains(&format!("<a href=\"/teams/{first}/{there}\"><bdi>")), "{target}");
    }
    // Without another team there is no link.
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let hers = team_of(&app, "eve@example.com", 0).await?;
    let page = eve.get(&format!("/teams/{hers}/grabs")).await?.body;
    assert_eq!(
        (page.matches("aria-label=\"Teams\"><a href=\"/teams\">").count(), page.matches("/grabs\"><bdi>").count()),
        (2, 0)
    );
    app.finish().await
}
