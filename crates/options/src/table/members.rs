//! The members of options that are objects.

use crate::{Kind, Member};

pub(super) const PDF: &[Member] = &[
    Member {
        name: "format",
        kind: Kind::Word(&["a3", "a4", "a5", "letter", "legal", "tabloid"]),
        is_required: false,
        help: "Paper size; `a4` by default.",
    },
    Member { name: "landscape", kind: Kind::Flag, is_required: false, help: "Turn the paper by 90 degrees." },
    Member { name: "single_page", kind: Kind::Flag, is_required: false, help: "One page, as high as the content." },
    Member {
        name: "background",
        kind: Kind::Flag,
        is_required: false,
        help: "Print colours and images of the background; true by default.",
    },
    Member {
        name: "margin_mm",
        kind: Kind::Integer { min: 0, max: 50, unit: "millimetres" },
        is_required: false,
        help: "Margin on all sides in millimetres; 10 by default.",
    },
    Member {
        name: "pages",
        kind: Kind::PageRanges,
        is_required: false,
        help: "The pages to print, such as `1-3, 5`; all by default.",
    },
];

pub(super) const COOKIE: &[Member] = &[
    Member {
        name: "name",
        kind: Kind::Chars { min: 1, max: 256, except: "=; ,\"" },
        is_required: true,
        help: "Name of the cookie.",
    },
    Member {
        name: "value",
        kind: Kind::Chars { min: 0, max: 4096, except: ";" },
        is_required: true,
        help: "Value of the cookie.",
    },
    Member {
        name: "domain",
        kind: Kind::Chars { min: 1, max: 253, except: "; /:" },
        is_required: false,
        help: "Domain that gets the cookie, with its subdomains.",
    },
    Member {
        name: "path",
        kind: Kind::Chars { min: 1, max: 1024, except: ";" },
        is_required: false,
        help: "Path that gets the cookie, with everything below; / if left out.",
    },
    Member { name: "secure", kind: Kind::Flag, is_required: false, help: "Send the cookie over HTTPS only." },
    Member { name: "http_only", kind: Kind::Flag, is_required: false, help: "Hide the cookie from scripts." },
    Member {
        name: "same_site",
        kind: Kind::Word(&["Strict", "Lax", "None"]),
        is_required: false,
        help: "Which requests of other sites have the cookie.",
    },
    Member {
        name: "expires",
        kind: Kind::Integer { min: 0, max: 253_402_300_799, unit: "seconds" },
        is_required: false,
        help: "When the cookie expires, in seconds since 1970.",
    },
];

pub(super) const VIEWPORT: &[Member] = &[
    Member {
        name: "width",
        kind: Kind::Integer { min: 320, max: 1920, unit: "pixels" },
        is_required: true,
        help: "Width in CSS pixels.",
    },
    Member {
        name: "height",
        kind: Kind::Integer { min: 240, max: 1080, unit: "pixels" },
        is_required: true,
        help: "Height in CSS pixels.",
    },
];

pub(super) const THUMBNAIL: &[Member] = &[
    Member {
        name: "width",
        kind: Kind::Integer { min: 16, max: 1024, unit: "pixels" },
        is_required: true,
        help: "Largest width in pixels.",
    },
    Member {
        name: "height",
        kind: Kind::Integer { min: 16, max: 1024, unit: "pixels" },
        is_required: true,
        help: "Largest height in pixels.",
    },
    Member {
        name: "fit",
        kind: Kind::Word(&["contain", "cover"]),
        is_required: false,
        help: "What it shows; `contain` by default.",
    },
];

pub(super) const HIGHLIGHT: &[Member] = &[
    Member {
        name: "selector",
        kind: Kind::Text { max: 1024, is_multiline: false },
        is_required: true,
        help: "CSS selector of the elements.",
    },
    Member {
        name: "label",
        kind: Kind::Chars { min: 1, max: 60, except: ";" },
        is_required: false,
        help: "What is written beside the outlines.",
    },
    Member {
        name: "color",
        kind: Kind::Word(&["red", "orange", "yellow", "green", "blue", "purple", "black", "white"]),
        is_required: false,
        help: "Colour of the outlines; `red` by default.",
    },
];

pub(super) const BASIC_AUTH: &[Member] = &[
    Member {
        name: "username",
        kind: Kind::Chars { min: 0, max: 256, except: ":" },
        is_required: true,
        help: "User name.",
    },
    Member {
        name: "password",
        kind: Kind::Chars { min: 0, max: 1024, except: "" },
        is_required: true,
        help: "Password.",
    },
];

pub(super) const GEOLOCATION: &[Member] = &[
    Member {
        name: "latitude",
        kind: Kind::Number { min: -90.0, max: 90.0 },
        is_required: true,
        help: "Degrees north of the equator.",
    },
    Member {
        name: "longitude",
        kind: Kind::Number { min: -180.0, max: 180.0 },
        is_required: true,
        help: "Degrees east of Greenwich.",
    },
    Member {
        name: "accuracy",
        kind: Kind::Number { min: 0.0, max: 100_000.0 },
        is_required: false,
        help: "Accuracy in metres; 10 if left out.",
    },
];
