//! A short summary of the lines in which two texts differ.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

/// The most changes that are kept of a run.
pub const MAX_TEXT_CHANGES: usize = 20;
/// The longest line of a change, in characters. Longer ones are cut.
pub const TEXT_CHANGE_CHARS: usize = 200;
/// If two lines have more than this number of first characters in common, most of these are left out.
const COMMON_CHARS: usize = 150;
/// How many of the common characters are shown then.
const CONTEXT_CHARS: usize = 40;

/// A line that was replaced, added or removed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextChange {
    /// The line of the baseline. `None`: the line was added.
    pub before: Option<String>,
    /// The line of the run. `None`: the line was removed.
    pub after: Option<String>,
}

/// The line before a block that both texts have, and how many equal ones there are up to it. `None`: the text begins with the
/// block.
type Anchor<'a> = Option<(&'a str, usize)>;

/// Lines of one text only that are not divided by lines that both have.
type Block<'a> = (Anchor<'a>, Vec<&'a str>);

/// The lines that are in one text only. Those that are in the same place of both texts are a pair. A line that only moved has not
/// changed.
pub(super) fn changed_lines(before: &[String], after: &[String]) -> Vec<TextChange> {
    let removed = blocks(before, &counts(after));
    let added = blocks(after, &counts(before));
    let mut left: HashMap<Anchor<'_>, &[&str]> =
        added.iter().map(|(anchor, lines)| (*anchor, lines.as_slice())).collect();
    let mut changes = Vec::new();
    for (anchor, lines) in &removed {
        let newer = left.remove(anchor).unwrap_or_default();
        add(&mut changes, lines, newer);
    }
    for (anchor, lines) in &added {
        if left.contains_key(anchor) {
            add(&mut changes, &[], lines);
        }
    }
    changes
}

fn counts(lines: &[String]) -> HashMap<&str, usize> {
    let mut counts: HashMap<&str, usize> = HashMap::new();
    for line in lines {
        *counts.entry(line.as_str()).or_default() += 1;
    }
    counts
}

/// The lines that occur more often than in the other text.
fn blocks<'a>(lines: &'a [String], other: &HashMap<&str, usize>) -> Vec<Block<'a>> {
    let mut seen: HashMap<&'a str, usize> = HashMap::new();
    let mut blocks: Vec<Block<'a>> = Vec::new();
    let mut anchor: Anchor<'a> = None;
    for line in lines {
        let line = line.as_str();
        let count = seen.entry(line).or_default();
        *count += 1;
        if *count <= other.get(line).copied().unwrap_or(0) {
            anchor = Some((line, *count));
            continue;
        }
        match blocks.last_mut() {
            Some((at, block)) if *at == anchor => block.push(line),
            Some(_) | None => blocks.push((anchor, vec![line])),
        }
    }
    blocks
}

fn add(changes: &mut Vec<TextChange>, older: &[&str], newer: &[&str]) {
    for at in 0..older.len().max(newer.len()) {
        if changes.len() == MAX_TEXT_CHANGES {
            return;
        }
        changes.push(TextChange::of(older.get(at).copied(), newer.get(at).copied()));
    }
}

impl TextChange {
    /// Cuts both lines, so that the first difference is in what is left.
    pub(super) fn of(before: Option<&str>, after: Option<&str>) -> Self {
        let common = match (before, after) {
            (Some(before), Some(after)) => {
                before.chars().zip(after.chars()).take_while(|(old, new)| old == new).count()
            }
            (_, _) => 0,
        };
        let skipped = if common > COMMON_CHARS { common - CONTEXT_CHARS } else { 0 };
        let cut = |line: &str| cut(line, skipped);
        Self { before: before.map(cut), after: after.map(cut) }
    }
}

/// At most [`TEXT_CHANGE_CHARS`] characters of a line, without the first ones.
pub(super) fn cut(line: &str, skipped: usize) -> String {
    const MARK: char = '…';
    let mut short = String::new();
    let mut room = TEXT_CHANGE_CHARS;
    if skipped > 0 {
        short.push(MARK);
        room -= 1;
    }
    let left = line.chars().skip(skipped);
    if left.clone().count() <= room {
        short.extend(left);
    } else {
        short.extend(left.take(room - 1));
        short.push(MARK);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes(before: &str, after: &str) -> Vec<(Option<String>, Option<String>)> {
        let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
        changed_lines(&lines(before), &lines(after)).into_iter().map(|change| (change.before, change.after)).collect()
    }

    fn pair(before: &str, after: &str) -> (Option<String>, Option<String>) {
        let line = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        (line(before), line(after))
    }

    #[test]
    fn lines_in_the_same_place_are_a_pair() {
        assert_eq!(changes("a\nb\nc", "a\nb\nc"), []);
        assert_eq!(changes("Tea\n5 €\nCake\n3 €", "Tea\n6 €\nCake\n3 €"), [pair("5 €", "6 €")]);
        assert_eq!(changes("a\nb\nc", "a\nc\nd"), [pair("b", ""), pair("", "d")]);
        assert_eq!(changes("", "a"), [pair("", "a")]);
        assert_eq!(changes("x\na", "y\nz\na"), [pair("x", "y"), pair("", "z")]);
    }

    #[test]
    fn lines_are_counted_and_those_that_moved_have_not_changed() {
        assert_eq!(changes("a\nb", "b\na"), []);
        assert_eq!(changes("a\nb\na", "b\na"), [pair("a", "")]);
    }

    #[test]
    fn changes_and_their_lines_are_bounded() {
        let many = |word: &str| (0..50).map(|at| format!("{word}{at}\n")).collect::<String>();
        assert_eq!(changes(&many("a"), &many("b")).len(), MAX_TEXT_CHANGES);
        let long = "é".repeat(300);
        let found = changes(&format!("{long}1"), &format!("{long}2"));
        let expected = |end: &str| format!("…{}{end}", "é".repeat(CONTEXT_CHARS));
        assert_eq!(found, [pair(&expected("1"), &expected("2"))]);
        let (before, after) = changes(&long, "").remove(0);
        assert_eq!((before.unwrap().chars().count(), after), (TEXT_CHANGE_CHARS, None));
    }
}
