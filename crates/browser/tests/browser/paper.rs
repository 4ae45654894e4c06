//! PDFs: the paper, the margins, and headers and footers.

use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::ZlibDecoder;
use grabd_domain::capture::CaptureRequest;
use grabd_domain::render::Capture;

use crate::rig::{Rig, request};
use crate::site::{Site, html};

/// Prints a page with this layout, and returns the file.
async fn print(rig: &Rig, url: &str, layout: &str) -> Vec<u8> {
    let mut asked = CaptureRequest { also: Some(vec!["pdf".to_owned()]), ..request(url) };
    assert!(asked.set("pdf", serde_json::from_str(layout).unwrap()), "{layout}");
    let capture: Capture = rig.render(asked).await.unwrap_or_else(|error| panic!("{layout}: {error:?}"));
    let file = capture.files[0].content.to_vec();
    assert!(file.starts_with(b"%PDF-"), "{layout}");
    file
}

/// Width and height of the pages in points.
fn pages(file: &[u8]) -> Vec<(f64, f64)> {
    let text = String::from_utf8_lossy(file).into_owned();
    let boxes = text.split("/MediaBox [").skip(1).map(|rest| rest.split(']').next().unwrap().to_owned());
    let sides = |media_box: String| {
        let numbers: Vec<f64> = media_box.split_whitespace().map(|number| number.parse().unwrap()).collect();
        (numbers[2], numbers[3])
    };
    boxes.map(sides).collect()
}

fn points(millimetres: f64) -> f64 {
    millimetres / 25.4 * 72.0
}

fn assert_size(file: &[u8], (width, height): (f64, f64), about: &str) {
    let sizes = pages(file);
    let is_near = |a: f64, b: f64| (a - b).abs() < 2.0;
    assert!(
        !sizes.is_empty() && sizes.iter().all(|(w, h)| is_near(*w, width) && is_near(*h, height)),
        "{about}: {sizes:?}"
    );
}

/// The streams of a PDF that can be inflated to text.
fn streams(file: &[u8]) -> Vec<String> {
    let mut found = Vec::new();
    let find = |from: &[u8], part: &[u8]| from.windows(part.len()).position(|window| window == part);
    let mut rest = file;
    while let Some(end) = find(rest, b"endstream") {
        if let Some(start) = find(&rest[..end], b"stream\n") {
            let mut text = Vec::new();
            let is_read = ZlibDecoder::new(&rest[start + b"stream\n".len()..end]).read_to_end(&mut text).is_ok();
            if is_read {
                found.push(String::from_utf8_lossy(&text).into_owned());
            }
        }
        rest = &rest[end + b"endstream".len()..];
    }
    found
}

/// The texts between `<` and `>`.
fn hex_words(line: &str) -> Vec<&str> {
    line.split('<').skip(1).filter_map(|rest| rest.split_once('>').map(|(word, _)| word)).collect()
}

/// The characters of the glyphs, from the maps that PDFs have so that their text can be copied.
fn characters(streams: &[String]) -> HashMap<u32, char> {
    let number = |hex: &str| u32::from_str_radix(hex, 16).unwrap();
    let mut characters = HashMap::new();
    for map in streams.iter().filter(|stream| stream.contains("begincmap")) {
        let mut is_range = false;
        for line in map.lines() {
            is_range = (is_range || line.contains("beginbfrange")) && !line.contains("beginbfchar");
            match (hex_words(line).as_slice(), is_range) {
                ([glyph, character], false) if character.len() == 4 => {
                    characters.insert(number(glyph), char::from_u32(number(character)).unwrap());
                }
                ([first, last, character], true) if character.len() == 4 => {
                    for (at, glyph) in (number(first)..=number(last)).enumerate() {
                        let character = number(character) + u32::try_from(at).unwrap();
                        characters.insert(glyph, char::from_u32(character).unwrap());
                    }
                }
                (_, _) => {}
            }
        }
    }
    characters
}

/// The text that is drawn, without spaces.
fn drawn_text(file: &[u8]) -> String {
    let streams = streams(file);
    let characters = characters(&streams);
    let drawn = streams.iter().flat_map(|stream| stream.lines()).filter(|line| {
        let line = line.trim_end();
        line.ends_with("Tj") || line.ends_with("TJ")
    });
    let glyphs = drawn.flat_map(hex_words).flat_map(|word| {
        word.as_bytes().chunks(4).map(|glyph| u32::from_str_radix(str::from_utf8(glyph).unwrap(), 16).unwrap())
    });
    glyphs.filter_map(|glyph| characters.get(&glyph)).filter(|char| !char.is_whitespace()).collect()
}

/// A page of about three sheets of A4, with a text of one font.
const LONG: &str = "<!doctype html><title>Report 7</title>
    <body style='margin:0;font-family:sans-serif'><h1 style='font-weight:400'>Heading</h1><div style='height:2800px'></div>";

#[tokio::test(flavor = "multi_thread")]
async fn paper_has_the_requested_size() {
    let styled = "<!doctype html><style>@page { size: 100mm 120mm }</style><p>text";
    let site = Site::start(2, [("/", html(LONG)), ("/styled", html(styled))]).await;
    let rig = Rig::start().await;
    for (layout, size) in [
        (r#"{"format": "a6"}"#, (105.0, 148.0)),
        (r#"{"format": "a2", "landscape": true}"#, (594.0, 420.0)),
        (r#"{"width_mm": 150, "height_mm": 200.5}"#, (150.0, 200.5)),
        (r#"{"width_mm": 150, "height_mm": 200, "landscape": true}"#, (200.0, 150.0)),
        (r#"{"css_page_size": true}"#, (100.0, 120.0)),
        (r#"{"css_page_size": false}"#, (210.0, 297.0)),
    ] {
        let path = if layout.contains("css_page_size") { "/styled" } else { "/" };
        let file = print(&rig, &site.url(path), layout).await;
        assert_size(&file, (points(size.0), points(size.1)), layout);
    }
    let roll = print(&rig, &site.url("/"), r#"{"width_mm": 80, "single_page": true, "margin_mm": 0}"#).await;
    assert!(pages(&roll).len() == 1 && (pages(&roll)[0].0 - points(80.0)).abs() < 2.0, "{:?}", pages(&roll));
    let small =
        print(&rig, &site.url("/"), r#"{"width_mm": 80, "single_page": true, "margin_mm": 0, "scale": 0.5}"#).await;
    assert!(pages(&small).len() == 1 && pages(&small)[0].1 < pages(&roll)[0].1 * 0.6, "{:?}", pages(&small));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sizes_and_margins_of_the_pages_styles_apply_only_if_asked_for() {
    let styled = LONG.replace("<title>", "<style>@page { size: a5 landscape; margin: 60mm }</style><title>");
    let site = Site::start(2, [("/", html(LONG)), ("/styled", html(styled))]).await;
    let rig = Rig::start().await;
    for layout in ["{}", r#"{"margin_mm": 0}"#, r#"{"format": "a5", "margin_top_mm": 30.5, "header": "{page}"}"#] {
        let plain = pages(&print(&rig, &site.url("/"), layout).await);
        assert_eq!(pages(&print(&rig, &site.url("/styled"), layout).await), plain, "{layout}");
    }
    let own = print(&rig, &site.url("/styled"), r#"{"css_page_size": true}"#).await;
    assert_size(&own, (points(210.0), points(148.0)), "of the styles");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn styles_of_the_page_neither_turn_nor_break_a_single_page() {
    let styled = "<!doctype html><style>@page { size: a4 landscape; margin: 60mm } @page wide { size: landscape }
        h1 { page: wide } h2 { break-before: page } div { break-after: page }</style>
        <h1>one</h1><h2>two</h2><div>three</div><h2>four</h2>";
    let site = Site::start(2, [("/", html(styled))]).await;
    let rig = Rig::start().await;
    let roll = pages(&print(&rig, &site.url("/"), r#"{"width_mm": 80, "single_page": true}"#).await);
    assert!(roll.len() == 1 && (roll[0].0 - points(80.0)).abs() < 2.0, "{roll:?}");
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn margins_and_scale_change_how_much_is_on_a_sheet() {
    let site = Site::start(2, [("/", html(LONG))]).await;
    let rig = Rig::start().await;
    let count = async |layout: &str| pages(&print(&rig, &site.url("/"), layout).await).len();
    let plain = count("{}").await;
    assert!((2..=4).contains(&plain), "{plain}");
    for more in [
        r#"{"margin_top_mm": 100}"#,
        r#"{"margin_bottom_mm": 100}"#,
        r#"{"margin_mm": 0, "margin_top_mm": 100}"#,
        r#"{"scale": 2}"#,
    ] {
        assert!(count(more).await > plain, "{more}");
    }
    assert!(count(r#"{"scale": 0.3}"#).await < plain);
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_and_footers_are_text_that_loads_nothing() {
    let page = LONG.replace("Report 7", "<img src='{site}/of-title'>");
    let site = Site::start(2, [("/", html(page)), ("/plain", html(LONG))]).await;
    let rig = Rig::start().await;
    let layout = r#"{"header": "{title}|Our text|{date}", "footer": "Page {page} of {pages}", "margin_mm": 20}"#;
    let file = print(&rig, &site.url("/plain"), layout).await;
    let (text, count) = (drawn_text(&file), pages(&file).len());
    for part in ["Report7", "Ourtext", &format!("Page1of{count}"), &format!("Page{count}of{count}"), "Heading"] {
        assert!(text.contains(part), "{part:?} in {text:?}");
    }
    let is_day = |at: usize| {
        let day: Vec<u8> = text.bytes().skip(at).take(10).collect();
        day.iter().enumerate().all(|(at, byte)| if at == 4 || at == 7 { *byte == b'-' } else { byte.is_ascii_digit() })
    };
    let day = text.find("Ourtext").unwrap() + "Ourtext".len();
    assert!(is_day(day), "{text:?}");
    let without = drawn_text(&print(&rig, &site.url("/plain"), "{}").await);
    assert!(without.contains("Heading") && !without.contains("Report7") && !without.contains("Page"), "{without:?}");

    let caller = site.url("/of-caller");
    let layout = format!(
        r#"{{"header": "{{title}}", "footer": "<img src='{caller}'><script>fetch('{caller}')</script>", "margin_mm": 20}}"#
    );
    let text = drawn_text(&print(&rig, &site.url("/"), &layout).await);
    assert!(text.contains("<imgsrc='") && text.contains("<script>fetch"), "{text:?}");
    assert_eq!((site.hits("/of-title"), site.hits("/of-caller")), (0, 0));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn first_page_has_its_own_header_and_footer() {
    let styled = LONG.replace("<title>", "<style>@page { @top-center { content: 'Author' } }</style><title>");
    let site = Site::start(2, [("/", html(styled))]).await;
    let rig = Rig::start().await;
    let layout = r#"{"header": "Page {page} of {pages}", "first_page_header": "Letterhead", "footer": "{title}",
        "first_page_footer": "", "margin_mm": 20, "outline": true}"#;
    let file = print(&rig, &site.url("/"), layout).await;
    let (text, count) = (drawn_text(&file), pages(&file).len());
    assert!(count > 1, "{count}");
    let last = format!("Page{count}of{count}");
    for (part, times) in [("Letterhead", 1), ("Page1of", 0), (last.as_str(), 1), ("Author", 0)] {
        assert_eq!(text.matches(part).count(), times, "{part:?} in {text:?}");
    }
    assert_eq!(text.matches("Report7").count(), count - 1, "{text:?}");
    // It is one document: the structure and the bookmarks are those of all pages.
    let is_in = |part: &str| String::from_utf8_lossy(&file).contains(part);
    assert!(is_in("/StructTreeRoot") && is_in("/Outlines"));

    let second = print(&rig, &site.url("/"), &layout.replace("\"outline\": true", "\"pages\": \"2\"")).await;
    let text = drawn_text(&second);
    assert!(text.contains(&format!("Page2of{count}")) && !text.contains("Letterhead"), "{text:?}");
    let plain = print(&rig, &site.url("/"), r#"{"margin_mm": 20}"#).await;
    assert_eq!(pages(&plain), pages(&file));
    rig.chromium.shutdown().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn structure_and_bookmarks_are_in_the_file() {
    let site = Site::start(2, [("/", html(LONG))]).await;
    let rig = Rig::start().await;
    let has = |file: &[u8], part: &str| String::from_utf8_lossy(file).contains(part);
    let plain = print(&rig, &site.url("/"), "{}").await;
    assert!(has(&plain, "/StructTreeRoot") && !has(&plain, "/Outlines"));
    assert!(!has(&print(&rig, &site.url("/"), r#"{"tagged": false}"#).await, "/StructTreeRoot"));
    assert!(has(&print(&rig, &site.url("/"), r#"{"outline": true}"#).await, "/Outlines"));
    rig.chromium.shutdown().await;
}
