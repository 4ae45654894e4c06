//! A context with a wrong proxy configuration, or whose proxy is gone, reaches nothing.

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
struct NavigationResult {
    error_text: Option<String>,
}

/// The network error of a context with this proxy configuration.
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
    let navigated: NavigationResult =
        client.call_as(NAVIGATION_LIMIT, Some(&session), NavigateParams::new(url)).await.unwrap();
    navigated.error_text
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_proxy_configuration_does_not_bypass_the_proxy() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::set_permissions(directory.path(), PermissionsExt::from_mode(0o711)).unwrap();
    // The guard allows the canary: the page fails because its requests do not arrive at the proxy.
    let policy = Policy { allow: vec!["127.0.0.0/8".parse().unwrap()], ..Policy::default() };
    let guard = grabd_egress::Guard::new(grabd_egress::Options { policy, ..Default::default() }).unwrap();
    let shared = Shared::start(Options::new(directory.path().join("browsers")), guard).await.unwrap();
    let lease = shared.lease(0).await.unwrap();
    let tab = lease.tab();
    let canary = Canary::tcp("navigation", "127.0.0.3".parse().unwrap()).unwrap();
    let url = format!("http://{}/", canary.address);
    // The port of a listener that was just closed.
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
    assert_eq!(canary.check_untouched(), Ok(()));
    drop(lease);
    shared.shut_down().await;
}
