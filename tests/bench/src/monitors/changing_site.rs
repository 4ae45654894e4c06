//! Pages that change by a script: something moves in each round, and something that matters changes in every other one.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// A change that a reader of the page should hear of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// One word of a sentence.
    Word,
    /// The colour of one button.
    Colour,
    /// The text of one link.
    Link,
}

impl Change {
    pub(super) const ALL: [Self; 3] = [Self::Word, Self::Colour, Self::Link];
    /// Rounds from one change of a kind to the next one.
    const PERIOD: u32 = 6;

    /// What changes in a round, on all pages. Nothing in the first one and in every other one.
    pub(super) fn in_round(round: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|change| round > 0 && round % Self::PERIOD == change.offset())
    }

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Word => "a word",
            Self::Colour => "the colour of a button",
            Self::Link => "the text of a link",
        }
    }

    const fn offset(self) -> u32 {
        match self {
            Self::Word => 2,
            Self::Colour => 4,
            Self::Link => 0,
        }
    }

    /// How often it has changed up to a round.
    fn times(self, round: u32) -> usize {
        (0..=round).filter(|round| Self::in_round(*round) == Some(self)).count()
    }

    /// What it looks like in a round.
    fn look(self, round: u32) -> &'static str {
        let looks = match self {
            Self::Word => ["spring", "summer", "autumn", "winter"],
            Self::Colour => ["#1a7f37", "#0969da", "#9a3412", "#6e3aa8"],
            Self::Link => ["Opening hours", "Prices", "Directions", "Contact"],
        };
        looks[self.times(round) % looks.len()]
    }
}

/// What moves on a page although nothing has changed for its readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Moving {
    Nothing,
    Banner,
    Advertisement,
    Date,
    Carousel,
    Everything,
}

impl Moving {
    pub(super) const ALL: [Self; 6] =
        [Self::Nothing, Self::Banner, Self::Advertisement, Self::Date, Self::Carousel, Self::Everything];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Banner => "banner",
            Self::Advertisement => "advertisement",
            Self::Date => "date",
            Self::Carousel => "carousel",
            Self::Everything => "everything",
        }
    }

    /// The round that a part of the page shows: always the first one if it does not move.
    fn round_of(self, part: Self, round: u32) -> u32 {
        if self == part || self == Self::Everything { round } else { 0 }
    }
}

/// Colours of what moves, none of them that of two rounds in a row.
const COLOURS: [&str; 5] = ["#fde68a", "#bfdbfe", "#fecaca", "#bbf7d0", "#ddd6fe"];
/// Slides of the carousel.
const SLIDES: usize = 3;

const STYLE: &str = "
  body { margin: 0; font: 16px/1.5 sans-serif; color: #1b1f24 }
  .banner, .advertisement, .carousel, main { position: absolute }
  .banner { left: 0; top: 0; width: 1000px; height: 48px; line-height: 48px; text-align: center }
  .advertisement { left: 680px; top: 80px; width: 300px; height: 250px; text-align: center }
  .carousel { left: 20px; top: 480px; width: 960px; height: 160px; overflow: hidden }
  .slides { display: flex; width: 2880px }
  .slides div { width: 960px; height: 160px; text-align: center }
  main { left: 20px; top: 80px; width: 620px }
  .order { display: inline-block; width: 140px; height: 40px; border: 0; color: #fff }
";

/// The page in a round.
fn document(moving: Moving, round: u32) -> String {
    let of = |part| moving.round_of(part, round);
    let colour = |round: u32| COLOURS[round as usize % COLOURS.len()];
    let (banner, advertisement, date) = (of(Moving::Banner), of(Moving::Advertisement), of(Moving::Date));
    let position = of(Moving::Carousel) as usize % SLIDES;
    let slides: String = (0..SLIDES)
        .map(|slide| {
            format!("<div style='background:{}'><a href='/slides/{slide}'>Slide {slide}</a></div>", COLOURS[slide])
        })
        .collect();
    let [word, order, link] = Change::ALL.map(|change| change.look(round));
    format!(
        "<!doctype html><html lang=en><meta charset=utf-8><title>A shop</title><style>{STYLE}</style>\
         <div class=banner style='background:{}'>Today only: {} percent off</div>\
         <div class=advertisement style='background:{}'>Advertisement: offer number {}</div>\
         <main><h1>Seeds for your garden</h1>\
         <p>We send all orders within two days. Sow these seeds in {word}, and water them twice a week.</p>\
         <p><button class=order style='background:{order}'>Order</button></p>\
         <p><a href='/about'>{link}</a></p>\
         <p class=date>Updated {} November, 10:{:02}</p></main>\
         <div class=carousel><div class=slides style='transform:translateX(-{}px)'>{slides}</div></div>",
        colour(banner),
        10 + banner,
        colour(advertisement),
        100 + advertisement,
        1 + date % 30,
        date % 60,
        960 * position,
    )
}

/// The served pages. They stop when this is dropped.
pub(super) struct ChangingSite {
    origin: String,
    round: Arc<AtomicU32>,
    _task: AbortOnDropHandle<()>,
}

impl ChangingSite {
    /// Serves the pages of the first round on a free port of this address.
    pub(super) async fn start(address: IpAddr) -> io::Result<Self> {
        let round = Arc::new(AtomicU32::new(0));
        let listener = TcpListener::bind((address, 0)).await?;
        let origin = format!("http://{}", listener.local_addr()?);
        let router = Router::new().route("/{moving}", get(respond)).with_state(Arc::clone(&round));
        let task = TaskTracker::new().spawn(async move {
            // It ends with the task.
            let _ = axum::serve(listener, router).await;
        });
        Ok(Self { origin, round, _task: AbortOnDropHandle::new(task) })
    }

    pub(super) fn url(&self, moving: Moving) -> String {
        format!("{}/{}", self.origin, moving.name())
    }

    /// Begins a round.
    pub(super) fn begin(&self, round: u32) {
        self.round.store(round, Ordering::SeqCst);
    }
}

async fn respond(State(round): State<Arc<AtomicU32>>, Path(name): Path<String>) -> Response {
    match Moving::ALL.into_iter().find(|moving| moving.name() == name) {
        Some(moving) => Html(document(moving, round.load(Ordering::SeqCst))).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_other_round_has_one_change_of_all_pages() {
        let rounds: Vec<_> = (0..=12).map(Change::in_round).collect();
        let cycle = [None, Some(Change::Word), None, Some(Change::Colour), None, Some(Change::Link)];
        assert_eq!(rounds, [&[None][..], &cycle, &cycle].concat());
        for round in 1..=12 {
            let is_changed = document(Moving::Nothing, round) != document(Moving::Nothing, round - 1);
            assert_eq!(is_changed, Change::in_round(round).is_some(), "{round}");
            for moving in Moving::ALL.into_iter().filter(|moving| *moving != Moving::Nothing) {
                assert_ne!(document(moving, round), document(moving, round - 1), "{moving:?} {round}");
            }
        }
    }
}
