//! `/teams/{team}/sites/{site}/download`: the images of a job, as a zip archive.

use std::sync::Arc;

use axum::extract::{Path, State};
use axum::response::Response;
use grabd_domain::credentials::Caller;
use grabd_domain::grabs::Grab;
use grabd_domain::ids::{GrabId, SiteId};
use grabd_domain::limits::PAGE_SIZE;
use grabd_engine::grabs;
use grabd_engine::sites::{self, ListRequest};

use crate::extract::TeamPage;
use crate::grabs::download::{archive_response, image, safe};
use crate::problem::Problem;
use crate::state::Web;

/// The longest name of a file without its number and extension.
const MAX_NAME_CHARS: usize = 100;

/// Streams the archive. If an image cannot be read midway, the response is aborted.
pub(crate) async fn show(
    State(web): State<Arc<Web>>,
    TeamPage(at): TeamPage,
    Path((_, site)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let (site, caller) = at.find_site_counted(&web, &site).await?;
    let mut images = Vec::new();
    for (number, grab) in captured(&web, caller, site.id).await? {
        if let Some((mut archived, bytes)) = image(&grab) {
            archived.name = file_name(number, &grab, &archived.name);
            images.push((archived, bytes));
        }
    }
    archive_response(&web, at.team_member.team, &safe(&site.spec.name), images).await
}

/// The grabs of all pages of a job, with the numbers of the pages.
async fn captured(web: &Web, caller: Caller, site: SiteId) -> Result<Vec<(u32, Grab)>, Problem> {
    let mut all = Vec::new();
    let mut starting_after = None;
    loop {
        let request = ListRequest { limit: Some(*PAGE_SIZE.end()), starting_after, ..ListRequest::default() };
        let listed = sites::list_pages(&web.core, caller, site, &request).await?;
        let numbers: Vec<(GrabId, u32)> =
            listed.pages.iter().filter_map(|page| Some((page.grab?, page.number))).collect();
        let ids: Vec<GrabId> = numbers.iter().map(|(id, _)| *id).collect();
        for grab in grabs::get_several(&web.core, caller, &ids).await? {
            let number = numbers.iter().find(|(id, _)| *id == grab.id).map_or(0, |(_, number)| *number);
            all.push((number, grab));
        }
        match listed.pages.last().filter(|_| listed.has_more) {
            Some(last) => starting_after = Some(last.number.to_string()),
            None => return Ok(all),
        }
    }
}

/// The name of a file in the archive, such as `007-example.com_docs.png`.
fn file_name(number: u32, grab: &Grab, other: &str) -> String {
    let url = grab.spec.url.as_str();
    let path = url.split_once("://").map_or(url, |(_, rest)| rest).trim_end_matches('/');
    let mut name = safe(path);
    name.truncate(MAX_NAME_CHARS);
    let extension = other.rsplit('.').next().unwrap_or("png");
    format!("{number:03}-{name}.{extension}")
}
