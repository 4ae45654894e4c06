//! The public sets of pages, which are read from checkouts of their repositories.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::Deserialize;

/// A public set of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Set {
    /// scrapinghub/article-extraction-benchmark: news pages, and the whole text of the article of each.
    Articles,
    /// adbar/trafilatura: pages in many languages, and pieces of text that do and do not belong to the content of each.
    Pieces,
    /// kepano/defuddle: pages, and the Markdown of the content of each.
    Markdown,
}

/// A page of a set.
pub(super) struct Page {
    /// Its name in the set.
    pub(super) name: String,
    /// The file with its HTML.
    pub(super) file: PathBuf,
    /// The URL against which links are resolved, if the set compares them.
    pub(super) base: Option<String>,
    /// What should be read.
    pub(super) expected: Expected,
}

/// What should be read of a page.
pub(super) enum Expected {
    /// This text.
    Text(String),
    /// A text with some pieces, and without others.
    Pieces { with: Vec<String>, without: Vec<String> },
    /// This Markdown.
    Markdown(String),
}

#[derive(Deserialize)]
struct Article {
    #[serde(rename = "articleBody", default)]
    article_body: String,
}

#[derive(Deserialize)]
struct Annotated {
    file: String,
    with: Vec<String>,
    without: Vec<String>,
}

impl Set {
    pub(super) const ALL: [Self; 3] = [Self::Articles, Self::Pieces, Self::Markdown];

    /// Its name for options.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Articles => "articles",
            Self::Pieces => "pieces",
            Self::Markdown => "markdown",
        }
    }

    /// The name of its checkout.
    pub(super) const fn folder(self) -> &'static str {
        match self {
            Self::Articles => "article-extraction-benchmark",
            Self::Pieces => "trafilatura",
            Self::Markdown => "defuddle",
        }
    }

    /// The file of a capture that is compared.
    pub(super) const fn file_kind(self) -> &'static str {
        match self {
            Self::Articles | Self::Pieces => "text",
            Self::Markdown => "markdown",
        }
    }

    /// Its pages in the order of their names.
    pub(super) fn pages(self, folder: &Path) -> anyhow::Result<Vec<Page>> {
        let mut pages = match self {
            Self::Articles => articles(folder)?,
            Self::Pieces => pieces(folder)?,
            Self::Markdown => markdown(folder)?,
        };
        pages.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(pages)
    }
}

fn articles(folder: &Path) -> anyhow::Result<Vec<Page>> {
    let truth = fs::read(folder.join("ground-truth.json")).context("ground-truth.json")?;
    let truth: BTreeMap<String, Article> = serde_json::from_slice(&truth)?;
    let page = |(name, article): (String, Article)| Page {
        file: folder.join("html").join(format!("{name}.html.gz")),
        name,
        base: None,
        expected: Expected::Text(article.article_body),
    };
    Ok(truth.into_iter().map(page).collect())
}

fn pieces(folder: &Path) -> anyhow::Result<Vec<Page>> {
    let tests = folder.join("tests");
    let truth = fs::read(tests.join("evaldata.json")).context("evaldata.json")?;
    let truth: BTreeMap<String, Annotated> = serde_json::from_slice(&truth)?;
    let page = |Annotated { file, with, without }| {
        let path = ["cache", "eval"].map(|of| tests.join(of).join(&file)).into_iter().find(|path| path.is_file());
        Ok(Page {
            file: path.with_context(|| format!("{file} is missing"))?,
            name: file,
            base: None,
            expected: Expected::Pieces { with, without },
        })
    };
    truth.into_values().map(page).collect()
}

fn markdown(folder: &Path) -> anyhow::Result<Vec<Page>> {
    let tests = folder.join("tests");
    let mut pages = Vec::new();
    for entry in fs::read_dir(tests.join("fixtures"))? {
        let file = entry?.path();
        let Some(name) = file.file_stem().and_then(|name| name.to_str()).map(str::to_owned) else { continue };
        let Ok(expected) = fs::read_to_string(tests.join("expected").join(format!("{name}.md"))) else { continue };
        let html = String::from_utf8_lossy(&fs::read(&file)?).into_owned();
        let base = Some(url_of(&name, &html));
        let expected = Expected::Markdown(without_metadata(&expected).to_owned());
        pages.push(Page { name, file, base, expected });
    }
    Ok(pages)
}

/// The Markdown without the block of JSON before it, which is about the page.
fn without_metadata(markdown: &str) -> &str {
    match markdown.strip_prefix("```json\n").and_then(|rest| rest.split_once("\n```\n")) {
        Some((_, rest)) => rest,
        None => markdown,
    }
}

/// The URL of a page is in one of its comments, or made of its name.
fn url_of(name: &str, html: &str) -> String {
    #[derive(Deserialize)]
    struct Comment {
        url: String,
    }
    let comments = html.split("<!--").skip(1).filter_map(|rest| rest.split_once("-->"));
    let mut parsed = comments.filter_map(|(json, _)| serde_json::from_str::<Comment>(json.trim()).ok());
    match parsed.next() {
        Some(Comment { url }) => url,
        None => format!("https://{}", name.split_once("--").map_or(name, |(_, rest)| rest)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_before_the_markdown_is_left_out() {
        assert_eq!(without_metadata("```json\n{}\n```\n\n# A\n"), "\n# A\n");
        assert_eq!(without_metadata("# A\n```json\n{}\n```\n"), "# A\n```json\n{}\n```\n");
    }

    #[test]
    fn url_of_a_page_is_in_its_comment_or_its_name() {
        assert_eq!(url_of("x", "<!-- {\"url\": \"https://example.com/a\"} --><p>"), "https://example.com/a");
        assert_eq!(url_of("x", "<html><!-- b --><!--{\"url\": \"https://example.com/c\"}-->"), "https://example.com/c");
        assert_eq!(url_of("kind--example.com-a", "<p>"), "https://example.com-a");
        assert_eq!(url_of("example", "<!-- text --><p>"), "https://example");
    }
}
