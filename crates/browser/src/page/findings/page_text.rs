//! Headers and footers of printed pages, as the HTML that the browser prints, or as rules of a style sheet.
//!
//! The browser shows a template as a document of its own, which is the same on all pages. Only rules can tell the first page from
//! the others. Nothing of the caller or of the page becomes markup or more than a string of a rule, so that neither loads or runs
//! anything.

use std::fmt::Write as _;

use grabd_domain::capture::{PagePart, PageText, PdfLayout};

/// The most characters of a title or a URL.
const MAX_CHARS: usize = 300;

/// What the placeholders of a line stand for.
pub(super) struct PageFacts<'a> {
    pub(super) title: &'a str,
    pub(super) url: &'a str,
    pub(super) date: &'a str,
}

/// A template that prints nothing. Without one, the browser prints its own header or footer.
const NOTHING: &str = "<span></span>";

/// The template of a line, which is as wide as the paper without these margins in inches.
pub(super) fn template(text: Option<&PageText>, (left, right): (f64, f64), facts: &PageFacts<'_>) -> String {
    let Some(text) = text else { return NOTHING.to_owned() };
    let sections = text.sections();
    let [is_left_empty, is_middle_empty, is_right_empty] =
        [&sections[0], &sections[1], &sections[2]].map(Vec::is_empty);
    // The whole line for one section, half a line and more for two, and thirds for three.
    let (flex, is_shown): (&str, [bool; 3]) = match (is_left_empty && is_right_empty, is_middle_empty) {
        (true, _) => ("1 1 0", [false, true, false]),
        (false, true) => ("0 1 auto", [true, false, true]),
        (false, false) => ("1 1 0", [true; 3]),
    };
    let mut html = format!(
        "<div style=\"box-sizing:border-box;display:flex;justify-content:space-between;width:100%;gap:4mm;\
         padding:0 {right:.4}in 0 {left:.4}in;font:8pt sans-serif;color:#333\">"
    );
    for ((parts, is_shown), align) in sections.iter().zip(is_shown).zip(["left", "center", "right"]) {
        if !is_shown {
            continue;
        }
        _ = write!(
            html,
            "<div style=\"flex:{flex};min-width:0;overflow:hidden;text-overflow:ellipsis;white-space:nowrap;\
             text-align:{align}\">"
        );
        parts.iter().for_each(|part| add_part(&mut html, *part, facts));
        html.push_str("</div>");
    }
    html.push_str("</div>");
    html
}

fn add_part(html: &mut String, part: PagePart<'_>, facts: &PageFacts<'_>) {
    match part {
        PagePart::Text(text) => add_escaped(html, text),
        // The browser fills in elements of these classes on each page.
        PagePart::Page => html.push_str("<span class=\"pageNumber\"></span>"),
        PagePart::Pages => html.push_str("<span class=\"totalPages\"></span>"),
        PagePart::Title => add_escaped(html, facts.title),
        PagePart::Url => add_escaped(html, facts.url),
        PagePart::Date => add_escaped(html, facts.date),
    }
}

fn add_escaped(html: &mut String, text: &str) {
    for char in text.chars().take(MAX_CHARS).filter(|char| !char.is_control()) {
        match char {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            char => html.push(char),
        }
    }
}

/// What the boxes in the margins look like: as a template, whose 8 points the browser prints as large as 9.75 (Chromium 156).
const BOX_STYLE: &str = "font: 9.75pt sans-serif !important; color: #333 !important; white-space: nowrap !important; \
                         overflow: hidden !important; text-overflow: ellipsis !important";

/// The rules for headers and footers of which those of the first page differ. Boxes that the page's own styles fill are emptied.
pub(super) fn margin_rules(layout: &PdfLayout, facts: &PageFacts<'_>) -> String {
    let edges =
        [("top", &layout.header, &layout.first_page_header), ("bottom", &layout.footer, &layout.first_page_footer)];
    let (mut all, mut first) = (String::new(), String::new());
    for (edge, text, first_text) in edges {
        add_boxes(&mut all, edge, text.as_ref(), facts);
        if first_text.is_some() {
            add_boxes(&mut first, edge, first_text.as_ref(), facts);
        }
    }
    format!("@page {{ {all}}} @page :first {{ {first}}}")
}

/// Adds the three boxes in a margin. Without a text, they are empty.
fn add_boxes(rules: &mut String, edge: &str, text: Option<&PageText>, facts: &PageFacts<'_>) {
    let sections = text.map(PageText::sections).unwrap_or_default();
    for (parts, place) in sections.iter().zip(["left", "center", "right"]) {
        let content = match parts.is_empty() {
            true => "none".to_owned(),
            false => parts.iter().map(|part| content(*part, facts)).collect::<Vec<_>>().join(" "),
        };
        // The distance to the edge of the paper is that of templates.
        _ = write!(
            rules,
            "@{edge}-{place} {{ content: {content} !important; {BOX_STYLE}; padding-{edge}: 15pt !important; \
             vertical-align: {edge} !important }} "
        );
    }
}

fn content(part: PagePart<'_>, facts: &PageFacts<'_>) -> String {
    match part {
        PagePart::Text(text) => quoted(text),
        PagePart::Page => "counter(page)".to_owned(),
        PagePart::Pages => "counter(pages)".to_owned(),
        PagePart::Title => quoted(facts.title),
        PagePart::Url => quoted(facts.url),
        PagePart::Date => quoted(facts.date),
    }
}

/// A text as a string of CSS. Line breaks, which would end it, are control characters.
fn quoted(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for char in text.chars().take(MAX_CHARS).filter(|char| !char.is_control()) {
        if matches!(char, '"' | '\\') {
            quoted.push('\\');
        }
        quoted.push(char);
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};

    use super::*;

    fn header(text: &str) -> PageText {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        request.also = Some(vec!["pdf".to_owned()]);
        assert!(request.set("pdf", serde_json::from_str(&format!("{{\"header\": \"{text}\"}}")).unwrap()));
        CaptureSpec::parse(&request).unwrap().pdf.header.unwrap()
    }

    #[test]
    fn texts_of_the_caller_and_of_the_page_are_no_markup() {
        let title = format!("<img src='https://a.example/'>{}", "é".repeat(1000));
        let facts = PageFacts { title: &title, url: "https://b.example/?a=\"&b", date: "2026-11-29" };
        let html = template(Some(&header("<script>{title}{url}|{page}/{pages}")), (1.0, 0.5), &facts);
        let elements: Vec<&str> = html.split('<').skip(1).map(|rest| rest.split([' ', '>']).next().unwrap()).collect();
        assert_eq!(elements, ["div", "div", "/div", "div", "span", "/span", "span", "/span", "/div", "/div"], "{html}");
        assert!(html.contains("&lt;script&gt;&lt;img src=&#39;https://a.example/&#39;&gt;é"), "{html}");
        assert!(html.contains("?a=&quot;&amp;b") && html.chars().filter(|char| *char == 'é').count() < MAX_CHARS);
        assert!(html.contains("padding:0 0.5000in 0 1.0000in"), "{html}");
    }

    #[test]
    fn rules_for_margins_have_texts_as_strings_only() {
        let layout = |json: &str| {
            let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
            request.also = Some(vec!["pdf".to_owned()]);
            assert!(request.set("pdf", serde_json::from_str(json).unwrap()), "{json}");
            CaptureSpec::parse(&request).unwrap().pdf
        };
        let facts = PageFacts { title: "\"} * {\n\\", url: "https://a.example/", date: "2026-11-29" };
        let rules =
            margin_rules(&layout(r#"{"header": "{page}/{pages}|{title}", "first_page_header": "{date}"}"#), &facts);
        let (all, first) = rules.split_once("@page :first").unwrap();
        assert!(all.contains(r#"@top-left { content: counter(page) "/" counter(pages) !important"#), "{all}");
        assert!(all.contains(r#"@top-right { content: "\"} * {\\" !important"#), "{all}");
        assert!(all.contains("@bottom-center { content: none !important"), "{all}");
        assert!(first.contains(r#"@top-center { content: "2026-11-29" !important"#), "{first}");
        assert!(first.contains("@top-left { content: none !important") && !first.contains("bottom"), "{first}");
        let without = margin_rules(&layout(r#"{"footer": "a", "first_page_footer": ""}"#), &facts);
        let (all, first) = without.split_once("@page :first").unwrap();
        assert!(all.contains("@bottom-center { content: \"a\""), "{all}");
        assert!(first.contains("@bottom-center { content: none") && !first.contains("top"), "{first}");
    }

    #[test]
    fn line_that_is_not_asked_for_prints_nothing() {
        let facts = PageFacts { title: "", url: "", date: "" };
        assert_eq!(template(None, (0.0, 0.0), &facts), NOTHING);
        let one = template(Some(&header("{date}")), (0.0, 0.0), &facts);
        assert_eq!(one.matches("<div").count(), 2, "{one}");
    }
}
