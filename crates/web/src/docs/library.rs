//! All pages of the documentation, rendered.

use super::client_packages::{self, ClientPackages};
use super::example::Example;
use super::markdown::{self, EXAMPLE_MARK, Heading};
use super::pages::{API, Audience, BEFORE_REFERENCE, SOURCES, Source};
use super::passage::Passage;
use super::settings;

/// The address in the Markdown files that stands for the service's own.
const EXAMPLE_ORIGIN: &str = "http://127.0.0.1:8080";
/// The first page of the API reference, and the folder of the others.
const REFERENCE_SLUG: &str = "api";

/// A page of the documentation.
#[derive(Debug)]
pub(crate) struct DocPage {
    /// The path below that of the documentation.
    pub(super) slug: String,
    pub(super) path: String,
    pub(super) section: &'static str,
    pub(super) audience: Audience,
    pub(super) title: String,
    pub(super) summary: String,
    /// `None` for pages of the API reference, which are not made from Markdown.
    pub(super) markdown: Option<String>,
    /// With an [`EXAMPLE_MARK`] for each example.
    pub(super) html: String,
    /// The examples that can be run.
    pub(super) examples: Vec<Example>,
    /// The headings of the second level.
    pub(super) outline: Vec<Heading>,
    pub(super) passages: Vec<Passage>,
}

/// All pages, in the order of the navigation.
#[derive(Debug)]
pub(crate) struct Library {
    pages: Vec<DocPage>,
    hides_self_hosting: bool,
}

/// Who reads the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// A visitor or a user.
    Customer,
    /// An operator of the service, who sees all pages.
    Operator,
}

/// A page of the API reference, which belongs to the REST API.
#[derive(Clone, Debug, Default)]
pub struct ReferencePage {
    /// The path below that of the reference. Empty for its first page.
    pub slug: String,
    /// The title.
    pub title: String,
    /// One sentence for lists of pages.
    pub summary: String,
    /// What is below the title.
    pub html: String,
    /// Anchor and text of the headings of the second level.
    pub headings: Vec<(String, String)>,
    /// What the search finds: anchor, heading and text of each passage.
    pub passages: Vec<(String, String, String)>,
}

impl Library {
    /// Renders all pages, for the service at `origin` that offers these packages, with those of the API reference. If
    /// `hides_self_hosting`, only operators see the pages for operators, and the others have no links to them.
    pub(crate) fn render(
        origin: &str,
        packages: &ClientPackages,
        reference: Vec<ReferencePage>,
        hides_self_hosting: bool,
    ) -> Self {
        let mut reference = Some(reference);
        let mut pages = Vec::new();
        for source in SOURCES {
            pages.push(render(source, origin, packages, hides_self_hosting));
            if source.slug == BEFORE_REFERENCE {
                pages.extend(reference.take().into_iter().flatten().map(DocPage::of_reference));
            }
        }
        Self { pages, hides_self_hosting }
    }

    /// The pages that a reader sees, in the order of the navigation.
    pub(super) fn pages(&self, reader: Reader) -> impl Iterator<Item = &DocPage> {
        let sees_all = !self.hides_self_hosting || reader == Reader::Operator;
        self.pages.iter().filter(move |page| sees_all || page.audience == Audience::Customers)
    }

    /// The first page.
    #[expect(clippy::indexing_slicing, reason = "the list of sources is a constant that is not empty")]
    pub(super) fn first(&self) -> &DocPage {
        &self.pages[0]
    }

    pub(super) fn find(&self, slug: &str, reader: Reader) -> Option<&DocPage> {
        self.pages(reader).find(|page| page.slug == slug)
    }

    /// Where a page is that was a chapter of the manual for operators up to version 0.2.0: its address was its heading.
    pub(super) fn moved(&self, slug: &str, reader: Reader) -> Option<String> {
        let pages = || self.pages(reader).filter(|page| page.audience == Audience::Operators);
        if let Some(page) = pages().find(|page| markdown::anchor(&page.title) == slug) {
            return Some(page.path.clone());
        }
        let page = pages().find(|page| page.outline.iter().any(|heading| heading.anchor == slug))?;
        Some(format!("{}#{slug}", page.path))
    }

    /// The pages before and after a page.
    pub(super) fn neighbours(&self, page: &DocPage, reader: Reader) -> (Option<&DocPage>, Option<&DocPage>) {
        let mut before = None;
        let mut pages = self.pages(reader);
        while let Some(other) = pages.next() {
            if other.slug == page.slug {
                return (before, pages.next());
            }
            before = Some(other);
        }
        (None, None)
    }

    /// The list of all pages in the format of `llms.txt`. Programs have no session, so it is that of customers.
    pub(super) fn llms_txt(&self, origin: &str) -> String {
        let mut text =
            "# grabd\n\n> Captures web pages in a real browser and returns hosted images, over REST, gRPC, MCP, \
                        a command line and a web app.\n"
                .to_owned();
        let mut section = "";
        for page in self.pages(Reader::Customer) {
            if page.section != section {
                section = page.section;
                let title = match page.audience {
                    Audience::Customers => section.to_owned(),
                    Audience::Operators => format!("{}: {section}", Audience::Operators.title()),
                };
                text.push_str(&format!("\n## {title}\n\n"));
            }
            let suffix = if page.markdown.is_some() { ".md" } else { "" };
            text.push_str(&format!("- [{}]({origin}{}{suffix}): {}\n", page.title, page.path, page.summary));
        }
        text.push_str(&format!("\n## OpenAPI\n\n- [OpenAPI document]({origin}/v1/openapi.json): the REST API\n"));
        text
    }
}

impl DocPage {
    /// The HTML in pieces, each with the example that is below it.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (&str, Option<&Example>)> {
        let examples = self.examples.iter().map(Some).chain(std::iter::repeat(None));
        self.html.split(EXAMPLE_MARK).zip(examples)
    }

    fn of_reference(page: ReferencePage) -> Self {
        let ReferencePage { slug, title, summary, html, headings, passages } = page;
        let slug = if slug.is_empty() { REFERENCE_SLUG.to_owned() } else { format!("{REFERENCE_SLUG}/{slug}") };
        let passages = passages.into_iter().map(|(anchor, heading, text)| Passage::new(anchor, heading, text));
        Self {
            path: path(&slug),
            slug,
            section: API,
            audience: Audience::Customers,
            title,
            summary,
            markdown: None,
            html,
            examples: Vec::new(),
            outline: headings.into_iter().map(|(anchor, text)| Heading { anchor, text }).collect(),
            passages: passages.collect(),
        }
    }
}

/// The address that a link of a page has in the documentation. None if it leads to a file that is not a page, or from a page
/// for customers to one that they do not see.
fn resolve(from: &Source, link: &str, hides_self_hosting: bool) -> Option<String> {
    if link.starts_with("http") || link.starts_with("mailto:") || link.starts_with('/') || link.starts_with('#') {
        return Some(link.to_owned());
    }
    let (name, anchor) = link.split_once('#').unwrap_or((link, ""));
    let wanted = joined(from.file, name);
    let source = SOURCES.iter().find(|source| source.file == wanted)?;
    if hides_self_hosting && from.audience < source.audience {
        return None;
    }
    let path = path(source.slug);
    Some(if anchor.is_empty() { path } else { format!("{path}#{anchor}") })
}

/// A path relative to the directory of a file.
fn joined(file: &str, relative: &str) -> String {
    let mut parts: Vec<&str> = file.split('/').collect();
    parts.pop();
    for part in relative.split('/') {
        match part {
            ".." => drop(parts.pop()),
            "." => {}
            part => parts.push(part),
        }
    }
    parts.join("/")
}

fn path(slug: &str) -> String {
    format!("{}/{slug}", super::PATH)
}

fn render(source: &Source, origin: &str, packages: &ClientPackages, hides_self_hosting: bool) -> DocPage {
    let markdown = match source.file.ends_with(".toml") {
        true => settings::markdown(source.text),
        false => {
            let text = source.text.replace(EXAMPLE_ORIGIN, origin);
            text.replace(client_packages::PLACEHOLDER, packages.markdown(origin).trim_end())
        }
    };
    let rendered = markdown::render(&markdown, |link| resolve(source, link, hides_self_hosting));
    DocPage {
        slug: source.slug.to_owned(),
        path: path(source.slug),
        section: source.section,
        audience: source.audience,
        title: markdown::title(&markdown),
        summary: source.summary.to_owned(),
        markdown: Some(markdown),
        html: rendered.html,
        examples: rendered.examples,
        outline: rendered.outline,
        passages: rendered.passages,
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn library() -> Library {
        let package = ("grabd-0.2.0.tgz".to_owned(), Vec::new());
        Library::render("https://grabs.example.com", &ClientPackages::new(vec![package]), Vec::new(), false)
    }

    /// The paths of what customers find, in their order.
    fn search(library: &Library, query: &str) -> Vec<String> {
        let results = library.search(query, Reader::Customer);
        results.iter().flat_map(|results| &results.matches).map(|found| found.path.clone()).collect()
    }

    #[test]
    fn links_between_pages_lead_to_existing_pages_and_headings() {
        let library = library();
        let anchors: HashSet<String> = library
            .pages
            .iter()
            .flat_map(|page| {
                let anchors = page.passages.iter().map(|passage| match passage.anchor.as_str() {
                    "" => page.path.clone(),
                    anchor => format!("{}#{anchor}", page.path),
                });
                anchors.chain([page.path.clone()]).collect::<Vec<_>>()
            })
            .collect();
        let mut count = 0;
        for page in &library.pages {
            for link in page.html.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next()) {
                let target = if link.starts_with('#') { format!("{}{link}", page.path) } else { link.to_owned() };
                if target.starts_with("/docs/") && !target.starts_with("/docs/api") {
                    assert!(anchors.contains(&target), "{}: {link}", page.path);
                    count += 1;
                }
            }
        }
        assert!(count > 30, "{count}");
    }

    #[test]
    fn anchors_of_a_page_are_unique() {
        for page in library().pages {
            let ids: Vec<&str> = page.html.split(" id=\"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
            let unique: HashSet<&&str> = ids.iter().collect();
            assert_eq!(unique.len(), ids.len(), "{}: {ids:?}", page.path);
        }
    }

    #[test]
    fn tables_have_headers() {
        for page in library().pages {
            assert!(!page.html.contains("<th></th>"), "{}: a table has a column without a header", page.path);
        }
    }

    #[test]
    fn slugs_are_unique_and_examples_have_the_origin_of_the_service() {
        let library = library();
        let slugs: HashSet<_> = library.pages.iter().map(|page| page.slug.as_str()).collect();
        assert_eq!(slugs.len(), library.pages.len());
        let quickstart = library.find("quickstart", Reader::Customer).unwrap();
        assert!(quickstart.html.contains("https://grabs.example.com/v1/grabs"));
        assert!(!quickstart.markdown.as_ref().unwrap().contains("127.0.0.1"));
    }

    #[test]
    fn former_chapters_for_operators_lead_to_their_headings() {
        let library = library();
        for (slug, path) in [
            ("installing", "/docs/install"),
            ("the-network-jail", "/docs/browser#the-network-jail"),
            ("admission-of-captures", "/docs/limits#admission-of-captures"),
            ("backups", "/docs/backup"),
            ("replacing-the-key-of-stored-secrets", "/docs/backup#replacing-the-key-of-stored-secrets"),
        ] {
            assert_eq!(library.moved(slug, Reader::Customer).as_deref(), Some(path), "{slug}");
        }
        assert_eq!(library.moved("nothing", Reader::Customer), None);
    }

    #[test]
    fn search_finds_all_words_and_ranks_titles_and_headings_first() {
        let library = library();
        let search = |query: &str| search(&library, query);
        let found = search("Idempotency-Key retry");
        assert!(found.iter().any(|path| path.starts_with("/docs/retries")), "{found:?}");
        for (query, path) in [
            ("full page", "/docs/options#full_page"),
            ("full_page", "/docs/options#full_page"),
            ("render_blocked", "/docs/errors#render_blocked"),
            ("pagination", "/docs/captures#lists-and-pagination"),
            ("grpc", "/docs/grpc"),
            ("what is counted", "/docs/rates"),
            ("python", "/docs/python"),
            ("network jail", "/docs/browser#the-network-jail"),
        ] {
            let found = search(query);
            assert!(found.first().is_some_and(|first| first.starts_with(path)), "{query}: {found:?}");
        }
        assert!(search("xylophone").is_empty() && search("  ").is_empty());
    }

    #[test]
    fn results_for_customers_are_apart_from_those_for_operators() {
        let library = library();
        let found = library.search("full page", Reader::Customer);
        let audiences: Vec<Audience> = found.iter().map(|results| results.audience).collect();
        assert_eq!(audiences, [Audience::Customers, Audience::Operators]);
        for results in &found {
            for found in &results.matches {
                let page = library.pages.iter().find(|page| Some(page.path.as_str()) == found.path.split('#').next());
                assert_eq!(page.map(|page| page.audience), Some(results.audience), "{}", found.path);
            }
        }
    }

    #[test]
    fn pages_of_the_reference_are_found_and_between_the_others() {
        let page = |slug: &str, anchor: &str, heading: &str, text: &str| ReferencePage {
            slug: slug.to_owned(),
            title: format!("Title of {slug}"),
            summary: "Summary.".to_owned(),
            passages: vec![(anchor.to_owned(), heading.to_owned(), text.to_owned())],
            ..ReferencePage::default()
        };
        let reference =
            vec![page("", "", "API reference", "REST"), page("grabs", "listGrabs", "List grabs", "GET ending_before")];
        let library = Library::render("https://grabs.example.com", &ClientPackages::default(), reference, true);
        assert_eq!(search(&library, "list grabs get")[0], "/docs/api/grabs#listGrabs");
        let first = library.find("api", Reader::Customer).unwrap();
        let (before, after) = library.neighbours(first, Reader::Customer);
        assert_eq!((before.unwrap().slug.as_str(), after.unwrap().slug.as_str()), ("cli", "api/grabs"));
        assert!(
            library
                .llms_txt("https://a.example")
                .contains("- [Title of grabs](https://a.example/docs/api/grabs): Summary.")
        );
    }

    #[test]
    fn hidden_pages_for_operators_are_seen_by_operators_alone() {
        let library = Library::render("https://grabs.example.com", &ClientPackages::default(), Vec::new(), true);
        assert!(library.find("install", Reader::Customer).is_none());
        assert!(library.find("install", Reader::Operator).is_some());
        assert_eq!(library.moved("the-network-jail", Reader::Customer), None);
        let finds_settings = |reader| {
            let results = library.search("image_max_megabytes", reader);
            results.iter().flat_map(|results| &results.matches).any(|found| found.path.starts_with("/docs/settings"))
        };
        assert!(!finds_settings(Reader::Customer) && finds_settings(Reader::Operator));
        let hidden: Vec<&DocPage> = library.pages.iter().filter(|page| page.audience == Audience::Operators).collect();
        let list = library.llms_txt("https://grabs.example.com");
        for page in library.pages(Reader::Customer) {
            assert!(
                !hidden.iter().any(|hidden| page.html.contains(&format!("href=\"{}\"", hidden.path))),
                "{}",
                page.path
            );
        }
        assert!(hidden.iter().all(|hidden| !list.contains(&format!("{}.md", hidden.path))), "{list}");
        let last = library.pages(Reader::Customer).last().unwrap();
        assert!(library.neighbours(last, Reader::Customer).1.is_none());
        // Those for operators keep the links between each other.
        let operating = library.find("operating", Reader::Operator).unwrap();
        assert!(operating.html.contains("href=\"/docs/install\""), "{}", operating.html);
    }
}
