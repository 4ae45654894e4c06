//! Keys, teams and accounts in the hands of people, and out of the hands of everybody else.

use anyhow::{Context, Result, ensure};
use grabd_tests::harness::Harness;

use super::visitor::{Answer, PASSWORD, Visitor, open_house, register, request_of};

/// The routes as the crate of the pages has them, so that none is forgotten below.
const ROUTES: &str = include_str!("../../../../crates/web/src/lib.rs");

/// The path of the team that somebody signed up with.
pub(super) async fn first_team(visitor: &mut Visitor<'_>) -> Result<String> {
    let keys = visitor.get("/keys").await?.location().to_owned();
    keys.strip_suffix("/keys").map(str::to_owned).with_context(|| keys.clone())
}

/// The path of the page with the people of a team.
fn people(team: &str) -> String {
    format!("{team}/people")
}

/// Sends a form of a page to a path.
async fn send(visitor: &mut Visitor<'_>, page: &str, path: &str, fields: &[(&str, &str)]) -> Result<Answer> {
    let form_token = visitor.get(page).await?.hidden("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

pub(super) async fn invite(visitor: &mut Visitor<'_>, team: &str, email: &str, role: &str) -> Result<Answer> {
    send(visitor, &people(team), &format!("{team}/invitations"), &[("email", email), ("role", role)]).await
}

/// Has somebody with an account join a team of a house without mail.
async fn join(
    house: &Harness,
    owner: &mut Visitor<'_>,
    team: &str,
    guest: &mut Visitor<'_>,
    email: &str,
) -> Result<()> {
    let link = shown_link(house, &invite(owner, team, email, "member").await?)?;
    let token = link.split_once("token=").context("a token")?.1.to_owned();
    let answer = send(guest, &link, "/invitation", &[("token", &token)]).await?;
    ensure!((answer.status, answer.location()) == (303, &*format!("{team}/people?joined")), "{}", answer.body);
    Ok(())
}

/// The link that an owner is shown, without its origin.
fn shown_link(house: &Harness, page: &Answer) -> Result<String> {
    let after = format!("value=\"{}", house.service.public_url());
    let link = page.body.split(&after).nth(1).and_then(|rest| rest.split('"').next());
    Ok(link.with_context(|| format!("no link in {}", page.body))?.replace("&#38;", "&"))
}

/// The ids that stand in a page's addresses after this.
fn ids(page: &Answer, after: &str) -> Vec<String> {
    let mut ids: Vec<String> =
        page.body.split(after).skip(1).filter_map(|rest| rest.get(..36)).map(str::to_owned).collect();
    ids.dedup();
    ids
}

async fn make_key(visitor: &mut Visitor<'_>, team: &str, name: &str, environment: &str) -> Result<Answer> {
    let path = format!("{team}/keys");
    send(visitor, &path, &path, &[("name", name), ("environment", environment)]).await
}

fn shown_key(page: &Answer) -> Result<String> {
    let key = page.body.split("value=\"sk_").nth(1).and_then(|rest| rest.split('"').next());
    Ok(format!("sk_{}", key.with_context(|| format!("no key in {}", page.body))?))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_works_and_is_revoked() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    for (name, environment, complaint) in
        [("", "test", "1 to 60 characters"), ("A key", "", "Choose what"), (&*"x".repeat(61), "live", "1 to 60")]
    {
        let answer = make_key(&mut ada, &team, name, environment).await?;
        assert_eq!(answer.status, 422, "{name}");
        assert!(answer.body.contains(complaint), "{}", answer.body);
    }
    let made = make_key(&mut ada, &team, "<b>build</b> server", "test").await?;
    assert_eq!((made.status, made.header("cache-control")), (200, "no-store"));
    assert!(made.header("content-security-policy").contains("; script-src 'self';"));
    assert!(made.body.contains("&#60;b&#62;build&#60;/b&#62; server"), "{}", made.body);
    let key = shown_key(&made)?;
    assert_eq!(house.get("/usage", &key).await?.0, 200);

    let list = ada.get(&format!("{team}/keys")).await?;
    assert!(!list.body.contains(&key) && list.body.contains(&key[key.len() - 4..]));
    assert!(!list.header("content-security-policy").contains("script-src"));
    let id = ids(&list, "id=\"revoke-").pop().context("a key")?;
    let revoke = format!("{team}/keys/{id}/revoke");
    // The question alone changes nothing.
    assert!(ada.get(&revoke).await?.body.contains("Whatever still uses it is refused"));
    assert_eq!(house.get("/usage", &key).await?.0, 200);
    let answer = send(&mut ada, &revoke, &revoke, &[]).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{team}/keys?revoked")));
    assert_eq!(house.get("/usage", &key).await?.0, 401);
    assert_eq!(ada.get(&revoke).await?.status, 404);
    house.finish().await
}

/// A route, what comes after the team in its path, and the fields that are sent; without, it is asked for.
type Row = (&'static str, &'static str, Option<&'static [(&'static str, &'static str)]>);

/// Everything that names a team, with what is sent there: for whoever is not in it, none of it is there.
#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_not_in_a_team_finds_nothing_of_it() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&house, "bob@example.com").await?;
    let mut eve = Visitor::with_account(&house, "eve@example.com").await?;
    let (team, hers) = (first_team(&mut ada).await?, first_team(&mut eve).await?);
    join(&house, &mut ada, &team, &mut bob, "bob@example.com").await?;
    let key = shown_key(&make_key(&mut ada, &team, "A key", "test").await?)?;
    invite(&mut ada, &team, "carol@example.com", "member").await?;
    let (keys, listed) = (ada.get(&format!("{team}/keys")).await?, ada.get(&people(&team)).await?);
    let key_id = ids(&keys, "id=\"revoke-").pop().context("a key")?;
    let invitation = ids(&listed, "id=\"withdraw-").pop().context("an invitation")?;
    let member = ids(&listed, "id=\"remove-").pop().context("a member")?;
    let form_token = eve.get(&people(&hers)).await?.hidden("form_token")?;

    let table: [Row; 17] = [
        ("/teams/{team}", "", None),
        ("/teams/{team}/people", "/people", None),
        ("/teams/{team}/name", "/name", None),
        ("/teams/{team}/invitations", "/invitations", None),
        ("/teams/{team}/name", "/name", Some(&[("name", "Hers")])),
        ("/teams/{team}/leave", "/leave", None),
        ("/teams/{team}/leave", "/leave", Some(&[])),
        ("/teams/{team}/invitations", "/invitations", Some(&[("email", "eve@example.com"), ("role", "owner")])),
        ("/teams/{team}/invitations/{invitation}/withdraw", "/invitations/INVITATION/withdraw", Some(&[])),
        ("/teams/{team}/members/{user}/role", "/members/MEMBER/role", Some(&[("role", "owner")])),
        ("/teams/{team}/members/{user}/remove", "/members/MEMBER/remove", None),
        ("/teams/{team}/members/{user}/remove", "/members/MEMBER/remove", Some(&[])),
        ("/teams/{team}/keys", "/keys", None),
        ("/teams/{team}/keys", "/keys", Some(&[("name", "Hers"), ("environment", "live")])),
        ("/teams/{team}/keys/{key}/revoke", "/keys/KEY/revoke", None),
        ("/teams/{team}/keys/{key}/revoke", "/keys/KEY/revoke", Some(&[])),
        ("/teams/{team}/keys/{key}/revoke", "/keys/no-key/revoke", None),
    ];
    for route in ROUTES.split('"').filter(|text| text.starts_with("/teams/{team}")) {
        assert!(table.iter().any(|(known, ..)| *known == route), "{route} is not in the table");
    }
    for (route, rest, form) in table {
        let rest = rest.replace("INVITATION", &invitation).replace("MEMBER", &member).replace("KEY", &key_id);
        // Through the team itself, through one's own, and through one that is none.
        for place in [&*team, &*hers, "/teams/01993e1c-7b1a-7000-8000-0123456789ab", "/teams/x"] {
            let is_own = place == hers;
            if is_own && !rest.contains(&invitation) && !rest.contains(&member) && !rest.contains("/keys/") {
                continue;
            }
            let path = format!("{place}{rest}");
            let answer = match form {
                None => eve.get(&path).await?,
                Some(fields) => eve.post(&path, &[&[("form_token", &*form_token)], fields].concat()).await?,
            };
            assert_eq!(answer.status, 404, "{route}: {path} {}", answer.body);
            assert!(!answer.body.contains("ada@") && !answer.body.contains("A key"), "{route}: {}", answer.body);
        }
    }
    // A form without a session or with a foreign token counts nowhere.
    for (route, rest, form) in table {
        let Some(fields) = form else { continue };
        let rest = rest.replace("INVITATION", &invitation).replace("MEMBER", &member).replace("KEY", &key_id);
        let path = format!("{team}{rest}");
        let forged = [&[("form_token", &*form_token)], fields].concat();
        assert_eq!(ada.post(&path, &forged).await?.status, 403, "{route}");
        assert_eq!(ada.post(&path, fields).await?.status, 403, "{route}");
        assert_eq!(Visitor::new(&house).post(&path, &forged).await?.status, 403, "{route}");
    }
    // All of it is as it was.
    let now = (ada.get(&format!("{team}/keys")).await?, ada.get(&people(&team)).await?);
    assert_eq!((ids(&now.0, "id=\"revoke-"), ids(&now.1, "id=\"withdraw-")), (vec![key_id], vec![invitation]));
    assert_eq!(ids(&now.1, "id=\"remove-"), [member]);
    assert_eq!(house.get("/usage", &key).await?.0, 200);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn members_work_and_owners_decide() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&house, "bob@example.com").await?;
    let team = first_team(&mut ada).await?;
    join(&house, &mut ada, &team, &mut bob, "bob@example.com").await?;
    shown_key(&make_key(&mut bob, &team, "His", "live").await?)?;
    let listed = ada.get(&people(&team)).await?;
    let bobs = ids(&listed, "id=\"remove-").pop().context("a member")?;
    let adas = ids(&listed, "id=\"person-").into_iter().find(|id| *id != bobs).context("an owner")?;
    for (rest, fields) in [
        ("/name", &[("name", "His")][..]),
        ("/invitations", &[("email", "x@example.com"), ("role", "owner")]),
        (&*format!("/members/{adas}/remove"), &[]),
        (&*format!("/members/{bobs}/role"), &[("role", "owner")]),
    ] {
        let answer = send(&mut bob, &people(&team), &format!("{team}{rest}"), fields).await;
        // A member's page has one form: the way out of the session, whose token is the same.
        let answer = answer?;
        assert_eq!(answer.status, 403, "{rest}: {}", answer.body);
    }
    assert_eq!(bob.get(&format!("{team}/members/{adas}/remove")).await?.status, 403);

    // The last owner stays, whichever door they try.
    for (path, fields) in [
        (format!("{team}/leave"), &[][..]),
        (format!("{team}/members/{adas}/remove"), &[]),
        (format!("{team}/members/{adas}/role"), &[("role", "member")]),
    ] {
        let answer = send(&mut ada, &people(&team), &path, fields).await?;
        assert_eq!(answer.status, 409, "{path}: {}", answer.body);
        assert!(answer.body.contains("A team needs an owner"));
    }
    let role = format!("{team}/members/{bobs}/role");
    assert_eq!(send(&mut ada, &people(&team), &role, &[("role", "owner")]).await?.status, 303);
    assert_eq!(send(&mut ada, &people(&team), &format!("{team}/leave"), &[]).await?.location(), "/teams?left");
    assert_eq!(ada.get(&people(&team)).await?.status, 404);
    assert_eq!(bob.get(&people(&team)).await?.status, 200);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_is_removed_takes_their_apps_along() -> Result<()> {
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&house, "bob@example.com").await?;
    let team = first_team(&mut ada).await?;
    join(&house, &mut ada, &team, &mut bob, "bob@example.com").await?;
    let request = request_of(&register(&house).await?, &[])?;
    let page = bob.get(&request).await?;
    let place = format!("{}/test", team.strip_prefix("/teams/").context("a team")?);
    let code = bob.decide(&page, "allow", &[("place", &place)]).await?.told("code")?;
    let tokens = super::requests::exchange(&house, &request, &code).await?;
    let access = tokens["access_token"].as_str().context("a token")?;
    assert_eq!(house.get("/usage", access).await?.0, 200);
    let bobs = ids(&ada.get(&people(&team)).await?, "id=\"remove-").pop().context("a member")?;
    let remove = format!("{team}/members/{bobs}/remove");
    assert!(ada.get(&remove).await?.body.contains("bob@example.com"));
    assert_eq!(send(&mut ada, &remove, &remove, &[]).await?.status, 303);
    assert_eq!(house.get("/usage", access).await?.0, 401);
    assert_eq!(bob.get(&people(&team)).await?.status, 404);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_invitation_lets_in_whom_it_is_for() -> Result<()> {
    // Nobody may sign up by themselves here, but whoever is invited may.
    let house = Harness::start(0, &[]).await?;
    let store = house.service.store();
    let (email, now) = (grabd_domain::accounts::Email::parse("ada@example.com")?, grabd_domain::Timestamp::from_ms(1));
    let place = grabd_store::Place::In(house.team.team);
    grabd_engine::accounts::create_person(store, &email, PASSWORD, place, now).await?;
    let mut ada = Visitor::new(&house);
    assert_eq!(ada.sign_in("ada@example.com", PASSWORD, "").await?.status, 303);
    let team = first_team(&mut ada).await?;
    assert_eq!(invite(&mut ada, &team, "no address", "member").await?.status, 422);
    assert_eq!(invite(&mut ada, &team, "ada@example.com", "member").await?.status, 422);
    let link = shown_link(&house, &invite(&mut ada, &team, "Bob@Example.com", "owner").await?)?;
    assert!(!ada.get(&people(&team)).await?.body.contains(&link), "the link is shown once");
    let token = link.split_once("token=").context("a token")?.1.to_owned();

    // Somebody else who finds the link does not come in, and is told whom it is for.
    let page = ada.get(&link).await?;
    assert!(page.body.contains("This invitation is for somebody else"), "{}", page.body);
    assert_eq!(send(&mut ada, &people(&team), "/invitation", &[("token", &token)]).await?.status, 404);

    let mut bob = Visitor::new(&house);
    let page = bob.get(&link).await?;
    let form_token = page.hidden("form_token")?;
    let form = |password| [("form_token", &*form_token), ("token", &*token), ("password", password)];
    assert_eq!(bob.post("/invitation", &form("short")).await?.status, 422);
    assert_eq!(Visitor::new(&house).post("/invitation", &form(PASSWORD)).await?.status, 403);
    let answer = bob.post("/invitation", &form(PASSWORD)).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{team}/people?joined")));
    let page = bob.get(&people(&team)).await?;
    assert!(page.body.contains("bob@example.com") && page.body.contains("Invite somebody"), "{}", page.body);
    let mut again = Visitor::new(&house);
    assert_eq!(again.get(&link).await?.status, 404);
    assert_eq!(Visitor::new(&house).sign_in("bob@example.com", PASSWORD, "").await?.status, 303);

    // One that was taken back opens nothing.
    let link = shown_link(&house, &invite(&mut ada, &team, "carol@example.com", "member").await?)?;
    let invitation = ids(&ada.get(&people(&team)).await?, "id=\"withdraw-").pop().context("an invitation")?;
    let path = format!("{team}/invitations/{invitation}/withdraw");
    assert_eq!(send(&mut ada, &people(&team), &path, &[]).await?.status, 303);
    assert_eq!(again.get(&link).await?.status, 404);
    house.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_password_is_changed_by_whoever_knows_it_and_sessions_end() -> Result<()> {
    const NEW: &str = "quite another password";
    let house = open_house(&[]).await?;
    let mut ada = Visitor::with_account(&house, "ada@example.com").await?;
    let mut phone = Visitor::new(&house);
    let agent = "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36";
    phone.headers.push(("user-agent", agent.to_owned()));
    phone.sign_in("ada@example.com", PASSWORD, "").await?;
    let mut tablet = Visitor::new(&house);
    tablet.sign_in("ada@example.com", PASSWORD, "").await?;
    let mut eve = Visitor::with_account(&house, "eve@example.com").await?;

    let page = ada.get("/account").await?;
    assert!(page.body.contains("Chrome on Android"), "{}", page.body);
    let listed = ids(&page, "id=\"end-");
    assert_eq!(listed.len(), 2);
    for id in &listed {
        let answer = send(&mut eve, "/account", "/account/sessions/end", &[("session", id)]).await?;
        assert_eq!(answer.status, 404, "eve ends a session of ada's");
    }
    assert!(phone.is_signed_in().await? && tablet.is_signed_in().await?);
    let of_phone = page.body.split("Chrome on Android").nth(1).and_then(|rest| rest.split("value=\"").nth(2));
    let of_phone = of_phone.and_then(|rest| rest.get(..36)).context("the phone's session")?.to_owned();
    let answer = send(&mut ada, "/account", "/account/sessions/end", &[("session", &of_phone)]).await?;
    assert_eq!((answer.status, answer.location()), (303, "/account?ended"));
    assert!(!phone.is_signed_in().await? && tablet.is_signed_in().await?);

    for (current, new, status) in [(NEW, PASSWORD, 422), (PASSWORD, "short", 422), (PASSWORD, NEW, 303)] {
        let fields = [("current", current), ("new", new)];
        assert_eq!(send(&mut ada, "/account", "/account/password", &fields).await?.status, status, "{new}");
    }
    assert!(ada.is_signed_in().await? && !tablet.is_signed_in().await?);
    assert_eq!(Visitor::new(&house).sign_in("ada@example.com", PASSWORD, "").await?.status, 422);
    assert_eq!(phone.sign_in("ada@example.com", NEW, "").await?.status, 303);
    let answer = send(&mut ada, "/account", "/account/sessions/end", &[("session", "others")]).await?;
    assert_eq!(answer.location(), "/account?alone");
    assert!(ada.is_signed_in().await? && !phone.is_signed_in().await?);

    // Wrong ones are counted with those at the sign-in.
    let mut statuses = Vec::new();
    for _ in 0..12 {
        let fields = [("current", "not the password at all"), ("new", PASSWORD)];
        statuses.push(send(&mut ada, "/account", "/account/password", &fields).await?.status);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    house.finish().await
}
