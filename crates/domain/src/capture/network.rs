//! What a page may not load, and where its visitor is.

use grabd_options::{Object, Value};

use crate::faults::{Fault, Field};

/// Types of requests that can be blocked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum RequestType {
    Image,
    Media,
    Font,
    Stylesheet,
    Script,
    /// Data that scripts request.
    Xhr,
    /// Documents of iframes.
    Frame,
    Websocket,
}

impl RequestType {
    /// All types, in the order in which they are stored.
    pub const ALL: [Self; 8] =
        [Self::Image, Self::Media, Self::Font, Self::Stylesheet, Self::Script, Self::Xhr, Self::Frame, Self::Websocket];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Media => "media",
            Self::Font => "font",
            Self::Stylesheet => "stylesheet",
            Self::Script => "script",
            Self::Xhr => "xhr",
            Self::Frame => "frame",
            Self::Websocket => "websocket",
        }
    }
}

/// Content that can be kept out of pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BlockedContent {
    /// What the operator's list of ads names.
    Ads,
    /// What the operator's list of trackers names.
    Trackers,
    /// Dialogs that ask for consent to cookies.
    CookieBanners,
    /// Chat widgets.
    Chats,
    /// Share bars and buttons of social networks.
    Social,
}

impl BlockedContent {
    /// All of it, in the order in which it is stored.
    pub const ALL: [Self; 5] = [Self::Ads, Self::Trackers, Self::CookieBanners, Self::Chats, Self::Social];

    /// Its name in the APIs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ads => "ads",
            Self::Trackers => "trackers",
            Self::CookieBanners => "cookie_banners",
            Self::Chats => "chats",
            Self::Social => "social",
        }
    }

    /// Whether it can be blocked only with a list of the operator.
    pub const fn needs_list(self) -> bool {
        match self {
            Self::Ads | Self::Trackers => true,
            Self::CookieBanners | Self::Chats | Self::Social => false,
        }
    }
}

/// What a page may not load, its own document excepted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Blocking {
    /// Types of requests, in the order of [`RequestType::ALL`].
    pub types: Vec<RequestType>,
    /// Patterns of URLs.
    pub urls: Vec<String>,
    /// Kinds of content, in the order of [`BlockedContent::ALL`].
    pub contents: Vec<BlockedContent>,
}

impl Blocking {
    /// None if a type or a kind of content is not known.
    pub(super) fn of(types: Option<&[String]>, urls: Option<&[String]>, contents: Option<&[String]>) -> Option<Self> {
        let types = types.unwrap_or_default();
        if !types.iter().all(|name| RequestType::ALL.iter().any(|of| of.as_str() == name)) {
            return None;
        }
        let is_named = |of: &RequestType| types.iter().any(|name| name == of.as_str());
        let types = RequestType::ALL.into_iter().filter(is_named).collect();
        let named = contents.unwrap_or_default();
        if !named.iter().all(|name| BlockedContent::ALL.iter().any(|of| of.as_str() == name)) {
            return None;
        }
        let contents = BlockedContent::ALL.into_iter().filter(|of| named.iter().any(|name| name == of.as_str()));
        Some(Self { types, urls: urls.unwrap_or_default().to_vec(), contents: contents.collect() })
    }

    /// Whether content of this kind is kept out.
    pub fn has_content(&self, of: BlockedContent) -> bool {
        self.contents.contains(&of)
    }

    /// Checks that there are filter lists for what is blocked. `listed` is the content for which there are.
    ///
    /// # Errors
    /// If there is none, with what the operator must do.
    pub fn check_lists(&self, listed: &[BlockedContent]) -> Result<(), Fault> {
        match self.contents.iter().find(|of| of.needs_list() && !listed.contains(of)) {
            None => Ok(()),
            Some(of) => {
                let name = of.as_str();
                let allowed = format!(
                    "without \"{name}\": this service has no filter list for it. Its operator must put {name}.txt into the \
                     directory of `browser.filter_lists` and start it again"
                );
                Err(Fault::BadRequest(Field::new("block", name, allowed)))
            }
        }
    }

    /// Whether anything is blocked.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether a request of this type is blocked, whatever its URL.
    pub fn has_type(&self, of: RequestType) -> bool {
        self.types.contains(&of)
    }

    /// Whether the URL matches one of the patterns.
    pub fn has_url(&self, url: &str) -> bool {
        self.urls.iter().any(|pattern| matches(pattern, url))
    }
}

/// Whether the whole text matches the pattern, in which `*` stands for any characters. In linear time for each part.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let Some(last) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        match rest.split_once(part) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last)
}

/// A position on the earth.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Geolocation {
    latitude_micros: i32,
    longitude_micros: i32,
    accuracy_millis: i32,
}

/// The accuracy of a position without one, in metres.
const DEFAULT_ACCURACY: f64 = 10.0;

impl Geolocation {
    /// From an option. None if a member is missing or out of range.
    pub(super) fn of(object: &Object) -> Option<Self> {
        let number = |name: &str, unit: f64| fixed(object.get(name)?.as_f64()?, unit);
        let accuracy = match object.get("accuracy") {
            Some(_) => number("accuracy", 1e3),
            None => fixed(DEFAULT_ACCURACY, 1e3),
        };
        Some(Self {
            latitude_micros: number("latitude", 1e6)?,
            longitude_micros: number("longitude", 1e6)?,
            accuracy_millis: accuracy?,
        })
    }

    /// As an option.
    pub(super) fn to_object(self) -> Object {
        let mut members = vec![("latitude", self.latitude()), ("longitude", self.longitude())];
        if self.accuracy().to_bits() != DEFAULT_ACCURACY.to_bits() {
            members.push(("accuracy", self.accuracy()));
        }
        members.into_iter().map(|(name, value)| (name.to_owned(), Value::Number(value))).collect()
    }

    /// Degrees north of the equator.
    pub fn latitude(self) -> f64 {
        f64::from(self.latitude_micros) / 1e6
    }

    /// Degrees east of Greenwich.
    pub fn longitude(self) -> f64 {
        f64::from(self.longitude_micros) / 1e6
    }

    /// In metres.
    pub fn accuracy(self) -> f64 {
        f64::from(self.accuracy_millis) / 1e3
    }
}

/// A number as a multiple of a fraction of one, so that equal positions have equal fingerprints.
fn fixed(value: f64, unit: f64) -> Option<i32> {
    let scaled = (value * unit).round();
    #[expect(clippy::cast_possible_truncation, reason = "the range is checked")]
    (f64::from(i32::MIN)..=f64::from(i32::MAX)).contains(&scaled).then_some(scaled as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_stand_for_the_whole_url() {
        for (pattern, url, is_match) in [
            ("*", "https://a.example/", true),
            ("https://a.example/*", "https://a.example/x?y", true),
            ("https://a.example/*", "https://b.example/?https://a.example/", false),
            ("*://*.a.example/*", "https://cdn.a.example/x", true),
            ("*://*.a.example/*", "https://a.example/x", false),
            ("*.mp4", "https://a.example/film.mp4", true),
            ("*.mp4", "https://a.example/film.mp4?x", false),
            ("https://a.example/?a=b", "https://a.example/?a=b", true),
            ("https://a.example/?a=b", "https://a.example/xa=b", false),
            ("a*b*a", "aba", true),
            ("a*a", "a", false),
            ("**", "", true),
        ] {
            assert_eq!(matches(pattern, url), is_match, "{pattern} {url}");
        }
    }

    #[test]
    fn content_with_a_list_of_its_own_needs_none_of_the_operator() {
        let blocking = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            Blocking::of(None, None, Some(&words)).unwrap()
        };
        assert!(blocking(&["social", "chats", "cookie_banners"]).check_lists(&[]).is_ok());
        assert!(blocking(&["chats", "ads"]).check_lists(&[BlockedContent::Trackers]).is_err());
        let words = BlockedContent::ALL.map(BlockedContent::as_str);
        let Some(grabd_options::Kind::Words(all)) = grabd_options::find("block").map(|option| option.kind) else {
            panic!("words")
        };
        assert_eq!(all, words);
    }

    #[test]
    fn positions_survive_as_options() {
        let number = |(name, value): (&str, f64)| (name.to_owned(), Value::Number(value));
        for members in [
            vec![("latitude", 48.208_2), ("longitude", -16.373_8)],
            vec![("accuracy", 0.0), ("latitude", -90.0), ("longitude", 180.0)],
            vec![("accuracy", 100_000.0), ("latitude", 0.0), ("longitude", 0.0)],
        ] {
            let object: Object = members.into_iter().map(number).collect();
            assert_eq!(Geolocation::of(&object).unwrap().to_object(), object);
        }
    }
}
