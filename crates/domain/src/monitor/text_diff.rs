//! Two texts side by side, as rows of a table.

use std::collections::HashMap;
use std::ops::Range;

use super::align::align;
use super::text_changes::{TextChange, cut};
use super::word_changes::{TextPiece, changed_words};

/// The most rows of two texts side by side.
pub const MAX_TEXT_ROWS: usize = 300;
/// How many equal lines are shown before and after a change.
const CONTEXT_LINES: usize = 3;

/// A line as it is compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Line {
    /// Its number in the text, from 1.
    pub(super) number: u32,
    /// What is compared of it.
    pub(super) text: String,
}

/// Two texts side by side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextDiff {
    /// The first rows, without most of the equal lines. None if the texts are equal.
    pub rows: Vec<TextRow>,
    /// How many lines differ, also in rows that are left out.
    pub counts: TextCounts,
    /// Rows beyond the limit with lines that differ.
    pub rows_left_out: usize,
}

/// How many lines differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TextCounts {
    /// Lines that were replaced by another one.
    pub changed: usize,
    /// Lines that only the later text has.
    pub added: usize,
    /// Lines that only the earlier text has.
    pub removed: usize,
    /// Lines that are at another place. They are no changes.
    pub moved: usize,
}

impl TextCounts {
    /// The lines that count as changes.
    pub const fn changes(self) -> usize {
        self.changed + self.added + self.removed
    }
}

/// A row of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextRow {
    /// A line of one of the texts, or of both.
    Lines {
        /// How they differ.
        kind: TextRowKind,
        /// The line of the earlier text. `None`: the line was added, or moved here.
        before: Option<TextLine>,
        /// The line of the later text. `None`: the line was removed, or moved elsewhere.
        after: Option<TextLine>,
    },
    /// So many equal lines are not shown.
    LeftOut(usize),
}

/// How the lines of a row differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextRowKind {
    /// Both texts have the line.
    Equal,
    /// The line was replaced, added or removed.
    Changed,
    /// The other text has the line at another place.
    Moved,
}

/// A line of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextLine {
    /// Its number in the text, from 1.
    pub number: u32,
    /// The line, or at most 200 characters of it.
    pub pieces: Vec<TextPiece>,
}

impl TextLine {
    /// A line that is not compared word by word.
    fn whole(line: &Line, is_changed: bool) -> Self {
        Self { number: line.number, pieces: TextPiece::line(&cut(&line.text, 0), is_changed) }
    }
}

impl TextDiff {
    /// Compares the lines of two texts. `None` if it was stopped.
    pub(super) fn of(before: &[Line], after: &[Line], is_stopped: &dyn Fn() -> bool) -> Option<Self> {
        let (older, newer) = numbered(before, after);
        let pairs = align(&older, &newer, is_stopped)?;
        if is_stopped() {
            return None;
        }
        let [moved_before, moved_after] = moved(&older, &newer, &pairs);
        let mut rows = Rows { before, after, moved_before, moved_after, diff: Self::default() };
        let mut end = (0, 0);
        let blocks = blocks(&pairs, (before.len(), after.len()));
        for (at, (old, new)) in blocks.iter().enumerate() {
            rows.add_equal(&(end.0..old.start), end.1, (at > 0, true));
            rows.add_block(old, new);
            end = (old.end, new.end);
        }
        if !blocks.is_empty() {
            rows.add_equal(&(end.0..before.len()), end.1, (true, false));
        }
        Some(rows.diff)
    }
}

/// A number for each line of both texts, which is the same for equal lines.
fn numbered(before: &[Line], after: &[Line]) -> (Vec<usize>, Vec<usize>) {
    let mut numbers: HashMap<&str, usize> = HashMap::new();
    for line in before.iter().chain(after) {
        let next = numbers.len();
        numbers.entry(&line.text).or_insert(next);
    }
    let of = |lines: &[Line]| -> Vec<usize> {
        lines.iter().filter_map(|line| numbers.get(line.text.as_str()).copied()).collect()
    };
    (of(before), of(after))
}

/// The parts of both texts between equal lines, as far as one of them is not empty.
fn blocks(pairs: &[(usize, usize)], ends: (usize, usize)) -> Vec<(Range<usize>, Range<usize>)> {
    let mut blocks = Vec::new();
    let (mut old_from, mut new_from) = (0, 0);
    for (old, new) in pairs.iter().copied().chain([ends]) {
        if old > old_from || new > new_from {
            blocks.push((old_from..old, new_from..new));
        }
        (old_from, new_from) = (old + 1, new + 1);
    }
    blocks
}

/// For each line of both texts, whether it is none of the pairs, but the other text has it at another place.
fn moved(older: &[usize], newer: &[usize], pairs: &[(usize, usize)]) -> [Vec<bool>; 2] {
    let (mut old_rest, mut new_rest) = (vec![true; older.len()], vec![true; newer.len()]);
    for (old, new) in pairs {
        old_rest[*old] = false;
        new_rest[*new] = false;
    }
    let counts = |lines: &[usize], rest: &[bool]| {
        let mut counts: HashMap<usize, usize> = HashMap::new();
        for (line, _) in lines.iter().zip(rest).filter(|(_, is_rest)| **is_rest) {
            *counts.entry(*line).or_default() += 1;
        }
        counts
    };
    let (old_counts, new_counts) = (counts(older, &old_rest), counts(newer, &new_rest));
    [first_of(older, &old_rest, new_counts), first_of(newer, &new_rest, old_counts)]
}

/// Of the lines that are `rest`, the first ones of each kind, as many as `counts` has.
fn first_of(lines: &[usize], rest: &[bool], mut counts: HashMap<usize, usize>) -> Vec<bool> {
    let mut take = |line: &usize| match counts.get_mut(line) {
        Some(left) if *left > 0 => {
            *left -= 1;
            true
        }
        Some(_) | None => false,
    };
    lines.iter().zip(rest).map(|(line, is_rest)| *is_rest && take(line)).collect()
}

/// The rows that are made of two texts.
struct Rows<'a> {
    before: &'a [Line],
    after: &'a [Line],
    moved_before: Vec<bool>,
    moved_after: Vec<bool>,
    diff: TextDiff,
}

impl Rows<'_> {
    /// Adds equal lines, with a change before the first one, after the last one, or both. Those that are not near it are left
    /// out, if they are several.
    fn add_equal(&mut self, old: &Range<usize>, new_from: usize, (is_after_change, is_before_change): (bool, bool)) {
        let lines = |is_near: bool| if is_near { CONTEXT_LINES } else { 0 };
        let (head, tail) = (lines(is_after_change), lines(is_before_change));
        let left_out = old.len().saturating_sub(head + tail);
        let is_short = left_out <= 1;
        let first = if is_short { old.len() } else { head };
        for at in 0..first {
            self.add_equal_line(old.start + at, new_from + at);
        }
        if is_short {
            return;
        }
        self.add(|_| TextRow::LeftOut(left_out));
        for at in old.len() - tail..old.len() {
            self.add_equal_line(old.start + at, new_from + at);
        }
    }

    fn add_equal_line(&mut self, old: usize, new: usize) {
        self.add(|rows| TextRow::Lines {
            kind: TextRowKind::Equal,
            before: Some(TextLine::whole(&rows.before[old], false)),
            after: Some(TextLine::whole(&rows.after[new], false)),
        });
    }

    /// Adds lines between equal ones. Those that have not moved are pairs, in their order.
    fn add_block(&mut self, old: &Range<usize>, new: &Range<usize>) {
        let (mut old_at, mut new_at) = (old.start, new.start);
        loop {
            let (has_old, has_new) = (old_at < old.end, new_at < new.end);
            if has_old && self.moved_before[old_at] {
                self.diff.counts.moved += 1;
                self.add_one(TextRowKind::Moved, Some(old_at), None);
                old_at += 1;
            } else if has_new && self.moved_after[new_at] {
                self.add_one(TextRowKind::Moved, None, Some(new_at));
                new_at += 1;
            } else if has_old && has_new {
                self.diff.counts.changed += 1;
                self.add_changed(old_at, new_at);
                (old_at, new_at) = (old_at + 1, new_at + 1);
            } else if has_old {
                self.diff.counts.removed += 1;
                self.add_one(TextRowKind::Changed, Some(old_at), None);
                old_at += 1;
            } else if has_new {
                self.diff.counts.added += 1;
                self.add_one(TextRowKind::Changed, None, Some(new_at));
                new_at += 1;
            } else {
                return;
            }
        }
    }

    /// Adds a line that only one of the texts has at this place.
    fn add_one(&mut self, kind: TextRowKind, old: Option<usize>, new: Option<usize>) {
        let is_changed = kind == TextRowKind::Changed;
        self.add_difference(|rows| TextRow::Lines {
            kind,
            before: old.map(|at| TextLine::whole(&rows.before[at], is_changed)),
            after: new.map(|at| TextLine::whole(&rows.after[at], is_changed)),
        });
    }

    /// Adds a line that was replaced.
    fn add_changed(&mut self, old: usize, new: usize) {
        self.add_difference(|rows| {
            let (old, new) = (&rows.before[old], &rows.after[new]);
            let cut = TextChange::of(Some(&old.text), Some(&new.text));
            let [before, after] =
                changed_words(cut.before.as_deref().unwrap_or_default(), cut.after.as_deref().unwrap_or_default());
            TextRow::Lines {
                kind: TextRowKind::Changed,
                before: Some(TextLine { number: old.number, pieces: before }),
                after: Some(TextLine { number: new.number, pieces: after }),
            }
        });
    }

    fn add_difference(&mut self, row: impl FnOnce(&Self) -> TextRow) {
        if self.diff.rows.len() >= MAX_TEXT_ROWS {
            self.diff.rows_left_out += 1;
        }
        self.add(row);
    }

    /// Adds a row, unless there are too many. It is not made then.
    fn add(&mut self, row: impl FnOnce(&Self) -> TextRow) {
        if self.diff.rows.len() < MAX_TEXT_ROWS {
            let row = row(self);
            self.diff.rows.push(row);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diff(before: &str, after: &str) -> TextDiff {
        let lines = |text: &str| -> Vec<Line> {
            (1..).zip(text.lines()).map(|(number, line)| Line { number, text: line.to_owned() }).collect()
        };
        TextDiff::of(&lines(before), &lines(after), &|| false).unwrap()
    }

    /// The rows as lines of text, with brackets around what is marked.
    fn shown(diff: &TextDiff) -> Vec<String> {
        let side = |line: &Option<TextLine>| match line {
            Some(TextLine { number, pieces }) => {
                let piece = |piece: &TextPiece| match piece.is_changed {
                    true => format!("[{}]", piece.text),
                    false => piece.text.clone(),
                };
                format!("{number} {}", pieces.iter().map(piece).collect::<String>())
            }
            None => "-".to_owned(),
        };
        let row = |row: &TextRow| match row {
            TextRow::Lines { kind, before, after } => {
                let mark = match kind {
                    TextRowKind::Equal => "=",
                    TextRowKind::Changed => "!",
                    TextRowKind::Moved => "~",
                };
                format!("{mark} {} | {}", side(before), side(after))
            }
            TextRow::LeftOut(lines) => format!("{lines} equal"),
        };
        diff.rows.iter().map(row).collect()
    }

    /// Lines of one letter and a number each.
    fn numbers(range: Range<u32>) -> String {
        range.map(|at| format!("n{at}\n")).collect()
    }

    #[test]
    fn equal_texts_have_no_rows() {
        for text in ["", "a", "a\nb\na"] {
            assert_eq!(diff(text, text), TextDiff::default());
        }
    }

    #[test]
    fn lines_are_replaced_added_and_removed() {
        let of = |before: &str, after: &str| shown(&diff(before, after));
        assert_eq!(
            of("Tea\n5 €\nCake", "Tea\n6 €\nCake"),
            ["= 1 Tea | 1 Tea", "! 2 [5] € | 2 [6] €", "= 3 Cake | 3 Cake"]
        );
        assert_eq!(of("a\nb", "a\nx y\nb"), ["= 1 a | 1 a", "! - | 2 [x y]", "= 2 b | 3 b"]);
        assert_eq!(of("a\nb", "b"), ["! 1 [a] | -", "= 2 b | 1 b"]);
        assert_eq!(of("", "a"), ["! - | 1 [a]"]);
        assert_eq!(of("a", ""), ["! 1 [a] | -"]);
        assert_eq!(of("a\nb\nc", "x\nc"), ["! 1 [a] | 1 [x]", "! 2 [b] | -", "= 3 c | 2 c"]);
        let counts = diff("a\nb\nc\nd", "x\nc\nd\ne").counts;
        assert_eq!(counts, TextCounts { changed: 1, added: 1, removed: 1, moved: 0 });
    }

    #[test]
    fn lines_that_moved_are_not_marked_as_changes() {
        let of = diff("a\nb\nc\nd", "b\nc\nd\na");
        assert_eq!(shown(&of), ["~ 1 a | -", "= 2 b | 1 b", "= 3 c | 2 c", "= 4 d | 3 d", "~ - | 4 a"]);
        assert_eq!((of.counts.moved, of.counts.changes()), (1, 0));
        // Only one of them moved: the other text does not have the second one.
        let of = diff("a\na\nb\nc\nd", "b\nc\nd\na");
        assert_eq!(of.counts, TextCounts { removed: 1, moved: 1, ..TextCounts::default() });
    }

    #[test]
    fn equal_lines_far_from_changes_are_left_out() {
        let before = format!("{}old\n{}", numbers(0..10), numbers(10..20));
        let after = format!("{}new\n{}", numbers(0..10), numbers(10..20));
        let of = shown(&diff(&before, &after));
        assert_eq!(of.len(), 9);
        assert_eq!((&*of[0], &*of[1]), ("7 equal", "= 8 n7 | 8 n7"));
        assert_eq!((&*of[4], &*of[7], &*of[8]), ("! 11 [old] | 11 [new]", "= 14 n12 | 14 n12", "7 equal"));
        // A single line takes no more room than the row that would say that it is left out.
        let before = format!("{}old", numbers(0..4));
        assert_eq!(shown(&diff(&before, &numbers(0..4))).len(), 5);
        let before = format!("old\n{}old", numbers(0..7));
        assert_eq!(shown(&diff(&before, &numbers(0..7))).len(), 9);
        let before = format!("old\n{}old", numbers(0..8));
        assert_eq!(shown(&diff(&before, &numbers(0..8)))[4], "2 equal");
    }

    #[test]
    fn rows_and_lines_are_bounded() {
        let before: String = (0..400).map(|at| format!("old {at}\n")).collect();
        let of = diff(&before, "");
        assert_eq!((of.rows.len(), of.rows_left_out, of.counts.removed), (MAX_TEXT_ROWS, 100, 400));
        let long = "word ".repeat(199);
        let of = diff(&long, "");
        let TextRow::Lines { before: Some(line), after: None, .. } = &of.rows[0] else { panic!("a line") };
        assert_eq!(line.pieces[0].text.chars().count(), 200);
        let of = shown(&diff(&format!("{long}1"), &format!("{long}2")));
        assert!(of[0].contains("[1] | 1 …") && of[0].ends_with("[2]"), "the difference is in what is left: {of:?}");
    }

    #[test]
    fn stopped_comparison_has_no_result() {
        let line = Line { number: 1, text: "a".to_owned() };
        assert_eq!(TextDiff::of(&[line], &[], &|| true), None);
    }
}
