//! JSON representation of site jobs and their pages: see `grabd_api`.

use std::borrow::Cow;

use grabd_api::{Site, SiteError, SitePage, SitePages};
use grabd_options::TABLE;
use grabd_proto::{options, v1};
use serde_json::{Map, Value};

use super::super::wire::{borrowed, shown_url, time};

/// Converts a job. `None` if a required field is missing.
pub(super) fn site(site: &v1::Site) -> Option<Site<'_>> {
    let v1::Site {
        id,
        live,
        name,
        url,
        sitemap,
        capture,
        max_pages,
        max_depth,
        include,
        exclude,
        robots,
        requests_per_minute,
        state,
        created_at,
        updated_at,
        finished_at,
        error,
        pages,
    } = site;
    let v1::SitePages { found, skipped, captured, failed, waiting } = *pages.as_ref()?;
    Some(Site {
        id: id.into(),
        live: *live,
        name: name.into(),
        url: borrowed(url),
        sitemap: borrowed(sitemap),
        capture: capture_members(capture.as_ref()?),
        max_pages: count(*max_pages)?,
        max_depth: match max_depth {
            Some(depth) => Some(count(*depth)?),
            None => None,
        },
        include: include.iter().map(Cow::from).collect(),
        exclude: exclude.iter().map(Cow::from).collect(),
        robots: *robots,
        requests_per_minute: count(*requests_per_minute)?,
        state: state.into(),
        created_at: time(created_at.as_ref()?)?,
        updated_at: time(updated_at.as_ref()?)?,
        finished_at: finished_at.as_ref().and_then(time),
        error: error.as_ref().map(site_error),
        pages: SitePages {
            found: count(found)?,
            skipped: count(skipped)?,
            captured: count(captured)?,
            failed: count(failed)?,
            waiting: count(waiting)?,
        },
    })
}

/// Converts a page. `None` if a required field is missing. Those of placeholders have a relative URL of their image.
pub(super) fn page(page: &v1::SitePage, is_live: bool) -> Option<SitePage<'_>> {
    let v1::SitePage { number, url, depth, found_on, state, skipped_because, grab_id, image_url, error } = page;
    Some(SitePage {
        number: count(*number)?,
        url: url.into(),
        depth: count(*depth)?,
        found_on: borrowed(found_on),
        state: state.into(),
        skipped_because: borrowed(skipped_because),
        grab_id: borrowed(grab_id),
        image_url: image_url.as_deref().map(|url| shown_url(url, is_live).into()),
        error: error.as_ref().map(site_error),
    })
}

fn site_error(error: &v1::SiteError) -> SiteError<'_> {
    let v1::SiteError { code, message } = error;
    SiteError { code: code.into(), message: message.into() }
}

/// The capture options that are set.
fn capture_members(capture: &v1::CaptureOptions) -> Map<String, Value> {
    let request = options::decode(capture.clone(), Vec::new());
    let members = TABLE.iter().filter(|option| !option.is_secret).filter_map(|option| {
        let value = serde_json::to_value(request.get(option.name)?).ok()?;
        Some((option.name.to_owned(), value))
    });
    members.collect()
}

fn count(number: i32) -> Option<u32> {
    u32::try_from(number).ok()
}
