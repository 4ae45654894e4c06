//! The gallery's order, page size, new captures and archives, and the result beside the capture form.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use futures::StreamExt;
use futures::future::try_join_all;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::ImageKey;
use grabd_domain::ids::TeamId;
use grabd_engine::accounts;
use grabd_engine::clock::Clock;
use grabd_engine::grabs::{self, ArchiveError, ArchivedImage};
use grabd_tests::{pixels, programs};
use reqwest::header::COOKIE;
use serde_json::json;

use super::team::{capture, placeholder, team_of};
use super::visitor::{REDIRECT, VERIFIER, Visitor, authorization_path, register, start_app};
use super::webhooks::create_webhook;

/// The names of the cards of a page, in their order.
fn names(page: &str) -> Vec<&str> {
    page.split("<bdi class=\"name\">").skip(1).filter_map(|rest| rest.split('<').next()).collect()
}

fn link(page: &str, rel: &str) -> Option<String> {
    let rest = page.split(&format!("rel=\"{rel}\" href=\"")).nth(1)?;
    Some(rest.split('"').next()?.replace("&#38;", "&"))
}

/// Captures placeholders of `example.com/1` and so on, and returns their ids.
async fn history(ada: &mut Visitor<'_>, team: TeamId, count: usize) -> Result<Vec<String>> {
    let mut ids = Vec::new();
    for number in 1..=count {
        let page = placeholder(ada, team, &format!("https://example.com/{number}")).await?;
        ids.push(page.rsplit('/').next().unwrap_or_default().to_owned());
    }
    Ok(ids)
}

#[tokio::test(flavor = "multi_thread")]
async fn gallery_is_sorted_and_has_the_chosen_size() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    history(&mut ada, team, 26).await?;
    let first = ada.get(&format!("/teams/{team}/grabs?environment=test&sort=oldest")).await?.body;
    let shown = names(&first);
    assert_eq!((shown.len(), shown[0], shown[23]), (24, "example.com/1", "example.com/24"));
    assert!(
        first.contains(">Newer</a>") && !first.contains(">Older</a>") && !first.contains("id=\"fresh\""),
        "{first}"
    );
    let second = ada.get(&link(&first, "next").context("a next page")?).await?.body;
    assert_eq!(names(&second), ["example.com/25", "example.com/26"]);
    let back = ada.get(&link(&second, "prev").context("a previous page")?).await?.body;
    assert_eq!(names(&back), shown);
    let searched = ada.get(&format!("/teams/{team}/grabs?environment=test&sort=oldest&q=/2")).await?.body;
    assert_eq!(names(&searched)[..2], ["example.com/2", "example.com/20"]);

    let more = ada.get(&format!("/teams/{team}/grabs?environment=test&size=48")).await?.body;
    assert_eq!((names(&more).len(), names(&more)[0]), (26, "example.com/26"));
    assert!(more.contains("&#38;size=48\" aria-current=\"true\"><bdi>48 per page</bdi>"), "{more}");
    for query in ["size=25", "size=0", "sort=best"] {
        assert_eq!(ada.get(&format!("/teams/{team}/grabs?{query}")).await?.status, 400, "{query}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn new_captures_are_those_after_the_newest_that_is_shown() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let empty = ada.get(&format!("/teams/{team}/grabs?environment=test")).await?.body;
    assert!(empty.contains("data-since=\"\""), "{empty}");
    let ids = history(&mut ada, team, 26).await?;
    placeholder(&mut ada, team, "https://broken.test/").await?;
    let path = format!("/teams/{team}/grabs/new?environment=test");
    let found = ada.get(&format!("{path}&since={}", ids[24])).await?.body;
    assert_eq!(names(&found), ["broken.test", "example.com/26"]);
    assert!(found.contains("data-count=\"2\"") && !found.contains("data-more") && !found.contains("<html"), "{found}");
    let failed = ada.get(&format!("{path}&status=failed&since={}", ids[24])).await?.body;
    assert_eq!(names(&failed), ["broken.test"]);
    // A failed tile tells the reason.
    assert!(failed.contains("class=\"thumb failed\"") && failed.contains("class=\"why\">"), "{failed}");
    assert!(!failed.contains("<strong>"), "failures are as quiet as images: {failed}");
    // Those next to the newest that is shown, when there are more than fit.
    let many = ada.get(&format!("{path}&since={}", ids[0])).await?.body;
    assert!(many.contains("data-count=\"24\" data-more"), "{many}");
    let all = ada.get(&path).await?.body;
    assert_eq!(names(&all)[0], "broken.test");
    for since in ["x", "01993e1c-7b1a-7000-8000-0123456789ab"] {
        assert_eq!(ada.get(&format!("{path}&since={since}")).await?.status, 404, "{since}");
    }
    let shown = ada.get(&format!("/teams/{team}/grabs?environment=test")).await?;
    assert!(shown.body.contains(&format!("data-path=\"{}\"", path.replace('&', "&#38;"))), "{}", shown.body);
    assert!(shown.header("content-security-policy").contains("connect-src 'self'"));
    app.finish().await
}

/// The names and sizes of the files of an archive, whose checksums are checked.
async fn files(archive: &[u8]) -> Result<Vec<(String, Vec<u8>)>> {
    let directory = tempfile::tempdir()?;
    let (file, out) = (directory.path().join("archive.zip"), directory.path().join("out"));
    std::fs::write(&file, archive)?;
    let program = "import sys, zipfile\nz = zipfile.ZipFile(sys.argv[1])\nassert z.testzip() is None\n\
                   assert all(i.compress_type == zipfile.ZIP_STORED and i.date_time[0] > 2020 for i in z.infolist())\n\
                   z.extractall(sys.argv[2])\nprint('\\n'.join(z.namelist()))";
    let path = |path: &Path| path.to_string_lossy().into_owned();
    let arguments = ["-c".to_owned(), program.to_owned(), path(&file), path(&out)];
    let (succeeded, output) = programs::run(&programs::root().join("target/python/bin/python"), &arguments).await?;
    ensure!(succeeded, "{output}");
    output.lines().map(|name| Ok((name.to_owned(), std::fs::read(out.join(name))?))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn selected_images_are_downloaded_as_an_archive() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let mut ids = history(&mut ada, team, 2).await?;
    let failed = placeholder(&mut ada, team, "https://broken.test/").await?;
    let deleted = placeholder(&mut ada, team, "https://example.com/deleted").await?;
    let form_token = ada.get(&format!("{deleted}/delete")).await?.hidden_field("form_token")?;
    ada.post(&format!("{deleted}/delete"), &[("form_token", &form_token)]).await?;
    let download = |ids: &[String]| {
        let query: Vec<String> = ids.iter().map(|id| format!("grab={id}")).collect();
        format!("/teams/{team}/grabs/download?{}", query.join("&"))
    };
    let id = |page: &str| page.rsplit('/').next().unwrap_or_default().to_owned();
    let without_image = [id(&failed), id(&deleted)];
    let none = ada.get(&download(&without_image)).await?;
    assert!(none.status == 400 && none.body.contains("Nothing to download"), "{}", none.body);

    let selected = [&ids[..], &ids[..1], &without_image].concat();
    let url = format!("{}{}", app.service.public_url(), download(&selected));
    let cookie = format!("grabd_session={}", ada.session()?);
    let answer = app.client.get(url).header(COOKIE, &cookie).send().await?;
    assert_eq!((answer.status().as_u16(), &answer.headers()["content-type"]), (200, &"application/zip".parse()?));
    let disposition = answer.headers()["content-disposition"].to_str()?.to_owned();
    assert!(disposition.starts_with("attachment; filename=\"grabd-captures-20"), "{disposition}");
    let files = files(&answer.bytes().await?).await?;
    let found: Vec<&str> = files.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(found, ids.iter().map(|id| format!("example.com-{id}.png")).collect::<Vec<_>>());
    assert!(files.iter().all(|(_, image)| pixels::decode(image).dimensions() == (1280, 720)));

    // The number is bounded, and captures of others do not exist.
    ids.extend((0..99).map(|number| format!("01993e1c-7b1a-7000-8000-{number:012}")));
    let many = ada.get(&download(&ids)).await?;
    assert!(many.status == 400 && many.body.contains("101 captures were selected; at most 100"), "{}", many.body);
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    assert_eq!(eve.get(&download(&ids[..1])).await?.status, 404);
    let hers = team_of(&app, "eve@example.com", 0).await?;
    assert_eq!(eve.get(&format!("/teams/{hers}/grabs/download?grab={}", ids[0])).await?.status, 404);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn archives_at_the_same_time_are_one_for_each_account_and_bounded() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let page = placeholder(&mut ada, team, "https://example.com/").await?;
    let page = ada.get(&page).await?.body;
    let path = page.split("src=\"/i/").nth(1).and_then(|rest| rest.split('"').next()).context("an image")?;
    let key = ImageKey::parse(path.rsplit('/').next().unwrap_or_default()).context("a key")?;
    let core = app.service.core();
    // Together larger than what is read ahead, so that each archive waits for its reader.
    let images = || -> Vec<ArchivedImage> {
        let image = |number| ArchivedImage { name: format!("{number}.png"), key: key.clone(), created_at: core.now() };
        (0..32).map(image).collect()
    };
    let mut first = Box::pin(grabs::archive(core, team, images()).await?);
    let again = grabs::archive(core, team, images()).await.map(|_| ()).err();
    assert_eq!(again, Some(ArchiveError::AccountBusy));
    // Other accounts have the rest of those that are made at the same time.
    let now = core.now();
    let others = (0..32).map(|_| accounts::create_team(app.service.store(), "other", 0, now));
    let others = try_join_all(others).await?;
    let mut open = Vec::new();
    for other in &others[..31] {
        open.push(grabs::archive(core, other.team, images()).await?);
    }
    let last = grabs::archive(core, others[31].team, images()).await.map(|_| ()).err();
    assert_eq!(last, Some(ArchiveError::Busy));
    // One that was read to its end makes room for another one.
    let mut bytes = 0;
    while let Some(chunk) = first.next().await {
        bytes += chunk?.len();
    }
    assert!(bytes > 128 << 10, "{bytes} bytes do not need a reader");
    assert!(grabs::archive(core, team, images()).await.is_ok());
    drop(open);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn form_with_scripts_gets_its_result_as_a_part_of_the_page() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    // The form always sends the field, and the switch only if it is on.
    let fields = [("url", "example.com/a"), ("environment", "live"), ("test_mode", "true"), ("part", "result")];
    let done = capture(&mut ada, team, &fields).await?;
    assert_eq!(done.status, 200, "{}", done.body);
    for words in ["data-once=\"", "Placeholder image", "src=\"/i/", ">Open image</a>", ">Details</a>", "1280 × 720"] {
        assert!(done.body.contains(words), "{words}: {}", done.body);
    }
    assert!(!done.body.contains("<html") && !done.body.contains("data-events"), "{}", done.body);
    let page = done.body.split("href=\"/teams/").nth(1).and_then(|rest| rest.split('"').next()).context("a link")?;
    let events = ada.get(&format!("/teams/{page}/events?part=result")).await?.body;
    assert!(events.contains("Open image") && events.trim_end().contains("event: end"), "{events}");

    for (field, value, expected) in
        [("url", "", "<a href=\"#url\">Enter a web address"), ("width", "9", "<a href=\"#width\">Width must be")]
    {
        let mut fields = fields.to_vec();
        fields.retain(|(name, _)| *name != field);
        let refused = capture(&mut ada, team, &[&fields[..], &[(field, value)]].concat()).await?;
        assert_eq!(refused.status, 422, "{}", refused.body);
        assert!(refused.body.contains(expected) && refused.body.contains("data-once=\""), "{}", refused.body);
        assert!(!refused.body.contains("<html"), "{}", refused.body);
    }
    // A live capture needs credits, and is followed by its events.
    let no_credits = capture(&mut ada, team, &[fields[0], fields[1], fields[3]]).await?;
    assert!(no_credits.status == 422 && no_credits.body.contains("Use test mode"), "{}", no_credits.body);
    // Without credits the switch is on, and with credits off.
    let switch = |body: &str| body.contains("name=\"test_mode\" value=\"true\" checked");
    assert!(switch(&ada.get(&format!("/teams/{team}/capture")).await?.body));
    team_of(&app, "ada@example.com", 5).await?;
    assert!(!switch(&ada.get(&format!("/teams/{team}/capture")).await?.body));
    assert!(switch(&ada.get(&format!("/teams/{team}/capture?environment=test")).await?.body));
    app.finish().await
}

/// How many of the first steps are done, of those that a page shows.
fn steps(body: &str) -> Option<(usize, usize)> {
    let list = body.split("<h2 id=\"steps-title\">").nth(1)?.split("</ol>").next()?;
    Some((list.matches("<li class=\"done\">").count(), list.matches("<li").count()))
}

#[tokio::test(flavor = "multi_thread")]
async fn first_steps_are_shown_until_a_team_can_work_or_they_are_hidden() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut bob = Visitor::with_account(&app, "bob@example.com").await?;
    let [team, his] = [team_of(&app, "ada@example.com", 0).await?, team_of(&app, "bob@example.com", 0).await?];
    let path = format!("/teams/{team}/grabs");
    assert_eq!(steps(&ada.get(&path).await?.body), Some((0, 4)));
    let fields = [("url", "https://hooks.example.com/"), ("events", "*"), ("environment", "test")];
    create_webhook(&mut ada, team, &fields).await?;
    placeholder(&mut ada, team, "https://example.com/").await?;
    let page = ada.get(&path).await?;
    assert_eq!(steps(&page.body), Some((2, 4)), "{}", page.body);
    let [pictures, list] = ["class=\"gallery\"", "steps-title"].map(|part| page.body.find(part));
    assert!(pictures < list, "captures come first: {}", page.body);
    assert_eq!(steps(&ada.get(&format!("{path}?status=done")).await?.body), None, "only on the first page");
    // An authorization counts when the app has its token.
    let client = register(&app).await?;
    let consent = ada.get(&authorization_path(&client, &[])?).await?;
    let code = ada.decide(&consent, "allow", &[]).await?.redirect_param("code")?;
    assert_eq!(steps(&ada.get(&path).await?.body), Some((2, 4)));
    let exchange = [
        ("grant_type", "authorization_code"),
        ("code", &*code),
        ("client_id", &*client),
        ("redirect_uri", REDIRECT),
        ("code_verifier", VERIFIER),
    ];
    assert_eq!(ada.post("/v1/oauth/token", &exchange).await?.status, 200);
    assert_eq!(steps(&ada.get(&path).await?.body), None);

    // Hidden by each user for each team.
    let page = bob.get(&format!("/teams/{his}/grabs")).await?;
    let hide = [("form_token", &*page.hidden_field("form_token")?)];
    assert_eq!(bob.post(&format!("/teams/{his}/first-steps"), &[]).await?.status, 403);
    let hidden = bob.post(&format!("/teams/{his}/first-steps"), &hide).await?;
    assert_eq!((hidden.status, hidden.location()), (303, &*format!("/teams/{his}/grabs")));
    assert_eq!(steps(&bob.get(hidden.location()).await?.body), None);

    // A key is enough as well.
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let hers = team_of(&app, "eve@example.com", 0).await?;
    placeholder(&mut eve, hers, "https://example.com/").await?;
    let path = format!("/teams/{hers}/grabs");
    let page = eve.get(&path).await?;
    assert_eq!(steps(&page.body), Some((1, 4)), "{}", page.body);
    accounts::issue_key(app.service.store(), hers, Environment::Test, "ours", Clock::system().now()).await?;
    assert_eq!(steps(&eve.get(&path).await?.body), None);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn gallery_shows_the_captures_of_one_key() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let mut eve = Visitor::with_account(&app, "eve@example.com").await?;
    let [team, hers] = [team_of(&app, "ada@example.com", 0).await?, team_of(&app, "eve@example.com", 0).await?];
    placeholder(&mut ada, team, "https://example.com/by-hand").await?;
    let path = format!("/teams/{team}/grabs?environment=test");
    assert!(!ada.get(&path).await?.body.contains("All keys"), "a team without keys");
    let now = Clock::system().now();
    let (_, secret) = accounts::issue_key(app.service.store(), team, Environment::Test, "build server", now).await?;
    let create = app.client.post(format!("{}/grabs", app.base())).bearer_auth(secret.expose());
    let request = json!({ "url": "https://example.com/by-key", "device": "phone", "full_page": true });
    assert_eq!(create.json(&request).send().await?.status(), 200);

    let all = ada.get(&path).await?.body;
    assert_eq!(names(&all), ["example.com/by-key", "example.com/by-hand"]);
    assert!(all.contains("<span class=\"about\">phone · full page</span>"), "{all}");
    let before = all.split("\"><bdi>build server</bdi>").next().filter(|before| before.len() < all.len());
    let link = before.and_then(|before| before.rsplit("href=\"").next()).context("a link to the key")?;
    let link = link.replace("&#38;", "&");
    let listed = ada.get(&link).await?.body;
    assert_eq!(names(&listed), ["example.com/by-key"]);
    assert!(listed.contains(">Clear</a>"), "{listed}");
    let new = ada.get(&link.replace("/grabs?", "/grabs/new?")).await?.body;
    assert_eq!(names(&new), ["example.com/by-key"]);
    for (query, expected) in [("&q=by-key", 1), ("&q=by-hand", 0), ("&status=failed", 0)] {
        assert_eq!(names(&ada.get(&format!("{link}{query}")).await?.body).len(), expected, "{query}");
    }
    // The key of another team is one without captures, and its name is not shown.
    let foreign = eve.get(&link.replace(&team.to_string(), &hers.to_string())).await?.body;
    assert!(names(&foreign).is_empty() && !foreign.contains("build server"), "{foreign}");
    assert_eq!(ada.get(&format!("{path}&key=x")).await?.status, 400);
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn presets_fill_in_a_size_without_scripts_and_keep_the_form() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 5).await?;
    let path = format!("/teams/{team}/capture");
    let form = ada.get(&path).await?;
    let form_token = form.hidden_field("form_token")?;
    assert!(form.body.contains("placeholder=\"1280\"") && form.body.contains(" autofocus"), "{}", form.body);
    let main = form.body.split("class=\"group\"").next().unwrap_or_default();
    for words in [">Dark mode<", ">Leave out<", ">Cookie banners<", ">Full page<"] {
        assert!(main.contains(words), "{words} is not in the first group: {main}");
    }
    let fields = [("form_token", &*form_token), ("url", "example.com/a"), ("width", "800"), ("full_page", "true")];
    let phone = ada.post(&format!("{path}/code"), &[&fields[..], &[("preset", "Phone")]].concat()).await?;
    assert_eq!(phone.status, 200);
    for words in [
        "value=\"example.com/a\"",
        "<option value=\"phone\" selected>Phone</option>",
        "placeholder=\"390\"",
        "name=\"full_page\" value=\"true\" checked",
        "data-fields=\"device=phone\" aria-pressed=\"true\"",
    ] {
        assert!(phone.body.contains(words), "{words}: {}", phone.body);
    }
    assert!(!phone.body.contains("value=\"800\""), "{}", phone.body);
    let part = ada.get(&format!("{path}?part=balance")).await?.body;
    assert!(part.contains("1 of 5 credits") && !part.contains("<html"), "{part}");
    let none = ada.get(&format!("/teams/{team}/grabs")).await?.body;
    assert!(none.contains("No captures yet"), "{none}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_show_times_in_utc_and_say_so_once() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    placeholder(&mut ada, team, "https://example.com/").await?;
    for page in [format!("/teams/{team}/grabs?environment=test"), "/account".to_owned()] {
        let body = ada.get(&page).await?.body;
        assert!(body.contains("<time datetime=\""), "{body}");
        assert_eq!(body.matches("UTC").count(), 1, "{body}");
    }
    app.finish().await
}
