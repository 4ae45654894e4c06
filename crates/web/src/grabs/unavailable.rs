//! What the forms of captures do not offer on this service.

use grabd_domain::capture::BlockedContent;

use super::options::PROXY;
use crate::state::Web;

/// The content that this service cannot leave out, because it has no filter list for it, and the option for proxies if
/// it has none.
pub(crate) fn unavailable_options(web: &Web) -> Vec<&'static str> {
    let listed = web.core.listed_contents();
    let lacks = |of: &BlockedContent| of.needs_list() && !listed.contains(of);
    let contents = BlockedContent::ALL.into_iter().filter(lacks).map(BlockedContent::as_str);
    contents.chain((!web.core.has_proxies()).then_some(PROXY)).collect()
}
