//! Markdown to HTML: headings with anchors, tables that scroll, code blocks that can become tabs, and places for the buttons
//! that run examples.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "events of the parser that need no change are passed on, also those that a later version adds"
)]

use std::collections::HashMap;
use std::fmt::Write;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd, html};

use super::example::{self, Example};
use super::passage::Passage;

/// A heading with its anchor.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Heading {
    pub(super) anchor: String,
    pub(super) text: String,
}

/// Where a page has the buttons of an example. Markdown cannot contain it, since its HTML is shown as text.
pub(super) const EXAMPLE_MARK: &str = "<!--example-->";

/// A rendered page.
pub(super) struct Rendered {
    /// With an [`EXAMPLE_MARK`] for each example.
    pub(super) html: String,
    /// The examples that can be run, in their order.
    pub(super) examples: Vec<Example>,
    /// The headings of the second level.
    pub(super) outline: Vec<Heading>,
    /// The text, by heading.
    pub(super) passages: Vec<Passage>,
}

/// The anchor of a heading, as code hosts make it: lower case, with hyphens for spaces.
pub(super) fn anchor(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect::<String>().to_lowercase()
}

/// The text of the first heading.
pub(super) fn title(markdown: &str) -> String {
    headings(markdown).into_iter().next().map(|(_, heading)| heading.text).unwrap_or_default()
}

/// The headings of the second level.
pub(super) fn outline(markdown: &str) -> Vec<Heading> {
    let second = |(level, heading)| (level == HeadingLevel::H2).then_some(heading);
    headings(markdown).into_iter().filter_map(second).collect()
}

fn parser(markdown: &str) -> Parser<'_> {
    Parser::new_ext(markdown, Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH)
}

/// All headings. A repeated one has the number of its repetition in its anchor, as code hosts make it.
fn headings(markdown: &str) -> Vec<(HeadingLevel, Heading)> {
    let mut found = Vec::new();
    let mut repetitions: HashMap<String, usize> = HashMap::new();
    let mut unique = |text: &str| {
        let anchor = anchor(text);
        let count = repetitions.entry(anchor.clone()).or_default();
        *count += 1;
        if *count == 1 { anchor } else { format!("{anchor}-{}", *count - 1) }
    };
    let mut open: Option<(HeadingLevel, String)> = None;
    for event in parser(markdown) {
        match (event, &mut open) {
            (Event::Start(Tag::Heading { level, .. }), _) => open = Some((level, String::new())),
            (Event::End(TagEnd::Heading(_)), _) => {
                found.extend(open.take().map(|(level, text)| (level, Heading { anchor: unique(&text), text })));
            }
            (Event::Text(part) | Event::Code(part), Some((_, text))) => text.push_str(&part),
            _ => {}
        }
    }
    found
}

/// Renders a page without its first heading, which the template shows. `resolve` returns the target of a link, or None
/// if only its text is shown. HTML in the Markdown is shown as text.
pub(super) fn render(markdown: &str, resolve: impl Fn(&str) -> Option<String>) -> Rendered {
    let mut writer =
        Writer { resolve, events: Vec::new(), links: Vec::new(), tables: 0, example: None, examples: Vec::new() };
    let mut passages = Passages::new(title(markdown));
    let mut anchors = headings(markdown).into_iter();
    let mut skips_title = false;
    let mut code: Option<(String, String)> = None;
    for event in parser(markdown) {
        passages.see(&event);
        if code.is_none() && !matches!(event, Event::Start(Tag::CodeBlock(_))) {
            writer.end_example();
        }
        match event {
            Event::Start(Tag::Heading { level, .. }) => {
                let heading = anchors.next().map(|(_, heading)| heading).unwrap_or_default();
                skips_title = level == HeadingLevel::H1;
                if !skips_title {
                    writer.raw(format!("<{level} id=\"{}\">", escape(&heading.anchor)));
                }
                passages.begin(heading, skips_title);
            }
            Event::End(TagEnd::Heading(level)) => {
                if !skips_title {
                    writer.raw(format!("</{level}>\n"));
                }
                skips_title = false;
            }
            _ if skips_title => {}
            Event::Start(Tag::CodeBlock(kind)) => {
                let language = match kind {
                    CodeBlockKind::Fenced(language) => language.to_string(),
                    CodeBlockKind::Indented => String::new(),
                };
                code = Some((language, String::new()));
            }
            Event::End(TagEnd::CodeBlock) => {
                if let Some((language, text)) = code.take() {
                    writer.code(&language, &text);
                }
            }
            Event::Text(text) => match &mut code {
                Some((_, code)) => code.push_str(&text),
                None => writer.events.push(Event::Text(text)),
            },
            Event::Start(Tag::Table(alignments)) => {
                writer.tables += 1;
                writer.raw(format!(
                    "<div class=\"scroll\" role=\"region\" aria-label=\"Table {}\" tabindex=\"0\">",
                    writer.tables
                ));
                writer.events.push(Event::Start(Tag::Table(alignments)));
            }
            Event::End(TagEnd::Table) => {
                writer.events.push(Event::End(TagEnd::Table));
                writer.raw("</div>\n".to_owned());
            }
            Event::Html(text) | Event::InlineHtml(text) => writer.events.push(Event::Text(text)),
            event => writer.other(event),
        }
    }
    writer.end_example();
    let mut html = String::new();
    html::push_html(&mut html, std::mem::take(&mut writer.events).into_iter());
    Rendered { html, examples: writer.examples, outline: outline(markdown), passages: passages.end() }
}

/// Collects the events to be rendered.
struct Writer<'a, R> {
    resolve: R,
    events: Vec<Event<'a>>,
    /// Whether each open link has a target.
    links: Vec<bool>,
    /// The number of tables so far. Each has a label of its own, since it can be scrolled.
    tables: u32,
    /// The example whose code blocks were just written.
    example: Option<Example>,
    /// The examples so far.
    examples: Vec<Example>,
}

impl<'a, R: Fn(&str) -> Option<String>> Writer<'a, R> {
    fn raw(&mut self, html: String) {
        self.events.push(Event::Html(CowStr::from(html)));
    }

    /// A code block. The language is its caption, by which the script joins blocks in several languages to tabs.
    fn code(&mut self, language: &str, text: &str) {
        let caption = caption(language);
        let mut block = String::from("<figure class=\"code\">");
        if !caption.is_empty() {
            let _ = write!(block, "<figcaption>{}</figcaption>", escape(caption));
        }
        let _ = writeln!(block, "<pre tabindex=\"0\"><code>{}</code></pre></figure>", escape(text));
        if let Some(example) = example::parse(text) {
            self.end_example();
            self.example = Some(example);
        }
        self.raw(block);
    }

    /// Marks the place of the buttons of the example below its last code block, so that they are below the tabs.
    fn end_example(&mut self) {
        if let Some(example) = self.example.take() {
            self.examples.push(example);
            self.raw(format!("{EXAMPLE_MARK}\n"));
        }
    }

    fn other(&mut self, event: Event<'a>) {
        match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let target = (self.resolve)(&dest_url);
                self.links.push(target.is_some());
                if let Some(target) = target {
                    let dest_url = CowStr::from(target);
                    self.events.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
                }
            }
            Event::End(TagEnd::Link) => {
                if self.links.pop() == Some(true) {
                    self.events.push(Event::End(TagEnd::Link));
                }
            }
            // Images of the repository are not part of the binary; their description is shown.
            Event::Start(Tag::Image { .. }) | Event::End(TagEnd::Image) => {}
            event => self.events.push(event),
        }
    }
}

/// The name of a language for readers.
fn caption(language: &str) -> &str {
    match language {
        "sh" | "bash" | "console" => "Shell",
        "js" | "javascript" => "JavaScript",
        "ts" | "typescript" => "TypeScript",
        "python" | "py" => "Python",
        "php" => "PHP",
        "go" => "Go",
        "rust" => "Rust",
        "json" => "JSON",
        "toml" => "TOML",
        "yaml" => "YAML",
        other => other,
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Collects the text of each heading, for the search.
struct Passages {
    done: Vec<Passage>,
    heading: Heading,
    text: String,
    in_heading: bool,
}

impl Passages {
    fn new(title: String) -> Self {
        Self {
            done: Vec::new(),
            heading: Heading { anchor: String::new(), text: title },
            text: String::new(),
            in_heading: false,
        }
    }

    fn begin(&mut self, heading: Heading, is_title: bool) {
        self.in_heading = true;
        if !is_title {
            self.finish();
            self.heading = heading;
        }
    }

    fn see(&mut self, event: &Event<'_>) {
        match event {
            Event::End(TagEnd::Heading(_)) => self.in_heading = false,
            Event::Text(part) | Event::Code(part) if !self.in_heading => self.text.push_str(part),
            Event::End(_) | Event::SoftBreak | Event::HardBreak => self.text.push(' '),
            _ => {}
        }
    }

    fn finish(&mut self) {
        let heading = std::mem::take(&mut self.heading);
        let text = std::mem::take(&mut self.text).split_whitespace().collect::<Vec<_>>().join(" ");
        self.done.push(Passage::new(heading.anchor, heading.text, text));
    }

    fn end(mut self) -> Vec<Passage> {
        self.finish();
        self.done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn html(markdown: &str) -> String {
        render(markdown, |link| link.starts_with("http").then(|| link.to_owned())).html
    }

    #[test]
    fn markup_in_markdown_is_shown_as_text() {
        let shown = html("# T\n\nA <script>alert(1)</script> b\n\n```sh\necho \"<b>\" & true\n```\n");
        assert!(!shown.contains("<script>") && shown.contains("&lt;script&gt;"), "{shown}");
        assert!(shown.contains("echo &quot;&lt;b&gt;&quot; &amp; true"), "{shown}");
    }

    #[test]
    fn headings_have_anchors_and_the_title_is_left_to_the_template() {
        let shown = html("# The title\n\n## Two `words` here\n\ntext\n");
        assert!(
            !shown.contains("The title")
                && shown.contains("<h2 id=\"two-words-here\">Two <code>words</code> here</h2>")
        );
        assert_eq!(title("# The title\n"), "The title");
    }

    #[test]
    fn each_example_has_one_mark_and_text_has_none() {
        let curl = "```sh\ncurl https://a.example/v1/grabs -d '{\"url\": \"https://example.com\"}'\n```\n";
        let page = format!("# T\n\n{curl}\n```python\nprint()\n```\n\nText <!--example-->\n\n<!--example-->\n\n{curl}");
        let rendered = render(&page, |_| None);
        assert_eq!((rendered.examples.len(), rendered.html.matches(EXAMPLE_MARK).count()), (2, 2), "{}", rendered.html);
        assert!(rendered.html.find("print()").unwrap() < rendered.html.find(EXAMPLE_MARK).unwrap());
    }

    #[test]
    fn links_without_a_target_keep_only_their_text() {
        let shown = html("# T\n\n[known](https://a.example) and [file](../src/lib.rs)\n");
        assert!(shown.contains("<a href=\"https://a.example\">known</a> and file"), "{shown}");
    }
}
