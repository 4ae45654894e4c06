//! Reads the links of captured pages.

use std::collections::HashSet;

use bytes::Bytes;
use grabd_domain::faults::Code;
use grabd_domain::grabs::GrabFile;
use grabd_domain::ids::SitePageId;
use grabd_domain::site::{SiteError, normal_address};
use grabd_domain::target::TargetUrl;
use grabd_store::Error;
use grabd_store::sites::{FoundLinks, PageLinks};
use serde::Deserialize;

use crate::grabs::Image;
use crate::service::Core;

/// A link in the file that a capture makes.
#[derive(Deserialize)]
struct Link {
    url: String,
}

/// The addresses that a captured page links to, in normal form, each once and in order. None if they are not followed. If they cannot
/// be read, the page says so.
///
/// # Errors
/// Errors of the database as a whole.
pub(super) async fn find(core: &Core, page: SitePageId) -> Result<FoundLinks, Error> {
    let Some(links) = core.store.sites().links_of(page, core.clock.now()).await? else { return Ok(Ok(Vec::new())) };
    let PageLinks { file: Some(file) } = links else { return Ok(Err(unread())) };
    match read(core, &file).await {
        Ok(Some(found)) => Ok(Ok(found)),
        Ok(None) => Ok(Err(unread())),
        Err(error) => {
            tracing::warn!(page.id = %page, %error, "the links of a page were not read");
            Ok(Err(unread()))
        }
    }
}

/// What a page says whose links cannot be read.
fn unread() -> SiteError {
    let message = "The page was captured, but its links could not be read, so that they are not followed.";
    SiteError::new(Code::InternalError.as_str(), &message)
}

/// Reads the file with the links. `None` if it does not exist any more.
async fn read(core: &Core, file: &GrabFile) -> Result<Option<Vec<TargetUrl>>, crate::Error> {
    let Some(found) = core.file(&file.key).await.map_err(crate::Error::other)? else { return Ok(None) };
    let copy = match found.content {
        Image::Placeholder(bytes) => return parse(&bytes).map(Some),
        Image::Stored(stored) => stored.local_copy().await.map_err(crate::Error::other)?,
    };
    let Some(copy) = copy else { return Ok(None) };
    let work = move || {
        let bytes = Bytes::from(std::fs::read(copy.path()).map_err(crate::Error::other)?);
        parse(&bytes).map(Some)
    };
    core.tasks.spawn_blocking(work).await.map_err(crate::Error::other)?
}

fn parse(json: &[u8]) -> Result<Vec<TargetUrl>, crate::Error> {
    let links: Vec<Link> = serde_json::from_slice(json)?;
    let mut known = HashSet::new();
    let addresses = links.iter().filter_map(|link| normal_address(&link.url));
    Ok(addresses.filter(|url| known.insert(url.to_string())).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_read_once_and_in_normal_form() {
        let json = br##"[
            {"url": "https://example.com/b#top", "text": "B", "rel": ""},
            {"url": "https://example.com/a", "text": "A", "rel": "nofollow"},
            {"url": "https://EXAMPLE.com/b", "text": "B again", "rel": ""},
            {"url": "mailto:a@example.com", "text": "", "rel": ""}
        ]"##;
        let found = parse(json).unwrap();
        let found: Vec<&str> = found.iter().map(TargetUrl::as_str).collect();
        assert_eq!(found, ["https://example.com/b", "https://example.com/a"]);
        assert!(parse(b"{}").is_err());
    }
}
