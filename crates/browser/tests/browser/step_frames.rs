//! Steps in frames of other sites, in the process of the page and in processes of their own.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

use grabd_browser::{FrameMode, find_executable};
use serde_json::json;

use crate::rig::{Rig, open_directory, with_steps};
use crate::site::{Site, html};

/// A page that tells the one around it what a user did, in a frame that has to be scrolled.
const FORM: &str = "<!doctype html><body style='margin:0'><div style='height:700px'>Top</div><p id=menu>Menu</p>
    <input id=who><select id=kind><option value=a>A</option><option value=b>B</option></select><button>Send</button><script>
    const say = (text) => parent.postMessage(text, '*');
    menu.addEventListener('mouseenter', (event) => event.isTrusted && say('hovered'), { once: true });
    who.addEventListener('input', (event) => event.isTrusted && say('typed ' + who.value));
    who.addEventListener('keydown', (event) => event.isTrusted && say('pressed ' + event.key));
    kind.addEventListener('change', () => say('chose ' + kind.value));
    document.querySelector('button').addEventListener('click', (event) => event.isTrusted && say('sent'));
    </script>";

/// A page with a frame whose URL is its query.
const OUTER: &str = "<!doctype html><body style='margin:0'><p>Outer</p><script>
    const inner = document.createElement('iframe');
    inner.src = location.search.slice(1);
    document.body.append(inner);
    </script>";

const INNER: &str = "<!doctype html><button onclick=\"top.postMessage('went deep', '*')\">Go</button>";

const EXPECTED: &str = "hovered, typed guest, pressed Tab, chose b, sent, went deep";

fn page(other: &Site) -> String {
    format!(
        "<!doctype html><body style='margin:0;background:red'><div style='height:1500px'></div>
        <iframe id=form src='{}' style='width:400px;height:200px;border:9px solid;padding:5px'></iframe>
        <iframe id=outer src='{}?{{site}}/inner' style='width:400px;height:200px'></iframe><script>
        const seen = [];
        onmessage = (event) => {{
            seen.push(event.data);
            document.title = seen.join(', ');
            if (document.title === '{EXPECTED}') document.body.style.background = 'lime';
        }};
        </script>",
        other.url("/form"),
        other.url("/outer"),
    )
}

/// Does all kinds of steps in frames of another site, and in a frame within one of them.
async fn check_steps_in_frames(rig: &Rig) {
    let other = Site::start(3, [("/form", html(FORM)), ("/outer", html(OUTER))]).await;
    let site = Site::start(2, [("/", html(page(&other))), ("/inner", html(INNER))]).await;
    let url = site.url("/");
    let steps = json!([
        { "wait_for": "#form >> #menu" },
        { "hover": "#form >> text=Menu" },
        { "type": { "into": "#form >> #who", "text": "guest" } },
        { "press": "Tab" },
        { "select": { "in": "#form >> #kind", "option": "B" } },
        { "scroll_to": "top" },
        { "click": "#form >> role=button[name=Send]" },
        { "click": "#outer >> iframe >> text=Go" },
        { "wait_for": "#form >> #who" },
        { "scroll_to": "top" },
    ]);
    let image = rig.capture(with_steps(&url, &steps)).await;
    assert_eq!(image.metadata.page.title.as_deref(), Some(EXPECTED));
    assert_eq!(image.colour(900, 500), "lime");

    let (failure, _) = rig.fails(with_steps(&url, &json!([{ "click": "#form >> #none" }]))).await;
    let expected =
        "Step 1 (click): nothing matches \"#form >> #none\" within 2 s. The page has 1 button or link: \"Send\".";
    assert_eq!(failure.message, expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_act_in_frames_of_other_sites() {
    let rig = Rig::with(&[2, 3], |options| options.settle_budget = Duration::from_secs(2)).await;
    check_steps_in_frames(&rig).await;
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_act_in_frames_that_have_a_process_of_their_own() {
    let directory = open_directory();
    let program = directory.path().join("isolating");
    let browser = find_executable(None, "").unwrap();
    fs::write(&program, format!("#!/bin/sh\nexec {} --site-per-process \"$@\"\n", browser.display())).unwrap();
    fs::set_permissions(&program, PermissionsExt::from_mode(0o755)).unwrap();
    let rig = Rig::with(&[2, 3], |options| {
        options.executable = Some(program);
        options.frames = FrameMode::Timer;
        options.settle_budget = Duration::from_secs(2);
    })
    .await;
    check_steps_in_frames(&rig).await;
    rig.chromium.shutdown().await;
}
