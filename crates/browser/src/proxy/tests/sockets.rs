//! Sockets that were bound in advance, as in a jail.

use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType};

use super::*;
use crate::proxy::OpenError;

/// A bound socket with its port, which does not listen.
fn bound() -> (OwnedFd, u16) {
    let socket = rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
    rustix::net::bind(&socket, &SocketAddrV4::new(ADDRESS, 0)).unwrap();
    let address = SocketAddr::try_from(rustix::net::getsockname(&socket).unwrap()).unwrap();
    (socket, address.port())
}

#[tokio::test]
async fn socket_serves_only_one_listener() {
    let (sockets, ports): (Vec<_>, Vec<_>) = [bound(), bound()].into_iter().unzip();
    let proxy = proxy(Limits::default()).inside(sockets);
    assert!(TcpStream::connect((ADDRESS, ports[0])).await.is_err(), "a port accepts connections before its grab");
    let first = proxy.open().await.unwrap();
    assert_eq!(first.port(), ports[0]);
    let origin = Origin::hello().await;
    let answer = exchange(&first, &format!("GET {}/ HTTP/1.1\r\nConnection: close\r\n\r\n", origin.url())).await;
    assert!(answer.ends_with("hello"), "{answer}");
    drop(first);
    wait_until_closed(ports[0]).await;
    let second = proxy.clone().open().await.unwrap();
    assert_eq!(second.port(), ports[1]);
    drop(second);
    assert!(matches!(proxy.open().await, Err(OpenError::Exhausted)));
}
