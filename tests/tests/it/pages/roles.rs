//! Roles: what each of them may open, submit and connect in a team.

use anyhow::{Context, Result, ensure};
use grabd_tests::harness::TestApp;

use super::device_codes::{begin, enter, poll};
use super::team::{placeholder, team_of};
use super::users::{create_key, first_team, ids, join, join_as, send, shown_key, users};
use super::visitor::{Visitor, authorization_path, exchange, register, start_app};
use super::webhooks::create_webhook;

/// A method, a route, and the first letters of the roles that may use it: owner, member, viewer, billing.
type Row = (&'static str, &'static str, &'static str);

/// All routes of a team.
const ROUTES: [Row; 103] = [
    ("GET", "/teams/{team}", "omvb"),
    ("GET", "/teams/{team}/people", "omvb"),
    ("GET", "/teams/{team}/leave", "omvb"),
    ("POST", "/teams/{team}/leave", "omvb"),
    ("GET", "/teams/{team}/grabs", "omv"),
    ("GET", "/teams/{team}/grabs/events", "omv"),
    ("GET", "/teams/{team}/grabs/new", "omv"),
    ("GET", "/teams/{team}/grabs/download", "omv"),
    ("GET", "/teams/{team}/grabs/compare", "omv"),
    ("GET", "/teams/{team}/grabs/{grab}", "omv"),
    ("GET", "/teams/{team}/grabs/{grab}/events", "omv"),
    ("GET", "/teams/{team}/grabs/{grab}/thumbnail", "omv"),
    ("GET", "/teams/{team}/requests", "omv"),
    ("GET", "/teams/{team}/requests/{request}", "omv"),
    ("GET", "/teams/{team}/capture", "om"),
    ("POST", "/teams/{team}/capture", "om"),
    ("POST", "/teams/{team}/capture/code", "om"),
    ("POST", "/teams/{team}/first-steps", "om"),
    ("GET", "/teams/{team}/grabs/delete", "om"),
    ("POST", "/teams/{team}/grabs/delete", "om"),
    ("GET", "/teams/{team}/grabs/{grab}/delete", "om"),
    ("POST", "/teams/{team}/grabs/{grab}/delete", "om"),
    ("POST", "/teams/{team}/grabs/{grab}/retake", "om"),
    ("GET", "/teams/{team}/billing", "omvb"),
    ("GET", "/teams/{team}/billing/ledger", "omvb"),
    ("GET", "/teams/{team}/billing/ledger.csv", "omvb"),
    ("GET", "/teams/{team}/billing/paid", "omvb"),
    ("POST", "/teams/{team}/billing/checkout", "omb"),
    ("POST", "/teams/{team}/billing/alert", "ob"),
    ("POST", "/teams/{team}/billing/alert/recipients", "ob"),
    ("GET", "/teams/{team}/secrets", "om"),
    ("GET", "/teams/{team}/keys", "om"),
    ("POST", "/teams/{team}/keys", "om"),
    ("GET", "/teams/{team}/keys/{key}/link", "om"),
    ("POST", "/teams/{team}/keys/{key}/link", "om"),
    ("GET", "/teams/{team}/keys/{key}/link/replace", "om"),
    ("POST", "/teams/{team}/keys/{key}/link/replace", "om"),
    ("GET", "/teams/{team}/keys/{key}/revoke", "om"),
    ("POST", "/teams/{team}/keys/{key}/revoke", "om"),
    ("GET", "/teams/{team}/monitors", "omv"),
    ("GET", "/teams/{team}/monitors/new", "om"),
    ("POST", "/teams/{team}/monitors/new", "om"),
    ("GET", "/teams/{team}/monitors/{monitor}", "omv"),
    ("GET", "/teams/{team}/monitors/{monitor}/change", "om"),
    ("POST", "/teams/{team}/monitors/{monitor}/change", "om"),
    ("POST", "/teams/{team}/monitors/{monitor}/pause", "om"),
    ("POST", "/teams/{team}/monitors/{monitor}/resume", "om"),
    ("POST", "/teams/{team}/monitors/{monitor}/accept", "om"),
    ("POST", "/teams/{team}/monitors/{monitor}/feed", "om"),
    ("POST", "/teams/{team}/monitors/{monitor}/feed/off", "om"),
    ("GET", "/teams/{team}/monitors/{monitor}/history.zip", "omv"),
    ("GET", "/teams/{team}/monitors/{monitor}/delete", "om"),
    ("POST", "/teams/{team}/monitors/{monitor}/delete", "om"),
    ("GET", "/teams/{team}/sites", "omv"),
    ("GET", "/teams/{team}/sites/new", "om"),
    ("POST", "/teams/{team}/sites/new", "om"),
    ("GET", "/teams/{team}/sites/{site}", "omv"),
    ("GET", "/teams/{team}/sites/{site}/events", "omv"),
    ("GET", "/teams/{team}/sites/{site}/download", "omv"),
    ("GET", "/teams/{team}/sites/{site}/cancel", "om"),
    ("POST", "/teams/{team}/sites/{site}/cancel", "om"),
    ("GET", "/teams/{team}/sites/{site}/delete", "om"),
    ("POST", "/teams/{team}/sites/{site}/delete", "om"),
    ("GET", "/teams/{team}/webhooks", "om"),
    ("GET", "/teams/{team}/webhooks/new", "om"),
    ("POST", "/teams/{team}/webhooks/new", "om"),
    ("GET", "/teams/{team}/webhooks/{webhook}", "om"),
    ("GET", "/teams/{team}/webhooks/{webhook}/change", "om"),
    ("POST", "/teams/{team}/webhooks/{webhook}/change", "om"),
    ("GET", "/teams/{team}/webhooks/{webhook}/secret", "om"),
    ("POST", "/teams/{team}/webhooks/{webhook}/secret", "om"),
    ("GET", "/teams/{team}/webhooks/{webhook}/off", "om"),
    ("POST", "/teams/{team}/webhooks/{webhook}/off", "om"),
    ("POST", "/teams/{team}/webhooks/{webhook}/on", "om"),
    ("GET", "/teams/{team}/webhooks/{webhook}/delete", "om"),
    ("POST", "/teams/{team}/webhooks/{webhook}/delete", "om"),
    ("POST", "/teams/{team}/webhooks/{webhook}/keep", "om"),
    ("POST", "/teams/{team}/webhooks/{webhook}/test", "om"),
    ("GET", "/teams/{team}/webhooks/{webhook}/deliveries/{delivery}", "om"),
    ("POST", "/teams/{team}/webhooks/{webhook}/deliveries/{delivery}/again", "om"),
    ("GET", "/teams/{team}/proxies", "o"),
    ("GET", "/teams/{team}/proxies/new", "o"),
    ("POST", "/teams/{team}/proxies/new", "o"),
    ("GET", "/teams/{team}/proxies/{proxy}/change", "o"),
    ("POST", "/teams/{team}/proxies/{proxy}/change", "o"),
    ("GET", "/teams/{team}/proxies/{proxy}/login", "o"),
    ("POST", "/teams/{team}/proxies/{proxy}/login", "o"),
    ("GET", "/teams/{team}/proxies/{proxy}/delete", "o"),
    ("POST", "/teams/{team}/proxies/{proxy}/delete", "o"),
    ("GET", "/teams/{team}/settings", "o"),
    ("GET", "/teams/{team}/name", "o"),
    ("POST", "/teams/{team}/name", "o"),
    ("GET", "/teams/{team}/delete", "o"),
    ("POST", "/teams/{team}/delete", "o"),
    ("GET", "/teams/{team}/export", "o"),
    ("GET", "/teams/{team}/audit", "o"),
    ("GET", "/teams/{team}/audit.csv", "o"),
    ("GET", "/teams/{team}/invitations", "o"),
    ("POST", "/teams/{team}/invitations", "o"),
    ("POST", "/teams/{team}/invitations/{invitation}/withdraw", "o"),
    ("POST", "/teams/{team}/members/{user}/role", "o"),
    ("GET", "/teams/{team}/members/{user}/remove", "o"),
    ("POST", "/teams/{team}/members/{user}/remove", "o"),
];

/// An id that nothing has. Whoever may use a route with it gets 404, and everybody else 403.
const UNKNOWN: &str = "01993e1c-7b1a-7000-8000-0123456789ab";

/// Fields that no form accepts, so that allowed forms change nothing.
const FIELDS: [(&str, &str); 12] = [
    ("once", "x"),
    ("email", "no address"),
    ("role", "member"),
    ("name", ""),
    ("password", "x"),
    ("environment", "test"),
    ("scopes", "read"),
    ("alert_below", "x"),
    ("package", "unknown"),
    ("url", ""),
    ("events", "*"),
    ("recipient", "x"),
];

/// Ada's team with a member of each role, signed in: ada owns it, bob is a member, vera a viewer, and bill has the role billing.
struct Team<'a> {
    /// The path of the team.
    path: String,
    people: [(&'static str, Visitor<'a>); 4],
}

impl<'a> Team<'a> {
    async fn start(app: &'a TestApp) -> Result<Self> {
        let mut ada = Visitor::with_account(app, "ada@example.com").await?;
        let path = first_team(&mut ada).await?;
        let mut guests = Vec::new();
        for (name, role) in [("bob", "member"), ("vera", "viewer"), ("bill", "billing")] {
            let email = format!("{name}@example.com");
            let mut guest = Visitor::with_account(app, &email).await?;
            join_as(app, &mut ada, &path, &mut guest, &email, role).await?;
            guests.push(guest);
        }
        let [bob, vera, bill] = <[Visitor<'a>; 3]>::try_from(guests).ok().context("three guests")?;
        Ok(Self { path, people: [("o", ada), ("m", bob), ("v", vera), ("b", bill)] })
    }

    fn person(&mut self, role: &str) -> Result<&mut Visitor<'a>> {
        let person = self.people.iter_mut().find(|(own, _)| *own == role);
        Ok(&mut person.context("a person with this role")?.1)
    }

    /// The id of a member, as the page of the members has it for its owner.
    async fn id(&mut self, email: &str) -> Result<String> {
        let page = users(&self.path);
        let listed = self.person("o")?.get(&page).await?;
        let at = ids(&listed, "id=\"person-");
        let is_theirs = |id: &&String| listed.body.contains(&format!("id=\"person-{id}\">{email} "));
        at.iter().find(is_theirs).cloned().with_context(|| format!("{email} in {}", listed.body))
    }

    /// Has ada change the role of a member.
    async fn set_role(&mut self, email: &str, role: &str) -> Result<()> {
        let (id, page) = (self.id(email).await?, users(&self.path));
        let path = format!("{}/members/{id}/role", self.path);
        let answer = send(self.person("o")?, &page, &path, &[("role", role)]).await?;
        ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
        Ok(())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn table_of_routes_is_complete() -> Result<()> {
    let app = start_app(&[]).await?;
    let listed = grabd_web::methods_and_paths(app.service.core().clone());
    let of_teams = listed.iter().filter(|(_, path)| path.starts_with("/teams/{team}"));
    for (method, path) in of_teams.clone() {
        let is_known = ROUTES.iter().any(|(known, route, _)| known == method && *route == path.as_str());
        assert!(is_known, "{method} {path} is not in the table");
    }
    assert_eq!(of_teams.count(), ROUTES.len(), "the table has routes that do not exist");
    // A team is named nowhere else, but in the pages of operators.
    for (method, path) in &listed {
        let is_of_operators = path.starts_with("/operator");
        assert!(path.starts_with("/teams/{team}") || is_of_operators || !path.contains("{team}"), "{method} {path}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_use_exactly_its_routes() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut team = Team::start(&app).await?;
    let id = team_of(&app, "ada@example.com", 0).await?;
    let path = team.path.clone();
    let ada = team.person("o")?;
    let page = placeholder(ada, id, "https://secret.example/").await?;
    let grab = page.rsplit('/').next().context("an id")?.to_owned();
    let key = shown_key(&create_key(ada, &path, "A key", "test").await?)?;
    let fields = [("url", "https://secret.example/hook"), ("events", "*"), ("environment", "test")];
    let (webhook, _) = create_webhook(team.person("m")?, id, &fields).await?;

    for (role, person) in &mut team.people {
        let form_token = person.get("/apps").await?.hidden_field("form_token")?;
        let form = [&[("form_token", &*form_token)], &FIELDS[..]].concat();
        for (method, route, allowed) in ROUTES {
            if (method, route) == ("POST", "/teams/{team}/leave") {
                continue;
            }
            // Forms are submitted for a capture that does not exist, so that none is deleted.
            let of_grab = if method == "GET" { &*grab } else { UNKNOWN };
            let parameters = [
                "{key}",
                "{monitor}",
                "{proxy}",
                "{site}",
                "{webhook}",
                "{delivery}",
                "{request}",
                "{invitation}",
                "{user}",
            ];
            let called = route.replace("/teams/{team}", &path).replace("{grab}", of_grab);
            let called = parameters.into_iter().fold(called, |called, id| called.replace(id, UNKNOWN));
            let answer = match method {
                "GET" => person.get(&called).await?,
                _ => person.post(&called, &form).await?,
            };
            let what = format!("{role}: {method} {called}: {} {}", answer.status, answer.body);
            if allowed.contains(*role) {
                assert!(answer.status != 403 && answer.status != 500 && answer.status != 405, "{what}");
                assert!(!called.contains(UNKNOWN) || answer.status == 404, "{what}");
            } else {
                assert_eq!(answer.status, 403, "{what}");
                assert!(answer.body.contains("Your role does not allow this"), "{what}");
                assert!(answer.body.contains("<dt>Owners</dt><dd>ada@example.com</dd>"), "{what}");
                assert!(!answer.body.contains("secret.example") && !answer.body.contains("A key"), "{what}");
            }
        }
    }

    // Nothing was changed.
    let ada = team.person("o")?;
    assert_eq!(app.get("/usage", &key).await?.0, 200);
    assert!(ada.get(&page).await?.body.contains("/i/"), "the image exists");
    assert_eq!(ada.get(&webhook).await?.status, 200);
    // The URL of the webhook whose secret bob has seen is only for those who may see webhooks.
    let leave = format!("{path}/leave");
    for (role, is_shown) in [("viewer", false), ("member", true)] {
        team.set_role("bob@example.com", role).await?;
        let asked = team.person("m")?.get(&leave).await?.body;
        for words in ["secret.example", "Below are those", "Secrets that stay in use"] {
            assert_eq!(asked.contains(words), is_shown, "{role}: {words} {asked}");
        }
    }
    // Everybody may leave.
    for role in ["m", "v", "b"] {
        let person = team.person(role)?;
        assert_eq!(send(person, &leave, &leave, &[]).await?.location(), "/teams?left", "{role}");
        assert_eq!(person.get(&users(&path)).await?.status, 404, "{role}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_offer_only_what_the_role_allows() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut team = Team::start(&app).await?;
    let id = team_of(&app, "ada@example.com", 0).await?;
    let path = team.path.clone();
    let grab = placeholder(team.person("o")?, id, "https://example.com/").await?;
    let all =
        ["grabs", "capture", "monitors", "sites", "keys", "webhooks", "requests", "billing", "people", "settings"];
    for (role, expected) in [
        ("o", &all[..]),
        ("m", &all[..9]),
        ("v", &["grabs", "monitors", "sites", "requests", "billing", "people"]),
        ("b", &["billing", "people"]),
    ] {
        let page = team.person(role)?.get(&users(&path)).await?.body;
        for tab in all {
            let link = format!("href=\"{path}/{tab}\"");
            assert_eq!(page.contains(&link), expected.contains(&tab), "{role}: {link} {page}");
        }
        assert_eq!(page.contains("Invite a member"), role == "o", "{role}: {page}");
        assert_eq!(page.contains("Change role"), role == "o", "{role}: {page}");
    }
    for (role, may_capture) in [("o", true), ("m", true), ("v", false)] {
        let person = team.person(role)?;
        let (list, one) = (person.get(&format!("{path}/grabs")).await?.body, person.get(&grab).await?.body);
        for (page, words) in [
            (&list, "New capture"),
            (&list, "Delete…"),
            (&one, "Edit and retake"),
            (&one, "Retake and compare"),
            (&one, "Watch this page…"),
            (&one, "Delete…"),
        ] {
            assert_eq!(page.contains(words), may_capture, "{role}: {words} {page}");
        }
        assert!(list.contains("Download") && one.contains("Download"), "{role}");
    }
    for (role, may_buy, may_set_alert) in
        [("o", true, true), ("m", true, false), ("v", false, false), ("b", true, true)]
    {
        let page = team.person(role)?.get(&format!("{path}/billing")).await?.body;
        assert_eq!(page.contains("id=\"buy\""), may_buy, "{role}: {page}");
        assert_eq!(page.contains("billing/alert\""), may_set_alert, "{role}: {page}");
    }
    // The list of teams leads to a page that the role may open.
    for (role, page) in [("v", "grabs"), ("b", "billing")] {
        let teams = team.person(role)?.get("/teams").await?.body;
        assert!(teams.contains(&format!("<a href=\"{path}/{page}\">")), "{role}: {teams}");
        assert!(!teams.contains(&format!("href=\"{path}/keys\"")), "{role}: {teams}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_without_apps_get_no_tokens() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut team = Team::start(&app).await?;
    let place = format!("{}/test", team.path.strip_prefix("/teams/").context("a team")?);
    for (role, may_connect) in [("o", true), ("m", true), ("v", false), ("b", false)] {
        let person = team.person(role)?;
        // In a browser.
        let request = authorization_path(&register(&app).await?, &[])?;
        let page = person.get(&request).await?;
        assert_eq!(page.body.contains(&format!("value=\"{place}\"")), may_connect, "{role}: {}", page.body);
        let answer = person.decide(&page, "allow", &[("place", &place)]).await?;
        // On another device, as `grab login` does.
        let client = register(&app).await?;
        let begun = begin(&app, &client, "grabs manage").await?;
        let consent = enter(person, begun["user_code"].as_str().context("a code")?).await?;
        assert_eq!(consent.body.contains(&format!("value=\"{place}\"")), may_connect, "{role}: {}", consent.body);
        let answer_to_device = person.decide(&consent, "allow", &[("place", &place)]).await?;
        let polled = poll(&app, &client, &begun).await?;
        if may_connect {
            assert!(answer.redirect_param("code").is_ok(), "{role}: {}", answer.body);
            let access = polled["access_token"].as_str().with_context(|| polled.to_string())?;
            assert_eq!(app.get("/usage", access).await?.0, 200, "{role}");
        } else {
            for answer in [&answer, &answer_to_device] {
                assert_eq!((answer.status, answer.location()), (400, ""), "{role}: {}", answer.body);
                let words = "Your role in that team does not allow you to connect apps.";
                assert!(answer.body.contains(words), "{role}: {}", answer.body);
            }
            assert_eq!(polled["error"], "authorization_pending", "{role}: {polled}");
        }
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn change_of_a_role_applies_at_once_and_ends_apps() -> Result<()> {
    let app = start_app(&[]).await?;
    for (role, readable) in [("viewer", 200), ("billing", 403)] {
        let owner = format!("ada-{role}@example.com");
        let mut ada = Visitor::with_account(&app, &owner).await?;
        let path = first_team(&mut ada).await?;
        let email = format!("bob-{role}@example.com");
        let mut bob = Visitor::with_account(&app, &email).await?;
        join(&app, &mut ada, &path, &mut bob, &email).await?;
        let key = shown_key(&create_key(&mut bob, &path, "His key", "test").await?)?;
        let place = format!("{}/test", path.strip_prefix("/teams/").context("a team")?);
        let request = authorization_path(&register(&app).await?, &[])?;
        let page = bob.get(&request).await?;
        let first = bob.decide(&page, "allow", &[("place", &place)]).await?.redirect_param("code")?;
        let page = bob.get(&request).await?;
        let unused = bob.decide(&page, "allow", &[("place", &place)]).await?.redirect_param("code")?;
        let tokens = exchange(&app, &request, &first).await?;
        let access = tokens["access_token"].as_str().context("an access token")?;
        let refresh = tokens["refresh_token"].as_str().context("a refresh token")?;
        assert_eq!(app.get("/usage", access).await?.0, 200);
        assert_eq!(bob.get(&format!("{path}/keys")).await?.status, 200);

        let listed = ada.get(&users(&path)).await?;
        let id = ids(&listed, "id=\"remove-").pop().context("a member")?;
        let change = format!("{path}/members/{id}/role");
        let changed = send(&mut ada, &users(&path), &change, &[("role", role)]).await?;
        assert_eq!((changed.status, changed.location()), (303, &*format!("{path}/secrets?role")), "{}", changed.body);
        // The key stays, and the pages say that somebody without access knows it.
        let secrets = ada.get(changed.location()).await?.body;
        assert!(secrets.contains("Role changed.") && secrets.contains("His key"), "{secrets}");
        assert!(ada.get(&users(&path)).await?.body.contains("People without access know a secret"));
        assert_eq!(app.get("/usage", &key).await?.0, 200, "a key belongs to the team");
        // The open session, the tokens and the code that was not used yet.
        assert_eq!(bob.get(&format!("{path}/keys")).await?.status, 403, "{role}");
        assert_eq!(bob.get(&format!("{path}/grabs")).await?.status, readable, "{role}");
        assert_eq!(app.get("/usage", access).await?.0, 401, "{role}");
        let client = reqwest::Url::parse(&format!("http://request.invalid{request}"))?;
        let client = client.query_pairs().find(|(name, _)| name == "client_id").map(|(_, id)| id.into_owned());
        let client = client.context("a client")?;
        let form = [("grant_type", "refresh_token"), ("refresh_token", refresh), ("client_id", &*client)];
        let refreshed = Visitor::new(&app).post("/v1/oauth/token", &form).await?;
        assert_eq!(refreshed.json()?["error"], "invalid_grant", "{role}");
        assert!(exchange(&app, &request, &unused).await.is_err(), "{role}");

        // With the former role, they are not valid again.
        assert_eq!(send(&mut ada, &users(&path), &change, &[("role", "member")]).await?.status, 303);
        assert_eq!(app.get("/usage", access).await?.0, 401, "{role}");
        assert_eq!(bob.get(&format!("{path}/keys")).await?.status, 200, "{role}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_are_validated_and_the_last_owner_keeps_the_role() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut team = Team::start(&app).await?;
    let (path, page) = (team.path.clone(), users(&team.path));
    let (adas, veras) = (team.id("ada@example.com").await?, team.id("vera@example.com").await?);
    let ada = team.person("o")?;
    for role in ["member", "viewer", "billing"] {
        let answer = send(ada, &page, &format!("{path}/members/{adas}/role"), &[("role", role)]).await?;
        assert_eq!(answer.status, 409, "{role}: {}", answer.body);
    }
    for role in ["", "Viewer", "admin"] {
        let invited = [("email", "x@example.com"), ("role", role)];
        for (form, fields) in [
            (format!("{path}/members/{veras}/role"), &[("role", role)][..]),
            (format!("{path}/invitations"), &invited[..]),
        ] {
            let answer = send(ada, &page, &form, fields).await?;
            assert_eq!(answer.status, 400, "{form} {role}: {}", answer.body);
            assert!(answer.body.contains("owner, member, viewer, billing"), "{}", answer.body);
        }
    }
    // The audit trail says which role was given.
    team.set_role("vera@example.com", "billing").await?;
    let trail = team.person("o")?.get(&format!("{path}/audit")).await?.body;
    assert!(trail.contains("a billing member of"), "{trail}");
    assert_eq!(team.person("v")?.get(&format!("{path}/grabs")).await?.status, 403);
    app.finish().await
}
