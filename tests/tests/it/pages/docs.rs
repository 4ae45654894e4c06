//! The documentation: its examples can be tried in the form for a new capture, and run as they stand.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use grabd_tests::harness::TestApp;
use grabd_tests::programs;

use super::operator::set_operator;
use super::team::team_of;
use super::visitor::{PASSWORD, PageResponse, Visitor, start_app};

/// The buttons of the first example of a page that captures a full page.
async fn first_example(visitor: &mut Visitor<'_>, page: &str) -> Result<PageResponse> {
    let mut response = visitor.get(page).await?;
    let mut examples =
        response.body.split("<div class=\"run buttons\">").skip(1).filter_map(|rest| rest.split("</div>").next());
    let buttons = examples.find(|buttons| buttons.contains("full_page"));
    response.body = buttons.with_context(|| format!("{page} has no such example: {}", response.body))?.to_owned();
    Ok(response)
}

/// The path of the link to try that example.
async fn form_link(visitor: &mut Visitor<'_>, page: &str) -> Result<String> {
    let buttons = first_example(visitor, page).await?.body;
    let link = buttons.split("<a class=\"button\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    let link = link.with_context(|| format!("no link: {buttons}"))?;
    Ok(link.replace("&#38;", "&").replace("&amp;", "&"))
}

/// Checks that the form has the options of that example of "Getting the right image".
fn check_form(form: &PageResponse) -> Result<()> {
    for field in [
        "name=\"url\" type=\"text\" inputmode=\"url\" maxlength=\"4096\" value=\"https://example.com/\"",
        "name=\"test_mode\" value=\"true\" checked",
        "<option value=\"phone\" selected>",
        "<option value=\"dark\" selected>",
        "name=\"full_page\" value=\"true\" checked",
    ] {
        ensure!(form.status == 200 && form.body.contains(field), "{field}: {} {}", form.status, form.body);
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn example_fills_in_the_form_in_test_mode() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    // Without a mode in the link, the form would be in live mode.
    let team = team_of(&app, "ada@example.com", 5).await?;
    let link = form_link(&mut ada, "/docs/picture").await?;
    let redirect = ada.get(&link).await?;
    assert_eq!(redirect.status, 303);
    ensure!(redirect.location().starts_with(&format!("/teams/{team}/capture?url=")), "{}", redirect.location());
    check_form(&ada.get(redirect.location()).await?)?;
    assert_eq!(ada.get("/capture").await?.location(), format!("/teams/{team}/capture"));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn visitor_signs_in_before_the_form_is_filled_in() -> Result<()> {
    let app = start_app(&[]).await?;
    Visitor::with_account(&app, "ada@example.com").await?;
    let mut visitor = Visitor::new(&app);
    let link = form_link(&mut visitor, "/docs/picture").await?;
    let redirect = visitor.get(&link).await?;
    ensure!(redirect.status == 303 && redirect.location().starts_with("/sign-in?next="), "{}", redirect.location());
    let next = visitor.get(redirect.location()).await?.hidden_field("next")?;
    assert_eq!(next, link);
    let signed_in = visitor.sign_in("ada@example.com", PASSWORD, &next).await?;
    assert_eq!((signed_in.status, signed_in.location()), (303, &*link));
    let redirect = visitor.get(signed_in.location()).await?;
    check_form(&visitor.get(redirect.location()).await?)?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_example_of_one_capture_has_one_link_on_its_page_alone() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut visitor = Visitor::new(&app);
    // The quickstart has one example in five languages. On the page of captures, the batch cannot be tried, and on that of
    // files the upload, whose URL is secret.
    for (page, examples) in [("quickstart", 1), ("captures", 6), ("picture", 5), ("files", 5), ("webhooks", 0)] {
        let body = visitor.get(&format!("/docs/{page}")).await?.body;
        assert_eq!(body.matches(">Open in the capture form <").count(), examples, "{page}");
        ensure!(!body.contains(">Run it <"), "visitors cannot run {page}: {body}");
        let markdown = visitor.get(&format!("/docs/{page}.md")).await?.body;
        ensure!(!markdown.contains("<!--example") && !markdown.contains("/capture?"), "{page}: {markdown}");
    }
    let list = visitor.get("/llms.txt").await?.body;
    ensure!(!list.contains("<!--example") && !list.contains("/capture?"), "{list}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn signed_in_user_runs_an_example_once_in_test_mode() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    let buttons = first_example(&mut ada, "/docs/picture").await?;
    ensure!(buttons.body.contains(">Run it <"), "{}", buttons.body);
    let path = format!("/teams/{team}/capture");
    ensure!(buttons.body.contains(&format!("<form method=\"post\" action=\"{path}\">")), "{}", buttons.body);
    let inputs = buttons.body.split("<input type=\"hidden\" name=\"").skip(1);
    let field = |input: &str| {
        let (name, rest) = input.split_once("\" value=\"")?;
        Some((name.to_owned(), rest.split('"').next()?.replace("&#38;", "&")))
    };
    let fields: Vec<(String, String)> = inputs.filter_map(field).collect();
    let fields: Vec<(&str, &str)> = fields.iter().map(|(name, value)| (&**name, &**value)).collect();
    ensure!(fields.contains(&("environment", "test")) && fields.contains(&("full_page", "true")), "{fields:?}");
    let ran = ada.post(&path, &fields).await?;
    ensure!(ran.status == 303 && ran.location().starts_with(&format!("/teams/{team}/grabs/")), "{}", ran.body);
    assert_eq!(ada.get(ran.location()).await?.status, 200);
    // A form that is sent twice makes one capture, and nothing is charged.
    assert_eq!(ada.post(&path, &fields).await?.location(), ran.location());
    assert!(ada.get(&format!("/teams/{team}/billing")).await?.body.contains("<dt>Balance</dt><dd>5</dd>"));
    // Another page of the documentation has a key of its own.
    let again = first_example(&mut ada, "/docs/picture").await?;
    assert_ne!(again.hidden_field("once")?, buttons.hidden_field("once")?);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn search_lists_results_for_customers_before_those_for_operators() -> Result<()> {
    let app = start_app(&[]).await?;
    let page = Visitor::new(&app).get("/docs/search?q=full+page").await?.body;
    let (customers, operators) = page.split_once(">For operators</h2>\n<ol").context("two lists")?;
    let (_, customers) = customers.split_once(">For customers</h2>\n<ol").context("two lists")?;
    let first = customers.split("<a href=\"").nth(1).and_then(|rest| rest.split('"').next());
    assert_eq!(first, Some("/docs/options#full_page"));
    ensure!(operators.contains("<a href=\"/docs/") && !customers.contains("/docs/settings"), "{page}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn hidden_self_hosting_pages_are_seen_by_operators_alone() -> Result<()> {
    let app = start_app(&[("docs.self_hosting", "hide")]).await?;
    let mut olga = Visitor::with_account(&app, "olga@example.com").await?;
    set_operator(&app, "olga@example.com", true).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    for path in ["/docs/install", "/docs/install.md", "/docs/settings", "/docs/the-network-jail"] {
        assert_eq!(ada.get(path).await?.status, 404, "{path}");
        assert_eq!(Visitor::new(&app).get(path).await?.status, 404, "{path}");
        let seen = olga.get(path).await?;
        ensure!([200, 308].contains(&seen.status), "{path}: {}", seen.status);
    }
    assert_eq!(olga.get("/docs/install.md").await?.header("cache-control"), "private, max-age=300");
    for path in ["/", "/docs", "/docs/search?q=filter+lists", "/docs/blocking", "/llms.txt"] {
        let shown = ada.get(path).await?.body;
        ensure!(!shown.contains("/docs/browser") && !shown.contains("/docs/operating"), "{path}: {shown}");
        ensure!(!shown.contains("For operators"), "{path}: {shown}");
    }
    ensure!(olga.get("/docs").await?.body.contains(">For operators</h2>"));
    ensure!(olga.get("/docs/search?q=filter+lists").await?.body.contains("\"/docs/browser#filter-lists\""));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn api_reference_has_the_shell_of_the_documentation() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut visitor = Visitor::new(&app);
    let first = visitor.get("/docs/api").await?;
    for part in ["id=\"q\"", "<a href=\"/docs/api\" aria-current=\"page\">", "id=\"render_blocked\""] {
        ensure!(first.status == 200 && first.body.contains(part), "{part}: {}", first.body);
    }
    let links = first.body.split("<a href=\"/docs/api").skip(1).filter_map(|rest| rest.split('"').next());
    let pages: BTreeSet<&str> = links.filter_map(|link| link.split('#').next()).collect();
    ensure!(pages.len() >= 6, "{pages:?}");
    for page in pages {
        let shown = visitor.get(&format!("/docs/api{page}")).await?;
        ensure!(shown.status == 200 && shown.body.contains("id=\"q\""), "{page}: {}", shown.status);
        assert_eq!(visitor.get(&format!("/docs/api{page}.md")).await?.status, 404);
    }
    assert_eq!(visitor.get("/docs/api/nothing").await?.status, 404);
    let found = visitor.get("/docs/search?q=list+grabs").await?.body;
    ensure!(found.contains("<a href=\"/docs/api/grabs#listGrabs\">"), "{found}");
    app.finish().await
}

/// The keys of a table, such as `http.listen`, with their values.
fn settings(table: &toml::Table, section: &str) -> Vec<(String, toml::Value)> {
    let mut found = Vec::new();
    for (name, value) in table {
        match value.as_table() {
            Some(inner) => found.extend(settings(inner, &format!("{name}."))),
            None => found.push((format!("{section}{name}"), value.clone())),
        }
    }
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn every_setting_is_on_the_page_of_settings_with_its_default_and_its_variable() -> Result<()> {
    let app = start_app(&[]).await?;
    let page = Visitor::new(&app).get("/docs/settings.md").await?.body;
    let html = Visitor::new(&app).get("/docs/settings").await?.body;
    let settings = settings(&grabd::config::DEFAULT.parse()?, "");
    ensure!(settings.len() > 90, "{}", settings.len());
    for (key, default) in settings {
        let name = key.rsplit('.').next().context("a name")?;
        let variable = format!("GRABD_{}", key.replace('.', "__").to_uppercase());
        let line = format!("- `{name} = {default}`, in the environment `{variable}`\n");
        ensure!(page.contains(&line), "{line} is missing: {page}");
        ensure!(html.contains(&format!("<code>{key}</code>")) && html.contains(&variable), "{key} is missing: {html}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn former_chapter_for_operators_leads_to_its_heading() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut visitor = Visitor::new(&app);
    let moved = visitor.get("/docs/the-network-jail").await?;
    assert_eq!((moved.status, moved.location()), (308, "/docs/browser#the-network-jail"));
    assert_eq!(visitor.get("/docs/no-such-page").await?.status, 404);
    app.finish().await
}

/// Runs a step of a workflow as GitHub's runners do, in a directory of its own.
async fn run_step(app: &TestApp, script: &str, directory: &Path) -> Result<(bool, String)> {
    let file = directory.join("step.sh");
    std::fs::write(&file, script)?;
    let (key, path) = (format!("GRAB_API_KEY={}", app.test()), |path: &Path| path.to_string_lossy().into_owned());
    let arguments = ["--chdir".to_owned(), path(directory), key, "bash".to_owned(), "-e".to_owned(), path(&file)];
    programs::run(Path::new("env"), &arguments).await
}

#[tokio::test(flavor = "multi_thread")]
async fn step_of_the_workflow_saves_the_image_or_fails_with_the_error() -> Result<()> {
    let app = start_app(&[]).await?;
    let guide = Visitor::new(&app).get("/docs/automation.md").await?.body;
    let (_, step) = guide.split_once("run: |\n").context("a step with a script")?;
    let lines = step.lines().map_while(|line| line.strip_prefix("          "));
    let script = lines.flat_map(|line| [line, "\n"]).collect::<String>();

    let directory = tempfile::tempdir()?;
    let (succeeded, output) = run_step(&app, &script, directory.path()).await?;
    ensure!(succeeded && output.is_empty(), "{output}\n{script}");
    let image = std::fs::read(directory.path().join("page.png"))?;
    ensure!(image.starts_with(b"\x89PNG"), "{:?}", image.get(..16));

    let refused = script.replace("https://example.com", "http://blocked.test/");
    let directory = tempfile::tempdir()?;
    let (succeeded, output) = run_step(&app, &refused, directory.path()).await?;
    ensure!(!succeeded && output.contains("\"code\":\"render_blocked\""), "{output}\n{refused}");
    ensure!(!directory.path().join("page.png").exists(), "there is no image");
    app.finish().await
}
