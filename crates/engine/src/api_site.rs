//! A site job as the REST API shows it: in webhook messages, and on the pages of the web app.

use grabd_api::{SiteError, SitePages};
use grabd_domain::credentials::Environment;
use grabd_domain::site::{PageCounts, Pattern, Site, SiteSpec, Source};
use serde_json::{Map, Value};

/// The JSON that `GET /v1/sites/{id}` returns, indented for people.
pub fn site_json(site: &Site) -> String {
    serde_json::to_string_pretty(&api_site(site)).expect("a site job has only members that JSON can represent")
}

/// The job, as `GET /v1/sites/{id}` returns it.
pub(crate) fn api_site(site: &Site) -> grabd_api::Site<'_> {
    let Site {
        id,
        team: _,
        environment,
        creator: _,
        spec: SiteSpec { name, source, capture: _, max_pages, include, exclude, robots, requests_per_minute },
        state,
        error,
        pages: PageCounts { found, skipped, captured, failed, waiting },
        created_at,
        updated_at,
        finished_at,
    } = site;
    let (url, sitemap) = match source {
        Source::Links { start, .. } => (Some(start.as_str()), None),
        Source::Sitemap(sitemap) => (None, Some(sitemap.as_str())),
    };
    grabd_api::Site {
        id: id.to_string().into(),
        live: *environment == Environment::Live,
        name: name.into(),
        url: url.map(Into::into),
        sitemap: sitemap.map(Into::into),
        capture: capture_members(&site.spec),
        max_pages: *max_pages,
        max_depth: site.spec.max_depth(),
        include: include.iter().map(Pattern::as_str).map(Into::into).collect(),
        exclude: exclude.iter().map(Pattern::as_str).map(Into::into).collect(),
        robots: *robots,
        requests_per_minute: *requests_per_minute,
        state: state.as_str().into(),
        created_at: created_at.to_string().into(),
        updated_at: updated_at.to_string().into(),
        finished_at: finished_at.map(|at| at.to_string().into()),
        error: error
            .as_ref()
            .map(|error| SiteError { code: error.code.as_str().into(), message: error.message.as_str().into() }),
        pages: SitePages { found: *found, skipped: *skipped, captured: *captured, failed: *failed, waiting: *waiting },
    }
}

/// The capture options that differ from their defaults, without secret ones and without the address, which is that of each page.
fn capture_members(spec: &SiteSpec) -> Map<String, Value> {
    let members = spec.capture.shown_options().into_iter().filter(|(name, _)| *name != "url");
    members.filter_map(|(name, value)| Some((name.to_owned(), serde_json::to_value(value).ok()?))).collect()
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::capture::{CaptureRequest, OptionValue, Secret};
    use grabd_domain::credentials::Principal;
    use grabd_domain::ids::{KeyId, SiteId, TeamId};
    use grabd_domain::site::{SiteRequest, SiteState};
    use serde_json::json;
    use uuid::Uuid;

    use super::*;

    #[test]
    fn job_is_shown_with_its_defaults_and_without_secrets() {
        let capture = CaptureRequest {
            full_page: Some(true),
            headers: Some(Secret([("X-Token".to_owned(), OptionValue::Text("hidden".into()))].into())),
            ..CaptureRequest::default()
        };
        let request = SiteRequest {
            url: Some("https://example.com/".into()),
            capture: Some(capture),
            exclude: vec!["/a/*".into()],
            ..SiteRequest::default()
        };
        let site = Site {
            id: SiteId(Uuid::nil()),
            team: TeamId(Uuid::nil()),
            environment: Environment::Live,
            creator: Principal::Key(KeyId(Uuid::nil())),
            spec: SiteSpec::parse(&request, 1000, false).unwrap(),
            state: SiteState::Capturing,
            error: None,
            pages: PageCounts { found: 3, waiting: 3, ..PageCounts::default() },
            created_at: Timestamp::from_ms(0),
            updated_at: Timestamp::from_ms(0),
            finished_at: None,
        };
        let json = site_json(&site);
        assert!(!json.contains("hidden") && !json.contains("headers"), "{json}");
        let shown: Value = serde_json::from_str(&json).unwrap();
        assert_eq!(shown["capture"], json!({ "full_page": true }));
        assert_eq!((&shown["url"], &shown["sitemap"]), (&json!("https://example.com/"), &Value::Null));
        assert_eq!((&shown["max_pages"], &shown["max_depth"]), (&json!(50), &json!(3)));
        assert_eq!((&shown["include"], &shown["exclude"]), (&json!([]), &json!(["/a/*"])));
        let pages = json!({ "found": 3, "skipped": 0, "captured": 0, "failed": 0, "waiting": 3 });
        assert_eq!((&shown["state"], &shown["pages"]), (&json!("capturing"), &pages));
    }
}
