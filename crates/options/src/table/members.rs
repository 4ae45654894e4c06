//! The members of options that are objects.

use crate::{Kind, Member};

pub(super) const PDF: &[Member] = &[
    Member {
        name: "format",
        kind: Kind::Word(&["a3", "a4", "a5", "letter", "legal", "tabloid", "a0", "a1", "a2", "a6", "ledger"]),
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
    Member {
        name: "width_mm",
        kind: Kind::Number { min: 25.0, max: 2000.0 },
        is_required: false,
        help: "Width of the paper in millimetres, instead of `format`.",
    },
    Member {
        name: "height_mm",
        kind: Kind::Number { min: 25.0, max: 2000.0 },
        is_required: false,
        help: "Height of the paper in millimetres, together with `width_mm`.",
    },
    Member {
        name: "margin_top_mm",
        kind: Kind::Number { min: 0.0, max: 100.0 },
        is_required: false,
        help: "Margin at the top in millimetres; `margin_mm` by default.",
    },
    Member {
        name: "margin_right_mm",
        kind: Kind::Number { min: 0.0, max: 100.0 },
        is_required: false,
        help: "Margin on the right in millimetres; `margin_mm` by default.",
    },
    Member {
        name: "margin_bottom_mm",
        kind: Kind::Number { min: 0.0, max: 100.0 },
        is_required: false,
        help: "Margin at the bottom in millimetres; `margin_mm` by default.",
    },
    Member {
        name: "margin_left_mm",
        kind: Kind::Number { min: 0.0, max: 100.0 },
        is_required: false,
        help: "Margin on the left in millimetres; `margin_mm` by default.",
    },
    Member {
        name: "scale",
        kind: Kind::Number { min: 0.1, max: 2.0 },
        is_required: false,
        help: "Size of the content; 1 by default.",
    },
    Member {
        name: "header",
        kind: Kind::Chars { min: 1, max: 200, except: ";" },
        is_required: false,
        help: "Text in the top margin, with `{page}`, `{pages}`, `{title}`, `{url}` and `{date}`; `|` separates left, middle and right.",
    },
    Member {
        name: "footer",
        kind: Kind::Chars { min: 1, max: 200, except: ";" },
        is_required: false,
        help: "Text in the bottom margin, as in `header`.",
    },
    Member {
        name: "css_page_size",
        kind: Kind::Flag,
        is_required: false,
        help: "Use the page size of the style sheets, if they have one.",
    },
    Member {
        name: "tagged",
        kind: Kind::Flag,
        is_required: false,
        help: "Add the structure of the document, for screen readers; true by default.",
    },
    Member { name: "outline", kind: Kind::Flag, is_required: false, help: "Add the headings as bookmarks." },
    Member {
        name: "first_page_header",
        kind: Kind::Chars { min: 0, max: 200, except: ";" },
        is_required: false,
        help: "Text in the top margin of the first page, instead of `header`; empty for none.",
    },
    Member {
        name: "first_page_footer",
        kind: Kind::Chars { min: 0, max: 200, except: ";" },
        is_required: false,
        help: "Text in the bottom margin of the first page, instead of `footer`; empty for none.",
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

pub(super) const REQUEST_RULE: &[Member] = &[
    Member {
        name: "url",
        kind: Kind::Text { max: 512, is_multiline: false },
        is_required: true,
        help: "Pattern of the URLs; `*` stands for any characters.",
    },
    Member {
        name: "status",
        kind: Kind::RequestFailure,
        is_required: false,
        help: "`4xx`, `5xx`, a number from 400 to 599, or `failed` without an answer; any of these by default.",
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

/// A selector of a step.
const SELECTOR: Kind = Kind::Text { max: 1024, is_multiline: false };

pub(super) const STEP: &[Member] = &[
    Member { name: "click", kind: SELECTOR, is_required: false, help: "Click this element." },
    Member {
        name: "type",
        kind: Kind::Object { members: STEP_TYPE, separator: ';' },
        is_required: false,
        help: "Replace the content of a field.",
    },
    Member {
        name: "press",
        kind: Kind::Chars { min: 1, max: 40, except: "" },
        is_required: false,
        help: "Press a key, such as `Enter`, or a combination, such as `Control+A`.",
    },
    Member { name: "hover", kind: SELECTOR, is_required: false, help: "Move the mouse over this element." },
    Member {
        name: "select",
        kind: Kind::Object { members: STEP_SELECT, separator: ';' },
        is_required: false,
        help: "Choose an option of a list.",
    },
    Member {
        name: "scroll_to",
        kind: SELECTOR,
        is_required: false,
        help: "Scroll to this element, or to the `top` or the `bottom` of the page.",
    },
    Member { name: "wait_for", kind: SELECTOR, is_required: false, help: "Wait until this element is visible." },
    Member {
        name: "wait_for_text",
        kind: Kind::Text { max: 256, is_multiline: false },
        is_required: false,
        help: "Wait until the page shows this text.",
    },
    Member {
        name: "script",
        kind: Kind::Text { max: 16_384, is_multiline: true },
        is_required: false,
        help: "Run this JavaScript in the page, as the body of an async function.",
    },
    Member {
        name: "drag",
        kind: Kind::Object { members: STEP_DRAG, separator: ';' },
        is_required: false,
        help: "Drag an element to another one with the mouse.",
    },
    Member {
        name: "capture",
        kind: Kind::Chars { min: 1, max: 40, except: "" },
        is_required: false,
        help: "Take a further image now, which has this name.",
    },
];

const STEP_TYPE: &[Member] = &[
    Member { name: "into", kind: SELECTOR, is_required: true, help: "The field." },
    Member {
        name: "text",
        kind: Kind::Text { max: 4096, is_multiline: true },
        is_required: true,
        help: "The new content.",
    },
    Member { name: "secret", kind: Kind::Flag, is_required: false, help: "Leave the text out of error messages." },
];

const STEP_SELECT: &[Member] = &[
    Member { name: "in", kind: SELECTOR, is_required: true, help: "The list: a `<select>`." },
    Member {
        name: "option",
        kind: Kind::Text { max: 1024, is_multiline: false },
        is_required: true,
        help: "The value of the option, or its label.",
    },
];

const STEP_DRAG: &[Member] = &[
    Member { name: "from", kind: SELECTOR, is_required: true, help: "The element to drag." },
    Member { name: "to", kind: SELECTOR, is_required: true, help: "The element to drop it on." },
];
