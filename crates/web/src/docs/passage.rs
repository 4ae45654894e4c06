//! A passage of the documentation, as the search finds it.

/// The text below one heading.
#[derive(Debug)]
pub(super) struct Passage {
    /// The heading's anchor. Empty for the text before the first heading.
    pub(super) anchor: String,
    pub(super) heading: String,
    pub(super) text: String,
    /// Heading and text as they are compared.
    compared: (String, String),
}

/// What is searched for.
pub(super) struct Query {
    /// All words, in their order.
    phrase: String,
    words: Vec<String>,
}

/// A text as it is compared: in lower case, with spaces instead of the hyphens and underscores of names. So `full page`
/// finds `full_page`. Each byte of the lower case keeps its position.
fn compared(text: &str) -> String {
    text.to_lowercase().replace(['_', '-'], " ")
}

impl Query {
    /// `None` if there are no words.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<String> = compared(text).split_whitespace().map(str::to_owned).collect();
        (!words.is_empty()).then(|| Self { phrase: words.join(" "), words })
    }

    /// Where a text first has the phrase, or else the first of the words: a byte position in the lower case of the text.
    pub(super) fn find_in(&self, text: &str) -> Option<usize> {
        let text = compared(text);
        let first_word = || self.words.iter().filter_map(|word| text.find(word.as_str())).min();
        text.find(self.phrase.as_str()).or_else(first_word)
    }
}

impl Passage {
    pub(super) fn new(anchor: String, heading: String, text: String) -> Self {
        let compared = (compared(&heading), compared(&text));
        Self { anchor, heading, text, compared }
    }

    /// Higher is better. `None` if a word is missing. `title` is that of the page.
    pub(super) fn score(&self, title: &str, query: &Query) -> Option<usize> {
        let ((heading, text), title) = (&self.compared, compared(title));
        let of_words = query.words.iter().try_fold(0, |sum, word| {
            let in_title = if title.contains(word.as_str()) { 5 } else { 0 };
            let in_heading = if heading.contains(word.as_str()) { 10 } else { 0 };
            let in_text = text.matches(word.as_str()).take(5).count();
            (in_heading + in_text > 0).then_some(sum + in_title + in_heading + in_text)
        })?;
        // A page or a section about all of it is better than one that has its words.
        let of_phrase = |text: &str, whole: usize, part: usize| match text {
            text if text == query.phrase => whole,
            text if text.contains(&query.phrase) => part,
            _ => 0,
        };
        // The passage with the heading of the page stands for the page.
        let of_title = if self.anchor.is_empty() { of_phrase(&title, 100, 60) } else { 0 };
        Some(of_words + of_title + of_phrase(heading, 80, 30) + of_phrase(text, 10, 10))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passage(anchor: &str, heading: &str, text: &str) -> Passage {
        Passage::new(anchor.to_owned(), heading.to_owned(), text.to_owned())
    }

    #[test]
    fn headings_with_the_whole_query_are_the_best() {
        let query = Query::parse("full page").unwrap();
        let score = |passage: &Passage| passage.score("Capture options", &query);
        let exact = score(&passage("full_page", "full_page", "Captures all of it.")).unwrap();
        let part = score(&passage("a", "A full page of text", "")).unwrap();
        let often = score(&passage("b", "Samples", &"full page ".repeat(50))).unwrap();
        let apart = score(&passage("c", "Samples", "a page that is full, and another full page-load")).unwrap();
        assert!(exact > part && part > often && often >= apart, "{exact} {part} {often} {apart}");
        assert_eq!(score(&passage("d", "Samples", "a page")), None);
    }

    #[test]
    fn excerpt_begins_at_the_phrase_or_else_at_the_first_word() {
        let query = Query::parse("Full-page").unwrap();
        assert_eq!(query.find_in("a page, then a full_page"), Some(15));
        assert_eq!(query.find_in("a page"), Some(2));
        assert_eq!(query.find_in("none"), None);
        assert!(Query::parse(" - _ ").is_none());
    }
}
