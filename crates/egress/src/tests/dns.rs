//! A DNS server on a loopback port that answers from a function.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;

use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType, rdata};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

pub(super) enum DnsResponse {
    Records(Vec<RData>),
    NoSuchName,
    ServerFailure,
    NoResponse,
}

pub(super) struct TestDns {
    pub(super) address: SocketAddr,
    queries: Arc<Mutex<Vec<String>>>,
    _server: JoinSet<()>,
}

impl TestDns {
    pub(super) async fn start(zone: impl Fn(&str, RecordType) -> DnsResponse + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let queries = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&queries);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut packet = [0; 2048];
            loop {
                let (len, from) = socket.recv_from(&mut packet).await.unwrap();
                let question = Message::from_vec(&packet[..len]).unwrap();
                let name = question.queries()[0].name().to_ascii();
                log.lock().unwrap().push(name.clone());
                if let Some(reply) = reply(&question, zone(&name, question.queries()[0].query_type())) {
                    socket.send_to(&reply.to_vec().unwrap(), from).await.unwrap();
                }
            }
        });
        Self { address, queries, _server: server }
    }

    /// The names queried so far, in order, with repetitions.
    pub(super) fn queried_names(&self) -> Vec<String> {
        self.queries.lock().unwrap().clone()
    }
}

fn reply(question: &Message, response: DnsResponse) -> Option<Message> {
    let query = &question.queries()[0];
    let mut reply = Message::new();
    reply.set_id(question.id()).set_message_type(MessageType::Response).set_recursion_available(true);
    reply.add_query(query.clone());
    match response {
        DnsResponse::Records(records) => {
            for data in records {
                // A TTL of zero disables caching: the second query of the rebinding test must reach this server.
                reply.add_answer(Record::from_rdata(query.name().clone(), 0, data));
            }
        }
        DnsResponse::NoSuchName => {
            reply.set_response_code(ResponseCode::NXDomain);
        }
        DnsResponse::ServerFailure => {
            reply.set_response_code(ResponseCode::ServFail);
        }
        DnsResponse::NoResponse => return None,
    }
    Some(reply)
}

/// The addresses of the queried family.
pub(super) fn addresses(kind: RecordType, texts: &[&str]) -> DnsResponse {
    let records = texts.iter().map(|text| match text.parse().unwrap() {
        std::net::IpAddr::V4(address) => RData::A(rdata::A(address)),
        std::net::IpAddr::V6(address) => RData::AAAA(rdata::AAAA(address)),
    });
    DnsResponse::Records(records.filter(|data| data.record_type() == kind).collect())
}

pub(super) fn alias(target: &str) -> DnsResponse {
    DnsResponse::Records(vec![RData::CNAME(rdata::CNAME(Name::from_ascii(target).unwrap()))])
}
