//! Members of a request that are not known. Those that are no options are ignored, and named in warnings.

use crate::{TABLE, find};

/// The most members that are named.
const MOST_NAMED: usize = 5;

/// The most characters of a name.
const NAME_CHARS: usize = 64;

/// The first of these names, in alphabetical order. Each is without control characters, and cut.
pub fn shortened<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<&str> = names.into_iter().collect();
    names.sort_unstable();
    names.dedup();
    names.into_iter().take(MOST_NAMED).map(cut).collect()
}

/// The start of a name, without control characters.
fn cut(name: &str) -> String {
    name.chars().filter(|char| !char.is_control()).take(NAME_CHARS).collect()
}

/// The warning about a member, such as `unknown_option:widht (did you mean width?)`.
pub fn warning(name: &str) -> String {
    format!("unknown_option:{}", described(name))
}

/// The name of a member, and that of the option that was probably meant.
pub fn described(name: &str) -> String {
    with_suggestion(name, nearest_option(name))
}

/// The name of a member that is not one of these names, and the one that was probably meant. The name of the member is cut.
pub fn described_among(name: &str, known: &[&str]) -> String {
    let name = cut(name);
    let suggestion = nearest(&name, known.iter().copied());
    with_suggestion(&name, suggestion)
}

fn with_suggestion(name: &str, suggestion: Option<&str>) -> String {
    suggestion.map_or_else(|| name.to_owned(), |meant| format!("{name} (did you mean {meant}?)"))
}

/// The option whose name is most similar. None if no name is, or if it is an option, in the wrong place.
fn nearest_option(name: &str) -> Option<&'static str> {
    if find(name).is_some() {
        return None;
    }
    nearest(name, TABLE.iter().map(|option| option.name))
}

/// The most similar of these names. None if no name is similar.
fn nearest<'n>(name: &str, known: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let letters = letters(name);
    // Names of one or two letters are similar to many.
    let most = (letters.len() / 3).min(2);
    let distances = known.map(|candidate| (distance(&letters, &self::letters(candidate)), candidate));
    let similar = distances.filter(|(distance, _)| *distance <= most);
    similar.min_by_key(|(distance, _)| *distance).map(|(_, candidate)| candidate)
}

/// The letters of a name, which is written with capitals or hyphens in other places.
fn letters(name: &str) -> Vec<char> {
    let letters = name.chars().filter(|char| !matches!(char, '_' | '-' | ' '));
    letters.map(|char| char.to_ascii_lowercase()).collect()
}

/// The number of letters to insert, to delete, to replace, or to exchange with the next one.
fn distance(from: &[char], to: &[char]) -> usize {
    let mut before: Vec<usize> = Vec::new();
    let mut last: Vec<usize> = (0..=to.len()).collect();
    for (at, letter) in from.iter().enumerate() {
        let mut row = vec![at + 1];
        for (place, other) in to.iter().enumerate() {
            let replaced = last[place] + usize::from(letter != other);
            let mut least = replaced.min(last[place + 1] + 1).min(row[place] + 1);
            if at > 0 && place > 0 && *letter == to[place - 1] && from[at - 1] == *other {
                least = least.min(before[place - 1] + 1);
            }
            row.push(least);
        }
        before = std::mem::replace(&mut last, row);
    }
    last[to.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn similar_names_are_suggested_and_others_are_not() {
        for (name, option) in [
            ("widht", Some("width")),
            ("ulr", Some("url")),
            ("fullPage", Some("full_page")),
            ("full-page", Some("full_page")),
            ("fullpage", Some("full_page")),
            ("Width", Some("width")),
            ("viewport", Some("viewports")),
            ("wait_for_txt", Some("wait_for_text")),
            ("color_schema", Some("color_scheme")),
            ("async", None),
            ("full_page", None),
            ("x", None),
            ("", None),
            ("quite_another_name", None),
        ] {
            assert_eq!(nearest_option(name), option, "{name}");
        }
        assert_eq!(warning("widht"), "unknown_option:widht (did you mean width?)");
        assert_eq!(warning("async"), "unknown_option:async");
    }

    #[test]
    fn suggestions_are_made_from_the_given_names() {
        let known = ["paused", "keep"];
        assert_eq!(described_among("pausd", &known), "pausd (did you mean paused?)");
        assert_eq!(described_among("widht", &known), "widht");
        assert_eq!(described_among(&format!("a\n{}", "b".repeat(1000)), &known), format!("a{}", "b".repeat(63)));
    }

    #[test]
    fn names_are_few_and_short() {
        assert_eq!(shortened(["b", "a", "b"]), ["a", "b"]);
        let many: Vec<String> = (0..100).map(|number| format!("{number:03}\n{}", "é".repeat(1000))).collect();
        let short = shortened(many.iter().map(String::as_str));
        assert_eq!(short.len(), MOST_NAMED);
        assert!(short.iter().all(|name| name.chars().count() == NAME_CHARS && !name.contains('\n')));
        assert_eq!(shortened(short.iter().map(String::as_str)), short);
    }

    #[test]
    fn distance_counts_changes_of_letters() {
        let of = |from: &str, to: &str| distance(&letters(from), &letters(to));
        assert_eq!([of("", ""), of("abc", ""), of("", "abc"), of("abc", "abc")], [0, 3, 3, 0]);
        assert_eq!([of("abc", "acb"), of("abc", "abd"), of("abc", "abcd"), of("abcd", "bcd")], [1, 1, 1, 1]);
    }
}
