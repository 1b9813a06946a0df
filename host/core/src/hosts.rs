//! Hosts of URLs: which are addresses, which mean this machine, and which addresses are of the public internet. Whatever a
//! name leads to besides is reached only where the operator says that it is meant.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// The address that a host is, in brackets or not, as whoever dials it reads it; none where it is a name.
#[must_use]
pub fn address(host: &str) -> Option<IpAddr> {
    let bare = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(host);
    bare.parse().ok()
}

/// Whether a name, in lower case, means this machine. What else it may lead to is left out where it is resolved.
#[must_use]
pub fn is_localhost(name: &str) -> bool {
    name == "localhost" || name.ends_with(".localhost")
}

/// Whether a host, in lower case, means this machine, by its address or by its name.
#[must_use]
pub fn is_loopback(host: &str) -> bool {
    address(host).map_or_else(|| is_localhost(host), |ip| ip.is_loopback())
}

/// Whether it is the host of a URI (RFC 3986, 3.2.2) of http, which is never empty.
#[must_use]
pub fn is_uri_host(name: &str) -> bool {
    if let Some(address) = name.strip_prefix('[') {
        return address.strip_suffix(']').is_some_and(|address| address.parse::<Ipv6Addr>().is_ok());
    }
    let mut rest = name.bytes();
    while let Some(byte) = rest.next() {
        let fits = match byte {
            b'%' => [rest.next(), rest.next()].iter().all(|digit| digit.is_some_and(|d| d.is_ascii_hexdigit())),
            byte => byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte),
        };
        if !fits {
            return false;
        }
    }
    !name.is_empty()
}

/// Whether an address is one of the public internet.
#[must_use]
pub fn is_public(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => is_public_v4(ip),
        IpAddr::V6(ip) => match embedded_v4(ip) {
            Some(inner) => is_public_v4(inner),
            None => is_public_v6(ip),
        },
    }
}

fn is_public_v4(ip: Ipv4Addr) -> bool {
    let [a, b, c, d] = ip.octets();
    let special = match a {
        0 | 10 | 127 => true,
        100 => (64..128).contains(&b),         // carrier-grade NAT
        168 => b == 63 && c == 129 && d == 16, // what Azure's machines ask of their host
        169 => b == 254,                       // link-local, metadata services
        172 => (16..32).contains(&b),
        192 => b == 168 || (b == 0 && (c == 0 || c == 2)) || (b == 88 && c == 99),
        198 => b == 18 || b == 19 || (b == 51 && c == 100),
        203 => b == 0 && c == 113,
        224.. => true, // multicast, reserved, broadcast
        _ => false,
    };
    !special
}

fn is_public_v6(ip: Ipv6Addr) -> bool {
    let first = ip.segments()[0];
    // Global unicast is 2000::/3; documentation and the like inside of it lead nowhere.
    (first & 0xe000) == 0x2000 && !(first == 0x2001 && ip.segments()[1] == 0x0db8)
}

/// The IPv4 address inside a mapped, translated (64:ff9b::/96) or 6to4 address.
fn embedded_v4(ip: Ipv6Addr) -> Option<Ipv4Addr> {
    let s = ip.segments();
    let last = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        Ipv4Addr::new(a, b, c, d)
    };
    match s {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(last(high, low)),
        [0x2002, high, low, ..] => Some(last(high, low)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_means_this_machine_by_its_address_or_by_its_name() {
        for host in ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "[127.0.0.1]", "localhost", "a.localhost"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "10.0.0.1", "[::2]", "[::1", "localhost.a.test", "127.0.0.1.a.test", "notlocalhost"] {
            assert!(!is_loopback(host), "{host}");
        }
        assert_eq!((address("[fd00::1]"), address("a.test")), ("fd00::1".parse().ok(), None));
    }

    #[test]
    fn private_addresses_in_any_writing_are_not_public() {
        for ip in [
            "127.0.0.1",
            "10.1.2.3",
            "172.16.0.1",
            "192.168.1.1",
            "169.254.169.254",
            "168.63.129.16",
            "100.64.0.1",
            "0.0.0.0",
            "224.0.0.1",
            "255.255.255.255",
            "::1",
            "::",
            "fe80::1",
            "fc00::1",
            "fd12::1",
            "ff02::1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "64:ff9b::7f00:1",
            "2002:7f00:1::",
        ] {
            assert!(!is_public(ip.parse().unwrap()), "{ip}");
        }
        for ip in ["1.1.1.1", "172.32.0.1", "168.63.129.17", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert!(is_public(ip.parse().unwrap()), "{ip}");
        }
    }
}
