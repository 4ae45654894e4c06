//! The documentation: its examples can be tried in the form for a new capture, and run as they stand.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use grabd_tests::harness::TestApp;
use grabd_tests::programs;

use super::team::team_of;
use super::visitor::{PASSWORD, PageResponse, Visitor, start_app};

/// The path of the link to try the first example of a page.
async fn run_link(visitor: &mut Visitor<'_>, page: &str) -> Result<String> {
    let body = visitor.get(page).await?.body;
    let link =
        body.split("<p class=\"run\"><a class=\"button\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    Ok(link.with_context(|| format!("{page} has no link to try an example: {body}"))?.replace("&amp;", "&"))
}

/// Checks that the form has the options of the first example of "Getting the right image".
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
    let link = run_link(&mut ada, "/docs/picture").await?;
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
    let link = run_link(&mut visitor, "/docs/picture").await?;
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
    for (page, examples) in [("quickstart", 1), ("captures", 1), ("picture", 2), ("files", 2), ("webhooks", 0)] {
        let body = visitor.get(&format!("/docs/{page}")).await?.body;
        assert_eq!(body.matches(">Run it <").count(), examples, "{page}");
        let markdown = visitor.get(&format!("/docs/{page}.md")).await?.body;
        ensure!(!markdown.contains("Run it") && !markdown.contains("/capture?"), "{page}: {markdown}");
    }
    let list = visitor.get("/llms.txt").await?.body;
    ensure!(!list.contains("Run it") && !list.contains("/capture?"), "{list}");
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
