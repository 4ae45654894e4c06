//! Drags with the mouse. The browser turns the same events into drag and drop of HTML where the page asks for that.

use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::input::{DispatchMouseEventParams, DispatchMouseEventType, MouseButton};

use super::input;
use super::locate::{self, Arguments};
use crate::page::context::CaptureContext;
use crate::page::error::CaptureError;

/// How far the mouse is moved at first, in CSS pixels: pages and browsers take a shorter way for a click.
const FIRST_MOVE: f64 = 6.0;

/// The number of moves to the place where the element is dropped.
const MOVES: u32 = 8;

/// The time for a frame after each move.
const PAUSE_LIMIT: Duration = Duration::from_millis(500);

/// The bit of the left button in events.
const LEFT: i64 = 1;

/// A point of the window.
pub(super) type Point = (f64, f64);

/// Presses the button at a point, and moves the mouse, so that the element there is dragged. Returns where the mouse is then.
///
/// # Errors
/// If the browser does not answer.
pub(super) async fn begin(context: &CaptureContext<'_>, (x, y): Point) -> Result<Point, CaptureError> {
    input::send(context, DispatchMouseEventParams::new(DispatchMouseEventType::MouseMoved, x, y)).await?;
    let press = DispatchMouseEventParams { click_count: Some(1), ..held(DispatchMouseEventType::MousePressed, (x, y)) };
    input::send(context, press).await?;
    let beside = |side: f64, distance: f64| if side > FIRST_MOVE { side - distance } else { side + distance };
    let mut at = (x, y);
    for distance in [FIRST_MOVE / 2.0, FIRST_MOVE] {
        at = (beside(x, distance), beside(y, distance));
        move_to(context, at).await?;
    }
    Ok(at)
}

/// Moves the mouse from one point to another, and releases the button there.
///
/// # Errors
/// If the browser does not answer.
pub(super) async fn finish(context: &CaptureContext<'_>, from: Point, to: Point) -> Result<(), CaptureError> {
    for step in 1..=MOVES {
        let part = f64::from(step) / f64::from(MOVES);
        move_to(context, (from.0 + (to.0 - from.0) * part, from.1 + (to.1 - from.1) * part)).await?;
    }
    // What the page shows there may have come with the last move.
    move_to(context, to).await?;
    release(context, to).await
}

/// Releases the button at a point.
///
/// # Errors
/// If the browser does not answer.
pub(super) async fn release(context: &CaptureContext<'_>, (x, y): Point) -> Result<(), CaptureError> {
    let event = DispatchMouseEventParams {
        button: Some(MouseButton::Left),
        click_count: Some(1),
        ..DispatchMouseEventParams::new(DispatchMouseEventType::MouseReleased, x, y)
    };
    input::send(context, event).await
}

/// Moves the mouse with the button held, and lets the page draw what that changes.
async fn move_to(context: &CaptureContext<'_>, at: Point) -> Result<(), CaptureError> {
    input::send(context, held(DispatchMouseEventType::MouseMoved, at)).await?;
    locate::find_in_page(context, "pause", Arguments::default(), PAUSE_LIMIT).await?;
    Ok(())
}

/// An event with the button held.
fn held(kind: DispatchMouseEventType, (x, y): Point) -> DispatchMouseEventParams {
    DispatchMouseEventParams {
        button: Some(MouseButton::Left),
        buttons: Some(LEFT),
        ..DispatchMouseEventParams::new(kind, x, y)
    }
}
