//! A real DNS server on a loopback port, answering from a function.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::Mutex;

use hickory_resolver::proto::op::{Message, MessageType, ResponseCode};
use hickory_resolver::proto::rr::{Name, RData, Record, RecordType, rdata};
use tokio::net::UdpSocket;
use tokio::task::JoinSet;

pub(super) enum Answer {
    Records(Vec<RData>),
    NoSuchName,
    Broken,
    Silence,
}

pub(super) struct Dns {
    pub(super) address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    _server: JoinSet<()>,
}

impl Dns {
    pub(super) async fn start(zone: impl Fn(&str, RecordType) -> Answer + Send + 'static) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
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
        Self { address, asked, _server: server }
    }

    /// The names asked for so far, each as often as it was.
    pub(super) fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

fn reply(question: &Message, answer: Answer) -> Option<Message> {
    let query = &question.queries()[0];
    let mut reply = Message::new();
    reply.set_id(question.id()).set_message_type(MessageType::Response).set_recursion_available(true);
    reply.add_query(query.clone());
    match answer {
        Answer::Records(records) => {
            for data in records {
                // Nothing is to be remembered: the second question of a rebinding test must arrive here.
                reply.add_answer(Record::from_rdata(query.name().clone(), 0, data));
            }
        }
        Answer::NoSuchName => {
            reply.set_response_code(ResponseCode::NXDomain);
        }
        Answer::Broken => {
            reply.set_response_code(ResponseCode::ServFail);
        }
        Answer::Silence => return None,
    }
    Some(reply)
}

/// Addresses of the asked family, as a server would answer with them.
pub(super) fn addresses(kind: RecordType, texts: &[&str]) -> Answer {
    let records = texts.iter().map(|text| match text.parse().unwrap() {
        std::net::IpAddr::V4(address) => RData::A(rdata::A(address)),
        std::net::IpAddr::V6(address) => RData::AAAA(rdata::AAAA(address)),
    });
    Answer::Records(records.filter(|data| data.record_type() == kind).collect())
}

pub(super) fn alias(target: &str) -> Answer {
    Answer::Records(vec![RData::CNAME(rdata::CNAME(Name::from_ascii(target).unwrap()))])
}
