//! How many tokens a text takes in a language model: an estimate that needs no model.
//!
//! Four ASCII characters count as one token, two of the other characters up to U+2E7F, and one from there on, such as a Chinese
//! one. Models differ by about a third in either direction.

/// What a character counts, in quarters of a token.
const fn quarters(character: char) -> u64 {
    match character {
        '\0'..='\u{7f}' => 1,
        '\u{80}'..='\u{2e7f}' => 2,
        _ => 4,
    }
}

/// The estimated number of tokens of a text.
pub(crate) fn tokens_estimate(text: &str) -> u32 {
    let quarters: u64 = text.chars().map(quarters).sum();
    u32::try_from(quarters.div_ceil(4)).unwrap_or(u32::MAX)
}

/// Where the longest start of a text ends that has at most this many tokens.
pub(super) fn fitting(text: &str, tokens: u32) -> usize {
    let mut left = u64::from(tokens) * 4;
    for (at, character) in text.char_indices() {
        match left.checked_sub(quarters(character)) {
            Some(rest) => left = rest,
            None => return at,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_count_by_their_script() {
        for (text, tokens) in [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("éé", 1), ("ééé", 2), ("日本", 2)]
        {
            assert_eq!(tokens_estimate(text), tokens, "{text}");
        }
    }

    #[test]
    fn fitting_ends_at_a_character() {
        assert_eq!(fitting("abcdefgh", 1), 4);
        assert_eq!(fitting("abc", 1), 3);
        assert_eq!(fitting("ééé", 1), 4);
        assert_eq!(fitting("日本", 1), 3);
        assert_eq!(fitting("abc日", 1), 3);
        for text in ["Grün und 日本", "plain"] {
            for tokens in 0..6 {
                let end = fitting(text, tokens);
                assert!(tokens_estimate(&text[..end]) <= tokens, "{text} {tokens}");
            }
        }
    }
}
