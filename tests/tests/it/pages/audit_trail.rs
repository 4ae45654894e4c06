//! The audit trail: in sentences with names, filtered, as CSV; all of it for operators, and that of a team for its owners.

use anyhow::{Context, Result};
use grabd_domain::accounts::Email;

use super::operator::{operator, set_operator};
use super::team::team_of;
use super::users::{create_key, first_team, join, send};
use super::visitor::{PageResponse, Visitor, start_app};

/// The sentences of a page, newest first.
fn sentences(page: &PageResponse) -> Vec<String> {
    let cells = page.body.split("data-label=\"What\">").skip(1).filter_map(|rest| rest.split("</td").next());
    let text = |cell: &str| cell.split('<').map(|part| part.split_once('>').map_or(part, |(_, text)| text)).collect();
    cells.map(text).collect()
}

/// Grants 25 credits to a team, suspends it, and restores it.
async fn suspend_and_restore(olga: &mut Visitor<'_>, team: &str) -> Result<()> {
    let page = format!("/operator{team}");
    let shown = olga.get(&page).await?;
    let once = shown.hidden_field("once")?;
    let grant = [("once", &*once), ("credits", "25"), ("reason", "sorry for the outage")];
    assert_eq!(send(olga, &page, &format!("{page}/credits"), &grant).await?.status, 303);
    let reason = [("suspend_reason", "pages that imitate a bank")];
    assert_eq!(send(olga, &page, &format!("{page}/suspend"), &reason).await?.status, 303);
    assert_eq!(send(olga, &page, &format!("{page}/restore"), &[]).await?.status, 303);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn operator_reads_sentences_and_filters_them() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    Visitor::with_account(&app, "eve@example.com").await?;
    let team = first_team(&mut ada).await?;
    let eves = team_of(&app, "eve@example.com", 0).await?;
    create_key(&mut ada, &team, "=1+1", "live").await?;
    let mut olga = operator(&app).await?;
    suspend_and_restore(&mut olga, &team).await?;

    let all = olga.get("/operator/audit").await?;
    let newest: Vec<String> = sentences(&all).into_iter().take(4).collect();
    assert_eq!(
        newest,
        [
            "olga@example.com restored team ada",
            "olga@example.com suspended team ada: “pages that imitate a bank”",
            "olga@example.com granted 25 credits to team ada: “sorry for the outage”",
            "ada@example.com created the live key “=1+1” of team ada",
        ]
    );
    let id = team.trim_start_matches("/teams/");
    assert!(all.body.contains(&format!("href=\"/operator/teams/{id}\" title=\"{id}\"")), "{}", all.body);
    let today = app.service.core().now().to_string();
    let today = today.split('T').next().context("a day")?;
    for (query, expected) in [
        (format!("team={id}&action=key.create"), 1),
        ("team=ada&action=key.create".to_owned(), 1),
        ("team=ADA&by=olga%40example.com".to_owned(), 3),
        ("by=olga%40example.com&action=team.suspend".to_owned(), 1),
        (format!("action=team.restore&day={today}"), 1),
        ("action=team.restore&day=2020-01-01".to_owned(), 0),
        (format!("team={eves}&action=key.create"), 0),
        ("team=nobody".to_owned(), 0),
        ("by=stripe".to_owned(), 0),
    ] {
        let page = olga.get(&format!("/operator/audit?{query}")).await?;
        assert_eq!((page.status, sentences(&page).len()), (200, expected), "{query}: {}", page.body);
    }
    for (query, message) in [
        ("by=nobody%40example.com", "No account has this e-mail address."),
        ("action=team.sell", "There is no action “team.sell”."),
        ("day=tomorrow", "“tomorrow” is not a day."),
    ] {
        let page = olga.get(&format!("/operator/audit?{query}")).await?;
        assert!(page.status == 422 && page.body.contains(message), "{query}: {} {}", page.status, page.body);
        let file = olga.get(&format!("/operator/audit.csv?{query}")).await?;
        assert_eq!((file.status, file.location()), (303, &*format!("/operator/audit?{query}")));
    }

    let file = olga.get(&format!("/operator/audit.csv?team={id}")).await?;
    assert_eq!((file.status, file.header("content-type")), (200, "text/csv; charset=utf-8; header=present"));
    assert!(file.header("content-disposition").starts_with("attachment; filename=\"grabd-audit-"));
    let lines: Vec<&str> = file.body.lines().collect();
    assert!(lines[0].starts_with("entry,at,sentence,actor,email,action,target"), "{}", lines[0]);
    // The name of the key is not a formula.
    assert!(file.body.contains(",'=1+1,"), "{}", file.body);
    assert_eq!(lines.len() - 1, sentences(&olga.get(&format!("/operator/audit?team={id}")).await?).len());
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn owners_see_the_trail_of_their_team_without_operators() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&app, "bob@example.com").await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let (team, eves) = (first_team(&mut ada).await?, first_team(&mut eve).await?);
    join(&app, &mut ada, &team, &mut bob, "bob@example.com").await?;
    create_key(&mut bob, &team, "build", "live").await?;
    create_key(&mut eve, &eves, "secret of eve", "live").await?;
    let mut olga = operator(&app).await?;
    suspend_and_restore(&mut olga, &team).await?;
    let limits = [("limit", "async_queue"), ("limit_value", "7")];
    let page = format!("/operator{team}");
    assert_eq!(send(&mut olga, &page, &format!("{page}/limits"), &limits).await?.status, 303);

    let path = format!("{team}/audit");
    let shown = ada.get(&path).await?;
    assert_eq!(
        sentences(&shown)[..6],
        [
            "The operator restored the team",
            "The operator suspended the team",
            "The operator granted 25 credits to the team: “sorry for the outage”",
            "bob@example.com created the live key “build” of the team",
            "bob@example.com joined the team",
            "ada@example.com invited bob@example.com to the team as member",
        ]
    );
    let file = ada.get(&format!("{team}/audit.csv")).await?;
    assert!(file.status == 200 && file.body.contains(",The operator suspended the team,team.suspend"), "{}", file.body);
    let olga_id = app.service.store().accounts().list_users().await?;
    let olga_id = olga_id.into_iter().find(|user| user.operator).context("olga")?.id.to_string();
    for hidden in ["olga", &*olga_id, "imitate a bank", "async_queue", "127.0.0.1", "secret of eve", "eve@"] {
        assert!(!shown.body.contains(hidden), "{hidden}: {}", shown.body);
        assert!(!file.body.contains(hidden), "{hidden}: {}", file.body);
    }
    assert!(ada.get(&format!("{team}/settings")).await?.body.contains(&format!("{path}\">Show audit trail")));

    // Filters: by member, action and day. Who is not a member, and what owners do not see, matches nothing.
    let option = shown.body.split("<option value=\"").find(|option| option.contains(">bob@example.com<"));
    let bobs = option.and_then(|option| option.get(..36)).context("bob in the filter")?.to_owned();
    for (query, expected) in [
        (format!("by={bobs}&action=key.create"), 1),
        (format!("by={olga_id}"), 0),
        ("action=team.suspend".to_owned(), 1),
        ("action=team.limits".to_owned(), 0),
        ("day=2020-01-01".to_owned(), 0),
    ] {
        let page = ada.get(&format!("{path}?{query}")).await?;
        assert_eq!((page.status, sentences(&page).len()), (200, expected), "{query}: {}", page.body);
    }
    assert_eq!(ada.get(&format!("{path}?day=never")).await?.status, 422);

    // A member who is not an owner, people of other teams, and operators do not see it.
    for page in ["audit", "audit.csv"] {
        let refused = bob.get(&format!("{team}/{page}")).await?;
        assert!(
            refused.status == 403 && refused.body.contains("Your role does not allow this"),
            "{} {}",
            refused.status,
            refused.body
        );
        for (other, name) in [(&mut eve, "eve"), (&mut olga, "olga")] {
            assert_eq!(other.get(&format!("{team}/{page}")).await?.status, 404, "{page} {name}");
        }
        let own = eve.get(&format!("{eves}/{page}")).await?;
        assert!(own.body.contains("secret of eve") && !own.body.contains("build"), "{}", own.body);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn trail_does_not_show_which_member_is_the_operator() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut olga = Visitor::with_account(&app, "olga@example.com").await?;
    let team = first_team(&mut ada).await?;
    join(&app, &mut ada, &team, &mut olga, "olga@example.com").await?;
    set_operator(&app, "olga@example.com", true).await?;
    suspend_and_restore(&mut olga, &team).await?;
    let page = ada.get(&format!("{team}/audit")).await?;
    let option = page.body.split("<option value=\"").find(|option| option.contains(">olga@example.com<"));
    let id = option.and_then(|option| option.get(..36)).context("olga in the filter")?.to_owned();
    let found = sentences(&ada.get(&format!("{team}/audit?by={id}")).await?);
    assert_eq!(found, ["olga@example.com joined the team"]);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn deleted_people_and_teams_are_shown_as_deleted() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    create_key(&mut ada, &team, "build", "live").await?;
    let store = app.service.store();
    let user = store.accounts().find_user(&Email::parse("ada@example.com")?).await?.context("ada")?;
    store.retention().delete_user(user.id, app.service.core().now()).await?;
    let mut olga = operator(&app).await?;
    let found = olga.get(&format!("/operator/audit?by={}&action=key.create", user.id)).await?;
    assert_eq!(sentences(&found), ["A deleted account created the live key (deleted) of a deleted team"]);
    app.finish().await
}
