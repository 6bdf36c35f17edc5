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
	"errors"
	"net/netip"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

func TestNetworksDeny(t *testing.T) {
	own, err := ParseDeniedNetworks([]string{"10.96.0.0/12", "fd12::/16", " 192.0.2.7/32", "::ffff:198.51.100.0/120"})
	if err != nil {
		t.Fatal(err)
	}
	for address, by := range map[string]string{
		"169.254.169.254": "169.254.0.0/16", "169.254.0.0": "169.254.0.0/16", "169.253.255.255": "", "169.255.0.0": "",
		"::ffff:169.254.169.254": "169.254.0.0/16", "64:ff9b::169.254.169.254": "169.254.0.0/16", "::169.254.169.254": "169.254.0.0/16",
		"2002:a9fe:a9fe::1": "169.254.0.0/16", "64:ff9b::8.8.8.8": "", "2002:808:808::1": "", "64:ff9b::127.0.0.1": "",
		"fe80::1": "fe80::/10", "febf::1%eth0": "fe80::/10", "fec0::1": "",
		"0.0.0.0": "0.0.0.0/8", "0.1.2.3": "0.0.0.0/8", "::": "::/128", "::ffff:0.0.0.0": "0.0.0.0/8",
		"224.0.0.1": "224.0.0.0/4", "239.255.255.255": "224.0.0.0/4", "255.255.255.255": "255.255.255.255/32", "ff02::1": "ff00::/8",
		"fd00:ec2::254": "fd00:ec2::/32", "fd20:ce::254": "fd20:ce::254/128", "fd20:ce::255": "", "100.100.100.200": "100.100.100.200/32",
		"168.63.129.16": "168.63.129.16/32", "168.63.129.17": "", "192.0.0.192": "192.0.0.192/32",
		"127.0.0.1": "", "::1": "", "10.0.0.1": "", "192.168.1.1": "", "8.8.8.8": "", "2001:db8::1": "", "fd00::1": "",
		"10.96.0.1": "10.96.0.0/12", "10.111.255.255": "10.96.0.0/12", "10.112.0.0": "", "::ffff:10.96.0.1": "10.96.0.0/12",
		"fd12::1": "fd12::/16", "192.0.2.7": "192.0.2.7/32", "192.0.2.8": "", "198.51.100.9": "198.51.100.0/24",
	} {
		got, denied := own.deniedBy(netip.MustParseAddr(address))
		if denied != (by != "") || denied && got.String() != by {
			t.Errorf("%s: want it denied by %q, got %v, %v", address, by, got, denied)
		}
	}
	for _, address := range []string{"10.96.0.1", "fd12::1", "192.0.2.7", "198.51.100.9"} {
		if _, denied := (DeniedNetworks{}).deniedBy(netip.MustParseAddr(address)); denied {
			t.Errorf("%s is denied, but in no denied network", address)
		}
	}
}

func TestParseNetworksRefuses(t *testing.T) {
	for _, network := range []string{"", "10.0.0.1", "10.0.0.0/33", "10.0.0.0/-1", "example.org", "10.0.0.0/8/8", "fe80::1%eth0/64"} {
		if _, err := ParseDeniedNetworks([]string{"10.0.0.0/8", network}); err == nil {
			t.Errorf("%q was taken for a network", network)
		}
	}
	if parsed, err := ParseDeniedNetworks(nil); err != nil || len(parsed.denied) != 0 {
		t.Errorf("got %v, %v", parsed, err)
	}
}

// The dialer passes the address that it connects to, for any name.
func TestControlChecksTheDialledAddress(t *testing.T) {
	g := NewWithT(t)
	var denied *NetworkDeniedError
	g.Expect(errors.As(DeniedNetworks{}.Control("tcp4", "169.254.169.254:443", nil), &denied)).To(BeTrue())
	g.Expect(denied.Network.String()).To(Equal("169.254.0.0/16"))
	g.Expect(denied.Error()).NotTo(ContainSubstring("169.254"), "the error must not reveal how a name is resolved")
	g.Expect(errors.As(DeniedNetworks{}.Control("tcp6", "[fe80::1%eth0]:443", nil), &denied)).To(BeTrue())
	g.Expect(DeniedNetworks{}.Control("tcp4", "127.0.0.1:443", nil)).To(Succeed())
	g.Expect(DeniedNetworks{}.Control("tcp", "example.org:443", nil)).NotTo(Succeed(), "an address that cannot be parsed is refused")
}

func FuzzNetworks(f *testing.F) {
	for _, seed := range []string{"127.0.0.1", "::ffff:169.254.1.1", "fe80::1%eth0", "64:ff9b::1", "2002::", "::", "x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		address, err := netip.ParseAddr(text)
		if err != nil {
			return
		}
		_, denied := DeniedNetworks{}.deniedBy(address)
		if plain := address.Unmap().WithZone(""); !denied && (plain.IsLinkLocalUnicast() || plain.IsMulticast() || plain.IsUnspecified()) {
			t.Errorf("%s is not denied", address)
		}
		if _, again := (DeniedNetworks{}).deniedBy(netip.MustParseAddr(strings.ToUpper(address.WithZone("").String()))); again != denied {
			t.Errorf("%s is denied in one form only", address)
		}
	})
}
