//! All pages of the documentation, rendered.

use super::client_packages::{self, ClientPackages};
use super::markdown::{self, Heading};
use super::pages::{HOSTING, SOURCES, Source};
use super::passage::Passage;
use super::settings;

/// The address in the Markdown files that stands for the service's own.
const EXAMPLE_ORIGIN: &str = "http://127.0.0.1:8080";

/// A page of the documentation.
#[derive(Debug)]
pub(crate) struct DocPage {
    /// The last part of the URL.
    pub(super) slug: &'static str,
    pub(super) path: String,
    pub(super) section: &'static str,
    pub(super) title: String,
    pub(super) summary: &'static str,
    pub(super) markdown: String,
    pub(super) html: String,
    /// The headings of the second level.
    pub(super) outline: Vec<Heading>,
    pub(super) passages: Vec<Passage>,
}

/// All pages, in the order of the navigation.
#[derive(Debug)]
pub(crate) struct Library {
    pages: Vec<DocPage>,
    /// Of the API reference, which is another service's page.
    reference: Vec<Passage>,
}

/// A part of the API reference, for the search: its anchor, its heading and its text.
pub type ReferencePassage = (String, String, String);

impl Library {
    /// Renders all pages, for the service at `origin` that offers these packages. The search also finds the passages of the API
    /// reference.
    pub(crate) fn render(origin: &str, packages: &ClientPackages, reference: Vec<ReferencePassage>) -> Self {
        let pages = SOURCES.iter().map(|source| render(source, origin, packages)).collect();
        let reference = reference.into_iter().map(|(anchor, heading, text)| Passage::new(anchor, heading, text));
        Self { pages, reference: reference.collect() }
    }

    /// What is searched: path, title and passages of each page.
    pub(super) fn searched(&self) -> impl Iterator<Item = (&str, &str, &[Passage])> {
        let pages = self.pages.iter().map(|page| (page.path.as_str(), page.title.as_str(), page.passages.as_slice()));
        pages.chain([(super::API_REFERENCE, "API reference", self.reference.as_slice())])
    }

    pub(super) fn pages(&self) -> &[DocPage] {
        &self.pages
    }

    /// The first page.
    #[expect(clippy::indexing_slicing, reason = "the list of sources is a constant that is not empty")]
    pub(super) fn first(&self) -> &DocPage {
        &self.pages[0]
    }

    pub(super) fn find(&self, slug: &str) -> Option<&DocPage> {
        self.pages.iter().find(|page| page.slug == slug)
    }

    /// Where a page is that was a chapter of the manual for operators up to version 0.2.0: its address was its heading.
    pub(super) fn moved(&self, slug: &str) -> Option<String> {
        let pages = || self.pages.iter().filter(|page| page.section == HOSTING);
        if let Some(page) = pages().find(|page| markdown::anchor(&page.title) == slug) {
            return Some(page.path.clone());
        }
        let page = pages().find(|page| page.outline.iter().any(|heading| heading.anchor == slug))?;
        Some(format!("{}#{slug}", page.path))
    }

    /// The pages before and after a page.
    pub(super) fn neighbours(&self, page: &DocPage) -> (Option<&DocPage>, Option<&DocPage>) {
        let at = self.pages.iter().position(|other| other.slug == page.slug);
        let before = at.and_then(|at| at.checked_sub(1));
        let after = at.and_then(|at| at.checked_add(1));
        (before.and_then(|at| self.pages.get(at)), after.and_then(|at| self.pages.get(at)))
    }

    /// The list of all pages in the format of `llms.txt`.
    pub(super) fn llms_txt(&self, origin: &str) -> String {
        let mut text =
            "# grabd\n\n> Captures web pages in a real browser and returns hosted images, over REST, gRPC, MCP, \
                        a command line and a web app.\n"
                .to_owned();
        let mut section = "";
        for page in &self.pages {
            if page.section != section {
                section = page.section;
                text.push_str(&format!("\n## {section}\n\n"));
            }
            text.push_str(&format!("- [{}]({origin}{}.md): {}\n", page.title, page.path, page.summary));
        }
        text.push_str(&format!("\n## API\n\n- [OpenAPI document]({origin}/v1/openapi.json): the REST API\n"));
        text
    }
}

/// The address that a link in `file` has in the documentation. None if it leads to a file that is not a page.
fn resolve(file: &str, link: &str) -> Option<String> {
    if link.starts_with("http") || link.starts_with("mailto:") || link.starts_with('/') || link.starts_with('#') {
        return Some(link.to_owned());
    }
    let (name, anchor) = link.split_once('#').unwrap_or((link, ""));
    let wanted = joined(file, name);
    let source = SOURCES.iter().find(|source| source.file == wanted)?;
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

fn render(source: &Source, origin: &str, packages: &ClientPackages) -> DocPage {
    let markdown = match source.file.ends_with(".toml") {
        true => settings::markdown(source.text),
        false => {
            let text = source.text.replace(EXAMPLE_ORIGIN, origin);
            text.replace(client_packages::PLACEHOLDER, packages.markdown(origin).trim_end())
        }
    };
    let rendered = markdown::render(&markdown, |link| resolve(source.file, link));
    DocPage {
        slug: source.slug,
        path: path(source.slug),
        section: source.section,
        title: markdown::title(&markdown),
        summary: source.summary,
        markdown,
        html: rendered.html,
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
        Library::render("https://grabs.example.com", &ClientPackages::new(vec![package]), Vec::new())
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
                if target.starts_with("/docs/") && target != "/docs/api" {
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
        let slugs: HashSet<_> = library.pages.iter().map(|page| page.slug).collect();
        assert_eq!(slugs.len(), library.pages.len());
        let quickstart = library.find("quickstart").unwrap();
        assert!(quickstart.html.contains("https://grabs.example.com/v1/grabs"));
        assert!(!quickstart.markdown.contains("127.0.0.1"));
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
            assert_eq!(library.moved(slug).as_deref(), Some(path), "{slug}");
        }
        assert_eq!(library.moved("nothing"), None);
    }

    #[test]
    fn search_finds_all_words_and_ranks_headings_first() {
        let library = library();
        let found = library.search("Idempotency-Key retry");
        assert!(found.iter().any(|found| found.path.starts_with("/docs/retries")), "{}", found.len());
        let found = library.search("render_blocked");
        assert_eq!(found.first().map(|found| found.path.as_str()), Some("/docs/errors#render_blocked"));
        for (query, path) in [
            ("pagination", "/docs/captures#lists-and-pagination"),
            ("grpc", "/docs/grpc"),
            ("what is counted", "/docs/rates"),
            ("python", "/docs/python"),
            ("image_max_megabytes", "/docs/settings#captureimage_max_megabytes"),
        ] {
            let found = library.search(query);
            let found: Vec<&str> = found.iter().map(|found| found.path.as_str()).collect();
            assert!(found.first().is_some_and(|first| first.starts_with(path)), "{query}: {found:?}");
        }
        let reference = ("listGrabs".to_owned(), "List grabs".to_owned(), "GET /v1/grabs ending_before".to_owned());
        let with_reference = Library::render("https://grabs.example.com", vec![reference]);
        let found = with_reference.search("list grabs get");
        assert!(found.iter().any(|found| found.path == "/docs/api#listGrabs" && found.title == "API reference"));
        assert!(library.search("xylophone").is_empty() && library.search("  ").is_empty());
    }
}
