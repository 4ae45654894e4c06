//! Where a text is cut: between paragraphs, else between lines, else after a sentence or a word. Never inside a character, and
//! never inside a row of a table. All pieces together are the text.

use super::tokens::fitting;

/// The longest row of a table that is not cut, in bytes.
const MAX_ROW_BYTES: usize = 16 << 10;
/// Ends of sentences, with what separates them from the next one.
const SENTENCE_ENDS: [&str; 4] = [". ", "! ", "? ", "。"];

/// A part of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    /// The part.
    pub(crate) text: &'a str,
    /// The byte at which the next part begins. None if this is the last one.
    pub(crate) next: Option<usize>,
}

/// The part of a text from this byte on that has at most this many tokens. A row of a table may make it longer. None if no part can
/// begin there: beyond the end, or inside a character.
pub(crate) fn cut(text: &str, from: usize, max_tokens: u32) -> Option<Piece<'_>> {
    let rest = text.get(from..)?;
    let end = end_of_piece(rest, fitting(rest, max_tokens));
    let (piece, following) = rest.split_at(end);
    Some(Piece { text: piece, next: (!following.is_empty()).then_some(from + end) })
}

/// Where to cut a text of which this many bytes are allowed. Greater than zero unless the text is empty.
fn end_of_piece(rest: &str, allowed: usize) -> usize {
    let (window, following) = rest.split_at(allowed);
    if following.is_empty() {
        return rest.len();
    }
    let half = allowed / 2;
    if let Some(end) = window.rfind("\n\n").map(|at| at + 2).filter(|end| *end > half) {
        return end;
    }
    if let Some(at) = window.rfind('\n') {
        return at + 1;
    }
    let line = rest.find('\n').map_or(rest.len(), |at| at + 1);
    if is_row(rest) && line <= MAX_ROW_BYTES {
        return line;
    }
    let sentences = SENTENCE_ENDS.iter().filter_map(|end| window.rfind(*end).map(|at| at + end.len()));
    if let Some(end) = sentences.max().filter(|end| *end > half) {
        return end;
    }
    match window.rfind(' ') {
        Some(at) => at + 1,
        None if allowed > 0 => allowed,
        None => rest.chars().next().map_or(0, char::len_utf8),
    }
}

/// Whether a line is a row of a table, in Markdown or in HTML.
fn is_row(line: &str) -> bool {
    let line = line.trim_start_matches([' ', '>']);
    line.starts_with('|') || line.starts_with("<t")
}

#[cfg(test)]
mod tests {
    use super::super::tokens::tokens_estimate;
    use super::*;

    fn pieces(text: &str, max_tokens: u32) -> Vec<&str> {
        let (mut pieces, mut from) = (Vec::new(), 0);
        loop {
            let piece = cut(text, from, max_tokens).unwrap();
            pieces.push(piece.text);
            match piece.next {
                Some(next) => {
                    assert!(next > from, "{next}");
                    from = next;
                }
                None => return pieces,
            }
        }
    }

    #[test]
    fn texts_are_cut_between_paragraphs_then_lines_then_sentences_then_words() {
        for (text, tokens, expected) in [
            ("# A\n\nBee bee.\n\nSee see.\n", 4, vec!["# A\n\nBee bee.\n\n", "See see.\n"]),
            ("- one one\n- two two\n- six six\n", 5, vec!["- one one\n- two two\n", "- six six\n"]),
            ("It is long. It goes on and on", 4, vec!["It is long. ", "It goes on and ", "on"]),
            ("word another wordier", 4, vec!["word another ", "wordier"]),
            ("abcdefghij", 1, vec!["abcd", "efgh", "ij"]),
            ("日本語の文章。次の文章です。", 8, vec!["日本語の文章。", "次の文章です。"]),
            ("", 4, vec![""]),
        ] {
            assert_eq!(pieces(text, tokens), expected, "{text}");
        }
    }

    #[test]
    fn rows_of_tables_are_whole() {
        let text = "Before.\n\n| a | b |\n| - | - |\n| a long cell, longer than allowed | b |\n| c | d |\n";
        for piece in pieces(text, 5).iter().filter(|piece| piece.starts_with('|')) {
            assert!(piece.ends_with("|\n"), "{piece}");
        }
        let huge = format!("| {} |\n", "cell ".repeat(MAX_ROW_BYTES));
        assert!(pieces(&huge, 1000).len() > 10, "a row without end is cut");
    }

    #[test]
    fn no_byte_is_lost_or_doubled() {
        let paragraph = "Größe: ein Satz. Noch einer! 日本語。\n- item\n\n| a | b |\n\n```\nlet a = 1;\n```\n\n";
        let text = paragraph.repeat(50) + "end without a line end";
        for tokens in [1, 2, 3, 7, 25, 100, 1000, 50_000] {
            let pieces = pieces(&text, tokens);
            assert_eq!(pieces.concat(), text, "{tokens}");
            if tokens >= 10 {
                assert!(pieces.iter().all(|piece| tokens_estimate(piece) <= tokens), "{tokens}");
            }
        }
    }

    #[test]
    fn pieces_begin_only_at_characters_of_the_text() {
        assert_eq!(cut("é", 1, 100), None);
        assert_eq!(cut("abc", 4, 100), None);
        assert_eq!(cut("abc", 3, 100), Some(Piece { text: "", next: None }));
        assert_eq!(cut("abc", 1, 100), Some(Piece { text: "bc", next: None }));
    }
}
