//! The pages of a job.

use grabd_domain::credentials::Caller;
use grabd_domain::ids::SiteId;
use grabd_store::sites::SitePageList;

use super::manage::get;
use crate::error::Error;
use crate::list_parameters::{invalid_cursor, parse_typed_limit};
use crate::monitors::ListRequest;
use crate::service::Core;

const CURSOR: &str = "the number of one of this job's pages";
/// The largest cursor that is accepted, as the OpenAPI document says. No job has as many pages.
const MAX_NUMBER: u32 = 1_000_000;

/// Some pages of a job, in the order of discovery.
///
/// # Errors
/// [`NotFound`](grabd_domain::Fault::NotFound), and [`BadRequest`](grabd_domain::Fault::BadRequest) with the invalid parameter.
#[tracing::instrument(name = "sites.list_pages", skip_all)]
pub async fn list_pages(core: &Core, caller: Caller, id: SiteId, request: &ListRequest) -> Result<SitePageList, Error> {
    get(core, caller, id).await?;
    let limit = parse_typed_limit(request.limit, &request.unparsed, CURSOR)?;
    let after = match request.starting_after.as_deref() {
        None => 0,
        Some(text) => parse_number(text).ok_or_else(|| invalid_cursor(text, CURSOR))?,
    };
    Ok(core.store.sites().list_pages(id, after, limit).await?)
}

/// The number of a page, in decimal digits.
fn parse_number(text: &str) -> Option<u32> {
    // The standard library also accepts a sign.
    let has_digits_only = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number| has_digits_only && *number <= MAX_NUMBER)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cursor_is_a_number_that_the_contract_allows() {
        for (text, expected) in [("0", Some(0)), ("7", Some(7)), ("1000000", Some(MAX_NUMBER))] {
            assert_eq!(parse_number(text), expected, "{text}");
        }
        for text in ["", "-1", "+1", "1000001", "1.0", " 1", "a"] {
            assert_eq!(parse_number(text), None, "{text}");
        }
    }
}
