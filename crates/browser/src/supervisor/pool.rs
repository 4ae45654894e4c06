//! Tabs that are prepared before grabs need them.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chromiumoxide::cdp::browser_protocol::browser::{SetDownloadBehaviorBehavior, SetDownloadBehaviorParams};
use chromiumoxide::cdp::browser_protocol::target::{
    AttachToTargetParams, CreateBrowserContextParams, CreateTargetParams, DisposeBrowserContextParams,
};
use chromiumoxide::cdp::browser_protocol::{network, page as cdp_page};
use grabd_domain::capture::{Device, Viewport};
use tokio::sync::{Notify, Semaphore};

use crate::cdp::{CallError, Client};
use crate::page::{self, Frames, Identity, Tab, Watch};
use crate::proxy::{OpenError, Proxy};

/// Prepared tabs, and the number of tabs to prepare.
pub(super) struct Pool {
    ready: Mutex<VecDeque<Tab>>,
    arrived: Notify,
    wanted: Semaphore,
}

/// Why a tab could not be prepared.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    /// The browser refused or did not answer.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The proxy could not open a listener.
    #[error(transparent)]
    Proxy(#[from] OpenError),
    /// The page crashed and was discarded.
    #[error("the page crashed")]
    Crashed,
}

impl Pool {
    /// Creates a pool that requests `size` tabs.
    pub(super) fn new(size: usize) -> Self {
        Self { ready: Mutex::default(), arrived: Notify::new(), wanted: Semaphore::new(size.max(1)) }
    }

    /// The number of prepared tabs.
    pub(super) fn len(&self) -> usize {
        self.ready().len()
    }

    /// Waits for a tab. Returns whether another one is ready, too. The caller requests a replacement with
    /// [`Pool::request_tab`]. Cancel-safe.
    pub(super) async fn take(&self) -> (Tab, bool) {
        loop {
            let mut arrived = std::pin::pin!(self.arrived.notified());
            arrived.as_mut().enable();
            let (tab, has_more) = {
                let mut ready = self.ready();
                (ready.pop_front(), !ready.is_empty())
            };
            match tab {
                Some(tab) => return (tab, has_more),
                None => arrived.await,
            }
        }
    }

    /// Requests one more tab.
    pub(super) fn request_tab(&self) {
        self.wanted.add_permits(1);
    }

    /// Prepares one tab as soon as one is requested. `browser` is the browser's process ID.
    pub(super) async fn refill(
        &self,
        client: &Client,
        proxy: &Proxy,
        identity: &Arc<Identity>,
        browser: u32,
        frames: impl FnOnce() -> Frames,
    ) -> Result<(), PrepareError> {
        let Ok(order) = self.wanted.acquire().await else { return Ok(()) };
        let tab = prepare(client, proxy, identity, browser, frames()).await?;
        order.forget();
        self.ready().push_back(tab);
        self.arrived.notify_one();
        Ok(())
    }

    fn ready(&self) -> MutexGuard<'_, VecDeque<Tab>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Creates a blank page in its own browser context, whose only route to the network is its own proxy listener.
async fn prepare(
    client: &Client,
    proxy: &Proxy,
    identity: &Arc<Identity>,
    browser: u32,
    frames: Frames,
) -> Result<Tab, PrepareError> {
    let listener = proxy.open().await?;
    // The bypass list is required: without it a context connects to loopback and link-local addresses directly.
    let context = CreateBrowserContextParams::builder()
        .proxy_server(format!("http://127.99.0.1:{}", listener.port()))
        .proxy_bypass_list("<-loopback>")
        .dispose_on_detach(true)
        .build();
    let context = client.call(None, context).await?.browser_context_id;
    let downloads = SetDownloadBehaviorParams {
        browser_context_id: Some(context.clone()),
        ..SetDownloadBehaviorParams::new(SetDownloadBehaviorBehavior::Deny)
    };
    let target = CreateTargetParams {
        browser_context_id: Some(context.clone()),
        enable_begin_frame_control: matches!(frames, Frames::OnDemand(_)).then_some(true),
        ..CreateTargetParams::new("about:blank")
    };
    let (denied, target) = tokio::join!(client.call(None, downloads), client.call(None, target));
    denied?;
    let target = target?.target_id;
    let attach = AttachToTargetParams { flatten: Some(true), ..AttachToTargetParams::new(target.clone()) };
    let session: String = client.call(None, attach).await?.session_id.into();
    // The ids of a page's target and its main frame are equal.
    let watch = Watch::new(target.as_ref());
    client.route(&session, watch.sink());
    let viewport = Viewport::DEFAULT;
    let on = Some(session.as_str());
    // Response bodies are never requested, so none are buffered.
    let network = network::EnableParams {
        max_total_buffer_size: Some(1),
        max_resource_buffer_size: Some(1),
        ..Default::default()
    };
    let set_up = async {
        let (pages, requests, sized, attached, named) = tokio::join!(
            client.call(on, cdp_page::EnableParams::default()),
            client.call(on, network),
            client.call(on, page::metrics(viewport)),
            client.call(on, page::report_workers()),
            client.call(on, identity.on(Device::Desktop)),
        );
        pages.and(requests).and(sized).and(attached).and(named).map(drop)
    };
    tokio::select! {
        biased;
        // A crashed page does not answer.
        () = watch.gone() => {
            client.unroute(&session);
            client.tell(None, &DisposeBrowserContextParams::new(context));
            return Err(PrepareError::Crashed);
        }
        done = set_up => done?,
    }
    let identity = identity.clone();
    Ok(Tab { client: client.clone(), context, session, watch, listener, viewport, frames, identity, browser })
}
