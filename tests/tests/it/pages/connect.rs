//! The page that says how to connect an agent, and the links to it.

use anyhow::Result;

use super::users::first_team;
use super::visitor::{Visitor, start_app};

#[tokio::test(flavor = "multi_thread")]
async fn each_client_gets_the_urls_of_this_service() -> Result<()> {
    let app = start_app(&[]).await?;
    let origin = app.service.public_url();
    let mut visitor = Visitor::new(&app);
    for (query, label, expected) in [
        ("", "Claude Code", format!("claude mcp add --transport http grabd {origin}/mcp<")),
        ("?client=claude-code", "Claude Code", format!("claude mcp add --transport http grabd {origin}/mcp<")),
        ("?client=claude", "Claude", format!("<code>{origin}/mcp</code>")),
        ("?client=cursor", "Cursor", format!("&#34;url&#34;: &#34;{origin}/mcp&#34;")),
        ("?client=vs-code", "VS Code", format!("&#34;url&#34;: &#34;{origin}/mcp&#34;")),
        ("?client=command-line", "Command line", format!("export GRAB_BASE_URL={origin}/v1")),
        ("?client=other", "Other clients", format!("<code>{origin}/mcp</code>")),
        // A name that is not known gets the first one.
        ("?client=x", "Claude Code", format!("claude mcp add --transport http grabd {origin}/mcp<")),
    ] {
        let page = visitor.get(&format!("/connect{query}")).await?;
        assert_eq!(page.status, 200, "{query}");
        assert!(page.body.contains(&format!("<h2>{label}</h2>")), "{query}: {}", page.body);
        assert!(page.body.contains(&expected), "{query}: {expected} {}", page.body);
        assert_eq!(page.body.matches("aria-current=\"page\"").count(), 1, "{query}: {}", page.body);
        assert!(!page.body.contains("grabd admin"), "{query}: {}", page.body);
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn page_is_linked_where_users_look_for_it() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    for path in ["/".to_owned(), "/apps".to_owned(), format!("{team}/keys"), format!("{team}/grabs")] {
        let page = ada.get(&path).await?;
        assert_eq!(page.status, 200, "{path}");
        let content = page.body.split("<main").nth(1).unwrap_or_default();
        assert!(content.contains("href=\"/connect\""), "{path}: {content}");
        let header = page.body.split("<main").next().unwrap_or_default();
        // Once in the bar of wide screens, and once in the menu of narrow ones.
        assert_eq!(header.matches("href=\"/connect\"").count(), 2, "{path}: {header}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_menu_has_each_page_once() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = first_team(&mut ada).await?;
    for path in ["/account".to_owned(), "/teams".to_owned(), "/connect".to_owned(), format!("{team}/grabs")] {
        let page = ada.get(&path).await?;
        let menu = page.body.split("<details class=\"menu\">").nth(1).and_then(|rest| rest.split("</header>").next());
        // Behind the menu of narrow screens are the tabs of wide ones.
        let menu = menu.and_then(|menu| menu.split("</details>").next()).unwrap_or_default();
        for target in ["/account", "/teams", "/apps", "/connect"] {
            assert_eq!(menu.matches(&format!("href=\"{target}\"")).count(), 1, "{path}, {target}: {menu}");
        }
    }
    app.finish().await
}
