//! Operator pages show correct figures, are hidden from everybody else, and grant credits once.

use std::fs::File;
use std::sync::Mutex;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::accounts::Email;
use grabd_domain::ids::TeamId;
use grabd_engine::clock::Clock;
use grabd_store::accounts::NewTeam;
use grabd_tests::harness::{ALLOWED, TestApp};
use reqwest::Method;
use serde_json::json;
use tokio::time::timeout;
use uuid::Uuid;

use super::team::team_of;
use super::visitor::{PageResponse, Visitor, start_app};

/// All operator routes, and whether they take forms. `{team}` is a team id.
const ROUTES: [(&str, bool); 15] = [
    ("/operator", false),
    ("/operator/teams", false),
    ("/operator/teams/{team}", false),
    ("/operator/teams/{team}/credits", true),
    ("/operator/teams/{team}/suspend", true),
    ("/operator/teams/{team}/restore", true),
    ("/operator/teams/{team}/limits", true),
    ("/operator/failures", false),
    ("/operator/domains", false),
    ("/operator/domains/example.com/remove", true),
    ("/operator/limits", false),
    ("/operator/audit", false),
    ("/operator/audit.csv", false),
    ("/operator/people", false),
    ("/operator/nothing/is/here", true),
];

/// Makes a user an operator, or ends that.
pub(super) async fn set_operator(app: &TestApp, email: &str, operator: bool) -> Result<()> {
    let store = app.service.store();
    let user = store.accounts().find_user(&Email::parse(email)?).await?.context("no person has this address")?;
    ensure!(store.accounts().set_operator(user.id, operator).await?);
    Ok(())
}

/// Creates an operator and signs in.
pub(super) async fn operator<'a>(app: &'a TestApp) -> Result<Visitor<'a>> {
    let visitor = Visitor::with_account(app, "olga@example.com").await?;
    set_operator(app, "olga@example.com", true).await?;
    Ok(visitor)
}

/// The text between a tag and the next of the ends, without tags.
fn text_between(page: &PageResponse, tag: &str, end: &str) -> Result<String> {
    let rest = page.body.split(tag).nth(1).with_context(|| format!("{tag} is not in {}", page.body))?;
    let inner = rest.split(end).next().unwrap_or_default();
    let texts: Vec<&str> = inner.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    Ok(texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" "))
}

/// The value of a description list entry.
fn description(page: &PageResponse, name: &str) -> Result<String> {
    text_between(page, &format!("<dt>{name}</dt><dd>"), "</d")
}

/// The text of a table row after its header.
fn row(page: &PageResponse, head: &str) -> Result<String> {
    text_between(page, &format!("{head}</th>"), "</tr")
}

/// The text of the first cell below this header of a table of records.
fn cell(page: &PageResponse, column: &str) -> Result<String> {
    text_between(page, &format!("data-label=\"{column}\">"), "</td")
}

/// The grant form of a team's page with these fields.
fn grant<'a>(page: &PageResponse, credits: &'a str, reason: &'a str) -> Result<Vec<(&'static str, String)>> {
    let own = [("form_token", page.hidden_field("form_token")?), ("once", page.hidden_field("once")?)];
    Ok([own.to_vec(), vec![("credits", credits.to_owned()), ("reason", reason.to_owned())]].concat())
}

async fn send(visitor: &mut Visitor<'_>, path: &str, form: &[(&'static str, String)]) -> Result<PageResponse> {
    let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
    visitor.post(path, &form).await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_figures_match_the_captures() -> Result<()> {
    let app = TestApp::start(20, &[("accounts.sign_up", "true"), ("browser.slots", "2")]).await?;
    let mut olga = operator(&app).await?;
    let before = olga.get("/operator").await?;
    assert_eq!(before.status, 200, "{}", before.body);
    assert_eq!(row(&before, "<code>done</code>")?, "0 0");
    assert!(row(&before, "<code>url</code>").is_err(), "{}", before.body);

    let mut statuses = Vec::new();
    for url in [
        app.site.url("/tiny"),
        app.site.url("/tiny?again"),
        app.site.url("/status/403?secret=of-the-customer"),
        app.site.url("/redirect?to=http://127.0.0.1:8080/"),
        "http://10.0.0.1/".to_owned(),
    ] {
        statuses.push(app.create(json!({ "url": url })).await?.0);
    }
    assert_eq!(statuses, [200, 200, 422, 400, 400]);
    let placeholder = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
    let placeholder = placeholder.json(&json!({ "url": "https://example.com/" })).send().await?;
    assert_eq!(placeholder.status(), 200);

    // A slot is free a moment after its capture has ended, when its page is gone.
    let page = timeout(Duration::from_secs(20), async {
        loop {
            let page = olga.get("/operator").await?;
            if description(&page, "Slots busy")? == "0 of 2" {
                return anyhow::Ok(page);
            }
        }
    })
    .await??;
    for (result, counts) in [
        ("done", "2 1"),
        ("render_blocked", "1 0"),
        ("render_failed", "0 0"),
        ("ssrf_detected", "1 0"),
        ("internal_error", "0 0"),
    ] {
        assert_eq!(row(&page, &format!("<code>{result}</code>"))?, counts, "{result}");
    }
    assert_eq!(description(&page, "Captures, last 24 hours")?, "2");
    assert_eq!(description(&page, "Failed, last 24 hours")?, "2");
    assert!(page.body.contains("50.0 % of finished captures"), "{}", page.body);
    // The metrics agree.
    assert_eq!(row(&page, "<code>url</code>")?, "1");
    assert!(row(&page, "<code>address_own</code>")?.parse::<u32>()? >= 1);
    let metrics = app.client.get(format!("http://{}/metrics", app.service.metrics())).send().await?.text().await?;
    let count = row(&page, "<code>address_own</code>")?;
    assert!(metrics.contains(&format!("grabd_egress_refused_total{{reason=\"address_own\"}} {count}\n")), "{metrics}");
    let renderer = text_between(&page, "Self-test</th></tr></thead>", "</th")?;
    assert!(cell(&page, "State")?.starts_with("Live heartbeat "), "{}", cell(&page, "State")?);
    let browser = app.service.health().version.context("a browser")?;
    assert!(cell(&page, "Browser")?.starts_with(&browser), "{}", cell(&page, "Browser")?);
    assert!(cell(&page, "Self-test")?.starts_with("Passed a page reaches 127."), "{}", cell(&page, "Self-test")?);
    let jail = app.service.browser().context("a browser")?.jail();
    assert!(cell(&page, "Network namespace")?.starts_with("Off") && jail != &grabd_browser::Jail::Jailed, "{jail:?}");
    assert_eq!(description(&page, "Slots busy")?, "0 of 2");
    assert_eq!(cell(&page, "Slots busy")?, "0 of 2");
    assert_eq!(description(&page, "Queued")?, "0");
    assert!(description(&page, "Database")?.starts_with("sqlite, "), "{}", description(&page, "Database")?);
    let uptime = description(&page, "Uptime")?;
    assert!(
        (uptime.contains(" s ") || uptime.starts_with("less than a second")) && uptime.contains("since"),
        "{uptime}"
    );

    // A team's figures and failures, without customer data.
    let team = format!("/operator/teams/{}", app.team.team);
    let page = olga.get(&team).await?;
    assert_eq!(description(&page, "Credits")?, "18");
    assert_eq!(description(&page, "Captures, last 30 days")?, "2");
    assert_eq!(description(&page, "Failed, last 30 days")?, "2");
    let (live, test) = (app.live(), app.test());
    for (key, shown) in [(live, "sk_live_…"), (test, "sk_test_…")] {
        assert!(page.body.contains(&format!("{shown}{}", &key[key.len() - 4..])) && !page.body.contains(key));
    }
    let failures = olga.get("/operator/failures").await?;
    for page in [&page, &failures] {
        assert!(page.body.contains("<code>render_blocked</code>") && page.body.contains("<code>ssrf_detected</code>"));
        assert!(page.body.contains(&format!("<bdi>{ALLOWED}</bdi>")), "{}", page.body);
        let attempts = "<td class=\"count\" data-label=\"Attempts\">1</td>";
        let rendered = format!("{attempts}<td data-label=\"Renderer\"><code>{renderer}</code></td>");
        assert_eq!(page.body.matches(&rendered).count(), 2);
        for secret in ["of-the-customer", "status/403", "redirect", "/i/"] {
            assert!(!page.body.contains(secret), "{secret} in {}", page.body);
        }
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_page_shows_a_full_queue() -> Result<()> {
    let settings = [("accounts.sign_up", "true"), ("browser.slots", "1"), ("limits.async_queue", "3")];
    let app = TestApp::start(9, &settings).await?;
    let mut olga = operator(&app).await?;
    let url = app.site.url("/tiny");
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.live());
        let request = request.header("prefer", "respond-async").json(&json!({ "url": url, "delay_ms": 9000 }));
        statuses.push(request.send().await?.status().as_u16());
    }
    assert_eq!(statuses, [202, 202, 202, 429]);
    let page = olga.get("/operator").await?;
    assert_eq!(description(&page, "Slots busy")?, "1 of 1");
    assert_eq!(description(&page, "Queued")?, "2");
    assert_eq!(description(&page, "Queued, synchronous")?, "0");
    assert_eq!(description(&page, "Queued, asynchronous")?, "2");
    assert_eq!(description(&page, "Rendering")?, "1");
    assert!(page.body.contains("longest: "), "{}", page.body);
    assert_eq!(
        row(&page, &format!("/operator/teams/{}\"><bdi>the test&#39;s</bdi></a>", app.team.team))?,
        "2 1 3 of 3 full"
    );
    let team = olga.get(&format!("/operator/teams/{}", app.team.team)).await?;
    assert_eq!((description(&team, "Credits")?, description(&team, "Reserved")?), ("6".to_owned(), "3".to_owned()));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_pages_are_not_found_for_others() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let mut olga = operator(&app).await?;
    let page = olga.get(&format!("/operator/teams/{team}")).await?;
    assert!(page.body.contains("<a href=\"/operator\" aria-current=\"true\">Operator</a>"), "{}", page.body);
    assert!(!ada.get("/apps").await?.body.contains("/operator"));
    let form = grant(&page, "25", "for nothing")?;
    let unknown = olga.get("/operator/nothing").await?;
    assert_eq!(unknown.status, 404);
    // Compare only the content, because the navigation differs.
    let main_content = |answer: &PageResponse| answer.body.split("<main").nth(1).map(str::to_owned);
    assert!(main_content(&unknown).is_some_and(|text| text.contains("Page not found")));

    // Once for non-operators, and once for a former operator: the form is complete and was valid before.
    for round in ["others", "former"] {
        let mut signed_out = Visitor::new(&app);
        for (route, is_form) in ROUTES {
            let path = route.replace("{team}", &team.to_string());
            let mut answers = vec![signed_out.get(&path).await?, send(&mut signed_out, &path, &form).await?];
            answers.extend([ada.get(&path).await?, send(&mut ada, &path, &form).await?]);
            if round == "former" {
                answers.extend([olga.get(&path).await?, send(&mut olga, &path, &form).await?]);
            }
            for method in [Method::OPTIONS, Method::PUT, Method::DELETE] {
                let request = app.client.request(method, format!("{}{path}", app.service.public_url()));
                let response = request.send().await?;
                let (status, headers) = (response.status().as_u16(), response.headers().clone());
                assert!(!headers.contains_key("allow"), "{path}");
                answers.push(PageResponse { status, headers, body: response.text().await? });
            }
            for answer in answers {
                assert_eq!((answer.status, main_content(&answer)), (404, main_content(&unknown)), "{path} {is_form}");
            }
            if round == "others" && !is_form {
                assert_eq!(olga.get(&path).await?.status, 200, "{path}");
            }
        }
        set_operator(&app, "olga@example.com", false).await?;
    }
    assert!(olga.is_signed_in().await?, "still signed in as an ordinary person");
    assert!(!olga.get("/apps").await?.body.contains("/operator"));
    assert_eq!(app.service.store().credits().lots(team).await?, []);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operators_cannot_open_team_pages() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let mut olga = operator(&app).await?;
    for page in ["grabs", "capture"] {
        let path = format!("/teams/{team}/{page}");
        assert_eq!((ada.get(&path).await?.status, olga.get(&path).await?.status), (200, 404), "{path}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_grant_is_applied_once_and_logged() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("log");
    tracing_subscriber::fmt().with_ansi(false).with_writer(Mutex::new(File::create(&file)?)).init();
    let app = start_app(&[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let mut olga = operator(&app).await?;
    let path = format!("/operator/teams/{team}");
    let page = olga.get(&path).await?;
    let store = app.service.store();
    let credits =
        async || Ok::<_, anyhow::Error>(store.credits().lots(team).await?.iter().map(|lot| lot.remaining).sum::<u32>());
    let form = grant(&page, "25", "sorry for the outage")?;
    for _ in 0..2 {
        let answer = send(&mut olga, &format!("{path}/credits"), &form).await?;
        assert_eq!((answer.status, answer.location()), (303, &*format!("{path}?granted")), "{}", answer.body);
    }
    assert!(olga.get(&format!("{path}?granted")).await?.body.contains("Credits granted."));
    assert_eq!(credits().await?, 25);
    let entries = app.service.store().credits().ledger(team, None, 9).await?;
    let references: Vec<_> = entries.iter().map(|entry| (entry.amount, entry.reference.as_deref())).collect();
    assert_eq!(references, [(25, Some("ref:sorry for the outage"))]);

    // The same form with other credits is refused, and the response contains a new form.
    let mut changed = form.clone();
    changed[2].1 = "26".to_owned();
    let answer = send(&mut olga, &format!("{path}/credits"), &changed).await?;
    assert!(answer.status == 422 && answer.body.contains("was already submitted"), "{} {}", answer.status, answer.body);
    let again = grant(&answer, "5", "and once more")?;
    assert_eq!(send(&mut olga, &format!("{path}/credits"), &again).await?.status, 303);
    assert_eq!(credits().await?, 30);

    for (credits, reason, expected) in [
        ("0", "a reason", "Enter a whole number from 1 to 1,000,000."),
        ("many", "a reason", "Enter a whole number"),
        ("5", "", "Enter a reason of 3 to 200 characters."),
    ] {
        let form = grant(&olga.get(&path).await?, credits, reason)?;
        let answer = send(&mut olga, &format!("{path}/credits"), &form).await?;
        assert!(answer.status == 422 && answer.body.contains(expected), "{credits} {reason}: {}", answer.body);
    }
    let nowhere = format!("/operator/teams/{}/credits", Uuid::nil());
    let page = olga.get(&path).await?;
    assert_eq!(send(&mut olga, &nowhere, &grant(&page, "5", "a reason")?).await?.status, 404);

    // Forged forms are refused.
    let mut forged = grant(&page, "7", "forged")?;
    forged[0].1 = "forged".to_owned();
    assert_eq!(send(&mut olga, &format!("{path}/credits"), &forged).await?.status, 403);
    forged[0].1 = page.hidden_field("form_token")?;
    olga.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    assert_eq!(send(&mut olga, &format!("{path}/credits"), &forged).await?.status, 403);
    olga.headers.clear();
    assert_eq!(credits().await?, 30);
    assert_eq!(olga.get(&format!("{path}/credits")).await?.location(), path);

    app.finish().await?;
    let log = std::fs::read_to_string(&file)?;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("an operator granted credits")).collect();
    let mentions = |line: &str, credits: &str, reason: &str| {
        [credits, reason, "operator.email=olga@example.com", &*format!("team.id={team}")]
            .iter()
            .all(|part| line.contains(part))
    };
    assert_eq!(lines.len(), 2, "{log}");
    assert!(
        mentions(lines[0], "credits=25", "sorry for the outage") && mentions(lines[1], "credits=5", "and once more"),
        "{lines:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_changes_a_limit_of_a_team_which_is_recorded() -> Result<()> {
    let app = start_app(&[("limits.async_queue", "40")]).await?;
    let ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let mut olga = operator(&app).await?;
    let path = format!("/operator/teams/{team}");
    let page = olga.get(&path).await?;
    assert_eq!(row(&page, "Open asynchronous grabs <code class=\"source\">async_queue</code>")?, "40 40");
    let form = |page: &PageResponse, limit: &str, value: &str| {
        let token = page.hidden_field("form_token")?;
        Ok::<_, anyhow::Error>([("form_token", token), ("limit", limit.to_owned()), ("limit_value", value.to_owned())])
    };
    for (limit, value, expected) in [
        ("async_queue", "many", "The value of async_queue must be from 0 to 10000."),
        ("grabs_days", "29", "The value of grabs_days must be 0 (never), or from 30 to 36500."),
        ("nothing", "5", "Choose a limit."),
        ("", "", "Choose a limit."),
    ] {
        let answer = send(&mut olga, &format!("{path}/limits"), &form(&page, limit, value)?).await?;
        assert!(answer.status == 422 && answer.body.contains(expected), "{limit} {value}: {}", answer.body);
    }
    let changed = send(&mut olga, &format!("{path}/limits"), &form(&page, "async_queue", " 7 ")?).await?;
    assert_eq!((changed.status, changed.location()), (303, &*format!("{path}#limits")), "{}", changed.body);
    let page = olga.get(&path).await?;
    let overridden = row(&page, "<span class=\"tag\">overridden</span> <code class=\"source\">async_queue</code>")?;
    assert_eq!(overridden, "7 40");
    // Empty: the setting again.
    assert_eq!(send(&mut olga, &format!("{path}/limits"), &form(&page, "async_queue", "")?).await?.status, 303);
    let page = olga.get(&path).await?;
    assert_eq!(row(&page, "Open asynchronous grabs <code class=\"source\">async_queue</code>")?, "40 40");
    let trail = app.service.store().audit().list_audit(grabd_domain::Timestamp::from_ms(0), None, 9).await?;
    let of_limits = trail.iter().filter(|entry| entry.action == "team.limits" && entry.team == Some(team));
    let mut details: Vec<_> = of_limits.filter_map(|entry| entry.detail.as_deref()).collect();
    details.sort_unstable();
    assert_eq!(details, ["async_queue=7", "async_queue=setting"]);

    // Forged forms, teams that do not exist, and other users.
    let nowhere = format!("/operator/teams/{}/limits", Uuid::nil());
    assert_eq!(send(&mut olga, &nowhere, &form(&page, "keys", "5")?).await?.status, 404);
    let mut forged = form(&page, "keys", "5")?;
    forged[0].1 = "forged".to_owned();
    assert_eq!(send(&mut olga, &format!("{path}/limits"), &forged).await?.status, 403);
    olga.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    assert_eq!(send(&mut olga, &format!("{path}/limits"), &form(&page, "keys", "5")?).await?.status, 403);
    let mut ada = ada;
    assert_eq!(send(&mut ada, &format!("{path}/limits"), &form(&page, "keys", "5")?).await?.status, 404);
    assert_eq!(app.service.store().limits().team_limits(team).await?, []);
    app.finish().await
}

/// The form for a rule with these fields.
fn domain_rule(page: &PageResponse, domain: &str, rule: &str) -> Result<Vec<(&'static str, String)>> {
    let token = page.hidden_field("form_token")?;
    Ok(vec![("form_token", token), ("domain", domain.to_owned()), ("rule", rule.to_owned())])
}

/// Submits the form for a rule, and returns the page to which the answer leads. `notice` is its query.
async fn set_rule(visitor: &mut Visitor<'_>, domain: &str, rule: &str, notice: &str) -> Result<PageResponse> {
    let form = domain_rule(&visitor.get("/operator/domains").await?, domain, rule)?;
    let answer = send(visitor, "/operator/domains", &form).await?;
    let location = format!("/operator/domains?{notice}");
    assert_eq!((answer.status, answer.location()), (303, &*location), "{domain} {rule}: {}", answer.body);
    visitor.get(&location).await
}

/// The status of a capture with a test key.
async fn capture(app: &TestApp, url: &str) -> Result<u16> {
    let request = app.client.post(format!("{}/grabs", app.base())).bearer_auth(app.test());
    Ok(request.json(&json!({ "url": url })).send().await?.status().as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_adds_and_removes_domain_rules_which_apply_at_once_and_are_recorded() -> Result<()> {
    let app = start_app(&[("abuse.deny_domains", "config.example.net")]).await?;
    let mut olga = operator(&app).await?;
    let page = olga.get("/operator/domains").await?;
    assert_eq!(row(&page, ">config.example.net</bdi>")?, "Denied Configuration");
    assert!(!page.body.contains(">Remove</button>"), "{}", page.body);
    assert!(page.body.contains("read the rules every 500 milliseconds"), "{}", page.body);

    for (domain, rule, expected) in [
        ("", "deny", "Enter a domain such as example.com."),
        ("https://example.com/", "deny", "“https://example.com/” is not a domain."),
        ("<b>.example.com", "deny", "“&#60;b&#62;.example.com” is not a domain."),
        ("192.0.2.1", "deny", "“192.0.2.1” is an IP address."),
        ("co.uk", "deny", "“co.uk” is a public suffix, or has no dot."),
        ("example.com", "maybe", "Choose whether the domain is denied or allowed."),
    ] {
        let answer = send(&mut olga, "/operator/domains", &domain_rule(&page, domain, rule)?).await?;
        assert!(answer.status == 422 && answer.body.contains(expected), "{domain} {rule}: {}", answer.body);
    }
    assert_eq!(app.service.store().operator().list_domain_rules().await?, []);

    // A denied domain is refused from the next request on, and its subdomains are.
    assert_eq!(capture(&app, "https://www.example.com/").await?, 200);
    let saved = set_rule(&mut olga, " Example.COM. ", "deny", "saved").await?;
    assert_eq!(capture(&app, "https://www.example.com/").await?, 400);
    let denied = row(&saved, ">example.com</bdi>")?;
    assert!(denied.starts_with("Denied Operators ") && denied.ends_with(" Remove"), "{denied}");
    assert!(saved.body.contains("Rule saved.") && saved.body.contains("domains that are not denied"), "{}", saved.body);
    // The same rule changes nothing, another one for the domain replaces it.
    let again = set_rule(&mut olga, "example.com", "deny", "unchanged").await?;
    assert!(again.body.contains("Nothing was changed."), "{}", again.body);
    let replaced = set_rule(&mut olga, "example.com", "allow", "saved").await?;
    assert!(row(&replaced, ">example.com</bdi>")?.starts_with("Allowed Operators "), "{}", replaced.body);
    assert!(replaced.body.contains("Only pages of allowed domains are captured."), "{}", replaced.body);
    let statuses = (capture(&app, "https://example.com/").await?, capture(&app, "https://example.org/").await?);
    assert_eq!(statuses, (200, 400));

    // Forged forms, and other users.
    let remove = "/operator/domains/example.com/remove";
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    for path in ["/operator/domains", remove] {
        let mut forged = domain_rule(&page, "example.org", "deny")?;
        forged[0].1 = "forged".to_owned();
        assert_eq!(send(&mut olga, path, &forged).await?.status, 403, "{path}");
        olga.headers.push(("sec-fetch-site", "cross-site".to_owned()));
        let form = domain_rule(&page, "example.org", "deny")?;
        assert_eq!(send(&mut olga, path, &form).await?.status, 403, "{path}");
        olga.headers.clear();
        assert_eq!(send(&mut ada, path, &form).await?.status, 404, "{path}");
    }
    assert_eq!(app.service.store().operator().list_domain_rules().await?.len(), 1);

    // Rules of the configuration stay.
    let token = [("form_token", page.hidden_field("form_token")?)];
    for (domain, notice) in [("example.com", "removed"), ("example.com", "gone"), ("config.example.net", "gone")] {
        let answer = send(&mut olga, &format!("/operator/domains/{domain}/remove"), &token).await?;
        assert_eq!((answer.status, answer.location()), (303, &*format!("/operator/domains?{notice}")), "{domain}");
    }
    assert_eq!(send(&mut olga, "/operator/domains/com/remove", &token).await?.status, 404);
    assert_eq!(olga.get(remove).await?.location(), "/operator/domains");
    let page = olga.get("/operator/domains?removed").await?;
    assert!(page.body.contains("Rule removed.") && row(&page, ">example.com</bdi>").is_err(), "{}", page.body);
    let statuses = (capture(&app, "https://example.org/").await?, capture(&app, "https://config.example.net/").await?);
    assert_eq!(statuses, (200, 400));

    let trail = app.service.store().audit().list_audit(grabd_domain::Timestamp::from_ms(0), None, 50).await?;
    let of_rules = trail.iter().rev().filter(|entry| entry.action.starts_with("domain."));
    let entries: Vec<_> = of_rules.map(|entry| (&*entry.action, &*entry.target, entry.email.as_deref())).collect();
    let olgas = |action| (action, "example.com", Some("olga@example.com"));
    assert_eq!(entries, [olgas("domain.deny"), olgas("domain.allow"), olgas("domain.remove")]);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_sees_limits_and_retention_of_the_configuration() -> Result<()> {
    let settings = [
        ("limits.requests_per_minute", "1200"),
        ("abuse.strangers", "always"),
        ("abuse.paid_slots_percent", "40"),
        ("abuse.allow_domains", "example.com,example.org"),
        ("retention.images_days", "90"),
        ("retention.team_megabytes", "5000"),
    ];
    let app = start_app(&settings).await?;
    let mut olga = operator(&app).await?;
    let page = olga.get("/operator/limits").await?;
    assert_eq!(page.status, 200, "{}", page.body);
    for (name, value) in [
        ("Requests in one environment", "1,200 per minute limits.requests_per_minute"),
        ("Active API keys", "100 none"),
        ("Size of the images of live captures", "5,000 MB retention.team_megabytes"),
        ("Slots kept for accounts that have paid", "40 % of all slots abuse.paid_slots_percent"),
        ("Allowed domains in the configuration", "2 abuse.allow_domains"),
        ("Images of live captures", "90 days retention.images_days"),
        ("Live captures with their images", "Not deleted retention.grabs_days"),
        ("Test captures", "7 days retention.test_grabs_days"),
        ("Entries of the audit trail", "400 days audit.retention_days"),
    ] {
        assert_eq!(row(&page, &format!("<th scope=\"row\">{name}"))?, value, "{name}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_can_be_searched_and_paged() -> Result<()> {
    let app = start_app(&[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    let adas = team_of(&app, "ada@example.com", 7).await?;
    let mut olga = operator(&app).await?;
    for number in 0..30_u32 {
        let id = TeamId(Uuid::from_u128(u128::from(number) + 1));
        let name = format!("Club {number} <b>");
        app.service.store().accounts().create_team(NewTeam { id, name, now: Clock::system().now() }).await?;
    }
    let rows = |page: &PageResponse| page.body.matches("<tr><th scope=\"row\">").count();
    let older = |page: &PageResponse| {
        let link = page.body.split("rel=\"next\" href=\"").nth(1)?;
        Some(link.split('"').next()?.replace("&#38;", "&"))
    };
    let first = olga.get("/operator/teams").await?;
    // Including the team of the test, Ada's and Olga's.
    assert_eq!(rows(&first), 25, "{}", first.body);
    assert!(first.body.contains("Club 29 &#60;b&#62;") && !first.body.contains("<b>"), "{}", first.body);
    let second = olga.get(&older(&first).context("a second page")?).await?;
    assert_eq!((rows(&second), older(&second)), (8, None));
    for (search, expected) in
        [("club%202", 11), ("CLUB", 25), ("ada%40example.com", 1), (&*adas.to_string(), 1), ("%25", 0), ("nobody", 0)]
    {
        let found = olga.get(&format!("/operator/teams?q={search}")).await?;
        assert_eq!(rows(&found), expected, "{search}: {}", found.body);
        if search == "CLUB" {
            assert_eq!(rows(&olga.get(&older(&found).context("more clubs")?).await?), 5);
        }
        if search.contains("ada") {
            // The date follows.
            assert!(row(&found, "<bdi>ada</bdi></a>")?.starts_with("7 0 0 1 "), "{}", found.body);
        }
    }
    for path in ["/operator/teams?after=x", "/operator/failures?after=1.x", "/operator/audit?after=x"] {
        assert_eq!(olga.get(path).await?.status, 400, "{path}");
    }
    for path in ["/operator/teams/x", "/operator/teams/01993e1c-7b1a-7000-8000-0123456789ab"] {
        assert_eq!(olga.get(path).await?.status, 404, "{path}");
    }
    app.finish().await
}
