//! Attachments, and documents of the caller.

use std::sync::Arc;
use std::time::Duration;

use grabd_browser::FrameMode;
use grabd_domain::capture::{CaptureRequest, CaptureSpec, FileKind, Secret};
use grabd_domain::grabs::Warning;
use grabd_domain::ids::GrabId;
use grabd_domain::render::{Capture, RenderTask, Renderer as _, RequestSigner, SlotHold, StageReporter};
use serde_json::Value;
use uuid::Uuid;

use crate::rig::{DecodedImage, Rig, request};
use crate::site::{Site, answer, html, svg};

/// A page that tries to disturb what reads it: it replaces built-in functions, and names elements like properties of the
/// document and of forms.
const PAGE: &str = r#"<!doctype html><html lang=en><head><title>Page</title><style>.gone { display: none }</style></head><body>
<form><input name=childNodes><input name=firstChild><img name=body><img name=querySelectorAll></form>
<h1>Heading</h1>
<p>Some <b>bold</b> text, <a href="/next?a=(1)">a [link]</a> and <code>code</code>.</p>
<p class=gone>unseen</p><p style="visibility:hidden">unseen</p>
<ul><li>One<li>Two<ol><li>Inner</ol></ul>
<pre><code class=language-rust>fn main() {}</code></pre>
<table><tr><th>A<th>B|C<tr><td>1<td>2</table>
<div id=host></div><a href="javascript:alert(1)">script</a><a rel=nofollow href="https://other.example/">other</a>
<script>
document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML = '<p>in the shadow</p>';
Array.prototype.push = Array.prototype.map = () => { throw new Error('hacked') };
String.prototype.replace = String.prototype.slice = () => 'hacked';
Element.prototype.getAttribute = Element.prototype.getHTML = () => 'hacked';
document.createTreeWalker = () => 'hacked';
Object.defineProperty(HTMLElement.prototype, 'innerText', { get: () => 'hacked' });
console.error('logged by the page');
</script></body></html>"#;

fn also(kinds: &[FileKind]) -> Option<Vec<String>> {
    Some(kinds.iter().map(|kind| kind.as_str().to_owned()).collect())
}

fn text(capture: &Capture, kind: FileKind) -> String {
    let file = capture.files.iter().find(|file| file.kind == kind).unwrap();
    String::from_utf8(file.content.to_vec()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn files_have_what_the_page_shows_whatever_its_scripts_do() {
    let site = Site::start(2, [("/", html(PAGE))]).await;
    let rig = Rig::start().await;
    let kinds = [FileKind::Links, FileKind::Html, FileKind::Markdown, FileKind::Text];
    let content = Some("page".to_owned());
    let asked = CaptureRequest { also: also(&kinds), content, ..request(&site.url("/")) };
    let capture = rig.render(asked).await.unwrap();
    let made: Vec<FileKind> = capture.files.iter().map(|file| file.kind).collect();
    assert_eq!(made, [FileKind::Html, FileKind::Text, FileKind::Markdown, FileKind::Links]);
    assert_eq!(capture.metadata.warnings, []);

    let document = text(&capture, FileKind::Html);
    assert!(document.starts_with("<!DOCTYPE html>\n<html lang=\"en\">"), "{document}");
    assert!(document.contains("shadowrootmode=\"open\"><p>in the shadow</p>") && document.ends_with("</html>"));
    let shown = text(&capture, FileKind::Text);
    assert!(shown.contains("Some bold text, a [link] and code."), "{shown}");
    assert!(!shown.contains("unseen") && !shown.contains("hacked"), "{shown}");
    let markdown = text(&capture, FileKind::Markdown);
    for part in [
        "# Heading\n\n",
        &format!("Some **bold** text, [a \\[link\\]]({}\\(1\\)) and `code`.\n\n", site.url("/next?a=")),
        "- One\n- Two\n  1. Inner\n\n",
        "```rust\nfn main() {}\n```\n\n",
        "| A | B\\|C |\n| --- | --- |\n| 1 | 2 |\n\n",
        "in the shadow\n\n",
        "[other](https://other.example/)",
    ] {
        assert!(markdown.contains(part), "{part:?} in {markdown}");
    }
    assert!(!markdown.contains("unseen") && !markdown.contains("hacked"), "{markdown}");
    let links: Value = serde_json::from_str(&text(&capture, FileKind::Links)).unwrap();
    let urls: Vec<&str> = links.as_array().unwrap().iter().map(|link| link["url"].as_str().unwrap()).collect();
    assert_eq!(urls, [&*site.url("/next?a=(1)"), "https://other.example/"]);
    assert_eq!((&links[1]["text"], &links[1]["rel"]), (&Value::from("other"), &Value::from("nofollow")));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn formulas_spans_of_cells_and_languages_of_code_are_in_markdown() {
    let page = r#"<!doctype html><p>Euler: <math><semantics><mi>e</mi><annotation encoding="application/x-tex">e^{i\pi}</annotation>
</semantics></math> and <img class=latex alt="\frac{a}{b}" src=/none.png>.</p>
<math display=block alttext="a_b"><mi>a</mi></math>
<p>Write &amp;lt; for a sign.</p><table><caption>Two <b>sums</b></caption><tr><th colspan=2>A &amp; B<tr><td>1<td>2 &lt; 3</table>
<div class=highlight-source-rust><pre>fn x() {}</pre></div>"#;
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let asked = CaptureRequest { also: also(&[FileKind::Markdown]), ..request(&site.url("/")) };
    let capture = rig.render(asked).await.unwrap();
    assert!(capture.metadata.warnings.contains(&Warning::NoMainContent), "{:?}", capture.metadata.warnings);
    let parts = [
        r"Euler: $e^{i\pi}$ and $\frac{a}{b}$.",
        "$$\na_b\n$$",
        r"Write \&lt; for a sign.",
        "Two **sums**",
        "<table>\n<tr><th colspan=\"2\">A &amp; B</th></tr>\n<tr><td>1</td><td>2 &lt; 3</td></tr>\n</table>",
        "```rust\nfn x() {}\n```\n",
    ];
    assert_eq!(text(&capture, FileKind::Markdown), parts.join("\n\n"));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long_files_are_cut_with_a_warning_and_large_html_fails() {
    let many = "<!doctype html><body><script>
        const part = 'word '.repeat(20000);
        for (let at = 0; at < 30; at++) document.body.append(Object.assign(document.createElement('p'), { textContent: part }));
        for (let at = 0; at < 5001; at++) document.body.append(Object.assign(document.createElement('a'), { href: '/' + at }));
        </script>";
    let large = "<!doctype html><body><script>
        const comment = document.createComment('x'.repeat(9 << 20)); document.body.append(comment)</script>";
    let site = Site::start(2, [("/many", html(many)), ("/large", html(large))]).await;
    let rig = Rig::start().await;
    let kinds = [FileKind::Text, FileKind::Markdown, FileKind::Links];
    let content = Some("page".to_owned());
    let asked = CaptureRequest { also: also(&kinds), content, ..request(&site.url("/many")) };
    let capture = rig.render(asked).await.unwrap();
    assert!(capture.metadata.warnings.contains(&Warning::AlsoTruncated), "{:?}", capture.metadata.warnings);
    for kind in [FileKind::Text, FileKind::Markdown] {
        assert_eq!(text(&capture, kind).len(), 2 << 20, "{kind:?}");
    }
    let links: Vec<Value> = serde_json::from_str(&text(&capture, FileKind::Links)).unwrap();
    assert_eq!(links.len(), 5000);
    let asked = CaptureRequest { also: also(&[FileKind::Html]), ..request(&site.url("/large")) };
    let (failure, _) = rig.fails(asked).await;
    assert!(failure.message.contains("html of the page has more than 8 MB"), "{failure:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pdf_has_the_requested_paper_and_pages() {
    let page = "<!doctype html><body style='margin:0'><div style='height:3000px;background:lime'>long</div>";
    let site = Site::start(2, [("/", html(page))]).await;
    let rig = Rig::start().await;
    let print = async |layout: &str| {
        let mut asked = CaptureRequest { also: also(&[FileKind::Pdf]), ..request(&site.url("/")) };
        assert!(asked.set("pdf", serde_json::from_str(layout).unwrap()), "{layout}");
        rig.render(asked).await
    };
    let boxes = |capture: &Capture| {
        let file = &capture.files[0].content;
        assert!(file.starts_with(b"%PDF-"));
        let text = String::from_utf8_lossy(file).into_owned();
        let boxes = text.split("/MediaBox [").skip(1).map(|rest| rest.split(']').next().unwrap().to_owned());
        boxes.collect::<Vec<String>>()
    };
    let sides = |media_box: &str| -> Vec<f64> {
        media_box.split_whitespace().skip(2).map(|side| side.parse::<f64>().unwrap().round()).collect()
    };
    let plain = boxes(&print("{}").await.unwrap());
    assert!(plain.len() > 1 && plain.iter().all(|of| sides(of) == [596.0, 842.0]), "{plain:?}");
    let wide = boxes(&print(r#"{"format": "letter", "landscape": true, "pages": "1"}"#).await.unwrap());
    assert_eq!(wide.iter().map(|of| sides(of)).collect::<Vec<_>>(), [[792.0, 612.0]]);
    let single = boxes(&print(r#"{"single_page": true, "margin_mm": 0}"#).await.unwrap());
    let [single] = single.as_slice() else { panic!("{single:?}") };
    // 3000 CSS pixels are 2250 points.
    assert!((2250.0..2256.0).contains(&sides(single)[1]), "{single}");
    let Err(error) = print(r#"{"pages": "99"}"#).await else { panic!("a PDF without pages") };
    assert!(error.to_string().contains("no such `pages`"), "{error}");
    rig.chromium.shutdown().await;
}

/// Elements of distinct colours, which tell whether their boxes match the image.
const OPERABLE: &str = r##"<!doctype html><style>
body { margin: 0; height: 2400px; position: relative } body > * { position: absolute; display: block; border: 0; padding: 0; font-size: 0 }
</style><body>
<a href="/next" id=next style="left:20px;top:30px;width:100px;height:40px;background:lime">Next <b>page</b></a>
<button disabled aria-label="Save it" style="left:200px;top:30px;width:60px;height:40px;background:red">x</button>
<label for=mail style="top:700px">E-mail</label>
<input id=mail type=email style="left:20px;top:100px;width:200px;height:30px;background:blue">
<input type=checkbox checked title=Agree style="left:300px;top:100px;width:20px;height:20px">
<div role="menuitemcheckbox" aria-checked=true tabindex=0 style="left:20px;top:200px;width:50px;height:50px;background:black"><img alt=Picture></div>
<div role="banner" style="top:300px;width:50px;height:50px">no control</div>
<p tabindex=-1>no control</p><button style="visibility:hidden">unseen</button><button style="opacity:0">unseen</button><input type=hidden>
<div id=host style="left:400px;top:100px"></div>
<button style="left:20px;top:2000px;width:80px;height:40px;background:red">Far down</button>
<form><input name=getAttribute type=submit style="left:500px;top:30px;width:40px;height:40px"></form>
<script>document.querySelector('#host').attachShadow({ mode: 'open' }).innerHTML =
  '<button style="border:0;width:40px;height:40px;background:yellow;font-size:0">Shadow</button>';</script>"##;

#[tokio::test(flavor = "multi_thread")]
async fn boxes_of_elements_match_the_image() {
    let site = Site::start(2, [("/", html(OPERABLE))]).await;
    let rig = Rig::start().await;
    let plain = CaptureRequest { also: also(&[FileKind::Elements, FileKind::Pdf]), ..request(&site.url("/")) };
    let full_page = CaptureRequest { full_page: Some(true), ..plain.clone() };
    let part = CaptureRequest { selector: Some("#next".to_owned()), padding: Some(10), ..plain.clone() };
    let mut clip = plain.clone();
    assert!(clip.set("clip", serde_json::from_str(r#"{"x": 10, "y": 190, "width": 300, "height": 100}"#).unwrap()));
    for (name, asked, expected) in [
        ("window", plain.clone(), &["lime", "red", "blue", "black", "yellow"][..]),
        ("scaled", CaptureRequest { scale: Some(2.0), ..plain.clone() }, &["lime", "red", "blue", "black", "yellow"]),
        (
            "fitted",
            CaptureRequest { fit_width: Some(640), ..plain.clone() },
            &["lime", "red", "blue", "black", "yellow"],
        ),
        ("full page", full_page, &["lime", "red", "blue", "black", "red", "yellow"]),
        ("element", part, &["lime"]),
        ("clip", clip, &["black"]),
    ] {
        let capture = rig.render(asked).await.unwrap();
        let file: Value = serde_json::from_str(&text(&capture, FileKind::Elements)).unwrap();
        let image = DecodedImage::from(capture);
        let (width, height) = image.size();
        assert_eq!(file["image"], serde_json::json!({ "width": width, "height": height }), "{name}");
        let centre = |element: &Value| {
            let side = |side: &str| u32::try_from(element["box"][side].as_u64().unwrap()).unwrap();
            image.colour(side("x") + side("width") / 2, side("y") + side("height") / 2)
        };
        let colours: Vec<String> =
            file["elements"].as_array().unwrap().iter().map(|element| centre(element).to_owned()).collect();
        let named: Vec<&str> = colours.iter().map(String::as_str).filter(|colour| expected.contains(colour)).collect();
        assert_eq!(named, expected, "{name}: {file}");
    }
    let capture = rig.render(plain).await.unwrap();
    let file: Value = serde_json::from_str(&text(&capture, FileKind::Elements)).unwrap();
    let elements = file["elements"].as_array().unwrap();
    let told: Vec<(&str, &str, &str)> = elements
        .iter()
        .map(|element| ["role", "name", "selector"].map(|member| element[member].as_str().unwrap_or_default()).into())
        .collect();
    assert_eq!(
        told,
        [
            ("link", "Next page", "#next"),
            ("button", "Save it", "html > body > button:nth-of-type(1)"),
            ("textbox", "E-mail", "#mail"),
            ("checkbox", "Agree", "html > body > input:nth-of-type(2)"),
            ("menuitemcheckbox", "Picture", "html > body > div:nth-of-type(1)"),
            ("button", "Submit", "html > body > form > input"),
            ("button", "Shadow", ""),
        ]
    );
    assert_eq!((&elements[0]["url"], &elements[0]["box"]["width"]), (&site.url("/next").into(), &100.into()));
    assert_eq!(
        (&elements[1]["disabled"], &elements[3]["checked"], &elements[4]["checked"]),
        (&true.into(), &true.into(), &true.into())
    );
    assert_eq!(elements[6]["selector"], Value::Null);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn report_has_navigations_requests_and_console_errors() {
    let page = "<!doctype html><link rel=stylesheet href=/blocked.css><img src='/missing.png?token=token-value'>
        <img src='http://127.0.0.9:8080/'><script>console.error('logged by the page: token-value')</script>";
    let site = Site::start(2, [("/page", html(page))]).await;
    let rig = Rig::start().await;
    let asked = CaptureRequest {
        also: also(&[FileKind::Report]),
        block_urls: Some(vec!["*blocked.css".to_owned()]),
        ..request(&site.url("/to?{site}/page"))
    };
    let mut asked = CaptureRequest { url: asked.url.map(|url| url.replace("{site}", &site.url(""))), ..asked };
    assert!(asked.set("headers", serde_json::from_str(r#"{"X-Token": "token-value"}"#).unwrap()));
    let capture = rig.render(asked).await.unwrap();
    let report: Value = serde_json::from_str(&text(&capture, FileKind::Report)).unwrap();
    let statuses: Vec<&Value> = report["navigation"].as_array().unwrap().iter().map(|step| &step["status"]).collect();
    assert_eq!(statuses, [&Value::from(302), &Value::from(200)], "{report}");
    let of = |part: &str| {
        let requests = report["requests"].as_array().unwrap();
        requests.iter().find(|of| of["url"].as_str().unwrap().contains(part)).unwrap_or_else(|| panic!("{report}"))
    };
    assert_eq!((&of("/missing.png")["status"], &of("/missing.png")["type"]), (&404.into(), &"image".into()));
    assert_eq!(of("/blocked.css")["stopped_by"], "asked", "{report}");
    assert_eq!(of("127.0.0.9")["stopped_by"], "guard", "{report}");
    let response = &report["response"];
    assert!(response["ttfb_ms"].is_u64() && response["media_type"] == "text/html", "{report}");
    assert_eq!(response["tls"], Value::Null, "{report}");
    let headers = response["headers"].to_string();
    assert!(headers.contains(r#"{"name":"Content-Type","value":"text/html; charset=utf-8"}"#), "{report}");
    let console = report["console"].to_string();
    assert!(console.contains("logged by the page: removed"), "{report}");
    assert!(!report.to_string().contains("token-value"), "{report}");
    assert_eq!(report["timeline"][0]["event"], "document", "{report}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn web_vitals_are_those_of_the_load_and_null_where_the_page_is_not_drawn_meanwhile() {
    let page =
        "<!doctype html><body style='margin:0'><p style='font-size:40px'>The largest text of the page</p><script>
        setTimeout(() => {
            const banner = document.createElement('div');
            banner.style.height = '300px';
            document.body.prepend(banner);
        }, 300)</script>";
    let site = Site::start(2, [("/", html(page))]).await;
    for frames in [FrameMode::OnDemand, FrameMode::Timer] {
        let rig = Rig::with(&[2], |options| options.frames = frames).await;
        let asked = CaptureRequest { also: also(&[FileKind::Report]), ..request(&site.url("/")) };
        let capture = rig.render(asked).await.unwrap();
        let report: Value = serde_json::from_str(&text(&capture, FileKind::Report)).unwrap();
        let vital = |name: &str| report["web_vitals"][name].as_f64();
        assert!(vital("ttfb_ms").is_some(), "{frames:?}: {report}");
        match frames {
            FrameMode::OnDemand => {
                assert_eq!([vital("fcp_ms"), vital("lcp_ms"), vital("cls")], [None; 3], "{report}");
            }
            FrameMode::Timer => {
                assert!(vital("fcp_ms") > Some(0.0) && vital("lcp_ms") >= vital("fcp_ms"), "{report}");
                assert!(vital("cls") > Some(0.0), "{report}");
            }
        }
        rig.chromium.shutdown().await;
    }
}

/// A task for a document of the caller. The URL is that of a name which nobody can look up.
fn own_document(html: &str, base_url: &str) -> RenderTask {
    let asked = CaptureRequest {
        html: Some(Secret(html.to_owned())),
        base_url: Some(base_url.to_owned()),
        also: also(&[FileKind::Links]),
        ..CaptureRequest::default()
    };
    let spec = CaptureSpec::parse(&asked).unwrap();
    RenderTask {
        id: GrabId(Uuid::nil()),
        spec,
        budget: Duration::from_secs(25),
        alone: false,
        stages: StageReporter::default(),
        slot: SlotHold::default(),
        domains: Arc::default(),
        signer: RequestSigner::default(),
        proxy: None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn own_document_is_not_requested_and_its_resources_are() {
    let styles = answer("200 OK", "Content-Type: text/css", "body { margin: 0; background: lime }");
    let site = Site::start(2, [("/i.svg", svg("blue")), ("/s.css", styles)]).await;
    let rig = Rig::start().await;
    let document = format!(
        "<!doctype html><link rel=stylesheet href='{}'><img src='{}'><a href=relative>ü</a>
         <script>if (location.href !== 'http://html.example/dir/?q=*#part') document.body.remove()</script>",
        site.url("/s.css"),
        site.url("/i.svg"),
    );
    let capture = rig.chromium.render(own_document(&document, "http://html.example/dir/?q=*#part")).await.unwrap();
    let links = text(&capture, FileKind::Links);
    assert_eq!(links, r#"[{"url":"http://html.example/dir/relative","text":"ü","rel":""}]"#);
    let image = DecodedImage::from(capture);
    assert_eq!((image.colour(50, 50), image.colour(600, 400)), ("blue", "lime"));
    assert_eq!(
        (image.metadata.http_status, image.metadata.final_url.as_deref()),
        (Some(200), Some("http://html.example/dir/?q=*#part"))
    );
    assert_eq!(site.hits("/i.svg"), 1);

    // What the guard refuses, it refuses for these documents as well, and counts it: also http addresses in one of https,
    // which the browser must not block before.
    let private = "<!doctype html><body style='background:lime'><img src='http://127.0.0.9:8080/'>
        <img src='http://192.168.0.9/'><script>fetch('http://169.254.169.254/').catch(() => {})</script>";
    for url in ["http://html.example/", "https://html.example/"] {
        let refused = rig.chromium.render(own_document(private, url)).await.unwrap();
        assert_eq!((refused.metadata.http_status, refused.metadata.blocked_requests), (Some(200), 3), "{url}");
    }
    rig.chromium.shutdown().await;
}
