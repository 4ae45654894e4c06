//! Render metadata between a renderer and the core.

use grabd_domain::grabs::{
    BlockedRequests, Challenge, Consent, ConsentResult, Findings, RenderMetadata, SettledBy, Timings, Warning,
};
use grabd_proto::{internal, v1};

use crate::numbers::to_i32;
use crate::page_info;

/// As a message.
pub(crate) fn to_wire(metadata: &RenderMetadata) -> internal::v1::RenderMetadata {
    let RenderMetadata {
        final_url,
        http_status,
        settled_by,
        blocked_requests,
        image_width,
        image_height,
        truncated,
        warnings,
        page,
        redirects,
        timings,
        // Known only to the core.
        image_sha256: _,
        files: _,
        slices: _,
        viewports: _,
        step_images: _,
        difference: _,
        phash: _,
        findings,
    } = metadata;
    let (challenge, consent, blocked, blank) = to_findings(findings);
    internal::v1::RenderMetadata {
        final_url: final_url.clone(),
        http_status: http_status.map(i32::from),
        settled_by: to_settled_by(*settled_by).into(),
        blocked_requests: to_i32(*blocked_requests),
        image_width: image_width.map(to_i32),
        image_height: image_height.map(to_i32),
        truncated: *truncated,
        warnings: warnings.iter().map(ToString::to_string).collect(),
        page: page_info::to_wire(page),
        redirects: redirects.map(to_i32),
        timings: timings.map(|timings| to_timings(timings, None)),
        challenge,
        consent,
        blocked,
        blank,
    }
}

/// The members of messages for findings, for both APIs.
pub(crate) fn to_findings(
    findings: &Findings,
) -> (Option<String>, Option<v1::Consent>, Option<v1::BlockedRequests>, Option<bool>) {
    let Findings { blank, challenge, consent, blocked } = findings;
    let consent = consent
        .as_ref()
        .map(|Consent { cmp, result }| v1::Consent { cmp: cmp.clone(), result: result.as_str().to_owned() });
    let blocked = blocked.map(|BlockedRequests { guard, ads, trackers, asked }| v1::BlockedRequests {
        guard: to_i32(guard),
        ads: to_i32(ads),
        trackers: to_i32(trackers),
        asked: to_i32(asked),
    });
    (challenge.map(|of| of.as_str().to_owned()), consent, blocked, *blank)
}

fn from_findings(
    challenge: Option<&str>,
    consent: Option<&v1::Consent>,
    blocked: Option<v1::BlockedRequests>,
    blank: Option<bool>,
) -> Findings {
    let count = |number: i32| u32::try_from(number).unwrap_or(0);
    Findings {
        blank,
        challenge: challenge.map(Challenge::parse),
        consent: consent.and_then(|of| Some(Consent::new(&of.cmp, ConsentResult::parse(&of.result)?))),
        blocked: blocked.map(|v1::BlockedRequests { guard, ads, trackers, asked }| BlockedRequests {
            guard: count(guard),
            ads: count(ads),
            trackers: count(trackers),
            asked: count(asked),
        }),
    }
}

/// Timings as a message. `queued_ms` is known only to the core.
pub(crate) fn to_timings(timings: Timings, queued_ms: Option<u32>) -> v1::Timings {
    let Timings { navigate_ms, load_ms, settle_ms, shot_ms } = timings;
    v1::Timings {
        queued_ms: queued_ms.map(to_i32),
        navigate_ms: to_i32(navigate_ms),
        load_ms: load_ms.map(to_i32),
        settle_ms: to_i32(settle_ms),
        shot_ms: to_i32(shot_ms),
    }
}

fn from_timings(message: v1::Timings) -> Timings {
    let v1::Timings { queued_ms: _, navigate_ms, load_ms, settle_ms, shot_ms } = message;
    let ms = |number: i32| u32::try_from(number).unwrap_or(0);
    Timings { navigate_ms: ms(navigate_ms), load_ms: load_ms.map(ms), settle_ms: ms(settle_ms), shot_ms: ms(shot_ms) }
}

/// From a message. Values that no renderer of this version sends, such as unknown warnings, are left out, and text that
/// the page chose is shortened.
pub(crate) fn from_wire(message: internal::v1::RenderMetadata) -> RenderMetadata {
    let settled_by = match message.settled_by() {
        v1::SettledBy::Quiet => Some(SettledBy::Quiet),
        v1::SettledBy::Deadline => Some(SettledBy::Deadline),
        v1::SettledBy::Unspecified => None,
    };
    let internal::v1::RenderMetadata {
        final_url,
        http_status,
        settled_by: _,
        blocked_requests,
        image_width,
        image_height,
        truncated,
        warnings,
        page,
        redirects,
        timings,
        challenge,
        consent,
        blocked,
        blank,
    } = message;
    RenderMetadata {
        final_url,
        http_status: http_status.and_then(|status| u16::try_from(status).ok()),
        settled_by,
        blocked_requests: u32::try_from(blocked_requests).unwrap_or(0),
        image_width: image_width.and_then(|pixels| u32::try_from(pixels).ok()),
        image_height: image_height.and_then(|pixels| u32::try_from(pixels).ok()),
        truncated,
        warnings: warnings.iter().filter_map(|word| Warning::parse(word)).collect(),
        page: page.map(page_info::from_wire).unwrap_or_default(),
        redirects: redirects.and_then(|count| u32::try_from(count).ok()),
        timings: timings.map(from_timings),
        image_sha256: None,
        files: Vec::new(),
        slices: Vec::new(),
        viewports: Vec::new(),
        step_images: Vec::new(),
        difference: None,
        phash: None,
        findings: from_findings(challenge.as_deref(), consent.as_ref(), blocked, blank),
    }
    .bounded()
}

/// Why the page counted as settled, for both APIs.
pub(crate) const fn to_settled_by(settled_by: Option<SettledBy>) -> v1::SettledBy {
    match settled_by {
        Some(SettledBy::Quiet) => v1::SettledBy::Quiet,
        Some(SettledBy::Deadline) => v1::SettledBy::Deadline,
        None => v1::SettledBy::Unspecified,
    }
}

#[cfg(test)]
mod tests {
    use grabd_domain::grabs::{OpenGraph, PageInfo};
    use grabd_domain::limits::{PAGE_URL_BYTES, WARNINGS};

    use super::*;

    #[test]
    fn metadata_survives_the_wire() {
        let metadata = RenderMetadata {
            final_url: Some("https://example.com/".to_owned()),
            http_status: Some(404),
            settled_by: Some(SettledBy::Deadline),
            blocked_requests: 2,
            image_width: Some(1280),
            image_height: Some(720),
            truncated: true,
            warnings: vec![Warning::ImagesFailed(3), Warning::Blank],
            page: PageInfo {
                title: Some("Example".to_owned()),
                description: Some("A page".to_owned()),
                lang: Some("en".to_owned()),
                canonical_url: Some("https://example.com/".to_owned()),
                icon_url: Some("https://example.com/icon.png".to_owned()),
                open_graph: Some(OpenGraph {
                    title: Some("An example".to_owned()),
                    description: Some("For links".to_owned()),
                    image: Some("https://example.com/card.png".to_owned()),
                    site_name: Some("Examples".to_owned()),
                    kind: Some("website".to_owned()),
                }),
                page_width: Some(1280),
                page_height: Some(3000),
                words: Some(640),
            },
            redirects: Some(2),
            timings: Some(Timings { navigate_ms: 1, load_ms: Some(2), settle_ms: 3, shot_ms: 4 }),
            findings: Findings {
                blank: Some(true),
                challenge: Some(Challenge::Imperva),
                consent: Some(Consent::new("didomi", ConsentResult::Hidden)),
                blocked: Some(BlockedRequests { guard: 2, ads: 3, trackers: 4, asked: 5 }),
            },
            ..RenderMetadata::default()
        };
        assert_eq!(from_wire(to_wire(&metadata)), metadata);
        let title = Some("é\0".repeat(1000));
        let icon_url = Some("data:image/png;base64,".to_owned());
        let long = PageInfo { title, icon_url, ..PageInfo::default() };
        let received = from_wire(to_wire(&RenderMetadata { page: long, ..RenderMetadata::default() })).page;
        assert_eq!((received.title, received.icon_url), (Some("é".repeat(300)), None));
        assert_eq!(from_wire(internal::v1::RenderMetadata::default()), RenderMetadata::default());
    }

    #[test]
    fn what_a_page_chose_is_shortened() {
        let long = internal::v1::RenderMetadata {
            final_url: Some(format!("https://example.com/{}", "x".repeat(1_900_000))),
            warnings: vec!["blank".to_owned(); 10_000],
            ..internal::v1::RenderMetadata::default()
        };
        let metadata = from_wire(long);
        let url = metadata.final_url.unwrap();
        assert!(url.len() <= PAGE_URL_BYTES && url.starts_with("https://example.com/x") && url.ends_with('…'));
        assert_eq!(metadata.warnings.len(), WARNINGS);
    }
}
