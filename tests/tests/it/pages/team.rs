//! What is below `/teams/{team}` is for those who are in the team, and for nobody else.

use anyhow::{Context, Result};
use grabd_domain::accounts::Email;
use grabd_domain::ids::TeamId;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_tests::harness::Harness;

use super::visitor::{Answer, Visitor, open_house};
use super::webhooks::{make, press};

/// Every page and part of a team, and whether it takes forms. `{grab}` is a grab of the team, `{webhook}` one of its webhooks,
/// and `{delivery}` a message that was sent to that.
const ROUTES: [(&str, bool); 30] = [
    ("billing", false),
    ("billing/ledger", false),
    ("billing/ledger.csv", false),
    ("billing/paid", false),
    ("billing/checkout", true),
    ("capture", false),
    ("capture", true),
    ("grabs", false),
    ("grabs/events?grab={grab}", false),
    ("grabs/{grab}", false),
    ("grabs/{grab}/events", false),
    ("grabs/{grab}/thumbnail", false),
    ("grabs/{grab}/delete", false),
    ("grabs/{grab}/delete", true),
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
    ("webhooks/{webhook}/delete", false),
    ("webhooks/{webhook}/delete", true),
    ("webhooks/{webhook}/test", true),
    ("webhooks/{webhook}/deliveries/{delivery}", false),
    ("webhooks/{webhook}/deliveries/{delivery}/again", true),
];

/// The first team of somebody, with so many prepaid credits more.
pub(super) async fn team_of(house: &Harness, email: &str, credits: u32) -> Result<TeamId> {
    let store = house.service.store();
    let person = store.find_person(&Email::parse(email)?).await?.context("nobody has this address")?;
    let (team, ..) = store.list_memberships(person.id).await?.into_iter().next().context("they are in no team")?;
    if credits > 0 {
        accounts::grant_prepaid(store, team, credits, &format!("for {email}"), Clock::system().now()).await?;
    }
    Ok(team)
}

/// Sends the capture form of a team with these fields on top of its own.
pub(super) async fn capture(visitor: &mut Visitor<'_>, team: TeamId, fields: &[(&str, &str)]) -> Result<Answer> {
    let path = format!("/teams/{team}/capture");
    let form = visitor.get(&path).await?;
    let (form_token, once) = (form.hidden("form_token")?, form.hidden("once")?);
    let own = [("form_token", &*form_token), ("once", &*once)];
    visitor.post(&path, &[&own, fields].concat()).await
}

/// Captures a placeholder; the path of its page.
pub(super) async fn placeholder(visitor: &mut Visitor<'_>, team: TeamId, url: &str) -> Result<String> {
    let answer = capture(visitor, team, &[("url", url), ("environment", "test")]).await?;
    anyhow::ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
    Ok(answer.location().to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_not_in_a_team_finds_nothing_of_it() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let mut eve = Visitor::with_account(&house, "eve@example.com").await?;
    let (hers, eves) = (team_of(&house, "ada@example.com", 0).await?, team_of(&house, "eve@example.com", 0).await?);
    let page = placeholder(&mut ada, hers, "https://secret.example/").await?;
    let last = |path: &str| path.rsplit('/').next().unwrap_or_default().to_owned();
    let grab = last(&page);
    let fields = [("url", "https://secret.example/"), ("events", "*"), ("environment", "test")];
    let (webhook_page, _) = make(&mut ada, hers, &fields).await?;
    let sent = press(&mut ada, &format!("{webhook_page}/test")).await?;
    let (webhook, delivery) = (last(&webhook_page), last(sent.location().trim_end_matches("?sent")));
    let unknown = "01993e1c-7b1a-7000-8000-0123456789ab".to_owned();
    let form_token = eve.get(&format!("/teams/{eves}/capture")).await?.hidden("form_token")?;
    let form = [
        ("form_token", &*form_token),
        ("once", "x"),
        ("url", "https://example.com/"),
        ("environment", "test"),
        ("events", "*"),
    ];

    for (route, is_form) in ROUTES {
        // With the ids of what is hers, or with another one.
        let path = |team: &str, other: Option<&str>| {
            let own = [("{grab}", &grab), ("{webhook}", &webhook), ("{delivery}", &delivery)];
            let filled = |path: String, (name, id): (&str, &String)| path.replace(name, other.unwrap_or(id));
            format!("/teams/{team}/{}", own.into_iter().fold(route.to_owned(), filled))
        };
        let mut foreign = vec![path(&hers.to_string(), None), path(&unknown, None), path("x", None)];
        if route.contains('{') {
            // In a team of one's own, what is somebody else's is as unknown as what nobody has.
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
        assert!(bodies.len() <= 2, "{route}: what is foreign can be told from what is unknown");

        // Nobody who is signed out gets further, whether it is there or not.
        let mut nobody = Visitor::new(&house);
        let path = path(&hers.to_string(), None);
        let answer = if is_form { nobody.post(&path, &form).await? } else { nobody.get(&path).await? };
        let expected = if is_form || route.contains("events") || route.contains("thumbnail") { 403 } else { 303 };
        assert_eq!(answer.status, expected, "{path}");
        assert!(expected == 403 || answer.location().starts_with("/sign-in?next=%2Fteams%2F"), "{path}");

        // The same is there for who is in the team: the table does not only ask for what is nowhere.
        if !is_form {
            let answer = ada.get(&path).await?;
            assert_eq!(answer.status, 200, "{path}");
        }
    }
    let cursor = eve.get(&format!("/teams/{eves}/grabs?starting_after={grab}")).await?;
    assert_eq!(cursor.status, 400);
    assert!(ada.get(&page).await?.body.contains("/i/"), "the picture is still there");
    let webhook = ada.get(&webhook_page).await?.body;
    assert!(webhook.contains("Send a test") && webhook.matches("?sent").count() == 0, "{webhook}");
    assert_eq!(webhook.matches("webhook.test").count(), 1, "{webhook}");
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_put_out_of_a_team_is_out_at_once() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = team_of(&house, "ada@example.com", 0).await?;
    let page = placeholder(&mut ada, team, "https://example.com/").await?;
    assert_eq!(ada.get("/grabs").await?.location(), format!("/teams/{team}/grabs"));
    assert_eq!(ada.get(&page).await?.status, 200);
    let person = house.service.store().find_person(&Email::parse("ada@example.com")?).await?.context("ada")?;
    assert!(house.service.store().remove_member(team, person.id).await?);
    for path in [page.clone(), format!("{page}/thumbnail"), format!("/teams/{team}/capture")] {
        assert_eq!(ada.get(&path).await?.status, 404, "{path}");
    }
    let home = ada.get("/grabs").await?;
    assert!(home.status == 404 && home.body.contains("You are in no team"), "{}", home.body);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn who_is_in_two_teams_goes_from_a_page_of_one_to_that_of_the_other() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let first = team_of(&house, "ada@example.com", 0).await?;
    let form_token = ada.get("/apps").await?.hidden("form_token")?;
    let founded = ada.post("/teams", &[("form_token", &form_token), ("name", "The <other> ones")]).await?;
    let second = founded.location().split('/').nth(2).context("a team")?.to_owned();
    let fields = [("url", "https://hooks.example.com/"), ("events", "*"), ("environment", "test")];
    let (webhook, _) = make(&mut ada, first, &fields).await?;
    let grab = placeholder(&mut ada, first, "https://example.com/").await?;
    // A page that every team has leads to the same one, any other to the list that it belongs to.
    for (here, there) in [
        (format!("/teams/{first}/grabs"), "grabs"),
        (format!("/teams/{first}/capture"), "capture"),
        (format!("/teams/{first}/webhooks"), "webhooks"),
        (format!("/teams/{first}/keys"), "keys"),
        (grab.clone(), "grabs"),
        (format!("{grab}/delete"), "grabs"),
        (webhook.clone(), "webhooks"),
    ] {
        let page = ada.get(&here).await?;
        let target = format!("/teams/{second}/{there}");
        let link = format!("<a href=\"{target}\"><bdi>The &#60;other&#62; ones</bdi></a>");
        assert_eq!(page.body.matches("class=\"others\"").count(), 1, "{here}");
        assert!(page.body.contains(&link), "{here}: {}", page.body);
        let other = ada.get(&target).await?;
        assert_eq!(other.status, 200, "{target}");
        let current = format!("<a href=\"{target}\" aria-current=\"page\">");
        assert!(other.body.contains(&current), "{target}: {}", other.body);
        assert!(other.body.contains(&format!("<a href=\"/teams/{first}/{there}\"><bdi>")), "{target}");
    }
    // Who is in one team has no other to go to.
    let mut eve = Visitor::with_account(&house, "eve@example.com").await?;
    let hers = team_of(&house, "eve@example.com", 0).await?;
    assert!(!eve.get(&format!("/teams/{hers}/grabs")).await?.body.contains("class=\"others\""));
    house.finish().await
}
