//! Site jobs through the pages: created, shown with their captures, downloaded, canceled and deleted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::ids::TeamId;

use super::team::team_of;
use super::visitor::{PageResponse, Visitor, start_app};

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long a job with one page may take.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

/// The fields of the form with which only the start page is captured.
const FIELDS: [(&str, &str); 3] = [("source", "links"), ("max_pages", "5"), ("max_depth", "0")];

async fn send(visitor: &mut Visitor<'_>, path: &str, fields: &[(&str, &str)]) -> Result<PageResponse> {
    // Every page of a signed-in user has a form.
    let form_token = visitor.get("/apps").await?.hidden_field("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

/// Starts a job with test captures. Returns the path of its page.
pub(super) async fn create_site(visitor: &mut Visitor<'_>, team: TeamId, fields: &[(&str, &str)]) -> Result<String> {
    start_site(visitor, team, &[&[("environment", "test")], fields].concat()).await
}

async fn start_site(visitor: &mut Visitor<'_>, team: TeamId, fields: &[(&str, &str)]) -> Result<String> {
    let answer = send(visitor, &format!("/teams/{team}/sites/new"), &[&FIELDS[..], fields].concat()).await?;
    ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
    Ok(answer.location().strip_suffix("?created").context("the page of the job")?.to_owned())
}

/// The page of a job, once it contains these words.
async fn wait_for(visitor: &mut Visitor<'_>, path: &str, words: &str) -> Result<PageResponse> {
    let poll = async {
        let mut ticks = tokio::time::interval(POLL_INTERVAL);
        loop {
            ticks.tick().await;
            let page = visitor.get(path).await?;
            if page.body.contains(words) {
                return Ok(page);
            }
        }
    };
    tokio::time::timeout(WAIT_LIMIT, poll).await.with_context(|| format!("{path} does not say {words}"))?
}

#[tokio::test(flavor = "multi_thread")]
async fn site_is_captured_shown_downloaded_and_deleted() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let list = format!("/teams/{team}/sites");
    let empty = ada.get(&list).await?;
    assert!(empty.body.contains("No sites yet") && empty.body.contains("Capture a site"), "{}", empty.body);

    let url = app.site.url("/tiny");
    let fields = [("url", &*url), ("name", "Shop & <b>"), ("exclude", "/old/*\r\n\r\n*?print=*"), ("width", "800")];
    let path = create_site(&mut ada, team, &fields).await?;
    let page = wait_for(&mut ada, &path, "All captures have ended.").await?;
    for words in ["Shop &#38; &#60;b&#62;", "1 page found: 1 captured", "/old/*, *?print=*", "All captures have ended."]
    {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    assert!(!page.body.contains("http-equiv=\"refresh\"") && !page.body.contains("data-events"), "{}", page.body);
    let capture = page.body.split("<a href=\"").find(|rest| rest.contains("/thumbnail\"")).context("a card")?;
    let capture = capture.split('"').next().unwrap_or_default();
    assert!(ada.get(capture).await?.body.contains("width=\"800\""), "the options of the form are used");
    let archive = ada.get(&format!("{path}/download")).await?;
    assert_eq!((archive.status, &archive.body[..2]), (200, "PK"));
    let updates = ada.get(&format!("{path}/events")).await?;
    assert!(updates.body.contains("event: parts") && updates.body.contains("event: end"), "{}", updates.body);

    let listed = ada.get(&list).await?.body;
    for words in ["Shop &#38; &#60;b&#62;", "1 page found: 1 captured", &path] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    assert!(ada.get(&format!("{path}/delete")).await?.body.contains("Its captures stay."));
    let deleted = send(&mut ada, &format!("{path}/delete"), &[]).await?;
    assert!(ada.get(deleted.location()).await?.body.contains("Job deleted."));
    assert_eq!(ada.get(&path).await?.status, 404);
    assert_eq!(ada.get(capture).await?.status, 200, "the capture stays");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_site_jobs_are_refused_with_the_field() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let path = format!("/teams/{team}/sites/new");
    let form = ada.get(&path).await?.body;
    for left_out in ["name=\"compare_to\"", "name=\"max_age\"", "name=\"upload_url\""] {
        assert!(!form.contains(left_out), "{left_out}: {form}");
    }
    let (url, test) = (("url", "https://example.com/"), ("environment", "test"));
    let links = ("source", "links");
    for (fields, field, words) in [
        (&[test, links][..], "url", "Enter"),
        (&[url, links, ("environment", "x")], "environment", "Choose an environment."),
        (&[url, test], "source", "Choose how pages are found."),
        (&[url, test, links, ("max_pages", "0")], "max_pages", "from 1 to 1000"),
        (&[url, test, links, ("max_pages", "6€")], "max_pages", "from 1 to 1000"),
        (&[url, test, links, ("max_depth", "11")], "max_depth", "from 0 to 10"),
        (&[url, test, links, ("include", "docs")], "include", "which begin with / or *"),
        (&[url, test, links, ("exclude", "docs")], "exclude", "which begin with / or *"),
        (&[url, test, links, ("requests_per_minute", "121")], "requests_per_minute", "from 1 to 120"),
        (&[url, test, links, ("width", "1")], "width", "Width must be"),
    ] {
        let answer = send(&mut ada, &path, fields).await?;
        assert_eq!(answer.status, 422, "{fields:?}: {}", answer.body);
        let link = format!("<a href=\"#{field}\">");
        assert!(answer.body.contains(&link) && answer.body.contains(words), "{fields:?}: {}", answer.body);
        assert!(answer.body.contains(&format!("id=\"{field}\"")), "{field}: {}", answer.body);
    }
    assert!(ada.get(&format!("/teams/{team}/sites")).await?.body.contains("No sites yet"));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn open_job_updates_its_page_and_can_be_canceled() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    // Without a browser, the capture of a live job waits.
    let url = app.site.url("/tiny");
    let path = start_site(&mut ada, team, &[("url", &*url), ("environment", "live")]).await?;
    let page = ada.get(&format!("{path}?created")).await?.body;
    for words in ["Job started.", "http-equiv=\"refresh\"", "data-events=", "Cancel…", "Show new captures"] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(ada.get(&format!("{path}/cancel")).await?.body.contains("The job cannot be continued."));
    let canceled = send(&mut ada, &format!("{path}/cancel"), &[]).await?;
    let page = ada.get(canceled.location()).await?.body;
    assert!(page.contains("Job canceled.") && page.contains("class=\"state deleted\">Canceled<"), "{page}");
    assert!(!page.contains("Cancel…"), "{page}");
    // The trail says what was done.
    let trail = ada.get(&format!("/teams/{team}/audit")).await?.body;
    assert!(trail.contains("canceled"), "{trail}");
    app.finish().await
}
