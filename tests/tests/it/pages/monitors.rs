//! Monitors through the pages: created, run, changed, paused, resumed and deleted.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use grabd_domain::ids::TeamId;
use grabd_tests::harness::TestApp;
use sea_orm::{ConnectionTrait, Database};

use super::team::{capture, placeholder, team_of};
use super::visitor::{PASSWORD, PageResponse, Visitor, start_app};

/// Poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(100);
/// How long the first run may take.
const WAIT_LIMIT: Duration = Duration::from_secs(30);

async fn send(visitor: &mut Visitor<'_>, path: &str, fields: &[(&str, &str)]) -> Result<PageResponse> {
    // Every page of a signed-in user has a form.
    let form_token = visitor.get("/apps").await?.hidden_field("form_token")?;
    visitor.post(path, &[&[("form_token", &*form_token)], fields].concat()).await
}

/// The fields of the form with which a placeholder is made every day.
const FIELDS: [(&str, &str); 6] = [
    ("environment", "test"),
    ("every", "1d"),
    ("compare_image", "true"),
    ("threshold", "0.1"),
    ("baseline", "latest"),
    ("notify_webhook", "true"),
];

/// Creates a monitor with test captures. Returns the path of its page.
pub(super) async fn create_monitor(visitor: &mut Visitor<'_>, team: TeamId, fields: &[(&str, &str)]) -> Result<String> {
    let answer = send(visitor, &format!("/teams/{team}/monitors/new"), &[&FIELDS[..], fields].concat()).await?;
    ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
    Ok(answer.location().strip_suffix("?created").context("the page of the monitor")?.to_owned())
}

/// The page of a monitor, once it contains these words.
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

/// The id at the end of a path.
fn id_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}

/// Makes a placeholder with its text, which names the URL. Returns its id.
async fn with_text(visitor: &mut Visitor<'_>, team: TeamId, url: &str) -> Result<String> {
    let answer = capture(visitor, team, &[("url", url), ("environment", "test"), ("also", "text")]).await?;
    ensure!(answer.status == 303, "{} {}", answer.status, answer.body);
    Ok(id_of(answer.location()))
}

/// Lines of the text that the reported run has kept: one that was replaced, one that was removed, and one that was added.
const TEXT_CHANGES: &str = r#"[{"before":"Basic: 5 € a month","after":"Basic: 6 € a month"},{"before":"Sold out","after":null},{"before":null,"after":"Free delivery"}]"#;

/// Runs of each outcome, before the first one that the service makes: hours before, outcome, millionths that differ, what changed,
/// and whether it was reported.
const EARLIER_RUNS: [&str; 7] = [
    "1, 3, 21000, 1, 1",
    "2, 2, 400, 0, 0",
    "3, 4, NULL, 0, 0",
    "4, 5, NULL, 0, 0",
    "5, 3, 2000, 3, 0",
    "6, 2, 0, 0, 0",
    "7, 1, NULL, 0, 0",
];

/// Creates an account whose team has a monitor with runs of each outcome. Returns the path of its page.
pub(super) async fn monitor_with_runs(app: &TestApp, email: &str) -> Result<String> {
    let mut bob = Visitor::with_account(app, email).await?;
    let team = team_of(app, email, 0).await?;
    let path = create_monitor(&mut bob, team, &[("url", "https://example.com/prices"), ("name", "Prices")]).await?;
    wait_for(&mut bob, &path, "First capture").await?;
    let database = Database::connect(format!("sqlite://{}", app.data_dir().join("grabd.db").display())).await?;
    for run in EARLIER_RUNS {
        let mut columns = run.split(", ");
        let mut next = || columns.next().context("a column");
        let (hours, outcome, ppm, changes, alerted) = (next()?, next()?, next()?, next()?, next()?);
        let error = if outcome == "4" { "'render_failed', 'The page could not be loaded.'" } else { "NULL, NULL" };
        let sql = format!(
            "INSERT INTO monitor_runs (id, monitor_id, due_at, outcome, grab_id, compared_to, difference_ppm, changes, \
             alerted, claimed_at, finished_at, error_code, error_message) \
             SELECT randomblob(16), id, created_at - 3600000 * {hours}, {outcome}, NULL, NULL, {ppm}, {changes}, {alerted}, \
             created_at - 3600000 * {hours}, created_at - 3600000 * {hours} + 5000, {error} FROM monitors"
        );
        database.execute_unprepared(&sql).await?;
    }
    let earlier = with_text(&mut bob, team, "https://example.com/old").await?.replace('-', "");
    let later = with_text(&mut bob, team, "https://example.com/new").await?.replace('-', "");
    let sql = format!(
        "UPDATE monitor_runs SET grab_id = x'{later}', compared_to = x'{earlier}', text_changes = '{TEXT_CHANGES}' \
         WHERE difference_ppm = 21000"
    );
    database.execute_unprepared(&sql).await?;
    database.close().await?;
    Ok(path)
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_with_what_they_found_and_drawn() -> Result<()> {
    let app = start_app(&[]).await?;
    let path = monitor_with_runs(&app, "bob@example.com").await?;
    let database = Database::connect(format!("sqlite://{}", app.data_dir().join("grabd.db").display())).await?;
    let script = "<script>alert(1)</script>";
    let lines =
        format!(r#"[{{"before":"5 <b>","after":null}},{{"before":"Tea: 5 € {script}","after":"Tea: 6 € {script}"}}]"#);
    let sql = format!("UPDATE monitor_runs SET text_changes = '{lines}' WHERE difference_ppm = 21000");
    database.execute_unprepared(&sql).await?;
    database.close().await?;
    let mut bob = Visitor::new(&app);
    bob.sign_in("bob@example.com", PASSWORD, "").await?;
    let page = bob.get(&path).await?.body;
    for words in [
        "<td><del>5 &#60;b&#62;</del></td>",
        "No line",
        "<td>Tea: <del>5</del> € &#60;script&#62;alert(1)&#60;/script&#62;</td>",
        "<td>Tea: <ins>6</ins> € &#60;script&#62;alert(1)&#60;/script&#62;</td>",
        "Compare the whole texts",
        "2.1 % of the image differs.",
        "Reported",
        "Less than 0.1 % of the image differs.",
        "0.2 % of the image differs; the HTTP status has changed.",
        "The page could not be loaded.",
        "Nothing was captured.",
        "Changed part of the image in the last 8 runs. Changed: 2. Failed: 1. Most: 2.1 %.",
        "Threshold: 0.1 %",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("<script>alert"), "{page}");
    assert_eq!(page.matches("<rect class=\"place\"").count(), 8, "{page}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn monitor_is_created_run_changed_paused_and_deleted() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let list = format!("/teams/{team}/monitors");
    let empty = ada.get(&list).await?;
    assert!(empty.body.contains("No monitors yet") && empty.body.contains("Create monitor"), "{}", empty.body);

    let fields = [("url", "example.com/<b>"), ("name", "Price & <b>"), ("width", "800")];
    let path = create_monitor(&mut ada, team, &fields).await?;
    let page = wait_for(&mut ada, &path, ">This capture<").await?;
    for words in
        ["Price &#38; &#60;b&#62;", "Every day", "Active", "The image, from 0.1 %", "By webhook", "This capture"]
    {
        assert!(page.body.contains(words), "{words}: {}", page.body);
    }
    let capture = page.body.split("<a href=\"").find(|rest| rest.contains(">Capture</a>")).context("a capture")?;
    let capture = capture.split('"').next().unwrap_or_default();
    assert!(ada.get(capture).await?.body.contains("width=\"800\""), "the options of the form are used");
    let listed = ada.get(&list).await?.body;
    for words in ["Price &#38; &#60;b&#62;", "Last run", "Next run", &path] {
        assert!(listed.contains(words), "{words}: {listed}");
    }

    // The form has the current values.
    let form = ada.get(&format!("{path}/change")).await?.body;
    for field in
        ["value=\"Price &#38; &#60;b&#62;\"", "<option value=\"1d\" selected>", "name=\"threshold\"", "value=\"0.1\""]
    {
        assert!(form.contains(field), "{field}: {form}");
    }
    let changes = [
        ("url", "https://example.com/"),
        ("name", "Shop"),
        ("every", "cron"),
        ("cron", "0 8 * * 1-5"),
        ("time_zone", "Europe/Vienna"),
        ("compare_status", "true"),
        ("alert_after", "3"),
        ("notify_email", "true"),
    ];
    let changed = send(&mut ada, &format!("{path}/change"), &changes).await?;
    assert_eq!((changed.status, changed.location()), (303, &*format!("{path}?changed")), "{}", changed.body);
    let page = ada.get(changed.location()).await?.body;
    let alerts = "By e-mail, after 3 captures in a row that differ";
    for words in ["Changes saved.", "0 8 * * 1-5 (Europe/Vienna)", "The HTTP status", alerts] {
        assert!(page.contains(words), "{words}: {page}");
    }

    for (switch, notice, button) in
        [("pause", "Monitor paused.", ">Resume<"), ("resume", "Monitor resumed.", ">Pause<")]
    {
        let answer = send(&mut ada, &format!("{path}/{switch}"), &[]).await?;
        let page = ada.get(answer.location()).await?.body;
        assert!(page.contains(notice) && page.contains(button), "{switch}: {page}");
        assert_eq!(page.contains("Next run"), switch == "resume", "{page}");
    }

    // The trail says what was done.
    let trail = ada.get(&format!("/teams/{team}/audit")).await?.body;
    for words in ["created the monitor", "paused", "resumed"] {
        assert!(trail.contains(words), "{words}: {trail}");
    }

    assert!(ada.get(&format!("{path}/delete")).await?.body.contains("Its captures stay."));
    let deleted = send(&mut ada, &format!("{path}/delete"), &[]).await?;
    assert!(ada.get(deleted.location()).await?.body.contains("Monitor deleted."));
    assert_eq!(ada.get(&path).await?.status, 404);
    assert_eq!(ada.get(capture).await?.status, 200, "the capture stays");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn invalid_monitors_are_refused_with_the_field() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let path = format!("/teams/{team}/monitors/new");
    let url = ("url", "https://example.com/");
    for (fields, field, words) in [
        (&[("environment", "test"), ("compare_image", "true"), ("every", "1d")][..], "url", "Enter"),
        (
            &[url, ("environment", "x"), ("compare_image", "true"), ("every", "1d")],
            "environment",
            "Choose an environment.",
        ),
        (&[url, ("environment", "test"), ("every", "1d")], "compare_image", "Choose what is compared"),
        (
            &[url, ("environment", "test"), ("compare_image", "true"), ("every", "1d"), ("ignore_patterns", "a")],
            "ignore_patterns",
            "must be empty if the text is not compared",
        ),
        (&[url, ("environment", "test"), ("compare_image", "true"), ("every", "1m")], "every", "The interval must be"),
        (&[url, ("environment", "test"), ("compare_image", "true"), ("every", "6€")], "every", "The interval must be"),
        (&[url, ("environment", "test"), ("compare_image", "true"), ("every", "cron")], "cron", "five fields"),
        (
            &[url, ("environment", "test"), ("compare_image", "true"), ("every", "1d"), ("threshold", "200")],
            "threshold",
            "from 0 to 100",
        ),
        (
            &[url, ("environment", "test"), ("compare_image", "true"), ("every", "1d"), ("width", "1")],
            "width",
            "Width must be",
        ),
    ] {
        let answer = send(&mut ada, &path, fields).await?;
        assert_eq!(answer.status, 422, "{fields:?}: {}", answer.body);
        let link = format!("<a href=\"#{field}\">");
        assert!(answer.body.contains(&link) && answer.body.contains(words), "{fields:?}: {}", answer.body);
        assert!(answer.body.contains(&format!("id=\"{field}\"")), "{field}: {}", answer.body);
    }
    assert!(ada.get(&format!("/teams/{team}/monitors")).await?.body.contains("No monitors yet"));
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn several_pages_get_a_monitor_each_or_none_does() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let (list, new) = (format!("/teams/{team}/monitors"), format!("/teams/{team}/monitors/new"));
    // Each form leads to the other one, with what was given.
    let single = ada.get(&format!("{new}?url=example.com&width=800")).await?.body;
    let link = format!("{new}?several&#38;url=example.com&#38;width=800");
    assert!(single.contains(&link) && !single.contains("<textarea id=\"urls\""), "{single}");
    let several = ada.get(&format!("{new}?several&url=example.com&width=800")).await?.body;
    for words in ["<textarea id=\"urls\"", ">example.com</textarea>", "New monitors", "value=\"800\"", ">One page</a>"]
    {
        assert!(several.contains(words), "{words}: {several}");
    }
    assert!(!several.contains("name=\"url\""), "{several}");

    for (urls, words) in [
        ("", "Enter 1 to 50 URLs, one on each line."),
        ("example.com/a\r\nnot a page", "URL 2 must be"),
        ("example.com/a\r\nhttp://127.0.0.3/", "URL 2 must be"),
    ] {
        let refused = send(&mut ada, &new, &[&FIELDS[..], &[("urls", urls)]].concat()).await?;
        assert_eq!(refused.status, 422, "{urls}: {}", refused.body);
        assert!(refused.body.contains("<a href=\"#urls\">") && refused.body.contains(words), "{}", refused.body);
    }
    assert!(ada.get(&list).await?.body.contains("No monitors yet"));

    let fields = [("urls", "example.com/a\r\n\r\nexample.com/b\r\n"), ("name", "Prices")];
    let created = send(&mut ada, &new, &[&FIELDS[..], &fields].concat()).await?;
    assert_eq!((created.status, created.location()), (303, &*format!("{list}?created=2")), "{}", created.body);
    let listed = ada.get(created.location()).await?.body;
    for words in ["2 monitors created.", "Prices: example.com/a", "Prices: example.com/b"] {
        assert!(listed.contains(words), "{words}: {listed}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn page_of_a_capture_offers_to_watch_it_with_its_options() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let grab = placeholder(&mut ada, team, "https://example.com/prices").await?;
    let page = ada.get(&grab).await?.body;
    let link =
        page.split(&format!("href=\"/teams/{team}/monitors/new?")).nth(1).and_then(|rest| rest.split('"').next());
    let query = link.context("a link")?.replace("&#38;", "&");
    let form = ada.get(&format!("/teams/{team}/monitors/new?{query}")).await?.body;
    assert!(form.contains("value=\"https://example.com/prices\""), "{form}");
    let chosen = "name=\"environment\" value=\"test\" checked";
    assert!(form.contains(chosen) && form.contains("<option value=\"1d\" selected>"), "{form}");
    for left_out in ["name=\"compare_to\"", "name=\"max_age\"", "name=\"upload_url\""] {
        assert!(!form.contains(left_out), "{left_out}: {form}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn comparison_of_a_run_shows_the_difference_and_offers_to_accept_it_while_its_image_exists() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let before = id_of(&placeholder(&mut ada, team, "https://example.com/").await?);
    // Placeholders show their size.
    let fields =
        [("url", "https://example.com/"), ("environment", "test"), ("height", "700"), ("compare_to", &*before)];
    let after = id_of(capture(&mut ada, team, &fields).await?.location());
    let compare = format!("/teams/{team}/grabs/compare?grab={before}&grab={after}");
    let plain = ada.get(&compare).await?.body;
    assert!(plain.contains("<strong>Difference</strong>") && plain.contains("% changed"), "{plain}");
    assert!(!plain.contains("Accept the newer capture"), "{plain}");
    let monitor = create_monitor(&mut ada, team, &[("url", "https://example.com/")]).await?;
    let of_run = ada.get(&format!("{compare}&monitor={}", id_of(&monitor))).await?.body;
    let action = format!("action=\"{monitor}/accept\"");
    assert!(of_run.contains("Accept the newer capture") && of_run.contains(&action), "{of_run}");
    // A capture that is none of the monitor is refused.
    let refused = send(&mut ada, &format!("{monitor}/accept"), &[("grab", &*after)]).await?;
    assert_eq!(refused.status, 409, "{}", refused.body);

    // A run whose image was deleted offers neither.
    wait_for(&mut ada, &monitor, "First capture").await?;
    let [earlier, later] = [&before, &after].map(|id| id.replace('-', ""));
    let sql = format!(
        "INSERT INTO monitor_runs (id, monitor_id, due_at, outcome, grab_id, compared_to, difference_ppm, changes, \
         alerted, claimed_at, finished_at) SELECT randomblob(16), id, created_at - 3600000, 3, x'{later}', x'{earlier}', \
         21000, 1, 1, created_at - 3600000, created_at - 3595000 FROM monitors"
    );
    let database = Database::connect(format!("sqlite://{}", app.data_dir().join("grabd.db").display())).await?;
    database.execute_unprepared(&sql).await?;
    database.close().await?;
    let accept = format!("name=\"grab\" value=\"{after}\"");
    let page = ada.get(&monitor).await?.body;
    assert!(page.contains(">Compare</a>") && page.contains(&accept), "{page}");
    let deleted = send(&mut ada, &format!("/teams/{team}/grabs/{after}/delete"), &[]).await?;
    assert_eq!(deleted.status, 303, "{}", deleted.body);
    let page = ada.get(&monitor).await?.body;
    assert!(page.contains("2.1 % of the image differs."), "{page}");
    assert!(!page.contains(">Compare</a>") && !page.contains(&accept), "{page}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_of_two_captures_are_side_by_side_without_what_the_monitor_ignores() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let without = id_of(&placeholder(&mut ada, team, "https://example.com/").await?);
    let [old, same, new] = [
        with_text(&mut ada, team, "https://example.com/old").await?,
        with_text(&mut ada, team, "https://example.com/old").await?,
        with_text(&mut ada, team, "https://example.com/new").await?,
    ];
    let compare = |earlier: &str, later: &str| format!("/teams/{team}/grabs/compare?grab={earlier}&grab={later}");
    let page = ada.get(&compare(&old, &new)).await?.body;
    for words in [
        "<h2 id=\"text\">Text</h2>",
        "Lines: 1 changed.",
        "<th scope=\"col\">Before</th><th scope=\"col\">After</th>",
        "<tr class=\"equal\"><td data-line=\"1\">TEST</td><td data-line=\"1\">TEST</td></tr>",
        "<td data-line=\"3\">Placeholder of https://example.com/<del>old</del></td>",
        "<td data-line=\"3\">Placeholder of https://example.com/<ins>new</ins></td>",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let page = ada.get(&compare(&old, &same)).await?.body;
    assert!(page.contains("The texts are equal.") && !page.contains("<del>"), "{page}");
    let page = ada.get(&compare(&without, &new)).await?.body;
    assert!(page.contains("Only the newer capture has a text."), "{page}");
    let other = id_of(&placeholder(&mut ada, team, "https://example.com/other").await?);
    let page = ada.get(&compare(&without, &other)).await?.body;
    assert!(!page.contains("id=\"text\""), "there are no texts: {page}");

    let fields =
        [("url", "https://example.com/"), ("compare_text", "true"), ("ignore_patterns", "example.com/(old|new)")];
    let monitor = id_of(&create_monitor(&mut ada, team, &fields).await?);
    let page = ada.get(&format!("{}&monitor={monitor}", compare(&old, &new))).await?.body;
    for words in ["The texts are equal.", "What the patterns of the monitor match is left out."] {
        assert!(page.contains(words), "{words}: {page}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn form_has_what_does_not_count_and_the_page_offers_a_feed_and_the_history() -> Result<()> {
    let app = start_app(&[]).await?;
    let mut ada = Visitor::with_account(&app, "ada@example.com").await?;
    let team = team_of(&app, "ada@example.com", 0).await?;
    let fields = [
        ("url", "https://example.com/"),
        ("ignore", ".ad\r\n0,0,300,40"),
        ("min_region_px", "400"),
        ("compare_elements", "true"),
        ("quiet_from", "22:00"),
        ("quiet_to", "07:00"),
    ];
    let path = create_monitor(&mut ada, team, &fields).await?;
    let page = wait_for(&mut ada, &path, "First capture").await?.body;
    for words in [
        "without 1 element, without 1 rectangle, regions of at least 400 pixels, and the elements",
        "By webhook; not from 22:00 to 07:00 (UTC)",
        "/history.zip",
        "Create a feed and a badge",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    let form = ada.get(&format!("{path}/change")).await?.body;
    for value in ["0,0,300,40</textarea>", "value=\"400\"", "value=\"22:00\"", "value=\"07:00\""] {
        assert!(form.contains(value), "{value}: {form}");
    }
    let created = send(&mut ada, &format!("{path}/feed"), &[]).await?;
    assert_eq!(created.status, 200, "{}", created.body);
    assert!(created.body.contains("/feed.atom") && created.body.contains("/badge.svg"), "{}", created.body);
    assert!(ada.get(&path).await?.body.contains("Replace the addresses"), "it is on");
    let off = send(&mut ada, &format!("{path}/feed/off"), &[]).await?;
    assert_eq!((off.status, off.location()), (303, &*format!("{path}?feed_off")), "{}", off.body);
    assert!(ada.get(off.location()).await?.body.contains("do not work any more"), "it is off");
    app.finish().await
}
