//! `/teams/{team}/grabs/download`: the images that are selected in the gallery, as a zip archive.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use grabd_domain::Day;
use grabd_domain::grabs::{Grab, State as GrabState};
use grabd_domain::ids::TeamId;
use grabd_engine::grabs::{self, ArchivedImage, MAX_ARCHIVE_BYTES};
use http::HeaderValue;
use http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};

use super::selection;
use crate::extract::{QueryForm, TeamPage};
use crate::problem::Problem;
use crate::state::Web;

/// Streams the archive. If an image cannot be read midway, the response is aborted.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    QueryForm(query): QueryForm,
) -> Result<Response, Problem> {
    let selected = selection::find(&web, &at, &query).await?;
    let images = selected.iter().filter_map(image).collect();
    archive_response(&web, at.team_member.team, "captures", images).await
}

/// The response with an archive of images, given with their sizes in bytes. The name of its file has `what` and the day.
pub(crate) async fn archive_response(
    web: &Web,
    team: TeamId,
    what: &str,
    images: Vec<(ArchivedImage, u64)>,
) -> Result<Response, Problem> {
    let (images, sizes): (Vec<ArchivedImage>, Vec<u64>) = images.into_iter().unzip();
    if images.is_empty() {
        let message = "None of these captures has an image.";
        return Err(Problem::bad_request("Nothing to download", message, "Go back and choose captures with an image."));
    }
    let bytes: u64 = sizes.iter().sum();
    if bytes > MAX_ARCHIVE_BYTES {
        let [seen, allowed] = [bytes, MAX_ARCHIVE_BYTES].map(|bytes| bytes.div_ceil(1_000_000));
        let message = format!("The images have {seen} MB; at most {allowed} MB are possible.");
        return Err(Problem::bad_request("Too many images", message, "Go back and select fewer."));
    }
    let name = format!("attachment; filename=\"grabd-{what}-{}.zip\"", Day::of(web.core.now()));
    let headers = [
        (CONTENT_TYPE, HeaderValue::from_static("application/zip")),
        (CONTENT_DISPOSITION, HeaderValue::try_from(name).expect("the name is visible ASCII")),
    ];
    let archive = grabs::archive(&web.core, team, images).await.map_err(Problem::no_archive)?;
    Ok((headers, Body::from_stream(archive)).into_response())
}

/// The image of a grab and its size in bytes, if it has one.
pub(crate) fn image(grab: &Grab) -> Option<(ArchivedImage, u64)> {
    let GrabState::Done { image: Some(key), size_bytes, .. } = &grab.state else { return None };
    let is_available = grab.deleted_at.is_none();
    let format = key.format().as_str();
    let name = format!("{}-{}.{format}", safe(&grab.spec.url.host().to_string()), grab.id);
    is_available.then(|| (ArchivedImage { name, key: key.clone(), created_at: grab.created_at }, *size_bytes))
}

/// A text with only those characters that are safe in file names, such as a host: the colons of an IPv6 address are not.
pub(crate) fn safe(host: &str) -> String {
    let is_safe = |char: char| char.is_ascii_alphanumeric() || matches!(char, '.' | '-');
    let name: String = host.chars().map(|char| if is_safe(char) { char } else { '_' }).collect();
    name.trim_start_matches(['.', '-']).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_only_safe_characters() {
        for (host, expected) in [
            ("example.com", "example.com"),
            ("[2001:db8::1]", "_2001_db8__1_"),
            ("xn--mnchen-3ya.example", "xn--mnchen-3ya.example"),
            ("../x", "_x"),
            ("-rf", "rf"),
        ] {
            assert_eq!(safe(host), expected, "{host}");
        }
    }
}
