//! Compares the texts of two captures.

use regex::{Regex, RegexBuilder};

use super::text_changes::{TextChange, changed_lines};
use super::text_diff::{Line, TextDiff};

/// The most patterns of a monitor.
pub const MAX_PATTERNS: usize = 20;
/// The longest pattern, in characters.
pub const PATTERN_CHARS: usize = 200;
/// The most memory that a compiled pattern, and its cache, may take.
const PATTERN_BYTES: usize = 1 << 19;
/// Longer lines are divided, so that the time for a pattern depends on the size of the text alone.
const PART_BYTES: usize = 1000;
/// What patterns must be.
pub(super) const PATTERNS: &str = "an array of at most 20 regular expressions of 1 to 200 characters, without look-around and \
                                   back-references";

/// How texts are compared.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextCompare {
    /// Regular expressions: what they match is left out of both texts.
    pub ignore_patterns: Vec<String>,
}

impl TextCompare {
    /// Checks the patterns of a request.
    ///
    /// # Errors
    /// What is wrong, as an error shows it.
    pub(super) fn parse(patterns: &[String]) -> Result<Self, String> {
        if patterns.len() > MAX_PATTERNS {
            return Err(format!("{} patterns", patterns.len()));
        }
        let is_valid = |pattern: &String| {
            let is_line = !pattern.chars().any(char::is_control);
            (1..=PATTERN_CHARS).contains(&pattern.chars().count()) && is_line && compiled(pattern).is_some()
        };
        match patterns.iter().find(|pattern| !is_valid(pattern)) {
            Some(pattern) => Err(format!("\"{pattern}\"")),
            None => Ok(Self { ignore_patterns: patterns.to_vec() }),
        }
    }

    /// What has changed between two texts. Patterns are searched in each line on its own. `None` if it was stopped.
    pub fn changes(&self, before: &str, after: &str, is_stopped: &dyn Fn() -> bool) -> Option<Vec<TextChange>> {
        let patterns = self.compiled()?;
        let lines = |text: &str| -> Option<Vec<String>> {
            let lines = compared_lines(text, &patterns, is_stopped)?;
            Some(lines.into_iter().map(|line| line.text).collect())
        };
        Some(changed_lines(&lines(before)?, &lines(after)?))
    }

    /// The lines of both texts, side by side. `None` if it was stopped.
    pub fn diff(&self, before: &str, after: &str, is_stopped: &dyn Fn() -> bool) -> Option<TextDiff> {
        let patterns = self.compiled()?;
        let before = compared_lines(before, &patterns, is_stopped)?;
        let after = compared_lines(after, &patterns, is_stopped)?;
        TextDiff::of(&before, &after, is_stopped)
    }

    fn compiled(&self) -> Option<Vec<Regex>> {
        self.ignore_patterns.iter().map(|pattern| compiled(pattern)).collect()
    }
}

fn compiled(pattern: &str) -> Option<Regex> {
    RegexBuilder::new(pattern).size_limit(PATTERN_BYTES).dfa_size_limit(PATTERN_BYTES).build().ok()
}

/// The lines that are not blank, without what the patterns match.
fn compared_lines(text: &str, patterns: &[Regex], is_stopped: &dyn Fn() -> bool) -> Option<Vec<Line>> {
    let mut lines = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = normalized(line);
        for part in parts(&line) {
            let mut left = part.to_owned();
            for pattern in patterns {
                if is_stopped() {
                    return None;
                }
                left = pattern.replace_all(&left, "").into_owned();
            }
            let text = normalized(&left);
            if !text.is_empty() {
                lines.push(Line { number, text });
            }
        }
    }
    Some(lines)
}

/// The words of a line with one space between them.
fn normalized(line: &str) -> String {
    let words = line.split(|letter: char| letter.is_whitespace() || letter.is_control());
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

fn parts(line: &str) -> Vec<&str> {
    let (mut parts, mut left) = (Vec::new(), line);
    while left.len() > PART_BYTES {
        let (part, rest) = left.split_at(left.floor_char_boundary(PART_BYTES));
        parts.push(part);
        left = rest;
    }
    parts.push(left);
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(patterns: &[&str], before: &str, after: &str) -> Vec<TextChange> {
        let patterns: Vec<String> = patterns.iter().map(|pattern| (*pattern).to_owned()).collect();
        TextCompare::parse(&patterns).unwrap().changes(before, after, &|| false).unwrap()
    }

    #[test]
    fn white_space_and_what_patterns_match_are_no_changes() {
        let (before, after) = ("Price:  5\u{a0}€\n\n\nAt 12:30\n", "Price: 5 €\n  At\t12:31");
        assert_eq!(changes(&[r"\d+:\d+"], before, after), []);
        assert_eq!(changes(&[], before, after).len(), 1);
        assert_eq!(changes(&["^At .*$"], before, "Price: 5 €"), [], "a line of which nothing is left is no line");
        assert_eq!(changes(&["(?i)price", "[0-9]"], "Price: 5", "price: 6"), []);
        assert_eq!(changes(&["a.b"], "a\nb", "a\nc").len(), 1, "patterns are searched in each line");
    }

    #[test]
    fn long_lines_are_compared_in_parts() {
        let line = "é".repeat(5000);
        assert_eq!(changes(&[], &line, &line), []);
        assert_eq!(changes(&["x"], &line, &format!("{line}y")).len(), 1);
        assert!(parts(&line).iter().all(|part| part.len() <= PART_BYTES));
    }

    #[test]
    fn patterns_are_bounded_and_valid() {
        let parse = |patterns: &[&str]| {
            TextCompare::parse(&patterns.iter().map(|pattern| (*pattern).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(parse(&["a"; 21]), Err("21 patterns".to_owned()));
        let long = "a".repeat(201);
        for pattern in ["", "a\nb", "(", "(?=a)", r"(a)\1", r"(\w{1000}){1000}", long.as_str()] {
            assert_eq!(parse(&["b", pattern]), Err(format!("\"{pattern}\"")));
        }
        assert!(parse(&["é".repeat(200).as_str()]).is_ok() && parse(&[r"\w+ \d+ (views|likes)"; 20]).is_ok());
    }

    #[test]
    fn lines_are_numbered_as_in_the_text_and_those_that_do_not_count_are_left_out() {
        let patterns = [Regex::new("^At .*$").unwrap()];
        let lines = compared_lines("a\n\n b  c\nAt 12:30\nd", &patterns, &|| false).unwrap();
        let lines: Vec<(u32, &str)> = lines.iter().map(|line| (line.number, line.text.as_str())).collect();
        assert_eq!(lines, [(1, "a"), (3, "b c"), (5, "d")]);
    }

    #[test]
    fn texts_side_by_side_have_changes_exactly_if_the_monitor_reports_some() {
        let compare = TextCompare::default();
        for (before, after) in [("a\nb", "a\nb"), ("a\nb", "b\na"), ("a\nb", "a\nc"), ("a", ""), ("", "a"), ("", "")] {
            let diff = compare.diff(before, after, &|| false).unwrap();
            let changes = compare.changes(before, after, &|| false).unwrap();
            assert_eq!(diff.counts.changes() == 0, changes.is_empty(), "{before} {after}");
        }
    }

    #[test]
    fn nothing_is_said_after_a_stop() {
        let compare = TextCompare { ignore_patterns: vec!["a".to_owned()] };
        assert_eq!(compare.changes("a", "b", &|| true), None);
        assert_eq!(compare.diff("a", "b", &|| true), None);
    }
}
