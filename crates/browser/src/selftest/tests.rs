//! A context that is made wrongly, or whose proxy is gone, reaches nothing: never by a way of its own.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;

use chromiumoxide::cdp::browser_protocol::page::NavigateParams;
use chromiumoxide::cdp::browser_protocol::target::{
    AttachToTargetParams, CreateBrowserContextParams, CreateTargetParams,
};
use serde::Deserialize;

use super::*;
use crate::Options;
use crate::cdp::Client;

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Navigated {
    error_text: Option<String>,
}

/// How a context that was made like this says that it cannot reach an address.
async fn error_of(client: &Client, url: &str, server: Option<String>, bypass: Option<&str>) -> Option<String> {
    let context = CreateBrowserContextParams {
        proxy_server: server,
        proxy_bypass_list: bypass.map(str::to_owned),
        ..CreateBrowserContextParams::default()
    };
    let context = client.call(None, context).await.unwrap().browser_context_id;
    let target = CreateTargetParams { browser_context_id: Some(context), ..CreateTargetParams::new("about:blank") };
    let target = client.call(None, target).await.unwrap().target_id;
    let attach = AttachToTargetParams { flatten: Some(true), ..AttachToTargetParams::new(target) };
    let session: String = client.call(None, attach).await.unwrap().session_id.into();
    let navigated: Navigated =
        client.call_as(NAVIGATION_LIMIT, Some(&session), NavigateParams::new(url)).await.unwrap();
    navigated.error_text
}

#[tokio::test(flavor = "multi_thread")]
async fn no_mistake_about_the_proxy_opens_a_way_round_it() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o711)).unwrap();
    // Even the guard allows the canary: what stops the page is that it does not get to ask.
    let policy = Policy { allow: vec!["127.0.0.0/8".parse().unwrap()], ..Policy::default() };
    let guard = grabd_egress::Guard::new(grabd_egress::Options { policy, ..Default::default() }).unwrap();
    let shared = Shared::start(Options::new(directory.path().join("browsers")), guard).await.unwrap();
    let lease = shared.lease().await.unwrap();
    let tab = lease.tab();
    let canary = Canary::tcp("navigation", "127.0.0.3".parse().unwrap()).unwrap();
    let url = format!("http://{}/", canary.address);
    // A port that was a listener's until just now.
    let gone = TcpListener::bind("127.99.0.1:0").unwrap().local_addr().unwrap().port();
    let proxy = |port: u16| Some(format!("http://127.99.0.1:{port}"));
    let all = Some("<-loopback>");
    for (mistake, server, bypass, error) in [
        ("the listener is gone", proxy(gone), all, "net::ERR_PROXY_CONNECTION_FAILED"),
        ("no bypass list", proxy(tab.listener.port()), None, "net::ERR_NAME_NOT_RESOLVED"),
        ("no server", None, all, "net::ERR_EMPTY_RESPONSE"),
        ("an empty server", Some(String::new()), all, "net::ERR_NAME_NOT_RESOLVED"),
        ("no proxy", Some("direct://".to_owned()), all, "net::ERR_NAME_NOT_RESOLVED"),
    ] {
        let seen = error_of(&tab.client, &url, server, bypass).await;
        assert_eq!(seen.as_deref(), Some(error), "{mistake}");
    }
    assert_eq!(canary.must_be_untouched(), Ok(()));
    drop(lease);
    shared.shut_down().await;
}
