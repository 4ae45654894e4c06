//! The design of a placeholder: drafting paper with the word TEST, the target's host and the size.

use std::fmt::Write;
use std::sync::Arc;

use grabd_domain::capture::{CaptureSpec, Fit, Scale};
use grabd_domain::limits;
use resvg::tiny_skia::{Color, Pixmap, Transform};
use resvg::usvg::{self, Options, Tree, fontdb};

const REGULAR: &[u8] = include_bytes!("../../data/fonts/JetBrainsMono-Regular.ttf");
const EXTRA_BOLD: &[u8] = include_bytes!("../../data/fonts/JetBrainsMono-ExtraBold.ttf");
/// Advance width of every character in both monospace fonts, relative to the font size. Makes fitting exact.
const ADVANCE: f32 = 0.6;
/// Height of capital letters, relative to the font size.
const CAP_HEIGHT: f32 = 0.73;
/// Approximate side of a grid square in pixels; squares are stretched slightly to fit a whole number.
const GRID: f32 = 40.0;

const BACKGROUND: &str = "#f1eee7";
const PAPER: &str = "#fbfaf7";
const CARD: &str = "#ffffff";
const GRID_LINE: &str = "#efece4";
const BORDER: &str = "#d6d1c4";
const TEXT: &str = "#1d2733";
const MUTED: &str = "#767268";
const ACCENT: &str = "#e4572e";

/// All inputs that determine the pixels.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Drawing {
    host: String,
    width: u32,
    /// Height of the viewport in pixels; `height` is larger for a full page.
    fold: u32,
    height: u32,
    scale: Scale,
    fit: Fit,
}

impl Drawing {
    pub(super) fn of(spec: &CaptureSpec) -> Self {
        let (mut width, mut fold, mut height) = (spec.viewport.width(), spec.viewport.height(), spec.reported_height());
        if let Some(clip) = spec.clip {
            // A placeholder is not larger than the page that it stands for.
            width = clip.width.min(width);
            height = clip.height.min(limits::FULL_PAGE_REPORTED_HEIGHT);
            fold = height;
        }
        Self { host: spec.url.host().to_string(), width, fold, height, scale: spec.scale, fit: spec.fit }
    }

    /// Width and height of the image in pixels.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a side has some thousand pixels")]
    pub(super) fn image_size(&self) -> (u32, u32) {
        let [width, height] = [self.width, self.height].map(|side| f64::from(side) * self.scale.factor());
        let fitted = self.fit.factor(width, height);
        let scaled = |side: u32| ((f64::from(side) * self.scale.factor() * fitted).round() as u32).max(1);
        (scaled(self.width), scaled(self.height))
    }

    /// The drawing as SVG. The host is untrusted text, which is shortened and escaped.
    fn svg(&self) -> String {
        let Self { host, width, fold, height, scale: _, fit: _ } = self;
        let (image_width, image_height) = self.image_size();
        let mut svg = format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" width="{image_width}" height="{image_height}" viewBox="0 0 {width} {height}">"#
        );
        let layout = Layout::of(self);
        layout.paper(&mut svg);
        layout.folds(&mut svg);
        layout.corners(&mut svg);
        layout.card(&mut svg, host, &format!("{image_width} × {image_height}"));
        if height > fold {
            layout.end(&mut svg);
        }
        svg.push_str("</svg>");
        svg
    }
}

/// The dimensions of the drawing, in pixels.
struct Layout {
    width: f32,
    height: f32,
    fold: f32,
    /// Distance of the frame from the edge.
    margin: f32,
    /// Scale of sizes: 1 for a viewport height of 720 pixels and sufficient width.
    scale: f32,
}

impl Layout {
    fn of(drawing: &Drawing) -> Self {
        // No side has more than a few thousand pixels, so `f32` is exact.
        let [width, height, fold] = [drawing.width, drawing.height, drawing.fold].map(|side| side as f32);
        let scale = (fold / 720.0).min(width / 960.0).clamp(0.4, 1.5);
        Self { width, height, fold, margin: (32.0 * scale).round(), scale }
    }

    fn paper(&self, svg: &mut String) {
        let Self { width, height, margin, .. } = self;
        rect(svg, [0.0, 0.0, *width, *height], BACKGROUND);
        let inner = [*margin, *margin, width - 2.0 * margin, height - 2.0 * margin];
        let [left, top, inner_width, inner_height] = inner;
        rect(svg, inner, PAPER);
        for x in grid_lines(left, inner_width) {
            rect(svg, [x, top, 1.0, inner_height], GRID_LINE);
        }
        for y in grid_lines(top, inner_height) {
            rect(svg, [left, y, inner_width, 1.0], GRID_LINE);
        }
        frame(svg, inner);
    }

    /// Dashed lines between viewports.
    fn folds(&self, svg: &mut String) {
        let Self { width, height, fold, margin, scale } = self;
        let size = (16.0 * scale).max(10.0);
        let mut y = *fold;
        while y < height - 2.0 * margin {
            for x in positions(*margin, width - margin, 14.0) {
                rect(svg, [x, y, 7.0_f32.min(width - margin - x), 1.0], MUTED);
            }
            let baseline = y - size * 0.7;
            let left = TextStyle { x: margin + size, y: baseline, size, fill: MUTED, anchor: "start" };
            text(svg, left, &format!("{y} px"));
            let right = TextStyle { x: width - margin - size, y: baseline, size, fill: MUTED, anchor: "end" };
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
                rect(svg, [x, at_start_or_end(*height, thick)[foot], long, thick], TEXT);
                rect(svg, [at_start_or_end(*width, thick)[end], y, thick, long], TEXT);
            }
        }
    }

    /// The card in the middle of the first viewport.
    fn card(&self, svg: &mut String, host: &str, size_text: &str) {
        let Self { width, fold, margin, scale, .. } = self;
        let pad = (56.0 * scale).round();
        let room = width - 2.0 * (margin + pad) - 0.12 * width;
        let (host, host_size) = fit(host, room, 34.0 * scale, (18.0 * scale).max(10.0));
        let [word_size, small] = [150.0 * scale, (22.0 * scale).max(10.0)];
        let spacing = 0.16 * word_size;
        let [word_height, host_height, small_height] = [word_size, host_size, small].map(|size| size * CAP_HEIGHT);
        let [to_bar, bar, to_host, to_small] = [36.0, 6.0, 40.0, 26.0].map(|length: f32| (length * scale).round());
        let content = word_height + to_bar + bar + to_host + host_height + to_small + small_height;
        let word_width = width_of("TEST", word_size) + 3.0 * spacing;

        let middle = width / 2.0;
        let card_width = centrable(word_width.max(width_of(&host, host_size)) + 2.0 * pad, *width);
        let card_height = centrable(content + 2.0 * pad, *fold);
        let card = [(width - card_width) / 2.0, (fold - card_height) / 2.0, card_width, card_height];
        rect(svg, card, CARD);
        frame(svg, card);

        let centred = |y: f32, size: f32, fill| TextStyle { x: middle, y, size, fill, anchor: "middle" };
        let baseline = card[1] + pad + word_height;
        write(
            svg,
            format_args!(
                r#"<text x="{middle}" y="{baseline}" font-family="JetBrains Mono ExtraBold" font-weight="800" font-size="{word_size}" letter-spacing="{spacing}" text-anchor="middle" fill="{TEXT}">TEST</text>"#
            ),
        );
        let bar_top = (baseline + to_bar).round();
        let bar_width = centrable(64.0 * scale, *width);
        rect(svg, [(width - bar_width) / 2.0, bar_top, bar_width, bar], ACCENT);
        let baseline = bar_top + bar + to_host + host_height;
        text(svg, centred(baseline, host_size, TEXT), &host);
        text(svg, centred(baseline + to_small + small_height, small, MUTED), size_text);
    }

    fn end(&self, svg: &mut String) {
        let size = (16.0 * self.scale).max(10.0);
        let [x, y] = [self.width / 2.0, self.height - self.margin - size * 1.6];
        text(svg, TextStyle { x, y, size, fill: MUTED, anchor: "middle" }, "end of page");
    }
}

/// Position and style of a text; `y` is the baseline.
#[derive(Clone, Copy)]
struct TextStyle {
    x: f32,
    y: f32,
    size: f32,
    fill: &'static str,
    anchor: &'static str,
}

fn text(svg: &mut String, style: TextStyle, content: &str) {
    let TextStyle { x, y, size, fill, anchor } = style;
    write(
        svg,
        format_args!(
            r#"<text x="{x}" y="{y}" font-family="JetBrains Mono" font-size="{size}" text-anchor="{anchor}" fill="{fill}">"#
        ),
    );
    escape(svg, content);
    svg.push_str("</text>");
}

fn rect(svg: &mut String, [x, y, width, height]: [f32; 4], fill: &str) {
    write(svg, format_args!(r#"<rect x="{x}" y="{y}" width="{width}" height="{height}" fill="{fill}"/>"#));
}

fn write(svg: &mut String, arguments: std::fmt::Arguments<'_>) {
    svg.write_fmt(arguments).expect("writing to a string cannot fail");
}

fn escape(svg: &mut String, content: &str) {
    for c in content.chars() {
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

/// A border of one pixel, inside the rectangle.
fn frame(svg: &mut String, [x, y, width, height]: [f32; 4]) {
    rect(svg, [x, y, width, 1.0], BORDER);
    rect(svg, [x, y + height - 1.0, width, 1.0], BORDER);
    rect(svg, [x, y, 1.0, height], BORDER);
    rect(svg, [x + width - 1.0, y, 1.0, height], BORDER);
}

/// Rounds `length` so that centring it in `total` leaves the same whole number of pixels on both sides.
fn centrable(length: f32, total: f32) -> f32 {
    total - 2.0 * ((total - length) / 2.0).round()
}

/// Positions of the grid lines strictly inside a range, on whole pixels.
fn grid_lines(from: f32, length: f32) -> impl Iterator<Item = f32> {
    let step = length / (length / GRID).round();
    positions(from + step, from + length - 1.0, step).map(f32::round)
}

fn positions(from: f32, to: f32, step: f32) -> impl Iterator<Item = f32> {
    std::iter::successors(Some(from), move |at| Some(at + step)).take_while(move |at| *at < to)
}

fn width_of(text: &str, size: f32) -> f32 {
    text.chars().count() as f32 * ADVANCE * size
}

/// The text and the font size at which it fits into `room`. First the size is reduced, then the middle is omitted: the
/// end of a host names its owner, the beginning the service.
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

/// Paints drawings with fonts that are loaded once.
pub(super) struct Painter {
    options: Options<'static>,
}

impl Painter {
    pub(super) fn new() -> Self {
        let mut fonts = fontdb::Database::new();
        fonts.load_font_data(REGULAR.to_vec());
        fonts.load_font_data(EXTRA_BOLD.to_vec());
        Self { options: Options { fontdb: Arc::new(fonts), ..Options::default() } }
    }

    pub(super) fn paint(&self, drawing: &Drawing) -> Result<Pixmap, usvg::Error> {
        let tree = Tree::from_str(&drawing.svg(), &self.options)?;
        let (image_width, image_height) = drawing.image_size();
        let mut pixmap = Pixmap::new(image_width, image_height).ok_or(usvg::Error::InvalidSize)?;
        // Opaque background, so that the result has no transparency.
        pixmap.fill(Color::WHITE);
        resvg::render(&tree, Transform::identity(), &mut pixmap.as_mut());
        Ok(pixmap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fit_reduces_the_size_then_shortens_in_the_middle() {
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
    fn host_is_escaped_and_adds_no_elements() {
        let host = r#"a&b'c"<script>]]>.example"#.to_owned();
        let drawing = Drawing { host, width: 1920, fold: 1080, height: 1080, scale: Scale::ONE, fit: Fit::default() };
        let plain = Drawing { host: "x".into(), ..drawing.clone() };
        let count = |drawing: &Drawing| elements(&drawing.svg());
        assert_eq!(count(&drawing), count(&plain));
        assert!(drawing.svg().contains("a&amp;b&#39;c&quot;&lt;script&gt;]]&gt;.example"));
    }

    fn elements(svg: &str) -> usize {
        usvg::roxmltree::Document::parse(svg).unwrap().descendants().filter(usvg::roxmltree::Node::is_element).count()
    }
}
