//! A prepared tab.

use std::sync::Arc;

use chromiumoxide::cdp::browser_protocol::browser::BrowserContextId;
use chromiumoxide::cdp::browser_protocol::emulation::SetDeviceMetricsOverrideParams;
use grabd_domain::capture::Viewport;

use crate::cdp::Client;
use crate::page::identity::Identity;
use crate::page::load::frame_drawing::Frames;
use crate::page::load::watch::{Gone, Watch};
use crate::proxy;

/// A blank page in its own browser context, ready for one grab.
pub(crate) struct Tab {
    /// The CDP client of its browser.
    pub(crate) client: Client,
    /// Its browser context, which has no other page.
    pub(crate) context: BrowserContextId,
    /// The page's CDP session.
    pub(crate) session: String,
    /// The state of the page from its events.
    pub(crate) watch: Arc<Watch>,
    /// The context's own proxy listener. Dropping it closes all connections of the grab.
    pub(crate) listener: proxy::Listener,
    /// The size of its layout viewport.
    pub(crate) viewport: Viewport,
    /// How its frames are drawn.
    pub(crate) frames: Frames,
    /// What its browser calls itself.
    pub(crate) identity: Arc<Identity>,
    /// The process ID of its browser.
    pub(crate) browser: u32,
}

impl Tab {
    /// Returns true if the page's process crashed.
    pub(crate) fn has_crashed(&self) -> bool {
        self.watch.read(|seen| seen.gone == Some(Gone::Crashed))
    }
}

/// The command that sets the layout viewport, without any options.
pub(crate) fn metrics(viewport: Viewport) -> SetDeviceMetricsOverrideParams {
    SetDeviceMetricsOverrideParams {
        screen_width: Some(viewport.width().into()),
        screen_height: Some(viewport.height().into()),
        ..SetDeviceMetricsOverrideParams::new(viewport.width(), viewport.height(), 1.0, false)
    }
}
