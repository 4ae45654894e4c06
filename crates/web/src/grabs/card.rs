//! A grab in the gallery, and its changes.

use askama::Template;
use grabd_domain::grabs::Grab;
use grabd_engine::grabs::{THUMBNAIL_HEIGHT, THUMBNAIL_WIDTH};

use super::view::{ImageState, View};
use crate::team::TeamContext;

/// A grab in the gallery.
pub(super) struct Card {
    pub(super) view: View,
    /// The outline of the sign of a tile without an image, in a square of 24 units.
    pub(super) sign: &'static str,
    pub(super) width: u32,
    pub(super) height: u32,
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
    pub(super) fn of(grab: &Grab, at: &TeamContext) -> Self {
        let view = View::of(grab, at);
        let sign = match view.tile {
            "queued" => CLOCK,
            "rendering" => WINDOW,
            "deleted" => BIN,
            "blocked" => NO_ENTRY,
            _ => WARNING,
        };
        Self { view, sign, width: THUMBNAIL_WIDTH, height: THUMBNAIL_HEIGHT }
    }
}
