//! Texts about options for people who fill in a form: labels instead of names, and what to enter instead of types.

use crate::{CaptureOption, Kind, TABLE, Value, find};

/// What the address of a page looks like, as the end of "Enter …".
pub const WEB_ADDRESS: &str = "a web address such as example.com";

/// A text of the APIs, without backticks, and with the labels of options instead of their names.
pub fn text(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for (at, part) in text.split('`').enumerate() {
        match (at % 2 == 1, find(part)) {
            (true, Some(option)) => plain += &quoted(option.form_label()),
            (true, None) => plain += &quoted(part),
            (false, _) => plain += &without_names(part),
        }
    }
    plain
}

/// A text with the labels of the options whose names are no words of the language.
fn without_names(text: &str) -> String {
    let is_name_char = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut plain = text.to_owned();
    for option in TABLE.iter().filter(|option| option.name.contains('_')) {
        let Some(at) = plain.find(option.name) else { continue };
        let end = at + option.name.len();
        let is_whole = !plain[..at].ends_with(is_name_char) && !plain[end..].starts_with(is_name_char);
        if is_whole {
            plain.replace_range(at..end, &quoted(option.form_label()));
        }
    }
    plain
}

fn quoted(text: &str) -> String {
    format!("“{text}”")
}

impl CaptureOption {
    /// What it is called in forms.
    pub const fn form_label(&self) -> &'static str {
        if self.form.label.is_empty() { self.label } else { self.form.label }
    }

    /// What one of its words is called in forms.
    pub fn word_label(&self, word: &str) -> Option<&'static str> {
        let (Kind::Word(words) | Kind::Words(words)) = self.kind else { return None };
        let at = words.iter().position(|other| *other == word)?;
        Some(self.form.words.get(at).copied().unwrap_or(words[at]))
    }

    /// The default, as text, if the option that may bring another one has this value.
    pub fn default_with(&self, other: &str) -> &'static str {
        let brought = self.form.defaults.iter().find(|(value, _)| *value == other);
        brought.map_or(self.default.trim_matches('"'), |(_, default)| default)
    }

    /// The example as it is entered in a form.
    pub fn example_text(&self) -> String {
        serde_json::from_str(self.example).map(|value| self.kind.to_text(&value)).unwrap_or_default()
    }

    /// A value as text, with the names of words that forms use.
    pub fn value_text(&self, value: &Value) -> String {
        let named = |word: &String| self.word_label(word).unwrap_or(word).to_owned();
        match (self.kind, value) {
            (Kind::Word(_), Value::Text(word)) => named(word),
            (Kind::Words(_), Value::Texts(words)) => words.iter().map(named).collect::<Vec<_>>().join(", "),
            (kind, value) => kind.to_text(value),
        }
    }

    /// What can be entered in a form, as the end of "must be …".
    pub fn form_allowed(&self) -> String {
        let such_as = |what: &str| format!("{what} such as {}", self.example_text().replace('\n', ", "));
        let names =
            |words: &[&str]| words.iter().filter_map(|word| self.word_label(word)).collect::<Vec<_>>().join(", ");
        match self.kind {
            Kind::Integer { min, max, .. } => format!("a whole number from {min} to {max}"),
            Kind::Number { min, max } => format!("a number from {min} to {max}"),
            Kind::Flag => "on or off".to_owned(),
            Kind::Word(words) => format!("one of these: {}", names(words)),
            Kind::Words(words) => format!("some of these: {}", names(words)),
            Kind::Url => WEB_ADDRESS.to_owned(),
            Kind::Selector => {
                let chars = self.kind.max_chars().unwrap_or_default();
                format!("{} of at most {chars} characters", such_as("a CSS selector"))
            }
            Kind::Selectors { max } => format!("at most {max} CSS selectors, one on each line"),
            Kind::TimeZone => such_as("a time zone"),
            Kind::Locale => such_as("a language"),
            Kind::Text { max, .. } | Kind::Chars { max, .. } => format!("a text of at most {max} characters"),
            Kind::Patterns { max } => format!("at most {max} patterns of URLs, one on each line"),
            Kind::Rectangle => such_as("x,y,width,height"),
            Kind::Sizes { max, .. } => format!("{}, at most {max}", such_as("sizes")),
            Kind::Choices { max, .. } => format!("at most {max} JSON objects, one on each line"),
            Kind::Objects { max, .. } | Kind::Headers { max, .. } | Kind::Labels { max, .. } => {
                format!("at most {max} lines such as {}", self.example_text().lines().next().unwrap_or_default())
            }
            Kind::Statuses { max } => format!("at most {max} of 4xx, 5xx and numbers such as 404"),
            Kind::RequestFailure => "4xx, 5xx, failed or a number such as 404".to_owned(),
            Kind::Object { .. } | Kind::PageRanges | Kind::GrabId | Kind::ProxyId => such_as("a text"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_name_options_by_their_labels() {
        for (api, plain) in [
            ("left out where `selector` is used", "left out where “Element” is used"),
            ("left out where `also` has no \"pdf\"", "left out where “Also” has no \"pdf\""),
            ("Ignored when full_page is true.", "Ignored when “Full page” is true."),
            ("`auto` until it has settled", "“auto” until it has settled"),
            ("not my_full_page or full_pages", "not my_full_page or full_pages"),
            ("Show the page as on this device.", "Show the page as on this device."),
        ] {
            assert_eq!(text(api), plain);
        }
    }

    #[test]
    fn every_option_says_what_to_enter_without_names_of_the_apis() {
        for option in TABLE {
            let allowed = option.form_allowed();
            assert!(!allowed.contains(['`', '"', '{', '\n']) && !allowed.is_empty(), "{}: {allowed}", option.name);
        }
        let allowed = |name: &str| find(name).unwrap().form_allowed();
        assert_eq!(allowed("width"), "a whole number from 320 to 1920");
        assert!(allowed("device").starts_with("one of these: Desktop, Phone, Tablet, iPhone SE, "));
        assert_eq!(allowed("block"), "some of these: Ads, Trackers, Cookie banners, Chats, Share bars");
        assert_eq!(allowed("clip"), "x,y,width,height such as 0,600,800,600");
    }

    #[test]
    fn details_for_forms_fit_their_options() {
        let mut ranks: Vec<u8> = TABLE.iter().map(|option| option.form.rank).filter(|rank| *rank > 0).collect();
        ranks.sort_unstable();
        assert_eq!(ranks, (1..).take(ranks.len()).collect::<Vec<u8>>());
        for option in TABLE {
            let form = option.form;
            if let Kind::Word(words) | Kind::Words(words) = option.kind {
                assert!(form.words.is_empty() || form.words.len() == words.len(), "{}", option.name);
            } else {
                assert!(form.words.is_empty(), "{}", option.name);
            }
            assert!(form.if_empty.is_empty() || option.default.is_empty(), "{} has a default", option.name);
            assert_eq!(form.defaults.is_empty(), option.default_of.is_empty(), "{}", option.name);
            for (_, default) in form.defaults {
                let value = option.kind.parse(default).unwrap();
                assert_eq!(option.check(&value), Ok(()), "{}: {default}", option.name);
            }
        }
    }

    #[test]
    fn values_are_shown_by_the_names_of_their_words() {
        let shown = |name: &str, json: &str| {
            let option = find(name).unwrap();
            option.value_text(&serde_json::from_str(json).unwrap())
        };
        assert_eq!(shown("block", "[\"ads\", \"cookie_banners\"]"), "Ads, Cookie banners");
        assert_eq!(shown("format", "\"webp\""), "WebP");
        assert_eq!(shown("width", "800"), "800");
        assert_eq!(find("height").unwrap().default_with("phone"), "844");
        assert_eq!(find("height").unwrap().default_with("desktop"), "720");
        assert_eq!(find("scale").unwrap().default_with("pixel-8"), "2.63");
    }
}
