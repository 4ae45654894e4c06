use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;

use ipnet::IpNet;

use crate::address::{AddressError, Policy, check_addr, is_nat64};

/// Special-purpose IPv4 ranges as numbers (IANA registry of 2026, and the address of one cloud platform).
const SPECIAL_V4: [RangeInclusive<u32>; 15] = [
    0x0000_0000..=0x00ff_ffff,
    0x0a00_0000..=0x0aff_ffff,
    0x6440_0000..=0x647f_ffff,
    0x7f00_0000..=0x7fff_ffff,
    0xa83f_8110..=0xa83f_8110,
    0xa9fe_0000..=0xa9fe_ffff,
    0xac10_0000..=0xac1f_ffff,
    0xc000_0000..=0xc000_00ff,
    0xc000_0200..=0xc000_02ff,
    0xc058_6300..=0xc058_63ff,
    0xc0a8_0000..=0xc0a8_ffff,
    0xc612_0000..=0xc613_ffff,
    0xc633_6400..=0xc633_64ff,
    0xcb00_7100..=0xcb00_71ff,
    0xe000_0000..=0xffff_ffff,
];

/// Public IPv6 ranges by their first 32 bits. No longer prefix of the registry divides them.
const PUBLIC_V6: [RangeInclusive<u32>; 5] = [
    0x2000_0000..=0x2000_ffff,
    0x2001_0200..=0x2001_0db7,
    0x2001_0db9..=0x2001_ffff,
    0x2003_0000..=0x3ffd_ffff,
    0x3fff_1000..=0x3fff_ffff,
];

/// Returns whether the address is public.
pub(super) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => !SPECIAL_V4.iter().any(|span| span.contains(&address.to_bits())),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.octets();
            PUBLIC_V6.iter().any(|span| span.contains(&u32::from_be_bytes([a, b, c, d])))
        }
    }
}

/// `check_addr` agrees with the ranges above and the operator's lists, in the order allow, deny, own, table.
///
/// The input is an address followed by prefixes. Each record has one byte with the family in the lowest bit and the
/// list in the next two bits, one byte for the prefix length, and sixteen bytes for the address.
pub fn address(data: &[u8]) {
    let mut records = data.chunks_exact(18).map(|record| {
        let number: [u8; 16] = record[2..].try_into().expect("a record has 18 bytes");
        let address = match record[0] & 1 {
            0 => IpAddr::V4(Ipv4Addr::new(number[0], number[1], number[2], number[3])),
            _ => IpAddr::V6(Ipv6Addr::from(number)),
        };
        (record[0] >> 1 & 3, record[1], address)
    });
    let Some((_, _, address)) = records.next() else { return };
    let none = Policy::default();
    assert_eq!(check_addr(address, &none).is_ok(), is_public(address), "{address}");
    match address {
        IpAddr::V4(inner) => assert_embedded_is_refused(inner, &none),
        IpAddr::V6(outer) => {
            let embeds = outer.segments()[..6] == [0x64, 0xff9b, 0, 0, 0, 0];
            assert_eq!(is_nat64(outer), embeds, "{outer}");
        }
    }

    let (mut policy, mut listed) = (none, [false; 3]);
    for (list, length, prefix) in records {
        let most = if prefix.is_ipv4() { 32 } else { 128 };
        let length = length % (most + 1);
        let net = IpNet::new(prefix, length).expect("the length is valid for the family");
        match list {
            0 => policy.allow.push(net),
            1 => policy.deny.push(net),
            _ => policy.own.push(prefix),
        }
        let list = usize::from(list).min(2);
        listed[list] |= if list == 2 { prefix == address } else { share_prefix(prefix, address, length) };
    }
    let seen = check_addr(address, &policy);
    match listed {
        [true, _, _] => assert_eq!(seen, Ok(()), "{address} {policy:?}"),
        [false, true, _] => assert_eq!(seen, Err(AddressError::Denied), "{address} {policy:?}"),
        [false, false, true] => assert_eq!(seen, Err(AddressError::Own), "{address} {policy:?}"),
        [false, false, false] => assert_eq!(seen.is_ok(), is_public(address), "{address} {policy:?}"),
    }
}

/// Returns whether both addresses have the same family and the same first `bits` bits.
fn share_prefix(one: IpAddr, other: IpAddr, bits: u8) -> bool {
    let differ = match (one, other) {
        (IpAddr::V4(one), IpAddr::V4(other)) => u128::from(one.to_bits() ^ other.to_bits()) << 96,
        (IpAddr::V6(one), IpAddr::V6(other)) => one.to_bits() ^ other.to_bits(),
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => return false,
    };
    differ.leading_zeros() >= u32::from(bits)
}

/// IPv6 addresses that embed an IPv4 address are refused, even if the IPv4 address is public.
fn assert_embedded_is_refused(inner: Ipv4Addr, none: &Policy) {
    let number = u128::from(inner.to_bits());
    let carriers = [
        number,
        0xffff << 32 | number,
        0xffff << 48 | number,
        0x64_ff9b << 96 | number,
        0x64_ff9b_0001 << 80 | number,
        0x2002 << 112 | number << 80,
        0x2001 << 112 | !number & 0xffff_ffff,
    ];
    for carrier in carriers.map(Ipv6Addr::from_bits) {
        assert!(check_addr(carrier.into(), none).is_err(), "{carrier} embeds {inner}");
    }
}
