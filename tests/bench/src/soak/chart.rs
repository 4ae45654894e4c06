//! The memory over time, as a line and as a picture.

/// Memory at one time, while no captures are in progress.
pub(super) struct Point {
    pub(super) minutes: f64,
    pub(super) grabs: usize,
    pub(super) service_mib: f64,
    pub(super) all_mib: f64,
}

/// The slope of the line through the service's memory with the least squares, in MiB per 10,000 grabs.
pub(super) fn growth(points: &[Point]) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "numbers of grabs and of points")]
    let (grabs, count): (fn(&Point) -> f64, f64) = (|point| point.grabs as f64, points.len() as f64);
    let mean = |value: fn(&Point) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (mean_grabs, mean_mib) = (mean(grabs), mean(|point| point.service_mib));
    let products = points.iter().map(|point| (grabs(point) - mean_grabs) * (point.service_mib - mean_mib));
    let squares = points.iter().map(|point| (grabs(point) - mean_grabs).powi(2));
    products.sum::<f64>() / squares.sum::<f64>() * 10_000.0
}

/// A line chart of the memory over time, as SVG.
pub(super) fn svg(points: &[Point]) -> String {
    const WIDTH: f64 = 800.0;
    const HEIGHT: f64 = 300.0;
    const MARGIN: f64 = 50.0;
    let end = points.last().map_or(1.0, |point| point.minutes);
    let top = points.iter().map(|point| point.all_mib).fold(1.0, f64::max) * 1.1;
    let x = |minutes: f64| MARGIN + minutes / end * (WIDTH - 2.0 * MARGIN);
    let y = |mib: f64| HEIGHT - MARGIN - mib / top * (HEIGHT - 2.0 * MARGIN);
    let line = |value: fn(&Point) -> f64| {
        let places: Vec<String> =
            points.iter().map(|point| format!("{:.1},{:.1}", x(point.minutes), y(value(point)))).collect();
        places.join(" ")
    };
    let (service, all) = (line(|point| point.service_mib), line(|point| point.all_mib));
    let (left, right, bottom) = (MARGIN, WIDTH - MARGIN, HEIGHT - MARGIN);
    let last = points.last().map_or(0, |point| point.grabs);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12">
<rect width="100%" height="100%" fill="#fff"/>
<path d="M{left} {MARGIN}V{bottom}H{right}" fill="none" stroke="#888"/>
<text x="{left}" y="20">Memory in MiB over {end:.0} minutes and {last} grabs</text>
<text x="{left}" y="38" fill="#06c">service and browsers</text>
<text x="180" y="38" fill="#c30">service alone</text>
<text x="5" y="{MARGIN}">{top:.0}</text>
<text x="5" y="{bottom}">0</text>
<text x="{right}" y="{label}" text-anchor="end">{end:.0} min</text>
<polyline points="{all}" fill="none" stroke="#06c" stroke-width="2"/>
<polyline points="{service}" fill="none" stroke="#c30" stroke-width="2"/>
</svg>
"##,
        label = bottom + 20.0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(grabs: usize, service_mib: f64) -> Point {
        Point { minutes: 0.0, grabs, service_mib, all_mib: 0.0 }
    }

    #[test]
    fn growth_is_the_slope_for_ten_thousand_grabs() {
        let points = [point(1_000, 78.0), point(2_000, 78.5), point(3_000, 79.0)];
        assert!((growth(&points) - 5.0).abs() < 1e-9, "{}", growth(&points));
    }
}
