"""Which addresses a webhook may reach. What people type into the admin must not open what only this machine can reach.

A name is resolved here, its addresses are judged, and the connection goes to one that was judged: between the check
and the connection nobody is asked again, so a name server that answers otherwise the second time (DNS rebinding) gains
nothing. Literal addresses of whatever spelling (`127.1`, `0x7f000001`) take the same way.

Source: https://cheatsheetseries.owasp.org/cheatsheets/Server_Side_Request_Forgery_Prevention_Cheat_Sheet.html
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network
Resolve = Callable[[str, int], Sequence[str]]
"""A host and a port → its addresses, as text. Raises OSError where there are none."""

NEVER = tuple(
    ip_network(each)
    for each in (
        "168.63.129.16",  # Azure's own services behind an address like any other; those of other clouds are private
        "192.0.0.0/24",  # protocol assignments: Oracle's metadata
        "::/8",  # IPv4-compatible, NAT64
        "64:ff9b:1::/48",  # NAT64 of one's own
        "2001::/23",  # protocol assignments: Teredo
        "2002::/16",  # 6to4
        "fec0::/10",  # site-local
    )
)
"""What `ipaddress` calls public in some version of Python: a gateway of ours might lead from there to the inside."""


class UnreachableHostError(OSError):
    """The host has no address, or none that a webhook may reach."""

    def __init__(self, *, is_refused: bool) -> None:
        super().__init__()
        self.is_refused = is_refused


@dataclass(frozen=True, slots=True)
class Allowed:
    """What may be reached although it is private: names of hosts, addresses and networks."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[Network, ...] = field(default=())

    @classmethod
    def of(cls, entries: Iterable[str]) -> Allowed:
        """From a setting, such as `hooks.internal,10.2.0.0/16`. Raises ValueError for a network that is none."""
        hosts, networks = set(), []
        for entry in filter(None, (each.strip() for each in entries)):
            try:
                networks.append(ip_network(entry.strip("[]")))
            except ValueError:
                if "/" in entry or ":" in entry:
                    raise
                hosts.add(entry.lower().rstrip("."))
        return cls(frozenset(hosts), tuple(networks))

    def covers(self, host: str, address: Address) -> bool:
        """Whether the host or the address is named."""
        return host.lower().rstrip(".") in self.hosts or any(address in network for network in self.networks)


def system_addresses(host: str, port: int) -> Sequence[str]:
    """As this machine resolves names."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))


def is_public(address: Address) -> bool:
    """Whether it is one that anybody in the internet can reach.

    Loopback, private, link-local, shared (CGNAT), multicast, unspecified and reserved addresses are not, nor is any of
    IPv6 that carries one of IPv4.
    """
    special = address.is_private or address.is_multicast or address.is_reserved or address.is_link_local
    return address.is_global and not special and not any(address in network for network in NEVER)


def reachable_addresses(host: str, port: int, *, allowed: Allowed, resolve: Resolve = system_addresses) -> list[str]:
    """The addresses of a host that a webhook may reach. Raises UnreachableHostError where there are none."""
    try:
        found = [ip_address(each) for each in resolve(host, port)]
    except (OSError, UnicodeError, ValueError) as error:  # no such name, one that cannot be a name
        raise UnreachableHostError(is_refused=False) from error
    reachable = [str(each) for each in found if is_public(each) or allowed.covers(host, each)]
    if not reachable:
        raise UnreachableHostError(is_refused=bool(found))
    return reachable
