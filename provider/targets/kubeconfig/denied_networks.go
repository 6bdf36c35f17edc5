/*
Copyright 2026 The synchub Authors.

Licensed under the Apache License, Version 2.0 (the "License");
you may not use this file except in compliance with the License.
You may obtain a copy of the License at

    http://www.apache.org/licenses/LICENSE-2.0

Unless required by applicable law or agreed to in writing, software
distributed under the License is distributed on an "AS IS" BASIS,
WITHOUT WARRANTIES OR CONDITIONS OF ANY KIND, either express or implied.
See the License for the specific language governing permissions and
limitations under the License.
*/

package kubeconfig

import (
	"fmt"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
)

// alwaysDenied are networks without clusters: the hub's own link, where clouds serve the credentials of its machine,
// unspecified addresses, and multicast. Loopback is not denied, because test clusters listen there.
var alwaysDenied = mustParsePrefixes(
	"169.254.0.0/16", "fe80::/10", // link-local, with the metadata service of most clouds
	"0.0.0.0/8", "::/128", // unspecified, which leads to the hub's own machine
	"224.0.0.0/4", "ff00::/8", "255.255.255.255/32", // multicast and broadcast
	"fd00:ec2::/32",      // metadata of AWS
	"fd20:ce::254/128",   // metadata of Google
	"100.100.100.200/32", // metadata of Alibaba
	"168.63.129.16/32",   // metadata of Azure
	"192.0.0.192/32",     // metadata of Oracle
)

// ipv4Carriers are the networks whose addresses embed an IPv4 address, which a gateway may route to, with its first byte.
var ipv4Carriers = map[netip.Prefix]int{
	netip.MustParsePrefix("64:ff9b::/96"): 12, // NAT64
	netip.MustParsePrefix("2002::/16"):    2,  // 6to4
	netip.MustParsePrefix("::/96"):        12, // IPv4-compatible
}

func mustParsePrefixes(networks ...string) []netip.Prefix {
	parsed := make([]netip.Prefix, 0, len(networks))
	for _, network := range networks {
		parsed = append(parsed, netip.MustParsePrefix(network))
	}
	return parsed
}

// DeniedNetworks are networks that the hub does not connect to. The zero value denies link-local, unspecified and multicast
// addresses, and addresses where clouds serve metadata; no value denies less.
type DeniedNetworks struct {
	denied []netip.Prefix
}

// ParseDeniedNetworks parses networks, in the form of 10.0.0.0/8, that are denied in addition to the networks that are always
// denied.
func ParseDeniedNetworks(networks []string) (DeniedNetworks, error) {
	var parsed DeniedNetworks
	for _, network := range networks {
		prefix, err := netip.ParsePrefix(strings.TrimSpace(network))
		if err != nil {
			return DeniedNetworks{}, fmt.Errorf("%q is not a valid CIDR, such as 10.0.0.0/8 or fd00::/8", network)
		}
		if bits := prefix.Bits() - 96; prefix.Addr().Is4In6() && bits >= 0 {
			prefix = netip.PrefixFrom(prefix.Addr().Unmap(), bits)
		}
		parsed.denied = append(parsed.denied, prefix.Masked())
	}
	return parsed, nil
}

// deniedBy returns the network that denies an address, in any form in which the address can be written.
func (n DeniedNetworks) deniedBy(address netip.Addr) (netip.Prefix, bool) {
	address = address.Unmap().WithZone("")
	for _, network := range slices.Concat(alwaysDenied, n.denied) {
		if network.Contains(address) {
			return network, true
		}
	}
	for carrier, at := range ipv4Carriers {
		// ::1 and :: do not embed an IPv4 address.
		if carrier.Contains(address) && !address.IsLoopback() {
			bytes := address.As16()
			return n.deniedBy(netip.AddrFrom4([4]byte(bytes[at : at+4])))
		}
	}
	return netip.Prefix{}, false
}

// NetworkDeniedError means that the address of a server is in a denied network when the hub dials it. The message does not name
// the network: that would reveal how the hub resolves a name.
type NetworkDeniedError struct {
	Network netip.Prefix
}

func (e *NetworkDeniedError) Error() string {
	return "the server's address is in a network which this hub does not connect to"
}

// Redacted marks an error whose text may be shown to users.
func (e *NetworkDeniedError) Redacted() {}

// Control refuses connections to denied addresses, as the Control function of a [net.Dialer]. The dialer calls it for each
// connection after it has resolved the name, so a name that resolves differently later is refused too.
func (n DeniedNetworks) Control(_, address string, _ syscall.RawConn) error {
	dialled, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("cannot determine the dialled network: %w", err)
	}
	if network, denied := n.deniedBy(dialled.Addr()); denied {
		return &NetworkDeniedError{Network: network}
	}
	return nil
}

// CheckServer returns an [*InvalidError] if the URL of a server has a denied address. Names are left to [DeniedNetworks.Control].
func (n DeniedNetworks) CheckServer(server string) error {
	parsed, err := url.Parse(server)
	if err != nil {
		return &InvalidError{Field: fieldServer, Reason: "it is no URL"}
	}
	return n.checkAddress(parsed.Hostname())
}

func (n DeniedNetworks) checkAddress(host string) error {
	address, err := netip.ParseAddr(host)
	if err != nil {
		return nil //nolint:nilerr // it is a name
	}
	if network, denied := n.deniedBy(address); denied {
		return &InvalidError{Field: fieldServer, Reason: fmt.Sprintf("its address is in the network %s, which this hub does not connect to", network)}
	}
	return nil
}
