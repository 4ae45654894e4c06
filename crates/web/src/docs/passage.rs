//! A passage of the documentation, as the search finds it.

/// The text below one heading.
#[derive(Debug)]
pub(super) struct Passage {
    /// The heading's anchor. Empty for the text before the first heading.
    pub(super) anchor: String,
    pub(super) heading: String,
    pub(super) text: String,
    /// Heading and text in lower case.
    words: (String, String),
}

impl Passage {
    pub(super) fn new(anchor: String, heading: String, text: String) -> Self {
        let words = (heading.to_lowercase(), text.to_lowercase());
        Self { anchor, heading, text, words }
    }

    /// Higher is better. None if a word is missing.
    pub(super) fn score(&self, title: &str, words: &[String]) -> Option<usize> {
        let (heading, text) = &self.words;
        words.iter().try_fold(0, |sum, word| {
            let in_title = if title.contains(word.as_str()) { 5 } else { 0 };
            let in_heading = if heading.contains(word.as_str()) { 10 } else { 0 };
            let in_text = text.matches(word.as_str()).take(5).count();
            (in_heading + in_text > 0).then_some(sum + in_title + in_heading + in_text)
        })
    }
}
