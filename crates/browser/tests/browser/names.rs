//! Roles, names and states of the elements that a page shows, and those in its frames.

use grabd_domain::capture::{CaptureRequest, FileKind};
use serde_json::{Value, json};

use crate::rig::{Rig, request};
use crate::site::{Site, html};

/// What names elements, with the role and the name of each element that can be operated.
const NAMES: [(&str, &[(&str, &str)]); 24] = [
    ("<label>Country <select><option>Austria<option selected>Belgium</select></label>", &[("combobox", "Country")]),
    (
        "<label><input type=checkbox> Flash <select><option>1<option selected>3</select> times</label>",
        &[("checkbox", "Flash 3 times"), ("combobox", "")],
    ),
    (
        "<label for=volume>Volume <input type=range value=30> of <span role=spinbutton aria-valuenow=7>7.0</span>
         <span role=menu><span role=none>no part</span></span></label><input id=volume>",
        &[("slider", ""), ("spinbutton", ""), ("textbox", "Volume 30 of 7")],
    ),
    ("<a href=/a><img src=/none.png alt=Cart>3 items</a>", &[("link", "Cart 3 items")]),
    ("<button><img src=/none.png alt=Search></button>", &[("button", "Search")]),
    ("<button title=Close><img src=/none.png alt=''></button>", &[("button", "Close")]),
    (
        "<button class=icon>Save</button><button class=private title=Print></button>",
        &[("button", "New: Save"), ("button", "Print")],
    ),
    (
        "<span id=one>One</span><span id=two hidden>two <b>three</b></span><button aria-labelledby='one two none'>x</button>",
        &[("button", "One two three")],
    ),
    (
        "<span id=four>Four <i hidden>not</i><i aria-hidden=true>not</i></span><button aria-labelledby='four self' id=self aria-label=five>x</button>",
        &[("button", "Four five")],
    ),
    (
        "<span id=six aria-labelledby=seven>six</span><span id=seven>seven</span><button aria-labelledby=six>x</button>",
        &[("button", "six")],
    ),
    ("<span id=empty></span><button aria-labelledby=empty>Kept</button>", &[("button", "Kept")]),
    (
        "<fieldset tabindex=0><legend>Address</legend><input title=Street placeholder=no></fieldset>",
        &[("group", "Address"), ("textbox", "Street")],
    ),
    ("<table tabindex=0><caption>Prices</caption><tr><td>1</table>", &[("table", "Prices")]),
    ("<figure tabindex=0>picture<figcaption>Mountains</figcaption></figure>", &[("figure", "Mountains")]),
    ("<a href=/b><svg width=9 height=9><title>Home</title><rect width=9 height=9 /></svg></a>", &[("link", "Home")]),
    ("<input placeholder='Your name'><input>", &[("textbox", "Your name"), ("textbox", "")]),
    ("<span id=host><b>slotted</b></span>", &[("button", "before slotted after")]),
    (
        "<div role=listitem tabindex=0 aria-label=Item>x</div><div role=button tabindex=0 aria-owns=owned>Owner</div><i id=owned>owned</i>",
        &[("generic", "Item"), ("button", "Owner owned")],
    ),
    (
        "<button role=none>Not none</button><a role='unknown button' href=/c>As button</a>",
        &[("button", "Not none"), ("button", "As button")],
    ),
    ("<div onclick='1'>Only <b>script</b></div>", &[("generic", "Only script")]),
    ("<div role=listbox tabindex=0>no name</div>", &[("listbox", "")]),
    ("<button>one<b>two</b><div>three</div>four<br>five</button>", &[("button", "onetwo three four five")]),
    (
        "<input type=submit><input type=reset value=Undo><input type=image alt=Go src=/none.png>",
        &[("button", "Submit"), ("button", "Undo"), ("button", "Go")],
    ),
    (
        "<button style='visibility:hidden'>no</button><p style='visibility:hidden'><a href=/d style='visibility:visible'>Shown</a></p>",
        &[("link", "Shown")],
    ),
];

const STYLE: &str =
    "<!doctype html><style>.icon::before { content: 'shown' / 'New: ' } .private::before { content: '\\e900' }
    a, figure, button { min-width: 9px; min-height: 9px }</style><body>";
const SLOTS: &str = "<script>document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML =
    '<button>before <slot></slot> after</button>';</script>";

async fn files(rig: &Rig, url: &str, kinds: &[FileKind]) -> Vec<Vec<u8>> {
    let also = Some(kinds.iter().map(|kind| kind.as_str().to_owned()).collect());
    let asked = CaptureRequest { also, full_page: Some(true), ..request(url) };
    let capture = rig.render(asked).await.unwrap();
    let content = |kind: &FileKind| capture.files.iter().find(|file| file.kind == *kind).unwrap().content.to_vec();
    kinds.iter().map(content).collect()
}

fn listed(file: &[u8]) -> Vec<Value> {
    let file: Value = serde_json::from_slice(file).unwrap();
    file["elements"].as_array().unwrap().clone()
}

async fn elements(rig: &Rig, url: &str) -> Vec<Value> {
    listed(&files(rig, url, &[FileKind::Elements]).await[0])
}

#[tokio::test(flavor = "multi_thread")]
async fn roles_and_names_are_those_of_screen_readers() {
    let parts: String = NAMES.iter().map(|(part, _)| format!("<div>{part}</div>\n")).collect();
    let site = Site::start(2, [("/", html(format!("{STYLE}{parts}{SLOTS}")))]).await;
    let rig = Rig::start().await;
    let found = elements(&rig, &site.url("/")).await;
    let found: Vec<(&str, &str)> =
        found.iter().map(|of| (of["role"].as_str().unwrap(), of["name"].as_str().unwrap())).collect();
    let expected: Vec<(&str, &str)> = NAMES.iter().flat_map(|(_, expected)| expected.iter().copied()).collect();
    // Elements in shadow trees come last.
    let (in_shadow, expected): (Vec<_>, Vec<_>) = expected.into_iter().partition(|(_, name)| name.contains("slotted"));
    assert_eq!(found, [expected, in_shadow].concat());
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_and_values_are_given_but_no_secrets() {
    let page = "<!doctype html><body>
        <label>Secret <input type=password value=hush></label><label>Code <input autocomplete='cc-csc' value=sesame></label>
        <label><input type=checkbox required> Keep <input type=password value=hush> it</label>
        <input aria-label=Name value=' Ada  L '><select aria-label=Many multiple><option selected>A<option>B<option selected>C</select>
        <fieldset disabled><input aria-label=Off></fieldset><button aria-pressed=mixed>Bold</button>
        <div role=tab aria-selected=true tabindex=0>Tab</div><details open><summary>More</summary>x</details>
        <div role=combobox aria-expanded=false aria-label=Fruit tabindex=0>Apple</div><input type=range aria-label=Volume value=30>
        <div inert><button>Inert</button></div>
        <script>document.querySelector('[type=checkbox]').indeterminate = true</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let found = elements(&rig, &site.url("/")).await;
    let text = Value::from(found.clone()).to_string();
    assert!(!text.contains("hush") && !text.contains("sesame"), "{text}");
    let state = |name: &str, member: &str| {
        let of = found.iter().find(|of| of["name"] == name).unwrap_or_else(|| panic!("{name}: {text}"));
        of[member].clone()
    };
    for (name, member, expected) in [
        ("Secret", "value", Value::Null),
        ("Code", "value", Value::Null),
        ("Keep it", "required", true.into()),
        ("Keep it", "checked", "mixed".into()),
        ("Name", "value", "Ada L".into()),
        ("Name", "required", Value::Null),
        ("Many", "value", "A C".into()),
        ("Off", "disabled", true.into()),
        ("Inert", "disabled", true.into()),
        ("Bold", "pressed", "mixed".into()),
        ("Tab", "selected", true.into()),
        ("More", "expanded", true.into()),
        ("Fruit", "expanded", false.into()),
        ("Fruit", "value", "Apple".into()),
        ("Volume", "value", "30".into()),
    ] {
        assert_eq!(state(name, member), expected, "{name} {member}: {text}");
    }
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn elements_in_frames_of_any_origin_are_where_the_image_shows_them() {
    let inner = "<!doctype html><body style='margin:0'>
        <a href=/x style='position:absolute;left:10px;top:10px;width:50px;height:20px'>Inner</a>
        <button style='position:absolute;left:10px;top:900px'>Out of sight</button>
        <iframe id=two style='position:absolute;left:50px;top:50px;border:0' srcdoc=\"<body style='margin:0'>
          <button style='position:absolute;left:0;top:0;width:50px;height:20px'>Deep</button>\"></iframe>";
    let outer = "<!doctype html><body style='margin:0'><button style='width:50px;height:20px;position:absolute'>Outer</button>
        <iframe id=one src='{other}' style='position:absolute;left:100px;top:50px;width:300px;height:200px;border:5px solid;padding:7px'></iframe>
        <iframe style='display:none' src=/in></iframe><iframe style='opacity:0;position:absolute;left:500px' src=/in></iframe>
        <iframe id=half style='position:absolute;left:500px;top:50px;border:0;transform:scale(.5);transform-origin:0 0' srcdoc=\"<body
          style='margin:0'><button style='position:absolute;left:20px;top:20px;width:100px;height:40px'>Half</button>\"></iframe>";
    let other = Site::start(3, [("/in", html(inner))]).await;
    let outer = outer.replace("{other}", &other.url("/in"));
    let site = Site::start(2, [("/", html(outer)), ("/in", html(inner))]).await;
    let rig = Rig::with(&[2, 3], |_| {}).await;
    let found = elements(&rig, &site.url("/")).await;
    let found: Vec<Value> = found
        .iter()
        .map(|of| json!([of["name"], of["frame"], of["box"]["x"], of["box"]["y"], of["box"]["width"]]))
        .collect();
    let expected = [
        json!(["Outer", null, 0, 0, 50]),
        json!(["Inner", "#one", 122, 72, 50]),
        json!(["Deep", "#one >> #two", 162, 112, 50]),
        json!(["Half", "#half", 510, 60, 50]),
    ];
    assert_eq!(found, expected);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn outline_has_roles_names_states_and_the_numbers_of_elements() {
    let page = "<!doctype html><body><nav aria-label='Main'><ul><li><a href=/a>Home</a><li><b>Bold</b> text</ul></nav>
        <h2>Prices: <i>new</i></h2><p>From <a href=/b><img src=/none.png alt=Shop></a> on.</p><p aria-hidden=true>no</p>
        <table><caption>Sums</caption><tr><th>A<tr><td>12:30</table><details><summary>More</summary>closed</details>
        <label><input type=checkbox checked required> Agree</label><input type=password value=hush aria-label=Secret>
        <input value='a: b' aria-label=Open><div style='visibility:hidden'>no<button style='visibility:visible'>Seen</button></div>
        <div inert>no<button>Inert</button></div><iframe id=one srcdoc='<button>Inner</button>'>no</iframe>";
    let outline = "- navigation \"Main\":
  - list:
    - listitem:
      - link \"Home\" [ref=e1]
    - listitem: Bold text
- 'heading \"Prices: new\" [level=2]'
- paragraph:
  - text: From
  - link \"Shop\" [ref=e2]
  - text: on.
- table \"Sums\":
  - text: Sums
  - row:
    - columnheader: A
  - row:
    - cell: \"12:30\"
- group:
  - button \"More\" [expanded=false] [ref=e3]
- checkbox \"Agree\" [required] [checked] [ref=e4]
- text: Agree
- textbox \"Secret\" [ref=e5]
- textbox \"Open\" [ref=e6]: \"a: b\"
- button \"Seen\" [ref=e7]
- frame \"#one\":
  - button \"Inner\" [ref=e9]
";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let made = files(&rig, &site.url("/"), &[FileKind::Elements, FileKind::Accessibility]).await;
    assert_eq!(String::from_utf8(made[1].clone()).unwrap(), outline);
    let names: Vec<Value> = listed(&made[0]).iter().map(|of| of["name"].clone()).collect();
    assert_eq!(names, ["Home", "Shop", "More", "Agree", "Secret", "Open", "Seen", "Inert", "Inner"]);
    let alone = files(&rig, &site.url("/"), &[FileKind::Accessibility]).await;
    assert_eq!(alone[0], made[1]);
    rig.chromium.shutdown().await;
}
