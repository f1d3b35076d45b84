//! Which addresses belong to the public internet. Everything else (loopback, private networks, link-local addresses and with them the metadata
//! services of clouds, multicast, and the ranges that carry an IPv4 address inside an IPv6 one) must be named to be reached.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address without the IPv6 form of an IPv4 one.
pub(crate) fn canonical(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(v6) => v6.to_ipv4_mapped().map_or(address, IpAddr::V4),
        IpAddr::V4(_) => address,
    }
}

/// Whether the first `bits` of two addresses of one family are the same.
pub(crate) fn in_network(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    match (address, network) {
        (IpAddr::V4(address), IpAddr::V4(network)) => {
            let mask = u32::MAX.checked_shl(32 - u32::from(bits.min(32))).unwrap_or(0);
            (u32::from(address) ^ u32::from(network)) & mask == 0
        }
        (IpAddr::V6(address), IpAddr::V6(network)) => {
            let mask = u128::MAX.checked_shl(128 - u32::from(bits.min(128))).unwrap_or(0);
            (u128::from(address) ^ u128::from(network)) & mask == 0
        }
        (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
    }
}

/// Networks of IPv4 that are not public (RFC 6890 and its registry).
const CLOSED_V4: &[([u8; 4], u8)] = &[
    ([0, 0, 0, 0], 8),
    ([10, 0, 0, 0], 8),
    ([100, 64, 0, 0], 10),
    ([127, 0, 0, 0], 8),
    ([169, 254, 0, 0], 16),
    ([172, 16, 0, 0], 12),
    ([192, 0, 0, 0], 24),
    ([192, 0, 2, 0], 24),
    ([192, 88, 99, 0], 24),
    ([192, 168, 0, 0], 16),
    ([198, 18, 0, 0], 15),
    ([198, 51, 100, 0], 24),
    ([203, 0, 113, 0], 24),
    // Multicast, reserved, broadcast.
    ([224, 0, 0, 0], 3),
];

/// All of IPv6 that is public.
const OPEN_V6: (Ipv6Addr, u8) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// The parts of it that are not: protocol assignments with Teredo, documentation, 6to4.
const CLOSED_V6: &[(Ipv6Addr, u8)] = &[
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x2002, 0, 0, 0, 0, 0, 0, 0), 16),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];

/// Whether an address in canonical form is public.
pub(crate) fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(_) => !CLOSED_V4
            .iter()
            .any(|(network, bits)| in_network(address, Ipv4Addr::from(*network).into(), *bits)),
        IpAddr::V6(_) => {
            in_network(address, OPEN_V6.0.into(), OPEN_V6.1)
                && !CLOSED_V6
                    .iter()
                    .any(|(network, bits)| in_network(address, (*network).into(), *bits))
        }
    }
}
