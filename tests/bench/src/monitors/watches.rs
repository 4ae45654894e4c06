//! The monitors that are compared: what each compares, and what it leaves out.

use serde_json::{Value, json};

use super::changing_site::{Change, Moving};

/// The size of the captures, in CSS pixels.
const SIZE: (u32, u32) = (1000, 720);

/// How a page is watched.
pub(super) struct Watch {
    pub(super) name: &'static str,
    /// The changes that it can find.
    pub(super) finds: &'static [Change],
    compare: fn() -> Value,
    /// Elements that the capture removes.
    removed: &'static [&'static str],
}

pub(super) static WATCHES: [Watch; 7] = [
    Watch { name: "image", finds: &Change::ALL, compare: || json!({ "image": {} }), removed: &[] },
    Watch {
        name: "image, threshold 0",
        finds: &Change::ALL,
        compare: || json!({ "image": { "threshold_ratio": 0.0 } }),
        removed: &[],
    },
    Watch {
        name: "image, threshold 0, with ignored areas",
        finds: &Change::ALL,
        // Two selectors, and the rectangles of the advertisement and the carousel.
        compare: || {
            json!({ "image": { "threshold_ratio": 0.0, "ignore": [
                ".banner",
                ".date",
                { "x": 680, "y": 80, "width": 300, "height": 250 },
                { "x": 20, "y": 480, "width": 960, "height": 160 },
            ] } })
        },
        removed: &[],
    },
    Watch { name: "text", finds: &[Change::Word, Change::Link], compare: || json!({ "text": {} }), removed: &[] },
    Watch {
        name: "text, with ignored patterns",
        finds: &[Change::Word, Change::Link],
        compare: || {
            json!({ "text": { "ignore_patterns": [
                "Today only: [0-9]+ percent off",
                "Advertisement: offer number [0-9]+",
                "Updated [0-9]+ November, [0-9:]+",
            ] } })
        },
        removed: &[],
    },
    Watch { name: "elements", finds: &[Change::Link], compare: || json!({ "elements": true }), removed: &[] },
    Watch {
        name: "elements, with removed parts",
        finds: &[Change::Link],
        compare: || json!({ "elements": true }),
        removed: &[".banner", ".advertisement", ".carousel"],
    },
];

impl Watch {
    /// The request for a monitor of a page. It runs by itself only once.
    pub(super) fn request(&self, moving: Moving, url: &str) -> Value {
        let (width, height) = SIZE;
        let mut capture = json!({ "url": url, "width": width, "height": height });
        if !self.removed.is_empty() {
            capture["remove"] = json!(self.removed);
        }
        let name = format!("{}: {}", self.name, moving.name());
        json!({ "name": name, "capture": capture, "every": "30d", "compare": (self.compare)() })
    }
}
