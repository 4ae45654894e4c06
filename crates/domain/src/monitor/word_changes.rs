//! Marks the words in which two lines differ.

use super::align::align;

/// A part of a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPiece {
    /// The text.
    pub text: String,
    /// Whether the other line does not have it.
    pub is_changed: bool,
}

impl TextPiece {
    /// A whole line.
    pub(super) fn line(text: &str, is_changed: bool) -> Vec<Self> {
        vec![Self { text: text.to_owned(), is_changed }]
    }
}

/// Both lines in pieces, of which those are marked that the other line does not have. If less than a third of the longer line is
/// in both, all of both is marked: single words that lines have by chance in common make the change harder to read.
pub fn changed_words(before: &str, after: &str) -> [Vec<TextPiece>; 2] {
    let (old, new) = (tokens(before), tokens(after));
    let pairs = align(&old, &new, &|| false).unwrap_or_default();
    let visible = |tokens: &[&str]| tokens.iter().map(|token| letters(token)).sum::<usize>();
    let common: usize = pairs.iter().filter_map(|(at, _)| old.get(*at)).map(|token| letters(token)).sum();
    if common.saturating_mul(3) < visible(&old).max(visible(&new)) {
        return [TextPiece::line(before, true), TextPiece::line(after, true)];
    }
    [pieces(&old, pairs.iter().map(|pair| pair.0)), pieces(&new, pairs.iter().map(|pair| pair.1))]
}

/// The characters that are no white space.
fn letters(token: &str) -> usize {
    token.chars().filter(|letter| !letter.is_whitespace()).count()
}

/// The words of a line, and each other character.
fn tokens(line: &str) -> Vec<&str> {
    let mut tokens = Vec::new();
    let mut left = line;
    while let Some(first) = left.chars().next() {
        let end = match first.is_alphanumeric() {
            true => left.find(|letter: char| !letter.is_alphanumeric()).unwrap_or(left.len()),
            false => first.len_utf8(),
        };
        let (token, rest) = left.split_at(end);
        tokens.push(token);
        left = rest;
    }
    tokens
}

/// Joins the tokens that are in both lines, and those that are not. A space between two changed words belongs to the change.
fn pieces(tokens: &[&str], common: impl Iterator<Item = usize>) -> Vec<TextPiece> {
    let mut is_changed = vec![true; tokens.len()];
    for at in common {
        if let Some(flag) = is_changed.get_mut(at) {
            *flag = false;
        }
    }
    for at in 1..tokens.len().saturating_sub(1) {
        if letters(tokens[at]) == 0 && is_changed[at - 1] && is_changed[at + 1] {
            is_changed[at] = true;
        }
    }
    let mut pieces: Vec<TextPiece> = Vec::new();
    for (token, is_changed) in tokens.iter().zip(is_changed) {
        match pieces.last_mut() {
            Some(last) if last.is_changed == is_changed => last.text.push_str(token),
            Some(_) | None => pieces.push(TextPiece { text: (*token).to_owned(), is_changed }),
        }
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The pieces of a line, with brackets around those that are marked.
    fn marked(pieces: &[TextPiece]) -> String {
        let mark = |piece: &TextPiece| match piece.is_changed {
            true => format!("[{}]", piece.text),
            false => piece.text.clone(),
        };
        pieces.iter().map(mark).collect()
    }

    #[test]
    fn words_that_differ_are_marked_in_both_lines() {
        for (before, after, old, new) in [
            ("5 €", "6 €", "[5] €", "[6] €"),
            ("Price: 5.00 € a month", "Price: 5.50 € a month", "Price: 5.[00] € a month", "Price: 5.[50] € a month"),
            (
                "Open from nine to five",
                "Open from ten until five",
                "Open from [nine to] five",
                "Open from [ten until] five",
            ),
            ("In stock", "In stock again", "In stock", "In stock[ again]"),
            ("grün", "grüne", "[grün]", "[grüne]"),
            ("<b>old</b>", "<b>new</b>", "<b>[old]</b>", "<b>[new]</b>"),
            ("same", "same", "same", "same"),
        ] {
            let [older, newer] = changed_words(before, after);
            assert_eq!((marked(&older), marked(&newer)), (old.to_owned(), new.to_owned()));
        }
    }

    #[test]
    fn lines_with_little_in_common_are_marked_as_a_whole() {
        let [older, newer] = changed_words("Our shop is open today", "We have closed, and is it a pity");
        assert_eq!((older.len(), newer.len()), (1, 1));
        assert!(older[0].is_changed && newer[0].is_changed);
        assert!(changed_words("", "").concat().is_empty());
    }
}
