//! Two texts side by side, for display: all of their lines, or those that a run of a monitor has kept.

use grabd_domain::monitor::{
    TextChange, TextCounts, TextDiff, TextLine, TextPiece, TextRow, TextRowKind, changed_words,
};

/// A row of the table.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct RowView {
    /// The CSS class of the row.
    pub(crate) class: &'static str,
    pub(crate) is_moved: bool,
    pub(crate) before: Option<LineView>,
    pub(crate) after: Option<LineView>,
    /// What the row says instead of lines: how many equal ones are left out.
    pub(crate) left_out: Option<String>,
}

/// A line of one of the texts.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LineView {
    /// `None` if it is not known.
    pub(crate) number: Option<u32>,
    pub(crate) pieces: Vec<TextPiece>,
}

impl RowView {
    /// The rows of two texts.
    pub(crate) fn of(diff: &TextDiff) -> Vec<Self> {
        diff.rows.iter().map(Self::of_row).collect()
    }

    fn of_row(row: &TextRow) -> Self {
        match row {
            TextRow::Lines { kind, before, after } => Self {
                class: match kind {
                    TextRowKind::Equal => "equal",
                    TextRowKind::Changed => "differs",
                    TextRowKind::Moved => "moved",
                },
                is_moved: *kind == TextRowKind::Moved,
                before: before.as_ref().map(LineView::of),
                after: after.as_ref().map(LineView::of),
                left_out: None,
            },
            // A single line is never left out.
            TextRow::LeftOut(lines) => Self {
                class: "left-out",
                is_moved: false,
                before: None,
                after: None,
                left_out: Some(format!("{lines} equal lines are not shown")),
            },
        }
    }

    /// A change that was kept of a run, of which the numbers of the lines are not known.
    pub(crate) fn of_change(TextChange { before, after }: &TextChange) -> Self {
        let whole = |line: &String| vec![TextPiece { text: line.clone(), is_changed: true }];
        let (before, after) = match (before, after) {
            (Some(before), Some(after)) => {
                let [before, after] = changed_words(before, after);
                (Some(before), Some(after))
            }
            (before, after) => (before.as_ref().map(whole), after.as_ref().map(whole)),
        };
        let line = |pieces: Vec<TextPiece>| LineView { number: None, pieces };
        Self { class: "differs", is_moved: false, before: before.map(line), after: after.map(line), left_out: None }
    }
}

impl LineView {
    fn of(TextLine { number, pieces }: &TextLine) -> Self {
        Self { number: Some(*number), pieces: pieces.clone() }
    }
}

/// How many lines differ, in a sentence.
pub(crate) fn summary(counts: TextCounts) -> String {
    let TextCounts { changed, added, removed, moved } = counts;
    let parts: Vec<String> = [(changed, "changed"), (added, "added"), (removed, "removed"), (moved, "moved")]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, what)| format!("{count} {what}"))
        .collect();
    match parts.is_empty() {
        true => "The texts are equal.".to_owned(),
        false => format!("Lines: {}.", parts.join(", ")),
    }
}

/// That rows beyond the last one are not shown. They have changes, or lines that moved. Empty if there are none.
pub(crate) fn not_shown(rows: usize) -> String {
    match rows {
        0 => String::new(),
        1 => "1 more row that differs is not shown.".to_owned(),
        rows => format!("{rows} more rows that differ are not shown."),
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::monitor::TextCompare;

    use super::*;

    #[test]
    fn rows_have_the_lines_of_both_texts_and_say_what_is_left_out() {
        let equal = "same 1\nsame 2\nsame 3\nsame 4\nsame 5\nsame 6\n";
        let diff = TextCompare::default().diff(&format!("{equal}5 €"), &format!("{equal}6 €"), &|| false).unwrap();
        let rows = RowView::of(&diff);
        assert_eq!(rows[0].left_out.as_deref(), Some("3 equal lines are not shown"));
        let classes: Vec<&str> = rows.iter().map(|row| row.class).collect();
        assert_eq!(classes, ["left-out", "equal", "equal", "equal", "differs"]);
        let before = rows[4].before.as_ref().unwrap();
        let pieces: Vec<(&str, bool)> = before.pieces.iter().map(|piece| (&*piece.text, piece.is_changed)).collect();
        assert_eq!((before.number, pieces), (Some(7), vec![("5", true), (" €", false)]));
    }

    #[test]
    fn kept_changes_have_marked_words_and_no_numbers() {
        let of = |before: Option<&str>, after: Option<&str>| {
            RowView::of_change(&TextChange { before: before.map(str::to_owned), after: after.map(str::to_owned) })
        };
        let row = of(Some("5 €"), Some("6 €"));
        let marked = |line: &Option<LineView>| -> Vec<bool> {
            line.iter().flat_map(|line| &line.pieces).map(|piece| piece.is_changed).collect()
        };
        assert_eq!((marked(&row.before), marked(&row.after)), (vec![true, false], vec![true, false]));
        assert_eq!(row.after.unwrap().number, None);
        let added = of(None, Some("New"));
        assert_eq!((added.before.is_none(), marked(&added.after)), (true, vec![true]));
    }

    #[test]
    fn differences_are_counted_in_words() {
        let none = TextCounts::default();
        assert_eq!(summary(none), "The texts are equal.");
        assert_eq!(summary(TextCounts { changed: 2, removed: 1, ..none }), "Lines: 2 changed, 1 removed.");
        assert_eq!(summary(TextCounts { added: 1, moved: 3, ..none }), "Lines: 1 added, 3 moved.");
        assert_eq!(not_shown(0), "");
        assert_eq!(not_shown(2), "2 more rows that differ are not shown.");
    }
}
