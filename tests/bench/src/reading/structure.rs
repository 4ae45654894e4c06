//! Which parts of the expected Markdown are there: headings, links, list items and so on.

use std::collections::BTreeMap;

/// Parts by kind: those that are expected, and those of them that are there.
#[derive(Default)]
pub(super) struct Counts(BTreeMap<&'static str, (usize, usize)>);

impl Counts {
    /// Counts a page.
    pub(super) fn add(&mut self, expected: &str, read: &str) {
        let mut there = parts(read);
        for part in parts(expected) {
            let (wanted, found) = self.0.entry(part.0).or_default();
            *wanted += 1;
            if let Some(at) = there.iter().position(|other| *other == part) {
                there.swap_remove(at);
                *found += 1;
            }
        }
    }

    /// Prints a line for each kind, if there are any.
    pub(super) fn print(&self) {
        let mut all = (0, 0);
        for (kind, (wanted, found)) in &self.0 {
            println!("  {kind:<16}{found:>6} of {wanted}");
            all = (all.0 + wanted, all.1 + found);
        }
        if all.0 > 0 {
            println!("  {:<16}{:>6} of {}", "all", all.1, all.0);
        }
    }
}

/// The parts of a Markdown text: kind and content. What is in code is only code.
fn parts(markdown: &str) -> Vec<(&'static str, String)> {
    let mut parts = Vec::new();
    let mut fence: Option<String> = None;
    let mut math: Option<String> = None;
    for line in markdown.lines() {
        let text = line.trim_start_matches(|c: char| c == '>' || c.is_whitespace()).trim_end();
        if let Some(mark) = &fence {
            if text == mark.as_str() {
                fence = None;
            }
            continue;
        }
        let ticks: String = text.chars().take_while(|c| *c == '`').collect();
        if ticks.len() >= 3 && !text.trim_start_matches('`').contains('`') {
            parts.push(("code language", text.trim_start_matches('`').trim().to_ascii_lowercase()));
            fence = Some(ticks);
            continue;
        }
        match (&mut math, text == "$$") {
            (None, true) => {
                math = Some(String::new());
                continue;
            }
            (Some(formula), true) => {
                parts.push(("math", letters(formula)));
                math = None;
                continue;
            }
            (Some(formula), false) => {
                formula.push_str(text);
                continue;
            }
            (None, false) => {}
        }
        of_line(line, text, &mut parts);
    }
    parts
}

fn of_line(line: &str, text: &str, parts: &mut Vec<(&'static str, String)>) {
    if text.is_empty() {
        return;
    }
    let level = text.chars().take_while(|c| *c == '#').count();
    let item = text.trim_start_matches(|c: char| c.is_ascii_digit());
    let is_numbered = item.len() < text.len() && (item.starts_with(". ") || item.starts_with(") "));
    if line.trim_start().starts_with('>') {
        parts.push(("quotation", letters(text)));
    }
    if (1..=6).contains(&level) && text.chars().nth(level) == Some(' ') {
        parts.push(("heading", letters(text)));
    } else if text.starts_with("[^") && text.contains("]:") {
        parts.push(("footnote", letters(text)));
    } else if text.starts_with('|') {
        if text.chars().any(char::is_alphanumeric) {
            parts.push(("table row", letters(text)));
        }
    } else if is_numbered || ["- ", "* ", "+ "].iter().any(|mark| text.starts_with(mark)) {
        parts.push(("list item", letters(item)));
    }
    targets(text, parts);
    formulas(text, parts);
}

/// The targets of links and images.
fn targets(text: &str, parts: &mut Vec<(&'static str, String)>) {
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let end = after.find([')', ' ']).unwrap_or(after.len());
        let (target, left) = after.split_at(end);
        let is_image = before.rfind('[').is_some_and(|at| before.get(..at).is_some_and(|head| head.ends_with('!')));
        parts.push((if is_image { "image" } else { "link" }, target.to_owned()));
        rest = left;
    }
}

/// Formulas between dollars.
fn formulas(text: &str, parts: &mut Vec<(&'static str, String)>) {
    let mut rest = text;
    while let Some((_, after)) = rest.split_once('$') {
        let after = after.trim_start_matches('$');
        let Some((formula, left)) = after.split_once('$') else { return };
        if !formula.is_empty() && !formula.starts_with(char::is_whitespace) && !formula.ends_with(char::is_whitespace) {
            parts.push(("math", letters(formula)));
        }
        rest = left.trim_start_matches('$');
    }
}

/// The letters and digits, without the targets of links, so that ways of writing marks do not matter.
fn letters(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        kept.push_str(before);
        rest = after.split_once(')').map_or("", |(_, left)| left);
    }
    kept.push_str(rest);
    kept.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_markdown_are_found_outside_of_code() {
        let markdown = "# A *b*\n\nSee [c](https://d/) and ![e](f.png), $x_1$.\n\n- one\n2. two\n\n> said\n\n| g | h |\n| --- | --- |\n\n\
                        ```Rust\n# not\n```\n\n$$\ny\n$$\n\n[^1]: note";
        let expected = [
            ("heading", "ab"),
            ("link", "https://d/"),
            ("image", "f.png"),
            ("math", "x1"),
            ("list item", "one"),
            ("list item", "two"),
            ("quotation", "said"),
            ("table row", "gh"),
            ("code language", "rust"),
            ("math", "y"),
            ("footnote", "1note"),
        ];
        let found = parts(markdown);
        let found: Vec<(&str, &str)> = found.iter().map(|(kind, text)| (*kind, text.as_str())).collect();
        assert_eq!(found, expected);
    }
}
