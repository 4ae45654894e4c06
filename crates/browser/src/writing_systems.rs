//! Checks for which writing systems the fonts of this machine have glyphs.

use std::time::Duration;

use serde::Serialize;
use tokio::time::timeout;

use crate::page;
use crate::supervisor::Shared;

/// A tab and one call. A loaded machine may take longer for the tab.
const LIMIT: Duration = Duration::from_secs(15);

/// Writing systems in use today, with letters that each of their fonts has. The names are those of Unicode.
const IN_USE: [(&str, &str); 40] = [
    ("Latin", "Aßęạ"),
    ("Greek", "Ωή"),
    ("Cyrillic", "Жї"),
    ("Armenian", "Ա"),
    ("Georgian", "ა"),
    ("Hebrew", "א"),
    ("Arabic", "عپٹ"),
    ("Syriac", "ܐ"),
    ("Thaana", "ހ"),
    ("N'Ko", "ߊ"),
    ("Ethiopic", "አ"),
    ("Tifinagh", "ⴰ"),
    ("Vai", "ꔀ"),
    ("Devanagari", "कळ"),
    ("Bengali", "ক"),
    ("Gurmukhi", "ਕ"),
    ("Gujarati", "ક"),
    ("Oriya", "କ"),
    ("Tamil", "க"),
    ("Telugu", "క"),
    ("Kannada", "ಕ"),
    ("Malayalam", "ക"),
    ("Sinhala", "ක"),
    ("Ol Chiki", "ᱚ"),
    ("Meetei Mayek", "ꯀ"),
    ("Tibetan", "ཀ"),
    ("Mongolian", "ᠠ"),
    ("Thai", "ก"),
    ("Lao", "ກ"),
    ("Khmer", "ក"),
    ("Myanmar", "က"),
    ("Javanese", "ꦏ"),
    ("Balinese", "ᬓ"),
    ("Sundanese", "ᮊ"),
    ("Han", "中国漢"),
    ("Kana", "あア"),
    ("Hangul", "가"),
    ("Yi", "ꀀ"),
    ("Cherokee", "Ꭰ"),
    ("Canadian Aboriginal", "ᐁ"),
];

/// The name under which emoji are reported beside the writing systems.
const EMOJI: (&str, &str) = ("emoji", "😀🧿");

#[derive(Serialize)]
struct Texts<'a> {
    texts: &'a [&'a str],
}

/// The names of the writing systems for which no font has glyphs. `None` if the browser did not answer.
pub(crate) async fn without_glyphs(shared: &Shared) -> Option<Vec<&'static str>> {
    let systems: Vec<(&'static str, &'static str)> = IN_USE.into_iter().chain([EMOJI]).collect();
    let texts: Vec<&str> = systems.iter().map(|(_, letters)| *letters).collect();
    let lacking: Vec<String> = timeout(LIMIT, async {
        let lease = shared.lease(0).await.ok()?;
        page::call_script(lease.tab(), LIMIT, "textsWithoutGlyphs", &Texts { texts: &texts }).await.ok()?
    })
    .await
    .ok()??;
    let is_lacking = |letters: &str| lacking.iter().any(|text| text == letters);
    Some(systems.into_iter().filter(|(_, letters)| is_lacking(letters)).map(|(name, _)| name).collect())
}

/// The number of writing systems that are looked at, emoji included.
pub(crate) const COUNT: usize = IN_USE.len() + 1;
