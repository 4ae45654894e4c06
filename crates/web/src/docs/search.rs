//! Search in the documentation: passages that contain all words of a query, best first, those for customers before those
//! for operators.

use super::library::{Library, Reader};
use super::pages::Audience;
use super::passage::{Passage, Query};

/// The maximum length of a query in characters.
pub(super) const MAX_QUERY: usize = 100;
/// The maximum number of results for one audience.
pub(super) const MAX_RESULTS: usize = 20;
/// The length of an excerpt in characters.
const EXCERPT: usize = 180;

/// The results for one audience.
pub(super) struct Results<'a> {
    pub(super) audience: Audience,
    pub(super) matches: Vec<Match<'a>>,
}

/// A found passage.
pub(super) struct Match<'a> {
    pub(super) path: String,
    pub(super) title: &'a str,
    pub(super) heading: &'a str,
    pub(super) excerpt: String,
}

impl Results<'_> {
    /// The heading of these results.
    pub(super) const fn title(&self) -> &'static str {
        self.audience.title()
    }
}

impl Library {
    /// The best passages for a query, by audience. Nothing for a query without words.
    pub(super) fn search(&self, query: &str, reader: Reader) -> Vec<Results<'_>> {
        let Some(query) = Query::parse(query) else { return Vec::new() };
        let results = [Audience::Customers, Audience::Operators].map(|audience| {
            let mut found: Vec<(usize, (&str, &str), &Passage)> = Vec::new();
            for page in self.pages(reader).filter(|page| page.audience == audience) {
                let place = (page.path.as_str(), page.title.as_str());
                let scored = page.passages.iter();
                found.extend(scored.filter_map(|passage| Some((passage.score(&page.title, &query)?, place, passage))));
            }
            // Stable, so that equally good passages keep the order of the navigation.
            found.sort_by_key(|(score, ..)| std::cmp::Reverse(*score));
            found.truncate(MAX_RESULTS);
            let matches = found.into_iter().map(|(_, (path, title), passage)| Match::new(path, title, passage, &query));
            Results { audience, matches: matches.collect() }
        });
        results.into_iter().filter(|results| !results.matches.is_empty()).collect()
    }
}

impl<'a> Match<'a> {
    fn new(path: &str, title: &'a str, passage: &'a Passage, query: &Query) -> Self {
        let path = match passage.anchor.as_str() {
            "" => path.to_owned(),
            anchor => format!("{path}#{anchor}"),
        };
        Self { path, title, heading: &passage.heading, excerpt: excerpt(&passage.text, query) }
    }
}

/// The part of a text around what was searched for.
fn excerpt(text: &str, query: &Query) -> String {
    let at = query.find_in(text).unwrap_or(0);
    // Lower-casing may change the length of a text, so the position is counted in characters.
    let lower = text.to_lowercase();
    let before = lower.get(..at).map_or(0, |start| start.chars().count()).saturating_sub(EXCERPT / 3);
    let is_whole = text.chars().count() <= before + EXCERPT;
    let shown: String = text.chars().skip(before).take(EXCERPT).collect();
    // Parts of words at both ends are left out.
    let shown = if before > 0 { shown.split_once(' ').map_or("", |(_, rest)| rest) } else { &shown };
    let shown = if is_whole { shown } else { shown.rsplit_once(' ').map_or(shown, |(rest, _)| rest) };
    let start = if before > 0 { "… " } else { "" };
    let end = if is_whole { "" } else { " …" };
    format!("{start}{}{end}", shown.trim())
}
