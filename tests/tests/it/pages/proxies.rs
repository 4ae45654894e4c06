//! Proxies through the pages: created, renamed, their passwords replaced, deleted, and hidden where there are none.

use anyhow::{Context, Result, ensure};
use grabd_domain::ids::TeamId;

use super::team::{capture, team_of};
use super::visitor::{PageResponse, Visitor, start_app};

async fn send(visitor: &mut Visitor<'_>, path: &str, fields: &[(&str, &str)]) -> Result<PageResponse> {
    // Every page of a signed-in user has a form.
    let form_token = visitor.get("/apps").await?.hidden_field("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

/// Creates a proxy that has a password. Returns its id.
pub(super) async fn create_proxy(visitor: &mut Visitor<'_>, team: TeamId, environment: &str) -> Result<String> {
    let fields = [
        ("name", "Office & <b>"),
        ("url", "http://8.8.8.8:3128"),
        ("username", "hidden-name"),
        ("password", "hidden-word"),
        ("environment", environment),
    ];
    let answer = send(visitor, &format!("/teams/{team}/proxies/new"), &fields).await?;
    ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
    let list = visitor.get(answer.location()).await?;
    let id = list.body.split("Id <code>").nth(1).and_then(|rest| rest.split('<').next());
    Ok(id.context("the id of a proxy")?.to_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn proxy_is_created_changed_and_deleted_without_showing_its_password() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let list = format!("/teams/{team}/proxies");
    assert!(ada.get(&format!("/teams/{team}/settings")).await?.body.contains(&list));
    assert!(ada.get(&list).await?.body.contains("No proxies yet"));
    let id = create_proxy(&mut ada, team, "test").await?;
    let page = ada.get(&list).await?;
    for words in ["Office &#38; &#60;b&#62;", "http://8.8.8.8:3128", "With a password", "Not used yet"] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }

    // A test capture may name it, and another id is refused.
    let fields = [("url", "https://example.com/"), ("environment", "test"), ("proxy", &*id)];
    assert_eq!(capture(&mut ada, team, &fields).await?.status, 303);
    let other = [fields[0], fields[1], ("proxy", "01993e1c-7b1a-7000-8000-0123456789ab")];
    let refused = capture(&mut ada, team, &other).await?;
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.body.contains("a proxy of the same team and environment"), "{}", refused.body);

    let change = format!("{list}/{id}/change");
    let moved = [("name", "Vienna"), ("url", "socks5://8.8.8.8:1080")];
    let refused = send(&mut ada, &change, &moved).await?;
    assert!(refused.status == 422 && refused.body.contains("not sent to another server"), "{}", refused.body);
    let changed = send(&mut ada, &change, &[("name", "Vienna"), ("url", "http://8.8.8.8:3128")]).await?;
    assert_eq!((changed.status, changed.location()), (303, &*format!("{list}?changed")));
    let login = format!("{list}/{id}/login");
    let form = ada.get(&login).await?.body;
    assert!(!form.contains("hidden-name") && !form.contains("hidden-word"), "{form}");
    assert_eq!(send(&mut ada, &login, &[("username", ""), ("password", "")]).await?.status, 303);
    assert_eq!(send(&mut ada, &change, &moved).await?.status, 303);
    let refused = send(&mut ada, &change, &[("name", "Vienna"), ("url", "http://127.0.0.1:3128")]).await?;
    assert!(refused.status == 422 && refused.body.contains("public address"), "{}", refused.body);
    let page = ada.get(&list).await?;
    for words in ["Vienna", "socks5://8.8.8.8:1080", "Without a password"] {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    let trail = ada.get(&format!("/teams/{team}/audit")).await?.body;
    for words in ["created the proxy", "changed a proxy", "replaced the password of a proxy"] {
        assert!(trail.contains(words), "{words}: {trail}");
    }
    assert!(!trail.contains("hidden-"), "{trail}");

    let delete = format!("{list}/{id}/delete");
    assert!(ada.get(&delete).await?.body.contains("This cannot be undone"));
    assert_eq!(send(&mut ada, &delete, &[]).await?.location(), format!("{list}?deleted"));
    assert_eq!(ada.get(&delete).await?.status, 404);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_without_proxies_hide_them() -> Result<()> {
    let app = start_app(&[("proxies.enabled", "false")]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let list = format!("/teams/{team}/proxies");
    assert!(!ada.get(&format!("/teams/{team}/settings")).await?.body.contains(&list));
    for form in ["capture", "monitors/new", "sites/new"] {
        let page = ada.get(&format!("/teams/{team}/{form}")).await?;
        assert!(page.status == 200 && !page.body.contains("name=\"proxy\""), "{form}: {}", page.body);
    }
    let unknown = format!("{list}/01993e1c-7b1a-7000-8000-0123456789ab/login");
    for path in [list.clone(), format!("{list}/new"), unknown] {
        assert_eq!(ada.get(&path).await?.status, 404, "{path}");
    }
    assert_eq!(send(&mut ada, &format!("{list}/new"), &[("name", "x")]).await?.status, 404);
    app.finish().await
}
