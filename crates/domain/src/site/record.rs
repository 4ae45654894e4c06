//! A job that captures a site, and its pages.

use std::fmt;

use super::request::SiteSpec;
use super::skip_reason::SkipReason;
use crate::credentials::{Environment, Principal};
use crate::grabs::ImageKey;
use crate::ids::{GrabId, SiteId, TeamId};
use crate::limits::shortened;
use crate::timestamp::Timestamp;

/// The state of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteState {
    /// Addresses may still be found. Found ones are captured meanwhile.
    Discovering,
    /// All addresses are known, and are captured.
    Capturing,
    /// All pages have ended.
    Done,
    /// Somebody has canceled it.
    Canceled,
    /// Nothing could be captured.
    Failed,
    /// Its team had no credits.
    OutOfCredits,
}

impl SiteState {
    /// All states.
    pub const ALL: [Self; 6] =
        [Self::Discovering, Self::Capturing, Self::Done, Self::Canceled, Self::Failed, Self::OutOfCredits];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Discovering => "discovering",
            Self::Capturing => "capturing",
            Self::Done => "done",
            Self::Canceled => "canceled",
            Self::Failed => "failed",
            Self::OutOfCredits => "out_of_credits",
        }
    }

    /// Whether pages are still found or captured.
    pub const fn is_open(self) -> bool {
        match self {
            Self::Discovering | Self::Capturing => true,
            Self::Done | Self::Canceled | Self::Failed | Self::OutOfCredits => false,
        }
    }
}

/// The state of a page of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PageState {
    /// It was found, and is captured later.
    Waiting,
    /// It is being captured.
    Capturing,
    /// It was captured.
    Done,
    /// Its capture failed.
    Failed,
    /// It is not captured.
    Skipped,
}

impl PageState {
    /// All states.
    pub const ALL: [Self; 5] = [Self::Waiting, Self::Capturing, Self::Done, Self::Failed, Self::Skipped];

    /// The name in the API.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Capturing => "capturing",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

/// How many pages of a job are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCounts {
    /// All listed pages.
    pub found: u32,
    /// Those that are not captured.
    pub skipped: u32,
    /// Those that were captured.
    pub captured: u32,
    /// Those whose capture failed.
    pub failed: u32,
    /// Those that wait for their capture, or are being captured.
    pub waiting: u32,
}

impl PageCounts {
    /// Adds pages in a state.
    pub fn add(&mut self, state: PageState, pages: u32) {
        let of_state = match state {
            PageState::Waiting | PageState::Capturing => &mut self.waiting,
            PageState::Done => &mut self.captured,
            PageState::Failed => &mut self.failed,
            PageState::Skipped => &mut self.skipped,
        };
        *of_state = of_state.saturating_add(pages);
        self.found = self.found.saturating_add(pages);
    }
}

/// Why a job or a page failed, why an open job waits, or what is to be said of a page that was captured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteError {
    /// A code of the API's errors, `no_pages` or `other_site`.
    pub code: String,
    /// What happened, for people.
    pub message: String,
}

impl SiteError {
    /// The longest message, in bytes.
    pub const MESSAGE_BYTES: usize = 200;
    /// The code of the error of a job that has found no page that it may capture.
    pub const NO_PAGES: &str = "no_pages";
    /// The code of the error of a page that was captured, and has led to another site.
    pub const OTHER_SITE: &str = "other_site";

    /// An error, whose message is shortened.
    pub fn new(code: &str, message: &dyn fmt::Display) -> Self {
        Self { code: code.to_owned(), message: shortened(message.to_string(), Self::MESSAGE_BYTES) }
    }
}

/// A job that captures many pages of one site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The id.
    pub id: SiteId,
    /// The team whose credits it spends.
    pub team: TeamId,
    /// The environment of its grabs.
    pub environment: Environment,
    /// Who created it. Its grabs are theirs.
    pub creator: Principal,
    /// What it captures. Without the values of secret options.
    pub spec: SiteSpec,
    /// The state.
    pub state: SiteState,
    /// Why it failed, that there are no credits, or why the next capture of an open job waits.
    pub error: Option<SiteError>,
    /// Its pages.
    pub pages: PageCounts,
    /// Time of creation.
    pub created_at: Timestamp,
    /// Time of the last change of its state.
    pub updated_at: Timestamp,
    /// When the last of its captures ended, after which nothing changes any more.
    pub finished_at: Option<Timestamp>,
}

/// A page of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SitePage {
    /// Its number within the job, from 1, in the order of discovery.
    pub number: u32,
    /// Its address, in normal form.
    pub url: String,
    /// How many links lead to it from the start page. 0 for the start page, and for pages of a sitemap.
    pub depth: u32,
    /// The page or the sitemap with its address. `None` for the start page.
    pub found_on: Option<String>,
    /// The state.
    pub state: PageState,
    /// Why it is not captured. `None` unless it is skipped.
    pub skipped_because: Option<SkipReason>,
    /// Its grab. `None` before there is one.
    pub grab: Option<GrabId>,
    /// Its image. `None` before it is captured, and after the image was deleted.
    pub image: Option<ImageKey>,
    /// Why its capture failed. If it was captured: that it has led to another site, or why its links are not followed.
    pub error: Option<SiteError>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_of_pages_add_up() {
        let mut counts = PageCounts::default();
        for (number, state) in (1..).zip(PageState::ALL) {
            counts.add(state, number);
        }
        assert_eq!(counts, PageCounts { found: 15, skipped: 5, captured: 3, failed: 4, waiting: 3 });
    }
}
