//! The state that all requests share.

use std::sync::{Arc, LazyLock};

use grabd_engine::Core;

use crate::assets::Assets;
use crate::cookies::Cookies;
use crate::docs::{ClientPackages, Library, ReferencePage};
use crate::rate_limits::Limits;
use crate::used_forms::UsedForms;

/// Settings of the web app that no use-case needs.
pub struct Options {
    /// Requests per minute of an address to pages, and as many to the OAuth endpoints. At least 1.
    pub requests_per_minute: u32,
    /// Whether only operators see the documentation about running the service.
    pub hides_self_hosting: bool,
    /// Makes the pages of the API reference. Called at most once, at the first request for the documentation.
    pub reference: Box<dyn FnOnce() -> Vec<ReferencePage> + Send>,
    /// The packages of the client libraries, which are offered for download.
    pub packages: ClientPackages,
}

/// The shared state of all requests.
pub(crate) struct Web {
    pub(crate) core: Core,
    pub(crate) assets: Assets,
    /// Rendered at the first request, which saves a third of a start without a browser.
    pub(crate) docs: LazyLock<Library, Box<dyn FnOnce() -> Library + Send>>,
    /// Whether only operators see the documentation about running the service.
    pub(crate) hides_self_hosting: bool,
    pub(crate) packages: Arc<ClientPackages>,
    pub(crate) cookies: Cookies,
    pub(crate) limits: Limits,
    /// The forms that have made an API key.
    pub(crate) used_forms: UsedForms,
}

impl Web {
    pub(crate) fn new(core: Core, options: Options) -> Self {
        let Options { requests_per_minute, hides_self_hosting, reference, packages } = options;
        let origin = core.public_url().to_owned();
        let packages = Arc::new(packages);
        let listed = Arc::clone(&packages);
        Self {
            assets: Assets::load(),
            docs: LazyLock::new(Box::new(move || Library::render(&origin, &listed, reference(), hides_self_hosting))),
            hides_self_hosting,
            packages,
            cookies: Cookies::of(&core.oauth().issuer),
            limits: Limits::new(requests_per_minute, core.oauth().registrations_per_hour),
            used_forms: UsedForms::default(),
            core,
        }
    }
}
