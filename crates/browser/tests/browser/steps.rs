//! Steps on the loaded page.

use std::time::Duration;

use grabd_domain::grabs::FailureReason::RenderFailed;
use serde_json::{Value, json};

use crate::rig::{Rig, with_steps};
use crate::site::{Site, html};

/// Typed in these tests, and nowhere else.
const SECRET: &str = "hidden value 1";

async fn rig() -> Rig {
    Rig::with(&[2], |options| options.settle_budget = Duration::from_secs(2)).await
}

/// The message of a capture that must fail.
async fn failure(rig: &Rig, url: &str, steps: &Value) -> String {
    let (failure, _) = rig.fails(with_steps(url, steps)).await;
    assert_eq!(failure.reason, RenderFailed, "{steps}: {failure:?}");
    failure.message
}

/// Collects what happened in `seen`, and takes only what a user could have done.
const FORM: &str = "<!doctype html><body style='margin:0;background:red'>
    <form id=login><label>User <input id=user value=old></label><label><b>Note</b><textarea id=note></textarea></label>
    <input type=date id=day>
    <select id=land><option value=''>-</option><option value=at>Austria</option><option value=de>Germany</option></select>
    <button>Log in</button></form>
    <p id=menu style='width:200px'>Menu</p><p id=late></p>
    <div style='height:3000px'></div><p id=end>The end</p><script>
    const seen = [];
    const see = (id, type, isTrue) =>
        document.getElementById(id).addEventListener(type, (event) => {
            const name = type + ' ' + id;
            if (isTrue(event) && !seen.includes(name)) seen.push(name);
        });
    see('user', 'input', (event) => event.isTrusted && user.value === 'guest');
    see('note', 'input', (event) => event.isTrusted && note.value === 'a\\nb');
    see('day', 'change', () => day.value === '2026-12-31');
    see('land', 'change', () => land.value === 'de');
    see('menu', 'mousemove', (event) => event.isTrusted);
    see('user', 'click', (event) => event.isTrusted);
    see('user', 'keydown', (event) => event.isTrusted && event.key === 'Enter');
    login.onsubmit = (event) => {
        event.preventDefault();
        seen.push('submit');
        setTimeout(() => { late.textContent = 'Welcome back' }, 1500);
    };
    let lowest = 0;
    onscroll = () => { lowest = Math.max(lowest, scrollY) };
    </script>";

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_of_step_acts_as_a_user_does() {
    let site = Site::start(2, [("/", html(FORM))]).await;
    let rig = rig().await;
    let steps = json!([
        { "wait_for": "#login" },
        { "type": { "into": "#user", "text": "guest" } },
        { "type": { "into": "text=note", "text": "a\nb" } },
        { "type": { "into": "#day", "text": "2026-12-31" } },
        { "select": { "in": "#land", "option": "Germany" } },
        { "hover": "#menu" },
        { "click": "#user" },
        { "press": "Enter" },
        { "wait_for_text": "welcome BACK" },
        { "scroll_to": "bottom" },
        { "scroll_to": "top" },
        { "scroll_to": "#end" },
        { "scroll_to": "top" },
        { "script": "await 1; document.body.style.background = lowest > 2000 && seen.join() === 'input user,input note,\
                     change day,change land,mousemove menu,click user,keydown user,submit' ? 'lime' : 'blue'; \
                     document.title = seen.join()" },
    ]);
    let image = rig.capture(with_steps(&site.url("/"), &steps)).await;
    assert_eq!(image.colour(900, 500), "lime", "{:?}", image.metadata.page.title);
    let combination = json!([
        { "type": { "into": "label", "text": "abc" } },
        { "press": "Control+A" },
        { "press": "X" },
        { "press": "Shift+y" },
        { "script": "document.body.style.background = user.value === 'XY' ? 'lime' : 'blue'; document.title = user.value" },
    ]);
    let image = rig.capture(with_steps(&site.url("/"), &combination)).await;
    assert_eq!(image.colour(900, 500), "lime", "{:?}", image.metadata.page.title);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_are_found_by_text_and_role_and_in_shadow_trees_and_frames() {
    let paints = |colour: &str| format!("<button onclick=\"parent.postMessage('{colour}', '*')\">Send</button>");
    // Another origin of the same site, which is in the same process.
    let other = Site::start(2, [("/inner", html(paints("yellow")))]).await;
    let page = format!(
        "<!doctype html><body style='margin:0;background:red'>
        <p>Log <b>in</b> here</p><a href=#x onclick=\"paint('lime')\"> Log
        in</a><span role=button onclick=\"paint('blue')\">Buy</span>
        <input type=submit value='Send it' onclick=\"paint('lime')\"><div id=host>Slotted</div>
        <form><input name=children><b onclick=\"paint('lime')\">Two<br>li&shy;nes</b></form>
        <div style='height:2000px'></div>
        <iframe id=own style='border:7px solid;padding:5px;scale:0.4' srcdoc=\"{}\"></iframe><iframe id=other src='{}'></iframe>
        <script>
        const paint = (colour) => {{ document.body.style.background = colour }};
        onmessage = (event) => paint(event.data);
        host.attachShadow({{ mode: 'open' }}).innerHTML = '<button aria-label=\"Open it\">+</button>' +
            '<button onclick=\"paint(`lime`)\"><slot></slot></button>';
        host.shadowRoot.querySelector('button').onclick = () => paint('blue');
        </script>",
        paints("lime").replace('"', "&quot;"),
        other.url("/inner"),
    );
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = rig().await;
    for (selector, colour) in [
        ("text=\"Log in\"", "lime"),
        ("role=link[name='log in']", "lime"),
        ("text=buy", "blue"),
        ("role=button[name=\"Buy\"]", "blue"),
        ("role=button[name*=\"send\"]", "lime"),
        ("text=send it", "lime"),
        ("role=button[name=\"Open it\"]", "blue"),
        ("role=button[name=slotted]", "lime"),
        ("text=\"Two lines\"", "lime"),
        ("#host button", "red"),
        ("button[aria-label]", "blue"),
        ("#own >> button", "lime"),
        ("#other >> text=Send", "yellow"),
    ] {
        let steps = json!([{ "click": selector }, { "scroll_to": "top" }]);
        match colour {
            // A selector of CSS matches within one tree.
            "red" => _ = failure(&rig, &site.url("/"), &steps).await,
            colour => {
                let image = rig.capture(with_steps(&site.url("/"), &steps)).await;
                assert_eq!(image.colour(900, 500), colour, "{selector}");
            }
        }
    }
    rig.chromium.shutdown().await;
}

const OBSTACLES: &str = "<!doctype html><body style='margin:0;background:white'>
    <button id=under style='position:absolute;top:300px;left:0;width:100px;height:40px'>Under</button>
    <div id=veil style='position:absolute;top:290px;left:0;width:300px;height:60px;background:blue'></div>
    <button id=half style='position:absolute;top:400px;left:0;width:200px;height:40px'
        onclick=\"document.body.style.background = 'lime'\">Half</button>
    <div style='position:absolute;top:390px;left:40px;width:300px;height:60px;background:blue'></div>
    <button disabled>Disabled</button><button hidden>Hidden</button><input id=fixed readonly><input type=checkbox>
    <select><option>One</option><option>Two</option></select><iframe srcdoc='<p>inner'></iframe><script>
    setTimeout(() => { document.body.insertAdjacentHTML('beforeend', '<a href=/next target=_blank>Late</a>') }, 2000)
    </script>";

#[tokio::test(flavor = "multi_thread")]
async fn failed_step_is_named_with_what_was_seen_there() {
    let site =
        Site::start(2, [("/", html(OBSTACLES)), ("/next", html("<!doctype html><title>Next</title><p>Next"))]).await;
    let rig = rig().await;
    let url = site.url("/");
    for (step, expected) in [
        (json!({ "click": "#under" }), "Step 2 (click): \"#under\" is covered by <div#veil>."),
        (json!({ "click": "text=Disabled" }), "Step 2 (click): \"text=Disabled\" is still disabled after 2 s."),
        (
            json!({ "hover": "text=Hidden" }),
            "Step 2 (hover): nothing that matches \"text=Hidden\" is visible within 2 s.",
        ),
        (
            json!({ "click": "#none" }),
            "Step 2 (click): nothing matches \"#none\" within 2 s. The page has 4 buttons and links: \"Under\", \"Half\", \
             \"Disabled\", \"Late\".",
        ),
        // In a script.
        (json!({ "click": "text=beforeend" }), "Step 2 (click): nothing matches \"text=beforeend\" within 2 s."),
        (json!({ "click": "a:" }), "Step 2 (click): \"a:\" is not a valid selector."),
        (json!({ "click": "role=button[label=x]" }), "is not a valid selector."),
        (json!({ "type": { "into": "#fixed", "text": "a" } }), "cannot be changed, because it is read-only."),
        (json!({ "type": { "into": "[type=checkbox]", "text": "a" } }), "is no field that takes text."),
        (json!({ "type": { "into": "#no", "text": "a" } }), "The page has 2 fields"),
        (
            json!({ "select": { "in": "select", "option": "Three" } }),
            "Step 2 (select): \"select\" has none of its 2 options with that value or label: \"One\", \"Two\".",
        ),
        (json!({ "select": { "in": "#under", "option": "Two" } }), "is no `<select>`."),
        (json!({ "wait_for": "#none" }), "Step 2 (wait_for): nothing matches \"#none\" within 4 s."),
        (json!({ "wait_for_text": "no such text" }), "Step 2 (wait_for_text): nothing matches \"no such text\""),
        (json!({ "click": "#none >> p" }), "nothing matches \"#none\" within 2 s."),
        (json!({ "click": "p >> p" }), "nothing matches \"p\""),
        (json!({ "click": "#veil >> p" }), "the frame \"#veil\" is no frame."),
        (json!({ "script": "throw new Error('broken')" }), "Step 2 (script) failed: Error: broken"),
    ] {
        let message = failure(&rig, &url, &json!([{ "scroll_to": "top" }, step])).await;
        assert!(message.contains(expected), "{step}: {message}");
    }
    // A part of it is not covered, and an element that comes late is waited for.
    let image = rig.capture(with_steps(&url, &json!([{ "click": "#half" }]))).await;
    assert_eq!(image.colour(900, 500), "lime");
    let image = rig.capture(with_steps(&url, &json!([{ "click": "text=Late" }, { "wait_for_text": "Next" }]))).await;
    assert_eq!(image.metadata.final_url.as_deref(), Some(&*site.url("/next")), "the new window");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn steps_continue_on_the_page_that_they_lead_to_and_are_not_repeated() {
    let login = "<!doctype html><form action=/welcome><input name=user><button>Log in</button></form>";
    let welcome = "<!doctype html><body style='margin:0;background:red'><button
        onclick=\"document.body.style.background = document.body.dataset.is ? 'red' : 'lime'; document.body.dataset.is = 1\">
        Start</button>";
    let pages = [("/", html(login)), ("/welcome", html(welcome).after(500))];
    let site = Site::start(2, pages).await;
    let rig = rig().await;
    let steps = json!([
        { "type": { "into": "[name=user]", "text": "guest" } },
        { "press": "Enter" },
        { "click": "role=button[name=Start]" },
        { "hover": "button" },
    ]);
    let image = rig.capture(with_steps(&site.url("/"), &steps)).await;
    assert_eq!(image.metadata.final_url.as_deref(), Some(&*site.url("/welcome?user=guest")));
    assert_eq!(image.colour(900, 500), "lime");
    assert_eq!(site.hits("/welcome"), 1);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_texts_are_not_in_failures() {
    let page = "<!doctype html><input id=a oninput=\"b.textContent = 'You typed ' + a.value; b.id = a.value\"><button
        id=b>Empty</button>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = rig().await;
    let typed = json!({ "type": { "into": "#a", "text": SECRET, "secret": true } });
    for (step, part) in [
        (json!({ "click": "#none" }), "The page has 1 button or link: \"You typed …\"."),
        (json!({ "script": "throw new Error(document.querySelector('#a').value)" }), "failed: Error: …"),
        (json!({ "hover": format!("#none >> text={SECRET}") }), "nothing matches \"#none\""),
        (json!({ "click": format!("text=not {SECRET}") }), "nothing matches \"text=not …\""),
    ] {
        let message = failure(&rig, &site.url("/"), &json!([typed, step])).await;
        assert!(message.contains(part) && !message.contains("hidden"), "{message}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secret_texts_are_not_in_lists_of_elements() {
    let page = "<!doctype html><body><label>Key <input id=a></label><input id=b aria-label=Open>
        <label><input type=checkbox> Use <input id=c> now</label>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = rig().await;
    let secret = |into: &str| json!({ "type": { "into": into, "text": SECRET, "secret": true } });
    let open = json!({ "type": { "into": "#b", "text": "shown value" } });
    let mut asked = with_steps(&site.url("/"), &json!([secret("#a"), open, secret("#c")]));
    asked.also = Some(vec!["elements".to_owned(), "accessibility".to_owned()]);
    let capture = rig.render(asked).await.unwrap();
    assert_eq!(capture.files.len(), 2);
    for file in &capture.files {
        let text = String::from_utf8(file.content.to_vec()).unwrap();
        assert!(text.contains("shown value") && text.contains("Use now") && !text.contains(SECRET), "{text}");
    }
    rig.chromium.shutdown().await;
}
