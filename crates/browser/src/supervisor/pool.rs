//! Tabs made ready ahead of the grabs that use them.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use chromiumoxide::cdp::browser_protocol::browser::{SetDownloadBehaviorBehavior, SetDownloadBehaviorParams};
use chromiumoxide::cdp::browser_protocol::target::{
    AttachToTargetParams, CreateBrowserContextParams, CreateTargetParams, DisposeBrowserContextParams,
    SetAutoAttachParams,
};
use chromiumoxide::cdp::browser_protocol::{network, page as cdp_page};
use grabd_domain::capture::Viewport;
use grabd_domain::limits;
use tokio::sync::{Notify, Semaphore};

use crate::cdp::{CallError, Client};
use crate::page::{self, Tab, Watch};
use crate::proxy::{OpenError, Proxy};

/// Tabs that are ready, and how many more are wanted.
pub(super) struct Pool {
    ready: Mutex<VecDeque<Tab>>,
    arrived: Notify,
    wanted: Semaphore,
}

/// A tab out of the pool.
pub(super) struct Taken {
    pub(super) tab: Tab,
    /// Is a successor still to be ordered, with [`Pool::order`]?
    pub(super) owes_order: bool,
}

/// Why a tab could not be made.
#[derive(Debug, thiserror::Error)]
pub(super) enum PrepareError {
    /// By the browser.
    #[error(transparent)]
    Call(#[from] CallError),
    /// By the proxy.
    #[error(transparent)]
    Proxy(#[from] OpenError),
    /// Its page died, and was thrown away.
    #[error("its page died")]
    Gone,
}

impl Pool {
    /// A pool that wants `size` tabs.
    pub(super) fn new(size: usize) -> Self {
        Self { ready: Mutex::default(), arrived: Notify::new(), wanted: Semaphore::new(size.max(1)) }
    }

    /// Tabs that are ready.
    pub(super) fn len(&self) -> usize {
        self.ready().len()
    }

    /// Waits for a tab. The order for its successor waits until the grab is over, so as not to compete with it, unless
    /// this was the last one and the next grab would have to wait. Cancel-safe.
    pub(super) async fn take(&self) -> Taken {
        loop {
            let mut arrived = std::pin::pin!(self.arrived.notified());
            arrived.as_mut().enable();
            let (tab, owes_order) = {
                let mut ready = self.ready();
                (ready.pop_front(), !ready.is_empty())
            };
            match tab {
                Some(tab) => {
                    if !owes_order {
                        self.order();
                    }
                    return Taken { tab, owes_order };
                }
                None => arrived.await,
            }
        }
    }

    /// Orders one more tab.
    pub(super) fn order(&self) {
        self.wanted.add_permits(1);
    }

    /// Makes one tab as soon as one is wanted.
    pub(super) async fn refill(&self, client: &Client, proxy: &Proxy) -> Result<(), PrepareError> {
        let Ok(order) = self.wanted.acquire().await else { return Ok(()) };
        let tab = prepare(client, proxy).await?;
        order.forget();
        self.ready().push_back(tab);
        self.arrived.notify_one();
        Ok(())
    }

    fn ready(&self) -> MutexGuard<'_, VecDeque<Tab>> {
        self.ready.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Makes a blank page in a context of its own, whose only way out is a listener of its own.
async fn prepare(client: &Client, proxy: &Proxy) -> Result<Tab, PrepareError> {
    let listener = proxy.open().await?;
    // Both halves are needed: without the bypass list a context goes to loopback and link-local addresses directly.
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
    let target =
        CreateTargetParams { browser_context_id: Some(context.clone()), ..CreateTargetParams::new("about:blank") };
    let (denied, target) = tokio::join!(client.call(None, downloads), client.call(None, target));
    denied?;
    let target = target?.target_id;
    let attach = AttachToTargetParams { flatten: Some(true), ..AttachToTargetParams::new(target.clone()) };
    let session: String = client.call(None, attach).await?.session_id.into();
    // A page's target and its main frame have the same id.
    let watch = Watch::new(target.as_ref());
    client.route(&session, watch.sink());
    let viewport = Viewport::new(limits::DEFAULT_WIDTH.into(), limits::DEFAULT_HEIGHT.into())
        .expect("the default viewport is inside its own bounds");
    let on = Some(session.as_str());
    // Nobody asks for bodies, so none are kept.
    let network = network::EnableParams {
        max_total_buffer_size: Some(1),
        max_resource_buffer_size: Some(1),
        ..Default::default()
    };
    // Only so that workers are told of: nobody speaks with them.
    let workers = SetAutoAttachParams { flatten: Some(true), ..SetAutoAttachParams::new(true, false) };
    let set_up = async {
        let (pages, requests, sized, attached) = tokio::join!(
            client.call(on, cdp_page::EnableParams::default()),
            client.call(on, network),
            client.call(on, page::metrics(viewport)),
            client.call(on, workers),
        );
        pages.and(requests).and(sized).and(attached).map(drop)
    };
    tokio::select! {
        biased;
        // A dead page answers nothing.
        () = watch.gone() => {
            client.unroute(&session);
            client.tell(None, &DisposeBrowserContextParams::new(context));
            return Err(PrepareError::Gone);
        }
        done = set_up => done?,
    }
    Ok(Tab { client: client.clone(), context, session, watch, listener, viewport })
}
