//! A grab in the gallery, and its changes.

use askama::Template;
use grabd_domain::capture::CaptureSpec;
use grabd_domain::grabs::Grab;
use grabd_engine::grabs::{THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH};
use grabd_options::{CaptureOption, Kind, TABLE};

use super::view::{ImageState, View};
use crate::team::TeamContext;

/// A grab in the gallery.
pub(crate) struct Card {
    pub(crate) view: View,
    /// The outline of the sign of a tile without an image, in a square of 24 units.
    pub(crate) sign: &'static str,
    pub(crate) width: u32,
    pub(crate) height: u32,
    /// Options that make the capture differ from others of its page, such as `phone · dark · full page`. May be empty.
    pub(crate) tags: String,
}

const CLOCK: &str = "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M12 7v5l3.5 2";
const WINDOW: &str = "M3 5h18v14H3zM3 9.5h18M7 14h6";
const BIN: &str = "M4 7h16M9 7V4h6v3M6 7l1 13h10l1-13";
const NO_ENTRY: &str = "M12 3a9 9 0 1 0 0 18a9 9 0 1 0 0-18M5.6 5.6l12.8 12.8";
const WARNING: &str = "M12 3.5L2.5 20h19zM12 10v4.5M12 17v.5";

/// A changed card, and a status message for screen readers.
#[derive(Template)]
#[template(path = "card_update.html")]
pub(super) struct CardUpdate {
    card: Card,
}

/// The cards of captures that were made since the gallery was opened.
#[derive(Template)]
#[template(path = "grabs_new.html")]
pub(super) struct NewCards {
    pub(super) cards: Vec<Card>,
    /// Whether there are more than these.
    pub(super) has_more: bool,
}

impl CardUpdate {
    pub(super) fn of(grab: &Grab, at: &TeamContext) -> Self {
        Self { card: Card::of(grab, at) }
    }
}

impl Card {
    pub(crate) fn of(grab: &Grab, at: &TeamContext) -> Self {
        let view = View::of(grab, at);
        let sign = match view.tile {
            "queued" => CLOCK,
            "rendering" => WINDOW,
            "deleted" => BIN,
            "blocked" => NO_ENTRY,
            _ => WARNING,
        };
        Self { sign, width: THUMBNAIL_WIDTH, height: THUMBNAIL_HEIGHT, tags: tags(&grab.spec), view }
    }
}

/// The tags of the options that differ from their defaults, and the size of the window if no device has it. Those that forms
/// show first come first.
fn tags(spec: &CaptureSpec) -> String {
    let request = spec.to_minimal_request();
    let tag = |option: &&CaptureOption| {
        let value = request.get(option.name).filter(|value| !option.is_default(value))?;
        let mut text = option.value_text(&value);
        if matches!(option.kind, Kind::Word(_) | Kind::Words(_)) {
            text = text.to_lowercase();
        }
        Some(option.form.tag.replace("{}", &text))
    };
    let mut tagged: Vec<_> = TABLE.iter().filter(|option| !option.form.tag.is_empty() && !option.is_secret).collect();
    tagged.sort_by_key(|option| (option.form.rank == 0, option.form.rank));
    let size = format!("{} × {}", spec.viewport.width(), spec.viewport.height());
    let size = (spec.viewport != spec.device.defaults().0).then_some(size);
    tagged.iter().filter_map(tag).chain(size).collect::<Vec<_>>().join(" · ")
}

#[cfg(test)]
mod tests {
    use grabd_domain::capture::CaptureRequest;

    use super::*;

    fn tags_of(fields: &[(&str, &str)]) -> String {
        let mut request = CaptureRequest { url: Some("https://example.com/".to_owned()), ..CaptureRequest::default() };
        for (name, text) in fields {
            let value = grabd_options::find(name).and_then(|option| option.kind.parse(text)).unwrap();
            assert!(request.set(name, value), "{name}");
        }
        tags(&CaptureSpec::parse(&request).unwrap())
    }

    #[test]
    fn tags_name_options_that_differ_from_their_defaults() {
        let none: &[(&str, &str)] = &[];
        for (fields, expected) in [
            (none, ""),
            (&[("width", "1280"), ("format", "png"), ("device", "desktop"), ("full_page", "false")], ""),
            (&[("device", "phone"), ("color_scheme", "dark"), ("full_page", "true")], "phone · dark · full page"),
            (&[("width", "800"), ("scale", "2")], "2× · 800 × 720"),
            (&[("block", "ads,cookie_banners"), ("selector", "main")], "without ads, cookie banners · element"),
            (&[("javascript", "false"), ("format", "webp"), ("locale", "de-AT")], "webp · de-AT · no scripts"),
        ] {
            assert_eq!(tags_of(fields), expected, "{fields:?}");
        }
    }
}
