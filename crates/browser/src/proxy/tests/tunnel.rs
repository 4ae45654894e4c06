//! CONNECT: what comes of it, and what passes through it.

use grabd_egress::Refusal;

use super::*;

/// A tunnel through `listener`, with both its ends.
async fn tunnel(listener: &Listener) -> (TcpStream, TcpStream) {
    let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let mut near = browser(listener).await;
    near.write_all(format!("CONNECT {at} HTTP/1.1\r\nHost: {at}\r\n\r\n").as_bytes()).await.unwrap();
    let (far, _) = socket.accept().await.unwrap();
    assert_eq!(head(&mut near).await.unwrap(), "HTTP/1.1 200 OK\r\n\r\n");
    (near, far)
}

#[tokio::test]
async fn bytes_pass_both_ways_until_each_side_is_done() {
    let listener = listener().await;
    let (mut near, mut far) = tunnel(&listener).await;
    near.write_all(b"ping").await.unwrap();
    assert_eq!(exactly(&mut far, 4).await, "ping");
    far.write_all(b"pong").await.unwrap();
    assert_eq!(exactly(&mut near, 4).await, "pong");
    // One direction ends, the other goes on.
    near.shutdown().await.unwrap();
    assert_eq!(rest(&mut far).await, "");
    far.write_all(b"late").await.unwrap();
    assert_eq!(exactly(&mut near, 4).await, "late");
    drop(far);
    assert_eq!(rest(&mut near).await, "");
}

#[tokio::test]
async fn what_comes_right_behind_the_request_is_not_lost() {
    let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let listener = listener().await;
    let mut near = browser(&listener).await;
    near.write_all(format!("CONNECT {at} HTTP/1.1\r\n\r\nearly").as_bytes()).await.unwrap();
    let (mut far, _) = socket.accept().await.unwrap();
    assert_eq!(exactly(&mut far, 5).await, "early");
    assert_eq!(head(&mut near).await.unwrap(), "HTTP/1.1 200 OK\r\n\r\n");
}

#[tokio::test]
async fn a_large_stream_passes_whole() {
    const LENGTH: usize = 48 << 20;
    let listener = listener().await;
    let (mut near, mut far) = tunnel(&listener).await;
    let body: Vec<u8> = (0..LENGTH).map(|i| u8::try_from(i % 251).unwrap()).collect();
    let mut received = vec![0; LENGTH];
    let both = async { tokio::join!(far.write_all(&body), near.read_exact(&mut received)) };
    let (sent, got) = timeout(PATIENCE, both).await.unwrap();
    sent.unwrap();
    got.unwrap();
    assert!(received == body);
    assert!(listener.bytes() > LENGTH as u64);
    assert!(!listener.over_limit());
}

#[tokio::test]
async fn a_tunnel_that_cannot_be_is_answered_with_why() {
    let closed = TcpListener::bind("127.0.0.2:0").await.unwrap().local_addr().unwrap().port();
    let listener = listener().await;
    for (target, status) in [
        ("127.0.0.1:80".to_owned(), "403 Forbidden"),
        ("[::1]:443".to_owned(), "403 Forbidden"),
        ("127.0.0.2:22".to_owned(), "403 Forbidden"),
        ("localhost:443".to_owned(), "403 Forbidden"),
        (format!("127.0.0.2:{closed}"), "502 Bad Gateway"),
        ("site.example:443".to_owned(), "504 Gateway Timeout"),
    ] {
        let answer = exchange(&listener, &format!("CONNECT {target} HTTP/1.1\r\n\r\n")).await.to_ascii_lowercase();
        let expected = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\n\r\n");
        assert_eq!(answer, expected.to_ascii_lowercase(), "{target}");
    }
    assert_eq!(listener.refused_count(), 4);
    assert_eq!(listener.refusals().len(), 6);
    assert_eq!(listener.refusals()[5].refusal, Refusal::TimedOut);
}

#[tokio::test]
async fn closing_the_listener_cuts_what_is_running() {
    let listener = listener().await;
    let (mut near, mut far) = tunnel(&listener).await;
    let port = listener.port();
    drop(listener);
    assert_eq!(rest(&mut near).await, "");
    assert_eq!(rest(&mut far).await, "");
    nobody_listens(port).await;
}

#[tokio::test]
async fn closing_the_listener_cuts_a_request_that_waits_for_its_answer() {
    let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
    let listener = listener().await;
    let mut near = browser(&listener).await;
    let request = format!("GET http://{}/ HTTP/1.1\r\n\r\n", socket.local_addr().unwrap());
    near.write_all(request.as_bytes()).await.unwrap();
    let (mut far, _) = socket.accept().await.unwrap();
    head(&mut far).await.unwrap();
    drop(listener);
    assert_eq!(rest(&mut near).await, "");
    assert_eq!(rest(&mut far).await, "");
}
