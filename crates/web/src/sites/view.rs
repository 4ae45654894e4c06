//! Jobs that capture sites, and their pages, for display.

use grabd_domain::credentials::Environment;
use grabd_domain::site::{PageCounts, PageState, Pattern, Site, SitePage, SiteState, SkipReason, Source};

use crate::environments::environment_name;
use crate::grabs::view::title;
use crate::team::TeamContext;
use crate::time_format::Moment;

/// A job as a page shows it.
pub(super) struct SiteView {
    pub(super) id: String,
    pub(super) name: String,
    /// The path of its page.
    pub(super) path: String,
    /// What the address is: `Start page` or `Sitemap`.
    pub(super) source: &'static str,
    /// The address without its scheme, shortened.
    pub(super) address: String,
    pub(super) environment: &'static str,
    pub(super) is_live: bool,
    /// The CSS class of the state.
    pub(super) class: &'static str,
    /// The display name of the state.
    pub(super) state: &'static str,
    pub(super) sentence: String,
    /// How many pages are in which state, in words.
    pub(super) counts: String,
    /// Whether pages are still found or captured.
    pub(super) can_cancel: bool,
    /// Whether something may still change: also captures of a canceled job that have begun.
    pub(super) is_open: bool,
    /// Pages whose captures have ended.
    pub(super) ended: u32,
    /// Pages that are captured, as far as they are known. At least 1.
    pub(super) chosen: u32,
    pub(super) has_images: bool,
    pub(super) max_pages: u32,
    /// `None` with a sitemap.
    pub(super) max_depth: Option<u32>,
    pub(super) include: String,
    pub(super) exclude: String,
    pub(super) robots: bool,
    pub(super) requests_per_minute: u32,
    pub(super) created: Moment,
    pub(super) finished: Option<Moment>,
}

/// A page without a capture, or one of which something is to be said.
pub(super) struct PageView {
    /// The address without its scheme, shortened.
    pub(super) address: String,
    /// The CSS class of the state.
    pub(super) class: &'static str,
    /// The display name of the state.
    pub(super) state: &'static str,
    /// Why it is not captured, or why its links were not followed.
    pub(super) reason: Option<String>,
    /// The page or sitemap with its address.
    pub(super) found_on: Option<String>,
}

impl SiteView {
    pub(super) fn of(site: &Site, at: &TeamContext) -> Self {
        let (spec, pages) = (&site.spec, site.pages);
        let (class, state) = state_name(site.state);
        Self {
            id: site.id.to_string(),
            name: spec.name.clone(),
            path: at.site_path(site.id, ""),
            source: match &spec.source {
                Source::Links { .. } => "Start page",
                Source::Sitemap(_) => "Sitemap",
            },
            address: title(spec.source.address().as_str()),
            environment: environment_name(site.environment),
            is_live: site.environment == Environment::Live,
            class,
            state,
            sentence: sentence(site),
            counts: counts_text(pages),
            can_cancel: site.state.is_open(),
            is_open: site.finished_at.is_none(),
            ended: pages.captured + pages.failed,
            chosen: pages.found.saturating_sub(pages.skipped).max(1),
            has_images: pages.captured > 0,
            max_pages: spec.max_pages,
            max_depth: spec.max_depth(),
            include: patterns_text(&spec.include),
            exclude: patterns_text(&spec.exclude),
            robots: spec.robots,
            requests_per_minute: spec.requests_per_minute,
            created: site.created_at.into(),
            finished: site.finished_at.map(Moment::from),
        }
    }
}

impl PageView {
    pub(super) fn of(page: &SitePage) -> Self {
        let (class, state) = match page.state {
            PageState::Waiting => ("open", "Waiting"),
            PageState::Capturing => ("open", "Capturing"),
            // Its capture may not be kept any more.
            PageState::Done => ("deleted", "Captured"),
            PageState::Failed => ("failed", "Failed"),
            PageState::Skipped => ("deleted", "Skipped"),
        };
        let skipped = page.skipped_because.map(|reason| skip_sentence(reason).to_owned());
        Self {
            address: title(&page.url),
            class,
            state,
            reason: page.error.as_ref().map(|error| error.message.clone()).or(skipped),
            found_on: page.found_on.as_deref().map(title),
        }
    }
}

/// The CSS class and the display name of a state.
const fn state_name(state: SiteState) -> (&'static str, &'static str) {
    match state {
        SiteState::Discovering => ("open", "Finding pages"),
        SiteState::Capturing => ("open", "Capturing"),
        SiteState::Done => ("done", "Done"),
        SiteState::Canceled => ("deleted", "Canceled"),
        SiteState::Failed => ("failed", "Failed"),
        SiteState::OutOfCredits => ("failed", "Out of credits"),
    }
}

fn sentence(site: &Site) -> String {
    if site.state.is_open()
        && let Some(error) = &site.error
    {
        return format!("The next capture waits: {}", error.message);
    }
    let sentence = match (site.state, site.environment) {
        (SiteState::Discovering, Environment::Live) => {
            "Pages are found and captured. Each capture costs 1 credit if it succeeds."
        }
        (SiteState::Capturing, Environment::Live) => {
            "All pages are found, and the rest is captured. Each capture costs 1 credit if it succeeds."
        }
        (SiteState::Discovering, Environment::Test) => "Pages are found. Their captures are free placeholders.",
        (SiteState::Capturing, Environment::Test) => "All pages are found. Their captures are free placeholders.",
        (SiteState::Done, _) => "All captures have ended.",
        (SiteState::Canceled, _) => "The other pages are not captured.",
        (SiteState::Failed, _) => match &site.error {
            Some(error) => return error.message.clone(),
            None => "No page could be captured.",
        },
        (SiteState::OutOfCredits, _) => {
            "The team had no credits left, so the other pages are not captured. Start a new job for them."
        }
    };
    sentence.to_owned()
}

/// How many pages are in which state, such as `9 pages found: 5 captured, 1 failed, 3 waiting`.
fn counts_text(pages: PageCounts) -> String {
    let PageCounts { found, skipped, captured, failed, waiting } = pages;
    let parts = [(captured, "captured"), (failed, "failed"), (skipped, "skipped"), (waiting, "waiting")];
    let parts = parts.iter().filter(|(count, _)| *count > 0).map(|(count, label)| format!("{count} {label}"));
    let parts = parts.collect::<Vec<_>>().join(", ");
    let found = if found == 1 { "1 page found".to_owned() } else { format!("{found} pages found") };
    if parts.is_empty() { found } else { format!("{found}: {parts}") }
}

fn patterns_text(patterns: &[Pattern]) -> String {
    patterns.iter().map(Pattern::as_str).collect::<Vec<_>>().join(", ")
}

/// Why a page is not captured, in a sentence.
const fn skip_sentence(reason: SkipReason) -> &'static str {
    match reason {
        SkipReason::Robots => "The robots.txt of its host does not allow it.",
        SkipReason::OtherSite => "It belongs to another site.",
        SkipReason::Excluded => "The patterns of the job leave it out.",
        SkipReason::NotHtml => "It is a file and no web page.",
        SkipReason::MaxPages => "The job has as many pages as it may have.",
        SkipReason::PrivateAddress => "It is not at a public address.",
        SkipReason::Canceled => "The job was canceled.",
        SkipReason::OutOfCredits => "The team had no credits left.",
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::site::SiteError;

    use super::*;

    #[test]
    fn counts_are_words() {
        let some = PageCounts { found: 9, skipped: 0, captured: 5, failed: 1, waiting: 3 };
        assert_eq!(counts_text(some), "9 pages found: 5 captured, 1 failed, 3 waiting");
        assert_eq!(
            counts_text(PageCounts { found: 1, waiting: 1, ..PageCounts::default() }),
            "1 page found: 1 waiting"
        );
        assert_eq!(counts_text(PageCounts::default()), "0 pages found");
    }

    #[test]
    fn page_without_a_capture_says_why() {
        let page = |state, skipped_because, error| SitePage {
            number: 1,
            url: "https://example.com/a/".to_owned(),
            depth: 1,
            found_on: Some("https://example.com/".to_owned()),
            state,
            skipped_because,
            grab: None,
            image: None,
            error,
        };
        let skipped = PageView::of(&page(PageState::Skipped, Some(SkipReason::Robots), None));
        assert_eq!((skipped.state, &*skipped.address), ("Skipped", "example.com/a"));
        assert_eq!(skipped.reason.as_deref(), Some("The robots.txt of its host does not allow it."));
        assert_eq!(skipped.found_on.as_deref(), Some("example.com"));
        let error = Some(SiteError::new("render_failed", &"The page did not load."));
        let failed = PageView::of(&page(PageState::Failed, None, error));
        assert_eq!(failed.reason.as_deref(), Some("The page did not load."));
        assert_eq!(PageView::of(&page(PageState::Waiting, None, None)).reason, None);
        let error = Some(SiteError::new(SiteError::OTHER_SITE, &"It led to another site."));
        let captured = PageView::of(&page(PageState::Done, None, error));
        assert_eq!((captured.state, captured.reason.as_deref()), ("Captured", Some("It led to another site.")));
    }
}
