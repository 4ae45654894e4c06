//! Bars of stacked segments, for charts that are drawn as SVG.
//!
//! Horizontal positions are in hundredths of a percent, so that a chart is as wide as the page; vertical positions are in
//! tenths of a pixel. So a chart is never scaled, and its text has the normal size.

/// The width of a chart.
pub(crate) const WIDTH: u64 = 10_000;

/// The bar of a period.
pub(crate) struct Bar {
    pub(crate) title: String,
    pub(crate) x: String,
    pub(crate) width: String,
    pub(crate) segments: Vec<Segment>,
}

/// One segment of a bar.
pub(crate) struct Segment {
    pub(crate) class: &'static str,
    pub(crate) y: String,
    pub(crate) height: String,
}

/// Segments of these classes and heights on top of each other, from the baseline. Those without a height are left out.
pub(crate) fn stacked(baseline: u64, heights: impl IntoIterator<Item = (&'static str, u64)>) -> Vec<Segment> {
    let mut y = baseline;
    let mut segment = |(class, height): (&'static str, u64)| {
        y = y.saturating_sub(height);
        Segment { class, y: pixels(y), height: pixels(height) }
    };
    heights.into_iter().filter(|(_, height)| *height > 0).map(&mut segment).collect()
}

/// A vertical position or height.
pub(crate) fn pixels(tenths: u64) -> String {
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// A horizontal position or width.
pub(crate) fn percent(hundredths: u64) -> String {
    format!("{}.{:02}%", hundredths / 100, hundredths % 100)
}
