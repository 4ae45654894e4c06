//! Search in the documentation: passages that contain all words of a query, best first.

use super::library::Library;
use super::passage::Passage;

/// The maximum length of a query in characters.
pub(super) const MAX_QUERY: usize = 100;
/// The maximum number of results.
const MAX_RESULTS: usize = 20;
/// The length of an excerpt in characters.
const EXCERPT: usize = 180;

/// A found passage.
pub(super) struct Match<'a> {
    pub(super) path: String,
    pub(super) title: &'a str,
    pub(super) heading: &'a str,
    pub(super) excerpt: String,
}

impl Library {
    /// The best passages for a query. None for a query without words.
    pub(super) fn search(&self, query: &str) -> Vec<Match<'_>> {
        let words: Vec<String> = query.split_whitespace().map(str::to_lowercase).collect();
        if words.is_empty() {
            return Vec::new();
        }
        let mut found: Vec<(usize, (&str, &str), &Passage)> = Vec::new();
        for (path, title, passages) in self.searched() {
            let lower = title.to_lowercase();
            let scored =
                passages.iter().filter_map(|passage| Some((passage.score(&lower, &words)?, (path, title), passage)));
            found.extend(scored);
        }
        // Stable, so that equally good passages keep the order of the navigation.
        found.sort_by_key(|(score, ..)| std::cmp::Reverse(*score));
        found.truncate(MAX_RESULTS);
        found.into_iter().map(|(_, (path, title), passage)| Match::new(path, title, passage, &words)).collect()
    }
}

impl<'a> Match<'a> {
    fn new(path: &str, title: &'a str, passage: &'a Passage, words: &[String]) -> Self {
        let path = match passage.anchor.as_str() {
            "" => path.to_owned(),
            anchor => format!("{path}#{anchor}"),
        };
        Self { path, title, heading: &passage.heading, excerpt: excerpt(&passage.text, words) }
    }
}

/// The part of a text around the first word that it contains.
fn excerpt(text: &str, words: &[String]) -> String {
    let lower = text.to_lowercase();
    let at = words.iter().filter_map(|word| lower.find(word.as_str())).min().unwrap_or(0);
    // Lower-casing may change the length of a text, so the position is counted in characters.
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
