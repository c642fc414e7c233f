# Which addresses a fetched URL may lead to (S16.2).
#
# Checked where the connection is made: aiohttp asks `guarded_socket` for each socket with the very address that it will
# connect to, for redirects and literals too, so that no name can be one address when it is checked and another when it is
# used. Besides, a name of which any address is not public is refused whole (`GuardedResolver`).
# `ipaddress.is_global` says yes to addresses that carry another one inside; those are unwrapped first.

"""Refuses addresses that are not public."""

from __future__ import annotations

import ipaddress
import socket
from typing import Any, TypeAlias

from aiohttp.abc import AbstractResolver, ResolveResult
from aiohttp.resolver import ThreadedResolver

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address

_NAT64 = (ipaddress.IPv6Network("64:ff9b::/96"), ipaddress.IPv6Network("64:ff9b:1::/48"))
_COMPATIBLE = ipaddress.IPv6Network("::/96")
_SHARED = ipaddress.IPv4Network("100.64.0.0/10")


class AddressRefusedError(OSError):
    """The address is not public; the text says so without more."""


class Guard:
    """The rule. allowed: addresses that are let through all the same, for tests on loopback."""

    def __init__(self, allowed: frozenset[str] = frozenset()) -> None:
        self._allowed = allowed

    def check(self, host: str) -> None:
        """Raises AddressRefusedError where `host`, an address in any form, is not public."""
        if host in self._allowed:
            return
        try:
            address = ipaddress.ip_address(host.partition("%")[0])
        except ValueError:
            raise AddressRefusedError("that is no address that may be fetched") from None
        if "%" in host or not is_public(address):
            raise AddressRefusedError("the address is not on the public internet")

    def socket(self, info: tuple[Any, ...]) -> socket.socket:
        """A socket for an address that was resolved; what aiohttp calls for each connection."""
        family, kind, protocol, _, address = info
        self.check(str(address[0]))
        made = socket.socket(family, kind, protocol)
        made.setblocking(False)
        return made


class GuardedResolver(AbstractResolver):
    """Resolves names, and refuses one of which any address is not public."""

    def __init__(self, guard: Guard, resolver: AbstractResolver | None = None) -> None:
        self._guard = guard
        self._resolver = resolver or ThreadedResolver()

    async def resolve(self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET) -> list[ResolveResult]:
        """The addresses of `host`. Raises AddressRefusedError."""
        found = await self._resolver.resolve(host, port, family)
        for one in found:
            self._guard.check(one["host"])
        return found

    async def close(self) -> None:
        """Closes the resolver inside."""
        await self._resolver.close()


def is_public(address: Address) -> bool:
    """Whether an address, and any address that it carries inside, is on the public internet."""
    inside = _inside(address)
    if inside is not None:
        return is_public(inside)
    if isinstance(address, ipaddress.IPv4Address) and address in _SHARED:
        return False
    return address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)


def _inside(address: Address) -> Address | None:
    """The IPv4 address that an IPv6 one stands for: mapped, compatible, NAT64, 6to4, Teredo."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address.sixtofour is not None:
        return address.sixtofour
    if address.teredo is not None:
        return address.teredo[1]
    if any(address in network for network in (*_NAT64, _COMPATIBLE)) and int(address) > 1:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return None
