//! The state that all requests share.

use std::sync::{Arc, LazyLock};

use grabd_engine::Core;

use crate::assets::Assets;
use crate::cookies::Cookies;
use crate::docs::{ClientPackages, Library, ReferencePassage};
use crate::rate_limits::Limits;

/// The shared state of all requests.
pub(crate) struct Web {
    pub(crate) core: Core,
    pub(crate) assets: Assets,
    /// Rendered at the first request, which saves a third of a start without a browser.
    pub(crate) docs: LazyLock<Library, Box<dyn FnOnce() -> Library + Send>>,
    pub(crate) packages: Arc<ClientPackages>,
    pub(crate) cookies: Cookies,
    pub(crate) limits: Limits,
}

impl Web {
    pub(crate) fn new(
        core: Core,
        requests_per_minute: u32,
        reference: fn() -> Vec<ReferencePassage>,
        packages: ClientPackages,
    ) -> Self {
        let origin = core.public_url().to_owned();
        let packages = Arc::new(packages);
        let listed = Arc::clone(&packages);
        Self {
            assets: Assets::load(),
            docs: LazyLock::new(Box::new(move || Library::render(&origin, &listed, reference()))),
            packages,
            cookies: Cookies::of(&core.oauth().issuer),
            limits: Limits::new(requests_per_minute, core.oauth().registrations_per_hour),
            core,
        }
    }
}
