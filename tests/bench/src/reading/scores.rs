//! The scores of the sets, as their own programs compute them.

use std::collections::HashMap;

use super::sets::Expected;

/// The number of words in a sequence that is compared.
const SEQUENCE_WORDS: usize = 4;

/// What the pages of a set, or of a part of it, scored.
#[derive(Default)]
pub(super) struct Scores {
    pub(super) pages: usize,
    /// Pages whose capture failed.
    pub(super) failed: usize,
    precisions: Vec<f64>,
    recalls: Vec<f64>,
    /// Pieces of all pages.
    pieces: Counts,
}

/// What was found rightly, found wrongly, and not found.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Counts {
    right: u32,
    wrong: u32,
    missing: u32,
}

impl Counts {
    fn precision(self) -> Option<f64> {
        ratio(self.right, self.right + self.wrong)
    }

    fn recall(self) -> Option<f64> {
        ratio(self.right, self.right + self.missing)
    }
}

impl Scores {
    /// Counts a page. A failed one has read nothing.
    pub(super) fn add(&mut self, expected: &Expected, read: Option<&str>) {
        self.pages += 1;
        self.failed += usize::from(read.is_none());
        let read = read.unwrap_or_default();
        match expected {
            Expected::Text(text) | Expected::Markdown(text) => {
                let counts = compare(text, read);
                self.precisions.extend(counts.precision());
                self.recalls.extend(counts.recall());
            }
            Expected::Pieces { with, without } => {
                let read = single_spaced(read);
                let found =
                    |pieces: &[String]| pieces.iter().filter(|piece| read.contains(&single_spaced(piece))).count();
                let (right, wrong) = (found(with), found(without));
                self.pieces.right += count(right);
                self.pieces.wrong += count(wrong);
                self.pieces.missing += count(with.len() - right);
            }
        }
    }

    /// Precision, recall and F1. They are means over pages, or those of all pieces.
    pub(super) fn figures(&self) -> (f64, f64, f64) {
        let of_pieces = (self.pieces.precision(), self.pieces.recall());
        let (precision, recall) = match of_pieces {
            (None, None) => (mean(&self.precisions), mean(&self.recalls)),
            (precision, recall) => (precision.unwrap_or_default(), recall.unwrap_or_default()),
        };
        let sum = precision + recall;
        (precision, recall, if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 })
    }
}

/// Compares the sequences of four words of both texts.
fn compare(expected: &str, read: &str) -> Counts {
    let (expected, read) = (sequences(expected), sequences(read));
    let mut counts = Counts::default();
    for (sequence, wanted) in &expected {
        let seen = read.get(sequence).copied().unwrap_or_default();
        counts.right += seen.min(*wanted);
        counts.missing += wanted.saturating_sub(seen);
    }
    for (sequence, seen) in &read {
        counts.wrong += seen.saturating_sub(expected.get(sequence).copied().unwrap_or_default());
    }
    counts
}

fn sequences(text: &str) -> HashMap<Vec<&str>, u32> {
    let words: Vec<&str> =
        text.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty()).collect();
    let mut sequences = HashMap::new();
    if words.len() < SEQUENCE_WORDS && !words.is_empty() {
        sequences.insert(words, 1);
        return sequences;
    }
    for sequence in words.windows(SEQUENCE_WORDS) {
        *sequences.entry(sequence.to_vec()).or_default() += 1;
    }
    sequences
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn count(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}

fn ratio(part: u32, all: u32) -> Option<f64> {
    (all > 0).then(|| f64::from(part) / f64::from(all))
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / f64::from(count(values.len().max(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_compared_by_sequences_of_four_words() {
        assert_eq!(compare("a b c d e", "a, b - c d e!"), Counts { right: 2, wrong: 0, missing: 0 });
        assert_eq!(compare("a b c d e", "x a b c d"), Counts { right: 1, wrong: 1, missing: 1 });
        assert_eq!(compare("a b", "a b"), Counts { right: 1, wrong: 0, missing: 0 });
        assert_eq!(compare("a b c d", ""), Counts { right: 0, wrong: 0, missing: 1 });
    }

    #[test]
    fn pieces_are_found_with_any_spaces() {
        let mut scores = Scores::default();
        let pieces = |with: &[&str], without: &[&str]| Expected::Pieces {
            with: with.iter().map(|piece| (*piece).to_owned()).collect(),
            without: without.iter().map(|piece| (*piece).to_owned()).collect(),
        };
        scores.add(&pieces(&["a  b", "c"], &["menu"]), Some("a\nb menu"));
        scores.add(&pieces(&["d"], &["menu"]), None);
        assert_eq!((scores.pages, scores.failed), (2, 1));
        assert_eq!(scores.pieces, Counts { right: 1, wrong: 1, missing: 2 });
    }
}
