//! What a placeholder looks like: a sheet of drafting paper with the word TEST, the target's host and the size.

use std::fmt::Write;
use std::sync::Arc;

use grabd_domain::capture::CaptureSpec;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, Options, Tree, fontdb};

const REGULAR: &[u8] = include_bytes!("../../data/fonts/JetBrainsMono-Regular.ttf");
const EXTRA_BOLD: &[u8] = include_bytes!("../../data/fonts/JetBrainsMono-ExtraBold.ttf");
/// Width of every character of both fonts, as a part of the font size: this is what makes fitting exact.
const ADVANCE: f32 = 0.6;
/// Height of capital letters, as a part of the font size.
const CAPITALS: f32 = 0.73;
/// About the side of a square of the grid in pixels; the squares are stretched a little to come out even.
const GRID: f32 = 40.0;

const DESK: &str = "#f1eee7";
const SHEET: &str = "#fbfaf7";
const CARD: &str = "#ffffff";
const LINE: &str = "#efece4";
const EDGE: &str = "#d6d1c4";
const INK: &str = "#1d2733";
const QUIET: &str = "#767268";
const ACCENT: &str = "#e4572e";

/// Everything the pixels depend on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Drawing {
    host: String,
    width: u32,
    /// Height of the viewport in pixels; a full page is longer.
    fold: u32,
    height: u32,
}

impl Drawing {
    pub(super) fn of(spec: &CaptureSpec) -> Self {
        let (width, fold) = (spec.viewport.width(), spec.viewport.height());
        Self { host: spec.url.host().to_string(), width, fold, height: spec.reported_height() }
    }

    /// The picture as SVG. The host is the caller's text: it is shortened and escaped before it gets in here.
    fn svg(&self) -> String {
        let Self { host, width, fold, height } = self;
        let mut svg = format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">"#);
        let sheet = Sheet::of(self);
        sheet.paper(&mut svg);
        sheet.folds(&mut svg);
        sheet.corners(&mut svg);
        sheet.card(&mut svg, host, &format!("{width} × {height}"));
        if height > fold {
            sheet.end(&mut svg);
        }
        svg.push_str("</svg>");
        svg
    }
}

/// The measures everything is placed by, in pixels.
struct Sheet {
    width: f32,
    height: f32,
    fold: f32,
    /// Distance of the frame from the edge.
    margin: f32,
    /// What sizes grow by: 1 on a viewport of 720 pixels' height and enough width.
    scale: f32,
}

impl Sheet {
    fn of(drawing: &Drawing) -> Self {
        // No side is longer than a few thousand pixels, so a float is exact.
        let [width, height, fold] = [drawing.width, drawing.height, drawing.fold].map(|side| side as f32);
        let scale = (fold / 720.0).min(width / 960.0).clamp(0.4, 1.5);
        Self { width, height, fold, margin: (32.0 * scale).round(), scale }
    }

    fn paper(&self, svg: &mut String) {
        let Self { width, height, margin, .. } = self;
        rect(svg, [0.0, 0.0, *width, *height], DESK);
        let inner = [*margin, *margin, width - 2.0 * margin, height - 2.0 * margin];
        let [left, top, inner_width, inner_height] = inner;
        rect(svg, inner, SHEET);
        for x in evenly(left, inner_width) {
            rect(svg, [x, top, 1.0, inner_height], LINE);
        }
        for y in evenly(top, inner_height) {
            rect(svg, [left, y, inner_width, 1.0], LINE);
        }
        frame(svg, inner);
    }

    /// Where one viewport ends and the next begins.
    fn folds(&self, svg: &mut String) {
        let Self { width, height, fold, margin, scale } = self;
        let size = (16.0 * scale).max(10.0);
        let mut y = *fold;
        while y < height - 2.0 * margin {
            for x in every(*margin, width - margin, 14.0) {
                rect(svg, [x, y, 7.0_f32.min(width - margin - x), 1.0], QUIET);
            }
            let y_words = y - size * 0.7;
            let left = Words { x: margin + size, y: y_words, size, fill: QUIET, anchor: "start" };
            text(svg, left, &format!("{y} px"));
            let right = Words { x: width - margin - size, y: y_words, size, fill: QUIET, anchor: "end" };
            text(svg, right, "TEST");
            y += fold;
        }
    }

    fn corners(&self, svg: &mut String) {
        let Self { width, height, margin, scale, .. } = self;
        let [long, thick] = [(22.0 * scale).round(), (3.0 * scale).round().max(2.0)];
        let at_start_or_end = |length: f32, size: f32| [*margin, length - margin - size];
        for (end, x) in at_start_or_end(*width, long).into_iter().enumerate() {
            for (foot, y) in at_start_or_end(*height, long).into_iter().enumerate() {
                rect(svg, [x, at_start_or_end(*height, thick)[foot], long, thick], INK);
                rect(svg, [at_start_or_end(*width, thick)[end], y, thick, long], INK);
            }
        }
    }

    /// The card in the middle of the first viewport.
    fn card(&self, svg: &mut String, host: &str, size_words: &str) {
        let Self { width, fold, margin, scale, .. } = self;
        let pad = (56.0 * scale).round();
        let room = width - 2.0 * (margin + pad) - 0.12 * width;
        let (host, host_size) = fit(host, room, 34.0 * scale, (18.0 * scale).max(10.0));
        let [word_size, small] = [150.0 * scale, (22.0 * scale).max(10.0)];
        let spacing = 0.16 * word_size;
        let [word_height, host_height, small_height] = [word_size, host_size, small].map(|size| size * CAPITALS);
        let [to_bar, bar, to_host, to_small] = [36.0, 6.0, 40.0, 26.0].map(|length: f32| (length * scale).round());
        let content = word_height + to_bar + bar + to_host + host_height + to_small + small_height;
        let word_width = width_of("TEST", word_size) + 3.0 * spacing;

        let middle = width / 2.0;
        let card_width = even(word_width.max(width_of(&host, host_size)) + 2.0 * pad, *width);
        let card_height = even(content + 2.0 * pad, *fold);
        let card = [(width - card_width) / 2.0, (fold - card_height) / 2.0, card_width, card_height];
        rect(svg, card, CARD);
        frame(svg, card);

        let centred = |y: f32, size: f32, fill| Words { x: middle, y, size, fill, anchor: "middle" };
        let baseline = card[1] + pad + word_height;
        write(
            svg,
            format_args!(
                r#"<text x="{middle}" y="{baseline}" font-family="JetBrains Mono ExtraBold" font-weight="800" font-size="{word_size}" letter-spacing="{spacing}" text-anchor="middle" fill="{INK}">TEST</text>"#
            ),
        );
        let bar_top = (baseline + to_bar).round();
        let bar_width = even(64.0 * scale, *width);
        rect(svg, [(width - bar_width) / 2.0, bar_top, bar_width, bar], ACCENT);
        let baseline = bar_top + bar + to_host + host_height;
        text(svg, centred(baseline, host_size, INK), &host);
        text(svg, centred(baseline + to_small + small_height, small, QUIET), size_words);
    }

    fn end(&self, svg: &mut String) {
        let size = (16.0 * self.scale).max(10.0);
        let [x, y] = [self.width / 2.0, self.height - self.margin - size * 1.6];
        text(svg, Words { x, y, size, fill: QUIET, anchor: "middle" }, "end of page");
    }
}

/// Where and how words are written; `y` is their baseline.
#[derive(Clone, Copy)]
struct Words {
    x: f32,
    y: f32,
    size: f32,
    fill: &'static str,
    anchor: &'static str,
}

fn text(svg: &mut String, words: Words, what: &str) {
    let Words { x, y, size, fill, anchor } = words;
    write(
        svg,
        format_args!(
            r#"<text x="{x}" y="{y}" font-family="JetBrains Mono" font-size="{size}" text-anchor="{anchor}" fill="{fill}">"#
        ),
    );
    escape(svg, what);
    svg.push_str("</text>");
}

fn rect(svg: &mut String, [x, y, width, height]: [f32; 4], fill: &str) {
    write(svg, format_args!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>"#));
}

fn write(svg: &mut String, what: std::fmt::Arguments<'_>) {
    svg.write_fmt(what).expect("a string takes everything");
}

fn escape(svg: &mut String, what: &str) {
    for c in what.chars() {
        match c {
            '&' => svg.push_str("&amp;"),
            '<' => svg.push_str("&lt;"),
            '>' => svg.push_str("&gt;"),
            '"' => svg.push_str("&quot;"),
            '\'' => svg.push_str("&#39;"),
            c => svg.push(c),
        }
    }
}

/// A line of one pixel just inside an edge.
fn frame(svg: &mut String, [x, y, width, height]: [f32; 4]) {
    rect(svg, [x, y, width, 1.0], EDGE);
    rect(svg, [x, y + height - 1.0, width, 1.0], EDGE);
    rect(svg, [x, y, 1.0, height], EDGE);
    rect(svg, [x + width - 1.0, y, 1.0, height], EDGE);
}

/// A whole number of pixels that leaves the same whole number on both sides of `all`.
fn even(length: f32, all: f32) -> f32 {
    all - 2.0 * ((all - length) / 2.0).round()
}

/// Positions of the grid's lines strictly inside a stretch, on whole pixels.
fn evenly(from: f32, length: f32) -> impl Iterator<Item = f32> {
    let step = length / (length / GRID).round();
    every(from + step, from + length - 1.0, step).map(f32::round)
}

fn every(from: f32, to: f32, step: f32) -> impl Iterator<Item = f32> {
    std::iter::successors(Some(from), move |at| Some(at + step)).take_while(move |at| *at < to)
}

fn width_of(text: &str, size: f32) -> f32 {
    text.chars().count() as f32 * ADVANCE * size
}

/// The text and the size at which it fits into `room`: smaller first, then with its middle left out. Both ends of a
/// host say something: the end whose it is, the beginning which of theirs.
fn fit(text: &str, room: f32, size: f32, least: f32) -> (String, f32) {
    let count = text.chars().count();
    let fitting = (room / (count as f32 * ADVANCE)).min(size);
    if fitting >= least {
        return (text.to_owned(), fitting);
    }
    let most = (room / (ADVANCE * least)) as usize;
    let ends = most.saturating_sub(1);
    let tail = ends.div_ceil(2);
    let head: String = text.chars().take(ends - tail).collect();
    let tail: String = text.chars().skip(count - tail).collect();
    (format!("{head}…{tail}"), least)
}

/// What is needed to paint a drawing: the fonts, read once.
pub(super) struct Pencils {
    options: Options<'static>,
}

impl Pencils {
    pub(super) fn new() -> Self {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(REGULAR.to_vec());
        fonts.load_font_data(EXTRA_BOLD.to_vec());
        Self { options: Options { fontdb: Arc::new(fonts), ..Options::default() } }
    }

    pub(super) fn paint(&self, drawing: &Drawing) -> Result<Pixmap, usvg::Error> {
        let tree = Tree::from_str(&drawing.svg(), &self.options)?;
        let mut pixmap = Pixmap::new(drawing.width, drawing.height).ok_or(usvg::Error::InvalidSize)?;
        // Opaque from the start, so that no transparency is left anywhere.
        pixmap.fill(Color::WHITE);
        resvg::render(&tree, Transform::identity(), &mut pixmap.as_mut());
        Ok(pixmap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_made_smaller_then_shortened_in_the_middle() {
        // 10 characters at size 10 are 60 wide.
        let rows = [
            ("0123456789", 60.0, "0123456789", 10.0),
            ("0123456789", 600.0, "0123456789", 10.0),
            ("0123456789", 48.0, "0123456789", 8.0),
            ("0123456789", 30.0, "0123456789", 5.0),
            ("0123456789", 27.0, "0123…6789", 5.0),
            ("0123456789", 15.1, "01…89", 5.0),
            ("0123456789", 3.1, "…", 5.0),
        ];
        for (text, room, expected, size) in rows {
            let (shown, at) = fit(text, room, 10.0, 5.0);
            assert_eq!(shown, expected, "{room}");
            assert!((at - size).abs() < 0.01, "{room}: {at}");
            assert!(width_of(&shown, at) <= room + 0.01, "{room}");
        }
    }

    #[test]
    fn a_host_cannot_leave_its_text() {
        let host = r#"a&b'c"<script>]]>.example"#.to_owned();
        let drawing = Drawing { host, width: 1920, fold: 1080, height: 1080 };
        let plain = Drawing { host: "x".into(), ..drawing.clone() };
        let count = |drawing: &Drawing| elements(&drawing.svg());
        assert_eq!(count(&drawing), count(&plain));
        assert!(drawing.svg().contains("a&amp;b&#39;c&quot;&lt;script&gt;]]&gt;.example"));
    }

    fn elements(svg: &str) -> usize {
        usvg::roxmltree::Document::parse(svg).unwrap().descendants().filter(usvg::roxmltree::Node::is_element).count()
    }
}
