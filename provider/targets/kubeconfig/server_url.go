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
	"net/netip"
	"net/url"
	"strconv"
	"strings"
)

// serverURLProblem returns why the URL of a server is refused; "" if it is accepted.
func serverURLProblem(server *url.URL) string {
	if server.RawQuery != "" || server.ForceQuery || server.Fragment != "" || server.Opaque != "" {
		return "it must be an https URL of a host and a path, without a query or a fragment"
	}
	if port := server.Port(); port != "" || strings.HasSuffix(server.Host, ":") {
		if number, err := strconv.ParseUint(port, 10, 16); err != nil || number == 0 {
			return "its port must be a number from 1 to 65535"
		}
	}
	if problem := hostProblem(server.Hostname()); problem != "" {
		return "its host " + problem
	}
	return ""
}

// hostProblem returns why a host is refused; "" if it is a plain address or a name. Programs interpret other forms differently: a
// resolver may read 127.1 or 0x7f000001 as an address, and a certificate does not match a name that ends with a dot.
func hostProblem(host string) string {
	if address, err := netip.ParseAddr(host); err == nil {
		switch {
		case address.Zone() != "":
			return "must not name an interface of the hub's machine, as in fe80::1%eth0"
		case address.Is4In6():
			return "must be written as an IPv4 address"
		}
		return ""
	}
	if len(host) > maxServerName {
		return "is longer than a name may be"
	}
	labels := strings.Split(host, ".")
	for _, label := range labels {
		if !isLabel(label) {
			return "must be an address, or a name of letters, digits and hyphens, without a dot at its end"
		}
	}
	if last := labels[len(labels)-1]; isNumber(last) {
		return "ends with a number, but is not an IPv4 address of four decimal numbers"
	}
	return ""
}

func isLabel(label string) bool {
	const maxLength = 63
	if label == "" || len(label) > maxLength || label[0] == '-' || label[len(label)-1] == '-' {
		return false
	}
	return strings.Trim(strings.ToLower(label), "abcdefghijklmnopqrstuvwxyz0123456789-_") == ""
}

// isNumber reports whether the URL standard reads the last label of a host as a number: decimal, octal or hexadecimal, even
// with no digit after 0x.
func isNumber(label string) bool {
	if strings.Trim(label, "0123456789") == "" {
		return true
	}
	digits, hexadecimal := strings.CutPrefix(strings.ToLower(label), "0x")
	return hexadecimal && strings.Trim(digits, "0123456789abcdef") == ""
}
