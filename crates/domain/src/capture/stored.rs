//! The stored form of specs, and its long options, which are not kept for as long as the others.

use std::collections::BTreeMap;

use grabd_options::{CaptureRequest, TABLE, Value};
use serde::ser::SerializeMap as _;
use serde::{Deserialize, Serialize};

use super::{CaptureSpec, Secrets, Tolerance};

/// Options whose stored text is longer than this are not kept for as long as the others.
pub const LONG_OPTION_BYTES: usize = 256;

/// Options that are kept however long they are: they identify the grab for its caller, or say which part of the page the image
/// shows.
const ALWAYS_KEPT: [&str; 3] = ["url", "selector", "metadata"];

/// The member with the names and digests of options that are no longer kept.
const OMITTED: &str = "omitted_options";

/// The member with the names of members of the request that are no options.
const UNKNOWN: &str = "unknown_members";

/// The member with what does not count in the comparison with an earlier image.
const TOLERANCE: &str = "tolerance";

/// Options that are stored even if they have no value. Later options are left out if they have their default. The
/// fingerprints of idempotency keys depend on the stored form, so this list never changes.
const ALWAYS_STORED: [&str; 7] = ["url", "width", "height", "format", "full_page", "delay_ms", "selector"];

/// The stored form: the options by name, in the order of their table. Of secret options it only says that they were
/// given, with `true`.
impl Serialize for CaptureSpec {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let request = self.to_request();
        let mut map = serializer.serialize_map(None)?;
        for option in TABLE {
            let value = match option.is_secret {
                true => self.secrets.given().contains(&option.name).then_some(Value::Flag(true)),
                false => request.get(option.name),
            };
            if value.is_some() || ALWAYS_STORED.contains(&option.name) {
                map.serialize_entry(option.name, &value)?;
            }
        }
        if !self.omitted.is_empty() {
            map.serialize_entry(OMITTED, &self.omitted)?;
        }
        if !self.unknown.is_empty() {
            map.serialize_entry(UNKNOWN, &self.unknown)?;
        }
        if let Some(tolerance) = self.tolerance.to_value() {
            map.serialize_entry(TOLERANCE, &tolerance)?;
        }
        map.end()
    }
}

/// Reads every stored form, of this and of earlier versions. Options of later versions are ignored.
impl<'de> Deserialize<'de> for CaptureSpec {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let stored = BTreeMap::<String, Option<Value>>::deserialize(deserializer)?;
        let mut request = CaptureRequest::default();
        let (mut secrets, mut omitted) = (Vec::new(), BTreeMap::new());
        let mut tolerance = Tolerance::default();
        for (name, value) in stored {
            if name == OMITTED {
                omitted = value.map_or(BTreeMap::new(), digests);
            } else if name == UNKNOWN {
                if let Some(Value::Texts(names)) = value {
                    request.unknown = names;
                }
            } else if name == TOLERANCE {
                tolerance = value.as_ref().and_then(Tolerance::of_value).unwrap_or_default();
            } else if let Some(option) = grabd_options::find(&name).filter(|option| option.is_secret) {
                secrets.push(option.name);
            } else if let Some(value) = value
                && !request.set(&name, value)
                && grabd_options::find(&name).is_some()
            {
                return Err(serde::de::Error::custom(format!("{name} has another type")));
            }
        }
        let spec = Self::restore(&request).ok_or_else(|| serde::de::Error::custom("not a stored capture spec"))?;
        Ok(Self { secrets: Secrets::of_names(&secrets), omitted, tolerance, ..spec })
    }
}

/// The names and digests of options that are no longer kept.
fn digests(value: Value) -> BTreeMap<String, String> {
    let Value::Object(digests) = value else { return BTreeMap::new() };
    let text = |value| if let Value::Text(text) = value { Some(text) } else { None };
    digests.into_iter().filter_map(|(name, digest)| Some((name, text(digest)?))).collect()
}

impl CaptureSpec {
    /// The spec without the values of its long options. `digest` is the SHA-256 of a text in hexadecimal digits; of a list, that
    /// of its JSON. `None` if it has no long option.
    #[must_use]
    pub fn without_long_options(&self, digest: impl Fn(&str) -> String) -> Option<Self> {
        let request = self.to_request();
        let (mut kept, mut omitted) = (CaptureRequest::default(), self.omitted.clone());
        for option in TABLE.iter().filter(|option| !option.is_secret) {
            let Some(value) = request.get(option.name) else { continue };
            let text = value.to_string();
            if text.len() > LONG_OPTION_BYTES && !ALWAYS_KEPT.contains(&option.name) {
                let digest = if let Value::Text(text) = &value { digest(text) } else { digest(&text) };
                omitted.insert(option.name.to_owned(), digest);
            } else if !kept.set(option.name, value) {
                return None;
            }
        }
        if omitted.len() == self.omitted.len() {
            return None;
        }
        let (secrets, unknown) = (self.secrets.clone(), self.unknown.clone());
        let tolerance = self.tolerance.clone();
        Some(Self { secrets, omitted, unknown, tolerance, ..Self::restore(&kept)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> String {
        format!("digest of {} bytes", text.len())
    }

    fn spec(change: impl FnOnce(&mut CaptureRequest)) -> CaptureSpec {
        let mut request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        change(&mut request);
        CaptureSpec::parse(&request).unwrap()
    }

    #[test]
    fn long_options_are_left_out_and_others_stay() {
        let long = || "x".repeat(LONG_OPTION_BYTES);
        let spec = spec(|request| {
            request.url = Some(format!("https://example.com/{}", long()));
            (request.script, request.css) = (Some(long()), Some("a {}".into()));
            (request.selector, request.wait_for) = (Some(format!("#{}", long())), Some(format!("#{}", long())));
            request.metadata = Some([("a".to_owned(), Value::Text(long()))].into());
            request.hide = Some(vec!["a".into(); 20]);
            request.remove = Some(vec!["a".repeat(30); 10]);
            (request.padding, request.full_page) = (Some(7), Some(true));
            request.html = None;
        });
        let kept = spec.without_long_options(digest).unwrap();
        assert_eq!(kept.omitted.keys().collect::<Vec<_>>(), ["remove", "script", "wait_for"]);
        assert_eq!(kept.omitted["script"], format!("digest of {LONG_OPTION_BYTES} bytes"));
        assert_eq!((&kept.changes.script, &kept.wait_for, kept.changes.remove.len()), (&None, &None, 0));
        let with_all = CaptureSpec {
            omitted: BTreeMap::new(),
            changes: spec.changes.clone(),
            wait_for: spec.wait_for.clone(),
            ..kept.clone()
        };
        assert_eq!(with_all, spec);
        assert_eq!(kept.without_long_options(digest), None, "a second time");
        // Also after it was stored.
        let stored = serde_json::to_string(&kept).unwrap();
        assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), kept);
        assert!(stored.len() < serde_json::to_string(&spec).unwrap().len());
    }

    #[test]
    fn names_of_secret_options_stay() {
        let headers = [("X-Token".to_owned(), Value::Text("hidden".into()))].into();
        let stored = spec(|request| {
            request.headers = Some(grabd_options::Secret(headers));
            request.script = Some("x".repeat(300));
        })
        .without_secrets();
        let kept = stored.without_long_options(digest).unwrap();
        assert_eq!(kept.secrets.given(), ["headers"]);
        assert_eq!(kept.to_request().script, None);
    }

    #[test]
    fn tolerance_is_stored_with_the_spec_and_left_out_if_everything_counts() {
        use grabd_options::Rectangle;

        let area = Rectangle { x: 0, y: 10, width: 300, height: 20 };
        let plain = spec(|_| ());
        for tolerance in [
            Tolerance { ignored: vec![area, Rectangle { x: 5, ..area }], min_region_px: 0 },
            Tolerance { ignored: Vec::new(), min_region_px: 400 },
            Tolerance { ignored: vec![area], min_region_px: 1_000_000 },
        ] {
            let with = CaptureSpec { tolerance, ..plain.clone() };
            let stored = serde_json::to_string(&with).unwrap();
            assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), with, "{stored}");
        }
        assert!(!serde_json::to_string(&plain).unwrap().contains(TOLERANCE));
    }

    #[test]
    fn spec_without_long_options_is_stored_as_before() {
        let short = spec(|request| request.css = Some("a {}".into()));
        assert_eq!(short.without_long_options(digest), None);
        assert!(!serde_json::to_string(&short).unwrap().contains(OMITTED));
    }

    #[test]
    fn names_of_unknown_members_are_stored() {
        let named = spec(|request| request.unknown = vec!["widht".into(), "foo".into(), "x".repeat(100)]);
        assert_eq!(named.unknown, ["foo".to_owned(), "widht".to_owned(), "x".repeat(64)]);
        let warnings: Vec<String> = named.unknown_warnings().take(2).collect();
        assert_eq!(warnings, ["unknown_option:foo", "unknown_option:widht (did you mean width?)"]);
        let stored = serde_json::to_string(&named).unwrap();
        assert_eq!(serde_json::from_str::<CaptureSpec>(&stored).unwrap(), named);
        let plain = spec(|_| ());
        assert!(!serde_json::to_string(&plain).unwrap().contains(UNKNOWN));
        assert_eq!((named.image_options(), named.without_unknown()), (plain.clone(), plain));
        let long = spec(|request| {
            (request.script, request.unknown) = (Some("x".repeat(300)), vec!["foo".into()]);
        });
        assert_eq!(long.without_long_options(digest).unwrap().unknown, ["foo"]);
    }

    #[test]
    fn longest_request_is_short_without_its_long_options() {
        let emoji = |chars: usize| "😀".repeat(chars);
        let selectors = |count: usize| Some(vec![emoji(500); count]);
        let spec = spec(|request| {
            request.url = Some(format!("https://example.com/{}", "x".repeat(4000)));
            (request.css, request.script) = (Some(emoji(16_384)), Some(emoji(16_384)));
            (request.hide, request.remove, request.click) = (selectors(20), selectors(20), selectors(10));
            request.wait_for = Some(emoji(500));
            request.block_urls = Some(vec![format!("https://{}", emoji(400)); 50]);
            request.user_agent = Some("x".repeat(512));
            request.metadata = Some((0..8).map(|n| (format!("a{n}"), Value::Text(emoji(256)))).collect());
        });
        let bytes = |spec: &CaptureSpec| serde_json::to_string(spec).unwrap().len();
        assert!(bytes(&spec) > 300_000, "{}", bytes(&spec));
        let kept = bytes(&spec.without_long_options(digest).unwrap());
        assert!(kept < 16_000, "{kept}");
    }
}
