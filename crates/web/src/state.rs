//! The state that all requests share.

use grabd_engine::Core;

use crate::assets::Assets;
use crate::cookies::Cookies;
use crate::docs::Library;
use crate::limits::Limits;

/// The shared state of all requests.
pub(crate) struct Web {
    pub(crate) core: Core,
    pub(crate) assets: Assets,
    pub(crate) docs: Library,
    pub(crate) cookies: Cookies,
    pub(crate) limits: Limits,
}

impl Web {
    pub(crate) fn new(core: Core, requests_per_minute: u32) -> Self {
        Self {
            assets: Assets::load(),
            docs: Library::render(core.public_url()),
            cookies: Cookies::of(&core.oauth().issuer),
            limits: Limits::new(requests_per_minute, core.oauth().registrations_per_hour),
            core,
        }
    }
}
