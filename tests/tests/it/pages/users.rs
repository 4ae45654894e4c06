//! Keys, teams and accounts: what members can do, and what others cannot.

use anyhow::{Context, Result, ensure};
use grabd_tests::harness::TestApp;

use super::visitor::{PASSWORD, PageResponse, Visitor, authorization_path, exchange, register, start_app};

/// The routes of the web crate, to check that the table below is complete.
const ROUTES: &str = include_str!("../../../../crates/web/src/routes.rs");

/// The path of a user's first team.
pub(super) async fn first_team(visitor: &mut Visitor<'_>) -> Result<String> {
    let keys = visitor.get("/keys").await?.location().to_owned();
    keys.strip_suffix("/keys").map(str::to_owned).with_context(|| keys.clone())
}

/// The path of a team's users page.
pub(super) fn users(team: &str) -> String {
    format!("{team}/people")
}

/// Submits a form of `page` to `path`.
pub(super) async fn send(
    visitor: &mut Visitor<'_>,
    page: &str,
    path: &str,
    fields: &[(&str, &str)],
) -> Result<PageResponse> {
    let form_token = visitor.get(page).await?.hidden_field("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

pub(super) async fn invite(visitor: &mut Visitor<'_>, team: &str, email: &str, role: &str) -> Result<PageResponse> {
    send(visitor, &users(team), &format!("{team}/invitations"), &[("email", email), ("role", role)]).await
}

/// Has a user with an account join a team of a service without mail.
pub(super) async fn join(
    app: &TestApp,
    owner: &mut Visitor<'_>,
    team: &str,
    guest: &mut Visitor<'_>,
    email: &str,
) -> Result<()> {
    join_as(app, owner, team, guest, email, "member").await
}

/// The same with a role.
pub(super) async fn join_as(
    app: &TestApp,
    owner: &mut Visitor<'_>,
    team: &str,
    guest: &mut Visitor<'_>,
    email: &str,
    role: &str,
) -> Result<()> {
    let link = shown_link(app, &invite(owner, team, email, role).await?)?;
    let token = link.split_once("token=").context("a token")?.1.to_owned();
    let answer = send(guest, &link, "/invitation", &[("token", &token)]).await?;
    ensure!((answer.status, answer.location()) == (303, &*format!("{team}/people?joined")), "{}", answer.body);
    Ok(())
}

/// The invitation link that an owner is shown, without its origin.
fn shown_link(app: &TestApp, page: &PageResponse) -> Result<String> {
    let after = format!("value=\"{}", app.service.public_url());
    let link = page.body.split(&after).nth(1).and_then(|rest| rest.split('"').next());
    Ok(link.with_context(|| format!("no link in {}", page.body))?.replace("&#38;", "&"))
}

/// The ids that follow this text in a page.
pub(super) fn ids(page: &PageResponse, after: &str) -> Vec<String> {
    let mut ids: Vec<String> =
        page.body.split(after).skip(1).filter_map(|rest| rest.get(..36)).map(str::to_owned).collect();
    ids.dedup();
    ids
}

pub(super) async fn create_key(
    visitor: &mut Visitor<'_>,
    team: &str,
    name: &str,
    environment: &str,
) -> Result<PageResponse> {
    let path = format!("{team}/keys");
    send(
        visitor,
        &path,
        &path,
        &[("name", name), ("environment", environment), ("scopes", "read"), ("scopes", "create")],
    )
    .await
}

pub(super) fn shown_key(page: &PageResponse) -> Result<String> {
    let key = page.body.split("value=\"sk_").nth(1).and_then(|rest| rest.split('"').next());
    Ok(format!("sk_{}", key.with_context(|| format!("no key in {}", page.body))?))
}

#[tokio::test(flavor = "multi_thread")]
async fn key_is_shown_once_works_and_can_be_revoked() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    for (name, environment, complaint) in [
        ("", "test", "1 to 60 characters"),
        ("A key", "", "Choose an environment"),
        (&*"x".repeat(61), "live", "1 to 60"),
    ] {
        let answer = create_key(&mut ada, &team, name, environment).await?;
        assert_eq!(answer.status, 422, "{name}");
        assert!(answer.body.contains(complaint), "{}", answer.body);
    }
    let made = create_key(&mut ada, &team, "<b>build</b> server", "test").await?;
    assert_eq!((made.status, made.header("cache-control")), (200, "no-store"));
    assert!(!made.header("content-security-policy").contains("unsafe"));
    assert!(made.body.contains("&#60;b&#62;build&#60;/b&#62; server"), "{}", made.body);
    let key = shown_key(&made)?;
    assert_eq!(app.get("/usage", &key).await?.0, 200);

    let list = ada.get(&format!("{team}/keys")).await?;
    assert!(!list.body.contains(&key) && list.body.contains(&key[key.len() - 4..]));
    assert!(!list.header("content-security-policy").contains("connect-src"));
    let id = ids(&list, "id=\"revoke-").pop().context("a key")?;
    // The secret of the key's links is shown after a confirmation, and is always the same.
    let link = format!("{team}/keys/{id}/link");
    assert!(!list.body.contains("gls_") && ada.get(&link).await?.body.contains("Show the link secret of"));
    let shown = send(&mut ada, &link, &link, &[]).await?;
    assert_eq!((shown.status, shown.header("cache-control")), (200, "no-store"));
    let link_key = format!("lk_{}", id.replace('-', ""));
    assert!(shown.body.contains(&link_key), "{}", shown.body);
    let secret = |body: &str| body.split("gls_").nth(1).map(|rest| rest.chars().take(43).collect::<String>());
    let first = secret(&shown.body).context("a secret")?;
    assert_eq!(secret(&send(&mut ada, &link, &link, &[]).await?.body), Some(first));
    let revoke = format!("{team}/keys/{id}/revoke");
    // The confirmation page changes nothing.
    assert!(ada.get(&revoke).await?.body.contains("Requests with this key are refused"));
    assert_eq!(app.get("/usage", &key).await?.0, 200);
    let answer = send(&mut ada, &revoke, &revoke, &[]).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{team}/keys?revoked")));
    assert_eq!(app.get("/usage", &key).await?.0, 401);
    assert_eq!(ada.get(&revoke).await?.status, 404);
    assert_eq!(ada.get(&link).await?.status, 404);
    app.finish().await
}

/// A route, the path after the team, and the form fields. Without fields, it is a GET request.
type Row = (&'static str, &'static str, Option<&'static [(&'static str, &'static str)]>);

/// All routes of a team, with valid forms: for non-members, none of them exists.
#[tokio::test(flavor = "multi_thread")]
async fn team_routes_are_not_found_for_non_members() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&app, "bob@example.com").await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let (team, hers) = (first_team(&mut ada).await?, first_team(&mut eve).await?);
    join(&app, &mut ada, &team, &mut bob, "bob@example.com").await?;
    let key = shown_key(&create_key(&mut ada, &team, "A key", "test").await?)?;
    invite(&mut ada, &team, "carol@example.com", "member").await?;
    let (keys, listed) = (ada.get(&format!("{team}/keys")).await?, ada.get(&users(&team)).await?);
    let key_id = ids(&keys, "id=\"revoke-").pop().context("a key")?;
    let invitation = ids(&listed, "id=\"withdraw-").pop().context("an invitation")?;
    let member = ids(&listed, "id=\"remove-").pop().context("member")?;
    let form_token = eve.get(&users(&hers)).await?.hidden_field("form_token")?;

    let table: [Row; 28] = [
        ("/teams/{team}", "", None),
        ("/teams/{team}/people", "/people", None),
        ("/teams/{team}/settings", "/settings", None),
        ("/teams/{team}/name", "/name", None),
        ("/teams/{team}/invitations", "/invitations", None),
        ("/teams/{team}/name", "/name", Some(&[("name", "Hers")])),
        ("/teams/{team}/delete", "/delete", None),
        ("/teams/{team}/delete", "/delete", Some(&[("name", "Hers"), ("password", "x")])),
        ("/teams/{team}/export", "/export", None),
        ("/teams/{team}/leave", "/leave", None),
        ("/teams/{team}/leave", "/leave", Some(&[])),
        ("/teams/{team}/invitations", "/invitations", Some(&[("email", "eve@example.com"), ("role", "owner")])),
        ("/teams/{team}/invitations/{invitation}/withdraw", "/invitations/INVITATION/withdraw", Some(&[])),
        ("/teams/{team}/members/{user}/role", "/members/MEMBER/role", Some(&[("role", "owner")])),
        ("/teams/{team}/members/{user}/remove", "/members/MEMBER/remove", None),
        ("/teams/{team}/members/{user}/remove", "/members/MEMBER/remove", Some(&[])),
        ("/teams/{team}/keys", "/keys", None),
        ("/teams/{team}/keys", "/keys", Some(&[("name", "Hers"), ("environment", "live"), ("scopes", "read")])),
        ("/teams/{team}/keys/{key}/link", "/keys/KEY/link", None),
        ("/teams/{team}/keys/{key}/link", "/keys/KEY/link", Some(&[])),
        ("/teams/{team}/keys/{key}/link/replace", "/keys/KEY/link/replace", None),
        ("/teams/{team}/keys/{key}/link/replace", "/keys/KEY/link/replace", Some(&[])),
        ("/teams/{team}/audit", "/audit", None),
        ("/teams/{team}/audit.csv", "/audit.csv", None),
        ("/teams/{team}/secrets", "/secrets", None),
        ("/teams/{team}/keys/{key}/revoke", "/keys/KEY/revoke", None),
        ("/teams/{team}/keys/{key}/revoke", "/keys/KEY/revoke", Some(&[])),
        ("/teams/{team}/keys/{key}/revoke", "/keys/no-key/revoke", None),
    ];
    for route in ROUTES.split('"').filter(|text| text.starts_with("/teams/{team}")) {
        assert!(table.iter().any(|(known, ..)| *known == route), "{route} is not in the table");
    }
    for (route, rest, form) in table {
        let rest = rest.replace("INVITATION", &invitation).replace("MEMBER", &member).replace("KEY", &key_id);
        // Through the foreign team, through the user's own team, and through unknown teams.
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
    // Forms without a session or with a foreign token are refused.
    for (route, rest, form) in table {
        let Some(fields) = form else { continue };
        let rest = rest.replace("INVITATION", &invitation).replace("MEMBER", &member).replace("KEY", &key_id);
        let path = format!("{team}{rest}");
        let forged = [&[("form_token", &*form_token)], fields].concat();
        assert_eq!(ada.post(&path, &forged).await?.status, 403, "{route}");
        assert_eq!(ada.post(&path, fields).await?.status, 403, "{route}");
        assert_eq!(Visitor::new(&app).post(&path, &forged).await?.status, 403, "{route}");
    }
    // Nothing has changed.
    let now = (ada.get(&format!("{team}/keys")).await?, ada.get(&users(&team)).await?);
    assert_eq!((ids(&now.0, "id=\"revoke-"), ids(&now.1, "id=\"withdraw-")), (vec![key_id], vec![invitation]));
    assert_eq!(ids(&now.1, "id=\"remove-"), [member]);
    assert_eq!(app.get("/usage", &key).await?.0, 200);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn only_owners_can_manage_a_team() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&app, "bob@example.com").await?;
    let team = first_team(&mut ada).await?;
    join(&app, &mut ada, &team, &mut bob, "bob@example.com").await?;
    shown_key(&create_key(&mut bob, &team, "His", "live").await?)?;
    let listed = ada.get(&users(&team)).await?;
    let bobs = ids(&listed, "id=\"remove-").pop().context("member")?;
    let adas = ids(&listed, "id=\"person-").into_iter().find(|id| *id != bobs).context("owner")?;
    for (rest, fields) in [
        ("/name", &[("name", "His")][..]),
        ("/invitations", &[("email", "x@example.com"), ("role", "owner")]),
        (&*format!("/members/{adas}/remove"), &[]),
        (&*format!("/members/{bobs}/role"), &[("role", "owner")]),
    ] {
        let answer = send(&mut bob, &users(&team), &format!("{team}{rest}"), fields).await;
        // A member's page has only the sign-out form, whose token is the same.
        let answer = answer?;
        assert_eq!(answer.status, 403, "{rest}: {}", answer.body);
    }
    assert_eq!(bob.get(&format!("{team}/members/{adas}/remove")).await?.status, 403);

    // The last owner cannot leave, be removed or be demoted.
    for (path, fields) in [
        (format!("{team}/leave"), &[][..]),
        (format!("{team}/members/{adas}/remove"), &[]),
        (format!("{team}/members/{adas}/role"), &[("role", "member")]),
    ] {
        let answer = send(&mut ada, &users(&team), &path, fields).await?;
        assert_eq!(answer.status, 409, "{path}: {}", answer.body);
        assert!(answer.body.contains("A team needs an owner"));
    }
    let role = format!("{team}/members/{bobs}/role");
    assert_eq!(send(&mut ada, &users(&team), &role, &[("role", "owner")]).await?.status, 303);
    assert_eq!(send(&mut ada, &users(&team), &format!("{team}/leave"), &[]).await?.location(), "/teams?left");
    assert_eq!(ada.get(&users(&team)).await?.status, 404);
    assert_eq!(bob.get(&users(&team)).await?.status, 200);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn removing_a_member_revokes_their_apps() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&app, "bob@example.com").await?;
    let team = first_team(&mut ada).await?;
    join(&app, &mut ada, &team, &mut bob, "bob@example.com").await?;
    let request = authorization_path(&register(&app).await?, &[])?;
    let page = bob.get(&request).await?;
    let place = format!("{}/test", team.strip_prefix("/teams/").context("a team")?);
    let code = bob.decide(&page, "allow", &[("place", &place)]).await?.redirect_param("code")?;
    let tokens = exchange(&app, &request, &code).await?;
    let access = tokens["access_token"].as_str().context("a token")?;
    assert_eq!(app.get("/usage", access).await?.0, 200);
    let bobs = ids(&ada.get(&users(&team)).await?, "id=\"remove-").pop().context("member")?;
    let remove = format!("{team}/members/{bobs}/remove");
    assert!(ada.get(&remove).await?.body.contains("bob@example.com"));
    assert_eq!(send(&mut ada, &remove, &remove, &[]).await?.status, 303);
    assert_eq!(app.get("/usage", access).await?.0, 401);
    assert_eq!(bob.get(&users(&team)).await?.status, 404);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn invitation_can_be_used_only_by_its_addressee() -> Result<()> {
    // Sign-up is closed, but invited users may join.
    let app = TestApp::start_without_browser(0, &[]).await?;
    let store = app.service.store();
    let (email, now) = (grabd_domain::accounts::Email::parse("ada@example.com")?, grabd_domain::Timestamp::from_ms(1));
    let place = grabd_store::accounts::InitialTeam::Existing(app.team.team);
    grabd_engine::accounts::create_user(store, &email, PASSWORD, place, now).await?;
    let mut ada = Visitor::new(&app);
    assert_eq!(ada.sign_in("ada@example.com", PASSWORD, "").await?.status, 303);
    let team = first_team(&mut ada).await?;
    assert_eq!(invite(&mut ada, &team, "no address", "member").await?.status, 422);
    assert_eq!(invite(&mut ada, &team, "ada@example.com", "member").await?.status, 422);
    let link = shown_link(&app, &invite(&mut ada, &team, "Bob@Example.com", "owner").await?)?;
    assert!(!ada.get(&users(&team)).await?.body.contains(&link), "the link is shown once");
    let token = link.split_once("token=").context("a token")?.1.to_owned();

    // Another user with the link cannot use it.
    let page = ada.get(&link).await?;
    assert!(page.body.contains("This invitation is for another account"), "{}", page.body);
    assert_eq!(send(&mut ada, &users(&team), "/invitation", &[("token", &token)]).await?.status, 404);

    let mut bob = Visitor::new(&app);
    let page = bob.get(&link).await?;
    let form_token = page.hidden_field("form_token")?;
    let form = |password| [("form_token", &*form_token), ("token", &*token), ("password", password)];
    assert_eq!(bob.post("/invitation", &form("short")).await?.status, 422);
    assert_eq!(Visitor::new(&app).post("/invitation", &form(PASSWORD)).await?.status, 403);
    let answer = bob.post("/invitation", &form(PASSWORD)).await?;
    assert_eq!((answer.status, answer.location()), (303, &*format!("{team}/people?joined")));
    let page = bob.get(&users(&team)).await?;
    assert!(page.body.contains("bob@example.com") && page.body.contains("Invite a member"), "{}", page.body);
    let mut again = Visitor::new(&app);
    assert_eq!(again.get(&link).await?.status, 404);
    assert_eq!(Visitor::new(&app).sign_in("bob@example.com", PASSWORD, "").await?.status, 303);

    // A withdrawn invitation is invalid.
    let link = shown_link(&app, &invite(&mut ada, &team, "carol@example.com", "member").await?)?;
    let invitation = ids(&ada.get(&users(&team)).await?, "id=\"withdraw-").pop().context("an invitation")?;
    let path = format!("{team}/invitations/{invitation}/withdraw");
    assert_eq!(send(&mut ada, &users(&team), &path, &[]).await?.status, 303);
    assert_eq!(again.get(&link).await?.status, 404);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn password_change_requires_the_password_and_ends_sessions() -> Result<()> {
    const NEW: &str = "quite another password";
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut phone = Visitor::new(&app);
    let agent = "Mozilla/5.0 (Linux; Android 15) AppleWebKit/537.36 Chrome/140.0 Mobile Safari/537.36";
    phone.headers.push(("user-agent", agent.to_owned()));
    phone.sign_in("ada@example.com", PASSWORD, "").await?;
    let mut tablet = Visitor::new(&app);
    tablet.sign_in("ada@example.com", PASSWORD, "").await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;

    let page = ada.get("/account").await?;
    assert!(page.body.contains("Chrome on Android"), "{}", page.body);
    let listed = ids(&page, "id=\"end-");
    assert_eq!(listed.len(), 2);
    for id in &listed {
        let answer = send(&mut eve, "/account", "/account/sessions/end", &[("session", id)]).await?;
        assert_eq!(answer.status, 404, "eve must not end a session of ada");
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
    assert_eq!(Visitor::new(&app).sign_in("ada@example.com", PASSWORD, "").await?.status, 422);
    assert_eq!(phone.sign_in("ada@example.com", NEW, "").await?.status, 303);
    let answer = send(&mut ada, "/account", "/account/sessions/end", &[("session", "others")]).await?;
    assert_eq!(answer.location(), "/account?alone");
    assert!(ada.is_signed_in().await? && !phone.is_signed_in().await?);

    // Wrong passwords are limited for the session.
    let mut statuses = Vec::new();
    for _ in 0..12 {
        let fields = [("current", "not the password at all"), ("new", PASSWORD)];
        statuses.push(send(&mut ada, "/account", "/account/password", &fields).await?.status);
    }
    assert_eq!(statuses.last(), Some(&429), "{statuses:?}");
    app.finish().await
}
