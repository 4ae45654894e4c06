//! Which elements are listed, and what is in front of them.

use grabd_domain::capture::{CaptureRequest, FileKind};
use serde_json::{Value, json};

use crate::rig::{Rig, request};
use crate::site::{Site, html};

async fn elements(rig: &Rig, asked: CaptureRequest) -> Vec<Value> {
    let file: Value = serde_json::from_str(&rig.text_file(asked, FileKind::Elements).await).unwrap();
    file["elements"].as_array().unwrap().clone()
}

/// Buttons under, beside and in other elements, and such below the window and in frames.
const COVERED: &str = r##"<!doctype html><html><head><title>Covered</title><style>
body { margin: 0; height: 3000px; position: relative } .at { position: absolute; width: 100px; height: 40px }
.over { position: absolute; background: white }</style></head><body>
<button class=at style="left:20px;top:20px">Under</button>
<button class=at style="left:180px;top:20px">Edge</button>
<button class=at style="left:20px;top:300px">Beside</button>
<button class=at style="left:300px;top:300px">Badge</button><i class=over style="left:345px;top:315px;width:10px;height:10px"></i>
<button class=at style="left:500px;top:300px">Passed</button>
<i class=over style="left:480px;top:280px;width:140px;height:80px;opacity:.5;pointer-events:none"></i>
<button class=at style="left:700px;top:300px;pointer-events:none">Still</button>
<div id=card class=at style="left:900px;top:300px"><button style="width:90px;height:30px">Card</button><b class=over style="inset:0"></b></div>
<div id=host></div>
<label class=at style="left:500px;top:420px"><input type=checkbox aria-label=Labelled style="position:absolute;left:10px;top:10px;width:20px;height:20px">
<span class=over style="inset:0">Labelled</span></label>
<iframe title=Free style="position:absolute;left:20px;top:420px;width:200px;height:60px;border:0"
  srcdoc="<body style='margin:0'><button style='width:100px;height:40px'>Free inside</button>"></iframe>
<iframe title=Veiled style="position:absolute;left:20px;top:520px;width:200px;height:60px;border:0"
  srcdoc="<body style='margin:0'><button style='width:100px;height:40px'>Veiled inside</button>"></iframe>
<div id=veil class=over aria-label=Veil role=note style="left:0;top:510px;width:300px;height:80px"></div>
<iframe title=Inner style="position:absolute;left:320px;top:520px;width:200px;height:60px;border:0"
  srcdoc="<body style='margin:0'><button style='width:100px;height:40px'>Below inside</button><p id=inside style='position:absolute;inset:0;margin:0;background:white'>"></iframe>
<button class=at style="left:20px;top:2000px">Far under</button>
<div id=note class=over role=note aria-label=Note style="left:0;top:1990px;width:200px;height:60px"></div>
<button class=at style="left:20px;top:2600px">Far free</button>
<div id=dialog role=dialog aria-label=Cookies class=over style="position:fixed;left:0;top:0;width:200px;height:100px">
<p>We use cookies</p><button>Accept</button></div>
<script>document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML =
  '<button style="position:absolute;left:700px;top:420px;width:100px;height:40px">Shadow</button><i style="position:absolute;left:690px;top:410px;width:120px;height:60px"></i>';</script>
</body></html>"##;

fn fronts(found: &[Value]) -> Vec<(String, Value)> {
    found.iter().map(|of| (of["name"].as_str().unwrap().to_owned(), of["covered_by"].clone())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_front_of_elements_is_named() {
    let site = Site::start(2, [("/", html(COVERED))]).await;
    let rig = Rig::start().await;
    let cookies = json!({ "selector": "#dialog", "name": "Cookies" });
    let near = [
        ("Under", cookies.clone()),
        ("Edge", Value::Null),
        ("Beside", Value::Null),
        ("Badge", Value::Null),
        ("Passed", Value::Null),
        ("Still", Value::Null),
        ("Card", json!({ "selector": "#card > b", "name": "" })),
        ("Labelled", Value::Null),
    ];
    let far = [("Far under", json!({ "selector": "#note", "name": "Note" })), ("Far free", Value::Null)];
    let last = [
        ("Accept", Value::Null),
        ("Shadow", json!({ "selector": null, "name": "" })),
        ("Free inside", Value::Null),
        ("Veiled inside", json!({ "selector": "#veil", "name": "Veil" })),
        ("Below inside", json!({ "selector": "#inside", "name": "" })),
    ];
    let expected = |parts: &[&[(&str, Value)]]| -> Vec<(String, Value)> {
        parts.concat().into_iter().map(|(name, front)| (name.to_owned(), front)).collect()
    };
    let plain = request(&site.url("/"));
    assert_eq!(fronts(&elements(&rig, plain.clone()).await), expected(&[&near, &last]));
    // What is below the window is found, too, and the page is left as it was.
    let full_page = CaptureRequest { full_page: Some(true), ..plain.clone() };
    assert_eq!(fronts(&elements(&rig, full_page).await), expected(&[&near, &far, &last]));
    // A selector shows its element without what covers it.
    let part = CaptureRequest { selector: Some("body > button:nth-of-type(1)".to_owned()), ..plain };
    let found = fronts(&elements(&rig, part).await);
    assert_eq!(found.first(), Some(&("Under".to_owned(), Value::Null)), "{found:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn everything_behind_a_modal_dialog_is_covered_by_it() {
    let page =
        "<!doctype html><body><button>Behind</button><dialog id=modal aria-label=Sure><button>Yes</button></dialog>
        <script>document.querySelector('dialog').showModal()</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let found = elements(&rig, request(&site.url("/"))).await;
    let expected =
        [("Behind".to_owned(), json!({ "selector": "#modal", "name": "Sure" })), ("Yes".to_owned(), Value::Null)];
    assert_eq!(fronts(&found), expected);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn page_cannot_replace_the_hit_test() {
    let page = "<!doctype html><body><img name=elementFromPoint><img name=adoptedStyleSheets><button>Free</button><script>
        Document.prototype.elementFromPoint = () => document.body; Element.prototype.getClientRects = () => [];</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let found = elements(&rig, request(&site.url("/"))).await;
    assert_eq!(fronts(&found), [("Free".to_owned(), Value::Null)]);
    rig.chromium.shutdown().await;
}

/// Buttons that are hidden entirely are called `no`.
const CUT: &str = "<!doctype html><style>body { margin: 0 } div { width: 200px }</style><body>
<div style='height:0;overflow:hidden'><button>no</button></div>
<div style='height:40px;overflow:hidden'><button>Shown</button><p style='height:100px'></p><button>no</button></div>
<div style='height:40px;overflow:auto'><p style='height:100px'></p><button>no</button></div>
<div style='height:0;overflow:hidden;opacity:1'><p style='position:relative'><button style='position:fixed;left:500px;top:10px'>Fixed</button></p></div>
<div style='height:0;overflow:hidden'><button style='position:absolute;left:600px;top:10px'>Absolute</button></div>
<div style='height:0;overflow:hidden;position:relative'><button style='position:absolute;left:0;top:20px'>no</button></div>
<div style='clip-path:inset(50%)'><button>no</button></div>
<div style='clip-path:inset(0 0 20px 0);height:60px'><button>Inset</button><br><button style='margin-top:30px'>no</button></div>
<div style='clip-path:circle(0)'><button>no</button></div>
<div style='clip-path:polygon(0 0, 0 0, 0 100%)'><button>no</button></div>
<div style='clip-path:circle(50%)'><button>Circle</button></div>
<a href=/skip style='position:absolute;clip:rect(0, 0, 0, 0)'>no</a>
<div style='opacity:0'><p><button>no</button></div>
<div style='height:0;overflow:hidden;display:contents'><button>Contents</button></div>
<div style='height:30px;overflow:hidden;transform:rotate(90deg)'><button>Turned</button></div>
<div style='height:0;overflow:hidden'><iframe srcdoc='<button>no</button>'></iframe></div>
<div id=top popover style='height:50px'><button>Popover</button></div>
<script>document.querySelector('#top').showPopover()</script>";

#[tokio::test(flavor = "multi_thread")]
async fn elements_that_their_ancestors_cut_off_are_not_listed() {
    let site = Site::start(2, [("/", html(CUT))]).await;
    let rig = Rig::start().await;
    let found = elements(&rig, request(&site.url("/"))).await;
    let names: Vec<&str> = found.iter().map(|of| of["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["Shown", "Fixed", "Absolute", "Inset", "Circle", "Contents", "Turned", "Popover"]);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn areas_of_image_maps_are_listed_and_outlined() {
    let page = "<!doctype html><body style='margin:0'>
        <img usemap='#plan' src=/none.png alt=Plan style='position:absolute;left:10px;top:20px;width:200px;height:100px;border:5px solid;padding:0'>
        <map name=plan><area href=/one alt=One coords='10,10,60,40'><area href=/two alt=Two shape=circle coords='100,50,20'>
        <area href=/three alt=Three shape=poly coords='150,10,190,10,190,90'><area href=/four alt=no coords='300,300,400,400'></map>
        <map name=none><area href=/five alt=no coords='0,0,10,10'></map>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let found = elements(&rig, request(&site.url("/"))).await;
    let listed: Vec<Value> = found
        .iter()
        .map(|of| {
            let place = ["x", "y", "width", "height"].map(|side| of["box"][side].clone());
            json!([of["role"], of["name"], place, of["url"], of["covered_by"]])
        })
        .collect();
    let area = |name: &str, place: [u32; 4], path: &str| json!(["link", name, place, site.url(path), null]);
    assert_eq!(
        listed,
        [
            area("One", [25, 35, 50, 30], "/one"),
            area("Two", [95, 55, 40, 40], "/two"),
            area("Three", [165, 35, 40, 80], "/three"),
        ]
    );
    let outline = rig.text_file(request(&site.url("/")), FileKind::Accessibility).await;
    for line in ["- link \"One\" [ref=e1]\n", "- link \"Two\" [ref=e2]\n", "- link \"Three\" [ref=e3]\n"] {
        assert!(outline.contains(line), "{outline}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn options_of_lists_are_outlined_with_their_states_and_the_rest_is_counted() {
    let many: String =
        (1..=60).map(|number| format!("<option{}>Day {number}", if number == 58 { " selected" } else { "" })).collect();
    let page = format!(
        "<!doctype html><body><select aria-label=Size><option>Small<option selected>Large<option disabled>Huge<option hidden>no</select>
        <select aria-label=Colours multiple><option selected>Red<optgroup label=Cold disabled><option>Blue</optgroup></select>
        <select aria-label=Code autocomplete=one-time-code><option>no</select><select aria-label=Day>{many}</select>"
    );
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let outline = rig.text_file(request(&site.url("/")), FileKind::Accessibility).await;
    let begin = "- combobox \"Size\" [ref=e1]:\n  - option \"Small\"\n  - option \"Large\" [selected]\n  - option \"Huge\" [disabled]\n\
                 - listbox \"Colours\" [ref=e2]:\n  - option \"Red\" [selected]\n  - option \"Blue\" [disabled]\n\
                 - combobox \"Code\" [ref=e3]\n- combobox \"Day\" [ref=e4]:\n  - option \"Day 1\"\n";
    assert!(outline.starts_with(begin), "{outline}");
    let end = "  - option \"Day 49\"\n  - option \"Day 58\" [selected]\n  - text: \"10 more options\"\n";
    assert!(outline.ends_with(end), "{outline}");
    rig.chromium.shutdown().await;
}
