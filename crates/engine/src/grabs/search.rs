//! Searches a team's grabs by URL and day.

use grabd_domain::credentials::Caller;
use grabd_domain::faults::Field;
use grabd_domain::grabs::{Grab, Status};
use grabd_domain::ids::{GrabId, KeyId};
use grabd_domain::{Day, Fault};
use grabd_store::grabs::{Cursor, PageRequest};

use crate::error::Error;
use crate::service::Core;

/// Grabs that are read at a time.
const CHUNK: u32 = 500;
/// Grabs that one search reads at most. The caller may continue after the last one.
const MAX_READ: u32 = 10_000;

/// What to search for.
#[derive(Clone, Debug, Default)]
pub struct SearchRequest {
    /// Text that the requested URL contains, in any case.
    pub url: String,
    /// Only grabs with this status.
    pub status: Option<Status>,
    /// Only grabs that this API key has created.
    pub key: Option<KeyId>,
    /// The first day, in UTC.
    pub from: Option<Day>,
    /// The last day, in UTC.
    pub until: Option<Day>,
    /// Only grabs after this one in the list.
    pub after: Option<String>,
    /// Whether the search begins with the oldest grab.
    pub oldest_first: bool,
    /// The most grabs to return.
    pub limit: usize,
}

/// The grabs that were found.
#[derive(Clone, Debug)]
pub struct SearchResult {
    /// In the order of the search.
    pub grabs: Vec<Grab>,
    /// Where the search can be continued: the last grab that was read.
    pub next: Option<GrabId>,
}

/// Searches from the newest grab to the oldest one or the other way round, and reads a limited number.
///
/// # Errors
/// [`Fault::BadRequest`] if `after` is not one of the caller's grabs.
#[tracing::instrument(name = "grabs.search", skip_all)]
pub async fn search(core: &Core, caller: Caller, request: &SearchRequest) -> Result<SearchResult, Error> {
    let cursor = match &request.after {
        Some(after) => Some(Cursor::After(after.parse::<GrabId>().map_err(|_| unknown(after))?)),
        None => None,
    };
    let page = PageRequest {
        limit: u32::try_from(request.limit).unwrap_or(u32::MAX),
        status: request.status,
        key: request.key,
        cursor,
        from: request.from.map(Day::start),
        before: request.until.map(|day| day.next().start()),
        oldest_first: request.oldest_first,
    };
    search_pages(core, caller, &request.url, page).await
}

fn unknown(id: &str) -> Fault {
    Fault::BadRequest(Field::new("starting_after", id, "the id of one of this team's grabs"))
}

/// Searches the pages that begin with this one for grabs whose requested URL contains a text. Returns as many as the page
/// may have.
///
/// # Errors
/// [`Fault::BadRequest`] if the cursor is not one of the caller's grabs.
pub(super) async fn search_pages(
    core: &Core,
    caller: Caller,
    url: &str,
    page: PageRequest,
) -> Result<SearchResult, Error> {
    let needle = url.to_lowercase();
    let limit = usize::try_from(page.limit).unwrap_or(usize::MAX);
    let mut cursor = match page.cursor {
        Some(Cursor::After(id) | Cursor::Before(id)) => Some(id),
        None => None,
    };
    let (mut grabs, mut read) = (Vec::new(), 0);
    loop {
        let page = PageRequest { limit: CHUNK, cursor: cursor.map(Cursor::After), ..page };
        let listed = core.store.grabs().list_grabs(caller.team, caller.environment, page).await?;
        let listed = listed.ok_or_else(|| unknown(&cursor.map(|id| id.to_string()).unwrap_or_default()))?;
        let has_more = listed.has_more;
        for grab in listed.grabs {
            if grabs.len() == limit {
                return Ok(SearchResult { grabs, next: cursor });
            }
            cursor = Some(grab.id);
            if grab.spec.url.as_str().to_lowercase().contains(&needle) {
                grabs.push(grab);
            }
        }
        read += CHUNK;
        if !has_more {
            return Ok(SearchResult { grabs, next: None });
        }
        if read >= MAX_READ || grabs.len() == limit {
            return Ok(SearchResult { grabs, next: cursor });
        }
    }
}
