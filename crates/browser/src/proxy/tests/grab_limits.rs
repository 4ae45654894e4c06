//! The limits of a grab.

use super::*;
use crate::proxy::listener_limits::HEADER_FIELDS;

#[tokio::test]
async fn exceeding_the_byte_limit_closes_all_connections_of_the_grab() {
    const LENGTH: usize = 2 << 20;
    let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n{}", "x".repeat(LENGTH));
    let origin = Origin::start(move |_| Some(answer.clone())).await;
    let listener = proxy(Limits { bytes: 3 << 20, ..Limits::default() }).open().await.unwrap();
    let mut idle = browser(&listener).await;
    let request = format!("GET {}/ HTTP/1.1\r\nConnection: close\r\n\r\n", origin.url());
    assert!(exchange(&listener, &request).await.len() > LENGTH);
    assert!(!listener.over_limit());
    // The second response exceeds the limit, which also closes the idle connection.
    assert!(exchange(&listener, &request).await.len() < LENGTH);
    assert!(listener.over_limit());
    assert_eq!(read_to_end(&mut idle).await, "");
    wait_until_closed(listener.port()).await;
}

#[tokio::test]
async fn sent_bytes_count_towards_the_limit() {
    let origin = Origin::hello().await;
    let listener = proxy(Limits { bytes: 100_000, ..Limits::default() }).open().await.unwrap();
    let body = "x".repeat(200_000);
    let request = format!("POST {}/ HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", origin.url(), body.len());
    let mut browser = browser(&listener).await;
    // The proxy may close the connection before everything is sent.
    let _ = browser.write_all(request.as_bytes()).await;
    assert_eq!(read_to_end(&mut browser).await, "");
    assert!(listener.over_limit());
}

#[tokio::test]
async fn request_over_the_header_limit_is_not_forwarded() {
    let origin = Origin::hello().await;
    let listener = proxy(Limits { header_bytes: 16 << 10, ..Limits::default() }).open().await.unwrap();
    let request =
        |bytes| format!("GET {}/ HTTP/1.1\r\nConnection: close\r\nX: {}\r\n\r\n", origin.url(), "x".repeat(bytes));
    assert!(exchange(&listener, &request(15 << 10)).await.ends_with("hello"));
    let answer = exchange(&listener, &request(17 << 10)).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 431 "), "{answer}");
    assert_eq!(origin.recorded().requests.len(), 1);
}

#[tokio::test]
async fn response_over_the_header_limit_closes_the_connection() {
    let origin = Origin::start(|_| Some(format!("HTTP/1.1 200 OK\r\nX: {}\r\n\r\n", "x".repeat(17 << 10)))).await;
    let listener = proxy(Limits { header_bytes: 16 << 10, ..Limits::default() }).open().await.unwrap();
    assert_eq!(exchange(&listener, &format!("GET {}/ HTTP/1.1\r\n\r\n", origin.url())).await, "");
}

#[tokio::test]
async fn response_may_have_many_header_fields_up_to_a_limit() {
    let fields = |count| "A:\r\n".repeat(count);
    let origin = Origin::start(move |request| {
        let count = if request.starts_with("GET /many ") { HEADER_FIELDS - 1 } else { HEADER_FIELDS };
        Some(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n{}\r\nok", fields(count)))
    })
    .await;
    let listener = listener().await;
    let get = |path| format!("GET {}/{path} HTTP/1.1\r\nConnection: close\r\n\r\n", origin.url());
    let answer = exchange(&listener, &get("many")).await;
    assert_eq!(answer.to_lowercase().matches("\r\na:").count(), HEADER_FIELDS - 1);
    assert!(answer.ends_with("ok"));
    assert_eq!(exchange(&listener, &get("more")).await, "");
}

#[tokio::test]
async fn connection_over_the_limit_is_closed_until_another_one_ends() {
    let origin = Origin::hello().await;
    let listener = proxy(Limits { connections: 2, ..Limits::default() }).open().await.unwrap();
    let request = format!("GET {}/ HTTP/1.1\r\n\r\n", origin.url());
    let mut open = Vec::new();
    for _ in 0..2 {
        let mut browser = browser(&listener).await;
        browser.write_all(request.as_bytes()).await.unwrap();
        head(&mut browser).await.unwrap();
        open.push(browser);
    }
    let mut third = browser(&listener).await;
    assert_eq!(read_to_end(&mut third).await, "");
    let mut first = open.remove(0);
    first.shutdown().await.unwrap();
    assert_eq!(read_to_end(&mut first).await, "hello");
    // The permit is released shortly after the connection is closed.
    let again = async {
        loop {
            let mut next = browser(&listener).await;
            let sent = next.write_all(request.as_bytes()).await;
            if sent.is_ok() && head(&mut next).await.is_some() {
                return;
            }
        }
    };
    timeout(TIMEOUT, again).await.unwrap();
}

#[tokio::test]
async fn idle_connection_is_closed_after_the_time_limit() {
    let listener = proxy(Limits { connection_seconds: 1, ..Limits::default() }).open().await.unwrap();
    let mut browser = browser(&listener).await;
    assert_eq!(read_to_end(&mut browser).await, "");
    // The listener stays open.
    assert_eq!(exchange(&listener, "GET http://127.0.0.1/ HTTP/1.1\r\n\r\n").await, "");
}

#[tokio::test]
async fn shutdown_ends_every_task() {
    let origin = Origin::hello().await;
    let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
    let guard = Guard::new(grabd_egress::Options {
        policy: Policy { allow: vec!["127.0.0.2/32".parse().unwrap()], ..Policy::default() },
        ..Default::default()
    });
    let proxy = Proxy::new(guard.unwrap(), Options::default(), tasks.clone(), shutdown.clone());
    let listener = proxy.open().await.unwrap();
    let mut kept = browser(&listener).await;
    kept.write_all(format!("GET {}/ HTTP/1.1\r\n\r\n", origin.url()).as_bytes()).await.unwrap();
    head(&mut kept).await.unwrap();
    assert!(tasks.len() >= 3, "the listener, the connection and the connection to the origin");
    tasks.close();
    shutdown.cancel();
    timeout(TIMEOUT, tasks.wait()).await.unwrap();
    assert_eq!(read_to_end(&mut kept).await, "hello");
}
