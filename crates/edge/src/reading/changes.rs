//! What changed on a page between two captures, as text: elements that came, went, moved or changed, and lines of text.

use std::collections::{BTreeMap, HashMap};

use grabd_api::elements::{Element, Matches, quoted};

/// From this number on, elements that moved by the same distance are one line.
const MIN_MOVED_TOGETHER: usize = 4;

/// The changes of the elements, from older to newer.
pub(super) fn of_elements(older: &[Element], newer: &[Element]) -> String {
    let Matches { pairs, removed, added } = Matches::of(older, newer);
    let pairs: Vec<(&Element, &Element)> = pairs.iter().map(|(old, new)| (&older[*old], &newer[*new])).collect();
    let mut text = String::new();
    section(&mut text, "Elements that came", added.iter().map(|at| format!("+ {}", newer[*at].line())));
    section(&mut text, "Elements that went", removed.iter().map(|at| format!("- {}", older[*at].line())));
    let renamed = pairs.iter().filter(|(old, new)| old.name != new.name);
    section(
        &mut text,
        "Elements whose words changed",
        renamed.map(|(old, new)| format!("~ was {}, now {}", quoted(&old.name), new.line())),
    );
    let changed = pairs.iter().filter(|(old, new)| old.more != new.more);
    section(
        &mut text,
        "Elements whose state or target changed",
        changed.map(|(old, new)| format!("~ was [{}], now {}", old.more, new.line())),
    );
    section(&mut text, "Elements that moved or changed their size", moves(&pairs));
    if text.is_empty() {
        text.push_str("No element changed.\n");
    }
    text
}

/// The lines of text that are in one capture only. Lines that only moved are in both.
pub(super) fn of_lines(older: &str, newer: &str) -> String {
    let (went, came) = (lines_beyond(older, newer), lines_beyond(newer, older));
    let mut text = String::new();
    section(&mut text, "Lines of text that came", came.iter().map(|line| format!("+ {line}")));
    section(&mut text, "Lines of text that went", went.iter().map(|line| format!("- {line}")));
    if text.is_empty() {
        text.push_str("No line of text changed.\n");
    }
    text
}

/// Adds lines under a heading with their number, if there are any.
fn section(text: &mut String, heading: &str, lines: impl Iterator<Item = String>) {
    let lines: Vec<String> = lines.collect();
    if !lines.is_empty() {
        text.push_str(&format!("{heading} ({}):\n{}\n\n", lines.len(), lines.join("\n")));
    }
}

/// The elements that are in another place or have another size: together those that moved by the same distance, as all elements
/// below an inserted banner do.
fn moves<'a>(pairs: &'a [(&'a Element, &'a Element)]) -> impl Iterator<Item = String> {
    let moved = pairs.iter().filter(|(old, new)| old.place != new.place);
    let mut by_distance: BTreeMap<[i64; 4], Vec<(&Element, &Element)>> = BTreeMap::new();
    for (old, new) in moved {
        let distance = [0, 1, 2, 3].map(|side: usize| new.place[side] - old.place[side]);
        by_distance.entry(distance).or_default().push((*old, *new));
    }
    by_distance.into_iter().flat_map(|([x, y, width, height], moved)| {
        let is_one_line = (width, height) == (0, 0) && moved.len() >= MIN_MOVED_TOGETHER;
        let first = moved.first().map(|(_, new)| new.line()).unwrap_or_default();
        if is_one_line {
            return vec![format!("~ {} elements by {x:+},{y:+}, the first is {first}", moved.len())];
        }
        let line = |(old, new): &(&Element, &Element)| {
            let [x, y, width, height] = old.place;
            format!("~ was {x},{y} {width}x{height}, now {}", new.line())
        };
        moved.iter().map(line).collect()
    })
}

/// The lines of a text that occur more often in it than in another one, in their order, without those that are blank.
fn lines_beyond<'a>(text: &'a str, other: &'a str) -> Vec<&'a str> {
    let lines = |text: &'a str| text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut left: HashMap<&str, usize> = HashMap::new();
    for line in lines(other) {
        *left.entry(line).or_default() += 1;
    }
    let is_more = |line: &&str| match left.get_mut(*line) {
        Some(count) if *count > 0 => {
            *count -= 1;
            false
        }
        Some(_) | None => true,
    };
    lines(text).filter(is_more).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn element(role: &str, name: &str, selector: &str, place: [i64; 4], more: &str) -> Element {
        let selector = (!selector.is_empty()).then(|| selector.to_owned());
        let (role, name, more) = (role.to_owned(), name.to_owned(), more.to_owned());
        Element { role, name, selector, place, more, covered_by: None }
    }

    #[test]
    fn elements_that_came_went_moved_and_changed_are_told_apart() {
        let older = [
            element("link", "Home", "#home", [0, 0, 50, 20], "url=\"/\""),
            element("button", "Buy", "#buy", [0, 100, 80, 30], ""),
            element("checkbox", "News", "#news", [0, 200, 16, 16], "checked=false"),
            element("link", "Old", "#old", [0, 300, 50, 20], ""),
            element("link", "Wide", "", [0, 400, 50, 20], ""),
        ];
        let newer = [
            element("link", "Home", "#home", [0, 0, 50, 20], "url=\"/\""),
            element("button", "Sold out", "#buy", [0, 100, 80, 30], ""),
            element("checkbox", "News", "#news", [0, 200, 16, 16], "checked=true"),
            element("button", "Chat", "#chat", [0, 500, 40, 40], "covered_by=\"div\""),
            element("link", "Wide", "", [0, 420, 50, 20], ""),
        ];
        assert_eq!(
            of_elements(&older, &newer),
            "Elements that came (1):\n+ button \"Chat\" 0,500 40x40 covered_by=\"div\"\n\n\
             Elements that went (1):\n- link \"Old\" 0,300 50x20\n\n\
             Elements whose words changed (1):\n~ was \"Buy\", now button \"Sold out\" 0,100 80x30\n\n\
             Elements whose state or target changed (1):\n~ was [checked=false], now checkbox \"News\" 0,200 16x16 checked=true\n\n\
             Elements that moved or changed their size (1):\n~ was 0,400 50x20, now link \"Wide\" 0,420 50x20\n\n"
        );
        assert_eq!(of_elements(&older, &older), "No element changed.\n");
        assert_eq!(of_elements(&[], &[]), "No element changed.\n");
    }

    #[test]
    fn element_behind_something_has_not_changed() {
        let free = element("button", "Buy", "#buy", [0, 100, 80, 30], "");
        let covered = Element { covered_by: Some("\"unknown\"".to_owned()), ..free.clone() };
        assert_eq!(of_elements(&[free], std::slice::from_ref(&covered)), "No element changed.\n");
        assert_eq!(covered.line(), "button \"Buy\" 0,100 80x30 covered_by=\"unknown\"");
    }

    #[test]
    fn elements_that_moved_together_are_one_line() {
        let row = |at: i64, y: i64| element("link", &format!("Item {at}"), "", [0, y + at * 40, 90, 20], "");
        let older: Vec<Element> = (0..50).map(|at| row(at, 0)).collect();
        let newer: Vec<Element> = (0..50).map(|at| row(at, 48)).collect();
        assert_eq!(
            of_elements(&older, &newer),
            "Elements that moved or changed their size (1):\n~ 50 elements by +0,+48, the first is link \"Item 0\" 0,48 90x20\n\n"
        );
    }

    #[test]
    fn equal_elements_are_paired_in_their_order() {
        let more = |y: i64| element("link", "Read more", "", [0, y, 50, 20], "");
        let text = of_elements(&[more(0), more(100)], &[more(0), more(100), more(200)]);
        assert_eq!(text, "Elements that came (1):\n+ link \"Read more\" 0,200 50x20\n\n");
    }

    #[test]
    fn lines_are_counted_and_those_that_moved_left_out() {
        let text = of_lines("One\nTwo\n\nTwo\nThree\n", "Three\n One \nTwo\nFour\n");
        assert_eq!(text, "Lines of text that came (1):\n+ Four\n\nLines of text that went (1):\n- Two\n\n");
        assert_eq!(of_lines("a\n", "a"), "No line of text changed.\n");
    }
}
