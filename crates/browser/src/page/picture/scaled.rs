//! Makes the page smaller while its image is taken, so that frames of other sites are inside the window: the browser paints
//! them nowhere else. The image is taken at the reverse scale, so that it has the same pixels. The layout of the page stays
//! that of its window.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::Viewport as Clip;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

/// The frames draw themselves in this many steps of the page's time.
const DRAW_STEPS: u32 = 4;
const DRAW_STEP: Duration = Duration::from_millis(50);

/// The page is not made smaller than this: no image is as tall as so many windows.
const LEAST_FACTOR: f64 = 1.0 / 256.0;

#[derive(Serialize)]
struct ScaleArguments {
    factor: f64,
}

#[derive(Deserialize)]
struct ScaleResult {
    scaled: bool,
}

/// A page that is smaller than it is laid out.
pub(in crate::page) struct Scaled {
    clip: Clip,
}

impl Scaled {
    /// Makes the page so small that `clip` is inside the window, and lets its frames draw themselves. `None` if the page
    /// cannot be scaled. The page's scripts must not run meanwhile.
    pub(in crate::page) async fn to_window(
        context: &CaptureContext<'_>,
        clip: &Clip,
    ) -> Result<Option<Self>, CaptureError> {
        let Some(factor) = factor(clip, context.viewport().width().into(), context.viewport().height().into()) else {
            return Ok(None);
        };
        let scaled: Option<ScaleResult> = context.call_script("scale", &ScaleArguments { factor }).await?;
        if !scaled.is_some_and(|result| result.scaled) {
            return Ok(None);
        }
        for _ in 0..DRAW_STEPS {
            context.clock.advance(DRAW_STEP).await?;
        }
        let Clip { x, y, width, height, scale } = *clip;
        let clip = Clip {
            x: x * factor,
            y: y * factor,
            width: width * factor,
            height: height * factor,
            scale: scale / factor,
        };
        Ok(Some(Self { clip }))
    }

    /// The part of the page to capture, and its scale.
    pub(in crate::page) fn clip(&self) -> Clip {
        self.clip.clone()
    }

    /// Gives the page its size again.
    pub(in crate::page) async fn undo(self, context: &CaptureContext<'_>) -> Result<(), CaptureError> {
        let _: Option<Value> = context.call_script("unscale", &()).await?;
        Ok(())
    }
}

/// The largest power of a half by which the rectangle is inside the window. Such a factor has an exact reverse.
fn factor(clip: &Clip, width: f64, height: f64) -> Option<f64> {
    let (right, bottom) = (clip.x + clip.width, clip.y + clip.height);
    let mut factor = 1.0;
    while right * factor > width || bottom * factor > height {
        factor /= 2.0;
        if factor < LEAST_FACTOR {
            return None;
        }
    }
    Some(factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_is_scaled_by_the_largest_power_of_a_half_that_fits() {
        let clip = |width, height| Clip { x: 0.0, y: 0.0, width, height, scale: 1.0 };
        assert_eq!(factor(&clip(1280.0, 720.0), 1280.0, 720.0), Some(1.0));
        assert_eq!(factor(&clip(1280.0, 721.0), 1280.0, 720.0), Some(0.5));
        assert_eq!(factor(&clip(1280.0, 16384.0), 1280.0, 720.0), Some(1.0 / 32.0));
        assert_eq!(factor(&clip(1280.0, 1e6), 1280.0, 720.0), None);
    }
}
