//! What operators see is what happened, nobody else sees it, and what they grant arrives once.

use std::fs::File;
use std::sync::Mutex;

use anyhow::{Context, Result, ensure};
use grabd_domain::accounts::Email;
use grabd_domain::ids::TeamId;
use grabd_engine::clock::Clock;
use grabd_store::NewTeam;
use grabd_tests::harness::{ALLOWED, Harness};
use reqwest::Method;
use serde_json::json;
use uuid::Uuid;

use super::team::team_of;
use super::visitor::{Answer, Visitor, open_house};

/// Every page of operators, and whether it takes forms. `{team}` is a team.
const ROUTES: [(&str, bool); 6] = [
    ("/operator", false),
    ("/operator/teams", false),
    ("/operator/teams/{team}", false),
    ("/operator/teams/{team}/credits", true),
    ("/operator/failures", false),
    ("/operator/nothing/is/here", true),
];

/// Makes somebody an operator, or ends that.
pub(super) async fn appoint(house: &Harness, email: &str, operator: bool) -> Result<()> {
    let store = house.service.store();
    let person = store.find_person(&Email::parse(email)?).await?.context("nobody has this address")?;
    ensure!(store.set_operator(person.id, operator).await?);
    Ok(())
}

/// An operator.
async fn operator<'a>(house: &'a Harness) -> Result<Visitor<'a>> {
    let visitor = Visitor::with_account(house, "olga@example.com").await?;
    appoint(house, "olga@example.com", true).await?;
    Ok(visitor)
}

/// The text behind a tag, without the tags in it.
fn text_after(page: &Answer, tag: &str) -> Result<String> {
    let rest = page.body.split(tag).nth(1).with_context(|| format!("{tag} is not in {}", page.body))?;
    let inner = rest.split("</d").next().and_then(|rest| rest.split("</tr").next()).unwrap_or_default();
    let texts: Vec<&str> = inner.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    Ok(texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty()).collect::<Vec<_>>().join(" "))
}

/// What a list of facts says.
fn fact(page: &Answer, name: &str) -> Result<String> {
    text_after(page, &format!("<dt>{name}</dt><dd>"))
}

/// What a row of a table says behind its head.
fn row(page: &Answer, head: &str) -> Result<String> {
    text_after(page, &format!("{head}</th>"))
}

/// The form of a team's page with these fields on top of its own.
fn grant<'a>(page: &Answer, credits: &'a str, reason: &'a str) -> Result<Vec<(&'static str, String)>> {
    let own = [("form_token", page.hidden("form_token")?), ("once", page.hidden("once")?)];
    Ok([own.to_vec(), vec![("credits", credits.to_owned()), ("reason", reason.to_owned())]].concat())
}

async fn send(visitor: &mut Visitor<'_>, path: &str, form: &[(&'static str, String)]) -> Result<Answer> {
    let form: Vec<(&str, &str)> = form.iter().map(|(name, value)| (*name, value.as_str())).collect();
    visitor.post(path, &form).await
}

#[tokio::test(flavor = "multi_thread")]
async fn the_figures_are_what_happened() -> Result<()> {
    let house = Harness::start(20, &[("accounts.sign_up", "true"), ("browser.slots", "2")]).await?;
    let mut olga = operator(&house).await?;
    let before = olga.get("/operator").await?;
    assert_eq!(before.status, 200, "{}", before.body);
    assert_eq!(row(&before, "<code>done</code>")?, "0 0");
    assert!(row(&before, "<code>url</code>").is_err(), "{}", before.body);

    let mut statuses = Vec::new();
    for url in [
        house.site.url("/tiny"),
        house.site.url("/tiny?again"),
        house.site.url("/status/403?secret=of-the-customer"),
        house.site.url("/redirect?to=http://127.0.0.1:8080/"),
        "http://10.0.0.1/".to_owned(),
    ] {
        statuses.push(house.create(json!({ "url": url })).await?.0);
    }
    assert_eq!(statuses, [200, 200, 422, 400, 400]);
    let drawn = house.client.post(format!("{}/grabs", house.base())).bearer_auth(house.test());
    let drawn = drawn.json(&json!({ "url": "https://example.com/" })).send().await?;
    assert_eq!(drawn.status(), 200);

    let page = olga.get("/operator").await?;
    for (result, counts) in [
        ("done", "2 1"),
        ("render_blocked", "1 0"),
        ("render_failed", "0 0"),
        ("ssrf_detected", "1 0"),
        ("internal_error", "0 0"),
    ] {
        assert_eq!(row(&page, &format!("<code>{result}</code>"))?, counts, "{result}");
    }
    assert_eq!(fact(&page, "Captures in 24 hours")?, "2");
    assert_eq!(fact(&page, "Failed in 24 hours")?, "2");
    assert!(page.body.contains("50.0 % of what ended"), "{}", page.body);
    // As the metrics say it, too.
    assert_eq!(row(&page, "<code>url</code>")?, "1");
    assert!(row(&page, "<code>address_own</code>")?.parse::<u32>()? >= 1);
    let metrics = house.client.get(format!("http://{}/metrics", house.service.metrics())).send().await?.text().await?;
    let count = row(&page, "<code>address_own</code>")?;
    assert!(metrics.contains(&format!("grabd_egress_refused_total{{reason=\"address_own\"}} {count}\n")), "{metrics}");
    let renderer = fact(&page, "Renderer")?;
    assert!(renderer.starts_with("Live "), "{renderer}");
    let browser = house.service.health().version.context("a browser")?;
    assert!(fact(&page, "Browser")?.starts_with(&browser), "{}", fact(&page, "Browser")?);
    assert!(fact(&page, "Self-test")?.starts_with("Passed · a page reaches 127."), "{}", fact(&page, "Self-test")?);
    let jail = house.service.browser().jail();
    assert!(fact(&page, "Jail")?.starts_with("Off") && jail != &grabd_browser::Jail::Jailed, "{jail:?}");
    assert_eq!(fact(&page, "Slots busy")?, "0 of 2");
    assert_eq!(fact(&page, "Waiting")?, "0");
    assert!(fact(&page, "Database")?.starts_with("sqlite, "), "{}", fact(&page, "Database")?);
    assert!(fact(&page, "Up for")?.contains(" s "), "{}", fact(&page, "Up for")?);

    // A team's own figures, and its failures: as much of them as is an operator's business.
    let team = format!("/operator/teams/{}", house.team.team);
    let page = olga.get(&team).await?;
    assert_eq!(fact(&page, "Credits")?, "18");
    assert_eq!(fact(&page, "Captures in 30 days")?, "2");
    assert_eq!(fact(&page, "Failed in 30 days")?, "2");
    let (live, test) = (house.live(), house.test());
    for (key, shown) in [(live, "sk_live_…"), (test, "sk_test_…")] {
        assert!(page.body.contains(&format!("{shown}{}", &key[key.len() - 4..])) && !page.body.contains(key));
    }
    let failures = olga.get("/operator/failures").await?;
    let name = renderer.trim_start_matches("Live ");
    for page in [&page, &failures] {
        assert!(page.body.contains("<code>render_blocked</code>") && page.body.contains("<code>ssrf_detected</code>"));
        assert!(page.body.contains(&format!("<bdi>{ALLOWED}</bdi>")), "{}", page.body);
        assert_eq!(page.body.matches(&format!("<td class=\"count\">1</td><td><code>{name}</code></td>")).count(), 2);
        for secret in ["of-the-customer", "status/403", "redirect", "/i/"] {
            assert!(!page.body.contains(secret), "{secret} in {}", page.body);
        }
    }
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_is_seen() -> Result<()> {
    let settings = [("accounts.sign_up", "true"), ("browser.slots", "1"), ("limits.async_queue", "3")];
    let house = Harness::start(9, &settings).await?;
    let mut olga = operator(&house).await?;
    let url = house.site.url("/tiny");
    let mut statuses = Vec::new();
    for _ in 0..4 {
        let request = house.client.post(format!("{}/grabs", house.base())).bearer_auth(house.live());
        let request = request.header("prefer", "respond-async").json(&json!({ "url": url, "delay_ms": 9000 }));
        statuses.push(request.send().await?.status().as_u16());
    }
    assert_eq!(statuses, [202, 202, 202, 429]);
    let page = olga.get("/operator").await?;
    assert_eq!(fact(&page, "Slots busy")?, "1 of 1");
    assert_eq!(fact(&page, "Waiting")?, "2");
    assert_eq!(fact(&page, "Waiting, synchronous")?, "0");
    assert_eq!(fact(&page, "Waiting, asynchronous")?, "2");
    assert_eq!(fact(&page, "In a browser")?, "1");
    assert!(page.body.contains("the longest for "), "{}", page.body);
    assert_eq!(
        row(&page, &format!("/operator/teams/{}\"><bdi>the test&#39;s</bdi></a>", house.team.team))?,
        "2 1 3 of 3 full"
    );
    let team = olga.get(&format!("/operator/teams/{}", house.team.team)).await?;
    assert_eq!((fact(&team, "Credits")?, fact(&team, "Held")?), ("6".to_owned(), "3".to_owned()));
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn to_everybody_else_there_is_nothing() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 0).await?;
    let mut olga = operator(&house).await?;
    let page = olga.get(&format!("/operator/teams/{team}")).await?;
    assert!(page.body.contains("<a href=\"/operator\" aria-current=\"true\">Operator</a>"), "{}", page.body);
    assert!(!ada.get("/apps").await?.body.contains("/operator"));
    let form = grant(&page, "25", "for nothing")?;
    let unknown = olga.get("/operator/nothing").await?;
    assert_eq!(unknown.status, 404);
    // Around it stands everybody's own navigation.
    let said = |answer: &Answer| answer.body.split("<main").nth(1).map(str::to_owned);
    assert!(said(&unknown).is_some_and(|said| said.contains("There is no such page")));

    // Once for those who are no operators, and once for one whose mark was taken: the form is whole and was sent before.
    for round in ["others", "unmade"] {
        let mut nobody = Visitor::new(&house);
        for (route, is_form) in ROUTES {
            let path = route.replace("{team}", &team.to_string());
            let mut answers = vec![nobody.get(&path).await?, send(&mut nobody, &path, &form).await?];
            answers.extend([ada.get(&path).await?, send(&mut ada, &path, &form).await?]);
            if round == "unmade" {
                answers.extend([olga.get(&path).await?, send(&mut olga, &path, &form).await?]);
            }
            for method in [Method::OPTIONS, Method::PUT, Method::DELETE] {
                let request = house.client.request(method, format!("{}{path}", house.service.public_url()));
                let response = request.send().await?;
                let (status, headers) = (response.status().as_u16(), response.headers().clone());
                assert!(!headers.contains_key("allow"), "{path}");
                answers.push(Answer { status, headers, body: response.text().await? });
            }
            for answer in answers {
                assert_eq!((answer.status, said(&answer)), (404, said(&unknown)), "{path} {is_form}");
            }
            if round == "others" && !is_form {
                assert_eq!(olga.get(&path).await?.status, 200, "{path}");
            }
        }
        appoint(&house, "olga@example.com", false).await?;
    }
    assert!(olga.is_signed_in().await?, "a person like others");
    assert!(!olga.get("/apps").await?.body.contains("/operator"));
    assert_eq!(house.service.store().lots(team).await?, []);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operator_is_in_no_team_by_it() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 0).await?;
    let mut olga = operator(&house).await?;
    for page in ["grabs", "capture"] {
        let path = format!("/teams/{team}/{page}");
        assert_eq!((ada.get(&path).await?.status, olga.get(&path).await?.status), (200, 404), "{path}");
    }
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_granted_arrives_once_and_is_logged() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let file = dir.path().join("log");
    tracing_subscriber::fmt().with_ansi(false).with_writer(Mutex::new(File::create(&file)?)).init();
    let house = open_house(&[]).await?;
    Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 0).await?;
    let mut olga = operator(&house).await?;
    let path = format!("/operator/teams/{team}");
    let page = olga.get(&path).await?;
    let store = house.service.store();
    let credits = async || Ok::<_, anyhow::Error>(store.lots(team).await?.iter().map(|lot| lot.remaining).sum::<u32>());
    let form = grant(&page, "25", "sorry for the outage")?;
    for _ in 0..2 {
        let answer = send(&mut olga, &format!("{path}/credits"), &form).await?;
        assert_eq!((answer.status, answer.location()), (303, &*format!("{path}?granted")), "{}", answer.body);
    }
    assert!(olga.get(&format!("{path}?granted")).await?.body.contains("The credits are granted."));
    assert_eq!(credits().await?, 25);
    let entries = house.service.store().ledger(team, None, 9).await?;
    let told: Vec<_> = entries.iter().map(|entry| (entry.amount, entry.reference.as_deref())).collect();
    assert_eq!(told, [(25, Some("ref:sorry for the outage"))]);

    // The same form with other credits is no second grant, and what is shown then is a new form.
    let mut changed = form.clone();
    changed[2].1 = "26".to_owned();
    let answer = send(&mut olga, &format!("{path}/credits"), &changed).await?;
    assert!(answer.status == 422 && answer.body.contains("was sent before"), "{} {}", answer.status, answer.body);
    let again = grant(&answer, "5", "and once more")?;
    assert_eq!(send(&mut olga, &format!("{path}/credits"), &again).await?.status, 303);
    assert_eq!(credits().await?, 30);

    for (credits, reason, said) in [
        ("0", "a reason", "Write a whole number from 1 to 1,000,000."),
        ("many", "a reason", "Write a whole number"),
        ("5", "", "Write a reason of 3 to 200 characters."),
    ] {
        let form = grant(&olga.get(&path).await?, credits, reason)?;
        let answer = send(&mut olga, &format!("{path}/credits"), &form).await?;
        assert!(answer.status == 422 && answer.body.contains(said), "{credits} {reason}: {}", answer.body);
    }
    let nowhere = format!("/operator/teams/{}/credits", Uuid::nil());
    let page = olga.get(&path).await?;
    assert_eq!(send(&mut olga, &nowhere, &grant(&page, "5", "a reason")?).await?.status, 404);

    // Nobody else's page sends it.
    let mut forged = grant(&page, "7", "forged")?;
    forged[0].1 = "forged".to_owned();
    assert_eq!(send(&mut olga, &format!("{path}/credits"), &forged).await?.status, 403);
    forged[0].1 = page.hidden("form_token")?;
    olga.headers.push(("sec-fetch-site", "cross-site".to_owned()));
    assert_eq!(send(&mut olga, &format!("{path}/credits"), &forged).await?.status, 403);
    olga.headers.clear();
    assert_eq!(credits().await?, 30);
    assert_eq!(olga.get(&format!("{path}/credits")).await?.location(), path);

    house.finish().await?;
    let log = std::fs::read_to_string(&file)?;
    let lines: Vec<&str> = log.lines().filter(|line| line.contains("an operator granted credits")).collect();
    let tells = |line: &str, credits: &str, reason: &str| {
        [credits, reason, "operator.email=olga@example.com", &*format!("team.id={team}")]
            .iter()
            .all(|part| line.contains(part))
    };
    assert_eq!(lines.len(), 2, "{log}");
    assert!(
        tells(lines[0], "credits=25", "sorry for the outage") && tells(lines[1], "credits=5", "and once more"),
        "{lines:?}"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn teams_are_found_and_paged() -> Result<()> {
    let house = open_house(&[]).await?;
    Visitor::with_account(&house, "ada@example.com").await?;
    let adas = team_of(&house, "ada@example.com", 7).await?;
    let mut olga = operator(&house).await?;
    for number in 0..30_u32 {
        let id = TeamId(Uuid::from_u128(u128::from(number) + 1));
        let name = format!("Club {number} <b>");
        house.service.store().create_team(NewTeam { id, name, now: Clock::system().now() }).await?;
    }
    let rows = |page: &Answer| page.body.matches("<tr><th scope=\"row\">").count();
    let older = |page: &Answer| {
        let link = page.body.split("rel=\"next\" href=\"").nth(1)?;
        Some(link.split('"').next()?.replace("&#38;", "&"))
    };
    let first = olga.get("/operator/teams").await?;
    // With the test's own, Ada's, and Olga's.
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
            assert_eq!(row(&found, "<bdi>ada</bdi></a>")?.split(" 2").next(), Some("7 0 0 1"), "{}", found.body);
        }
    }
    for path in ["/operator/teams?after=x", "/operator/failures?after=1.x"] {
        assert_eq!(olga.get(path).await?.status, 400, "{path}");
    }
    for path in ["/operator/teams/x", "/operator/teams/01993e1c-7b1a-7000-8000-0123456789ab"] {
        assert_eq!(olga.get(path).await?.status, 404, "{path}");
    }
    house.finish().await
}
