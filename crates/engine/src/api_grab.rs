//! A grab as the REST API shows it: in webhook messages, and on the pages of the web app.

use std::borrow::Cow;
use std::sync::LazyLock;

use grabd_api::Attachment;
use grabd_domain::credentials::Environment;
use grabd_domain::grabs::{
    BlockedRequests, Consent, Difference, Findings, Grab, GrabFile, OpenGraph, PageInfo, Region, RenderMetadata,
    SettledBy, ShownFile, State, Timings,
};

/// What is known of a grab that has not ended.
static NONE: LazyLock<RenderMetadata> = LazyLock::new(RenderMetadata::default);

/// The JSON that `GET /v1/grabs/{id}` returns for this grab, indented for people. As there, URLs of placeholders are
/// relative to the origin of the API. `public_url` is the origin of the service.
pub fn grab_json(grab: &Grab, public_url: &str) -> String {
    let origin = match grab.environment {
        Environment::Live => public_url,
        Environment::Test => "",
    };
    serde_json::to_string_pretty(&api_grab(grab, origin)).expect("a grab has only members that JSON can represent")
}

/// The grab, as `GET /v1/grabs/{id}` returns it, with URLs of files at this origin.
pub(crate) fn api_grab<'a>(grab: &'a Grab, public_url: &str) -> grabd_api::Grab<'a> {
    let Grab { id, team: _, environment: _, class: _, spec, created_at, deleted_at: _, attempts: _, state } = grab;
    let (mut image_url, mut bytes, mut execution_ms, mut error_message) = (None, None, None, None);
    let (mut error_code, mut error_cause) = (None, None);
    let metadata = match state {
        State::Pending | State::Processing => None,
        State::Done { finished_at: _, image, size_bytes, execution_ms: took, metadata } => {
            image_url = image.as_ref().map(|key| format!("{public_url}/{}", key.path()));
            bytes = Some(i64::try_from(*size_bytes).unwrap_or(i64::MAX));
            execution_ms = Some(to_i32(*took));
            Some(metadata)
        }
        State::Failed { finished_at: _, failure, metadata } => {
            error_message = Some(failure.message.as_str().into());
            error_code = Some(failure.reason.code().as_str().into());
            error_cause = Some(failure.cause.as_str().into());
            Some(metadata)
        }
    };
    let ended = metadata.is_some();
    let RenderMetadata {
        final_url,
        http_status,
        settled_by,
        blocked_requests,
        image_width,
        image_height,
        truncated,
        warnings,
        page: PageInfo { title, description, lang, canonical_url, icon_url, open_graph, page_width, page_height, words },
        redirects,
        timings,
        image_sha256,
        files: _,
        slices: _,
        viewports: _,
        step_images: _,
        findings: Findings { blank, challenge, consent, blocked },
        difference,
        phash,
    } = metadata.unwrap_or(&NONE);
    // The files are deleted with the image.
    let kept = metadata.filter(|_| image_url.is_some());
    let files: Vec<Attachment<'_>> = kept
        .into_iter()
        .flat_map(|metadata| metadata.shown_files(spec.format))
        .map(|file| attachment(&file, public_url))
        .collect();
    let difference_image = kept.and_then(RenderMetadata::difference_image);
    grabd_api::Grab {
        id: id.to_string().into(),
        status: grab.status().as_str().into(),
        created_at: created_at.to_string().into(),
        target_url: spec.url.as_str().into(),
        image_url: image_url.map(Cow::from),
        width: to_i32(spec.viewport.width()),
        height: to_i32(spec.reported_height()),
        format: Some(spec.format.as_str().into()),
        bytes,
        execution_ms,
        error_message,
        final_url: borrowed(final_url),
        http_status: http_status.map(i32::from),
        settled_by: settled_by.map(|settled_by| settled_by_name(settled_by).into()),
        blocked_requests: ended.then(|| to_i32(*blocked_requests)),
        image_width: image_width.map(to_i32),
        image_height: image_height.map(to_i32),
        truncated: ended.then_some(*truncated),
        warnings: (ended || !spec.unknown.is_empty())
            .then(|| warnings.iter().map(ToString::to_string).chain(spec.unknown_warnings()).map(Cow::from).collect()),
        error_code,
        error_cause,
        title: borrowed(title),
        description: borrowed(description),
        lang: borrowed(lang),
        canonical_url: borrowed(canonical_url),
        icon_url: borrowed(icon_url),
        open_graph: open_graph.as_ref().map(shown_open_graph),
        page_width: page_width.map(to_i32),
        page_height: page_height.map(to_i32),
        redirects: redirects.map(to_i32),
        timings: timings.map(|timings| shown_timings(timings, grab.queued_ms())),
        // Only in responses to creates.
        cached: None,
        metadata: (!spec.metadata.is_empty())
            .then(|| spec.metadata.iter().map(|(name, text)| (name.into(), text.into())).collect()),
        image_sha256: borrowed(image_sha256),
        files: (!files.is_empty()).then_some(files),
        challenge: challenge.map(|challenge| challenge.as_str().into()),
        consent: consent.as_ref().map(|Consent { cmp, result }| grabd_api::Consent {
            cmp: cmp.as_str().into(),
            result: result.as_str().into(),
        }),
        blocked: blocked.map(|BlockedRequests { guard, ads, trackers, asked }| {
            let [guard, ads, trackers, asked] = [guard, ads, trackers, asked].map(to_i32);
            grabd_api::BlockedRequests { guard, ads, trackers, asked }
        }),
        blank: *blank,
        difference: difference.as_ref().map(|of| shown_difference(of, difference_image, public_url)),
        phash: phash.map(|hash| hash.to_string().into()),
        // Only in events.
        stages: None,
        words: words.map(to_i32),
    }
}

fn attachment(file: &ShownFile<'_>, public_url: &str) -> Attachment<'static> {
    Attachment {
        kind: file.kind().to_owned().into(),
        url: format!("{public_url}/{}", file.path).into(),
        media_type: file.media_type.to_owned().into(),
        bytes: i64::try_from(file.bytes).unwrap_or(i64::MAX),
        y: file.place.map(|place| to_i32(place.y)),
        height: file.height().map(to_i32),
        heading: file.place.and_then(|place| place.heading.clone()).map(Cow::from),
        width: file.width().map(to_i32),
        viewport: file
            .viewport
            .map(|size| grabd_api::Viewport { width: size.viewport_width.into(), height: size.viewport_height.into() }),
        name: file.step_image.map(|image| image.name.clone().into()),
    }
}

fn shown_difference(
    difference: &Difference,
    image: Option<&GrabFile>,
    public_url: &str,
) -> grabd_api::Difference<'static> {
    let region = |Region { x, y, width, height }: &Region| {
        let [x, y, width, height] = [x, y, width, height].map(|pixels| to_i32(*pixels));
        grabd_api::Region { x, y, width, height }
    };
    grabd_api::Difference {
        compared_to: difference.compared_to.to_string().into(),
        ratio: difference.ratio(),
        regions: difference.regions.iter().map(region).collect(),
        image_url: image.map(|file| format!("{public_url}/{}", file.path()).into()),
    }
}

fn shown_open_graph(properties: &OpenGraph) -> grabd_api::OpenGraph<'_> {
    let OpenGraph { title, description, image, site_name, kind } = properties;
    grabd_api::OpenGraph {
        title: borrowed(title),
        description: borrowed(description),
        image: borrowed(image),
        site_name: borrowed(site_name),
        r#type: borrowed(kind),
    }
}

fn shown_timings(timings: Timings, queued_ms: Option<u32>) -> grabd_api::Timings {
    let Timings { navigate_ms, load_ms, settle_ms, shot_ms } = timings;
    grabd_api::Timings {
        queued_ms: queued_ms.map(to_i32),
        navigate_ms: to_i32(navigate_ms),
        load_ms: load_ms.map(to_i32),
        settle_ms: to_i32(settle_ms),
        shot_ms: to_i32(shot_ms),
    }
}

const fn settled_by_name(settled_by: SettledBy) -> &'static str {
    match settled_by {
        SettledBy::Quiet => "quiet",
        SettledBy::Deadline => "deadline",
    }
}

fn borrowed(text: &Option<String>) -> Option<Cow<'_, str>> {
    text.as_deref().map(Cow::from)
}

/// A count, time or size in pixels, none of which comes near the maximum.
fn to_i32(number: impl TryInto<i32>) -> i32 {
    number.try_into().unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests {
    use grabd_domain::Timestamp;
    use grabd_domain::capture::{CaptureRequest, CaptureSpec};
    use grabd_domain::grabs::{Class, ImageKey};
    use grabd_domain::ids::{GrabId, TeamId};
    use uuid::Uuid;

    use super::*;

    #[test]
    fn json_has_absolute_urls_of_live_grabs_and_relative_ones_of_placeholders() {
        let request = CaptureRequest { url: Some("https://example.com/".into()), ..CaptureRequest::default() };
        let state = State::Done {
            finished_at: Timestamp::from_ms(2),
            image: Some(ImageKey::new(1, "png")),
            size_bytes: 7,
            execution_ms: 1,
            metadata: RenderMetadata::default(),
        };
        let grab = |environment| Grab {
            id: GrabId(Uuid::nil()),
            team: TeamId(Uuid::nil()),
            environment,
            class: Class::Async,
            spec: CaptureSpec::parse(&request).unwrap(),
            created_at: Timestamp::from_ms(1),
            deleted_at: None,
            attempts: 1,
            state: state.clone(),
        };
        for (environment, url) in
            [(Environment::Live, "\"image_url\": \"https://g.example/i/"), (Environment::Test, "\"image_url\": \"/i/")]
        {
            let json = grab_json(&grab(environment), "https://g.example");
            assert!(json.starts_with("{\n  \"id\": \"00000000-") && json.contains(url), "{json}");
        }
    }
}
